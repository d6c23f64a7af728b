"""The joint law beyond what brute force reaches: huge products, its levels, its sampler."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.laws import (
    ProductLaw,
    joint_of_attenuation,
    joint_of_epsilon,
    law_from_plain,
)
from deniable.mechanism import privacy
from deniable.randomness import SeededRandomness

shapes = st.lists(st.integers(2, 30), min_size=1, max_size=60).map(tuple)
shares = st.one_of(st.floats(1e-6, 1 - 1e-6), st.floats(1, 14).map(lambda d: 1 - 10**-d))


@given(shapes, st.floats(-20, 4).map(math.exp))
def test_a_level_is_never_exceeded_and_met_to_a_billionth_however_many_records(
    sizes: tuple[int, ...], epsilon: float
) -> None:
    law = joint_of_epsilon(sizes, epsilon)
    achieved = privacy.record_epsilon(law)
    assert epsilon * (1 - 1e-12) <= achieved <= epsilon


@given(shapes, shares)
def test_lambda_is_never_exceeded_and_met_to_rounding_however_many_records(
    sizes: tuple[int, ...], attenuation: float
) -> None:
    law = joint_of_attenuation(sizes, attenuation)
    records = math.prod(sizes)
    keep = Fraction(law.densities[0], law.total)
    exact = (records * keep - 1) / (records - 1)
    assert exact <= Fraction(attenuation)
    assert 1 - exact == pytest.approx(float(1 - Fraction(attenuation)), rel=1e-12)
    assert law.attenuations() == pytest.approx(attenuation, rel=1e-13)


@given(shapes, shares)
def test_an_attributes_own_level_is_that_of_k_ary_response_at_the_same_lambda(
    sizes: tuple[int, ...], attenuation: float
) -> None:
    law = joint_of_attenuation(sizes, attenuation)
    for n, level in zip(sizes, privacy.attribute_epsilon(law), strict=True):
        expected = math.log1p(n * (attenuation / (1 - attenuation)))
        assert level == pytest.approx(expected, rel=1e-9)
    assert set(privacy.epsilon_given_rest(law)) == {privacy.record_epsilon(law)}


def test_a_vanishing_level_is_kept_and_never_overstated() -> None:
    for epsilon in (5e-324, 1e-200, 1e-17):
        achieved = privacy.record_epsilon(joint_of_epsilon((3, 4), epsilon))
        assert epsilon * (1 - 1e-9) <= achieved <= epsilon


def test_one_attribute_under_the_joint_law_is_k_ary_response() -> None:
    joint, single = joint_of_epsilon((7,), 1.3), ProductLaw.from_levels((7,), (1.3,))
    assert privacy.record_epsilon(joint) == pytest.approx(privacy.record_epsilon(single), rel=1e-15)
    assert joint.keep_probabilities() == pytest.approx(single.keep_probabilities(), rel=1e-15)


@pytest.mark.slow
def test_a_thousand_attributes_are_designed_stored_and_drawn() -> None:
    sizes = (5, 2, 9, 3) * 250
    law = joint_of_epsilon(sizes, 8.0)
    assert math.prod(sizes).bit_length() > 2000
    assert law_from_plain(law.to_plain(), sizes) == law
    assert law.attenuations() == pytest.approx(law.attenuations()[0], rel=1e-15)
    columns = [np.zeros(200, dtype=np.uint8) for _ in sizes]
    drawn = law.sampler().randomize(columns, SeededRandomness(1))
    # A record is kept with probability e^8/N: never, here. Attributes are then uniform.
    shares = [float((drawn[i] != 0).mean()) for i in range(1000)]
    expected = np.array([1 - 1 / n for n in sizes])
    assert abs(np.mean(shares - expected)) < 6 * 0.5 / math.sqrt(200 * 1000)
