"""Which files a table consists of, and its units."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.errors import InputError
from deniable.schema import Attribute
from deniable.tables import files as module
from deniable.tables import open_table
from deniable.tables.files import Unit, files_of, identity_of, units_of
from deniable.tables.reading import open_unit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv.gz", "c.parquet", "_SUCCESS", ".hidden.csv"):
        (tmp_path / name).touch()
    return tmp_path


def names(found: list[Path] | None) -> list[str] | None:
    return None if found is None else [path.name for path in found]


def test_a_folder_is_its_tables_by_name_without_marks(folder):
    assert names(files_of(folder)) == ["a.csv.gz", "b.csv", "c.parquet"]
    assert names(files_of(str(folder))) == ["a.csv.gz", "b.csv", "c.parquet"]


def test_patterns_and_lists_are_files_in_order(folder):
    assert names(files_of(f"{folder}/*.csv")) == ["b.csv"]
    assert names(files_of([folder / "c.parquet", str(folder / "b.csv")])) == ["c.parquet", "b.csv"]
    assert names(files_of([f"{folder}/*.csv*", folder / "c.parquet"])) == [
        *("a.csv.gz", "b.csv", "c.parquet"),
    ]
    odd = folder / "odd[1].csv"
    odd.touch()
    assert files_of(odd) is None  # a file is a file, whatever its name looks like


@pytest.mark.parametrize("source", ["-", "nowhere.csv", 3, [1, 2], {"a": 1}])
def test_what_is_no_list_folder_or_pattern_is_left_to_others(source):
    assert files_of(source) is None


def test_what_cannot_go_together_is_refused_by_name(folder):
    with pytest.raises(InputError, match=r"b\.csv are one file"):
        files_of([folder / "b.csv", folder / "." / "b.csv"])
    os.link(folder / "b.csv", folder / "d.csv")
    with pytest.raises(InputError, match=r"d\.csv and .*b\.csv are one file"):
        files_of(folder)
    (folder / "d.csv").unlink()
    (folder / "notes.txt").touch()
    with pytest.raises(InputError, match=r"'notes\.txt' in it is no table"):
        files_of(folder)
    with pytest.raises(InputError, match="no file matches"):
        files_of(f"{folder}/*.xyz")
    with pytest.raises(InputError, match="list of tables is empty"):
        files_of([])
    with pytest.raises(InputError, match="standard input cannot be combined"):
        files_of(["-", "a.csv"])
    (folder / "inner").mkdir()
    with pytest.raises(InputError, match="this folder has no tables"):
        files_of(folder / "inner")


def test_row_groups_go_together_until_they_are_worth_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "UNIT_CELLS", 40)
    monkeypatch.setattr(module, "_UNIT_ROWS", 20)
    table = pa.table({"a": ["x", "y"] * 35, "n": range(70)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=15)
    (tmp_path / "t.csv").write_text("a\nx\n")
    cut = units_of([tmp_path / "t.csv", tmp_path / "t.parquet", tmp_path / "gone.parquet"])
    assert cut == [Unit(0), Unit(1, 0, 2, 0), Unit(1, 2, 4, 30), Unit(1, 4, 5, 60), Unit(2)]
    found = []
    for unit in cut[1:4]:
        with open_unit(tmp_path / "t.parquet", [Attribute("a", ("x", "y"))], ["n"], unit) as reader:
            for batch in reader:
                assert batch.first_row == 1 + batch.kept["n"][0].as_py()
                found += batch.kept["n"].to_pylist()
            assert reader.fraction == 1
    assert found == list(range(70))
    # The unit's first row is the 31st of the file, and every second one is y.
    attributes = [Attribute("a", ("x", "z"))]
    with (
        open_unit(tmp_path / "t.parquet", attributes, ["n"], cut[2]) as reader,
        pytest.raises(InputError, match="first in data row 32,"),
    ):
        reader.look()


def test_a_file_is_known_again_by_size_time_and_content(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\nx\n")
    then = identity_of(path)
    os.utime(path, ns=(0, then.changed))
    assert identity_of(path) == then
    path.write_text("a\ny\n")
    os.utime(path, ns=(0, then.changed))
    now = identity_of(path)
    assert (now.size, now.changed) == (then.size, then.changed)
    assert now.digest != then.digest
    pq.write_table(pa.table({"a": np.arange(5)}), tmp_path / "t.parquet")
    before = identity_of(tmp_path / "t.parquet")
    pq.write_table(pa.table({"a": np.arange(5) + 1}), tmp_path / "t.parquet")
    assert identity_of(tmp_path / "t.parquet").digest != before.digest
    with pytest.raises(InputError, match="no such file"):
        identity_of(tmp_path / "gone.csv")
    with pytest.raises(InputError, match="cannot be read"):
        identity_of(tmp_path)


def test_several_tables_are_read_as_one(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(f"n,a\n{number},x\n{number},y\n")
    with open_table(tmp_path, [Attribute("a", ("x", "y"))], ["n"]) as reader:
        found = [(reader.table[-5:], b.first_row, b.kept["n"].to_pylist()) for b in reader]
        assert reader.fraction == 1
    assert found == [(f"{n}.csv", 1, [str(n)] * 2) for n in range(3)]
    with open_table(tmp_path, [Attribute("a", ("x", "y"))], ["n"]) as reader:
        done: list[float | None] = []
        assert reader.look([], done.append) == 6
    assert done == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]
    (tmp_path / "1.csv").write_text("n,a\n1,x\n1,no\n")
    with (
        open_table(tmp_path, [Attribute("a", ("x", "y"))], ["n"]) as reader,
        pytest.raises(InputError, match=r"1\.csv, data row 2"),
    ):
        list(reader)


def test_columns_of_other_types_are_refused_by_name(tmp_path):
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"n": ["1", "2"]}), tmp_path / "2.parquet")
    with (
        open_table(tmp_path, [], ["n"]) as reader,
        pytest.raises(InputError, match=r"2\.parquet: column 'n' has type string here"),
    ):
        list(reader)
