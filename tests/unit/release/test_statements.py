"""The promise in sentences: never rounded down, and never told of the wrong thing."""

import math
from dataclasses import replace
from decimal import Decimal

import pytest

from deniable.design.design import design
from deniable.mechanism.best_guess import BestGuess, Guess, PartGuess
from deniable.mechanism.strata import Strata
from deniable.release.statements import (
    best_guess_sentence,
    guarantee_sentence,
    small_print,
)
from unit.release.letters import DESIGN, SCHEMA


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0, 100.0, 1000.0])
def test_the_guarantee_is_never_rounded_down(epsilon):
    sentence = guarantee_sentence(Strata.one(DESIGN.mechanism), epsilon)
    said = Decimal(sentence.split("ε = ")[-1].split()[0].strip(":").replace(",", ""))
    factor = sentence.split("at most ")[1].split()[0].replace(",", "")
    mantissa, _, power = factor.rpartition("^")
    stated = Decimal(10) ** int(power) if mantissa else Decimal(factor)
    assert said >= Decimal(epsilon)
    assert Decimal(epsilon).exp() <= stated <= Decimal(epsilon).exp() * 10


def test_the_guarantee_of_a_person_is_not_told_as_that_of_a_row():
    mechanism = design(SCHEMA, attribute_epsilon=(1, 1), method="kronecker").mechanism
    sentence = guarantee_sentence(Strata.one(mechanism), 3 * mechanism.epsilon)
    assert "on its own with ε = 2 " in sentence
    assert "together have ε = 6:" in sentence


def test_the_sentence_speaks_of_a_person_only_where_the_rows_of_each_are_known():
    # Failed before: a panel of seven rows a person was promised "of a person" what holds of a row.
    strata = Strata.one(DESIGN.mechanism)
    of_row = guarantee_sentence(strata, 2.0)
    assert "any output for a row is at most 7.39 times as likely under that row's true" in of_row
    of_person = guarantee_sentence(strata, 14.0, of_person=True)
    assert "any output for a person" in of_person
    said = replace(SCHEMA, one_row_per_person=True)
    strata = Strata.one(replace(DESIGN.mechanism, schema=said))
    assert "any output for a person" in guarantee_sentence(strata, 2.0)
    lines = small_print(strata, shuffled=True, person=None, secure=True)
    assert any("The schema states one row per person." in line for line in lines)


def test_an_unbounded_mechanism_promises_nothing():
    sentence = guarantee_sentence(Strata.one(DESIGN.mechanism), math.inf)
    assert sentence.startswith("No ε-differential privacy")


def test_an_epsilon_just_above_a_round_number_is_rounded_up():
    assert "ε = 4.00001" in guarantee_sentence(
        Strata.one(DESIGN.mechanism), math.nextafter(4.0, 5.0)
    )


def test_what_is_kept_is_named_in_the_promise_and_in_the_small_print():
    strata = Strata.one(DESIGN.mechanism)
    assert "under any other values that agree on c." in guarantee_sentence(strata, 2.0)
    lines = small_print(strata, shuffled=True, person=None, secure=True)
    assert any("unprotected: c." in line for line in lines)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"secure": False}, "NOT PRIVATE"),
        ({"shuffled": True}, "was shuffled"),
        ({"shuffled": False}, "in their original order"),
        ({"person": "id"}, "(column 'id', which was dropped)"),
        ({"person": None}, "The guarantee is per row."),
    ],
)
def test_the_small_print_says_how_the_release_was_made(how, sentence):
    usual = {"shuffled": False, "person": None, "secure": True}
    assert any(
        sentence in line for line in small_print(Strata.one(DESIGN.mechanism), **usual | how)
    )
    for name, other in (("secure", True), ("shuffled", not how.get("shuffled", False))):
        if name in how:
            lines = small_print(Strata.one(DESIGN.mechanism), **usual | {name: other})
            assert not any(sentence in line for line in lines)


def test_the_sentence_of_a_best_guess_rounds_up_and_names_the_assumption():
    sentence = best_guess_sentence("age", BestGuess(0.34221, 0.5, 0.75))
    assert "34.3 %" in sentence
    assert "50 %" in sentence
    assert "75 %" in sentence
    assert "If people are distributed" in sentence
    assert "otherwise" in sentence


def test_a_part_that_is_given_away_is_named_beside_its_combination():
    half = Guess(0.5, 0.6, 0.7)
    parts = (PartGuess("p", Guess(0.5, 1.0, 1.0), half), PartGuess("q", half, half))
    guess = BestGuess(0.25, 0.6, 0.7, parts)
    sentence = best_guess_sentence("p+q", guess)
    assert "the combination 'p+q' from its released value alone is right for 60 %" in sentence
    assert (
        "Its parts are no harder to guess. The best guess of 'p' is right for 100 % of the people "
        "(without the released value for 50 %), and some released values determine it with "
        "certainty."
    ) in sentence
    assert "surer than 100 %" not in sentence


def test_what_a_solver_leaves_in_the_tenth_digit_is_not_rounded_up_to_another_percentage():
    guess = BestGuess(0.5, 0.7 + 1e-11, 0.9 + 1e-11)
    sentence = best_guess_sentence("a", guess)
    assert "right for 70 % " in sentence
    assert "surer than 90 %" in sentence
    assert "surer than 90.1 %" in best_guess_sentence("a", BestGuess(0.5, 0.7, 0.9 + 1e-9))
