"""Entries that only come near zero are made zero, and every limit still holds."""

import numpy as np
import pytest

from deniable.solvers.matrices import response, square
from deniable.solvers.matrices.frontier_rows import average_limits
from deniable.solvers.matrices.vanishing import NEARLY_ZERO, roomy, without_below
from unit.solvers.matrices.priors import NORMAL_TEN, SKEWED, within

LIMITS = [
    average_limits(SKEWED, 0.3),
    average_limits(SKEWED, 0.4, 0.75),
    average_limits(NORMAL_TEN, 0.4, 0.8),
    average_limits([0.47, 0.465, 0.033, 0.023, 0.006, 0.003], 0.3, 0.9),
]


@pytest.mark.parametrize("limits", LIMITS)
def test_a_square_matrix_has_zeros_or_entries_that_matter_and_keeps_its_limits(
    limits: square.Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = square.solve(limits, np.random.default_rng(0), n_starts=4)
    positive = found.matrix[found.matrix > 0]
    assert len(positive) < found.matrix.size
    assert positive.min() > 10 * max(NEARLY_ZERO)
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


def test_columns_add_up_without_the_vanishing_entries() -> None:
    matrix = np.array([[0.5, 1e-8, 0.3], [0.5 - 1e-9, 0.4, 0.0], [1e-9, 0.6 - 1e-8, 0.7]])
    found = without_below(matrix, 1e-6)
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-15)
    assert ((found == 0) == (matrix < 1e-6)).all()


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
