"""Small released tables to ask questions of."""

from typing import Any

import numpy as np
import pyarrow as pa

from deniable.estimate.counting import count_tables
from deniable.estimate.tabulate import Counts
from deniable.laws import Identity, ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.strata import Strata
from deniable.schema import Attribute, Schema

SCHEMA = Schema(
    (
        Attribute("smokes", ("no", "yes"), scores=(0.0, 1.0)),
        Attribute("age", bins=(0.0, 30.0, 60.0, 90.0)),
        Attribute("sex", ("f", "m")),
    ),
    keep=("sex", "town", "weight"),
)


def mechanism(first: float = 3.0, second: float = 2.0) -> Mechanism:
    law = ProductLaw.from_levels((2, 3), (first, second))
    return Mechanism(SCHEMA, (Block((0, 1), law), Block((2,), Identity((2,)))))


def by_town() -> Strata:
    """Every town with a mechanism of its own; the kept columns are those of :func:`rows`."""
    return Strata({"a": mechanism(3.0, 2.0), "b": mechanism(1.0, 1.0)}, "town")


def rows(n: int = 400, seed: int = 7) -> dict[str, list[Any]]:
    """Released rows as the texts that are written."""
    random = np.random.default_rng(seed)
    ages = SCHEMA.attributes[1].categories
    return {
        "smokes": random.choice(["no", "yes"], n, p=[0.6, 0.4]).tolist(),
        "age": random.choice(list(ages), n, p=[0.5, 0.3, 0.2]).tolist(),
        "sex": random.choice(["f", "m"], n).tolist(),
        "town": random.choice(["a", "b"], n).tolist(),
        "weight": random.choice([0.5, 1.0, 2.0], n).tolist(),
        "other": ["x"] * n,
    }


def table(n: int = 400, seed: int = 7) -> pa.Table:
    """The same as a table."""
    return pa.table(rows(n, seed))


def count_rows(source: Any, strata: Strata, names: list[str], **how: Any) -> list[Counts]:
    """The counts of one table."""
    (counted,) = count_tables(source, strata, [names], **how)
    return counted


def engine_counts(columns: dict[str, list[Any]], names: list[str]) -> pa.Table:
    """What an engine counts by some columns: rows, and sums of the weights and of their squares."""
    frame = pa.table(columns)
    weights = frame["weight"].to_numpy()
    frame = frame.append_column("squared", pa.array(weights**2))
    sums = [("weight", "count"), ("weight", "sum"), ("squared", "sum")]
    counted = frame.group_by(names).aggregate(sums)
    renamed = {"weight_count": "count", "weight_sum": "weight", "squared_sum": "weight_squared"}
    return counted.rename_columns([renamed.get(name, name) for name in counted.column_names])
