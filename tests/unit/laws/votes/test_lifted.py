"""Every answer of a lifted ramp against the enumerated law."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws.votes import lifted
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.lifted import LiftedRamp
from deniable.randomness import SeededRandomness
from unit.laws.votes import whole_law as oracle


def test_a_lift_raises_its_pair_and_leaves_the_caps_of_all_others() -> None:
    ones = np.ones(5)
    weights = np.array([6, 6, 5, 5, 5])
    ramp = GatedSum((9, 9, 2, 2, 2), weights, 0 * ones, "ramp", 10.0, 10.0, 2.0, ones)
    lifted = LiftedRamp(ramp, (0, 1), 1.1, ones)
    assert ramp.least_pair_ratio() < 0.64 < 0.72 < lifted.least_pair_ratio()
    np.testing.assert_array_equal(lifted.given_rest(), ramp.given_rest())
    np.testing.assert_allclose(lifted.given_rest(), [1.2, 1.2, 1.0, 1.0, 1.0])
    higher = replace(lifted, lift=1.3).given_rest()
    np.testing.assert_allclose(higher, [1.3, 1.3, 1.0, 1.0, 1.0])
    assert lifted.record_level() == pytest.approx(2.0)
    assert lifted.at_height(1.5).record_level() == pytest.approx(1.5)


@pytest.mark.parametrize("width", [0.5, 1.0])
def test_a_pair_on_a_ramp_as_steep_as_a_step_has_a_finite_level(width: float) -> None:
    """e to what one unit of the sum adds is beyond every double."""
    weights, ones = np.array([0, 5, 20, 20]), np.ones(4)
    ramp = GatedSum((9, 9, 2, 2), weights, 0.5 * ones, "ramp", 20.25, width, 640.0, ones)
    law = LiftedRamp(ramp, (0, 1), 320.0, ones)
    np.testing.assert_allclose(law.given_rest(), 640.0, atol=1.0)
    assert law.sampler().draws(law)


@pytest.mark.parametrize("lift", [0.5, 0.55, 0.7])
def test_dither_moves_the_level_of_a_pair_where_the_lift_is_between_two_slopes(lift: float) -> None:
    """The larger of the lift and the ramp's own bound would be below the truth."""
    ones, dither = np.ones(3), np.array([0.5, 0.0, 0.0])
    weights = np.array([4, 4, 4])
    ramp = GatedSum((40, 50, 3), weights, dither, "ramp", 8.0, 16.0, 2.0, ones)
    law = LiftedRamp(ramp, (0, 1), lift, ones)
    exact = oracle.given_rest(law.n_categories, oracle.pattern_law(law))
    assert exact[0] == pytest.approx(law.given_rest()[0], abs=1e-12)
    assert (exact[0] > max(ramp.given_rest()[0], lift) + 0.01) == (lift == 0.55)


def test_levels_of_a_hundred_nats_are_stated_as_closely_as_small_ones() -> None:
    ones = np.ones(14)
    ramp = GatedSum(
        (1000,) * 14, np.arange(200, 214), 0.5 * ones, "ramp", 700.0, 2100.0, 100.0, ones
    )
    law = LiftedRamp(ramp, (2, 9), 95.0, ones)
    assert law._others_sum[0].dropped > 0.0
    kept, changed = law.sampler()._patterns.fates()
    drawn = np.log(kept) + math.log(999.0) - np.log(changed)
    np.testing.assert_allclose(law.attribute_levels(), drawn, atol=1e-10)
    assert law.sampler().draws(law)


def test_two_attributes_alone_can_be_the_pair() -> None:
    ramp = GatedSum((3, 4), np.array([2, 3]), np.zeros(2), "ramp", 5.0 - 1.0, 1.0, 2.0, np.ones(2))
    with pytest.raises(InputError, match="where only the pair is kept"):
        LiftedRamp(ramp, (0, 1), 1.0, np.ones(2))
    softer = GatedSum((3, 4), np.array([2, 3]), np.zeros(2), "ramp", 4.0, 2.0, 2.0, np.ones(2))
    law = LiftedRamp(softer, (0, 1), 1.5, np.ones(2))
    q = oracle.pattern_law(law)
    np.testing.assert_allclose(law.moments().keep, q @ (1 - oracle.patterns(2)), rtol=1e-13)
    assert law.sampler().draws(law)


@pytest.mark.parametrize("seed", range(8))
def test_pairs_by_frequencies_are_those_of_the_enumerated_law_within_the_stated_error(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of more than 64 attributes."""
    law = oracle.random_lift(seed)
    monkeypatch.setattr(lifted, "PAIR_BY_PAIR", 0)
    pairs, wrong = law.bounded_pair_attenuations()
    q = oracle.pattern_law(law)
    for i, j in itertools.combinations(range(law.n_attributes), 2):
        exact = oracle.attenuation(law.n_categories, q, (i, j))
        assert abs(pairs[i, j] - exact) <= wrong + 1e-14
    assert wrong < 1e-11


def test_a_hundred_attributes_are_drawn_as_stated() -> None:
    random = np.random.default_rng(4)
    k = 100
    ramp = GatedSum(
        tuple(random.integers(2, 30, k).tolist()),
        random.integers(10, 90, k),
        random.random(k),
        "ramp",
        1500.0,
        1200.0,
        6.0,
        np.ones(k),
    )
    retention = np.where(np.arange(k) < 3, 0.9, 1.0)
    law = LiftedRamp(ramp, (7, 60), 0.4, retention)
    assert law.sampler().draws(law)
    changed = [each.mean() for each in law.sampler()._patterns.walk(20_000, SeededRandomness(3))]
    bare = replace(law, retention=np.ones(k))
    np.testing.assert_allclose(changed, bare.moments().change, atol=0.025)
    subset = [7, 30, 60, 99]
    direct = law.eigenvalues(subset)
    assert direct[1, 0, 1, 0] == pytest.approx(law.pair_attenuation(7, 60), abs=1e-12)
    assert direct[0, 1, 0, 1] == pytest.approx(law.pair_attenuations()[30, 99], abs=1e-12)


def test_what_lifts_nothing_or_does_not_fit_is_refused() -> None:
    law = oracle.random_lift(1)
    ramp, ones = law.ramp, np.ones(law.n_attributes)
    for other, pair, lift, retention, sentence in (
        (replace(ramp, gate="vote", width=1.0, start=1.0), law.pair, law.lift, ones, "is a ramp"),
        (replace(ramp, retention=0.5 * ones), law.pair, law.lift, ones, "without retention"),
        (ramp, (1, 0), law.lift, ones, "smaller position first"),
        (ramp, (0, law.n_attributes), law.lift, ones, "smaller position first"),
        (ramp, law.pair, ramp.height, ones, "below its end"),
        (ramp, law.pair, 0.0, ones, "above what it is"),
        (ramp, law.pair, math.nan, ones, "above what it is"),
        (ramp, law.pair, law.lift, ones[1:], "one per attribute"),
        (ramp, law.pair, law.lift, 0 * ones, "retention"),
    ):
        with pytest.raises(InputError, match=sentence):
            LiftedRamp(other, pair, lift, retention)
