"""Input formats: endings, first bytes and reader of each, in one table."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, Protocol

from deniable.errors import InputError
from deniable.schema import Attribute, FileFormat
from deniable.tables.csv_source import CsvSource
from deniable.tables.sheet_source import SheetSource, is_workbook
from deniable.tables.survey_source import SurveySource, is_encrypted, survey_program


class Source(Protocol):
    """A table of any format.

    ``decimal`` is the decimal point of numbers in text, ``dates`` the form of dates in text besides
    2025-12-31, ``surely_named`` whether the column names cannot be values of the first row, and
    ``released_as`` the format of a release.
    """

    table: str
    names: tuple[str, ...]
    decimal: str
    dates: str | None
    surely_named: bool
    released_as: Literal["csv", "parquet"]

    @property
    def fraction(self) -> float | None: ...
    def column_types(self, columns: Sequence[str]) -> list[Any]: ...
    def batches(self, columns: Sequence[str]) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Opening:
    """An open file and the arguments of its reader.

    ``encoded``: declared columns whose texts may come as dictionary codes or by their labels.
    ``expected``: names of all columns to read; ``keep``: those released unchanged.
    ``groups``: row groups of a Parquet file, None for all.
    """

    file: BinaryIO
    table: str
    batch_rows: int
    file_format: FileFormat
    encoded: Sequence[Attribute]
    expected: Collection[str]
    keep: Collection[str]
    groups: range | None


@dataclass(frozen=True)
class InputFormat:
    """A row of :data:`INPUT_FORMATS`.

    ``endings``: lower case, the usual one first; ``begins_with`` recognizes a file's first 64
    bytes.
    """

    name: str
    endings: tuple[str, ...]
    begins_with: Callable[[bytes], bool]
    open: Callable[[Opening], Source]


def _parquet(opening: Opening) -> Source:
    from deniable.tables.parquet_source import ParquetSource

    texts = [column.name for column in opening.encoded if column.bins is None]
    dates = opening.file_format.dates
    return ParquetSource(
        opening.file, opening.table, opening.batch_rows, texts, opening.groups, dates
    )


def _survey(name: str, program: str, *endings: str) -> InputFormat:
    def opened(opening: Opening) -> Source:
        declared = {column.name: column.names_of_categories() for column in opening.encoded}
        return SurveySource(opening.table, program, opening.file_format, declared)

    return InputFormat(name, endings, lambda start: survey_program(start) == program, opened)


def _workbook(opening: Opening) -> Source:
    # A draft declares no columns: error values stay in it as texts.
    texts = dict.fromkeys(opening.expected if opening.encoded else (), ()) | {
        column.name: (*column.categories, *column.missing_codes) for column in opening.encoded
    }
    return SheetSource(opening.file, opening.table, opening.batch_rows, opening.file_format, texts)


def _csv(opening: Opening) -> Source:
    return CsvSource(
        opening.file, opening.table, opening.file_format, opening.expected, opening.keep
    )


INPUT_FORMATS = (
    InputFormat("Parquet", (".parquet",), lambda start: start[:4] == b"PAR1", _parquet),
    _survey("SPSS", "spss", ".sav", ".zsav"),
    _survey("Stata", "stata", ".dta"),
    _survey("SAS", "sas", ".sas7bdat"),
    _survey("SAS transport", "xport", ".xpt"),
    InputFormat("Excel or OpenDocument", (".xlsx", ".xlsm", ".ods"), is_workbook, _workbook),
    InputFormat("CSV", (".csv", ".csv.gz"), lambda _: True, _csv),
)
"""Formats of files, the first whose first bytes fit is taken; PLINK filesets are several files."""

TABLE_ENDINGS = tuple(ending for one in INPUT_FORMATS for ending in one.endings)
"""Endings of the files that folders and dialogs list as tables, lower case."""


def open_source(opening: Opening) -> Source:
    """Open a file in the format of its first bytes."""
    start = b""
    if opening.file.seekable():
        start = opening.file.read(64)
        opening.file.seek(0)
    found = next(one for one in INPUT_FORMATS if one.begins_with(start))
    if found.name == "CSV":
        if is_encrypted(start):
            raise InputError(f"{opening.table}: the file is encrypted; save it without a password")
        for other in INPUT_FORMATS[:-1]:
            if opening.table.lower().endswith(other.endings):
                raise InputError(
                    f"{opening.table}: this is no {other.name} file; it is damaged, or its ending "
                    "is wrong"
                )
    return found.open(opening)
