"""Areas under fronts, and that nothing covers more than the bound allows."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.solvers.matrices import response, schemes
from deniable.solvers.matrices.frontier_rows import average_limits, closed_form_bound
from deniable.solvers.matrices.hypervolume import hypervolume, outer_hypervolume


def test_the_area_is_that_of_the_union_of_rectangles() -> None:
    privacy = np.array([0.2, 0.5, 0.4, 0.3])
    error = np.array([1.0, 3.0, 5.0, 2.0])
    grid = (np.arange(200_000) + 0.5) / 200_000
    top = [error[privacy >= level].min(initial=np.inf) for level in grid[::200]]
    expected = np.mean(np.log(10.0 / np.minimum(top, 10.0)))
    assert hypervolume(privacy, error, 10.0) == pytest.approx(expected, abs=2e-3)


def test_dominated_points_and_points_beyond_the_reference_add_nothing() -> None:
    base = hypervolume(np.array([0.3]), np.array([1.0]), 10.0)
    assert base == pytest.approx(0.3 * np.log(10))
    more = hypervolume(np.array([0.3, 0.2, 0.6]), np.array([1.0, 2.0, 11.0]), 10.0)
    assert more == base
    assert hypervolume(np.array([0.3]), np.array([np.inf]), 10.0) == 0.0


def test_no_front_covers_more_than_the_bound_allows_and_a_tight_one_nearly_as_much() -> None:
    prior = np.full(5, 0.2)
    levels = np.linspace(0.0, 0.79, 400)
    bounds = np.array([closed_form_bound(average_limits(prior, v)) / 5 for v in levels])
    outer = outer_hypervolume(levels, bounds, 0.8, 50.0)
    blank = [schemes.blank_answer(5, schemes.blank_answer_at(prior, v)) for v in levels]
    errors = np.array([float(response.record_mse(matrix, prior)) for matrix in blank])
    inner = hypervolume(levels, errors, 50.0)
    assert 0.98 * outer < inner <= outer


def test_references_and_levels_that_make_no_sense_are_refused() -> None:
    one = np.array([0.1])
    with pytest.raises(InputError, match="reference"):
        hypervolume(one, one, 0.0)
    with pytest.raises(InputError, match="begin with 0"):
        outer_hypervolume(one, one, 0.5, 1.0)
    with pytest.raises(InputError, match="rise strictly"):
        outer_hypervolume(np.zeros(2), np.ones(2), 0.5, 1.0)
