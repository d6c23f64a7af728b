"""CSV from a path, standard input or an open file, as batches of text columns."""

import csv
import gzip
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pc_csv

from deniable.errors import InputError

BLOCK_BYTES = 1 << 21
"""Read and parsed at a time. The memory of a pipe is a few of these."""

_HEADER_BYTES = 1 << 26


class CsvSource:
    """A CSV table: UTF-8, commas, one header row, quotes as in RFC 4180.

    Every column is text. Only the empty field, quoted or not, is missing: ``NA``, ``null`` and
    ``nan`` are texts like any others. Blank lines are skipped, except in a table of one column,
    where such a line is a row whose value is missing.

    Args:
        file: an open binary file at its beginning; compressed content is recognised.
        table: the table's name, for messages.

    Raises:
        InputError: if there is no readable header.
    """

    def __init__(self, file: BinaryIO, table: str) -> None:
        self.table = table
        self._counted = _Replayed(file)
        stream = self._counted
        start = stream.peek(2)
        if start[:2] == b"\x1f\x8b":
            # The standard library reads files of several members, as parallel compressors make.
            stream = _Replayed(gzip.GzipFile(fileobj=io.BufferedReader(stream, BLOCK_BYTES)))
        self._stream = stream
        with self._explained():
            self.names = self._header()
        self._size = _size(file)

    @property
    def fraction(self) -> float | None:
        """How much of the file has been read, from 0 to 1; None if its size is not known."""
        return self._counted.bytes_read / self._size if self._size else None

    def column_types(self, columns: Sequence[str]) -> list[Any]:
        """Return the type of some columns: text."""
        return [pa.string()] * len(columns)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns.

        Raises:
            InputError: if a row has too many or too few fields, or is not text in UTF-8.
        """
        single = len(self.names) == 1
        if self._stream.at_end(skip_blank=not single):
            return
        rows = 0
        ragged: list[Any] = []

        def refuse(row: Any) -> str:
            ragged.append((row.number, row.expected_columns, row.actual_columns))
            return "error"

        with self._explained(lambda: rows, ragged):
            reader = pc_csv.open_csv(
                pa.PythonFile(self._stream, mode="r"),
                # Threads of our own overlap reading and writing; with pyarrow's, the number of a
                # ragged row is not known.
                read_options=pc_csv.ReadOptions(
                    use_threads=False, block_size=BLOCK_BYTES, column_names=list(self.names)
                ),
                parse_options=pc_csv.ParseOptions(
                    newlines_in_values=True,
                    ignore_empty_lines=not single,
                    invalid_row_handler=refuse,
                ),
                convert_options=pc_csv.ConvertOptions(
                    include_columns=list(columns),
                    column_types={name: pa.string() for name in columns},
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            for batch in reader:
                yield batch
                rows += batch.num_rows

    def _header(self) -> tuple[str, ...]:
        line = self._stream.take_record(_HEADER_BYTES)
        if line.startswith(b"PK\x03\x04"):
            raise InputError(
                f"{self.table}: this is a zip archive or an Excel workbook; export it as CSV"
            )
        text = line.decode("utf-8-sig")
        if not text.strip():
            raise InputError(f"{self.table}: the file is empty; it needs a header row with names")
        return tuple(next(csv.reader(io.StringIO(text, newline=""), strict=True)))

    def _explained(
        self, rows: Callable[[], int] = lambda: 0, ragged: Sequence[Any] = ()
    ) -> "_Explained":
        return _Explained(self.table, rows, ragged)


def _size(file: BinaryIO) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size or None
    except (AttributeError, OSError, ValueError):
        return None


class _Explained:
    """Turns what a parser raises into one sentence. Their own texts quote the row: never shown."""

    def __init__(self, table: str, rows: Callable[[], int], ragged: Sequence[Any]) -> None:
        self._table = table
        self._rows = rows
        self._ragged = ragged

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is None or isinstance(error, InputError):
            return
        if isinstance(error, pa.ArrowInvalid):
            raise InputError(self._sentence(str(error))) from None
        if isinstance(error, UnicodeDecodeError):
            raise InputError(
                f"{self._table}: the header row is not UTF-8 text; save the table as UTF-8"
            ) from None
        if isinstance(error, csv.Error):
            raise InputError(
                f"{self._table}: the header row is not valid CSV; check its quotes"
            ) from None
        if isinstance(error, EOFError | gzip.BadGzipFile | OSError) or (
            type(error).__module__ == "zlib"
        ):
            raise InputError(
                f"{self._table}: the file cannot be read to its end after row {self._rows()}; it "
                "is cut off, damaged, or cannot be accessed"
            ) from None

    def _sentence(self, message: str) -> str:
        if self._ragged:
            row, expected, actual = self._ragged[0]
            return (
                f"{self._table}, row {row}: {actual} fields instead of {expected}; every row needs "
                "as many as the header, and a field with a comma needs quotes"
            )
        if "UTF8" in message:
            match = re.match(r"In CSV column #\d+: Row #(\d+):", message)
            row = int(match[1]) if match else None
            where = f", row {row}" if row else f", after row {self._rows()}"
            return f"{self._table}{where}: not UTF-8 text; save the table as UTF-8"
        if "straddling" in message:
            return (
                f"{self._table}, after row {self._rows()}: a row is longer than "
                f"{BLOCK_BYTES >> 20} MiB; probably a quote is opened and never closed"
            )
        return f"{self._table}, after row {self._rows()}: not valid CSV; check quotes and commas"


class _Replayed(io.RawIOBase):
    """A stream that can be looked at before it is read, and counts what has been."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file
        self._read_some = getattr(file, "read1", file.read)
        self._ahead = b""
        self.bytes_read = 0

    def readable(self) -> bool:
        return True

    def _more(self, size: int) -> bytes:
        got: bytes = self._file.read(size) or b""
        self.bytes_read += len(got)
        return got

    def read(self, size: int = -1) -> bytes:
        if not self._ahead:
            return self._more(size)
        got, self._ahead = self._ahead, b""
        if size < 0:
            return got + self._more(-1)
        if len(got) > size:
            got, self._ahead = got[:size], got[size:]
            return got
        # A block that is filled up spares the parser a tiny first batch.
        return got + self._more(size - len(got))

    def readinto(self, buffer: Any) -> int:
        got = self.read(len(buffer))
        buffer[: len(got)] = got
        return len(got)

    def peek(self, size: int) -> bytes:
        """Return the next bytes without consuming them; fewer only at the end."""
        while len(self._ahead) < size:
            # A pipe may hold a few rows and stay open: do not wait for more than is needed.
            got: bytes = self._read_some(1 << 16) or b""
            if not got:
                break
            self.bytes_read += len(got)
            self._ahead += got
        return self._ahead

    def at_end(self, *, skip_blank: bool) -> bool:
        """Return whether nothing, or nothing but blank lines, is left."""
        while self.peek(1):
            if skip_blank:
                self._ahead = self._ahead.lstrip(b"\r\n")
            if self._ahead:
                return False
        return True

    def take_record(self, limit: int) -> bytes:
        """Return the bytes of the first CSV record that is not blank, and consume them."""
        if self.at_end(skip_blank=True):
            return b""
        searched, quoted = 0, False
        while True:
            for match in re.finditer(rb'["\r\n]', self._ahead[searched:]):
                if match[0] == b'"':
                    quoted = not quoted
                elif not quoted:
                    end = searched + match.start()
                    line, self._ahead = self._ahead[:end], self._ahead[end + 1 :]
                    if match[0] == b"\r" and self.peek(1)[:1] == b"\n":
                        self._ahead = self._ahead[1:]
                    return line
            searched = len(self._ahead)
            if len(self.peek(searched + 1)) == searched or searched > limit:
                line, self._ahead = self._ahead, b""
                return line
