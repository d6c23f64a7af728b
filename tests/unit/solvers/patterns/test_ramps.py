"""Clipped ramps against their enumerated laws: levels, slopes, and how they respond."""

import numpy as np
import pytest

from deniable.solvers.patterns import optimal
from deniable.solvers.patterns.ramps import SETTLED, RampFit, RampState, _Fitter
from deniable.solvers.problem import Problem, checked_problem
from unit.laws.votes import whole_law as oracle


def request(seed: int, k: int) -> Problem:
    random = np.random.default_rng(seed)
    return checked_problem(random.integers(2, 7, k).tolist(), random.uniform(0.4, 1.5, k).tolist())


def residual(problem: Problem, state: RampState, fitter: _Fitter) -> tuple[np.ndarray, float]:
    """E_μ[f (Y_i − p_i)] and E_μ[f] of the ramp with f = 1 at its bottom."""
    law, _ = fitter.law(state)
    mass = oracle.uniform_law(problem.counts.tolist()) * oracle.density(law)
    kept = 1 - oracle.patterns(problem.n_attributes)
    return mass @ (kept - problem.keep_probability), float(mass.sum())


@pytest.mark.parametrize("seed", range(4))
def test_miss_and_response_are_those_of_the_enumerated_law(seed: int) -> None:
    problem = request(seed, 4)
    fitter = _Fitter(problem, 200.0)
    state = RampState(1.4 * problem.attribute_epsilon, 0.4, 2.2)
    now = fitter.response(state)
    value, total = residual(problem, state, fitter)
    np.testing.assert_allclose(now.miss, -value / total, atol=1e-11)
    # The response to E with the ramp's top in place, by a central difference.
    step = 1e-5
    higher, lower = (
        residual(problem, RampState(state.slopes, state.offset, state.height + d), fitter)[0]
        for d in (step, -step)
    )
    response = (higher - lower) / (2 * step * total)
    np.testing.assert_allclose(now.by_height, response, rtol=1e-3, atol=1e-7)
    assert (now.by_slope > 0).all()


def test_identical_attributes_have_weights_of_one() -> None:
    problem = checked_problem([5] * 6, [1.0] * 6)
    law, unit = _Fitter(problem, 200.0).law(RampState(np.full(6, 1.5), 0.5, 3.0))
    assert law.weights.tolist() == [1] * 6
    assert unit == pytest.approx(1 / 1.5)


@pytest.mark.parametrize("seed", range(2))
def test_a_ramp_meets_the_levels_and_its_steepest_slope_keeps_the_fraction_of_its_cap(
    seed: int,
) -> None:
    problem = request(seed, 4)
    counts, levels = problem.counts.tolist(), problem.attribute_epsilon
    caps = 1.8 * levels
    start = optimal.solve(counts, levels.tolist()).epsilon
    fit = RampFit(problem, caps, start)
    assert fit.least_fraction == pytest.approx(1 / 1.8)
    law = fit.at(0.9)
    assert law is not None
    q = oracle.pattern_law(law)
    kept = q @ (1 - oracle.patterns(4))
    scale = problem.keep_excess * problem.change_probability
    assert np.abs((kept - problem.keep_probability) / scale).max() < SETTLED
    steepest = (law.slope_bounds() / caps).max()
    assert steepest == pytest.approx(0.9, rel=1e-4)
    assert (oracle.given_rest(counts, q) <= 0.9 * caps * (1 + 1e-3)).all()
    assert start * (1 - 1e-6) < law.height < float(levels.sum())


def test_without_caps_the_scale_is_left_alone() -> None:
    problem = request(2, 3)
    fit = RampFit(problem, np.full(3, np.inf), 2.0)
    state = RampState(problem.attribute_epsilon, 0.3, 2.0)
    assert fit._factor(state, 0.5) == 1.0
