"""Numbers that are rounded and randomized in models: as a response and as covariates."""

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable
from deniable.errors import InputError
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Attribute, Schema
from marked import weekly_after
from unit.dense import dense_channel

X = Attribute("x", range=(0, 8), grid=5)
Y = Attribute("y", range=(-2, 2), grid=3)
SEX = Attribute("sex", ("f", "m"))
ILL = Attribute("ill", ("no", "yes"))


def hats(attribute: Attribute, values: np.ndarray) -> np.ndarray:
    """Pr[rounded to each point], shape (values, points)."""
    assert attribute.range is not None
    low, high = attribute.range
    place = (values - low) / (high - low) * (attribute.n_categories - 1)
    return np.maximum(0.0, 1 - np.abs(place[:, None] - np.arange(attribute.n_categories)))


def released(mechanism: Mechanism, rounded: np.ndarray, n: float | None = None) -> Any:
    """A release with a row per released value, weighted by its expected number; with ``n`` rows
    without weights, in these numbers up to rounding."""
    names = mechanism.schema.names
    chances = dense_channel(mechanism, names) @ rounded.ravel()
    cells = list(product(*(a.categories for a in mechanism.schema.attributes)))
    times = np.round(n * chances).astype(int) if n else np.ones(len(cells), dtype=int)
    columns = {name: np.repeat([c[i] for c in cells], times) for i, name in enumerate(names)}
    table = pa.table(columns | {"w": np.repeat(1e4 * chances, times)})
    return deniable.open(table, mechanism, randomized=True)


def mechanism_of(*attributes: Attribute) -> Mechanism:
    schema = Schema(attributes, keep=("w",))
    levels = (4.0, 3.0, 2.0)[: len(attributes)]
    return Mechanism.of(ProductLaw.from_levels(schema.n_categories, levels), schema)


XS = np.tile((np.arange(400) + 0.5) / 50, 2)
MALE = np.repeat([0.0, 1.0], 400)
YS = np.tanh((XS - 4) / 4) + 0.4 * MALE * (XS > 2)
NUMBERS = mechanism_of(X, Y, SEX)
ROUNDED = np.einsum("ni,nj,nk->ijk", hats(X, XS), hats(Y, YS), np.eye(2)[MALE.astype(int)]) / 800


def coefficients(release: Any, formula: str, **options: Any) -> np.ndarray:
    (model,) = release.model(formula, **options)
    return np.array([row["estimate"] for row in model.table()])


def least_squares(*columns: np.ndarray) -> np.ndarray:
    design = np.column_stack([np.ones(len(YS)), *columns])
    return np.asarray(np.linalg.lstsq(design, YS, rcond=None)[0])


def test_a_number_as_a_response_has_no_bias() -> None:
    """Regressed on a randomized category; and on itself as categories, the means at its points."""
    release = released(NUMBERS, ROUNDED)
    found = coefficients(release, "y ~ sex", weights="w")
    assert found == pytest.approx(least_squares(MALE), abs=1e-9)
    by_point = coefficients(release, "y ~ C(x)", weights="w")
    shares = hats(X, XS)
    assert by_point[0] == pytest.approx(shares[:, 0] @ YS / shares[:, 0].sum())


def test_a_number_as_a_covariate_has_the_slope_of_the_number() -> None:
    release = released(NUMBERS, ROUNDED)
    found = coefficients(release, "y ~ x", weights="w")
    exact = least_squares(XS)
    assert found == pytest.approx(exact, rel=2e-3)
    # At the points the slope is smaller by the rounding's part of the variance, 12 %.
    points = np.arange(5.0) * 2
    mean = np.average(points, weights=ROUNDED.sum(axis=(1, 2)))
    spread = np.average((points - mean) ** 2, weights=ROUNDED.sum(axis=(1, 2)))
    assert XS.var() / spread < 0.9
    found = coefficients(release, "y ~ x * sex", weights="w")
    assert found == pytest.approx(least_squares(XS, MALE, XS * MALE), rel=2e-2, abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("formula", weekly_after(1, ["y ~ x + sex", "y ~ sex"]))
def test_the_errors_are_those_of_the_linear_change(formula: str) -> None:
    n = 40_000
    (model,) = released(NUMBERS, ROUNDED, n).model(formula)
    chances = dense_channel(NUMBERS, NUMBERS.schema.names) @ ROUNDED.ravel()
    cells = list(product(*(a.categories for a in NUMBERS.schema.attributes)))
    columns = {name: [c[i] for c in cells] for i, name in enumerate(NUMBERS.schema.names)}

    def at(weights: np.ndarray) -> np.ndarray:
        table = pa.table(columns | {"w": weights})
        release = deniable.open(table, NUMBERS, randomized=True)
        return coefficients(release, formula, weights="w")

    step = 1e-5
    influence = np.stack(
        [(at(chances + step * one) - at(chances - step * one)) / (2 * step) for one in np.eye(30)]
    )
    influence -= chances @ influence
    errors = np.sqrt(chances @ influence**2 / n)
    assert [row["std_error"] for row in model.table()] == pytest.approx(errors, rel=5e-3)


def test_a_number_in_a_logistic_regression_has_its_own_effect() -> None:
    """Not that of the point that it was rounded to, which is smaller."""
    mechanism = mechanism_of(X, ILL)
    xs = (np.arange(400) + 0.5) / 50
    ill = 1 / (1 + np.exp(2 - 0.7 * xs))
    rounded = np.einsum("ni,nj->ij", hats(X, xs), np.stack([1 - ill, ill], axis=1)) / 400
    release = released(mechanism, rounded)
    found = coefficients(release, "ill ~ x", weights="w")
    assert found == pytest.approx([-2, 0.7], rel=0.02)
    by_point = np.log(rounded[:, 1] / rounded[:, 0])
    assert (by_point[3] - by_point[1]) / 4 < 0.66


def test_numbers_that_a_model_cannot_take_are_refused() -> None:
    few = released(mechanism_of(Y, SEX), np.full((3, 2), 1 / 6))
    with pytest.raises(InputError, match=r"the grid of 'y' has 3 points, too few .*C\(y\)"):
        few.model("sex ~ y", weights="w")
    assert len(coefficients(few, "sex ~ C(y)", weights="w")) == 3
    gaps = mechanism_of(Attribute("x", range=(0, 8), grid=5, missing="?"), SEX)
    release = released(gaps, np.full((6, 2), 1 / 12))
    with pytest.raises(InputError, match="'x' has a missing category, which is no number"):
        release.model("x ~ sex", weights="w")
    found = coefficients(release, "x ~ sex", weights="w", answered=True)
    assert found == pytest.approx([4, 0], abs=1e-9)
