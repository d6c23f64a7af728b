"""Options of commands from the fields of dataclasses: name, type, default and text of each."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from cyclopts import Group, Parameter

from deniable.cli import groups, options
from deniable.cli.typed import option_of
from deniable.design.request import Caps, Levels, Matrices, PairFractions, PerAttribute
from deniable.release.publication import Copy
from deniable.schema.names import split_names

T = TypeVar("T")

Reader = tuple[Any, Callable[[Any, Sequence[str], str], Any], str]
"""Type of an option; reader, which takes the value, the names of the protected attributes and the
option's name; end of its text, with the form of the value."""

READERS: dict[Any, Reader] = {
    PerAttribute: (
        str,
        options.number_or_numbers,
        ": 0.5 for all, or 0.9,0.5,0.4 or name=0.9,other=0.5 or @file",
    ),
    Levels: (str, options.numbers_per_attribute, ": 1,2,1.5 or name=1,other=2 or @file"),
    Mapping[str, float]: (str, options.numbers_by_name, ": name=3,other=1"),
    Caps: (str, options.caps, ""),
    PairFractions: (list[str], options.preserved, ": a:b=0.4; may be repeated"),
    Matrices: (
        list[str],
        options.matrices,
        ": name=file.json, made by frontier pick, or a list of rows; a,b=file.json merges "
        "attributes; may be repeated",
    ),
    "response": (
        list[str],
        lambda texts, _, option: options.pairs(texts, option, "name=design"),
        ": name=forced:2/3,1/6,1/6; may be repeated",
    ),
    "pair_floor": (str, options.floor, ""),
    tuple[str, ...]: (str, lambda text, *_: tuple(split_names(text)), ": a,b"),
    str | Path | None: (Path, lambda path, *_: path, ""),
    Sequence[Copy]: (list[Copy], lambda kinds, *_: kinds, "; may be repeated"),
}
"""By the type of a field, or its name."""

_GROUPS = {
    name: group
    for group, names in {
        groups.LEFT_OUT: "drop_other_columns accept_drafted overwrite show_values",
        groups.DESIGNED: "given_rest pair_floor importance at_most pairs max_questions "
        "allow_changed_levels form_column response",
        groups.STRENGTH: "attenuation strength preserve matrices",
        groups.FILE: "separator decimal encoding header columns dates sheet also",
        groups.COUNTED: "ledger population new_population new_ledger sign",
    }.items()
    for name in names.split()
}
"""Groups of options in the help; the others are main options."""


@dataclass(frozen=True)
class Typed(Generic[T]):
    """Typed options of the fields of a dataclass, by field."""

    kind: type[T]
    values: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.values)

    def read_one(self, name: str) -> Any:
        """Return the value of one field that needs no names of attributes; () if not given."""
        given = {name: self.values[name]} if name in self.values else {}
        return read_values(self.kind, given).get(name, ())

    def read(self, names: Sequence[str] = (), **given: Any) -> T:
        """Return the dataclass; ``names``: of the protected attributes, ``given``: other fields."""
        return self.kind(**read_values(self.kind, self.values, names), **given)


def read_values(
    kind: type[Any],
    values: Mapping[str, Any],
    names: Sequence[str] = (),
    readers: Mapping[Any, Reader] = READERS,
) -> dict[str, Any]:
    """Return the values of fields from those of their options."""
    hints = get_type_hints(kind)
    found = {name: readers.get(name) or readers.get(hints[name]) for name in values}
    return {
        name: value if (reader := found[name]) is None else reader[1](value, names, option_of(name))
        for name, value in values.items()
    }


def parameters(
    kind: type[Any],
    readers: Mapping[Any, Reader] = READERS,
    group_of: Callable[[str], Group] = lambda name: _GROUPS.get(name, groups.SHARED),
) -> list[inspect.Parameter]:
    """Return the options of a dataclass's fields."""
    hints, texts = get_type_hints(kind), _texts(kind)
    shown = []
    for one in fields(kind):
        default, typed, text = one.default, hints[one.name], texts.get(one.name, "")
        reader = readers.get(one.name) or readers.get(typed)
        if default is MISSING and one.default_factory is MISSING:
            default = inspect.Parameter.empty
            typed = reader[0] if reader else typed
        elif reader:
            typed, default = reader[0] | None, None
            text = f"{text.rstrip('.')}{reader[2]}."
        off = hints[one.name] == bool | None or default is True
        about = Parameter(
            name=option_of(one.name),
            group=group_of(one.name),
            help=text,
            negative=f"--no-{one.name.replace('_', '-')}" if off else (),
        )
        option = inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY)
        shown.append(option.replace(default=default, annotation=Annotated[typed, about]))
    return shown


def _texts(kind: type[Any]) -> dict[str, str]:
    """Return the text of each field, from Args of the class and of those that it extends."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        _, _, args = inspect.cleandoc(base.__dict__.get("__doc__") or "").partition("Args:\n")
        for name, text in re.findall(
            r"^    (\w+): (.*(?:\n {6,}.*)*)", args.split("\n\n")[0], re.M
        ):
            plain = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"\1", text).replace("``", "")
            plain = re.sub(r"`(\w+)`", lambda found: option_of(found[1]), plain)
            # ε and λ are symbols.
            first = plain[0].upper() if plain[0].isascii() else plain[0]
            texts[name] = " ".join((first + plain[1:]).split())
    return texts


def from_fields(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with an option for each field of its parameters of type :class:`Typed`;
    ``Annotated[Typed[…], "name other"]`` names the fields that it takes."""
    shown: list[inspect.Parameter] = []
    owners: dict[str, str] = {}
    kinds: dict[str, type[Any]] = {}
    for one in inspect.signature(command).parameters.values():
        typed, *only = (one.annotation,)
        if get_origin(typed) is Annotated:
            typed, *only = get_args(typed)
        if get_origin(typed) is not Typed:
            shown.append(one)
            continue
        (kinds[one.name],) = get_args(typed)
        for option in parameters(kinds[one.name]):
            if not only or option.name in only[0].split():
                owners[option.name] = one.name
                shown.append(option)

    def run(*words: Any, **given: Any) -> None:
        values: dict[str, dict[str, Any]] = {name: {} for name in kinds}
        for name in owners.keys() & given.keys():
            if (value := given.pop(name)) is not None:
                values[owners[name]][name] = value
        command(*words, **given, **{name: Typed(kinds[name], values[name]) for name in kinds})

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__module__ = command.__module__
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return run
