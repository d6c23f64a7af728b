"""Square response matrices: kept limits, a sound model of the error, zeros where they belong."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.rows import average_limits, local_limits
from deniable.solvers.matrices import frontier, response, schemes, square
from deniable.solvers.matrices.square import roomy
from marked import slow_after
from unit.solvers.matrices.priors import NORMAL_TEN, SKEWED, within

LIMITS = [
    average_limits([0.6, 0.4], 0.2),
    average_limits(SKEWED, 0.05),
    average_limits(SKEWED, 0.4),
    average_limits(SKEWED, 0.4, 0.55),
    average_limits(SKEWED, 0.59),
    average_limits(np.full(4, 0.25), 0.7, 0.75),
]


@pytest.mark.parametrize("limits", LIMITS)
def test_the_matrix_keeps_the_limits_and_lies_between_the_bound_and_warner(
    limits: square.Limits,
) -> None:
    design = square.solve(limits, np.random.default_rng(1), n_starts=12)
    bound = frontier.solve(limits).certificate.record_mse
    assert within(design.matrix, limits, margin=2e-12)
    assert np.allclose(design.matrix.sum(axis=0), 1.0, atol=1e-14)
    assert design.record_mse == pytest.approx(
        float(response.record_mse(design.matrix, limits.prior))
    )
    assert design.ratio(bound) >= 1.0
    assert limits.success is not None
    truthful = schemes.warner_at(limits.prior, 1 - limits.success, limits.most_posterior)
    warner = schemes.warner(limits.n_categories, truthful)
    assert design.record_mse <= float(response.record_mse(warner, limits.prior)) * (1 + 1e-12)
    assert len(design.start_record_mse) == 12


@pytest.mark.slow
def test_with_two_categories_it_is_as_good_as_a_scan_of_all_matrices() -> None:
    prior = np.array([0.6, 0.4])
    limits = average_limits(prior, 0.2)
    grid = np.linspace(0.0, 1.0, 801)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    matrices = np.stack([np.stack([a, b], -1), np.stack([1 - a, 1 - b], -1)], -2)
    private = response.privacy(matrices, prior) >= 0.2
    off = np.abs(a - b) > 1e-3
    best = float(response.record_mse(matrices[private & off], prior).min())
    found = square.solve(limits, np.random.default_rng(2), n_starts=8).record_mse
    assert best * 0.99 < found <= best * (1 + 1e-6)


@pytest.mark.slow
def test_ten_categories_come_near_the_bound() -> None:
    limits = average_limits(NORMAL_TEN, 0.5, 0.75)
    design = square.solve(limits, np.random.default_rng(3), n_starts=6)
    bound = frontier.solve(limits).certificate.record_mse
    assert 1.0 <= design.ratio(bound) < 1.6
    assert design.record_mse == pytest.approx(design.start_record_mse.min(), rel=1e-6)


@pytest.mark.parametrize("delta", [None, 0.7])
def test_gradient_and_hessian_are_those_of_the_error(delta: float | None) -> None:
    generator = np.random.default_rng(4)
    limits = average_limits(SKEWED, 0.3, delta)
    iteration = square._Iteration(limits, square._starts(limits, generator, 5))
    n = 4
    gradient, hessian = iteration._model(iteration.point)
    move = np.zeros_like(iteration.point)
    move[:, : n * n] = generator.normal(size=(5, n * n)) * iteration.point[:, : n * n]
    step = 1e-4
    ahead = iteration._value(iteration.point + step * move)
    behind = iteration._value(iteration.point - step * move)
    slope = (gradient * move[:, : n * n]).sum(axis=1)
    assert np.allclose((ahead - behind) / (2 * step), slope, rtol=1e-4)
    assert np.allclose(hessian, hessian.transpose(0, 2, 1), rtol=1e-9, atol=1e-9)
    values = np.linalg.eigvalsh(hessian)
    assert (values[:, 0] > -1e-10 * values[:, -1]).all()
    # Where K does not curve, along a scaling of whole rows, the model is exact.
    rows = np.repeat(generator.normal(size=(5, n)), n, axis=1) * iteration.point[:, : n * n]
    move[:, : n * n] = rows
    bend = (
        iteration._value(iteration.point + step * move)
        + iteration._value(iteration.point - step * move)
        - 2 * iteration._value(iteration.point)
    ) / step**2
    assert np.allclose(np.einsum("bi,bij,bj->b", rows, hessian, rows), bend, rtol=1e-3)


@pytest.mark.parametrize("epsilon", slow_after(2, [0.1, 1.0, 5.0, 20.0]))
@pytest.mark.parametrize("prior", [SKEWED, np.full(6, 1 / 6)], ids=["skewed", "uniform"])
def test_under_ldp_the_matrix_keeps_epsilon_and_lies_between_the_bound_and_k_ary_response(
    prior: FloatArray, epsilon: float
) -> None:
    limits = local_limits(prior, epsilon)
    design = square.solve(limits, np.random.default_rng(3), n_starts=12)
    assert response.epsilon(design.matrix) <= epsilon
    assert design.ratio(frontier.solve(limits).certificate.record_mse) >= 1.0
    plain = response.record_mse(schemes.frapp(len(prior), np.exp(epsilon)), prior)
    assert design.record_mse <= float(plain) * (1 + 1e-9)


def test_under_ldp_a_square_matrix_can_do_better_than_k_ary_response() -> None:
    limits = local_limits(NORMAL_TEN, 0.5)
    design = square.solve(limits, np.random.default_rng(3), n_starts=6)
    plain = response.record_mse(schemes.frapp(10, np.exp(0.5)), limits.prior)
    assert design.record_mse < 0.7 * float(plain)


def test_a_search_without_a_start_is_refused() -> None:
    with pytest.raises(InputError, match="at least one start"):
        square.solve(average_limits(SKEWED, 0.3), np.random.default_rng(5), n_starts=0)


LIMITS = [
    average_limits(SKEWED, 0.3),
    average_limits(SKEWED, 0.4, 0.75),
    average_limits(NORMAL_TEN, 0.4, 0.8),
    average_limits([0.47, 0.465, 0.033, 0.023, 0.006, 0.003], 0.3, 0.9),
]


@pytest.mark.parametrize("limits", slow_after(2, LIMITS))
def test_a_square_matrix_has_zeros_or_entries_that_matter_and_keeps_its_limits(
    limits: square.Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = square.solve(limits, np.random.default_rng(0), n_starts=4)
    positive = found.matrix[found.matrix > 0]
    assert len(positive) < found.matrix.size
    assert positive.min() > 10 * 1e-4  # what is taken for zero
    assert np.isinf(response.epsilon(found.matrix))
    assert within(found.matrix, limits, margin=2e-12)
    assert found.record_mse == pytest.approx(
        float(response.record_mse(found.matrix, limits.prior)), rel=1e-12
    )
    monkeypatch.setattr(square, "_with_zeros", lambda design: design)
    before = square.solve(limits, np.random.default_rng(0), n_starts=4)
    assert 10 < response.epsilon(before.matrix) < 40
    assert found.record_mse == pytest.approx(before.record_mse, rel=1e-6)


def test_a_matrix_without_entries_near_zero_stays_as_it_is() -> None:
    limits = average_limits([0.6, 0.4], 0.3)
    matrix = np.array([[0.8, 0.2], [0.2, 0.8]])
    design = square.SquareDesign(limits, matrix, 1.0, np.ones(1))
    assert square._with_zeros(design) is design


def test_a_matrix_whose_zeros_would_cost_too_much_stays_as_it_is() -> None:
    # Privacy 0.39 of at most 0.4: nearly the same answer for both; a zero in it is out of reach.
    limits = average_limits([0.6, 0.4], 0.39, 0.61)
    matrix = np.array([[0.9999999, 0.99], [1e-7, 0.01]])
    error = float(response.record_mse(matrix, limits.prior))
    design = square.SquareDesign(limits, matrix, error, np.array([error]))
    assert square._with_zeros(design) is design


@pytest.mark.parametrize("delta", [None, 0.75, 1.0])
def test_the_roomy_matrix_has_the_zeros_and_keeps_every_limit_strictly(
    delta: float | None,
) -> None:
    limits = average_limits(SKEWED, 0.3, delta)
    support = np.ones((4, 4), dtype=bool)
    support[0, 1] = support[2, 0] = support[3, 3] = False
    found = roomy(support, limits)
    assert found is not None
    assert (found[~support] == 0).all()
    np.testing.assert_allclose(found.sum(axis=0), 1)
    assert response.privacy(found, limits.prior) > 0.3 + 1e-3
    if delta == 0.75:
        assert response.worst_posterior(found, limits.prior) < 0.75 - 1e-3


def test_a_support_that_gives_everything_away_has_no_room() -> None:
    assert roomy(np.eye(4, dtype=bool), average_limits(SKEWED, 0.3)) is None
