"""Changes to the schema, as they are made in the page."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from deniable.errors import InputError
from deniable.schema import Schema
from deniable.studio.draft import Draft, Plain, names_of
from deniable.studio.numbers import decimal_number
from deniable.studio.opening import names_in, yes_or_no

Form = Mapping[str, str]
_PER_ATTRIBUTE = ("level", "importance", "shares")


def problem_of(attribute: Plain) -> str:
    """Return what is wrong with a declaration by itself; empty if nothing is.

    >>> problem_of({"name": "sex", "categories": ["f"]})
    "attribute 'sex' needs at least two categories"
    """
    try:
        Schema.from_plain({"attribute": [attribute]})
    except InputError as error:
        return str(error).removeprefix("in the schema, ")
    return ""


def declare(draft: Draft, form: Form) -> Draft:
    """Return the draft with an attribute as it was typed, even if the library refuses it so."""
    place = _place(draft, form)
    old = draft.attributes[place]
    new = dict(old)
    if "part" not in old:
        names = list(names_in(typed)) if (typed := form.get("names", "")).strip() else [""]
        for key in ("name", "names", "categories", "labels", "bins", "ordered", "missing"):
            new.pop(key, None)
        new |= {"name": names[0]} if len(names) == 1 else {"names": names}
        if bins := form.get("bins", ""):
            new["bins"] = [_edge(text) for text in re.split(r"[;\s]+", bins)]
            new["labels"] = {}
        else:
            lines = form.get("categories", "").splitlines()
            coded = [_code(line) for line in lines if line.strip()]
            new["categories"] = [code for code, _ in coded]
            new["labels"] = {code: label for code, label in coded if label}
        if not new["labels"]:
            new["labels"] = old.get("labels", {}) if bins else {}
        if form.get("ordered"):
            new["ordered"] = True
        if missing := form.get("missing"):
            new["missing"] = f"category:{missing}"
        if codes := form.get("missing_codes"):
            new["missing_codes"] = re.split(r"[;\s]+", codes)
    new.pop("question", None)
    if question := form.get("question"):
        new["question"] = question
    if form.get("confirmed"):
        new.pop("drafted", None)
    new = {key: value for key, value in new.items() if value not in ({}, [])}
    kept = [name for name in draft.kept if name not in names_of(old)]
    if form.get("kept"):
        kept += names_of(new)
    changed = _with(draft, [*draft.attributes[:place], new, *draft.attributes[place + 1 :]], kept)
    return renamed(changed, dict(zip(names_of(old), names_of(new), strict=False)))


def _edge(text: str) -> float | int | str:
    if text in ("-inf", "inf") or re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return text
    try:
        edge = decimal_number(text, "an edge of the bins")
    except InputError:
        return text
    return int(edge) if edge.is_integer() else edge


def _code(line: str) -> tuple[str, str]:
    """Return a category and its label; a spreadsheet has a tab between them, a person "="."""
    code, _, label = line.partition("\t") if "\t" in line else line.partition(" = ")
    return code.strip(), label.strip()


def add(draft: Draft, form: Form) -> Draft:
    """Return the draft with further columns, of which only the names are known.

    Raises:
        InputError: if no name was typed.
    """
    more = [yes_or_no(name) for name in names_in(form.get("names", ""))]
    return _with(draft, [*draft.attributes, *more])


def remove(draft: Draft, form: Form) -> Draft:
    """Return the draft without an attribute, and without what was wished of it."""
    place = _place(draft, form)
    gone = names_of(draft.attributes[place])
    left = [one for i, one in enumerate(draft.attributes) if i != place]
    changed = _with(draft, left, [name for name in draft.kept if name not in gone])
    return renamed(changed, dict.fromkeys(gone))


def move(by: int, draft: Draft, form: Form) -> Draft:
    """Return the draft with an attribute a place further down, or up."""
    place = _place(draft, form)
    to = place + by
    order = list(draft.attributes)
    if 0 <= to < len(order):
        order[place], order[to] = order[to], order[place]
    return _with(draft, order)


def merge(draft: Draft, form: Form) -> Draft:
    """Return the draft with two attributes merged into one, which is randomized as one.

    Raises:
        InputError: if they cannot be.
    """
    place, other = _place(draft, form), _place(draft, form, "other")
    pair = [draft.attributes[i] for i in (place, other)]
    if place == other or any(len(names_of(one)) > 1 for one in pair):
        raise InputError("two attributes are merged that are declared by themselves; choose others")
    parts = [part for one in pair for part in one.get("part", (one,))]
    if problem := problem_of(merged := {"part": parts}):
        raise InputError(problem)
    left = [one for i, one in enumerate(draft.attributes) if i not in (place, other)]
    left.insert(min(place, other), merged)
    gone = dict.fromkeys(name for one in pair for name in names_of(one))
    return renamed(_with(draft, left), gone)


def split(draft: Draft, form: Form) -> Draft:
    """Return the draft with a merged attribute taken apart."""
    place = _place(draft, form)
    whole = draft.attributes[place]
    order = list(draft.attributes)
    order[place : place + 1] = whole.get("part", [whole])
    return renamed(_with(draft, order), dict.fromkeys(names_of(whole)))


def confirm_all(draft: Draft, _form: Form) -> Draft:
    """Return the draft with nothing marked as drafted: somebody has looked at all of it."""
    left = [{k: v for k, v in one.items() if k != "drafted"} for one in draft.attributes]
    return _with(draft, left)


def about(draft: Draft, form: Form) -> Draft:
    """Return the draft with another title, and other columns that are released as they are."""
    plain = {**draft.schema, "title": form.get("title", "")}
    named = [name for name in re.split(r"[,;\n]+\s*", form.get("keep", "")) if name]
    plain["keep"] = named
    plain["one_row_per_person"] = bool(form.get("one_row_per_person"))
    return replace(draft, schema={key: value for key, value in plain.items() if value})


CHANGES: dict[str, Callable[[Draft, Form], Draft]] = {
    "declare": declare,
    "add": add,
    "remove": remove,
    "up": partial(move, -1),
    "down": partial(move, 1),
    "merge": merge,
    "split": split,
    "confirm_all": confirm_all,
    "about": about,
}
"""The changes, by the name of their button."""


def renamed(draft: Draft, names: Mapping[str, str | None]) -> Draft:
    """Return the draft with names replaced wherever a wish uses them; None: left out there."""
    names = {old: new for old, new in names.items() if old != new}

    def of(wish: Mapping[str, str]) -> Mapping[str, str]:
        changed = {}
        for control, text in wish.items():
            kind, dot, name = control.partition(".")
            if dot and kind in _PER_ATTRIBUTE and name in names:
                if (new := names[name]) is not None:
                    changed[f"{kind}.{new}"] = text
            else:
                changed[control] = text
        lines = [line.split("\t") for line in wish.get("tables", "").splitlines()]
        tables = [[names.get(name, name) for name in table] for table in lines]
        if lines:
            changed["tables"] = "\n".join(
                "\t".join(map(str, table)) for table in tables if None not in table
            )
        return changed

    return replace(draft, wish=of(draft.wish), pins=tuple(map(of, draft.pins))) if names else draft


def _place(draft: Draft, form: Form, key: str = "which") -> int:
    text = form.get(key, "")
    if not text.isascii() or not text.isdigit() or int(text) >= len(draft.attributes):
        raise InputError("there is no such attribute any more; load the page again")
    return int(text)


def _with(draft: Draft, attributes: Sequence[Any], kept: Sequence[str] | None = None) -> Draft:
    schema = {**draft.schema, "attribute": list(attributes)}
    if kept is not None:
        schema["keep"] = list(kept)
    return replace(draft, schema={key: value for key, value in schema.items() if value})
