"""Tables as people have them, each from its bytes to a draft, a release and estimates that are the
truth, or to the one expected sentence."""

import tomllib
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

import deniable
from corpus.tables import Table, refused, stored, tables
from deniable.errors import InputError
from deniable.schema import Attribute, Schema, category_text
from deniable.schema.attribute import EPOCH
from deniable.tables.drafting import draft_schema

TABLES = tables()
REFUSED = refused()


def label(attribute: Attribute, value: Any) -> str:
    """The category that a true value belongs to, found without the code that reads tables."""
    if value is None:
        assert attribute.missing is not None
        return attribute.missing
    if attribute.bins is None:
        if isinstance(value, bool | str):
            return category_text(value)
        return str(value) if isinstance(value, date) else f"{float(value):g}"
    if isinstance(value, date):
        day = value.date() if isinstance(value, datetime) else value
        value = (day - EPOCH).days
    edges = np.array(attribute.bins)
    place = int(np.flatnonzero(edges <= float(value))[-1])
    return attribute.categories[min(place, len(edges) - 2)]


def test_there_are_at_least_forty_tables() -> None:
    assert len(TABLES) >= 40


@pytest.mark.parametrize("name", TABLES)
def test_a_table_comes_through_as_it_is(tmp_path, name):
    table: Table = TABLES[name]
    path = stored(tmp_path, table.name, table.content)
    schema = Schema.from_plain(tomllib.loads(draft_schema(path, table.told)))
    assert set(schema.names) >= set(table.truth)
    assert not set(schema.names) & set(table.left_out)
    # At such levels next to nothing changes: what is estimated is what was read.
    plan = deniable.design(schema, attribute_epsilon=[40.0] * len(schema.names), method="kronecker")
    deniable.share(
        path, plan, tmp_path / "r", drop_other_columns=True, accept_drafted=True, overwrite=True
    )
    for column in list(table.truth)[:6]:
        attribute = schema.attributes[schema.position(column)]
        labels = [label(attribute, value) for value in table.truth[column]]
        for row in deniable.estimate(tmp_path / "r", of=[column]).table():
            share = labels.count(row[column]) / len(labels)
            assert row["estimate"] == pytest.approx(share, abs=1e-9), (column, row)


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_read_gives_one_sentence(tmp_path, name):
    content, sentence = REFUSED[name]
    path = stored(tmp_path, "table.csv", content)
    with pytest.raises(InputError) as caught:
        draft_schema(path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
