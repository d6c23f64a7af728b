"""Records on SQLite: buckets whose bytes follow from which records there are, whatever their order.

A database fills its pages as rows arrive, so that what lies where tells the order of arrival. Here
a page is one row of fixed size, a *bucket*, which is overwritten where it lies; it holds its
records sorted by id. A record's bucket follows from its id and a key of the store's, so that nobody
who sends records can fill one bucket. When one is full, every bucket is split in two. So the file
is a function of the set of records and nothing else: a history-independent dictionary (Naor and
Teague, STOC 2001).
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.collect.rows import Run

_ID = 32
_HEAD = 2
_PAGE = 4000
"""Bytes of a bucket, if its records are short: what fits into a page of SQLite's."""

_LEAST = 32
"""Records that a bucket holds at least."""

_TOGETHER = 256
"""Buckets that are read at a time."""


def bucket_size(record_size: int) -> tuple[int, int]:
    """Return how many records a bucket has room for, and its bytes.

    >>> bucket_size(3)
    (111, 3998)
    """
    width = _ID + 1 + record_size
    capacity = max(_LEAST, (_PAGE - _HEAD) // width)
    return capacity, _HEAD + capacity * width


class Buckets:
    """The records of a store, in one transaction: found, put in, written at its end."""

    def __init__(self, run: Run, record_size: int) -> None:
        self._run, self._record_size = run, record_size
        self._width = _ID + 1 + record_size
        self._capacity, self._size = bucket_size(record_size)
        self._key = bytes(run("SELECT hash_key FROM bucket_key", ()).scalar_one())
        self._count = int(run("SELECT max(number) + 1 FROM bucket", ()).scalar_one())
        self._loaded: dict[int, bytes] = {}
        self._changed: set[int] = set()

    def _hash(self, name: bytes) -> int:
        digest = hashlib.blake2b(name, key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "little")

    def load(self, names: Iterable[bytes]) -> None:
        """Read the buckets of these ids, all at once."""
        numbers = list({self._hash(name) % self._count for name in names} - self._loaded.keys())
        if not numbers:
            return
        # As many marks as a power of two, so that there are few statements to prepare.
        numbers += [numbers[0]] * ((1 << (len(numbers) - 1).bit_length()) - len(numbers))
        marks = ", ".join("?" * len(numbers))
        rows = self._run(
            f"SELECT number, content FROM bucket WHERE number IN ({marks})", (*numbers,)
        )
        self._loaded |= dict(map(tuple, rows))

    def _place(self, name: bytes) -> tuple[int, bytes, int, bool]:
        """Return the bucket, its content, where in it the id lies or belongs, and whether it is
        there."""
        number = self._hash(name) % self._count
        if number not in self._loaded:
            self.load([name])
        content = self._loaded[number]
        n = int.from_bytes(content[:_HEAD], "little")

        def named(i: int) -> bytes:
            start = _HEAD + i * self._width
            return content[start : start + _ID]

        i = bisect_left(range(n), name, key=named)
        return number, content, _HEAD + i * self._width, i < n and named(i) == name

    def find(self, name: bytes) -> bytes | None:
        """Return the record under an id: empty if it was withdrawn, None if there never was one."""
        _, content, at, there = self._place(name)
        if not there:
            return None
        if content[at + _ID]:
            return b""
        return content[at + _ID + 1 : at + self._width]

    def put(self, name: bytes, record: bytes) -> None:
        """Put a record under an id, or its withdrawal: an empty one."""
        number, content, at, there = self._place(name)
        entry = name + (b"\0" + record if record else b"\1" + bytes(self._record_size))
        if there:
            content = content[:at] + entry + content[at + self._width :]
        else:
            n = int.from_bytes(content[:_HEAD], "little")
            if n == self._capacity:
                self._split()
                self.put(name, record)
                return
            head = (n + 1).to_bytes(_HEAD, "little")
            content = head + content[_HEAD:at] + entry + content[at : self._size - self._width]
        self._loaded[number] = content
        self._changed.add(number)

    def known(self, group: Sequence[tuple[bytes, bytes]]) -> tuple[dict[bytes, bytes], set[bytes]]:
        """Return the record of each id of a group that is stored, and the ids whose records were
        withdrawn."""
        self.load(name for name, _ in group)
        found = {name: self.find(name) for name, _ in group}
        there = {name: record for name, record in found.items() if record}
        return there, {name for name, record in found.items() if record == b""}

    def insert(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Store records under their ids, none of which is known."""
        for name, record in records:
            self.put(name, record)
        self.write()

    def withdraw(self, name: bytes) -> bool | None:
        """Delete a record, and say whether it was there; None if it was withdrawn before."""
        if not (stored := self.find(name)):
            return None if stored == b"" else False
        self.put(name, b"")
        self.write()
        return True

    def write_anew(self) -> None:
        """Do nothing: what lies here tells no order."""

    def write(self) -> None:
        """Write the buckets that have changed."""
        rows = [(self._loaded[number], number) for number in sorted(self._changed)]
        if rows:
            self._run("UPDATE bucket SET content = ? WHERE number = ?", rows)
        self._changed.clear()

    def _split(self) -> None:
        """Split every bucket in two."""
        self.write()
        self._loaded.clear()
        before, self._count = self._count, 2 * self._count
        for number in range(before):
            ((content,),) = self._run("SELECT content FROM bucket WHERE number = ?", (number,))
            n = int.from_bytes(content[:_HEAD], "little")
            places = range(_HEAD, _HEAD + n * self._width, self._width)
            halves: tuple[list[bytes], list[bytes]] = ([], [])
            for at in places:
                entry = content[at : at + self._width]
                halves[self._hash(entry[:_ID]) % self._count >= before].append(entry)
            low, high = map(self._packed, halves)
            self._run("UPDATE bucket SET content = ? WHERE number = ?", (low, number))
            self._run("INSERT INTO bucket (number, content) VALUES (?, ?)", (before + number, high))

    def _packed(self, entries: Sequence[bytes]) -> bytes:
        content = len(entries).to_bytes(_HEAD, "little") + b"".join(entries)
        return content.ljust(self._size, b"\0")


def read_buckets(driver: Any, record_size: int) -> Iterator[NDArray[np.uint8]]:
    """Yield all records in batches, shape (n, record_size). They are read before the first is given
    out: SQLite's journal is not emptied while somebody reads."""
    batches = []
    with closing(driver.cursor()) as cursor:
        cursor.execute("SELECT content FROM bucket")
        while rows := cursor.fetchmany(_TOGETHER):
            batches.append(records_in([*chain.from_iterable(rows)], record_size))
    yield from (batch for batch in batches if len(batch))


def records_in(contents: Sequence[bytes], record_size: int) -> NDArray[np.uint8]:
    """Return the records in buckets, shape (n, record_size)."""
    capacity, size = bucket_size(record_size)
    if {*map(len, contents)} != {size}:
        raise ValueError("a bucket has another size")
    table = np.frombuffer(b"".join(contents), dtype=np.uint8).reshape(len(contents), size)
    filled = table[:, 0].astype(np.int64) + 256 * table[:, 1].astype(np.int64)
    entries = table[:, _HEAD:].reshape(len(contents), capacity, _ID + 1 + record_size)
    there = (np.arange(capacity) < filled[:, None]) & (entries[:, :, _ID] == 0)
    return np.asarray(entries[there][:, _ID + 1 :])
