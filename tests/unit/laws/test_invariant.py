"""Invariant PRAM as a law: its inverse, what it promises, and its plain values."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.laws import InvariantChannel, MatrixChannel, law_from_plain
from deniable.laws.bistochastic import bistochastic_channel
from deniable.mechanism import privacy
from laws import strategies


def exact_matrix(law: InvariantChannel) -> list[list[Fraction]]:
    """αR + (1 − α)I with ``[y][x]`` = Pr[y | x], exactly; shape (a, a)."""
    n = len(law.counts)
    alpha, total = Fraction(law.alpha), 1 << law.base.bits
    matrix = [[(1 - alpha) * (x == y) for x in range(n)] for y in range(n)]
    for back, answered in zip(law.back_weights, law.base.weights, strict=True):
        for x in range(n):
            for y in range(n):
                matrix[y][x] += alpha * Fraction(answered[x] * back[y], total * sum(back))
    return matrix


@st.composite
def channels(draw: st.DrawFn) -> InvariantChannel:
    n = draw(st.integers(2, 5))
    columns = [draw(strategies.compositions(n, 1 << 16)) for _ in range(n)]
    try:
        base = MatrixChannel((n,), 16, tuple(zip(*columns, strict=True)))
    except InputError:  # singular
        base = bistochastic_channel(0.5 * np.eye(n) + 0.5 / n)
    counts = draw(st.lists(st.integers(0, 10**6), min_size=n, max_size=n).filter(any))
    return InvariantChannel(base, tuple(counts), draw(st.floats(0.01, 1)))


@st.composite
def lambda_channels(draw: st.DrawFn) -> InvariantChannel:
    n = draw(st.integers(2, 6))
    attenuation = draw(st.floats(0.1, 0.95))
    counts = draw(st.lists(st.integers(0, 500), min_size=n, max_size=n).filter(any))
    base = bistochastic_channel(attenuation * np.eye(n) + (1 - attenuation) / n)
    return InvariantChannel(base, tuple(counts), draw(st.floats(0.01, 1)))


@given(lambda_channels())
def test_the_inverse_recovers_every_table_of_the_categories_that_occur(
    law: InvariantChannel,
) -> None:
    occurring = np.array(law.counts) > 0
    product = law.left_inverse() @ law.matrix()
    expected = np.diag(occurring.astype(float))
    # What a category that nobody has would become does not matter.
    np.testing.assert_allclose(product[:, occurring], expected[:, occurring], atol=1e-7)
    assert not law.left_inverse()[~occurring].any()


@given(channels())
def test_no_differential_privacy_is_claimed(law: InvariantChannel) -> None:
    assert privacy.record_epsilon(law) == float("inf")
    assert privacy.attribute_epsilon(law) == privacy.epsilon_given_rest(law) == (float("inf"),)
    assert law.record_level([]) == ()


@given(channels())
def test_the_ratio_for_those_who_know_the_frequencies_is_never_below_the_exact_one(
    law: InvariantChannel,
) -> None:
    matrix = exact_matrix(law)
    some = [i for i, count in enumerate(law.counts) if count]
    exact = max(max(matrix[y][x] for x in some) / min(matrix[y][x] for x in some) for y in some)
    stated = Fraction(*law.ratio_if_frequencies_known())
    assert exact <= stated <= exact * (1 + Fraction(1, 10**12))


@given(channels().filter(lambda law: law.alpha == 1.0) | lambda_channels())
def test_the_second_stage_adds_nothing_to_what_the_first_tells(law: InvariantChannel) -> None:
    whole = InvariantChannel(law.base, law.counts)
    first = privacy.record_epsilon(law.base)
    assert privacy.epsilon_of((whole.ratio_if_frequencies_known(),)) <= first * (1 + 1e-9) + 1e-12


@given(channels())
def test_the_keep_probability_is_the_expected_fraction_of_unchanged_records(
    law: InvariantChannel,
) -> None:
    matrix = exact_matrix(law)
    kept = sum(matrix[x][x] * count for x, count in enumerate(law.counts))
    assert law.keep_probabilities()[0] == pytest.approx(float(kept / sum(law.counts)), rel=1e-12)


@given(channels())
def test_a_law_survives_being_written_as_json_and_read_back(law: InvariantChannel) -> None:
    plain = json.loads(json.dumps(law.to_plain()))
    assert law_from_plain(plain, law.n_categories) == law


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"base": None}, "a base matrix"),
        ({"counts": 3}, "a list of counts"),
        ({"counts": [1, "2"]}, "whole numbers"),
        ({"counts": [1, True]}, "whole numbers"),
        ({"counts": [1, 2, 3]}, "one count per category"),
        ({"share": "1"}, "is a number"),
        ({"share": 2.0}, "α of invariant PRAM"),
    ],
)
def test_plain_values_that_are_no_such_law_are_refused(
    change: dict[str, object], words: str
) -> None:
    law = InvariantChannel(bistochastic_channel(0.5 * np.eye(2) + 0.25), (3, 4))
    with pytest.raises(InputError, match=words):
        law_from_plain({**law.to_plain(), **change}, (2,))
