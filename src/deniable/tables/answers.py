"""Results to a CSV, Parquet or Excel file, or to a dataframe."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pyarrow as pa
import pyarrow.csv as arrow_csv

from deniable.atomic_files import atomic_output
from deniable.errors import InputError

KINDS = ("csv", "parquet", "xlsx")
"""Endings of the files that :func:`write_columns` writes."""

Columns = Mapping[str, Sequence[Any]]


_SHEET_ROWS, _SHEET_COLUMNS, _CELL_CHARACTERS = 1 << 20, 1 << 14, 32767
"""Limits of an Excel sheet, beyond which its library drops or cuts data."""


def write_columns(path: Path, columns: Columns, caption: str, *, overwrite: bool = False) -> None:
    """Write columns to a file that appears when it is complete.

    >>> write_columns(Path("shares.csv"), {"sex": ["f", "m"], "estimate": [0.5, 0.5]}, "Shares")
    >>> Path("shares.csv").read_text().splitlines()[:2]
    ['"sex","estimate"', '"f",0.5']
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in KINDS:
        raise InputError(f"{path}: name the result .csv, .parquet or .xlsx")
    with atomic_output(path, overwrite=overwrite) as file:
        if kind == "xlsx":
            _write_excel(file, columns, caption)
            return
        table = pa.table({name: pa.array(list(values)) for name, values in columns.items()})
        if kind == "csv":
            arrow_csv.write_csv(table, file)
        else:
            import pyarrow.parquet as parquet

            parquet.write_table(table.replace_schema_metadata({"caption": caption}), file)


def _write_excel(file: BinaryIO, columns: Columns, caption: str) -> None:
    try:
        import xlsxwriter
    except ImportError:
        raise InputError(
            "Excel files need xlsxwriter: pip install 'deniable[excel]'; or write .csv"
        ) from None
    rows = max((len(values) for values in columns.values()), default=0)
    texts = (value for values in columns.values() for value in values if isinstance(value, str))
    if (
        rows >= _SHEET_ROWS
        or len(columns) > _SHEET_COLUMNS
        or any(len(text) > _CELL_CHARACTERS for text in texts)
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
        for place, (name, values) in enumerate(columns.items()):
            sheet.write_string(0, place, name, bold)
            for row, value in enumerate(values, start=1):
                if isinstance(value, str):
                    sheet.write_string(row, place, value)
                elif value is not None:
                    sheet.write(row, place, value)
        sheet.freeze_panes(1, 0)
        sheet.autofit()
        workbook.add_worksheet("about").write_string(0, 0, caption)


def frame_of(columns: Columns, library: Literal["pandas", "polars"]) -> Any:
    """Return columns as a dataframe."""
    import narwhals as nw

    data = {name: list(values) for name, values in columns.items()}
    try:
        return nw.from_dict(data, backend=library).to_native()
    except ImportError:
        raise InputError(f"{library} is not installed; install it, or use .table()") from None
