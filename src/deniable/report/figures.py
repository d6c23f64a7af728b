"""Plots of a release's page: levels and errors."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from deniable.report.contents import Contents
from deniable.report.plots import Bar, Group, Line, Plot
from deniable.report.wording import epsilon_text, points_text

PLOTTED = 24
"""Most attributes in a plot; beyond them the table is easier to read."""

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
