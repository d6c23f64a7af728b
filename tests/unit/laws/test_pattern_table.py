"""A pattern table needs a positive weight for every pattern."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import PatternTable, law_from_plain

TABLE = {"family": "pattern-table", "bits": 4, "weights": ["a", "2", "2", "2"]}


@pytest.mark.parametrize(
    ("sizes", "weights", "problem"),
    [
        ((2,), (16, 0), "a pattern of probability 0"),
        ((2,), (17, -1), "a pattern of probability 0"),
        ((2,), (8, 7), "must add up to 2"),
        ((2,), (8, 9), "must add up to 2"),
        ((2, 3), (8, 8), "over 2 attributes needs 4 weights"),
        ((2,), (4, 4, 4, 4), "over 1 attributes needs 2 weights"),
        ((2,) * 21, (1,), "at most 20 attributes"),
    ],
)
def test_a_pattern_table_with_wrong_weights_is_refused(
    sizes: tuple[int, ...], weights: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        PatternTable(sizes, 4, weights)


@pytest.mark.parametrize("bad", [0.0, -0.1, np.nan, np.inf])
def test_a_pattern_table_needs_a_positive_finite_probability_everywhere(bad: float) -> None:
    with pytest.raises(InputError, match="every pattern needs a positive probability"):
        PatternTable.from_probabilities((2, 2), np.array([[0.5, 0.2], [0.3, bad]]))


def test_a_probability_that_is_lost_when_they_are_normalised_is_refused() -> None:
    with pytest.raises(InputError, match="probability 0"):
        PatternTable.from_probabilities((2, 2), np.array([[1e308, 1.0], [5e-324, 1.0]]))


def test_a_pattern_table_of_too_many_attributes_is_refused_before_it_is_counted() -> None:
    with pytest.raises(InputError, match="at most 20 attributes"):
        law_from_plain({**TABLE, "weights": []}, (2,) * 64)


def test_many_weights_are_as_narrow_as_they_can_be_and_none_loses_a_digit() -> None:
    """A study sends them to every respondent."""
    probability = np.random.default_rng(0).dirichlet(np.full(1 << 13, 0.5))
    probability = np.maximum(probability, 2.0**-30)
    probability /= probability.sum()
    law = PatternTable.from_probabilities((2,) * 13, probability)
    assert law.bits <= 54 + 30 + 4
    exact = np.array([weight / 2**law.bits for weight in law.weights])
    assert np.delete(exact == probability, probability.argmax()).all()


@pytest.mark.parametrize("seed", range(5))
def test_whether_a_floor_on_pairs_is_kept_is_decided_to_the_last_bit(seed: int) -> None:
    sizes = (2, 3, 4, 5)
    q = np.random.default_rng(seed).random((2,) * 4) ** 2
    q[0, 0, 0, 0] += 2.0
    law = PatternTable.from_probabilities(sizes, q / q.sum())

    def exactly(*members: int) -> Fraction:
        return sum(
            weight * math.prod(Fraction(-1, sizes[i] - 1) for i in members if pattern[i])
            for pattern, weight in zip(product((0, 1), repeat=4), law.weights, strict=True)
        ) * Fraction(1, 1 << law.bits)

    least = min(exactly(i, j) / (exactly(i) * exactly(j)) for i, j in combinations(range(4), 2))
    below = float(least) if Fraction(float(least)) <= least else math.nextafter(least, 0.0)
    assert law.keeps_pair_floor(below)
    assert not law.keeps_pair_floor(math.nextafter(below, 2.0))


@pytest.mark.parametrize("seed", range(5))
def test_the_level_given_the_rest_is_the_largest_ratio_of_all_pairs_of_patterns(seed: int) -> None:
    sizes = (7, 2, 5)
    weights = [int(w) for w in np.random.default_rng(seed).integers(1, 1 << 14, 8)]
    weights[0] += (1 << 17) - sum(weights)
    law = PatternTable(sizes, 17, tuple(weights))
    table = np.array(weights, dtype=object).reshape(2, 2, 2)
    for i, (level,) in enumerate(law.given_rest_levels()):
        kept, changed = np.moveaxis(table, i, 0)
        ratios = [
            Fraction(w * (sizes[i] - 1), v) for w, v in zip(kept.flat, changed.flat, strict=True)
        ]
        assert Fraction(*level) == max(max(ratio, 1 / ratio) for ratio in ratios)


def test_some_of_the_attributes_by_themselves_come_in_the_order_asked() -> None:
    law = PatternTable((2, 3, 4), 6, (1, 2, 3, 5, 7, 11, 13, 22))
    for subset in [(1, 2, 0), (2, 0, 1), (2, 0), (1,)]:
        projected = law.projected(subset)
        assert projected.n_categories == tuple(law.n_categories[i] for i in subset)
        expected: dict[tuple[int, ...], int] = {}
        for pattern, weight in zip(product((0, 1), repeat=3), law.weights, strict=True):
            own = tuple(pattern[i] for i in subset)
            expected[own] = expected.get(own, 0) + weight
        assert projected.weights == tuple(weight for _, weight in sorted(expected.items()))
