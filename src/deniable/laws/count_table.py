"""A table of answers to many equal questions, by the number of changed answers.

It has m + 1 weights where a pattern table has 2^m, so that a form can include a hundred attributes
of one kind (docs/proofs/forms.md, section 1).
"""

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from deniable.errors import InputError
from deniable.laws.law import integers_from_plain
from deniable.laws.pattern_table import PatternTable
from deniable.laws.plain import MOST_BITS
from deniable.laws.score import ScoreTable, output_counts

_SPARE_BITS = 128
"""Bits of the least weight, which limit the rounding remainder to 2^−128."""


class CountTable(ScoreTable):
    """A law of one score of m ≥ 2 questions with equally many categories, each of cost 1, whose
    weights add up to a power of two.

    >>> table = CountTable.of_counts((2, 2, 2), [3.0, 3.0, 1.0, 1.0])
    >>> high, low = table.record_level()[0]
    >>> round(high / low, 9), table.eigenvalues((1,)).round(6).tolist()
    (3.0, [1.0, 0.25])
    """

    def __post_init__(self) -> None:
        if len(set(self.n_categories)) != 1 or {*self.costs} != {1}:
            raise InputError(
                "a table by the number of changed answers is for questions with equally many "
                "categories"
            )
        super().__post_init__()
        if self.total.bit_count() != 1:
            raise InputError("the weights of all answers must add up to a power of two")

    @classmethod
    def of_counts(cls, n_categories: Sequence[int], densities: Sequence[float]) -> "CountTable":
        """Round densities of answers by their number of changes, positive, shape (m + 1,)."""
        m, a = len(n_categories), int(n_categories[0])
        ratios = [float(each).as_integer_ratio() for each in densities]
        common = max(below for _, below in ratios)
        exact = [above * (common // below) for above, below in ratios]
        outputs = output_counts([(a, 1)] * m)
        total = sum(n * each for n, each in zip(outputs, exact, strict=True))
        bits = min(
            MOST_BITS, int(log2(a) * m + log2(max(densities) / min(densities))) + _SPARE_BITS
        )
        weights = [(each << bits) // total for each in exact]
        # The remainder is less than one for each of the answers, and a weight is 2^_SPARE_BITS
        # or more. It is added to the most numerous answers as far as it suffices for each.
        left = (1 << bits) - sum(n * each for n, each in zip(outputs, weights, strict=True))
        for c in sorted(range(m + 1), key=outputs.__getitem__, reverse=True):
            more, left = divmod(left, outputs[c])
            weights[c] += more
        return cls((a,) * m, (1,) * m, tuple(weights))

    @property
    def bits(self) -> int:
        """Logarithm to base 2 of the sum of all weights."""
        return self.total.bit_length() - 1

    @property
    def weights(self) -> tuple[int, ...]:
        """Weights of one set of answers by the number of changes, shape (m + 1,)."""
        return self.densities

    def projected(self, subset: Sequence[int]) -> PatternTable:
        """Return the pattern table of some of the answers, few enough for one."""
        if not subset:
            return PatternTable((), self.bits, (1 << self.bits,))
        sizes, costs = self.n_categories[: len(subset)], self.costs[: len(subset)]
        own = ScoreTable(sizes, costs, tuple(self.seen(subset)))
        return PatternTable(sizes, self.bits, own.pattern_weights())

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "CountTable":
        m = len(n_categories)
        weights = integers_from_plain(plain["weights"], "weights", m + 1)
        table = cls(n_categories, (1,) * m, weights)
        if table.bits != plain["bits"]:
            raise InputError("the weights of all answers must add up to 2^bits")
        return table

    def to_plain(self) -> dict[str, Any]:
        return {"bits": self.bits, "weights": [f"{weight:x}" for weight in self.weights]}
