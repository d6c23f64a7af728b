"""CSV from a path, standard input or an open file, as batches of text columns."""

import codecs
import csv
import gzip
import io
import os
import re
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

from deniable.errors import InputError
from deniable.schema.file_format import SEPARATORS, FileFormat
from deniable.tables.csv_known import KnownRows
from deniable.tables.encode import NUMBER

BLOCK_BYTES = 1 << 21
"""Bytes read and parsed at a time; a pipe takes a few times that much memory."""

_WIDE = 64
_WIDE_CELLS, _WIDE_ROWS = 1 << 22, 3 << 10
"""Tables with at least ``_WIDE`` columns are parsed in larger blocks, of at most so many cells or
rows: parsing a column of a block costs the same few calls for any number of rows. Halves the CPU
from CSV to CSV at 3,000 columns."""

_LESSONS = 8
"""How often the distinct texts of a table are collected again after an unknown one; then the parser
reads the rest."""

_HEADER_BYTES, _MOST_COLUMNS = 1 << 22, 1 << 17
"""Limits of the header row: bytes, columns."""

_MOST_BLOCK = 1 << 26
"""Limit of a block of a wide table, and of a row in it, in bytes."""

_SAMPLE_BYTES, _SAMPLE_ROWS = 1 << 16, 100
"""Bytes and rows at the beginning of a file from which the separator is detected."""

_OTHER_KINDS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"BZh": "a file compressed with bzip2",
    b"\xfd7zX": "a file compressed with xz",
    b"\x28\xb5\x2f\xfd": "a file compressed with zstandard",
    b"%PDF": "a PDF document",
    b"$FL2": "an SPSS file",
    b"\x80\x04": "a pickle of Python",
    b"\x80\x05": "a pickle of Python",
    b'{"': "JSON",
    b'[{"': "JSON",
}
_LINE_END, _QUOTE = b'\n"'
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")


class CsvSource:
    """A text table: fields between separators, quotes as in RFC 4180, usually with a header row.

    Every column is text. Blanks around a field are dropped except in unchanged columns. Only the
    empty field, quoted or not, is missing: ``NA``, ``null`` and ``nan`` are texts. Blank lines are
    skipped, except in a table of one column, where they are rows with a missing value. Two kinds of
    unnamed columns are dropped: empty ones at the end, which spreadsheets leave, and a first one,
    in which R and pandas write the names or numbers of rows.

    ``surely_named``: whether the column names cannot be values of the first row.
    """

    released_as: Literal["csv", "parquet"] = "csv"

    def __init__(
        self,
        file: BinaryIO,
        table: str,
        file_format: FileFormat,
        expected: Collection[str] = (),
        untouched: Collection[str] = (),
    ) -> None:
        self.table = table
        self._untouched = frozenset(untouched)
        self.decimal = file_format.decimal or "."
        self.dates = file_format.dates
        self._counted = _Replayed(file)
        self._rows = 0
        self._unnamed = 0
        self._row_names: tuple[str, ...] = ()
        self._block_bytes = BLOCK_BYTES
        with self._explained():
            stream = self._counted
            if stream.peek(2)[:2] == b"\x1f\x8b":
                # gzip reads files of several members, which parallel compressors write.
                stream = _Replayed(gzip.GzipFile(fileobj=io.BufferedReader(stream, BLOCK_BYTES)))
            for magic, what in _OTHER_KINDS.items():
                if stream.peek(4)[:4].startswith(magic):
                    raise InputError(f"{self.table}: this is {what}; export the table as CSV")
            encoding = file_format.encoding or _marked(stream.peek(4))
            if encoding == "utf-8-sig" and b"\0" in stream.peek(4)[:4]:
                raise InputError(
                    f"{table}: this looks like UTF-16 without a byte order mark; set "
                    "`schema.file.encoding` to utf-16-le, or save it as UTF-8"
                )
            self.encoding = "utf-8" if encoding == "utf-8-sig" else encoding
            self._text = _Utf8(stream, encoding)
            self._stream = _Replayed(self._text)
            # A pipe may hold a few rows and stay open: peek only at the available bytes.
            seekable = getattr(file, "seekable", lambda: False)()
            sample = self._stream.peek(_SAMPLE_BYTES if seekable else 1)
            first = self._stream.peek_record(_HEADER_BYTES).decode()
            excel = re.fullmatch(r"sep=(.)", first)
            if excel:  # Excel's line before the header
                file_format = FileFormat(separator=excel[1]).with_changes(file_format)
                self._stream.take_record(_HEADER_BYTES)
                first = self._stream.peek_record(_HEADER_BYTES).decode()
            if not first.strip():
                raise InputError(f"{table}: the file is empty; it needs a header row with names")
            self.separator = file_format.separator or self._separator(
                first, sample, file_format.columns or expected
            )
            self._text.expect(self.separator.encode(), self._stream.peek(1))
            self.names = self._names(first, file_format)
        self.surely_named = not file_format.has_header or bool(file_format.header)
        self._size = _size(file)

    @property
    def fraction(self) -> float | None:
        """Fraction of the file that is read, from 0 to 1; None if its size is unknown."""
        return self._counted.bytes_read / self._size if self._size else None

    def column_types(self, columns: Sequence[str]) -> list[Any]:
        """Return the type of each column: text."""
        return [pa.string()] * len(columns)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""
        single = len(self._row_names) + len(self.names) + self._unnamed == 1
        unnamed = [f"\0{place}" for place in range(self._unnamed)]
        ragged: list[Any] = []

        def refuse(row: Any) -> str:
            ragged.append((before + row.number, row.expected_columns, row.actual_columns))
            return "error"

        with self._explained(ragged):
            if self._stream.at_end(skip_blank=not single):
                return
            self._block_bytes = self._block()
            yield from self._known_rows(columns)
            if self._stream.at_end(skip_blank=not single):
                return
            before = self._rows
            if self._stream.peek(3).startswith(codecs.BOM_UTF8):
                # The parser drops a byte order mark at its start; here it belongs to the first
                # field.
                self._stream.give_back(codecs.BOM_UTF8)
            lent: _Lent | None = _Lent(self._stream)
            released = weakref.ref(lent)
            last = reader = None

            def handed_on(batch: Any) -> Any:
                nonlocal last
                # When the last batch arrives all has been read; only that one is held.
                last = batch if self._text.quotes % 2 else None
                batch = _trimmed(batch, self._untouched) if self._text.blanks else batch
                named = self._named(batch, unnamed)
                self._rows += batch.num_rows
                return named

            # A pyarrow thread that still holds the stream at exit aborts the process.
            try:
                reader = pc_csv.open_csv(
                    pa.PythonFile(lent, mode="r"),
                    **self._options(
                        [*self._row_names, *self.names, *unnamed], [*columns, *unnamed], refuse
                    ),
                )
                lent = None
                with reader:
                    yield from map(handed_on, reader)
            finally:
                lent = reader = None
                _wait_until_gone(released)
            if last is not None and _spans_lines(last):
                raise InputError(
                    f"{self.table}, data row {self._rows}: a quote is opened and never closed"
                )

    def _options(
        self, names: Sequence[str], columns: Sequence[str], refuse: Callable[[Any], str]
    ) -> dict[str, Any]:
        """Return pyarrow's options to parse these columns of a text with these names."""
        return {
            # A thread here reads ahead. With pyarrow's own threads the number of a ragged row is
            # lost.
            "read_options": pc_csv.ReadOptions(
                use_threads=False, block_size=self._block_bytes, column_names=names
            ),
            "parse_options": pc_csv.ParseOptions(
                delimiter=self.separator,
                newlines_in_values=True,
                ignore_empty_lines=len(names) > 1,
                invalid_row_handler=refuse,
            ),
            "convert_options": pc_csv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                check_utf8=False,  # the stream has been decoded
            ),
        }

    def _known_rows(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield batches of rows decoded by look-up (:mod:`deniable.tables.csv_known`) up to the
        first block for which that fails; the rest remains unread."""
        if self._unnamed or self._row_names or len(self.names) >= _WIDE:
            return
        block = bytearray(self._block_bytes)
        held = memoryview(block)
        filled, known, lessons = self._stream.readinto(held), None, 0
        while filled == len(held):
            if not (cut := block.rfind(b"\n") + 1):
                break
            lines = pa.py_buffer(held[:cut])
            batch = None if known is None else known.batch(lines, columns, self.names)
            if batch is None and lessons < _LESSONS:
                known, lessons = self._learned(lines, known), lessons + 1
                batch = None if known is None else known.batch(lines, columns, self.names)
            if batch is None:
                break
            yield batch
            self._rows += batch.num_rows
            left = filled - cut
            held[:left] = held[cut:filled]
            filled = left + self._stream.readinto(held[left:])
        self._stream.give_back(bytes(held[:filled]))

    def _learned(self, lines: Any, known: KnownRows | None) -> KnownRows | None:
        """Return the distinct texts of some lines and of ``known``; None if they are too many or
        the lines cannot be parsed alone."""
        if self._text.blanks:
            return None
        options = self._options(self.names, self.names, lambda _row: "error")
        try:
            rows = pc_csv.read_csv(pa.BufferReader(lines), **options)
            return KnownRows(rows, lines.to_pybytes(), self.separator, known)
        except (pa.ArrowInvalid, ValueError):
            return None

    def _named(self, batch: Any, unnamed: Sequence[str]) -> Any:
        """Return a batch without its unnamed columns, which must be empty."""
        for place, name in enumerate(unnamed, len(self._row_names) + len(self.names) + 1):
            column = batch.column(name)
            if column.null_count < len(column):
                row = self._rows + column.is_null().to_pylist().index(False) + 1
                raise InputError(
                    f"{self.table}, data row {row}: column {place} holds a value and has no name; "
                    "give it one, or leave it out of the table"
                )
        kept = batch.num_columns - len(unnamed)
        return batch.select(list(range(kept))) if unnamed else batch

    def _block(self) -> int:
        """Return how many bytes are parsed at a time."""
        if len(self.names) < _WIDE:
            return BLOCK_BYTES
        row = 1 + len(self._stream.peek_record(_HEADER_BYTES))
        wanted = row * min(_WIDE_ROWS, _WIDE_CELLS // len(self.names))
        return min(max(BLOCK_BYTES, wanted), _MOST_BLOCK)

    def _separator(self, first: str, sample: bytes, expected: Collection[str]) -> str:
        """Return the separator under which the first row has the expected names; of several, the
        one under which most rows have as many fields as the header."""
        # The last row, and the last character, of a sample may be incomplete.
        rows = sample.decode(errors="ignore")
        rows = rows[: max(rows.rfind("\n"), len(first))]
        names: dict[str, int] = {}
        alike: dict[str, float] = {}
        for separator in SEPARATORS:
            split = _split(rows, separator)
            if len(split[0]) > 1:
                names[separator] = len(set(expected).intersection(map(str.strip, split[0])))
                alike[separator] = sum(len(row) == len(split[0]) for row in split) / len(split)
        if not alike:
            return " " if self._is_divided_by_blanks(rows, expected) else ","
        likely = [
            s
            for s in alike
            if (names[s], alike[s]) == max(zip(names.values(), alike.values(), strict=True))
        ]
        if len(likely) > 1 and "," in likely and _decimal_commas(rows, likely[0]):
            likely.remove(",")
        if len(likely) > 1:
            candidates = " and ".join(SEPARATORS[s] for s in likely)
            raise InputError(
                f"{self.table}: {candidates} both fit as its separator; set "
                "`schema.file.separator` to the right one"
            )
        return likely[0]

    def _is_divided_by_blanks(self, rows: str, expected: Collection[str]) -> bool:
        """Return whether single blanks separate rows without another separator: equal numbers of
        words in all rows, and at least three, or numbers in a column, or the expected names. Other
        rows of equal numbers of words are ambiguous and raise. The first row may have one word
        less, as in R, where row names have no header."""
        (name,) = _split(rows, ",")[0]
        fields = _split(rows, " ")
        words = [sum(map(bool, row)) for row in fields]
        wide = max(words) if len(words) > 1 else 0
        if (
            wide > 1
            and wide == min(words[1:])
            and (1 < words[0] == wide or (1 < words[0] == wide - 1 and _named_rows(rows)))
            and name.strip() not in expected
        ):
            single = all(len(row) == count for row, count in zip(fields, words, strict=True))
            numbers = any(
                all(re.fullmatch(NUMBER, text) for text in column)
                for column in zip(*fields[1:], strict=False)
            )
            if single and (wide > 2 or numbers or set(fields[0]) <= set(expected)):
                return True
            raise InputError(
                f"{self.table}: every row has {wide} words and no separator; set "
                "`schema.file.separator` to ' ' if single blanks separate them (replace several "
                "by one), or to , if the table has one column"
            )
        return False

    def _names(self, first: str, file_format: FileFormat) -> tuple[str, ...]:
        fields = next(
            csv.reader(io.StringIO(first, newline=""), delimiter=self.separator, strict=True)
        )
        given = file_format.columns
        if len(fields) > _MOST_COLUMNS:
            raise InputError(
                f"{self.table}: the first row has {len(fields):,} fields; a table has at most "
                f"{_MOST_COLUMNS:,} columns"
            )
        if given and len(given) != len(fields):
            between = SEPARATORS.get(self.separator, self.separator)
            raise InputError(
                f"{self.table}: {len(given)} {'column is' if len(given) == 1 else 'columns are'} "
                f"named, and the first row has {len(fields)} field{'s' * (len(fields) != 1)} "
                f"between {between}s"
            )
        if not file_format.has_header:
            if given and list(given) == [field.strip() for field in fields]:
                raise InputError(
                    f"{self.table}: the first row already has these names; leave out "
                    "`schema.file.columns`, or set `schema.file.header = True`"
                )
            return given or tuple(f"column{i}" for i in range(1, len(fields) + 1))
        self._stream.take_record(_HEADER_BYTES)
        names = tuple(field.strip() for field in fields)
        if not given:
            named = [place for place, name in enumerate(names, 1) if name]
            self._unnamed = len(names) - max(named, default=len(names))
            if named and not names[0] and file_format.header is None:
                self._row_names = ("\0rows",)
                return names[1 : len(names) - self._unnamed]
            if self.separator in " \t" and not self._unnamed and file_format.header is None:
                # A row of R's write.table has one field more than the header: its name. Between
                # commas that may also be a decimal comma.
                row = self._stream.peek_record(_HEADER_BYTES).decode()
                if row.strip() and len(_split(row, self.separator)[0]) == len(names) + 1:
                    self._row_names = ("\0rows",)
        return given or names[: len(names) - self._unnamed]

    @contextmanager
    def _explained(self, ragged: Sequence[Any] = ()) -> Iterator[None]:
        """Turn a parser's error into one sentence: its own text quotes the row."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            if (sentence := self._sentence(error, ragged)) is None:
                raise
            raise InputError(f"{self.table}{sentence}") from None

    def _sentence(self, error: Exception, ragged: Sequence[Any]) -> str | None:
        after = f", after data row {self._rows}"
        if isinstance(error, UnicodeError):
            return self._text.problem()
        if isinstance(error, _TooLongError):
            return (
                f"{after if self._rows else ', at its beginning'}: a row is longer than "
                f"{_HEADER_BYTES >> 20} MiB; probably a quote is opened and never closed"
            )
        if isinstance(error, csv.Error):
            return ": the header row is not valid CSV; check its quotes"
        if isinstance(error, pa.ArrowInvalid):
            if ragged:
                row, expected, actual = ragged[0]
                mend = "a field that holds the separator needs quotes"
                if expected == 1:
                    mend = "lines above the header, such as a title, have to go"
                return (
                    f", data row {row}: {actual} field{'s' * (actual != 1)} instead of "
                    f"{expected}; every row needs as many as the header, and {mend}"
                )
            if "straddling" in str(error):
                most = self._block_bytes >> 20
                return (
                    f"{after}: a row is longer than {most} MiB; probably a quote is opened and "
                    "never closed"
                )
            return f"{after}: not valid CSV; check quotes and separators"
        if isinstance(error, EOFError | OSError) or type(error).__module__ == "zlib":
            return (
                f": the file cannot be read to its end{after}; it is cut off, damaged, or cannot "
                "be accessed"
            )
        return None


def _spans_lines(batch: Any) -> bool:
    """Return whether a field of the last row contains a line end."""
    row = batch.slice(batch.num_rows - 1)
    return any("\n" in (value or "") for column in row.columns for value in column.to_pylist())


def _trimmed(batch: Any, untouched: Collection[str]) -> Any:
    """Return a batch of texts without blanks at their ends, except ``untouched``; blank texts are
    null."""

    def trimmed(column: Any) -> Any:
        text = pc.ascii_trim(column, " \t")
        return pc.if_else(pc.equal(pc.binary_length(text), 0), None, text)

    columns = zip(batch.schema.names, batch.columns, strict=True)
    texts = [column if name in untouched else trimmed(column) for name, column in columns]
    return pa.RecordBatch.from_arrays(texts, schema=batch.schema)


def _split(rows: str, separator: str) -> list[list[str]]:
    """Return the fields of some rows, up to an unclosed quote."""
    try:
        lines = [
            row for row in csv.reader(io.StringIO(rows, newline=""), delimiter=separator) if row
        ]
    except csv.Error:
        lines = []
    return lines[:_SAMPLE_ROWS] or [[""]]


def _named_rows(rows: str) -> bool:
    """Return whether rows begin with row names as written by R: in quotes, or numbers."""
    starts = [line.split(" ")[0] for line in rows.splitlines()[1:] if line.strip()]
    return all(start.startswith('"') or start.isdecimal() for start in starts)


def _decimal_commas(rows: str, separator: str) -> bool:
    """Return whether every comma within a field is a decimal point."""
    fields = {field.strip() for row in _split(rows, separator) for field in row}
    return all(_DECIMAL_COMMA.fullmatch(field) for field in fields if "," in field)


def _marked(start: bytes) -> str:
    """Return the encoding of a byte order mark; UTF-8 without one."""
    wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if wide else "utf-8-sig"


def _size(file: BinaryIO) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size or None
    except (AttributeError, OSError, ValueError):
        return None


class _Utf8(io.RawIOBase):
    """A text in any encoding, converted to UTF-8.

    ``blanks``: whether fields that were read may have blanks at their ends; ``quotes``: quotes
    read.
    """

    def __init__(self, file: Any, encoding: str) -> None:
        super().__init__()
        self._file = file
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        # In UTF-8 only a mark at the very beginning is not text.
        self._as_is = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
        self._block = b""
        self._lines = 0
        self._separator = b""
        self.blanks = False
        self.quotes = 0

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1) -> bytes:
        return self._decoded(self._file.read1, size)

    def read(self, size: int = -1) -> bytes:
        return self._decoded(self._file.read, size)

    def expect(self, separator: bytes, ahead: bytes) -> None:
        """Detect blanks next to this separator from now on, and in the bytes read ahead."""
        self._separator = separator
        self.blanks = _has_outer_blanks(ahead, separator)

    def _decoded(self, read: Callable[[int], bytes], size: int) -> bytes:
        block = b""
        while not block:  # part of a character decodes to no text
            begins = not self._block
            self._block = read(size)
            if self._as_is:
                # ASCII needs no decoding, unless part of a character is pending.
                if not self._block.isascii() or self._decoder.getstate()[0] or not self._block:
                    self._decoder.decode(self._block, final=not self._block)
                block = self._block.removeprefix(codecs.BOM_UTF8) if begins else self._block
            else:
                text = self._decoder.decode(self._block, final=not self._block)
                block = (text.removeprefix("\ufeff") if begins else text).encode()
            if not self._block:
                break
        # Without a quote, `in` is much faster than counting; with many, numpy is.
        signs = np.frombuffer(block, dtype=np.uint8)
        self._lines += int(np.count_nonzero(signs == _LINE_END))
        self.quotes += int(np.count_nonzero(signs == _QUOTE)) if b'"' in block else 0
        if self._separator:
            self.blanks = self.blanks or _has_outer_blanks(block, self._separator)
        return block

    def problem(self) -> str:
        """Return the fault of the block that could not be decoded."""
        first = self._lines + 1
        known = "UTF-8" if self._encoding == "utf-8-sig" else self._encoding
        advice = "set `schema.file.encoding`, for example to latin-1, or save it as UTF-8"
        try:
            codecs.getincrementaldecoder(self._encoding)().decode(self._block, final=False)
        except UnicodeDecodeError as error:
            first += self._block[: error.start].count(b"\n")
        except UnicodeError:  # UTF-16 or UTF-32 without a byte order
            return (
                f": {known} text needs a byte order mark, which is missing; set "
                f"`schema.file.encoding` to {known}-le or {known}-be, or save it as UTF-8"
            )
        return f", line {first}: not {known} text; {advice}"


def _has_outer_blanks(block: bytes, separator: bytes) -> bool:
    blanks = [b" "] if separator == b"\t" else [b" ", b"\t"]
    edges = (separator, b"\n", b"\r", b'"')
    return any(
        block[:1] == blank or block[-1:] == blank or edge + blank in block or blank + edge in block
        for blank in blanks
        if blank in block
        for edge in edges
    )


class _Lent(io.RawIOBase):
    """The stream passed to pyarrow; collected once no pyarrow thread holds it."""

    def __init__(self, file: io.RawIOBase) -> None:
        super().__init__()
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes | None:
        return self._file.read(size)


def _wait_until_gone(thing: "weakref.ref[Any]", seconds: float = 1.0) -> None:
    """Wait until an object is collected, usually at once."""
    until = time.monotonic() + seconds
    while thing() is not None and time.monotonic() < until:
        time.sleep(0.001)


class _TooLongError(Exception):
    """A record exceeds its limit."""


class _Replayed(io.RawIOBase):
    """A stream with look-ahead that counts the bytes read."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file
        self._read_some = getattr(file, "read1", file.read)
        self._ahead = b""
        self.bytes_read = 0

    def readable(self) -> bool:
        return True

    def _more(self, read: Callable[[int], bytes | None], size: int) -> bytes:
        got = read(size) or b""
        self.bytes_read += len(got)
        return got

    def read(self, size: int = -1) -> bytes:
        got, self._ahead = self._ahead, b""
        if size < 0:
            return got + self._more(self._file.read, -1)
        if len(got) < size:
            # A full block spares the parser a tiny first batch.
            got += self._more(self._file.read, size - len(got))
        if len(got) > size:
            got, self._ahead = got[:size], got[size:]
        return got

    def read1(self, size: int = -1) -> bytes:
        if not self._ahead:
            return self._more(self._read_some, size)
        got, self._ahead = self._ahead, b""
        return got

    def readinto(self, buffer: Any) -> int:
        got = self.read(len(buffer))
        buffer[: len(got)] = got
        return len(got)

    def give_back(self, taken: bytes) -> None:
        """Return bytes to the stream."""
        self._ahead = taken + self._ahead

    def peek(self, size: int) -> bytes:
        """Return the next bytes without consuming them, fewer only at the end."""
        while len(self._ahead) < size:
            # A pipe may hold a few rows and stay open: wait for no more than needed.
            got = self._more(self._read_some, 1 << 16)
            if not got:
                break
            self._ahead += got
        return self._ahead

    def at_end(self, *, skip_blank: bool) -> bool:
        """Return whether the stream is at its end, or only blank lines remain."""
        while self.peek(1):
            if skip_blank:
                self._ahead = self._ahead.lstrip(b"\r\n")
            if self._ahead:
                return False
        return True

    def peek_record(self, limit: int) -> bytes:
        """Return the bytes of the first non-blank CSV record, without its line end."""
        if self.at_end(skip_blank=True):
            return b""
        end = self._record(limit)  # reads on
        return self._ahead[:end]

    def take_record(self, limit: int) -> None:
        """Consume the first non-blank CSV record with its line end."""
        end = self._record(limit)
        line_end = self._ahead[end : end + 1]
        self._ahead = self._ahead[end + 1 :]
        if line_end == b"\r" and self.peek(1)[:1] == b"\n":
            self._ahead = self._ahead[1:]

    def _record(self, limit: int) -> int:
        """Return the end of the record that begins here."""
        searched, quoted = 0, False
        while True:
            for match in re.finditer(rb'["\r\n]', self._ahead[searched:]):
                if match[0] == b'"':
                    quoted = not quoted
                elif not quoted:
                    return searched + match.start()
            searched = len(self._ahead)
            if searched > limit:
                raise _TooLongError
            if len(self.peek(searched + 1)) == searched:
                return searched
