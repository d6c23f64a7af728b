"""The engine: derivatives against finite differences, and exact counts in, true parameters out."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.mechanism.mechanism import Mechanism
from deniable.models.cells import Axis, Cells
from deniable.models.formula import design_of, prior_precision, read_formula
from deniable.models.likelihood import (
    KnownShares,
    Likelihood,
    Observed,
    fit_log_linear,
    probabilities_of,
)
from unit.models.cases import CATEGORIES, COEFFICIENTS, NAMES, SHAPE, laws, likelihood_of, truth

LAWS = laws()
CELLS = Cells(tuple(map(Axis, NAMES, CATEGORIES)), 3)
COLUMNS = design_of(read_formula("y ~ a + b"), CELLS)
NONE = np.zeros(len(COLUMNS.names))


@pytest.fixture(params=LAWS, ids=str)
def law(request: pytest.FixtureRequest) -> Mechanism:
    return LAWS[request.param]


def test_score_and_information_are_the_finite_differences(law: Mechanism) -> None:
    likelihood = likelihood_of(law, truth(), 1000.0)
    at = np.random.default_rng(1).normal(size=len(COLUMNS.names)) / 2
    step = 1e-5

    def height(beta: np.ndarray) -> float:
        return likelihood.log_likelihood(probabilities_of(COLUMNS.values @ beta))

    def score(beta: np.ndarray) -> np.ndarray:
        values = probabilities_of(COLUMNS.values @ beta)
        return likelihood.derivatives(values, COLUMNS.values).score

    found = likelihood.derivatives(probabilities_of(COLUMNS.values @ at), COLUMNS.values)
    sides = [step * unit for unit in np.eye(len(at))]
    slope = [(height(at + s) - height(at - s)) / (2 * step) for s in sides]
    np.testing.assert_allclose(found.score, slope, rtol=1e-5, atol=1e-4)
    bend = [-(score(at + s) - score(at - s)) / (2 * step) for s in sides]
    np.testing.assert_allclose(found.curvature, bend, rtol=1e-5, atol=1e-3)


def test_where_counts_are_the_expected_ones_both_informations_agree(law: Mechanism) -> None:
    likelihood = likelihood_of(law, truth(), 1000.0)
    found = likelihood.derivatives(truth().ravel(), COLUMNS.values)
    np.testing.assert_allclose(found.information, found.curvature, rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(found.score, 0, atol=1e-8)


def test_strata_have_the_information_of_their_own_rows() -> None:
    parts = [
        observed
        for name, n in (("product", 300.0), ("ramp", 500.0), ("forms", 200.0))
        for observed in likelihood_of(LAWS[name], truth(), n).observed
    ]
    found = Likelihood(SHAPE, tuple(parts)).derivatives(truth().ravel(), COLUMNS.values)
    np.testing.assert_allclose(found.score, 0, atol=1e-8)
    np.testing.assert_allclose(found.information, found.curvature, rtol=1e-8, atol=1e-6)


def test_exact_expected_counts_give_the_true_parameters(law: Mechanism) -> None:
    fit = fit_log_linear(likelihood_of(law, truth(), 1e4), COLUMNS.values, COLUMNS.names, NONE)
    np.testing.assert_allclose(fit.parameters[:4], COEFFICIENTS, atol=1e-7)
    np.testing.assert_allclose(fit.probabilities[..., 0], truth(), atol=1e-9)
    assert fit.data_share.tolist() == [1.0] * len(NONE)
    errors = fit.standard_errors_of_cells()
    assert errors.shape == SHAPE
    assert (errors > 0).all()


def test_errors_are_those_of_the_delta_method_over_all_answers() -> None:
    # Of a release with few answers: the variance of the fit's first-order change, answer by answer.
    law = LAWS["product"]
    likelihood = likelihood_of(law, truth(), 1e4)
    fit = fit_log_linear(likelihood, COLUMNS.values, COLUMNS.names, NONE)
    (observed,) = likelihood.observed
    theta = observed.forward.apply(truth()).ravel()
    jacobian = fit.jacobian().reshape(*SHAPE, -1)
    change = observed.seen(jacobian) / theta[:, None]
    inverse = np.linalg.inv((change * theta[:, None]).T @ change)
    influence = change @ inverse
    variance = (influence * theta[:, None]).T @ influence / 1e4
    np.testing.assert_allclose(fit.covariance, variance, rtol=1e-6, atol=1e-9)


def test_rows_counted_with_weights_have_the_errors_of_their_number() -> None:
    likelihood = likelihood_of(LAWS["forms"], truth(), 1e4)
    (plain,) = likelihood.observed
    # Every row with weight 3: the same rows, so nothing changes.
    heavy = Observed(plain.forward, 3 * plain.counts, 9 * plain.counts)
    weighted = Likelihood(SHAPE, (heavy,))
    assert weighted.n_effective == pytest.approx(1e4)
    fits = [
        fit_log_linear(each, COLUMNS.values, COLUMNS.names, NONE) for each in (likelihood, weighted)
    ]
    np.testing.assert_allclose(fits[0].parameters, fits[1].parameters, atol=1e-9)
    np.testing.assert_allclose(fits[0].covariance, fits[1].covariance, rtol=1e-7)


def test_known_margins_hold_and_lower_the_errors_of_what_they_bear_on() -> None:
    table = truth()
    likelihood = likelihood_of(LAWS["ramp"], table, 1e4)
    members = np.array([[i == j for i in CELLS.indices[1]] for j in range(3)], dtype=float)
    shares = table.sum(axis=(0, 2)) + np.array([0.01, -0.02, 0.01])
    held = Likelihood(SHAPE, likelihood.observed, (KnownShares(members, shares),))
    fit = fit_log_linear(held, COLUMNS.values, COLUMNS.names, NONE)
    free = fit_log_linear(likelihood, COLUMNS.values, COLUMNS.names, NONE)
    np.testing.assert_allclose(fit.probabilities.sum(axis=(0, 2))[:, 0], shares, atol=1e-7)
    margins = [
        np.sqrt(np.diag(members @ (f.jacobian() @ f.covariance @ f.jacobian().T) @ members.T))
        for f in (fit, free)
    ]
    assert (margins[0] < 1e-3 * margins[1]).all()


def test_a_prior_is_not_counted_as_data() -> None:
    precision = prior_precision(COLUMNS)
    few = fit_log_linear(
        likelihood_of(LAWS["product"], truth(), 20.0), COLUMNS.values, COLUMNS.names, precision
    )
    many = fit_log_linear(
        likelihood_of(LAWS["product"], truth(), 1e6), COLUMNS.values, COLUMNS.names, precision
    )
    assert few.data_share[:4].max() < 0.9
    assert many.data_share[:4].min() > 0.99
    assert few.objective == few.log_likelihood - few.penalty


def test_what_the_rows_do_not_tell_is_named() -> None:
    twice = np.column_stack([COLUMNS.values, COLUMNS.values[:, 1]])
    names = (*COLUMNS.names, "again")
    with pytest.raises(InputError, match=r"the release cannot separate '(a\[T.q\]|again)'"):
        fit_log_linear(likelihood_of(LAWS["product"], truth(), 100.0), twice, names, np.zeros(10))


def test_a_fit_of_another_table_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="a design of 3 rows for 12 cells"):
        fit_log_linear(likelihood_of(LAWS["product"], truth()), np.ones((3, 1)), ["a"], np.ones(1))
