"""The output of ``design --json``, from one call."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deniable.design.design import design
from deniable.design.outlook import matrices_to_plain, outlook_to_plain
from deniable.errors import InputError
from deniable.mechanism.prediction import Target
from deniable.proofs.problem import MAX_LEVEL
from deniable.statement.account import Design
from deniable.statement.expected_accuracy import expected_accuracy, expected_means
from deniable.statement.expected_tables import Assumed, expected_tables
from deniable.statement.observers import observers
from deniable.statement.record import design_to_plain, proof_to_plain


def design_statements(
    result: Design,
    *,
    rows: int | None = None,
    tables: Sequence[str | Sequence[str]] = (),
    assume: Assumed = "uniform",
    target: Target = "table",
    within: float | None = None,
) -> dict[str, Any]:
    """Return the statements on a design, as plain values."""
    if tables and rows is None:
        raise InputError("expected errors of `tables` depend on the number of `rows`; give it too")
    stated = design_to_plain(result) | {
        "certificate": proof_to_plain(result),
        "observers": [one.to_plain() for one in observers(result)],
    }
    if result.budget is not None:
        stated |= outlook_to_plain(result)
    if matrices := matrices_to_plain(result):
        stated["matrices"] = matrices
    if rows is not None:
        stated["readable"] = expected_accuracy(result.account).to_plain(rows, target)
        if means := expected_means(result.mechanism, rows, target):
            stated["means"] = means
        if tables:
            independent = _independent(result)
            for key, made in (("tables", result), ("independent_tables", independent)):
                found = (
                    None if made is None else expected_tables(made, tables, rows, assume, target)
                )
                stated[key] = None if found is None else [t.to_plain(within) for t in found]
    return stated


def _independent(result: Design) -> Design | None:
    """Return the design by independent responses with the same ε, if there is one."""
    epsilon, schema = result.epsilon, result.mechanism.schema
    if not (math.isfinite(epsilon) and 0 < epsilon <= MAX_LEVEL):
        return None
    free = tuple(
        replace(a, epsilon=None, importance=None, response="", answers=())
        for a in schema.attributes
    )
    return design(replace(schema, attributes=free), epsilon=epsilon, method="kronecker")
