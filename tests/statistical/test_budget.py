"""The budget cannot be overspent, and the decision keeps the level it states."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from statistical.budget import BUDGET, TOTAL, Budget, OverspentError
from statistical.counting import expectation


def test_shares_add_up_to_no_more_than_the_total() -> None:
    budget = Budget(Fraction(1, 100))
    assert budget.spend("first", 0.006) == 0.006
    with pytest.raises(OverspentError, match=r"'second' asks for 0\.005"):
        budget.spend("second", 0.005)
    budget.spend("third", 0.003)
    assert budget.left == Fraction(1, 100) - Fraction(0.006) - Fraction(0.003)


def test_a_name_can_spend_only_once_and_only_something() -> None:
    budget = Budget(Fraction(1, 100))
    budget.spend("once", 0.001)
    with pytest.raises(OverspentError, match="already"):
        budget.spend("once", 0.001)
    for nothing in (0.0, -1.0, float("nan")):
        with pytest.raises(OverspentError, match="no probability"):
            budget.spend(f"nothing {nothing}", nothing)


def test_the_folder_has_declared_its_budget() -> None:
    assert BUDGET.total == TOTAL == Fraction(1, 10**6)
    assert BUDGET.left >= 0


@pytest.mark.parametrize("probability", [0.0, 1e-9, 0.003, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("draws", [1, 40, 300])
def test_the_chance_of_a_false_alarm_is_at_most_what_was_allowed(
    draws: int, probability: float
) -> None:
    for allowed in (0.2, 0.01, 1e-6):
        expected = expectation(draws, [probability], allowed)
        counts = np.arange(draws + 1)
        alarming = [count for count in counts if expected.alarms([count]).size]
        chance = binom.pmf(alarming, draws, probability).sum()
        assert chance <= allowed * (1 + 1e-9)


def test_the_chance_of_a_miss_is_bounded_from_above() -> None:
    for probability, wrong in ((0.5, 0.6), (0.01, 0.05), (0.3, 0.0), (0.0, 0.1), (0.9, 0.5)):
        expected = expectation(200, [probability], 0.01)
        counts = np.arange(201)
        quiet = [count for count in counts if not expected.alarms([count]).size]
        chance = binom.pmf(quiet, 200, wrong).sum()
        assert chance <= expected.miss_probability([wrong]) * (1 + 1e-9)


def test_a_count_in_an_impossible_cell_or_outside_a_certain_one_raises_an_alarm() -> None:
    expected = expectation(50, [0.0, 1.0], 1e-9)
    assert expected.alarms([0, 50]).tolist() == []
    assert expected.alarms([1, 50]).tolist() == [0]
    assert expected.alarms([0, 49]).tolist() == [1]
