"""A schema says what a table contains, and refuses to contradict itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.schema import Attribute, Schema, category_text, interval_labels

SEX = Attribute("sex", ("f", "m"))


# --- attributes ----------------------------------------------------------------------------------


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


# --- schemas -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "keep", "problem"),
    [
        ((), (), "protects no attribute"),
        ((SEX,), ("sex",), "protects no attribute"),
        ((SEX, SEX), (), "attribute 'sex' is declared twice"),
        ((SEX,), ("id", "id"), "column 'id' is kept twice"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(
    attributes: tuple[Attribute, ...], keep: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        Schema(attributes, keep=keep)


def test_attributes_that_are_kept_are_not_protected() -> None:
    schema = Schema((SEX, Attribute("region", ("n", "s", "w"))), keep=("region", "weight"))
    assert schema.names == ("sex", "region")
    assert schema.n_categories == (2, 3)
    assert schema.protected == (0,)


def test_positions_are_found_by_name_in_the_order_asked() -> None:
    schema = Schema.anonymous([2] * 15)
    assert schema.positions(["a3", "a1"]) == (2, 0)
    assert schema.positions([]) == ()
    with pytest.raises(InputError, match=r"no attribute 'b' in the schema; it has a1, .*a12, …$"):
        schema.position("b")
    with pytest.raises(InputError, match="'a3' is named twice"):
        schema.positions(["a3", "a1", "a3"])


def test_an_anonymous_schema_has_the_categories_asked_for_and_at_least_two() -> None:
    schema = Schema.anonymous([2, 3])
    assert schema.names == ("a1", "a2")
    assert schema.attributes[1].categories == ("0", "1", "2")
    with pytest.raises(InputError, match="'a2' has 1 categories"):
        Schema.anonymous([2, 1])


# --- files ---------------------------------------------------------------------------------------

FULL = """
title = "A survey"
keep = ["id"]

[[attribute]]
name = "sex"
categories = ["f", "m"]
labels = {f = "female"}
epsilon = 1

[[attribute]]
names = ["smokes", "drinks"]
categories = [false, true]
missing = "category:refused"
importance = 2.5

[[attribute]]
name = "children"
categories = [0, 1, 2]
ordered = true
scores = [0, 1, 2.5]
ratio = 3

[[attribute]]
name = "age"
bins = [16, 30, 45.5, 90]
keep = ["weight"]
"""


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "schema.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_schema_file_is_read_completely(tmp_path: Path) -> None:
    schema = Schema.from_toml(written(tmp_path, FULL))
    assert schema.title == "A survey"
    assert schema.keep == ("id", "weight")  # also the one under the last [[attribute]]
    assert schema.names == ("sex", "smokes", "drinks", "children", "age")
    sex, smokes, drinks, children, age = schema.attributes
    assert sex == Attribute("sex", ("f", "m"), labels={"f": "female"}, epsilon=1.0)
    assert smokes.categories == drinks.categories == ("false", "true", "refused")
    assert smokes.missing == "refused"
    assert smokes.importance == 2.5
    assert children.categories == ("0", "1", "2")
    assert children.ordered
    assert children.ratio == 3.0
    assert age.bins == (16.0, 30.0, 45.5, 90.0)


def test_a_schema_survives_being_written_as_plain_values_and_read_back(tmp_path: Path) -> None:
    import json

    schema = Schema.from_toml(written(tmp_path, FULL))
    assert Schema.from_plain(json.loads(json.dumps(schema.to_plain()))) == schema


texts = st.text(min_size=1, max_size=6)


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Attribute:
    binned = draw(st.booleans())
    bins = categories = None
    if binned:
        edges = st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=6, unique=True)
        bins = tuple(sorted(draw(edges)))
    else:
        categories = tuple(draw(st.lists(texts, min_size=2, max_size=5, unique=True)))
    missing = draw(st.none() | texts)
    plain = Attribute(name, categories or (), bins=bins, missing=missing)
    level = st.none() | st.floats(1e-9, 1e9)
    scores = st.floats(-1e9, 1e9)
    n = plain.n_categories
    return Attribute(
        name,
        categories or (),
        bins=bins,
        missing=missing,
        ordered=draw(st.booleans()),
        labels={plain.categories[0]: draw(texts)} if draw(st.booleans()) else {},
        scores=draw(st.none() | st.lists(scores, min_size=n, max_size=n).map(tuple)),
        epsilon=draw(level),
        ratio=draw(level),
        importance=draw(level),
    )


@given(st.lists(texts, min_size=1, max_size=3, unique=True), texts, st.data())
def test_any_schema_survives_being_written_and_read_back(
    names: list[str], title: str, data: st.DataObject
) -> None:
    keep = tuple(f"kept {name}" for name in names)
    schema = Schema(tuple(data.draw(attributes(name)) for name in names), title, keep)
    assert Schema.from_plain(schema.to_plain()) == schema


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[attribute]\n", "not valid TOML"),
        (b'title = "\xff"\n', "not UTF-8 text"),
        ("", "missing required field `attribute`"),
        ("attribute = 3", "Expected `array`, got `int`"),
        ('[[attribute]]\ncategories = ["x", "y"]', "needs either name = "),
        (
            '[[attribute]]\nname = "a"\nnames = ["b"]\ncategories = ["x", "y"]',
            "needs either name = ",
        ),
        ('[[attribute]]\nname = "a"\ncategorys = ["x", "y"]', "unknown field `categorys`"),
        ('[[attribute]]\nname = "a"\ncategories = [1.5, 2]', "got `float`"),
        ('[[attribute]]\nname = "a"\ncategories = ["x", "y"]\nmissing = "NA"', "category:NAME"),
        ('[[attribute]]\nname = "a"\ncategories = ["x"]\nmissing = "category:"', "category:NAME"),
        ('[[attribute]]\nname = "a"\ncategories = ["x", "y"]\nepsilon = "1"', "epsilon"),
        ('[[attribute]]\nname = "a"\ncategories = ["x", "y"]\nepsilon = nan', "epsilon"),
        ('[[attribute]]\nnames = ["a", "a"]\ncategories = ["x", "y"]', "'a' is declared twice"),
        ('keep = ["a"]\n[[attribute]]\nname = "a"\ncategories = [0, 1]', "protects no attribute"),
    ],
)
def test_a_wrong_schema_file_is_refused_with_its_name(
    tmp_path: Path, text: str | bytes, problem: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=problem) as caught:
        Schema.from_toml(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_schema_file_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read \\(No such file"):
        Schema.from_toml(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        Schema.from_toml(tmp_path)


def test_the_text_of_a_category_is_what_a_table_writes() -> None:
    assert category_text(True) == "true"
    assert category_text(False) == "false"
    assert category_text(-7) == "-7"
    assert category_text("True") == "True"


def test_levels_may_be_numpy_numbers() -> None:
    assert Attribute("a", ("x", "y"), epsilon=np.float64(1.5)).epsilon == 1.5
