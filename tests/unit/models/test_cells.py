"""Cells, merged categories, and the columns that keep them apart."""

import numpy as np
import pytest

from deniable.errors import InputError
from deniable.models.cells import Axis, Cells, Columns, interactions, of_merged

RACE = Axis("race", ("black", "white", "asian", "other"))


def test_levels_come_in_the_order_written_and_others_last() -> None:
    axis = RACE.collapsed("white|black,asian|*")
    assert axis.levels == ("white", "black+asian", "other")
    assert axis.level_of == (1, 0, 1, 2)
    assert axis.merged
    assert not RACE.merged
    assert RACE.collapsed("white|other|*").levels == ("white", "other", "other values")
    ages = Axis("age", ("20.0", "21.0", "22.0"))
    assert ages.collapsed("20|21,22").levels == ("20.0", "21.0+22.0")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("white|green|*", "'race' has no category 'green' \\(it has black, white"),
        ("white|white,black|*", "'white' is named twice"),
        ("white|black", "'asian' is in no level; add |\\* for all others"),
        ("white|*|*", "with \\* at most once"),
        ("white||*", "expected levels such as"),
        ("white|black,*", "expected levels such as"),
        ("*", "all categories of 'race' are in one level"),
        ("white,black,asian,other", "all categories of 'race' are in one level"),
        ("white|black|asian|other|*", "no categories remain for \\*"),
    ],
)
def test_a_mistake_in_collapse_is_one_sentence(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        RACE.collapsed(text)


def test_two_levels_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match=r"two levels would be called 'a\+b'"):
        Axis("x", ("a", "b", "a+b", "c")).collapsed("a,b|a+b|c")


def test_all_contrasts_span_every_table_and_none_is_a_reference() -> None:
    cells = Cells((RACE, Axis("sex", ("f", "m")), Axis("old", ("n", "y"))), 3)
    made = interactions(cells, (0, 1, 2), 3)
    assert made.values.shape == (16, 15)
    full = np.column_stack([np.ones(16), made.values])
    assert np.linalg.matrix_rank(full) == 16
    np.testing.assert_allclose(made.values.sum(axis=0), 0, atol=1e-12)
    assert set(made.terms) == {""}
    assert made.order[0] == 1
    assert made.order[-1] == 3


@pytest.mark.parametrize("response", [None, 0])
def test_merged_categories_are_told_apart_by_columns_of_their_own(response: int | None) -> None:
    axes = (
        Axis("y", ("n", "y")),
        RACE.collapsed("white|*"),
        Axis("c", tuple("uvw")).collapsed("u|*"),
    )
    cells = Cells(axes, 3)
    levels = interactions(cells.levels, (0, 1, 2), 2)
    place = cells.merged_into((0, 1, 2))
    beside = Columns.joined(*of_merged(cells, response))
    both = np.column_stack([np.ones(24), levels.values[place], beside.values])
    assert np.linalg.matrix_rank(both) == both.shape[1]  # none says what another does
    if response is None:  # all main effects and pairs of the categories
        pairs = np.column_stack([np.ones(24), interactions(cells, (0, 1, 2), 2).values])
        assert np.linalg.matrix_rank(np.hstack([both, pairs])) == both.shape[1]


def test_values_are_levels_and_numbers() -> None:
    axis = Axis("n", ("1", "2.5"), numbers=(1.0, 2.5))
    levels, numbers = Cells((RACE.collapsed("white|*"), axis), 1).values()
    assert numbers[:2].tolist() == [1.0, 2.5]
    assert levels[:3].tolist() == [1, 1, 0]
