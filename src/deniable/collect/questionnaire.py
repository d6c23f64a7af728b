"""The questionnaire: the respondents' texts in every language, checked against the schema."""

import math
import re
import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

import msgspec

from deniable._checks import first_duplicate
from deniable.errors import InputError, notify
from deniable.report.wording import listed
from deniable.schema import Attribute, Schema
from deniable.schema.attribute import edge_text

Text = str | dict[str, str]
"""One text, or one for each language."""

RIGHT_TO_LEFT = ("ar", "dv", "fa", "he", "ku", "ps", "ur", "yi")
"""Languages written from right to left, of those in use on the web."""

INTERVALS = {
    "en": ("{} to under {}", "{} to {}", "under {1}", "{} and more"),
    "ar": ("من {} إلى أقل من {}", "من {} إلى {}", "أقل من {1}", "{} أو أكثر"),
}
"""Texts of intervals of numbers, in the languages of the page: half-open, closed (the last one),
without a lower end, without an upper end."""

LANGUAGE = re.compile("[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
"""Language tags of browsers (BCP 47)."""


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """The question of a column: text, help, labels of categories, unit of a number."""

    attribute: str
    text: Text
    help: Text = ""
    labels: dict[str, Text] = {}
    unit: Text = ""


class Questionnaire(msgspec.Struct, forbid_unknown_fields=True):
    """The questionnaire file."""

    title: Text
    purpose: Text
    contact: Text
    closes: date
    respondents: Literal["invited", "open"]
    consent: list[str] | dict[str, list[str]]
    question: list[Question]
    languages: list[str] = msgspec.field(default_factory=lambda: ["en"])
    shared_device: bool = False


def read_questionnaire(path: Path, schema: Schema, today: date) -> dict[str, Any]:
    """Return the questionnaire's part of a study, as plain values.

    Warns of categories without labels that respondents would read as codes.
    """
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
        file = msgspec.convert(parsed, Questionnaire)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: the questionnaire is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise InputError(
            f"{path}: not a valid questionnaire ({error}); deniable collect demo --files FOLDER "
            "writes an example"
        ) from None
    except (ValueError, RecursionError):  # an integer of thousands of digits; lists in lists
        raise InputError(f"{path}: a value in it is too long or too deep") from None
    try:
        return _checked(file, schema, today)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def right_to_left(languages: Sequence[str]) -> list[str]:
    """Return those of some languages that are written from right to left."""
    return [code for code in languages if code.split("-")[0] in RIGHT_TO_LEFT]


def plain_labels(attribute: Attribute, language: str = "en") -> list[str]:
    """Return the names of the categories of a column on a page: labels, and intervals of numbers in
    words.
    """
    names = [attribute.label(category) for category in attribute.categories]
    if attribute.bins is not None:
        edges = [edge_text(edge, dates=attribute.dates) for edge in attribute.bins]
        words = INTERVALS.get(language.split("-")[0], INTERVALS["en"])
        for j, category in enumerate(attribute.categories[: len(edges) - 1]):
            low, high = attribute.bins[j : j + 2]
            kind = 2 if low == -math.inf else 3 if high == math.inf else int(j == len(edges) - 2)
            if category not in attribute.labels:
                names[j] = words[kind].format(*edges[j : j + 2])
    return names


def place(attribute: Attribute, part: Attribute) -> dict[str, Any]:
    """Return the column of a question and the mapping of its answer to a code of its attribute:
    edges of bins, None for an open end, or the grid of a number."""
    edges = [edge if math.isfinite(edge) else None for edge in part.bins or ()]
    grid = part.number_grid
    return {
        "attribute": attribute.name,
        "column": part.name,
        "stride": attribute.strides[attribute.parts.index(part)] if attribute.parts else 1,
        "edges": edges or None,
        "grid": None
        if grid is None
        else {
            "range": [grid.low, grid.high],
            "dates": part.dates,
            "clip": part.outside == "clip",
            "points": grid.n_points,
            "decimals": grid.decimals,
            "lowest": grid.lowest,
            "step": grid.step,
        },
    }


def n_typed(part: Attribute) -> int:
    """Return the number of categories that typed numbers become: intervals, or points of a grid."""
    if part.number_grid is not None:
        return part.number_grid.n_points
    return 0 if part.bins is None else len(part.bins) - 1


def _checked(file: Questionnaire, schema: Schema, today: date) -> dict[str, Any]:
    languages = file.languages
    if not languages or first_duplicate(languages) is not None:
        raise InputError("languages lists each language once, and at least one")
    if unknown := [code for code in languages if not LANGUAGE.fullmatch(code)]:
        raise InputError(
            f"'{unknown[0]}' is not the code of a language; give one such as en, ar or pt-BR"
        )
    if file.closes < today:
        raise InputError(f"the study closes on {file.closes}, which is past; give a later date")
    consent = file.consent
    if isinstance(consent, list):
        consent = {languages[0]: consent} if len(languages) == 1 else {}
    if missing := [code for code in languages if not consent.get(code)]:
        raise InputError(f"the consent has no text in '{missing[0]}'")
    texts = {
        code: {
            "title": _text(file.title, code, languages, "the title"),
            "purpose": _text(file.purpose, code, languages, "the purpose"),
            "contact": _text(file.contact, code, languages, "the contact"),
            "consent": consent[code],
        }
        for code in languages
    }
    return {
        "respondents": file.respondents,
        "shared_device": file.shared_device,
        "closes": file.closes.isoformat(),
        "languages": languages,
        "right_to_left": right_to_left(languages),
        "texts": texts,
        "questions": _questions(file.question, schema, languages),
    }


def _questions(
    given: Sequence[Question], schema: Schema, languages: Sequence[str]
) -> list[dict[str, Any]]:
    """Return one question per column, in the schema's order."""
    if (twice := first_duplicate([question.attribute for question in given])) is not None:
        raise InputError(f"there are two questions for '{twice}'; keep one")
    by_name = {question.attribute: question for question in given}
    for name in by_name:
        if name not in schema.columns:
            schema.position(name)  # raises for a name that is not in the schema
            raise InputError(f"'{name}' is merged from columns; write a question for each of them")
    questions = []
    for attribute in schema.attributes:
        for part in attribute.columns:
            if part.name not in by_name:
                raise InputError(
                    f"there is no question for '{part.name}'; every attribute needs one"
                )
            questions.append(_question(by_name[part.name], attribute, part, languages))
    columns = [part for attribute in schema.attributes for part in attribute.columns]
    _warn(columns, [by_name[part.name] for part in columns], languages)
    return questions


def _warn(
    columns: Sequence[Attribute], asked: Sequence[Question], languages: Sequence[str]
) -> None:
    """Warn of texts that respondents would read as codes, or in another language."""
    coded, untranslated, in_english = [], [], []
    foreign = [code for code in languages if code.split("-")[0] not in INTERVALS]
    for part, question in zip(columns, asked, strict=True):
        typed = part.categories[: n_typed(part)]
        bare = [value for value in part.categories if value not in question.labels]
        if codes := [v for v in bare if v not in typed and v not in part.labels]:
            coded.append(f"{part.name} ({listed(codes, 3)})")
        labelled = any(value in part.labels for value in bare)
        if len(languages) > 1 and (labelled or (part.unit and not question.unit)):
            untranslated.append(part.name)
        if foreign and part.bins and any(v in typed and v not in part.labels for v in bare):
            in_english.append(part.name)
    remedy = "give them in the questionnaire"
    for found, sentence in (
        (coded, "respondents read the codes of categories without labels"),
        (untranslated, "the schema's labels and units are the same in all languages"),
        (in_english, f"intervals of numbers are in English in {listed(foreign, 3)}"),
    ):
        if found:
            notify(f"{sentence}: {listed(found, 4)}; {remedy}")


def _question(
    asked: Question, attribute: Attribute, part: Attribute, languages: Sequence[str]
) -> dict[str, Any]:
    where = f"the question for '{part.name}'"
    if unknown := [value for value in asked.labels if value not in part.categories]:
        raise InputError(f"{where} labels '{unknown[0]}', which is not one of its categories")
    if asked.unit and part.number_grid is None:
        raise InputError(f"{where} has a unit, and its attribute no range; leave the unit out")
    texts = {}
    for code in languages:
        labels = [
            _text(asked.labels[value], code, languages, f"a label of {where}")
            if value in asked.labels
            else label
            for value, label in zip(part.categories, plain_labels(part, code), strict=True)
        ]
        named = dict(zip(part.categories, labels, strict=True))
        texts[code] = {
            "text": _text(asked.text, code, languages, where),
            "help": _text(asked.help, code, languages, f"the help of {where}")
            if asked.help
            else "",
            "unit": _text(asked.unit, code, languages, f"the unit of {where}")
            if asked.unit
            else part.unit,
            "labels": labels,
            "answers": [named.get(text, text) for text in attribute.answers],
        }
    return {**place(attribute, part), "texts": texts}


def _text(value: Text, code: str, languages: Sequence[str], what: str) -> str:
    if isinstance(value, str):
        if len(languages) > 1:
            each = ", ".join(f'{language} = "…"' for language in languages)
            raise InputError(f"{what} is in one language; give {{ {each} }}")
        text = value
    else:
        text = value.get(code, "")
        if unknown := [other for other in value if other not in languages]:
            raise InputError(f"{what} has a text in '{unknown[0]}', which languages does not list")
    if not text.strip():
        raise InputError(f"{what} has no text in '{code}'")
    return text.strip()
