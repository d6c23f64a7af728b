"""Votes in complement form: what it costs to change an attribute, and what can be afforded.

With q_i = 1 − p_i a vote's sum is a budget less the costs of the changed attributes:

    z = Σ_i λ_i (Y_i − p_i) = θ − Σ_{i changed} λ_i,     θ = Σ_i λ_i q_i.

So only sums of costs from 0 to θ matter for E_μ[z_+] and for the vote {z > 0}, and a cost at θ or
above is as good as any larger one: whoever changes that attribute loses (docs/proofs/optimal.md,
section 4). The grid is a part of θ or of the standard deviation of z with costs cut at θ, never of
z's own: one attribute at 20 nats changes once in e^20 records, at a cost of e^20, and a grid made
for that cannot tell the others apart.

Everything here is evaluated under the uniform law μ, tilted by e^{−ρ s}
(`deniable.laws.votes.sums`).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.sums import UNIT, SumLaw, TiltedSum, changed_sum, saddle_tilt
from deniable.solvers.problem import Problem


def default_resolution(n_attributes: int) -> float:
    """Return the standard deviation of z in units of the grid: fine enough, and 10^8 additions.

    The dither adds at most k/4 to the variance of z: at 20 √k a relative 1/1600 at worst.
    """
    return max(20.0 * math.sqrt(n_attributes), min(6e3, 1.5e6 / n_attributes))


LEAST_RESOLUTION = 20_000
"""θ has at least so many units, unless it is a sum of whole costs."""

MOST_WHOLE = 1e6
"""Sums of whole costs are used as they are up to here."""

ABOVE = 0.01
"""A weight that wins alone is cut to what that takes and this part of the budget that is left: on
the grid it then still wins, whatever is rounded."""

MOST_ADDITIONS = 1e9
"""Units of θ times attributes at most. Of many attributes a pass takes a part of that, as long as a
few dozen standard deviations of z are of θ."""


@dataclass(frozen=True, eq=False)
class Complement:
    """Costs on a grid of integers, in units of it; equal to another if it is the same object.

    Attributes:
        problem: the levels.
        costs: n_i, shape (k,); `ceiling` + 1 for a change that loses by itself.
        dither: chance that the change costs one more, in [0, 1), shape (k,).
        budget: θ, rounded up by its error at most.
        gain: λ·d, rounded down by its error at most.
        more: by how much E_μ[z_+] is larger for weights that were cut, rounded up by its error.
    """

    problem: Problem
    costs: IntArray
    dither: FloatArray
    budget: float
    gain: float
    more: float = 0.0

    @property
    def ceiling(self) -> int:
        """The largest sum of costs that can be afforded."""
        return math.floor(self.budget)

    @cached_property
    def tilt(self) -> float:
        """ρ under which the affordable costs average the budget, or 0 if they are less anyway."""
        live = (self.costs > 0) & (self.costs <= self.ceiling)
        costs = (self.costs + self.dither)[live]
        kept = float(costs.sum()) - self.budget
        return saddle_tilt(self.problem.uniform_keep[live], costs, kept) if kept > 0 else 0.0

    @cached_property
    def steps(self) -> TiltedSum:
        """The steps of s = Σ_{i changed} (n_i + B_i) under the tilted law."""
        keep = self.problem.uniform_keep
        return changed_sum(keep, self.costs, self.dither, self.tilt, self.ceiling)

    @cached_property
    def law(self) -> SumLaw:
        """The law of s up to `ceiling`, with careful sums."""
        return SumLaw(self.steps, ceiling=self.ceiling, careful=True)

    @property
    def log_factor(self) -> float:
        """ln of what E_ν[h(s) `weigh`(s)] is multiplied by to give E_μ[h(s)]."""
        return self.steps.log_scale + self.tilt * round(self.budget)

    def weigh(self, s: IntArray) -> FloatArray:
        """Return e^{ρ (s − round θ)}, at least e^{−740}: what a function of s is multiplied by."""
        return np.asarray(np.exp(np.clip(self.tilt * (s - round(self.budget)), -740.0, 600.0)))

    def log_positive_part(self) -> float:
        """Return ln E[(θ − s)_+], at least ln E_μ[z_+], rounded up; infinite if out of range."""

        def affordable(s: IntArray) -> FloatArray:
            return np.asarray(np.maximum(self.budget - s, 0.0) * self.weigh(s))

        law, steps = self.law, self.steps
        values = affordable(law.support)
        # What was dropped has mass `dropped` under ν, and (θ − s) e^{ρ s} is largest 1/ρ below θ.
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


def complement(
    problem: Problem, weights: FloatArray, resolution: float | None = None
) -> Complement:
    """Put λ on a grid of costs.

    λ that are whole numbers stay as they are, if they are not too large. Others become n_i + B_i
    with B_i = 1 with the probability that is left over, which is right on average, after those that
    win alone were cut (`of_whole`).

    Args:
        problem: the levels.
        weights: λ ≥ 0, on any scale, not all 0, shape (k,).
        resolution: units of θ; by default as fine as the standard deviation of z asks for.
    """
    k, keep, change = problem.n_attributes, problem.uniform_keep, problem.change_probability
    budget = math.fsum((weights * change).tolist())
    gain = math.fsum((weights * problem.keep_excess).tolist())
    whole = bool(np.all(weights == np.rint(weights))) and budget <= MOST_WHOLE
    cut = np.zeros(k)
    if np.all(weights == weights[0]) and np.all(keep == keep[0]):  # only how many change matters
        unit = float(weights[0])
    elif whole and (resolution is None or budget <= resolution):
        unit = 1.0
    else:
        # Sums of k weights are off by less than 2 k u of their sum, θ by less than 32 u of itself.
        above = ABOVE * shared(weights, budget) + 4.0 * k * UNIT * float(weights.sum())
        cut = spared(weights, budget - above)
        error = 32.0 * UNIT * budget if cut.any() else 0.0
        weights, budget = weights - cut, math.fsum([budget, error, *(-cut).tolist()])
        units = resolution or units_of_budget(
            problem, weights, default_resolution(k), spare=3.0, budget=budget
        )
        unit = budget / units
    units = budget / unit * (1.0 + 32.0 * UNIT)
    scaled = np.minimum(weights / unit, 2.0 * units)
    costs = np.floor(scaled)
    lost = scaled > units
    return Complement(
        problem,
        np.where(lost, math.floor(units) + 1, costs).astype(np.int64),
        np.where(lost, 0.0, scaled - costs),
        units,
        gain / unit * (1.0 - 64.0 * UNIT),
        math.fsum((cut * keep).tolist()) / unit * (1.0 + 64.0 * UNIT),
    )


def wins_alone(problem: Problem, weights: FloatArray) -> float:
    """Return Σ λ_i p_i: an attribute of at least that weight wins the vote {z > 0} if it is kept,
    whatever the others do."""
    return math.fsum((weights * problem.keep_probability).tolist())


def spared(weights: FloatArray, budget: float) -> FloatArray:
    """Return by how much the weights are above Σ λ_i p_i, from which on they win alone, shape (k,):
    λ_i − (Σ_j λ_j − θ) is θ less all others, which loses no digits beside a level of 40 nats.

    Args:
        weights: λ ≥ 0, shape (k,).
        budget: θ.
    """
    others = np.append(0.0, np.cumsum(weights[:-1])) + np.append(np.cumsum(weights[:0:-1])[::-1], 0)
    return np.asarray(np.maximum(budget - others, 0.0))


def shared(weights: FloatArray, budget: float) -> float:
    """Return what is left of the budget θ where weights that win alone are cut to just that; more
    than 0 also where nothing is."""
    return max(budget - float(spared(weights, budget).sum()), 1e-9 * budget)


def of_whole(problem: Problem, weights: FloatArray) -> Complement:
    """Put λ in whole numbers into complement form, the weights cut that win alone.

    With P = Σ λ_i p_i, z = Σ_{i kept} λ_i − P. A weight above P may be lowered to any c ≥ P: the
    vote is the same, and E_μ[z_+] falls by (λ_i − c) r_i. An attribute of 10,000 categories, which
    hardly anyone keeps, can have nearly all of θ; the budget that is left is what the others share.
    Here c is the least whole number above P, and θ is rounded up where P is rounded down.

    Args:
        problem: the levels.
        weights: λ ≥ 0, whole numbers, shape (k,).

    Returns:
        The form of the weights that are left, its `gain` that of λ.
    """
    whole = math.fsum((weights * problem.change_probability).tolist())
    cut = spared(weights, math.ceil(whole) - 1.0)
    budget = math.fsum([whole, *(-cut).tolist()])
    costs = np.minimum(weights - cut, math.floor(budget) + 1.0).astype(np.int64)
    gain = math.fsum((weights * problem.keep_excess).tolist())
    more = math.fsum((cut * problem.uniform_keep).tolist())
    return Complement(problem, costs, np.zeros(len(costs)), budget, gain, more)


def units_of_budget(
    problem: Problem,
    weights: FloatArray,
    resolution: float,
    *,
    spare: float | None = None,
    budget: float | None = None,
) -> float:
    """Return how many units θ should have, for a grid to be fine beside what z does.

    Args:
        problem: the levels.
        weights: λ ≥ 0, on any scale, not all 0, shape (k,).
        resolution: the standard deviation of z in units, costs cut at θ. Without a tilt all sums of
            costs are within reach, however small it is: then as few units as may be.
        spare: how many times finer, where the dither is added to the changed attributes; more if
            these outnumber the kept ones, for which `default_resolution` was made. At 3 no bound of
            2,000 draws is below that of the sum of the kept; at 1.5 a few were, by up to 1e-7 nats.
        budget: θ, if weights were cut.
    """
    costs = weights / (budget or float(weights @ problem.change_probability))
    live = costs < 1.0
    keep, spent = problem.uniform_keep[live], costs[live]
    kept = float(spent.sum()) - 1.0
    if not kept > 0:
        return LEAST_RESOLUTION
    tilt = saddle_tilt(keep, spent, kept)
    stay = keep / (keep + (1.0 - keep) * np.exp(-tilt * spent))
    deviation = math.sqrt(float(spent**2 @ (stay * (1.0 - stay))))
    if spare is not None:
        resolution *= spare * math.sqrt(max(float((1.0 - stay).sum() / stay.sum()), 1.0))
    fine = resolution / max(deviation, 1e-9)
    most = min(MOST_ADDITIONS / problem.n_attributes, 2.0**27)
    return max(min(fine, most), LEAST_RESOLUTION)
