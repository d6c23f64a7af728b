"""Tables as people have them, each from its bytes to a draft, a release and estimates that are the
truth, or to the one expected sentence."""

import math
import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import Any

import pytest

import deniable
from corpus.tables import PACKAGED, Table, columns_of, packaged, refused, stored, tables
from deniable.errors import InputError
from deniable.schema import Attribute, Schema, category_text
from deniable.schema.attribute import EPOCH
from deniable.tables.drafting import draft_schema

TABLES = tables()
REFUSED = refused()
MOST_SECONDS = 60.0  # ten times and more what a table takes on a slow machine, being measured

Designer = Callable[..., deniable.Design]


def cpu() -> float:
    """Seconds of CPU of this process and of its children that have ended."""
    return sum(os.times()[:4])


@pytest.fixture(autouse=True)
def design() -> Iterator[Designer]:
    """``deniable.design``; all else that is done with a table takes at most ``MOST_SECONDS``."""
    spent = -cpu()

    def timed(schema: Schema, **request: Any) -> deniable.Design:
        nonlocal spent
        spent += cpu()
        plan = deniable.design(schema, **request)
        spent -= cpu()
        return plan

    yield timed
    assert spent + cpu() < MOST_SECONDS


def label(attribute: Attribute, value: Any) -> str:
    """The category that a true value belongs to, found without the code that reads tables."""
    if value is None:
        assert attribute.missing is not None
        return attribute.missing
    if isinstance(value, bool | str):
        return category_text(value)
    return str(value) if isinstance(value, date) else f"{float(value):g}"


def check(released: Any, attribute: Attribute, truth: Sequence[Any]) -> None:
    """Fail unless shares are those of the values, or the mean of a number is as near to theirs as
    roundings within a step of the grid allow (Hoeffding's inequality, once in 10⁹)."""
    grid = attribute.number_grid
    if grid is None:
        labels = [label(attribute, value) for value in truth]
        (found,) = released.shares([attribute.name])
        for row in found.table():
            share = labels.count(row[attribute.name]) / len(labels)
            assert row["estimate"] == pytest.approx(share, abs=1e-9), (attribute.name, row)
        return
    numbers = [days(value) for value in truth if value is not None]
    (found,) = released.mean(attribute.name)
    step = (grid.high - grid.low) / (grid.n_points - 1)
    allowed = step * math.sqrt(math.log(2e9) / 2 / len(numbers))
    assert abs(found.estimate - math.fsum(numbers) / len(numbers)) <= allowed, attribute.name


def days(value: Any) -> float:
    """A number, or the days of a date since 1970-01-01."""
    if isinstance(value, date):
        return float(((value.date() if isinstance(value, datetime) else value) - EPOCH).days)
    return float(value)


def test_there_are_at_least_forty_tables() -> None:
    assert len(TABLES) >= 40


@pytest.mark.parametrize("name", TABLES)
def test_a_table_comes_through_as_it_is(tmp_path, name, design):
    table: Table = TABLES[name]
    path = stored(tmp_path, table.name, table.content)
    schema = Schema.from_plain(tomllib.loads(draft_schema(path, table.told)))
    assert set(schema.names) >= set(table.truth)
    assert not set(schema.names) & set(table.left_out)
    # At such levels next to nothing changes: what is estimated is what was read.
    plan = design(schema, attribute_epsilon=[40.0] * len(schema.names), method="kronecker")
    deniable.share(
        path,
        plan,
        tmp_path / "r",
        deniable.Publication(drop_other_columns=True, accept_drafted=True, overwrite=True),
    )
    released = deniable.open(tmp_path / "r")
    for column in list(table.truth)[:6]:
        check(released, schema.attributes[schema.position(column)], table.truth[column])


def value_of(attribute: Attribute, text: str) -> Any:
    """What a text says, read without the code that reads tables."""
    if text in ("", attribute.missing, *attribute.missing_codes):
        return None
    if attribute.dates:
        return date.fromisoformat(text[:10].replace("/", "-"))
    if attribute.range is not None or attribute.scores is not None:
        return float(text)
    return text


# Penguins that were seen in two years have two rows.
@pytest.mark.filterwarnings("default:'Individual ID' repeats")
@pytest.mark.parametrize("name", PACKAGED)
def test_a_table_that_a_package_ships_comes_through_as_it_is(tmp_path, name, design):
    content = packaged(name)
    path = stored(tmp_path, "table.csv", content)
    schema = Schema.from_plain(tomllib.loads(draft_schema(path)))
    texts = columns_of(content)
    assert len(schema.names) >= len(texts) / 3
    plan = design(schema, attribute_epsilon=[40.0] * len(schema.names), method="kronecker")
    deniable.share(
        path,
        plan,
        tmp_path / "r",
        deniable.Publication(drop_other_columns=True, accept_drafted=True),
    )
    rows = len(next(iter(texts.values())))
    released = deniable.open(tmp_path / "r")
    for attribute in schema.attributes[:6]:
        assert released.shares([attribute.name])[0].n_records == rows
        check(released, attribute, [value_of(attribute, one) for one in texts[attribute.name]])


def test_at_an_epsilon_of_40_a_release_says_that_it_protects_nothing(tmp_path, design):
    path = stored(tmp_path, "table.csv", packaged("penguins"))
    schema = Schema.from_plain(tomllib.loads(draft_schema(path)))
    plan = design(schema, epsilon=40)
    assert 39 < plan.epsilon <= 40
    deniable.share(path, plan, tmp_path / "r", deniable.Publication(accept_drafted=True))
    assert "hardly protects a row as a whole" in (tmp_path / "r" / "report.html").read_text()
    texts = columns_of(path.read_bytes())["species"]
    found = deniable.open(tmp_path / "r").shares("species")[0]
    low, high = found.confidence_interval(1 - 1e-9)
    for place, name in enumerate(schema.attributes[0].categories):
        assert low[place] <= texts.count(name) / len(texts) <= high[place]


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_read_gives_one_sentence(tmp_path, name):
    content, sentence = REFUSED[name]
    path = stored(tmp_path, "table.csv", content)
    with pytest.raises(InputError) as caught:
        draft_schema(path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
