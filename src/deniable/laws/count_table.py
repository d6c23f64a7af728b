"""A table of answers to many equal questions, by the number of changed answers.

A pattern table of m answers has 2^m entries; one that treats the answers alike needs m + 1, so that
a form can include a hundred attributes of one kind (docs/proofs/forms.md, section 1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import comb, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import Ratio, at_least_one, integers_from_plain, largest
from deniable.laws.pattern_table import PatternTable
from deniable.laws.plain import MOST_BITS

_SPARE_BITS = 128
"""Bits of the least weight, which limit the rounding remainder to 2^−128."""


@dataclass(frozen=True)
class CountTable:
    """Symmetric randomization of answers to m questions with equally many categories.

    ``n_categories``: (a, …, a), shape (m,), m at least 2. ``weights``: any m answers of which c are
    changed are drawn with probability ``weights[c] / 2**bits``, shape (m + 1,).

    >>> table = CountTable.from_densities((2, 2, 2), [3.0, 3.0, 1.0, 1.0])
    >>> high, low = table.record_level()[0]
    >>> round(high / low, 9), table.eigenvalues((1,)).round(6).tolist()
    (3.0, [1.0, 0.25])
    """

    n_categories: tuple[int, ...]
    bits: int
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(set(self.n_categories)) != 1 or len(self.weights) != len(self.n_categories) + 1:
            raise InputError(
                "a table by the number of changed answers is for questions with equally many "
                "categories, and has one weight more than there are questions"
            )
        if min(self.weights) <= 0:
            raise InputError("answers of probability 0 would make ε infinite; use more bits")
        if sum(self.outcomes()) != 1 << self.bits:
            raise InputError("the weights of all answers must add up to 2^bits")

    @classmethod
    def from_densities(
        cls, n_categories: Sequence[int], densities: Sequence[float]
    ) -> "CountTable":
        """Return a table of integers for given densities.

        ``n_categories``: shape (m,). ``densities``: proportional to the probability of any m
        answers with c changes, positive, shape (m + 1,).
        """
        m, a = len(n_categories), int(n_categories[0])
        ratios = [float(each).as_integer_ratio() for each in densities]
        common = max(below for _, below in ratios)
        exact = [above * (common // below) for above, below in ratios]
        total = sum(n * each for n, each in zip(_outputs(m, a), exact, strict=True))
        bits = min(
            MOST_BITS, int(log2(a) * m + log2(max(densities) / min(densities))) + _SPARE_BITS
        )
        weights = [(each << bits) // total for each in exact]
        # The remainder is less than one for each of the answers, and a weight is 2^_SPARE_BITS
        # or more. It is added to the most numerous answers as far as it suffices for each.
        outputs = _outputs(m, a)
        left = (1 << bits) - sum(n * each for n, each in zip(outputs, weights, strict=True))
        for c in sorted(range(m + 1), key=outputs.__getitem__, reverse=True):
            more, left = divmod(left, outputs[c])
            weights[c] += more
        return cls(tuple(int(n) for n in n_categories), bits, tuple(weights))

    def outcomes(self) -> tuple[int, ...]:
        """Return the probability of every number of changes, times 2^bits, shape (m + 1,)."""
        m, a = len(self.n_categories), self.n_categories[0]
        return tuple(n * w for n, w in zip(_outputs(m, a), self.weights, strict=True))

    @cached_property
    def _of_some(self) -> dict[int, tuple[int, ...]]:
        return {len(self.n_categories): self.weights}

    def _weights_of(self, count: int) -> tuple[int, ...]:
        """Return the weights of some of the answers, summed over the others."""
        if count not in self._of_some:
            m, a = len(self.n_categories), self.n_categories[0]
            rest = _outputs(m - count, a)
            self._of_some[count] = tuple(
                sum(n * w for n, w in zip(rest, self.weights[c:], strict=False))
                for c in range(count + 1)
            )
        return self._of_some[count]

    def record_level(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        """Return the level of some of the answers, as of a law."""
        weights = self._weights_of(len(self.n_categories if subset is None else subset))
        return ((max(weights), min(weights)),)

    def given_rest_levels(self) -> list[tuple[Ratio]]:
        """Return the levels given the rest, as of a law."""
        steps = map(at_least_one, pairwise(self.weights))
        return [(largest(list(steps)),)] * len(self.n_categories)

    def projected(self, subset: Sequence[int]) -> PatternTable:
        """Return the pattern table of some of the answers, few enough for one."""
        m, a = len(subset), self.n_categories[0]
        patterns = np.arange(1 << m)[:, None] >> np.arange(m) & 1
        weights = self._weights_of(m)
        return PatternTable(
            (a,) * m,
            self.bits,
            tuple((a - 1) ** int(c) * weights[int(c)] for c in patterns.sum(axis=1)),
        )

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        """Return φ(T) for every T ⊆ subset, as of a law."""
        return self.projected(subset).eigenvalues(range(len(subset)))

    def pair_eigenvalues(self) -> NDArray[np.float64]:
        """Return φ of every two answers, shape (m, m), with single attenuations on the diagonal."""
        m = len(self.n_categories)
        values = np.full((m, m), self.eigenvalues(range(2))[1, 1])
        np.fill_diagonal(values, self.eigenvalues(range(1))[1])
        return values

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "CountTable":
        """Rebuild a table."""
        length = len(n_categories) + 1
        weights = integers_from_plain(plain["weights"], "weights", length)
        return cls(n_categories, plain["bits"], weights)

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return {"bits": self.bits, "weights": [f"{weight:x}" for weight in self.weights]}


def _outputs(m: int, a: int) -> list[int]:
    """Return the number of answers to m questions with c changes, shape (m + 1,)."""
    return [comb(m, c) * (a - 1) ** c for c in range(m + 1)]
