"""The best ramp: no neighbour costs less, and floors are kept by moving the top up."""

import numpy as np
import pytest

from deniable.proofs.problem import Problem, checked_problem
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramps.evaluate import FourierSums, PatternSums
from deniable.solvers.patterns.ramps.newton import RampFit
from deniable.solvers.patterns.ramps.search import RampSearch
from marked import slow_after
from unit.solvers.patterns.requests import optimum, request


def searched(problem: Problem, times: float, height: float) -> tuple[RampSearch, RampFit]:
    sums = PatternSums(orbits(problem))
    caps = times * problem.attribute_epsilon
    fit = RampFit(sums, problem, caps, 1e-12)
    return RampSearch(sums, problem, caps, height), fit


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("times", [1.25, 2.0])
def test_no_other_top_costs_less(seed: int, times: float) -> None:
    problem = checked_problem(*request(seed, 7))
    search, fit = searched(problem, times, 3.0)
    best = search.best()
    assert best is not None
    for top in best.top * np.array([0.7, 0.9, 1.1, 1.4]):
        other = fit.at(best.ramp.slopes, best.ramp.height, top)
        assert other is None or other.ramp.height >= best.ramp.height * (1 - 1e-4)


def test_tops_are_moved_up_until_every_pair_keeps_more_than_its_singles_leave() -> None:
    problem = checked_problem(*request(2, 7))
    search, _ = searched(problem, 2.0, 3.0)
    best = search.best()
    assert best is not None
    raised = list(search.raised(best))
    assert [ramp.top for ramp in raised] == sorted(ramp.top for ramp in raised)
    assert raised[-1].from_zero
    assert search.least_ratio(raised[-1]) >= 1.0 - 1e-12
    kept = search.keeping(0.8, best)
    assert kept is not None
    assert 0.8 <= search.least_ratio(kept) < 0.84
    assert best.ramp.height < kept.ramp.height < raised[-1].ramp.height


@pytest.mark.parametrize(
    ("k", "low", "high"),
    slow_after(
        1, [(16, 0.3, 3.0), (40, 0.3, 3.0), (24, 1.0, 10.0), (30, 0.05, 0.5), (16, 1.0, 1.0)]
    ),
)
def test_a_ramp_settles_on_a_grid_too(k: int, low: float, high: float) -> None:
    random = np.random.default_rng(k)
    counts = np.rint(np.exp(random.uniform(np.log(2), np.log(50), k))).astype(int).tolist()
    problem = checked_problem(counts, random.uniform(low, high, k).tolist())
    caps = 2.0 * problem.attribute_epsilon
    height = optimum(problem) + 0.3
    best = RampSearch(FourierSums(problem.n_categories), problem, caps, height).best()
    assert best is not None
    assert best.ramp.height < float(problem.attribute_epsilon.sum())
    assert (best.ramp.slopes <= caps).all()


@pytest.mark.slow
def test_caps_so_tight_that_no_start_settles_are_reached_from_looser_ones() -> None:
    level = np.random.default_rng(0).uniform(0.3, 3.0, 30)
    problem = checked_problem([5] * 30, level.tolist())
    search = RampSearch(FourierSums(problem.n_categories), problem, 1.05 * level, 15.0)
    best = search.best()
    assert best is not None
    assert best.ramp.height < 0.6 * level.sum()


@pytest.mark.parametrize("seed", slow_after(2, range(6)))
@pytest.mark.parametrize("floor", [0.8, 0.999])
def test_floors_and_caps_are_kept_where_caps_leave_hardly_any_ramp(seed: int, floor: float) -> None:
    # Seeds 0 and 4 leave only the ramp that falls from the first change on; 1, 2 and 5 are reached
    # by going on from a higher top.
    problem = checked_problem(*request(seed, 7))
    search, _ = searched(problem, 1.03, 3.0)
    best = search.best()
    assert best is not None
    kept = search.keeping(floor, best)
    assert kept is not None
    assert search.least_ratio(kept) >= floor
    for fit in (best, kept):
        assert (fit.ramp.slopes <= 1.03 * problem.attribute_epsilon * (1.0 + 1e-9)).all()
