"""Closed-form response matrices: their conversions, and what is claimed of them."""

import math

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.proofs.rows import average_limits
from deniable.solvers.matrices import response, schemes
from unit.solvers.matrices.priors import NORMAL_TEN, SKEWED, subset_selection_record_mse, within


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.99, 1.0])
def test_warner_up_and_frapp_convert_into_each_other(n: int, p: float) -> None:
    """Theorem 2 of Huang and Du; UP starts at p = 1/n."""
    matrix = schemes.warner(n, p)
    assert np.allclose(schemes.frapp(n, schemes.gamma_from_warner(n, p)), matrix, atol=1e-15)
    q = schemes.retention_from_warner(n, p)
    assert schemes.warner_from_retention(n, q) == pytest.approx(p)
    if p >= 1 / n:
        assert np.allclose(schemes.uniform_perturbation(n, q), matrix, atol=1e-15)
    else:
        with pytest.raises(InputError, match="retention"):
            schemes.uniform_perturbation(n, q)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0, 30.0])
def test_frapp_has_its_level_to_the_last_digits(epsilon: float) -> None:
    matrix = schemes.frapp(10, math.exp(epsilon))
    assert float(response.epsilon(matrix)) == pytest.approx(epsilon, rel=1e-13)
    below = response.epsilon(schemes.frapp(5, schemes.gamma_at(epsilon)))
    assert epsilon * (1 - 1e-9) < below <= epsilon


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("level", [0.01, 1.0, 40.0])
def test_subset_selection_keeps_its_level_and_has_the_closed_form_error(
    size: int, level: float
) -> None:
    matrix = schemes.subset_selection(5, level, size)
    assert len(matrix) == math.comb(5, size)
    assert float(response.epsilon(matrix)) == pytest.approx(level, rel=1e-12)
    expected = subset_selection_record_mse(5, level, size)
    found = float(response.record_mse(matrix, np.full(5, 0.2)))
    assert found == pytest.approx(expected, rel=1e-8)


def test_the_blank_answer_has_the_privacy_and_the_error_of_its_formulas() -> None:
    for privacy in (0.0, 0.2, 0.55):
        t = schemes.blank_answer_at(SKEWED, privacy)
        matrix = schemes.blank_answer(4, t)
        assert float(response.privacy(matrix, SKEWED)) == pytest.approx(privacy, abs=1e-12)
        expected = (1 - SKEWED @ SKEWED) / (4 * t)
        assert float(response.record_mse(matrix, SKEWED)) == pytest.approx(expected)
    with pytest.raises(InputError, match="max p"):
        schemes.blank_answer_at(SKEWED, 0.61)


@pytest.mark.parametrize("delta", [None, 0.5])
@pytest.mark.parametrize("privacy", [0.2, 0.55, 0.7])
def test_warner_at_a_privacy_is_the_most_accurate_warner_matrix_that_keeps_it(
    privacy: float, delta: float | None
) -> None:
    p = schemes.warner_at(NORMAL_TEN, privacy, delta)
    grid = np.linspace(0.1, 1.0, 3001)
    matrices = np.stack([schemes.warner(10, value) for value in grid])
    good = response.privacy(matrices, NORMAL_TEN) >= privacy
    if delta is not None:
        good &= response.worst_posterior(matrices, NORMAL_TEN) <= delta
    last = grid[good][-1]
    assert last <= p + 1e-12
    assert p < last + 1e-3
    chosen = schemes.warner(10, p)
    assert float(response.privacy(chosen, NORMAL_TEN)) >= privacy - 1e-14
    if delta is not None:
        assert float(response.worst_posterior(chosen, NORMAL_TEN)) <= delta + 1e-14


def test_warner_without_any_privacy_is_the_truth() -> None:
    assert schemes.warner_at(SKEWED, 0.0) == 1.0


@pytest.mark.parametrize(("privacy", "delta"), [(0.7, None), (0.2, 0.3)])
def test_warner_refuses_what_not_even_a_random_answer_gives(
    privacy: float, delta: float | None
) -> None:
    with pytest.raises(InputError, match="random answer"):
        schemes.warner_at(SKEWED, privacy, delta)


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="at least 2"):
        schemes.warner(1, 0.5)
    with pytest.raises(InputError, match="truth_probability"):
        schemes.warner(3, 1.1)
    with pytest.raises(InputError, match="retention"):
        schemes.uniform_perturbation(3, -0.1)
    with pytest.raises(InputError, match="gamma"):
        schemes.frapp(3, math.nan)
    with pytest.raises(InputError, match="epsilon"):
        schemes.subset_selection(3, 0.0, 1)
    with pytest.raises(InputError, match="subset_size"):
        schemes.subset_selection(3, 1.0, 3)
    with pytest.raises(InputError, match="too many"):
        schemes.subset_selection(40, 1.0, 20)
    with pytest.raises(InputError, match="truth_probability"):
        schemes.blank_answer(3, 2.0)


@pytest.mark.parametrize("delta", [None, 0.55])
def test_the_best_subset_selection_is_the_best_of_a_scan(delta: float | None) -> None:
    limits = average_limits(SKEWED, 0.45, delta)
    best = np.inf
    for size in (1, 2, 3):
        member = schemes.subset_selection(4, 1.0, size)
        truth = (member > member.mean()) / (member > member.mean()).sum(axis=0)
        for t in np.linspace(0.01, 1.0, 500):
            matrix = t * truth + (1 - t) / len(truth)
            if within(matrix, limits):
                best = min(best, float(response.record_mse(matrix, SKEWED)))
    matrix = schemes.best_subset_selection(limits)
    assert within(matrix, limits)
    assert best * 0.97 < float(response.record_mse(matrix, SKEWED)) <= best
