"""Sums over patterns against enumeration, and derivatives against differences."""

from collections.abc import Callable

import numpy as np
import pytest

from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import checked_problem
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramps.evaluate import (
    FourierSums,
    PatternSums,
    Prices,
    Ramp,
    RampSums,
)
from unit.solvers.patterns.ramps.enumerated import Enumerated

RAMPS = {
    "plateau and bottom": ([1.03, 0.71, 2.57, 1.66, 0.93, 1.49], 2.3, 3.1),
    "no plateau": ([0.4, 0.5, 0.6, 0.3, 0.2, 0.45], 0.0, 2.0),
    "no bottom": ([0.8, 0.5, 1.1, 0.9, 0.7, 0.6], 1.3, 3.3),
    "one change leads to the bottom": ([0.5, 30.0, 0.4, 0.7, 0.6, 0.5], 0.9, 1.7),
    "small": ([0.02, 0.03, 0.05, 0.04, 0.06, 0.03], 0.1, 0.08),
    "large": ([9.0, 12.0, 7.0, 8.0, 11.0, 6.0], 4.0, 40.0),
}
COUNTS = [2, 3, 5, 4, 70, 3]


def by_orbits() -> RampSums:
    return PatternSums(orbits(checked_problem(COUNTS, np.linspace(0.5, 1.5, 6).tolist())))


def by_grid() -> FourierSums:
    return FourierSums(np.array(COUNTS, dtype=np.float64))


@pytest.fixture(params=[by_orbits, by_grid])
def sums(request: pytest.FixtureRequest) -> RampSums:
    made: RampSums = request.param()
    return made


def within(sums: RampSums) -> float:
    """How near sums are to the truth, relatively: 400 states tell them to a hundredth."""
    return 1e-12 if isinstance(sums, PatternSums) else 8e-3


@pytest.fixture(params=list(RAMPS))
def ramp(request: pytest.FixtureRequest) -> Ramp:
    slopes, start, height = RAMPS[request.param]
    return Ramp(np.array(slopes), start, height)


def test_what_a_ramp_delivers_is_what_enumeration_says(sums: RampSums, ramp: Ramp) -> None:
    every, near = Enumerated(np.array(COUNTS)), within(sums)
    density = every.density(ramp)
    got = sums.delivered(ramp)
    assert got.log_end == pytest.approx(np.log(density[-1]), rel=1e-9)
    mass = density * every.chance
    assert got.total == pytest.approx(mass.sum(), rel=near)
    np.testing.assert_allclose(got.changed, mass @ every.changed, rtol=near)
    response = sums.response(ramp)
    np.testing.assert_allclose(response.level, every.levels(density), rtol=near, atol=near)
    off = ~np.eye(6, dtype=bool)
    size = mass.sum() * near
    np.testing.assert_allclose(got.pairs[off], every.pairs(density)[off], rtol=near, atol=size)
    np.testing.assert_allclose(
        got.ratios(sums.n_categories)[off], every.ratios(density)[off], rtol=20 * near, atol=near
    )


def differences(function: Callable[[FloatArray], FloatArray], at: FloatArray) -> FloatArray:
    """Central differences by every number, along the last axis."""
    step = 1e-5
    moves = np.eye(len(at)) * step
    each = [(function(at + move) - function(at - move)) / (2 * step) for move in moves]
    return np.moveaxis(np.array(each), 0, -1)


def test_derivatives_of_levels_are_those_of_differences() -> None:
    slopes, start, height = RAMPS["plateau and bottom"]
    ramp, sums = Ramp(np.array(slopes), start, height), by_orbits()
    got = sums.response(ramp)

    def level(at: FloatArray) -> FloatArray:
        return sums.response(Ramp(np.exp(at[:-2]), float(at[-2]), float(at[-1]))).level

    by = differences(level, np.append(np.log(ramp.slopes), [start, height]))
    np.testing.assert_allclose(got.by_slope, by[:, :-2], atol=1e-7)
    np.testing.assert_allclose(got.by_start, by[:, -2], atol=1e-7)
    np.testing.assert_allclose(got.by_height, by[:, -1], atol=1e-7)


def test_derivatives_on_a_grid_are_those_over_patterns(sums: RampSums) -> None:
    slopes, start, height = RAMPS["plateau and bottom"]
    ramp = Ramp(np.array(slopes), start, height)
    got, exact = sums.response(ramp), by_orbits().response(ramp)
    for name in ("by_slope", "by_start", "by_height"):
        np.testing.assert_allclose(getattr(got, name), getattr(exact, name), atol=0.05)


def test_what_a_ramp_is_worth_is_what_enumeration_says(ramp: Ramp) -> None:
    random, every, near = np.random.default_rng(1), Enumerated(np.array(COUNTS)), 8e-3
    pairs = np.triu(random.normal(size=(6, 6)), 1)
    prices = Prices(0.3, 0.7, 0.2, random.normal(size=6), pairs + pairs.T)
    got, (value, mass) = by_grid().worth(prices)(ramp), every.worth(ramp, prices)
    assert got.value == pytest.approx(value, rel=5 * near, abs=5 * near * mass)
    assert got.mass == pytest.approx(mass, rel=5 * near)


def worth_by(
    every: Enumerated, prices: Prices, ramp: Ramp, group_of: list[int]
) -> tuple[FloatArray, FloatArray]:
    """Differences of what a ramp is worth, and of its mass, by the slopes of groups."""

    def worth(at: FloatArray) -> FloatArray:
        return np.array(every.worth(Ramp(at[:-2][group_of], float(at[-2]), float(at[-1])), prices))

    by = differences(worth, np.append(ramp.slopes, [ramp.start, ramp.height]))
    return by[0], by[1]


def test_derivatives_of_worth_are_those_of_differences() -> None:
    random, every = np.random.default_rng(2), Enumerated(np.array(COUNTS))
    pairs = np.triu(random.normal(size=(6, 6)), 1)
    prices = Prices(0.3, 0.7, 0.2, random.normal(size=6), pairs + pairs.T)
    slopes, start, height = RAMPS["plateau and bottom"]
    ramp = Ramp(np.array(slopes), start, height)
    got = by_grid().worth(prices)(ramp)
    value_by, mass_by = worth_by(every, prices, ramp, list(range(6)))
    np.testing.assert_allclose(got.value_by, value_by, atol=1e-2)
    np.testing.assert_allclose(got.mass_by, mass_by, atol=1e-2)


@pytest.mark.parametrize("made", [PatternSums, FourierSums])
def test_attributes_that_are_alike_are_summed_as_one_group(made: type) -> None:
    counts, group_of = [4, 4, 4, 3], [0, 0, 0, 1]
    grouped = orbits(checked_problem(counts, [1.0, 1.0, 1.0, 0.5]))
    exact = made is PatternSums
    sums = PatternSums(grouped) if exact else FourierSums(np.array([4.0, 3.0]), np.array([3.0, 1]))
    near = 1e-12 if exact else 5e-3
    every, ramp = Enumerated(np.array(counts)), Ramp(np.array([0.8, 0.6]), 1.1, 1.2)
    whole = ramp._replace(slopes=ramp.slopes[group_of])
    density = every.density(whole)
    got, pairs = sums.delivered(ramp), every.pairs(density)
    expected = [[pairs[0, 1], pairs[0, 3]], [pairs[3, 0], np.nan]]
    np.testing.assert_allclose(got.pairs, expected, rtol=5 * near)
    response = sums.response(ramp)
    np.testing.assert_allclose(response.level, every.levels(density)[[0, 3]], rtol=near)

    def level(at: FloatArray) -> FloatArray:
        return every.levels(every.density(whole._replace(slopes=np.exp(at)[group_of])))[[0, 3]]

    by_slope = differences(level, np.log(ramp.slopes))
    np.testing.assert_allclose(response.by_slope, by_slope, atol=max(10 * near, 1e-8))
    if isinstance(sums, FourierSums):
        # A group's price is for the mean of its members, and of its pairs: three of either.
        prices = Prices(0.1, 0.2, 0.3, np.array([0.4, -0.5]), np.array([[0.6, 0.7], [0.7, 0.0]]))
        members = np.array([1 / 3, 1 / 3, 1 / 3, 1.0])
        single = prices.pairs[np.ix_(group_of, group_of)] / 3.0
        each = Prices(0.1, 0.2, 0.3, prices.changed[group_of] * members, single)
        worth = sums.worth(prices)(ramp)
        assert worth.value == pytest.approx(every.worth(whole, each)[0], rel=near)
        value_by, mass_by = worth_by(every, each, ramp, group_of)
        np.testing.assert_allclose(worth.value_by, value_by, atol=1e-2)
        np.testing.assert_allclose(worth.mass_by, mass_by, atol=1e-2)


def test_of_many_attributes_few_frequencies_tell_all() -> None:
    # 120 attributes in two groups, whose orbits are few enough for a sum.
    problem = checked_problem([5] * 60 + [3] * 60, [0.6] * 60 + [0.9] * 60)
    exact = PatternSums(orbits(problem))
    sums = FourierSums(exact.n_categories, exact.size)
    ramp = Ramp(np.array([0.55, 1.1]), 60.0, 9.0)
    got, expected = sums.response(ramp), exact.response(ramp)
    np.testing.assert_allclose(got.level, expected.level, rtol=2e-3)
    np.testing.assert_allclose(got.by_slope, expected.by_slope, atol=0.05)
    np.testing.assert_allclose(sums.delivered(ramp).pairs, exact.delivered(ramp).pairs, rtol=0.03)
    assert len(sums._terms(ramp).excess) == 64
