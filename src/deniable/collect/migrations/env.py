"""Entry point of Alembic: runs the migrations on the given connection."""

from alembic import context

attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    record_size=attributes["record_size"],
)
with context.begin_transaction():
    context.run_migrations()
