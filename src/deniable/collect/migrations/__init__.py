"""How a store becomes one of this version: Alembic's steps."""
