"""Answers that name sets, against the sets themselves."""

from itertools import combinations

import msgspec
import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws.law import integer_weights
from deniable.laws.set_answers import PlainSetAnswers, SetAnswers

BITS, WEIGHTS = integer_weights(np.array([2.0, 1.0]))
FOUR = SetAnswers(4, 2, BITS, WEIGHTS, ((0, 1), (0, 2)))
SEVEN = SetAnswers(7, 3, 1, (1, 1), ((0, 1, 3), (0, 2, 3)))


def incidence(sets: SetAnswers) -> np.ndarray:
    """Which categories (rows) are in which sets (columns)."""
    matrix = np.zeros((sets.n_categories, sets.n_answers))
    for answer in range(sets.n_answers):
        matrix[list(sets.members(answer)), answer] = 1
    return matrix


@pytest.mark.parametrize("sets", [FOUR, SEVEN])
def test_every_two_categories_are_together_as_often_as_any_other_two(sets: SetAnswers) -> None:
    inside = incidence(sets)
    weights = np.repeat(sets.shares, sets.n_categories)
    together = (inside * weights) @ inside.T
    a, s = sets.n_categories, sets.breadth
    assert np.allclose(np.diagonal(together), s)
    for i, j in combinations(range(a), 2):
        assert together[i, j] == pytest.approx(s * (s - 1) / (a - 1))
    # What spreading what is gathered, by the lists' shares, does to deviations.
    kept = together / s**2
    assert np.allclose(kept - kept.mean(axis=0), sets.information * (np.eye(a) - 1 / a))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sets", [FOUR, SEVEN])
def test_spreading_and_gathering_are_the_sets_incidence(sets: SetAnswers, weighted: bool) -> None:
    matrix = incidence(sets) / sets.breadth
    if weighted:
        matrix = matrix * np.repeat(sets.shares, sets.n_categories)
    random = np.random.default_rng(1)
    answers, categories = random.random((2, sets.n_answers, 3)), random.random((2, 3, len(matrix)))
    spread = sets.spread(answers, 1, weighted=weighted)
    assert np.allclose(spread, np.einsum("xy,iyj->ixj", matrix, answers))
    gathered = sets.gathered(categories, 2, weighted=weighted)
    assert np.allclose(gathered, np.einsum("xy,ijx->ijy", matrix, categories))


def test_sets_are_read_back() -> None:
    plain = FOUR.to_plain([0, 3])
    msgspec.convert(plain, PlainSetAnswers)
    assert SetAnswers.from_plain(plain, 4) == FOUR


@pytest.mark.parametrize(
    ("words", "breadth", "weights", "lists"),
    [
        ("more than one of them, and not all", 4, (2,), ((0, 1, 2, 3),)),
        ("more than one of them, and not all", 1, (2,), ((0,),)),
        ("a weight for each", 2, (1, 1), ((0, 1),)),
        ("a weight for each", 2, (), ()),
        ("must be positive", 2, (2, 0), ((0, 1), (0, 2))),
        ("must be positive", 2, (2, 1), ((0, 1), (0, 2))),
        ("as many as a set", 2, (1, 1), ((0, 1), (0, 1, 2))),
        ("as many as a set", 2, (1, 1), ((0, 1), (2, 0))),
        ("as many as a set", 2, (1, 1), ((0, 1), (3, 5))),
        ("less than the number of categories", 2, (1, 1), ((0, 1), (0, 4))),
        ("more often than others", 2, (1, 1), ((0, 1), (0, 2))),
    ],
)
def test_what_are_no_balanced_lists_is_refused(
    words: str, breadth: int, weights: tuple[int, ...], lists: tuple[tuple[int, ...], ...]
) -> None:
    with pytest.raises(InputError, match=words):
        SetAnswers(4, breadth, 1, weights, lists)
