"""Numbers as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.studio.numbers import decimal_number, rounded_up, whole_number, written


@pytest.mark.parametrize(
    ("typed", "number"),
    [("3.5", 3.5), ("3,5", 3.5), (" 4 ", 4), ("0,125", 0.125), ("-1", -1), ("50,", 50)],
)
def test_a_comma_is_a_point(typed: str, number: float) -> None:
    assert decimal_number(typed, "ε") == number


@pytest.mark.parametrize("typed", ["", "1e", "1e3", "nan", "inf", "1 000", "1.000,5", "٣", "--1"])
def test_what_is_no_number_is_refused(typed: str) -> None:
    with pytest.raises(InputError, match=r"^ε: this is not a number"):
        decimal_number(typed, "ε")


def test_what_can_be_read_in_two_ways_is_refused() -> None:
    with pytest.raises(InputError, match=r"^ε: write 10000 or 10\.000; 10,000 can mean either"):
        decimal_number("10,000", "ε")


@pytest.mark.parametrize("typed", ["", "1.5", "10,000", "10.000", "-1", "٣", "1e3", "9" * 19])
def test_a_whole_number_has_digits_alone(typed: str) -> None:
    with pytest.raises(InputError, match=r"^rows: a whole number is written in digits alone"):
        whole_number(typed, "rows")


@given(st.floats(1e-9, 1e15))
def test_what_is_written_is_read_as_it_was(value: float) -> None:
    assert decimal_number(written(value), "") == pytest.approx(value, rel=1e-9)
    assert value <= decimal_number(rounded_up(value), "") <= value * (1 + 1e-5)
