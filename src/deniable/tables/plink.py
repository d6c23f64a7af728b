"""Genotypes in PLINK 1 format: a ``.bed`` file with its ``.bim`` and ``.fam``.

A column is a variant, named by its id in the ``.bim`` file: 0, 1 or 2 copies of the first allele
listed there (the fifth field), or missing. The fields of the ``.fam`` file, which identify people,
are columns only if named: :data:`PEOPLE`.

A genotype takes two bits, the first person's the lowest, and a variant a whole number of bytes:
https://www.cog-genomics.org/plink/1.9/formats#bed. They are read and written here, faster than by
existing libraries: docs/decisions/0020-genotypes-attribute-by-attribute.md.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.atomic_files import atomic_output, explain_write_errors
from deniable.errors import InputError
from deniable.tables.arrays import Value, from_numpy, from_values
from deniable.tables.columns import Column, label_values

PEOPLE = ("FID", "IID", "PAT", "MAT", "SEX", "PHENO1")
"""A person's fields, by PLINK 2's names."""

COMPANIONS = (".bim", ".fam")
"""Endings of the files that accompany the genotypes."""

_UNKNOWN = {"PAT": "0", "MAT": "0", "SEX": "0", "PHENO1": "-9"}
"""PLINK's values for unknown, in fields that a release lacks."""

_MAGIC = b"\x6c\x1b\x01"
"""First bytes of a PLINK 1 .bed file with the genotypes variant by variant."""

_ALLELES = np.array([2, -1, 1, 0], dtype=np.int8)
"""Number of first alleles of each pair of bits; −1 if missing."""

_BITS_OF: dict[Value, int] = {2: 0, None: 1, 1: 2, 0: 3}
"""Pair of bits of each number of first alleles, and of a missing genotype: the inverse of
``_ALLELES``."""

MISSING_BITS = 1

_BLOCK_BYTES = 1 << 20
"""Bytes of a ``.bim`` or ``.fam`` file read at a time."""

_CELLS, _MOST_ROWS = 1 << 24, 1 << 16
"""Largest numbers of genotypes (16 MB), and of people, in a record batch."""


def is_fileset(source: object) -> bool:
    """Return whether a source is the name of a ``.bed`` file."""
    return isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith(".bed")


class Fileset:
    """A PLINK 1 fileset, read by rows like any table, or variant by variant; ``variants``: their
    ids, in order."""

    decimal = "."
    dates: str | None = None
    surely_named = True
    released_as: Literal["csv", "parquet"] = "parquet"

    def __init__(self, file: BinaryIO, table: str, expected: Collection[str] = ()) -> None:
        self.table = table
        self._file = file
        self._done = 0
        start = file.read(3)
        if start != _MAGIC:
            raise InputError(f"{table}: {_fault(start)}")
        self.bim, fam = (Path(table).with_suffix(suffix) for suffix in COMPANIONS)
        self.variants = tuple(
            name
            for fields in _fields(self.bim, "a variant")
            for name in _texts(self.bim, fields[1])
        )
        if "." in self.variants:
            raise InputError(
                f"{self.bim}, line {self.variants.index('.') + 1}: the variant has no id; give "
                "every one its own, as plink2 --set-all-var-ids does"
            )
        if taken := [name for name in PEOPLE if name in self.variants]:
            raise InputError(
                f"{self.bim}: a variant has the name '{taken[0]}' of a field of people; rename it"
            )
        asked = [name for name in PEOPLE if name in expected]
        self.people: dict[str, list[str]] = {name: [] for name in asked}
        self.n_rows = 0
        for fields in _fields(fam, "a person"):
            self.n_rows += len(fields[0])
            for name in asked:
                self.people[name] += _texts(fam, fields[PEOPLE.index(name)])
        if not self.n_rows or not self.variants:
            empty = self.bim if self.n_rows else fam
            raise InputError(f"{empty} is empty; name a fileset with people and variants")
        self.names = (*asked, *self.variants)
        self._places = {name: place for place, name in enumerate(self.variants)}
        self._width = -(-self.n_rows // 4)
        size, needed = os.fstat(file.fileno()).st_size, 3 + len(self.variants) * self._width
        if size != needed:
            raise InputError(
                f"{table}: {len(self.variants):,} variants of {self.n_rows:,} people take "
                f"{needed:,} bytes and the file has {size:,}; it is cut off, or its .bim or .fam "
                "belongs to another file"
            )

    @property
    def fraction(self) -> float | None:
        """Fraction of the rows that is read, from 0 to 1."""
        return self._done / max(1, self.n_rows)

    def column_types(self, columns: Sequence[str]) -> list[Any]:
        """Return the pyarrow type of each column: small integers, or text for people's fields."""
        return [pa.string() if name in self.people else pa.int8() for name in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""
        step = max(4, min(_MOST_ROWS, _CELLS // max(1, len(columns))) & ~3)
        for start in range(0, self.n_rows, step):
            stop = min(start + step, self.n_rows)
            arrays = [self._rows(name, start, stop) for name in columns]
            self._done = stop
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _rows(self, name: str, start: int, stop: int) -> Any:
        if name in self.people:
            return from_values(self.people[name][start:stop], pa.string())
        alleles = unpacked(self._packed(name, start, stop), _ALLELES.view(np.uint8), stop - start)
        return from_numpy(alleles.view(np.int8), null=-1)

    def column(self, name: str) -> Any:
        """Return a whole column, a pyarrow array of shape (n_rows,)."""
        return self._rows(name, 0, self.n_rows)

    def bits_found(self, name: str) -> NDArray[np.bool_]:
        """Return which of the four pairs of bits a variant has, shape (4,)."""
        packed = self._packed(name, 0, self.n_rows)
        # The last byte may be padded with zeros.
        held = np.bincount(packed[: self.n_rows // 4], minlength=256) @ _pairs_of_bytes()
        rest = unpacked(packed[-1:], np.arange(4, dtype=np.uint8), self.n_rows % 4)
        return held + np.bincount(rest, minlength=4) > 0

    def codes(self, name: str, code_of: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return a variant's codes, shape (n_rows,).

        ``code_of``: the code of each pair of bits, shape (4,).
        """
        return unpacked(self._packed(name, 0, self.n_rows), code_of, self.n_rows)

    def _packed(self, name: str, start: int, stop: int) -> NDArray[np.uint8]:
        first, end = start // 4, -(-stop // 4)
        place = 3 + self._places[name] * self._width + first
        try:
            self._file.seek(place)
            content = self._file.read(end - first)
        except OSError as error:
            raise InputError(f"{self.table}: cannot be read ({error.strerror})") from None
        if len(content) != end - first:
            raise InputError(f"{self.table}: the file has become shorter while it was read")
        return np.frombuffer(content, dtype=np.uint8)


def genotype_values() -> Any:
    """Return the genotypes of the four pairs of bits, a pyarrow array of shape (4,)."""
    return from_numpy(_ALLELES, null=-1)


def unpacked(
    packed: NDArray[np.uint8], code_of: NDArray[np.uint8], count: int
) -> NDArray[np.uint8]:
    """Return the codes of the first genotypes in some bytes, shape (count,).

    >>> unpacked(np.array([0b11_10_01_00], dtype=np.uint8), np.arange(4, dtype=np.uint8), 3)
    array([0, 1, 2], dtype=uint8)
    """
    codes: NDArray[np.uint8] = _four_codes(code_of.tobytes()).take(packed).view(np.uint8)
    return codes[:count]


@lru_cache(maxsize=64)
def _four_codes(code_of: bytes) -> NDArray[np.uint32]:
    """Return the codes of the four genotypes of each byte, shape (256,), one byte each."""
    shifts = np.array([0, 2, 4, 6])
    pairs = np.arange(256)[:, None] >> shifts & 3
    codes = np.frombuffer(code_of, dtype=np.uint8)[pairs]
    return np.asarray(codes.view(np.uint32).ravel())


@lru_cache(maxsize=1)
def _pairs_of_bytes() -> NDArray[np.int64]:
    """Return the counts of each pair of bits in each byte, shape (256, 4)."""
    pairs = np.arange(256)[:, None] >> np.array([0, 2, 4, 6]) & 3
    return np.asarray((pairs[:, :, None] == np.arange(4)).sum(axis=1))


def packed(bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return pairs of bits, shape (n,), four to a byte, the first the lowest, padded with zeros."""
    count = len(bits)
    padded = np.zeros(-(-count // 4) * 4, dtype=np.uint8)
    padded[:count] = bits
    four = padded.view("<u4")
    return np.asarray((four | four >> 6 | four >> 12 | four >> 18).astype(np.uint8))


def _fault(start: bytes) -> str:
    if start[:2] == _MAGIC[:2] and start[2:] == b"\0":
        return "its genotypes are stored person by person; convert it with plink --make-bed"
    return (
        "this is not a PLINK 1 .bed file, which begins with the bytes 6c 1b 01; convert .pgen or "
        ".vcf files with plink2 --make-bed"
    )


def _fields(path: Path, what: str) -> Iterator[list[tuple[bytes, ...]]]:
    """Yield the six columns of a ``.bim`` or ``.fam`` file, some lines at a time."""
    number = 0
    try:
        with path.open("rb") as file:
            while lines := file.readlines(_BLOCK_BYTES):
                fields = [line.split() for line in lines]
                for found in fields:
                    number += 1
                    if len(found) != 6:
                        raise InputError(
                            f"{path}, line {number}: {what} has six fields, not {len(found)}"
                        )
                yield list(zip(*fields, strict=True))
    except FileNotFoundError:
        raise InputError(
            f"{path}: there is no such file; a .bed file needs its .bim and .fam next to it"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _texts(path: Path, words: Sequence[bytes]) -> list[str]:
    try:
        return b" ".join(words).decode().split(" ")
    except UnicodeDecodeError:
        raise InputError(f"{path}: this is not text in UTF-8") from None


def check_people(path: Path, columns: Collection[str]) -> None:
    """Raise if a released ``.fam`` file has data of no released column."""
    fam = path.with_suffix(".fam")
    row = 0
    for fields in _fields(fam, "a person"):
        people = dict(zip(PEOPLE, fields, strict=True))
        for place, iid in enumerate(people["IID"]):
            row += 1
            unknown = {"IID": f"{row}", "FID": iid.decode(errors="replace"), **_UNKNOWN}
            for name, word in unknown.items():
                if name not in columns and people[name][place] != word.encode():
                    raise InputError(
                        f"{fam}, line {row}: the record does not list {name} among the released "
                        "columns, and the field is not empty"
                    )


class FilesetWriter:
    """Writes a released fileset; its files appear at the end of the block, the ``.bed`` last.

    Variants may be written in any order, each once. The lines of the ``.bim`` file are the input's.
    People are numbered, without further fields unless these are columns.
    """

    def __init__(
        self,
        path: Path,
        source: Fileset,
        columns: Sequence[Column],
        *,
        overwrite: bool = False,
        before_seen: Any = lambda: None,
    ) -> None:
        self._path = path
        self._source = source
        self._overwrite = overwrite
        self._before_seen = before_seen
        self._people: dict[str, list[str]] = {}
        self._bytes: dict[str, NDArray[np.uint8]] = {}
        self._places: dict[str, int] = {}
        if any(column.added for column in columns):
            raise InputError(
                f"{path}: rows with forms have empty cells, which a .bed file cannot hold; name "
                "the output .parquet or .csv"
            )
        for column in columns:
            if column.name in PEOPLE:
                _check_words(column)
                continue
            self._places[column.name] = len(self._places)
            if column.position is not None:
                self._bytes[column.name] = _bytes_of(column)

    def __enter__(self) -> "FilesetWriter":
        with ExitStack() as stack:
            # Files get their names in reverse order of opening.
            self._bed = stack.enter_context(atomic_output(self._path, overwrite=self._overwrite))
            bim, fam = (self._path.with_suffix(suffix) for suffix in COMPANIONS)
            self._bim = stack.enter_context(atomic_output(bim, overwrite=self._overwrite))
            self._fam = stack.enter_context(
                atomic_output(fam, overwrite=self._overwrite, before_named=self._before_seen)
            )
            stack.enter_context(explain_write_errors(self._path))
            self._bed.write(_MAGIC)
            self._stack = stack.pop_all()
        return self

    def write(self, column: Column, codes: Mapping[int, NDArray[Any]]) -> None:
        """Write a randomized column.

        ``codes``: the released codes by the attribute's number, shape (n,).
        """
        shown = column.codes(codes)
        if column.name in PEOPLE:
            labels = np.array(column.labels, dtype=object)
            self._people[column.name] = labels[shown].tolist()
        else:
            # Fewer than four codes: two bits each.
            self._put(column.name, self._bytes[column.name].take(packed(shown)))

    def copy(self, column: Column, order: NDArray[np.intp] | None) -> None:
        """Write an unchanged column, its rows in this order."""
        if column.name in PEOPLE:
            words = self._source.people[column.name]
            self._people[column.name] = words if order is None else [words[i] for i in order]
        else:
            bits = self._source.codes(column.name, np.arange(4, dtype=np.uint8))
            self._put(column.name, packed(bits if order is None else bits[order]))

    def _put(self, name: str, content: NDArray[np.uint8]) -> None:
        self._bed.seek(3 + self._places[name] * len(content))
        self._bed.write(content.data)

    def _finish(self) -> None:
        self._bed.seek(0, os.SEEK_END)  # truncates the rest
        with self._source.bim.open("rb") as lines:
            for name, line in zip(self._source.variants, lines, strict=True):
                if name in self._places:
                    self._bim.write(line.rstrip(b"\r\n") + b"\n")
        n_rows = self._source.n_rows
        for start in range(0, n_rows, _MOST_ROWS):
            rows = range(start, min(start + _MOST_ROWS, n_rows))
            columns = {name: words[rows.start : rows.stop] for name, words in self._people.items()}
            iids = columns.get("IID") or [str(row + 1) for row in rows]
            fields = [columns.get("FID", iids), iids]
            fields += [columns.get(name, [word] * len(rows)) for name, word in _UNKNOWN.items()]
            people = map(" ".join, zip(*fields, strict=True))
            self._fam.write(("\n".join(people) + "\n").encode())

    def __exit__(self, *error: Any) -> None:
        if error[1] is not None:
            self._stack.__exit__(*error)
            return
        with self._stack:
            self._finish()


def holds_genotypes(columns: Sequence[Column]) -> bool:
    """Return whether a fileset can hold the released values of these columns."""
    return all(
        column.name in PEOPLE
        or column.position is None
        or all(value in _BITS_OF for value in label_values(column.labels, column.kind))
        for column in columns
    )


def _bytes_of(column: Column) -> NDArray[np.uint8]:
    """Return the byte of every four released codes, packed themselves, shape (256,)."""
    values = label_values(column.labels, column.kind)
    if any(value not in _BITS_OF for value in values):
        raise InputError(
            f"'{column.name}' is released as {', '.join(map(repr, column.labels[:4]))}, and a .bed "
            "file holds 0, 1, 2 and one missing value; name the output .parquet or .csv"
        )
    bits = np.zeros(4, dtype=np.uint8)
    bits[: len(values)] = [_BITS_OF[value] for value in values]
    return packed(unpacked(np.arange(256, dtype=np.uint8), bits, 1024))


def _check_words(column: Column) -> None:
    if any(len(label.split()) != 1 for label in column.labels):
        raise InputError(
            f"'{column.name}': a label with a blank does not fit into a .fam file; name the output "
            ".parquet or .csv"
        )
