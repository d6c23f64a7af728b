"""How a table is read: the options typed in the page, and its first rows under them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.errors import InputError
from deniable.schema import FileFormat
from deniable.studio.paths import path_in
from deniable.studio.working import in_process
from deniable.tables.preview import Preview, preview

if TYPE_CHECKING:
    from deniable.studio.state import State

OPTIONS = ("encoding", "separator", "decimal", "header", "dates", "sheet")
"""The controls, named as the options of the command line."""

ENCODINGS = ("utf-8", "windows-1252", "latin-1", "iso-8859-15", "windows-1250", "utf-16-le")
"""The encodings offered."""


def typed_options(plain: Mapping[str, Any]) -> dict[str, str]:
    """Return a schema's ``[file]`` as the texts of the controls."""
    texts = {True: "yes", False: "no", "\t": "tab"}
    return {name: texts.get(plain[name], plain[name]) for name in OPTIONS if name in plain}


@dataclass(frozen=True)
class Reading:
    """A table and the options under which it is read."""

    table: str
    typed: Mapping[str, str]
    stated: Mapping[str, Any]

    @property
    def file_format(self) -> FileFormat:
        """The options, as the commands take them."""
        given: dict[str, Any] = {name: self.typed.get(name) or None for name in OPTIONS}
        given["header"] = {"yes": True, "no": False}.get(given["header"])
        return FileFormat(**self.stated).with_changes(FileFormat(**given))

    @property
    def options(self) -> list[str]:
        """The options of the command line that differ from the schema's."""
        stated = typed_options(self.stated)
        given = {name: text for name in OPTIONS if (text := self.typed.get(name))}
        changed = {name: text for name, text in given.items() if text != stated.get(name)}
        flag = {"yes": ["--header"], "no": ["--no-header"]}.get(changed.pop("header", ""), [])
        return [f"--{name}={text}" for name, text in changed.items()] + flag


def reading_in(studio: "State", view: str) -> Reading | None:
    """Return the table that a view reads, if it reads one, with its options."""
    draft, unread = studio.keeper.draft, studio.unread
    stated = draft.schema.get("file", {})
    if view == "release":
        form = {"table": draft.table, **typed_options(stated), **studio.filled.get(view, {})}
        return Reading(form["table"], form, stated) if form.get("table") else None
    if unread and (view == "start" or unread["which"] == draft.table):
        return Reading(unread["which"], unread, {}) if view in ("start", "schema") else None
    if draft.table and view == ("schema" if draft.attributes else "start"):
        return Reading(draft.table, typed_options(stated), stated)
    return None


async def look(studio: "State", view: str) -> None:
    """Read the first rows of the table that a view shows, unless they are held already."""
    if (reading := reading_in(studio, view)) is None:
        studio.preview = None
        return
    try:
        path, file_format = path_in(studio.folder, reading.table), reading.file_format
        key = (path, file_format, _changed(path))
        if studio.preview is None or studio.preview[0] != key:
            studio.preview = (key, await in_process(preview, path, file_format))
    except InputError as error:
        studio.preview = (None, Preview(problem=str(error)))


def _changed(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        raise InputError(f"{path}: there is no such file") from None
    return status.st_size, status.st_mtime_ns
