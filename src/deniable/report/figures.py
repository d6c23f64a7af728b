"""Plots of a release's page: levels and errors."""

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from deniable.report.contents import Contents
from deniable.report.plots import Bar, Group, Line, Plot
from deniable.report.wording import epsilon_text, percent_text, points_text
from deniable.schema import Attribute
from deniable.schema.attribute import edge_text

PLOTTED = 24
"""Most attributes in a plot; beyond them the table is easier to read."""

PICTURED = 8
"""Most numbers with a plot."""

Row = TypeVar("Row")


def _with_the_largest(rows: Sequence[Row], key: Callable[[Row], float]) -> list[Row]:
    """Return the rows that are plotted, in their order."""
    largest_first = sorted(range(len(rows)), key=lambda i: key(rows[i]), reverse=True)
    return [rows[i] for i in sorted(largest_first[:PLOTTED])]


def level_plot(contents: Contents) -> Plot | None:
    """Return ε of each protected attribute, seen alone and given the rest of the row."""
    shown = list(contents.protected())
    if not shown:
        return None
    groups = [
        Group(
            a.name,
            (
                Bar(a.epsilon, epsilon_text(a.epsilon), "alone"),
                Bar(
                    a.epsilon_given_rest,
                    f"{'≤ ' * a.epsilon_given_rest_at_most}{epsilon_text(a.epsilon_given_rest)}",
                    "rest",
                ),
            ),
        )
        for a in _with_the_largest(
            shown,
            lambda a: float("inf") if a.epsilon_given_rest is None else a.epsilon_given_rest,
        )
    ]
    epsilon = contents.guarantee.epsilon
    line = None if epsilon is None else Line(epsilon, f"whole record {epsilon_text(epsilon)}")
    return Plot(groups, line, len(shown))


def error_plot(contents: Contents) -> Plot | None:
    """Return the expected half-width of a share of each attribute."""
    widths = {name: one["half_width"] for name, one in contents.tables().items()}
    shown = [(name, width) for name, width in widths.items() if width is not None]
    groups = [
        Group(name, (Bar(100 * error, points_text(error), "error"),))
        for name, error in _with_the_largest(shown, lambda row: row[1])
    ]
    return Plot(groups, None, len(shown)) if shown else None


class NumberPicture(NamedTuple):
    """A number of a table, and the chances of each released value for one example of it; without a
    plot where these are not known, or too many."""

    column: Attribute
    example: str
    plot: Plot | None


def number_pictures(contents: Contents) -> list[NumberPicture]:
    """Return the pictures of the randomized numbers; the example is a fifth of a step above a
    point."""
    found: list[NumberPicture] = []
    for attribute in contents.schema.attributes:
        for column in attribute.columns:
            if (grid := column.number_grid) is None or attribute.name in contents.kept():
                continue
            place = (grid.n_points - 1) // 3
            low, high = grid.points[place : place + 2]
            example = low + (high - low) / 5
            if column.dates:
                example = round(example)
            weights = [0.0] * column.n_categories
            weights[place + 1] = (example - low) / (high - low)
            weights[place] = 1 - weights[place + 1]
            text = edge_text(float(f"{example:.10g}"), dates=column.dates)
            released = _released(contents, column, weights)
            shown = len(released) <= PLOTTED and len(found) < PICTURED
            plot = _number_plot(column, weights, released) if released and shown else None
            found.append(NumberPicture(column, text, plot))
    return found


def _released(contents: Contents, column: Attribute, weights: list[float]) -> list[float]:
    """Return the probability of each released value, for probabilities of the categories; empty if
    not known. A kept code has probability p, each of the a - 1 others (1 - p)/(a - 1)."""
    for block in contents.mechanism.blocks:
        if block.attributes == [column.name] and isinstance(block.law.get("weights"), list):
            total = 1 << int(block.law["bits"])
            rows = [[int(weight, 16) / total for weight in row] for row in block.law["weights"]]
            return [sum(map(operator.mul, row, weights)) for row in rows]
    keep = {a.name: a.keep_probability for a in contents.mechanism.attributes}
    if column.name in contents.guarantee.unprotected or (p := keep.get(column.name)) is None:
        return []
    return [h * p + (1 - h) * (1 - p) / (len(weights) - 1) for h in weights]


def _number_plot(column: Attribute, weights: list[float], released: list[float]) -> Plot:
    texts = [column.label(text) for text in column.answers or column.categories]
    if column.answers:
        return Plot([Group(t, [_chance(s, "alone")]) for t, s in zip(texts, released, strict=True)])
    chances = zip(texts, weights, released, strict=True)
    return Plot([Group(t, [_chance(h, "rest"), _chance(s, "alone")]) for t, h, s in chances])


def _chance(share: float, style: str) -> Bar:
    return Bar(100 * share, percent_text(share), style)
