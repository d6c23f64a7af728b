"""Plain arguments are refused where an object is built, in one sentence."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable._checks import check_level, check_levels, check_type, first_duplicate
from deniable.errors import InputError
from deniable.schema import Attribute, Schema


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


@pytest.mark.parametrize(
    ("value", "hint", "said"),
    [
        ({"a": "x"}, Mapping[str, float] | None, "not dict with str in it"),
        ({("a",): 1.0}, Mapping[tuple[str, str], float], "by pair of names, not dict with tuple"),
        ("ab", Sequence[float], "a list of numbers, not str"),
        ([[1]], Sequence[float], "not list with list in it"),
        ({"a": 1.0}, Sequence[float], "not dict"),
        (True, float | None, "a number or None, not bool"),
        (3, Callable[[float], float] | None, "a function or None, not int"),
        (Attribute("a", ("0", "1")), Schema, "a Schema, not Attribute"),
    ],
)
def test_what_does_not_fit_an_annotation_is_named(value: object, hint: object, said: str) -> None:
    with pytest.raises(InputError, match=f"^it is .*{said}"):
        check_type("it", value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (np.array([1.0, 2.0]), Sequence[float]),
        ({"a": np.float32(1)}, Mapping[str, float]),
        (np.int64(3), int | None),
        (iter([1]), Any),
        ([Path("a"), "b"], str | Sequence[str | Path]),
        ({"a": [[1, 0], [0, 1]]}, Mapping[str, NDArray[np.float64]]),
        (abs, Callable[[float], float]),
    ],
)
def test_what_fits_an_annotation_passes(value: object, hint: object) -> None:
    check_type("it", value, hint)


def test_the_first_item_that_comes_a_second_time_is_found() -> None:
    assert first_duplicate(["a", "b", "c", "b", "a"]) == "b"
    assert first_duplicate(iter("abc")) is None
    assert first_duplicate([]) is None


def test_an_input_error_is_a_value_error() -> None:
    assert issubclass(InputError, ValueError)
