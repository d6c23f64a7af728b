"""Parquet as record batches."""

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.errors import InputError

_BUFFER, _LEAST_BUFFER, _BUFFERS = 1 << 20, 1 << 14, 1 << 24
"""Bytes of a column that are read at a time, and about how many of all columns."""


class ParquetSource:
    """A Parquet file, read page by page: a row group need not fit into the memory.

    Args:
        file: an open binary file.
        table: the table's name, for messages.
        batch_rows: rows at a time.
        as_dictionary: columns that, if they are text, are handed over as codes with a dictionary,
            as they are stored.
        groups: the row groups to read; None for all.
        dates: the form of dates in columns of text, besides 2025-12-31.

    Raises:
        InputError: if the file is not readable Parquet.
    """

    decimal = "."
    surely_named = True

    def __init__(
        self,
        file: BinaryIO,
        table: str,
        batch_rows: int,
        as_dictionary: Sequence[str],
        groups: Sequence[int] | None = None,
        dates: str | None = None,
    ) -> None:
        self.table = table
        self.dates = dates
        self._done = 0
        self._batch_rows = batch_rows
        try:
            schema = pq.read_schema(pa.PythonFile(file, mode="r"))
            self._file = pq.ParquetFile(
                pa.PythonFile(file, mode="r"),
                read_dictionary=[
                    field.name
                    for field in schema
                    if field.name in as_dictionary and pa.types.is_string(field.type)
                ],
                buffer_size=max(_LEAST_BUFFER, min(_BUFFER, _BUFFERS // max(1, len(schema)))),
                pre_buffer=False,
            )
            self.names = tuple(schema.names)
        except (pa.ArrowException, OSError, UnicodeDecodeError):  # the last: of a name
            raise self._unreadable() from None
        self._groups = groups
        metadata = self._file.metadata
        wanted = range(metadata.num_row_groups) if groups is None else groups
        self._rows = sum(int(metadata.row_group(group).num_rows) for group in wanted)
        self._schema = schema

    @property
    def fraction(self) -> float | None:
        """How much has been read, from 0 to 1."""
        return self._done / max(1, self._rows)

    def column_types(self, columns: Sequence[str]) -> list[Any]:
        """Return the pyarrow types of some columns, as the file declares them."""
        return [self._schema.field(name).type for name in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns.

        Raises:
            InputError: if the file turns out to be damaged.
        """

        def counted(batch: Any) -> Any:
            self._done += batch.num_rows
            return batch

        batches = self._file.iter_batches(
            batch_size=self._batch_rows,
            row_groups=None if self._groups is None else list(self._groups),
            columns=list(columns),
            use_threads=False,
        )
        try:
            yield from map(counted, batches)  # holds none while the next is read
        except (pa.ArrowException, OSError):
            raise self._unreadable() from None

    def _unreadable(self) -> InputError:
        return InputError(f"{self.table}: the file is not readable as Parquet; it may be damaged")
