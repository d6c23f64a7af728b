"""Tables in parts whose every row is known again, and releases of them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deniable import Attribute, Schema, design
from deniable.estimate.source import released_files
from deniable.release.release import Options
from deniable.statement.strata import read_designs
from deniable.tables import open_table

SCHEMA = Schema((Attribute("a", ("x", "y", "z")), Attribute("b", ("no", "yes"))), keep=("row",))
DESIGN = design(SCHEMA, attribute_epsilon=(1.0, 2.0), method="kronecker")
OPTIONS = Options(command="deniable share …")


def rows(first: int, count: int) -> dict[str, list[str]]:
    numbers = range(first, first + count)
    return {
        "row": [str(n) for n in numbers],
        "a": ["xyz"[n % 3] for n in numbers],
        "b": ["yes" if n % 5 else "no" for n in numbers],
        "who": [f"p{n // 2}" for n in numbers],
    }


def write_parts(
    folder: Path, sizes: tuple[int, ...], kind: str = "csv", person: bool = False
) -> Path:
    """Write a folder of tables with these numbers of rows, numbered through."""
    folder.mkdir()
    first = 0
    for number, size in enumerate(sizes):
        columns = rows(first, size)
        first += size
        if not person:
            del columns["who"]
        path = folder / f"people-{number}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.table(columns), path, row_group_size=10)
        else:
            lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
            path.write_text("\n".join(lines) + "\n")
    return folder


def released_rows(folder: Path) -> list[str]:
    """The numbers of the rows of a release, in its order."""
    found: list[str] = []
    with open_table(
        released_files(folder, read_designs(folder).strata), [], ["row"], other_columns="drop"
    ) as reader:
        for batch in reader:
            found += batch.kept["row"].to_pylist()
    return found


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
