"""Values per attribute as they are written on a command line.

Every option that takes one value per attribute accepts a list in the schema's order
(``1,2,1.5``), pairs (``age=1,sex=0.5``), or ``@file`` with either of them, commas or line breaks
between the values, or JSON (a list or an object).
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from deniable.errors import InputError


def values_per_attribute(text: str, names: Sequence[str], option: str) -> list[str]:
    """Return one text per attribute, shape (k,), in the order of ``names``.

    Args:
        text: what the user wrote.
        names: the attributes that need a value, in order.
        option: the option's name, for the error message.

    Raises:
        InputError: if a value is missing, there are too many, or a name is unknown or repeated.
    """
    listed = entries(text, option)
    named = [entry for entry in listed if isinstance(entry, tuple)]
    if not named:
        if len(listed) != len(names):
            raise InputError(
                f"{option}: {len(listed)} values were given for {len(names)} attributes "
                f"({', '.join(names[:8])}{', …' if len(names) > 8 else ''}); give one each, in "
                "this order, or name=value pairs"
            )
        return [str(entry) for entry in listed]
    if len(named) != len(listed):
        raise InputError(f"{option}: write either plain values or name=value pairs, not both")
    values: dict[str, str] = {}
    for name, value in named:
        if name not in names:
            raise InputError(f"{option}: there is no protected attribute '{name}'")
        if name in values:
            raise InputError(f"{option}: attribute '{name}' is given twice")
        values[name] = value
    if missing := [name for name in names if name not in values]:
        raise InputError(f"{option}: attribute '{missing[0]}' has no value")
    return [values[name] for name in names]


def numbers_per_attribute(text: str, names: Sequence[str], option: str) -> list[float]:
    """Return one number per attribute, shape (k,), in the order of ``names``.

    Raises:
        InputError: as :func:`values_per_attribute`, or if a value is not a number.
    """
    return [
        number(value, f"{option}, attribute '{name}'")
        for name, value in zip(names, values_per_attribute(text, names, option), strict=True)
    ]


def number(text: str, where: str) -> float:
    """Return a number.

    Raises:
        InputError: if the text is none.
    """
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: '{text}' is not a number") from None


def whole_numbers(text: str, option: str) -> list[int]:
    """Return a comma-separated list (or ``@file``) of whole numbers.

    Raises:
        InputError: if an entry is something else.
    """
    try:
        return [int(str(entry)) for entry in entries(text, option)]
    except ValueError:
        raise InputError(f"{option}: expected whole numbers such as 5,5,3") from None


def entries(text: str, option: str) -> list[str | tuple[str, str]]:
    """Return the parts of a list as typed, or of ``@file``: texts, or (name, value) pairs.

    Raises:
        InputError: if there is none, or the file cannot be read.
    """
    if text.startswith("@"):
        path = Path(text[1:])
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{option}: the file {path} cannot be read") from None
        if text.lstrip().startswith(("[", "{")):
            return _json_entries(text, f"{option}: the file {path}")
    parts = [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]
    if not parts:
        raise InputError(f"{option}: no value is given")
    found: list[str | tuple[str, str]] = []
    for part in parts:
        # The last "=" separates, so that a column's name may contain one.
        name, equals, value = part.rpartition("=")
        found.append((name.strip(), value.strip()) if equals else part)
    return found


def _json_entries(text: str, where: str) -> list[str | tuple[str, str]]:
    try:
        decoded = msgspec.json.decode(
            text.encode(), type=list[float | str] | dict[str, float | str]
        )
    except (msgspec.DecodeError, TypeError):
        raise InputError(f"{where} is not a JSON list or object of numbers") from None
    if isinstance(decoded, dict):
        return [(name, str(value)) for name, value in decoded.items()]
    return [str(value) for value in decoded]


def caps(text: str, names: Sequence[str]) -> str | float | list[float]:
    """Return what ``--given-rest`` means: a multiple or "none" as written, one number, or one per
    attribute.

    Raises:
        InputError: if it is none of these.
    """
    option = "--given-rest"
    if text.endswith("x") or text == "none":
        return text
    if text.startswith("@") or "," in text or "=" in text:
        return numbers_per_attribute(text, names, option)
    return number(text, option)


def floor(text: str) -> float:
    """Return what ``--pair-floor`` means: a number, or 0 for "none".

    Raises:
        InputError: if it is neither.
    """
    return 0.0 if text == "none" else number(text, "--pair-floor")


def some_numbers(text: str | None, names: Sequence[str], option: str) -> dict[str, float]:
    """Return name=number pairs for some of the attributes.

    Raises:
        InputError: if an entry is something else, or a name is unknown or repeated.
    """
    found: dict[str, float] = {}
    for entry in entries(text, option) if text is not None else []:
        if not isinstance(entry, tuple):
            raise InputError(f"{option}: expected name=number pairs")
        name, value = entry
        if name not in names:
            raise InputError(f"{option}: there is no protected attribute '{name}'")
        if name in found:
            raise InputError(f"{option}: attribute '{name}' is given twice")
        found[name] = number(value, f"{option}, attribute '{name}'")
    return found


def named_numbers(text: str | None, option: str) -> dict[str, float]:
    """Return name=number pairs, whatever the names; nothing for no text.

    Raises:
        InputError: if an entry is something else, or a name is repeated.
    """
    found: dict[str, float] = {}
    for entry in entries(text, option) if text is not None else []:
        if not isinstance(entry, tuple) or not entry[0]:
            raise InputError(f"{option}: expected name=number pairs")
        name, value = entry
        if name in found:
            raise InputError(f"{option}: '{name}' is given twice")
        found[name] = number(value, f"{option}, '{name}'")
    return found


def numbers(text: str, option: str) -> list[float]:
    """Return a comma-separated list (or ``@file``) of numbers.

    Raises:
        InputError: if an entry is something else.
    """
    return [number(str(entry), option) for entry in entries(text, option)]


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return name=value pairs, one a text; the value may contain anything.

    Raises:
        InputError: if an entry is something else, or a name is repeated.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{option}: expected column=value")
        if name in found:
            raise InputError(f"{option}: '{name}' is given twice")
        found[name] = value
    return found
