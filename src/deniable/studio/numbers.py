"""Numbers as people type them: understood or refused, never misread."""

import re
from decimal import ROUND_CEILING, Context, Decimal

from deniable.errors import InputError


def whole_number(typed: str, what: str) -> int:
    """Return a whole number.

    Raises:
        InputError: if something else was typed; ``what`` begins the sentence.

    >>> whole_number(" 10000 ", "rows")
    10000
    """
    if not re.fullmatch(r"\d{1,18}", typed.strip(), re.ASCII):
        raise InputError(f"{what}: a whole number is written in digits alone, as 10000")
    return int(typed)


def decimal_number(typed: str, what: str) -> float:
    """Return a number written with a decimal point or a decimal comma.

    Raises:
        InputError: if something else was typed, or it can be read in two ways; ``what`` begins the
            sentence.

    >>> decimal_number("3,5", "ε"), decimal_number("0.25", "ε")
    (3.5, 0.25)
    """
    text = typed.strip()
    if re.fullmatch(r"[1-9]\d{0,2},\d{3}", text, re.ASCII):
        plain, decimal = text.replace(",", ""), text.replace(",", ".")
        raise InputError(f"{what}: write {plain} or {decimal}; {text} can mean either")
    if not re.fullmatch(r"-?\d{1,18}([.,]\d{0,40})?", text, re.ASCII):
        raise InputError(f"{what}: this is not a number; one is written as 3.5 or 3,5")
    return float(text.replace(",", "."))


def written(value: float) -> str:
    """Return a number as it is typed, every digit of it.

    >>> written(1.25), written(1e-7), written(3.0)
    ('1.25', '0.0000001', '3')
    """
    text = format(Decimal(str(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded_up(value: float) -> str:
    """Return a number as it is typed, to six digits that are no less.

    >>> rounded_up(3.00000001), rounded_up(0.5)
    ('3.00001', '0.5')
    """
    return format(Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(value), "f")
