"""Votes in complement form: costs of changing attributes, and the budget for them.

With q_i = 1 − p_i a vote's sum is a budget less the costs of the changed attributes:

    z = Σ_i λ_i (Y_i − p_i) = θ − Σ_{i changed} λ_i,     θ = Σ_i λ_i q_i.

Only sums of costs from 0 to θ matter for E_μ[z_+] and for the vote {z > 0}; a cost at θ or above
loses by itself (docs/proofs/optimal.md, section 4). λ are whole numbers here and
θ a sum of parts of them, not of the standard deviation of z: an attribute at 20 nats changes once
in e^20 rows, at a cost of e^20, and a grid of that width cannot separate the others.

Everything here is evaluated under the uniform law μ, tilted by e^{−ρ s}
(`deniable.laws.votes.sums`).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.sums import UNIT, SumLaw, TiltedSum, changed_sum, saddle_tilt
from deniable.proofs.problem import Problem

MOST_WHOLE = 1e6
"""Limit on θ for using whole λ unscaled, which keeps a sum's states in memory."""

ROUNDED_TO = 4e5
"""θ of λ that are rounded to whole numbers: the bound falls by at most 1e-6 ε of 1,000 attributes,
6e-6 ε of 5,000, and takes 0.02 s of 100 attributes, 0.15 s of 5,000."""


@dataclass(frozen=True, eq=False)
class Complement:
    """Whole costs, and the budget for them.

    Attributes:
        problem: the levels.
        costs: n_i, shape (k,); `ceiling` + 1 for a change that loses by itself.
        budget: θ, rounded up by its error at most.
        gain: λ·d, rounded down by its error at most.
        more: increase of E_μ[z_+] for weights that were cut, rounded up by its error.
    """

    problem: Problem
    costs: IntArray
    budget: float
    gain: float
    more: float

    @property
    def ceiling(self) -> int:
        """The largest sum of costs within the budget."""
        return math.floor(self.budget)

    @cached_property
    def tilt(self) -> float:
        """ρ under which the costs within the budget average it, or 0 if they are less anyway."""
        live = (self.costs > 0) & (self.costs <= self.ceiling)
        costs = self.costs[live].astype(np.float64)
        kept = float(costs.sum()) - self.budget
        return saddle_tilt(self.problem.uniform_keep[live], costs, kept) if kept > 0 else 0.0

    @cached_property
    def steps(self) -> TiltedSum:
        """The steps of s = Σ_{i changed} n_i under the tilted law."""
        exactly = np.zeros(len(self.costs))
        keep = self.problem.uniform_keep
        return changed_sum(keep, self.costs, exactly, self.tilt, self.ceiling)

    @cached_property
    def law(self) -> SumLaw:
        """The law of s up to `ceiling`, with careful sums."""
        return SumLaw(self.steps, ceiling=self.ceiling, careful=True)

    @property
    def log_factor(self) -> float:
        """ln of the factor from E_ν[h(s) `weigh`(s)] to E_μ[h(s)]."""
        return self.steps.log_scale + self.tilt * round(self.budget)

    def weigh(self, s: IntArray) -> FloatArray:
        """Return the factor e^{ρ (s − round θ)} of a function of s, at least e^{−740}."""
        return np.asarray(np.exp(np.clip(self.tilt * (s - round(self.budget)), -740.0, 600.0)))

    def log_positive_part(self) -> float:
        """Return ln E[(θ − s)_+], at least ln E_μ[z_+], rounded up; infinite if out of range."""

        def affordable(s: IntArray) -> FloatArray:
            return np.asarray(np.maximum(self.budget - s, 0.0) * self.weigh(s))

        law, steps = self.law, self.steps
        values = affordable(law.support)
        # The dropped sums have mass `dropped` under ν, and (θ − s) e^{ρ s} is largest 1/ρ below θ.
        peak = self.budget - (min(1.0 / self.tilt, self.budget) if self.tilt > 0.0 else self.budget)
        nearby = np.array([max(math.floor(peak) + i, 0) for i in (-1, 0, 1, 2)])
        worst = max(float(affordable(nearby).max()), float(values.max(initial=0.0)))
        mean = float(law.dot(values, law.mass)) * (1.0 + law.error() + 16.0 * UNIT)
        mean += 2.0 * law.dropped * worst
        if not 0.0 < mean < math.inf:
            return math.inf
        # L is a sum of k logarithms, each off by less than 20u and 8u of itself.
        size = abs(steps.log_scale) + self.tilt * self.budget
        slack = (20.0 * self.problem.n_attributes + 8.0 * size + 64.0) * UNIT
        value = math.log(mean) + self.log_factor + slack
        if self.more > 0.0:
            value = float(np.logaddexp(value, math.log(self.more)))
            value += 16.0 * UNIT * (1.0 + abs(value))
        return value


def rounded(problem: Problem, weights: FloatArray) -> FloatArray:
    """Return λ as whole numbers, shape (k,): unchanged if they are whole; 1 if all are equal; else
    scaled so that the budget shared by weights below it is `ROUNDED_TO` (`shared`).

    ``weights``: λ ≥ 0, on any scale, not all 0, shape (k,).
    """
    budget = math.fsum((weights * problem.change_probability).tolist())
    if np.all(weights == weights[0]):
        return np.ones(len(weights))
    if np.all(weights == np.rint(weights)) and budget <= MOST_WHOLE:
        return weights
    return np.rint(weights * (ROUNDED_TO / shared(weights, budget)))


def of_whole(problem: Problem, weights: FloatArray) -> Complement:
    """Put λ in whole numbers into complement form, with weights that win alone cut.

    With P = Σ λ_i p_i, a weight above P may be lowered to any c ≥ P: the vote is the same, and
    E_μ[z_+] falls by (λ_i − c) r_i. Here c is the least whole number above P. Without the cut, a
    rarely unchanged attribute of 10,000 categories takes nearly all of θ.

    ``weights``: λ ≥ 0, whole numbers, shape (k,).
    """
    whole = math.fsum((weights * problem.change_probability).tolist())
    error = 32.0 * UNIT * whole  # of q_i 18u, of a product u; the rest for the sums below
    cut = spared(weights, math.ceil(whole - error) - 1.0)
    budget = math.fsum([whole, error, *(-cut).tolist()])
    costs = np.minimum(weights - cut, math.floor(budget) + 1.0).astype(np.int64)
    gain = math.fsum((weights * problem.keep_excess).tolist()) * (1.0 - 64.0 * UNIT)
    more = math.fsum((cut * problem.uniform_keep).tolist()) * (1.0 + 64.0 * UNIT)
    return Complement(problem, costs, budget, gain, more)


def spared(weights: FloatArray, budget: float) -> FloatArray:
    """Return the excess of the weights over Σ λ_i p_i, from which on they win alone, shape (k,):
    λ_i − (Σ_j λ_j − θ), computed as θ less all others, which loses no digits at 40 nats.

    ``weights``: λ ≥ 0, shape (k,).
    """
    others = np.append(0.0, np.cumsum(weights[:-1])) + np.append(np.cumsum(weights[:0:-1])[::-1], 0)
    return np.asarray(np.maximum(budget - others, 0.0))


def shared(weights: FloatArray, budget: float) -> float:
    """Return the budget θ less the excess of weights that win alone, at least 1e-9 θ."""
    return max(budget - float(spared(weights, budget).sum()), 1e-9 * budget)
