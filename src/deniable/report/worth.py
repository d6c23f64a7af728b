"""What can be read from a release, in sentences, and whether that is anything at all.

All of it is a function of the record's plain ``worth`` and ε, as screens and pages show them.
"""

from collections.abc import Mapping
from decimal import ROUND_CEILING
from math import isfinite
from typing import Any

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
    attributes = wording.count_text(worth["attributes"], "attribute", "attributes")
    rows = wording.count_text(worth["rows"], "row", "rows")
    text = (
        f"{at} {attributes} and {rows} nothing can be read from this release: a typical share, of "
        f"{_size(median)} if all were equally frequent, comes out with a standard error of "
        f"{_points(median)}. "
    )
    if needed is None:
        return text + "More rows would not help: the randomization has wiped it out."
    return text + (
        f"It takes about {wording.significant(needed, 2, ROUND_CEILING)} rows, or a larger ε, "
        "until twice that error, the half-width of an interval, is at most ten points and at most "
        "the share itself."
    )


def _size(one: Mapping[str, Any]) -> str:
    return wording.significant(100 * one["share"], 2) + wording.PERCENT


def _points(one: Mapping[str, Any]) -> str:
    error = one["standard_error"]
    if error is None:
        return "more than any number of points"
    text = wording.points_text(error)
    return f"{text} {'point' if text == '1.0' else 'points'}"


def lines(worth: Mapping[str, Any]) -> list[str]:
    """Return what is expected of single shares and of tables of two attributes, a sentence each."""
    rows = wording.count_text(worth["rows"], "row", "rows")
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


def unprotected(epsilon: float | None) -> str:
    """Return the sentence that ε is so large that a row as a whole is not protected; else empty."""
    if epsilon is None or epsilon <= wording.VERY_WEAK_EPSILON:
        return ""
    return (
        f"ε = {wording.epsilon_text(epsilon)} hardly protects a row as a whole: what is released "
        f"of it may be {wording.factor_text(epsilon)} times likelier under one truth than under "
        f"another, and a suspicion of 1{wording.PERCENT} can become "
        f"{wording.posterior_text(0.01, epsilon)}. Only single columns, seen alone, can be better "
        "protected than that."
    )
