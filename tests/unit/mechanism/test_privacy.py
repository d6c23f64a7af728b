"""Logarithms of exact ratios, rounded up."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deniable.laws import (
    GatedSum,
    Identity,
    MatrixChannel,
    PatternTable,
    ProductLaw,
    VoteBlend,
)
from deniable.laws.votes import vote_law
from deniable.mechanism import privacy
from laws.brute_force import is_rounded_up, true_logarithm

wide = st.integers(1, 1 << 900)


@given(wide, wide)
@example(1 << 2000, 1)
@example((1 << 2000) - 1, 1)
@example((1 << 256) + 1, 1 << 256)
@example((1 << 300) + 1, 1 << 300)
@example((1 << 61) + 1, 1 << 61)
@example((1 << 890) + (1 << 820) + 1, 1 << 890)
@example(3, 2)
@example(5, 5)
def test_a_level_is_never_below_the_logarithm_and_at_most_one_ulp_above(a: int, b: int) -> None:
    high, low = max(a, b), min(a, b)
    assert is_rounded_up(privacy.epsilon_of([(high, low)]), Fraction(high, low))


@given(st.lists(st.tuples(st.integers(1, 1 << 200), st.integers(0, 1 << 200)), max_size=6))
def test_the_level_of_several_factors_is_rounded_once(parts: list[tuple[int, int]]) -> None:
    ratios = [(low + more, low) for low, more in parts]
    exact = math.prod((Fraction(*ratio) for ratio in ratios), start=Fraction(1))
    assert is_rounded_up(privacy.epsilon_of(ratios), exact)


@given(wide, wide)
@example((1 << 890) + 1, 1 << 890)
@example((1 << 890) + (1 << 835), 1 << 890)
def test_the_bound_before_rounding_to_a_float_is_above_the_logarithm(a: int, b: int) -> None:
    if a == b:
        return
    bound = Fraction(privacy._log_ratio((max(a, b), min(a, b))))
    true = Fraction(true_logarithm(Fraction(max(a, b), min(a, b))))
    assert true <= bound <= true * (1 + Fraction(1, 10**40))


def test_the_bounds_of_ln_2_lie_on_both_sides_of_it() -> None:
    true = true_logarithm(Fraction(2))
    assert privacy._LN_2_BELOW < true < privacy._LN_2_ABOVE
    assert Decimal("1e-58") > privacy._LN_2_ABOVE - privacy._LN_2_BELOW


def test_a_block_alone_keeps_its_level_to_the_last_bit_when_composed() -> None:
    for level in (1e-6, 1e-300, 0.1, 3.0, 710.5):
        assert privacy.compose([level]) == level


def test_composing_never_rounds_down_and_does_not_depend_on_the_order() -> None:
    parts = [0.1] * 10 + [1e-20] * 3
    assert Fraction(privacy.compose(parts)) >= sum(map(Fraction, parts))
    assert privacy.compose(parts) == privacy.compose(parts[::-1])
    assert privacy.compose([1.0, 1e-300]) == math.nextafter(1.0, 2)


def test_an_unbounded_law_has_infinite_levels_and_none_without_columns() -> None:
    for law in (Identity((2,)), MatrixChannel((2,), 1, ((2, 0), (0, 2)))):
        assert privacy.record_epsilon(law) == math.inf
        assert privacy.attribute_epsilon(law) == (math.inf,)
        assert privacy.epsilon_given_rest(law) == (math.inf,)
        assert privacy.record_epsilon(law, ()) == 0


def test_binary_response_with_odds_of_three_to_one_has_the_level_ln_3() -> None:
    law = ProductLaw((2,), 2, (3,))
    assert privacy.record_epsilon(law) == pytest.approx(math.log(3), rel=1e-15)
    assert privacy.attribute_epsilon(law) == (privacy.record_epsilon(law),)


def test_a_pattern_law_can_promise_much_less_to_those_who_know_the_rest() -> None:
    # f(∅) = 8, all else 1: a vote that either attribute decides.
    law = PatternTable((2, 2), 64, ((1 << 64) - 3 * (1 << 60), *[1 << 60] * 3))
    alone, rest = privacy.attribute_epsilon(law), privacy.epsilon_given_rest(law)
    assert rest[0] == rest[1] == privacy.record_epsilon(law) == pytest.approx(math.log(13))
    assert alone[0] == pytest.approx(math.log(7))


@pytest.mark.parametrize("k", [12, 40, vote_law.MOST_LOOKED_AT + 1])
def test_a_bound_that_an_output_comes_near_to_is_no_at_most_and_of_too_many_it_is(k: int) -> None:
    """One vote is pivotal for every attribute, whatever the others weigh."""
    ones = np.ones(k)
    weights = np.arange(1, k + 1)
    law = GatedSum((3,) * k, weights, 0 * ones, "vote", float(weights.sum() // 2), 1, 2.0, ones)
    assert privacy.epsilon_given_rest(law) == pytest.approx([2.0] * k)
    few = k <= vote_law.MOST_LOOKED_AT
    assert privacy.given_rest_at_most(law) == (not few,) * k
    floors = law.given_rest_floors()
    assert floors == pytest.approx([2.0] * k if few else [0.0] * k)


def test_no_floor_of_many_attributes_is_above_the_level_and_a_loose_bound_is_called_one() -> None:
    # The second part rises by 30 nats with every attribute but the first, and is next to nothing
    # beside the first part, whatever is kept.
    k = 12
    ones, zeros = np.ones(k), np.zeros(k)
    first = np.eye(k, dtype=np.int64)[0]
    steep = GatedSum((2,) * k, first, zeros, "vote", 0, 1, 30.0, ones)
    flat = GatedSum((2,) * k, 1 - first, zeros, "vote", k - 2, 1, 30.0, ones)
    law = VoteBlend((steep, flat), np.array([1.0, 1e-25]), ones)
    floors = law.given_rest_floors()
    for level, floor in zip(privacy.epsilon_given_rest(law), floors, strict=True):
        assert floor <= level
    assert privacy.given_rest_at_most(law) == (False, *(True,) * (k - 1))
