"""The one place where a bound is rounded to a double."""

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
    """Return the next double: what a bound worked out in floats is rounded up to."""
    return math.nextafter(value, math.inf)
