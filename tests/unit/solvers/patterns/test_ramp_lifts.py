"""Ramps lifted for a pair: sums against the enumerated law, and the laws they are drawn as."""

import math

import numpy as np
import pytest

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.lifted import LiftedRamp
from deniable.solvers.patterns import ramp_response
from deniable.solvers.patterns.ramp_laws import RampLaws, keep_floor
from deniable.solvers.patterns.ramp_lifts import Lift, LiftedRamps, least_pair
from deniable.solvers.patterns.ramp_response import FINE, Ramp
from deniable.solvers.patterns.ramps import AtLevels
from deniable.solvers.problem import Problem, checked_problem
from unit.laws.votes import whole_law as oracle

LIFT = Lift((2, 5), 0.8)


def request(k: int) -> tuple[Problem, Ramp]:
    random = np.random.default_rng(0)
    counts = random.integers(2, 20, k).tolist()
    problem = checked_problem(counts, random.uniform(0.2, 0.7, k).tolist())
    return problem, Ramp(random.uniform(0.3, 1.4, k), 1.1, 2.0)


def pattern_law(problem: Problem, ramp: Ramp, lift: Lift) -> FloatArray:
    changed = oracle.patterns(problem.n_attributes)
    z = (problem.change_probability - changed) @ ramp.slopes
    density = np.exp(np.clip(z - ramp.top + ramp.height, 0.0, ramp.height))
    kept = changed[:, list(lift.pair)].sum(axis=1) == 0
    density = np.where(kept, np.maximum(density, math.exp(lift.height)), density)
    mass = oracle.uniform_law(problem.counts.tolist()) * density
    return np.asarray(mass / mass.sum())


def levels_of(problem: Problem, q: FloatArray) -> FloatArray:
    changed = q @ oracle.patterns(problem.n_attributes)
    return np.asarray(np.log((1 - changed) * (problem.n_categories - 1) / changed))


def least_ratio(problem: Problem, q: FloatArray) -> float:
    counts, k = problem.counts.tolist(), problem.n_attributes
    single = [oracle.attenuation(counts, q, (i,)) for i in range(k)]
    return min(
        oracle.attenuation(counts, q, (i, j)) / (single[i] * single[j])
        for i in range(k)
        for j in range(i)
    )


def test_levels_derivatives_and_pairs_are_those_of_the_enumerated_law() -> None:
    problem, ramp = request(8)
    sums, change = LiftedRamps(problem.n_categories, LIFT, FINE), problem.change_probability
    got = sums.response(ramp, change)
    np.testing.assert_allclose(
        got.level, levels_of(problem, pattern_law(problem, ramp, LIFT)), atol=3e-6
    )
    step = 1e-5

    def moved(way: FloatArray) -> FloatArray:
        ends = [
            Ramp(ramp.slopes * np.exp(t * way[:8]), ramp.top + t * way[8], ramp.height + t * way[9])
            for t in (-step, step)
        ]
        low, high = (levels_of(problem, pattern_law(problem, end, LIFT)) for end in ends)
        return (high - low) / (2.0 * step)

    ways = np.array([moved(way) for way in np.eye(10)]).T
    np.testing.assert_allclose(got.by_slope, ways[:, :8], atol=1e-2)
    np.testing.assert_allclose(got.by_top, ways[:, 8], atol=1e-2)
    np.testing.assert_allclose(got.by_height, ways[:, 9], atol=1e-6)
    ratios = sums.pair_ratios(ramp, change)
    q, counts = pattern_law(problem, ramp, LIFT), problem.counts.tolist()
    for i, j in ((2, 5), (0, 2), (5, 7), (1, 4)):
        one, other = (oracle.attenuation(counts, q, (place,)) for place in (i, j))
        pair = oracle.attenuation(counts, q, (i, j))
        assert ratios[i, j] == pytest.approx(pair / (one * other), rel=1e-4)
    assert ratios.min() == pytest.approx(least_ratio(problem, q), rel=1e-4)


def test_of_many_attributes_frequencies_give_the_same_as_a_grid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, ramp = request(40)
    ramp, change = Ramp(0.4 * ramp.slopes, 1.1, 2.0), problem.change_probability

    def numbers() -> FloatArray:
        sums = LiftedRamps(problem.n_categories, LIFT, FINE)
        got = sums.response(ramp, change)
        return np.vstack([got.level, got.by_top, got.by_height, got.by_slope])

    by_frequencies = numbers()
    monkeypatch.setattr(ramp_response, "MOST_ON_A_GRID", 40)
    np.testing.assert_allclose(by_frequencies, numbers(), atol=1e-4)


def test_the_search_ends_at_a_lifted_ramp_that_meets_levels_caps_and_floor() -> None:
    random = np.random.default_rng(0)
    counts, floor = [40, 45, *random.integers(2, 30, 8).tolist()], 0.7
    levels = np.array([0.75, 0.75, *random.uniform(0.3, 0.7, 8)])
    problem, caps = checked_problem(counts, levels.tolist()), 2.0 * levels
    height = {}
    for lift in (None, Lift((0, 1), 1.45)):

        def target(places: list[int]) -> AtLevels:
            return AtLevels(Problem(problem.n_categories[places], levels[places]), caps[places])

        ramps = RampLaws(problem, caps, target, 2.0, floor, lift)
        found = ramps.best(None)
        assert found is not None
        law, fit = found
        height[lift] = fit.w
        assert keep_floor([law], floor)
        if lift is not None:
            assert isinstance(law, LiftedRamp)
            q = pattern_law(problem, fit.ramp, lift)
            np.testing.assert_allclose(levels_of(problem, q), levels, atol=1e-3)
            assert floor <= least_ratio(problem, q) < floor + 0.01
            part = ramps.part(law, fit)
            assert (part.account.attribute_epsilon <= levels + 1e-9).all()
            assert (part.account.attribute_epsilon >= levels - 1e-9).all()
            assert (part.account.epsilon_given_rest <= caps).all()
        else:
            assert least_pair(law) == (0, 1)
    assert height[Lift((0, 1), 1.45)] < 0.97 * height[None]
