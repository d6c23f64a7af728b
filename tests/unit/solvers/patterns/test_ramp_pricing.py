import itertools
import math

import numpy as np
import pytest

from deniable.laws.patterns import FloatArray
from deniable.solvers.patterns import ramp_pricing
from deniable.solvers.patterns.ramp_mixtures import Prices
from deniable.solvers.patterns.ramp_pricing import FallingRamp, PatternSample
from deniable.solvers.problem import checked_problem

COUNTS, LEVELS = [2, 5, 40, 3, 7], [1.5, 0.4, 2.0, 3.0, 0.8]
PAIRS = [*itertools.combinations(range(5), 2)]
MASS, SCALE = 0.2, 2.5
PRICES = Prices(0.3, -0.7, np.array([0.5, 1.5, 0.1, 0.0, 2.0]), np.linspace(-1.0, 3.0, 10))


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> PatternSample:
    monkeypatch.setattr(ramp_pricing, "_DRAWN", 20_000)
    return PatternSample(checked_problem(COUNTS, LEVELS))


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


def weights(sample: PatternSample) -> tuple[FloatArray, FloatArray]:
    return sample.worth(PRICES, SCALE), sample.size(MASS, SCALE)


@pytest.mark.parametrize(
    "ramp",
    [
        FallingRamp(np.array([3.0, 0.8, 4.0, 6.0, 1.6]), 1.0, 5.0),
        FallingRamp(np.array([0.0, 0.2, 4.0, 1.0, 0.3]), 0.0, 9.0),
        FallingRamp(np.zeros(5), 0.0, 0.0),
        FallingRamp(np.array([3.0, 0.8, 4.0, 6.0, 1.6]), 4.0, 5.0, 1, 2.5),
    ],
)
def test_the_sample_gives_the_reduced_cost(sample: PatternSample, ramp: FallingRamp) -> None:
    at = np.append(ramp.slopes, [ramp.fall_from, ramp.height, ramp.top])
    got, _ = sample.reduced_cost(at, *weights(sample), ramp.place)
    assert got == pytest.approx(exact_cost(ramp), abs=0.02)


def test_derivatives_are_those_of_the_reduced_cost(sample: PatternSample) -> None:
    of = weights(sample)
    at = np.array([2.9, 0.71, 3.3, 5.1, 1.57, 3.03, 4.21, 1.13])
    _, slope = sample.reduced_cost(at, *of, 3)
    for place in range(len(at)):
        step = np.zeros_like(at)
        step[place] = 1e-7
        up, down = (sample.reduced_cost(one, *of, 3)[0] for one in (at + step, at - step))
        assert slope[place] == pytest.approx((up - down) / 2e-7, abs=1e-6)


def test_what_is_lacking_has_a_reduced_cost_below_zero_and_keeps_the_caps(
    sample: PatternSample,
) -> None:
    of = weights(sample)
    steepest = 2.0 * np.array(LEVELS)
    starts = [FallingRamp(0.5 * steepest, 1.0, 4.0), FallingRamp(3.0 * steepest, 0.2, math.inf)]
    starts.append(sample.topped(starts[0], steepest))
    assert starts[2] == sample.topped(starts[2], 2.0 * steepest)
    found = sample.lacking(starts, *of, steepest)
    assert [ramp.place for ramp in found] == [-1, -1, 3]  # what is changed least
    for ramp in found:
        assert 0 <= ramp.top <= (steepest[3] if ramp.place >= 0 else 0)
        assert (ramp.slopes >= 0).all()
        assert (ramp.slopes <= steepest).all()
        assert exact_cost(ramp) < 0

    def cost(ramp: FallingRamp) -> float:
        at: FloatArray = np.append(ramp.slopes, [ramp.fall_from, ramp.height, ramp.top])
        return sample.reduced_cost(at, *of, ramp.place)[0]

    assert cost(found[0]) < cost(starts[0])
    assert cost(found[2]) < cost(starts[2])


def test_nothing_is_lacking_where_no_density_is_worth_anything(sample: PatternSample) -> None:
    worth, size = np.abs(sample.weight), sample.size(MASS, SCALE)
    starts, steepest = [FallingRamp(np.array(LEVELS), 0.5, 3.0)], 2.0 * np.array(LEVELS)
    assert sample.lacking(starts, worth, size, steepest) == []


def test_every_pattern_is_there_once_and_their_chances_add_up(sample: PatternSample) -> None:
    drawn = sample.changed[:-2]
    assert len(np.unique(drawn, axis=0)) == len(drawn) <= 2**5
    assert sample.weight[:-2].sum() == pytest.approx(1.0, abs=0.05)


def test_the_sample_is_the_same_every_time() -> None:
    problem = checked_problem(COUNTS, LEVELS)
    first, second = PatternSample(problem), PatternSample(problem)
    assert np.array_equal(first.changed, second.changed)
    assert np.array_equal(first.weight, second.weight)
