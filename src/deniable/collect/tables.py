"""Tables of a store: those of every database, records in buckets on SQLite, in rows on PostgreSQL,
with functions for a collector without the right to read records."""

import numpy as np
import sqlalchemy as sa

from deniable.collect.buckets import bucket_size
from deniable.errors import InputError
from deniable.randomness import SystemRandomness

VERSION = 1
"""Version of the tables; only this one is read."""


def _id() -> "sa.Column[bytes]":
    return sa.Column("id", sa.LargeBinary(32), primary_key=True)


COMMON = sa.MetaData()
STUDY = sa.Table(
    "study",
    COMMON,
    sa.Column("identity", sa.LargeBinary(32), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("closed", sa.Boolean, nullable=False),
)
INVITATION = sa.Table(
    "invitation",
    COMMON,
    _id(),
    sa.Column("spent", sa.Boolean, nullable=False),
    sqlite_with_rowid=False,  # stored in the order of the random ids
)
TOTAL = sa.Table(
    "total",
    COMMON,
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("taken", sa.Integer, nullable=False),
    sa.Column("withdrawn", sa.Integer, nullable=False),
)

_BUCKETS = sa.MetaData()
_KEY = sa.Table("bucket_key", _BUCKETS, sa.Column("hash_key", sa.LargeBinary(32), nullable=False))
_BUCKET = sa.Table(
    "bucket",
    _BUCKETS,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

_ROWS = sa.MetaData()
sa.Table("submission", _ROWS, _id(), sa.Column("record", sa.LargeBinary, nullable=False))
sa.Table("withdrawn", _ROWS, _id())

_FUNCTIONS = (
    # Submissions whose id is stored: with the record if it equals the stored one, else with an
    # empty one. Nothing is disclosed without a valid id.
    """
    CREATE FUNCTION stored_under(ids bytea[], records bytea[])
    RETURNS TABLE (id bytea, record bytea)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
      SELECT s.id, CASE WHEN s.record = g.record THEN s.record ELSE ''::bytea END
      FROM unnest(ids, records) AS g (id, record) JOIN {schema}.submission AS s ON s.id = g.id
    $$
    """,
    """
    CREATE FUNCTION delete_submission(name bytea) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
      WITH gone AS (DELETE FROM {schema}.submission AS s WHERE s.id = name RETURNING 1)
      SELECT count(*) FROM gone
    $$
    """,
    "REVOKE ALL ON FUNCTION stored_under(bytea[], bytea[]), delete_submission(bytea) FROM PUBLIC",
)


def make_tables(connection: sa.Connection, identity: bytes, record_size: int) -> None:
    """Create the tables of an empty store; ``record_size`` in bytes."""
    COMMON.create_all(connection)
    row = {"identity": identity, "version": VERSION, "closed": False}
    connection.execute(STUDY.insert(), row)
    if connection.dialect.name == "sqlite":
        _BUCKETS.create_all(connection)
        key = SystemRandomness().bits(np.uint64, 4).tobytes()
        connection.execute(_KEY.insert(), {"hash_key": key})
        empty = {"number": 0, "content": bytes(bucket_size(record_size)[1])}
        connection.execute(_BUCKET.insert(), empty)
        return
    _ROWS.create_all(connection)
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar()
    for function in _FUNCTIONS:
        connection.exec_driver_sql(function.format(schema=schema))


def check_version(connection: sa.Connection, where: str) -> None:
    """Raise unless a database has the tables of this version."""
    if not sa.inspect(connection).has_table("study"):
        raise InputError(f"{where} holds no study")
    if connection.execute(sa.select(STUDY.c.version)).scalar() != VERSION:
        raise InputError(
            "the store is of another version of deniable; use that version, or update deniable: "
            "pip install --upgrade 'deniable[web]'"
        )
