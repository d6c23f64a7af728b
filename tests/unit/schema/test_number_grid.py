"""Grids of numbers."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.schema.number_grid import NumberGrid

ENDS = st.decimals(-100_000, 100_000, places=3).map(float)


@given(st.lists(ENDS, min_size=2, max_size=2, unique=True).map(sorted), st.integers(2, 1000))
def test_points_are_equally_spaced_and_have_distinct_texts(ends: list[float], points: int) -> None:
    low, high = ends
    grid = NumberGrid(low, high, points)
    assert (grid.points[0], grid.points[-1]) == (low, high)
    assert len(set(grid.texts)) == points
    exact = [Fraction(str(low)) + j * (Fraction(str(high)) - Fraction(str(low))) / (points - 1)
             for j in range(points)]  # fmt: skip
    assert list(grid.points) == [float(point) for point in exact]
    width = (high - low) / (points - 1)
    for text, point in zip(grid.texts, grid.points, strict=True):
        assert abs(float(text) - point) <= 1e-9 * width


@given(
    st.lists(ENDS, min_size=2, max_size=2, unique=True).map(sorted),
    st.integers(2, 1000),
    st.integers(0, 10**6),
)
def test_the_offset_of_a_written_decimal_is_exact(
    ends: list[float], points: int, place: int
) -> None:
    grid = NumberGrid(*ends, points)
    low, high = (Fraction(str(end)) for end in ends)
    written = round(ends[0] + (ends[1] - ends[0]) * place / 10**6, min(4, grid.decimals))
    written = min(max(written, ends[0]), ends[1])
    expected = (Fraction(str(written)) - low) / (high - low) * (points - 1)
    assert Fraction(grid.offset(written), grid.step) == expected
    assert grid.step < 1 << 47
    assert grid.offset(ends[1]) == (points - 1) * grid.step < 1 << 62


def test_points_with_a_short_decimal_are_written_in_full() -> None:
    assert NumberGrid(17, 90, 5).texts == ("17", "35.25", "53.5", "71.75", "90")
    assert NumberGrid(0, 1, 4).texts == ("0", "0.33333333333", "0.66666666667", "1")
    assert NumberGrid(-1e6, 1e6, 3).texts == ("-1000000", "0", "1000000")


@pytest.mark.parametrize(
    ("low", "high", "points", "message"),
    [
        (1, 1, 3, "must end above"),
        (2, 1, 3, "must end above"),
        (0, float("nan"), 3, "must be numbers"),
        (0, float("inf"), 3, "must be numbers"),
        (0, 1, 1, "from 2 to 1,000"),
        (0, 1, 1001, "from 2 to 1,000"),
        (0, 1e15, 3, "too many digits"),
        (0.1234567890123456, 1, 3, "too many digits"),
    ],
)
def test_an_invalid_grid_is_refused(low: float, high: float, points: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        NumberGrid(low, high, points)
