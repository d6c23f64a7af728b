"""The library's sentences in the languages of the page."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import deniable.studio
from deniable.studio.declaring import problem_of
from deniable.studio.request import request_of
from deniable.studio.sentences import texts, translated
from unit.studio.drafts import attribute, draft

SOURCES = sorted(Path(str(deniable.studio.__file__)).parent.glob("*.py"))


def text_of(node: ast.expr) -> str | None:
    """Return a text of the source, with a letter for what is put into it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(each.value) if isinstance(each, ast.Constant) else "X" for each in node.values
        )
    return None


def raised() -> list[str]:
    """Return every sentence that a module of the studio refuses something with."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name == "InputError" or name.endswith((".said", "._said")):
                    found += [text for one in node.args if (text := text_of(one))]
    return found


def test_every_sentence_of_the_studio_is_there_in_german() -> None:
    sentences = raised()
    assert len(sentences) > 40
    assert [one for one in sentences if translated(one, "de") is None] == []


def sources_in_lines() -> str:
    """Return the package's code with the parts of every text joined in one line."""
    package = SOURCES[0].parents[1]
    rooms = (
        "*.py",
        "laws/response.py",
        "proofs/*.py",
        "report/*.py",
        "schema/*.py",
        "statement/*.py",
    )
    files = [path for room in (*rooms, "studio/*.py", "tables/*.py") for path in package.glob(room)]
    text = "\n".join(path.read_text("utf-8") for path in files)
    text = re.sub(r"\{count_text\([^{}]*'(\w+)'\)\}", r"{count} \1", text).replace('\\"', '"')
    return re.sub(r"[\"']\n\s+f?[\"']", "", text)


def is_written(sentence: str, code: str) -> bool:
    """Return whether a line of code has a sentence, with anything in place of its parts."""
    pieces = re.split(r"\{\w+\}", sentence)
    longest, found = max(pieces, key=len), -1
    pattern = re.compile("[^\n]*?".join(map(re.escape, pieces)))
    while (found := code.find(longest, found + 1)) >= 0:
        if pattern.search(code[code.rfind("\n", 0, found) + 1 : code.find("\n", found)]):
            return True
    return False


def test_every_translated_sentence_is_one_of_the_package() -> None:
    code = sources_in_lines()
    assert not is_written("rows expected: from 1 to 999", code)
    assert [one for one in texts("de")["sentences"] if not is_written(one, code)] == []


def test_the_languages_have_the_same_texts() -> None:
    def keys(of: dict[str, Any]) -> set[str]:
        return {
            f"{name}.{key}"
            for name, one in of.items()
            for key in (one if type(one) is dict else "")
        } | of.keys()

    english, german = (keys(texts(name)) for name in ("en", "de"))
    assert english == {one for one in german if one.partition(".")[0] != "sentences"}


def test_every_translation_uses_the_parts_of_its_sentence() -> None:
    for english, german in texts("de")["sentences"].items():
        parts = [set(re.findall(r"\{(\w+)\}", text)) for text in (english, german)]
        assert parts[1] <= parts[0]


CONTROLS: list[dict[str, str]] = [
    *({"rows": text} for text in ("", "x", "0", "10.000", "12.000,5")),
    *({"within": text} for text in ("", "x", "0", "100", "1,000")),
    *({"prior": text} for text in ("x", "0")),
    *({"limit": text} for text in ("x", "5", "100")),
    *({"waves": text} for text in ("x", "0", "1001")),
    *({"epsilon": text} for text in ("", "x", "0", "-1", "1e9", "9999", "3,125")),
    *({"kind": "levels", "level__a": text} for text in ("", "x", "0", "9999")),
    *({"method": "lambda", "attenuation": text} for text in ("", "x", "0", "2")),
    *({"importance__a": text} for text in ("x", "0")),
    *({"cap": text} for text in ("x", "0.5")),
    *({"method": "forms", "cap": text} for text in ("x", "2")),
    *({"kind": "levels", "level__a": "1", "pair_floor": text} for text in ("x", "2")),
    *({"method": "forms", "pairs": text} for text in ("x", "2")),
    {"method": "forms", "max_questions": "x"},
    *({"assume": "typed", "shares__a": text} for text in ("x", "1 2 3", "60 60", "-1 101")),
    {"tables": "gone"},
    {"method": "closed-form"},
    {"matrix_file": "m.json"},
]


@pytest.mark.parametrize("typed", CONTROLS, ids=str)
def test_whatever_a_control_can_cause_is_there_in_german(typed: dict[str, str]) -> None:
    problems = request_of(draft(**typed)).problems
    assert problems
    for sentence in problems.values():
        assert translated(sentence, "de") not in (None, sentence)


@pytest.mark.parametrize(
    "declared",
    [
        attribute("a", 1),
        {"name": "a", "categories": ["x", "x"]},
        {"name": "a", "categories": ["x", ""]},
        {"name": "", "categories": ["x", "y"]},
        {"name": "a", "bins": [1, 2]},
        {"name": "a", "bins": [1, 2, 2]},
        {"name": "a", "bins": [1, "x", 2]},
        {"name": "a", "bins": [1, "inf", 2]},
        {"name": "a", "range": [1]},
        {"name": "a", "range": [2, 1]},
        {"name": "a", "range": [0, "inf"]},
        {"name": "a", "range": [0, "many"]},
        {"name": "a", "range": [0, 1], "grid": 1001},
        {"name": "a", "range": [0, 1e17]},
        {"name": "a", "range": ["2020-01-01", "2020-01-03"], "grid": 9},
        attribute("a", missing_codes=["9"]),
        attribute("a", missing="category:0", missing_codes=["1"]),
    ],
    ids=str,
)
def test_so_is_whatever_a_declaration_can_cause(declared: dict[str, Any]) -> None:
    assert translated(problem_of(declared), "de") not in (None, problem_of(declared))


def test_the_rest_stays_english() -> None:
    assert translated("nobody has written this", "de") is None
    assert translated("nobody has written this", "en") == "nobody has written this"
    assert translated("λ must lie between 0 and 1, not at 1.5", "de") == (
        "λ liegt zwischen 0 und 1, beide ausgeschlossen, und nicht bei 1,5"
    )
