"""Categories of like shares taken alike, and what is proved of them at their own shares.

Unknowns and time grow with the number of different shares. Categories of nearly equal shares are
given the same one: their mean (`alike`), or under ε-LDP their least (`lowered`). A K that is the
same for all categories of a group is then as good as any, and its Z and λ become those of a
certificate for the true shares (`at_true_shares`, `at_larger_shares`).

The proofs are in docs/proofs/frontier.md, section 5.
"""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices.certificate import Limits

Groups = list[npt.NDArray[np.intp]]

MOST_GROUPS = 30
"""Unknowns grow with the square of the groups, and time with their third power."""

LOWERED_GROUPS = 40
"""So many where the bound at the true shares is much less than at the mean shares of the groups."""


def of_like_shares(limits: Limits, most: int) -> Groups:
    """Divide categories into at most so many groups of like shares, for `alike`.

    The order of shares is cut where the mean shares are least far from the shares: at the least
    Σ (p − mean)²/mean, or for ε-LDP the least Σ (p − mean)², since there shares count only in sums
    over sets.

    >>> from deniable.solvers.matrices.certificate import average_limits
    >>> limits = average_limits([0.5, 0.1, 0.3, 0.1], 0.2)
    >>> [group.tolist() for group in of_like_shares(limits, 3)]
    [[0], [2], [1, 3]]
    """
    shares = -np.sort(-limits.prior)
    number, total, squares = (_between(shares**k) for k in (0, 1, 2))
    some = number > 0.0
    cost = np.maximum(squares - total**2 / np.where(some, number, 1.0), 0.0)
    if limits.epsilon is None:
        cost = cost * number / np.where(some, total, 1.0)
    return _cut(limits.prior, cost, most)


def with_least_share(limits: Limits, most: int) -> Groups:
    """Divide categories into at most so many groups of like shares, for `lowered`.

    The order of shares is cut where that changes 1 + (e^ε − 1) p least, as a fraction.

    >>> from deniable.solvers.matrices.certificate import local_limits
    >>> limits = local_limits([0.5, 0.1, 0.3, 0.1], 1.0)
    >>> [group.tolist() for group in with_least_share(limits, 3)]
    [[0], [2], [1, 3]]
    """
    assert limits.epsilon is not None
    shares = -np.sort(-limits.prior)
    weight = 1.0 / (1.0 + math.expm1(limits.epsilon) * shares)
    least = np.append(0.0, shares)  # of those before an end
    return _cut(limits.prior, _between(weight * shares) - _between(weight) * least, most)


def _between(value: FloatArray) -> FloatArray:
    """Entry (a, b): the sum of those from a to b − 1."""
    sums = np.append(0.0, np.cumsum(value))
    return np.asarray(sums - sums[:, None])


def _cut(prior: FloatArray, cost: FloatArray, most: int) -> Groups:
    """Groups of least cost; entry (a, b): of the a-th to (b − 1)-th largest shares together."""
    order = np.argsort(-prior, kind="stable")
    n = len(order)
    if n <= most:
        return [order[at : at + 1] for at in range(n)]
    cost = np.where(np.arange(n + 1) > np.arange(n + 1)[:, None], cost, np.inf)
    # Best cuts of the first so many into one group more and one more (dynamic programming).
    least, last = cost[0], []
    for _ in range(most - 1):
        every = least[:, None] + cost
        last.append(every.argmin(axis=0))
        least = every.min(axis=0)
    cuts = [n]
    for before in reversed(last):
        cuts.append(int(before[cuts[-1]]))
    return np.split(order, cuts[:0:-1])


def alike(limits: Limits, divided: Groups) -> Limits:
    """The same limits at the mean shares of the groups."""
    prior = limits.prior.copy()
    for members in divided:
        prior[members] = prior[members].mean()
    return replace(limits, prior=prior / prior.sum())


def lowered(limits: Limits, divided: Groups) -> Limits:
    """The same limits at the least share of each group: their sum is below 1."""
    prior = limits.prior.copy()
    for members in divided:
        prior[members] = prior[members].min()
    return replace(limits, prior=prior)


def at_true_shares(
    limits: Limits, mean: FloatArray, Z: FloatArray, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The best Z and λ for the true shares that leave the excess of each set what it is.

    A row is a∘v with v of a set: a = p under ε-LDP, else 1. Its excess times (1·q) is vᵀFv,
    F = YYᵀ − (aℓᵀ + ℓaᵀ)/2 with Y = a∘Z and ℓ = a∘λ. Of all Y and ℓ with this F those prove most
    for which Yᵀ(p/a) = 0 and tr(ZᵀG) is largest (docs/proofs/frontier.md, Lemma 8).
    """
    p = limits.prior
    before, after = (mean, p) if limits.epsilon is not None else (np.ones_like(p),) * 2
    Y, level = before[:, None] * Z, before * multipliers
    form = Y @ Y.T - (np.outer(before, level) + np.outer(level, before)) / 2.0
    image = form @ (p / after)
    level = -2.0 * image + (image @ (p / after)) * after
    square = form + (np.outer(after, level) + np.outer(level, after)) / 2.0
    values, vectors = np.linalg.eigh(square)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    left, _, right = np.linalg.svd(root.T @ ((np.diag(p) - np.outer(p, p)) / after[:, None]))
    return root @ (left @ right) / after[:, None], level / after


def at_larger_shares(
    limits: Limits, lower: FloatArray, Z: FloatArray, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Z and λ of ε-LDP for shares that are nowhere below those that they were found for.

    With Q = YYᵀ, Y = p∘Z and μ = p∘λ a set B has no excess if
    E² Σ_{x, x' ∈ B} Q(x, x') ≤ (Σ μ + E μ(B)) (1 + E p(B)), E = e^ε − 1. Where μ is not negative
    the right side grows with p, and by at least what is added to the left here
    (docs/proofs/frontier.md, Lemma 9).
    """
    assert limits.epsilon is not None
    p = limits.prior
    Y, level = lower[:, None] * Z, lower * multipliers
    more = (p - lower) * np.maximum(0.0, level + level.sum() / math.expm1(limits.epsilon))
    square = Y @ Y.T
    if more.any():
        square += np.diag(more) - np.outer(more, more) / more.sum()
    values, vectors = np.linalg.eigh(square)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root / p[:, None], level / p


def within(count: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E and D^{−1/2}U of `frontier` on vectors that are constant on groups, shapes (G − 1, G) and
    (G, G − 1)."""
    root = np.sqrt(count * share)
    axis = root.copy()
    axis[0] += np.linalg.norm(root)
    reflection = np.eye(len(root)) - 2.0 * np.outer(axis, axis) / (axis @ axis)
    basis = reflection[:, 1:]
    return basis.T * np.sqrt(share), basis / np.sqrt(share)[:, None]


def spread_out(
    between: FloatArray, inner: FloatArray, count: FloatArray, group: npt.NDArray[np.intp]
) -> FloatArray:
    """The matrix that is `between` on vectors constant on groups and `inner` on what adds up to 0
    within one."""
    root = np.sqrt(count)[group]
    whole = between[group[:, None], group] / (root[:, None] * root)
    whole -= np.where(group[:, None] == group, (inner / count)[group], 0.0)
    whole[np.diag_indices(len(group))] += inner[group]
    return np.asarray(whole)
