"""Every law against brute force, at every position."""

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable.laws import (
    BoundedLaw,
    Identity,
    Law,
    MatrixChannel,
    PatternLaw,
    PatternTable,
    ProductLaw,
    ScoreTable,
    SingleChangeMixture,
    joint_of_attenuation,
    joint_of_epsilon,
    law_from_plain,
    transforms,
)
from deniable.laws.law import UNBOUNDED, Level
from deniable.mechanism import privacy
from deniable.randomness import SeededRandomness
from laws import brute_force as oracle
from laws import strategies

any_law = strategies.sizes().flatmap(strategies.laws)
any_pattern_law = strategies.sizes().flatmap(
    lambda n: st.one_of(strategies.pattern_laws(n), strategies.bounded_laws(n))
)


def as_fraction(factors: Level) -> Fraction | None:
    """The product of a law's ratios; None if unbounded."""
    if isinstance(factors, float):
        assert factors == UNBOUNDED
        return None
    whole = Fraction(1)
    for numerator, denominator in factors:
        whole *= Fraction(int(numerator), int(denominator))
    return whole


def fixed_laws() -> list[Law]:
    """Hand-made cases at the edges that a random search may miss."""
    third = (1 << 64) // 3
    return [
        ProductLaw((2,), 1, (1,)),  # p = 1/2 with two categories: releases nothing
        ProductLaw((6, 2, 5), 8, (255, 1, 77)),  # keeps less often than by chance in one place
        ProductLaw.from_levels((3, 2, 4), (1e-6, 60.0, 1.0)),
        ProductLaw.from_levels((2, 2, 2, 2), (1.0, 1.0, 1.0, 1.0)),
        PatternTable((4,), 64, (third, (1 << 64) - third)),
        PatternTable((2, 2), 2, (1, 1, 1, 1)),
        PatternTable((3, 2, 2, 3), 64, (*range(1, 16), (1 << 64) - 120)),
        PatternTable((2, 3), 2200, (1, 3, 5, (1 << 2200) - 9)),  # far below the smallest double
        PatternTable((5,), 1100, (1, (1 << 1100) - 1)),
        SingleChangeMixture((5,), 4, 1, 15, (0,)),
        SingleChangeMixture((5,), 4, 1, 0, (15,)),
        SingleChangeMixture((3, 4), 4, 16, 0, (0, 0)),
        SingleChangeMixture((2, 6, 3), 10, 24, 0, (0, 0, 1000)),
        SingleChangeMixture((2, 6, 3), 10, 24, 100, (500, 300, 100)),
        ScoreTable((5,), (3,), (4, 0, 0, 1)),
        ScoreTable((2, 3), (1, 1), (1, 1, 1)),  # releases nothing
        ScoreTable((2, 3, 2), (1, 2, 4), (7, 6, 5, 4, 3, 2, 1, 1 << 2200)),  # changed most often
        ScoreTable((3, 3, 2), (2, 2, 3), (1 << 90, 0, 9, 8, 7, 6, 0, 1)),
        joint_of_attenuation((3, 2, 5), 1e-9),
        joint_of_epsilon((2, 2, 3), 100.0),
        MatrixChannel((2,), 1, ((2, 0), (0, 2))),
        MatrixChannel((2,), 3, ((7, 1), (1, 7), (0, 0))),
        MatrixChannel((2,), 3, ((7, 1), (1, 4), (0, 3))),
        MatrixChannel((3,), 4, ((8, 4, 4), (4, 8, 4), (4, 4, 8))),
        MatrixChannel((2,), 4, ((1, 8), (3, 4), (4, 3), (8, 1))),
        PatternTable((2,), 192, ((1 << 191) + 1, (1 << 191) - 1)),  # a ratio close to one
        Identity((3, 2)),
        Identity((4,)),
    ]


def check_bounds(law: BoundedLaw) -> None:
    """What holds instead of equality: never below brute force, and what can be tight is."""
    channel = oracle.scaled(oracle.channel_of_law(law))
    k = len(law.n_categories)
    # Margins of the bounds, which grow with the gate's height (a blend's level may be far below its
    # highest), and the density of the oracle, which is a float.
    slack = 5e-13 * (1 + max(privacy.record_epsilon(law), getattr(law, "height", 0.0)))

    def logarithm(ratio: Fraction | None) -> float:
        assert ratio is not None
        return float(oracle.true_logarithm(ratio))

    assert privacy.record_epsilon(law) >= logarithm(oracle.record_ratio(channel)) - slack
    for chosen in oracle.subsets(k):
        expected = logarithm(oracle.record_ratio(channel, chosen))
        for order in permutations(chosen) if k < 4 else [chosen, chosen[::-1]]:
            assert -slack <= privacy.record_epsilon(law, order) - expected <= slack
    floors = privacy.attribute_epsilon_floor(law)
    for i in range(k):
        expected = logarithm(oracle.record_ratio(channel, (i,)))
        assert -slack <= privacy.attribute_epsilon(law)[i] - expected <= slack
        assert -slack <= expected - floors[i] <= slack
        assert floors[i] <= privacy.attribute_epsilon(law)[i]
        given_rest = privacy.epsilon_given_rest(law)[i]
        assert given_rest >= logarithm(oracle.given_rest_ratio(channel, i)) - slack
        assert given_rest <= privacy.record_epsilon(law) + slack
        # What some output reveals: of few attributes, the most that any does.
        true = logarithm(oracle.given_rest_ratio(channel, i))
        seen = law.given_rest_floors()
        assert seen is not None
        assert -slack <= true - seen[i] <= slack
        at_most = privacy.given_rest_at_most(law)[i]
        assert at_most == (given_rest > 1.01 * true) or abs(given_rest - 1.01 * true) < slack


def check_ratios(law: Law) -> None:
    if isinstance(law, BoundedLaw):
        check_bounds(law)
        return
    channel = oracle.scaled(oracle.channel_of_law(law))
    k = len(law.n_categories)
    # Whoever sees these columns, asked for in any order.
    whole = oracle.record_ratio(channel)
    assert as_fraction(law.record_level()) == whole
    assert oracle.is_rounded_up(privacy.record_epsilon(law), whole)
    for chosen in oracle.subsets(k):
        expected = oracle.record_ratio(channel, chosen)
        for order in permutations(chosen) if k < 4 else [chosen, chosen[::-1]]:
            assert as_fraction(law.record_level(order)) == expected
            assert oracle.is_rounded_up(privacy.record_epsilon(law, order), expected)
    alone = law.attribute_levels()
    given_rest = law.given_rest_levels()
    assert len(alone) == len(given_rest) == k
    for i in range(k):
        expected = oracle.record_ratio(channel, (i,))
        assert as_fraction(alone[i]) == expected
        assert oracle.is_rounded_up(privacy.attribute_epsilon(law)[i], expected)
        expected = oracle.given_rest_ratio(channel, i)
        assert as_fraction(given_rest[i]) == expected
        assert oracle.is_rounded_up(privacy.epsilon_given_rest(law)[i], expected)


def check_keeping(law: Law) -> None:
    channel = oracle.channel_of_law(law)
    keep = law.keep_probabilities()
    assert keep.shape == (len(law.n_categories),)
    if isinstance(law, MatrixChannel) and len(law.weights) != law.n_categories[0]:
        assert np.isnan(keep).all()
        return
    for i, n in enumerate(law.n_categories):
        exact = oracle.keep_probability(channel, i)
        rounding = 1e-12 if isinstance(law, BoundedLaw) else 0.0
        assert keep[i] == pytest.approx(float(exact), rel=4e-16 * n + rounding, abs=0)
        if isinstance(law, PatternLaw):
            shrink = (n * exact - 1) / (n - 1)
            expected = pytest.approx(float(shrink), rel=1e-15 + rounding, abs=rounding)
            assert law.attenuations()[i] == expected


def check_eigenvalues(law: Law) -> None:
    """On every subset in any order."""
    if not isinstance(law, PatternLaw):
        return
    q = oracle.pattern_probabilities(law)
    k = len(law.n_categories)
    rounding = 1e-13 if isinstance(law, BoundedLaw) else 2e-15
    exact = {
        members: oracle.eigenvalue(q, law.n_categories, members) for members in oracle.subsets(k)
    }
    for chosen in oracle.subsets(k):
        for order in permutations(chosen):
            values = law.eigenvalues(order)
            assert values.shape == (2,) * len(order)
            for index in np.ndindex(values.shape):
                members = tuple(sorted(i for i, inside in zip(order, index, strict=True) if inside))
                assert values[index] == pytest.approx(float(exact[members]), rel=0, abs=rounding)


def check_record(law: Law) -> None:
    plain = json.loads(json.dumps(law.to_plain()))
    again = law_from_plain(plain, law.n_categories)
    assert again == law
    assert type(again) is type(law)
    assert again.to_plain() == law.to_plain()


CHECKS = [check_ratios, check_keeping, check_eigenvalues, check_record]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("law", fixed_laws(), ids=repr)
def test_an_awkward_law_is_what_brute_force_says_and_is_read_back(
    law: Law, check: Callable[[Law], None]
) -> None:
    check(law)


@pytest.mark.parametrize("check", CHECKS)
@given(law=any_law)
def test_a_random_law_is_what_brute_force_says_and_is_read_back(
    law: Law, check: Callable[[Law], None]
) -> None:
    check(law)


@given(any_pattern_law, st.data())
def test_multiplying_by_eigenvalues_is_the_dense_matrix_and_dividing_its_inverse(
    law: PatternLaw, data: st.DataObject
) -> None:
    sizes = law.n_categories
    k = len(sizes)
    channel = oracle.channel_of_law(law)
    rows = list(oracle.records(sizes))
    matrix = [[channel[x][y] for x in rows] for y in rows]
    eigenvalues = law.eigenvalues(range(k))
    entries = st.lists(st.integers(-50, 50), min_size=len(rows), max_size=len(rows))
    table = np.array(data.draw(entries), dtype=float)
    dense = np.array(matrix, dtype=float)
    forward = transforms.apply_eigenvalues(table.reshape(sizes), eigenvalues, range(k))
    np.testing.assert_allclose(forward.ravel(), dense @ table, rtol=0, atol=1e-12)
    smallest = np.abs(eigenvalues).min()
    assume(smallest > 1e-3)
    backward = transforms.apply_eigenvalues(table.reshape(sizes), 1 / eigenvalues, range(k))
    exact = (
        np.array(oracle.inverse(matrix), dtype=float) if len(rows) <= 12 else np.linalg.inv(dense)
    )
    np.testing.assert_allclose(backward.ravel(), exact @ table, rtol=0, atol=1e-9 / smallest)


@given(any_pattern_law)
def test_the_kernel_of_a_laws_eigenvalues_is_the_probability_of_one_output(law: PatternLaw) -> None:
    sizes = law.n_categories
    channel = oracle.channel_of_law(law)
    origin = (0,) * len(sizes)
    kernel = transforms.kernel_of(law.eigenvalues(range(len(sizes))), sizes)
    for pattern in oracle.patterns(len(sizes)):
        rounding = 1e-13 if isinstance(law, BoundedLaw) else 2e-15
        exact = float(channel[origin][pattern])
        assert kernel[pattern] == pytest.approx(exact, rel=0, abs=rounding)
    np.testing.assert_allclose(
        transforms.eigenvalues_of(kernel, sizes),
        law.eigenvalues(range(len(sizes))),
        rtol=0,
        atol=1e-14,
    )


@given(strategies.sizes(most=1).flatmap(lambda n: strategies.matrix_channels(n[0])))
def test_the_left_inverse_of_a_matrix_channel_recovers_every_distribution(
    law: MatrixChannel,
) -> None:
    (n,) = law.n_categories
    matrix = np.array([[float(Fraction(w, 2**law.bits)) for w in row] for row in law.weights])
    assume(np.linalg.svd(matrix, compute_uv=False).min() > 1e-2)
    np.testing.assert_array_equal(law.matrix(), matrix)
    possible = matrix[matrix.any(axis=1)]
    left = law.left_inverse()
    assert left.shape == (n, len(matrix))
    np.testing.assert_allclose(left @ matrix, np.eye(n), atol=1e-8)
    assert len(possible) >= n


@given(any_law, st.integers(0, 300))
def test_attribute_by_attribute_the_same_is_drawn_from_columns_fetched_in_turn(
    law: Law, count: int
) -> None:
    generator = np.random.default_rng(count)
    columns = [generator.integers(0, n, count).astype(np.uint16) for n in law.n_categories]
    fetched = []

    def in_turn() -> Iterator[NDArray[np.uint16]]:
        for i, column in enumerate(columns):
            fetched.append(i)
            yield column

    at_once = law.sampler().randomize(columns, SeededRandomness(count))
    drawn = []
    for i, out in enumerate(law.sampler().by_attribute(in_turn(), count, SeededRandomness(count))):
        assert fetched == list(range(i + 1))
        drawn.append(out)
    assert [out.tolist() for out in drawn] == [out.tolist() for out in at_once]
