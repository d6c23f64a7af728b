"""Soft votes against the sum over all patterns, and the two bounds of a fit."""

import math

import numpy as np
import pytest

from deniable.laws.votes.gated import GatedSum
from deniable.proofs.certificate import weighted_bound
from deniable.proofs.problem import Problem, checked_problem
from deniable.solvers.patterns import votes_dual
from deniable.solvers.patterns.fourier import logistic_vote, usual_tilt
from deniable.solvers.patterns.landing import land
from deniable.solvers.patterns.votes_dual import (
    GOOD_ENOUGH,
    VotePoint,
    VoteSearch,
    default_resolution,
    fit_vote,
    follow_vote,
    linear_gates,
)
from marked import slow_after
from unit.laws.votes import whole_law as oracle
from unit.solvers.patterns.requests import by_columns


def request(seed: int, k: int, low: float = 0.3, high: float = 2.0) -> Problem:
    random = np.random.default_rng(seed)
    return checked_problem(random.integers(2, 8, k).tolist(), random.uniform(low, high, k).tolist())


@pytest.mark.parametrize("wins", [0, 5000])  # whenever the first attribute is kept
@pytest.mark.parametrize("seed", range(8))
def test_a_soft_vote_is_what_the_sum_over_all_patterns_gives(seed: int, wins: int) -> None:
    k = 2 + seed % 6
    problem = request(seed, k)
    weights = np.random.default_rng(seed).integers(1, 60, k).astype(np.float64)  # no dither
    weights[0] += wins
    scale = float(weights @ problem.keep_excess)
    softness = (0.0, 0.5)[seed % 2]
    point = VoteSearch(problem, 30.0).at(weights / scale, softness / scale, 1.0 / scale)
    assert point.more > 0.0 or not wins
    kept = 1 - oracle.patterns(k)
    mu = oracle.uniform_law(problem.counts.tolist())
    centred = kept - problem.keep_probability
    z = centred @ weights
    slope, bend = np.zeros(len(z)), np.zeros(len(z))
    budget = float(weights @ problem.change_probability)
    widths, shares = linear_gates(softness)
    for width, share in zip(np.clip(widths, 1.0, budget), shares, strict=True):
        slope += share * np.clip(z / width + 0.5, 0.0, 1.0)
        bend += share * np.where(np.abs(z) < width / 2, 1 / width, 0.0)
    mean = float(mu @ np.maximum(z, 0.0))
    assert point.objective == pytest.approx(math.log(mean / scale), abs=1e-9)
    value = mu @ (slope[:, None] * centred)
    np.testing.assert_allclose(point.value, value / mean * scale, rtol=1e-8, atol=1e-12)
    curvature = (centred * (mu * bend)[:, None]).T @ centred / mean * scale**2
    np.testing.assert_allclose(point.diagonal, np.diag(curvature), rtol=1e-7, atol=1e-12)
    # What λ proves, and the height at which every level is at least met.
    proved = weighted_bound(problem.counts.tolist(), problem.attribute_epsilon.tolist(), weights)
    assert point.lower_bound == pytest.approx(proved, rel=1e-9)
    search = VoteSearch(problem, 30.0)
    height = search.log_height(point)
    if math.isfinite(height):
        density = 1 + math.exp(height) * slope
        reached = (mu * density / (mu @ density)) @ kept
        assert (reached / problem.keep_probability).min() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("seed", slow_after(2, range(6)))
def test_the_bounds_of_a_fit_hold_the_exact_optimum_between_them(seed: int) -> None:
    problem = request(seed, 8 + seed, *((0.3, 2.0), (0.05, 5.0))[seed % 2])
    fit = fit_vote(problem)
    exact = by_columns(problem)
    assert fit.lower_bound <= exact.upper_bound + 1e-9
    assert fit.upper_bound >= exact.lower_bound - 1e-9
    assert fit.gap == fit.upper_bound - fit.lower_bound
    again = weighted_bound(
        problem.counts.tolist(), problem.attribute_epsilon.tolist(), fit.lower_bound_weights
    )
    assert fit.lower_bound == pytest.approx(again, rel=1e-4)


def test_dither_never_lets_an_attribute_be_changed_that_loses_by_itself() -> None:
    # Seventeen of these 21 lose by themselves; beside them others' costs are rounded up at random.
    levels = np.append([1.35, 1.36, 1.5, 1.7], np.linspace(2.5, 9.0, 17))
    problem = checked_problem([2] * 21, levels.tolist())
    search = VoteSearch(problem, default_resolution(21))
    point = search.at(search.normed(problem.attribute_epsilon))
    assert float(point.weights @ point.value) == pytest.approx(1.0, rel=1e-6)
    assert not search.accelerate(problem.attribute_epsilon, search.at, 1e-11, 1e-9, 24)


def test_many_attributes_are_settled_from_the_levels_by_the_fixed_point() -> None:
    problem = request(1, 60, 0.2, 0.6)
    search = VoteSearch(problem, 3000.0)
    assert search.accelerate(problem.attribute_epsilon, search.at, 1e-11, 0.0, 24)
    assert 0 <= search.gap < 1e-4


def test_a_steep_gate_tells_the_weights_on_a_grid_too_fine_to_search_on() -> None:
    problem = request(1, 100, 0.1, 0.3)
    search = VoteSearch(problem, default_resolution(100))
    level = problem.attribute_epsilon
    vote = search.steep(level)
    assert vote is not None
    fit = search.finest(vote)
    found = search.at(fit.vote.weights, 0.0, fit.vote.unit)
    start = search.at(search.normed(level))
    assert np.abs(search.miss(found)).max() < 1e-3 * np.abs(search.miss(start)).max()
    assert fit.upper_bound == pytest.approx(search.upper_bound, abs=1e-3)
    assert fit.lower_bound == pytest.approx(search.lower_bound, abs=1e-3)


@pytest.mark.slow
def test_more_attributes_are_drawn_on_a_finer_grid_than_they_are_searched_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = request(1, 80, 0.2, 0.6)
    monkeypatch.setattr(votes_dual, "LARGEST_NEWTON", 50)
    fit = fit_vote(problem)
    assert not isinstance(fit.vote, VotePoint)
    law = land(problem, fit.law(problem))
    bound = weighted_bound(
        problem.counts.tolist(), law.account.attribute_epsilon_floor, fit.lower_bound_weights
    )
    assert 0 <= law.account.epsilon - bound < 1e-3
    # Where the fixed point does not settle the vote is one that was searched.
    large = request(1, 80, 1.0, 12.0)
    assert isinstance(fit_vote(large).vote, VotePoint)


@pytest.mark.slow
def test_wider_gates_are_tried_until_bounds_are_near() -> None:
    problem = request(2, 30, 0.01, 6.0)
    fit = follow_vote(problem, fit_vote(problem))
    assert 0 <= fit.gap < 2 * GOOD_ENOUGH * fit.lower_bound
    bound = weighted_bound(
        problem.counts.tolist(), problem.attribute_epsilon.tolist(), fit.lower_bound_weights
    )
    assert fit.lower_bound == pytest.approx(bound, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("levels", "categories"),
    [
        (np.append(np.random.default_rng(0).uniform(0.2, 1.5, 49), 20.0), 2),
        (np.random.default_rng(0).uniform(1.0, 10.0, 70), 5),
        (np.exp(np.random.default_rng(0).uniform(math.log(1e-3), math.log(12), 70)), 5),
    ],
)
def test_newton_steps_settle_large_and_spread_levels_in_one_vote(
    levels: np.ndarray, categories: int
) -> None:
    problem = checked_problem([categories] * len(levels), levels.tolist())
    fit = follow_vote(problem, fit_vote(problem))
    assert 0 <= fit.gap < 3 * GOOD_ENOUGH * fit.lower_bound
    assert land(problem, fit.law(problem)).account.epsilon == pytest.approx(fit.upper_bound, 1e-5)


def test_a_newton_step_stays_where_the_reward_is_the_same_and_leads_downhill() -> None:
    problem = request(5, 6)
    search = VoteSearch(problem, 500.0)
    weights = search.normed(problem.attribute_epsilon)
    softness = 0.5 / usual_tilt(problem, weights)
    vote = logistic_vote(problem, weights, softness)
    move, promise = search.step(vote, 1e-2)
    reward = weights * problem.keep_excess
    assert abs(reward @ move) < 1e-9 * (reward @ np.abs(move))
    nearer = logistic_vote(problem, search.normed(weights * np.exp(move)), softness)
    assert 0 < promise < 3 * (vote.objective - nearer.objective)


def test_a_mixture_of_linear_gates_is_near_the_logistic_one() -> None:
    widths, shares = linear_gates(0.5)
    z = np.linspace(-5.0, 5.0, 201)
    mixture = sum(
        share * np.clip(z / width + 0.5, 0.0, 1.0)
        for width, share in zip(widths.tolist(), shares.tolist(), strict=True)
    )
    assert np.abs(mixture - 1.0 / (1.0 + np.exp(-z / 0.5))).max() < 0.02
    assert shares.sum() == pytest.approx(1.0)


def test_the_narrowest_gate_is_one_unit_wide_and_a_vote_that_can_be_drawn() -> None:
    problem = request(2, 30)
    search = VoteSearch(problem, 300.0)
    point = search.at(search.normed(problem.attribute_epsilon))
    law = point.law(problem, 1.0)
    assert isinstance(law, GatedSum)
    assert law.width == 1.0


def test_a_vote_is_evaluated_where_its_ratio_of_densities_is_no_double() -> None:
    problem = checked_problem([10_000] * 100, np.linspace(11.0, 12.0, 100).tolist())
    search = VoteSearch(problem, 400.0)
    point = search.at(search.normed(problem.attribute_epsilon))
    assert 709.0 < point.lower_bound < problem.attribute_epsilon.sum()
