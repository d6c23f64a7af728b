"""A mixture meets levels, caps and floors by enumeration, and is near the linear program."""

import math

import numpy as np
import pytest

from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import Problem, checked_problem
from deniable.solvers.patterns import linear
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramps.evaluate import Delivered, FourierSums, PatternSums, Ramp
from deniable.solvers.patterns.ramps.mixture import Mixture, Pool, below_caps
from deniable.solvers.patterns.ramps.search import RampSearch
from unit.solvers.patterns.ramps.enumerated import Enumerated
from unit.solvers.patterns.requests import request


def pool_of(problem: Problem) -> Pool:
    exact, sums = PatternSums(orbits(problem)), FourierSums(problem.n_categories)
    pool = Pool(sums, 3.0, exact.delivered)
    fill(pool, sums, problem)
    return pool


def fill(pool: Pool, sums: FourierSums, problem: Problem) -> None:
    """Add what is mixed at first under caps of twice the levels."""
    level, caps = problem.attribute_epsilon, 2.0 * problem.attribute_epsilon
    search = RampSearch(sums, problem, caps, 3.0)
    best = search.best()
    assert best is not None
    pool.add_always(level, caps, problem.change_probability)
    for fit in (best, *search.raised(best)):
        pool.add_about(fit.ramp, caps)


def density_of(mixture: Mixture, problem: Problem) -> FloatArray:
    every = Enumerated(problem.n_categories)
    each = zip(mixture.ramps, mixture.shares, strict=True)
    return np.sum([share * every.density(ramp) for ramp, share in each], axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "floor"),
    [(1, 0.5), (0, None), (0, 0.9), (1, 1.0)],
)
def test_a_mixture_keeps_all_that_is_asked_and_costs_little_more_than_the_optimum(
    seed: int, floor: float | None
) -> None:
    problem = checked_problem(*request(seed, 6))
    level, caps = problem.attribute_epsilon, 2.0 * problem.attribute_epsilon
    pool = pool_of(problem)
    first = pool.mixed(problem, floor)
    pool.price(problem, floor, caps)
    mixture = pool.mixed(problem, floor)
    assert first is not None
    assert mixture is not None
    assert mixture.epsilon <= first.epsilon + 1e-9
    every, density = Enumerated(problem.n_categories), density_of(mixture, problem)
    assert density[0] == pytest.approx(1.0)
    assert math.log(density.max() / density.min()) == pytest.approx(mixture.epsilon, abs=1e-9)
    np.testing.assert_allclose(every.levels(density), level, atol=1e-10)
    assert (every.given_rest(density) <= caps).all()
    assert floor is None or every.ratios(density).min() >= floor - 1e-9
    exact = linear.solve(
        problem.counts.tolist(), level.tolist(), given_rest_cap=caps.tolist(), pair_floor=floor
    )
    assert exact.epsilon - 1e-9 <= mixture.epsilon <= 1.03 * exact.epsilon


def test_what_is_mixed_meets_larger_levels_too() -> None:
    problem = checked_problem(*request(3, 6))
    larger = checked_problem(problem.counts.tolist(), (1.05 * problem.attribute_epsilon).tolist())
    pool = pool_of(problem)
    mixture = pool.mixed(larger, 0.5)
    assert mixture is not None
    density = density_of(mixture, problem)
    levels = Enumerated(problem.n_categories).levels(density)
    np.testing.assert_allclose(levels, larger.attribute_epsilon, atol=1e-10)


def test_only_what_is_used_is_evaluated_exactly_and_once() -> None:
    problem = checked_problem(*request(4, 6))
    exact, sums, looked_at = PatternSums(orbits(problem)), FourierSums(problem.n_categories), []

    def exactly(ramp: Ramp) -> Delivered:
        looked_at.append(id(ramp.slopes))
        return exact.delivered(ramp)

    pool = Pool(sums, 3.0, exactly)
    fill(pool, sums, problem)
    for _ in range(2):
        mixture = pool.mixed(problem, 0.5)
        assert mixture is not None
        assert {id(ramp.slopes) for ramp in mixture.ramps} <= set(looked_at)
    assert len(looked_at) < len(pool.ramps) / 2


def test_levels_that_no_mixture_meets_have_none() -> None:
    problem = checked_problem(*request(5, 6))
    pool = Pool(FourierSums(problem.n_categories), 3.0, PatternSums(orbits(problem)).delivered)
    pool.add([Ramp(1e-7 * problem.attribute_epsilon, 0.0, math.inf)])
    assert pool.mixed(problem, None) is None
    pool.price(problem, None, 2.0 * problem.attribute_epsilon)
    assert len(pool.ramps) == 1


def test_slopes_stay_below_caps_by_what_rounding_takes() -> None:
    caps = np.array([1e-6, 0.1, 3.0])
    assert (below_caps(caps) < caps).all()
    np.testing.assert_allclose(below_caps(caps), caps, rtol=1.1e-3)
