"""Entropies of responses, in bits.

Source: Ruiz, "λ-randomization", section 2.2. The entropy rate of a response matrix is the mean
entropy of its answers over equally likely categories.

The proofs are in docs/proofs/lambda.md, Theorem 4.
"""

import math

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.patterns import other_outputs
from deniable.laws.transforms import kernel_of


class NotComputedError(Exception):
    """A law's entropy is not computed; the message has the reason."""


def entropy_rate(matrix: NDArray[np.float64]) -> float:
    """Return the mean entropy of the answers over categories, in bits.

    ``matrix``: ``matrix[y, x]`` = Pr[output y | input x], shape (m, r).

    >>> round(entropy_rate([[0.75, 0.25], [0.25, 0.75]]), 4)
    0.8113
    """
    values = np.asarray(matrix, dtype=np.float64)
    if values.ndim != 2 or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InputError("a response matrix needs finite entries that are not negative")
    sums = values.sum(axis=0)
    if np.any(np.abs(sums - 1) > 1e-9):
        column = int(np.argmax(np.abs(sums - 1)))
        raise InputError(f"column {column + 1} of the response matrix does not add up to 1")
    return float(_bits(values).sum() / values.shape[1])


def response_entropy(n_categories: int, keep_weight: float, change_weight: float) -> float:
    """Return the entropy in bits of a value that is unchanged, or else uniform among the others.

    >>> response_entropy(2, 3, 3)
    1.0
    """
    total = keep_weight + change_weight
    entropy = 0.0
    for weight, rest, ways in (
        (keep_weight, change_weight, 1),
        (change_weight, keep_weight, n_categories - 1),
    ):
        if not weight:
            continue
        # Integers of any size divide, and have logarithms, without conversion to float.
        near_one = 2 * weight > total
        log = math.log1p(-rest / total) / math.log(2) if near_one else log2_quotient(weight, total)
        entropy += weight / total * (math.log2(ways) - log)
    return entropy


def log2_quotient(numerator: float, denominator: float) -> float:
    """Return log₂ of a quotient of positive numbers, also of integers too wide for a float."""
    return math.log2(numerator) - math.log2(denominator)


def pattern_entropy(
    q: NDArray[np.float64],
    n_categories: tuple[int, ...],
    complements: NDArray[np.float64] | None = None,
) -> float:
    """Return the entropy in bits of a pattern law's answers, of the pattern and of the changed
    values, H(q) + Σ_S q(S) log₂ t_S.

    ``q``: probability of every pattern, shape (2,)·k. ``n_categories``: shape (k,).
    """
    values = _bits(q, complements).sum()
    for axis, n in enumerate(n_categories):
        values += float(np.take(q, 1, axis=axis).sum()) * math.log2(n - 1)
    return float(values)


def entropy_of_eigenvalues(
    eigenvalues: NDArray[np.float64], n_categories: tuple[int, ...]
) -> float:
    """Return :func:`pattern_entropy` from the law's eigenvalues φ(T), shape (2,)·k."""
    # Rounding may leave a tiny probability just below 0.
    kernel = np.maximum(kernel_of(eigenvalues, n_categories), 0.0)
    return pattern_entropy(kernel * other_outputs(n_categories).astype(float), n_categories)


def _bits(
    probabilities: NDArray[np.float64], complements: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    # −p log₂ p; for p near 1 through ln(1 − (1 − p)).
    p = np.asarray(probabilities, dtype=np.float64)
    rest = 1 - p if complements is None else complements
    positive = np.where(p > 0, p, 1.0)
    logs = np.where(positive > 0.5, np.log1p(-np.where(p > 0.5, rest, 0.0)), np.log(positive))
    return np.asarray(-p * logs / math.log(2))
