"""Rows that one person has: which column may say so, and how many the promise allows."""

import math
from collections.abc import Sequence

from deniable.errors import InputError, notify
from deniable.mechanism.privacy import compose
from deniable.schema import Schema
from deniable.tables.rows import says_whose_row


def columns_of_persons(schema: Schema, names: Sequence[str]) -> list[str]:
    """Return the columns of a table that are not randomized and named as if they said whose row it
    is; none if the schema says that everybody has one row."""
    if schema.one_row_per_person:
        return []
    return [name for name in names if says_whose_row(name) and name not in schema.columns]


def propose_person(names: Sequence[str]) -> None:
    """Warn of columns that are named as if they said whose row it is, and repeat."""
    if names:
        listed = ", ".join(f"'{name}'" for name in names)
        notify(
            f"{listed} repeats, and is named as a column that says whose row it is. If it does, a "
            "person has several rows, and their ε add up: name it with `person`, and ε is counted "
            "per person (or say one_row_per_person = true in the schema, if it does not)",
        )


def refuse_rows_of_person(
    most_rows: int, epsilon: float, person: str | None, most: float | None
) -> None:
    """Refuse a release in which one person's rows have more ε together than is allowed.

    ``epsilon``: of a row, in nats. ``most``: ε of all rows of one person that was allowed, in nats;
    None for that of one row.
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
        f"{together:.6g} together, and {stated}; nothing was released. Either design with ε = "
        f"{per_row:.4g} for a row, or allow ε = {together:.6g} per person with `person_epsilon`, "
        "or take fewer rows of each person"
    )
