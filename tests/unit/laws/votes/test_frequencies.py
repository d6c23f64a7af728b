"""All pairs at once, by Fourier inversion, against sums over all patterns and pair by pair."""

import numpy as np
import pytest

from deniable.laws.votes import gated
from deniable.laws.votes.gated import GatedSum, on_grid
from deniable.laws.votes.sums import SumLaw
from unit.laws.votes import whole_law as oracle


@pytest.mark.parametrize("seed", range(8))
def test_pairs_are_those_of_the_enumerated_law_within_the_stated_error(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = oracle.random_sum(seed, 5)
    if not isinstance(law.tilted[0], SumLaw):
        return
    monkeypatch.setattr(gated, "PAIR_BY_PAIR", 0)
    pairs, wrong = law.bounded_pair_attenuations()
    q = oracle.pattern_law(law)
    for i in range(law.n_attributes):
        for j in range(i):
            expected = oracle.attenuation(law.n_categories, q, (i, j))
            assert abs(pairs[i, j] - expected) <= wrong + 1e-14
    assert wrong < 1e-11


def test_of_many_attributes_the_least_ratio_is_that_of_all_pairs() -> None:
    random = np.random.default_rng(0)
    k = 66
    slopes = random.uniform(0.4, 4.0, k)
    whole, dither = on_grid(slopes * 40.0)
    counts = tuple(np.exp(random.uniform(0.7, 3.9, k)).astype(int).tolist())
    odds = np.exp(0.6 * slopes) / (np.array(counts) - 1)
    top = float((slopes * 40.0) @ (odds / (1 + odds))) + 40.0
    law = GatedSum(counts, whole, dither, "ramp", top - 900.0, 900.0, 22.5, np.ones(k))
    # Pair by pair, as up to 64 attributes.
    sums, _, _, log_factor = law.tilted
    assert isinstance(sums, SumLaw)
    every = sums.pair_expectations(law.weighted_excess(), np.ones(k), -1.0 / (law.counts - 1))
    every *= np.exp(log_factor - law.moments().log_normalizer)
    np.fill_diagonal(every, np.nan)
    pairs, wrong = law.bounded_pair_attenuations()
    assert np.nanmax(np.abs(pairs - every)) <= wrong < 1e-10
    single = law.attenuations()
    least = float(np.nanmin(every / np.outer(single, single)))
    assert least - 1e-6 < law.least_pair_ratio() <= least
    # The pairs of extreme and middle weights, which are looked at beyond, do not show the worst.
    order = np.argsort(law.attribute_weights)
    some = order[[0, 1, k // 2, k // 2 + 1, -2, -1]]
    ratios = (every / np.outer(single, single))[np.ix_(some, some)]
    assert np.nanmin(ratios) > least
