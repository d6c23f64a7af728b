"""Plain arguments are refused where an object is built, in one sentence."""

import math

import pytest

from deniable._checks import check_level, check_levels, first_duplicate
from deniable.errors import InputError


@pytest.mark.parametrize("level", [5e-324, 1, 0.5, 700, 1e308])
def test_a_finite_positive_level_is_returned_as_a_float(level: float) -> None:
    result = check_level(level, "here")
    assert result == level
    assert type(result) is float


@pytest.mark.parametrize("level", [0, -0.0, -1, -5e-324, math.inf, -math.inf, math.nan, 10**400])
def test_a_level_that_is_not_finite_and_positive_is_refused_by_place(level: float) -> None:
    with pytest.raises(InputError, match=r"^attribute 'sex': .*finite and above 0 nats"):
        check_level(level, "attribute 'sex'")


@pytest.mark.parametrize("level", [True, "1", None, [1.0]])
def test_a_level_that_is_no_number_is_refused_by_place(level: object) -> None:
    with pytest.raises(InputError, match=r"^attribute 'sex': .*must be a number of nats"):
        check_level(level, "attribute 'sex'")  # type: ignore[arg-type]


def test_levels_are_checked_one_by_one_and_the_attribute_is_named() -> None:
    assert check_levels([1, 2.5], ["a", "b"]) == (1.0, 2.5)
    with pytest.raises(InputError, match="attribute 'b'"):
        check_levels([1, 0], ["a", "b"])


@pytest.mark.parametrize("levels", [[], [1.0], [1.0, 1.0, 1.0]])
def test_too_few_or_too_many_levels_are_refused_with_both_numbers(levels: list[float]) -> None:
    with pytest.raises(InputError, match=f"{len(levels)} levels were given for 2 attributes"):
        check_levels(levels, ["a", "b"])


def test_the_first_item_that_comes_a_second_time_is_found() -> None:
    assert first_duplicate(["a", "b", "c", "b", "a"]) == "b"
    assert first_duplicate(iter("abc")) is None
    assert first_duplicate([]) is None


def test_an_input_error_is_a_value_error() -> None:
    assert issubclass(InputError, ValueError)
