import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.tables.arrays import booleans, from_numpy, from_values, to_numpy


@given(
    values=st.lists(st.integers(0, 200)),
    start=st.integers(0, 9),
    kind=st.sampled_from([np.uint8, np.int16, np.int32, np.uint64, np.float64]),
)
def test_numbers_go_there_and_back_whatever_the_slice(values, start, kind):
    numbers = np.array(values, dtype=kind)
    array = from_numpy(numbers)
    assert array.equals(pa.array(numbers))
    assert to_numpy(array.slice(start)).tolist() == values[start:]
    assert to_numpy(array).dtype == kind


@given(values=st.lists(st.booleans()), start=st.integers(0, 20))
def test_truth_values_go_there_and_back_whatever_the_slice(values, start):
    array = booleans(np.array(values, dtype=bool))
    assert array.equals(pa.array(values, pa.bool_()))
    assert to_numpy(array.slice(start)).tolist() == values[start:]


@given(values=st.lists(st.one_of(st.none(), st.integers(-9, 9))), start=st.integers(0, 20))
def test_nulls_become_what_is_asked_for_whatever_the_slice(values, start):
    array = pa.array(values, pa.int16()).slice(start)
    expected = [77 if value is None else value for value in values[start:]]
    assert to_numpy(array, null=77).tolist() == expected


def test_every_other_number_of_an_array_is_taken_where_it_lies_apart():
    assert from_numpy(np.arange(6)[::2]).to_pylist() == [0, 2, 4]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["é", "", None, "x" * 20], pa.string()),
        (["é", "", None], pa.large_string()),
        ([1, None, -128], pa.int8()),
        ([2**64 - 1, None], pa.uint64()),
        ([-(2**63)], pa.int64()),
        ([True, None, False], pa.bool_()),
        ([], pa.string()),
    ],
    ids=str,
)
def test_values_become_what_pyarrow_itself_makes_of_them(values, kind):
    array = from_values(values, kind)
    array.validate(full=True)
    assert array.type == kind
    assert array.to_pylist() == values


@pytest.mark.slow
def test_nothing_is_imported_that_a_file_does_not_need(tmp_path):
    (tmp_path / "t.csv").write_text("a,x,k\ny,0.5,1\nz,,2\n,1.5,3\n")
    script = """
import sys
from deniable.schema import Attribute
from deniable.tables import TableWriter, open_table, released_columns
A = [Attribute("a", ("y", "z"), missing="NA"), Attribute("x", bins=(0, 1, 2), missing="NA")]
for source, target in (("t.csv", "o.csv"), ("t.csv", "o.parquet"), ("o.parquet", "p.parquet")):
    with open_table(sys.argv[1] + source, A, ["k"]) as reader:
        columns = released_columns(reader.columns, A, ["k"])
        with TableWriter(sys.argv[1] + target, columns) as writer:
            for batch in reader:
                writer.write(batch.codes, batch.kept)
    assert ("pyarrow.parquet" in sys.modules) == (target != "o.csv")
assert writer.n_rows == 3
assert not {"pandas", "narwhals"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script, f"{tmp_path}/"], check=True)
