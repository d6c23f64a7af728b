"""Records on PostgreSQL: rows, which a collector needs no right to read.

The place of a row in the file and its transaction reveal its order of arrival, until
:meth:`Rows.write_anew`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Run = Callable[[str, Sequence[Any]], Any]
"""Executes a statement with its values, or with a list of them."""

BATCH = 20_000
"""Records per read, to bound memory."""

_ANEW = (
    "CREATE TEMPORARY TABLE copy_{table} ON COMMIT DROP AS SELECT * FROM {table}",
    "TRUNCATE {table}",
    "INSERT INTO {table} SELECT * FROM copy_{table} ORDER BY id",
)


def among(run: Run, columns: str, table: str, ids: Sequence[bytes]) -> dict[bytes, Any]:
    """Return the last column of the rows with these ids, by id."""
    if not ids:
        return {}
    # Padded to a power of two, to limit the number of prepared statements.
    size = 1 << (len(ids) - 1).bit_length()
    padded = (*ids, *[ids[0]] * (size - len(ids)))
    marks = ", ".join("?" * size)
    rows = run(f"SELECT {columns} FROM {table} WHERE id IN ({marks})", padded)
    return {row[0]: row[-1] for row in rows}


class Rows:
    """The records of a store within one transaction."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def known(self, group: Sequence[tuple[bytes, bytes]]) -> tuple[dict[bytes, bytes], set[bytes]]:
        """Return the stored records of a group by id, empty if they differ from the group's, and
        the withdrawn ids."""
        names, records = [name for name, _ in group], [record for _, record in group]
        rows = self._run("SELECT id, record FROM stored_under(?, ?)", (names, records))
        gone = among(self._run, "id", "withdrawn", list({*names}))
        # Sorted, so that an equal record replaces an empty one.
        return dict(sorted(map(tuple, rows))), {*gone}

    def insert(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Store records under new ids."""
        self._run("INSERT INTO submission (id, record) VALUES (?, ?)", records)

    def withdraw(self, name: bytes) -> bool | None:
        """Delete a record and return whether it existed; None if it was withdrawn before."""
        if among(self._run, "id", "withdrawn", [name]):
            return None
        if not self._run("SELECT delete_submission(?)", (name,)).scalar_one():
            return False
        self._run("INSERT INTO withdrawn (id) VALUES (?)", (name,))
        return True

    def write_anew(self) -> None:
        """Rewrite all rows in the order of their random ids, in one transaction."""
        for table in ("submission", "withdrawn", "invitation"):
            for statement in _ANEW:
                self._run(statement.format(table=table), ())


def read_rows(driver: Any, record_size: int) -> Iterator[NDArray[np.uint8]]:
    """Yield all records in batches, shape (n, record_size)."""
    # The rows of a named cursor remain on the server.
    with closing(driver.cursor("records")) as cursor:
        cursor.execute("SELECT record FROM submission")
        while rows := cursor.fetchmany(BATCH):
            if {*map(len, chain.from_iterable(rows))} != {record_size}:
                raise ValueError("a record has another size")
            packed = b"".join(chain.from_iterable(rows))
            yield np.frombuffer(packed, dtype=np.uint8).reshape(len(rows), record_size)
