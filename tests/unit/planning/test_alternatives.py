"""What forms would make readable is what a design by forms says of itself."""

import pytest

import deniable
from deniable.errors import InputError
from deniable.planning.alternatives import forms_instead
from deniable.schema import Schema
from deniable.statement.account import Design
from deniable.statement.expected_accuracy import expected_accuracy

SCHEMA = Schema.anonymous((2,) * 6 + (60,))


def again(method: str) -> Design:
    return deniable.design(SCHEMA, epsilon=5.3, method=method)


@pytest.mark.slow
def test_the_figures_of_forms_are_those_that_their_design_prints() -> None:
    # Failed before: `share` advised forms with an error that the same call with forms did not give.
    told = forms_instead(again("balanced"), 6000, again)
    printed = expected_accuracy(again("forms").account).to_plain(6000)["attributes"]
    assert told == printed
    assert [one["readable"] for one in told] == [2] * 6 + [60]


def test_nothing_is_proposed_that_does_not_help_or_was_not_asked_for() -> None:
    made = again("balanced")
    assert forms_instead(made, 6000, None) == []
    assert forms_instead(made, 10**6, again) == []  # all can be read
    assert forms_instead(again("forms"), 60, again) == []
    assert forms_instead(made, 60, lambda _: made) == []

    def refused(_method: str) -> Design:
        raise InputError("no forms")

    assert forms_instead(made, 6000, refused) == []


def test_no_forms_are_searched_where_no_mechanism_can_be_accurate_enough() -> None:
    def searched(_method: str) -> Design:
        raise AssertionError

    weak = deniable.design(SCHEMA, epsilon=0.3)
    assert forms_instead(weak, 2000, searched) == []
