"""RS+FD as a pattern law: levels and attenuations against the definition, record by record."""

import math
from itertools import product

import numpy as np
import pytest

from deniable.laws.response import keep_probability
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Schema
from deniable_studies.beyond.baselines import (
    amplified_epsilon,
    fake_data_attenuation,
    fake_data_given_rest,
    fake_data_law,
)


def released(n_categories: tuple[int, ...], answer_epsilon: float, record: tuple[int, ...]):
    """Probabilities of every output for one record, from the words of the method."""
    k = len(n_categories)
    outputs = np.zeros(n_categories)
    for drawn, output in product(range(k), product(*map(range, n_categories))):
        chance = 1 / k
        for i, a in enumerate(n_categories):
            p = keep_probability(a, answer_epsilon)
            if i != drawn:
                chance /= a
            elif output[i] == record[i]:
                chance *= p
            else:
                chance *= (1 - p) / (a - 1)
        outputs[output] += chance
    return outputs


def mechanism(n_categories: tuple[int, ...], answer_epsilon: float) -> Mechanism:
    law = fake_data_law(n_categories, answer_epsilon)
    return Mechanism.of(law)


@pytest.mark.parametrize("n_categories", [(3, 3), (2, 3, 4)])
def test_the_law_is_the_method_as_it_is_described(n_categories: tuple[int, ...]) -> None:
    channel = Channel(mechanism(n_categories, 1.3), tuple(Schema.anonymous(n_categories).names))
    for record in product(*map(range, n_categories)):
        unit = np.zeros(n_categories)
        unit[record] = 1
        expected = released(n_categories, 1.3, record)
        np.testing.assert_allclose(channel.forward.apply(unit), expected, atol=1e-14)


@pytest.mark.parametrize("n_categories", [(3, 3), (2, 3, 4)])
def test_its_level_for_a_record_is_that_of_the_one_answer(n_categories: tuple[int, ...]) -> None:
    rows = [
        released(n_categories, 1.3, record).ravel() for record in product(*map(range, n_categories))
    ]
    worst = max(np.log(np.max(a / b)) for a in rows for b in rows)
    assert worst == pytest.approx(1.3, abs=1e-12)
    assert mechanism(n_categories, 1.3).epsilon == pytest.approx(1.3, abs=1e-12)


@pytest.mark.parametrize(("k", "a", "epsilon"), [(2, 3, 1.0), (4, 5, 0.3), (6, 2, 4.0)])
def test_amplified_it_keeps_the_stated_level_only_against_those_who_know_the_rest(
    k: int, a: int, epsilon: float
) -> None:
    answer = amplified_epsilon(k, epsilon)
    assert answer == pytest.approx(math.log(k * (math.exp(epsilon) - 1) + 1), rel=1e-13)
    accounted = mechanism((a,) * k, answer)
    assert accounted.epsilon == pytest.approx(answer, abs=1e-9)
    assert accounted.epsilon > epsilon + 0.1
    for given_rest in accounted.epsilon_given_rest:
        assert given_rest == pytest.approx(epsilon, abs=1e-9)
    assert fake_data_given_rest(k, answer) == pytest.approx(epsilon, rel=1e-12)


def test_a_marginal_keeps_a_part_in_k_and_a_pair_nothing() -> None:
    eigenvalues = Channel(mechanism((4, 4, 4), 2.0), ("a1", "a2")).forward.eigenvalues
    expected = fake_data_attenuation(3, 4, 2.0)
    np.testing.assert_allclose([eigenvalues[1, 0], eigenvalues[0, 1]], expected, rtol=1e-12)
    assert abs(eigenvalues[1, 1]) < 1e-15
