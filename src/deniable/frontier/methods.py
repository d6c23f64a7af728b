"""The methods that a frontier compares, one function each: from privacy limits to a matrix.

A new method is a function here and an entry in ``METHODS``. The search of Huang and Du finds
matrices for all levels at once and stands in :mod:`deniable.frontier.tracing`, as does the bound.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable.errors import InputError
from deniable.solvers.matrices import schemes
from deniable.solvers.matrices.certificate import Limits
from deniable.solvers.matrices.response import privacy, record_mse, worst_posterior
from deniable.solvers.problem import FloatArray

SQUARE_UP_TO = 20
"""The search for square matrices solves systems in n² + n unknowns."""

_MOST_OUTPUTS = 5_000
_BELOW = 1e-12
# Privacy and the worst posterior hold to rounding; a limit is reached if it is missed by no more.
_SLACK = 1e-15


@dataclass(frozen=True, eq=False)
class Trial:
    """What a method is told.

    Args:
        limits: the prior and the privacy asked for.
        generator: for methods that search.
        n_starts: for methods that start many times.
    """

    limits: Limits
    generator: np.random.Generator
    n_starts: int


def _warner(trial: Trial) -> FloatArray:
    limits = trial.limits
    n = limits.n_categories
    if limits.success is None:
        return schemes.frapp(n, _factor(limits))
    return schemes.warner(n, _truth_probability(limits))


def _uniform_perturbation(trial: Trial) -> FloatArray:
    limits = trial.limits
    n = limits.n_categories
    if limits.success is None:
        gamma = _factor(limits)
        return schemes.uniform_perturbation(n, (gamma - 1.0) / (gamma + n - 1.0))
    retention = schemes.retention_from_warner(n, _truth_probability(limits))
    return schemes.uniform_perturbation(n, min(1.0, max(0.0, retention)))


def _frapp(trial: Trial) -> FloatArray:
    limits = trial.limits
    n = limits.n_categories
    if limits.success is None:
        return schemes.frapp(n, _factor(limits))
    return schemes.frapp(n, schemes.gamma_from_warner(n, _truth_probability(limits)))


def _truth_probability(limits: Limits) -> float:
    assert limits.success is not None
    return schemes.warner_at(limits.prior, 1.0 - limits.success, limits.most_posterior)


def _factor(limits: Limits) -> float:
    # A little below e^ε: ε is accounted from integers later, whose rounding must stay below it.
    assert limits.epsilon is not None
    return math.exp(limits.epsilon * (1.0 - _BELOW))


def _subset(trial: Trial) -> FloatArray:
    """k-subset selection with the best k.

    For one k the matrices are tT + (1 − t)U, T the truth hidden in a random k-subset and U a
    uniform subset, and error, privacy and the worst posterior are monotone in t.
    """
    limits = trial.limits
    n = limits.n_categories
    best: FloatArray | None = None
    least = math.inf
    for k in range(1, n):
        if math.comb(n, k) > _MOST_OUTPUTS:
            continue
        if limits.success is None:
            assert limits.epsilon is not None
            candidate = schemes.subset_selection(n, limits.epsilon * (1.0 - _BELOW), k)
        else:
            member = schemes.subset_selection(n, 1.0, k)
            truth = np.where(member > member.mean(), 1.0, 0.0)
            candidate = _most_truthful(limits, truth / truth.sum(axis=0))
        error = float(record_mse(candidate, limits.prior))
        if error < least:
            best, least = candidate, error
    if best is None:
        raise InputError("no subset of categories tells enough at this privacy")
    return best


def _most_truthful(limits: Limits, truth: FloatArray) -> FloatArray:
    """The largest t, to rounding, for which tT + (1 − t)U keeps the limits."""
    assert limits.success is not None
    success, delta = limits.success, limits.most_posterior
    uniform = 1.0 / len(truth)

    def mixed(fraction: float) -> FloatArray:
        return np.asarray(fraction * truth + (1.0 - fraction) * uniform)

    def kept(fraction: float) -> bool:
        matrix = mixed(fraction)
        return bool(
            privacy(matrix, limits.prior) >= 1.0 - success - _SLACK
            and (delta is None or worst_posterior(matrix, limits.prior) <= delta + _SLACK)
        )

    low, high = 0.0, 1.0
    if kept(high):
        return mixed(high)
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if kept(middle) else (low, middle)
    return mixed(low)


def _blank(trial: Trial) -> FloatArray:
    limits = trial.limits
    if limits.success is None:
        raise InputError("a blank answer tells some people's answers for certain: it has no ε")
    if limits.most_posterior is not None:
        raise InputError(
            "a blank answer tells some people's answers for certain: its worst posterior is 1"
        )
    truth = schemes.blank_answer_at(limits.prior, 1.0 - limits.success)
    return schemes.blank_answer(limits.n_categories, truth)


def _square(trial: Trial) -> FloatArray:
    from deniable.solvers.matrices import square

    if trial.limits.n_categories > SQUARE_UP_TO:
        raise InputError(f"square matrices are searched for up to {SQUARE_UP_TO} categories")
    return square.solve(trial.limits, trial.generator, n_starts=trial.n_starts).matrix


METHODS: dict[str, Callable[[Trial], FloatArray]] = {
    "warner": _warner,
    "up": _uniform_perturbation,
    "frapp": _frapp,
    "subset": _subset,
    "blank": _blank,
    "square": _square,
}
SEARCH, BOUND = "search", "bound"
ALL_METHODS = (*METHODS, SEARCH, BOUND)
