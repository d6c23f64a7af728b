"""Any table to batches of codes, in memory that does not depend on the number of rows."""

import os
import queue
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Protocol, TypeVar

from numpy.typing import NDArray

from deniable._checks import first_duplicate
from deniable.errors import InputError
from deniable.schema import Attribute
from deniable.tables.csv_source import CsvSource
from deniable.tables.encode import AttributeEncoder
from deniable.tables.frames import FrameSource
from deniable.tables.parquet_source import ParquetSource

BATCH_ROWS = 1 << 16
"""Rows at a time from Parquet and dataframes."""

_T = TypeVar("_T")


class Source(Protocol):
    """A table of some kind."""

    table: str
    names: tuple[str, ...]

    @property
    def fraction(self) -> float | None: ...
    def column_types(self, columns: Sequence[str]) -> list[Any]: ...
    def batches(self, columns: Sequence[str]) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Batch:
    """Some rows of a table.

    Args:
        codes: one array of codes per attribute, in the order of the attributes, shape (n_rows,).
        kept: the columns that are released as they are, by name, as pyarrow arrays.
        n_rows: how many rows.
        first_row: number of the first one, counting the table's data rows from 1.
    """

    codes: list[NDArray[Any]]
    kept: dict[str, Any]
    n_rows: int
    first_row: int


class TableReader:
    """A table opened for reading; made by :func:`open_table`. Iterate over it once.

    Attributes:
        table: its name, for messages.
        columns: name and pyarrow type of every column that is read, in the table's order.
    """

    def __init__(
        self,
        source: Source,
        file: BinaryIO | None,
        attributes: Sequence[Attribute],
        keep: Sequence[str],
        other_columns: Literal["refuse", "drop"],
        show_values: bool,
    ) -> None:
        self.table = source.table
        self.attributes = tuple(attributes)
        self.keep = tuple(keep)
        self.all_names = source.names
        self._source = source
        self._file = file
        columns = [column.name for a in attributes for column in a.columns]
        _check_names(source, columns, keep, other_columns)
        needed = {*columns, *keep}
        names = [name for name in source.names if name in needed]
        self.columns = tuple(zip(names, source.column_types(names), strict=True))
        types = dict(self.columns)
        self._encoders = [
            AttributeEncoder(a, source.table, show_values=show_values, column_types=types)
            for a in attributes
        ]

    @property
    def fraction(self) -> float | None:
        """How much of the table has been read, from 0 to 1; None if its size is not known."""
        return self._source.fraction

    def __iter__(self) -> Iterator[Batch]:
        """Yield the table's rows.

        A thread reads ahead by a batch or two while the caller works.

        Raises:
            InputError: naming table, row and column of the first value that cannot be used.
        """
        names = [name for name, _ in self.columns]
        first_row = 1
        with closing(_read_ahead(self._source.batches(names))) as batches:
            for batch in batches:
                codes = [encoder.encode(batch, first_row) for encoder in self._encoders]
                kept = {name: batch.column(name) for name in self.keep}
                yield Batch(codes, kept, batch.num_rows, first_row)
                first_row += batch.num_rows

    def __enter__(self) -> "TableReader":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, if this opened it."""
        if self._file is not None and self._file is not sys.stdin.buffer:
            self._file.close()


def open_table(
    source: Any,
    attributes: Sequence[Attribute],
    keep: Sequence[str] = (),
    *,
    other_columns: Literal["refuse", "drop"] = "refuse",
    show_values: bool = False,
    batch_rows: int = BATCH_ROWS,
) -> TableReader:
    """Open a table and check its columns; nothing but the header is read yet.

    Args:
        source: the path of a .csv, .csv.gz or .parquet file (what it contains decides, not how it
            is called); "-" for CSV on standard input; an open binary file with CSV; a pandas,
            Polars or other eager dataframe known to narwhals; or anything that hands out Arrow
            record batches.
        attributes: which columns to encode, and how; they may be some of a schema's. Of a merged
            one the parts' columns are read, and their codes combined.
        keep: columns to hand over as they are.
        other_columns: whether a table with further columns is refused, or they are left out.
        show_values: whether error messages may contain values of the table.
        batch_rows: rows at a time; CSV is cut by bytes instead.

    Raises:
        InputError: if the table cannot be opened, a column is missing, is there twice, is of a type
            that cannot hold its attribute, or is neither an attribute nor kept.
    """
    if hasattr(source, "read"):
        return TableReader(
            CsvSource(source, "the input"), None, attributes, keep, other_columns, show_values
        )
    if not isinstance(source, str | os.PathLike):
        return TableReader(
            FrameSource(source, batch_rows), None, attributes, keep, other_columns, show_values
        )
    file, table = _open_file(source)
    try:
        opened: Source
        if _is_parquet(file, table):
            text = [
                column.name
                for attribute in attributes
                for column in attribute.columns
                if column.bins is None and column.name not in keep
            ]
            opened = ParquetSource(file, table, batch_rows, text)
        else:
            opened = CsvSource(file, table)
        return TableReader(opened, file, attributes, keep, other_columns, show_values)
    except BaseException:
        if file is not sys.stdin.buffer:
            file.close()
        raise


def column_names(source: Any) -> tuple[str, ...]:
    """Return the names of all columns of a table, in order.

    Raises:
        InputError: if it cannot be opened.
    """
    with open_table(source, [], other_columns="drop") as reader:
        return reader.all_names


def _open_file(source: str | os.PathLike[str]) -> tuple[BinaryIO, str]:
    if source == "-":
        return sys.stdin.buffer, "standard input"
    path = Path(source)
    try:
        return path.open("rb"), str(path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a folder; name a file in it") from None
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror})") from None


def _is_parquet(file: BinaryIO, table: str) -> bool:
    if not file.seekable():
        return False
    magic = file.read(4)
    file.seek(0)
    if magic == b"PAR1":
        return True
    if table.lower().endswith(".parquet"):
        raise InputError(f"{table}: this is not a Parquet file, whatever its name says")
    return False


def _check_names(
    source: Source, attributes: Sequence[str], keep: Sequence[str], other_columns: str
) -> None:
    present = set(source.names)
    needed = [*attributes, *keep]
    if needed and present.isdisjoint(needed):
        # Without a header row, what stands there are the values of the first person: not shown.
        raise InputError(
            f"{source.table}: none of the schema's columns ({_listed(needed)}) is in it; it needs "
            "a header row with these names, separated by commas"
        )
    if (twice := first_duplicate(source.names)) is not None:
        raise InputError(f"{source.table}: two columns are called '{twice}'; rename one of them")
    if missing := [name for name in needed if name not in present]:
        raise InputError(
            f"{source.table}: there is no column '{missing[0]}'; the table has "
            f"{_listed(source.names)}"
        )
    others = [name for name in source.names if name not in set(needed)]
    if others and other_columns == "refuse":
        raise InputError(
            f"{source.table}: the schema neither declares nor keeps {_listed(others)}; such a "
            "column could identify people, so declare it, keep it, or leave it out with "
            "--drop-other-columns"
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _read_ahead(items: Iterable[_T], depth: int = 2) -> Generator[_T, None, None]:
    """Yield the items while a thread already fetches the next ones.

    Parsing and the caller's work both leave the interpreter lock, so two cores share them.
    """
    ready: queue.Queue[tuple[_T | None, BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: _T | None, error: BaseException | None = None) -> None:
        while not stopped.is_set():
            try:
                ready.put((item, error), timeout=0.1)
            except queue.Full:
                continue
            return

    def fetch() -> None:
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    return
        except BaseException as error:  # handed over: the consumer raises it
            put(None, error)
        else:
            put(None)

    thread = threading.Thread(target=fetch, name="deniable-read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        stopped.set()
        # A thread that waits for a pipe cannot be woken; it ends with the process.
        thread.join(timeout=1)
