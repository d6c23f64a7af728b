"""PostgreSQL functions for a collector without the right to read records: compare, delete."""

from alembic import op

revision = "0002"
down_revision = "0001"

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


def upgrade() -> None:
    """Create the functions."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar()
    for function in _FUNCTIONS:
        op.execute(function.format(schema=schema))
