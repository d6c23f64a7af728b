"""What can be read of a release, and whether it protects anything, is said in sentences."""

from typing import Any

from deniable.report.verdict import (
    advice,
    estimated,
    headline,
    lines,
    nothing_readable,
    unprotected,
    without_mean,
)
from deniable.schema import Attribute, Schema


def one(
    readable: int, cells: int, half_width: float | None, *names: str, target: str = "table"
) -> dict[str, Any]:
    return {
        "attributes": list(names),
        "cells": cells,
        "readable": readable,
        "standard_error": None if half_width is None else half_width / 1.96,
        "half_width": half_width,
        "rows": 6000,
        "readable_from": None if half_width is None else 6247,
        "target": target,
    }


SEX = one(2, 2, 0.0135, "sex")
WARD = one(0, 60, 0.0166, "ward")


def test_the_headline_counts_attributes_and_names_those_that_cannot_be_read() -> None:
    six = [SEX | {"attributes": [f"q{i}"]} for i in range(6)]
    assert headline([*six, WARD]) == "6 of 7 attributes readable; ward: 0 of 60 categories"
    assert headline([SEX]) == "sex: 2 of 2 categories readable"
    assert headline([SEX, WARD | {"readable": 30}]) == "2 of 2 attributes readable"
    pair = one(12, 120, 0.02, "sex", "ward")
    assert headline([SEX, pair]) == "1 of 2 tables readable; sex × ward: 12 of 120 cells"
    lost = [WARD | {"attributes": [f"w{i}"]} for i in range(7)]
    assert headline(lost).endswith("w4: 0 of 60 categories; and 2 more")


def test_nothing_can_be_read_only_if_no_cell_of_any_attribute_can() -> None:
    assert nothing_readable([WARD, WARD])
    assert not nothing_readable([SEX, WARD])
    assert not nothing_readable([WARD | {"readable": 1}])


def test_half_widths_and_what_they_include_stand_beside_the_headline() -> None:
    first, ward, pairs = lines({"attributes": [SEX, WARD], "pairs": {"tables": 3, "readable": 2}})
    assert first == (
        "1 of 2 attributes readable; ward: 0 of 60 categories. Half-widths (95 %) of 6,000 rows: "
        "± 1.4 to 1.7 points, sampling error not included, if all categories are equally frequent."
    )
    assert "share is about 1.7" in ward
    assert "from about 6,300 rows on" in ward
    assert pairs.startswith("Of 3 tables of two attributes, 2 can be read")
    sampled = one(2, 2, 0.2, "sex", target="population")
    first, wide = lines({"attributes": [sampled | {"readable": 0}], "pairs": None})
    assert "sampling error included" in first
    assert wide == "sex: readable from about 6,300 rows on."
    _, gone = lines({"attributes": [one(0, 2, None, "sex")], "pairs": None})
    assert gone == "sex: wiped out by the randomization."


def test_estimates_say_how_much_of_them_can_be_read_and_from_how_many_rows() -> None:
    assert estimated([WARD | {"readable": 26}]) == (
        "ward: 26 of 60 categories readable (± 1.7 points at 95 %, sampling error not included)."
    )
    assert estimated([SEX, WARD]).endswith(
        "Equally frequent, all of them are readable from about 6,300 rows on."
    )


def test_a_row_is_called_unprotected_from_where_the_promise_is_next_to_nothing() -> None:
    assert unprotected(None) == unprotected(10.0) == ""
    assert "22,100 times" in unprotected(10.001)


def test_what_would_make_more_readable_is_forms_and_a_command_that_finds_the_rest() -> None:
    plan = "deniable plan --rows 6000 --tables {table} --within {within}pt"
    expected = {"attributes": [SEX, WARD], "pairs": None}
    forms = [SEX, one(60, 60, 0.0128, "ward")]
    assert advice(expected, forms, plan) == [
        "With `method` forms: 2 of 2 attributes readable (± 1.4 points at most); its rows are not "
        "complete.",
        "At which ε ward can be read: deniable plan --rows 6000 --tables ward --within 1.6pt",
    ]
    assert advice({"attributes": [SEX], "pairs": None}, [], plan) == []


def test_a_person_with_many_rows_is_called_unprotected_at_the_level_of_all_of_them() -> None:
    # Failed before: 7 rows of 4 nats each were not warned of.
    assert unprotected(4.0) == unprotected(4.0, 8.0) == unprotected(None, None) == ""
    warning = unprotected(4.0, 28.0)
    assert warning.startswith("ε = 28 hardly protects a person with all rows")
    assert "fewer rows of each person" in warning
    assert unprotected(11.0, 11.0) == unprotected(11.0)


def test_of_open_intervals_without_scores_it_is_said_that_no_mean_can_be_told() -> None:
    closed = Attribute("hours", bins=(0, 20, 40))
    scored = Attribute("age", bins=(0, 40, float("inf")), scores=(20, 55))
    assert without_mean(Schema((closed, scored))) == ""
    opened = Attribute("income", bins=(0, 100, float("inf")))
    said = without_mean(Schema((closed, opened, scored)))
    assert "The mean of income cannot be estimated" in said
    assert without_mean(Schema((closed, opened), keep=("income",))) == ""
