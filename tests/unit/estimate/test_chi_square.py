"""The χ² test on randomized pairs, against scipy and against dense likelihoods."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import chi2, chi2_contingency

from deniable.errors import InputError
from deniable.estimate.chi_square import (
    ChiSquare,
    chi_square,
    randomized_together,
    released_chi_square,
)
from deniable.mechanism.table_map import JointAxes, TableMap


def pattern(shape: tuple[int, int], first: float, second: float, both: float) -> list[TableMap]:
    """M and L of a pattern law with these eigenvalues."""
    values = np.array([[1.0, second], [first, both]])
    return [TableMap(shape, (0, 1), each, {}) for each in (values, 1 / values)]


def matrices(*both: NDArray[np.float64]) -> list[TableMap]:
    """M and L of two response matrices."""
    shape = (both[0].shape[1], both[1].shape[1])
    inverses = [np.linalg.pinv(matrix) for matrix in both]
    return [TableMap(shape, (), np.ones(()), dict(enumerate(each))) for each in (both, inverses)]


def on_pairs(matrix: NDArray[np.float64], shape: tuple[int, int]) -> list[TableMap]:
    """M and L of one response matrix on a merged attribute; outputs on the first axis."""
    outputs = (len(matrix), 1)
    left = np.linalg.pinv(matrix)
    return [
        TableMap(shape, (), np.ones(()), {0: matrix}, {0: JointAxes((0, 1), outputs, shape)}),
        TableMap(shape, (), np.ones(()), {0: left}, {0: JointAxes((0, 1), shape, outputs)}),
    ]


def column_stochastic(n_outputs: int, n_categories: int, seed: int) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    matrix = random.dirichlet(np.ones(n_outputs), size=n_categories).T
    matrix[:n_categories] += np.eye(n_categories)
    return matrix / matrix.sum(axis=0)


def dense(channel: TableMap, shape: tuple[int, int]) -> NDArray[np.float64]:
    cells = shape[0] * shape[1]
    return np.stack(
        [channel.apply(np.eye(cells)[i].reshape(shape)).ravel() for i in range(cells)], axis=1
    )


def score_statistic(
    counts: NDArray[np.float64], matrix: NDArray[np.float64], shape: tuple[int, int]
) -> float:
    """Rao's score statistic at the restricted maximum of the likelihood, by a general optimizer."""
    a, b = shape
    n, theta = counts.sum(), counts.ravel() / counts.sum()

    def margins(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        first, second = x[: a - 1], x[a - 1 :]
        return np.append(first, 1 - first.sum()), np.append(second, 1 - second.sum())

    def loss(x: NDArray[np.float64]) -> float:
        expected = matrix @ np.outer(*margins(x)).ravel()
        return float(-(theta @ np.log(expected))) if expected.min() > 0 else np.inf

    start = np.concatenate([np.full(a - 1, 1 / a), np.full(b - 1, 1 / b)])
    options = {"xatol": 1e-8, "fatol": 1e-14, "maxiter": 40_000, "maxfev": 40_000}
    best = minimize(loss, start, method="Nelder-Mead", options=options)
    expected = matrix @ np.outer(*margins(best.x)).ravel()
    # Every direction that π can move in, from the fit: scores against their information.
    tangent = matrix[:, :-1] - matrix[:, -1:]
    weighted = tangent / expected[:, None]
    score = weighted.T @ (theta - expected)
    return float(n * score @ np.linalg.solve(tangent.T @ weighted, score))


@pytest.mark.parametrize("degrees", [1, 2, 3, 6, 15, 41, 225])
def test_the_p_value_is_the_tail_of_the_chi_square_distribution(degrees: int) -> None:
    for statistic in (1e-9, 0.3, 1.0, 7.7, 60.0, 400.0, 1200.0):
        expected = chi2.sf(statistic, degrees)
        assert ChiSquare(statistic, degrees, 5.0).p_value == pytest.approx(expected, rel=1e-12)
    assert ChiSquare(0.0, degrees, 5.0).p_value == 1.0


@given(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=2, max_size=4))
def test_without_randomization_it_is_pearsons_test(rows: list[list[int]]) -> None:
    counts = np.array(rows, dtype=np.float64)
    assume(counts.sum() > 0)
    seen = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(seen.shape) < 2:
        with pytest.raises(InputError, match="no test is possible"):
            released_chi_square(counts)
        return
    found = released_chi_square(counts)
    reference = chi2_contingency(seen, correction=False)
    assert found.statistic == pytest.approx(reference.statistic, abs=1e-9)
    assert found.degrees_of_freedom == reference.dof
    assert found.p_value == pytest.approx(reference.pvalue, rel=1e-9, abs=1e-300)
    assert found.least_expected == pytest.approx(reference.expected_freq.min())


COUNTS = np.array([[40.0, 22, 31, 17], [15, 30, 12, 9], [21, 8, 16, 25]])


def test_a_product_law_leaves_pearsons_statistic_of_the_released_table() -> None:
    forward, inverse = pattern((3, 4), 0.5, 0.4, 0.5 * 0.4)
    assert not randomized_together(forward)
    expected = chi2_contingency(COUNTS, correction=False).statistic
    assert chi_square(COUNTS, forward, inverse).statistic == pytest.approx(expected, rel=1e-12)


def test_square_matrices_leave_pearsons_statistic_of_the_released_table() -> None:
    maps = matrices(column_stochastic(3, 3, 1), column_stochastic(4, 4, 2))
    expected = chi2_contingency(COUNTS, correction=False).statistic
    assert chi_square(COUNTS, *maps).statistic == pytest.approx(expected, rel=1e-9)


def test_both_ways_of_testing_agree_where_they_meet() -> None:
    apart = chi_square(COUNTS, *pattern((3, 4), 0.5, 0.4, 0.2))
    nearly = pattern((3, 4), 0.5, 0.4, 0.2 * (1 + 1e-9))
    assert randomized_together(nearly[0])
    assert chi_square(COUNTS, *nearly).statistic == pytest.approx(apart.statistic, rel=1e-7)


@pytest.mark.parametrize(
    "eigenvalues",
    [
        (0.5, 0.5, 0.5),
        pytest.param((0.6, 0.4, 0.1), marks=pytest.mark.slow),
        pytest.param((0.2, 0.3, 0.15), marks=pytest.mark.slow),
    ],
)
def test_a_joint_law_gives_the_score_statistic_of_the_dense_likelihood(
    eigenvalues: tuple[float, float, float],
) -> None:
    forward, inverse = pattern((3, 4), *eigenvalues)
    expected = score_statistic(COUNTS, dense(forward, (3, 4)), (3, 4))
    found = chi_square(COUNTS, forward, inverse)
    assert found.statistic == pytest.approx(expected, rel=1e-6)
    assert found.degrees_of_freedom == 6
    assert found.p_value == pytest.approx(chi2.sf(found.statistic, 6), rel=1e-9)


@pytest.mark.slow
def test_a_fit_outside_the_simplex_is_the_maximum_too() -> None:
    # Nobody seems to be in the third row: its estimated share is negative.
    counts = np.array([[60.0, 30, 28, 22], [25, 40, 22, 17], [14, 16, 15, 14]])
    forward, inverse = pattern((3, 4), 0.4, 0.4, 0.4)
    assert inverse.apply(counts / counts.sum()).sum(axis=1).min() < 0
    expected = score_statistic(counts, dense(forward, (3, 4)), (3, 4))
    assert chi_square(counts, forward, inverse).statistic == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n_outputs", [6, 9])
def test_a_matrix_on_a_merged_attribute_gives_the_dense_score_statistic(n_outputs: int) -> None:
    matrix = column_stochastic(n_outputs, 6, 3)
    table = np.array([[0.3, 0.1, 0.15], [0.1, 0.25, 0.1]])
    counts = np.random.default_rng(4).multinomial(900, matrix @ table.ravel()).astype(float)
    maps = on_pairs(matrix, (2, 3))
    found = chi_square(counts.reshape(-1, 1), *maps)
    assert found.statistic == pytest.approx(score_statistic(counts, matrix, (2, 3)), rel=1e-6)
    assert found.degrees_of_freedom == 2


def test_more_outputs_than_categories_count_only_what_true_tables_reach() -> None:
    first, second = column_stochastic(5, 3, 5), column_stochastic(3, 2, 6)
    counts = np.random.default_rng(7).integers(20, 60, (5, 3)).astype(float)
    theta = counts / counts.sum()
    margins = theta.sum(axis=1), theta.sum(axis=0)
    # Generalized least squares on the contrasts M_a C M_bᵀ, C with zero margins, with the
    # residual's covariance (D_a − θ_aθ_aᵀ) ⊗ (D_b − θ_bθ_bᵀ).
    reach = np.kron(first[:, :2] - first[:, 2:], second[:, :1] - second[:, 1:])
    product = np.outer(*margins).ravel()
    residual = theta.ravel() - product
    score = reach.T @ (residual / product)
    # Where margins are zero, the inverse of that covariance acts as 1/product.
    information = reach.T @ (reach / product[:, None])
    expected = counts.sum() * score @ np.linalg.solve(information, score)
    found = chi_square(counts, *matrices(first, second))
    assert found.degrees_of_freedom == 2
    assert found.statistic == pytest.approx(expected, rel=1e-9)


def test_by_estimates_alone_it_is_the_wald_statistic_of_the_dense_covariance() -> None:
    forward, inverse = pattern((3, 4), 0.6, 0.5, 0.4)
    n, theta = COUNTS.sum(), COUNTS.ravel() / COUNTS.sum()
    left = np.linalg.inv(dense(forward, (3, 4)))
    table = (left @ theta).reshape(3, 4)
    first, second = table.sum(axis=1), table.sum(axis=0)
    excess = (table - np.outer(first, second)).ravel()
    jacobian = np.kron(np.eye(3) - np.outer(first, np.ones(3)), np.eye(4)) @ np.kron(
        np.eye(3), np.eye(4) - np.outer(second, np.ones(4))
    )
    moves = jacobian @ left
    covariance = moves @ np.diag(theta) @ moves.T / n
    expected = excess @ np.linalg.pinv(covariance, rcond=1e-10) @ excess
    found = chi_square(COUNTS, None, inverse)
    assert found.statistic == pytest.approx(expected, rel=1e-7)
    assert found.degrees_of_freedom == 6
    # Near independence it is the score test.
    true = np.outer([0.5, 0.3, 0.2], [0.4, 0.3, 0.2, 0.1])
    true[:2, :2] += [[0.01, -0.01], [-0.01, 0.01]]
    near = 1e4 * forward.apply(true)
    score = chi_square(near, forward, inverse).statistic
    assert score > 0.5
    assert chi_square(near, None, inverse).statistic == pytest.approx(score, rel=0.05)


@given(
    st.lists(st.integers(0, 6), min_size=12, max_size=12),
    st.sampled_from([(0.9, 0.9, 0.9), (0.5, 0.5, 0.5), (0.1, 0.1, 0.1), (0.95, 0.6, 0.57001)]),
)
def test_sparse_tables_give_a_number_and_never_a_failure(
    cells: list[int], eigenvalues: tuple[float, float, float]
) -> None:
    counts = np.array(cells, dtype=np.float64).reshape(3, 4)
    assume(counts.sum() > 0)
    found = chi_square(counts, *pattern((3, 4), *eigenvalues))
    assert np.isfinite(found.statistic)
    assert found.statistic >= 0
    assert 0 <= found.p_value <= 1
    assert found.least_expected > 0
