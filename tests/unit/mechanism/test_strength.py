"""The strength of a mechanism, against the rows of its whole matrix."""

import math

import numpy as np
import pytest

from deniable.laws import (
    Identity,
    MatrixChannel,
    PatternTable,
    ProductLaw,
)
from deniable.laws.bistochastic import bistochastic_channel
from deniable.laws.entropy import entropy_rate
from deniable.laws.votes.gated import GatedSum
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.strength import mechanism_strength
from laws import brute_force as oracle
from unit.dense import anonymous
from unit.laws.test_entropy import rate_of


def test_the_joint_strength_of_a_mechanism_is_that_of_its_kronecker_product() -> None:
    matrix = np.array([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]])
    mechanism = anonymous(
        (3, 2, 2, 3),
        Block((3, 1), PatternTable((3, 2), 8, (200, 30, 20, 6))),
        Block((0,), bistochastic_channel(matrix)),
        Block((2,), ProductLaw((2,), 8, (200,))),
    )
    found = mechanism_strength(mechanism)
    expected = rate_of(oracle.channel_of_mechanism(mechanism))
    assert found.entropy == pytest.approx(expected, rel=1e-12)
    assert found.strength == pytest.approx(expected / math.log2(36), rel=1e-12)
    assert found.attribute_strength[0] == pytest.approx(entropy_rate(matrix) / math.log2(3))
    assert found.attenuation[0] is None
    assert found.attenuation[2] == pytest.approx(2 * 200 / 256 - 1)


def test_attributes_released_as_they_are_have_strength_zero_and_do_not_count_in_the_joint() -> None:
    mechanism = anonymous(
        (2, 5), Block((0,), ProductLaw((2,), 8, (200,))), Block((1,), Identity((5,))), keep=(1,)
    )
    found = mechanism_strength(mechanism)
    assert found.attribute_strength[1] == 0
    assert found.strength == found.attribute_strength[0]
    assert found.attenuation[1] == 1


def test_a_matrix_that_is_not_bistochastic_has_no_strength_and_says_so() -> None:
    matrix = MatrixChannel((2,), 4, ((14, 3), (2, 13)))
    mechanism = anonymous((2, 2), Block((0,), matrix), Block((1,), ProductLaw((2,), 8, (200,))))
    found = mechanism_strength(mechanism)
    assert found.attribute_strength[0] is None
    assert found.strength is None
    assert found.attribute_strength[1] is not None
    assert "only if it is bistochastic" in found.not_computed


def test_a_vote_over_many_attributes_has_no_strength_of_the_record_and_says_why() -> None:
    k = 21
    ones = np.ones(k)
    law = GatedSum((2,) * k, ones.astype(np.int64), 0 * ones, "vote", 12.0, 1.0, 1.0, ones)
    found = mechanism_strength(Mechanism.of(law))
    assert found.strength is None
    assert "for up to 20 attributes, not for 21" in found.not_computed
    assert None not in found.attribute_strength
