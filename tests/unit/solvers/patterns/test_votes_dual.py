"""Soft votes against the sum over all patterns, and the two bounds of a fit."""

import math

import numpy as np
import pytest

from deniable.solvers.patterns.certificate import weighted_bound
from deniable.solvers.patterns.columns import solve_columns
from deniable.solvers.patterns.votes_dual import VoteSearch, _newton_direction, fit_vote
from deniable.solvers.problem import Problem, checked_problem
from unit.laws.votes import whole_law as oracle


def request(seed: int, k: int, low: float = 0.3, high: float = 2.0) -> Problem:
    random = np.random.default_rng(seed)
    return checked_problem(random.integers(2, 8, k).tolist(), random.uniform(low, high, k).tolist())


@pytest.mark.parametrize("seed", range(8))
def test_a_soft_vote_is_what_the_sum_over_all_patterns_gives(seed: int) -> None:
    k = 2 + seed % 6
    problem = request(seed, k)
    weights = np.random.default_rng(seed).integers(1, 60, k).astype(np.float64)  # no dither
    softness = (1.0, 7.5, 40.0)[seed % 3]
    point = VoteSearch(problem, 30.0).at(weights, softness)
    kept = 1 - oracle.patterns(k)
    mu = oracle.uniform_law(problem.counts.tolist())
    centred = kept - problem.keep_probability
    z = centred @ weights
    slope = np.clip(z / softness + 0.5, 0.0, 1.0)
    value = mu @ (slope[:, None] * centred)
    np.testing.assert_allclose(point.value * math.exp(point.log_factor), value, rtol=1e-9)
    bend = np.where(np.abs(z) < softness / 2, 1 / softness, 0.0)
    curvature = (centred * (mu * bend)[:, None]).T @ centred
    scale = math.exp(point.log_factor)
    np.testing.assert_allclose(point.full() * scale, curvature, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(
        np.maximum(point.curvature * scale, 1e-200), np.diag(curvature).clip(1e-200), rtol=1e-8
    )
    # What λ proves, and the height at which every level is at least met.
    proved = weighted_bound(problem.counts.tolist(), problem.attribute_epsilon.tolist(), weights)
    assert point.lower_bound == pytest.approx(proved, rel=1e-9)
    if math.isfinite(point.upper_bound):
        density = 1 + np.expm1(point.upper_bound) * slope
        reached = (mu * density / (mu @ density)) @ kept
        assert (reached >= problem.keep_probability * (1 - 1e-9)).all()
        assert (reached / problem.keep_probability).min() == pytest.approx(1.0, abs=1e-9)


def test_the_miss_is_the_slope_of_the_objective() -> None:
    problem = request(3, 5)
    search = VoteSearch(problem, 2000.0)
    weights = search.scaled(problem.attribute_epsilon)
    softness = 900.0
    point = search.at(weights, softness)
    scale = float(weights @ point.value)
    random = np.random.default_rng(1)
    for _ in range(4):
        move = 1e-3 * weights * random.normal(size=5)
        # The softness follows λ·d, as in the search.
        reward = float(weights @ problem.keep_excess)
        values = []
        for sign in (1, -1):
            new = weights + sign * move
            values.append(
                search.at(new, softness * float(new @ problem.keep_excess) / reward).objective
            )
        # d ln E[Φ_T(z)] − d ln λ·d, up to a factor above 0: v·move − c d·move = −miss·move.
        assert np.sign(values[0] - values[1]) == np.sign(-float(point.miss @ move)), scale


@pytest.mark.parametrize("seed", range(6))
def test_the_bounds_of_a_fit_hold_the_exact_optimum_between_them(seed: int) -> None:
    problem = request(seed, 8 + seed, *((0.3, 2.0), (0.05, 5.0))[seed % 2])
    fit = fit_vote(problem)
    exact = solve_columns(problem)
    assert fit.lower_bound <= exact.upper_bound + 1e-9
    assert fit.upper_bound >= exact.lower_bound - 1e-9
    assert fit.gap == fit.upper_bound - fit.lower_bound
    again = weighted_bound(
        problem.counts.tolist(), problem.attribute_epsilon.tolist(), fit.lower_bound_weights
    )
    assert fit.lower_bound == pytest.approx(again, rel=1e-4)
    assert fit.n_evaluations > 1


def test_many_attributes_are_settled_from_the_levels_in_few_evaluations() -> None:
    problem = request(1, 60, 0.2, 0.6)
    fit = fit_vote(problem)
    assert 0 <= fit.gap < 1e-4
    assert fit.n_evaluations <= 24
    # Started where it ended there is next to nothing to do.
    assert fit_vote(problem, start=fit.weights).n_evaluations < fit.n_evaluations


def test_a_newton_step_stays_where_the_reward_is_the_same() -> None:
    problem = request(5, 6)
    search = VoteSearch(problem, 500.0)
    point = search.at(search.scaled(problem.attribute_epsilon), 300.0)
    step = _newton_direction(point, problem.keep_excess)
    assert abs(step @ problem.keep_excess) < 1e-9 * (np.abs(step) @ problem.keep_excess)
    assert step @ point.miss > 0  # downhill


def test_weights_that_lose_all_mass_are_void() -> None:
    problem = checked_problem([2, 2], [1.0, 1.0])
    point = VoteSearch(problem, 10.0)._void(np.ones(2), 1.0, 1.0)
    assert (point.lower_bound, point.upper_bound) == (-math.inf, math.inf)
