"""A schema file is read completely, or refused in one sentence that names it."""

import json
from pathlib import Path

import pytest

from deniable.errors import InputError
from deniable.schema import Attribute, Schema

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
score_margins = [0, 0, 0.5]
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
    assert children.score_margins == (0.0, 0.0, 0.5)
    assert children.ratio == 3.0
    assert age.bins == (16.0, 30.0, 45.5, 90.0)


def test_a_schema_survives_being_written_as_plain_values_and_read_back(tmp_path: Path) -> None:
    schema = Schema.from_toml(written(tmp_path, FULL))
    assert Schema.from_plain(json.loads(json.dumps(schema.to_plain()))) == schema


def test_intervals_without_an_end_are_written_inf_and_survive_strict_json(tmp_path: Path) -> None:
    text = '[[attribute]]\nname = "gain"\nbins = [-inf, 0, 1000, inf]\nscores = [-50, 0, 13000]'
    schema = Schema.from_toml(written(tmp_path, text))
    assert schema.attributes[0].categories == ("(-inf,0)", "[0,1000)", "[1000,inf)")
    strict = json.dumps(schema.to_plain(), allow_nan=False)
    assert Schema.from_plain(json.loads(strict)) == schema


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[attribute]\n", "not valid TOML"),
        (b'title = "\xff"\n', "not UTF-8 text"),
        ("", r"declares no attribute; write an \[\[attribute\]\] for every column"),
        ("attribute = 3", "Expected `array`, got `int`"),
        ('[[attribute]]\ncategories = ["x", "y"]', "needs either name = "),
        (
            '[[attribute]]\nname = "a"\nnames = ["b"]\ncategories = ["x", "y"]',
            "needs either name = ",
        ),
        (
            '[[attribute]]\nname = "a"\ncategorys = ["x", "y"]',
            r"unknown field `categorys` .*; did you mean `categories`\?",
        ),
        ('[attribute]\nname = "a"\ncategories = ["x", "y"]', "in double ones"),
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
