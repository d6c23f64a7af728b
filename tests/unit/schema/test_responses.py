"""Randomized response designs by name: their matrices against the respondents' instructions."""

from fractions import Fraction
from itertools import product

import pytest

from deniable.errors import InputError
from deniable.schema import Attribute, Schema
from deniable.schema.responses import NAMED, response_matrix

NO_YES = ("no", "yes")
P, Q = Fraction(7, 10), Fraction(1, 4)


def instructed(device, answer):
    """The matrix of independent events with given probabilities, by enumeration of all of them:
    ``answer(x, *events)`` is the answer of a respondent with the true value x."""
    rows: dict[object, list[Fraction]] = {}
    for x in (0, 1):
        for events in product((0, 1), repeat=len(device)):
            chance = Fraction(1)
            for happens, p in zip(events, device, strict=True):
                chance *= p if happens else 1 - p
            rows.setdefault(answer(x, *events), [Fraction(0), Fraction(0)])[x] += chance
    return tuple(tuple(rows.get(y, [Fraction(0), Fraction(0)])) for y in range(max(rows) + 1))


@pytest.mark.parametrize(
    ("response", "device", "answer"),
    [
        ("warner:0.7", (P,), lambda x, sensitive: x if sensitive else 1 - x),
        # A forced yes has probability 1/6 of all, 1/2 of the forced answers.
        ("forced:2/3,1/6,1/6", (Fraction(2, 3), Fraction(1, 2)), lambda x, t, yes: x if t else yes),
        (
            "forced:2/3,1/4,1/12",
            (Fraction(2, 3), Fraction(3, 4)),
            lambda x, t, yes: x if t else yes,
        ),
        ("unrelated:0.7,0.25", (P, Q), lambda x, sensitive, other: x if sensitive else other),
        ("crosswise:1/4", (Q,), lambda x, other: int(x == other)),
        ("triangular:1/4", (Q,), lambda x, other: int(x or other)),
        # A card of each deck is red.
        ("kuk:0.7,0.25", (P, Q), lambda x, yes, no: yes if x else no),
        (
            "kuk:0.7,0.25,2",
            (P, P, Q, Q),
            lambda x, *red: sum(red[:2]) if x else sum(red[2:]),
        ),
        ("mangat:0.7", (P,), lambda x, sensitive: 1 if x else 1 - sensitive),
        ("disguised:.7", (P,), lambda x, red: red if x else 1 - red),
    ],
)
def test_a_matrix_is_that_of_the_instructions(response, device, answer) -> None:
    assert response_matrix(response, NO_YES) == instructed(device, answer)


def test_every_design_is_tested_and_its_columns_add_up() -> None:
    texts = {"forced": "1/2,1/4,1/4", "unrelated": "0.7,0.2", "kuk": "0.8,0.1,7"}
    for name in NAMED:
        matrix = response_matrix(f"{name}:{texts.get(name, '0.6')}", NO_YES)
        assert [sum(column) for column in zip(*matrix, strict=True)] == [1, 1]


def test_forced_answers_of_more_than_two_categories_are_in_their_order() -> None:
    matrix = response_matrix("forced:1/2,1/4,1/8,1/8", "abc")
    assert [row[0] for row in matrix] == [Fraction(3, 4), Fraction(1, 8), Fraction(1, 8)]


@pytest.mark.parametrize(
    ("response", "categories", "said"),
    [
        ("dice:0.7", NO_YES, "no design 'dice'; choose one of warner, forced"),
        ("warner", NO_YES, "expected warner:P: '' is neither"),
        ("warner:1,2", NO_YES, "expected warner:P: it has 2"),
        ("warner:7/0", NO_YES, "'7/0' is neither"),
        ("warner:1e9", NO_YES, "'1e9' is neither"),
        ("unrelated:1.5,0.2", NO_YES, "lies between 0 and 1"),
        ("forced:2/3,1/6", NO_YES, "truth and of 2 forced"),
        ("forced:0.66,0.17,0.16", NO_YES, "do not add up to 1; fractions"),
        ("kuk:0.8,0.2,0", NO_YES, "from 1 to 100"),
        ("kuk:0.8,0.2,1/2", NO_YES, "from 1 to 100"),
        ("kuk:0.8,0.2,1,1", NO_YES, "it has 4"),
        ("crosswise:1/4", ("Yes", "No"), "in the order no, yes"),
        ("warner:0.7", ("a", "b", "c"), "for two categories"),
    ],
)
def test_another_declaration_is_refused(response, categories, said) -> None:
    with pytest.raises(InputError, match=said):
        response_matrix(response, categories)


def test_an_attribute_declares_a_response_and_its_answers() -> None:
    plain = {"name": "a", "categories": ["no", "yes"], "response": "crosswise:1/4"}
    schema = Schema.from_plain({"attribute": [plain | {"answers": ["other", 1]}]})
    assert schema.attributes[0].answers == ("other", "1")
    assert Schema.from_plain(schema.to_plain()) == schema
    assert Attribute("a", NO_YES, response="kuk:0.8,0.2,2").answers == ("0", "1", "2")
    assert Attribute("a", ("yes", "no"), response="warner:0.7").answers == ()
    for more, said in (
        ({"epsilon": 1.0}, "has a response, which has the ε of its matrix"),
        ({"answers": ["one"]}, "has 2 answers, not 1"),
        ({"answers": ["one", "one"]}, "distinct texts"),
        ({"response": "forced:1"}, "attribute 'a': response 'forced:1'"),
    ):
        with pytest.raises(InputError, match=said):
            Schema.from_plain({"attribute": [plain | more]})
    part = Attribute("a", NO_YES, response="warner:0.7")
    with pytest.raises(InputError, match="response of its own"):
        Attribute.merged([part, Attribute("b", NO_YES)])
    with pytest.raises(InputError, match="leave answers out"):
        Attribute("c", parts=(Attribute("a", NO_YES), Attribute("b", NO_YES)), answers=NO_YES)
