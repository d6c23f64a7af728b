"""Draws for synthetic rows, from uniform bits.

These draws are post-processing of a release and protect no one, so 52 bits per number suffice;
randomizing a row compares exact integers (:mod:`deniable.randomness`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.randomness import BitSource


def uniforms(count: int, bits: BitSource) -> NDArray[np.float64]:
    """Return independent uniform numbers in (0, 1), shape (count,)."""
    whole = bits.bits(np.uint64, count) >> np.uint64(12)
    return np.asarray((whole.astype(np.float64) + 0.5) * 2.0**-52)


def exponentials(count: int, bits: BitSource) -> NDArray[np.float64]:
    """Return independent exponential numbers with mean 1, shape (count,)."""
    return -np.log(uniforms(count, bits))


def code_type(sizes: Sequence[int]) -> np.dtype[Any]:
    """Return the narrowest type for the codes of attributes of these sizes."""
    return np.min_scalar_type(max(sizes) - 1)


class Choices:
    """Several distributions over the same outcomes, to draw from.

    ``weights``: not negative, one distribution per row, shape (distributions, outcomes).
    """

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self._outcomes = weights.shape[1]
        some = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
        cumulative = np.cumsum(some, axis=1)
        cumulative /= cumulative[:, -1:]
        # One ascending list: row r lies between r and r + 1.
        self._edges = (cumulative + np.arange(len(weights))[:, None]).ravel()

    def draw(self, of: NDArray[np.integer], bits: BitSource) -> NDArray[np.int64]:
        """Return an outcome of each given distribution, shape (n,)."""
        found = np.searchsorted(self._edges, of + uniforms(len(of), bits), side="right")
        return np.asarray(np.minimum(found - of * self._outcomes, self._outcomes - 1))
