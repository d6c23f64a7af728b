"""Landing: every level met, none exceeded, retention only where it is needed."""

import numpy as np
import pytest

from deniable.proofs.problem import SolverError, checked_problem
from deniable.solvers.patterns.landing import TOLERANCE, land, vote_of


def test_a_vote_near_its_levels_is_brought_onto_them() -> None:
    problem = checked_problem([3, 5, 4, 2], [0.5, 0.7, 0.6, 0.4])
    vote = vote_of(problem, np.array([300.2, 402.7, 350.0, 260.9]), 690.0, 200.0, 1.0)
    found = land(problem, vote).account
    over = found.attribute_epsilon - problem.attribute_epsilon
    assert np.all(over <= 0)
    assert np.all(over >= -TOLERANCE - 1e-12)


def test_a_law_already_on_its_levels_needs_no_retention() -> None:
    problem = checked_problem([5] * 8, [0.5] * 8)
    vote = vote_of(problem, np.ones(8), 2.0, 1.0, 1.0)
    landed = land(problem, vote)
    assert np.all(landed.retention == 1.0)


def test_a_vote_that_cannot_reach_a_level_is_an_error() -> None:
    problem = checked_problem([3, 3], [0.5, 2.0])
    with pytest.raises(SolverError, match="cannot reach"):
        land(problem, vote_of(problem, np.array([10.0, 0.0]), 5.0, 1.0, 1.0))


def test_a_height_beyond_every_law_is_an_error() -> None:
    problem = checked_problem([3, 3], [0.5, 2.0])
    with pytest.raises(SolverError, match="split the attributes"):
        vote_of(problem, np.ones(2), 1.0, 1.0, 1400.0)


@pytest.mark.parametrize("level", [18.43, 19.47])
def test_a_level_that_an_own_response_cannot_reach_exactly_enough_is_an_error(
    level: float,
) -> None:
    # 1 − retention is about 1e-9 here, and a double near 1 tells that to seven digits.
    problem = checked_problem([2, 2], [20.0, level])
    with pytest.raises(SolverError, match="up to 20 nats they can be met to about"):
        land(problem, vote_of(problem, np.ones(2), 1.0, 1.0, 22.0))


def test_a_law_within_the_tolerance_already_is_left_as_it_is() -> None:
    problem = checked_problem([5] * 4, [20.0] * 4)
    law = land(problem, vote_of(problem, np.ones(4), 3.0, 1.0, 20.0))
    assert land(problem, law) is law


def test_own_responses_bring_levels_of_many_nats_down_to_within_the_tolerance() -> None:
    # A retention near 1, taken from a quotient of gains, was off by more than a level may be.
    random = np.random.default_rng(0)
    for _ in range(40):
        levels = random.uniform(13.0, 16.0, 4)
        problem = checked_problem([2] * 4, levels.tolist())
        vote = vote_of(problem, np.array([3.0, 3.0, 2.0, 2.0]), 8.0, 1.0, 64.0)
        above, below = land(problem, vote).attribute_bounds()
        assert np.all(above <= levels)
        assert np.all(levels - below < 1e-9)


def test_a_level_too_high_by_a_rounding_needs_no_retention_above_one() -> None:
    # Of 10,000 categories a level and its change probability round differently by 1e-12.
    vote = vote_of(
        checked_problem([10_000, 4, 23], [1.0] * 3), np.array([90.0, 150, 160]), 200, 100, 1
    )
    vote = vote.at_height(4.0)
    met = vote.moments().levels(vote.counts)
    for shift in np.arange(80, 105, 0.5) * 2e-14:
        level = met + np.array([shift, -1e-8, 0.4 * TOLERANCE])
        landed = land(checked_problem([10_000, 4, 23], level.tolist()), vote)
        assert np.all(landed.attribute_bounds()[0] <= level)


@pytest.mark.weekly
def test_twenty_thousand_attributes_are_brought_onto_their_levels_by_one_law() -> None:
    # A level's error bound counted twice what kept and changed records have in common.
    levels = np.full(20_000, 0.05)
    problem = checked_problem([2, 3] * 10_000, levels.tolist())
    above, below = land(
        problem, vote_of(problem, np.ones(20_000), 8800.0, 1.0, 9.0)
    ).attribute_bounds()
    assert np.all(above <= levels)
    assert np.all(levels - below < 1e-9)
