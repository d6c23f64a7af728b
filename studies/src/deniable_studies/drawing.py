"""Plots of the studies: the same style for the same method in every figure."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from deniable.frontier.methods import METHODS as MATRIX_METHODS
from deniable.report.method_styles import (
    BLUE,
    DPI,
    GREY,
    LIGHT_GREY,
    SETTINGS,
    SKY,
    MethodStyle,
    png_and_svg,
)
from deniable.statement.methods import METHODS
from deniable_studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

STYLES: dict[str, MethodStyle] = {
    **{name: method.style for name, method in MATRIX_METHODS.items()},
    **{spec.name: MethodStyle(spec.label, *spec.style) for spec in METHODS.values()},
    # variants of this project's methods, and published alternatives
    "heuristic": MethodStyle("heuristic, at the levels it achieves", BLUE, "^", "--"),
    "heuristic-requested": MethodStyle("heuristic, at the levels requested", SKY, "v", ":"),
    "rsfd": MethodStyle("RS+FD", LIGHT_GREY, "X", ":"),
    "smp": MethodStyle("SMP, one attribute each", GREY, "+", "--"),
    "smp-subset": MethodStyle("SMP, subset selection", GREY, "1", "-"),
    "pair-subset": MethodStyle("one random pair each", GREY, "2", ":"),
    "m-of-k": MethodStyle("the best number of questions each", LIGHT_GREY, "3", "-"),
    "privunit": MethodStyle("PrivUnit", LIGHT_GREY, "4", "-."),
    "forms-shares": MethodStyle("forms, shares alone", BLUE, "^", "-"),
    "limit": MethodStyle("no mechanism is above", "#000000", "", ":"),
    "spl": MethodStyle("SPL", LIGHT_GREY, "x", ":"),
}
"""Style of every method: of designs, of single attributes, and of published alternatives."""

BAND = 0.18
"""Opacity of an interval drawn as a band."""


def render(figure: Figure) -> tuple[bytes, bytes]:
    """Return a figure as PNG and as SVG."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as MatplotlibFigure

    with rc_context(SETTINGS):
        canvas = MatplotlibFigure(figsize=figure.size, layout="constrained", dpi=DPI)
        figure.draw(canvas)
        return png_and_svg(canvas)


def plot_method(
    axes: "Axes",
    method: str,
    x: ArrayLike,
    y: ArrayLike,
    *,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    label: str | None = None,
    markers: int = 12,
    **more: Any,
) -> None:
    """Draw a method's curve in its own colour, marker and line.

    Args:
        axes: where.
        method: a key of ``STYLES``.
        x: horizontal positions, rising, shape (n,).
        y: values, shape (n,); NaN leaves a gap.
        low: lower ends of an interval, drawn as a band with ``high``; shape (n,).
        high: upper ends.
        label: for the legend; by default the method's own. A label that begins with "_" is not
            listed.
        markers: approximate number of markers along the curve.
        more: passed on to ``plot``.
    """
    style = STYLES[method]
    n = len(np.atleast_1d(np.asarray(x)))
    shown: dict[str, Any] = {
        "color": style.colour,
        "marker": style.marker,
        "linestyle": style.line or "none",
        "linewidth": 1.3,
        "markersize": 4,
        "markevery": max(1, n // markers),
        "label": style.label if label is None else label,
    }
    axes.plot(x, y, **(shown | more))
    if low is not None and high is not None:
        axes.fill_between(x, low, high, color=style.colour, alpha=BAND, linewidth=0)


def scatter_method(
    axes: "Axes",
    method: str,
    x: ArrayLike,
    y: ArrayLike,
    *,
    label: str | None = None,
    size: float = 7,
    **more: Any,
) -> None:
    """Draw a method's single draws as points in its own colour and marker."""
    style = STYLES[method]
    shown: dict[str, Any] = {
        "color": style.colour,
        "marker": style.marker,
        "s": size,
        "linewidths": 0.6,
        "alpha": 0.75,
        "label": style.label if label is None else label,
    }
    axes.scatter(x, y, **(shown | more))


def grid(axes: "Axes") -> None:
    """Draw a light horizontal grid behind everything."""
    axes.grid(visible=True, axis="y", color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)


def letter(axes: Iterable["Axes"], titles: Sequence[str]) -> None:
    """Title the panels of a figure: (a) …, (b) …"""
    for i, (panel, title) in enumerate(zip(axes, titles, strict=True)):
        panel.set_title(f"({chr(ord('a') + i)}) {title}", loc="left", fontsize=9)


def legend(canvas: "MatplotlibFigure", panel: "Axes", ncols: int, **more: Any) -> None:
    """Put the legend of a panel below the figure."""
    shown: dict[str, Any] = {"loc": "outside lower center", "ncols": ncols}
    canvas.legend(*panel.get_legend_handles_labels(), **(shown | more))
