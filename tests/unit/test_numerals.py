"""Numbers and counts as people read them."""

import math
import re

import pytest

from deniable.estimate.consistency import Origin
from deniable.numerals import count_text, number_text, p_text, significant


def test_digits_are_significant_without_an_exponent() -> None:
    assert significant(0.09, 4) == "0.09"
    assert significant(0.09, 4, trailing_zeros=True) == "0.09000"
    assert significant(123456, 2) == "120,000"


@pytest.mark.parametrize("size", [1e-300, 1e-12, 4.796e-7, 3.5e-8, 0.1, 270.0, 5.03e11, 1e300])
def test_no_size_of_a_number_is_written_with_an_exponent(size: float) -> None:
    for text in (number_text(size), number_text(-size, 2), p_text(min(size, 1.0))):
        assert not re.search(r"\de[+-]?\d", text)
    assert not re.search(r"\de[+-]?\d", Origin(min(size, 1.0), ("a",), 10).sentence())


def test_what_is_not_finite_is_named() -> None:
    assert [number_text(math.nan), number_text(-math.inf)] == ["nan", "-inf"]


def test_counts_agree_with_their_nouns() -> None:
    assert count_text(1, "row", "rows") == "1 row"
    assert count_text(22272, "row") == "22,272 rows"
    assert count_text(1, "category", "categories") == "1 category"
