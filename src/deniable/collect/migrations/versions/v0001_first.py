"""The first layout, of the tables in deniable.collect.store."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "study",
        sa.Column("identity", sa.LargeBinary(32), primary_key=True),
        sa.Column("closed", sa.Boolean, nullable=False),
    )
    # On SQLite the rows of these are stored in the order of their random keys only.
    op.create_table(
        "submission",
        sa.Column("id", sa.LargeBinary(32), primary_key=True),
        sa.Column("record", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "withdrawn",
        sa.Column("id", sa.LargeBinary(32), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "invitation",
        sa.Column("id", sa.LargeBinary(32), primary_key=True),
        sa.Column("spent", sa.Boolean, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "total",
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column("taken", sa.Integer, nullable=False),
        sa.Column("withdrawn", sa.Integer, nullable=False),
    )
