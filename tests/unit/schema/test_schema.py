"""A schema says what a table contains, and refuses to contradict itself."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.schema import Attribute, Schema

SEX = Attribute("sex", ("f", "m"))


@pytest.mark.parametrize(
    ("attributes", "keep", "problem"),
    [
        ((), (), "protects no attribute"),
        ((SEX,), ("sex",), "protects no attribute"),
        ((SEX, SEX), (), "attribute 'sex' is declared twice"),
        ((SEX,), ("id", "id"), "column 'id' is listed twice under keep"),
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
    with pytest.raises(InputError, match="'a2' has 1 category"):
        Schema.anonymous([2, 1])


texts = st.text(min_size=1, max_size=6).filter(lambda text: text == text.strip(" \t\r\n"))


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


@settings(max_examples=12)
@given(st.lists(texts, min_size=1, max_size=2, unique=True), texts, st.data())
def test_any_schema_survives_being_written_and_read_back(
    names: list[str], title: str, data: st.DataObject
) -> None:
    keep = tuple(f"kept {name}" for name in names)
    schema = Schema(tuple(data.draw(attributes(name)) for name in names), title, keep)
    assert Schema.from_plain(schema.to_plain()) == schema


def test_the_head_and_questions_come_back_from_a_file_and_a_record(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'title = "Survey"\nresponsible = "A. Steward"\ncontact = "a@office.example"\n'
        'date = 2026-11-24\n[[attribute]]\nname = "smokes"\ncategories = ["no", "yes"]\n'
        'question = "Do you smoke?"\n'
    )
    schema = Schema.from_toml(tmp_path / "s.toml")
    assert (schema.responsible, schema.contact) == ("A. Steward", "a@office.example")
    assert schema.date == "2026-11-24"
    assert schema.attributes[0].question == "Do you smoke?"
    assert Schema.from_plain(schema.to_plain()) == schema
    assert "responsible" not in Schema.anonymous((2,)).to_plain()


def test_blanks_at_the_end_of_a_category_are_refused(tmp_path):
    with pytest.raises(InputError, match="'g': ' A' has blanks at an end"):
        Attribute("g", (" A", "B"))
    path = tmp_path / "s.toml"
    path.write_text('[[attribute]]\nname = "g"\ncategories = [" A", "B"]\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"s\.toml: attribute 'g': ' A' has blanks at an end"):
        Schema.from_toml(path)
