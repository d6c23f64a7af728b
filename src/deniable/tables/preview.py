"""Preview of a table, to check the options for reading it."""

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from deniable.errors import InputError
from deniable.schema import FileFormat, category_text
from deniable.tables.csv_source import CsvSource
from deniable.tables.reading import column_names, open_table
from deniable.tables.sheet_source import is_workbook, sheet_names

LIKELY_ENCODING = "windows-1252"
"""Proposed, never applied, for text that is not UTF-8."""


@dataclass(frozen=True)
class Preview:
    """First rows of a table, read with some options."""

    names: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    is_text: bool = False
    encoding: str = ""
    separator: str = ""
    decimal: str = ""
    sheets: tuple[str, ...] = ()
    problem: str = ""


def preview(path: Path, file_format: FileFormat, most: int = 5) -> Preview:
    """Return the first rows of a table, or the reason why it cannot be read.

    Text that is not UTF-8 is shown in :data:`LIKELY_ENCODING`, with the problem.
    """
    sheets: tuple[str, ...] = ()
    try:
        with path.open("rb") as file:
            if is_workbook(file.read(8)):
                file.seek(0)
                sheets = sheet_names(file, str(path))
        return replace(_first_rows(path, file_format, most), sheets=sheets)
    except OSError as error:
        return Preview(problem=f"{path}: the file cannot be read ({error.strerror})")
    except InputError as error:
        is_text = not sheets and path.suffix.lower() in (".csv", ".gz")
        shown = Preview(is_text=is_text, sheets=sheets)
        if file_format.encoding is None and is_text:
            likely = replace(file_format, encoding=LIKELY_ENCODING)
            with suppress(InputError):
                shown = _first_rows(path, likely, most)
        return replace(shown, problem=str(error))


def _first_rows(path: Path, file_format: FileFormat, most: int) -> Preview:
    names = column_names(path, file_format)
    with open_table(path, [], names, file_format=file_format) as reader:
        batch = next(iter(reader), None)
        columns = [] if batch is None else [batch.kept[name][:most].to_pylist() for name in names]
        source = reader.source
    rows = tuple(
        tuple(None if value is None else category_text(value) for value in row)
        for row in islice(zip(*columns, strict=True), most)
    )
    shown = Preview(tuple(names), rows, decimal=source.decimal)
    if isinstance(source, CsvSource):
        encoding, separator = source.encoding, source.separator
        return replace(shown, is_text=True, encoding=encoding, separator=separator)
    return shown
