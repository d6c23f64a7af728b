"""Sheets of Excel and OpenDocument workbooks as record batches."""

import datetime
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO, Literal

import pyarrow as pa

from deniable.errors import InputError, notify
from deniable.numerals import count_text
from deniable.schema import BLANKS, FileFormat
from deniable.tables.encode import truth_values
from deniable.tables.limited import MEMORY, rows_of, tried
from deniable.tables.survey_source import need

_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
"""First bytes of encrypted workbooks and of the old binary format (.xls)."""

_FIRST_ROWS = 50
"""Number of rows searched for the header."""


def is_workbook(start: bytes) -> bool:
    """Return whether these are a workbook's first bytes."""
    return start.startswith((b"PK\x03\x04", _OLE))


class SheetSource:
    """A sheet of a workbook, held in memory: it has at most a million rows, and one beyond
    :data:`~deniable.tables.limited.MEMORY` is refused.

    The header is the first row as wide as the sheet; rows above it, such as titles, are left out
    with a notice. Formulas are read as their stored values. Columns of whole numbers, numbers,
    booleans, dates and moments have these types; others are text. An error value, such as #N/A, is
    the text of its name.
    """

    decimal = "."
    released_as: Literal["csv", "parquet"] = "csv"

    def __init__(
        self,
        file: BinaryIO,
        table: str,
        batch_rows: int,
        file_format: FileFormat,
        declared: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> None:
        need("python_calamine", table, "workbooks")
        self.table = table
        self.dates = file_format.dates
        self._batch_rows = batch_rows
        self._done = 0
        name, first, numbered, errors = self._rows(file, file_format.sheet)
        rows = [row for _, row in numbered]
        width = max((len(row) for row in rows), default=0)
        if not rows:
            raise InputError(
                f"{table}: sheet '{name}' is empty; name another with `schema.file.sheet`"
            )
        self.surely_named = file_format.header is True
        if file_format.has_header:
            place = _header(rows)
            self.names = tuple(_text(cell) or "" for cell in rows[place])
            top = numbered[place][0]
            if place and not _was_noticed(table, name, top):
                notify(
                    f"{table}, sheet '{name}': row {top} is taken as the header; the rows above it "
                    "are left out",
                )
            rows = rows[place + 1 :]
            errors = [error for error in errors if error[0] > top]
        else:
            self.names = file_format.columns or tuple(f"column {i + 1}" for i in range(width))
            if len(self.names) != width:
                raise InputError(
                    f"{table}: sheet '{name}' has {count_text(width, 'column')} and "
                    f"{count_text(len(self.names), 'name')} given"
                )
        for row, column, text in errors:
            held = self.names[column - 1 - first]
            if text not in declared.get(held, (text,)):
                raise InputError(
                    f"{table}, sheet '{name}', row {row}, column '{held}': the cell holds the "
                    f"error value {text}; correct it, or declare the attribute's missing and "
                    f'missing_codes = ["{text}"] in the schema'
                )
        self._n_rows = len(rows)
        columns = list(zip(*rows, strict=True)) or [()] * width
        self._columns = {
            name: _array(cells, _truth(declared.get(name, ())))
            for name, cells in zip(self.names, columns, strict=True)
        }

    def _rows(
        self, file: BinaryIO, sheet: str | None
    ) -> tuple[str, int, list[tuple[int, list[Any]]], list[tuple[int, int, str]]]:
        """Return the sheet's name, the place of its first column, its numbered rows, and its error
        values by row and column."""
        workbook, errors = _opened(file, self.table, sheet)
        names = list(workbook.sheet_names)
        if sheet is None:
            if len(names) != 1:
                shown = ", ".join(f"'{name}'" for name in names)
                raise InputError(
                    f"{self.table}: the workbook has {len(names)} sheets, {shown}; set "
                    "`schema.file.sheet` to that of the table"
                )
            sheet = names[0]
        if sheet not in names:
            shown = ", ".join(f"'{name}'" for name in names)
            raise InputError(f"{self.table}: there is no sheet '{sheet}'; its sheets are {shown}")
        try:
            cells = workbook.get_sheet_by_name(sheet)
            rows = list(rows_of(cells, errors))
        except Exception:
            raise InputError(
                f"{self.table}: sheet '{sheet}' cannot be read; it is damaged"
            ) from None
        return sheet, (cells.start or (0, 0))[1], rows, errors

    @property
    def fraction(self) -> float | None:
        """Fraction read, from 0 to 1."""
        return self._done / max(1, self._n_rows)

    def column_types(self, columns: Sequence[str]) -> list[Any]:
        """Return the pyarrow types of some columns."""
        return [self._columns[name].type for name in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""
        arrays = [self._columns[name] for name in columns]
        for start in range(0, self._n_rows if columns else 0, self._batch_rows):
            pieces = [array.slice(start, self._batch_rows) for array in arrays]
            self._done = min(start + self._batch_rows, self._n_rows)
            yield pa.RecordBatch.from_arrays(pieces, names=list(columns))


_NOTICED: set[tuple[str, str, int]] = set()


def _was_noticed(table: str, sheet: str, place: int) -> bool:
    """Return whether the notice on the header was given: a table is read more than once."""
    key = (table, sheet, place)
    if key in _NOTICED:
        return True
    _NOTICED.add(key)
    return False


def sheet_names(file: BinaryIO, table: str) -> tuple[str, ...]:
    """Return the names of a workbook's sheets."""
    need("python_calamine", table, "workbooks")
    return tuple(_opened(file, table, None)[0].sheet_names)


def _opened(
    file: BinaryIO, table: str, sheet: str | None
) -> tuple[Any, list[tuple[int, int, str]]]:
    """Return a workbook, and the error values of a sheet by row and column."""
    import python_calamine

    if file.read(8) == _OLE:
        raise _encrypted(table)
    file.seek(0)
    if (tried_output := tried("workbook", table, sheet or "")) is None:
        raise InputError(
            f"{table}: the workbook cannot be read within {MEMORY >> 30} GiB of memory; "
            "it is damaged, or a cell far from the table makes the sheet huge: delete the rows "
            "and columns outside the table, or save the sheet as CSV"
        )
    try:
        workbook = python_calamine.CalamineWorkbook.from_filelike(file)
    except python_calamine.PasswordError:
        raise _encrypted(table) from None
    except Exception:
        raise InputError(
            f"{table}: this is no readable Excel or OpenDocument workbook; it is damaged, or "
            "another kind of file"
        ) from None
    if (errors := json.loads(tried_output)) is None:
        raise _encrypted(table)
    return workbook, errors


def _encrypted(table: str) -> InputError:
    return InputError(
        f"{table}: the workbook is encrypted, an .xlsb, or of Excel before 2007; save "
        "it as .xlsx without a password"
    )


def _header(rows: Sequence[Sequence[Any]]) -> int:
    """Return the first row in which most cells are filled."""
    filled = [sum(cell is not None for cell in row) for row in rows[:_FIRST_ROWS]]
    widest = max(filled)
    return next(place for place, count in enumerate(filled) if count == widest)


def _truth(texts: Collection[str]) -> dict[bool, str]:
    """Return the texts of true and false in a column that also holds texts, as declared."""
    values = zip(truth_values(list(texts)), texts, strict=True)
    return {True: "true", False: "false"} | {v: text for v, text in values if v is not None}


def _array(cells: Sequence[Any], truth: Mapping[bool, str]) -> Any:
    """Return a column as a pyarrow array, of the narrowest type of all its cells."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {bool}:
        return pa.array(cells, pa.bool_())
    if kinds and kinds <= {int, float}:
        whole = all(cell is None or cell == int(cell) for cell in cells)
        if whole and all(cell is None or abs(cell) < 2**53 for cell in cells):
            return pa.array([None if c is None else int(c) for c in cells], pa.int64())
        return pa.array([None if c is None else float(c) for c in cells], pa.float64())
    if kinds == {datetime.date}:
        return pa.array(cells, pa.date32())
    if kinds and kinds <= {datetime.date, datetime.datetime}:
        moments = [
            cell
            if cell is None or isinstance(cell, datetime.datetime)
            else datetime.datetime(cell.year, cell.month, cell.day)
            for cell in cells
        ]
        return pa.array(moments, pa.timestamp("us"))
    texts = [truth[cell] if isinstance(cell, bool) else _text(cell) for cell in cells]
    return pa.array(texts, pa.string())


def _text(cell: Any) -> str | None:
    if cell is None:
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell == int(cell):
        return str(int(cell))
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell).strip(BLANKS) or None
