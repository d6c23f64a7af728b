"""Votes by the number of hits against sums over all patterns."""

import math
from itertools import product

import numpy as np
import pytest

from deniable.solvers.patterns.votes_by_count import VotesByCount


@pytest.mark.parametrize("a", [2, 5])
def test_what_a_vote_tells_is_the_sum_over_all_patterns(a: int) -> None:
    n, fewer, epsilon = 6, 2, 3.0
    votes = VotesByCount([7, a], [2, n], epsilon, fewer)
    assert {tuple(form) for form in votes.forms.tolist()} == {
        (1, m, t) for m in range(fewer + 1, n + 1) for t in range(1, m + 1)
    }
    for (_, m, t), single, pair in zip(votes.forms, votes.single, votes.pair, strict=True):
        hit = np.array(list(product((1, 0), repeat=m)))
        density = np.array([votes.density(m, t)[m - each] for each in hit.sum(axis=1)])
        assert density.max() / density.min() == pytest.approx(math.exp(epsilon))
        law = density * np.where(hit, 1 / a, 1 - 1 / a).prod(axis=1)
        law /= law.sum()
        phi = np.where(hit, 1.0, -1 / (a - 1))
        assert single == pytest.approx(m / n * (law @ phi[:, 0]) ** 2)
        both = (law @ (phi[:, 0] * phi[:, 1])) ** 2
        assert pair == pytest.approx(m * (m - 1) / (n * (n - 1)) * both)


def test_classes_that_tables_of_patterns_are_for_have_none() -> None:
    assert len(VotesByCount([2, 5], [9, 1], 3.0, 9).forms) == 0
