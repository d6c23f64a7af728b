"""One randomized response on whole records: unchanged, or replaced by another record.

The proofs are in docs/proofs/lambda.md, Theorem 5, and docs/proofs/interactions.md, Theorem 4.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.entropy import response_entropy
from deniable.laws.law import (
    PatternLaw,
    Ratio,
    ShiftSampler,
    at_least_one,
    integers_from_plain,
)
from deniable.laws.patterns import n_records
from deniable.laws.plain import Bits, HexInteger, PlainLaw
from deniable.randomness import BitSource, ExactCategorical

_GUARD_BITS = 64
"""Bits of a weight beyond those of its size and of its complement."""

MAX_RECORD_BITS = 1 << 16
"""log₂ of the number of possible records."""


class PlainJoint(PlainLaw, tag="joint"):
    """The record of the law."""

    bits: Bits
    keep_weight: HexInteger


@dataclass(frozen=True)
class JointLaw(PatternLaw):
    """k-ary randomized response on the Cartesian product of all categories.

    The record is unchanged with probability p; otherwise each of the other N − 1 records,
    N = ∏ a_i, is equally likely. As a pattern law q(∅) = p and q(S) = (1 − p) t_S/(N − 1) (Ruiz,
    λ-randomization, section 3). Given all of a record but one attribute, the level is the whole
    record's: X_∅/X_{i} is the record's own ratio.

    ``n_categories``: categories per attribute, shape (k,). ``keep_weight``: the record is unchanged
    with probability ``keep_weight / 2**bits``.

    >>> law = JointLaw.from_attenuation((2, 3), 0.25)
    >>> law.attenuations().round(6).tolist(), law.eigenvalues((0, 1)).round(6).tolist()
    ([0.25, 0.25], [[1.0, 0.25], [0.25, 0.25]])
    """

    family: ClassVar[str] = "joint"
    Plain = PlainJoint

    n_categories: tuple[int, ...]
    bits: int
    keep_weight: int

    def __post_init__(self) -> None:
        _check_size(self.n_categories)
        if not 0 < self.keep_weight < 1 << self.bits:
            raise InputError(
                "a keep probability of 0 or 1 makes ε infinite; use more bits or a smaller ε"
            )

    @classmethod
    def from_epsilon(cls, n_categories: Sequence[int], epsilon: float) -> "JointLaw":
        """Return the law whose record level is ε nats, never above and within 2⁻⁵⁰ of ε below.

        p = e^ε/(e^ε + N − 1), rounded down.
        """
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise InputError(f"the level of the joint law must be above 0 nats, not {epsilon:g}")
        sizes = tuple(int(n) for n in n_categories)
        _check_size(sizes)
        others = n_records(sizes) - 1
        # Digits: 60, and as many as e^ε needs to differ from 1.
        down = Context(
            prec=60 + max(0, -math.floor(math.log10(epsilon))),
            rounding=ROUND_FLOOR,
            Emax=MAX_EMAX,
            Emin=MIN_EMIN,
        )
        # decimal's exp is rounded to nearest; one unit less makes it a lower bound.
        likelihood_ratio = Fraction(down.next_minus(down.exp(Decimal(epsilon))))
        return cls._from_odds(sizes, likelihood_ratio / others, small=min(1.0, epsilon))

    @classmethod
    def from_attenuation(cls, n_categories: Sequence[int], attenuation: float) -> "JointLaw":
        """Return the law P = λI + (1 − λ)P* on whole records, λ rounded down.

        Every interaction of any attributes, and so every attribute's own contrast, is multiplied by
        the same λ (Ruiz, equation (6), on the product of all categories).
        """
        if not 0 < attenuation < 1:
            raise InputError(f"λ of the joint law must lie between 0 and 1, not {attenuation:g}")
        sizes = tuple(int(n) for n in n_categories)
        _check_size(sizes)
        total = n_records(sizes)
        fraction = Fraction(attenuation)
        # p = λ + (1 − λ)/N and 1 − p = (1 − λ)(N − 1)/N.
        odds = (fraction * total + 1 - fraction) / ((1 - fraction) * (total - 1))
        return cls._from_odds(sizes, odds, small=min(attenuation, 1 - attenuation))

    @classmethod
    def _from_odds(cls, sizes: tuple[int, ...], odds: Fraction, small: float) -> "JointLaw":
        # Rounding p by 2^−b moves ln(p/(1 − p)) by 2^−b/(p(1 − p)), which must be small against
        # ``small``: that takes this number of further bits.
        likely = odds / (1 + odds)
        spread = _log2(1 / likely) + _log2(1 / (1 - likely)) - math.log2(small)
        bits = 64 * math.ceil((_GUARD_BITS + spread) / 64)
        return cls(sizes, bits, (likely.numerator << bits) // likely.denominator)

    @cached_property
    def _records(self) -> int:
        return n_records(self.n_categories)

    # On the columns in A, with N_A = ∏_A a and m = N/N_A records for each of them, one output has
    #   none changed       p + (1 − p)(m − 1)/(N − 1)
    #   anything changed   (1 − p) m/(N − 1)

    def record_level(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        chosen = range(len(self.n_categories)) if subset is None else subset
        seen = n_records([self.n_categories[i] for i in chosen])
        if seen == 1:
            return ()
        kept, changed = self._seen_through(self._records // seen)
        return (at_least_one((kept, changed)),)

    def _seen_through(self, alike: int) -> Ratio:
        changed = (1 << self.bits) - self.keep_weight
        kept = self.keep_weight * (self._records - 1) + changed * (alike - 1)
        return kept, changed * alike

    def record_entropy(self) -> float:
        changed = (1 << self.bits) - self.keep_weight
        return response_entropy(self._records, self.keep_weight, changed)

    def keep_probabilities(self) -> NDArray[np.float64]:
        total = (1 << self.bits) * (self._records - 1)
        return np.array(
            [self._seen_through(self._records // n)[0] / total for n in self.n_categories]
        )

    @property
    def attenuation(self) -> float:
        """λ = (N p − 1)/(N − 1), the one eigenvalue of every set of attributes but the empty."""
        total = 1 << self.bits
        return (self._records * self.keep_weight - total) / ((self._records - 1) * total)

    def attenuations(self) -> NDArray[np.float64]:
        return np.full(len(self.n_categories), self.attenuation)

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        values = np.full((2,) * len(subset), self.attenuation)
        values[(0,) * len(subset)] = 1.0
        return values

    def sampler(self) -> "JointSampler":
        return JointSampler(self)

    def to_plain(self) -> dict[str, Any]:
        return {"family": self.family, "bits": self.bits, "keep_weight": f"{self.keep_weight:x}"}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "JointLaw":
        (weight,) = integers_from_plain([plain["keep_weight"]], "keep_weight", 1)
        return cls(n_categories, plain["bits"], weight)


def _check_size(n_categories: Sequence[int]) -> None:
    if sum(math.log2(n) for n in n_categories) > MAX_RECORD_BITS:
        raise InputError(
            "the joint law handles up to 2^65536 possible records, and this schema has more; use "
            "method kronecker"
        )


def _log2(value: Fraction) -> float:
    return math.log2(value.numerator) - math.log2(value.denominator)


class JointSampler(ShiftSampler):
    """Draws whether the record is unchanged, and for every record another one: uniform shifts,
    drawn again where all are 0, so that no number as large as N is ever drawn."""

    def __init__(self, law: JointLaw) -> None:
        super().__init__(law.n_categories)
        self._changed = ExactCategorical([law.keep_weight, (1 << law.bits) - law.keep_weight])
        self._uniform = {n: ExactCategorical([1] * n) for n in set(law.n_categories)}

    def draws(self, law: JointLaw) -> bool:
        return self._changed.draws_by([law.keep_weight, (1 << law.bits) - law.keep_weight]) and all(
            self._uniform[n].draws_by([1] * n) for n in set(law.n_categories)
        )

    def walk(self, count: int, source: BitSource) -> Iterator[NDArray[Any]]:
        shifts = [self._uniform[n].draw(count, source) for n in self.n_categories]
        while (again := np.flatnonzero(~np.logical_or.reduce([s != 0 for s in shifts]))).size:
            for shift, n in zip(shifts, self.n_categories, strict=True):
                shift[again] = self._uniform[n].draw(again.size, source)
        changed = self._changed.draw(count, source)
        return (shift * changed.astype(shift.dtype) for shift in shifts)
