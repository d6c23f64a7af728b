"""Rounding of bounds to doubles; no other module does it."""

import math
from decimal import Decimal
from fractions import Fraction


def rounded_up(exact: Fraction | Decimal) -> float:
    """Return the smallest double that is not below a number.

    >>> rounded_up(Fraction(1, 10)) == 0.1, rounded_up(Fraction(0.1)) == 0.1
    (True, True)
    >>> rounded_up(Fraction(3, 10)) > 0.3
    True
    """
    nearest = float(exact)
    return nearest if nearest >= exact else next_above(nearest)


def next_above(value: float) -> float:
    """Return the next double, which rounds up a bound computed in floats."""
    return math.nextafter(value, math.inf)
