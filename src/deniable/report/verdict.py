"""Verdicts in sentences: the readable part of a release, and a too large ε.

Functions of plain values: tables in the form of
:meth:`deniable.mechanism.readability.Readability.to_plain`, and ε.
"""

import shlex
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from math import isfinite
from typing import Any

from deniable.numerals import count_text, significant
from deniable.readable import HALF_WIDTH_ERRORS, LARGEST_READABLE, READABLE_ERRORS
from deniable.report import wording
from deniable.schema import Schema

_NAMED = 5
"""Most unreadable tables named in a headline."""

_FEW = 2
"""Most unreadable attributes with a sentence each."""

_LARGEST_HALF_WIDTH = LARGEST_READABLE * HALF_WIDTH_ERRORS / READABLE_ERRORS
"""Largest half-width of a readable share."""


def headline(tables: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of readable attributes or tables, and the readable part of the others.

    A table is readable if at least half of its cells are.
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
    """Whether no cell of any table is readable."""
    return bool(tables) and not any(one["readable"] for one in tables)


def width_text(half_width: float | None) -> str:
    """Return a half-width in percentage points.

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
    """Return the verdict on a release, one sentence per entry."""
    tables, pairs = expected["attributes"], expected["pairs"]
    if not tables:
        return ["All attributes are numbers, released for their means."]
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
    """Return the least readable share of an attribute, or the rows it needs."""
    (name,) = one["attributes"]
    if one["readable_from"] is None:
        return f"{name}: wiped out by the randomization."
    if one["half_width"] > _LARGEST_HALF_WIDTH:
        return f"{name}: readable from {about(one['readable_from'])} rows on."
    larger = significant(100 * one["half_width"], 2, ROUND_CEILING)
    return (
        f"{name}: a category is readable if its share is about {larger}{wording.PERCENT} or more, "
        f"and all of them, equally frequent, from {about(one['readable_from'])} rows on."
    )


def _all_from(unread: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the rows that several attributes need."""
    needed = [one["readable_from"] for one in unread if one["readable_from"] is not None]
    sentences = [f"All of these are readable from {about(max(needed))} rows on."] if needed else []
    if lost := [one["attributes"][0] for one in unread if one["readable_from"] is None]:
        sentences.append(f"Wiped out by the randomization: {wording.listed(lost)}.")
    return sentences


def _widths(half_widths: Sequence[float | None]) -> str:
    """Return the range of half-widths.

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
    """Return a number with two significant digits, rounded up."""
    return f"about {significant(count, 2, ROUND_CEILING)}"


def estimated(tables: Sequence[Mapping[str, Any]]) -> str:
    """Return the verdict on estimated tables."""
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
    """Return the sentence on attributes without an estimable mean; empty if there are none.

    These have an unbounded interval, and no scores for its mean.
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
        f"The mean of {wording.listed(names)} cannot be estimated from this release: an interval "
        "is unbounded. Before the release, write the publicly known mean of each interval into "
        "the schema as scores."
    )


def unprotected(epsilon: float | None, of_person: float | None = None) -> str:
    """Return the warning for an ε that hardly protects a whole row, or a person with several rows;
    else empty. ``epsilon``: of a row, ``of_person``: of all rows of a person, in nats; None if
    unbounded or unknown.
    """
    level = epsilon if of_person is None else of_person
    if epsilon is None or level is None or level <= wording.VERY_WEAK_EPSILON:
        return ""
    rows = of_person is not None and of_person > epsilon
    protected = "a person with all rows" if rows else "a row as a whole"
    return (
        f"ε = {wording.epsilon_text(level)} hardly protects {protected}: the released values may "
        f"be {wording.factor_text(level)} times likelier under one truth than under another, and a "
        f"suspicion of 1{wording.PERCENT} can become "
        f"{wording.posterior_text(0.01, level)}. "
        + (
            "A smaller ε of a row, or fewer rows of each person, protect better."
            if rows
            else "Only single columns, seen alone, can be better protected than that."
        )
    )


def advice(expected: Mapping[str, Any], forms: Sequence[Mapping[str, Any]], plan: str) -> list[str]:
    """Return advice that makes more of a release readable, one sentence per entry."""
    sentences = []
    if forms:
        wide = max(one["half_width"] or 0.0 for one in forms)
        sentences.append(
            f"With `method` forms: {headline(forms)} ({width_text(wide)} at most); its rows are "
            "not complete."
        )
    unread = [one for one in expected["attributes"] if not one["readable"]]
    if unread:
        share = min(LARGEST_READABLE, 1 / unread[0]["cells"])
        largest = HALF_WIDTH_ERRORS / READABLE_ERRORS * share
        within = significant(100 * largest, 2, ROUND_FLOOR)
        command = plan.format(table=shlex.quote(unread[0]["attributes"][0]), within=within)
        sentences.append(f"At which ε {unread[0]['attributes'][0]} can be read: {command}")
    return sentences
