"""Means of numbers: unbiased with their rounding, whose variance is in their errors."""

from itertools import product

import numpy as np
import pytest

from deniable.estimate.inference import Inference
from deniable.estimate.ordered import Quantile
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Attribute, Schema
from unit.dense import dense_channel, dense_inverse

LEVELS = pytest.mark.parametrize("level", [0.7, 3.0, 12.0])
GRIDS = pytest.mark.parametrize("points", [2, 3, 5])


def of_numbers(points: int, level: float) -> Mechanism:
    attributes = (
        Attribute("x", range=(0, 8), grid=points),
        Attribute("sex", ("f", "m")),
    )
    law = ProductLaw.from_levels((points, 2), (level, 1.5))
    return Mechanism(Schema(attributes), (Block((0, 1), law),))


def people() -> list[tuple[float, int]]:
    """Numbers from 0 to 8, larger ones among the second sex."""
    return [(x, int(x > 3) if x % 2 else 1) for x in np.linspace(0, 8, 161)]


def hats(points: int, x: float) -> np.ndarray:
    """Pr[rounded to each point], shape (points,)."""
    place = np.arange(points) * 8 / (points - 1)
    return np.maximum(0.0, 1 - np.abs(x - place) * (points - 1) / 8)


def rows_of(points: int, mechanism: Mechanism) -> np.ndarray:
    """Pr[released cell] of each person, shape (people, cells): rounding, then the channel."""
    matrix = dense_channel(mechanism, ("x", "sex"))
    rounded = np.array([np.outer(hats(points, x), np.eye(2)[sex]).ravel() for x, sex in people()])
    return rounded @ matrix.T


def inference_of(mechanism: Mechanism, cells: np.ndarray) -> Inference:
    shape = (len(cells) // 2, 2)
    counted = Tabulation(cells.reshape(shape), None, len(people()))
    return Inference(Counts.of(mechanism, counted), ("x", "sex"), "table")


@GRIDS
@LEVELS
def test_means_are_unbiased_and_no_error_is_below_the_exact_one(points: int, level: float) -> None:
    """Expected counts give the exact mean; of each linear function with equal steps (means, also
    within a sex) the stated variance is at least the exact one and at most twice its rounding."""
    mechanism = of_numbers(points, level)
    released = rows_of(points, mechanism)
    inference = inference_of(mechanism, released.sum(axis=0))
    scores = np.linspace(0, 8, points)
    one = np.ones(2)
    xs, sexes = np.array([x for x, _ in people()]), np.array([sex for _, sex in people()])
    inverse = dense_inverse(mechanism, ("x", "sex"))
    for among in (one, np.array([1.0, 0.0]), np.array([0.0, 1.0])):
        weights = np.outer(scores, among)
        below = np.outer(np.ones(points), among)
        mean, centred = inference.linearized(weights, below)
        inside = among[sexes] > 0
        assert mean == pytest.approx(xs[inside].mean(), rel=1e-9)
        influence = centred.ravel() @ inverse
        exact = (released @ influence**2 - (released @ influence) ** 2).sum() / len(xs) ** 2
        stated = inference.error_of(centred) ** 2
        rounding = ((xs[inside] % (8 / (points - 1))) * (-xs[inside] % (8 / (points - 1)))).sum()
        rounding /= inside.sum() ** 2
        assert exact * (1 - 1e-9) <= stated <= exact + rounding
        alone = inference.covariance(centred[None])[0, 0]
        assert alone == pytest.approx(stated, rel=1e-9)
        # Without the rounding the error would be too small where the channel adds little.
        known = float((inference.squares * centred**2).sum())
        planted = (released.sum(axis=0) @ influence**2) / len(xs) ** 2 - known
        assert planted < exact


@GRIDS
@LEVELS
def test_errors_of_cells_and_of_fractions_are_never_below_the_exact_ones(
    points: int, level: float
) -> None:
    mechanism = of_numbers(points, level)
    released = rows_of(points, mechanism)
    inference = inference_of(mechanism, released.sum(axis=0))
    inverse, n = dense_inverse(mechanism, ("x", "sex")), len(people())
    for place, (j, sex) in enumerate(product(range(points), range(2))):
        spread = released @ inverse[place] ** 2 - (released @ inverse[place]) ** 2
        assert inference.variance[j, sex] >= spread.sum() / n**2 * (1 - 1e-9)
    within, errors, _ = inference.within(1)
    for j, sex in product(range(points), range(2)):
        weights = np.zeros((points, 2))
        weights[j, sex] = 1.0
        fraction, centred = inference.linearized(weights, np.outer(np.ones(points), np.eye(2)[sex]))
        assert within[j, sex] == pytest.approx(fraction)
        influence = centred.ravel() @ inverse
        exact = (released @ influence**2 - (released @ influence) ** 2).sum() / n**2
        assert errors[j, sex] ** 2 >= exact * (1 - 1e-9)


def test_the_bounds_of_a_quantile_hold_for_every_distribution() -> None:
    """The shares up to a point lie between the distribution function at it and at the next one."""
    points = 5
    schema = Schema((Attribute("x", range=(0, 8), grid=points),))
    law = ProductLaw.from_levels((points,), (30.0,))
    mechanism = Mechanism(schema, (Block((0,), law),))
    random = np.random.default_rng(1)
    for _ in range(20):
        xs = np.sort(random.choice(np.linspace(0, 8, 81), 200) ** random.uniform(0.3, 1))
        counts = np.sum([hats(points, x) for x in xs], axis=0)
        (answer,) = Quantile(of=("x",)).answer(Counts.of(mechanism, Tabulation(counts, None, 200)))
        assert answer.bounds is not None
        low, high = answer.bounds
        assert low <= xs[99] <= high


@LEVELS
def test_the_error_of_a_cell_holds_if_all_its_rows_are_between_two_points(level: float) -> None:
    """The bound of a mean, a quarter of the rows, is not that of a cell."""
    mechanism = of_numbers(3, level)
    xs = [2.0] * 60 + [8.0] * 30
    released = np.array([hats(3, x) for x in xs]) @ dense_channel(mechanism, ("x",)).T
    counted = Tabulation(released.sum(axis=0), None, len(xs))
    inference = Inference(Counts.of(mechanism, counted), ("x",), "table")
    influence = dense_inverse(mechanism, ("x",))
    for place, cell in enumerate(np.eye(3)):
        spread = released @ influence[place] ** 2 - (released @ influence[place]) ** 2
        exact = spread.sum() / len(xs) ** 2
        assert inference.variance[place] >= exact * (1 - 1e-9)
        assert inference.covariance(cell[None])[0, 0] >= exact * (1 - 1e-9)
