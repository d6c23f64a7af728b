"""A response matrix needs columns that are distributions, and a left inverse."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws import (
    MatrixChannel,
    law_from_plain,
)
from deniable.laws.law import UNBOUNDED

MATRIX = {"family": "matrix", "bits": 2, "weights": [["3", "1"], ["1", "3"]]}


@pytest.mark.parametrize(
    ("matrix", "problem"),
    [
        ([[0.5, 0.1], [0.4, 0.9]], "column 1 of the response matrix adds up to 0.9, not 1"),
        ([[0.5, 0.1], [0.5, 1.0]], "column 2 of the response matrix adds up to 1.1, not 1"),
        ([[1.1, 0.1], [-0.1, 0.9]], "not negative"),
        ([[np.nan, 0.1], [0.5, 0.9]], "finite"),
        ([0.5, 0.5], "finite"),
        ([[0.5, 0.5], [0.5, 0.5]], "singular"),
    ],
)
def test_probabilities_that_make_no_response_matrix_are_refused(matrix: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        MatrixChannel.from_probabilities(np.array(matrix))


def test_a_response_matrix_keeps_its_entries_and_its_zeros() -> None:
    matrix = np.array([[0.9, 1e-30, 0.0], [0.1, 0.7, 0.2], [0.0, 0.3 - 1e-30, 0.8]])
    law = MatrixChannel.from_probabilities(matrix)
    np.testing.assert_allclose(law.matrix(), matrix, rtol=1e-15)
    assert law.weights[0][2] == law.weights[2][0] == 0
    assert law.attribute_levels() == [UNBOUNDED]


def test_fractions_become_integers_exactly_or_to_64_bits() -> None:
    half = Fraction(1, 2)
    exact = MatrixChannel.from_fractions([[Fraction(3, 4), half], [Fraction(1, 4), half]])
    assert (exact.bits, exact.weights) == (2, ((3, 2), (1, 2)))
    assert MatrixChannel.from_fractions([[Fraction(0), Fraction(1)], [Fraction(1), Fraction(0)]])
    tiny = Fraction(1, 10**40)
    matrix = [[Fraction(5, 6), tiny], [Fraction(1, 6), 1 - tiny], [Fraction(0), Fraction(0)]]
    law = MatrixChannel.from_fractions(matrix)
    for row, weights in zip(matrix, law.weights, strict=True):
        for entry, weight in zip(row, weights, strict=True):
            assert abs(Fraction(weight, 1 << law.bits) - entry) <= entry / (1 << 64)


def test_an_edited_response_matrix_is_refused() -> None:
    for rows in (None, [], "31", [["3", "1"], ["1"]], [["3", "1"], "13"]):
        with pytest.raises(InputError):
            law_from_plain({**MATRIX, "weights": rows}, (2,))
    with pytest.raises(InputError, match="for one attribute"):
        law_from_plain(MATRIX, (2, 2))


def test_a_wrong_entry_of_the_table_of_first_bits_is_detected() -> None:
    law = MatrixChannel((2,), 3, ((5, 1), (1, 5), (2, 2)))
    sampler = law.sampler()
    assert sampler.draws(law)
    assert (sampler._table == 3).mean() < 2e-3  # nearly all draws are decided
    for place in ((0, 0), (1, -1)):
        planted = law.sampler()
        planted._table[place] = 1
        assert not planted.draws(law)


def test_an_output_that_nothing_leads_to_does_not_spoil_the_inverse() -> None:
    # Failed before: its weight was 0/0.
    law = MatrixChannel((2,), 5, ((32, 0), (0, 32), (0, 0)))
    np.testing.assert_allclose(law.left_inverse() @ law.matrix(), np.eye(2))
