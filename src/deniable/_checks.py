"""Checks of plain arguments, made once where an object is built."""

import inspect
import math
import numbers
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

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


_Function = TypeVar("_Function", bound=Callable[..., Any])

_MEANT: dict[Any, tuple[Any, str]] = {
    str: (str, "a text"),
    float: (numbers.Real, "a number"),
    int: (numbers.Integral, "a whole number"),
    bool: (bool, "True or False"),
    Path: (os.PathLike, "a path"),
    Sequence: (Iterable, "a list"),
    NoneType: (NoneType, "None"),
}
"""Types of arguments: what is taken for each, and how it is called."""


def check_type(name: str, value: Any, hint: Any) -> None:
    """Stop at an argument that is of none of the types that its annotation names.

    Raises:
        InputError: naming the argument and the types, not the value.
    """
    hints = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = [str if get_origin(one) is Literal else get_origin(one) or one for one in hints]
    own = {
        kind: (kind, f"a {kind.__name__}")
        for kind in kinds
        if getattr(kind, "__module__", "").startswith("deniable.") and isinstance(kind, type)
    }
    if {str, Sequence[str]} <= set(hints) or len(own) > 1:
        return  # names and plans have sentences of their own
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        value = value.item()
    known = _MEANT | own
    if all(kind in known for kind in kinds) and not isinstance(
        value, tuple(known[kind][0] for kind in kinds)
    ):
        meant = " or ".join(dict.fromkeys(known[kind][1] for kind in kinds))
        raise InputError(f"{name} is {meant}, not {type(value).__name__}")


def typed(function: _Function) -> _Function:
    """Make a function stop at arguments of other types than its annotations name."""
    shown = inspect.signature(function)

    @wraps(function)
    def checked(*arguments: Any, **given: Any) -> Any:
        hints = get_type_hints(function)
        for name, value in shown.bind(*arguments, **given).arguments.items():
            check_type(name, value, hints[name])
        return function(*arguments, **given)

    return cast(_Function, checked)
