"""Invariant PRAM as a law: its matrix, draws and inverse, what it promises, its plain values."""

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
from deniable.randomness import SeededRandomness
from laws import strategies


def lambda_matrix(n: int, attenuation: float) -> MatrixChannel:
    return bistochastic_channel(attenuation * np.eye(n) + (1 - attenuation) / n)


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
def channels(draw: st.DrawFn, least_alpha: float = 0.01) -> InvariantChannel:
    n = draw(st.integers(2, 5))
    columns = [draw(strategies.compositions(n, 1 << 16)) for _ in range(n)]
    try:
        base = MatrixChannel((n,), 16, tuple(zip(*columns, strict=True)))
    except InputError:  # singular
        base = lambda_matrix(n, 0.5)
    counts = draw(st.lists(st.integers(0, 10**6), min_size=n, max_size=n).filter(any))
    return InvariantChannel(base, tuple(counts), draw(st.floats(least_alpha, 1).filter(bool)))


@st.composite
def lambda_channels(draw: st.DrawFn) -> InvariantChannel:
    n = draw(st.integers(2, 6))
    attenuation = draw(st.floats(0.1, 0.95))
    counts = draw(st.lists(st.integers(0, 500), min_size=n, max_size=n).filter(any))
    base = lambda_matrix(n, attenuation)
    return InvariantChannel(base, tuple(counts), draw(st.floats(0.01, 1)))


@given(channels(least_alpha=0))
def test_the_expected_marginal_is_the_originals_exactly(response: InvariantChannel) -> None:
    matrix = exact_matrix(response)
    n = len(response.counts)
    for x in range(n):
        assert sum(matrix[y][x] for y in range(n)) == 1
    for y in range(n):
        expected = sum(matrix[y][x] * response.counts[x] for x in range(n))
        assert expected == response.counts[y]


@given(channels(least_alpha=0))
def test_the_matrix_in_floating_point_is_the_exact_one(response: InvariantChannel) -> None:
    exact = np.array([[float(entry) for entry in row] for row in exact_matrix(response)])
    np.testing.assert_allclose(response.matrix(), exact, rtol=1e-12, atol=1e-15)


@given(channels(least_alpha=0))
def test_the_exact_matrix_is_the_two_stages_written_out(response: InvariantChannel) -> None:
    n = len(response.counts)
    answer = [[Fraction(w, 1 << response.base.bits) for w in row] for row in response.base.weights]
    seen = [sum(answer[y][x] * response.counts[x] for x in range(n)) for y in range(n)]
    alpha, exact = Fraction(response.alpha), exact_matrix(response)
    for x in range(n):
        for back in range(n):
            two_stages = sum(
                answer[y][x] * answer[y][back] * response.counts[back] / seen[y] for y in range(n)
            )
            stay = (1 - alpha) if x == back else 0
            assert exact[back][x] == alpha * two_stages + stay


def test_draws_follow_the_matrix_whatever_the_category() -> None:
    base = MatrixChannel((3,), 4, ((8, 2, 1), (4, 12, 5), (4, 2, 10)))
    response = InvariantChannel(base, (50, 10, 140), 0.7)
    sampler, source = response.sampler(), SeededRandomness(5)
    count = 60_000
    for x in range(3):
        (drawn,) = sampler.randomize([np.full(count, x, dtype=np.uint8)], source)
        expected = response.matrix()[:, x]
        observed = np.bincount(drawn, minlength=3) / count
        errors = (observed - expected) / np.sqrt(expected * (1 - expected) / count)
        assert np.abs(errors).max() < 5


def test_the_average_of_many_releases_has_the_originals_marginal_and_one_release_nearly() -> None:
    random = np.random.default_rng(3)
    codes = random.choice(4, size=5000, p=[0.7, 0.2, 0.06, 0.04]).astype(np.uint8)
    response = InvariantChannel.for_codes(lambda_matrix(4, 0.3), codes)
    original = np.bincount(codes, minlength=4)
    sampler, source = response.sampler(), SeededRandomness(8)
    totals = np.zeros(4)
    for _ in range(60):
        (drawn,) = sampler.randomize([codes], source)
        assert (drawn != codes).mean() > 0.1
        totals += np.bincount(drawn, minlength=4)
    matrix = response.matrix()
    spread = np.sqrt((matrix * (1 - matrix)) @ original / 60)
    assert np.abs((totals / 60 - original) / spread).max() < 4
    # Plain PRAM with the same matrix would move them to where no invariant release is.
    moved = lambda_matrix(4, 0.3).matrix() @ original
    assert np.abs((moved - original) / spread).max() > 100


def test_a_category_that_nobody_has_is_never_reported() -> None:
    codes = np.array([0, 0, 1, 1, 1], dtype=np.uint8).repeat(400)
    response = InvariantChannel.for_codes(lambda_matrix(3, 0.2), codes)
    (drawn,) = response.sampler().randomize([codes], SeededRandomness(2))
    assert set(drawn.tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("base", "counts", "alpha", "words"),
    [
        (lambda_matrix(3, 0.5), (1, 2), 1.0, "one count per category"),
        (MatrixChannel((2,), 3, ((7, 1), (1, 4), (0, 3))), (1, 2), 1.0, "square"),
        (MatrixChannel((2,), 3, ((8, 1), (0, 7))), (1, 2), 1.0, "above 0 everywhere"),
        (lambda_matrix(2, 0.5), (0, 0), 1.0, "at least one record"),
        (lambda_matrix(2, 0.5), (3, -1), 1.0, "at least one record"),
        (lambda_matrix(2, 0.5), (3, 1), 0.0, "α of invariant PRAM"),
        (lambda_matrix(2, 0.5), (3, 1), 1.5, "α of invariant PRAM"),
    ],
)
def test_an_invariant_response_that_makes_no_sense_is_refused(
    base: MatrixChannel, counts: tuple[int, ...], alpha: float, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        InvariantChannel(base, counts, alpha)


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
        ({"base": None}, "Expected `object`"),
        ({"counts": 3}, "Expected `array`"),
        ({"counts": [1, "2"]}, "Expected `int`"),
        ({"counts": [1, True]}, "Expected `int`"),
        ({"counts": [1, 2, 3]}, "one count per category"),
        ({"share": "1"}, "Expected `float`"),
        ({"share": 2.0}, "α of invariant PRAM"),
    ],
)
def test_plain_values_that_are_no_such_law_are_refused(
    change: dict[str, object], words: str
) -> None:
    law = InvariantChannel(lambda_matrix(2, 0.5), (3, 4))
    with pytest.raises(InputError, match=words):
        law_from_plain({**law.to_plain(), **change}, (2,))
