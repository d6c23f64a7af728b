"""What can be read from a release, in sentences, and whether that is anything at all.

All of it is a function of the record's plain ``worth`` and ε, as screens and pages show them.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING
from math import isfinite
from typing import Any

from deniable.numerals import count_text, significant
from deniable.report import wording
from deniable.schema import Schema


def verdict(worth: Mapping[str, Any], epsilon: float | None) -> str:
    """Return the sentence that nothing can be read from a release; empty if something can.

    Args:
        worth: the record's.
        epsilon: of the record, in nats; None if unbounded.
    """
    median, needed = worth["median"], worth["rows_needed"]
    if median["readable"]:
        return ""
    at = "With" if epsilon is None else f"At ε = {wording.epsilon_text(epsilon)} with"
    attributes = count_text(worth["attributes"], "attribute", "attributes")
    rows = count_text(worth["rows"], "row", "rows")
    text = (
        f"{at} {attributes} and {rows} nothing can be read from this release: a typical share, of "
        f"{_size(median)} if all were equally frequent, comes out with a standard error of "
        f"{_points(median)}. "
    )
    if needed is None:
        return text + "More rows would not help: the randomization has wiped it out."
    return text + (
        f"It takes about {significant(needed, 2, ROUND_CEILING)} rows, or a larger ε, "
        "until twice that error, the half-width of an interval, is at most ten points and at most "
        "the share itself."
    )


def _size(one: Mapping[str, Any]) -> str:
    return significant(100 * one["share"], 2) + wording.PERCENT


def _points(one: Mapping[str, Any]) -> str:
    error = one["standard_error"]
    if error is None:
        return "more than any number of points"
    if error > 1:
        return "more than 100 points (not estimable)"
    text = wording.points_text(error)
    return f"{text} {'point' if text == '1.0' else 'points'}"


def lines(worth: Mapping[str, Any]) -> list[str]:
    """Return what is expected of single shares and of tables of two attributes, a sentence each."""
    rows = count_text(worth["rows"], "row", "rows")
    median, worst = worth["median"], worth["worst"]
    sentences = [
        f"With {rows}, a typical share (the median; {_size(median)} if all were equally frequent) "
        f"has a standard error of {_points(median)}; the worst, one of {worst['attributes'][0]} "
        f"({_size(worst)}), of {_points(worst)}."
    ]
    if worth["median_pair"] is not None:
        pair, worst = worth["median_pair"], worth["worst_pair"]
        sentences.append(
            f"In tables of two attributes a typical cell ({_size(pair)}) has one of "
            f"{_points(pair)}; the worst, of {' and '.join(worst['attributes'])} "
            f"({_size(worst)}), of {_points(worst)}."
            + (
                ""
                if pair["readable"]
                else " Most of these tables cannot be read cell by cell with so many rows."
            )
        )
    return sentences


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

    Args:
        epsilon: of a row, in nats; None if unbounded.
        of_person: of a person with all rows, in nats, if it is known how many these are.
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


def advice(told: Mapping[str, Any]) -> list[str]:
    """Return what would make a release tell more, a sentence each.

    Args:
        told: of :func:`deniable.design.alternatives.alternatives`.
    """
    if told["ways"]:
        return [_ways(told["of"], told["ways"])]
    sentences = []
    if told["forms_rows"] is not None:
        sentences.append(
            f"With `method` forms, {significant(told['forms_rows'], 2)} times fewer rows "
            "would give the same errors of shares; its rows are not complete."
        )
    if told["two_points"] is not None:
        sentences.append(
            "A typical share would be within 2 points (95 %) at about "
            f"ε = {significant(told['two_points'], 2)}."
        )
    return sentences


def _ways(of: str, ways: Sequence[Mapping[str, Any]]) -> str:
    """Return what helps where a typical share, or cell of a table of two, cannot be read."""
    said = []
    for way in ways:
        left_out = way["left_out"]
        if way["kind"] == "fewer":
            named = ", ".join(left_out[:3])
            more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
            text = f"to leave out {named}{more}"
        else:
            larger = f"ε = {significant(way['epsilon'], 2)}"
            text = "`method` forms" if way["kind"] == "forms" else larger
        text += f" ({_points(way)})"
        said.append(text if way["readable"] else f"{text}, which is not enough")
    what = "share" if of == "share" else "cell of a table of two attributes"
    return (
        f"What helps most here, with the standard error of a typical {what} then: {said[0]}"
        + "".join(f"; or {text}" for text in said[1:])
        + "."
    )
