"""Rows of PostgreSQL; what a store makes of them is for its own tests."""

import sqlite3
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from deniable.collect import rows as module
from deniable.collect.rows import among, read_rows


class Driver:
    """As much of PostgreSQL's driver as reading takes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def cursor(self, name: str) -> sqlite3.Cursor:
        assert name  # else the rows would come all at once
        return self._connection.cursor()


def test_records_come_in_batches_and_all_of_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 4)
    records = [bytes([n, n + 1, n + 2]) for n in range(10)]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE submission (id, record)")
        connection.executemany("INSERT INTO submission VALUES (0, ?)", [(r,) for r in records])
        batches = list(read_rows(Driver(connection), 3))
        assert [len(batch) for batch in batches] == [4, 4, 2]
        assert [bytes(row) for row in np.concatenate(batches)] == records
        connection.execute("INSERT INTO submission VALUES (0, x'0102')")
        with pytest.raises(ValueError, match="another size"):
            list(read_rows(Driver(connection), 3))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 64, 100])
def test_ids_are_looked_up_with_few_statements(count: int) -> None:
    asked = []
    with closing(sqlite3.connect(":memory:")) as connection:

        def run(statement: str, values: Any) -> Any:
            asked.append(statement.count("?"))
            return connection.execute(statement, values)

        connection.execute("CREATE TABLE invitation (id, spent)")
        ids = [bytes([n]) for n in range(count)]
        connection.executemany("INSERT INTO invitation VALUES (?, 0)", [(i,) for i in ids[::2]])
        assert among(run, "id, spent", "invitation", ids) == dict.fromkeys(ids[::2], 0)
    assert asked == ([1 << (count - 1).bit_length()] if count else [])
