"""Cramér's V from randomized pairs, against dense matrices and against what it is without noise."""

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable.estimate.association import Association, association
from deniable.estimate.chi_square import chi_square
from deniable.mechanism.table_map import TableMap
from marked import slow_after

TABLE = np.array([[0.25, 0.15, 0.1], [0.05, 0.2, 0.25]])
PLAIN = TableMap((2, 3), (), np.ones(()), {})


def randomized(*eigenvalues: float) -> tuple[TableMap, TableMap]:
    first, second, both = eigenvalues
    values = np.array([[1.0, second], [first, both]])
    forward, inverse = (TableMap((2, 3), (0, 1), each, {}) for each in (values, 1 / values))
    return forward, inverse


def squared_phi(table: NDArray[np.float64]) -> float:
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(((table - product) ** 2 / product).sum())


@pytest.mark.parametrize("eigenvalues", [(1.0, 1.0, 1.0), (0.5, 0.4, 0.2), (0.4, 0.4, 0.4)])
def test_with_endless_rows_it_is_the_v_of_the_true_table(eigenvalues: tuple[float, ...]) -> None:
    forward, inverse = randomized(*eigenvalues)
    found = association(forward.apply(TABLE), inverse, 1e14)
    assert found.square == pytest.approx(squared_phi(TABLE), rel=1e-9)
    assert found.value == pytest.approx(squared_phi(TABLE) ** 0.5, rel=1e-9)
    assert found.standard_error < 1e-5


def test_one_attribute_that_settles_the_other_has_v_1() -> None:
    table = np.diag([0.5, 0.3, 0.2])
    found = association(table, TableMap((3, 3), (), np.ones(()), {}), 1e12)
    assert found.value == pytest.approx(1.0, rel=1e-9)


def test_without_randomization_the_correction_is_bergsmas_at_independence() -> None:
    table = np.outer(TABLE.sum(axis=1), TABLE.sum(axis=0))
    found = association(table, PLAIN, 500)
    assert found.square == pytest.approx(-2 / 500, rel=1e-9)  # 0 less (a − 1)(b − 1)/n
    assert found.value == 0.0
    # nΦ̂² is χ² with 2 degrees of freedom there: variance 4.
    assert found.standard_error == pytest.approx(2 / 500, rel=1e-9)
    assert found.interval(1.96)[0] == 0.0


def test_variance_and_bias_are_those_of_the_dense_covariance() -> None:
    forward, inverse = randomized(0.5, 0.4, 0.3)
    n, theta = 800, forward.apply(TABLE).ravel()
    left = np.stack([inverse.apply(row.reshape(2, 3)).ravel() for row in np.eye(6)], axis=1)
    covariance = left @ (np.diag(theta) - np.outer(theta, theta)) @ left.T / n
    first, second = TABLE.sum(axis=1), TABLE.sum(axis=0)
    margins = np.kron(np.eye(2) - np.outer(first, [1, 1]), np.eye(3) - np.outer(second, [1, 1, 1]))
    # π̂ − α̂β̂ᵀ moves by (1 − α1ᵀ) dπ (1 − 1βᵀ).
    scale = np.diag(np.outer(first, second).ravel() ** -0.5)
    noise = scale @ margins @ covariance @ margins.T @ scale
    gradient = np.empty(6)
    for i in range(6):
        step = np.eye(6)[i].reshape(2, 3) * 1e-6
        up, down = (squared_phi_unscaled(TABLE + s * step) for s in (1, -1))
        gradient[i] = (up - down) / 2e-6
    found = association(theta.reshape(2, 3), inverse, n)
    assert found.square == pytest.approx(squared_phi(TABLE) - np.trace(noise), rel=1e-9)
    assert found.floor == pytest.approx(2 * (noise**2).sum(), rel=1e-9)
    slope = gradient @ covariance @ gradient / squared_phi(TABLE)
    assert found.slope == pytest.approx(slope, rel=1e-6)


def squared_phi_unscaled(table: NDArray[np.float64]) -> float:
    """Σ π²/(αβ) − 1, as a function of any table, also one that does not sum to 1."""
    return float((table**2 / np.outer(table.sum(axis=1), table.sum(axis=0))).sum() - 1)


@pytest.mark.parametrize(("kept", "n"), slow_after(1, [(1.0, 150), (0.5, 1500)]))
def test_the_test_finds_the_v_that_it_says_it_can_see_with_80_percent(kept: float, n: int) -> None:
    # Even margins and noise that is alike in all directions, where the figure is exact as n grows.
    values = np.outer([1.0, kept], [1.0, kept])
    forward, inverse = (TableMap((2, 3), (0, 1), each, {}) for each in (values, 1 / values))
    even = np.full((2, 3), 1 / 6)
    found = association(forward.apply(even), inverse, n).detectable
    assert 0 < found < 1
    direction = np.array([[1.0, -0.5, -0.5], [-1.0, 0.5, 0.5]]) / 6
    generator = np.random.default_rng(1)
    power = []
    for v in (0.6 * found, found, 1.5 * found):
        table = even + v * direction / squared_phi(even + direction) ** 0.5
        assert squared_phi(table) ** 0.5 == pytest.approx(v)
        drawn = generator.multinomial(n, forward.apply(table).ravel(), 400).reshape(-1, 2, 3)
        p_values = [chi_square(counts.astype(float), forward, inverse).p_value for counts in drawn]
        power.append(np.mean(np.array(p_values) < 0.05))
    # 400 tables, a seed that stays: 80 % is told from 74 % and from 86 % by three errors.
    assert power[0] < 0.6
    assert abs(power[1] - 0.8) < 0.06
    assert power[2] > 0.95


@pytest.mark.parametrize("square", [-0.02, 0.0, 0.05, 0.4, 1.1])
def test_the_interval_holds_exactly_what_is_within_its_deviations(square: float) -> None:
    found = Association(square, 0.03, 0.0004, 1.0)
    low, high = found.interval(2.0)
    for v in np.linspace(0, 1, 401):
        near = abs(square - v**2) <= 2 * (0.03 * v**2 + 0.0004) ** 0.5
        if abs(v - low) > 1e-9 and abs(v - high) > 1e-9:
            assert near == (low < v < high or (v == 0 and low == 0) or (v == 1 and high == 1))
