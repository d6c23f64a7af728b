"""SQLite: records in buckets, which do not reveal the order of arrival."""

from functools import partial
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import op

from deniable.collect.buckets import Buckets, bucket_size
from deniable.randomness import SystemRandomness

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the buckets, and move the records of the earlier tables into them."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        _move(connection)


def _move(connection: sa.Connection) -> None:
    record_size: int = op.get_context().opts["record_size"]
    op.create_table("bucket_key", sa.Column("hash_key", sa.LargeBinary(32), nullable=False))
    op.create_table(
        "bucket",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    run: Any = connection.exec_driver_sql
    key = SystemRandomness().bits(np.uint64, 4).tobytes()
    run("INSERT INTO bucket_key (hash_key) VALUES (?)", (key,))
    run("INSERT INTO bucket (number, content) VALUES (0, ?)", (bytes(bucket_size(record_size)[1]),))
    buckets = Buckets(partial(_run, connection), record_size)
    for query in ("SELECT id, record FROM submission", "SELECT id, NULL FROM withdrawn"):
        for name, record in run(query):
            buckets.put(name, record or b"")
    buckets.write()
    op.drop_table("submission")
    op.drop_table("withdrawn")


def _run(connection: sa.Connection, statement: str, values: Any) -> Any:
    return connection.exec_driver_sql(statement, values or None)
