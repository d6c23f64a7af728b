"""Patterns: the set of a record's attributes whose output differs from the input.

A pattern law draws a pattern S, leaves the attributes outside S unchanged, and replaces every
attribute in S by a uniform draw among its *other* categories. Arrays over patterns have shape
(2,)·k with axis i for attribute i, index 0 for unchanged and 1 for changed; flattened in C order,
attribute 0 is the most significant bit.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
"""The names of array types, here and for the solvers."""


def code_type(n_categories: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the unsigned type of an attribute's codes.

    Twice the number of categories must fit, so that :func:`rotate` cannot wrap around.

    >>> code_type(128), code_type(129)
    (dtype('uint8'), dtype('uint16'))
    """
    return np.min_scalar_type(2 * n_categories - 1)


def rotate(codes: NDArray[Any], shift: NDArray[Any], n_categories: int) -> NDArray[Any]:
    """Return (codes + shift) mod n_categories, shapes (n,).

    A shift of 0 leaves the category; a uniform shift in 1 … a−1 is a uniform *other* category.
    For y = codes + shift < 2a the remainder is the smaller of y and y − a in wrapping unsigned
    arithmetic.

    >>> rotate(np.array([0, 1, 2]), np.array([0, 2, 2]), 3).tolist()
    [0, 0, 1]
    """
    kind = code_type(n_categories)
    total = codes.astype(kind, copy=False) + shift.astype(kind, copy=False)
    wrapped: NDArray[Any] = np.minimum(total, total - kind.type(n_categories))
    return wrapped


def other_outputs(n_categories: Sequence[int]) -> NDArray[np.object_]:
    """Return t_S = ∏_{i∈S}(a_i − 1), the number of outputs with pattern S, as exact integers.

    Shape (2,)·k.

    >>> other_outputs((2, 3)).tolist()
    [[1, 2], [1, 2]]
    """
    return output_counts([(1, n - 1) for n in n_categories])


def output_counts(outputs: Sequence[tuple[int, int]]) -> NDArray[np.object_]:
    """Return the number of outputs of every pattern, as exact integers, shape (2,)·k.

    >>> output_counts([(2, 3), (1, 1)]).tolist()
    [[2, 2], [3, 3]]
    """
    counts = np.ones((), dtype=object)
    for each in outputs:
        counts = np.multiply.outer(counts, np.array(each, dtype=object))
    return np.asarray(counts, dtype=object)


def pattern_eigenvalues(
    probability: NDArray[np.float64], n_categories: Sequence[float], subset: Sequence[int]
) -> NDArray[np.float64]:
    """Return φ(T) = Σ_S q(S) ∏_{i∈T} h_i(S) for every T ⊆ subset, shape (2,)·m; h_i = 1 if i is
    unchanged and −1/(a_i − 1) if it is changed; index 1 on axis j puts ``subset[j]`` into T.

    ``probability``: q of every pattern, shape (2,)·k. ``n_categories``: shape (k,); of answers that
    name sets, the number of sets that would fill them. ``subset``: positions, each once, (m,).

    >>> pattern_eigenvalues(np.array([[0.5, 0.2], [0.2, 0.1]]), (2, 2), (0,)).round(6).tolist()
    [1.0, 0.4]
    """
    rest = tuple(i for i in range(len(n_categories)) if i not in subset)
    law = probability.sum(axis=rest) if rest else probability
    ascending = sorted(subset)
    law = np.transpose(law, [ascending.index(i) for i in subset])
    for axis, i in enumerate(subset):
        kept, changed = np.take(law, 0, axis=axis), np.take(law, 1, axis=axis)
        law = np.stack([kept + changed, kept - changed / (n_categories[i] - 1)], axis=axis)
    return np.asarray(law)


def n_records(n_categories: Sequence[int]) -> int:
    """Return ∏ a_i, the number of possible records, as an exact integer.

    >>> n_records((5, 5, 3))
    75
    """
    return prod(n_categories)
