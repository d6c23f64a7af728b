"""Bistochastic matrices: the check, and exact sums in integers."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws import MatrixChannel
from deniable.laws.bistochastic import (
    bistochastic_channel,
    check_bistochastic,
    exact_weights,
)
from deniable.mechanism import privacy


def sinkhorn(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale rows and columns in turn until they add up to 1."""
    for _ in range(20_000):
        matrix = matrix / matrix.sum(axis=1, keepdims=True)
        matrix = matrix / matrix.sum(axis=0)
        if np.abs(matrix.sum(axis=1) - 1).max() < 1e-15:
            break
    return matrix


@st.composite
def bistochastic(draw: st.DrawFn, spread: float = 3.0) -> NDArray[np.float64]:
    """Mixtures of permutations and the uniform matrix, of very different weights."""
    n = draw(st.integers(2, 7))
    weights = draw(st.lists(st.floats(-spread, 0), min_size=1, max_size=6))
    matrix = np.full((n, n), 10 ** draw(st.floats(-spread, 0)) / n)
    for exponent in weights:
        matrix[draw(st.permutations(range(n))), np.arange(n)] += 10**exponent
    return matrix / matrix.sum(axis=0)


def check_exact(matrix: NDArray[np.float64]) -> None:
    bits, weights = exact_weights(matrix)
    total = 1 << bits
    assert all(sum(row) == total for row in weights)
    assert all(sum(column) == total for column in zip(*weights, strict=True))
    n = len(matrix)
    for i in range(n):
        for j in range(n):
            change = Fraction(weights[i][j], total) / Fraction(float(matrix[i, j])) - 1
            assert abs(change) <= n**2 * 2.0**-50


@given(bistochastic())
def test_integer_rows_and_columns_are_exact_and_entries_change_by_rounding_only(
    matrix: NDArray[np.float64],
) -> None:
    check_exact(matrix)


@given(bistochastic(spread=60.0))
def test_entries_of_a_size_far_below_rounding_keep_their_relative_accuracy(
    matrix: NDArray[np.float64],
) -> None:
    check_exact(matrix)


@pytest.mark.parametrize("seed", range(5))
def test_a_matrix_of_no_structure_is_made_exact(seed: int) -> None:
    random = np.random.default_rng(seed)
    check_exact(sinkhorn(random.gamma(0.3, size=(12, 12)) + 1e-6))


def test_the_published_level_is_that_of_the_matrix_asked_for() -> None:
    attenuation, n = 0.6, 5
    matrix = attenuation * np.eye(n) + (1 - attenuation) / n
    law = bistochastic_channel(matrix)
    assert law.is_bistochastic
    expected = np.log(1 + n * attenuation / (1 - attenuation))
    assert privacy.record_epsilon(law) == pytest.approx(expected, rel=1e-14)


def test_a_matrix_of_printed_decimals_is_accepted_and_made_exact() -> None:
    matrix = np.array([[0.5, 1 / 3, 1 / 6], [1 / 3, 1 / 6, 0.5], [1 / 6, 0.5, 1 / 3]]).round(10)
    law = bistochastic_channel(matrix)
    total = 1 << law.bits
    assert all(sum(row) == total for row in law.weights)
    np.testing.assert_allclose(law.matrix(), matrix, atol=1e-9)


def test_decimals_too_few_for_a_tiny_entry_are_refused() -> None:
    # Off by 1e-10 in a way that only the entry of 1e-12 could make up for.
    matrix = np.array([[1 - 1e-12, 1e-12 + 1e-10], [1e-12, 1 - 1e-12 - 1e-10]])
    with pytest.raises(InputError, match="more digits"):
        bistochastic_channel(matrix)


def test_a_matrix_that_is_not_symmetric_keeps_its_orientation() -> None:
    matrix = np.array([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]])
    np.testing.assert_allclose(bistochastic_channel(matrix).matrix(), matrix, rtol=1e-15)


def good() -> NDArray[np.float64]:
    return np.array([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]])


def changed(*entries: tuple[int, int, float]) -> NDArray[np.float64]:
    matrix = good()
    for row, column, value in entries:
        matrix[row, column] = value
    return matrix


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (changed((1, 0, 0.2), (1, 1, 0.55), (1, 2, 0.28)), r"row 2 .* 1\.03"),
        (changed((0, 0, 0.55), (0, 2, 0.15)), "column 1"),
        *((changed((2, 1, bad)), "row 3, column 2") for bad in (0.0, -0.1, np.nan, np.inf)),
        *((np.full(shape, 0.5), "square") for shape in ((3, 2), (1, 1), (3,), (2, 2, 2))),
        ([[0.5, 0.5], [1.0]], "numbers"),
        ([["a", "b"], ["c", "d"]], "numbers"),
    ],
)
def test_what_is_no_bistochastic_matrix_is_refused_with_the_place(matrix: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_bistochastic(matrix)


def test_the_uniform_matrix_is_refused_because_nothing_could_be_estimated() -> None:
    with pytest.raises(InputError, match="singular"):
        bistochastic_channel(np.full((3, 3), 1 / 3))


def test_a_matrix_with_other_row_sums_or_more_outputs_is_not_bistochastic() -> None:
    assert not MatrixChannel((2,), 3, ((7, 2), (1, 6))).is_bistochastic
    assert not MatrixChannel((2,), 3, ((4, 2), (2, 4), (2, 2))).is_bistochastic
    assert MatrixChannel((2,), 3, ((7, 1), (1, 7))).is_bistochastic
