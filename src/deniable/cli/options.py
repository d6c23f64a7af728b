"""Readers of option values.

Every option that takes one value per attribute accepts a list in the schema's order
(``1,2,1.5``), pairs (``age=1,sex=0.5``), or ``@file`` with either of them, commas or line breaks
between the values, or JSON (a list or an object). ``option``: name of the option in messages.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from deniable.design.request import Matrix, StrengthRequest
from deniable.errors import InputError
from deniable.strict_json import from_json

if TYPE_CHECKING:
    from deniable.statement.expected_tables import Assumed

Numbers = list[float] | dict[str, float]


def listed(text: str, option: str, names: Sequence[str] | None = None) -> Numbers:
    """Return numbers in the typed order, or by name if all have names."""
    parts = entries(text, option)
    named = [part for part in parts if isinstance(part, tuple)]
    if not named:
        return [number(str(part), option) for part in parts]
    if len(named) < len(parts):
        raise InputError(f"{option}: write either plain values or name=value pairs, not both")
    values: dict[str, float] = {}
    for name, value in named:
        if not name:
            raise InputError(f"{option}: expected name=number pairs")
        if names is not None:
            _check_name(name, names, option)
        if name in values:
            raise InputError(f"{option}: '{name}' is given twice")
        values[name] = number(value, f"{option}, '{name}'")
    return values


def numbers_per_attribute(text: str, names: Sequence[str], option: str) -> list[float]:
    """Return one number per attribute, shape (k,), in the order of ``names``."""
    values = _by_name(listed(text, option, names), names, option, "one each, in this order")
    if missing := [name for name in names if name not in values]:
        raise InputError(f"{option}: attribute '{missing[0]}' has no value")
    return [values[name] for name in names]


def number_or_numbers(text: str, names: Sequence[str], option: str) -> float | dict[str, float]:
    """Return one number for all attributes, or numbers by name."""
    values = listed(text, option, names)
    if isinstance(values, list) and len(values) == 1:
        return values[0]
    return _by_name(values, names, option, "one for all, one each in this order")


def _by_name(values: Numbers, names: Sequence[str], option: str, give: str) -> dict[str, float]:
    if isinstance(values, dict):
        return values
    if len(values) != len(names):
        raise InputError(
            f"{option}: {len(values)} values were given for {len(names)} attributes "
            f"({_some(names, 8)}); give {give}, or name=value pairs"
        )
    return dict(zip(names, values, strict=True))


def numbers_by_name(text: str, names: Sequence[str] | None, option: str) -> dict[str, float]:
    """Return numbers by name; ``names``: those that there are, None for any."""
    if any(isinstance(entry, str) for entry in entries(text, option)):
        raise InputError(f"{option}: expected name=number pairs")
    values = listed(text, option, names)
    assert isinstance(values, dict)  # every entry has a name
    return values


def assumed(text: str | None, tables: Sequence[str] | None) -> "Assumed":
    """Return the value of ``--assume``: "uniform", "worst", or shares by attribute."""
    option = "--assume"
    if text is not None and not tables:
        raise InputError(f"{option} is for --tables; give --tables too")
    if text is None or text == "uniform":
        return "uniform"
    if text == "worst":
        return "worst"
    shares: dict[str, list[float]] = {}
    for entry in entries(text, option):
        if isinstance(entry, str):
            raise InputError(f"{option}: expected uniform, worst or name=share:share:…")
        name, values = entry
        if name in shares:
            raise InputError(f"{option}: '{name}' is given twice")
        shares[name] = [number(value, f"{option}, '{name}'") for value in values.split(":")]
    return shares


def numbers(text: str, option: str) -> list[float]:
    """Return a comma-separated list (or ``@file``) of numbers."""
    values = listed(text, option)
    if isinstance(values, dict):
        raise InputError(f"{option}: expected a list of numbers, without names")
    return values


def _check_name(name: str, names: Sequence[str], option: str) -> None:
    if name not in names:
        raise InputError(
            f"{option}: there is no protected attribute '{name}'; there are {_some(names, 12)}"
        )


def _some(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def number(text: str, where: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: '{text}' is not a number") from None


def share(text: str, option: str) -> float:
    """Return a share or a difference of shares: ``2pt`` and ``2%`` are 0.02."""
    plain = text.strip()
    for unit in ("pt", "%"):
        if plain.endswith(unit):
            return number(plain.removesuffix(unit).strip(), option) / 100
    return number(plain, option)


def whole_numbers(text: str, option: str) -> list[int]:
    """Return a comma-separated list (or ``@file``) of whole numbers."""
    try:
        return [int(str(entry)) for entry in entries(text, option)]
    except ValueError:
        raise InputError(f"{option}: expected whole numbers such as 5,5,3") from None


def entries(text: str, option: str) -> list[str | tuple[str, str]]:
    """Return the parts of a list or of ``@file``: texts, or (name, value) pairs."""
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
    split: list[str | tuple[str, str]] = []
    for part in parts:
        # The last "=" separates, so that a column's name may contain one.
        name, equals, value = part.rpartition("=")
        split.append((name.strip(), value.strip()) if equals else part)
    return split


def _json_entries(text: str, where: str) -> list[str | tuple[str, str]]:
    try:
        decoded = from_json(text, list[float | str] | dict[str, float | str])
    except (msgspec.DecodeError, TypeError) as error:
        raise InputError(f"{where} is not a JSON list or object of numbers ({error})") from None
    if isinstance(decoded, dict):
        return [(name, str(value)) for name, value in decoded.items()]
    return [str(value) for value in decoded]


def caps(text: str, names: Sequence[str], option: str) -> str | float | list[float]:
    """Return caps: a multiple or "none" as text, one number, or one per attribute."""
    if text == "none" or (text.endswith(("x", "e")) and "," not in text and "@" not in text):
        return text
    if text.startswith("@") or "," in text or "=" in text:
        return numbers_per_attribute(text, names, option)
    return number(text, option)


def floor(text: str, _names: Sequence[str], option: str) -> float:
    """Return a number, 0 for "none"."""
    return 0.0 if text == "none" else number(text, option)


def pairs(texts: Sequence[str], option: str, form: str = "column=value") -> dict[str, str]:
    """Return name=value pairs, one per text; a value may contain any character."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{option}: expected {form}")
        if name in values:
            raise InputError(f"{option}: '{name}' is given twice")
        values[name] = value
    return values


def preserved(
    texts: Sequence[str], names: Sequence[str], option: str
) -> dict[tuple[str, str], float]:
    """Return the fractions of covariances to preserve, by pair of attributes."""
    fractions: dict[tuple[str, str], float] = {}
    for text in texts:
        if any(isinstance(entry, str) for entry in entries(text, option)):
            raise InputError(f"{option}: expected first:second=fraction, such as a:b=0.4")
        for written, fraction in numbers_by_name(text, None, option).items():
            pair = _pair(written, names, option)
            if pair in fractions:
                raise InputError(f"{option}: '{written}' is given twice")
            fractions[pair] = fraction
    return fractions


def _pair(text: str, names: Sequence[str], option: str) -> tuple[str, str]:
    places = [i for i, letter in enumerate(text) if letter == ":"]
    if not places:
        raise InputError(f"{option}: expected a pair such as a:b")
    splits = [(text[:i].strip(), text[i + 1 :].strip()) for i in places]
    known = [pair for pair in splits if pair[0] in names and pair[1] in names]
    if len(known) > 1:
        raise InputError(f"{option}: '{text}' can be read as several pairs; rename a column")
    if not known:
        for name in splits[0]:
            _check_name(name, names, option)
    return known[0]


def matrices(texts: Sequence[str], names: Sequence[str], option: str) -> dict[str, Matrix]:
    """Return response matrices by attribute, ``matrix[y, x]`` = Pr[output y | input x]."""
    by_name: dict[str, Matrix] = {}
    for name, file in pairs(texts, option, "name=file.json").items():
        _check_name(name, names, option)
        where = f"{option}: the file {file}"
        try:
            rows = from_json(_content(Path(file), where))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{where} is not JSON ({error})") from None
        by_name[name] = _matrix(rows, where)
    return by_name


def _content(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise InputError(f"{where} cannot be read") from None


def _matrix(rows: Any, where: str) -> Matrix:
    """Return a response matrix from plain rows, one per true category."""
    from deniable.design.matrices import response_of_rows

    try:
        return response_of_rows(rows).matrix()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def per_stratum(path: Path, names: Sequence[str]) -> dict[str, StrengthRequest]:
    """Return the strength of each stratum from a JSON file."""
    content = _content(path, f"{path}: the file with strengths per stratum")
    try:
        written = from_json(content, dict[str, _Written])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error).replace("`", "'")
        why = "'lambda' is now 'attenuation'" if "'lambda'" in why else why
        raise InputError(f"{path}: not a JSON object of strengths by stratum ({why})") from None
    by_stratum = {}
    for stratum, strengths in written.items():
        where = f"{path}, stratum '{stratum}'"
        for by_name in (strengths.attenuation, strengths.strength, strengths.matrix):
            for name in by_name if isinstance(by_name, dict) else {}:
                _check_name(name, names, where)
        by_stratum[stratum] = StrengthRequest(
            strengths.attenuation,
            strengths.strength,
            {_pair(pair, names, where): fraction for pair, fraction in strengths.preserve.items()},
            {name: _matrix(rows, f"{where}, {name}") for name, rows in strengths.matrix.items()},
        )
    return by_stratum


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    """Strength of a stratum in the JSON file."""

    attenuation: float | dict[str, float] | None = None
    strength: float | dict[str, float] | None = None
    preserve: dict[str, float] = {}
    matrix: dict[str, Any] = {}
