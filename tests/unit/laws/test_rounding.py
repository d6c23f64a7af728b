"""The one place where a bound becomes a double."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.laws.rounding import next_above, rounded_up


@given(st.fractions(min_value=-(10**6), max_value=10**6))
def test_a_bound_is_the_smallest_double_that_is_not_below(exact: Fraction) -> None:
    found = rounded_up(exact)
    assert Fraction(found) >= exact
    assert Fraction(math.nextafter(found, -math.inf)) < exact


@pytest.mark.parametrize(
    "exact", [Decimal("0.1"), Decimal.from_float(0.1), Decimal("1e-400"), Decimal(1) / Decimal(3)]
)
def test_decimals_are_rounded_up_like_fractions(exact: Decimal) -> None:
    assert rounded_up(exact) == rounded_up(Fraction(exact))


def test_a_double_stays_and_its_neighbour_is_next() -> None:
    assert rounded_up(Fraction(0.3)) == 0.3
    assert next_above(1.0) == 1.0 + 2.0**-52
