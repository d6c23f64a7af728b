"""Values as they are typed: levels, λ, strengths, covariances, matrices."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable.cli import options
from deniable.cli.options import (
    caps,
    matrices,
    number_or_numbers,
    numbers,
    numbers_by_name,
    numbers_per_attribute,
    pairs,
    per_stratum,
    preserved,
    whole_numbers,
)
from deniable.errors import InputError

NAMES = ["age", "sex", "race"]
PROTECTED = ["age", "sex", "a:b", "a"]


@pytest.mark.parametrize(
    "content",
    [
        "1,2,1.5",
        " 1 , 2 , 1.5 ",
        "1\n2\n1.5\n",
        "age=1\nrace=1.5\nsex=2",
        "[1, 2, 1.5]",
        '{"sex":2,"age":1,"race":1.5}',
    ],
)
def test_lists_pairs_and_json_mean_the_same_also_in_a_file(content: str, tmp_path: Path) -> None:
    path = tmp_path / "levels"
    path.write_text(content)
    assert numbers_per_attribute(f"@{path}", NAMES, "--x") == [1, 2, 1.5]
    if not content.startswith(("[", "{")):
        assert numbers_per_attribute(content, NAMES, "--x") == [1, 2, 1.5]


def test_a_name_may_contain_an_equals_sign() -> None:
    assert numbers_per_attribute("a=b=1,c=2", ["a=b", "c"], "--x") == [1, 2]


def test_one_number_is_for_all_and_a_list_for_each() -> None:
    each = dict(zip(PROTECTED, (0.1, 0.2, 0.3, 0.4), strict=True))
    for text, meant in (
        ("0.5", 0.5),
        ("0.1,0.2,0.3,0.4", each),
        ("sex=0.5, age=0.1", {"sex": 0.5, "age": 0.1}),
    ):
        assert number_or_numbers(text, PROTECTED, "--x") == meant


def test_numbers_by_name_are_for_some_and_may_be_of_any_name() -> None:
    assert numbers_by_name("sex=1, age=0.5", NAMES, "--x") == {"sex": 1, "age": 0.5}
    assert numbers_by_name("wage=0.9", None, "--x") == {"wage": 0.9}


def test_caps_are_a_multiple_a_number_or_a_list() -> None:
    assert caps("2x", NAMES, "--x") == "2x"
    assert caps("1.5", NAMES, "--x") == 1.5
    assert caps("age=1,sex=2,race=3", NAMES, "--x") == [1, 2, 3]
    assert whole_numbers("5,5,3", "--categories") == [5, 5, 3]
    assert (options.floor("none", NAMES, "--x"), options.floor("0.5", NAMES, "--x")) == (0.0, 0.5)


def test_a_value_that_selects_rows_may_contain_anything() -> None:
    assert pairs(["town=a=b,c", "year="], "--where") == {"town": "a=b,c", "year": ""}


EACH = partial(numbers_per_attribute, names=NAMES, option="--x")
SHARED = partial(number_or_numbers, names=NAMES, option="--x")
SOME = partial(numbers_by_name, option="--x", names=NAMES)
ANY = partial(numbers_by_name, names=None, option="--x")
PLAIN = partial(numbers, option="--x")


def kept(text: str) -> Any:
    return preserved([text], [*PROTECTED, "b:a"], "--x")


def selected(text: str) -> Any:
    return pairs(text.split(), "--x")


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (EACH, "1,2", "2 values were given for 3 attributes"),
        (EACH, "1,2,3,4", "4 values were given for 3 attributes"),
        (EACH, "age=1,sex=2", "'race' has no value"),
        (EACH, "age=1,age=2,sex=1,race=1", "given twice"),
        (EACH, "age=1,2,3", "not both"),
        (EACH, "age=1,sex=2,rice=3", "no protected attribute 'rice'"),
        (EACH, "1,two,3", "not a number"),
        (EACH, "", "no value"),
        (EACH, "@nowhere/levels", "cannot be read"),
        (SHARED, "0.5,0.5", "2 values were given for 3"),
        (SHARED, "height=0.5", "no protected attribute 'height'"),
        (SOME, "1.5", "expected name=number pairs"),
        (SOME, "rice=1", "no protected attribute 'rice'"),
        (SOME, "age=much", "not a number"),
        (ANY, "1", "expected name=number pairs"),
        (ANY, "=1", "expected name=number pairs"),
        (ANY, "wage=1,wage=2", "'wage' is given twice"),
        (PLAIN, "age=1", "without names"),
        (partial(whole_numbers, option="--x"), "5,2.5", "whole numbers"),
        (
            lambda text: caps(text, NAMES, "--given-rest"),
            "much",
            "--given-rest: 'much' is not a number",
        ),
        (selected, "town", "expected column=value"),
        (selected, "=a", "expected column=value"),
        (selected, "town=a town=b", "'town' is given twice"),
        (kept, "age=0.5", "a:b"),
        (kept, "age:sex", "first:second=fraction"),
        (kept, "age:height=0.5", "'height'"),
        (kept, "age:sex=x", "not a number"),
        (kept, "age:sex=0.5,age:sex=0.4", "twice"),
        (kept, "a:b:a=0.1", "several pairs"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    read: Callable[[str], Any], text: str, words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read(text)
    assert str(caught.value).startswith("--")
    assert "\n" not in str(caught.value)


def test_json_that_is_no_list_of_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "levels.json").write_text('{"age": [1]}')
    with pytest.raises(InputError, match="JSON"):
        EACH(f"@{tmp_path / 'levels.json'}")


def test_covariances_to_preserve_are_by_pair_and_names_may_hold_a_colon() -> None:
    assert preserved(["age:sex=0.4,sex:a=0.3", "a:b:age=0.2"], PROTECTED, "--x") == {
        ("age", "sex"): 0.4,
        ("sex", "a"): 0.3,
        ("a:b", "age"): 0.2,
    }


def test_a_matrix_is_read_by_rows_of_the_true_category(tmp_path: Path) -> None:
    rows = [[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]]
    path = tmp_path / "m.json"
    path.write_text(json.dumps(rows))
    result = matrices([f"age={path}"], PROTECTED, "--matrix")["age"]
    # matrix[y, x]: the first true category is answered as the first row says.
    np.testing.assert_array_equal(result[:, 0], rows[0])
    for texts, words in (
        (["age"], "name=file"),
        ([f"height={path}"], "'height'"),
        ([f"age={path}", f"age={path}"], "twice"),
        (["age=nowhere.json"], "cannot be read"),
    ):
        with pytest.raises(InputError, match=words):
            matrices(texts, PROTECTED, "--matrix")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[[0.9, 0.2], [0.1, 0.7]]", "row 1 .* add up to 1.1"),
        ("[[0.9, 0.2], [0.1, 0.8]]", "transpose the matrix"),
        ("[[0.5, 0.5], [0.5, 0.5]]", "singular"),
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
        matrices([f"age={path}"], PROTECTED, "--matrix")
    assert "\n" not in str(caught.value)


def test_strengths_per_stratum_come_from_one_file(tmp_path: Path) -> None:
    path = tmp_path / "strata.json"
    written = {
        "south": {"attenuation": 0.5},
        "west": {"strength": {"sex": 0.3}, "preserve": {"age:a": 0.2}},
        "": {"matrix": {"sex": [[0.9, 0.1], [0.1, 0.9]]}},
    }
    path.write_text(json.dumps(written))
    result = per_stratum(path, PROTECTED)
    assert result["south"].attenuation == 0.5
    assert result["west"].strength == {"sex": 0.3}
    assert result["west"].preserve == {("age", "a"): 0.2}
    np.testing.assert_array_equal(result[""].matrices["sex"], [[0.9, 0.1], [0.1, 0.9]])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        ("[]", "JSON object"),
        ('{"south": {"lamda": 1}}', "lamda"),
        ('{"south": {"lambda": 1}}', "'lambda' is now 'attenuation'"),
        ('{"south": {"attenuation": {"height": 1}}}', "'south'.*'height'"),
        ('{"south": {"matrix": {"sex": [[1, 1], [0, 1]]}}}', "'south', sex: row 1"),
        ('{"south": {"preserve": {"age": 0.5}}}', "a:b"),
    ],
)
def test_a_file_of_strata_that_cannot_be_read_is_refused(
    tmp_path: Path, content: str | None, words: str
) -> None:
    path = tmp_path / "strata.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=words):
        per_stratum(path, PROTECTED)
