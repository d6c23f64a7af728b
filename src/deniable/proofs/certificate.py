"""Lower bounds on the record level of *every* law that keeps the requested levels.

They are proofs, so no solver is imported here, and every result is rounded down: the error of
each floating-point step is bounded in a comment and taken off. The comments write u = 2⁻⁵³ for the
unit roundoff and assume that numpy's expm1, log1p and the C library's log1p err by at most 8u
relatively (numpy documents 4 units in the last place).

Notation: f = q/μ is the density of a pattern law q against the uniform law μ (attribute i changed
with probability 1 − 1/a_i, independently), Y_i is 1 if attribute i is unchanged, p_i the required
keep probability, d_i = p_i − 1/a_i ≥ 0. The record's level is ε = ln(max f/min f).

The proofs are in docs/proofs/optimal.md, Theorem 6, and section 7 for the roundings.
"""

import math
from collections.abc import Sequence

import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.laws.votes.sums import UNIT
from deniable.proofs.complement import of_whole, rounded
from deniable.proofs.problem import Problem, checked_problem

MAX_ENUMERATED = 20
"""The most attributes for which all 2^k patterns are enumerated."""

_ROUNDOFF = UNIT
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def relative_entropy_bound(problem: Problem) -> float:
    """Bound the record level from below by Σ KL(p_i ‖ 1/a_i), in nats, in O(k).

    Tight in the limit of many attributes, and weak for few (docs/proofs/optimal.md, Theorem 7).

    >>> round(relative_entropy_bound(checked_problem([5, 5, 3], [1.0, 2.0, 1.5])), 6)
    0.85036
    """
    a, level = problem.n_categories, problem.attribute_epsilon
    # With ψ(s) = ln(1 + (e^s − 1)/a) one has p = ψ'(ε) and KL(p ‖ 1/a) = ε ψ'(ε) − ψ(ε), used
    # directly for large ε: relative error below 32u in each of the two terms.
    direct = level > 1.0
    plus = (problem.keep_probability * level)[direct]
    minus = np.log1p(problem.expm1[direct] / a[direct])
    # For small ε it is a difference of two terms of order ε that leaves one of order ε²; instead
    # integrate by parts: ∫₀^ε s ψ''(s) ds, ψ'' = p_s (1 − p_s) > 0. The nearest poles of ψ'' are
    # at distance π from the real axis, so on [0, ε], ε ≤ 1, it is analytic in the ellipse of
    # parameter 10 (semi-axis 2.48) and twelve nodes leave a relative error of order 10⁻²⁴. All
    # terms are positive: relative error below 64u.
    a, level = a[~direct, None], level[~direct, None]
    s = level * (_NODES + 1.0) / 2.0
    lift = np.expm1(s)
    variance = (a - 1.0) * (1.0 + lift) / (a + lift) ** 2
    integral = (s * variance) @ _WEIGHTS * level[:, 0] / 2.0
    # fsum adds without error and rounds once.
    terms = [*plus.tolist(), *integral.tolist()]
    subtracted = minus.tolist()
    value = math.fsum([*terms, *(-term for term in subtracted)])
    margin = 80.0 * _ROUNDOFF * math.fsum([*terms, *subtracted])
    return max(0.0, value - margin)


def weighted_bound(
    n_categories: Sequence[int], attribute_epsilon: Sequence[float], weights: Sequence[float]
) -> float:
    """Bound the record level from below with a proof λ ≥ 0, in nats: any λ gives a true bound.

        ε ≥ ln(1 + λ·d / E_μ[(Σ_i λ_i (Y_i − p_i))_+])

    The best λ gives the optimum (docs/proofs/optimal.md, Theorem 6). The mean is a sum over all
    patterns up to `MAX_ENUMERATED` attributes. Beyond, λ are rounded to whole numbers and
    costs of changes are summed (`deniable.proofs.complement`).

    ``n_categories``: a_i, shape (k,). ``attribute_epsilon``: ε_i in nats, shape (k,). ``weights``:
    λ_i ≥ 0, shape (k,), on any scale.

    >>> round(weighted_bound([5, 5, 3], [1.0, 2.0, 1.5], [1.0, 2.0, 1.5]), 6)
    3.181833
    """
    return _weighted(checked_problem(n_categories, attribute_epsilon), weights)


def _weighted(problem: Problem, weights: Sequence[float] | FloatArray) -> float:
    k = problem.n_attributes
    scaled = _usable_weights(problem, weights)
    if not scaled.any():
        return 0.0
    if k > MAX_ENUMERATED:
        return _weighted_by_sums(problem, scaled)
    # z = P − N with P = Σ_{kept} λ_i (1 − p_i) and N = Σ_{changed} λ_i p_i. Both are sums of
    # non-negative terms, each term off by less than 16u (λ_i is exact), and adding k of them costs
    # less than ku: relative error below γ. The chance μ(S), a product of k quotients, is off by
    # less than 3ku, and numpy's pairwise sum of 2^k terms by less than (k + 130)u: below γ again.
    gamma = (4 * k + 160) * _ROUNDOFF
    kept, lost, chance = np.zeros(1), np.zeros(1), np.ones(1)
    for keep, change, a in zip(
        (scaled * problem.change_probability).tolist(),
        (scaled * problem.keep_probability).tolist(),
        problem.n_categories.tolist(),
        strict=True,
    ):
        kept = np.add.outer(kept, np.array([keep, 0.0])).ravel()
        lost = np.add.outer(lost, np.array([0.0, change])).ravel()
        chance = np.multiply.outer(chance, np.array([1.0 / a, (a - 1.0) / a])).ravel()
    # z is known only up to γ(P + N), so its largest possible value is summed.
    positive = np.maximum(kept * (1.0 + gamma) - lost * (1.0 - gamma), 0.0)
    # The last summand covers products that underflow.
    denominator = float(np.sum(positive * chance)) * (1.0 + 2.0 * gamma) + len(chance) * 1e-320
    numerator = math.fsum((scaled * problem.keep_excess).tolist()) * (1.0 - gamma)
    # ln(1 + r) is monotone in r, so only the error of the function itself is left to take off.
    return math.log1p(numerator / denominator) * (1.0 - 16.0 * _ROUNDOFF)


def _weighted_by_sums(problem: Problem, weights: FloatArray) -> float:
    """Return the bound from the law of the sum of whole costs, in nats; see `weighted_bound`."""
    form = of_whole(problem, rounded(problem, weights))
    log_ratio = math.log(form.gain) - form.log_positive_part()
    if math.isinf(log_ratio):
        return 0.0
    bound = max(log_ratio, 0.0) + math.log1p(math.exp(-abs(log_ratio)))
    return max(0.0, bound - 8.0 * _ROUNDOFF * (1.0 + abs(log_ratio) + bound))


def _usable_weights(problem: Problem, weights: Sequence[float] | FloatArray) -> FloatArray:
    """Return weights scaled into the range of floats, shape (k,)."""
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (problem.n_attributes,):
        raise InputError(
            f"weights: {values.size} were given for {problem.n_attributes} attributes; "
            "give one per attribute"
        )
    good = np.isfinite(values) & (values >= 0.0)
    if not good.all():
        i = int(np.argmin(good))
        raise InputError(f"weights[{i}]: a weight must be finite and at least 0, not {values[i]:g}")
    # A weight of an attribute with ε_i = 0 only adds to the denominator. Dropping it, or a
    # negligible one, gives another λ and so another bound; scaling by a power of two
    # is exact.
    values = np.where(problem.attribute_epsilon > 0.0, values, 0.0)
    largest = float(values.max())
    if not 1.0 <= largest <= 2.0**53 and largest > 0.0:
        values = np.ldexp(values, -math.frexp(largest)[1])
    return np.where(values < 1e-100 * float(values.max()), 0.0, values)


def best_known_bound(n_categories: Sequence[int], attribute_epsilon: Sequence[float]) -> float:
    """Return the best lower bound in nats that needs no solver.

    The largest of: each ε_i alone (λ = the i-th unit vector); relative entropy; and for k ≤ 16 the
    weighted bound with λ_i = ε_i, to which the optimal weights tend for many attributes.

    ``n_categories``: a_i, shape (k,). ``attribute_epsilon``: ε_i in nats, shape (k,).

    >>> round(best_known_bound([5, 5, 3], [1.0, 2.0, 1.5]), 6)
    3.181833
    """
    problem = checked_problem(n_categories, attribute_epsilon)
    bounds = [float(problem.attribute_epsilon.max()), relative_entropy_bound(problem)]
    if problem.n_attributes <= 16:
        bounds.append(_weighted(problem, problem.attribute_epsilon))
    return max(bounds)
