"""The binomial shortcut against the general dynamic program."""

import numpy as np
import pytest

from deniable.laws.votes.counts import CountLaw
from deniable.laws.votes.sums import SumLaw, saddle_tilt, tilted_sum


@pytest.mark.parametrize("k", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("a", [2, 5, 1000])
def test_counts_give_the_expectations_of_the_general_program(k: int, a: int) -> None:
    r, n, theta = np.full(k, 1 / a), np.ones(k, dtype=np.int64), np.zeros(k)
    tilt = saddle_tilt(r, n + theta, 0.6 * k)
    steps = tilted_sum(r, n, theta, tilt)
    floor = int(0.5 * k)
    general, counts = SumLaw(steps, floor, careful=True), CountLaw(steps, floor)

    def h(s: np.ndarray) -> np.ndarray:
        return np.stack([np.maximum(s - 0.5 * k, 0.0), (s > 0.7 * k) * 1.0])

    first, second = general.expectations(h(general.support)), counts.expectations(h(counts.support))
    assert np.allclose(first.total, second.total, rtol=1e-12)
    assert np.allclose(first.kept, second.kept, rtol=1e-12, atol=1e-300)
    assert np.allclose(first.changed, second.changed, rtol=1e-11, atol=1e-16)
    if k > 2:
        factors = {0: (1.0, -0.3), 1: (0.5, 2.0), 2: (1.0, -0.1)}
        one = general.product_expectation(h(general.support)[0], factors)
        two = counts.product_expectation(h(counts.support)[0], factors)
        assert abs(one - two) < 1e-12
        plus, minus = np.full(k, 0.8), np.full(k, -0.4)
        assert np.allclose(
            general.pair_expectations(h(general.support)[0], plus, minus),
            counts.pair_expectations(h(counts.support)[0], plus, minus),
            atol=1e-12,
        )
