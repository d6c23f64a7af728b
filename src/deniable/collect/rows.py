"""Records on PostgreSQL: rows, of which a collector needs no right to read one.

Each row tells when it came, by its place in the file and by the transaction that wrote it, until
:meth:`Rows.write_anew`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Run = Callable[[str, Sequence[Any]], Any]
"""Runs a statement with its values, or with a list of them."""

BATCH = 20_000
"""Records that are read at a time, so that memory does not grow with their number."""

_ANEW = (
    "CREATE TEMPORARY TABLE kept_{table} ON COMMIT DROP AS SELECT * FROM {table}",
    "TRUNCATE {table}",
    "INSERT INTO {table} SELECT * FROM kept_{table} ORDER BY id",
)


def among(run: Run, columns: str, table: str, ids: Sequence[bytes]) -> dict[bytes, Any]:
    """Return the last of the columns of the rows with these ids, by id."""
    if not ids:
        return {}
    # As many marks as a power of two, so that there are few statements to prepare.
    size = 1 << (len(ids) - 1).bit_length()
    padded = (*ids, *[ids[0]] * (size - len(ids)))
    marks = ", ".join("?" * size)
    rows = run(f"SELECT {columns} FROM {table} WHERE id IN ({marks})", padded)
    return {row[0]: row[-1] for row in rows}


class Rows:
    """The records of a store, in one transaction."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def known(self, group: Sequence[tuple[bytes, bytes]]) -> tuple[dict[bytes, bytes], set[bytes]]:
        """Return the record of each id of a group that is stored, an empty one if it is none of
        those that the group has; and the ids whose records were withdrawn."""
        names, records = [name for name, _ in group], [record for _, record in group]
        rows = self._run("SELECT id, record FROM stored_under(?, ?)", (names, records))
        gone = among(self._run, "id", "withdrawn", list({*names}))
        # An empty one comes first, and is replaced.
        return dict(sorted(map(tuple, rows))), {*gone}

    def insert(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Store records under their ids, none of which is known."""
        self._run("INSERT INTO submission (id, record) VALUES (?, ?)", records)

    def withdraw(self, name: bytes) -> bool | None:
        """Delete a record, and say whether it was there; None if it was withdrawn before."""
        if among(self._run, "id", "withdrawn", [name]):
            return None
        if not self._run("SELECT delete_submission(?)", (name,)).scalar_one():
            return False
        self._run("INSERT INTO withdrawn (id) VALUES (?)", (name,))
        return True

    def write_anew(self) -> None:
        """Write all rows anew, in the order of their random ids and as of one transaction."""
        for table in ("submission", "withdrawn", "invitation"):
            for statement in _ANEW:
                self._run(statement.format(table=table), ())


def read_rows(driver: Any, record_size: int) -> Iterator[NDArray[np.uint8]]:
    """Yield all records in batches, shape (n, record_size)."""
    # A cursor with a name stays on the server, and so do the rows.
    with closing(driver.cursor("records")) as cursor:
        cursor.execute("SELECT record FROM submission")
        while rows := cursor.fetchmany(BATCH):
            if {*map(len, chain.from_iterable(rows))} != {record_size}:
                raise ValueError("a record has another size")
            packed = b"".join(chain.from_iterable(rows))
            yield np.frombuffer(packed, dtype=np.uint8).reshape(len(rows), record_size)
