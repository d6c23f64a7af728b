"""What must hold between the levels of any law."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deniable.laws import BoundedLaw, Law, PatternTable, ProductLaw
from deniable.mechanism import privacy
from laws import brute_force as oracle
from laws import strategies

levels = st.floats(1e-6, 60)


@given(strategies.sizes().flatmap(strategies.monotone_tables))
def test_levels_of_a_monotone_law_are_ordered_alone_given_rest_record_sum(
    law: PatternTable,
) -> None:
    whole = privacy.record_epsilon(law)
    alone = privacy.attribute_epsilon(law)
    given_rest = privacy.epsilon_given_rest(law)
    for single, rest in zip(alone, given_rest, strict=True):
        assert 0 < single <= rest <= whole
    assert whole <= privacy.compose(given_rest)


@given(strategies.sizes().flatmap(strategies.laws))
def test_seeing_more_columns_never_lowers_the_level(law: Law) -> None:
    k = len(law.n_categories)
    known = {chosen: privacy.record_epsilon(law, chosen) for chosen in oracle.subsets(k)}
    assert known[()] == 0
    assert known[tuple(range(k))] == privacy.record_epsilon(law)
    for chosen, level in known.items():
        for more, more_level in known.items():
            if set(chosen) <= set(more):
                # Bounds are computed column set by column set, each with its own rounding.
                slack = 1e-13 * (1 + more_level) if isinstance(law, BoundedLaw) else 0.0
                assert level <= more_level + slack


@given(st.lists(st.tuples(st.integers(2, 10_000), levels), min_size=1, max_size=8))
def test_a_product_law_from_levels_is_never_above_the_request_and_within_a_billionth(
    wanted: list[tuple[int, float]],
) -> None:
    sizes, requested = zip(*wanted, strict=True)
    law = ProductLaw.from_levels(sizes, requested)
    assert law.n_categories == sizes
    for achieved, request in zip(privacy.attribute_epsilon(law), requested, strict=True):
        assert request - 1e-9 <= achieved <= request
        assert achieved == pytest.approx(request, rel=1e-9)
    assert privacy.epsilon_given_rest(law) == privacy.attribute_epsilon(law)
    total = privacy.record_epsilon(law)
    assert (
        total
        <= privacy.compose(privacy.attribute_epsilon(law))
        <= math.fsum(requested) * (1 + 1e-15)
    )


@given(st.integers(2, 10_000), st.floats(1e-300, 1e-6))
@example(4, 2.0**-70)
@example(4, 2.0**-150)
@example(2, 2.0**-900)
def test_a_product_law_keeps_even_a_vanishing_level_and_never_overstates_it(
    n: int, level: float
) -> None:
    law = ProductLaw.from_levels([n], [level])
    (achieved,) = privacy.attribute_epsilon(law)
    assert level * (1 - 1e-9) <= achieved <= level
    assert law.attenuations()[0] > 0


@pytest.mark.slow
@given(st.sampled_from([2, 3, 7, 10_000]), st.floats(60, 2000))
def test_a_product_law_keeps_a_level_far_beyond_what_a_double_can_exponentiate(
    n: int, level: float
) -> None:
    (achieved,) = privacy.attribute_epsilon(ProductLaw.from_levels([n], [level]))
    assert level - 1e-9 <= achieved <= level


@given(st.integers(1, 5), st.data())
def test_a_pattern_table_from_probabilities_keeps_their_ratios(k: int, data: st.DataObject) -> None:
    exponent = st.floats(-200, 0)
    logs = data.draw(st.lists(exponent, min_size=1 << k, max_size=1 << k))
    wanted = np.exp(np.array(logs))
    law = PatternTable.from_probabilities([2] * k, wanted.reshape((2,) * k))
    top = int(np.argmax(wanted))
    for weight, probability in zip(law.weights, wanted, strict=True):
        ratio = weight / law.weights[top]
        assert ratio == pytest.approx(probability / wanted[top], rel=1e-12)


@given(st.lists(st.floats(0, 1e300, allow_subnormal=True), max_size=6))
@example([1e-6])  # its decimal expansion has more than sixty digits
@example([1.0, 1e-200])
def test_composing_levels_rounds_the_exact_sum_up(parts: list[float]) -> None:
    exact = sum((Fraction(part) for part in parts), Fraction(0))
    total = privacy.compose(parts)
    assert Fraction(total) >= exact
    below = math.nextafter(total, -math.inf)
    assert Fraction(below) < exact or exact == 0


def test_a_ratio_of_one_is_level_zero_and_no_bound_is_infinite() -> None:
    assert privacy.epsilon_of([]) == 0
    assert privacy.epsilon_of([(7, 7), (3, 3)]) == 0
    assert privacy.epsilon_of(math.inf) == math.inf
    assert privacy.compose([]) == 0
    assert privacy.compose([1.0, math.inf]) == math.inf
