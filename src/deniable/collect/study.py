"""A frozen study: mechanism, questions, gates. Its SHA-256 is its identity."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from deniable.collect.gates import check_gates, gates_of
from deniable.collect.questionnaire import place, read_questionnaire, right_to_left
from deniable.errors import InputError
from deniable.laws import InvariantChannel
from deniable.schema import Schema, kept_undeclared_text
from deniable.statement.account import Design
from deniable.statement.record import mechanism_from_plain, mechanism_to_plain, read_design
from deniable.statement.stored import decoded
from deniable.strict_json import Digest, Software, from_json

FORMAT = "deniable study"
FORMAT_VERSION = 1
MOST_ATTRIBUTES = 200
"""Most questions: more than respondents answer; the page draws them in little memory."""


class StoredTexts(msgspec.Struct, forbid_unknown_fields=True):
    """Texts before the questions, in one language."""

    title: str
    purpose: str
    contact: str
    consent: list[str]


class StoredWords(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A question in one language: unit of a number, labels of categories, and those of released
    values that are no categories."""

    text: str
    help: str
    unit: str = ""
    labels: list[str]
    answers: list[str] = []


class StoredGrid(msgspec.Struct, forbid_unknown_fields=True):
    """The range and grid of a number, in the units of the drawing protocol; dates are days since
    1970-01-01. ``clip``: numbers outside are set to the nearer end."""

    range: list[float]
    dates: bool
    clip: bool
    points: int
    decimals: int
    lowest: int
    step: int


class StoredQuestion(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A question, and the mapping of its answer to a code of its attribute: ``edges`` of bins, None
    for an open end, ``grid`` of a number, and ``stride`` of a part of a merged attribute."""

    attribute: str
    column: str
    stride: int
    edges: list[float | None] | None
    grid: StoredGrid | None = None
    texts: dict[str, StoredWords]


class StoredStudy(msgspec.Struct, forbid_unknown_fields=True):
    """The contents of study.json."""

    format: Literal["deniable study"]
    format_version: Literal[1]
    software: Software
    respondents: Literal["invited", "open"]
    shared_device: bool
    closes: date
    languages: Annotated[list[str], msgspec.Meta(min_length=1)]
    right_to_left: list[str]
    texts: dict[str, StoredTexts]
    questions: list[StoredQuestion]
    sizes: list[int]
    outputs: list[int]
    mechanism: dict[str, Any]
    gates: list[list[str]]
    law_digest: Digest


@dataclass(frozen=True)
class Study:
    """A study: the bytes of study.json, and values read from them."""

    content: bytes

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The values of study.json."""
        return from_json(self.content, dict[str, Any])

    @cached_property
    def identity(self) -> str:
        """SHA-256 of study.json, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def design(self) -> Design:
        """The mechanism, checked as ``inspect`` does."""
        return mechanism_from_plain(self.plain["mechanism"])

    @property
    def open_to_all(self) -> bool:
        """Whether answers need no invitation."""
        return bool(self.plain["respondents"] == "open")

    @property
    def closes(self) -> date:
        """The last day for answers."""
        return date.fromisoformat(self.plain["closes"])

    @cached_property
    def digits(self) -> tuple[int, ...]:
        """Hexadecimal digits of each released attribute in a record, shape (k,)."""
        return tuple(digits_for(n) for n in self.design.mechanism.n_outputs)

    @property
    def record_size(self) -> int:
        """Bytes of a record in the store."""
        return (sum(self.digits) + 1) // 2

    def encode(self, codes: Sequence[int]) -> str:
        """Return a record of codes as hexadecimal text of fixed width."""
        sizes = self.design.mechanism.n_outputs
        if len(codes) != len(sizes) or any(
            not 0 <= c < n for c, n in zip(codes, sizes, strict=True)
        ):
            raise InputError("a record does not fit the study")
        return "".join(f"{code:0{d}x}" for code, d in zip(codes, self.digits, strict=True))

    def decode(self, text: str) -> list[int]:
        """Return the codes of a record."""
        places = self._places
        if len(text) != places[-1][1] or text.strip("0123456789abcdef"):
            raise InputError("a record does not fit the study")
        codes = [int(text[start:end], 16) for start, end, _ in places]
        if any(code >= n for code, (_, _, n) in zip(codes, places, strict=True)):
            raise InputError("a record does not fit the study")
        return codes

    @cached_property
    def _places(self) -> list[tuple[int, int, int]]:
        """Start, end and number of values of each attribute's digits in a record."""
        ends = list(accumulate(self.digits))
        return list(zip([0, *ends[:-1]], ends, self.design.mechanism.n_outputs, strict=True))


def digits_for(n_outputs: int) -> int:
    """Return the number of hexadecimal digits of n values.

    >>> digits_for(2), digits_for(16), digits_for(17)
    (1, 1, 2)
    """
    return max(1, math.ceil((n_outputs - 1).bit_length() / 4))


def new_study(mechanism: Path, questionnaire: Path, today: date) -> Study:
    """Freeze a mechanism and a questionnaire into a study."""
    design = read_design(mechanism)
    try:
        _check_collectable(design)
    except InputError as error:
        raise InputError(f"{mechanism}: {error}") from None
    asked = read_questionnaire(questionnaire, design.mechanism.schema, today)
    record = mechanism_to_plain(design)
    gates = [gates_of(block.law) for block in design.mechanism.blocks]
    plain = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "software": f"deniable {version('deniable')}",
        **asked,
        "sizes": list(design.mechanism.schema.n_categories),
        "outputs": list(design.mechanism.n_outputs),
        "mechanism": record,
        "gates": gates,
        "law_digest": law_digest(record["blocks"], gates),
    }
    return Study(study_bytes(plain))


def study_bytes(plain: Mapping[str, Any]) -> bytes:
    """Return study.json: one line, escaped for a script element of a page."""
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text.encode()


def law_digest(blocks: Any, gates: Any) -> str:
    """Return the SHA-256 of the laws: texts and integers alone, which a browser writes as the same
    JSON.

    >>> law_digest([], [])[:8]
    '643d5437'
    """
    text = json.dumps([blocks, gates], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_study(path: Path) -> Study:
    """Read a study, checked in full."""
    try:
        study = Study(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    try:
        check_study(study)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return study


def check_study(study: Study) -> None:
    """Raise unless the study is consistent: its law, levels, gates and questions."""
    try:
        plain = study.plain
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise InputError("this is not a study opened by deniable")
        if plain.get("format_version") != FORMAT_VERSION:
            raise InputError("the study was opened by a later version of deniable; update it")
        stored = decoded(plain, StoredStudy, "the study")
        mechanism = study.design.mechanism
        _check_collectable(study.design)
        if law_digest(plain["mechanism"]["blocks"], plain["gates"]) != plain["law_digest"]:
            raise InputError(
                "the study has been altered: its law is not the one it was opened with"
            )
        for block, gates in zip(mechanism.blocks, plain["gates"], strict=True):
            check_gates(block.law, gates)
        sizes, outputs = list(mechanism.schema.n_categories), list(mechanism.n_outputs)
        if plain["sizes"] != sizes or plain["outputs"] != outputs:
            raise InputError(
                "the study has been altered: its categories are not those of its mechanism"
            )
        _check_questions(stored, mechanism.schema)
    except msgspec.DecodeError as error:
        raise InputError(f"this is not a study opened by deniable ({error})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("this is not a study opened by deniable") from None


def _check_questions(stored: StoredStudy, schema: Schema) -> None:
    """Raise unless the questions are those of the schema, in every language."""
    columns = [(a, part) for a in schema.attributes for part in a.columns]
    asked = [msgspec.to_builtins(question) for question in stored.questions]
    for question in asked:
        del question["texts"]
    if asked != [place(attribute, part) for attribute, part in columns]:
        raise InputError("the study has been altered: its questions are not those of its schema")
    if stored.right_to_left != right_to_left(stored.languages):
        raise InputError("the study has been altered: the direction of a language is wrong")
    labels = [(len(part.categories), len(attribute.answers)) for attribute, part in columns]
    for languages in ([*stored.texts], *([*question.texts] for question in stored.questions)):
        if languages != stored.languages:
            raise InputError("the study has been altered: a text is not in all its languages")
    for question, counts in zip(stored.questions, labels, strict=True):
        texts = question.texts.values()
        if any((len(words.labels), len(words.answers)) != counts for words in texts):
            raise InputError(
                f"the study has been altered: '{question.column}' has another number of labels"
            )


def _check_collectable(design: Design) -> None:
    """Raise for a law that does not protect a respondent's answers."""
    mechanism = design.mechanism
    schema = mechanism.schema
    if len(schema.columns) > MOST_ATTRIBUTES:
        raise InputError(
            f"a study has at most {MOST_ATTRIBUTES} questions, and this mechanism has "
            f"{len(schema.columns)} attributes; leave some out"
        )
    if any(isinstance(block.law, InvariantChannel) for block in mechanism.blocks):
        raise InputError(
            "the mechanism was made from a collected table and discloses its frequencies; use one "
            "of deniable design"
        )
    if mechanism.forms is not None:
        raise InputError(
            "method forms gives respondents different questions, and the page has all of them; "
            "use a mechanism of another method"
        )
    if schema.kept_undeclared:
        raise InputError(kept_undeclared_text(schema))
    for column in (part for attribute in schema.attributes for part in attribute.columns):
        if column.bins is not None and column.dates:
            raise InputError(
                f"the bins of '{column.name}' are dates, which the page does not support; declare "
                "numeric edges, or categories"
            )
    if unprotected := [name for name in mechanism.unprotected if name not in schema.keep]:
        raise InputError(
            f"no ε holds for '{unprotected[0]}', so a released value could prove the true one; use "
            "a mechanism with a level for every attribute"
        )
