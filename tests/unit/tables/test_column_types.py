"""Every type of column that pandas, Polars, DuckDB, Spark and pyarrow write, from the file to the
estimate and back; run by the gate with the oldest pyarrow that is supported, too."""

import datetime as dt
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable
from deniable.errors import InputError
from deniable.randomness import SystemRandomness
from deniable.schema import Attribute, Schema
from deniable.tables import TableWriter, open_table, released_columns
from deniable.tables.drafting import draft_schema

N = 40
TEXTS = ["a", "b", None, "c"] * (N // 4)
WHOLE = [1, 2, None, 3] * (N // 4)
DAYS = [None if v is None else dt.date(2020, v, 1) for v in WHOLE]


def categorical(values: pa.Array, index: str = "int8") -> pa.Array:
    kind = pa.dictionary(pa.type_for_alias(index), values.type)
    return values.dictionary_encode().cast(kind)


TEXT = {
    "string": pa.array(TEXTS),
    "large_string": pa.array(TEXTS, pa.large_string()),
    "string_view": pa.array(TEXTS, pa.string_view()),
    "pandas category": categorical(pa.array(TEXTS)),
    "DuckDB enum": categorical(pa.array(TEXTS), "uint8"),
    "Polars categorical": categorical(pa.array(TEXTS, pa.large_string()), "uint32"),
}
NUMBERS = {
    **{name: pa.array(WHOLE, pa.type_for_alias(name)) for name in ("int8", "uint64", "int64")},
    "pandas nullable as float": pa.array(WHOLE, pa.float64()),
    "float32": pa.array(WHOLE, pa.float32()),
    "half float": pa.array([None if v is None else np.float16(v) for v in WHOLE], pa.float16()),
    "DuckDB hugeint": pa.array(WHOLE, pa.decimal128(38, 0)),
    "Spark decimal": pa.array(WHOLE, pa.decimal128(10, 2)),
    "decimal256": pa.array(WHOLE, pa.decimal256(50, 1)),
    "category of integers": categorical(pa.array(WHOLE)),
    "category of floats": categorical(pa.array(WHOLE, pa.float64())),
}
FLAGS = [None if v is None else v > 1 for v in WHOLE]
OTHERS = {
    "boolean": (pa.array(FLAGS), ("false", "true")),
    "category of booleans": (categorical(pa.array(FLAGS)), ("false", "true")),
    "date32": (pa.array(DAYS, pa.date32()), ("2020-01-01", "2020-02-01", "2020-03-01")),
    "date64": (pa.array(DAYS, pa.date64()), ("2020-01-01", "2020-02-01", "2020-03-01")),
    "nothing but nulls": (pa.nulls(N), ("x", "y")),
}
COLUMNS = {
    **{name: (array, ("a", "b", "c")) for name, array in TEXT.items()},
    **{name: (array, ("1", "2", "3")) for name, array in NUMBERS.items()},
    **OTHERS,
}
REFUSED = {
    "list": pa.array([[1]] * N),
    "struct": pa.array([{"a": 1}] * N),
    "map": pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64())),
    "binary": pa.array([b"a"] * N),
    "time": pa.array([dt.time(1)] * N),
    "duration": pa.array([dt.timedelta(1)] * N),
}


def as_texts(column: Any) -> list[str]:
    """What a column means, written as categories."""
    texts = []
    for value in column.to_pylist():
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, float | np.floating | Decimal):
            value = int(value)
        texts.append("NA" if value is None else str(value))
    return texts


def can_be_stored(array: Any) -> bool:
    try:
        pq.write_table(pa.table({"v": array}), pa.BufferOutputStream())
    except pa.ArrowNotImplementedError:  # string views, by the oldest pyarrow
        return False
    return True


STORED = {name: column for name, column in COLUMNS.items() if can_be_stored(column[0])}


@dataclass
class Release:
    table: Path
    plan: Any
    folder: Path
    opened: Any


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Release:
    """One table with a column of every type, randomized and kept, and its release; at an ε at which
    nothing changes, so that what comes out is what went in."""
    folder = tmp_path_factory.mktemp("types")
    columns = {name: array for name, (array, _) in STORED.items()}
    kept = {f"kept {name}": array for name, array in columns.items()}
    pq.write_table(pa.table(columns | kept), folder / "table.parquet")
    attributes = [Attribute(n, cats, missing="NA") for n, (_, cats) in STORED.items()]
    schema = Schema(tuple(attributes), keep=tuple(kept))
    levels = [40.0] * len(attributes)
    plan = deniable.design(schema, attribute_epsilon=levels, method="kronecker")
    deniable.share(folder / "table.parquet", plan, folder / "release")
    opened = deniable.open(folder / "release")
    return Release(folder / "table.parquet", plan, folder / "release", opened)


@pytest.mark.parametrize("name", STORED)
def test_every_type_goes_from_the_file_to_the_estimate_and_back(name, release):
    array, _ = STORED[name]
    truth = as_texts(array)
    released = pq.read_table(release.folder / "data.parquet", columns=[name, f"kept {name}"])
    assert as_texts(released[name]) == truth
    assert released[f"kept {name}"].to_pylist() == array.to_pylist()
    for row in release.opened.shares([name])[0].table():
        assert row["estimate"] == pytest.approx(truth.count(row[name]) / N, abs=1e-9)
    kept, values = f"kept {name}", set(array.to_pylist()) - {None}
    asked = {"of": "string", "by": [kept], "scores": [0, 1, 2, 3]}
    if not values:
        with pytest.raises(InputError, match=f"{N} rows where '{kept}' is empty"):
            release.opened.mean(**asked)
        return
    groups = release.opened.mean(**asked)
    assert len(groups) == len(values)
    empty = truth.count("NA")
    assert groups.selection.left_out == (((kept, empty),) if empty else ())


def test_every_type_can_be_written_as_text_and_read_again(tmp_path, release):
    schema = release.plan.mechanism.schema
    with open_table(release.table, schema.attributes, schema.keep) as reader:
        columns = released_columns(reader.columns, schema.attributes, schema.keep)
        with TableWriter(tmp_path / "table.csv", columns) as writer:
            for batch in reader:
                writer.write(batch.codes, batch.kept)
    with open_table(tmp_path / "table.csv", schema.attributes, schema.keep) as reader:
        (batch,) = reader
    for attribute, codes in zip(schema.attributes, batch.codes, strict=True):
        texts = [attribute.categories[code] for code in codes.tolist()]
        assert texts == as_texts(STORED[attribute.name][0]), attribute.name


def test_every_type_comes_back_in_a_frame(release):
    again = deniable.randomize(pq.read_table(release.table), release.plan)
    for name, (array, _) in STORED.items():
        assert as_texts(again[name]) == as_texts(array), name


TIMES = pa.array(DAYS, pa.date32()).cast(pa.timestamp("us"))
DRAFTED = {name: array for name, (array, _) in STORED.items()} | {
    "timestamp": TIMES,
    "timestamp with a zone": TIMES.cast(pa.timestamp("us", "UTC")),
}


@pytest.fixture(scope="module")
def draft(tmp_path_factory) -> tuple[Path, str]:
    path = tmp_path_factory.mktemp("draft") / "table.parquet"
    pq.write_table(pa.table(DRAFTED | REFUSED), path)
    return path, draft_schema(path)


@pytest.mark.parametrize("name", DRAFTED)
def test_every_type_is_drafted_or_left_to_a_person(name, draft):
    path, text = draft
    schema = Schema.from_plain(tomllib.loads(text))
    assert (name in schema.names) == (name != "nothing but nulls")
    if name in schema.names:
        attribute = schema.attributes[schema.position(name)]
        bits = SystemRandomness()
        with open_table(path, [attribute], other_columns="drop", rounding=bits) as reader:
            (batch,) = reader
        assert len(set(batch.codes[0].tolist())) >= 3


@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_no_single_values_is_refused_by_a_sentence(name, draft):
    path, text = draft
    assert f'# column "{name}" does not hold single values' in text
    attribute = Attribute(name, ("a", "b"))
    with pytest.raises(InputError, match=f"column '{name}': the column holds "):
        open_table(path, [attribute], other_columns="drop")
