"""Batches of released codes to a file."""

import base64
import gzip
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.atomic_files import atomic_output, explain_write_errors
from deniable.errors import InputError
from deniable.tables.columns import Column, Decoder
from deniable.tables.csv_text import CsvText, row_text

FORMATS = ("csv", "csv.gz", "parquet")
"""Table formats, by the endings of file names."""

_ROW_GROUP_ROWS = 1 << 19
_ROW_GROUP_BYTES = 1 << 25
"""Limits at which a Parquet row group is written."""


class _Sink(Protocol):
    def write(self, codes: Sequence[NDArray[Any]], kept: Mapping[str, Any]) -> None: ...
    def finish(self) -> None: ...
    def abandon(self) -> None: ...


class TableWriter:
    """Writes a released table batch by batch; the file appears at the end of the block."""

    def __init__(
        self,
        destination: str | Path | BinaryIO,
        columns: Sequence[Column],
        *,
        overwrite: bool = False,
        before_seen: Callable[[], None] = lambda: None,
        kind: str = "csv",
    ) -> None:
        self.columns = tuple(columns)
        self._kind = kind
        self.n_rows = 0
        self._destination = destination
        self._overwrite = overwrite
        self._before_seen = before_seen
        self._is_stream = not isinstance(destination, str | Path) or str(destination) == "-"
        self._stack = ExitStack()
        self._sink: _Sink | None = None

    def __enter__(self) -> "TableWriter":
        with ExitStack() as stack:
            self._sink = self._open(stack)
            self._stack = stack.pop_all()
        return self

    def _open(self, stack: ExitStack) -> _Sink:
        if not isinstance(self._destination, str | Path):
            stack.enter_context(explain_write_errors("the output"))
            return self._into(self._destination, self._kind, stack)
        if str(self._destination) == "-":
            stack.enter_context(explain_write_errors("standard output"))
            return _CsvSink(sys.stdout.buffer, self.columns)
        path = Path(self._destination)
        kind = table_format(path)
        text = _text_of(self.columns) if kind != "parquet" else None  # before a file is made
        file = stack.enter_context(
            atomic_output(path, overwrite=self._overwrite, before_named=self._before_seen)
        )
        return self._into(file, kind, stack, text)

    def _into(
        self, file: BinaryIO, kind: str, stack: ExitStack, text: CsvText | None = None
    ) -> _Sink:
        if kind == "parquet":
            return _ParquetSink(file, self.columns)
        if kind == "csv.gz":
            # Neither the time nor the temporary name may be stored in the file.
            packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
            return _CsvSink(stack.enter_context(packed), self.columns, text)
        return _CsvSink(file, self.columns, text)

    def write(self, codes: Sequence[NDArray[Any]], kept: Mapping[str, Any] | None = None) -> None:
        """Append a batch.

        ``codes``: the released codes, one array of shape (n,) per attribute.
        """
        if self._sink is None:
            raise RuntimeError("a TableWriter is used in a with block")
        kept = kept or {}
        count = len(codes[0]) if codes else len(next(iter(kept.values())))
        if count:
            if self._is_stream and not self.n_rows:
                self._before_seen()
            self._sink.write(codes, kept)
            self.n_rows += count

    def __exit__(self, *error: Any) -> None:
        if self._sink is None:
            return
        if error[1] is not None:
            self._sink.abandon()
            # The stack must see the exception to drop the unfinished file.
            self._stack.__exit__(*error)
            return
        with self._stack:
            try:
                self._sink.finish()
            except BaseException:
                self._sink.abandon()
                raise


_DICTIONARY_BYTES = 1 << 20
"""Up to this size a column's texts are stored once per row group, and its cells as bit indices."""


def largest_size(columns: Sequence[Column], kind: str, n_rows: int) -> int:
    """Return the largest size in bytes of the randomized columns in a file, for any draws."""
    of_row, once = 1.0, 1 << 16
    for column in columns:
        if column.position is None:
            continue
        longest = max(len(label.encode()) for label in column.labels) + 1
        if kind != "parquet":
            of_row += 2 * longest + 3  # every character an escaped quote, in quotes
            continue
        texts = sum(len(label.encode()) + 4 for label in column.labels)
        of_row += len(column.labels).bit_length() / 8 + 0.25
        if texts >= _DICTIONARY_BYTES:
            of_row += longest + 4
        once += (texts + 4096) * (1 + n_rows // _ROW_GROUP_ROWS)
    return int(n_rows * of_row) + once


def table_format(path: Path) -> str:
    """Return "csv", "csv.gz" or "parquet" from a file's name."""
    name = path.name.lower()
    for kind in FORMATS:
        if name.endswith("." + kind):
            return kind
    raise InputError(f"{path}: name a table .csv, .csv.gz or .parquet")


@lru_cache(maxsize=1)
def _text_of(columns: tuple[Column, ...]) -> CsvText:
    """Return the writer of these columns, shared by the parts of a release."""
    return CsvText(columns)


class _CsvSink:
    def __init__(
        self,
        file: BinaryIO | gzip.GzipFile,
        columns: Sequence[Column],
        text: CsvText | None = None,
    ) -> None:
        self._file = file
        self._text = text or _text_of(tuple(columns))
        file.write(row_text([column.name for column in columns]).encode())

    def write(self, codes: Sequence[NDArray[Any]], kept: Mapping[str, Any]) -> None:
        self._file.write(self._text.render(codes, kept))

    def finish(self) -> None:
        self._file.flush()

    def abandon(self) -> None:
        pass


class _ParquetSink:
    """Writes row groups of bounded size.

    Text goes to the writer as codes with a dictionary, as Parquet stores it. The file must still
    declare the column as text, so the declared Arrow schema is written to its metadata. Metadata of
    the input is not copied: it may describe the true table.
    """

    def __init__(self, file: BinaryIO, columns: Sequence[Column]) -> None:
        import pyarrow.parquet as pq

        self._columns = columns
        self._decoders = [None if c.position is None else Decoder(c) for c in columns]
        self._schema = pa.schema(
            [
                (c.name, c.kind if d is None else d.stored_type)
                for c, d in zip(columns, self._decoders, strict=True)
            ]
        )
        declared = pa.schema([(c.name, c.kind) for c in columns])
        self._writer = pq.ParquetWriter(pa.PythonFile(file), self._schema, store_schema=False)
        self._writer.add_key_value_metadata(
            {"ARROW:schema": base64.b64encode(declared.serialize().to_pybytes()).decode()}
        )
        self._row_bytes = sum(d.cell_bytes for d in self._decoders if d is not None)
        self._most = max(1, min(_ROW_GROUP_ROWS, int(_ROW_GROUP_BYTES / max(self._row_bytes, 1))))
        # Reused for every row group; unfilled rows take no memory.
        self._codes = [None if d is None else np.empty(self._most, d.index) for d in self._decoders]
        self._start_group()

    def _start_group(self) -> None:
        self._kept: list[list[Any]] = [[] for _ in self._columns]
        self._rows, self._bytes = 0, 0.0

    def write(self, codes: Sequence[NDArray[Any]], kept: Mapping[str, Any]) -> None:
        cells = [
            kept[c.name] if d is None else c.codes(codes)
            for c, d in zip(self._columns, self._decoders, strict=True)
        ]
        start, count = 0, len(cells[0])
        while start < count:
            step = min(count - start, self._most - self._rows)
            for column, own, pieces in zip(cells, self._codes, self._kept, strict=True):
                piece = column[start : start + step]
                if own is None:
                    pieces.append(piece)
                    self._bytes += piece.nbytes
                else:
                    own[self._rows : self._rows + step] = piece
            start += step
            self._rows += step
            self._bytes += step * self._row_bytes
            if self._rows == self._most or self._bytes >= _ROW_GROUP_BYTES:
                self._flush()

    def _flush(self) -> None:
        columns = [
            pa.chunked_array(pieces, kind)
            if d is None or own is None
            else d.dictionary(own[: self._rows])
            for kind, d, own, pieces in zip(
                self._schema.types, self._decoders, self._codes, self._kept, strict=True
            )
        ]
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self._writer.write_table(table, row_group_size=self._rows)
        self._start_group()

    def finish(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()

    def abandon(self) -> None:
        # An unfinished writer would write its footer when collected, into a closed file.
        with suppress(Exception):
            self._writer.close()
        self._writer.is_open = False
