"""The promise in sentences: never rounded down, and never told of the wrong thing."""

import math
from decimal import Decimal

import pytest

from deniable.design.design import design
from deniable.mechanism.strata import Strata
from deniable.release.statements import guarantee_sentence, small_print
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
    assert any("protected by nothing: c." in line for line in lines)


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
