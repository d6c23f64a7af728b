"""What a questionnaire may be, and every way in which it may not."""

from datetime import date
from pathlib import Path

import pytest

from deniable.collect.questionnaire import read_questionnaire
from deniable.errors import InputError
from deniable.schema import Attribute, Schema

TODAY = date(2026, 11, 22)
SCHEMA = Schema(
    (
        Attribute("smokes", ("no", "yes"), labels={"no": "No"}),
        Attribute("hours", bins=(0, 20, 40, 99), missing="none"),
        Attribute("a+b", parts=(Attribute("a", ("0", "1", "2")), Attribute("b", ("x", "y")))),
    )
)
TEXT = """
title = "Hours"
purpose = "To count."
contact = "We"
closes = 2026-12-31
respondents = "open"
consent = ["One.", "Two."]
question = [
  {attribute = "b", text = "B?"},
  {attribute = "smokes", text = "Smoke?", labels = {yes = "Yes!"}},
  {attribute = "hours", text = "Hours?", help = "A week."},
  {attribute = "a", text = "A?"},
]
"""


def read(tmp_path: Path, text: str) -> dict:
    path = tmp_path / "q.toml"
    path.write_text(text, encoding="utf-8")
    return read_questionnaire(path, SCHEMA, TODAY)


def test_questions_stand_in_the_schemas_order_and_know_where_their_answer_goes(
    tmp_path: Path,
) -> None:
    asked = read(tmp_path, TEXT)
    found = [(q["attribute"], q["column"], q["stride"], q["edges"]) for q in asked["questions"]]
    assert found == [
        ("smokes", "smokes", 1, None),
        ("hours", "hours", 1, [0.0, 20.0, 40.0, 99.0]),
        ("a+b", "a", 2, None),
        ("a+b", "b", 1, None),
    ]
    texts = asked["questions"][0]["texts"]["en"]
    assert texts == {"text": "Smoke?", "help": "", "labels": ["No", "Yes!"]}
    assert asked["texts"]["en"]["consent"] == ["One.", "Two."]
    assert asked["right_to_left"] == []


def test_several_languages_are_told_apart(tmp_path: Path) -> None:
    text = TEXT.replace("closes", 'languages = ["en", "he"]\ncloses')
    for said in ("Hours", "To count.", "We", "B?", "Smoke?", "Hours?", "A week.", "A?", "Yes!"):
        text = text.replace(f'"{said}"', f'{{en = "{said}", he = "ש{said}"}}')
    text = text.replace('["One.", "Two."]', '{en = ["One."], he = ["אחת."]}')
    asked = read(tmp_path, text)
    assert asked["texts"]["he"]["title"] == "שHours"
    assert asked["right_to_left"] == ["he"]
    for there, problem in [
        ('{en = "A?", he = "שA?"}', "the question for 'a' is in one language; give"),
        ('{en = "We", he = "שWe"}', "the contact is in one language"),
    ]:
        said = there.split('"')[1]
        with pytest.raises(InputError, match=problem):
            read(tmp_path, text.replace(there, f'"{said}"'))
    with pytest.raises(InputError, match="the title has no text in 'he'"):
        read(tmp_path, text.replace('he = "שHours"', 'he = " "', 1))
    with pytest.raises(InputError, match="has a text in 'fr', which languages does not list"):
        read(tmp_path, text.replace('he = "שWe"', 'he = "שWe", fr = "Nous"'))
    with pytest.raises(InputError, match="the consent has no text in 'he'"):
        read(tmp_path, text.replace('he = ["אחת."]', "he = []"))


@pytest.mark.parametrize(
    ("there", "instead", "problem"),
    [
        ('  {attribute = "a", text = "A?"},\n', "", "no question for 'a'; every attribute"),
        ('attribute = "a"', 'attribute = "c"', "there is no attribute 'c'"),
        ('attribute = "a"', 'attribute = "a+b"', "'a\\+b' is merged from columns"),
        ('attribute = "a"', 'attribute = "b"', "two questions for 'b'"),
        ("2026-12-31", "2026-11-21", "closes on 2026-11-21, which is past"),
        ('"open"', '"everyone"', "Invalid enum value 'everyone'"),
        ("title", "headline", "not a questionnaire .*`headline`.*collect demo --files"),
        ("{yes =", "{maybe =", "labels 'maybe', which is not one of its categories"),
        ('text = "A?"', 'text = ""', "the question for 'a' has no text in 'en'"),
        ("closes", 'languages = ["en", "en"]\ncloses', "lists each language once"),
        ("closes", 'languages = ["en", "ar"]\ncloses', "the consent has no text in 'en'"),
        ('title = "Hours"', 'title = "Hours', "not valid TOML"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(
    tmp_path: Path, there: str, instead: str, problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as refusal:
        read(tmp_path, TEXT.replace(there, instead, 1))
    assert "q.toml" in str(refusal.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_questionnaire(tmp_path / "none.toml", SCHEMA, TODAY)
    (tmp_path / "q.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        read_questionnaire(tmp_path / "q.toml", SCHEMA, TODAY)
