"""What a questionnaire may be, and every way in which it may not."""

import re
from datetime import date
from pathlib import Path

import pytest

from deniable.collect.questionnaire import plain_labels, read_questionnaire
from deniable.errors import InputError, Notice
from deniable.schema import Attribute, Schema

TODAY = date(2026, 11, 22)
HOURS = Attribute("hours", bins=(0, 20, 40, 99), missing="none", labels={"none": "No work"})
SCHEMA = Schema(
    (
        Attribute("smokes", ("no", "yes"), labels={"no": "No"}),
        HOURS,
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
  {attribute = "b", text = "B?", labels = {x = "X", y = "Y"}},
  {attribute = "smokes", text = "Smoke?", labels = {yes = "Yes!"}},
  {attribute = "hours", text = "Hours?", help = "A week."},
  {attribute = "a", text = "A?", labels = {0 = "none", 1 = "one", 2 = "two"}},
]
"""
A = '  {attribute = "a", text = "A?", labels = {0 = "none", 1 = "one", 2 = "two"}},\n'


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
    assert texts == {
        "text": "Smoke?",
        "help": "",
        "unit": "",
        "labels": ["No", "Yes!"],
        "answers": [],
    }
    labels = [question["texts"]["en"]["labels"] for question in asked["questions"]]
    assert labels[1] == ["0 to under 20", "20 to under 40", "40 to 99", "No work"]
    assert asked["texts"]["en"]["consent"] == ["One.", "Two."]
    assert asked["right_to_left"] == []


def in_hebrew_too(text: str) -> str:
    text = text.replace("closes", 'languages = ["en", "he"]\ncloses')
    said = ("Hours", "To count.", "We", "B?", "Smoke?", "Hours?", "A week.", "A?", "Yes!")
    for each in (*said, "X", "Y", "none", "one", "two"):
        text = text.replace(f'"{each}"', f'{{en = "{each}", he = "ש{each}"}}')
    return text.replace('["One.", "Two."]', '{en = ["One."], he = ["אחת."]}')


@pytest.mark.filterwarnings("ignore:the schema's labels", "ignore:intervals of numbers")
def test_several_languages_are_told_apart(tmp_path: Path) -> None:
    text = in_hebrew_too(TEXT)
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
        (A, "", "no question for 'a'; every attribute"),
        ('attribute = "a"', 'attribute = "c"', "there is no attribute 'c'"),
        ('attribute = "a"', 'attribute = "a+b"', "'a\\+b' is merged from columns"),
        ('attribute = "a"', 'attribute = "b"', "two questions for 'b'"),
        ("2026-12-31", "2026-11-21", "closes on 2026-11-21, which is past"),
        ('"open"', '"everyone"', "Invalid enum value 'everyone'"),
        ("title", "headline", "not a valid questionnaire .*`headline`.*collect demo --files"),
        ("{yes =", "{maybe =", "labels 'maybe', which is not one of its categories"),
        ('text = "A?"', 'text = ""', "the question for 'a' has no text in 'en'"),
        ("closes", 'languages = ["en", "en"]\ncloses', "lists each language once"),
        ("closes", 'languages = ["en_GB"]\ncloses', "'en_GB' is not the code of a language"),
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


def test_intervals_are_said_in_words_and_in_the_language_of_the_page(tmp_path: Path) -> None:
    open_ended = Attribute("age", bins=(float("-inf"), -0.5, 40, float("inf")))
    assert plain_labels(HOURS, "ar-EG")[1:3] == ["من 20 إلى أقل من 40", "من 40 إلى 99"]
    assert plain_labels(HOURS, "fr") == plain_labels(HOURS)
    assert plain_labels(Attribute("a", ("0", "1"), labels={"1": "one"})) == ["0", "one"]
    assert plain_labels(open_ended) == ["under -0.5", "-0.5 to under 40", "40 and more"]
    english = TEXT.replace('help = "A week."', 'help = "A week.", labels = {"[0,20)" = "little"}')
    asked = read(tmp_path, english)["questions"][1]["texts"]["en"]
    assert asked["labels"][:2] == ["little", "20 to under 40"]
    everywhere = "".join(label for q in read(tmp_path, TEXT)["questions"] for label in
                         q["texts"]["en"]["labels"])  # fmt: skip
    assert not set("[)") & set(everywhere)


@pytest.mark.parametrize(
    ("there", "instead", "warning"),
    [
        (
            A,
            '  {attribute = "a", text = "A?", labels = {0 = "none"}},\n',
            r"read the codes of categories without labels: a \(1, 2\); give them in",
        ),
        (
            'labels = {yes = "Yes!"}',
            "labels = {}",
            r"codes of categories without labels: smokes \(yes\); give",
        ),
    ],
)
def test_who_opens_a_study_is_warned_of_categories_without_labels(
    tmp_path: Path, there: str, instead: str, warning: str
) -> None:
    assert TEXT.count(there) == 1
    with pytest.warns(Notice) as warned:
        read(tmp_path, TEXT.replace(there, instead))
    assert re.search(warning, str(warned[0].message))


def test_who_opens_a_study_is_warned_of_texts_in_another_language(tmp_path: Path) -> None:
    with pytest.warns(Notice) as warned:
        read(tmp_path, in_hebrew_too(TEXT))
    assert [str(each.message).partition(";")[0] for each in warned] == [
        "the schema's labels and units are the same in all languages: smokes, hours",
        "intervals of numbers are in English in he: hours",
    ]
