"""Checks of arguments, made where an object is built."""

import inspect
import math
import numbers
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cache, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from deniable.errors import InputError


def check_level(epsilon: float, where: str) -> float:
    """Return a privacy level in nats as a float."""
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
    """Return a ratio or an importance as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InputError(f"{where}: it must be a finite number above 0")
    return float(value)


def check_levels(
    attribute_epsilon: Sequence[float], names: Sequence[str], where: str = "attribute levels"
) -> tuple[float, ...]:
    """Return one checked level per attribute, shape (k,)."""
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
    """Return the first item that occurs a second time, or None."""
    seen: set[str] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


_DATABASE = re.compile(r"(sqlite|postgresql)(\+\w+)?:/")


def refuse_database(source: str | os.PathLike[str]) -> None:
    """Raise for a database's address or file, such as a study's store, in place of a table or
    record."""
    address = _DATABASE.match(str(source))
    if address is None and not _is_sqlite(Path(source)):
        return
    where = source if address is None else f"{address[1]}{address[2] or ''}://…"
    raise InputError(
        f"{where}: this is a database; if it is the store of a study, name the study's folder "
        "(estimate, inspect), or make a release of it with deniable collect export FOLDER "
        "--output RELEASE"
    )


def _is_sqlite(path: Path) -> bool:
    try:
        if not path.is_file():
            return False  # a pipe is not read
        with path.open("rb") as file:
            return file.read(16).startswith(b"SQLite format 3")
    except (OSError, ValueError):
        return False  # its reader raises


_Function = TypeVar("_Function", bound=Callable[..., Any])

_PLAIN: dict[Any, tuple[type | tuple[type, ...], str, str]] = {
    str: (str, "a text", "texts"),
    float: (numbers.Real, "a number", "numbers"),
    int: (numbers.Integral, "a whole number", "whole numbers"),
    bool: (bool, "True or False", "True or False"),
    Path: (os.PathLike, "a path", "paths"),
    date: (date, "a date", "dates"),
    NoneType: (NoneType, "None", "None"),
}
"""Types of arguments: accepted classes, and the name of one value and of several."""

_NAMED = {"ndarray": "matrix", "Any": "value"}
"""Names of types in messages."""
_SEQUENCES, _MAPPINGS = (Sequence, list, tuple), (Mapping, dict)


def check_type(name: str, value: Any, hint: Any) -> None:
    """Raise for an argument, or contents of one, of types other than annotated."""
    if not _wrong(value, hint):
        return
    hints = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if {str, Sequence[str]} <= set(hints) or sum(map(_is_own, hints)) > 1:
        return  # names and plans have messages of their own
    wrong = [_wrong(value, one) for one in hints]
    inside = [found for found in wrong if " with " in found]
    raise InputError(f"{name} is {_called(hint)}, not {(inside or wrong)[0]}")


def _is_own(hint: Any) -> bool:
    return isinstance(hint, type) and hint.__module__.startswith("deniable.")


def _wrong(value: Any, hint: Any) -> str:
    """Return the type of a value that does not fit an annotation; empty if it fits."""
    kind, inner, own = get_origin(hint) or hint, get_args(hint), type(value).__name__
    if kind in (Union, UnionType):
        found = [_wrong(value, one) for one in inner]
        return "" if "" in found else found[0]
    if kind is Literal:
        kind = str
    if kind in _PLAIN or _is_own(kind):
        if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
            value = value.item()
        of = _PLAIN[kind][0] if kind in _PLAIN else kind
        fits = isinstance(value, of) and not (kind in (int, float) and isinstance(value, bool))
        return "" if fits else own
    if kind is Callable:
        return "" if callable(value) else own
    if kind in _MAPPINGS:
        if not isinstance(value, Mapping):
            return own
        return _wrong_inside(own, value.keys(), inner[:1]) or _wrong_inside(
            own, value.values(), inner[1:]
        )
    if kind in _SEQUENCES:
        listed = hasattr(value, "__len__") and isinstance(value, Iterable)
        if not listed or isinstance(value, str | bytes | Mapping) or hasattr(value, "columns"):
            return own
        if kind is tuple and inner[-1:] != (...,) and len(value) != len(inner):
            return f"{own} of {len(value)}"
        return _wrong_inside(own, value, inner[:1])
    return ""


def _wrong_inside(own: str, values: Iterable[Any], hints: tuple[Any, ...]) -> str:
    """Return the type of a container and that of a misfit in it; empty if all fit."""
    if hints and hints[0] is not Any:
        for each in {type(each): each for each in values}.values():  # one per type
            if found := _wrong(each, hints[0]):
                return f"{own} with {found.removesuffix(' in it')} in it"
    return ""


def _called(hint: Any, *, many: bool = False) -> str:
    """Return the name of one, or several, values of an annotation."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return " or ".join(dict.fromkeys(_called(one, many=many) for one in inner))
    if kind is Literal:
        kind = str
    if kind in _PLAIN:
        _, one, several = _PLAIN[kind]
        return several if many else one
    if kind is Callable:
        return "functions" if many else "a function"
    if kind in _MAPPINGS:
        keys = "pair of names" if get_origin(inner[0]) is tuple else "name"
        return f"a dictionary of {_called(inner[1], many=True)} by {keys}"
    if kind in _SEQUENCES:
        listed = "lists" if many else "a list"
        return f"{listed} of {_called(inner[0], many=True)}" if inner else listed
    name = getattr(kind, "__name__", "value")
    name = _NAMED.get(name, name)
    return f"{name}s" if many else f"a {name}"


def check_fields(made: Any, **instead: Any) -> None:
    """Raise for dataclass fields of types other than annotated."""
    hints, defaults = _hints_of(type(made)), vars(type(made))  # type: ignore[arg-type]
    for name, value in vars(made).items():
        if type(value) is not hints[name] and value is not defaults.get(name, made):
            check_type(name, value, instead.get(name, hints[name]))


@cache
def _hints_of(made: Any) -> dict[str, Any]:
    return get_type_hints(made)


def typed(function: _Function) -> _Function:
    """Make a function raise for arguments of types other than annotated."""
    shown = inspect.signature(function)

    @wraps(function)
    def checked(*arguments: Any, **given: Any) -> Any:
        hints, bound = _hints_of(function), shown.bind(*arguments, **given).arguments
        for name, value in bound.items():
            if name in hints:  # and not self
                check_type(name, value, hints[name])
        return function(*arguments, **given)

    return cast(_Function, checked)
