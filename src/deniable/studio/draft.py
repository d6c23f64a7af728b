"""The draft and its file."""

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
from deniable.errors import InputError
from deniable.schema import Schema
from deniable.schema.declarations import Document
from deniable.statement.methods import DEFAULT_METHOD

ENDING = ".studio.toml"
"""How the name of a draft's file ends."""

DEFAULTS = {
    "rows": "10000",
    "within": "2",
    "kind": "total",
    "method": DEFAULT_METHOD,
    "assume": "uniform",
    "target": "table",
    "prior": "10",
    "waves": "1",
}
"""Defaults of the controls; ε and λ have none."""

MOST_PINS = 4
_MOST_STEPS = 200

Plain = Mapping[str, Any]


@dataclass(frozen=True)
class Draft:
    """A schema, a design request, and requests to compare with."""

    schema: Plain = field(default_factory=dict)
    controls: Mapping[str, str] = field(default_factory=dict)
    pins: tuple[Mapping[str, str], ...] = ()
    table: str = ""
    read: Mapping[str, str] = field(default_factory=dict)
    person: str = ""

    def made(self) -> Schema:
        """Return the schema."""
        return Schema.from_plain(self.schema)

    def with_controls(self, **typed: str) -> "Draft":
        """Return the draft with other values of some controls."""
        merged = {**self.controls, **typed}
        controls = {name: text for name, text in merged.items() if text != usual(name)}
        return replace(self, controls=controls)

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
        """The columns released unchanged."""
        return tuple(self.schema.get("keep", ()))

    def to_toml(self) -> str:
        """Return the text of its file."""
        named = {"table": self.table, "person": self.person, "read": self.read}
        plain = {**named, "controls": self.controls, "schema": self.schema, "pin": self.pins}
        return tomli_w.dumps({key: value for key, value in plain.items() if value})

    @classmethod
    def from_toml(cls, path: Path) -> "Draft":
        """Read a draft."""
        try:
            return cls.from_text(path.read_text(encoding="utf-8"), path)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", "") or error
            raise InputError(f"{path}: it cannot be read ({reason})") from None

    @classmethod
    def from_text(cls, text: str, path: Path) -> "Draft":
        """Return the draft that a text is, which a sentence calls by ``path``."""
        try:
            text.encode()  # else it was no UTF-8
            plain = tomllib.loads(text)
            read = msgspec.convert(msgspec.to_builtins(plain), _File)
            if read.schema:
                msgspec.convert(read.schema, Document)
            if not all(pin.get("pin") for pin in read.pin[:MOST_PINS]) or read.pin[MOST_PINS:]:
                raise ValueError(f"at most {MOST_PINS} are compared, each with a name, pin")
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: this is no draft of the studio ({error})") from None
        return cls(read.schema, read.controls, tuple(read.pin), read.table, read.read, read.person)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    table: str = ""
    person: str = ""
    read: dict[str, str] = {}
    controls: dict[str, str] = {}
    schema: dict[str, Any] = {}
    pin: list[dict[str, str]] = []


def usual(name: str) -> str:
    """Return the default of a control."""
    return DEFAULTS.get(name, "")


def names_of(attribute: Plain) -> tuple[str, ...]:
    """Return the names of the attributes that a declaration declares."""
    if attribute.get("names"):
        return tuple(map(str, attribute["names"]))
    parts = "+".join(name for part in attribute.get("part", ()) for name in names_of(part))
    return (str(attribute.get("name") or parts),)


def digest(*of: Any) -> str:
    """Return a name for plain values that no others have."""
    return hashlib.sha256(json.dumps(of, sort_keys=True, default=str).encode()).hexdigest()[:32]


class OutdatedError(InputError):
    """A change of the draft is not saved, because the file has been changed by another program."""

    def __init__(self, mine: Draft) -> None:
        super().__init__("the draft has been changed elsewhere; it was not saved")
        self.mine = mine


class Keeper:
    """Holds the draft, its earlier and later states, and its file."""

    def __init__(self, path: Path, draft: Draft) -> None:
        self.path, self.draft = path, draft
        self.unsaved = ""
        """Why the last change is not in the file; empty if it is."""
        self.unread = ""
        """Why the file, which another program has changed, is no draft; empty if it is one."""
        self.before: list[Draft] = []
        self.after: list[Draft] = []
        self.version = time.time_ns()  # rises also when the program is started again
        self.text = self._content()
        """The last known text of the file; None without a file."""

    @property
    def state(self) -> str:
        """Digest of the draft, and of the file's text if it is not a draft."""
        return digest(self.draft.to_toml(), self.unread and self.text)

    def look(self) -> None:
        """Take over changes of the file by another program, as a step that Undo reverts."""
        text = self._content()
        if text is None or text == self.text:
            return
        self.text = text
        self.version += 1
        try:
            found = Draft.from_text(text, self.path)
        except InputError as error:
            self.unread = str(error)
            return
        self.unread = self.unsaved = ""
        if found != self.draft:
            self.before, self.after = [*self.before[-_MOST_STEPS:], self.draft], []
            self.draft = found

    def change(self, to: Callable[[Draft], Draft], *, over: bool = False) -> None:
        """Put another draft in the place of this one."""
        new, old = to(self.draft), self.draft
        if new != old or (over and self.unread):
            self._put(new, over=over)
            self.before, self.after = [*self.before[-_MOST_STEPS:], old], []

    def undo(self) -> None:
        """Go back a step, if there is one."""
        if self.before:
            now = self.draft
            self._put(self.before[-1])
            self.after.append(now)
            self.before.pop()

    def redo(self) -> None:
        """Redo the step undone last."""
        if self.after:
            now = self.draft
            self._put(self.after[-1])
            self.before.append(now)
            self.after.pop()

    def earlier(self, state: str) -> Draft | None:
        """Return the draft of an earlier state, or a later one that was undone, by its name."""
        every = (self.draft, *reversed(self.before), *self.after)
        return next((one for one in every if digest(one.to_toml(), "") == state), None)

    def _content(self) -> str | None:
        try:
            return self.path.read_bytes().decode(errors="surrogateescape")
        except OSError:
            return None

    def _put(self, draft: Draft, *, over: bool = False) -> None:
        if (text := self._content()) is not None and text != self.text:
            self.look()
            raise OutdatedError(draft)
        if self.unread and not over:
            raise OutdatedError(draft)
        self.draft, self.unread = draft, ""
        self.version += 1
        try:
            text = draft.to_toml()
            write_file(self.path, text.encode(), overwrite=True)
            self.unsaved, self.text = "", text
        except InputError as error:
            self.unsaved = str(error)


class Sketch(Keeper):
    """A draft that is changed without its file."""

    def _put(self, draft: Draft, *, over: bool = False) -> None:
        del over  # nothing is replaced
        self.draft = draft
