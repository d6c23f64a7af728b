import pytest

from deniable.errors import InputError
from deniable.schema import Schema
from deniable.tables.codebook import Entry
from deniable.tables.declaring import Seen, declared_lines, quoted, with_texts
from deniable.tables.drafting import draft_schema

BOOK = {
    "sex": Entry({"1": "male", "2": "female", "3": "other"}, question="Your sex?"),
    "happy": Entry({"1": "not", "2": "very"}, {"-9": "refused", "-8": "unknown"}, ordered=True),
}
TABLE = "sex,happy,age\n1,1,30\n2,2,41\n1,-9,52\n2,,63\n1,2,74\n2,1,85\n"


def drafted(folder, text=TABLE, book=BOOK, **options):
    path = folder / "t.csv"
    path.write_text(text)
    draft = draft_schema(path, codebook=book, **options)
    (folder / "t.toml").write_text(draft)
    return draft, Schema.from_toml(folder / "t.toml")


def refusal(folder, **options):
    with pytest.raises(InputError) as caught:
        drafted(folder, **options)
    return str(caught.value)


def test_what_a_codebook_names_is_declared_and_not_drafted(tmp_path):
    text, schema = drafted(tmp_path)
    sex, happy, age = schema.attributes
    assert sex.categories == ("1", "2", "3")
    assert sex.labels == {"1": "male", "2": "female", "3": "other"}
    assert sex.question == "Your sex?"
    assert not sex.drafted
    assert happy.categories == ("1", "2", "NA")
    assert happy.missing_codes == ("-9", "-8")
    assert happy.labels["NA"] == "refused; unknown"
    assert happy.ordered
    assert not happy.drafted
    assert age.drafted
    assert schema.drafted == ("age",)
    assert text.startswith("# WARNING")


def test_a_draft_that_read_nothing_off_the_data_does_not_warn(tmp_path):
    text, schema = drafted(tmp_path, "sex\n1\n2\n", {"sex": BOOK["sex"]})
    assert "WARNING" not in text
    assert schema.drafted == ()


def test_contradictions_are_listed_before_anything_is_made(tmp_path):
    text = TABLE.replace("1,1,30", "7,1,30").replace("2,2,41", "7,5,41")
    book = {**BOOK, "height": Entry({"1": "tall"}), "age": Entry(question="How old?")}
    said = refusal(tmp_path, text=text, book=book)
    assert "the table has no column 'height'" in said
    assert "'sex': 2 rows hold 1 value that the codebook does not name" in said
    assert "'happy': 1 row holds 1 value" in said
    assert "age" not in said.replace(str(tmp_path), "")
    assert "'7'" not in said
    assert "('7')" in refusal(tmp_path, text=text, book=book, show_values=True)
    assert not (tmp_path / "t.toml").exists()


def test_a_column_of_thousands_of_values_contradicts_a_codebook_of_a_few(tmp_path):
    text = "sex\n" + "\n".join(map(str, range(6000))) + "\n"
    said = refusal(tmp_path, text=text, book={"sex": BOOK["sex"]})
    assert "thousands of values" in said


def test_values_without_a_label_are_listed_and_drafted():
    entry = Entry({"2": "b", "1": "a"})
    lines = declared_lines("x", entry, Seen(["1", "10", "9"], (), empty=False, number=True))
    assert lines[0].endswith('off the data: "10", "9"')
    assert 'categories = ["1", "2", "9", "10"]' in lines
    assert "drafted = true" in lines


def test_numbers_of_which_some_are_named_are_left_to_the_draft(tmp_path):
    rows = "\n".join(f"{1000 + 7 * i}" for i in range(300))
    text = f"income\n-9\n-9\n{rows}\n-9\n"
    path = tmp_path / "t.csv"
    path.write_text(text)
    many = Seen([str(i) for i in range(40)], (), empty=False, number=True)
    assert declared_lines("income", Entry({"0": "none"}), many) is None
    assert declared_lines("income", Entry(), many) is None
    draft = draft_schema(path, codebook={"income": Entry({}, {"-9": "refused"}, question="Pay?")})
    assert 'missing_codes = ["-9"]' in draft
    assert 'labels = { "NA" = "refused" }' in draft
    assert 'question = "Pay?"' in draft


def test_one_code_is_the_category_of_missing_values_itself():
    seen = Seen(["a", "b"], ("-",), empty=False, number=False)
    lines = declared_lines("x", Entry({"a": "", "b": "B"}), seen)
    assert lines[-1] == 'missing = "category:-"'
    assert 'labels = { "b" = "B" }' in lines
    taken = declared_lines("x", Entry({"a": "", "NA": ""}), Seen([], (), empty=True, number=False))
    assert taken[-1] == 'missing = "category:missing"'


def test_one_value_is_no_attribute():
    lines = declared_lines("x", Entry({"a": "A"}), Seen(["a"], (), empty=False, number=False))
    assert lines == ['# column "x" has fewer than two values: leave it out']


def test_a_code_that_people_write_for_a_missing_value_may_be_a_value(tmp_path):
    book = {"region": Entry({"NA": "North America", "EU": "Europe"})}
    _, schema = drafted(tmp_path, "region\nNA\nEU\nNA\n", book)
    assert schema.attributes[0].categories == ("NA", "EU")
    assert schema.attributes[0].missing is None


def test_long_texts_are_one_valid_file(tmp_path):
    labels = {str(i): f'a "long" name \\ of value {i}\x7f' for i in range(60)}
    book = {"x": Entry(labels, {str(900 + i): "" for i in range(30)}, question="Why?\n" * 60)}
    _, schema = drafted(tmp_path, "x\n1\n2\n901\n", book)
    assert schema.attributes[0].labels == labels
    assert len(schema.attributes[0].missing_codes) == 30
    assert schema.attributes[0].question == "Why?\n" * 60
    assert quoted("\x7f") == '"\\u007f"'


def test_the_question_of_a_column_that_is_left_out_is_a_comment():
    lines = with_texts("x", ["# column: leave it out"], Entry(question="Who\nare you?"))
    assert lines == ["# Who are you?", "# column: leave it out"]
    assert with_texts("x", ["a"], Entry(question="x")) == ["a"]


def test_a_label_that_two_values_have_is_told_apart_by_the_value_and_said() -> None:
    entry = Entry({"1": "other", "2": "other", "3": "none"})
    lines = declared_lines("g", entry, Seen(["1", "2"], (), empty=False, number=True))
    assert lines is not None
    assert '# several values have one label, to which the value is added: "other"' in lines
    assert 'labels = { "1" = "other (1)", "2" = "other (2)", "3" = "none" }' in lines
