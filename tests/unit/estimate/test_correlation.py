"""Correlations, standard deviations and totals of numbers, and differences from all rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable
from deniable.errors import InputError
from deniable.estimate.comparing import Comparison
from deniable.estimate.correlation import Correlation
from deniable.estimate.ordered import Deviation, Mean
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Attribute, Schema
from unit.dense import dense_channel

N, POINTS = 6_000, 5
X = Attribute("x", range=(0, 8), grid=POINTS)
Y = Attribute("y", range=(-1, 1), grid=4)
SEX = Attribute("sex", ("f", "m"))
DEGREE = Attribute("degree", ("low", "high", "?"), missing="?")


def mechanism_of(*attributes: Attribute) -> Mechanism:
    schema = Schema(attributes)
    return Mechanism.of(ProductLaw.from_levels(schema.n_categories, (4.0, 2.5)), schema)


def hats(attribute: Attribute, values: np.ndarray) -> np.ndarray:
    """Pr[rounded to each point], shape (values, points)."""
    assert attribute.range is not None
    low, high = attribute.range
    place = (values - low) / (high - low) * (attribute.n_categories - 1)
    return np.maximum(0.0, 1 - np.abs(place[:, None] - np.arange(attribute.n_categories)))


def expected(mechanism: Mechanism, rounded: np.ndarray) -> np.ndarray:
    """Expected released counts of N rows with shares of rounded rows."""
    matrix = dense_channel(mechanism, mechanism.schema.names)
    return np.asarray(N * (matrix @ rounded.ravel()).reshape(rounded.shape))


def counts_of(mechanism: Mechanism, counted: np.ndarray, n: int = N) -> Counts:
    return Counts.of(mechanism, Tabulation(counted, None, n))


def error_by_differences(value: Callable[[np.ndarray], float], counted: np.ndarray) -> float:
    """Standard error in the population: of the derivative by every cell's share."""
    step, influence = 1e-5, np.zeros(counted.size)
    total = counted.sum()
    for cell in range(counted.size):
        ends = []
        for sign in (1, -1):
            moved = counted.ravel().copy()
            moved[cell] += sign * step * total
            ends.append(value(moved.reshape(counted.shape)))
        influence[cell] = (ends[0] - ends[1]) / (2 * step)
    theta = counted.ravel() / total
    return float(np.sqrt((theta @ influence**2 - (theta @ influence) ** 2) / total))


def people(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers x, and y that go with them; spread evenly, at the points, or between them."""
    if kind == "even":
        xs = (np.arange(800) + 0.5) / 100
    elif kind == "points":
        xs = np.repeat([0.0, 2.0, 6.0], 200)
    else:
        xs = np.repeat([1.0, 3.0, 7.0], 200)
    return xs, np.tanh((xs - 4) / 3)


@pytest.mark.parametrize("kind", ["even", "points", "between"])
def test_deviations_and_correlations_hold_for_any_numbers(kind: str) -> None:
    xs, ys = people(kind)
    mechanism = mechanism_of(X, Y)
    rounded = hats(X, xs).T @ hats(Y, ys) / len(xs)
    counted = expected(mechanism, rounded)
    exact = np.corrcoef(xs, ys)[0, 1]
    (found,) = Correlation("x,y").answer(counts_of(mechanism, counted))
    assert found.low <= exact <= found.high
    one = counts_of(mechanism, counted).parts[0][1].margin([0])
    (deviation,) = Deviation("x").answer(Counts.of(mechanism, one))
    assert deviation.low <= xs.std() <= deviation.high  # type: ignore[operator]
    near = kind == "even"
    assert near == (deviation.estimate == pytest.approx(xs.std(), rel=2e-3))
    (total,) = Mean("x", total=True).answer(Counts.of(mechanism, one))
    assert total.estimate == pytest.approx(N * xs.mean())
    (mean,) = Mean("x").answer(Counts.of(mechanism, one))
    assert total.standard_error == pytest.approx(N * mean.standard_error)  # type: ignore[operator]


def test_without_the_rounding_the_limits_of_a_deviation_would_be_wrong() -> None:
    xs, _ = people("between")
    mechanism = mechanism_of(X, Y)
    counted = expected(mechanism, np.outer(hats(X, xs).mean(axis=0), np.full(4, 0.25)))
    million = Tabulation(counted.sum(axis=1) * 1e6, None, N * 10**6)
    (found,) = Deviation("x").answer(Counts.of(mechanism, million))
    assert found.low == pytest.approx(xs.std(), rel=1e-3)
    assert found.high == pytest.approx(np.sqrt(xs.var() + 1), rel=1e-3)


def test_the_errors_are_those_of_the_linear_change() -> None:
    xs, ys = people("even")
    mechanism = mechanism_of(X, Y)
    counted = expected(mechanism, hats(X, xs).T @ hats(Y, ys) / len(xs))
    query = Correlation("x,y", target="population")
    (found,) = query.answer(counts_of(mechanism, counted))
    error = error_by_differences(
        lambda moved: query.answer(counts_of(mechanism, moved))[0].estimate, counted
    )
    assert found.standard_error == pytest.approx(error, rel=2e-2)
    deviation = Deviation("x", target="population")
    alone = counted.sum(axis=1)

    def of_x(moved: np.ndarray) -> Any:
        return deviation.answer(counts_of(mechanism, moved))[0]

    error = error_by_differences(lambda moved: float(of_x(moved).estimate), alone)
    assert of_x(alone).standard_error == pytest.approx(error, rel=2e-2)


def test_categories_without_scores_go_in_by_their_indicators() -> None:
    """Respondents without a value are left out."""
    mechanism = mechanism_of(DEGREE, X)
    xs, _ = people("even")
    low, high = hats(X, xs[:500]).mean(axis=0), hats(X, xs[300:]).mean(axis=0)
    rounded = np.stack([0.5 * low, 0.3 * high, 0.2 * low])
    (found,) = Correlation("degree,x").answer(counts_of(mechanism, expected(mechanism, rounded)))
    assert found.names == ("degree = high", "x")
    both = np.concatenate([np.repeat(xs[:500], 5), np.repeat(xs[300:], 3)])
    weights = np.concatenate([np.full(2500, 0.5 / 2500), np.full(1500, 0.3 / 1500)])
    group = np.repeat([0.0, 1.0], [2500, 1500])
    matrix = np.cov(np.stack([group, both]), aweights=weights)
    exact = matrix[0, 1] / np.sqrt(matrix[0, 0] * matrix[1, 1])
    assert found.estimate == pytest.approx(exact, abs=0.01)


def test_all_pairs_are_read_together_and_bins_are_refused() -> None:
    schema = Schema((X, Y, SEX), keep=("town",))
    plan = deniable.design(schema, epsilon=9)
    random = np.random.default_rng(1)
    table = {"x": random.uniform(0, 8, 400), "sex": ["f", "m"] * 200, "town": ["A", "B"] * 200}
    table["y"] = np.tanh(table["x"] - 4)
    release = deniable.open(deniable.randomize(pa.table(table), plan), plan)
    found = release.correlation("x,y,sex", by="town")
    assert [(dict(a.group)["town"], *a.names) for a in found][:3] == [
        ("A", "x", "y"),
        ("A", "x", "sex = m"),
        ("A", "y", "sex = m"),
    ]
    assert len(found.table()) == 6
    with pytest.raises(InputError, match="within subgroups of 'sex'"):
        release.correlation("x,y", by="sex")
    with pytest.raises(InputError, match="two attributes or more"):
        Correlation("x")
    binned = mechanism_of(Attribute("age", bins=(0, 30, 90)), SEX)
    with pytest.raises(InputError, match="'age' has bins and no scores"):
        Correlation("age,sex").answer(Counts.of(binned, np.full((2, 2), 9)))
    with pytest.raises(InputError, match="variance within a bin is unknown"):
        Deviation("age").answer(Counts.of(binned, np.full(2, 9)))


def test_a_group_differs_from_all_as_a_part_of_them() -> None:
    """Of a kept column, with the groups' sizes random in the population; of a randomized one."""
    law = ProductLaw.from_levels((POINTS,), (3.0,))
    mechanism = Mechanism.of(law, Schema((X,), keep=("town",)))
    random = np.random.default_rng(5)
    sizes = {"A": 300, "B": 500, "C": 200}
    codes = {town: random.integers(0, POINTS, n) for town, n in sizes.items()}
    table = pa.table(
        {
            "x": np.concatenate([2 * c for c in codes.values()]),
            "town": np.repeat([*sizes], [*sizes.values()]),
        }
    )
    query = Comparison("x", column="town", values="B", mean=True, target="population")
    (found,) = deniable.open(table, mechanism, randomized=True).query(query)
    means = {
        town: Mean("x").answer(Counts.of(mechanism, np.bincount(c, minlength=POINTS)))[0]
        for town, c in codes.items()
    }
    of_all = sum(float(means[town].estimate) * n / 1000 for town, n in sizes.items())  # type: ignore[arg-type]
    assert found.values == ("B", "all")
    assert found.estimates == pytest.approx((means["B"].estimate, of_all))
    counted = np.stack([np.bincount(c, minlength=POINTS) for c in codes.values()]).astype(float)

    def difference(moved: np.ndarray) -> float:
        each = [
            float(Mean("x").answer(counts_of(mechanism, row))[0].estimate)  # type: ignore[arg-type]
            for row in moved
        ]
        return each[1] - float(moved.sum(axis=1) @ each) / float(moved.sum())

    assert found.standard_error == pytest.approx(error_by_differences(difference, counted), 1e-3)
    with pytest.raises(InputError, match="names one value, and 'town' is in `of`"):
        Comparison("town", column="town", values="B")
    both = mechanism_of(X, SEX)
    counted = expected(both, random.dirichlet(np.ones(10)).reshape(5, 2))
    query = Comparison("x", column="sex", values="f", mean=True, target="population")
    (found,) = query.answer(counts_of(both, counted))
    error = error_by_differences(
        lambda moved: query.answer(counts_of(both, moved))[0].difference, counted
    )
    assert found.standard_error == pytest.approx(error, rel=1e-3)
