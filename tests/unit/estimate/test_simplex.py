"""EM and the projection against direct optimisation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.optimize import minimize

from deniable.estimate.simplex import maximum_likelihood, project_to_simplex
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from unit.dense import MECHANISMS, NAMES, dense_channel

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)


def a_released_table(channel: Channel, matrix: np.ndarray, n: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.full(matrix.shape[1], 0.3))
    return random.multinomial(n, matrix @ truth).reshape(channel.n_outputs) / n


def log_likelihood(matrix: np.ndarray, frequencies: np.ndarray, values: np.ndarray) -> float:
    expected = matrix @ values.ravel()
    seen = frequencies.ravel() > 0
    return float((frequencies.ravel()[seen] * np.log(expected[seen])).sum())


def by_direct_maximisation(matrix: np.ndarray, frequencies: np.ndarray) -> float:
    """The largest log-likelihood per record, by sequential quadratic programming."""
    cells = matrix.shape[1]
    theta = frequencies.ravel()

    def value(p: np.ndarray) -> float:
        return -float(theta @ np.log(np.maximum(matrix @ p, 1e-300)))

    def slope(p: np.ndarray) -> np.ndarray:
        return -(theta / np.maximum(matrix @ p, 1e-300)) @ matrix

    found = minimize(
        value,
        np.full(cells, 1 / cells),
        jac=slope,
        bounds=[(0, 1)] * cells,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda _: np.ones(cells)},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    values = np.maximum(found.x, 0)
    return log_likelihood(matrix, frequencies, values / values.sum())


@every_mechanism
def test_em_reaches_the_largest_likelihood_and_its_gap_is_a_true_bound(
    mechanism: Mechanism,
) -> None:
    names = mechanism.schema.names
    channel, matrix, n = Channel(mechanism, names), dense_channel(mechanism, names), 2000
    frequencies = a_released_table(channel, matrix, n, 1)
    best = by_direct_maximisation(matrix, frequencies)
    for tolerance in (1.0, 0.1, 1e-3):
        fit = maximum_likelihood(frequencies, channel.forward, n, tolerance=tolerance)
        short = n * (best - log_likelihood(matrix, frequencies, fit.values))
        assert fit.converged
        assert fit.gap <= tolerance
        assert short <= fit.gap + 1e-6
        assert fit.values.min() >= 0
        assert fit.values.sum() == pytest.approx(1, abs=1e-12)


@every_mechanism
def test_em_gives_the_inversion_where_that_is_a_distribution(mechanism: Mechanism) -> None:
    # With exact expected frequencies, and no more outputs than cells, both give the truth.
    channel = Channel(mechanism, mechanism.schema.names)
    truth = np.random.default_rng(2).dirichlet(np.full(int(np.prod(channel.n_categories)), 20.0))
    truth = truth.reshape(channel.n_categories)
    frequencies = channel.forward.apply(truth)
    fit = maximum_likelihood(frequencies, channel.forward, 1e6, tolerance=1e-6)
    np.testing.assert_allclose(fit.values, truth, atol=1e-5)
    np.testing.assert_allclose(channel.inverse.apply(frequencies), truth, atol=1e-12)


def test_em_that_may_not_finish_says_so() -> None:
    channel = Channel(MECHANISMS[0], MECHANISMS[0].schema.names)
    matrix = dense_channel(MECHANISMS[0], MECHANISMS[0].schema.names)
    frequencies = a_released_table(channel, matrix, 10**6, 3)
    fit = maximum_likelihood(frequencies, channel.forward, 10**6, max_iterations=2)
    assert not fit.converged
    assert fit.gap > 0.1
    assert fit.iterations == 2


def test_more_iterations_never_lower_the_likelihood() -> None:
    mechanism = MECHANISMS[1]
    channel = Channel(mechanism, mechanism.schema.names)
    matrix = dense_channel(mechanism, mechanism.schema.names)
    frequencies = a_released_table(channel, matrix, 500, 4)
    heights = [
        log_likelihood(
            matrix,
            frequencies,
            maximum_likelihood(
                frequencies, channel.forward, 500, tolerance=0, max_iterations=limit
            ).values,
        )
        for limit in range(0, 60, 10)
    ]
    assert np.all(np.diff(heights) >= -1e-13)
    assert heights[-1] > heights[0]


TABLES = arrays.arrays(float, st.integers(1, 12), elements=st.floats(-3, 3))


@given(TABLES)
def test_the_projection_is_the_nearest_distribution(values: np.ndarray) -> None:
    projected = project_to_simplex(values)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1, abs=1e-12)
    # The nearest point of a convex set: no vertex of it lies in the direction of the residual,
    # (values − projected)·(vertex − projected) <= 0.
    residual = values - projected
    assert residual.max() - residual @ projected <= 1e-9


def test_the_projection_leaves_a_distribution_alone_and_keeps_the_shape() -> None:
    table = np.random.default_rng(1).dirichlet(np.ones(12)).reshape(3, 4)
    np.testing.assert_allclose(project_to_simplex(table), table, atol=1e-15)
