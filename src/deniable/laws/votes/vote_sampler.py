"""The sampler that laws of votes share: a pattern, then each attribute's own response."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.laws.law import ShiftSampler
from deniable.laws.votes.sampling import Choice
from deniable.laws.votes.sums import FloatArray, IntArray
from deniable.randomness import BitSource, ExactCategorical

_MANY = 64
"""From this many different category counts on, lookup tables are small instead of large."""


class PatternDraws(Protocol):
    """Tables for drawing patterns."""

    def draw(self, count: int, source: BitSource) -> NDArray[np.bool_]:
        """Return patterns, True where the attribute is changed, shape (k, count)."""
        ...


class VoteSampler(ShiftSampler):
    """Draws the pattern, and a uniform other category for every attribute, used where it changed;
    where retention is below 1 also a uniform category of all, used where it is not retained.

    Everything is drawn whether or not it is used, so that the work is the same for every pattern.

    Args:
        n_categories: a_i, shape (k,).
        retention: probability of not replacing the output, shape (k,).
        patterns: draws patterns.
    """

    def __init__(
        self, n_categories: IntArray, retention: FloatArray, patterns: PatternDraws
    ) -> None:
        super().__init__(n_categories.tolist())
        self._patterns = patterns
        sizes = set(self.n_categories)
        prefix_bits = 16 if len(sizes) < _MANY else 8
        self._other = {n: ExactCategorical([1] * (n - 1), prefix_bits=prefix_bits) for n in sizes}
        replaced = {n for n, kept in zip(self.n_categories, retention, strict=True) if kept < 1.0}
        self._any = {n: ExactCategorical([1] * n, prefix_bits=prefix_bits) for n in replaced}
        self._retained = [
            Choice.of_probability(kept) if kept < 1.0 else None for kept in retention.tolist()
        ]

    def shifts(self, count: int, source: BitSource) -> list[NDArray[Any]]:
        pattern = self._patterns.draw(count, source)
        only = np.zeros(count, dtype=np.int64)
        shifts = []
        for n, changed, retained in zip(self.n_categories, pattern, self._retained, strict=True):
            shift = self._other[n].draw(count, source)
            shift += 1
            shift *= changed
            if retained is not None:
                uniform = self._any[n].draw(count, source)
                shift = np.where(retained.draw(only, source), shift, uniform)
            shifts.append(shift)
        return shifts
