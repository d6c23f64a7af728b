"""Changes of the schema from the page."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from deniable.errors import InputError
from deniable.schema import Schema
from deniable.schema.attribute import category_text
from deniable.studio.draft import Draft, Plain, names_of
from deniable.studio.numbers import decimal_number, whole_number
from deniable.studio.opening import names_in, yes_or_no
from deniable.studio.request import tables_in, tables_text

Form = Mapping[str, str]
_PER_ATTRIBUTE = ("level", "importance", "shares")


def problem_of(attribute: Plain) -> str:
    """Return the problem of a declaration by itself; empty if there is none.

    >>> problem_of({"name": "sex", "categories": ["f"]})
    "attribute 'sex' has 1 category; randomized response needs at least 2"
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
        _take_columns(new, form)
    new["question"] = form.get("question", "")
    if form.get("confirmed"):
        new = _confirmed(new)
    empty: tuple[Any, ...] = ("", False, {}, [])
    new = {key: value for key, value in new.items() if value not in empty or key == "name"}
    before, now = names_of(old), names_of(new)
    kept = [name for name in draft.kept if name not in before]
    if form.get("kept"):
        kept += now
    changed = _with(draft, [*draft.attributes[:place], new, *draft.attributes[place + 1 :]], kept)
    gone = [name for name in before if name not in now]
    come = [name for name in now if name not in before]
    named = (
        dict(zip(gone, come, strict=True)) if len(gone) == len(come) else dict.fromkeys(gone, "")
    )
    return renamed(changed, named)


def _take_columns(new: dict[str, Any], form: Form) -> None:
    """Put the typed fields of columns into a declaration; other fields remain."""
    names = [name for line in form.get("names", "").splitlines() if (name := line.strip())] or [""]
    if names != "\n".join(names_of(new)).splitlines():
        del new["names" if "names" in new else "name"]
        new |= {"name": names[0]} if len(names) == 1 else {"names": names}
    if form.get("kind", "number" if "range" in new else "") == "number":
        _take_number(new, form)
    else:
        _take_categories(new, form)
    missing = form.get("missing", "")
    new["missing"] = f"category:{missing}" if missing else ""
    new["missing_codes"] = [
        text for code in form.get("missing_codes", "").split(";") if (text := code.strip())
    ]


def _take_categories(new: dict[str, Any], form: Form) -> None:
    if "range" in new:
        _leave_out(new, "range", "for", "grid", "unit", "outside", "labels")
    bins, lines = form.get("bins", "").split(), form.get("categories", "").splitlines()
    old_bins, old_lines = map(str, new.get("bins", ())), category_lines(new).strip().splitlines()
    if (bins, lines) != ([*old_bins], old_lines):
        _leave_out(new, *_OF_CATEGORIES)
        if bins:
            new["bins"] = [_edge(text) for text in bins]
        else:
            coded = [_code(line) for line in lines if line.strip()]
            new["categories"] = [code for code, _ in coded]
            new["labels"] = {code: label for code, label in coded if label}
    new["ordered"] = bool(form.get("ordered")) and not bins


def _take_number(new: dict[str, Any], form: Form) -> None:
    if "range" not in new:
        _leave_out(new, *_OF_CATEGORIES, "ordered")
    new["range"] = [_edge(text) for text in form.get("range", "").split()]
    new["unit"] = form.get("unit", "").strip()
    if (purpose := form.get("for", "mean")) != new.get("for", "mean"):
        new["for"] = purpose
    grid = form.get("grid", "")
    new["grid"] = whole_number(grid, "points of the grid") if grid else ""
    new["outside"] = "clip" if form.get("clip") else ""


_OF_CATEGORIES = ("categories", "labels", "bins", "scores", "score_margins")


def _leave_out(new: dict[str, Any], *keys: str) -> None:
    for key in keys:
        new.pop(key, None)


def category_lines(attribute: Plain) -> str:
    """Return the categories of a declaration as typed: one per line, with its label."""
    labels = attribute.get("labels", {})
    codes = map(category_text, attribute.get("categories", ()))
    return "\n".join(f"{code} = {labels[code]}" if code in labels else code for code in codes)


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
    """Return the draft with further columns, of which only the names are known."""
    more = [yes_or_no(name) for name in names_in(form.get("names", ""))]
    return _with(draft, [*draft.attributes, *more])


def remove(draft: Draft, form: Form) -> Draft:
    """Return the draft without an attribute and its part of the request."""
    place = _place(draft, form)
    gone = names_of(draft.attributes[place])
    left = [one for i, one in enumerate(draft.attributes) if i != place]
    changed = _with(draft, left, [name for name in draft.kept if name not in gone])
    return renamed(changed, dict.fromkeys(gone, ""))


def move(by: int, draft: Draft, form: Form) -> Draft:
    """Return the draft with an attribute a place further down, or up."""
    place = _place(draft, form)
    to = place + by
    order = list(draft.attributes)
    if 0 <= to < len(order):
        order[place], order[to] = order[to], order[place]
    return _with(draft, order)


def merge(draft: Draft, form: Form) -> Draft:
    """Return the draft with two attributes merged into one, which is randomized as one."""
    place, other = _place(draft, form), _place(draft, form, "other")
    pair = [draft.attributes[i] for i in (place, other)]
    if place == other or any(len(names_of(one)) > 1 for one in pair):
        raise InputError("two attributes are merged that are declared by themselves; choose others")
    parts = [part for one in pair for part in one.get("part", (one,))]
    merged = {"part": parts, "drafted": any(part.get("drafted") for part in parts)}
    if problem := problem_of(merged):
        raise InputError(problem)
    left = [one for i, one in enumerate(draft.attributes) if i not in (place, other)]
    left.insert(min(place, other), merged)
    return _with(draft, left)  # tables of its parts remain available


def split(draft: Draft, form: Form) -> Draft:
    """Return the draft with a merged attribute taken apart."""
    place = _place(draft, form)
    whole = draft.attributes[place]
    order = list(draft.attributes)
    order[place : place + 1] = whole.get("part", [whole])
    return renamed(_with(draft, order), dict.fromkeys(names_of(whole), ""))


def confirm_all(draft: Draft, _form: Form) -> Draft:
    """Return the draft with every drafted mark removed: a user has checked all of it."""
    return _with(draft, list(map(_confirmed, draft.attributes)))


def _confirmed(one: Plain) -> dict[str, Any]:
    left = {key: value for key, value in one.items() if key != "drafted"}
    return left | {"part": list(map(_confirmed, left["part"]))} if "part" in left else left


def about(draft: Draft, form: Form) -> Draft:
    """Return the draft with a new title and new unchanged columns."""
    plain = {**draft.schema, "title": form.get("title", "")}
    if (keep := form.get("keep", "")) != ", ".join(draft.kept):
        plain["keep"] = [name for name in re.split(r"[,;]\s*", keep) if name]
    plain["one_row_per_person"] = bool(form.get("one_row_per_person"))
    return replace(draft, schema={key: value for key, value in plain.items() if value})


ROLES = ("randomize", "keep", "leave_out", "person")
"""Roles of a column of the table."""


def columns_in(attribute: Plain) -> list[str]:
    """Return the columns of the table that a declaration is of.

    >>> columns_in({"part": [{"name": "a"}, {"name": "b"}]})
    ['a', 'b']
    """
    return [name for part in attribute.get("part", (attribute,)) for name in names_of(part)]


def role_of(draft: Draft, column: str) -> str:
    """Return the role of a column, one of :data:`ROLES`."""
    if column in draft.kept:
        return "keep"
    if column == draft.person:
        return "person"
    declared = any(column in columns_in(one) for one in draft.attributes)
    return "randomize" if declared else "leave_out"


def undeclared(draft: Draft, names: Sequence[str]) -> list[str]:
    """Return the columns that are declared or kept and not among those of a table that was read."""
    wanted = [*draft.kept, *(name for one in draft.attributes for name in columns_in(one))]
    return [name for name in dict.fromkeys(wanted) if names and name not in names]


def with_roles(draft: Draft, roles: Mapping[str, str], found: Mapping[str, Plain]) -> Draft:
    """Return the draft with other roles of columns."""
    if len(people := [name for name, role in roles.items() if role == "person"]) > 1:
        raise InputError(
            f"'{people[0]}' and '{people[1]}': one column holds the person's id; choose one"
        )
    gone = {name for name, role in roles.items() if role in ("leave_out", "person")}
    attributes: list[Plain] = []
    lost: dict[str, str] = {}
    for one in draft.attributes:
        names, taken = columns_in(one), [name for name in columns_in(one) if name in gone]
        if taken and "part" in one:
            raise InputError(f"{' and '.join(names)} are randomized as one; take them apart first")
        left = [name for name in names if name not in gone]
        if taken and left:
            one = {key: value for key, value in one.items() if key not in ("name", "names")}
            one |= {"name": left[0]} if len(left) == 1 else {"names": left}
        lost |= dict.fromkeys(taken, "")
        attributes += [one] if left else []
    kept = [name for name in draft.kept if roles.get(name, "keep") == "keep"]
    kept += [name for name, role in roles.items() if role == "keep" and name not in kept]
    declared = {name for one in attributes for name in columns_in(one)}
    attributes += [
        found.get(name) or yes_or_no(name)
        for name, role in roles.items()
        if role == "randomize" and name not in declared
    ]
    person = people[0] if people else "" if draft.person in roles else draft.person
    return renamed(replace(_with(draft, attributes, kept), person=person), lost)


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


def renamed(draft: Draft, names: Mapping[str, str]) -> Draft:
    """Return the draft with names replaced wherever controls use them; if by "", left out there."""

    def following(controls: Mapping[str, str]) -> Mapping[str, str]:
        changed = {}
        for control, text in controls.items():
            kind, _, name = control.partition(".")
            if kind not in _PER_ATTRIBUTE or name not in names:
                changed[control] = text
            elif names[name]:
                changed[f"{kind}.{names[name]}"] = text
        if (name := controls.get("matrix_of", "")) in names:
            changed["matrix_of"] = names[name]
        if "tables" in controls:
            tables = [[names.get(name, name) for name in t] for t in tables_in(controls["tables"])]
            changed["tables"] = tables_text(table for table in tables if "" not in table)
        return changed

    return replace(
        draft, controls=following(draft.controls), pins=tuple(map(following, draft.pins))
    )


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
