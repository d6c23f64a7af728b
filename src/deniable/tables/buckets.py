"""Rows and persons of many parts, sorted into buckets, each of which fits into memory.

Each part has a Parquet file, each of whose row groups belongs to one bucket; a bucket is read from
its row groups in all files.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.tables.arrays import common_form, from_numpy, taken, to_numpy
from deniable.tables.encode import holds_bytes
from deniable.tables.rows import concatenated

PERSON_BUCKETS = 64
"""Number of person buckets, six bits of a hash: 16 million persons in each of a billion."""

_HELD_PERSONS = 1 << 22
"""Number of persons counted before they are written."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, odd: the multiplier of Fibonacci hashing."""


class _Buckets:
    """Unfinished Parquet file, with the bucket of each row group."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None
        self._places: list[int] = []

    def write(self, table: Any, rows: NDArray[Any], bucket: int) -> None:
        if not len(rows):
            return
        table = pa.table([taken(c, rows) for c in table.columns], schema=table.schema)
        self._opened(table.schema).write_table(table, row_group_size=table.num_rows)
        self._places.append(bucket)

    def finish(self, empty: Any) -> None:
        writer = self._opened(empty)
        writer.add_key_value_metadata({"buckets": json.dumps(self._places)})
        writer.close()

    def _opened(self, schema: Any) -> Any:
        if self._writer is None:
            import pyarrow.parquet as pq

            self._writer = pq.ParquetWriter(pa.PythonFile(self._file), schema)
        return self._writer


def _bucket(paths: Sequence[Path], bucket: int) -> Iterator[Any]:
    """Yield a bucket's rows of every file, as pyarrow tables."""
    import pyarrow.parquet as pq

    for path in paths:
        with path.open("rb") as content, pq.ParquetFile(pa.PythonFile(content, mode="r")) as file:
            places = json.loads(file.metadata.metadata[b"buckets"])
            groups = [group for group, place in enumerate(places) if place == bucket]
            yield file.read_row_groups(groups, use_threads=False)


class Scatter:
    """Writes randomized rows by buckets."""

    def __init__(self, file: BinaryIO, buckets: int, held: int) -> None:
        self._file = _Buckets(file)
        self._buckets = buckets
        self._most = held
        self._held: list[tuple[list[NDArray[Any]], dict[str, Any], NDArray[Any]]] = []
        self._rows = 0
        self.n_rows = 0

    def write(
        self, codes: Sequence[NDArray[Any]], kept: Mapping[str, Any], places: NDArray[Any]
    ) -> None:
        """Append a batch: ``codes``, one array of shape (n,) per attribute, and ``places``, the
        bucket of every row, shape (n,)."""
        self._held.append((list(codes), dict(kept), places))
        self._rows += len(places)
        self.n_rows += len(places)
        if self._rows >= self._most:
            self._flush()

    def _flush(self) -> None:
        table = self._table()
        places = np.concatenate([place for _, _, place in self._held])
        order = np.argsort(places, kind="stable")
        edges = np.searchsorted(places[order], np.arange(self._buckets + 1))
        for bucket in range(self._buckets):
            self._file.write(table, order[edges[bucket] : edges[bucket + 1]], bucket)
        self._held, self._rows = [], 0

    def _table(self) -> Any:
        codes = [
            np.concatenate(parts) for parts in zip(*(c for c, _, _ in self._held), strict=True)
        ]
        kept = concatenated([k for _, k, _ in self._held])
        names = [f"code {i}" for i in range(len(codes))] + [f"kept {name}" for name in kept]
        return pa.table([*map(from_numpy, codes), *kept.values()], names=names)

    def finish(self) -> None:
        """Write the remaining rows and the end of the file."""
        if self._held:
            self._flush()
        self._file.finish(pa.schema([]))


def gathered(paths: Sequence[Path], bucket: int) -> tuple[list[NDArray[Any]], dict[str, Any]]:
    """Return a bucket's rows of all files: codes per attribute, and unchanged columns by name; both
    empty without rows."""
    tables = [table for table in _bucket(paths, bucket) if table.num_rows]
    if not tables:
        return [], {}
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    codes: list[NDArray[Any]] = []
    kept: dict[str, Any] = {}
    for name in table.column_names:
        kind, _, rest = name.partition(" ")
        column = table.column(name).combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        if kind == "code":
            codes.append(to_numpy(column))
        else:
            kept[rest] = column
    return codes, kept


class PersonTally:
    """Counts the rows of each person of a part, and writes the counts by buckets of persons."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = _Buckets(file)
        self._held: list[Any] = []
        self._rows = 0

    def add(self, persons: Any) -> None:
        """Count a batch's rows."""
        if not len(persons):
            return
        counted = common_form(persons).value_counts()
        values = counted.field("values")
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        self._held.append(pa.table({"person": values, "rows": counted.field("counts")}))
        self._rows += len(values)
        if self._rows >= _HELD_PERSONS:
            self._flush()

    def _flush(self) -> None:
        table = _summed(pa.concat_tables(self._held))
        places = _spread(table.column("person").combine_chunks())
        for bucket in range(PERSON_BUCKETS):
            self._file.write(table, np.flatnonzero(places == bucket), bucket)
        self._held, self._rows = [], 0

    def finish(self) -> None:
        """Write the remaining counts and the end of the file."""
        if self._held:
            self._flush()
        self._file.finish(pa.schema([]))


def most_rows(paths: Sequence[Path]) -> int:
    """Return the largest number of rows of one person in all parts."""
    most = 0
    for bucket in range(PERSON_BUCKETS):
        tables = [table for table in _bucket(paths, bucket) if table.num_rows]
        if tables:
            most = max(most, pc.max(_summed(pa.concat_tables(tables)).column("rows")).as_py())
    return most


def _summed(table: Any) -> Any:
    grouped = table.group_by("person", use_threads=False).aggregate([("rows", "sum")])
    return grouped.select(["person", "rows_sum"]).rename_columns(["person", "rows"])


def _spread(values: Any) -> NDArray[np.int64]:
    """Return a bucket of each value, shape (n,), the same in every process: a polynomial in the
    bytes of its text."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    text = values.cast(pa.large_binary() if holds_bytes(values.type) else pa.large_string())
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    letters = np.frombuffer(data or b"", dtype=np.uint8)[ends[0] : ends[-1]] if len(text) else ()
    starts, lengths = ends - ends[0], np.diff(ends)
    place = np.arange(len(letters)) - np.repeat(starts[:-1], lengths)
    with np.errstate(over="ignore"):
        powers = np.multiply.accumulate(np.full(int(lengths.max(initial=0)) + 1, _ODD))
        sums = np.append(
            np.uint64(0), np.cumsum((np.asarray(letters) + np.uint64(1)) * powers[place])
        )
        mixed = (sums[starts[1:]] - sums[starts[:-1]]) * _ODD
    places: NDArray[np.int64] = (mixed >> np.uint64(58)).astype(np.int64)
    return places
