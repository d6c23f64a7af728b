"""Whole tables through the reader and the writer, as the commands send them."""

import gzip
import io
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq
import pytest

from deniable.errors import InputError
from deniable.schema import Attribute
from deniable.tables import TableWriter, csv_source, open_table, released_columns

A = Attribute("a", ("x", "y", "z"))
N = Attribute("n", ("1", "2"))
KEEP = ("k",)


def same(codes):
    return list(codes)


def turned(codes):
    return [(c + 1) % n for c, n in zip(codes, (3, 2), strict=True)]


def through(source, target, attributes, randomize, keep=(), *, overwrite=False, progress=None):
    with open_table(source, attributes, keep) as reader:
        columns = released_columns(reader.columns, attributes, keep)
        with TableWriter(target, columns, overwrite=overwrite) as writer:
            for batch in reader:
                writer.write(randomize(batch.codes), batch.kept)
                if progress is not None:
                    progress(writer.n_rows, reader.fraction)
    return writer.n_rows


def table(n_rows: int) -> pa.Table:
    return pa.table(
        {
            "k": [f"row {i}" for i in range(n_rows)],
            "n": pa.array([1 + i % 2 for i in range(n_rows)], pa.int8()),
            "a": [A.categories[i % 3] for i in range(n_rows)],
        }
    )


@pytest.mark.parametrize("n_rows", [0, 5000])
@pytest.mark.parametrize("source", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("target", ["o.csv", "o.csv.gz", "o.parquet"])
def test_every_format_goes_through_to_every_other(tmp_path, monkeypatch, n_rows, source, target):
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 10_000)
    path, out = tmp_path / source, tmp_path / target
    if source == "t.parquet":
        pq.write_table(table(n_rows), path)
    else:
        text = io.BytesIO()
        pc_csv.write_csv(table(n_rows), text)
        path.write_bytes(text.getvalue() if source == "t.csv" else gzip.compress(text.getvalue()))
    assert through(path, out, (A, N), turned, KEEP) == n_rows
    expected = [
        (f"row {i}", str(1 + (i + 1) % 2), A.categories[(i + 1) % 3]) for i in range(n_rows)
    ]
    if target == "o.parquet":
        read = pq.read_table(out)
        assert read.schema.field("n").type == (pa.int8() if source == "t.parquet" else pa.string())
    else:
        options = pc_csv.ConvertOptions(column_types=dict.fromkeys("kna", pa.string()))
        read = pc_csv.read_csv(out, convert_options=options)
    assert read.column_names == ["k", "n", "a"]
    columns = [map(str, read[name].to_pylist()) for name in read.column_names]
    assert list(zip(*columns, strict=True)) == expected


def test_progress_is_told_after_each_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 1000)
    told: list[tuple[int, float | None]] = []

    def progress(n_rows: int, fraction: float | None) -> None:
        told.append((n_rows, fraction))

    text = b"a,n\n" + b"x,1\n" * 1000
    (tmp_path / "t.csv").write_bytes(text)
    through(tmp_path / "t.csv", io.BytesIO(), (A, N), same, progress=progress)
    assert len(told) >= 4
    assert told == sorted(told)
    assert told[-1] == (1000, 1.0)
    told.clear()
    through(io.BytesIO(text), io.BytesIO(), (A, N), same, progress=progress)
    assert told[-1] == (1000, None)


def test_rows_that_are_read_ahead_are_not_in_the_fraction():
    rows = pa.table({"a": ["x"] * 1000, "n": ["1"] * 1000})
    with open_table(rows, (A, N), batch_rows=100) as reader:
        seen = []
        for batch in reader:
            time.sleep(0.02)  # meanwhile the next batch is read
            seen.append((batch.first_row + batch.n_rows - 1, reader.fraction))
    assert seen == [(rows, rows / 1000) for rows in range(100, 1001, 100)]


def test_bad_input_in_the_middle_leaves_no_output(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 1000)
    (tmp_path / "t.csv").write_text("k,n,a\n" + "k,1,x\n" * 5000 + "k,1,secret\n")
    with pytest.raises(InputError, match=r"t\.csv, data row 5001, column 'a'"):
        through(tmp_path / "t.csv", tmp_path / "o.csv", (A, N), same, KEEP)
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_a_table_can_be_replaced_by_its_own_release_and_survives_an_error(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,n\nx,1\ny,2\n")
    through(path, path, (A, N), turned, overwrite=True)
    assert path.read_text() == "a,n\ny,2\nz,1\n"

    def broken(codes):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        through(path, path, (A, N), broken, overwrite=True)
    assert path.read_text() == "a,n\ny,2\nz,1\n"


def test_every_batch_is_randomized_exactly_once(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 1000)
    (tmp_path / "t.csv").write_text("a,n\n" + "x,1\n" * 3000)
    counts = []

    def counted(codes):
        counts.append(len(codes[0]))
        return [np.full_like(c, 1) for c in codes]

    through(tmp_path / "t.csv", tmp_path / "o.csv", (A, N), counted)
    assert sum(counts) == 3000
    assert len(counts) > 5
    assert (tmp_path / "o.csv").read_text() == "a,n\n" + "y,2\n" * 3000
