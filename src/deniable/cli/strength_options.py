"""λ, strengths, covariances and matrices as they are written on a command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.cli.options import entries, number
from deniable.design.strength import StrengthWishes
from deniable.errors import InputError
from deniable.laws.bistochastic import check_bistochastic


def by_attribute(
    text: str | None, names: Sequence[str], option: str
) -> float | dict[str, float] | None:
    """Return one number for all attributes, or numbers by name.

    Args:
        text: ``0.5``; one number per attribute in the order of ``names``; ``name=0.5`` for some of
            them; or ``@file`` with any of these.
        names: the protected attributes.
        option: the option's name, for the error message.

    Raises:
        InputError: if a value is not a number, a name is unknown or repeated, or there are more or
            fewer plain values than attributes.
    """
    if text is None:
        return None
    written = entries(text, option)
    named = [entry for entry in written if isinstance(entry, tuple)]
    if named and len(named) != len(written):
        raise InputError(f"{option}: write either plain values or name=value pairs, not both")
    if not named:
        values = [number(str(entry), option) for entry in written]
        if len(values) == 1:
            return values[0]
        if len(values) != len(names):
            raise InputError(
                f"{option}: {len(values)} values were given for {len(names)} attributes "
                f"({', '.join(names[:8])}{', …' if len(names) > 8 else ''}); give one for all, one "
                "each in this order, or name=value pairs"
            )
        return dict(zip(names, values, strict=True))
    by_name: dict[str, float] = {}
    for name, value in named:
        _check_name(name, names, option)
        if name in by_name:
            raise InputError(f"{option}: attribute '{name}' is given twice")
        by_name[name] = number(value, f"{option}, attribute '{name}'")
    return by_name


def shares(
    texts: Sequence[str] | None, names: Sequence[str], option: str = "--preserve"
) -> dict[tuple[str, str], float]:
    """Return shares of covariances by pair of attributes.

    Args:
        texts: ``a:b=0.4`` each, several separated by commas, or ``@file``.
        names: the protected attributes; a name may contain a colon.
        option: the option's name, for the error message.

    Raises:
        InputError: if an entry is something else, or an attribute is unknown.
    """
    found: dict[tuple[str, str], float] = {}
    for text in texts or []:
        for entry in entries(text, option):
            if not isinstance(entry, tuple):
                raise InputError(f"{option}: expected first:second=share, such as a:b=0.4")
            pair = _pair(entry[0], names, option)
            if pair in found:
                raise InputError(f"{option}: '{entry[0]}' is given twice")
            found[pair] = number(entry[1], f"{option}, {entry[0]}")
    return found


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


def _check_name(name: str, names: Sequence[str], option: str) -> None:
    if name not in names:
        raise InputError(
            f"{option}: there is no protected attribute '{name}'; there are "
            f"{', '.join(names[:12])}{', …' if len(names) > 12 else ''}"
        )


def matrices(
    texts: Sequence[str] | None, names: Sequence[str], option: str = "--matrix"
) -> dict[str, NDArray[np.float64]]:
    """Return response matrices by attribute, ``matrix[y, x]`` = Pr[output y | input x].

    Args:
        texts: ``name=file.json``; the file is a list of rows, and row x holds the probabilities of
            all answers to x, as in Ruiz's paper.
        names: the protected attributes.
        option: the option's name, for the error message.

    Raises:
        InputError: if an attribute is unknown or given twice, or a file holds no such matrix.
    """
    found: dict[str, NDArray[np.float64]] = {}
    for text in texts or []:
        name, equals, file = text.partition("=")
        if not equals:
            raise InputError(f"{option}: expected name=file.json")
        _check_name(name, names, option)
        if name in found:
            raise InputError(f"{option}: attribute '{name}' is given twice")
        try:
            content = Path(file).read_bytes()
        except OSError:
            raise InputError(f"{option}: the file {file} cannot be read") from None
        found[name] = matrix(decoded(content, f"{option}: {file}"), f"{option}: {file}")
    return found


def decoded(content: bytes, where: str) -> Any:
    """Return what JSON holds.

    Raises:
        InputError: if it is not JSON.
    """
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InputError(f"{where} is not JSON") from None


def matrix(rows: Any, where: str) -> NDArray[np.float64]:
    """Return a response matrix from plain rows, one per true category.

    Raises:
        InputError: if they are no bistochastic matrix; the sentence names the row or column as
            they are written.
    """
    try:
        lists = msgspec.convert(rows, list[list[float]])
    except msgspec.ValidationError:
        raise InputError(f"{where} is not a list of rows of numbers") from None
    if not lists or len({len(row) for row in lists}) != 1:
        raise InputError(f"{where}: all rows of a matrix need the same number of entries")
    try:
        return check_bistochastic(np.array(lists)).T
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def per_stratum(path: Path, names: Sequence[str]) -> dict[str, StrengthWishes]:
    """Return wishes by stratum from a JSON file.

    Args:
        path: an object: by stratum an object with ``lambda`` and ``strength`` (a number, or numbers
            by attribute), ``preserve`` (shares by ``"first:second"``) and ``matrix`` (rows by
            attribute).
        names: the protected attributes.

    Raises:
        InputError: if the file is no such object, or an attribute is unknown.
    """
    try:
        content = path.read_bytes()
    except OSError:
        raise InputError(f"{path}: the file with wishes per stratum cannot be read") from None
    try:
        written = msgspec.json.decode(content, type=dict[str, _Written])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a JSON object of wishes by stratum ({error})") from None
    found = {}
    for stratum, wishes in written.items():
        where = f"{path}, stratum '{stratum}'"
        for by_name in (wishes.attenuation, wishes.strength, wishes.matrix):
            for name in by_name if isinstance(by_name, dict) else {}:
                _check_name(name, names, where)
        found[stratum] = StrengthWishes(
            wishes.attenuation,
            wishes.strength,
            {_pair(pair, names, where): share for pair, share in wishes.preserve.items()},
            {name: matrix(rows, f"{where}, {name}") for name, rows in wishes.matrix.items()},
        )
    return found


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    """The wishes of one stratum as written."""

    attenuation: float | dict[str, float] | None = msgspec.field(default=None, name="lambda")
    strength: float | dict[str, float] | None = None
    preserve: dict[str, float] = {}
    matrix: dict[str, Any] = {}
