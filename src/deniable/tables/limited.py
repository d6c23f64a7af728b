"""Damaged or malicious files, first read in a child process with limits of memory and time.

The libraries for workbooks and SPSS files abort the process on some files, or allocate as much as
these declare. The child runs this file as a script, which imports no module of the package.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError, iterparse
from zipfile import BadZipFile, ZipFile

MEMORY, _SECONDS = 2 << 30, 600
"""Bytes and CPU seconds available to a child, where the system has such limits."""

_ERROR = re.compile(rb"""\bt\s*=\s*["']e["']|value-type\s*=\s*["']error["']""")
"""Attribute of a cell with an error value, in .xlsx and in .ods."""


def tried(kind: str, table: str, *words: str) -> str | None:
    """Return a child's output on reading a file; None if it died or reached a limit."""
    status = Path(table).stat()
    return _tried(kind, str(Path(table).absolute()), words, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _tried(kind: str, path: str, words: tuple[str, ...], _size: int, _changed: int) -> str | None:
    done = subprocess.run(
        [sys.executable, "-P", __file__, kind, path, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONUTF8": "1",
            "RUST_BACKTRACE": "0",
        },
    )
    return None if done.returncode else done.stdout.decode()


def rows_of(sheet: Any, errors: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the non-empty rows of a sheet with their numbers from 1; empty cells are None.

    ``errors``: row and column, from 1, and text of each error value.
    """
    first = (sheet.start or (0, 0))[1] + 1
    of_row: dict[int, dict[int, str]] = {}
    for row, column, text in errors:
        of_row.setdefault(row, {})[column - first] = text
    for number, row in enumerate(sheet.iter_rows(), 1):
        cells = [None if cell == "" else cell for cell in row]
        for place, text in of_row.get(number, {}).items():
            cells[place] = text
        if any(cell is not None for cell in cells):
            yield number, cells


def _workbook(path: str, sheet: str) -> str:
    """Return the cells with error values as JSON: row and column from 1, and the error. Null for
    other kinds of workbook, such as .xlsb."""
    import python_calamine

    try:
        with Path(path).open("rb") as file:
            workbook = python_calamine.CalamineWorkbook.from_filelike(file)
        names = workbook.sheet_names
        sheet = sheet or (names[0] if len(names) == 1 else "")
        if sheet not in names:
            return "[]"
        cells = workbook.get_sheet_by_name(sheet)
    except MemoryError:
        raise
    except Exception:
        return "[]"  # the parent raises it too
    try:
        with ZipFile(path) as parts:
            errors = _errors(parts, sheet)
        _held = list(rows_of(cells, errors))
    except (OSError, ValueError, LookupError, StopIteration, BadZipFile, ParseError):
        return "null"
    return json.dumps(errors)


def _errors(parts: ZipFile, sheet: str) -> list[tuple[int, int, str]]:
    part = "content.xml" if "content.xml" in parts.namelist() else _part(parts, sheet)
    with parts.open(part) as content:
        before = b""
        while block := content.read(1 << 20):
            if _ERROR.search(before + block):
                break
            before = block[-64:]
        else:
            return []
    with parts.open(part) as content:
        return list(_ods_errors(content, sheet) if part == "content.xml" else _xlsx_errors(content))


def _part(parts: ZipFile, sheet: str) -> str:
    """Return the part of an .xlsx file that holds a sheet."""

    def targets(part: str) -> dict[str, tuple[str, str]]:
        folder, _, name = part.rpartition("/")
        with parts.open(f"{folder}/_rels/{name}.rels".lstrip("/")) as content:
            found = [
                dict(one.attrib) for _, one in iterparse(content) if _tag(one) == "Relationship"
            ]
        return {
            one["Id"]: (
                one["Type"].rpartition("/")[2],
                os.path.normpath(f"{'' if one['Target'][0] == '/' else folder}/{one['Target']}")
                .replace(os.sep, "/")
                .lstrip("/"),
            )
            for one in found
        }

    book = next(part for kind, part in targets("").values() if kind == "officeDocument")
    with parts.open(book) as content:
        (own,) = [
            value
            for _, one in iterparse(content)
            if _tag(one) == "sheet" and one.get("name") == sheet
            for key, value in one.attrib.items()
            if key.endswith("}id")
        ]
    return targets(book)[own][1]


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _attribute(element: Any, name: str) -> str | None:
    return next((value for key, value in element.items() if key.endswith(f"}}{name}")), None)


def _xlsx_errors(content: Any) -> Iterator[tuple[int, int, str]]:
    row = column = 0
    for event, one in iterparse(content, ("start", "end")):
        tag = _tag(one)
        if tag == "row" and event == "start":
            row, column = int(one.get("r", row + 1)), 0
        elif tag == "c" and event == "end":
            place = re.match("[A-Z]+", one.get("r", ""))
            column += 1
            if place:
                column = 0
                for letter in place[0]:
                    column = 26 * column + ord(letter) - 64
            if one.get("t") == "e":
                yield row, column, next((v.text or "" for v in one if _tag(v) == "v"), "")
        elif tag == "row":
            one.clear()


def _ods_errors(content: Any, sheet: str) -> Iterator[tuple[int, int, str]]:
    row, wanted = 0, False
    for event, one in iterparse(content, ("start", "end")):
        tag = _tag(one)
        if tag == "table" and event == "start":
            row, wanted = 0, _attribute(one, "name") == sheet
        elif tag == "table-row" and event == "end":
            column = 1
            for cell in one if wanted else ():
                if "error" in (v for k, v in cell.items() if k.endswith("}value-type")):
                    yield row + 1, column, "".join(cell.itertext())
                column += int(_attribute(cell, "number-columns-repeated") or 1)
            row += int(_attribute(one, "number-rows-repeated") or 1)
            one.clear()


def _spss(path: str, encoding: str) -> str:
    import pyreadstat

    with suppress(Exception):  # the parent raises it too
        pyreadstat.read_sav(path, row_limit=100, output_format="dict", encoding=encoding or None)
    return ""


if __name__ == "__main__":
    with suppress(ImportError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write({"workbook": _workbook, "spss": _spss}[sys.argv[1]](*sys.argv[2:]))
