"""What somebody has in mind, and the file that it is kept in."""

import hashlib
import json
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from deniable.atomic_files import write_file
from deniable.design.methods import DEFAULT_METHOD
from deniable.errors import InputError
from deniable.schema import Schema
from deniable.schema.declarations import Document

ENDING = ".studio.toml"
"""How the name of a draft's file ends."""

DEFAULTS = {
    "rows": "10000",
    "within": "2",
    "kind": "total",
    "epsilon": "4",
    "level": "1",
    "method": DEFAULT_METHOD,
    "assume": "uniform",
    "prior": "10",
}
"""What stands in a control before something else is put there."""

MOST_PINS = 4
_MOST_STEPS = 200

Plain = Mapping[str, Any]


@dataclass(frozen=True)
class Draft:
    """A schema, what is wished of a design of it, and wishes to compare with.

    Args:
        schema: as in a schema file; empty before there is one. What somebody types is kept even if
            no schema can be made of it.
        wish: what stands in each control, by the control's name.
        pins: up to four wishes, each with a name (``pin``), to compare with.
        table: the file with the people's rows, if it was named.
        read: the columns of that file, each with the reason why it was set aside, if it was.
        person: the column with the person's id, if it was named.
    """

    schema: Plain = field(default_factory=dict)
    wish: Mapping[str, str] = field(default_factory=dict)
    pins: tuple[Mapping[str, str], ...] = ()
    table: str = ""
    read: Mapping[str, str] = field(default_factory=dict)
    person: str = ""

    def made(self) -> Schema:
        """Return the schema.

        Raises:
            InputError: if none can be made of what was typed.
        """
        return Schema.from_plain(self.schema)

    def with_wish(self, **typed: str) -> "Draft":
        """Return the draft with something else in some controls."""
        merged = {**self.wish, **typed}
        wish = {name: text for name, text in merged.items() if text != usual(name)}
        return replace(self, wish=wish)

    @property
    def attributes(self) -> tuple[Plain, ...]:
        """The attributes as declared."""
        return tuple(self.schema.get("attribute", ()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names that the attributes have, in order."""
        return tuple(name for one in self.attributes for name in names_of(one))

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that are released as they are."""
        return tuple(self.schema.get("keep", ()))

    def to_toml(self) -> str:
        """Return the text of its file."""
        named = {"table": self.table, "person": self.person, "read": self.read}
        plain = {**named, "wish": self.wish, "schema": self.schema, "pin": self.pins}
        return tomli_w.dumps({key: value for key, value in plain.items() if value})

    @classmethod
    def from_toml(cls, path: Path) -> "Draft":
        """Read a draft.

        Raises:
            InputError: if the file is none.
        """
        try:
            plain = tomllib.loads(path.read_text(encoding="utf-8"))
            read = msgspec.convert(msgspec.to_builtins(plain), _File)
            if read.schema:
                msgspec.convert(read.schema, Document)
            if not all(pin.get("pin") for pin in read.pin[:MOST_PINS]) or read.pin[MOST_PINS:]:
                raise ValueError(f"at most {MOST_PINS} are compared, each with a name, pin")
        except OSError as error:
            raise InputError(f"{path}: it cannot be read ({error.strerror or error})") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: this is no draft of the studio ({error})") from None
        return cls(read.schema, read.wish, tuple(read.pin), read.table, read.read, read.person)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    table: str = ""
    person: str = ""
    read: dict[str, str] = {}
    wish: dict[str, str] = {}
    schema: dict[str, Any] = {}
    pin: list[dict[str, str]] = []


def usual(name: str) -> str:
    """Return what stands in a control at first; in those of all levels the same."""
    return DEFAULTS.get("level" if name.startswith("level.") else name, "")


def names_of(attribute: Plain) -> tuple[str, ...]:
    """Return the names of the attributes that a declaration declares.

    >>> names_of({"names": ["a", "b"]}), names_of({"part": [{"name": "a"}, {"name": "b"}]})
    (('a', 'b'), ('a+b',))
    """
    if attribute.get("names"):
        return tuple(map(str, attribute["names"]))
    parts = "+".join(name for part in attribute.get("part", ()) for name in names_of(part))
    return (str(attribute.get("name") or parts),)


def digest(*of: Any) -> str:
    """Return a name for plain values that no others have."""
    return hashlib.sha256(json.dumps(of, sort_keys=True, default=str).encode()).hexdigest()[:32]


class Keeper:
    """Holds the draft, its earlier and later states, and its file.

    Args:
        path: the file, written after every change, whole or not at all.
        draft: what is in it, or will be.
    """

    def __init__(self, path: Path, draft: Draft) -> None:
        self.path, self.draft = path, draft
        self.unsaved = ""
        """Why the last change is not in the file; empty if it is."""
        self.before: list[Draft] = []
        self.after: list[Draft] = []
        self.version = time.time_ns()  # rises also when the program is started again

    def change(self, to: Callable[[Draft], Draft]) -> None:
        """Put another draft in the place of this one.

        Raises:
            InputError: if ``to`` does.
        """
        new = to(self.draft)
        if new != self.draft:
            self.before, self.after = [*self.before[-_MOST_STEPS:], self.draft], []
            self._put(new)

    def undo(self) -> None:
        """Go back a step, if there is one."""
        if self.before:
            self.after.append(self.draft)
            self._put(self.before.pop())

    def redo(self) -> None:
        """Take back what was undone last."""
        if self.after:
            self.before.append(self.draft)
            self._put(self.after.pop())

    def _put(self, draft: Draft) -> None:
        self.draft = draft
        self.version += 1
        try:
            write_file(self.path, draft.to_toml().encode(), overwrite=True)
            self.unsaved = ""
        except InputError as error:
            self.unsaved = str(error)
