"""Balanced lists: that they are, and few."""

from itertools import pairwise

import numpy as np
import pytest

from deniable.laws.law import integer_weights
from deniable.laws.set_answers import SetAnswers
from deniable.solvers.patterns.balanced_lists import MOST_CATEGORIES, balanced_lists


@pytest.mark.parametrize(
    ("n", "breadth", "most"), [(5, 2, 2), (6, 2, 3), (16, 4, 8), (22, 6, 11), (41, 11, 4)]
)
def test_lists_are_balanced_and_few(n: int, breadth: int, most: int) -> None:
    found = balanced_lists(n, [breadth])
    assert found is not None
    shares, lists = found
    assert len(lists) <= most
    assert shares.sum() == pytest.approx(1)
    for steps in lists:
        assert steps[0] == 0
        assert all(one < other for one, other in pairwise(steps))
    bits, weights = integer_weights(shares)
    assert SetAnswers(n, breadth, bits, weights, tuple(lists)).imbalance() < 1e-14


def test_of_several_breadths_the_one_with_the_largest_group_is_taken() -> None:
    # {0, 1, 4, 14, 16} differ by every number below 21 once: the lines of the plane of order 4.
    found = balanced_lists(21, [6, 5])
    assert found is not None
    shares, lists = found
    assert shares.tolist() == [1.0]
    assert sorted(np.subtract.outer(lists[0], lists[0])[~np.eye(5, dtype=bool)] % 21) == list(
        range(1, 21)
    )


def test_too_many_categories_have_no_lists() -> None:
    assert balanced_lists(MOST_CATEGORIES + 1, [30]) is None
    assert balanced_lists(15, []) is None
