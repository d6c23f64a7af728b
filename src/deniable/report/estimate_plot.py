"""Estimates as figures: bars or points with intervals, and a heat map for two attributes.

A figure is a function of an answer's plain rows and its caption, as the page is of the record.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from deniable.errors import InputError
from deniable.report.method_styles import (
    BLACK,
    BLUE,
    GREEN,
    LIGHT_GREY,
    ORANGE,
    PURPLE,
    SETTINGS,
    SKY,
    VERMILION,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN = 60
"""Most bars, and most categories of either attribute, in a legible plot."""

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
"""Of the distributions in one plot."""

_WIDTH = 7.0
"""Inches: the text width of a page."""

_LETTER, _COLUMN = 0.085, 0.75
"""Inches: a letter of a category's name, at most, and a column of a heat map."""


def draw_intervals(
    labels: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    *,
    caption: str,
    axis: str,
    in_percent: bool,
    bars: bool,
    logarithmic: bool = False,
) -> "Figure":
    """Draw estimates below each other with their intervals; uncertain ones pale.

    ``axis``: label of the horizontal axis. ``bars``: bars from 0 instead of points.
    ``logarithmic``: logarithmic axis with a line at 1, for ratios.
    """
    if len(rows) > DRAWN:
        raise InputError(f"a plot shows at most {DRAWN} estimates, and these are {len(rows)}")
    if any(isinstance(row["low"], str) for row in rows):
        raise InputError("quantiles that are categories or bins cannot be drawn as numbers")
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    scale = 100.0 if in_percent else 1.0
    with rc_context(SETTINGS):
        figure = Figure(figsize=(_WIDTH, 1.3 + 0.28 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        for place, row in enumerate(rows):
            if row["low"] is None:
                continue
            colour = LIGHT_GREY if row["uncertain"] else BLUE
            if row["estimate"] is not None and bars:
                axes.barh(place, scale * row["estimate"], height=0.6, color=colour, alpha=0.45)
            elif row["estimate"] is not None:
                axes.plot(scale * row["estimate"], place, "o", color=colour, markersize=4)
            ends = scale * row["low"], scale * row["high"]
            wide = row["estimate"] is None
            axes.plot(
                ends, (place, place), color=colour if wide else BLACK, linewidth=3 if wide else 1.2
            )
        axes.set_yticks(range(len(rows)), [_short(label) for label in labels])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(visible=True, axis="x", color="#DDDDDD", linewidth=0.5)
        axes.set_axisbelow(True)
        if logarithmic:
            axes.set_xscale("log")
            low, high = axes.get_xlim()
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 500 * low else (1,)))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.axvline(1, color=BLACK, linewidth=0.6)
        elif bars or _crosses_zero(rows):
            axes.axvline(0, color=BLACK, linewidth=0.6)
        axes.set_xlabel(f"{axis}, %" if in_percent else axis)
        _title(axes, caption, width=74 if logarithmic else 98)
    return figure


def _crosses_zero(rows: Sequence[Mapping[str, Any]]) -> bool:
    known = [row for row in rows if row["low"] is not None]
    return any(row["low"] < 0 for row in known) and any(row["high"] > 0 for row in known)


def draw_distributions(
    groups: Mapping[str, Sequence[Mapping[str, Any]]], *, caption: str, axis: str
) -> "Figure":
    """Draw distribution functions with their bands; dotted the limits for every distribution.

    ``groups``: rows by the name of the group; values are numbers or dates as text.
    """
    if len(groups) > len(COLOURS):
        raise InputError(
            f"a plot shows at most {len(COLOURS)} distributions, and these are {len(groups)}"
        )
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=(_WIDTH, 4.2), layout="constrained")
        axes = figure.add_subplot()
        for (name, rows), colour in zip(groups.items(), COLOURS, strict=False):
            values: list[Any] = [
                date.fromisoformat(row["value"]) if isinstance(row["value"], str) else row["value"]
                for row in rows
            ]
            low, high, lowest, highest, share = (
                [math.nan if row[key] is None else 100 * row[key] for row in rows]
                for key in ("low", "high", "lowest", "highest", "estimate")
            )
            axes.fill_between(values, low, high, color=colour, alpha=0.3, linewidth=0)
            axes.plot(values, share, color=colour, linewidth=1.2, label=name or None)
            for limit in (lowest, highest):
                axes.plot(values, limit, color=colour, linewidth=0.8, linestyle=":")
        if any(groups):
            axes.legend(frameon=False, fontsize=8)
        axes.set_ylim(0, 100)
        axes.grid(visible=True, color="#DDDDDD", linewidth=0.5)
        axes.set_xlabel(axis)
        axes.set_ylabel("share up to it, %")
        _title(axes, caption)
    return figure


def draw_heat_map(
    rows: Sequence[Mapping[str, Any]], down: str, across: str, *, caption: str
) -> "Figure":
    """Draw the shares of two attributes' combinations; uncertain ones in brackets."""
    first = list(dict.fromkeys(row[down] for row in rows))
    second = list(dict.fromkeys(row[across] for row in rows))
    check_size((first, second))
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    shares = [[math.nan] * len(second) for _ in first]
    uncertain = set()
    for row in rows:
        place = first.index(row[down]), second.index(row[across])
        shares[place[0]][place[1]] = math.nan if row["estimate"] is None else 100 * row["estimate"]
        if row["uncertain"]:
            uncertain.add(place)
    largest = max((s for line in shares for s in line if s == s), default=1.0)
    # Names wider than their column are vertical; the figure grows by their length.
    longest = [max(len(_short(name)) for name in names) for names in (first, second)]
    upright = longest[1] * _LETTER > _COLUMN
    with rc_context(SETTINGS):
        size = (
            1.6 + longest[0] * _LETTER + _COLUMN * len(second),
            1.6 + upright * longest[1] * _LETTER + 0.42 * len(first),
        )
        figure = Figure(figsize=(max(size[0], 4.5), size[1]), layout="constrained")
        axes = figure.add_subplot()
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=max(largest, 1e-9), aspect="auto")
        for i, line in enumerate(shares):
            for j, share in enumerate(line):
                text = "–" if math.isnan(share) else f"{share:.1f}"
                axes.text(
                    j,
                    i,
                    f"({text})" if (i, j) in uncertain else text,
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if share > 0.6 * largest else BLACK,
                )
        axes.set_xticks(
            range(len(second)), [_short(name) for name in second], rotation=90 if upright else 0
        )
        axes.set_yticks(range(len(first)), [_short(name) for name in first])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_xlabel(across)
        axes.set_ylabel(down)
        figure.colorbar(image, ax=axes, label="%", pad=0.02)
        note = " In brackets: uncertain." if uncertain else ""
        _title(axes, caption + "." + note, width=int(14 * max(size[0], 4.5)))
    return figure


def check_size(categories: Iterable[Sequence[str]]) -> None:
    """Raise if an attribute has too many categories for a plot."""
    if max(map(len, categories)) > DRAWN:
        raise InputError(f"a plot shows at most {DRAWN} categories of an attribute")


def _short(label: str) -> str:
    return label if len(label) <= 40 else f"{label[:39]}…"


def _title(axes: "Axes", caption: str, width: int = 98) -> None:
    axes.set_title("\n".join(textwrap.wrap(caption, width)), loc="left", fontsize=8)
