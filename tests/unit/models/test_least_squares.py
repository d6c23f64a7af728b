"""Least squares on randomized covariates: exact by sums over all answers, and robust to noise."""

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.counting import KeptRows
from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.strata import Strata
from deniable.models.cells import Axis, Cells
from deniable.models.formula import Term, read_formula, terms_of
from deniable.models.least_squares import fit_least_squares
from deniable.schema import Attribute, Schema
from unit.models.cases import CATEGORIES, NAMES, SCHEMA, SIZES, laws, people, released, truth

LAWS = laws()
CELLS = Cells(tuple(map(Axis, NAMES, CATEGORIES)), 3)
_, A, B = TERMS = terms_of(read_formula("y ~ a + b"), CELLS)
BETA = np.array([30.0, 4.0, 1.0, -6.0])


def every_answer(
    law: Mechanism,
    n: float = 1e5,
    noise: float = 0.0,
    table: NDArray[np.float64] | None = None,
) -> KeptRows:
    """One row for each true record, each answer and each of two residuals, with the number of
    people who have them as its weight."""
    table = truth() if table is None else table
    channel = channel_of(law, NAMES)
    assert not isinstance(channel, PublishedChannel)
    codes: list[tuple[int, ...]] = []
    response, weights = [], []
    for true in np.ndindex(SIZES):
        unit = np.zeros(SIZES)
        unit[true] = table[true]
        mean = BETA[0] + BETA[1] * (true[1] == 1) + BETA[2] * (true[1] == 2) + BETA[3] * true[2]
        chances = channel.forward.apply(unit)
        for shown in np.ndindex(channel.n_outputs):
            for side in (-1, 1):
                codes.append(shown)
                response.append(mean + side * noise)
                weights.append(n * float(chances[shown]) / 2)
    columns = dict(enumerate(np.array(codes).T))
    numbers = {"hours": np.array(response), "people": np.array(weights)}
    return KeptRows({law.schema.position(n): columns[i] for i, n in enumerate(NAMES)}, {}, numbers)


def fit(
    law: Mechanism, rows: KeptRows, weights: str | None = "people", terms: Sequence[Term] = TERMS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    _, *found = fit_least_squares(rows, Strata.one(law), "hours", weights, terms, CELLS)
    return found[0], found[1]


@pytest.mark.parametrize("law", [name for name in LAWS if name != "forms"])
def test_over_all_answers_it_is_the_truth(law: str) -> None:
    parameters, _ = fit(LAWS[law], every_answer(LAWS[law], noise=2.0))
    np.testing.assert_allclose(parameters, BETA, atol=1e-7)


def test_errors_are_the_exact_variance_of_the_first_order_change() -> None:
    # By brute force: the variance over records, answers and residuals of what one row changes.
    law = LAWS["product"]
    rows = every_answer(law, noise=2.0)
    channel = channel_of(law, NAMES)
    left = channel.inverse.transposed()
    grids = np.indices(SIZES)
    x = np.stack([np.ones(SIZES), grids[1] == 1, grids[1] == 2, grids[2] == 1], axis=-1).astype(
        float
    )
    outer = left.apply(x[..., :, None] * x[..., None, :])
    single = left.apply(x)
    shown = tuple(rows.codes[law.schema.position(n)] for n in NAMES)
    moments = np.tensordot(truth(), x[..., :, None] * x[..., None, :], 3)
    change = single[shown] * rows.numbers["hours"][:, None] - outer[shown] @ BETA
    influence = change @ np.linalg.inv(moments)
    share = rows.numbers["people"] / rows.numbers["people"].sum()
    exact = (influence * share[:, None]).T @ influence
    # The fit takes its weights as those of single rows: Σw² stands where 1/n would.
    squares = (influence * (share**2)[:, None]).T @ influence
    _, covariance = fit(law, rows)
    np.testing.assert_allclose(covariance, squares, rtol=1e-5, atol=1e-12)
    assert np.all(np.diag(exact) > 0)


def test_terms_are_multiplied_over_all_their_variables() -> None:
    late = Term("b:town", ("x",), (2, 3), np.arange(6.0).reshape(2, 3, 1))
    early = Term("a:b", ("u", "v"), (1, 2), np.arange(12.0).reshape(3, 2, 2))
    product = late.times(early)
    assert (product.axes, product.names) == ((1, 2, 3), ("x:u", "x:v"))
    assert product.values.shape == (3, 2, 3, 2)
    a, b, town = 2, 1, 0
    np.testing.assert_allclose(
        product.values[a, b, town], late.values[b, town, 0] * early.values[a, b]
    )


def test_a_release_too_noisy_to_tell_a_column_from_the_others_is_refused() -> None:
    random = np.random.default_rng(0)
    law = LAWS["product"]
    rows = KeptRows(
        {
            law.schema.position(n): random.integers(0, s, 10)
            for n, s in zip(NAMES, SIZES, strict=True)
        },
        {},
        {"hours": random.normal(size=10)},
    )
    with pytest.raises(InputError, match=r"too noisy to separate '.*' from the other columns"):
        fit(law, rows, None, [TERMS[0], B])


def test_an_empty_category_whose_estimate_is_not_possible_is_dropped_itself() -> None:
    law = Mechanism.of(ProductLaw.from_levels(SIZES, (4.0, 4.0, 4.0)), SCHEMA)
    table = truth()
    table[:, 2] = [[-0.0139, 0.014], [0.0, 0.0]]  # its product with b[T.m] is more than itself
    rows = every_answer(law, noise=2.0, table=table / table.sum())
    kept, *_ = fit_least_squares(rows, Strata.one(law), "hours", "people", TERMS, CELLS)
    assert kept.tolist() == [True, True, False, True]


def test_memory_grows_by_the_square_of_the_levels() -> None:
    n, levels = 2000, 120
    schema = Schema((Attribute("a", tuple(map(str, range(levels)))),), keep=("hours",))
    law = Mechanism.of(ProductLaw.from_levels((levels,), (12.0,)), schema)
    random = np.random.default_rng(1)
    rows = KeptRows({0: random.integers(0, levels, n)}, {}, {"hours": random.normal(size=n)})
    cells = Cells((Axis("a", schema.attributes[0].categories),), 1)
    terms = terms_of(read_formula("hours ~ a"), cells)
    tracemalloc.start()
    fit_least_squares(rows, Strata.one(law), "hours", None, terms, cells)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A few tables of rows or levels by levels; the cube of the levels alone has 14 MB.
    assert peak < 8 * levels * (4 * n + 16 * levels)


def test_under_forms_errors_are_the_squares_about_each_forms_mean() -> None:
    # By brute force, from the joint table of both attributes and row by row.
    law, table = LAWS["forms"], people(1500)
    release = released(law, table)
    rows = release.read_rows(["a", "b"], numbers=["hours"])
    y, weights = rows.numbers["hours"], np.linspace(0.5, 1.5, 1500)
    rows.numbers["people"] = weights
    parameters, covariance = fit(law, rows)
    channel = channel_of(law, ("a", "b"))
    assert isinstance(channel, PublishedChannel)
    (places,) = channel.released_codes(rows.codes)
    counts = np.bincount(places, weights, minlength=channel.n_outputs[0]).astype(float)
    left = channel.of_rows(counts).inverse.transposed()
    grids = np.indices((3, 2))
    x = np.stack([np.ones((3, 2)), grids[0] == 1, grids[0] == 2, grids[1] == 1], axis=-1)
    outer, single = left.apply(x[..., :, None] * x[..., None, :])[places], left.apply(x)[places]
    share = weights / weights.sum()
    moments = np.tensordot(share, outer, 1)
    beta = np.linalg.solve(moments, (share * y) @ single)
    np.testing.assert_allclose(parameters, beta, atol=1e-8)
    influence = single * y[:, None] - outer @ beta
    forms = rows.codes[len(law.schema.attributes)]
    total = np.zeros((4, 4))
    for form in np.unique(forms):
        mine, w = influence[forms == form], share[forms == form]
        off = mine - w @ mine / w.sum()
        scale = len(w) / max(len(w) - 1, 1)
        total += scale * (off * (w**2)[:, None]).T @ off if len(w) > 1 else 0
    inverse = np.linalg.inv(moments)
    np.testing.assert_allclose(covariance, inverse @ total @ inverse, rtol=1e-6, atol=1e-9)
