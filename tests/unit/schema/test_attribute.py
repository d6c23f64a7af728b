"""An attribute says which values a column may have, and refuses to contradict itself."""

import json
import math
import tomllib
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.schema import Attribute, Schema, category_text, interval_labels

SEX = Attribute("sex", ("f", "m"))


def test_a_binned_attribute_has_one_category_per_interval_and_is_ordered() -> None:
    age = Attribute("age", bins=(16, 30, 45.5, 90))
    assert age.categories == ("[16,30)", "[30,45.5)", "[45.5,90]")
    assert age.ordered
    assert age.n_categories == 3
    assert age.category_scores() is None  # the middle of a bin is not the mean of what is in it
    assert age.middles() == (23.0, 37.75, 67.75)
    assert age.bounds() == ((16.0, 30.0), (30.0, 45.5), (45.5, 90.0))
    assert SEX.bounds() is SEX.middles() is None


def test_the_outer_intervals_may_have_no_end_and_then_they_have_no_middle() -> None:
    age = Attribute("age", bins=(-math.inf, 18, 65, math.inf))
    assert age.categories == ("(-inf,18)", "[18,65)", "[65,inf)")
    assert age.bounds() == ((-math.inf, 18), (18, 65), (65, math.inf))
    with pytest.raises(InputError, match="'age' has an unbounded interval, which has no middle"):
        age.middles()
    assert Attribute("a", bins=(0, 1, math.inf)).categories == ("[0,1)", "[1,inf)")


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
    assert binned.middles() == (0.5, 1.5, None)
    assert binned.bounds() == ((0.0, 1.0), (1.0, 2.0), None)


def test_scores_cover_all_categories_or_all_but_that_of_missing_values() -> None:
    binned = Attribute("a", bins=(0, 1, 2), missing="NA", scores=(0, 1, 5))
    assert binned.category_scores() == (0.0, 1.0, 5.0)
    assert binned.category_scores((0.2, 1.4)) == (0.2, 1.4, None)
    among = Attribute("a", ("x", "NA", "y"), missing="NA", scores=(1, 2))
    assert among.scores == (1.0, 2.0)
    assert among.category_scores() == (1.0, None, 2.0)
    with pytest.raises(InputError, match="that of missing values may be left out"):
        Attribute("a", ("x", "NA", "y"), missing="NA", scores=(1,))


def test_margins_are_of_the_scores_of_bins_and_stay_within_these() -> None:
    bins = {"bins": (0, 10, 20), "scores": (4, 19)}
    hours = Attribute("a", **bins, score_margins=(1, 3), missing="NA")
    assert hours.score_margins == (1.0, 3.0)
    assert hours.score_ranges() == ((3.0, 5.0), (16.0, 20.0), None)
    assert Attribute("a", **bins).score_ranges() is None
    for wrong in ((1,), (1, -1), (1, float("inf")), (1, 2, 3)):
        with pytest.raises(InputError, match="needs 2 score_margins, one finite number from 0"):
            Attribute("a", **bins, score_margins=wrong)
    with pytest.raises(InputError, match="declare scores too"):
        Attribute("a", bins=(0, 10, 20), score_margins=(1, 2))
    children = Attribute("a", ("0", "1", "2+"), scores=(0, 1, 2.4), score_margins=(0, 0, 0.5))
    assert children.score_ranges() == ((0, 0), (1, 1), (1.9, 2.9))
    everybody = Attribute(
        "a", **bins | {"scores": (4, 19, 7)}, missing="NA", score_margins=(9,) * 3
    )
    assert everybody.score_ranges() == ((0, 10), (10, 20), (-2, 16))


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
        ({"categories": ("x",)}, "'a' has 1 category"),
        ({"categories": ("x", "y"), "bins": (0, 1, 2)}, "both categories and bins"),
        ({"bins": (0, 1)}, "at least three edges"),
        ({"bins": ()}, "at least three edges"),
        ({"bins": (0, math.inf, 2)}, "a bin edge is not a number; only the first may be -inf"),
        ({"bins": (0, math.nan, 1)}, "a bin edge is not a number"),
        ({"bins": (0, 1, math.nan)}, "a bin edge is not a number"),
        ({"bins": (0, 1, 1)}, "bin edges must increase"),
        ({"bins": (0, 2, 1)}, "bin edges must increase"),
        ({"categories": ("x", "")}, "the empty text"),
        ({"categories": ("x", "y"), "missing": ""}, "the empty text"),
        ({"categories": ("x", "y", "x")}, "category 'x' is declared twice"),
        (
            {"categories": ("x", "y"), "labels": {"z": "zed"}},
            "the label of 'z' belongs to no category",
        ),
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


def test_edges_that_are_dates_make_intervals_of_days_and_survive_a_record() -> None:
    born = Attribute("born", bins=(date(1950, 1, 1), date(1980, 1, 1), float("inf")), missing="NA")
    assert born.categories == ("[1950-01-01,1980-01-01)", "[1980-01-01,inf)", "NA")
    schema = Schema((born,))
    assert schema.to_plain()["attribute"][0]["bins"] == ["1950-01-01", "1980-01-01", "inf"]
    assert Schema.from_plain(json.loads(json.dumps(schema.to_plain()))) == schema
    text = '[[attribute]]\nname = "born"\nbins = [1950-01-01, 1980-01-01, inf]\n'
    read = Schema.from_plain(tomllib.loads(text + 'missing = "category:NA"\n'))
    assert read == schema
    assert replace(born, epsilon=1.0).categories == born.categories
    with pytest.raises(InputError, match="'soon' is neither a number nor a date"):
        Schema.from_plain({"attribute": [{"name": "a", "bins": [0, "soon", 2]}]})


def test_codes_of_missing_values_need_a_category_and_are_none_themselves() -> None:
    plain = {"name": "a", "categories": ["x"], "missing": "category:NA", "missing_codes": ["?", 9]}
    schema = Schema.from_plain({"attribute": [plain]})
    assert schema.attributes[0].missing_codes == ("?", "9")
    assert Schema.from_plain(schema.to_plain()) == schema
    with pytest.raises(InputError, match="declare their category"):
        Attribute("a", ("x", "y"), missing_codes=("?",))
    with pytest.raises(InputError, match="'x' is both a category and a missing code"):
        Attribute("a", ("x", "y"), missing="NA", missing_codes=("x",))


def test_a_schema_knows_which_of_its_columns_were_drafted() -> None:
    drafted = Attribute("a", ("x", "y"), drafted=True)
    other = Attribute("b", ("x", "y"))
    schema = Schema((drafted, other, replace(drafted, name="c")), keep=("c",))
    assert schema.drafted == ("a",)
    assert Schema.from_plain(schema.to_plain()) == schema
    assert schema.merging(["a", "b"]).drafted == ("a",)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"range": (0, 1), "bins": (0, 1, 2)}, "declare one of them"),
        ({"range": (0, 1), "categories": ("a", "b")}, "declare one of them"),
        ({"range": (0, 1), "scores": (0, 1)}, "leave the scores out"),
        ({"range": (0, 1, 2)}, "two ends"),
        ({"range": (0, "1")}, "list of numbers or dates"),
        ({"range": (1, 0)}, "attribute 'x': a range must end above"),
        ({"range": (date(2020, 1, 1), date(2020, 1, 3)), "grid": 9}, "more points than"),
        ({"categories": ("a", "b"), "grid": 3}, "no range"),
        ({"categories": ("a", "b"), "unit": "EUR"}, "no range"),
        ({"categories": ("a", "b"), "outside": "clip"}, "no range"),
    ],
)
def test_a_contradictory_number_is_refused(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Attribute("x", **declared)


def test_the_points_of_a_number_are_its_categories_and_scores() -> None:
    seen = Attribute("seen", range=(date(2020, 1, 1), date(2026, 12, 31)), grid=9, missing="?")
    assert seen.categories[:2] == ("2020-01-01", "2020-11-16")  # a half day is rounded
    scores = seen.category_scores()
    assert scores is not None
    assert scores[:2] == (18262.0, 18581.5)
    assert scores[-1] is None
    assert len(Attribute("x", range=(0, 1)).categories) == 3
    assert len(Attribute("x", range=(0, 1), purpose="distribution").categories) == 9
