"""Releases of numbers: every way of release, and the levels that hold."""

from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import deniable
from deniable import Attribute, Schema
from deniable.errors import Notice
from deniable.estimate.ordered import Summary
from unit.dense import dense_channel

SCHEMA = Schema(
    (
        Attribute("age", range=(18, 90), grid=4, missing="NA"),
        Attribute("sex", ("f", "m")),
    )
)
PLAN = deniable.design(SCHEMA, attribute_epsilon=(9.0, 6.0), method="kronecker")
ROWS = 4000


def people() -> pd.DataFrame:
    random = np.random.default_rng(1)
    age = pd.Series(random.integers(18, 91, ROWS)).astype("Int64")
    age[::20] = pd.NA
    return pd.DataFrame({"age": age, "sex": random.choice(["f", "m"], ROWS)})


def check(answer: Iterable[Summary], truth: float) -> None:
    (mean,) = answer
    assert isinstance(mean.estimate, float)
    assert mean.standard_error is not None
    assert abs(mean.estimate - truth) < 5 * mean.standard_error
    assert mean.standard_error < 0.5


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("how", [{}, {"jobs": 1}])
def test_a_shared_file_gives_the_mean(tmp_path: Path, kind: str, how: dict[str, int]) -> None:
    frame, file = people(), tmp_path / f"people.{kind}"
    frame.to_csv(file, index=False) if kind == "csv" else frame.to_parquet(file)
    deniable.share(file, PLAN, tmp_path / "release", deniable.Publication(shuffle=True), **how)
    check(deniable.open(tmp_path / "release").mean("age"), float(frame["age"].mean()))


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas])
def test_a_randomized_frame_gives_the_mean(convert: object) -> None:
    frame = people()
    released = deniable.randomize(convert(frame), PLAN)  # type: ignore[operator]
    check(deniable.open(released, PLAN).mean("age"), float(frame["age"].mean()))


def test_the_count_of_numbers_outside_is_shown() -> None:
    attribute = Attribute("age", range=(18, 60), outside="clip", missing="NA")
    plan = deniable.design(Schema((attribute, SCHEMA.attributes[1])), attribute_epsilon=(3.0, 3.0))
    count = int((people()["age"] > 60).sum())
    with pytest.warns(Notice, match=f"'age': {count:,} values were outside the range"):
        deniable.randomize(people(), plan)


@pytest.mark.parametrize("method", ["balanced", "optimal", "kronecker"])
def test_every_level_holds_for_numbers(method: str) -> None:
    """The channel from numbers, rounding included, at a grid of numbers, against each level."""
    schema = Schema((Attribute("x", range=(0, 1), grid=3), Attribute("y", range=(0, 1), grid=2)))
    plan = deniable.design(schema, attribute_epsilon=(1.0, 0.6), method=method)  # type: ignore[arg-type]
    mechanism = plan.mechanism
    matrix = dense_channel(mechanism, ("x", "y"))
    numbers = np.linspace(0, 1, 9)
    hats_x = np.maximum(0, 1 - 2 * np.abs(numbers[:, None] - np.array([0, 0.5, 1])))
    hats_y = np.maximum(0, 1 - np.abs(numbers[:, None] - np.array([0, 1])))
    rows = np.einsum("ai,bj->abij", hats_x, hats_y).reshape(9, 9, 6) @ matrix.T

    def level(first: np.ndarray, second: np.ndarray) -> float:
        return float(np.log(first / second).max())

    pairs = list(product(range(9), repeat=2))
    record = max(level(rows[a, b], rows[c, d]) for a, b in pairs for c, d in pairs)
    rest_x = max(level(rows[a, b], rows[c, b]) for a, b in pairs for c in range(9))
    alone = rows.reshape(9, 9, *mechanism.n_outputs).sum(axis=3)[:, 0]
    alone_x = max(level(alone[a], alone[b]) for a, b in pairs)
    assert record <= plan.epsilon * (1 + 1e-12)
    assert rest_x <= mechanism.epsilon_given_rest[0] * (1 + 1e-12)
    assert alone_x <= mechanism.attribute_epsilon[0] * (1 + 1e-12)
    # The ends of the ranges reach the levels: the bound is no larger than needed.
    assert record == pytest.approx(plan.epsilon, rel=1e-6)
    assert alone_x == pytest.approx(mechanism.attribute_epsilon[0], rel=1e-6)
