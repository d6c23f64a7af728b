import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.ledger import (
    Balance,
    Ledger,
    Spending,
    StoredRelease,
    balances,
    compared,
    stored_releases,
)


def spend(ledger: Ledger, epsilon: float, columns: dict[str, float], population: str = "p") -> None:
    spending = Spending(epsilon, columns, columns)
    with ledger.release(population, spending, "share") as entry:
        entry.count(spending)
        entry.publish("00")


def test_levels_add_per_population_and_per_column_where_it_was_released(tmp_path):
    ledger = Ledger(tmp_path / "l")
    spend(ledger, 3.0, {"a": 1.0, "b": 2.0})
    spend(ledger, 2.0, {"b": 2.0})
    spend(ledger, 5.0, {"a": 5.0}, "others")
    mine, others = balances(ledger.events())["p"], balances(ledger.events())["others"]
    assert (mine.epsilon, mine.alone, mine.given_rest) == (5.0, {"a": 1.0, "b": 4.0}, mine.alone)
    assert (others.epsilon, others.budget, others.left) == (5.0, None, None)
    plain = mine.to_plain()
    assert plain["releases"] == 2
    assert plain["attributes"][1] == {"name": "b", "epsilon": 4.0, "epsilon_given_rest": 4.0}


def test_a_release_without_a_bound_leaves_nothing_of_a_budget(tmp_path):
    ledger = Ledger(tmp_path / "l")
    spend(ledger, math.inf, {"a": math.inf})
    ledger.set_budget("p", 3.0)
    balance = balances(ledger.events())["p"]
    assert balance.left == 0.0
    assert not balance.allows(0.0)
    assert balance.to_plain()["epsilon"] is None


@given(
    st.lists(st.floats(1e-9, 5.0), min_size=1, max_size=20),
    st.floats(1e-6, 60.0),
    st.floats(1e-9, 5.0),
)
def test_what_is_left_is_never_too_much_and_what_is_allowed_keeps_the_budget(levels, budget, more):
    releases = [
        StoredRelease(n, "t", "p", "share", Spending(level), "", True)
        for n, level in enumerate(levels)
    ]
    balance = Balance("p", tuple(releases), budget)
    spent = sum(map(Fraction, levels))
    assert balance.left is not None
    assert Fraction(balance.left) <= max(Fraction(budget) - spent, 0)
    assert balance.allows(more) == (spent + Fraction(more) <= Fraction(budget))
    assert Fraction(balance.epsilon) >= spent


def test_the_last_word_on_a_budget_counts(tmp_path):
    ledger = Ledger(tmp_path / "l")
    ledger.set_budget("p", 3.0)
    ledger.set_budget("p", 2.0)
    assert balances(ledger.events())["p"].left == 2.0


def test_names_that_look_alike_are_one_population_under_the_first_spelling(tmp_path):
    # Failed before: three populations, of which a budget counted one.
    ledger = Ledger(tmp_path / "l")
    ledger.set_budget("Clinic  North", 3.0)
    for name in ("clinic north", " CLINIC NORTH ", "Ｃlinic\u3000north"):
        spend(ledger, 1.0, {"a": 1.0}, name)
    (balance,) = balances(ledger.events()).values()
    assert (balance.population, len(balance.releases)) == ("Clinic  North", 3)
    assert {r.population for r in stored_releases(ledger.events())} == {"Clinic  North"}
    with pytest.raises(InputError, match="budget of population 'Clinic  North' does not allow"):
        spend(ledger, 1.0, {"a": 1.0}, "clinic NORTH")
    assert compared("℻ users") == compared("fax users")  # one letter, of three capitals
    assert compared("straße") == compared("STRASSE") != compared("strase")
