"""Results for a request, computed in a separate process: plain values as of the command line."""

from pathlib import Path
from typing import Any

from deniable.design.design import design
from deniable.design.matrices import with_matrix_from_file
from deniable.design.statements import design_statements
from deniable.planning.sample_size import plan
from deniable.schema import Schema
from deniable.statement.account import Design
from deniable.statement.record import mechanism_to_plain, to_json
from deniable.studio.request import DraftRequest


def made(request: DraftRequest, **others: Any) -> Design:
    """Return the design of a request, with replaced arguments."""
    schema, arguments = Schema.from_plain(request.schema), {**request.arguments, **others}
    matrices: dict[str, Any] = {}
    for name, file in request.responses.items():
        schema, name, law = with_matrix_from_file(schema, name, Path(file))
        matrices[name] = law
    if all(schema.names[i] in matrices for i in schema.protected):
        arguments = {}  # no attribute is left for them
    return design(schema, **arguments, matrices=matrices)


def tables_of(design: Design, request: DraftRequest) -> list[list[str]]:
    """Return the tables with expected errors: every attribute, and those of interest."""
    schema = design.mechanism.schema
    singles = [[schema.names[i]] for i in schema.protected]
    return singles + [table for table in request.tables if table not in singles]


def answer(request: DraftRequest) -> dict[str, Any]:
    """Return ``statements``, as ``deniable design --json`` prints them, and ``mechanism``, the text
    of its file."""
    found = made(request)
    tables = tables_of(found, request)
    statements = design_statements(
        found,
        rows=request.rows,
        tables=tables,
        assume=request.assume,
        target=request.target,
        within=request.within,
    )
    return {
        "statements": statements,
        "mechanism": to_json(mechanism_to_plain(found)).decode(),
        "notes": list(found.notes),
    }


def solve(request: DraftRequest) -> tuple[float, list[str]]:
    """Return the smallest total in nats at which every table of interest, or every attribute where
    no table is, is accurate enough, and the table that decides."""
    tried: list[tuple[Design, float]] = []

    def make(total: float) -> Design:
        tried.append((made(request, epsilon=total), total))
        return tried[-1][0]

    found = plan(
        Schema.from_plain(request.schema),
        rows=request.rows,
        within=request.within,
        tables=request.tables,
        assume=request.assume,
        target=request.target,
        make=make,
    )
    total = next(total for design, total in tried if design is found.design)
    return total, list(found.deciding.attributes)
