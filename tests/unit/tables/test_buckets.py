"""Rows and persons in buckets, against all of them at once."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from deniable.tables import buckets as module
from deniable.tables.buckets import PersonTally, Scatter, gathered, most_rows
from marked import slow_after


def test_every_row_comes_back_in_its_bucket_once(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1)
    paths, expected = [], Counter[tuple[int, int, int, str]]()
    for part in range(3):
        paths.append(tmp_path / f"{part}")
        with paths[-1].open("wb") as file:
            scatter = Scatter(file, 4, held=50)
            for _ in range(part * 2):  # the first part has no rows
                codes = [numbers.integers(0, 3, 40).astype(np.uint8), numbers.integers(0, 999, 40)]
                places = numbers.integers(0, 3, 40)  # the last bucket stays empty
                kept = [f"{part}{i}" for i in range(40)]
                scatter.write(codes, {"who": pa.array(kept, pa.string_view())}, places)
                rows = zip(*(array.tolist() for array in (places, *codes)), kept, strict=True)
                expected.update(rows)
            scatter.finish()
            assert scatter.n_rows == part * 80
    found = Counter[tuple[int, int, int, str]]()
    for bucket in range(3):
        codes, kept = gathered(paths, bucket)
        assert codes[0].dtype == np.uint8
        rows = zip(*(array.tolist() for array in codes), kept["who"].to_pylist(), strict=True)
        found.update((bucket, *row) for row in rows)
    assert found == expected
    assert gathered(paths, 3) == ([], {})


@pytest.mark.parametrize(
    "kind",
    slow_after(
        3, ["text", "views", "numbers", "dictionary", "bytes", "views of bytes", "codes", "dates"]
    ),
)
def test_the_most_rows_of_a_person_are_those_of_all_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(module, "_HELD_PERSONS", 100)
    numbers = np.random.default_rng(2)
    paths, total = [], Counter[int]()
    for part in range(3):
        paths.append(tmp_path / str(part))
        with paths[-1].open("wb") as file:
            tally = PersonTally(file)
            for _ in range(4):
                persons = numbers.integers(0, 300, 70)
                total.update(persons.tolist())
                column = pa.array(persons)
                if kind == "dates":
                    column = column.cast(pa.int32()).cast(pa.date32())
                elif kind != "numbers":
                    column = column.cast(pa.string())
                if kind == "dictionary":
                    column = column.dictionary_encode()
                if kind == "views":
                    column = column.cast(pa.string_view())
                if kind == "bytes":
                    column = column.cast(pa.binary())
                if kind == "codes":  # bytes of one width
                    column = pa.array([f"{n:03}".encode() for n in persons], pa.binary(3))
                if kind == "views of bytes":
                    column = column.cast(pa.binary()).cast(pa.binary_view())
                tally.add(column.slice(3))
                total.subtract(persons[:3].tolist())
            tally.finish()
    assert most_rows(paths) == max(total.values())
    if kind == "text":
        read = [table for bucket in range(64) for table in module._bucket(paths, bucket)]
        assert sum(table.num_rows > 0 for table in read) > 32, "persons spread over the buckets"


def test_no_rows_are_nobodys(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        tally = PersonTally(file)
        tally.add(pa.array([], pa.string()))
        tally.finish()
    assert most_rows([tmp_path / "x"]) == 0
