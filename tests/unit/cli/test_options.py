import pytest

from deniable.cli import options
from deniable.cli.options import caps, numbers_per_attribute, whole_numbers
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
    ("text", "said"),
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
def test_what_is_wrong_is_said_in_one_sentence(text, said):
    with pytest.raises(InputError, match=said) as caught:
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
    ("read", "said"),
    [
        (lambda: options.some_numbers("1,2", ["a"], "--at-most"), "expected name=number pairs"),
        (lambda: options.some_numbers("b=1", ["a"], "--at-most"), "no protected attribute 'b'"),
        (lambda: options.some_numbers("a=1,a=2", ["a"], "--at-most"), "'a' is given twice"),
        (lambda: options.named_numbers("1", "--numeric"), "expected name=number pairs"),
        (lambda: options.named_numbers("a=1,a=2", "--numeric"), "'a' is given twice"),
        (lambda: options.pairs(["town"], "--where"), "expected column=value"),
        (lambda: options.pairs(["a=1", "a=2"], "--where"), "'a' is given twice"),
    ],
)
def test_pairs_that_are_none_or_stand_twice_are_refused(read, said):
    with pytest.raises(InputError, match=said):
        read()


def test_a_floor_may_be_none():
    assert options.floor("none") == 0.0
    assert options.floor("0.5") == 0.5
