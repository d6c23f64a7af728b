"""Figure 5(c) of Huang and Du: every column of the UCI Adult data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deniable.frontier.priors import Prior
from deniable.schema import Attribute
from deniable_studies.adult import COLUMNS, DOMAINS, Adult, read_adult
from deniable_studies.drawing import grid, legend, scatter_method
from deniable_studies.optrr.fronts import (
    LABELS,
    METHODS,
    Case,
    Comparison,
    Effort,
    always_better,
    better_within_range,
    draw_fronts,
    fronts_rows,
    levels_rows,
    nearest_to_the_bound,
    nothing_below_the_bound,
    ratios,
    search_and_compare,
    summary_rows,
)
from deniable_studies.study import Rows, Setting, Study, Values
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

RANGES: dict[str, tuple[float, float]] = {
    "age": (17, 90),
    "fnlwgt": (12_285, 1_490_400),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "hours-per-week": (1, 99),
}
"""Of the numbers, as the repository describes them."""

N_BINS = 10
RAREST = 0.01
SQUARE_UP_TO = 12
"""Columns of more categories take half the levels and no search for the best square matrix."""

DELTA = 0.75
FULL, QUICK = Effort(10_000, 40, 12, 10), Effort(200, 40, 3, 2)
QUICK_UP_TO = 8
"""A quick run leaves out columns of more categories than this."""

_STREAM = 7


def cases(adult: Adult) -> list[Case]:
    """Return each column's prior and δ, in the order of the files."""
    every = []
    for name in COLUMNS:
        if name in DOMAINS:
            counts = np.bincount(adult.codes[name], minlength=len(DOMAINS[name]))
            labels = [label for label, count in zip(DOMAINS[name], counts, strict=True) if count]
            counts = counts[counts > 0]
        else:
            edges = np.linspace(*RANGES[name], N_BINS + 1)
            inside = np.clip(adult.numbers[name], *RANGES[name])
            labels, counts = joined(edges, np.histogram(inside, edges)[0])
        shares = counts / counts.sum()
        prior = Prior(Attribute(name, tuple(labels)), tuple(shares.tolist()), adult.source)
        every.append(Case(name, prior, delta_for(shares)))
    return every


def delta_for(shares: NDArray[np.float64]) -> float:
    """Return δ: 0.75, or half-way from the largest share to 1 where that is more."""
    return max(DELTA, (1.0 + float(shares.max())) / 2.0)


def joined(
    edges: NDArray[np.float64], counts: NDArray[np.intp]
) -> tuple[list[str], NDArray[np.intp]]:
    """Join the rarest bin with the rarer of its neighbours while it has less than one per cent.

    Args:
        edges: shape (n + 1,).
        counts: how many people each bin has, shape (n,).
    """
    ends, left = list(edges), list(counts)
    least = RAREST * sum(left)
    while len(left) > 2 and min(left) < least:
        at = int(np.argmin(left))
        right = at + 1 < len(left) and (at == 0 or left[at + 1] < left[at - 1])
        first = at if right else at - 1
        left[first : first + 2] = [left[first] + left[first + 1]]
        del ends[first + 1]
    labels = [f"{low:.6g} to {high:.6g}" for low, high in pairwise(ends)]
    return labels, np.array(left)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Everything that the study rests on.

    Args:
        adult: the people.
        effort: spent on each column.
        every: all columns' priors.
        fronts: both fronts and the bound of every column that was taken.
    """

    adult: Adult
    effort: Effort
    every: Sequence[Case]
    fronts: Sequence[Comparison]


def measure(setting: Setting) -> Numbers:
    """Compute both fronts and the bound for every column."""
    assert setting.adult is not None  # the catalogue asks for it
    adult = read_adult(setting.adult)
    effort = QUICK if setting.quick else FULL
    every = cases(adult)
    chosen = [c for c in every if not setting.quick or len(c.prior.shares) <= QUICK_UP_TO]
    fronts = []
    for i, case in enumerate(chosen):
        part = setting.part(i / len(chosen), (i + 1) / len(chosen))
        fronts.append(compare_column(case, effort, part))
    return Numbers(adult, effort, every, fronts)


def compare_column(case: Case, effort: Effort, setting: Setting) -> Comparison:
    """Compute both fronts and the bound for one column."""
    if len(case.prior.shares) > SQUARE_UP_TO:
        effort = replace(effort, n_levels=effort.n_levels // 2, n_starts=0)
    generator = setting.generator(_STREAM, COLUMNS.index(case.name))
    return search_and_compare(case, effort, generator, setting)


def _categories_rows(every: Sequence[Case]) -> Rows:
    return [
        [case.name, label, share]
        for case in every
        for label, share in zip(case.prior.attribute.categories, case.prior.shares, strict=True)
    ]


def _values(n: Numbers) -> Values:
    left_out = sorted(
        {c.name for c in n.every} - {c.case.name for c in n.fronts}, key=COLUMNS.index
    )
    return {
        "adult": n.adult,
        "effort": n.effort,
        "left_out": f"A quick run leaves out the columns of more than {QUICK_UP_TO} categories: "
        f"{', '.join(left_out)}."
        if left_out
        else "",
    }


def _draw_fronts(canvas: "MatplotlibFigure", found: Sequence[Comparison]) -> None:
    n_rows = (len(found) + 2) // 3
    canvas.set_size_inches(8.4, 2.4 * n_rows + 0.6)
    panels = canvas.subplots(n_rows, 3, squeeze=False).ravel()
    for axes, c in zip(panels, found, strict=False):
        draw_fronts(axes, c)
        title = f"{c.case.name}: n = {len(c.case.prior.shares)}, δ = {c.case.delta:.3g}"
        axes.set_title(title, loc="left", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.locator_params(axis="x", nbins=5)
    for axes in panels[len(found) :]:
        axes.set_axis_off()
    canvas.supxlabel("privacy: how often the best guess is wrong", fontsize=9)
    canvas.supylabel("MSE of a share, 10,000 people", fontsize=9)
    legend(canvas, panels[0], ncols=4, loc="outside upper center")


def _draw_medians(canvas: "MatplotlibFigure", found: Sequence[Comparison]) -> None:
    canvas.set_size_inches(7.0, 0.26 * len(found) + 1.4)
    axes = canvas.subplots()
    places = np.arange(len(found))[::-1]
    for method in METHODS:
        values = [ratios(c.levels, method) for c in found]
        medians = [median(v) if v else np.nan for v in values]
        scatter_method(axes, method, medians, places, size=26, label=LABELS.get(method), alpha=1.0)
    axes.set_xscale("log")
    axes.axvline(1.0, color="#000000", linewidth=1.0)
    ticks = [1, 2, 5, 10, 20, 50]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(places, [c.case.name for c in found])
    axes.set_xlabel("median of MSE over the least possible")
    axes.grid(visible=True, color="#DDDDDD", linewidth=0.5)
    grid(axes)
    legend(canvas, axes, ncols=3)


STUDY = Study(
    read_text("optrr/optrr-adult.toml"),
    measure,
    judges={
        "consistently": lambda n: always_better(n.fronts),
        "better-within-range": lambda n: better_within_range(n.fronts),
        "nearest-to-the-bound": lambda n: nearest_to_the_bound(n.fronts),
        "nothing-below-the-bound": lambda n: nothing_below_the_bound(n.fronts),
    },
    figures={
        "fronts": lambda canvas, n: _draw_fronts(canvas, n.fronts),
        "over-the-bound": lambda canvas, n: _draw_medians(canvas, n.fronts),
    },
    tables={
        "summary": lambda n: summary_rows(n.fronts),
        "categories": lambda n: _categories_rows(n.every),
        "levels": lambda n: levels_rows(n.fronts),
        "fronts": lambda n: fronts_rows(n.fronts),
    },
    values=_values,
)
