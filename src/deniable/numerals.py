"""Numbers and counts in text: no exponents, and nouns in singular or plural."""

import math
from decimal import Decimal

_LEAST_SHOWN = 1e-9
_LEAST_P = 1e-6


def significant(
    value: float, digits: int, rounding: str | None = None, *, trailing_zeros: bool = False
) -> str:
    """Return a number with this many significant digits, thousands separated, no exponent."""
    number = Decimal(value)
    if not number:
        return "0"
    places = digits - 1 - number.adjusted()
    rounded = number.scaleb(min(places, 0)).quantize(Decimal(1).scaleb(-max(places, 0)), rounding)
    rounded = rounded.scaleb(-min(places, 0))
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text and not trailing_zeros else text


def number_text(value: float, digits: int = 4) -> str:
    """Return a number with a few significant digits; below a billionth, 0.

    >>> number_text(5.034e11), number_text(0.00004796), number_text(-3e-17), number_text(math.inf)
    ('503,400,000,000', '0.00004796', '0', 'inf')
    """
    if not math.isfinite(value):
        return str(float(value))
    return "0" if abs(value) < _LEAST_SHOWN else significant(value, digits)


def p_text(p_value: float) -> str:
    """Return a p-value with two digits, or "below" the least shown.

    >>> p_text(0.0421), p_text(3e-80)
    ('0.042', 'below 0.000001')
    """
    if p_value < _LEAST_P:
        return f"below {significant(_LEAST_P, 1)}"
    return number_text(p_value, 2)


def count_text(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun; the plural defaults to an added s.

    >>> count_text(1, "row"), count_text(1200, "row"), count_text(0, "category", "categories")
    ('1 row', '1,200 rows', '0 categories')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
