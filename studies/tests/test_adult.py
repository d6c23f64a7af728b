"""The reader of the Adult data: the counts that are known of it, and files that are not it."""

import os
from pathlib import Path

import numpy as np
import pytest

from deniable.errors import InputError
from deniable_studies.adult import CATEGORICAL, COLUMNS, CONTINUOUS, DOMAINS, read_adult, schema

ADULT = Path(os.environ.get("ADULT", "adult"))

LINE = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, "
    "2174, 0, 40, United-States, <=50K"
)


def written(folder: Path, *lines: str, name: str = "adult.data") -> Path:
    path = folder / name
    path.write_text("\n".join([*lines, ""]))
    return path


def test_domains_and_columns_are_those_of_the_repository() -> None:
    assert [len(DOMAINS[name]) for name in CATEGORICAL] == [7, 16, 7, 14, 6, 5, 2, 41, 2]
    assert set(CATEGORICAL) | set(CONTINUOUS) == set(COLUMNS)
    assert schema(["sex", "race"]).n_categories == (2, 5)


def test_a_file_is_read_alone_and_a_folder_with_its_second_file(tmp_path: Path) -> None:
    path = written(tmp_path, LINE, "", LINE.replace("State-gov", "?"))
    second = written(tmp_path, "|1x3 Cross validator", LINE + ".", name="adult.test")
    alone, both = read_adult(path), read_adult(tmp_path)
    assert (alone.n_people, alone.n_incomplete, alone.source) == (1, 1, "adult.data")
    assert (both.n_people, both.n_incomplete) == (2, 1)
    assert both.source == "adult.data and adult.test"
    second.unlink()
    assert read_adult(tmp_path).n_people == 1
    assert alone.table(["sex", "income"]).tolist() == [[1, 0]]
    assert alone.numbers["fnlwgt"].tolist() == [77516]


def test_someone_who_never_worked_is_no_complete_case(tmp_path: Path) -> None:
    path = written(tmp_path, LINE, LINE.replace("State-gov", "Never-worked"))
    assert read_adult(path).n_incomplete == 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["age,workclass", LINE], "line 1: it has 2 values and not 15"),
        ([LINE, LINE.replace("Male", "Mail")], "line 2, sex: this is no value"),
        ([LINE.replace("77516", "-3")], "line 1, fnlwgt: this is no value"),
        ([LINE.replace("Male", "?")], "no complete line"),
    ],
)
def test_what_is_not_the_adult_data_is_refused_without_showing_it(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_adult(written(tmp_path, *lines))
    assert "Mail" not in str(caught.value)


def test_a_folder_or_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no adult\.data"):
        read_adult(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_adult(tmp_path / "adult.data")
    (tmp_path / "adult.data").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="it is not text"):
        read_adult(tmp_path)


@pytest.mark.skipif(not ADULT.is_dir(), reason="the variable ADULT names no folder with UCI Adult")
def test_the_complete_cases_are_45222_and_every_category_occurs() -> None:
    found = read_adult(ADULT)
    assert (found.n_people, found.n_incomplete) == (45_222, 3_620)
    for name, codes in found.codes.items():
        assert np.bincount(codes, minlength=len(DOMAINS[name])).min() > 0
        assert codes.max() < len(DOMAINS[name])
