"""Several votes where one is not near enough: bounds in order, levels met, and far closer."""

import math
from dataclasses import replace

import numpy as np
import pytest

from deniable.laws.votes.blend import VoteBlend
from deniable.proofs.problem import Problem, SolverError, checked_problem
from deniable.solvers.patterns import blends, columns
from deniable.solvers.patterns.blends import _settled, fit_blend
from deniable.solvers.patterns.landing import vote_of
from deniable.solvers.patterns.votes_dual import fit_vote
from unit.solvers.patterns.requests import by_columns


def spread(seed: int, k: int) -> Problem:
    """Levels from 0.001 to 12 nats, evenly on a logarithmic scale."""
    random = np.random.default_rng(seed)
    levels = np.exp(random.uniform(math.log(1e-3), math.log(12), k))
    return checked_problem(random.integers(2, 20, k).tolist(), levels.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_a_blend_meets_the_levels_and_its_bounds_hold_the_exact_optimum(seed: int) -> None:
    problem = spread(seed, 9)
    exact = by_columns(problem)
    vote = fit_vote(problem)
    blend = fit_blend(problem, vote)
    assert blend.lower_bound <= exact.upper_bound + 1e-9
    assert blend.upper_bound >= exact.lower_bound - 1e-9
    assert blend.upper_bound - blend.lower_bound < max(2e-3, 0.2 * vote.gap)
    levels = blend.law.moments().levels(problem.counts)
    assert np.all(levels >= problem.attribute_epsilon * (1 - 1e-6))
    assert blend.law.ideal_epsilon == pytest.approx(blend.upper_bound, rel=1e-9)


def test_of_22_attributes_a_blend_is_the_optimum_to_six_digits() -> None:
    problem = spread(1, 22)
    vote = fit_vote(problem)
    blend = fit_blend(problem, vote)
    assert blend.upper_bound - blend.lower_bound < 2e-5
    assert blend.upper_bound < vote.upper_bound
    assert blend.lower_bound >= vote.lower_bound


def test_where_no_votes_meet_the_levels_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = spread(1, 9)
    vote = fit_vote(problem)
    monkeypatch.setattr(blends._Votes, "generate", lambda *_: False)
    with pytest.raises(SolverError, match="no blend of votes was found"):
        fit_blend(problem, vote)


def test_a_blend_is_good_enough_where_votes_stop_helping(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = spread(1, 9)
    vote = fit_vote(problem)
    monkeypatch.setattr(columns, "PATIENCE", 0)
    blend = fit_blend(problem, vote, gap=0.0)
    levels = blend.law.moments().levels(problem.counts)
    assert np.all(levels >= problem.attribute_epsilon * (1 - 1e-6))
    assert vote.lower_bound <= blend.lower_bound <= blend.upper_bound


@pytest.mark.slow
def test_an_attribute_that_wins_alone_leaves_the_grid_to_the_others() -> None:
    """Of 10,000 categories, at nearly the whole record's level: its cost is nearly all of θ."""
    random = np.random.default_rng(3)
    levels = [0.5, *random.uniform(0.01, 0.1, 23)]
    problem = checked_problem([10_000, *random.integers(2, 9, 23).tolist()], levels)
    blend = fit_blend(problem, fit_vote(problem), gap=1e-5)
    assert blend.upper_bound - blend.lower_bound < 1e-5


def test_a_blend_settles_on_the_levels_that_it_nearly_meets_and_stays_where_it_is_far_off() -> None:
    problem = checked_problem([3] * 4, [16.0, 17.0, 0.7, 0.5])
    votes = [([4, 5, 1, 0], 8.0), ([3, 3, 0, 1], 5.0), ([4, 4, 1, 1], 8.0)]
    parts = (vote_of(problem, np.array(n, dtype=float), at, 1.0, 21.0) for n, at in votes)
    law = VoteBlend(tuple(parts), np.array([0.5, 0.3, 0.2]), np.ones(4))
    got = law.moments().levels(law.counts)
    other = replace(law.at_height(21.0 + 1e-7), alpha=law.alpha * [1.0, 1.0 + 1e-7, 1.0])
    near = checked_problem([3] * 4, other.moments().levels(law.counts).tolist())
    assert np.abs(got - near.attribute_epsilon).max() > 1e-9
    settled = _settled(near, law).moments().levels(law.counts)
    np.testing.assert_allclose(settled, near.attribute_epsilon, rtol=0, atol=1e-11)
    far = checked_problem([3] * 4, (got + 20.0).tolist())
    assert _settled(far, law) is law
