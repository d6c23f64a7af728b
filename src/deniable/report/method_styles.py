"""Styles of methods in figures, and figures as bytes.

Colours of Okabe and Ito, distinguishable with any colour vision; every method also has its own
marker and line for black-and-white prints. Equal numbers give equal bytes.
"""

import io
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 200
"""Dots per inch of a PNG: enough for print at half the size, and small."""

SETTINGS: Any = {
    "svg.hashsalt": "deniable",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
}
"""For ``matplotlib.rc_context`` around everything that draws."""


@dataclass(frozen=True)
class MethodStyle:
    """A method's name in legends, and its look."""

    label: str
    colour: str
    marker: str
    line: str


BLACK, GREY, LIGHT_GREY = "#000000", "#777777", "#999999"
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"


def figure_bytes(figure: "Figure", kind: str) -> bytes:
    """Return a figure as ``png`` or ``svg``, without a date in it."""
    target = io.BytesIO()
    metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a box replaces missing glyphs
        figure.savefig(target, format=kind, dpi=DPI, metadata=metadata)
    return target.getvalue()


def png_and_svg(figure: "Figure") -> tuple[bytes, bytes]:
    """Return a figure as both, laid out once."""
    png = figure_bytes(figure, "png")
    figure.set_layout_engine("none")
    return png, figure_bytes(figure, "svg")
