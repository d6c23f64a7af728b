"""Answers arrive in files and dataframes as they were."""

import builtins
import zipfile
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow.parquet as parquet
import pytest

from deniable.errors import InputError
from deniable.tables.answers import Columns

COLUMNS: dict[str, list[Any]] = {
    "sex": ["f", "=1+1", None],
    "estimate": [0.25, -0.5, None],
    "uncertain": [False, True, True],
    "n": [3, 3, 3],
}


def test_every_kind_of_file_holds_the_same_values(tmp_path: Path) -> None:
    for kind in ("csv", "parquet", "xlsx"):
        Columns.of(COLUMNS).write(tmp_path / f"a.{kind}", "Shares of sex")
    expected = pandas.DataFrame(COLUMNS)
    pandas.testing.assert_frame_equal(
        pandas.read_csv(tmp_path / "a.csv"), expected, check_dtype=False
    )
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.to_pydict() == COLUMNS
    assert table.schema.metadata[b"caption"] == b"Shares of sex"
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        texts = book.read("xl/sharedStrings.xml").decode()
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    for text in ("sex", "estimate", "=1+1", "Shares of sex"):
        assert f">{text}</t>" in texts
    assert "<f>" not in sheet  # no formula
    assert "<v>0.25</v>" in sheet


def test_other_files_existing_files_and_missing_libraries_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="name the result"):
        Columns.of(COLUMNS).write(tmp_path / "a.txt", "")
    Columns.of(COLUMNS).write(tmp_path / "a.csv", "")
    with pytest.raises(InputError, match="exists"):
        Columns.of(COLUMNS).write(tmp_path / "a.csv", "")
    Columns.of(COLUMNS).write(tmp_path / "a.csv", "", overwrite=True)
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] in ("xlsxwriter", "polars"):
            raise ModuleNotFoundError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match="need xlsxwriter"):
        Columns.of(COLUMNS).write(tmp_path / "b.xlsx", "")
    assert not (tmp_path / "b.xlsx").exists()


def test_frames_are_those_of_the_library() -> None:
    assert isinstance(Columns.of(COLUMNS).frame("pandas"), pandas.DataFrame)
    frame = Columns.of(COLUMNS).frame("polars")
    assert isinstance(frame, polars.DataFrame)
    assert frame.to_dict(as_series=False) == COLUMNS


@pytest.mark.parametrize("answer", [{"a": ["x" * 32768]}, {"a": [None] * (1 << 20)}])
def test_what_no_sheet_can_hold_is_refused(tmp_path: Path, answer: dict[str, list[str]]) -> None:
    with pytest.raises(InputError, match=r"exceeds an Excel sheet .* 32,767 characters"):
        Columns.of(answer).write(tmp_path / "a.xlsx", "Shares")
    assert not (tmp_path / "a.xlsx").exists()


def test_an_infinite_number_is_an_error_value_of_a_sheet(tmp_path: Path) -> None:
    Columns.of({"a": [float("inf")]}).write(tmp_path / "a.xlsx", "Shares")
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        assert 't="e"' in book.read("xl/worksheets/sheet1.xml").decode()
