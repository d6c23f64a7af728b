import math

import numpy as np
import pytest
from scipy.stats import binom

from deniable.audit import limits


@pytest.mark.parametrize("n", [1, 7, 40])
@pytest.mark.parametrize("error", [0.1, 1e-6])
def test_limits_hold_at_every_probability_and_are_as_tight_as_exact_ones_can_be(n, error):
    counts = np.arange(n + 1)
    low, high = limits.lower(counts, n, error), limits.upper(counts, n, error)
    for p in np.linspace(0.001, 0.999, 99):
        chances = binom.pmf(counts, n, p)
        assert chances[low > p].sum() <= error * (1 + 1e-9)
        assert chances[high < p].sum() <= error * (1 + 1e-9)
    # At the limit itself the tail is the error (Clopper and Pearson's definition).
    inner = counts[1:-1]
    assert np.allclose(binom.sf(inner - 1, n, low[1:-1]), error)
    assert np.allclose(binom.cdf(inner, n, high[1:-1]), error)
    assert (low[0], high[-1]) == (0.0, 1.0)
    assert math.isclose(low[-1], error ** (1 / n))


@pytest.mark.parametrize(("claimed", "true"), [(0.5, 0.55), (0.02, 0.05), (0.9, 0.9), (0.3, 0.1)])
def test_power_is_what_summing_over_all_counts_gives(claimed, true):
    n, error = 300, 1e-3
    counts = np.arange(n + 1)
    found = limits.differs(counts, n, claimed, error)
    exact = binom.pmf(counts, n, true)[found].sum()
    assert binom.pmf(counts, n, claimed)[found].sum() <= error
    stated = limits.power(n, claimed, true, error)
    assert exact - 0.03 <= stated <= exact + 1e-12


def test_certainty_needs_no_many_draws():
    assert limits.differs(99, 100, 1.0, 1e-9)
    assert not limits.differs(100, 100, 1.0, 1e-9)
    assert limits.differs(1, 100, 0.0, 1e-9)
