"""Changes to the schema, and that requests follow them."""

from typing import Any

import pytest

from deniable.errors import InputError
from deniable.schema import Schema
from deniable.studio.declaring import (
    CHANGES,
    category_lines,
    problem_of,
    role_of,
    undeclared,
    with_roles,
)
from deniable.studio.draft import Draft
from deniable.studio.request import request_of
from unit.studio.drafts import ODD, SPLIT, attribute, draft

FORM = {"which": "0", "names": "a", "categories": "0\r\n1"}


def declared(*attributes: dict[str, Any], **form: str) -> dict[str, Any]:
    """The first attribute as it is declared after a form was sent."""
    changed = CHANGES["declare"](draft(*attributes), {**FORM, **form})
    return dict(changed.attributes[0])


def test_categories_and_labels_are_typed_or_pasted() -> None:
    for typed in ("1 = male\r\n2 = female", "1\tmale\n2\tfemale\n\n", "1 = male \n 2\tfemale"):
        assert declared(categories=typed) == {
            "name": "a", "categories": ["1", "2"], "labels": {"1": "male", "2": "female"},
        }  # fmt: skip
    others = {"ordered": "yes", "missing": "NA", "missing_codes": "-9; not asked"}
    assert declared(categories="x\ny", **others) == {
        "name": "a", "categories": ["x", "y"], "ordered": True,
        "missing": "category:NA", "missing_codes": ["-9", "not asked"],
    }  # fmt: skip


def test_bins_are_numbers_or_dates() -> None:
    assert declared(bins="-inf 0 18,5 65 inf")["bins"] == ["-inf", 0, 18.5, 65, "inf"]
    assert declared(bins="0, 18, 65")["bins"] == [0, 18, 65]
    assert declared(bins="1950-01-01 2000-12-31")["bins"] == ["1950-01-01", "2000-12-31"]
    assert "categories" not in declared(bins="0 1")


def test_a_number_has_a_range_in_place_of_categories() -> None:
    typed = {"kind": "number", "range": "0 99,5", "unit": " EUR ", "for": "distribution"}
    number = {"name": "a", "range": [0, 99.5], "unit": "EUR", "for": "distribution"}
    assert declared(attribute("a", labels={"0": "none"}, ordered=True), **typed) == number
    typed |= {"grid": "5", "clip": "yes", "for": "mean", "missing": "NA"}
    full = {"name": "a", "range": [0, 99.5], "unit": "EUR", "grid": 5, "for": "mean",
            "missing": "category:NA", "outside": "clip"}  # fmt: skip
    assert declared(number, **typed) == full
    labelled = full | {"labels": {"NA": "none"}}
    assert declared(labelled, **typed, categories="") == labelled
    dates = {"kind": "number", "range": "1950-01-01 2000-12-31"}
    assert declared(**dates) == {"name": "a", "range": ["1950-01-01", "2000-12-31"]}
    back = {"kind": "categories", "categories": "x\ny", "range": "0 9", "unit": "EUR"}
    assert declared(labelled, **back) == {"name": "a", "categories": ["x", "y"]}
    with pytest.raises(InputError, match="points of the grid: a whole number"):
        declared(**(typed | {"grid": "few"}))


def test_what_is_wrong_with_one_is_said_there() -> None:
    assert "category 'x'" in problem_of(declared(categories="x\ny\nx"))
    assert "must increase" in problem_of(declared(bins="0 30 20"))
    assert "needs at least 2" in problem_of(declared(categories="x"))
    assert "needs at least 2" in problem_of(declared(categories=""))
    assert "edge 'many' is neither a number nor a date" in problem_of(declared(bins="0 many"))
    assert "an empty name" in problem_of(declared(names=" \n"))
    assert problem_of(attribute("a")) == ""


WHOLE = {
    "name": "a", "categories": ["x = y", 2, True], "labels": {"2": "two = 2"}, "ordered": True,
    "scores": [1.0, 2.0, 3.0], "missing": "category:NA", "missing_codes": ["-9", "not asked"],
    "question": "Which?", "drafted": True,
}  # fmt: skip


def test_what_is_not_touched_stays_as_it_is() -> None:
    form = {
        "categories": category_lines(WHOLE), "ordered": "yes", "missing": "NA",
        "missing_codes": "-9; not asked", "question": "Which?",
    }  # fmt: skip
    assert declared(WHOLE, **form) == WHOLE
    assert "drafted" not in declared(WHOLE, **form, confirmed="yes")
    assert "scores" not in declared(WHOLE, **{**form, "categories": "1\n2"})
    bins = {"name": "a", "bins": [0, 2.5, "inf"], "labels": {"[0,2.5)": "few"}}
    assert declared(bins, categories="", bins="0 2.5 inf") == bins
    assert declared(bins, categories="", bins="0 3 inf") == {"name": "a", "bins": [0, 3, "inf"]}
    merged = {"part": [attribute("a"), attribute("b")]}
    assert declared(merged, question="Both?") == {**merged, "question": "Both?"}


def test_odd_names_and_categories_are_kept() -> None:
    for name in ODD:
        changed = declared(names=name, categories=f"{name}\nother", question=name)
        assert changed == {"name": name, "categories": [name, "other"], "question": name} or (
            "=" in name
        )
        assert declared(changed, names=name, categories=category_lines(changed), question=name) == (
            changed
        )
        Schema.from_plain({"attribute": [changed]})
    for name in SPLIT:
        one = attribute(name)
        assert declared(one, names=name) == one


WISHES = {
    "tables": "a\tb\nb\nc", "matrix_of": "a", "level__a": "1.5", "importance__a": "2",
    "shares__a": "50 50", "level__b": "3",
}  # fmt: skip


def test_requestes_follow_a_new_name_also_those_that_are_compared() -> None:
    before = draft(**WISHES)
    before = Draft(before.schema, before.controls, ({**before.controls, "pin": "A"},))
    after = CHANGES["declare"](before, {**FORM, "names": ODD[0], "kept": "yes"})
    new = {
        "tables": f"{ODD[0]}\tb\nb\nc", "matrix_of": ODD[0], f"level.{ODD[0]}": "1.5",
        f"importance.{ODD[0]}": "2", f"shares.{ODD[0]}": "50 50", "level.b": "3", "epsilon": "4",
    }  # fmt: skip
    assert after.controls == new
    assert after.pins == ({**new, "pin": "A"},)
    assert after.kept == (ODD[0],)
    assert CHANGES["declare"](after, FORM).kept == ()


def test_of_several_columns_those_that_stay_keep_their_tables() -> None:
    several = {"names": ["a", "b", "c"], "categories": ["0", "1"]}
    before = draft(several, tables="a\tb\nc")
    form = {**FORM, "names": "a\r\nc"}
    assert CHANGES["declare"](before, form).controls == {"epsilon": "4", "tables": "c"}
    assert CHANGES["declare"](before, {**form, "names": "c\nb\na"}).controls == before.controls
    renamed = CHANGES["declare"](before, {**form, "names": "a\nnew\nc"})
    assert renamed.controls == {"epsilon": "4", "tables": "a\tnew\nc"}
    assert renamed.attributes[0]["names"] == ["a", "new", "c"]


def test_what_is_wished_of_a_removed_attribute_goes() -> None:
    after = CHANGES["remove"](draft(**WISHES, keep=("a", "c")), {"which": "0"})
    assert after.controls == {
        **{"epsilon": "4", "tables": "b\nc"},
        **{"matrix_of": "", "level.b": "3"},
    }
    assert (after.columns, after.kept) == (("b", "c"), ("c",))
    assert request_of(after).problems == {}


def test_attributes_are_added_and_moved() -> None:
    grown = CHANGES["add"](draft(), {"names": "d, e"})
    assert grown.columns == ("a", "b", "c", "d", "e")
    assert grown.attributes[3]["drafted"]
    for which, step, order in (("0", "down", "bac"), ("0", "up", "abc"), ("2", "down", "abc")):
        assert "".join(CHANGES[step](draft(), {"which": which}).columns) == order
    for which in ("3", "-1", "", "²"):
        with pytest.raises(InputError, match="there is no such attribute any more"):
            CHANGES["up"](draft(), {"which": which})


def test_merging_and_taking_apart() -> None:
    before = draft(attribute("a", drafted=True), attribute("b"), attribute("c"), tables="a\nc")
    merged = CHANGES["merge"](before, {"which": "0", "other": "2"})
    assert merged.columns == ("a+c", "b")
    assert merged.controls == before.controls
    assert merged.attributes[0]["drafted"]
    assert request_of(merged).problems == {}
    again = CHANGES["merge"](merged, {"which": "1", "other": "0"})
    assert again.columns == ("b+a+c",)
    assert CHANGES["split"](merged, {"which": "0"}).columns == ("a", "c", "b")
    confirmed = CHANGES["split"](CHANGES["confirm_all"](again, {}), {"which": "0"})
    assert not any(one.get("drafted") for one in confirmed.attributes)
    for form in ({"which": "0", "other": "0"}, {"which": "1", "other": "0"}):
        with pytest.raises(InputError):
            CHANGES["merge"](
                draft({"names": ["a", "b"], "categories": ["0"]}, attribute("c")), form
            )
    with pytest.raises(InputError, match="more than 1000000 categories"):
        CHANGES["merge"](
            draft(attribute("a", 2000), attribute("b", 2000)), {"which": "0", "other": "1"}
        )


def test_about_the_table() -> None:
    after = CHANGES["about"](draft(), {"title": "T", "keep": "x, y;z", "one_row_per_person": "yes"})
    assert {key: after.schema[key] for key in ("title", "keep", "one_row_per_person")} == {
        "title": "T", "keep": ["x", "y", "z"], "one_row_per_person": True,
    }  # fmt: skip
    assert CHANGES["about"](after, {"keep": ""}).schema == draft().schema
    odd = draft(keep=("a,b",))
    assert CHANGES["about"](odd, {"keep": "a,b"}) == odd


def test_roles_of_columns() -> None:
    merged = {"part": [attribute("m"), attribute("n")]}
    several = attribute("p") | {"names": ["p", "q"]}
    del several["name"]
    of = draft(attribute("a"), several, merged, keep=("k",), level__p="2")
    roles = [role_of(of, name) for name in ("a", "p", "m", "k", "x")]
    assert roles == ["randomize", "randomize", "randomize", "keep", "leave_out"]
    assert undeclared(of, ["a", "p", "q", "m"]) == ["k", "n"]
    assert with_roles(of, {name: role_of(of, name) for name in "apqmnkx"}, {}) == of
    changed = with_roles(of, {"p": "person", "k": "leave_out", "x": "randomize"}, {})
    assert changed.columns == ("a", "q", "m+n", "x")
    assert (changed.kept, changed.person) == ((), "p")
    assert "level.p" not in changed.controls
    with pytest.raises(InputError, match="take them apart first"):
        with_roles(of, {"m": "leave_out"}, {})
    with pytest.raises(InputError, match="one column holds the person's id"):
        with_roles(of, {"a": "person", "k": "person"}, {})
