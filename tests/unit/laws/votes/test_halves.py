"""Votes in about 2^{k/2} steps against sums over all 2^k patterns."""

import math

import numpy as np
import pytest

from deniable.laws.votes.halves import Halves
from unit.laws.votes import whole_law as oracle


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 9])
def test_split_votes_equal_sums_over_all_patterns(k: int) -> None:
    random = np.random.default_rng(k)
    a = random.integers(2, 9, k)
    weights = random.integers(0, 20, k)
    weights[0] += 1
    table, mu = oracle.patterns(k), oracle.uniform_law(a.tolist())
    for threshold in range(0, int(weights.sum()) + 2, 3):
        won, kept, changed = Halves(1 / a).vote(weights, threshold)
        wins = ((1 - table) @ weights >= threshold) * mu
        assert math.isclose(won, wins.sum(), rel_tol=1e-13, abs_tol=1e-300)
        np.testing.assert_allclose(kept, wins @ (1 - table), rtol=1e-13)
        np.testing.assert_allclose(changed, wins @ table, rtol=1e-13)
