"""Figure of a frontier: error over privacy, above the region that is proven impossible."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from deniable.report.method_styles import SETTINGS, MethodStyle, png_and_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 7.0, 4.6
"""Inches: the text width of a page, and about two thirds of that."""


@dataclass(frozen=True)
class Curve:
    """One method's points."""

    style: MethodStyle
    points: Sequence[tuple[float, float]]
    attains_bound: bool = False


def excluded(
    bounds: Sequence[tuple[float, float]], silent: float | None
) -> list[tuple[float, float]]:
    """Return the upper edge of the impossible region, as corners of steps.

    A bound holds for every mechanism at least as private as its level: between two levels the bound
    of the less private one holds, and a straight line would exclude existing mechanisms.
    """
    if silent is None:
        return [(x, bound) for (left, _), (right, bound) in pairwise(bounds) for x in (left, right)]
    levels = [*(level for level, _ in bounds), max(silent, bounds[-1][0])]
    return [
        (x, bound) for (_, bound), ends in zip(bounds, pairwise(levels), strict=True) for x in ends
    ]


def draw(
    curves: Sequence[Curve],
    bounds: Sequence[tuple[float, float]],
    *,
    x_label: str,
    y_label: str,
    title: str,
    exact: bool,
    silent: float | None,
) -> tuple[bytes, bytes]:
    """Draw a frontier.

    ``silent``: privacy of a mechanism without answers; None if the horizontal axis shows ε.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        _draw_axes(axes, over_epsilon=silent is None)
        if len(bounds) > 1:
            _draw_excluded(axes, bounds, silent)
        if silent is not None:
            _draw_silent(axes, silent)
        if not exact:
            _draw_bound(axes, bounds)
        for curve in curves:
            _draw_curve(axes, curve)
        errors = [error for points in (bounds, *(c.points for c in curves)) for _, error in points]
        axes.set_ylim(_floor(bounds), 1.3 * max(errors))
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_title(title, loc="left", fontsize=9)
        axes.legend(loc="upper right" if silent is None else "upper left", handlelength=2.6)
        return png_and_svg(figure)


def _floor(bounds: Sequence[tuple[float, float]]) -> float:
    """Return where the vertical axis starts: on a logarithmic one, a little below every bound."""
    return 0.5 * min(bound for _, bound in bounds)


def _draw_axes(axes: "Axes", *, over_epsilon: bool) -> None:
    """Scale the axes: errors, and ε, span orders of magnitude; privacy does not."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    axes.grid(visible=True, axis="y", color="#DDDDDD", linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)
    axes.margins(x=0.02)
    if over_epsilon:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _draw_excluded(
    axes: "Axes", bounds: Sequence[tuple[float, float]], silent: float | None
) -> None:
    """Shade and label the impossible region."""
    edge = excluded(bounds, silent)
    axes.fill_between(
        [x for x, _ in edge],
        [y for _, y in edge],
        _floor(bounds),
        color="#E8E8E8",
        linewidth=0,
        zorder=0,
    )
    # In fractions of the axes: the bound rises with privacy and falls with ε.
    axes.text(
        0.5 if silent is not None else 0.3,
        0.06,
        "no mechanism can be here",
        transform=axes.transAxes,
        ha="center",
        va="center",
        color="#555555",
    )


def _draw_silent(axes: "Axes", silent: float) -> None:
    """Mark the privacy of giving no answer at all."""
    axes.axvline(silent, color="#777777", linewidth=0.8, linestyle=(0, (1, 2)))
    axes.annotate(
        "no answer at all",
        (silent, 0.2),
        (-4, 0),
        xycoords=axes.get_xaxis_transform(),
        textcoords="offset points",
        rotation=90,
        ha="right",
        va="center",
        color="#777777",
        fontsize=7.5,
    )


def _draw_bound(axes: "Axes", bounds: Sequence[tuple[float, float]]) -> None:
    """Draw a bound that no curve of a method attains."""
    xs, ys = zip(*bounds, strict=True)
    axes.plot(xs, ys, color="#000000", linewidth=1.2, label="proven lower bound")


def _draw_curve(axes: "Axes", curve: Curve) -> None:
    style = curve.style
    axes.plot(
        [x for x, _ in curve.points],
        [y for _, y in curve.points],
        color=style.colour,
        marker=style.marker or ("." if len(curve.points) == 1 else ""),
        linestyle=style.line or "none",
        linewidth=1.6 if curve.attains_bound else 1.0,
        markersize=3.6,
        markeredgewidth=0.7,
        markevery=max(1, len(curve.points) // 20),
        label=style.label,
        zorder=2 if curve.attains_bound else 3,
        clip_on=False,
    )
