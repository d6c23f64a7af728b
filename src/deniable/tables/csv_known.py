"""CSV rows to codes by look-up instead of parsing, where every column has few distinct texts.

A few bytes identify a text among the distinct texts of its column, and its length is the start of
the next field. So all rows of a block are decoded together, column by column, with a few look-ups
in numpy each. The other bytes are not read; instead the rows are rendered again from the codes and
compared with the block. The parser takes a block that differs by a byte. This saves a third of the
CPU from CSV to CSV (docs/decisions/0030-known-rows-are-not-parsed.md).
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.tables.arrays import from_numpy, from_values
from deniable.tables.columns import Column
from deniable.tables.csv_text import TextOfColumns, content

_MOST_TEXTS = 255
"""Largest number of distinct texts of a column: a code is one byte."""

_MOST_BYTES = 64
"""Largest length of a field in bytes: the width of the identification table."""


class KnownRows:
    """Distinct texts of all columns of a table, in their spelling in the file."""

    def __init__(
        self, rows: Any, lines: bytes, separator: str, before: "KnownRows | None" = None
    ) -> None:
        self._texts: list[list[str | None]] = []
        self._columns: list[_KnownColumn] = []
        self._rows = TextOfColumns()
        if not rows.num_rows:
            raise ValueError("there are no rows")
        line, place = lines[: lines.index(b"\n") + 1], 0
        for number, column in enumerate(rows.columns):
            after = separator.encode()
            if number == rows.num_columns - 1:
                after = b"\r\n" if line.endswith(b"\r\n") else b"\n"
            texts = dict.fromkeys(before._texts[number] if before else ())
            texts |= dict.fromkeys(column.unique().to_pylist())
            if len(texts) > _MOST_TEXTS:
                raise ValueError("there are too many texts")
            empty = column[0].as_py() is None
            quoted = b'"' in line if empty else line.startswith(b'"', place)
            fields = {text: _field(text, quoted=quoted).encode() + after for text in texts}
            first = fields[column[0].as_py()]
            alone = {*'"\r\n', separator}  # in quotes only
            if not quoted and any(alone & {*(text or "")} for text in texts):
                raise ValueError("a field has another spelling")
            if not line.startswith(first, place):
                raise ValueError("a field has another spelling")
            place += len(first)
            self._texts.append(list(fields))
            self._columns.append(_KnownColumn(list(fields.values())))
            written = tuple(field.decode() for field in fields.values())
            self._rows.add(Column("", pa.string(), number, written), written)
        self._rows.freeze()
        self._dictionaries = [
            from_values(["" if text is None else text for text in texts], pa.string())
            for texts in self._texts
        ]
        self._nulls = [texts.index(None) if None in texts else None for texts in self._texts]

    def batch(self, block: Any, names: Sequence[str], all_names: Sequence[str]) -> Any:
        """Return the rows of a block as a record batch of dictionary arrays; None if one has an
        unknown text."""
        signs = np.frombuffer(block, dtype=np.uint8)
        place = np.flatnonzero(signs == ord("\n"))
        place[1:] = place[:-1] + 1
        place[:1] = 0
        codes = [column.codes(signs, place) for column in self._columns]
        if not pa.py_buffer(content(self._rows.pieces(codes))).equals(block):
            return None
        arrays = [
            pa.DictionaryArray.from_arrays(
                from_numpy(codes[i], self._nulls[i]), self._dictionaries[i]
            )
            for i in map(list(all_names).index, names)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(names))


class _KnownColumn:
    """Distinct texts of one column."""

    def __init__(self, fields: Sequence[bytes]) -> None:
        lengths = np.array([len(field) for field in fields])
        if lengths.max() > _MOST_BYTES:
            raise ValueError("a field is too long")
        signs = np.full((len(fields), lengths.max()), -1)
        for row, field in enumerate(fields):
            signs[row, : len(field)] = list(field)
        self._places: list[tuple[int, NDArray[np.uint8]]] = []
        separated = np.eye(len(fields), dtype=bool)
        ranks = np.zeros((len(fields), 0), dtype=np.int64)
        sizes: list[int] = []
        while not separated.all():
            # Two fields differ at a place if both have a byte there and the bytes differ.
            first, second = signs[:, None], signs[None]
            apart = (first != second) & (first >= 0) & (second >= 0)
            best = int((apart & ~separated[:, :, None]).sum(axis=(0, 1)).argmax())
            separated |= apart[:, :, best]
            kinds = np.unique(signs[signs[:, best] >= 0, best])
            steps = np.zeros(256, dtype=np.uint8)
            if math.prod(sizes) * len(kinds) > len(steps):
                raise ValueError("the texts differ in too many places")
            steps[kinds] = np.arange(len(kinds)) * math.prod(sizes)
            self._places.append((best, steps))
            rank = np.where(signs[:, best] < 0, -1, np.searchsorted(kinds, signs[:, best]))
            ranks = np.column_stack([ranks, rank])
            sizes.append(len(kinds))
        # A place may lie past the end of a short field and hold any byte: several table entries are
        # the short field's.
        found = np.array(list(product(*map(range, reversed(sizes)))), dtype=np.int64)[:, ::-1]
        fits = (found[:, None] == ranks) | (ranks < 0)
        self._code: NDArray[np.uint8] = fits.all(axis=2).argmax(axis=1).astype(np.uint8)
        self._length = lengths[self._code]

    def codes(self, signs: NDArray[np.uint8], place: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the code of the text at each place, shape (n,), and advance the places past it."""
        found = np.zeros(len(place), dtype=np.uint8)
        for ahead, steps in self._places:
            found += steps.take(signs.take(place + ahead, mode="clip"))
        place += self._length.take(found)
        return self._code.take(found)


def _field(text: str | None, *, quoted: bool) -> str:
    if text is None:
        return ""
    return '"' + text.replace('"', '""') + '"' if quoted else text
