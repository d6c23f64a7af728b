"""A mixture meets levels, caps and floors by enumeration, and is near the linear program."""

import math
from collections.abc import Callable

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


def pool_of(
    problem: Problem, floor: float | None, exactly: Callable[[Ramp], Delivered] | None = None
) -> Pool:
    """Return the first ramps of a mixture under caps of twice the levels."""
    caps, sums = 2.0 * problem.attribute_epsilon, FourierSums(problem.n_categories)
    exactly = exactly or PatternSums(orbits(problem)).delivered
    pool = Pool(sums, problem, caps, floor, 3.0, exactly)
    search = RampSearch(sums, problem, caps, 3.0)
    best = search.best()
    assert best is not None
    pool.fill(fit.ramp for fit in (best, *search.raised(best)))
    return pool


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
    pool = pool_of(problem, floor)
    first = pool.mixed()
    pool.price()
    mixture = pool.mixed()
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


def test_only_what_is_used_is_evaluated_exactly_and_once() -> None:
    problem = checked_problem(*request(4, 6))
    exact, looked_at = PatternSums(orbits(problem)), []

    def exactly(ramp: Ramp) -> Delivered:
        looked_at.append(id(ramp.slopes))
        return exact.delivered(ramp)

    pool = pool_of(problem, 0.5, exactly)
    for _ in range(2):
        mixture = pool.mixed()
        assert mixture is not None
        assert {id(ramp.slopes) for ramp in mixture.ramps} <= set(looked_at)
    assert len(looked_at) < len(pool.ramps) / 2


def test_levels_that_no_mixture_meets_have_none() -> None:
    problem = checked_problem(*request(5, 6))
    level, sums = problem.attribute_epsilon, FourierSums(problem.n_categories)
    pool = Pool(sums, problem, 2.0 * level, None, 3.0, PatternSums(orbits(problem)).delivered)
    pool.add([Ramp(1e-7 * level, 0.0, math.inf)])
    assert pool.mixed() is None
    pool.price()
    assert len(pool.ramps) == 1


def test_slopes_stay_below_caps_by_what_rounding_takes() -> None:
    caps = np.array([1e-6, 0.1, 3.0])
    assert (below_caps(caps) < caps).all()
    np.testing.assert_allclose(below_caps(caps), caps, rtol=1.1e-3)
