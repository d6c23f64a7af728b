"""A study, frozen: mechanism, questions, gates. Its SHA-256 is its identity."""

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
from typing import Any

from deniable.collect.gates import check_gates, gates_of
from deniable.collect.questionnaire import read_questionnaire
from deniable.design.account import Design
from deniable.design.record import mechanism_from_plain, mechanism_to_plain, read_design
from deniable.errors import InputError
from deniable.laws import InvariantChannel

FORMAT = "deniable study"
FORMAT_VERSION = 1
MOST_ATTRIBUTES = 200


@dataclass(frozen=True)
class Study:
    """A study as it was opened: the bytes of study.json, and what they say.

    Args:
        content: the file, byte for byte.
    """

    content: bytes

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The file's values."""
        return dict(json.loads(self.content))

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the file, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def design(self) -> Design:
        """The mechanism, checked as ``inspect`` does.

        Raises:
            InputError: if it does not hold together.
        """
        return mechanism_from_plain(self.plain["mechanism"])

    @property
    def open_to_all(self) -> bool:
        """Whether anyone may answer, without an invitation."""
        return bool(self.plain["respondents"] == "open")

    @property
    def closes(self) -> date:
        """The last day on which answers are taken."""
        return date.fromisoformat(self.plain["closes"])

    @cached_property
    def digits(self) -> tuple[int, ...]:
        """How many hexadecimal digits each released attribute has in a record, shape (k,)."""
        return tuple(digits_for(n) for n in self.design.mechanism.n_outputs)

    @property
    def record_size(self) -> int:
        """How many bytes a record has in the store."""
        return (sum(self.digits) + 1) // 2

    def encode(self, codes: Sequence[int]) -> str:
        """Return a record of codes as hexadecimal text of fixed width.

        Raises:
            InputError: if a code is out of range.
        """
        sizes = self.design.mechanism.n_outputs
        if len(codes) != len(sizes) or any(
            not 0 <= c < n for c, n in zip(codes, sizes, strict=True)
        ):
            raise InputError("a record does not fit the study")
        return "".join(f"{code:0{d}x}" for code, d in zip(codes, self.digits, strict=True))

    def decode(self, text: str) -> list[int]:
        """Return the codes of a record.

        Raises:
            InputError: if the text is not a record of this study.
        """
        places = self._places
        if len(text) != places[-1][1] or text.strip("0123456789abcdef"):
            raise InputError("a record does not fit the study")
        codes = [int(text[start:end], 16) for start, end, _ in places]
        if any(code >= n for code, (_, _, n) in zip(codes, places, strict=True)):
            raise InputError("a record does not fit the study")
        return codes

    @cached_property
    def _places(self) -> list[tuple[int, int, int]]:
        """Where each attribute's digits stand in a record, and how many values they have."""
        ends = list(accumulate(self.digits))
        return list(zip([0, *ends[:-1]], ends, self.design.mechanism.n_outputs, strict=True))


def digits_for(n_outputs: int) -> int:
    """Return how many hexadecimal digits hold n values.

    >>> digits_for(2), digits_for(16), digits_for(17)
    (1, 1, 2)
    """
    return max(1, math.ceil((n_outputs - 1).bit_length() / 4))


def new_study(mechanism: Path, questionnaire: Path, today: date) -> Study:
    """Freeze a study.

    Raises:
        InputError: if the mechanism cannot be collected with, or the questionnaire does not fit it.
    """
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
    """Return study.json: one value a line would be long, so one line, and nothing in it that could
    end the element of a page that it stands in."""
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text.encode()


def law_digest(blocks: Any, gates: Any) -> str:
    """Return SHA-256 of what is drawn from: texts and integers alone, so that a browser writes them
    as the same JSON.

    >>> law_digest([], [])[:8]
    '643d5437'
    """
    text = json.dumps([blocks, gates], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_study(path: Path) -> Study:
    """Read a study, checked in full.

    Raises:
        InputError: if it is not one, is of a later version, or has been altered.
    """
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
    """Refuse what is not a study that holds together: its law, its levels, its gates.

    Raises:
        InputError: if so.
    """
    try:
        plain = study.plain
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise InputError("this is not a study opened by deniable")
        if plain.get("format_version") != FORMAT_VERSION:
            raise InputError("the study was opened by a later version of deniable; update it")
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
            raise InputError("the study has been altered: it asks for other categories")
        columns = [question["column"] for question in plain["questions"]]
        if columns != list(mechanism.schema.columns):
            raise InputError("the study has been altered: it asks for other attributes")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("this is not a study opened by deniable") from None


def _check_collectable(design: Design) -> None:
    """Refuse a law with which nobody's answer is protected."""
    mechanism = design.mechanism
    schema = mechanism.schema
    if len(schema.columns) > MOST_ATTRIBUTES:
        raise InputError(
            f"a study asks at most {MOST_ATTRIBUTES} questions, and this mechanism has "
            f"{len(schema.columns)} attributes; keep those that are needed"
        )
    if any(isinstance(block.law, InvariantChannel) for block in mechanism.blocks):
        raise InputError(
            "the mechanism was made from a collected table, and gives its frequencies away; use "
            "one that deniable design makes"
        )
    if mechanism.forms is not None:
        raise InputError(
            "the mechanism asks every row a form of its own (method forms), and the page asks "
            "everybody all questions; use a mechanism of another method"
        )
    if bare := [name for name in schema.keep if name not in schema.names]:
        raise InputError(
            f"'{bare[0]}' is kept without categories; declare it as an attribute with the "
            "categories that may be answered"
        )
    if unprotected := [name for name in mechanism.unprotected if name not in schema.keep]:
        raise InputError(
            f"no ε holds for '{unprotected[0]}', so that an answer could prove what was true; use "
            "a mechanism with a level for every attribute"
        )
