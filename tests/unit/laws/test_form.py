"""What a form is, and what is none."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.laws.count_table import CountTable
from deniable.laws.form import Draw, Form
from deniable.laws.pattern_table import PatternTable
from deniable.laws.set_answers import SetAnswers
from unit.laws.test_forms import broad_forms, drawing_forms, pairs_of


def test_a_form_that_draws_has_the_mean_eigenvalues_where_the_draw_is_not_seen() -> None:
    form = drawing_forms().forms[0]
    values = form.eigenvalues((0, 2))
    assert values[0, 0] == pytest.approx(1)
    assert values[1, 0] == pytest.approx(2 / 3 * form.table.eigenvalues((1,))[1])
    assert values[1, 1] == pytest.approx(2 / 3 * form.table.eigenvalues((1, 0))[1, 1])


@pytest.mark.parametrize(
    ("words", "asked", "drawn"),
    [
        ("each once", (0,), ((0, 1), 1)),
        ("not all", (2,), ((0, 1), 2)),
        ("other categories", (0,), ((1, 2), 1)),
        ("treat alike", (2,), ((0, 1, 3), 2)),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    words: str, asked: tuple[int, ...], drawn: tuple[tuple[int, ...], int]
) -> None:
    n = (2, 2, 3, 2)
    sizes = [*(n[i] for i in asked), *[2] * drawn[1]]
    random = np.random.default_rng(1).dirichlet(np.ones(2 ** len(sizes)))
    table = PatternTable.from_probabilities(sizes, random)
    with pytest.raises(InputError, match=words):
        Form(n, asked, table, (Draw(*drawn),))


@pytest.mark.parametrize(
    ("words", "sets"),
    [
        ("each once, in order", ((1, pairs_of(3)),)),
        ("of other categories", ((0, pairs_of(3)),)),
        ("other breadths", ()),
    ],
)
def test_sets_that_do_not_fit_their_form_are_refused(
    words: str, sets: tuple[tuple[int, SetAnswers], ...]
) -> None:
    form = broad_forms().forms[0]
    with pytest.raises(InputError, match=words):
        replace(form, sets=sets)


@pytest.mark.parametrize("asked", [(1, 0), (0, 3), (0, 0)])
def test_a_form_asks_each_attribute_once_in_order(asked: tuple[int, ...]) -> None:
    table = PatternTable.from_probabilities((2, 2), np.full((2, 2), 0.25))
    with pytest.raises(InputError, match="each once"):
        Form((2, 2), asked, table)


def test_a_table_by_the_number_of_changes_is_for_one_draw_alone() -> None:
    table = CountTable.of_counts((3, 3), [3.0, 1.0, 1.0])
    with pytest.raises(InputError, match="one draw alone"):
        Form((3, 3, 3), (0,), table, (Draw((1, 2), 1),))
