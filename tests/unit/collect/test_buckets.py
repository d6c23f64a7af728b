"""Buckets, against a dictionary; and that their bytes do not tell what came first."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import numpy as np
import pytest
import sqlalchemy as sa

from deniable.collect import buckets as module
from deniable.collect.buckets import Buckets, bucket_size, records_in
from marked import slow_after


@contextmanager
def new_buckets(record_size: int) -> Iterator[sa.Connection]:
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        for statement in (
            "CREATE TABLE bucket_key (hash_key)",
            "CREATE TABLE bucket (number INTEGER PRIMARY KEY, content BLOB)",
            f"INSERT INTO bucket VALUES (0, zeroblob({bucket_size(record_size)[1]}))",
            "INSERT INTO bucket_key VALUES (x'01')",
        ):
            connection.exec_driver_sql(statement)
        yield connection
    engine.dispose()


def opened(connection: sa.Connection, record_size: int) -> Buckets:
    return Buckets(partial(connection.exec_driver_sql), record_size)


@pytest.mark.parametrize("record_size", slow_after(2, [1, 3, 700]))
def test_they_hold_what_a_dictionary_holds_in_no_order(
    record_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGE", 200)
    monkeypatch.setattr(module, "_LEAST", 2)
    random = np.random.default_rng(record_size)
    known = {random.bytes(32): random.bytes(record_size) for _ in range(120)}
    gone = set(list(known)[::5])
    contents = []
    for order in (sorted(known), random.permutation(np.array([*known], dtype="S32")).tolist()):
        # numpy cuts zeros at the end of a text
        names = [name.ljust(32, b"\0") for name in order]
        with new_buckets(record_size) as connection:
            for start in range(0, 120, 7):  # a transaction each
                group = names[start : start + 7]
                buckets = opened(connection, record_size)
                buckets.load(group)
                assert {buckets.find(name) for name in group} == {None}
                for name in group:
                    buckets.put(name, known[name])
                for name in gone & set(group):
                    buckets.put(name, b"")
                buckets.write()
            buckets = opened(connection, record_size)
            for name, record in known.items():
                assert buckets.find(name) == (b"" if name in gone else record)
            rows = connection.exec_driver_sql("SELECT content FROM bucket ORDER BY number")
            contents.append([bytes(content) for (content,) in rows])
    assert contents[0] == contents[1]
    assert len(contents[0]) > 16
    found = sorted(bytes(row) for row in records_in(contents[0], record_size))
    assert found == sorted(record for name, record in known.items() if name not in gone)


def test_a_bucket_of_short_records_fits_a_page() -> None:
    """So that one more record is one page to write, which has its place."""
    with closing(sqlite3.connect(":memory:")) as raw:
        (page,) = raw.execute("PRAGMA page_size").fetchone()
    for record_size in (1, 2, 3, 10, 50, 90):
        assert page * 0.9 < bucket_size(record_size)[1] <= page - 35


def test_what_are_no_buckets_is_refused() -> None:
    with pytest.raises(ValueError, match="another size"):
        records_in([b"\1\0"], 3)
