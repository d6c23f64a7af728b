"""Where the horizontal bars of a page go; the macro ``bars`` of its templates draws them.

The same numbers are drawn by the same bytes on every machine.
"""

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

_LARGEST_AT = 80.0
"""Per cent of the width that the largest value takes; the rest is for the number after its bar."""

_NAME_LENGTH = 40
"""Characters of a name that fit above its bars on a telephone."""

_LINE_WITHIN = 4.0
"""A line is drawn if it is at most so many times the largest bar: further away it would leave the
bars less than a fifth of the width."""

# Pixels: of a name, from bar to bar, between groups.
_NAME_HEIGHT, _BAR_STEP, _GROUP_GAP = 20, 13, 12


@dataclass(frozen=True)
class Bar:
    """One bar.

    ``value``: its length on the axis, not negative; None is drawn over the whole width.
    """

    value: float | None
    text: str
    style: str


@dataclass(frozen=True)
class Group:
    """The bars of one attribute, under its name."""

    name: str
    bars: Sequence[Bar]

    @property
    def short(self) -> str:
        """The name, cut if it is long."""
        return shortened(self.name)

    @property
    def height(self) -> int:
        """Pixels from its name to the end of its bars."""
        return _NAME_HEIGHT + _BAR_STEP * len(self.bars)

    def placed(self, top: int) -> Iterator[tuple[Bar, int]]:
        """Yield each bar with the pixel at which it starts, if the group starts at ``top``."""
        return zip(self.bars, range(top + _NAME_HEIGHT, top + self.height, _BAR_STEP), strict=True)


@dataclass(frozen=True)
class Line:
    """A vertical line through all groups."""

    value: float
    text: str


@dataclass(frozen=True)
class Plot:
    """One group of bars below the other."""

    groups: Sequence[Group]
    line: Line | None = None
    of: int = 0
    top: ClassVar[int] = 26
    """Pixels above the first name: for the text of the line."""

    @cached_property
    def _largest_bar(self) -> float:
        values = (bar.value for group in self.groups for bar in group.bars)
        return max((value for value in values if value is not None), default=0.0)

    @property
    def drawn_line(self) -> bool:
        """Whether there is a line, and it leaves the bars room."""
        return self.line is not None and self.line.value <= _LINE_WITHIN * self._largest_bar

    @property
    def line_is_right(self) -> bool:
        """Whether the line is in the right half, with its text to the left."""
        assert self.line is not None
        return self.line.value * self._scale > 50

    @property
    def _largest(self) -> float:
        line = self.line.value if self.line is not None and self.drawn_line else 0.0
        return max(self._largest_bar, line)

    @property
    def _scale(self) -> float:
        return _LARGEST_AT / (self._largest or 1.0)

    def at(self, value: float | None) -> str:
        """Return where a value is, in per cent of the width; None is where the largest is."""
        percent = _LARGEST_AT if value is None else value * self._scale
        return f"{percent:.3f}%" if percent else "0"

    @property
    def ticks(self) -> list[float]:
        """The numbers on the axis."""
        return ticks(self._largest)

    @cached_property
    def placed(self) -> list[tuple[Group, int]]:
        """Each group with the pixel at which it starts."""
        found, y = [], self.top
        for group in self.groups:
            found.append((group, y))
            y += group.height + _GROUP_GAP
        return found

    @property
    def bottom(self) -> int:
        """The pixel of the axis."""
        group, y = self.placed[-1]
        return y + group.height + 6


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
