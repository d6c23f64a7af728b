"""Pattern tables: widths of their weights, floors on pairs, and parts of them."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from deniable.laws import PatternTable


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
