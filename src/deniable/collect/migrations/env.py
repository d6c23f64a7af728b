"""What Alembic runs: the steps on the connection that it is handed."""

from alembic import context

attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    record_size=attributes["record_size"],
)
with context.begin_transaction():
    context.run_migrations()
