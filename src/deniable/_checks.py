"""Checks of plain arguments, made once where an object is built."""

import math
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from deniable.errors import InputError


def check_level(epsilon: float, where: str) -> float:
    """Return a privacy level in nats as a float.

    Raises:
        InputError: if it is not a finite number above zero.
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise InputError(f"{where}: the privacy level must be a number of nats above 0")
    try:
        level = float(epsilon)
    except OverflowError:  # an integer beyond every float
        level = math.inf
    if not math.isfinite(level) or level <= 0:
        raise InputError(
            f"{where}: the privacy level must be finite and above 0 nats, not {level:g}"
        )
    return level


def check_positive(value: float, where: str) -> float:
    """Return a ratio or an importance as a float.

    Raises:
        InputError: if it is not a finite number above zero.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InputError(f"{where}: it must be a finite number above 0")
    return float(value)


def check_levels(
    attribute_epsilon: Sequence[float], names: Sequence[str], where: str = "attribute levels"
) -> tuple[float, ...]:
    """Return one checked level per attribute, shape (k,).

    Raises:
        InputError: if there are too many or too few, or one is not finite and above zero.
    """
    if len(attribute_epsilon) != len(names):
        raise InputError(
            f"{where}: {len(attribute_epsilon)} levels were given for {len(names)} attributes; "
            "give one per attribute, in the schema's order"
        )
    return tuple(
        check_level(level, f"attribute '{name}'")
        for level, name in zip(attribute_epsilon, names, strict=True)
    )


def first_duplicate(items: Iterable[str]) -> str | None:
    """Return the first item that occurs a second time, or None.

    >>> first_duplicate(["sex", "age", "sex"]), first_duplicate(["sex", "age"])
    ('sex', None)
    """
    seen: set[str] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


_DATABASE = re.compile(r"(sqlite|postgresql)(\+\w+)?:/")


def refuse_database(source: str | os.PathLike[str]) -> None:
    """Refuse a database's address or file where a table or a record is read: the store of a study.

    Raises:
        InputError: if it is one; an address is not repeated, as it may have a password in it.
    """
    address = _DATABASE.match(str(source))
    if address is None and not _is_sqlite(Path(source)):
        return
    where = source if address is None else f"{address[1]}{address[2] or ''}://…"
    raise InputError(
        f"{where}: this is a database; if it is the store of a study, name the study's folder "
        "(estimate, test, inspect), or make a release of it with deniable collect export FOLDER "
        "--output RELEASE"
    )


def _is_sqlite(path: Path) -> bool:
    try:
        if not path.is_file():
            return False  # from a pipe nothing is taken
        with path.open("rb") as file:
            return file.read(16).startswith(b"SQLite format 3")
    except (OSError, ValueError):
        return False  # whoever reads it will say
