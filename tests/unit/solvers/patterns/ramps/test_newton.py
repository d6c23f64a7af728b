"""A ramp that Newton's method finds delivers the levels and keeps the caps, by enumeration."""

import numpy as np
import pytest

from deniable.proofs.problem import Problem, checked_problem
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramps.evaluate import PatternSums
from deniable.solvers.patterns.ramps.newton import Fit, RampFit
from unit.solvers.patterns.ramps.enumerated import Enumerated
from unit.solvers.patterns.requests import request


def asked(seed: int, k: int = 6) -> tuple[Problem, RampFit]:
    problem = checked_problem(*request(seed, k))
    sums = PatternSums(orbits(problem))
    return problem, RampFit(sums, problem, 2.0 * problem.attribute_epsilon, 1e-12)


def found(fit: RampFit, problem: Problem, top: float | None, share: float = 1.0) -> Fit:
    level = problem.attribute_epsilon
    ramp = fit.at(1.3 * level, 0.7 * float(level.sum()), top, share)
    assert ramp is not None
    return ramp


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("top", [1.0, 1.4, None])
def test_levels_are_met_and_the_steepest_slope_reaches_its_cap(
    seed: int, top: float | None
) -> None:
    problem, fit = asked(seed)
    ramp = found(fit, problem, top)
    every = Enumerated(problem.n_categories)
    density = every.density(ramp.ramp)
    np.testing.assert_allclose(every.levels(density), problem.attribute_epsilon, rtol=1e-11)
    caps = 2.0 * problem.attribute_epsilon
    assert (every.given_rest(density) <= caps * (1 + 1e-12)).all()
    assert (ramp.ramp.slopes / caps).max() == pytest.approx(1.0, abs=1e-9)
    average = float(ramp.ramp.slopes @ problem.change_probability)
    assert ramp.ramp.start == pytest.approx(average - ramp.top, abs=1e-12)
    assert ramp.from_zero == (top is None)
    if top is None:  # docs/proofs/clipped.md, Proposition 6
        assert every.ratios(density).min() >= 1.0 - 1e-12


def test_the_derivative_by_the_top_is_that_of_the_solutions() -> None:
    problem, fit = asked(1)
    low, middle, high = (found(fit, problem, top) for top in (1.199, 1.2, 1.201))
    by = (high.ramp.height - low.ramp.height) / 0.002
    assert middle.by_top == pytest.approx(by, abs=1e-4)
    slopes = np.log(high.ramp.slopes / low.ramp.slopes) / 0.002
    np.testing.assert_allclose(middle.slopes_by_top, slopes, atol=1e-3)


def test_a_share_of_the_caps_is_what_the_slopes_reach() -> None:
    problem, fit = asked(2)
    ramp = found(fit, problem, 1.2, 0.8)
    assert (ramp.ramp.slopes / problem.attribute_epsilon).max() == pytest.approx(1.6, abs=2e-3)


def test_where_nothing_is_capped_slopes_are_those_of_a_vote() -> None:
    problem, _ = asked(3)
    fit = RampFit(PatternSums(orbits(problem)), problem, np.full(6, np.inf), 1e-12)
    ramp = fit.at(3.0 * problem.attribute_epsilon, 3.0, 0.5)
    assert ramp is not None
    assert ramp.ramp.slopes.max() >= ramp.ramp.height


@pytest.mark.parametrize(("slope", "height"), [(0.0, 3.0), (1.0, -1.0), (1e-300, 1e-300)])
def test_from_where_there_is_no_ramp_none_is_found(slope: float, height: float) -> None:
    # Slopes that had vanished on the way ended in "math domain error".
    _, fit = asked(1)
    assert fit.at(np.full(6, slope), height, 1.0) is None


def test_steps_that_settle_nowhere_are_none() -> None:
    problem, _ = asked(1)
    fit = RampFit(PatternSums(orbits(problem)), problem, 0.5 * problem.attribute_epsilon, 1e-12)
    assert fit.at(problem.attribute_epsilon, 3.0, 1.0) is None
