"""Matrices for the mean of a number: variances, equations, ratios, and the optimum of a dense
program."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from deniable.solvers.matrices.numbers import GAP, matrix_for_mean


def worst_variance(matrix: np.ndarray, values: np.ndarray) -> float:
    """The largest E y² − x² over numbers x from −1 to 1, rounded to the points at random."""
    numbers = np.linspace(-1, 1, 2001)
    points = np.linspace(-1, 1, matrix.shape[1])
    return float((np.interp(numbers, points, values**2 @ matrix) - numbers**2).max())


def least_variance(n_points: int, epsilon: float, values: np.ndarray) -> float:
    """The optimum over matrices with these outputs, without the rounding, by one dense program."""
    m, points = len(values), np.linspace(-1, 1, n_points)
    size = n_points * m
    below, above = np.zeros((2, size, size + m + 1))
    for j in range(n_points):
        rows = slice(j * m, (j + 1) * m)
        below[rows, rows], below[rows, size:-1] = -np.eye(m), np.eye(m)
        above[rows, rows], above[rows, size:-1] = np.eye(m), -math.exp(epsilon) * np.eye(m)
    every = np.eye(n_points)
    spread = np.hstack(
        [np.kron(every, values**2), np.zeros((n_points, m)), -np.ones((n_points, 1))]
    )
    equal = np.pad(
        np.vstack([np.kron(every, np.ones(m)), np.kron(every, values)]), ((0, 0), (0, m + 1))
    )
    found = linprog(
        np.eye(size + m + 1)[-1],
        A_ub=np.vstack([below, above, spread]),
        b_ub=np.concatenate([np.zeros(2 * size), points**2]),
        A_eq=equal,
        b_eq=np.concatenate([np.ones(n_points), points]),
    )
    return float(found.fun)


@pytest.mark.parametrize(
    ("epsilon", "n_points", "target"),
    [
        (1.0, 11, 3.994),
        (0.5, 11, 16.01),
        (2.0, 15, 0.866),
        pytest.param(4.0, 29, 0.128, marks=pytest.mark.slow),
        pytest.param(6.0, 53, 0.0275, marks=pytest.mark.slow),
    ],
)
def test_the_mean_has_the_least_worst_case_variance(
    epsilon: float, n_points: int, target: float
) -> None:
    matrix, values = matrix_for_mean(n_points, epsilon, 0.2)
    assert matrix.sum(axis=0) == pytest.approx(np.ones(n_points), abs=1e-13)
    assert values @ matrix == pytest.approx(np.linspace(-1, 1, n_points), abs=1e-12)
    assert math.log((matrix.max(axis=1) / matrix.min(axis=1)).max()) <= epsilon + 1e-12
    assert worst_variance(matrix, values) <= 1.005 * target


@pytest.mark.parametrize(("n_points", "epsilon"), [(3, 1.5), (4, 0.7)])
def test_no_matrix_on_a_fine_list_of_values_is_better(n_points: int, epsilon: float) -> None:
    matrix, values = matrix_for_mean(n_points, epsilon, 0.2)
    largest = 1.35 / math.tanh(epsilon / 2)
    dense = least_variance(n_points, epsilon, np.linspace(-largest, largest, 61))
    at_points = (values**2 @ matrix - np.linspace(-1, 1, n_points) ** 2).max()
    worst = worst_variance(matrix, values)
    assert dense * (1 - 2e-3) <= at_points <= worst + 1e-9
    # The middle of a cell adds at most a quarter of its square.
    assert worst <= (dense + 1 / (n_points - 1) ** 2) * (1 + GAP)


def test_two_points_are_answered_by_the_response_of_two_values() -> None:
    matrix, values = matrix_for_mean(2, 1.0, 0.2)
    assert values == pytest.approx([-1 / math.tanh(0.5), 1 / math.tanh(0.5)])
    assert matrix[1, 1] / matrix[1, 0] == pytest.approx(math.e)


@pytest.mark.parametrize(("epsilon", "n_points"), [(0.01, 5), (12.0, 9)])
def test_the_equations_hold_at_the_limits_of_the_level(epsilon: float, n_points: int) -> None:
    matrix, values = matrix_for_mean(n_points, epsilon, 0.2)
    assert values @ matrix == pytest.approx(np.linspace(-1, 1, n_points), abs=1e-11)
    assert math.log((matrix.max(axis=1) / matrix.min(axis=1)).max()) <= epsilon + 1e-12


def test_the_average_variance_is_least_if_it_alone_counts() -> None:
    numbers = np.linspace(-1, 1, 2001)
    average, middle = {}, {}
    for share in (0.2, 1.0):
        matrix, values = matrix_for_mean(11, 2.0, share)
        squares = np.interp(numbers, np.linspace(-1, 1, 11), values**2 @ matrix)
        average[share] = float((squares - numbers**2).mean())
        middle[share] = float(squares[1000])
    assert average[1.0] < 0.95 * average[0.2]
    assert middle[1.0] < 0.75 * middle[0.2]
