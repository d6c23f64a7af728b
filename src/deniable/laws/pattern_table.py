"""A weight for every one of the 2^k patterns: the linear program's optimum, and any other law.

Its levels are docs/proofs/accounting.md, Theorem 4.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.entropy import pattern_entropy
from deniable.laws.law import (
    PatternLaw,
    Ratio,
    ShiftSampler,
    at_least_one,
    integer_weights,
    integers_from_plain,
    largest,
)
from deniable.laws.patterns import output_counts, pattern_eigenvalues
from deniable.laws.plain import Bits, HexInteger, PlainLaw
from deniable.randomness import BitSource, ExactCategorical

MAX_ATTRIBUTES = 20
"""2^20 weights are 20 MB of a record."""

_MANY = 4096
"""Weights from which on a table is written as narrow as it can be, by up to 60 bits each: a study
sends it to every respondent."""


class PlainPatternTable(PlainLaw, tag="pattern-table"):
    """The record of the law."""

    bits: Bits
    weights: list[HexInteger]


@dataclass(frozen=True)
class PatternTable(PatternLaw):
    """A general pattern law, pattern by pattern (Yamamoto and Shibuya, section IV-A).

    ``n_categories``: categories per attribute, shape (k,), k up to 20. ``weights``: pattern S is
    drawn with probability ``weights[S] / 2**bits``; shape (2^k,), in the order of
    :mod:`deniable.laws.patterns`.

    >>> law = PatternTable.from_probabilities((2, 2), [[0.5, 0.2], [0.2, 0.1]])
    >>> law.keep_probabilities().round(6).tolist(), law.eigenvalues((0, 1)).round(6).tolist()
    ([0.7, 0.7], [[1.0, 0.4], [0.4, 0.2]])
    """

    family: ClassVar[str] = "pattern-table"
    Plain = PlainPatternTable

    n_categories: tuple[int, ...]
    bits: int
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        k = len(self.n_categories)
        if k > MAX_ATTRIBUTES:
            raise InputError(
                f"a pattern table over {k} attributes has 2^{k} entries; at most "
                f"{MAX_ATTRIBUTES} attributes can be held"
            )
        if len(self.weights) != 1 << k:
            raise InputError(f"a pattern table over {k} attributes needs {1 << k} weights")
        if min(self.weights) <= 0:
            raise InputError("a pattern of probability 0 would make ε infinite; use more bits")
        if sum(self.weights) != 1 << self.bits:
            raise InputError("the weights of a pattern table must add up to 2^bits")

    @classmethod
    def from_probabilities(
        cls, n_categories: Sequence[int], pattern_probability: NDArray[np.float64]
    ) -> Self:
        """Turn a law in floating point, shape (2,)·k, into integers (see
        :func:`~deniable.laws.law.integer_weights`)."""
        probability = np.asarray(pattern_probability, dtype=np.float64).ravel()
        if not (np.all(np.isfinite(probability)) and np.all(probability > 0)):
            raise InputError("every pattern needs a positive probability, or ε is infinite")
        many = len(probability) > _MANY
        bits, weights = integer_weights(probability, step=4 if many else 64)
        return cls(tuple(int(n) for n in n_categories), bits, weights)

    @cached_property
    def _exact(self) -> NDArray[np.object_]:
        k = len(self.n_categories)
        return np.array(self.weights, dtype=object).reshape((2,) * k)

    @cached_property
    def _probability(self) -> NDArray[np.float64]:
        total = 1 << self.bits
        k = len(self.n_categories)
        return np.array([weight / total for weight in self.weights]).reshape((2,) * k)

    def _projected(self, subset: Sequence[int]) -> NDArray[np.object_]:
        rest = tuple(i for i in range(len(self.n_categories)) if i not in subset)
        summed = np.asarray(self._exact.sum(axis=rest) if rest else self._exact, dtype=object)
        # The remaining axes are in ascending order; put them in the order of ``subset``.
        ascending = sorted(subset)
        return np.transpose(summed, [ascending.index(i) for i in subset])

    def projected(self, subset: Sequence[int]) -> Self:
        """Return the law of some of the attributes by themselves, at these places."""
        weights = tuple(int(weight) for weight in self._projected(subset).ravel())
        sizes = tuple(self.n_categories[i] for i in subset)
        return replace(self, n_categories=sizes, weights=weights)

    def outputs(self, i: int) -> tuple[int, int]:
        """Return the numbers of answers to a question that agree, and differ, with the truth."""
        return 1, self.n_categories[i] - 1

    def record_level(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        chosen = list(range(len(self.n_categories))) if subset is None else list(subset)
        weights = self._projected(chosen).ravel()
        counts = output_counts([self.outputs(i) for i in chosen]).ravel()
        # X_S = weight/count; the extremes are compared as fractions, exactly.
        high = largest(list(zip(weights, counts, strict=True)))
        low = largest(list(zip(counts, weights, strict=True)))
        return ((high[0] * low[0], high[1] * low[1]),)

    def given_rest_levels(self) -> list[tuple[Ratio]]:
        # max over S without i of X_S/X_{S∪i} (or its inverse) with X_S = weight/count, so that
        # X_S/X_{S∪i} = weight(S)·(a_i − 1)/weight(S∪i), with one answer that keeps.
        # math.log takes integers of any size; as floats the small weights would be lost.
        logs = np.array([math.log(weight) for weight in self.weights]).reshape(self._exact.shape)
        return [(self._given_rest_ratio(i, logs),) for i in range(len(self.n_categories))]

    def _given_rest_ratio(self, i: int, logs: NDArray[np.float64]) -> Ratio:
        same, others = self.outputs(i)
        difference = np.abs(
            np.take(logs, 0, axis=i) - np.take(logs, 1, axis=i) + np.log(others / same)
        ).ravel()
        kept = np.moveaxis(self._exact, i, 0)[:1].ravel()
        changed = np.moveaxis(self._exact, i, 0)[1:].ravel()
        # A logarithm of b bits is at most b and right to b·2⁻⁵², so only pairs within a few times
        # that of the largest can be the largest; those few are compared as integers.
        margin = self.bits * 2.0**-46
        candidates = np.flatnonzero(difference >= difference.max() - margin)
        return largest(
            [at_least_one((int(kept[c]) * others, int(changed[c]) * same)) for c in candidates]
        )

    def keep_probabilities(self) -> NDArray[np.float64]:
        total = 1 << self.bits
        return np.array(
            [int(self._projected((i,))[0]) / total for i in range(len(self.n_categories))]
        )

    def attenuations(self) -> NDArray[np.float64]:
        total = 1 << self.bits
        return np.array(
            [
                ((same + others) * int(self._projected((i,))[0]) - same * total) / (others * total)
                for i in range(len(self.n_categories))
                for same, others in [self.outputs(i)]
            ]
        )

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        outputs = [self.outputs(i) for i in range(len(self.n_categories))]
        parts = [(same + others) / same for same, others in outputs]
        return pattern_eigenvalues(self._probability, parts, subset)

    def pair_eigenvalues(self) -> NDArray[np.float64]:
        """Return φ of every two attributes, (k, k), with single attenuations on the diagonal."""
        k = len(self.n_categories)
        place = 1 << np.arange(k)[::-1]
        return np.asarray(self.eigenvalues(range(k)).ravel()[place[:, None] | place])

    def keeps_pair_floor(self, floor: float) -> bool:
        # An entry is a sum of probabilities, which add up to 1, times h_i h_j, after at most four
        # roundings an attribute; closer comparisons are decided in integers.
        single, k = self.attenuations(), len(self.n_categories)
        above = self.pair_eigenvalues() - floor * np.outer(single, single)
        largest_h = max(max(same / others, 1.0) for same, others in map(self.outputs, range(k)))
        wrong = (4 * k + 32) * 2.0**-53 * (1.0 + largest_h) ** 3
        np.fill_diagonal(above, math.inf)
        if above.min(initial=math.inf) < -wrong:
            return False
        left_open = np.argwhere(np.triu(above <= wrong))
        return all(self._keeps_exactly(i, j, Fraction(floor)) for i, j in left_open.tolist())

    def _keeps_exactly(self, first: int, second: int, floor: Fraction) -> bool:
        h, other = (
            np.array([1, Fraction(-same, others)])
            for same, others in map(self.outputs, (first, second))
        )
        weights, ones = self._projected((first, second)), np.array([1, 1])
        pair, one, two = h @ weights @ other, h @ weights @ ones, ones @ weights @ other
        return bool(pair * (1 << self.bits) >= floor * one * two)

    def pattern_weights(self) -> tuple[int, ...]:
        return self.weights

    def outcomes(self) -> tuple[int, ...]:
        """Return the probability of every pattern, the outcomes of a draw, times 2^bits."""
        return self.weights

    def record_entropy(self) -> float:
        total = 1 << self.bits
        rest = np.array([(total - weight) / total for weight in self.weights])
        q = self._probability
        return pattern_entropy(q, self.n_categories, rest.reshape(q.shape))

    def sampler(self) -> "PatternTableSampler":
        return PatternTableSampler(self)

    def to_plain(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "bits": self.bits,
            "weights": [f"{weight:x}" for weight in self.weights],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "PatternTable":
        if len(n_categories) > MAX_ATTRIBUTES:
            raise InputError(f"a pattern table holds at most {MAX_ATTRIBUTES} attributes")
        weights = integers_from_plain(plain["weights"], "weights", 1 << len(n_categories))
        return cls(n_categories, plain["bits"], weights)


class WeightedPatterns(Protocol):
    """A law with weights of all patterns, in any unit."""

    @property
    def n_categories(self) -> tuple[int, ...]: ...

    def pattern_weights(self) -> tuple[int, ...]:
        """Return the weights, shape (2^k,)."""
        ...


class PatternTableSampler(ShiftSampler):
    """Draws the pattern, then a uniform other category for every attribute, used where it changed.

    The other category is drawn whether used or not, so that the work is the same for every
    pattern.
    """

    def __init__(self, law: WeightedPatterns) -> None:
        super().__init__(law.n_categories)
        self._pattern = ExactCategorical(law.pattern_weights())
        uniform = {n: ExactCategorical([1] * (n - 1)) for n in set(law.n_categories)}
        self._others = [uniform[n] for n in law.n_categories]

    def draws(self, law: WeightedPatterns) -> bool:
        return self._pattern.draws_by(law.pattern_weights()) and all(
            others.draws_by([1] * (n - 1))
            for others, n in zip(self._others, law.n_categories, strict=True)
        )

    def walk(self, count: int, source: BitSource) -> Iterator[NDArray[Any]]:
        pattern = self._pattern.draw(count, source)
        k = len(self.n_categories)
        for i, others in enumerate(self._others):
            changed = (pattern >> (k - 1 - i)) & 1
            shift = others.draw(count, source)
            shift += 1
            shift *= changed.astype(shift.dtype)
            yield shift
