import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from deniable.solvers.patterns.ramp_mixtures import Prices
from deniable.solvers.patterns.ramp_pricing import FallingRamp, RampPrices
from deniable.solvers.problem import checked_problem

COUNTS, LEVELS = [2, 5, 40, 3, 7], [1.5, 0.4, 2.0, 3.0, 0.8]
PAIRS = [*itertools.combinations(range(5), 2)]
MASS, SCALE = 0.2, 2.5
PRICES = Prices(0.3, -0.7, np.array([0.5, 1.5, 0.1, 0.0, 2.0]), np.linspace(-1.0, 3.0, 10))


def of(prices: Prices = PRICES) -> RampPrices:
    return RampPrices(checked_problem(COUNTS, LEVELS), prices, SCALE, MASS)


def exact_cost(ramp: FallingRamp) -> float:
    """The reduced cost over what the ramp takes up, by enumeration, from their definitions."""
    cost = size = 0.0
    for changed in itertools.product((0, 1), repeat=len(COUNTS)):
        exponent = ramp.fall_from - sum(np.array(changed) * ramp.slopes)
        top = -ramp.top if ramp.place >= 0 and changed[ramp.place] else 0.0
        density = math.exp(max(min(exponent, top), -ramp.height))
        chance = math.prod(1 - 1 / a if c else 1 / a for a, c in zip(COUNTS, changed, strict=True))
        h = [-1 / (a - 1) if c else 1.0 for a, c in zip(COUNTS, changed, strict=True)]
        worth = PRICES.total + np.dot(PRICES.changed, changed)
        worth += sum(price * h[i] * h[j] for price, (i, j) in zip(PRICES.pairs, PAIRS, strict=True))
        cost -= chance * density * float(worth)
        cost -= PRICES.top * (not any(changed)) * density + SCALE * all(changed) * density
        size += ((not any(changed)) + chance / MASS + SCALE * all(changed)) * density
    return cost / size


STEEP = np.array([3.0, 0.8, 4.0, 6.0, 1.6])


@pytest.mark.parametrize(
    "ramp",
    [
        FallingRamp(STEEP, 1.0, 5.0),
        FallingRamp(np.array([0.0, 0.2, 4.0, 1.0, 0.3]), 0.0, 9.0),  # all changed is above it
        FallingRamp(np.zeros(5), 0.0, 0.0),
        FallingRamp(STEEP, 4.0, 5.0, 1, 2.5),
        FallingRamp(np.array([0.3, 0.1, 0.2, 0.4, 0.3]), 2.0, 3.0, 1, 1.0),  # or on the top
    ],
)
def test_the_reduced_cost_is_that_by_enumeration(ramp: FallingRamp) -> None:
    assert of().reduced_cost(ramp)[0] == pytest.approx(exact_cost(ramp), abs=4e-4)


@pytest.mark.parametrize(
    "ramp",
    [
        FallingRamp(np.array([2.9, 0.71, 3.3, 5.1, 1.57]), 3.03, 4.21, 3, 1.13),
        FallingRamp(np.array([2.9, 0.71, 3.3, 0.1, 1.57]), 3.03, 14.21, 3, 1.13),
        FallingRamp(np.array([0.31, 0.11, 0.23, 0.4, 0.3]), 2.0, 3.0, 1, 1.0),
    ],
)
def test_derivatives_are_those_of_the_reduced_cost(ramp: FallingRamp) -> None:
    _, slope = of().reduced_cost(ramp)
    at = np.append(ramp.slopes, [ramp.fall_from, ramp.height, ramp.top])
    for place in range(len(at)):
        costs = []
        for step in (1e-5, -1e-5):
            moved = at.copy()
            moved[place] += step
            fall_from, height, top = moved[-3:].tolist()
            costs.append(exact_cost(FallingRamp(moved[:-3], fall_from, height, ramp.place, top)))
        assert slope[place] == pytest.approx((costs[0] - costs[1]) / 2e-5, abs=8e-3)


def test_what_is_lacking_has_a_reduced_cost_below_zero_and_keeps_the_caps() -> None:
    pricing, steepest = of(), 2.0 * np.array(LEVELS)
    starts = [FallingRamp(0.5 * steepest, 1.0, 4.0), FallingRamp(3.0 * steepest, 0.2, math.inf)]
    starts.append(pricing.topped(starts[0], steepest))
    assert starts[2] == pricing.topped(starts[2], 2.0 * steepest)
    found = pricing.lacking(starts, steepest)
    assert [ramp.place for ramp in found] == [-1, -1, 3]  # what is changed least
    for ramp in found:
        assert 0 <= ramp.top <= (steepest[3] if ramp.place >= 0 else 0)
        assert (ramp.slopes >= 0).all()
        assert (ramp.slopes <= steepest).all()
        assert exact_cost(ramp) < 0
    assert exact_cost(found[0]) < exact_cost(starts[0])
    assert exact_cost(found[2]) < exact_cost(starts[2])


def test_nothing_is_lacking_where_no_density_is_worth_anything() -> None:
    worthless = Prices(-4.0, -1.0, np.zeros(5), np.zeros(10))
    starts, steepest = [FallingRamp(np.array(LEVELS), 0.5, 3.0)], 2.0 * np.array(LEVELS)
    assert of(worthless).lacking(starts, steepest) == []


def test_prices_are_averaged_with_others() -> None:
    assert PRICES.beside(None, 0.5) is PRICES
    mean = PRICES.beside(replace(PRICES, top=1.3, pairs=np.zeros(10)), 0.25)
    assert mean.top == pytest.approx(1.05)
    assert mean.total == pytest.approx(PRICES.total)
    np.testing.assert_allclose(mean.changed, PRICES.changed)
    np.testing.assert_allclose(mean.pairs, 0.25 * PRICES.pairs)
