"""What can be read from a release, in sentences, and whether anything is protected.

All of it is a function of plain values: of tables as
:meth:`deniable.mechanism.readability.Readability.to_plain` gives them, and of ε.
"""

import shlex
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from math import isfinite
from typing import Any

from deniable.numerals import count_text, significant
from deniable.report import wording
from deniable.schema import Schema

_NAMED = 5
"""Tables that are named in a headline."""

_FEW = 2
"""Attributes that are told of by themselves, if they cannot be read."""

_LARGEST = 0.1
"""The half-width from which on no share can be read, however large."""

_HALF_WIDTH = 0.9799
"""A half-width over two standard errors, rounded down."""


def headline(tables: Sequence[Mapping[str, Any]]) -> str:
    """Return how many attributes, or tables, can be read, and of the others how much.

    One is readable if at least half of its cells are.

    >>> one = {"attributes": ["sex"], "cells": 2, "readable": 2}
    >>> headline([one, one | {"attributes": ["ward"], "cells": 60, "readable": 0}])
    '1 of 2 attributes readable; ward: 0 of 60 categories'
    """
    single = all(len(one["attributes"]) == 1 for one in tables)
    found = [one for one in tables if 2 * one["readable"] >= one["cells"]]
    if len(tables) == 1:
        return _part(tables[0]) + " readable"
    noun = ("attribute", "attributes") if single else ("table", "tables")
    text = f"{len(found)} of {count_text(len(tables), *noun)} readable"
    others = [_part(one) for one in tables if one not in found]
    if len(others) > _NAMED:
        others[_NAMED:] = [f"and {len(others) - _NAMED} more"]
    return "; ".join([text, *others])


def _part(one: Mapping[str, Any]) -> str:
    cells = ("category", "categories") if len(one["attributes"]) == 1 else ("cell", "cells")
    counted = count_text(one["cells"], *cells)
    return f"{' × '.join(one['attributes'])}: {one['readable']:,} of {counted}"


def nothing_readable(tables: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no cell of any of some tables can be read."""
    return bool(tables) and not any(one["readable"] for one in tables)


def width_text(half_width: float | None) -> str:
    """Return a half-width as people read it.

    >>> width_text(0.0123), width_text(None)
    ('± 1.2 points', 'without a bound')
    """
    return (
        "without a bound" if half_width is None else f"± {wording.points_text(half_width)} points"
    )


def sampling_text(target: str) -> str:
    """Return whether half-widths include sampling error.

    >>> sampling_text("table")
    'sampling error not included'
    """
    return f"sampling error {'' if target == 'population' else 'not '}included"


def lines(expected: Mapping[str, Any]) -> list[str]:
    """Return what can be read from a release, a sentence each."""
    tables, pairs = expected["attributes"], expected["pairs"]
    sentences = [
        f"{headline(tables)}. Half-widths (95 %) of {_rows(tables[0]['rows'])}: "
        f"{_widths([one['half_width'] for one in tables])}, "
        f"{sampling_text(tables[0]['target'])}, if all categories are equally frequent."
    ]
    unread = [one for one in tables if 2 * one["readable"] < one["cells"]]
    sentences += [_further(one) for one in unread] if len(unread) <= _FEW else _all_from(unread)
    if pairs is not None:
        sentences.append(
            f"Of {count_text(pairs['tables'], 'table', 'tables')} of two attributes, "
            f"{pairs['readable']} can be read in at least half of their cells."
        )
    return sentences


def _further(one: Mapping[str, Any]) -> str:
    """Return from which share, or how many rows on, an attribute can be read."""
    (name,) = one["attributes"]
    if one["readable_from"] is None:
        return f"{name}: the randomization leaves nothing of it."
    if one["half_width"] > _LARGEST:
        return f"{name}: readable from {about(one['readable_from'])} rows on."
    larger = significant(100 * one["half_width"], 2, ROUND_CEILING)
    return (
        f"{name}: a category is readable if its share is about {larger}{wording.PERCENT} or more, "
        f"and all of them, equally frequent, from {about(one['readable_from'])} rows on."
    )


def _all_from(unread: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return from how many rows on several attributes can be read."""
    needed = [one["readable_from"] for one in unread if one["readable_from"] is not None]
    sentences = [f"All of these are readable from {about(max(needed))} rows on."] if needed else []
    if lost := [one["attributes"][0] for one in unread if one["readable_from"] is None]:
        sentences.append(f"The randomization leaves nothing of {wording.listed(lost)}.")
    return sentences


def _widths(half_widths: Sequence[float | None]) -> str:
    """Return half-widths from the least to the largest.

    >>> _widths([0.012, 0.03]), _widths([0.012, None])
    ('± 1.2 to 3.0 points', '± 1.2 points and without a bound')
    """
    known = [width for width in half_widths if width is not None]
    ends = [wording.points_text(end) for end in (min(known), max(known))] if known else []
    texts = [f"± {' to '.join(dict.fromkeys(ends))} points"] if ends else []
    if len(known) < len(half_widths):
        texts.append(width_text(None))
    return " and ".join(texts)


def _rows(rows: int) -> str:
    return count_text(rows, "row", "rows")


def about(count: int) -> str:
    """Say a number with two digits that count, rounded up.

    >>> about(7), about(87_223)
    ('about 7', 'about 88,000')
    """
    return f"about {significant(count, 2, ROUND_CEILING)}"


def estimated(tables: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence on what can be read of tables that were estimated."""
    worst = max(tables, key=lambda one: one["half_width"] or 0.0)
    text = (
        f"{headline(tables)} ({width_text(worst['half_width'])} at 95 %"
        f"{', at most' if len(tables) > 1 else ''}, {sampling_text(worst['target'])})."
    )
    unread = [one for one in tables if not one["readable"] and one["readable_from"]]
    if len(unread) == 1:
        needed = about(unread[0]["readable_from"])
        text += f" Equally frequent, all of them are readable from {needed} rows on."
    return text


def without_mean(schema: Schema) -> str:
    """Return the sentence that no mean of some attributes can be told; empty if all can.

    Those are attributes with an interval that has no end, and without scores to say what is known
    of the mean in it.
    """
    names = [
        column.name
        for place in schema.protected
        for column in schema.attributes[place].columns
        if column.bins is not None
        and not column.dates
        and column.scores is None
        and not all(map(isfinite, column.bins))
    ]
    if not names:
        return ""
    return (
        f"No mean of {wording.listed(names)} can be told from this release: an interval has no "
        "end. To have one, write the publicly known mean of each interval as scores into the "
        "schema first."
    )


def unprotected(epsilon: float | None, of_person: float | None = None) -> str:
    """Return the sentence that ε is so large that a row as a whole, or a person with all rows, is
    not protected; else empty.

    ``epsilon``: of a row, in nats; None if unbounded. ``of_person``: of a person with all rows, in
    nats, if it is known how many these are.
    """
    level = epsilon if of_person is None else of_person
    if epsilon is None or level is None or level <= wording.VERY_WEAK_EPSILON:
        return ""
    rows = of_person is not None and of_person > epsilon
    what, them = ("a person with all rows", "them") if rows else ("a row as a whole", "it")
    return (
        f"ε = {wording.epsilon_text(level)} hardly protects {what}: what is released "
        f"of {them} may be {wording.factor_text(level)} times likelier under one truth than under "
        f"another, and a suspicion of 1{wording.PERCENT} can become "
        f"{wording.posterior_text(0.01, level)}. "
        + (
            "A smaller ε of a row, or fewer rows of each person, protect better."
            if rows
            else "Only single columns, seen alone, can be better protected than that."
        )
    )


def advice(expected: Mapping[str, Any], forms: Sequence[Mapping[str, Any]], plan: str) -> list[str]:
    """Return what would make more of a release readable, a sentence each."""
    sentences = []
    if forms:
        wide = max(one["half_width"] or 0.0 for one in forms)
        sentences.append(
            f"With `method` forms: {headline(forms)} ({width_text(wide)} at most); its rows are "
            "not complete."
        )
    unread = [one for one in expected["attributes"] if not one["readable"]]
    if unread:
        largest = _HALF_WIDTH * min(_LARGEST, 1 / unread[0]["cells"])
        within = significant(100 * largest, 2, ROUND_FLOOR)
        command = plan.format(table=shlex.quote(unread[0]["attributes"][0]), within=within)
        sentences.append(f"At which ε {unread[0]['attributes'][0]} can be read: {command}")
    return sentences
