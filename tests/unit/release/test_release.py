import io
import json
import os
from dataclasses import replace

import pyarrow as pa
import pytest

from deniable.errors import InputError
from deniable.randomness import SystemRandomness
from deniable.release.record import verify
from deniable.release.release import Options, randomize_table, share
from unit.release.letters import DESIGN, ROWS, released


def test_nothing_but_the_rows_depends_on_the_true_values(tmp_path, monkeypatch):
    """Two different tables whose released rows are forced to be equal."""
    import deniable.release.release as module

    class Fixed:
        def __init__(self, mechanism, source):
            pass

        def randomize(self, columns):
            return [column * 0 for column in columns]

    monkeypatch.setattr(module, "Randomizer", Fixed)
    other = ROWS | {"a": ["y", "y", "y", "x"], "b": [3, 3, 3, 2]}
    first, second = released(tmp_path, ROWS, "one"), released(tmp_path, other, "two")
    for name in sorted(os.listdir(first)):  # noqa: PTH208  (names, not paths)
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_every_kind_of_dataframe_is_released(library, tmp_path):
    frame = pytest.importorskip(library).DataFrame(ROWS)
    share(frame, DESIGN, tmp_path / "r", Options(), SystemRandomness())
    verify(tmp_path / "r")
    record = json.loads((tmp_path / "r" / "record.json").read_text())
    assert record["release"]["rows"] == len(frame)


def test_types_of_a_dataframe_survive(tmp_path):
    import pyarrow.parquet as pq

    table = pq.read_table(released(tmp_path, ROWS) / "data.parquet")
    assert table.schema.types == pa.table(ROWS).schema.types
    assert table["c"].to_pylist() == ROWS["c"]


def test_shuffling_moves_whole_rows(tmp_path):
    import pyarrow.parquet as pq

    n = 3000
    rows = {"a": ["x"] * n, "b": [1] * n, "c": [str("ns"[i >= n // 2]) for i in range(n)]}
    table = pq.read_table(released(tmp_path, rows, shuffle=True) / "data.parquet")
    kept = table["c"].to_pylist()
    assert sorted(kept) == sorted(rows["c"])
    assert kept != rows["c"]


def test_progress_of_a_shuffled_release_ends_when_its_rows_are_written(tmp_path, monkeypatch):
    import deniable.release.release as module

    monkeypatch.setattr(module, "BATCH_ROWS", 1000)
    n, seen = 3000, []
    frame = pa.table({"a": ["x"] * n, "b": [1] * n, "c": ["n"] * n})
    options = Options(shuffle=True)
    share(frame, DESIGN, tmp_path / "r", options, SystemRandomness(), seen.append)
    assert seen == pytest.approx([1 / 2, 4 / 6, 5 / 6, 1])


def test_views_are_shuffled(tmp_path):
    import pyarrow.parquet as pq

    views = {"c": pa.array(ROWS["c"], pa.string_view())}
    released_views = released(tmp_path, ROWS | views, shuffle=True)
    read = pq.read_table(released_views / "data.parquet")["c"]
    assert read.type == pa.string_view()
    assert sorted(read.to_pylist()) == sorted(ROWS["c"])


def test_a_table_without_rows_is_refused_and_leaves_nothing(tmp_path):
    empty = {name: pa.array([], type=pa.string()) for name in ("a", "b", "c")}
    with pytest.raises(InputError, match="no rows"):
        released(tmp_path, empty)
    assert not list(tmp_path.iterdir())


def test_only_a_release_or_an_empty_folder_is_ever_replaced(tmp_path):
    """Else --force would delete the true table, if the output is the folder that holds it."""
    foreign = ({"true.csv": "a"}, {"record.json": "{}", "true.csv": "a"}, {"data.csv": "a"})
    for number, inside in enumerate(foreign):
        folder = tmp_path / f"folder {number}"
        folder.mkdir()
        for name, text in inside.items():
            (folder / name).write_text(text)
        with pytest.raises(InputError, match="not replaced"):
            released(tmp_path, ROWS, folder.name, overwrite=True)
        assert {p.name: p.read_text() for p in folder.iterdir()} == inside
    (tmp_path / "true.csv").write_text("a")
    with pytest.raises(InputError, match="not replaced"):
        released(tmp_path, ROWS, "true.csv", overwrite=True)
    assert (tmp_path / "true.csv").read_text() == "a"
    (tmp_path / "empty").mkdir()
    for name in ("empty", "empty"):
        assert (released(tmp_path, ROWS, name, overwrite=True) / "record.json").exists()


def test_a_value_in_an_open_file_is_refused_by_its_row_though_nobody_can_look_again(tmp_path):
    file = io.BytesIO(b"a,b,c\nx,1,n\ny,9,s\n")
    with pytest.raises(InputError, match="the input, data row 2, column 'b'"):
        randomize_table(file, DESIGN.mechanism, tmp_path / "out.csv", Options(), SystemRandomness())


@pytest.mark.parametrize("allowed", [None, 0.5])
def test_several_rows_of_a_person_are_refused_with_numbers_unless_allowed(tmp_path, allowed):
    # Failed before: a total became twice as much per person without a word.
    rows = pa.table(ROWS | {"who": ["p", "q", "p", "r"]})
    options = Options(person="who", person_epsilon=allowed)
    total = DESIGN.mechanism.epsilon
    words = rf"one person has 2 rows of ε = {total:.6g} each, {2 * total:.6g} together.*"
    with pytest.raises(InputError, match=words + r"`person_epsilon`"):
        share(rows, DESIGN, tmp_path / "r", options, SystemRandomness())
    assert not list(tmp_path.iterdir())
    record = share(
        rows, DESIGN, tmp_path / "r", replace(options, person_epsilon=2 * total), SystemRandomness()
    )
    assert record["guarantee"]["person"]["epsilon"] == pytest.approx(2 * total)


def test_a_limit_per_person_needs_the_column_of_persons():
    with pytest.raises(InputError, match="name the column that identifies persons with `person`"):
        Options(person_epsilon=3.0)
    with pytest.raises(InputError, match=r"`person_epsilon`: the privacy level must be finite"):
        Options(person="who", person_epsilon=0.0)
