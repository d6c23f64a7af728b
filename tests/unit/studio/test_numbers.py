"""Numbers as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.studio.numbers import decimal_number, plain, rounded_up, shown, whole_number, written


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


@pytest.mark.parametrize("space", [" ", "\u00a0", "\u2009", "\u202f"])
@pytest.mark.parametrize("marks", [".,", ",."])
def test_thousands_are_read_in_the_language_of_the_page(space: str, marks: str) -> None:
    point, group = marks
    for between in (space, group):
        assert whole_number(plain(f"10{between}000", marks, whole=True), "rows") == 10000
        assert whole_number(plain(f"1{between}234{between}567", marks, whole=True), "") == 1234567
    assert decimal_number(plain(f"1{space}234{point}5", marks), "ε") == 1234.5
    assert decimal_number(plain(f"3{point}125", marks), "ε") == 3.125
    for typed in ("3,5", "3.5", "0,125", "0.125", "4", "-1"):
        assert decimal_number(plain(typed, marks), "ε") == float(typed.replace(",", "."))
    with pytest.raises(InputError, match="can mean either"):
        decimal_number(plain(f"10{group}000", marks), "ε")
    for typed in (f"12{group}000{point}5", f"10{point}000", f"1{group}00", f"0{group}125", "1 00"):
        with pytest.raises(InputError, match="a whole number"):
            whole_number(plain(typed, marks, whole=True), "rows")


@given(st.floats(1e-3, 1e6).map(written), st.sampled_from([".,", ",."]))
def test_what_a_control_shows_is_read_as_it_was(text: str, marks: str) -> None:
    assert plain(shown(text, marks), marks) == text


@given(st.floats(1e-9, 1e15))
def test_what_is_written_is_read_as_it_was(value: float) -> None:
    assert decimal_number(written(value), "") == pytest.approx(value, rel=1e-9)
    assert value <= decimal_number(rounded_up(value), "") <= value * (1 + 1e-5)
