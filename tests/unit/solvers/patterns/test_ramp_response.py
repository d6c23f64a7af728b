"""What a ramp delivers, and its derivatives, against the enumerated law and differences of it."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.laws.patterns import FloatArray
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramp_response import (
    COARSE,
    FINE,
    GridRamps,
    OrbitRamps,
    Ramp,
    _CostSums,
    _LatticeSums,
    fine_for,
)
from deniable.solvers.patterns.ramps import AtLevels, RampSearch
from deniable.solvers.problem import Problem, checked_problem
from unit.laws.votes import whole_law as oracle


def request(seed: int, k: int) -> tuple[Problem, Ramp]:
    random = np.random.default_rng(seed)
    levels = random.uniform(0.3, 2.0, k)
    problem = checked_problem(random.integers(2, 9, k).tolist(), levels.tolist())
    return problem, Ramp(random.uniform(1.2, 1.8) * levels, random.uniform(0.3, 1.5), 4.0)


def pattern_law(problem: Problem, ramp: Ramp) -> FloatArray:
    changed = oracle.patterns(problem.n_attributes)
    z = (problem.change_probability - changed) @ ramp.slopes
    density = np.exp(np.clip(z - ramp.top + ramp.height, 0.0, ramp.height))
    mass = oracle.uniform_law(problem.counts.tolist()) * density
    return np.asarray(mass / mass.sum())


@pytest.mark.parametrize("seed", range(3))
def test_levels_and_pairs_are_those_of_the_enumerated_law(seed: int) -> None:
    problem, ramp = request(seed, 6)
    sums = OrbitRamps(orbits(problem))
    q = pattern_law(problem, ramp)
    changed = q @ oracle.patterns(6)
    level = np.log((1 - changed) * (problem.n_categories - 1) / changed)
    change = problem.change_probability
    np.testing.assert_allclose(sums.response(ramp, change).level, level, rtol=1e-12)
    ratios = sums.pair_ratios(ramp, change)
    counts = problem.counts.tolist()
    for i, j in ((0, 1), (2, 5)):
        single = [oracle.attenuation(counts, q, (place,)) for place in (i, j)]
        pair = oracle.attenuation(counts, q, (i, j))
        assert ratios[i, j] == pytest.approx(pair / (single[0] * single[1]), rel=1e-9)
    assert np.isinf(np.diag(ratios)).all()


def test_alike_attributes_are_a_group_with_one_slope() -> None:
    problem = checked_problem([3, 5, 3, 3], [1.0, 0.7, 1.0, 1.0])
    sums = OrbitRamps(orbits(problem))
    whole = Ramp(np.array([1.3, 1.1, 1.3, 1.3]), 0.6, 2.0)
    grouped = Ramp(np.array([1.3, 1.1]), 0.6, 2.0)
    change = problem.change_probability
    q = pattern_law(problem, whole)
    changed = q @ oracle.patterns(4)
    level = np.log((1 - changed) * (problem.n_categories - 1) / changed)
    got = sums.response(grouped, change[:2])
    np.testing.assert_allclose(got.level, level[:2], rtol=1e-12)
    ratio = sums.pair_ratios(grouped, change[:2])[0, 0]
    counts = problem.counts.tolist()
    expected = oracle.attenuation(counts, q, (0, 2)) / oracle.attenuation(counts, q, (0,)) ** 2
    assert ratio == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("grid", [False, True])
def test_the_derivatives_are_those_of_differences(grid: bool) -> None:
    problem, ramp = request(1, 5)
    sums = GridRamps(problem.n_categories, 40_000) if grid else OrbitRamps(orbits(problem))
    change = problem.change_probability
    step, near = (1e-3, 2e-3) if grid else (1e-5, 1e-6)

    def slope(move: float, i: int) -> FloatArray:
        return np.where(np.arange(5) == i, ramp.slopes * np.exp(move), ramp.slopes)

    moved = {
        "by_height": lambda h: replace(ramp, height=ramp.height + h),
        "by_top": lambda h: replace(ramp, top=ramp.top + h),
    }
    got = sums.response(ramp, change)
    for name, at in moved.items():
        high, low = (sums.response(at(h), change).level for h in (step, -step))
        np.testing.assert_allclose(getattr(got, name), (high - low) / (2 * step), atol=near)
    for i in range(5):
        high, low = (
            sums.response(replace(ramp, slopes=slope(h, i)), change).level for h in (step, -step)
        )
        np.testing.assert_allclose(got.by_slope[:, i], (high - low) / (2 * step), atol=2 * near)


def test_a_grid_comes_to_the_sums_over_all_patterns() -> None:
    problem, ramp = request(2, 7)
    change = problem.change_probability
    exact = OrbitRamps(orbits(problem))
    grid = GridRamps(problem.n_categories, 50_000)
    for name in ("level", "by_slope", "by_height", "by_top"):
        one, other = (getattr(s.response(ramp, change), name) for s in (exact, grid))
        np.testing.assert_allclose(one, other, atol=2e-7)
    ratios = grid.pair_ratios(ramp, change)
    np.testing.assert_allclose(exact.pair_ratios(ramp, change), ratios, atol=1e-6)


@pytest.mark.parametrize(("k", "top"), [(4, 0.5), (18, 1.0), (24, 6.0)])
def test_sums_on_a_grid_by_inversion_are_those_by_recursion(k: int, top: float) -> None:
    problem, ramp = request(4, k)
    ramp = replace(ramp, top=top)
    costs = _CostSums(ramp, problem.change_probability, problem.n_categories, 700)
    sums = _LatticeSums.of(costs)
    assert sums is not None
    values = np.stack([costs.excess, costs.on_ramp, costs.above])
    np.testing.assert_allclose(sums.moments(values), costs.moments(values), rtol=0, atol=1e-12)
    np.testing.assert_allclose(sums.pairs(values[1]), costs.pairs(values[1]), rtol=0, atol=1e-12)


def test_a_coarse_grid_tells_levels_wherever_the_mass_is() -> None:
    # On the plateau, on the ramp or below it, with slopes of less than a state.
    random = np.random.default_rng(0)
    for _ in range(20):
        a, level = random.integers(2, 30, 8), np.exp(random.uniform(-4.6, 2.5, 8))
        problem = checked_problem(a.tolist(), level.tolist())
        change = problem.change_probability
        slopes = level * random.uniform(1.0, 2.0, 8)
        top = random.uniform(0.1, 1.0) * float(slopes @ change)
        ramp = Ramp(slopes, top, random.uniform(0.4, 1.0) * float(level.sum()))
        got = GridRamps(problem.n_categories).response(ramp, change).level
        right = OrbitRamps(orbits(problem)).response(ramp, change).level
        np.testing.assert_allclose(got, right, rtol=0, atol=1e-2)


def test_the_least_slope_is_told_between_two_states() -> None:
    # One of 0.001 where a state is 0.07: rounded at random by its part of a state, it would be
    # worth 3 % less on the ramp, and no cap 1 % above the level could be kept.
    problem = checked_problem([2] * 7, [8.0] * 6 + [1e-3])
    ramp, change = Ramp(np.append(np.full(6, 9.0), 1e-3), 2.0, 50.0), problem.change_probability
    got = GridRamps(problem.n_categories).response(ramp, change).level
    right = OrbitRamps(orbits(problem)).response(Ramp(np.array([9.0, 1e-3]), 2.0, 50.0), change[5:])
    assert got[-1] == pytest.approx(right.level[-1], rel=2e-3)


def test_a_rare_change_is_right_to_parts_of_itself() -> None:
    # Sums beyond the states that are told apart are few, but not beside a change of 10^-14.
    ramp, a = Ramp(np.append(np.linspace(0.25, 1.4, 29), 35.0), 20.0, 41.0), np.full(30, 10.0)
    costs = _CostSums(ramp, np.append(np.full(29, 0.8), 1e-9), a, 700)
    sums = _LatticeSums.of(costs)
    assert sums is not None
    base, values = costs.base * np.append(1.0, 1.0 - 1.0 / a), costs.excess[None]
    got, right = (base + one.moments(values)[0] for one in (sums, costs))
    assert right[-1] < 1e-7 * right[0]
    np.testing.assert_allclose(got, right, rtol=1e-12)


def test_pairs_of_faint_attributes_are_told_on_the_grid_too() -> None:
    # On the grid of the levels, of 700 states, one of these ratios was off by 4.6.
    levels = [8.838, 5.889, 4.319, 2.096, 1.458, 0.937, 0.676, 0.0165, 0.0132, 0.28]
    problem = checked_problem([5] * 10, levels)
    grid, change = GridRamps(problem.n_categories), problem.change_probability
    target = AtLevels(problem, 2.0 * problem.attribute_epsilon)
    fit = RampSearch(grid, target, 10.3, 1e-7, 1e-5).best(1.0)
    assert fit is not None
    exact = OrbitRamps(orbits(problem)).pair_ratios(fit.ramp, change)
    pairs = np.triu_indices(10, 1)
    got = grid.pair_ratios(fit.ramp, change)
    np.testing.assert_allclose(got[pairs], exact[pairs], atol=0.02)


def test_a_top_of_more_nats_than_a_double_holds_is_summed_without_a_warning() -> None:
    # A search tried one of them on the way: e^710 there, and thrown away again.
    grid, change = GridRamps(np.full(4, 2.0)), np.full(4, 0.5)
    ratios = grid.pair_ratios(Ramp(np.full(4, 500.0), 1.0, 30.0), change)
    assert ratios.shape == (4, 4)


def test_pairs_are_told_on_a_grid_as_fine_as_the_least_slope_asks_for() -> None:
    problem = checked_problem([2, 3, 5, 2, 3, 5, 4, 4], np.linspace(0.4, 1.2, 8).tolist())
    change, slopes = problem.change_probability, 1.6 * problem.attribute_epsilon
    ramp = Ramp(slopes, 0.8, 4.0)
    assert fine_for(ramp, change) == 4 * COARSE
    assert fine_for(Ramp(1e-3 * slopes, 0.0, 4.0), change) == FINE
    got = GridRamps(problem.n_categories).pair_ratios(ramp, change)
    exact = OrbitRamps(orbits(problem)).pair_ratios(ramp, change)
    pairs = np.triu_indices(8, 1)
    np.testing.assert_allclose(got[pairs], exact[pairs], atol=5e-4)
