"""Files of a table, and its units of work."""

import glob
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable._checks import refuse_database
from deniable.errors import InputError
from deniable.tables.formats import TABLE_ENDINGS

UNIT_CELLS = 1 << 26
"""Row groups of a Parquet file form a unit until they have so many cells: seconds of work."""

_UNIT_ROWS = 1 << 17
"""Least number of rows of a unit, unless its file has fewer."""


def files_of(source: Any) -> list[Path] | None:
    """Return the files of a list, a folder or a pattern; None for any other source.

    A folder's tables are sorted by name; names that begin with a dot or an underscore are skipped:
    engines put such marks next to their parts.
    """
    if isinstance(source, list | tuple):
        if not all(isinstance(one, str | os.PathLike) for one in source):
            return None
        if not source:
            raise InputError("the list of tables is empty; name at least one")
        if len(source) > 1 and "-" in map(str, source):
            raise InputError("standard input cannot be combined with files; name it alone")
        named = [path for one in source for path in files_of(one) or [Path(one)]]
        _refuse_twice(named)
        return named
    if not isinstance(source, str | os.PathLike) or str(source) == "-":
        return None
    path = Path(source)
    refuse_database(source)
    if path.is_dir():
        return _in_folder(path)
    if path.exists() or not glob.has_magic(str(source)):
        return None
    paths = [Path(name) for name in sorted(glob.glob(str(source), recursive=True))]  # noqa: PTH207 - absolute ones too
    if not (paths := [one for one in paths if one.is_file()]):
        raise InputError(f"{source}: no file matches this pattern")
    _refuse_twice(paths)
    return paths


def _in_folder(folder: Path) -> list[Path]:
    if (folder / "study.json").is_file():
        raise InputError(
            f"{folder}: this is a study, whose records are already randomized; deniable collect "
            "export makes a release of it"
        )
    try:
        entries = sorted(entry for entry in folder.iterdir() if entry.name[0] not in "._")
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be read ({error.strerror})") from None
    other = [
        e.name for e in entries if not e.is_file() or not e.name.lower().endswith(TABLE_ENDINGS)
    ]
    tables = [entry for entry in entries if entry.name not in other]
    if not tables:
        raise InputError(f"{folder}: this folder has no tables ({', '.join(TABLE_ENDINGS)})")
    if other:
        raise InputError(
            f"{folder}: '{other[0]}' in it is no table; move it, or select the tables by a pattern "
            "such as 'FOLDER/*.parquet'"
        )
    _refuse_twice(tables)
    return tables


def _refuse_twice(files: Sequence[Path]) -> None:
    seen: dict[Any, Path] = {}
    for path in files:
        try:
            status = path.stat()
        except OSError:
            continue  # opening it raises
        own = (status.st_dev, status.st_ino) if status.st_ino else path.absolute()
        if own in seen:
            raise InputError(
                f"{path} and {seen[own]} are one file, and the people in it would be released "
                "twice; name it once"
            )
        seen[own] = path


@dataclass(frozen=True)
class Unit:
    """Rows processed together: a file, or some row groups of a Parquet file."""

    file: int
    first_group: int = 0
    end_group: int = 0
    rows_before: int = 0

    @property
    def groups(self) -> range | None:
        """Its row groups; None for all."""
        return range(self.first_group, self.end_group) if self.end_group else None


def units_of(files: Sequence[Path]) -> list[Unit]:
    """Return the units of some files, in order; an unreadable file is one unit."""
    return [unit for number, path in enumerate(files) for unit in _cut(number, path)]


def _cut(number: int, path: Path) -> list[Unit]:
    try:
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                return [Unit(number)]
            import pyarrow.parquet as pq

            metadata = pq.read_metadata(file)
    except (pa.ArrowException, OSError):
        return [Unit(number)]  # opening it raises
    enough = max(_UNIT_ROWS, UNIT_CELLS // max(1, metadata.num_columns))
    units: list[Unit] = []
    first = rows = before = 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= enough:
            units.append(Unit(number, first, group + 1, before))
            first, rows, before = group + 1, 0, before + rows
    if not units:
        return [Unit(number)]
    if rows:
        units.append(Unit(number, first, metadata.num_row_groups, before))
    return units if len(units) > 1 else [Unit(number)]


@dataclass(frozen=True)
class Identity:
    """Size, time of change and digest, by which a changed file is detected."""

    size: int
    changed: int
    digest: str


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: this is a folder, a pipe or a device; name a file")
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def identity_of(path: Path) -> Identity:
    """Return a file's identity; the digest of a Parquet file covers its footer only."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if file.read(4) == b"PAR1" and status.st_size > 12:
                file.seek(-8, os.SEEK_END)
                length = int.from_bytes(file.read(4), "little")
                file.seek(max(0, status.st_size - 8 - length))
            else:
                file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror})") from None
    return Identity(status.st_size, status.st_mtime_ns, digest)
