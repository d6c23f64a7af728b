"""The dynamic program against enumeration of every pattern and every dither."""

import itertools
import math

import numpy as np
import pytest

from deniable.laws.votes.sums import SumLaw, changed_sum, saddle_tilt, tilted_sum


def enumerate_cases(r, n, theta):
    """Yield (probability under μ, kept flags, s) over all patterns and dithers."""
    k = len(r)
    for kept in itertools.product((0, 1), repeat=k):
        for extra in itertools.product((0, 1), repeat=k):
            if any(b and not (y and t > 0) for b, y, t in zip(extra, kept, theta, strict=False)):
                continue
            prob, s = 1.0, 0
            for i in range(k):
                if kept[i]:
                    prob *= r[i] * (theta[i] if extra[i] else 1 - theta[i])
                    s += n[i] + extra[i]
                else:
                    prob *= 1 - r[i]
            yield prob, kept, s


@pytest.mark.parametrize("seed", range(12))
def test_expectations_equal_the_sum_over_all_patterns_and_dithers(seed: int) -> None:
    random = np.random.default_rng(seed)
    k = int(random.integers(1, 7))
    r = 1 / random.integers(2, 9, k)
    n = random.integers(0, 30, k)
    n[0] += 1
    theta = np.where(random.random(k) < 0.5, 0.0, random.random(k))
    t = 0.6 * float((n + theta).sum())
    tilt = saddle_tilt(r, n + theta, t)
    floor = int(t)
    steps = tilted_sum(r, n, theta, tilt)
    law = SumLaw(steps, floor)
    s = law.support
    h = lambda x: np.maximum(x - t, 0.0) ** 1.5  # noqa: E731
    weigh = np.exp(steps.log_scale - tilt * s)
    got = law.expectations(np.stack([h(s) * weigh, (s > t) * weigh]))
    kept = np.zeros((2, k))
    total = np.zeros(2)
    alpha, beta = random.normal(size=k), random.normal(size=k)
    pairs = np.zeros((k, k))
    triple = 0.0
    chosen = {0: (1.0, -0.25), k - 1: (1.0, -0.25)}
    for prob, y, x in enumerate_cases(r, n, theta):
        both = np.array([h(x), x > t]) * prob
        total += both
        kept += both[:, None] * np.array(y)
        c = np.where(np.array(y) == 1, alpha, beta)
        pairs += np.outer(c, c) * both[0]
        triple += both[0] * math.prod(chosen[i][0] if y[i] else chosen[i][1] for i in chosen)
    assert np.allclose(got.total, total, rtol=1e-12)
    assert np.allclose(got.kept, kept, rtol=1e-12, atol=1e-300)
    assert np.allclose(got.changed, total[:, None] - kept, rtol=1e-10, atol=1e-13)
    assert np.allclose(
        law.pair_expectations(h(s) * weigh, alpha, beta), pairs, rtol=1e-10, atol=1e-12
    )
    assert math.isclose(law.product_expectation(h(s) * weigh, chosen), triple, abs_tol=1e-12)


def test_the_saddle_tilt_centres_the_sum() -> None:
    r, w = np.array([0.5, 0.2, 0.1]), np.array([3.0, 5.0, 2.0])
    tilt = saddle_tilt(r, w, 7.5)
    steps = tilted_sum(r, w.astype(np.int64), np.zeros(3), tilt)
    law = SumLaw(steps)
    assert math.isclose(float(law.support @ law.mass), 7.5, rel_tol=1e-6)


def test_a_tilt_that_doubles_cannot_hold_is_refused() -> None:
    keep, one, none = np.array([0.5]), np.array([1]), np.zeros(1)
    for build in (
        lambda tilt, n: tilted_sum(keep, n * one, none, tilt),
        lambda tilt, n: changed_sum(keep, n * one, none, tilt, n),
    ):
        with pytest.raises(ValueError, match="24 bits"):
            build(0.1, 1)
        with pytest.raises(ValueError, match="at most 2\\^28"):
            build(0.0, (1 << 28) + 1)
        with pytest.raises(ValueError, match="too strong"):
            build(1.0, 651)
    with pytest.raises(ValueError, match="strictly between"):
        saddle_tilt(keep, one.astype(float), 1.0)


def test_a_change_that_cannot_be_afforded_says_nothing_of_the_tilt() -> None:
    keep, none = np.array([0.5, 0.25]), np.zeros(2)
    steps = changed_sum(keep, np.array([2, 1001]), none, 1.0, 1000)
    law = SumLaw(steps, ceiling=1000)
    changed = 0.5 * math.exp(-2.0)
    assert np.allclose(law.mass[[0, 2]], np.array([0.5, changed]) / (0.5 + changed), rtol=1e-14)
    assert math.isclose(steps.log_scale, math.log(0.25 * (0.5 + changed)), rel_tol=1e-14)
