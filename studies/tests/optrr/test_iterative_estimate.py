"""The iterative estimate: a distribution, the most likely one, and its simulated error."""

import numpy as np
import pytest
from scipy.optimize import minimize

from deniable.errors import InputError
from deniable.solvers.matrices import response, schemes
from deniable_studies.optrr import iterative_estimate as iterative
from unit.solvers.matrices.priors import SKEWED, random_mechanism


def test_it_is_the_inversion_estimate_where_that_is_a_distribution() -> None:
    matrix = schemes.warner(4, 0.7)
    frequencies = matrix @ np.array([0.1, 0.2, 0.3, 0.4])
    found = iterative.iterative_estimate(matrix, frequencies, tolerance=1e-14)
    assert np.allclose(found, [0.1, 0.2, 0.3, 0.4], atol=1e-10)


def test_it_maximises_the_likelihood_where_inversion_leaves_the_simplex() -> None:
    matrix = schemes.warner(3, 0.6)
    frequencies = np.array([0.75, 0.15, 0.10])
    assert (np.linalg.inv(matrix) @ frequencies).min() < 0
    found = iterative.iterative_estimate(matrix, frequencies, tolerance=1e-13)

    def loss(point: np.ndarray) -> float:
        shares = np.exp(point - point.max())
        return -float(frequencies @ np.log(matrix @ (shares / shares.sum())))

    best = min(
        minimize(loss, start, method="Nelder-Mead", options={"maxiter": 5000, "fatol": 1e-14}).fun
        for start in np.random.default_rng(1).normal(size=(5, 3))
    )
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert (found >= 0).all()
    assert -float(frequencies @ np.log(matrix @ found)) <= best + 1e-9


def test_every_step_is_a_distribution_and_the_printed_equation_is_not() -> None:
    """Equation (3) as printed swaps the indices of θ, and its limit does not sum to 1."""
    matrix = np.array([[0.8, 0.3, 0.1], [0.1, 0.6, 0.2], [0.1, 0.1, 0.7]])
    frequencies = np.array([0.5, 0.3, 0.2])
    for steps in (1, 2, 10):
        shares = iterative.iterative_estimate(matrix, frequencies, max_iterations=steps)
        assert shares.sum() == pytest.approx(1.0, abs=1e-14)
    printed = np.full(3, 1 / 3)
    for _ in range(200):
        terms = matrix * printed  # θ_{i,j} p_j
        printed = (terms * frequencies / terms.sum(axis=1, keepdims=True)).sum(axis=1)
    assert abs(printed.sum() - 1.0) > 1e-3


def test_a_batch_gives_what_one_at_a_time_gives_and_unseen_outputs_do_no_harm() -> None:
    generator = np.random.default_rng(2)
    matrix = random_mechanism(generator, 4, 6)
    batch = generator.dirichlet(np.ones(6), size=5)
    batch[0] = np.eye(6)[1] * 0.5 + np.eye(6)[4] * 0.5
    together = iterative.iterative_estimate(matrix, batch, tolerance=0.0, max_iterations=300)
    for row, shares in zip(batch, together, strict=True):
        alone = iterative.iterative_estimate(matrix, row, tolerance=0.0, max_iterations=300)
        assert np.allclose(alone, shares, atol=1e-12)
    assert np.isfinite(together).all()


def test_its_error_is_that_of_inversion_for_many_records_and_smaller_for_few() -> None:
    matrix = schemes.warner(4, 0.5)
    for n_records, factor in ((50_000, 1.0), (60, None)):
        found = iterative.simulated_mse(
            matrix, SKEWED, n_records, 400, np.random.default_rng(3), tolerance=1e-7
        )
        linear = float(response.record_mse(matrix, SKEWED)) / n_records
        if factor is None:
            assert found.mse < linear - 5 * found.standard_error
        else:
            assert abs(found.mse - linear) < 5 * found.standard_error


def test_too_few_simulations_or_records_are_refused() -> None:
    generator = np.random.default_rng(4)
    with pytest.raises(InputError, match="at least 2"):
        iterative.simulated_mse(np.eye(4), SKEWED, 10, 1, generator)
    with pytest.raises(InputError, match="at least"):
        iterative.simulated_mse(np.eye(4), SKEWED, 0, 5, generator)
