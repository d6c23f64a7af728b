"""Laws whose density depends on one score, the sum of the costs of the changed attributes.

A pattern S has the score Σ_{i∈S} c_i with costs c_i ≥ 1 in whole numbers. Under the uniform law its
distribution is a convolution of two-point laws; times ∏ a_i every probability is a whole number.
With costs 1, n₁ + 1, (n₁ + 1)(n₂ + 1), … of kinds of n₁, n₂, … equal attributes a score is the
vector of the numbers of changed attributes of every kind: such laws are all pattern laws, up to
exchange of equal attributes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.laws.patterns import IntArray

Integers = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Scores:
    """Attainable scores of attributes in kinds, and the rows of their attenuations.

    Attenuations are linear in the density f against the uniform law: φ = Σ_s row(s) f(s).

    Attributes:
        n_categories: a of every kind, shape (m,).
        members: how many attributes a kind has, shape (m,).
        costs: cost of an attribute of every kind, shape (m,).
    """

    n_categories: tuple[int, ...]
    members: tuple[int, ...]
    costs: tuple[int, ...]

    @cached_property
    def scale(self) -> int:
        """∏ a_i over all attributes, in units of which the integers are."""
        return math.prod(a**n for a, n in zip(self.n_categories, self.members, strict=True))

    @property
    def all_patterns(self) -> bool:
        """Whether patterns of one score differ by equal attributes only."""
        return self.costs == _radix(self.members)

    @cached_property
    def _dense(self) -> Integers:
        """Uniform measure times `scale` of every number up to the largest score."""
        total = np.array([1], dtype=object)
        for a, n, cost in zip(self.n_categories, self.members, self.costs, strict=True):
            grown = np.zeros(len(total) + n * cost, dtype=object)
            for changed in range(n + 1):
                ways = math.comb(n, changed) * (a - 1) ** changed
                grown[changed * cost : changed * cost + len(total)] += ways * total
            total = grown
        return total

    @cached_property
    def values(self) -> IntArray:
        """Attainable scores, ascending, shape (n,)."""
        return np.flatnonzero(self._dense)

    @cached_property
    def place(self) -> IntArray:
        """Position of a score among `values`; −1 of a number that is none."""
        place = np.full(len(self._dense), -1)
        place[self.values] = np.arange(len(self.values))
        return place

    @cached_property
    def measure(self) -> Integers:
        """Uniform measure times `scale`, shape (n,)."""
        found: Integers = self._dense[self.values]
        return found

    @cached_property
    def _without(self) -> list[Integers]:
        """Uniform measure times `scale`/a of the scores of all but one attribute of a kind."""
        return [
            _divided(self._dense, a, c) for a, c in zip(self.n_categories, self.costs, strict=True)
        ]

    @cached_property
    def kept(self) -> Integers:
        """Uniform measure of an attribute of every kind kept, times `scale`, shape (m, n)."""
        rows = np.zeros((len(self.costs), len(self._dense)), dtype=object)
        for row, rest in zip(rows, self._without, strict=True):
            row[: len(rest)] = rest
        return rows[:, self.values]

    @cached_property
    def single(self) -> Integers:
        """Rows of the attenuation of an attribute of every kind, times `scale`, shape (m, n)."""
        rows = [
            _contrast(w, c)[self.values] for w, c in zip(self._without, self.costs, strict=True)
        ]
        return np.array(rows, dtype=object)

    def double(self, pairs: Sequence[tuple[int, int]]) -> Integers:
        """Rows of the attenuation of two attributes of two kinds, times `scale`, shape (pairs, n).

        The kinds may be the same if it has two attributes.
        """
        rows = np.empty((len(pairs), len(self.values)), dtype=object)
        for row, (s, t) in zip(rows, pairs, strict=True):
            rest = _divided(self._without[s], self.n_categories[t], self.costs[t])
            row[:] = _contrast(_contrast(rest, self.costs[s]), self.costs[t])[self.values]
        return rows

    @cached_property
    def neighbours(self) -> list[tuple[IntArray, IntArray]]:
        """Of every kind: positions of scores with an attribute kept, and with the same changed."""
        pairs = []
        for rest, cost in zip(self._without, self.costs, strict=True):
            kept = np.flatnonzero(rest)
            pairs.append((self.place[kept], self.place[kept + cost]))
        return pairs


def all_patterns(n_categories: Sequence[int], members: Sequence[int]) -> Scores:
    """Return scores that tell apart all patterns, up to exchange of attributes of one kind.

    >>> all_patterns((2, 3), (2, 1)).measure.tolist()
    [1, 2, 1, 2, 4, 2]
    """
    return Scores(tuple(n_categories), tuple(members), _radix(members))


def _radix(members: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(n + 1 for n in members[:i]) for i in range(len(members)))


def _divided(measure: Integers, a: int, cost: int) -> Integers:
    """Return the measure without one attribute: its quotient by 1 + (a − 1) x^cost."""
    rest = measure[: len(measure) - cost].copy()
    for start in range(cost, len(rest), cost):
        block = rest[start : start + cost]
        block -= (a - 1) * rest[start - cost : start - cost + len(block)]
    return rest


def _contrast(rest: Integers, cost: int) -> Integers:
    """Return the product by 1 − x^cost: an attribute kept, less a (a − 1)-th of it changed."""
    row = np.zeros(len(rest) + cost, dtype=object)
    row[: len(rest)] += rest
    row[cost:] -= rest
    return row
