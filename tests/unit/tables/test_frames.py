from datetime import datetime, time
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset

from deniable.errors import InputError
from deniable.schema import Attribute
from deniable.tables import open_table, released_columns
from deniable.tables.frames import randomize_frame

TEXT = Attribute("s", ("a", "b", "c"), missing="NA")
WHOLE = Attribute("i", ("1", "2", "3"))
FLAG = Attribute("f", ("false", "true"))
BINNED = Attribute("x", bins=(0, 1, 2, 10), missing="NA")
ALL = (TEXT, WHOLE, FLAG, BINNED)


def through(frame, attributes=ALL, keep=("k",), change=None, batch_rows=2, **options):
    """Send a frame through; ``change`` maps codes to released codes, by default unchanged."""
    with open_table(frame, attributes, keep, batch_rows=batch_rows, **options) as reader:
        columns = released_columns(reader.columns, attributes, keep)
        return randomize_frame(frame, columns, iter(reader), change or (lambda codes: codes))


def flip(codes):
    return [(c + 1) % a.n_categories for c, a in zip(codes, ALL, strict=True)]


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "f": [True, False, True],
            "s": ["a", None, "b"],
            "k": [1.5, np.nan, 2.5],
            "x": [0.5, np.nan, 10],
            "i": [1, 2, 3],
        },
        index=pd.Index([30, 10, 10], name="who"),
    )


def polars_frame() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "f": [True, False, True],
            "s": ["a", None, "b"],
            "k": [[1], None, [2]],
            "x": [0.5, float("nan"), 10],
            "i": [1, 2, 3],
        }
    )


def test_pandas_comes_back_as_pandas_with_its_index_and_its_types():
    frame = pandas_frame()
    before = frame.copy()
    released = through(frame, change=flip)
    assert isinstance(released, pd.DataFrame)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_index_equal(released.index, frame.index)
    pd.testing.assert_series_equal(released["k"], frame["k"])
    assert list(released.columns) == list(frame.columns)
    assert released["s"].tolist() == ["b", "a", "c"]
    assert released["i"].tolist() == [2, 3, 1]
    assert released["f"].tolist() == [False, True, False]
    assert released["x"].tolist() == ["[1,2)", "[0,1)", "NA"]
    for name in ("s", "i", "f"):
        assert released[name].dtype == frame[name].dtype


def test_polars_comes_back_as_polars():
    frame = polars_frame()
    released = through(frame, change=flip)
    assert isinstance(released, pl.DataFrame)
    assert released.columns == frame.columns
    assert released["k"].equals(frame["k"])
    assert released["s"].to_list() == ["b", "a", "c"]
    assert released["i"].to_list() == [2, 3, 1]
    assert released["f"].to_list() == [False, True, False]
    assert released["x"].to_list() == ["[1,2)", "[0,1)", "NA"]
    assert released.dtypes == [pl.Boolean, pl.String, pl.List(pl.Int64), pl.String, pl.Int64]


def test_pyarrow_comes_back_as_pyarrow():
    table = polars_frame().to_arrow()
    released = through(table, change=flip)
    assert isinstance(released, pa.Table)
    assert released.column_names == table.column_names
    assert released["i"].to_pylist() == [2, 3, 1]
    assert released["k"].equals(table["k"])
    for name in ("f", "s", "k", "i"):
        assert released.schema.field(name).type == table.schema.field(name).type
    batch = table.combine_chunks().to_batches()[0]
    assert isinstance(through(batch, change=flip), pa.RecordBatch)


PANDAS_TEXT = [
    "object",
    "str",
    "string",
    pd.StringDtype("python"),
    pd.ArrowDtype(pa.string()),
    pd.ArrowDtype(pa.large_string()),
]


@pytest.mark.parametrize("dtype", PANDAS_TEXT, ids=str)
def test_every_pandas_text_type_stays(dtype):
    frame = pd.DataFrame({"s": pd.Series(["a", None, "b"], dtype=dtype)})
    released = through(frame, (TEXT,), ())
    assert released["s"].dtype == frame["s"].dtype
    assert released["s"].tolist() == ["a", "NA", "b"]


PANDAS_WHOLE = ["int8", "int64", "uint16", "Int8", "Int64", pd.ArrowDtype(pa.int16())]


@pytest.mark.parametrize("dtype", PANDAS_WHOLE, ids=str)
def test_every_pandas_integer_type_stays(dtype):
    frame = pd.DataFrame({"i": pd.Series([3, 1, 2], dtype=dtype)})
    released = through(frame, (WHOLE,), ())
    pd.testing.assert_frame_equal(released, frame)


def test_pandas_numbers_and_booleans_without_nulls_get_them_where_missing_is_a_category():
    whole = Attribute("i", ("1", "2", "3"), missing="NA")
    flag = Attribute("f", ("false", "true"), missing="NA")
    frame = pd.DataFrame({"i": [1, 2], "f": [True, False]})
    released = through(frame, (whole, flag), (), lambda _: [np.array([3, 0]), np.array([1, 2])])
    assert released["i"].dtype == "Int64"
    assert released["f"].dtype == "boolean"
    assert released["i"].isna().tolist() == [True, False]
    assert released["f"].isna().tolist() == [False, True]
    assert through(released, (whole, flag), ())["i"].isna().tolist() == [True, False]


def test_booleans_stay_where_categories_are_written_as_python_writes_them():
    flag = Attribute("f", ("True", "False"))
    for frame in (pd.DataFrame, pl.DataFrame, pa.table):
        released = through(frame({"f": [True, False]}), (flag,), (), lambda _: [np.array([1, 1])])
        assert list(map(bool, released["f"].to_numpy())) == [False, False]


@pytest.mark.parametrize("dtype", ["Sparse[int64]", "Sparse[float64]", "Sparse[bool]"])
def test_sparse_columns_are_read_and_come_out_dense(dtype):
    # Failed before: "its values are of several types".
    frame = pd.DataFrame({"x": pd.Series([0, 1], index=[7, 8]).astype(dtype)})
    digits = ("false", "true") if "bool" in dtype else ("0", "1")
    released = through(frame, (Attribute("x", digits),), (), lambda _: [np.array([1, 1])])
    assert released["x"].tolist() == [1, 1]
    assert released.index.tolist() == [7, 8]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_that_the_column_would_round_are_released_as_whole_ones(dtype):
    # Failed before: 2049 in half floats was released as 2048.
    last = {"float16": 2048, "float32": 2**24, "float64": 2**53}[dtype]
    numbers = Attribute("x", (str(last), str(last + 1)))
    frame = pd.DataFrame({"x": pd.Series([last, last], dtype=dtype)})
    released = through(frame, (numbers,), (), lambda _: [np.array([0, 1])])
    assert released["x"].tolist() == [last, last + 1]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pd.Series(["SECRET", 1], dtype=object), r"of several types \(int, str\); convert"),
        (pd.Series(["SECRET", 1], dtype="category"), r"of several types \(int, str\); convert"),
        (pd.Series([np.zeros(2), None, "SECRET"], dtype=object), r"several types \(ndarray, str\)"),
        (pd.Series([1j, 2]), "of type complex128, which is not read"),
        (pd.Series([2**70, 1], dtype=object), "whole numbers of more than 64 bits"),
        (pd.Series([object()], dtype=object), r"of a type that is not read \(object\)"),
        (pd.Series([b"SECRET"], dtype=object), r"holds bytes \(binary\); decode it to text"),
        (pd.Series(pd.period_range("2020", "2021", freq="Y")), r"\(pandas.period\); convert"),
        (pd.Series(pd.interval_range(0, 2)), r"\(pandas.interval\); convert it to text"),
        (pd.Series(pd.to_timedelta([1], "D")), "spans of time .* such as a number of days"),
        (pd.Series([time(1)], dtype=object), r"times of day .* such as 13:30:00"),
        (pl.Series([object()], dtype=pl.Object), r"of a type that is not read \(object\)"),
        (pl.Series([time(1)]), r"times of day .* such as 13:30:00"),
        (pl.Series([b"SECRET"]), r"holds bytes \(large_binary\); decode it to text"),
        (pl.Series([{"a": "SECRET"}]), "several values in a cell .* make one column of each"),
        (pl.Series([datetime(2020, 1, 1)]), r"dates or times .*; declare bins of dates"),
        (pl.Series([1], dtype=pl.Int128), "of type Int128, which is not read"),
    ],
)  # fmt: skip
def test_a_column_that_is_not_read_is_refused_for_what_it_holds(column, said):
    frame = (pd if isinstance(column, pd.Series) else pl).DataFrame({"x": column})
    with pytest.raises(InputError, match=said) as refused:
        through(frame, (Attribute("x", ("0", "1")),), ())
    assert "SECRET" not in str(refused.value)


def test_categorical_columns_stay_categorical_with_the_declared_categories():
    attribute = Attribute("c", ("z", "y", "x"))
    for ordered in (False, True):
        frame = pd.DataFrame({"c": pd.Categorical(["x", "y"], ordered=ordered)})
        released = through(frame, (attribute,), (), lambda _: [np.array([0, 2])])
        assert released["c"].tolist() == ["z", "x"]
        assert released["c"].cat.categories.tolist() == ["z", "y", "x"]
        assert released["c"].cat.ordered is ordered
    for dtype in (pl.Categorical, pl.Enum(["x", "y"]), pl.Enum(["y", "x", "w", "z"])):
        frame = pl.DataFrame({"c": pl.Series(["x", "y"], dtype=dtype)})
        released = through(frame, (attribute,), (), lambda _: [np.array([0, 2])])
        assert released["c"].to_list() == ["z", "x"]
        assert isinstance(released["c"].dtype, type(frame["c"].dtype))
    numbers = Attribute("c", ("1", "2", "5"))
    frame = pd.DataFrame({"c": pd.Categorical([2, 1])})
    released = through(frame, (numbers,), (), lambda _: [np.array([2, 0])])
    assert released["c"].tolist() == [5, 1]


@pytest.mark.parametrize("make", [pandas_frame, polars_frame, lambda: polars_frame().to_arrow()])
def test_a_frame_without_rows_comes_back_without_rows(make):
    frame = make()
    empty = frame[:0] if not isinstance(frame, pa.Table) else frame.slice(0, 0)
    released = through(empty)
    assert len(released) == 0
    assert type(released) is type(frame)


def test_attributes_that_are_kept_are_encoded_and_released_untouched():
    frame = pd.DataFrame({"s": ["a", "b"], "x": [0.5, 7.0]})
    with open_table(frame, (TEXT, BINNED), ["x"]) as reader:
        (batch,) = reader
        assert batch.codes[1].tolist() == [0, 2]
    released = through(frame, (TEXT, BINNED), ["x"])
    assert released["x"].tolist() == [0.5, 7.0]


def test_anything_that_streams_arrow_can_be_read():
    table = polars_frame().to_arrow()
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))
    with open_table(stream, (WHOLE,), other_columns="drop", batch_rows=1) as reader:
        assert [b.codes[0].tolist() for b in reader] == [[0], [1], [2]]
        assert reader.fraction is None


def test_mixed_values_are_refused_without_showing_them():
    frame = pd.DataFrame({"s": pd.Series(["a", 5, "secret"], dtype=object)})
    with pytest.raises(InputError, match="column 's': its values are of several types") as caught:
        through(frame, (TEXT,), ())
    assert "secret" not in str(caught.value)


def test_an_unknown_category_names_the_row_over_all_batches_and_no_value():
    for frame in (
        pd.DataFrame({"s": ["a"] * 6 + ["secret"]}, index=range(100, 107)),
        pl.DataFrame({"s": ["a"] * 6 + ["secret"]}),
    ):
        with pytest.raises(InputError, match="the dataframe, data row 7, column 's'") as caught:
            through(frame, (TEXT,), ())
        assert "secret" not in str(caught.value)


def test_whole_numbers_that_pandas_stores_as_floats_are_the_integers_they_are():
    whole = Attribute("i", ("1", "2", "3"), missing="NA")
    frame = pd.DataFrame({"i": [1, 2, None]})
    released = through(frame, (whole,), (), lambda _: [np.array([2, 3, 0])], 3)
    assert released["i"].dtype == "Int64"
    assert released["i"].tolist()[::2] == [3, 1]
    assert through(released, (whole,), ())["i"].isna().tolist() == [False, True, False]
    table = through(pa.table({"i": [1.0, 2.0]}), (whole,), (), lambda _: [np.array([2, 3])])
    assert table["i"].to_pylist() == [3, None]
    with pytest.raises(InputError, match=r"data row 2, column 'i'.*is fractional"):
        through(pd.DataFrame({"i": [1, 2.5]}), (WHOLE,), ())


def test_column_names_that_are_not_text_or_not_unique_are_refused():
    with pytest.raises(InputError, match="name is not text"):
        through(pd.DataFrame({0: ["a"]}), (TEXT,), ())
    twice = pd.DataFrame([["a", "b"]], columns=["s", "s"])
    with pytest.raises(InputError, match="two columns are called 's'"):
        through(twice, (TEXT,), ())


TABLE = pa.table({"s": ["a", "b", None] * 3, "k": list(range(9))})


def relation(table: pa.Table) -> Any:
    return duckdb.from_arrow(table)


FETCHED = {
    "lazy frame": lambda table: pl.from_arrow(table).lazy(),
    "relation": relation,
    "dataset": dataset.dataset,
    "scanner": lambda table: dataset.dataset(table).scanner(),
    "stream": lambda table: table.to_reader(max_chunksize=2),
}


@pytest.mark.parametrize("kind", FETCHED)
def test_what_is_fetched_by_record_batches_is_a_table_like_any_other(kind):
    made = FETCHED[kind](TABLE)
    released = through(made, (TEXT,), ("k",), lambda codes: [(codes[0] + 1) % 4], batch_rows=4)
    if kind == "lazy frame":
        assert isinstance(released, pl.DataFrame)
        released = released.to_arrow()
    assert isinstance(released, pa.Table)
    assert released["s"].to_pylist() == ["b", "c", "a"] * 3
    assert released["k"].to_pylist() == list(range(9))


def test_rows_that_cannot_be_fetched_are_refused_without_showing_them():
    broken = duckdb.sql("select cast(v as int) i from (values ('1'), ('secret')) t(v)")
    with pytest.raises(InputError, match="fetching its rows failed") as caught:
        through(broken, (WHOLE,), ())
    assert "secret" not in str(caught.value)


def test_other_things_are_refused_with_the_way_out():
    for thing in ([1, 2], None, 3):
        with pytest.raises(InputError, match="no readable table; give a path"):
            open_table(thing, (TEXT,))
