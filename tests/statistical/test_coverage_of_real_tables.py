"""Intervals of the shipped example and of UCI Adult cover what they say."""

import csv
from pathlib import Path

import numpy as np
import pytest

from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Attribute, Schema
from statistical.coverage import Columns, check_both_targets

# Thousands of releases of tens of thousands of rows; the same laws on a small table are quick.
pytestmark = pytest.mark.weekly

ROOT = Path(__file__).parents[2]


def coded(rows: list[list[str]], attributes: list[Attribute]) -> Columns:
    """Codes of a table that was read as text, one column per attribute."""
    columns = []
    for attribute, texts in zip(attributes, zip(*rows, strict=True), strict=True):
        if attribute.bins is not None:
            numbers = np.array(texts, dtype=float)
            code = np.searchsorted(attribute.bins, numbers, side="right") - 1
            # The last interval is closed.
            columns.append(np.minimum(code, attribute.n_categories - 1))
        else:
            place = {category: code for code, category in enumerate(attribute.categories)}
            columns.append(np.array([place[text] for text in texts]))
    return [column.astype(np.uint8) for column in columns]


def levels(attributes: list[Attribute], epsilon: float) -> Mechanism:
    schema = Schema(tuple(attributes))
    law = ProductLaw.from_levels(schema.n_categories, (epsilon,) * len(attributes))
    return Mechanism.of(law, schema)


def test_intervals_of_the_shipped_example_cover_for_both_targets() -> None:
    chosen = ["race", "education", "hhi", "region"]
    schema = Schema.from_toml(ROOT / "examples" / "insurance.toml")
    attributes = [schema.attributes[schema.position(name)] for name in chosen]
    with (ROOT / "examples" / "insurance.csv").open(newline="") as file:
        rows = [[row[name] for name in chosen] for row in csv.DictReader(file)]
    assert len(rows) == 22272
    check_both_targets(
        "insurance",
        coded(rows, attributes),
        levels(attributes, 2.0),
        [("race",), ("hhi", "education"), ("region", "hhi")],
        1500,
    )


ADULT_COLUMNS = {"workclass": 1, "education": 3, "relationship": 7, "sex": 9, "income": 14}


def test_intervals_of_uci_adult_cover_with_the_question_mark_as_a_category() -> None:
    with (ROOT / "examples" / "adult.data").open(newline="") as file:
        records = list(csv.reader(file, skipinitialspace=True))
    rows = [[record[i] for i in ADULT_COLUMNS.values()] for record in records] * 16
    assert len(rows) == 48000
    attributes = [
        Attribute(name, tuple(sorted(set(values))))
        for name, values in zip(ADULT_COLUMNS, zip(*rows, strict=True), strict=True)
    ]
    assert "?" in attributes[0].categories
    check_both_targets(
        "adult",
        coded(rows, attributes),
        levels(attributes, 2.0),
        [("workclass",), ("sex", "income"), ("relationship", "income")],
        1000,
    )
