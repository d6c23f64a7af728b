"""λ, strengths, covariances and matrices as they are typed."""

import json
from pathlib import Path

import numpy as np
import pytest

from deniable.cli.strength_options import by_attribute, matrices, per_stratum, shares
from deniable.errors import InputError

NAMES = ["age", "sex", "a:b", "a"]


def test_one_number_is_for_all_and_a_list_for_each(tmp_path: Path) -> None:
    assert by_attribute(None, NAMES, "--lambda") is None
    assert by_attribute("0.5", NAMES, "--lambda") == 0.5
    assert by_attribute("0.1,0.2,0.3,0.4", NAMES, "--lambda") == dict(
        zip(NAMES, (0.1, 0.2, 0.3, 0.4), strict=True)
    )
    assert by_attribute("sex=0.5, age=0.1", NAMES, "--lambda") == {"sex": 0.5, "age": 0.1}
    (tmp_path / "values").write_text('{"sex": 0.5}')
    assert by_attribute(f"@{tmp_path / 'values'}", NAMES, "--lambda") == {"sex": 0.5}


def test_shares_are_by_pair_and_names_may_hold_a_colon() -> None:
    assert shares(None, NAMES) == {}
    assert shares(["age:sex=0.4,sex:a=0.3", "a:b:age=0.2"], NAMES) == {
        ("age", "sex"): 0.4,
        ("sex", "a"): 0.3,
        ("a:b", "age"): 0.2,
    }


def test_a_matrix_is_read_by_rows_of_the_true_category(tmp_path: Path) -> None:
    rows = [[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]]
    path = tmp_path / "m.json"
    path.write_text(json.dumps(rows))
    found = matrices([f"age={path}"], NAMES)["age"]
    # matrix[y, x]: the first true category is answered as the first row says.
    np.testing.assert_array_equal(found[:, 0], rows[0])


def test_wishes_per_stratum_come_from_one_file(tmp_path: Path) -> None:
    path = tmp_path / "strata.json"
    path.write_text(
        json.dumps(
            {
                "south": {"lambda": 0.5},
                "west": {"strength": {"sex": 0.3}, "preserve": {"age:a": 0.2}},
                "": {"matrix": {"sex": [[0.9, 0.1], [0.1, 0.9]]}},
            }
        )
    )
    found = per_stratum(path, NAMES)
    assert found["south"].attenuation == 0.5
    assert found["west"].strength == {"sex": 0.3}
    assert found["west"].preserve == {("age", "a"): 0.2}
    np.testing.assert_array_equal(found[""].matrices["sex"], [[0.9, 0.1], [0.1, 0.9]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0.5,0.5", "2 values were given for 4"),
        ("0.5,x,1,1", "not a number"),
        ("age=0.5,0.3", "not both"),
        ("height=0.5", "no protected attribute 'height'"),
        ("age=0.5,age=0.3", "twice"),
        ("@nowhere", "cannot be read"),
    ],
)
def test_a_wish_that_cannot_be_read_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        by_attribute(text, NAMES, "--lambda")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age=0.5", "a:b"),
        ("age:sex", "first:second=share"),
        ("age:height=0.5", "'height'"),
        ("age:sex=x", "not a number"),
        ("age:sex=0.5,age:sex=0.4", "twice"),
        ("a:b:a=0.1", "several pairs"),
    ],
)
def test_a_share_that_cannot_be_read_is_refused(text: str, words: str) -> None:
    names = [*NAMES, "b:a"]
    with pytest.raises(InputError, match=words):
        shares([text], names)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[[0.9, 0.2], [0.1, 0.8]]", "row 1 of .* adds up to 1.1"),
        ("[[0.9, 0.1], [0.2, 0.8]]", "column 1 of .* adds up to 1.1"),
        ("[[1, 0], [0, 1]]", "row 1, column 2"),
        ("[[0.5, 0.5]]", "square"),
        ("[[0.5, 0.5], [1]]", "same number"),
        ('{"a": 1}', "list of rows"),
        ("no", "not JSON"),
    ],
)
def test_a_matrix_that_is_none_is_refused_by_the_row_or_column_as_written(
    tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "m.json"
    path.write_text(content)
    with pytest.raises(InputError, match=words) as caught:
        matrices([f"age={path}"], NAMES)
    assert "\n" not in str(caught.value)


def test_what_is_said_of_matrices_has_to_name_an_attribute_and_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text("[[0.9, 0.1], [0.1, 0.9]]")
    for texts, words in (
        (["age"], "name=file"),
        ([f"height={path}"], "'height'"),
        ([f"age={path}", f"age={path}"], "twice"),
        (["age=nowhere.json"], "cannot be read"),
    ):
        with pytest.raises(InputError, match=words):
            matrices(texts, NAMES)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "JSON object"),
        ('{"south": {"lamda": 1}}', "lamda"),
        ('{"south": {"lambda": {"height": 1}}}', "'south'.*'height'"),
        ('{"south": {"matrix": {"sex": [[1, 0], [0, 1]]}}}', "'south', sex: row 1"),
        ('{"south": {"preserve": {"age": 0.5}}}', "a:b"),
    ],
)
def test_a_file_of_strata_that_cannot_be_read_is_refused(
    tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "strata.json"
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        per_stratum(path, NAMES)
    with pytest.raises(InputError, match="cannot be read"):
        per_stratum(tmp_path / "nowhere", NAMES)
