"""Column generation against a linear program over all patterns, solved by another route."""

import math

import numpy as np
import pytest

from deniable.proofs.problem import SolverError, checked_problem
from deniable.solvers.patterns.columns import solve_columns
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.restricted import keep_masses
from marked import slow_after
from unit.solvers.patterns.programs import least_excess
from unit.solvers.patterns.requests import by_columns


def request(seed: int, most: int) -> tuple[list[int], list[float]]:
    random = np.random.default_rng(seed)
    k = int(random.integers(1, most + 1))
    low, high = ((0.05, 6.0), (0.5, 2.0), (0.01, 0.3))[seed % 3]
    counts, levels = random.integers(2, 10, k).tolist(), random.uniform(low, high, k).tolist()
    if k > 2 and seed % 2:  # two attributes alike: an orbit of several patterns
        counts[1], levels[1] = counts[0], levels[0]
    return counts, levels


@pytest.mark.parametrize("seed", slow_after(20, range(60)))
def test_the_optimum_equals_the_linear_program_and_no_level_is_missed(seed: int) -> None:
    counts, levels = request(seed, 6)
    problem = checked_problem(counts, levels)
    found, grouped = by_columns(problem), orbits(problem)
    assert found.upper_bound - found.lower_bound < 1e-8
    assert found.lower_bound <= found.upper_bound + 1e-12
    expected = math.log1p(least_excess(counts, levels))
    assert found.upper_bound == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert math.log1p(found.excess[0]) == pytest.approx(found.upper_bound, abs=1e-8)
    kept, changed = keep_masses(grouped, found.excess)
    np.testing.assert_allclose(kept, changed, rtol=1e-13)
    near, far, _ = grouped.edges
    assert np.all(1 + found.excess[near] >= (1 + found.excess[far]) * (1 - 1e-12))


@pytest.mark.parametrize(
    ("counts", "levels"),
    [
        ([10000, 2, 9], [6.3160530679349245, 11.310992393999214, 1.3700722884288943]),
        ([3, 10000, 9], [11.595370161207141, 6.853195904281052, 1.9960363771740663]),
        ([10000, 3, 10000], [0.004, 8.396, 11.787]),
    ],
)
def test_levels_and_category_counts_far_apart_are_solved(
    counts: list[int], levels: list[float]
) -> None:
    found = by_columns(checked_problem(counts, levels))
    assert found.upper_bound - found.lower_bound < 2e-6
    assert math.log1p(found.excess[0]) == pytest.approx(found.upper_bound, abs=2e-6)


def test_levels_at_which_no_vote_is_ever_won_are_refused() -> None:
    grouped = orbits(checked_problem([3, 4, 5], [600.0, 590.0, 595.0]))
    with pytest.raises(SolverError):
        solve_columns(grouped, 600.0)
