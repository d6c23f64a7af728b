"""The least pair ratio against the enumerated law."""

import itertools

import numpy as np
import pytest

from deniable.laws.votes.pairs import least_pair_ratio
from unit.laws.votes import whole_law as oracle


@pytest.mark.parametrize("kind", [oracle.random_sum, oracle.random_mixture, oracle.random_blend])
@pytest.mark.parametrize("seed", range(10))
def test_the_least_pair_ratio_equals_the_enumerated_law(kind, seed: int) -> None:
    law = kind(seed)
    a, k, q = law.n_categories.tolist(), law.n_attributes, oracle.pattern_law(law)
    single = [oracle.attenuation(a, q, (i,)) for i in range(k)]
    if np.min(np.abs(single)) < 1e-6:
        return
    ratios = [
        oracle.attenuation(a, q, (i, j)) / (single[i] * single[j])
        for i, j in itertools.combinations(range(k), 2)
    ]
    assert least_pair_ratio(law) == pytest.approx(min(ratios, default=1.0), rel=1e-6, abs=1e-6)


def test_many_attributes_are_represented_by_their_extremes() -> None:
    random = np.random.default_rng(1)
    k = 70
    law = oracle.GatedSum(
        random.integers(2, 9, k),
        np.sort(random.integers(50, 200, k)),
        np.zeros(k),
        "vote",
        3500.0,
        1.0,
        6.0,
        np.ones(k),
    )
    moments = law.moments()
    single = moments.gain / (1 - law.uniform_keep)
    every = np.nanmin(law.pair_attenuations() / np.outer(single, single))
    assert least_pair_ratio(law) == pytest.approx(every, rel=0.02)
