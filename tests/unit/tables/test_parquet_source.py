"""Parquet files within a bound of memory."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable import Attribute, InputError
from deniable.tables.reading import open_table

KINDS = pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)


def written(path: Path, texts: list[str | None], kind: object, **options: object) -> Path:
    column = pa.array(texts).dictionary_encode()
    column = column if column.type == kind else pa.array(texts, kind)
    pq.write_table(pa.table({"t": column}), path, **options)
    return path


@KINDS
def test_repeated_texts_are_read_in_pieces_within_the_bound(tmp_path: Path, kind: object) -> None:
    texts: list[str | None] = ["a" * 1_000_000, None, "b"] * 90
    path = written(tmp_path / "t.parquet", texts, kind)
    assert path.stat().st_size < 100_000
    before = pa.total_allocated_bytes()
    held, read, most = 0, [], 0
    with open_table(path, [], ["t"]) as reader:
        for batch in reader:
            column = batch.kept["t"]
            assert column.type == kind
            most = max(most, pa.total_allocated_bytes() - before)
            held = max(held, sum(len(text or "") for text in column.to_pylist()))
            read += [text and (text[0], len(text)) for text in column.to_pylist()]
    assert read == [text and (text[0], len(text)) for text in texts]
    assert held <= 65 << 20
    assert most <= 250 << 20  # the pieces in hand and read ahead


@KINDS
def test_a_text_beyond_the_bound_is_refused(tmp_path: Path, kind: object) -> None:
    path = written(tmp_path / "t.parquet", ["a", "b", "c" * 3_000_000, "d"] * 9, kind)
    with (
        open_table(path, [], ["t"]) as reader,
        pytest.raises(InputError, match=r"data row 3, column 't': a text is longer than 2 MiB"),
    ):
        list(reader)


def test_a_text_of_an_attribute_beyond_the_bound_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", ["a", "c" * 3_000_000], pa.string())
    with (
        open_table(path, [Attribute("t", ["a", "b"])]) as reader,
        pytest.raises(InputError, match=r"data row 2, column 't': a text is longer than 2 MiB"),
    ):
        list(reader)


@pytest.mark.slow
def test_plain_long_texts_are_read_few_at_a_time(tmp_path: Path) -> None:
    texts: list[str | None] = [f"{i:06}" + "x" * 50_000 for i in range(2000)]
    path = written(tmp_path / "t.parquet", texts, pa.string(), use_dictionary=False)
    with open_table(path, [], ["t"]) as reader:
        sizes = [batch.kept["t"].nbytes for batch in reader]
    assert sum(sizes) > 100_000_000
    assert max(sizes) < 70 << 20
