"""The figures of the study ``privacy-levels``."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from deniable_studies.drawing import STYLES, grid
from deniable_studies.record_levels import ATTRIBUTES, Instance, draw_excess, draw_levels
from deniable_studies.two_attributes import ratio_to_sum

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


class _Threshold(Protocol):
    @property
    def achieved(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def requested(self) -> float | None: ...


def draw_levels_panels(canvas: "MatplotlibFigure", draws: dict[int, list[Instance]]) -> None:
    """Draw Figure 1."""
    draw_levels(canvas, draws, lambda i: i.sum_achieved, "Σ ε_i achieved (nats)")


def draw_excess_panels(canvas: "MatplotlibFigure", draws: dict[int, list[Instance]]) -> None:
    """Draw Figure 2."""
    draw_excess(canvas, draws, lambda i: i.sum_achieved, lambda i: i.sum_requested, "Σ ε_i (nats)")


def best_factor(values: Mapping[int, float], shape: Mapping[int, float]) -> float:
    """Return c for which the relative errors c·shape/value − 1 have the least sum of squares."""
    ratios = np.array([shape[k] / values[k] for k in values])
    return float(ratios.sum() / (ratios @ ratios))


def draw_thresholds(canvas: "MatplotlibFigure", found: Mapping[int, _Threshold]) -> None:
    """Draw the thresholds over k with the two shapes through them."""
    axes = canvas.subplots()
    for method, label in (
        ("heuristic", "at the levels it achieves"),
        ("heuristic-requested", "at the levels requested"),
    ):
        style = STYLES[method]
        points = {k: t.achieved if method == "heuristic" else t.requested for k, t in found.items()}
        seen = {k: value for k, value in points.items() if value is not None}
        axes.plot(
            list(seen),
            list(seen.values()),
            linestyle="none",
            marker=style.marker,
            color=style.colour,
            label=label,
        )
    for k, t in found.items():
        if t.low is not None and t.high is not None:
            axes.plot([k, k], [t.low, t.high], color=STYLES["heuristic"].colour, lw=0.9)
    fitted = {k: t.achieved for k, t in found.items() if k in ATTRIBUTES and t.achieved is not None}
    if len(fitted) > 1:
        ks = np.linspace(min(found), max(found), 100)
        for line, label, shape in (
            ("-", "c·k ln k", lambda k: k * math.log(k)),
            (":", "c·k", float),
        ):
            c = best_factor(fitted, {k: shape(k) for k in fitted})
            axes.plot(ks, [c * shape(k) for k in ks], line, color="#777777", lw=1, label=label)
    axes.set_xlabel("attributes k")
    axes.set_ylabel("threshold of Σ ε_i (nats)")
    axes.set_xticks(list(found))
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")
    grid(axes)


def draw_two_attributes(canvas: "MatplotlibFigure") -> None:
    """Draw the optimum's ratio to the sum for two attributes at equal levels."""
    axes = canvas.subplots()
    for (m, n), line in (((2, 2), ":"), ((5, 5), "-"), ((5, 10), "-."), ((15, 15), "--")):
        meeting = math.log((m - 1) * (n - 1)) / 2
        levels = np.sort([*np.linspace(0.02, 8, 400), *([meeting] if meeting > 0 else [])])
        ratio = [ratio_to_sum((m, n, level, level))[0] for level in levels.tolist()]
        axes.plot(levels, ratio, line, color="#000000", lw=1.2, label=f"{m} × {n} categories")
        if meeting > 0:
            axes.plot(meeting, 1.0, "o", color="#D55E00", markersize=4)
    axes.set_xlabel("ε_1 = ε_2 (nats)")
    axes.set_ylabel("ε of the optimum / (ε_1 + ε_2)")
    axes.set_ylim(0.5, 1.02)
    canvas.legend(loc="outside lower center", ncols=4, fontsize=8)
    grid(axes)
