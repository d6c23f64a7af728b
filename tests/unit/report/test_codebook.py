"""The codebook: every category of every released column."""

import csv
import io
import math
from datetime import date
from typing import Any

import pytest

from deniable.design.design import design
from deniable.errors import InputError
from deniable.report.codebook import ROUNDED, VALUE, render_codebook
from deniable.schema import Attribute, Schema
from unit.report.release_records import VARIANTS, attribute, kept_columns, release_record


def rows(record: dict[str, Any]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_codebook(record), newline="")))


def test_the_header_is_fixed_and_lines_end_in_line_feeds() -> None:
    text = render_codebook(kept_columns())
    assert text.splitlines()[0] == "attribute,position,category,label,lower,upper,released as"
    assert "\r" not in text


@pytest.mark.parametrize("name", VARIANTS)
def test_every_category_of_every_column_is_listed_in_order(name: str) -> None:
    record = VARIANTS[name]()
    schema = Schema.from_plain(record["mechanism"]["schema"])
    listed = rows(record)
    for declared in schema.attributes:
        own = [row for row in listed if row["attribute"] == declared.name]
        assert tuple(row["category"] for row in own) == declared.categories
        assert [row["position"] for row in own] == [str(j + 1) for j in range(len(own))]
        assert [row["label"] for row in own] == [declared.label(c) for c in declared.categories]
    assert {row["attribute"] for row in listed} == set(record["release"]["columns"])
    assert render_codebook(record) == render_codebook(VARIANTS[name]())


def test_bins_have_edges_and_the_category_for_missing_values_has_none() -> None:
    hours = [row for row in rows(kept_columns()) if row["attribute"] == "hours"]
    assert [(row["lower"], row["upper"]) for row in hours] == [
        ("0", "1"),
        ("1", "20"),
        ("20", "35.5"),
        ("35.5", "99"),
        ("", ""),
    ]
    assert hours[-1]["category"] == "unknown"


def test_edges_of_dates_are_dates() -> None:
    born = Attribute("born", bins=(date(1950, 1, 1), date(1980, 1, 1), math.inf))
    listed = rows(release_record(design(Schema((born,)), epsilon=1.0)))
    assert [row["lower"] for row in listed] == ["1950-01-01", "1980-01-01"]
    assert [row["upper"] for row in listed] == ["1980-01-01", "inf"]


def test_what_is_released_as_it_is_is_told_from_what_is_randomized() -> None:
    how = {row["attribute"]: row["released as"] for row in rows(kept_columns())}
    assert how == {
        "hours": "randomized value",
        "race": "randomized value",
        "region": "true value, not protected",
        "weight": "true value, not protected",
    }


def test_awkward_texts_come_back_to_the_letter() -> None:
    texts = ('a "quoted" one', "comma, comma", "line\nbreak", "in  side", "=1+1", "é漢")
    schema = Schema((Attribute("odd, name", texts, labels={"=1+1": 'say "two"'}), attribute("b")))
    record = release_record(design(schema, epsilon=1.0, method="kronecker"))
    odd = [row for row in rows(record) if row["attribute"] == "odd, name"]
    assert tuple(row["category"] for row in odd) == texts
    assert odd[4]["label"] == 'say "two"'


def test_what_is_no_record_of_a_release_is_refused() -> None:
    with pytest.raises(InputError, match="not the record of a release"):
        render_codebook({"format": "something else"})


def test_a_number_has_the_points_next_to_each_point() -> None:
    age = Attribute("age", range=(18, 90), grid=3, missing="NA")
    listed = rows(release_record(design(Schema((age,)), epsilon=1.0, method="balanced")))
    ends = [(row["category"], row["lower"], row["upper"]) for row in listed]
    assert ends == [("18", "18", "54"), ("54", "18", "90"), ("90", "54", "90"), ("NA", "", "")]
    assert {row["released as"] for row in listed} == {ROUNDED}


def test_a_number_with_its_own_matrix_has_its_released_values() -> None:
    plan = design(Schema((Attribute("age", range=(18, 90), missing="NA"),)), epsilon=1.0)
    listed = rows(release_record(plan))
    assert tuple(row["category"] for row in listed) == plan.mechanism.output_labels[0]
    assert {row["released as"] for row in listed} == {VALUE}
