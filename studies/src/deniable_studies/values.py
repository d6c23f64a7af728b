"""Numbers of a study as text, in its files and on its page."""

import csv
import io
import math

from deniable_studies.study import Cell, Table


def csv_text(table: Table) -> str:
    """Return a table as CSV; numbers with ten significant digits, empty cells for None and NaN."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_written(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _written(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return f"{cell:.10g}" if isinstance(cell, float) else str(cell)


def cell_text(cell: Cell) -> str:
    """Return a cell for people: four significant digits."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    if cell == 0 or 1e-3 <= abs(cell) < 1e6:
        return f"{cell:,.4g}" if abs(cell) < 1e4 else f"{cell:,.0f}"
    return f"{cell:.3e}"
