"""Plots of a release's page: levels and errors."""

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
    """A number of a table, and the chances of each point for one example of it; without a plot
    where these are not known, or too many."""

    column: Attribute
    example: str
    plot: Plot | None


def number_pictures(contents: Contents) -> list[NumberPicture]:
    """Return the pictures of the randomized numbers.

    The example is a fifth of a step above a point. With h the weights of the points next to it, p
    the probability that a code is kept and a the number of categories, code j is released with
    probability h_j p + (1 - h_j)(1 - p)/(a - 1).
    """
    keep = {a.name: a.keep_probability for a in contents.mechanism.attributes}
    keep |= dict.fromkeys([*contents.by_matrix(), *contents.guarantee.unprotected])
    found: list[NumberPicture] = []
    for attribute in contents.schema().attributes:
        for column in attribute.columns:
            if (grid := column.number_grid) is None or attribute.name in contents.kept():
                continue
            place = (grid.n_points - 1) // 3
            low, high = grid.points[place : place + 2]
            example = low + (high - low) / 5
            if column.dates:
                example = round(example)
            weights = dict.fromkeys(column.categories, 0.0)
            upper = (example - low) / (high - low)
            weights[column.categories[place]] = 1 - upper
            weights[column.categories[place + 1]] = upper
            p, others = keep.get(column.name), column.n_categories - 1
            plot = None
            if p is not None and column.n_categories <= PLOTTED and len(found) < PICTURED:
                groups = [
                    Group(
                        column.label(category),
                        (_chance(h, "rest"), _chance(h * p + (1 - h) * (1 - p) / others, "alone")),
                    )
                    for category, h in weights.items()
                ]
                plot = Plot(groups)
            text = edge_text(float(f"{example:.10g}"), dates=column.dates)
            found.append(NumberPicture(column, text, plot))
    return found


def _chance(share: float, style: str) -> Bar:
    return Bar(100 * share, percent_text(share), style)
