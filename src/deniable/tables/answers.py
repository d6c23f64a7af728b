"""Results as Arrow columns; CSV, Parquet and Excel files and dataframes of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from deniable.atomic_files import atomic_output
from deniable.errors import InputError
from deniable.tables.arrays import booleans, from_numpy, from_values, to_numpy

KINDS = ("csv", "parquet", "xlsx")
"""File endings of the formats that results are written in."""

_SHEET_ROWS, _SHEET_COLUMNS, _CELL_CHARACTERS = 1 << 20, 1 << 14, 32767
"""Limits of an Excel sheet; xlsxwriter drops or truncates the excess."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows of a result as an Arrow table; text is dictionary-encoded, missing values are null."""

    table: pa.Table

    @classmethod
    def of(cls, values: Mapping[str, Sequence[Any] | NDArray[Any]]) -> "Columns":
        """Return columns of given values; numbers that are not finite in numpy arrays are null."""
        return cls(pa.table({name: _array(column) for name, column in values.items()}))

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]]) -> "Columns":
        """Return columns of rows that may differ in their names."""
        names = dict.fromkeys(name for row in rows for name in row)
        return cls.of({name: [row.get(name) for row in rows] for name in names})

    @classmethod
    def of_cells(
        cls, axes: Mapping[str, Sequence[str]], numbers: Mapping[str, NDArray[Any] | None]
    ) -> "Columns":
        """Return the cells of a table, the last axis fastest: one text column per axis, with its
        categories, and numbers of the table's shape."""
        shape = tuple(map(len, axes.values()))
        columns: dict[str, Any] = {}
        for place, (name, labels) in enumerate(axes.items()):
            codes = np.arange(len(labels), dtype=np.min_scalar_type(-len(labels)))
            along = [1] * len(shape)
            along[place] = -1
            columns[name] = pa.DictionaryArray.from_arrays(
                from_numpy(np.broadcast_to(codes.reshape(along), shape).ravel()),
                from_values(labels, pa.string()),
            )
        for name, values in numbers.items():
            columns[name] = pa.nulls(prod(shape)) if values is None else _array(values)
        return cls(pa.table(columns))

    @classmethod
    def joined(cls, pieces: Iterable["Columns"]) -> "Columns":
        """Return the rows of all pieces; columns that a piece does not have are null in it."""
        tables = [piece.table for piece in pieces]
        if len(tables) == 1:
            return cls(tables[0])
        wide = [table.cast(pa.schema(map(_with_wide_codes, table.schema))) for table in tables]
        return cls(pa.concat_tables(wide, promote_options="default").combine_chunks())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.table.column_names)

    def with_constants(self, **values: Any) -> "Columns":
        """Return the columns with others of one value each; these replace any of the same name."""
        columns = dict(zip(self.names, self.table.columns, strict=True))
        for name, value in values.items():
            if isinstance(value, str):
                codes = np.zeros(len(self), dtype=np.int8)
                columns[name] = pa.DictionaryArray.from_arrays(
                    from_numpy(codes), from_values([value], pa.string())
                )
            else:
                columns[name] = _array(np.full(len(self), value))
        return Columns(pa.table(columns))

    def without(self, *names: str) -> "Columns":
        """Return the columns except some, which need not exist."""
        return Columns(self.table.select([name for name in self.names if name not in names]))

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as floats, shape (rows,): missing values and text as NaN."""
        column = self.table[name]
        if pa.types.is_dictionary(column.type):
            return np.full(len(self), np.nan)
        floats = column.cast(pa.float64()).combine_chunks()
        return to_numpy(floats, null=math.nan)

    def rows(self, places: NDArray[np.intp] | slice = slice(None)) -> list[dict[str, Any]]:
        """Return rows as dictionaries of plain values: all, a slice, or those at some places."""
        if isinstance(places, slice):
            start, stop, _ = places.indices(len(self))
            chosen = self.table.slice(start, stop - start)
        else:
            chosen = self.table.take(places)
        rows: list[dict[str, Any]] = chosen.to_pylist()
        return rows

    def write(self, path: Path, caption: str, *, overwrite: bool = False) -> None:
        """Write a file, complete or not at all; Parquet and Excel contain the caption."""
        kind = path.suffix.removeprefix(".").lower()
        if kind not in KINDS:
            raise InputError(f"{path}: name the result .csv, .parquet or .xlsx")
        with atomic_output(path, overwrite=overwrite) as file:
            if kind == "xlsx":
                _write_excel(file, self.table, caption)
            elif kind == "csv":
                arrow_csv.write_csv(self.table, file)
            else:
                import pyarrow.parquet as parquet

                parquet.write_table(self.table.replace_schema_metadata({"caption": caption}), file)

    def frame(self, library: Literal["pandas", "polars"]) -> Any:
        """Return a dataframe; its text columns are categorical."""
        import narwhals as nw

        try:
            return nw.from_arrow(self.table, backend=library).to_native()
        except ImportError:
            raise InputError(f"{library} is not installed; install it, or use .table()") from None


def _array(values: Sequence[Any] | NDArray[Any]) -> pa.Array:
    if isinstance(values, np.ndarray):
        values = values.ravel()
        if values.dtype == np.bool_:
            return booleans(values)
        finite = np.isfinite(values)
        valid = None if finite.all() else pa.py_buffer(np.packbits(finite, bitorder="little"))
        numbers = pa.py_buffer(np.ascontiguousarray(values))
        return pa.Array.from_buffers(
            pa.from_numpy_dtype(values.dtype), len(values), [valid, numbers]
        )
    column = pa.array(list(values))
    return column.dictionary_encode() if pa.types.is_string(column.type) else column


def _with_wide_codes(field: pa.Field) -> pa.Field:
    # The categories of several tables together may be more than the codes of one can count.
    if pa.types.is_dictionary(field.type):
        return field.with_type(pa.dictionary(pa.int32(), pa.string()))
    return field


def _write_excel(file: BinaryIO, table: pa.Table, caption: str) -> None:
    try:
        import xlsxwriter
    except ImportError:
        raise InputError(
            "Excel files need xlsxwriter: pip install 'deniable[excel]'; or write .csv"
        ) from None
    texts = [column for column in table.columns if pa.types.is_dictionary(column.type)]
    longest = (len(text) for column in texts for text in column.unique().to_pylist() if text)
    if (
        table.num_rows >= _SHEET_ROWS
        or table.num_columns > _SHEET_COLUMNS
        or max(longest, default=0) > _CELL_CHARACTERS
    ):
        raise InputError(
            f"the result exceeds an Excel sheet ({_SHEET_ROWS:,} rows, {_SHEET_COLUMNS:,} columns, "
            f"{_CELL_CHARACTERS:,} characters in a cell); write .csv or .parquet"
        )
    # Texts must not become formulas, links or numbers.
    options = {
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "in_memory": True,
        "nan_inf_to_errors": True,
    }
    with xlsxwriter.Workbook(file, options) as workbook:
        sheet = workbook.add_worksheet("estimates")
        bold = workbook.add_format({"bold": True})
        for place, name in enumerate(table.column_names):
            sheet.write_string(0, place, name, bold)
            for row, value in enumerate(table[name].to_pylist(), start=1):
                if isinstance(value, str):
                    sheet.write_string(row, place, value)
                elif value is not None:
                    sheet.write(row, place, value)
        sheet.freeze_panes(1, 0)
        sheet.autofit()
        workbook.add_worksheet("about").write_string(0, 0, caption)
