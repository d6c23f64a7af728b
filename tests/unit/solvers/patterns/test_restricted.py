"""The program with caps and floors against the one over all patterns, and its bound against it."""

import itertools
import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from deniable.proofs.certificate import best_known_bound
from deniable.proofs.problem import checked_problem
from deniable.solvers.patterns import restricted
from deniable.solvers.patterns.orbits import Orbits, orbits
from deniable.solvers.patterns.restricted import keep_masses, solve_restricted
from marked import slow_after
from unit.solvers.patterns.programs import least_excess

KINDS = [(1.3, None), (2.0, None), (None, 0.6), (1.5, 0.9), (None, None), (None, 1.05)]


def request(seed: int) -> tuple[list[int], list[float]]:
    random = np.random.default_rng(seed)
    k = int(random.integers(2, 5))
    counts, levels = random.integers(2, 6, k).tolist(), random.uniform(0.3, 2.0, k).tolist()
    if seed % 2:  # two attributes alike: an orbit of several patterns
        counts[1], levels[1] = counts[0], levels[0]
    return counts, levels


def grouped_with(
    counts: list[int], levels: list[float], factor: float | None
) -> tuple[Orbits, list[float] | None, np.ndarray | None]:
    """Orbits, the caps of all attributes, and those of the groups."""
    grouped = orbits(checked_problem(counts, levels))
    if factor is None:
        return grouped, None, None
    caps = [factor * level for level in levels]
    return grouped, caps, factor * grouped.groups.attribute_epsilon


@pytest.mark.parametrize(("factor", "floor"), KINDS)
@pytest.mark.parametrize("seed", slow_after(3, range(8)))
def test_the_optimum_is_that_of_the_program_over_all_patterns(
    seed: int, factor: float | None, floor: float | None
) -> None:
    counts, levels = request(seed)
    grouped, caps, group_caps = grouped_with(counts, levels, factor)
    solution = solve_restricted(
        grouped, best_known_bound(counts, levels), caps=group_caps, pair_floor=floor
    )
    expected = least_excess(counts, levels, caps, floor)
    if math.isinf(expected):
        assert solution.status != "optimal"
        return
    assert solution.status == "optimal"
    excess = solution.excess
    assert excess is not None
    assert excess[0] == pytest.approx(expected, rel=1e-6)
    assert expected * (1 - 1e-6) < solution.excess_bound <= excess[0] * (1 + 1e-13)
    kept, changed = keep_masses(grouped, excess)
    np.testing.assert_allclose(kept, changed, rtol=1e-13)
    near, far, group = grouped.edges
    ratio = (1 + excess[near]) / (1 + excess[far])
    assert (ratio >= 1 - 1e-9).all()
    if group_caps is not None:
        assert (np.log(ratio) <= group_caps[group] + 1e-9).all()


def test_a_floor_that_no_law_reaches_is_infeasible() -> None:
    grouped = orbits(checked_problem([3, 4], [1.0, 0.5]))
    solution = solve_restricted(grouped, 1.3, pair_floor=50.0)
    assert (solution.status, solution.excess) == ("infeasible", None)
    assert solution.excess_bound == -math.inf


def test_wrong_multipliers_still_prove_a_true_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, levels = request(4)
    grouped, caps, group_caps = grouped_with(counts, levels, 1.5)
    expected = least_excess(counts, levels, caps, 0.9)
    random = np.random.default_rng(1)
    right = restricted._excess_bound

    def disturbed(*arguments: Any) -> tuple[np.ndarray, float]:
        *others, multipliers, reached = arguments
        noise = 10.0 ** random.uniform(-12, -1)
        noisy = multipliers * (1 + noise * random.normal(size=len(multipliers)))
        return right(*others, noisy, reached)

    monkeypatch.setattr(restricted, "_excess_bound", disturbed)
    bounds = []
    for _ in range(20):
        solution = solve_restricted(
            grouped, best_known_bound(counts, levels), caps=group_caps, pair_floor=0.9
        )
        bounds.append(solution.excess_bound)
    assert max(bounds) <= expected * (1 + 1e-9)
    assert min(bounds) < expected * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_no_law_that_keeps_the_levels_has_a_larger_excess_than_is_allowed_for(seed: int) -> None:
    counts, levels = request(seed)
    grouped = orbits(checked_problem(counts, levels))
    product = np.expm1((grouped.size - grouped.changed) @ grouped.groups.attribute_epsilon)
    optimum = solve_restricted(grouped, best_known_bound(counts, levels)).excess
    assert optimum is not None
    for part in (0.0, 0.3, 1.0):  # mixtures of two laws that keep the levels keep them too
        excess = part * product + (1 - part) * optimum
        allowed = restricted._largest(grouped, float(excess[0])) / 2.0
        assert (excess <= allowed * (1 + 1e-12) + 1e-300).all()


@pytest.mark.parametrize("p", [1e-200, 1e-17, 0.3, 0.9999])
def test_binomial_laws_are_right_to_their_last_digits(p: float) -> None:
    laws = restricted._binomials(9, p)
    with localcontext() as context:
        context.prec = 60
        exact_p = Decimal(p)
        for c, j in itertools.product(range(10), repeat=2):
            exact = math.comb(c, j) * exact_p**j * (1 - exact_p) ** (c - j) if j <= c else 0
            assert float(exact) == pytest.approx(laws[c, j], rel=1e-14, abs=1e-300)
