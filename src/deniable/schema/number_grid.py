"""Grids of numbers: equally spaced public points, and integer weights of the rounding to them.

A number x between two neighbouring points t is rounded at random to the upper one with probability
(x − t_j)/(t_{j+1} − t_j), else to the lower one, so that its expectation is x
(docs/proofs/numbers.md).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from deniable.errors import InputError

MOST_POINTS = 1_000
"""Largest number of points of a grid."""

GRIDS = {"mean": 3, "typical": 3, "distribution": 9}
"""Points of a grid by purpose. The variance of a mean is least at 2 to 4 points where an attribute
has a level of 0.5 to 3 nats in a joint law; a distribution needs 9 to 17 (docs/schema.md)."""

_MOST_UNITS = 1 << 47
"""Units of a range: with up to 1,000 points, weights fit in 64-bit integers."""

_EXACT = 1 << 51
"""Units up to which a 64-bit float multiplied by the units of one rounds to the written decimal."""

_SHOWN_DIGITS = 10
"""Significant digits of a point that has no short decimal."""


@dataclass(frozen=True)
class NumberGrid:
    """The points of a range, from ``low`` to ``high``; numbers are read to ``decimals`` decimals.

    ``step``: units between neighbouring points, ``per_one``: units of a difference of 1; a number x
    is (x − low)·per_one units above the lowest point.
    """

    low: float
    high: float
    n_points: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise InputError("both ends of a range must be numbers")
        if self.low >= self.high:
            raise InputError("a range must end above its beginning")
        if not 2 <= self.n_points <= MOST_POINTS:
            raise InputError(f"a grid has from 2 to {MOST_POINTS:,} points")
        if self.decimals < 0 or max(self._ends[0].denominator, self._ends[1].denominator) > (
            10**self.decimals
        ):
            raise InputError(
                "the range has too many digits for exact weights; round its ends, or use a larger "
                "unit"
            )

    @cached_property
    def _ends(self) -> tuple[Fraction, Fraction]:
        # As written: repr is the shortest decimal of a float.
        return Fraction(repr(self.low)), Fraction(repr(self.high))

    @cached_property
    def decimals(self) -> int:
        """Decimals to which numbers are read; further ones are rounded."""
        low, high = self._ends
        most = min(
            Fraction(_MOST_UNITS) / (high - low), Fraction(_EXACT) / max(abs(low), abs(high))
        )
        return len(str(int(most))) - 1 if most >= 1 else -1

    @property
    def per_one(self) -> int:
        """Units of a difference of 1, before the multiplication by ``n_points`` − 1."""
        return int(10**self.decimals)

    @cached_property
    def lowest(self) -> int:
        """The lowest point in units of 10^−decimals from 0."""
        return int(self._ends[0] * self.per_one)

    @cached_property
    def step(self) -> int:
        """Units between neighbouring points."""
        return int((self._ends[1] - self._ends[0]) * self.per_one)

    def offset(self, number: int | Fraction) -> int:
        """Return the units from the lowest point to a number, negative below the range."""
        return (round(number * self.per_one) - self.lowest) * (self.n_points - 1)

    @cached_property
    def points(self) -> tuple[float, ...]:
        """The points, each the float nearest to it."""
        low, high = self._ends
        return tuple(
            float(low + (high - low) * j / (self.n_points - 1)) for j in range(self.n_points)
        )

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The points as released: exact decimals, or ten significant digits of the step."""
        return tuple(_text(point, _SHOWN_DIGITS - self._size) for point in self.points)

    @property
    def _size(self) -> int:
        return math.floor(math.log10((self.high - self.low) / (self.n_points - 1)))

    def text(self, number: float) -> str:
        """Return a number as text, with four significant digits of the step."""
        return _text(number, 3 - self._size)


def _text(point: float, decimals: int) -> str:
    rounded = round(point, decimals)
    return str(int(rounded)) if rounded.is_integer() and abs(rounded) < 1e15 else repr(rounded)
