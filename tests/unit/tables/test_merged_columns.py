"""Columns that are randomized as one: read together, written where they were, or as one answer."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.errors import InputError
from deniable.schema import Attribute
from deniable.tables import TableWriter, open_table, released_columns
from deniable.tables.frames import randomize_frame

SEX = Attribute("sex", ("f", "m"))
AGE = Attribute("age", bins=(0, 30, 60, 120), missing="NA")
COUNT = Attribute("count", ("0", "1", "2"))
WHOLE = Attribute.merged([AGE, SEX, COUNT])
OTHER = Attribute("blood", ("A", "B"))
ANSWERS = tuple(f"answer {j}" for j in range(1, 40))

DATA = {
    "sex": ["f", "m", "m", "f"],
    "blood": ["A", "B", "A", "A"],
    "count": [0, 2, 1, 2],
    "age": [30.0, 119.5, None, 0.0],
    "region": ["n", "s", "n", "s"],
}
# age, sex, count: (1, 0, 0), (2, 1, 2), (3, 1, 1), (0, 0, 2) in sizes 4, 2, 3
CODES = [6, 17, 22, 2]

FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(DATA, index=[5, 3, 9, 1]),
    "pandas, categorical": lambda: pd.DataFrame(DATA).astype({"sex": "category"}),
    "polars": lambda: pl.DataFrame(DATA),
    "pyarrow": lambda: pa.table(DATA),
}


def write(path: Path, kind: str) -> Path:
    file = path / f"t.{kind}"
    if kind == "csv":
        pd.DataFrame(DATA).to_csv(file, index=False)
    else:
        pq.write_table(pa.table(DATA), file)
    return file


def read(source: Any, attributes: list[Attribute]) -> list[list[int]]:
    with open_table(source, attributes, ["region"]) as reader:
        batches = list(reader)
    return [np.concatenate([b.codes[i] for b in batches]).tolist() for i in range(len(attributes))]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_codes_of_a_file_combine_those_of_the_columns(tmp_path: Path, kind: str) -> None:
    file = write(tmp_path, kind)
    assert read(file, [OTHER, WHOLE]) == [[0, 1, 0, 0], CODES]


@pytest.mark.parametrize("name", FRAMES)
def test_the_codes_of_a_frame_and_of_a_stream_are_the_same(name: str) -> None:
    assert read(FRAMES[name](), [WHOLE, OTHER])[0] == CODES
    text = pd.DataFrame(DATA).to_csv(index=False).encode()
    assert read(io.BytesIO(text), [WHOLE, OTHER])[0] == CODES


def test_codes_beyond_a_byte_are_held_in_more() -> None:
    many = [Attribute(name, tuple(map(str, range(100)))) for name in ("x", "y")]
    table = pa.table({"x": ["99", "3"], "y": ["98", "0"], "region": ["n", "n"]})
    assert read(table, [Attribute.merged(many)]) == [[9998, 300]]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_released_categories_stand_in_the_columns_and_places_of_the_original(
    tmp_path: Path, kind: str
) -> None:
    source = write(tmp_path, "parquet" if kind == "parquet" else "csv")
    out = tmp_path / f"out.{kind}"
    with open_table(source, [OTHER, WHOLE], ["region"]) as reader:
        columns = released_columns(reader.columns, [OTHER, WHOLE], ["region"])
        with TableWriter(out, columns) as writer:
            for batch in reader:
                writer.write([batch.codes[0], batch.codes[1][::-1]], batch.kept)
    released = pd.read_parquet(out) if kind == "parquet" else pd.read_csv(out, dtype=str)
    assert list(released.columns) == list(DATA)
    assert released["sex"].tolist() == ["f", "m", "m", "f"]
    assert released["count"].astype(int).tolist() == [2, 1, 2, 0]
    assert released["age"].fillna("NA").tolist() == ["[0,30)", "NA", "[60,120]", "[30,60)"]
    assert released["region"].tolist() == DATA["region"]


@pytest.mark.parametrize("name", FRAMES)
def test_a_released_frame_keeps_its_kind_columns_and_types(name: str) -> None:
    frame = FRAMES[name]()
    with open_table(frame, [WHOLE, OTHER], ["region"]) as reader:
        columns = released_columns(reader.columns, [WHOLE, OTHER], ["region"])
        released = randomize_frame(frame, columns, iter(reader), lambda codes: list(codes))
    assert type(released) is type(frame)
    before, after = pa_table(frame), pa_table(released)
    assert after.column_names == before.column_names
    for column in ("sex", "blood", "count", "region"):
        assert after[column].to_pylist() == before[column].to_pylist()
    assert after["age"].to_pylist() == ["[30,60)", "[60,120]", "NA", "[0,30)"]
    if name == "pandas, categorical":
        assert released["sex"].dtype == frame["sex"].dtype
    if name == "pandas":
        assert released.index.tolist() == [5, 3, 9, 1]
        assert released["count"].dtype == frame["count"].dtype


def pa_table(frame: Any) -> pa.Table:
    if isinstance(frame, pd.DataFrame):
        return pa.Table.from_pandas(frame, preserve_index=False)
    return frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame


@pytest.mark.parametrize("name", FRAMES)
def test_answers_that_are_no_categories_stand_in_the_first_parts_place(name: str) -> None:
    frame = FRAMES[name]()
    with open_table(frame, [WHOLE, OTHER], ["region"]) as reader:
        labels = [ANSWERS, OTHER.categories]
        columns = released_columns(reader.columns, [WHOLE, OTHER], ["region"], labels)
        released = randomize_frame(frame, columns, iter(reader), lambda codes: list(codes))
    table = pa_table(released)
    assert table.column_names == ["blood", "age+sex+count", "region"]
    assert table["age+sex+count"].to_pylist() == [f"answer {c + 1}" for c in CODES]
    assert table["blood"].to_pylist() == DATA["blood"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_answers_in_a_file_are_one_column_of_text(tmp_path: Path, kind: str) -> None:
    source, out = write(tmp_path, kind), tmp_path / f"out.{kind}"
    with open_table(source, [WHOLE, OTHER], ["region"]) as reader:
        labels = [ANSWERS, OTHER.categories]
        columns = released_columns(reader.columns, [WHOLE, OTHER], ["region"], labels)
        with TableWriter(out, columns) as writer:
            for batch in reader:
                writer.write(batch.codes, batch.kept)
    released = pd.read_parquet(out) if kind == "parquet" else pd.read_csv(out, dtype=str)
    assert list(released.columns) == ["blood", "age+sex+count", "region"]
    assert released["age+sex+count"].tolist() == [f"answer {c + 1}" for c in CODES]
    assert read(out, [Attribute(WHOLE.name, ANSWERS), OTHER])[0] == CODES


def test_a_value_that_cannot_be_used_is_told_by_its_own_column() -> None:
    table = pa.table({**DATA, "sex": ["f", "m", "x", "f"]})
    with pytest.raises(InputError, match="row 3, column 'sex': the value is not one of"):
        read(table, [OTHER, WHOLE])
    with pytest.raises(InputError, match="row 2, column 'count': the value is missing"):
        read(pa.table({**DATA, "count": [0, None, 1, 2]}), [OTHER, WHOLE])
    with pytest.raises(InputError, match="column 'count': the value is fractional"):
        read(pa.table({**DATA, "count": [0.5, 1.0, 1.0, 2.0]}), [OTHER, WHOLE])
    without = {name: column for name, column in DATA.items() if name != "sex"}
    with pytest.raises(InputError, match="there is no column 'sex'"):
        read(pa.table(without), [OTHER, WHOLE])
    with pytest.raises(InputError, match=r"nor keeps 'age\+sex\+count'"):
        read(pa.table({**DATA, WHOLE.name: ["x"] * 4}), [OTHER, WHOLE])
