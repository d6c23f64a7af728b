"""Plots of a release's page: levels, errors, and the cost of caps."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from deniable.numerals import significant
from deniable.report.contents import CapCost, Comparison, Contents
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


def cost_plot(contents: Contents) -> Plot | None:
    """Return the cost of each cap on ε given the rest: ε of the row, or rows under forms."""
    comparison = contents.comparison
    if comparison is None or not comparison.curve:
        return None
    if (free := without_cap(comparison)) is not None:
        return Plot([_rows_needed(comparison, point, free) for point in comparison.curve])
    bound = contents.mechanism.epsilon_lower_bound
    return Plot(
        [_level(comparison, point) for point in comparison.curve],
        None if bound is None else Line(bound, f"smallest possible {epsilon_text(bound)}"),
    )


def without_cap(comparison: Comparison) -> CapCost | None:
    """Return the point without a cap, where costs of caps are in rows."""
    points = comparison.curve or []
    return next((p for p in points if p.cap == "none" and p.shares is not None), None)


def _level(comparison: Comparison, point: CapCost) -> Group:
    chosen = point.cap == comparison.chosen_cap
    name = "no cap" if point.cap == "none" else f"at most {point.cap} its own ε"
    bar = Bar(point.epsilon, epsilon_text(point.epsilon), "rest" if chosen else "alone")
    return Group(name + " (this release)" * chosen, (bar,))


def _rows_needed(comparison: Comparison, point: CapCost, free: CapCost) -> Group:
    if point.cap == "none":
        name = "no cap"
    else:
        units = {"e": " (e: ε of the row)", "x": " its own ε"}
        unit = units.get(point.cap[-1], " nats")
        name = f"at most {point.cap}{unit}"
    bars = [
        Bar(value / least, f"{what}: {significant(value / least, 2)} times", style)
        for what, value, least, style in (
            ("shares", point.shares, free.shares, "alone"),
            ("tables of two", point.pairs, free.pairs, "rest"),
        )
        if value is not None and least is not None
    ]
    return Group(name + " (this release)" * (point.cap == comparison.chosen_cap), bars)
