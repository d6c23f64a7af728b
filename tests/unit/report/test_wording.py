"""Numbers in words: bounds are rounded so that nothing more is claimed than holds."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.report import wording

LEVELS = st.floats(1e-9, 600, allow_nan=False)


def number(text: str) -> float:
    return float(text.replace(",", "").replace("10^", "1e").removesuffix(wording.PERCENT))


@given(LEVELS)
def test_a_shown_level_is_never_below_the_true_one(epsilon: float) -> None:
    shown = number(wording.epsilon_text(epsilon))
    assert epsilon <= shown <= max(epsilon * 1.01, epsilon + 0.001)


@given(LEVELS)
def test_a_shown_lower_bound_is_never_above_the_true_one(epsilon: float) -> None:
    shown = number(wording.lower_bound_text(epsilon))
    assert min(epsilon * 0.99, epsilon - 0.001) <= shown <= epsilon


@given(st.floats(1e-9, 300))
def test_a_shown_factor_is_never_below_the_true_one(epsilon: float) -> None:
    shown = number(wording.factor_text(epsilon))
    assert math.exp(epsilon) * (1 - 1e-12) <= shown <= math.exp(epsilon) * 10.01
    if epsilon < 13:
        assert shown <= math.exp(epsilon) * 1.0101


@given(st.floats(0.001, 0.999), st.floats(1e-9, 600))
def test_a_shown_posterior_is_never_below_the_true_one(prior: float, epsilon: float) -> None:
    shown = wording.posterior_text(prior, epsilon)
    true = 100 * prior / (prior + (1 - prior) * math.exp(-epsilon))
    if shown == wording.NEAR_CERTAINTY:
        assert true > 99.9
    else:
        assert true <= number(shown) + 1e-9
        assert number(shown) < 100
        assert number(shown) <= true + 0.1


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        *(
            (wording.epsilon_text, value, text)
            for value, text in (
                (None, "no limit"),
                (0.0, "0"),
                (4.0, "4"),
                (3.999999999999996, "4"),
                (1.0001, "1.001"),
                (0.33333333, "0.334"),
                (0.0123456, "0.0124"),
                (1e-6, "0.000001"),
                (12345.6789, "12,345.679"),
            )
        ),
        *(
            (wording.factor_text, epsilon, text)
            for epsilon, text in (
                *((None, "no limit"), (0.0, "1"), (1.0, "2.72")),
                *((5.0, "149"), (10.0, "22,100"), (600, "10^261")),
            )
        ),
        # Below one a probability never reads as certainty.
        *(
            (wording.percent_text, share, text + wording.PERCENT)
            for share, text in (
                *((0.0, "0"), (0.5, "50"), (0.58257, "58.3")),
                *((0.99999, "over 99.9"), (1.0, "100")),
            )
        ),
    ],
)
def test_numbers_read_as_people_write_them(
    write: Callable[[float | None], str], value: float | None, text: str
) -> None:
    assert write(value) == text


def test_significant_digits_keep_their_zeros_only_where_columns_line_up() -> None:
    assert wording.points_text(0.02) == "2.0"
    assert wording.points_text(12.5) == "> 100"


def test_lists_are_cut_with_a_count_and_counts_agree_with_their_nouns() -> None:
    assert wording.listed(["a", "b"], 2) == "a, b"
    assert wording.listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
