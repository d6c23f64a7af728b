"""Records on SQLite: buckets whose bytes depend on the set of records, not on its order.

A database fills its pages as rows arrive, so the position of a row reveals its order of arrival.
Here a page is one row of fixed size, a *bucket*, overwritten in place, with its records sorted by
id. A keyed hash of the id selects the bucket, so that senders cannot fill a chosen one. When one is
full, every bucket is split in two. The file is therefore a function of the set of records: a
history-independent dictionary (Naor and Teague, STOC 2001).
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
"""Bytes of a bucket of short records: one page of SQLite."""

_LEAST = 32
"""Least capacity of a bucket, in records."""

_TOGETHER = 256
"""Buckets per read."""


def bucket_size(record_size: int) -> tuple[int, int]:
    """Return the capacity of a bucket, in records, and its size in bytes."""
    width = _ID + 1 + record_size
    capacity = max(_LEAST, (_PAGE - _HEAD) // width)
    return capacity, _HEAD + capacity * width


class Buckets:
    """The records of a store within one transaction; changes are written at its end."""

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
        """Read the buckets of these ids in one query."""
        numbers = list({self._hash(name) % self._count for name in names} - self._loaded.keys())
        if not numbers:
            return
        # Padded to a power of two, to limit the number of prepared statements.
        numbers += [numbers[0]] * ((1 << (len(numbers) - 1).bit_length()) - len(numbers))
        marks = ", ".join("?" * len(numbers))
        rows = self._run(
            f"SELECT number, content FROM bucket WHERE number IN ({marks})", (*numbers,)
        )
        self._loaded |= dict(map(tuple, rows))

    def _place(self, name: bytes) -> tuple[int, bytes, int, bool]:
        """Return the number of the bucket, its content, the offset of the id, and whether it is
        present."""
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
        """Return the record of an id: empty if withdrawn, None if unknown."""
        _, content, at, there = self._place(name)
        if not there:
            return None
        if content[at + _ID]:
            return b""
        return content[at + _ID + 1 : at + self._width]

    def put(self, name: bytes, record: bytes) -> None:
        """Store a record under an id; an empty one marks a withdrawal."""
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
        """Return the stored records of a group by id, and the withdrawn ids."""
        self.load(name for name, _ in group)
        found = {name: self.find(name) for name, _ in group}
        there = {name: record for name, record in found.items() if record}
        return there, {name for name, record in found.items() if record == b""}

    def insert(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Store records under new ids."""
        for name, record in records:
            self.put(name, record)
        self.write()

    def withdraw(self, name: bytes) -> bool | None:
        """Delete a record and return whether it existed; None if it was withdrawn before."""
        if not (stored := self.find(name)):
            return None if stored == b"" else False
        self.put(name, b"")
        self.write()
        return True

    def write_anew(self) -> None:
        """Do nothing: buckets do not reveal the order of arrival."""

    def write(self) -> None:
        """Write the changed buckets."""
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
    """Yield all records in batches, shape (n, record_size). All are read before the first is
    yielded, because SQLite cannot empty its journal during a read."""
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
