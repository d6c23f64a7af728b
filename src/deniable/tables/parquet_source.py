"""Parquet as record batches."""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.tables.arrays import to_numpy
from deniable.tables.encode import is_text

_BUFFER, _LEAST_BUFFER, _BUFFERS = 1 << 20, 1 << 14, 1 << 24
"""Bytes of a column read at a time, and approximate total of all columns."""

_MOST_TEXT, _MOST_BATCH = 1 << 21, 1 << 26
"""Largest text (as of a CSV row) and texts of a batch, in bytes; longer texts are refused, larger
batches divided."""


class ParquetSource:
    """A Parquet file, read page by page: a row group need not fit into memory.

    A batch has at most about 64 MiB of text, and a text at most 2 MiB.
    """

    decimal = "."
    surely_named = True
    released_as: Literal["csv", "parquet"] = "parquet"

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
        self._groups = groups
        self._as_dictionary = set(as_dictionary)
        self._parquet = file
        try:
            self._metadata = pq.read_metadata(pa.PythonFile(file, mode="r"))
            self._schema = self._metadata.schema.to_arrow_schema()
            self.names = tuple(self._schema.names)
        except (pa.ArrowException, OSError, UnicodeDecodeError):  # the last for a column name
            raise self._unreadable() from None
        metadata = self._metadata
        self._wanted = list(range(metadata.num_row_groups) if groups is None else groups)
        self._rows = sum(int(metadata.row_group(group).num_rows) for group in self._wanted)

    @property
    def fraction(self) -> float | None:
        """Fraction read, from 0 to 1."""
        return self._done / max(1, self._rows)

    def column_types(self, columns: Sequence[str]) -> list[Any]:
        """Return the pyarrow types of some columns, as the file declares them."""
        return [self._schema.field(name).type for name in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""

        texts = [name for name in columns if self._is_text(name)]
        encoded = self._as_dictionary.intersection(texts)
        try:
            long = self._long_in_dictionaries([name for name in texts if name not in encoded])
            batches = self._opened([*encoded, *long]).iter_batches(
                batch_size=self._rows_at_a_time(columns),
                row_groups=self._wanted,
                columns=list(columns),
                use_threads=False,
            )
            for batch in batches:
                yield from self._divided(batch, texts)
                del batch  # frees it before the next is read
        except (pa.ArrowException, OSError):
            raise self._unreadable() from None

    def _is_text(self, name: str) -> bool:
        kind = self._schema.field(name).type
        return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)

    def _opened(self, as_dictionary: Sequence[str]) -> Any:
        return pq.ParquetFile(
            pa.PythonFile(self._parquet, mode="r"),
            metadata=self._metadata,
            read_dictionary=list(as_dictionary),
            buffer_size=max(_LEAST_BUFFER, min(_BUFFER, _BUFFERS // max(1, len(self.names)))),
            pre_buffer=False,
        )

    def _rows_at_a_time(self, columns: Sequence[str]) -> int:
        """Return the number of rows read at a time, from their size in the file's metadata."""
        wanted, largest = set(columns), 0
        for group in map(self._metadata.row_group, self._wanted):
            held = map(group.column, range(group.num_columns))
            size = sum(c.total_uncompressed_size for c in held if c.path_in_schema in wanted)
            largest = max(largest, size // max(1, group.num_rows))
        return max(1, min(self._batch_rows, _MOST_BATCH // max(1, largest)))

    def _long_in_dictionaries(self, texts: Sequence[str]) -> list[str]:
        """Return the text columns whose batches could be far larger than the file, since a row
        group stores a text once for many rows. Others are faster to read as text."""
        long: set[str] = set()
        for group in self._wanted if texts else ():
            rest = [name for name in texts if name not in long]
            rows = self._opened(rest).iter_batches(
                batch_size=1, row_groups=[group], columns=rest, use_threads=False
            )
            for name, column in zip(rest, next(rows, pa.record_batch({})).columns, strict=False):
                if _lengths(column.dictionary).max(initial=0) * self._batch_rows > _MOST_BATCH:
                    long.add(name)
        return sorted(long)

    def _divided(self, batch: Any, texts: Sequence[str]) -> Iterator[Any]:
        """Yield a batch in pieces, none with much more text than the bound."""
        sizes = np.zeros(batch.num_rows, dtype=np.int64)
        for name in texts:
            column = batch.column(name)
            if pa.types.is_dictionary(column.type):
                lengths = np.append(_lengths(column.dictionary), 0)
                lengths = lengths[to_numpy(column.indices, null=len(lengths) - 1)]
            elif column.nbytes <= _MOST_TEXT:
                continue
            else:
                lengths = _lengths(column)
            if lengths.max(initial=0) > _MOST_TEXT:
                row = self._done + int(np.argmax(lengths > _MOST_TEXT)) + 1
                raise InputError(
                    f"{self.table}, data row {row}, column '{name}': a text is longer than "
                    f"{_MOST_TEXT >> 20} MiB; shorten it, or leave the column out of the table"
                )
            sizes += lengths
        pieces = np.cumsum(sizes) // _MOST_BATCH
        starts = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(starts):
            self._done += end - start
            yield batch.slice(start, end - start)

    def _unreadable(self) -> InputError:
        return InputError(f"{self.table}: the file is not readable as Parquet; it may be damaged")


def has_further_metadata(path: Path, known: Collection[str] = ()) -> bool:
    """Return whether a Parquet file has key-value metadata besides its column types and known
    texts."""
    try:
        about = pq.read_metadata(path)
        schema = about.schema.to_arrow_schema()
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise InputError(
            f"{path}: the file is not readable as Parquet; it may be damaged"
        ) from None
    found = [about.metadata, schema.metadata, *(field.metadata for field in schema)]
    own = {b"ARROW:schema", b"PARQUET:field_id"}
    texts = {text for one in found for key, text in (one or {}).items() if key not in own}
    return not texts <= {text.encode() for text in known}


def _lengths(texts: Any) -> NDArray[np.int64]:
    """Return the number of bytes of each text, shape (n,)."""
    texts = texts.cast(pa.large_string()) if pa.types.is_string_view(texts.type) else texts
    return to_numpy(pc.binary_length(texts), null=0).astype(np.int64)
