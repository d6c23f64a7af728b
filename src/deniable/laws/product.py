"""Independent k-ary randomized response per attribute: the Kronecker product of their matrices.

Its levels are docs/proofs/accounting.md, Theorem 4.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, localcontext
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
from deniable.laws.plain import Bits, HexInteger, PlainLaw
from deniable.laws.response import keep_of_fall
from deniable.randomness import BitSource, ExactCategorical

_MANY = 512
"""From this many attributes on, the sampler holds small lookup tables instead of large ones."""

MAX_LEVEL = 2000.0
"""The arithmetic is exact to as many digits as e^ε has, and takes seconds beyond this level."""


class PlainProduct(PlainLaw, tag="product"):
    """The record of the law."""

    bits: Bits
    keep_weights: list[HexInteger]


@dataclass(frozen=True)
class ProductLaw(PatternLaw):
    """Every attribute is unchanged with its own probability, independently of the others.

    The reference method of Yamamoto and Shibuya; λ-randomization (Ruiz) is the same
    law in other parameters.

    ``n_categories``: categories per attribute, shape (k,). ``keep_weights``: attribute i is
    unchanged with probability ``keep_weights[i] / 2**bits``; shape (k,).

    >>> law = ProductLaw((2, 3), 2, (3, 2))  # kept with probability 3/4 and 2/4
    >>> law.keep_probabilities().tolist(), law.record_level()
    ([0.75, 0.5], ((3, 1), (4, 2)))
    >>> law = ProductLaw.from_levels((2, 3), (1.0, 2.0))
    >>> law.keep_probabilities().round(4).tolist()
    [0.7311, 0.787]
    """

    family: ClassVar[str] = "product"
    Plain = PlainProduct

    n_categories: tuple[int, ...]
    bits: int
    keep_weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.n_categories or len(self.keep_weights) != len(self.n_categories):
            raise InputError("a product law needs an attribute, and a keep weight for each")
        if min(self.keep_weights) <= 0 or max(self.keep_weights) >= 1 << self.bits:
            raise InputError(
                "a keep probability of 0 or 1 would make ε infinite; use more bits or a smaller ε"
            )

    @classmethod
    def from_levels(
        cls, n_categories: Sequence[int], attribute_epsilon: Sequence[float]
    ) -> "ProductLaw":
        """Return the Kronecker product of k-ary responses at given levels in nats, shape (k,).

        p_i = e^ε_i/(e^ε_i + a_i − 1) is rounded down at a width where that costs less than 2⁻⁵⁶
        of ε_i, so no level is above the request.
        """
        if (highest := max(attribute_epsilon)) > MAX_LEVEL:
            raise InputError(
                f"a level of {highest:g} nats for one attribute protects no value; use at most "
                f"{MAX_LEVEL:g}, or list the column under keep"
            )
        # d ε = d p/(p (1 − p)): rounding p to b bits moves ε by at most 2^−b/(p (1 − p)), and
        # 1/(p (1 − p)) <= (a − 1 + e^ε)²/((a − 1) e^ε) <= a (e^ε + a). A level below one nat needs
        # correspondingly more bits, or p would fall to 1/a or under it.
        spread = max(
            math.log2(n) + max(level / math.log(2), math.log2(n)) + 1 + max(0.0, -math.log2(level))
            for n, level in zip(n_categories, attribute_epsilon, strict=True)
        )
        bits = 64 * math.ceil((57 + spread) / 64)
        with localcontext(Context(prec=40 + bits, Emax=MAX_EMAX, Emin=MIN_EMIN)):
            scale = Decimal(2) ** bits
            # A part in 2⁶⁰ below the request: less than a float can show, but enough for the sixty
            # digits of the accountant to see which side of it the law is on.
            aim = 1 - Decimal(2) ** -60
            falls = [(-(Decimal(level) * aim)).exp() for level in attribute_epsilon]
            weights = tuple(
                int((keep_of_fall(n, fall) * scale).to_integral_value(ROUND_FLOOR))
                for n, fall in zip(n_categories, falls, strict=True)
            )
        return cls(tuple(int(n) for n in n_categories), bits, weights)

    def attribute_levels(self) -> list[tuple[Ratio]]:
        total = 1 << self.bits
        return [
            (at_least_one((weight * (n - 1), total - weight)),)
            for weight, n in zip(self.keep_weights, self.n_categories, strict=True)
        ]

    def given_rest_levels(self) -> list[tuple[Ratio]]:
        # The other attributes are independent of this one, so knowing them adds no information.
        return self.attribute_levels()

    def record_level(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        levels = self.attribute_levels()
        return tuple(levels[i][0] for i in (range(len(levels)) if subset is None else subset))

    def record_entropy(self) -> float:
        total = 1 << self.bits
        return math.fsum(
            response_entropy(n, weight, total - weight)
            for n, weight in zip(self.n_categories, self.keep_weights, strict=True)
        )

    def keep_probabilities(self) -> NDArray[np.float64]:
        total = 1 << self.bits
        return np.array([weight / total for weight in self.keep_weights])

    def attenuations(self) -> NDArray[np.float64]:
        # (a·w − 2^b)/((a − 1)·2^b) with the subtraction done in integers: exact at small ε.
        total = 1 << self.bits
        return np.array(
            [
                (n * weight - total) / ((n - 1) * total)
                for weight, n in zip(self.keep_weights, self.n_categories, strict=True)
            ]
        )

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        values = np.ones(())
        for single in self._attenuations[list(subset)]:
            values = np.multiply.outer(values, np.array([1.0, single]))
        return np.asarray(values)

    @cached_property
    def _attenuations(self) -> NDArray[np.float64]:
        return self.attenuations()

    def least_pair_ratio(self) -> float:
        return 1.0

    def sampler(self) -> "ProductSampler":
        return ProductSampler(self)

    def to_plain(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "bits": self.bits,
            "keep_weights": [f"{weight:x}" for weight in self.keep_weights],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "ProductLaw":
        weights = integers_from_plain(plain["keep_weights"], "keep_weights", len(n_categories))
        return cls(n_categories, plain["bits"], weights)


class ProductSampler(ShiftSampler):
    """One table per attribute whose outcome is the shift: 0 with the keep probability, each of the
    a−1 others with an equal part of the rest."""

    def __init__(self, law: ProductLaw) -> None:
        super().__init__(law.n_categories)
        total = 1 << law.bits
        prefix_bits = 16 if len(law.n_categories) < _MANY else 8
        tables: dict[tuple[int, int], ExactCategorical] = {}
        for key in zip(law.keep_weights, law.n_categories, strict=True):
            if key not in tables:
                weight, n = key
                tables[key] = ExactCategorical(
                    [weight * (n - 1)] + [total - weight] * (n - 1), prefix_bits=prefix_bits
                )
        self._tables = [tables[key] for key in zip(law.keep_weights, law.n_categories, strict=True)]

    def draws(self, law: ProductLaw) -> bool:
        total = 1 << law.bits
        return len(self._tables) == len(law.n_categories) and all(
            table.draws_by([weight * (n - 1)] + [total - weight] * (n - 1))
            for table, weight, n in {
                (id(table), weight, n): (table, weight, n)
                for table, weight, n in zip(
                    self._tables, law.keep_weights, law.n_categories, strict=True
                )
            }.values()
        )

    def walk(self, count: int, source: BitSource) -> Iterator[NDArray[Any]]:
        return (table.draw(count, source) for table in self._tables)
