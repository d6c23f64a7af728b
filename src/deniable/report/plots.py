"""Horizontal bars as inline SVG: no fixed width, so that text stays legible on any screen.

Bars are placed in per cent of the width and text in pixels, and colours come from the page's style
sheet; the same numbers give the same bytes on every machine.
"""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from deniable.report.wording import significant

_LARGEST_AT = 80.0  # per cent of the width; the rest is for the number after the bar
_NAME_HEIGHT = 20
_BAR_HEIGHT = 10
_BAR_STEP = 13
_GROUP_GAP = 12
_TOP = 26
_BOTTOM = 42
_NAME_LENGTH = 40
_FAR = 4.0


@dataclass(frozen=True)
class Bar:
    """One bar.

    Args:
        value: its length on the axis, not negative; None is drawn over the whole width.
        text: what is written after it.
        style: a class of the style sheet.
    """

    value: float | None
    text: str
    style: str


@dataclass(frozen=True)
class Group:
    """The bars of one attribute, under its name."""

    name: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Line:
    """A vertical line through all groups."""

    value: float
    text: str


def shortened(name: str, width: int = _NAME_LENGTH) -> str:
    """Return a name cut to a width in characters, wide ones counted twice."""
    used = 0
    for position, character in enumerate(name):
        used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > width:
            return name[:position].rstrip() + "…"
    return name


def ticks(largest: float, at_most: int = 6) -> list[float]:
    """Return round numbers from 0 up to the largest value, steps of 1, 2 or 5 times a power of 10.

    The last one is not above ``largest``.
    """
    if largest <= 0:
        return [0.0]
    rough = largest / (at_most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-12))
    return [j * step for j in range(math.floor(largest / step * (1 + 1e-12)) + 1)]


def line_fits(groups: Sequence[Group], line: Line) -> bool:
    """Whether a line can be drawn without squeezing the bars."""
    return line.value <= _FAR * _largest(groups)


def horizontal_bars(
    groups: Sequence[Group], *, axis: str, description: str, line: Line | None = None
) -> str:
    """Return an ``<svg>`` element with one group of bars below the other.

    Args:
        groups: at least one, each with at least one bar.
        axis: what the axis shows, with its unit.
        description: the plot in words, for those who cannot see it.
        line: drawn only if it does not squeeze the bars (see :func:`line_fits`).
    """
    largest = _largest(groups)
    if line is not None:
        if line_fits(groups, line):
            largest = max(largest, line.value)
        else:
            line = None
    scale = _LARGEST_AT / (largest or 1.0)
    body: list[str] = []
    y = _TOP
    for group in groups:
        body.append(_text(0, y + 13, shortened(group.name), "name", title=group.name))
        y += _NAME_HEIGHT
        for bar in group.bars:
            body.append(_bar(bar, y, scale))
            y += _BAR_STEP
        y += _GROUP_GAP
    bottom = y - _GROUP_GAP + 6
    marks = ticks(largest)
    grid = [_vertical(mark * scale, _TOP - 4, bottom, "grid") for mark in marks]
    labels = [
        _text(mark * scale, bottom + 15, _tick_text(mark), "tick", anchor="middle" if mark else "")
        for mark in marks
    ]
    labels.append(_text(0, bottom + 33, axis, "axis"))
    if line is not None:
        at = line.value * scale
        body.append(_vertical(at, _TOP - 6, bottom, "line"))
        anchor = "end" if at > 50 else ""
        body.append(_text(at, _TOP - 12, line.text, "mark", anchor=anchor))
    words = escape(description, quote=True)
    return (
        f'<svg class="plot" role="img" aria-label="{words}" width="100%" '
        f'height="{bottom + _BOTTOM}">\n' + "\n".join([*grid, *body, *labels]) + "\n</svg>"
    )


def _largest(groups: Sequence[Group]) -> float:
    return max((b.value for g in groups for b in g.bars if b.value is not None), default=0.0)


def _tick_text(mark: float) -> str:
    return significant(mark, 6)


def _at(percent: float) -> str:
    return f"{percent:.3f}%" if percent else "0"


def _bar(bar: Bar, y: int, scale: float) -> str:
    length = _LARGEST_AT if bar.value is None else bar.value * scale
    style = bar.style if bar.value is not None else f"{bar.style} endless"
    return (
        f'<rect class="{style}" x="0" y="{y}" width="{_at(length)}" height="{_BAR_HEIGHT}"/>'
        + _text(length, y + _BAR_HEIGHT - 1, bar.text, "value", shift=6)
    )


def _vertical(at: float, top: int, bottom: int, style: str) -> str:
    return f'<line class="{style}" x1="{_at(at)}" x2="{_at(at)}" y1="{top}" y2="{bottom}"/>'


def _text(
    at: float,
    y: int,
    text: str,
    style: str,
    *,
    anchor: str = "",
    shift: int = 0,
    title: str = "",
) -> str:
    attributes = f'class="{style}" x="{_at(at)}" y="{y}"'
    if anchor:
        attributes += f' text-anchor="{anchor}"'
    if shift:
        attributes += f' dx="{shift}"'
    hint = f"<title>{escape(title)}</title>" if title and title != text else ""
    return f"<text {attributes}>{hint}{escape(text)}</text>"
