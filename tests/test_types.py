"""The types that type checkers of users see; `mypy` checks this file, pytest runs it."""

from typing import assert_type

import pandas
import polars
import pyarrow
import pytest

import deniable


def test_a_frame_in_memory_comes_back_as_its_own_type() -> None:
    # mypy failed before: the type was Any.
    plan = deniable.design(deniable.Schema.anonymous((2, 3)), epsilon=2)
    rows = {"a1": ["0", "1"], "a2": ["2", "0"]}
    in_pandas, in_polars = pandas.DataFrame(rows), polars.DataFrame(rows)
    of_pandas = assert_type(deniable.randomize(in_pandas, plan), pandas.DataFrame)
    of_polars = assert_type(
        deniable.randomize(in_polars, plan, deniable.Publication(drop_other_columns=True)),
        polars.DataFrame,
    )
    assert (type(of_pandas), type(of_polars)) == (pandas.DataFrame, polars.DataFrame)


def test_what_comes_back_as_another_kind_has_no_false_type() -> None:
    duckdb = pytest.importorskip("duckdb")
    plan = deniable.design(deniable.Schema.anonymous((2,)), epsilon=2)
    lazy = polars.LazyFrame({"a1": ["0", "1"]})
    assert isinstance(deniable.randomize(lazy, plan), polars.DataFrame)  # mypy: if not Any, never
    relation = duckdb.sql("select '0' as a1")
    assert isinstance(deniable.randomize(relation, plan), pyarrow.Table)
