"""An attribute merged from several columns: its categories, its declaration, its parts by name."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.frontier.priors import merge
from deniable.schema import MAX_CATEGORIES, Attribute, Schema

SEX = Attribute("sex", ("f", "m"))
AGE = Attribute("age", bins=(0, 30, 60), missing="NA")
BLOOD = Attribute("blood", ("A", "B", "0"))
MERGED = Attribute("sex+age", parts=(SEX, AGE))

TOML = """
title = "People"
[[attribute]]
name = "sex+age"
epsilon = 2.0
[[attribute.part]]
name = "sex"
categories = ["f", "m"]
labels = { f = "woman" }
[[attribute.part]]
name = "age"
bins = [0, 30, 60]
missing = "category:NA"
[[attribute]]
name = "blood"
categories = ["A", "B", "0"]
keep = ["region"]
"""


def test_the_categories_are_the_combinations_with_the_last_part_fastest() -> None:
    assert MERGED.categories == (
        "f+[0,30)", "f+[30,60]", "f+NA", "m+[0,30)", "m+[30,60]", "m+NA",
    )  # fmt: skip
    assert MERGED.columns == (SEX, AGE)
    assert BLOOD.columns == (BLOOD,)
    assert MERGED.strides == (3, 1)
    assert merge([SEX, AGE]) == MERGED == Attribute.merged([SEX, AGE])


@given(st.lists(st.integers(2, 5), min_size=2, max_size=4))
def test_a_strides_arithmetic_takes_a_code_apart(sizes: list[int]) -> None:
    parts = [
        Attribute(f"p{i}", tuple(f"{i}{chr(97 + c)}" for c in range(n)))
        for i, n in enumerate(sizes)
    ]
    whole = Attribute.merged(parts)
    for code, category in enumerate(whole.categories):
        codes = [
            code // stride % part.n_categories
            for part, stride in zip(parts, whole.strides, strict=True)
        ]
        assert category == "+".join(p.categories[c] for p, c in zip(parts, codes, strict=True))


def test_a_schema_file_declares_the_parts_in_tables_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(TOML)
    schema = Schema.from_toml(tmp_path / "s.toml")
    whole = schema.attributes[0]
    assert whole.name == "sex+age"
    assert whole.categories == MERGED.categories
    assert whole.epsilon == 2.0
    assert whole.parts[0].labels == {"f": "woman"}
    assert whole.parts[1].missing == "NA"
    assert schema.names == ("sex+age", "blood")
    assert schema.columns == ("sex", "age", "blood")
    assert schema.keep == ("region",)


def test_a_merged_attribute_need_not_be_named() -> None:
    parts = [{"names": ["a", "b"], "categories": ["0", "1"]}]
    (whole,) = Schema.from_plain({"attribute": [{"part": parts}]}).attributes
    assert whole.name == "a+b"
    assert whole.categories == ("0+0", "0+1", "1+0", "1+1")


def test_a_record_holds_the_parts_and_reads_back_the_same() -> None:
    schema = Schema((MERGED, BLOOD), "title", ("region",))
    plain = schema.to_plain()
    assert Schema.from_plain(json.loads(json.dumps(plain))) == schema
    assert "categories" not in plain["attribute"][0]
    assert "part" not in plain["attribute"][1]


def test_parts_are_found_by_their_names_and_the_whole_by_its_own() -> None:
    schema = Schema((BLOOD, MERGED))
    part = schema.variable("age")
    assert (part.attribute, part.position, part.part) == (AGE, 1, 1)
    whole = schema.variable("sex+age")
    assert (whole.attribute, whole.position, whole.part) == (MERGED, 1, None)
    assert [v.attribute.name for v in schema.variables(["age", "blood"])] == ["age", "blood"]
    with pytest.raises(InputError, match="'sex' is a part of 'sex\\+age', which is randomized as"):
        schema.position("sex")
    with pytest.raises(InputError, match="there is no attribute 'weight'"):
        schema.variable("weight")
    with pytest.raises(InputError, match="which is also named"):
        schema.variables(["sex+age", "age"])


def test_attributes_of_a_schema_are_merged_in_the_first_ones_place() -> None:
    schema = Schema((BLOOD, SEX, Attribute("x", ("0", "1")), AGE), "t", ("region",))
    merged = schema.merging(["age", "sex"])
    assert merged.names == ("blood", "age+sex", "x")
    assert merged.columns == ("blood", "age", "sex", "x")
    assert (merged.title, merged.keep) == ("t", ("region",))
    with pytest.raises(InputError, match="at least two parts"):
        schema.merging(["age"])


WIDE = Attribute("w", tuple(map(str, range(1001))))

BAD = [
    (lambda: Attribute("x", parts=(SEX,)), "at least two parts"),
    (lambda: Attribute("x", parts=(SEX, SEX)), "the name 'sex'"),
    (lambda: Attribute("sex", parts=(SEX, AGE)), "the name 'sex'"),
    (lambda: Attribute("x", ("a", "b"), parts=(SEX, BLOOD)), "leave them out"),
    (lambda: Attribute("x", parts=(SEX, MERGED)), "name its columns"),
    (lambda: Attribute("x", ordered=True, parts=(SEX, BLOOD)), "belong to its parts"),
    (lambda: Attribute("x", missing="NA", parts=(SEX, BLOOD)), "belong to its parts"),
    (lambda: Attribute("x", bins=(0, 1, 2), parts=(SEX, BLOOD)), "belong to its parts"),
    (
        lambda: Attribute("x", parts=(SEX, Attribute("y", ("0", "1"), epsilon=1.0))),
        "part 'y' has a level, ratio or importance of its own",
    ),
    (
        lambda: Attribute("x", parts=(WIDE, Attribute("v", WIDE.categories))),
        f"more than {MAX_CATEGORIES}",
    ),
    (
        lambda: Attribute("x", parts=(Attribute("y", ("a", "a+b")), Attribute("z", ("c", "b+c")))),
        "category 'a\\+b\\+c' is declared twice",
    ),
    (lambda: Schema((MERGED, SEX)), "'sex' is declared twice"),
    (lambda: Schema((MERGED, Attribute("age+sex", parts=(AGE, SEX)))), "is declared twice"),
    (
        lambda: Schema((MERGED,), keep=("age",)),
        "'age' is listed under keep, but 'sex\\+age' is merged",
    ),
    (lambda: Schema((MERGED,), keep=("sex+age",)), "randomized together"),
    (
        lambda: Schema.from_plain(
            {"attribute": [{"names": ["x", "y"], "part": [{"name": "a", "categories": ["0"]}]}]}
        ),
        "needs at least 2",
    ),
    (
        lambda: Schema.from_plain(
            {
                "attribute": [
                    {"names": ["x", "y"], "part": [{"names": ["a", "b"], "categories": [0, 1]}]}
                ]
            }
        ),
        "has one name",
    ),
]


@pytest.mark.parametrize(("build", "said"), BAD)
def test_a_contradiction_is_one_sentence(build: object, said: str) -> None:
    assert callable(build)
    with pytest.raises(InputError, match=said):
        build()
