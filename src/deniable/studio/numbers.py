"""Numbers as people type them: request_of or refused, never misread."""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from deniable.errors import InputError


def whole_number(typed: str, what: str) -> int:
    """Return a whole number.

    >>> whole_number(" 10000 ", "rows")
    10000
    """
    if not re.fullmatch(r"\d{1,18}", typed.strip(), re.ASCII):
        raise InputError(f"{what}: a whole number is written in digits alone, as 10000")
    return int(typed)


def decimal_number(typed: str, what: str) -> float:
    """Return a number written with a decimal point or a decimal comma.

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


_SPACES = " \N{NO-BREAK SPACE}\N{THIN SPACE}\N{NARROW NO-BREAK SPACE}"


def plain(typed: str, separators: str, *, whole: bool = False) -> str:
    """Return a number of a language with a decimal point and without thousands separators; other
    text is returned unchanged, and ambiguous numbers are refused later.
    """
    point, group = map(re.escape, separators)
    text = typed.strip()
    if not whole and re.fullmatch(rf"[1-9]\d{{0,2}}{group}\d{{3}}", text, re.ASCII):
        return text.replace(separators[1], ",")  # which can be read in two ways
    groups = rf"[1-9]\d{{0,2}}([{group}{_SPACES}])\d{{3}}(?:\1\d{{3}})*"
    decimals = "" if whole else rf"(?:{point}\d*)?"
    if not re.fullmatch(rf"-?(?:\d+|{groups}){decimals}", text, re.ASCII):
        return typed
    return re.sub(rf"[{group}{_SPACES}]", "", text).replace(separators[0], ".")


def shown(text: str, separators: str) -> str:
    """Return a number as a control of a language shows it: :func:`plain` reads it again.

    >>> shown("3.125", ",."), shown("10000", ",."), shown("a.b", ",.")
    ('3,125', '10000', 'a.b')
    """
    is_decimal = re.fullmatch(r"-?\d+\.\d*", text, re.ASCII)
    return text.replace(".", separators[0]) if is_decimal else text


def rounded_down(value: float) -> str:
    """Return a number as typed, rounded down to six digits.

    >>> rounded_down(1 / 3), rounded_down(2.0)
    ('0.333333', '2')
    """
    text = format(Context(prec=6, rounding=ROUND_FLOOR).create_decimal_from_float(value), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def written(value: float) -> str:
    """Return a number as typed, with every digit.

    >>> written(1.25), written(1e-7), written(3.0)
    ('1.25', '0.0000001', '3')
    """
    text = format(Decimal(str(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded_up(value: float) -> str:
    """Return a number as typed, rounded up to six digits.

    >>> rounded_up(3.00000001), rounded_up(0.5)
    ('3.00001', '0.5')
    """
    return format(Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(value), "f")
