"""Values as they are typed: levels, λ, strengths, covariances, matrices."""

import json
from pathlib import Path

import numpy as np
import pytest

from deniable.cli import options
from deniable.cli.options import (
    caps,
    matrices,
    number_or_numbers,
    numbers_by_column,
    numbers_per_attribute,
    pairs,
    per_stratum,
    preserved,
    some_numbers,
    whole_numbers,
)
from deniable.errors import InputError

NAMES = ["age", "sex", "race"]


@pytest.mark.parametrize("text", ["1,2,1.5", "race=1.5,age=1,sex=2", " 1 , 2 , 1.5 "])
def test_lists_and_pairs_mean_the_same(text):
    assert numbers_per_attribute(text, NAMES, "--x") == [1, 2, 1.5]


@pytest.mark.parametrize(
    "content",
    [
        "1,2,1.5",
        "1\n2\n1.5\n",
        "age=1\nrace=1.5\nsex=2",
        "[1, 2, 1.5]",
        '{"sex":2,"age":1,"race":1.5}',
    ],
)
def test_a_file_holds_lists_pairs_or_json(content, tmp_path):
    path = tmp_path / "levels"
    path.write_text(content)
    assert numbers_per_attribute(f"@{path}", NAMES, "--x") == [1, 2, 1.5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2", "2 values were given for 3 attributes"),
        ("1,2,3,4", "4 values were given for 3 attributes"),
        ("age=1,sex=2", "'race' has no value"),
        ("age=1,age=2,sex=1,race=1", "given twice"),
        ("age=1,2,3", "not both"),
        ("age=1,sex=2,rice=3", "no protected attribute 'rice'"),
        ("1,two,3", "not a number"),
        ("", "no value"),
        ("@nowhere/levels", "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text, words):
    with pytest.raises(InputError, match=words) as caught:
        numbers_per_attribute(text, NAMES, "--x")
    assert "--x" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_that_is_no_list_of_numbers_is_refused(tmp_path):
    path = tmp_path / "levels.json"
    path.write_text('{"age": [1]}')
    with pytest.raises(InputError, match="JSON"):
        numbers_per_attribute(f"@{path}", NAMES, "--x")


def test_a_name_may_contain_an_equals_sign():
    assert numbers_per_attribute("a=b=1,c=2", ["a=b", "c"], "--x") == [1, 2]


def test_whole_numbers_refuse_fractions():
    assert whole_numbers("5,5,3", "--categories") == [5, 5, 3]
    with pytest.raises(InputError, match="whole numbers"):
        whole_numbers("5,2.5", "--categories")


def test_caps_are_a_multiple_a_number_or_a_list():
    assert caps("2x", NAMES) == "2x"
    assert caps("1.5", NAMES) == 1.5
    assert caps("age=1,sex=2,race=3", NAMES) == [1, 2, 3]
    with pytest.raises(InputError, match="not a number"):
        caps("much", NAMES)


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda: options.some_numbers("1,2", ["a"], "--at-most"), "expected name=number pairs"),
        (lambda: options.some_numbers("b=1", ["a"], "--at-most"), "no protected attribute 'b'"),
        (lambda: options.some_numbers("a=1,a=2", ["a"], "--at-most"), "'a' is given twice"),
        (lambda: options.numbers_by_column("1", "--numeric"), "expected name=number pairs"),
        (lambda: options.numbers_by_column("a=1,a=2", "--numeric"), "'a' is given twice"),
        (lambda: options.pairs(["town"], "--where"), "expected column=value"),
        (lambda: options.pairs(["a=1", "a=2"], "--where"), "'a' is given twice"),
    ],
)
def test_pairs_that_are_none_or_stand_twice_are_refused(read, words):
    with pytest.raises(InputError, match=words):
        read()


def test_a_floor_may_be_none():
    assert options.floor("none") == 0.0
    assert options.floor("0.5") == 0.5


@pytest.mark.parametrize("text", ["1.5", "age=1,2", "age=1,age=2", "rice=1", "age=much"])
def test_numbers_for_some_attributes_have_to_be_named(text: str) -> None:
    assert some_numbers(None, NAMES, "--at-most") == {}
    assert some_numbers("sex=1, age=0.5", NAMES, "--at-most") == {"sex": 1, "age": 0.5}
    with pytest.raises(InputError, match="--at-most"):
        some_numbers(text, NAMES, "--at-most")


@pytest.mark.parametrize("text", ["1.5", "wage=1,2", "wage=1,wage=2", "=1", "wage=much"])
def test_numbers_by_column_take_any_name(text: str) -> None:
    assert numbers_by_column(None, "--numeric") == {}
    assert numbers_by_column("wage=0.9", "--numeric") == {"wage": 0.9}
    with pytest.raises(InputError, match="--numeric"):
        numbers_by_column(text, "--numeric")


def test_a_value_that_selects_rows_may_contain_anything() -> None:
    assert pairs(["town=a=b,c", "year="], "--where") == {"town": "a=b,c", "year": ""}
    for texts, words in ((["town"], "column=value"), (["=a"], "column=value"),
                         (["town=a", "town=b"], "twice")):  # fmt: skip
        with pytest.raises(InputError, match=words):
            pairs(texts, "--where")


PROTECTED = ["age", "sex", "a:b", "a"]


def test_one_number_is_for_all_and_a_list_for_each(tmp_path: Path) -> None:
    assert number_or_numbers(None, PROTECTED, "--lambda") is None
    assert number_or_numbers("0.5", PROTECTED, "--lambda") == 0.5
    assert number_or_numbers("0.1,0.2,0.3,0.4", PROTECTED, "--lambda") == dict(
        zip(PROTECTED, (0.1, 0.2, 0.3, 0.4), strict=True)
    )
    assert number_or_numbers("sex=0.5, age=0.1", PROTECTED, "--lambda") == {"sex": 0.5, "age": 0.1}
    (tmp_path / "values").write_text('{"sex": 0.5}')
    assert number_or_numbers(f"@{tmp_path / 'values'}", PROTECTED, "--lambda") == {"sex": 0.5}


def test_covariances_to_preserve_are_by_pair_and_names_may_hold_a_colon() -> None:
    assert preserved(None, PROTECTED) == {}
    assert preserved(["age:sex=0.4,sex:a=0.3", "a:b:age=0.2"], PROTECTED) == {
        ("age", "sex"): 0.4,
        ("sex", "a"): 0.3,
        ("a:b", "age"): 0.2,
    }


def test_a_matrix_is_read_by_rows_of_the_true_category(tmp_path: Path) -> None:
    rows = [[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]]
    path = tmp_path / "m.json"
    path.write_text(json.dumps(rows))
    result = matrices([f"age={path}"], PROTECTED)["age"]
    # matrix[y, x]: the first true category is answered as the first row says.
    np.testing.assert_array_equal(result[:, 0], rows[0])


def test_strengths_per_stratum_come_from_one_file(tmp_path: Path) -> None:
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
    result = per_stratum(path, PROTECTED)
    assert result["south"].attenuation == 0.5
    assert result["west"].strength == {"sex": 0.3}
    assert result["west"].preserve == {("age", "a"): 0.2}
    np.testing.assert_array_equal(result[""].matrices["sex"], [[0.9, 0.1], [0.1, 0.9]])


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
def test_a_strength_that_cannot_be_read_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        number_or_numbers(text, PROTECTED, "--lambda")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age=0.5", "a:b"),
        ("age:sex", "first:second=fraction"),
        ("age:height=0.5", "'height'"),
        ("age:sex=x", "not a number"),
        ("age:sex=0.5,age:sex=0.4", "twice"),
        ("a:b:a=0.1", "several pairs"),
    ],
)
def test_a_covariance_to_preserve_that_cannot_be_read_is_refused(text: str, words: str) -> None:
    names = [*PROTECTED, "b:a"]
    with pytest.raises(InputError, match=words):
        preserved([text], names)


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
        matrices([f"age={path}"], PROTECTED)
    assert "\n" not in str(caught.value)


def test_an_option_of_matrices_has_to_name_an_attribute_and_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text("[[0.9, 0.1], [0.1, 0.9]]")
    for texts, words in (
        (["age"], "name=file"),
        ([f"height={path}"], "'height'"),
        ([f"age={path}", f"age={path}"], "twice"),
        (["age=nowhere.json"], "cannot be read"),
    ):
        with pytest.raises(InputError, match=words):
            matrices(texts, PROTECTED)


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
        per_stratum(path, PROTECTED)
    with pytest.raises(InputError, match="cannot be read"):
        per_stratum(tmp_path / "nowhere", PROTECTED)
