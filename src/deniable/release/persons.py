"""Rows per person: candidate columns, and the allowed number."""

import math
from collections.abc import Sequence

from deniable.errors import InputError, notify
from deniable.mechanism.privacy import compose
from deniable.schema import Schema
from deniable.tables.rows import is_person_column


def columns_of_persons(schema: Schema, names: Sequence[str]) -> list[str]:
    """Return the columns that are not randomized and are named like person identifiers; empty if
    the schema states one row per person."""
    if schema.one_row_per_person:
        return []
    return [name for name in names if is_person_column(name) and name not in schema.columns]


def propose_person(names: Sequence[str]) -> None:
    """Warn of columns that are named like person identifiers and repeat."""
    if names:
        listed = ", ".join(f"'{name}'" for name in names)
        notify(
            f"{listed} repeats and is named like a person identifier. If it is one, persons have "
            "several rows, whose ε add up: name it with `person`, and ε is counted per person (if "
            "not, set one_row_per_person = true in the schema)",
        )


def refuse_rows_of_person(
    most_rows: int, epsilon: float, person: str | None, most: float | None
) -> None:
    """Raise if the ε of one person's rows together exceeds the allowed one.

    ``epsilon``: of a row, in nats. ``most``: allowed ε of all rows of one person, in nats; None for
    that of one row.
    """
    allowed = epsilon if most is None else most
    together = compose([epsilon], times=most_rows)
    if together <= allowed * (1 + 1e-9):  # as typed: 0.3 for three rows of 0.1
        return
    stated = (
        f"the total of {epsilon:.6g} is per person"
        if most is None
        else f"`person_epsilon` allows {allowed:.6g}"
    )
    lower = 10.0 ** (math.floor(math.log10(allowed / most_rows)) - 3)
    per_row = math.floor(allowed / most_rows / lower) * lower
    raise InputError(
        f"column '{person}': one person has {most_rows:,} rows of ε = {epsilon:.6g} each, "
        f"{together:.6g} together, and {stated}; no file was written. Design with ε = "
        f"{per_row:.4g} per row, allow ε = {together:.6g} per person with `person_epsilon`, "
        "or use fewer rows per person"
    )
