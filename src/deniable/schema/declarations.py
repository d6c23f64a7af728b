"""Schemas in files and records: plain values from and to attributes."""

import difflib
import math
import re
from datetime import date
from typing import Any, Literal

import msgspec

from deniable.errors import InputError
from deniable.schema.attribute import Attribute, category_text, edge_text
from deniable.schema.file_format import FileFormat


def attribute_to_plain(attribute: Attribute) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": attribute.name}
    if attribute.question:
        plain["question"] = attribute.question
    if attribute.parts:
        plain["part"] = [attribute_to_plain(part) for part in attribute.parts]
    elif attribute.bins is not None:
        plain["bins"] = [_edge_to_plain(edge, attribute) for edge in attribute.bins]
    elif attribute.range is not None:
        plain["range"] = [_edge_to_plain(end, attribute) for end in attribute.range]
        if attribute.grid is not None:
            plain["grid"] = attribute.grid
        plain["for"] = attribute.purpose
        if attribute.outside != "refuse":
            plain["outside"] = attribute.outside
        if attribute.unit:
            plain["unit"] = attribute.unit
    else:
        plain["categories"] = list(attribute.categories)
        if attribute.ordered:
            plain["ordered"] = True
    if attribute.labels:
        plain["labels"] = dict(attribute.labels)
    if attribute.missing is not None:
        plain["missing"] = f"category:{attribute.missing}"
    if attribute.missing_codes:
        plain["missing_codes"] = list(attribute.missing_codes)
    if attribute.drafted:
        plain["drafted"] = True
    if attribute.scores is not None:
        plain["scores"] = list(attribute.scores)
    if attribute.score_margins is not None:
        plain["score_margins"] = list(attribute.score_margins)
    for key in ("epsilon", "ratio", "importance"):
        if getattr(attribute, key) is not None:
            plain[key] = getattr(attribute, key)
    if attribute.response:
        plain["response"] = attribute.response
    if attribute.answers:
        plain["answers"] = list(attribute.answers)
    return plain


def _edge_to_plain(edge: float, attribute: Attribute) -> float | str:
    """Return an edge as stored: JSON has no infinity and no dates, which are texts."""
    if math.isinf(edge) or attribute.dates:
        return edge_text(edge, dates=attribute.dates)
    return int(edge) if edge.is_integer() else edge


class Declaration(msgspec.Struct, forbid_unknown_fields=True):
    """One [[attribute]] table, which may name several columns."""

    name: str | None = None
    names: list[str] = []
    categories: list[str | int | bool] = []
    bins: list[float | str] | None = None
    ordered: bool = False
    labels: dict[str, str] = {}
    missing: str = "error"
    missing_codes: list[str | int | float] = []
    drafted: bool = False
    scores: list[float] | None = None
    score_margins: list[float] | None = None
    epsilon: float | None = None
    ratio: float | None = None
    importance: float | None = None
    keep: list[str] = []
    question: str = ""
    response: str = ""
    answers: list[str | int | bool] = []
    part: list["Declaration"] = []
    range: list[float | str] | None = None
    grid: int | None = None
    purpose: Literal["mean", "typical", "distribution"] = msgspec.field(name="for", default="mean")
    outside: Literal["refuse", "clip"] = "refuse"
    unit: str = ""

    def attributes(self) -> list[Attribute]:
        parts = tuple(attribute for part in self.part for attribute in part.attributes())
        if parts and self.names:
            raise InputError("an attribute with parts has one name; leave names out")
        if not parts and (self.name is None) == (not self.names):
            raise InputError('each [[attribute]] needs either name = "…" or names = ["…", "…"]')
        names = self.names or [self.name or "+".join(part.name for part in parts)]
        missing: str | None = None
        if self.missing != "error":
            kind, _, missing = self.missing.partition(":")
            if kind != "category" or not missing:
                raise InputError(
                    f'attribute \'{names[0]}\': missing must be "error" or "category:NAME"'
                )
        same = {name: getattr(self, name) for name in _UNCHANGED}
        return [
            Attribute(
                name=name,
                categories=tuple(category_text(c) for c in self.categories),
                bins=None if self.bins is None else tuple(_edge(e, names[0]) for e in self.bins),
                missing=missing,
                scores=None if self.scores is None else tuple(self.scores),
                score_margins=None if self.score_margins is None else tuple(self.score_margins),
                parts=parts,
                missing_codes=tuple(category_text(c) for c in self.missing_codes),
                range=None if self.range is None else tuple(_edge(e, names[0]) for e in self.range),
                answers=tuple(category_text(c) for c in self.answers),
                **same,
            )
            for name in names
        ]


_UNCHANGED = (
    *("ordered", "labels", "epsilon", "ratio", "importance", "drafted", "question", "grid"),
    *("purpose", "outside", "unit", "response"),
)
"""Fields that an attribute has as declared."""


def _edge(written: float | str, name: str) -> Any:
    """Return an edge: a number, a date, or text for values that JSON lacks."""
    if not isinstance(written, str):
        return written
    if written in ("-inf", "inf"):
        return float(written)
    try:
        return date.fromisoformat(written)
    except ValueError:
        raise InputError(
            f"attribute '{name}': the edge '{written}' is neither a number nor a date such as "
            "2025-12-31"
        ) from None


class FileDeclaration(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The [file] table."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    columns: tuple[str, ...] = ()
    dates: str | None = None
    sheet: str | None = None

    def file_format(self) -> FileFormat:
        return FileFormat(**msgspec.structs.asdict(self))


def with_meant_field(text: str) -> str:
    """Return msgspec's message with a similar known field, if there is one.

    >>> with_meant_field("Object contains unknown field `category`")
    'Object contains unknown field `category`; did you mean `categories`?'
    """
    unknown = re.search(r"unknown field `(.+?)`", text)
    kinds = (Declaration, FileDeclaration, Document)
    known = [field for kind in kinds for field in kind.__struct_fields__]
    close = difflib.get_close_matches(unknown[1], known, 1) if unknown else []
    return f"{text}; did you mean `{close[0]}`?" if close else text


class Document(msgspec.Struct, forbid_unknown_fields=True):
    """A schema file."""

    attribute: list[Declaration]
    title: str = ""
    responsible: str = ""
    contact: str = ""
    date: str = ""
    keep: list[str] = []
    file: FileDeclaration = FileDeclaration()
    one_row_per_person: bool = False
