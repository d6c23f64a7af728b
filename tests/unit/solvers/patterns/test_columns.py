"""Column generation against the linear program."""

import numpy as np
import pytest

from deniable.solvers.patterns import linear
from deniable.solvers.patterns.columns import solve_columns
from deniable.solvers.problem import checked_problem


def request(seed: int, most: int) -> tuple[list[int], list[float]]:
    random = np.random.default_rng(seed)
    k = int(random.integers(1, most + 1))
    low, high = ((0.05, 6.0), (0.5, 2.0), (0.01, 0.3))[seed % 3]
    return random.integers(2, 10, k).tolist(), random.uniform(low, high, k).tolist()


@pytest.mark.parametrize("seed", range(150))
def test_the_optimum_equals_the_linear_program_and_no_level_is_missed(seed: int) -> None:
    counts, levels = request(seed, 9)
    problem = checked_problem(counts, levels)
    found = solve_columns(problem)
    assert found.upper_bound - found.lower_bound < 1e-8
    assert found.lower_bound <= found.upper_bound + 1e-12
    expected = linear.solve(counts, levels)
    assert found.upper_bound == pytest.approx(expected.epsilon, rel=1e-7, abs=1e-8)
    assert np.all(found.law.moments().keep >= problem.keep_probability * (1 - 1e-12))
    assert len(found.law.multipliers) <= len(counts) + 1


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
    found = solve_columns(checked_problem(counts, levels))
    expected = linear.solve(counts, levels).epsilon
    assert found.upper_bound == pytest.approx(expected, abs=2e-6)
    assert found.lower_bound <= expected + 1e-9
