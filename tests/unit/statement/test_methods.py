"""The table of methods: every name, its limits, and what documents and help say of it."""

import re
from pathlib import Path

import pytest

from deniable.design.design import design
from deniable.design.methods import FUNCTIONS, Functions
from deniable.errors import InputError
from deniable.schema import Schema
from deniable.statement.methods import (
    DEFAULT_METHOD,
    METHODS,
    STRENGTH_METHOD,
    method_named,
    methods_table,
    methods_taking,
)

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", METHODS)
def test_an_entry_is_filed_under_its_name_and_says_what_it_is(name: str) -> None:
    spec = METHODS[name]
    assert spec.name == name
    assert spec.help
    assert spec.description
    assert not spec.help.endswith(".")
    functions = FUNCTIONS.get(name, Functions())
    assert spec.offered == (functions != Functions())
    assert re.fullmatch("#[0-9A-F]{6}", spec.style[0])


def test_the_page_about_methods_has_the_table_that_the_entries_make() -> None:
    assert methods_table() in (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")


def test_the_default_methods_are_offered_and_take_what_they_are_the_default_for() -> None:
    assert METHODS[DEFAULT_METHOD].takes >= {"levels", "total"}
    assert METHODS[STRENGTH_METHOD].by_strength
    assert design(Schema.anonymous((2, 3)), epsilon=1).method == DEFAULT_METHOD
    assert design(Schema.anonymous((2, 3)), attenuation=0.5).method == STRENGTH_METHOD


@pytest.mark.parametrize("name", ["", "optimum", "matrix", "invariant"])
def test_a_name_that_cannot_be_asked_for_is_refused_with_those_that_can(name: str) -> None:
    with pytest.raises(InputError, match="choose one of balanced, optimal, lp"):
        method_named(name)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (("caps", "floor"), "balanced or lp"),
        (("strength",), "lambda or joint"),
        (("levels",), "balanced, optimal, lp, kronecker, closed-form or heuristic"),
    ],
)
def test_the_methods_that_take_something_are_listed_in_words(inputs, expected) -> None:
    assert methods_taking(*inputs) == expected


@pytest.mark.parametrize(
    ("name", "k", "sentence"),
    [
        ("lp", 13, "method lp is for up to 12 attributes, and the schema protects 13"),
        ("closed-form", 3, "method closed-form is for exactly 2 attributes"),
        ("closed-form", 1, "the schema protects 1"),
    ],
)
def test_a_number_of_attributes_that_a_method_is_not_for_is_refused(name, k, sentence) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        design(Schema.anonymous((2,) * k), epsilon=1.0, method=name)
