"""Response matrices in closed form: Warner, UP, FRAPP, k-subset selection and blank answers.

All are arrays M[y, x] = Pr[y | x], as in `response`. Warner, UP and FRAPP are one family under
three names (Huang and Du, Theorem 2); each of its matrices is a I + b, and the functions at the end
of this module convert its parameters.
"""

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.rows import Limits
from deniable.solvers.matrices.response import privacy, record_mse, worst_posterior

_MOST_OUTPUTS = 5_000
"""Answers of a matrix of subsets: sets of 5 of 16 categories are 4,368."""

EPSILON_MARGIN = 1e-12
"""ε is accounted from integers later: so far below it, as a fraction, rounding stays below it."""

_SLACK = 1e-15
"""Tolerance of privacy and worst posterior (of size 1) for limits missed by rounding."""


def warner(n_categories: int, truth_probability: float) -> FloatArray:
    """Answer truly with probability p, otherwise with another category, shape (n, n).

    Source: Warner 1965; Huang and Du, section III.B.

    >>> warner(3, 0.5).tolist()
    [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    """
    _check(n_categories, truth_probability, "truth_probability")
    matrix = np.full((n_categories, n_categories), (1.0 - truth_probability) / (n_categories - 1))
    np.fill_diagonal(matrix, truth_probability)
    return matrix


def uniform_perturbation(n_categories: int, retention: float) -> FloatArray:
    """Leave the answer unchanged with probability q, else replace it by a uniform draw, (n, n).

    Source: Agrawal, Srikant and Thomas 2005; Huang and Du, section III.B.
    """
    _check(n_categories, retention, "retention")
    return warner(n_categories, warner_from_retention(n_categories, retention))


def frapp(n_categories: int, gamma: float) -> FloatArray:
    """The truth is λ times as likely as any one other category, shape (n, n).

    ``gamma``: λ ≥ 0, inf for the identity; for λ ≥ 1 the level is ε = ln λ.

    Source: Agrawal and Haritsa 2005; Huang and Du, section III.B.
    """
    if not gamma >= 0:
        raise InputError("gamma: the ratio of truth to any other answer must be at least 0")
    _check(n_categories, 0.0, "gamma")
    if math.isinf(gamma):
        return np.eye(n_categories)
    # Computed without p, because 1 − p would lose the digits of a large λ.
    matrix = np.ones((n_categories, n_categories))
    np.fill_diagonal(matrix, gamma)
    return np.asarray(matrix / (gamma + n_categories - 1))


def warner_from_retention(n_categories: int, retention: float) -> float:
    """p = q + (1 − q)/n."""
    return retention + (1.0 - retention) / n_categories


def retention_from_warner(n_categories: int, truth_probability: float) -> float:
    """q = (np − 1)/(n − 1); negative where Warner's p is below 1/n, which UP cannot express."""
    return (n_categories * truth_probability - 1.0) / (n_categories - 1)


def gamma_from_warner(n_categories: int, truth_probability: float) -> float:
    """λ = p (n − 1)/(1 − p), inf at p = 1."""
    if truth_probability >= 1.0:
        return math.inf
    return truth_probability * (n_categories - 1) / (1.0 - truth_probability)


def subset_selection(n_categories: int, epsilon: float, subset_size: int) -> FloatArray:
    """Answer with a set of `subset_size` categories, e^ε times likelier if it holds the truth.

    The rows are the sets in lexicographic order, shape (C(n, k), n). k = 1 is k-ary response.

    ``epsilon``: level in nats, above 0 and finite. ``subset_size``: k, from 1 to n − 1.

    Source: Ye and Barg 2018; Wang et al. 2016.

    >>> subset_selection(4, 1.0, 2).shape
    (6, 4)
    """
    _check(n_categories, 0.0, "epsilon")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError("epsilon: the privacy level must be finite and above 0 nats")
    if not 1 <= subset_size < n_categories:
        raise InputError(f"subset_size: it must be from 1 to {n_categories - 1}")
    n_outputs = math.comb(n_categories, subset_size)
    if n_outputs > _MOST_OUTPUTS:
        raise InputError(
            f"subset_size: {n_outputs} different answers are too many for a matrix; "
            "take a size nearer to 1"
        )
    # e^{−ε} and 1 instead of 1 and e^ε: no overflow.
    matrix = np.full((n_outputs, n_categories), math.exp(-epsilon))
    for row, members in enumerate(combinations(range(n_categories), subset_size)):
        matrix[row, list(members)] = 1.0
    return np.asarray(matrix / matrix.sum(axis=0))


def blank_answer(n_categories: int, truth_probability: float) -> FloatArray:
    """Answer truly with probability t, otherwise "no answer", the last output, shape (n + 1, n)."""
    _check(n_categories, truth_probability, "truth_probability")
    blank = np.full((1, n_categories), 1.0 - truth_probability)
    return np.concatenate([truth_probability * np.eye(n_categories), blank])


def blank_answer_at(prior: FloatArray, least_privacy: float) -> float:
    """Return the t of `blank_answer` at a given privacy: A = max p + t (1 − max p)."""
    most = float(prior.max())
    if not 0.0 <= least_privacy <= 1.0 - most:
        raise InputError(f"privacy: it must be from 0 to {1.0 - most:.6g}, one less max p")
    return 1.0 - least_privacy / (1.0 - most)


def warner_at(
    prior: FloatArray, least_privacy: float, most_posterior: float | None = None
) -> float:
    """Return the largest p ≥ 1/n for which Warner's matrix is within both limits.

    Both A and the worst posterior increase with p on [1/n, 1], as does the accuracy of the
    estimate: bisection, returning the end within the limits.

    ``prior``: shape (n,).

    >>> round(warner_at(np.array([0.5, 0.3, 0.2]), 0.25), 9)
    0.75
    """
    n = len(prior)
    limit = 1.0 if most_posterior is None else most_posterior

    def kept(truth_probability: float) -> bool:
        matrix = warner(n, truth_probability)
        return bool(
            privacy(matrix, prior) >= least_privacy - _SLACK
            and worst_posterior(matrix, prior) <= limit + _SLACK
        )

    low, high = 1.0 / n, 1.0
    if kept(high):
        return high
    if not kept(low):
        raise InputError(
            f"privacy: not even a random answer is that private; the most possible is "
            f"{1.0 - float(prior.max()):.6g}, and the worst posterior is never below "
            f"{float(prior.max()):.6g}"
        )
    return _last_within(kept, low, high)


def gamma_at(epsilon: float) -> float:
    """Return the λ of `frapp` for ε-LDP, in nats: slightly below e^ε, so that rounding never
    exceeds ε."""
    return math.exp(epsilon * (1.0 - EPSILON_MARGIN))


def best_subset_selection(limits: Limits) -> FloatArray:
    """k-subset selection with the k of least error within the limits, shape (C(n, k), n).

    Under average privacy the matrices of one k are tT + (1 − t)U, T a random k-subset that contains
    the truth and U a uniform subset; error, privacy and the worst posterior are monotone in t. The
    largest t within the limits is used.
    """
    n = limits.n_categories
    best: FloatArray | None = None
    least = math.inf
    for k in range(1, n):
        if math.comb(n, k) > _MOST_OUTPUTS:
            continue
        if limits.epsilon is not None:
            matrix = subset_selection(n, limits.epsilon * (1.0 - EPSILON_MARGIN), k)
        else:
            member = subset_selection(n, 1.0, k)
            truth = np.where(member > member.mean(), 1.0, 0.0)
            matrix = _most_truthful(limits, truth / truth.sum(axis=0))
        error = float(record_mse(matrix, limits.prior))
        if error < least:
            best, least = matrix, error
    if best is None:
        raise InputError("no subset of categories is informative enough at this privacy")
    return best


def _most_truthful(limits: Limits, truth: FloatArray) -> FloatArray:
    """Return tT + (1 − t)U for the largest t, to rounding, within limits of average privacy."""
    assert limits.success is not None
    success, delta = limits.success, limits.most_posterior
    uniform = 1.0 / len(truth)

    def mixed(t: float) -> FloatArray:
        return np.asarray(t * truth + (1.0 - t) * uniform)

    def kept(t: float) -> bool:
        matrix = mixed(t)
        return bool(
            privacy(matrix, limits.prior) >= 1.0 - success - _SLACK
            and (delta is None or worst_posterior(matrix, limits.prior) <= delta + _SLACK)
        )

    return mixed(1.0 if kept(1.0) else _last_within(kept, 0.0, 1.0))


def _last_within(within: Callable[[float], bool], low: float, high: float) -> float:
    """Bisect to neighbouring doubles; return the one that is within. `low` is, `high` is not."""
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def _check(n_categories: int, probability: float, name: str) -> None:
    if n_categories < 2:
        raise InputError(f"n_categories: there must be at least 2, not {n_categories}")
    if not 0.0 <= probability <= 1.0:
        raise InputError(f"{name}: it must be a probability, from 0 to 1")
