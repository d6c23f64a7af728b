"""The small program for levels alone against the one over all patterns and all rows."""

import math

import numpy as np
import pytest

from deniable.solvers.patterns.certificate import best_known_bound, weighted_bound
from deniable.solvers.patterns.levels import keep_masses
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.unrestricted import solve_unrestricted
from deniable.solvers.problem import checked_problem
from unit.solvers.patterns.programs import least_excess


def request(seed: int) -> tuple[list[int], list[float]]:
    """Up to five attributes; of every third request the levels are far apart, so that some λ are 0
    (their attributes are brought down afterwards)."""
    random = np.random.default_rng(seed)
    k = int(random.integers(2, 6))
    counts = random.integers(2, 7, k).tolist()
    if seed % 3:
        return counts, random.uniform(0.3, 2.5, k).tolist()
    return counts, np.exp(random.uniform(math.log(0.05), math.log(4.0), k)).tolist()


@pytest.mark.parametrize("seed", range(30))
def test_the_optimum_is_that_of_the_program_over_all_patterns(seed: int) -> None:
    counts, levels = request(seed)
    grouped = orbits(checked_problem(counts, levels))
    solution = solve_unrestricted(grouped, best_known_bound(counts, levels))
    assert solution is not None
    excess = solution.excess
    assert excess[0] == pytest.approx(least_excess(counts, levels), rel=1e-6)
    assert excess.max() <= excess[0] * (1 + 1e-15)
    # What was left out holds by itself, and every level is met.
    assert (excess[grouped.source] - excess[grouped.target] >= -1e-13 * excess[0]).all()
    kept, changed = keep_masses(grouped, excess)
    np.testing.assert_allclose(kept, changed, rtol=1e-13)
    # The multipliers prove it.
    assert (solution.weights >= 0).all()
    weights = (solution.weights / grouped.size)[grouped.group_of].tolist()
    bound = weighted_bound(counts, levels, weights)
    assert bound == pytest.approx(math.log1p(float(excess[0])), rel=1e-10)


def test_some_of_these_requests_leave_a_multiplier_at_zero() -> None:
    idle = 0
    for seed in range(0, 30, 3):
        counts, levels = request(seed)
        grouped = orbits(checked_problem(counts, levels))
        solution = solve_unrestricted(grouped, best_known_bound(counts, levels))
        assert solution is not None
        idle += bool((solution.weights == 0).any())
    assert idle >= 3


@pytest.mark.parametrize("guess", [0.5, 1.0, 3.0])
def test_a_rough_guess_is_enough(guess: float) -> None:
    counts, levels = [3, 4, 5, 2], [1.0, 0.7, 1.5, 0.4]
    grouped = orbits(checked_problem(counts, levels))
    solution = solve_unrestricted(grouped, guess * best_known_bound(counts, levels))
    assert solution is not None
    assert solution.excess[0] == pytest.approx(least_excess(counts, levels), rel=1e-7)
