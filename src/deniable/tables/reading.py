"""Tables of any format to batches of codes, in memory that does not depend on the number of
rows."""

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable._checks import first_duplicate
from deniable.errors import InputError
from deniable.randomness import BitSource
from deniable.schema import Attribute, FileFormat, category_text
from deniable.tables.arrays import booleans, to_numpy
from deniable.tables.csv_source import CsvSource
from deniable.tables.declaring import quoted
from deniable.tables.encode import REASONS, AttributeEncoder, ColumnEncoder, ColumnsEncoder
from deniable.tables.files import Unit, files_of
from deniable.tables.formats import Opening, Source, open_source
from deniable.tables.header_rows import refuse_header_rows
from deniable.tables.look_ahead import read_ahead
from deniable.tables.plink import PEOPLE, Fileset, genotype_values, is_fileset

BATCH_ROWS = 1 << 16
"""Rows read at a time from Parquet and dataframes, and written at a time in random order."""

_BATCH_CELLS, _LEAST_ROWS = 3 << 20, 1 << 9
"""Cells above which a batch has fewer rows, and the least number of rows."""

AS_FOUND = FileFormat()
"""No declared properties of a text file."""

AS_RELEASED = FileFormat(separator=",", header=True)
"""Format of every text release."""


@dataclass(frozen=True)
class Batch:
    """Some rows of a table.

    ``codes``: one array per attribute, in their order, shape (n_rows,). ``kept``: unchanged columns
    by name. ``first_row``: number of the first row among the table's data rows, from 1.
    """

    codes: list[NDArray[Any]]
    kept: dict[str, Any]
    n_rows: int
    first_row: int


@dataclass
class Mismatch:
    """Count of a column's values that do not fit for one reason; ``first_row`` is counted from
    1."""

    first_row: int
    count: int
    values: list[Any]


class TableReader:
    """An open table, made by :func:`open_table`. Iterate over it once.

    ``columns``: name and pyarrow type of every column read, in the table's order. ``decimal``:
    decimal point of numbers in text. ``outside``: numbers that are set to an end of their range, by
    column.
    """

    def __init__(
        self,
        source: Source,
        file: BinaryIO | None,
        attributes: Sequence[Attribute],
        keep: Sequence[str],
        other_columns: Literal["refuse", "drop"],
        show_values: bool,
        rows_before: int = 0,
        rounding: BitSource | None = None,
    ) -> None:
        self.table = source.table
        self._rows_before = rows_before
        self.attributes = tuple(attributes)
        self.keep = tuple(keep)
        self.all_names = source.names
        self.decimal = source.decimal
        self._show_values = show_values
        self.source = source
        self._fraction: float | None = None
        self._file = file
        columns = [column.name for a in attributes for column in a.columns]
        _check_names(source, columns, keep, other_columns, show_values)
        needed = {*columns, *keep}
        names = [name for name in source.names if name in needed]
        self.columns = tuple(zip(names, source.column_types(names), strict=True))
        types = dict(self.columns)
        self._of_bits: dict[Any, NDArray[Any]] = {}
        self.outside: Counter[str] = Counter()
        self._encoders = [
            AttributeEncoder(
                a,
                source.table,
                show_values=show_values,
                column_types=types,
                decimal=source.decimal,
                dates=source.dates,
                rounding=rounding,
            )
            for a in attributes
        ]

    @property
    def fraction(self) -> float | None:
        """Fraction of the table passed to the caller, from 0 to 1, without the rows read ahead;
        None if its size is unknown."""
        return self._fraction

    def _batches(self, columns: Sequence[str]) -> Generator[tuple[Any, float | None], None, None]:
        """Yield record batches, each with the fraction of the table up to its end; a thread reads
        one ahead."""

        def ended(batch: Any) -> tuple[Any, float | None]:
            return batch, self.source.fraction

        return read_ahead(map(ended, self.source.batches(columns)))  # holds no batch handed on

    @property
    def _column_encoders(self) -> dict[str, ColumnEncoder]:
        return {c.attribute.name: c for e in self._encoders for c in e.columns}

    def __iter__(self) -> Iterator[Batch]:
        """Yield the table's rows; a thread reads a batch or two ahead."""
        names = [name for name, _ in self.columns]
        kinds = dict(self.columns)
        columns = ColumnsEncoder(self._column_encoders, kinds)
        first_row = self._rows_before + 1
        with closing(self._batches(names)) as batches:
            for batch, self._fraction in batches:
                if first_row == 1:
                    refuse_header_rows(self.table, batch)
                codes = self._encoded(columns, batch, first_row)
                kept = {name: _of_type(batch.column(name), kinds[name]) for name in self.keep}
                n_rows = batch.num_rows
                del batch  # frees its other columns while the caller works
                yield Batch(codes, kept, n_rows, first_row)
                first_row += n_rows

    def _encoded(self, columns: ColumnsEncoder, batch: Any, first_row: int) -> list[NDArray[Any]]:
        """Return the codes of a record batch, one array of shape (n,) per attribute."""
        encoded: dict[str, NDArray[Any]] = {}
        for names, codes in columns.look(batch):
            if codes.size and codes.min() < 0:  # codes of categories never are
                # The first misfit in the attributes' order is reported.
                return [encoder.encode(batch, first_row) for encoder in self._encoders]
            encoded.update(zip(names, map(columns.encoders[names[0]].rounded, codes), strict=True))
            self._count_outside(columns.encoders[names[0]], names, codes)
        return [
            encoder.combined([encoded[c.attribute.name] for c in encoder.columns])
            for encoder in self._encoders
        ]

    def _count_outside(
        self, encoder: ColumnEncoder, names: Sequence[str], codes: NDArray[Any]
    ) -> None:
        if encoder.attribute.outside == "clip":
            for name, column in zip(names, codes, strict=True):
                self.outside[name] += encoder.n_outside(column)

    def genotypes(self, place: int) -> NDArray[Any]:
        """Return all rows' codes of one attribute of a fileset, shape (n,)."""
        assert isinstance(self.source, Fileset)
        encoder = self._encoders[place]
        return encoder.combined([self._attribute_column(column) for column in encoder.columns])

    def whole_column(self, name: str) -> Any:
        """Return a column of a fileset, a pyarrow array of shape (n,)."""
        assert isinstance(self.source, Fileset)
        return self.source.column(name)

    def _attribute_column(self, encoder: ColumnEncoder) -> NDArray[Any]:
        source, name = self.source, encoder.attribute.name
        assert isinstance(source, Fileset)
        code_of = None if name in source.people else self._codes_of_bits(encoder)
        if code_of is not None and code_of.max() < 255:
            codes = source.codes(name, np.where(code_of < 0, 255, code_of).astype(np.uint8))
            if code_of.min() >= 0 or codes.max() < 255:
                return codes
        return encoder.encode(source.column(name))  # raises with the misfit's place

    def _codes_of_bits(self, encoder: ColumnEncoder) -> NDArray[Any]:
        """Return the code of each pair of bits, shape (4,), shared by variants with equal
        declarations."""
        if encoder.declared not in self._of_bits:
            self._of_bits[encoder.declared] = encoder.look(genotype_values())
        return self._of_bits[encoder.declared]

    def look(
        self,
        filled: Sequence[str] = (),
        progress: Callable[[float | None], None] = lambda _fraction: None,
        tally: Mapping[str, Callable[[Any], None]] = MappingProxyType({}),
        check_kept: Callable[[str, dict[str, Any], int], None] | None = None,
    ) -> int:
        """Read all rows and compare them with the declarations; return the number of rows."""
        columns = self._column_encoders
        names = [name for name, _ in self.columns]
        if isinstance(self.source, Fileset):
            # A variant's values are known without its rows.
            columns = {
                name: encoder
                for name, encoder in columns.items()
                if name in self.source.people
                or self._codes_of_bits(encoder)[self.source.bits_found(name)].min() < 0
            }
            names = [n for n in names if n in columns or n in filled or n in tally]
            if not names:
                return self.source.n_rows
        mismatches: dict[tuple[str, int], Mismatch] = {}
        kinds = dict(self.columns)
        together = ColumnsEncoder(columns, kinds)
        n_rows = self._rows_before
        with closing(self._batches(names)) as batches:
            for batch, self._fraction in batches:
                if n_rows == 0:
                    refuse_header_rows(self.table, batch)
                wrong: dict[str, NDArray[Any]] = {}
                for alike, codes in together.look(batch):
                    if codes.size and codes.min() < 0:  # codes of categories never are
                        wrong.update(zip(alike, codes, strict=True))
                    self._count_outside(together.encoders[alike[0]], alike, codes)
                for name in columns if wrong else ():
                    for reason in REASONS if name in wrong else ():
                        column = batch.column(name)
                        _note(mismatches, (name, reason), wrong[name] == reason, column, n_rows)
                for name in filled:
                    empty = to_numpy(batch.column(name).is_null())
                    _note(mismatches, (name, 0), empty, batch.column(name), n_rows)
                if check_kept is not None:
                    kept = {name: _of_type(batch.column(name), kinds[name]) for name in self.keep}
                    check_kept(self.table, kept, n_rows + 1)
                for name, count in tally.items():
                    count(_of_type(batch.column(name), kinds[name]).drop_null())
                n_rows += batch.num_rows
                progress(self.fraction)
        if mismatches:
            header = isinstance(self.source, CsvSource)
            raise _mismatches(
                self.table, columns, mismatches, show_values=self._show_values, header=header
            )
        return n_rows - self._rows_before

    def __enter__(self) -> "TableReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file if this object opened it."""
        if self._file is not None and self._file is not sys.stdin.buffer:
            self._file.close()


class SeveralTables:
    """Tables read one after the other as one; made by :func:`open_table`.

    Attributes as of :class:`TableReader`; ``table`` is the current one, and rows are counted in it.
    """

    def __init__(self, files: Sequence[Path], open_one: Callable[[Path], TableReader]) -> None:
        self._files = files
        self._open_one = open_one
        self.outside: Counter[str] = Counter()
        self._sizes = [path.stat().st_size if path.exists() else 0 for path in files]
        self._done = 0
        self._current = open_one(files[0])
        self.columns = self._current.columns
        self.all_names = self._current.all_names
        self.attributes = self._current.attributes
        self.keep = self._current.keep
        self.decimal = self._current.decimal

    @property
    def table(self) -> str:
        """Name of the current table."""
        return self._current.table

    @property
    def source(self) -> Source:
        """Source of the current rows."""
        return self._current.source

    @property
    def fraction(self) -> float | None:
        """Fraction read, from 0 to 1."""
        own = self._current.fraction
        before = sum(self._sizes[: self._done])
        now = 0.0 if own is None else own * self._sizes[self._done]
        return (before + now) / max(1, sum(self._sizes))

    def _each(self) -> Iterator[TableReader]:
        for number, path in enumerate(self._files):
            if number:
                self._current.close()
                self._current = self._open_one(path)
                self._done = number
                refuse_other_columns(self.columns, self._current, self._files[0])
            yield self._current
            self.outside += self._current.outside

    def __iter__(self) -> Iterator[Batch]:
        """Yield the rows of all tables."""
        for reader in self._each():
            yield from reader

    def look(
        self,
        filled: Sequence[str] = (),
        progress: Callable[[float | None], None] = lambda _fraction: None,
        tally: Mapping[str, Callable[[Any], None]] = MappingProxyType({}),
        check_kept: Callable[[str, dict[str, Any], int], None] | None = None,
    ) -> int:
        """Compare all rows with the declarations; return the number of rows."""
        return sum(
            r.look(filled, lambda _: progress(self.fraction), tally, check_kept)
            for r in self._each()
        )

    def __enter__(self) -> "SeveralTables":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the current file."""
        self._current.close()


def refuse_other_columns(
    columns: Sequence[tuple[str, Any]], reader: TableReader, first: Path | str
) -> None:
    """Raise if a table's columns, or their types, differ from those of the first of several."""
    expected, kinds = dict(columns), dict(reader.columns)
    for name, kind in expected.items():
        if kinds[name] != kind:
            raise InputError(
                f"{reader.table}: column '{name}' has type {kinds[name]} here and type {kind} in "
                f"{first}; tables of one release have the same columns"
            )


Reader = TableReader | SeveralTables
"""Result of :func:`open_table`."""


def open_table(
    source: Any,
    attributes: Sequence[Attribute],
    keep: Sequence[str] = (),
    *,
    other_columns: Literal["refuse", "drop"] = "refuse",
    show_values: bool = False,
    batch_rows: int = BATCH_ROWS,
    file_format: FileFormat = AS_FOUND,
    rounding: BitSource | None = None,
) -> Reader:
    """Open a table and check its columns, reading only the header.

    ``rounding``: bits for the rounding of numbers to the points of their grid. Without them a table
    of released rows is expected, whose numbers are points.
    """
    files = files_of(source)
    one = partial(
        open_unit,
        attributes=attributes,
        keep=keep,
        other_columns=other_columns,
        show_values=show_values,
        batch_rows=batch_rows,
        file_format=file_format,
        rounding=rounding,
    )
    if files is None:
        return one(source)
    return one(files[0]) if len(files) == 1 else SeveralTables(files, one)


def open_unit(
    source: Any,
    attributes: Sequence[Attribute],
    keep: Sequence[str] = (),
    unit: Unit | None = None,
    *,
    other_columns: Literal["refuse", "drop"] = "refuse",
    show_values: bool = False,
    batch_rows: int = BATCH_ROWS,
    file_format: FileFormat = AS_FOUND,
    rounding: BitSource | None = None,
) -> TableReader:
    """Open one table, or a unit of it; see :func:`open_table`."""
    expected = {*keep, *(column.name for a in attributes for column in a.columns)}
    batch_rows = min(batch_rows, max(_LEAST_ROWS, _BATCH_CELLS // max(1, len(expected))))
    file: BinaryIO | None = None
    opened: Source
    try:
        if hasattr(source, "read"):
            name = getattr(source, "name", None)
            table = name if isinstance(name, str) else "the input"
            opened = CsvSource(source, table, file_format, expected, keep)
        elif not isinstance(source, str | os.PathLike):
            from deniable.tables.frames import open_frame

            opened = open_frame(source, batch_rows, file_format.dates)
        else:
            file, table = _open_file(source)
            if is_fileset(source):
                opened = Fileset(file, table, expected)
            else:
                encoded = [
                    column
                    for attribute in attributes
                    for column in attribute.columns
                    if column.name not in keep
                ]
                groups = None if unit is None else unit.groups
                opened = open_source(
                    Opening(file, table, batch_rows, file_format, encoded, expected, keep, groups)
                )
        before = 0 if unit is None else unit.rows_before
        return TableReader(
            opened, file, attributes, keep, other_columns, show_values, before, rounding
        )
    except BaseException:
        if file is not None and file is not sys.stdin.buffer:
            file.close()
        raise


def column_names(
    source: Any, file_format: FileFormat = AS_FOUND, asked: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names of all columns of a table, in order."""
    people = [name for name in asked if name in PEOPLE] if is_fileset(source) else []
    with open_table(source, [], people, other_columns="drop", file_format=file_format) as reader:
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


_SHOWN_VALUES = 5


def _note(
    mismatches: dict[tuple[str, int], Mismatch],
    kind: tuple[str, int],
    wrong: NDArray[np.bool_],
    column: Any,
    rows_before: int,
) -> None:
    if not wrong.any():
        return
    first = int(np.argmax(wrong))
    mismatch = mismatches.setdefault(kind, Mismatch(rows_before + first + 1, 0, []))
    mismatch.count += int(wrong.sum())
    if len(mismatch.values) < _SHOWN_VALUES:
        for value in column.filter(booleans(wrong)).unique().to_pylist():
            if value is not None and value not in mismatch.values:
                mismatch.values.append(value)
        del mismatch.values[_SHOWN_VALUES:]


def _mismatches(
    table: str,
    columns: Mapping[str, ColumnEncoder],
    mismatches: Mapping[tuple[str, int], Mismatch],
    *,
    show_values: bool,
    header: bool,
) -> InputError:
    counted = "data rows are counted from 1" + (", without the header" if header else "")
    sentences = []
    for (name, reason), mismatch in mismatches.items():
        problem = "{0} {1} empty; fill in the person, or leave the row out"
        if name in columns and reason:
            problem = columns[name].problem(reason)
        shown = ""
        if show_values and mismatch.values:
            shown = " " + ", ".join(repr(category_text(value)) for value in mismatch.values)
        one = mismatch.count == 1
        what = (
            f"the value{shown}"
            if one
            else f"{mismatch.count:,} values{shown and f' (such as{shown})'}"
        )
        text = problem.format(what, "is" if one else "are", "lies" if one else "lie")
        first = "" if one else "the first in "
        sentences.append(f"{first}data row {mismatch.first_row}, column '{name}': {text}")
    if len(sentences) == 1:
        return InputError(f"{table}, {sentences[0]} ({counted})")
    listed = "\n  ".join(sentences)
    return InputError(
        f"{table}: {len(sentences)} kinds of values do not fit the schema; {counted}\n  {listed}"
    )


def _of_type(column: Any, kind: Any) -> Any:
    """Return a column in its declared type: text may come as a dictionary."""
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(kind):
        column = column.dictionary_decode()  # some text types have no cast
    return column if column.type == kind else column.cast(kind)


def can_be_read_again(source: Any) -> bool:
    """Return whether opening a table a second time gives its rows again; an open file does after a
    return to its start."""
    if isinstance(source, str | os.PathLike):
        return source != "-" and (Path(source).is_file() or files_of(source) is not None)
    if isinstance(source, list | tuple):
        return True
    if hasattr(source, "read"):
        return bool(getattr(source, "seekable", lambda: False)())
    from deniable.tables.frames import frame_can_be_read_again

    return frame_can_be_read_again(source)


@contextmanager
def as_it_was(source: Any) -> Iterator[None]:
    """Restore the position of an open file."""
    if not hasattr(source, "seek"):
        yield
        return
    place = source.tell()
    try:
        yield
    finally:
        source.seek(place)


@contextmanager
def read_twice(source: Any) -> Iterator[Any]:
    """Yield a source that gives its rows each time it is opened.

    Standard input is copied to an unnamed temporary file, which disappears with the process; other
    sources are yielded unchanged.
    """
    if not isinstance(source, str) or source != "-":
        yield source
        return
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.seek(0)
        yield file


def _check_names(
    source: Source,
    attributes: Sequence[str],
    keep: Sequence[str],
    other_columns: str,
    show_values: bool,
) -> None:
    present = set(source.names)
    needed = [*attributes, *keep]
    known = set(needed)
    unknown = [name for name in source.names if name not in known]
    missing = [name for name in needed if name not in present]
    # Without a header row the first row holds a person's values, which are not shown, unless all
    # the schema's names are in it.
    named = source.surely_named or show_values or bool(needed and not missing)
    if needed and len(missing) == len(needed):
        raise InputError(
            f"{source.table}: none of the schema's columns ({_listed(needed)}) is in it; it needs "
            "a header row with these names, or set `schema.file.header = False` and "
            "`schema.file.columns` to its columns"
        )
    if "" in source.names:
        place = 1 + source.names.index("")
        raise InputError(
            f"{source.table}: column {place} has no name; give it one, or leave it out of the table"
        )
    if (twice := first_duplicate(source.names)) is not None:
        named = named or twice in needed
        places = [place for place, name in enumerate(source.names, 1) if name == twice]
        called = (
            f"are called '{twice}'" if named else f"({places[0]} and {places[1]}) have one name"
        )
        hint = (
            "" if named else (", or set `schema.file.header = False` if the first row holds data")
        )
        raise InputError(f"{source.table}: two columns {called}; rename one of them{hint}")
    if missing:
        has = _listed(source.names) if named else _counted(len(needed) - len(missing), len(unknown))
        raise InputError(f"{source.table}: there is no column '{missing[0]}'; the table has {has}")
    if unknown and other_columns == "refuse":
        raise InputError(
            f"{source.table}: the schema neither declares nor keeps {_listed(unknown)}; such a "
            "column could identify people, so declare it, leave it out with `drop_other_columns`, "
            "or release it unprotected with a line in the schema: "
            f"keep = [{', '.join(map(quoted, unknown))}]"
        )


def _counted(known: int, unknown: int) -> str:
    return (
        f"{known} of the schema's columns and {unknown} that the schema lacks "
        "(`deniable share --show-values` names them)"
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")
