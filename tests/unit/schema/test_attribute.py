"""An attribute says which values a column may have, and refuses to contradict itself."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.schema import Attribute, category_text, interval_labels

SEX = Attribute("sex", ("f", "m"))


def test_a_binned_attribute_has_one_category_per_interval_and_is_ordered() -> None:
    age = Attribute("age", bins=(16, 30, 45.5, 90))
    assert age.categories == ("[16,30)", "[30,45.5)", "[45.5,90]")
    assert age.ordered
    assert age.n_categories == 3
    assert age.category_scores() == (23.0, 37.75, 67.75)


def test_interval_labels_write_whole_numbers_without_a_point_and_others_to_the_last_digit() -> None:
    assert interval_labels((-1.0, 0.1, 1e15, 1e16)) == (
        "[-1,0.1)",
        "[0.1,1000000000000000.0)",
        "[1000000000000000.0,1e+16]",
    )


@given(st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=8, unique=True).map(sorted))
def test_different_edges_never_make_equal_interval_names(edges: list[float]) -> None:
    assert Attribute("x", bins=tuple(edges)).n_categories == len(edges) - 1


def test_a_missing_category_is_added_at_the_end_unless_it_is_there() -> None:
    assert Attribute("a", ("x", "y"), missing="NA").categories == ("x", "y", "NA")
    assert Attribute("a", ("NA", "y"), missing="NA").categories == ("NA", "y")
    binned = Attribute("a", bins=(0, 1, 2), missing="NA")
    assert binned.categories == ("[0,1)", "[1,2]", "NA")
    assert binned.category_scores() is None  # the missing category has no middle
    assert Attribute("a", bins=(0, 1, 2), missing="NA", scores=(0, 1, 5)).category_scores() == (
        0.0,
        1.0,
        5.0,
    )


def test_scores_and_labels_are_optional() -> None:
    assert SEX.category_scores() is None
    assert SEX.label("f") == "f"
    labelled = Attribute("sex", ("f", "m"), labels={"f": "female"}, scores=(0, 1))
    assert labelled.label("f") == "female"
    assert labelled.label("m") == "m"
    assert labelled.category_scores() == (0.0, 1.0)


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"name": "", "categories": ("x", "y")}, "an attribute has an empty name"),
        ({"categories": ()}, "'a' has 0 categories; randomized response needs at least 2"),
        ({"categories": ("x",)}, "'a' has 1 categories"),
        ({"categories": ("x", "y"), "bins": (0, 1, 2)}, "both categories and bins"),
        ({"bins": (0, 1)}, "at least three edges"),
        ({"bins": ()}, "at least three edges"),
        ({"bins": (0, 1, float("inf"))}, "a bin edge is not finite"),
        ({"bins": (0, float("nan"), 1)}, "a bin edge is not finite"),
        ({"bins": (0, 1, 1)}, "bin edges must increase"),
        ({"bins": (0, 2, 1)}, "bin edges must increase"),
        ({"categories": ("x", "")}, "the empty text"),
        ({"categories": ("x", "y"), "missing": ""}, "the empty text"),
        ({"categories": ("x", "y", "x")}, "category 'x' is declared twice"),
        ({"categories": ("x", "y"), "labels": {"z": "zed"}}, "a label for 'z'"),
        ({"categories": ("x", "y"), "scores": (1,)}, "needs 2 scores, one finite"),
        ({"categories": ("x", "y"), "scores": (1, 2, 3)}, "needs 2 scores, one finite"),
        (
            {"categories": ("x", "y"), "scores": (1, float("nan"))},
            "needs 2 scores, one finite",
        ),
        ({"categories": ("x", "y"), "epsilon": 0.0}, "'a', epsilon: .* above 0 nats"),
        ({"categories": ("x", "y"), "epsilon": float("inf")}, "'a', epsilon"),
        ({"categories": ("x", "y"), "ratio": -1.0}, "'a', ratio"),
        ({"categories": ("x", "y"), "importance": float("nan")}, "'a', importance"),
    ],
)
def test_an_attribute_that_contradicts_itself_is_refused(
    declared: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        Attribute(**{"name": "a", **declared})


def test_the_text_of_a_category_is_what_a_table_writes() -> None:
    assert category_text(True) == "true"
    assert category_text(False) == "false"
    assert category_text(-7) == "-7"
    assert category_text("True") == "True"


def test_levels_may_be_numpy_numbers() -> None:
    assert Attribute("a", ("x", "y"), epsilon=np.float64(1.5)).epsilon == 1.5
