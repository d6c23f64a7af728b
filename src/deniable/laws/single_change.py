"""The heuristic's law: a uniform record, the record itself, or the record with one change.

Its levels are docs/proofs/accounting.md, Theorem 4, its eigenvalues docs/proofs/interactions.md,
Theorem 4.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.entropy import log2_quotient
from deniable.laws.law import (
    PatternLaw,
    Ratio,
    ShiftSampler,
    at_least_one,
    integer_weights,
    integers_from_plain,
    largest,
)
from deniable.laws.plain import Bits, HexInteger, PlainLaw
from deniable.randomness import BitSource, ExactCategorical


class PlainSingleChange(PlainLaw, tag="single-change-mixture"):
    """The record of the law."""

    bits: Bits
    uniform_weight: HexInteger
    unchanged_weight: HexInteger
    change_weights: list[HexInteger]


@dataclass(frozen=True)
class SingleChangeMixture(PatternLaw):
    """All patterns with two or more changes are equally likely per output (Yamamoto and Shibuya,
    Algorithm 3).

    Their matrix has x_0 on the diagonal, x_j where attribute j alone differs and 1 elsewhere. Drawn
    in k + 2 pieces: a record uniform over all of them, the record unchanged, or the record with
    attribute j moved to a uniform other category. It needs k + 2 numbers, not 2^k.

    ``n_categories``: categories per attribute, shape (k,). ``uniform_weight``: weight of the
    uniform record, above 0. ``change_weights``: weight of "attribute j alone changes", shape (k,).

    >>> law = SingleChangeMixture((2, 3), 2, 1, 1, (1, 1))  # every piece has 1/4
    >>> law.keep_probabilities().round(4).tolist(), law.record_level()
    ([0.625, 0.5833], ((7, 1),))
    """

    family: ClassVar[str] = "single-change-mixture"
    Plain = PlainSingleChange

    n_categories: tuple[int, ...]
    bits: int
    uniform_weight: int
    unchanged_weight: int
    change_weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.n_categories or len(self.change_weights) != len(self.n_categories):
            raise InputError(
                "a single-change mixture needs at least one attribute and a change weight for each"
            )
        if self.uniform_weight <= 0:
            raise InputError("the uniform record needs a weight above 0, or ε is infinite")
        if min(self.unchanged_weight, *self.change_weights) < 0:
            raise InputError("a weight of a single-change mixture is negative")
        if self.uniform_weight + self.unchanged_weight + sum(self.change_weights) != 1 << self.bits:
            raise InputError("the weights of a single-change mixture must add up to 2^bits")

    @classmethod
    def from_excesses(
        cls,
        n_categories: Sequence[int],
        keep_excess: float,
        change_excess: NDArray[np.float64],
    ) -> "SingleChangeMixture":
        """Return the law with pieces in the ratio 1 : u_0 : (a_j − 1) u_j.

        ``n_categories``: shape (k,). ``change_excess``: u_j = (x_j − 1)/∏a, shape (k,).
        """
        others = np.asarray(n_categories, dtype=np.float64) - 1
        pieces = np.concatenate([[1.0, keep_excess], others * change_excess])
        bits, (uniform, unchanged, *changes) = integer_weights(pieces)
        return cls(tuple(int(n) for n in n_categories), bits, uniform, unchanged, tuple(changes))

    # The probability X of one particular output, on the columns in A, over its uniform part w/∏a:
    #   none changed        w/∏_A a + unchanged + Σ_{j∉A} change_j
    #   only j∈A changed    w/∏_A a + change_j/(a_j − 1)
    #   two or more changed w/∏_A a

    @cached_property
    def _all_changes(self) -> int:
        return sum(self.change_weights)

    def record_level(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        chosen = list(range(len(self.n_categories))) if subset is None else list(subset)
        outputs = prod(self.n_categories[i] for i in chosen)
        elsewhere = self._all_changes - sum(self.change_weights[i] for i in chosen)
        levels = [(self.uniform_weight + (self.unchanged_weight + elsewhere) * outputs, 1)]
        levels += [self._one_change(i, outputs) for i in chosen]
        if len(chosen) > 1:
            levels.append((self.uniform_weight, 1))
        high = largest(levels)
        low = largest([(denominator, numerator) for numerator, denominator in levels])
        return ((high[0] * low[0], high[1] * low[1]),)

    def _one_change(self, i: int, outputs: int) -> Ratio:
        others = self.n_categories[i] - 1
        return (self.uniform_weight * others + self.change_weights[i] * outputs, others)

    def given_rest_levels(self) -> list[tuple[Ratio, ...]]:
        # Flipping i from unchanged to changed when no other changed: X_∅/X_i. When only j
        # changed: X_j/X_{ij}, the largest at the largest X_j, j ≠ i. When more changed: 1.
        k = len(self.n_categories)
        if k == 1:
            return [self.record_level()]
        outputs = prod(self.n_categories)
        kept = (self.uniform_weight + self.unchanged_weight * outputs, 1)
        single = [self._one_change(i, outputs) for i in range(k)]
        uniform = self.uniform_weight
        first = _position_of_largest(single, skip=None)
        second = _position_of_largest(single, skip=first)
        levels: list[tuple[Ratio, ...]] = []
        for i in range(k):
            numerator, denominator = single[second if i == first else first]
            pair = (numerator, denominator * uniform)
            flip = at_least_one((kept[0] * single[i][1], kept[1] * single[i][0]))
            levels.append((largest([flip, pair]),))
        return levels

    def keep_probabilities(self) -> NDArray[np.float64]:
        total = 1 << self.bits
        return np.array(
            [
                (self.uniform_weight + (total - self.uniform_weight - change) * n) / (n * total)
                for n, change in zip(self.n_categories, self.change_weights, strict=True)
            ]
        )

    def attenuations(self) -> NDArray[np.float64]:
        # φ_i = P(unchanged) + Σ_{j≠i} P(change j) − P(change i)/(a_i − 1); the uniform part
        # contributes 0.
        total = 1 << self.bits
        return np.array(
            [
                ((total - self.uniform_weight - change) * (n - 1) - change) / ((n - 1) * total)
                for n, change in zip(self.n_categories, self.change_weights, strict=True)
            ]
        )

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        total = 1 << self.bits
        values = np.full((2,) * len(subset), (total - self.uniform_weight) / total)
        for axis, i in enumerate(subset):
            # On T ∋ i the change of i counts −1/(a_i − 1) instead of 1: less by a/(a − 1).
            n, change = self.n_categories[i], self.change_weights[i]
            step = np.array([0.0, change * n / ((n - 1) * total)])
            values = values - step.reshape([2 if d == axis else 1 for d in range(len(subset))])
        values[(0,) * len(subset)] = 1.0
        return np.asarray(values)

    def record_entropy(self) -> float:
        # One output has probability uniform/N where two or more attributes differ, and that plus
        # "unchanged" or change_j/(a_j − 1) where none or only j does. In logarithms: N is ∏ a_i.
        total = 1 << self.bits
        sizes = np.asarray(self.n_categories, dtype=np.float64)
        log_records = float(np.log2(sizes).sum())
        base = log2_quotient(self.uniform_weight, total) - log_records
        weights = (self.unchanged_weight, *self.change_weights)
        pieces = np.array([weight / total for weight in weights])
        ways = np.concatenate([[1.0], sizes - 1])
        with np.errstate(divide="ignore"):
            logs = np.logaddexp2(base, np.log2(pieces) - np.log2(ways))
        mass = ways * np.exp2(logs)
        few = prod(self.n_categories) - int(ways.sum()) if log_records < 50 else None
        several = (1.0 if few is None else few * 2**-log_records) * self.uniform_weight / total
        # The likeliest of these may be near 1; its logarithm then comes from the others' mass.
        top = int(np.argmax(mass))
        if ways[top] == 1 and mass[top] > 0.5:
            logs[top] = math.log1p(-(math.fsum(np.delete(mass, top)) + several)) / math.log(2)
        return math.fsum(-mass * logs) - several * base

    def sampler(self) -> "SingleChangeSampler":
        return SingleChangeSampler(self)

    def to_plain(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "bits": self.bits,
            "uniform_weight": f"{self.uniform_weight:x}",
            "unchanged_weight": f"{self.unchanged_weight:x}",
            "change_weights": [f"{weight:x}" for weight in self.change_weights],
        }

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]
    ) -> "SingleChangeMixture":
        uniform, unchanged = integers_from_plain(
            [plain["uniform_weight"], plain["unchanged_weight"]], "mixture weights", 2
        )
        changes = integers_from_plain(plain["change_weights"], "change_weights", len(n_categories))
        return cls(n_categories, plain["bits"], uniform, unchanged, changes)


def _position_of_largest(ratios: Sequence[Ratio], skip: int | None) -> int:
    best = -1
    for i, ratio in enumerate(ratios):
        if i == skip:
            continue
        if best < 0 or ratio[0] * ratios[best][1] > ratios[best][0] * ratio[1]:
            best = i
    return best


class SingleChangeSampler(ShiftSampler):
    """Draws the piece, then every attribute's shift under it.

    Both a uniform shift and a uniform other category are drawn for every attribute, so that the
    work is the same for every piece.
    """

    def __init__(self, law: SingleChangeMixture) -> None:
        super().__init__(law.n_categories)
        self._piece = ExactCategorical(
            [law.uniform_weight, law.unchanged_weight, *law.change_weights]
        )
        self._uniform = {n: ExactCategorical([1] * n) for n in set(law.n_categories)}
        self._other = {n: ExactCategorical([1] * (n - 1)) for n in set(law.n_categories)}

    def draws(self, law: SingleChangeMixture) -> bool:
        pieces = [law.uniform_weight, law.unchanged_weight, *law.change_weights]
        return self._piece.draws_by(pieces) and all(
            self._uniform[n].draws_by([1] * n) and self._other[n].draws_by([1] * (n - 1))
            for n in set(law.n_categories)
        )

    def walk(self, count: int, source: BitSource) -> Iterator[NDArray[Any]]:
        piece = self._piece.draw(count, source)
        anything = piece == 0
        for i, n in enumerate(self.n_categories):
            uniform = self._uniform[n].draw(count, source)
            other = self._other[n].draw(count, source).astype(uniform.dtype) + 1
            shift = np.where(anything, uniform, np.where(piece == i + 2, other, 0))
            yield shift.astype(uniform.dtype, copy=False)
