"""A table of several strata, or of one: what randomized a row, and what is promised."""

import math

import pytest

from deniable.errors import InputError
from deniable.laws import Identity, ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.mechanism.strata import Strata
from deniable.schema import Attribute, Schema

SCHEMA = Schema(
    (Attribute("a", ("x", "y")), Attribute("b", ("1", "2", "3")), Attribute("r", ("n", "s"))),
    keep=("r",),
)


def mechanism(first: float, second: float, schema: Schema = SCHEMA) -> Mechanism:
    law = ProductLaw.from_levels((2, 3), (first, second))
    return Mechanism(schema, (Block((0, 1), law), Block((2,), Identity((2,)))))


def test_every_level_is_that_of_the_least_protected_stratum() -> None:
    strata = Strata({"n": mechanism(1.0, 0.5), "s": mechanism(0.3, 2.0)}, "r")
    weaker = strata.mechanisms["s"]
    assert strata.epsilon == weaker.epsilon
    assert strata.attribute_epsilon[:2] == pytest.approx((1.0, 2.0))
    assert strata.epsilon_given_rest[:2] == pytest.approx((1.0, 2.0))
    assert math.isinf(strata.attribute_epsilon[2])
    assert strata.unprotected == ("r",)


def test_one_stratum_says_what_its_mechanism_says_whatever_the_row() -> None:
    only = mechanism(1.0, 0.5)
    strata = Strata.one(only)
    assert strata.column is None
    assert strata.mechanism_of("anything") is only
    for name in (
        *("schema", "epsilon", "attribute_epsilon", "epsilon_given_rest", "unprotected"),
        *("n_outputs", "output_labels"),
    ):
        assert getattr(strata, name) == getattr(only, name)


def test_a_row_of_a_stratum_that_is_not_there_is_refused() -> None:
    strata = Strata({"n": mechanism(1.0, 0.5)}, "r")
    assert strata.mechanism_of("n") == mechanism(1.0, 0.5)
    with pytest.raises(InputError, match="no mechanism"):
        strata.mechanism_of("s")


def test_strata_that_make_no_sense_are_refused() -> None:
    here, there = mechanism(1.0, 0.5), mechanism(1.0, 1.0)
    with pytest.raises(InputError, match="no stratum"):
        Strata({}, "r")
    with pytest.raises(InputError, match="no column divides"):
        Strata({"n": here, "s": there})
    with pytest.raises(InputError, match="list it under keep"):
        Strata({"n": here, "s": there}, "a")
    other = mechanism(1.0, 1.0, Schema(SCHEMA.attributes, "Others", SCHEMA.keep))
    with pytest.raises(InputError, match="different schemas"):
        Strata({"n": here, "s": other}, "r")
