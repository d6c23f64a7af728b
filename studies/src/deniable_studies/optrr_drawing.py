"""Figures and tables of fronts: error over privacy with what no mechanism can reach, and ratios."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deniable.solvers.matrices.search import Matrices
from deniable_studies.drawing import grid, plot_method
from deniable_studies.optrr import N_RECORDS, Comparison, Level, beaten, ratios
from deniable_studies.study import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS = ("warner", "search", "square")
PRIVACY = "privacy: how often the best guess is wrong"
ERROR = f"MSE of a share, {N_RECORDS:,} people"
LABELS = {"square": "best square matrix", "bound": "least possible"}

# The plot ends where the errors are so many times the largest bound shown.
_TOP = 8.0
_MARKERS = 22


def draw_fronts(axes: "Axes", comparison: Comparison) -> None:
    """Draw Warner's front and the search's over privacy; grey is where no mechanism can be."""
    levels = comparison.levels
    xs = [level.privacy for level in levels]
    bound = [level.bound / N_RECORDS for level in levels]
    axes.set_yscale("log")
    least = float(comparison.warner.record_mse[0]) / N_RECORDS
    lowest, highest = 0.6 * min(bound), max(_TOP * max(bound), 1.5 * least)
    # The bound rises with privacy: between two levels the lower one's is what has been proved.
    axes.fill_between(xs, bound, lowest, step="post", color="#E8E8E8", linewidth=0, zorder=0)
    plot_method(
        axes, "bound", xs, bound, label=LABELS["bound"], marker=".", markersize=4, markevery=1
    )
    square = [(level.privacy, level.square) for level in levels if level.square is not None]
    if square:
        plot_method(
            axes,
            "square",
            [x for x, _ in square],
            [y / N_RECORDS for _, y in square],
            label=LABELS["square"],
            linewidth=0.9,
        )
    for method, front in (("warner", comparison.warner), ("search", comparison.search)):
        plot_method(
            axes, method, front.privacy, front.record_mse / N_RECORDS, markers=_MARKERS,
            markersize=3.2,
        )  # fmt: skip
    axes.set_ylim(lowest, highest)
    low, high = 1.0 - comparison.case.delta, comparison.case.most_private
    axes.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    tick_errors(axes)
    grid(axes)


def tick_errors(axes: "Axes") -> None:
    """Label a logarithmic axis of errors at 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullLocator

    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(
        LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(math.inf, math.inf))
    )
    axes.yaxis.set_minor_locator(NullLocator())


def draw_ratios(axes: "Axes", levels: Sequence[Level]) -> None:
    """Draw each method's error over the least possible at the levels of the bound."""
    axes.set_yscale("log")
    axes.axhline(1.0, color="#000000", linewidth=1.3)
    for method in METHODS:
        points = [(level.privacy, getattr(level, method), level.bound) for level in levels]
        found = [(x, error / bound) for x, error, bound in points if error is not None]
        if found:
            plot_method(
                axes, method, [x for x, _ in found], [y for _, y in found],
                label=LABELS.get(method), markersize=3.2,
            )  # fmt: skip
    axes.set_ylim(0.9, 40)
    axes.set_yticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
    axes.minorticks_off()
    grid(axes)


def fronts_table(comparisons: Sequence[Comparison]) -> Table:
    """Return every point of both fronts."""
    rows: list[list[Cell]] = []
    for comparison in comparisons:
        fronts: list[tuple[str, Matrices]] = [
            ("warner", comparison.warner),
            ("search", comparison.search),
        ]
        for method, front in fronts:
            for privacy, error in zip(front.privacy, front.record_mse, strict=True):
                rows.append(
                    [
                        comparison.case.name,
                        comparison.case.delta,
                        method,
                        float(privacy),
                        float(error) / N_RECORDS,
                    ]
                )
    return Table(
        "fronts",
        f"Every matrix of both fronts: its privacy and the mean squared error of a share that is "
        f"estimated by inversion from {N_RECORDS:,} answers.",
        ["case", "delta", "method", "privacy", "mse"],
        rows,
    )


def levels_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the bound at each level, and each method's error over it."""
    rows: list[list[Cell]] = []
    for comparison in comparisons:
        for level in comparison.levels:
            errors = [getattr(level, method) for method in METHODS]
            rows.append(
                [
                    comparison.case.name,
                    comparison.case.delta,
                    level.privacy,
                    level.bound / N_RECORDS,
                    *(None if error is None else error / level.bound for error in errors),
                ]
            )
    return Table(
        "levels",
        "At levels of privacy: the least mean squared error that any mechanism can have, and how "
        "many times that the best matrix of each method has that is at least so private. Empty "
        "where it has none.",
        ["case", "delta", "privacy", "bound_mse", *(f"{method}_ratio" for method in METHODS)],
        rows,
    )


def summary_table(comparisons: Sequence[Comparison]) -> Table:
    """Return one row per case: ranges, how many of Warner's points are beaten, ratios."""
    rows: list[list[Cell]] = []
    for comparison in comparisons:
        found = beaten(comparison.warner, comparison.search)
        rows.append(
            [
                comparison.case.name,
                len(comparison.case.prior.shares),
                comparison.case.delta,
                float(comparison.warner.privacy[0]),
                float(comparison.search.privacy[0]),
                comparison.case.most_private,
                found.n_points,
                found.n_beaten,
                found.median_ratio,
                *(_median(ratios(comparison.levels, method)) for method in METHODS),
            ]
        )
    return Table(
        "summary",
        "Least privacy of both fronts and the most there can be (1 less the largest share); how "
        "many points of Warner's front the search's front beats; the median over these points of "
        "the search's error over Warner's; and the median over the levels of each method's error "
        "over the least possible.",
        [
            "case", "n_categories", "delta", "warner_least_privacy", "search_least_privacy",
            "most_privacy", "warner_points", "beaten", "search_over_warner",
            *(f"{method}_over_bound" for method in METHODS),
        ],
        rows,
    )  # fmt: skip


def _median(values: Sequence[float]) -> float | None:
    ordered = sorted(values)
    if not ordered:
        return None
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


FRONT_CAPTION = (
    "Mean squared error of an estimated share (10,000 people, inversion) over privacy, on a "
    "logarithmic axis. Circles: Warner's front of 1,001 matrices. Diamonds: the matrices of one "
    "run of the search. Black: the least error that any mechanism can have, which one has, at the "
    "levels marked, joined by a line to guide the eye; grey: where none can be, as proved at these "
    "levels. Errors are computed and not "
    "simulated, so that there is no interval."
)
RATIO_CAPTION = (
    "Mean squared error over the least possible, at levels of privacy; 1 is the bound. A curve "
    "ends where the method has no matrix that is private enough."
)
