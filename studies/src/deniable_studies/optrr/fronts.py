"""Fronts of square matrices and the exact bound, for all studies of Huang and Du, section VI.

A point of a front is a matrix's privacy (how often the best guess of one answer is wrong) and the
mean squared error of the shares that are estimated from its answers, both at one prior.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from deniable.frontier.priors import Prior
from deniable.frontier.tracing import Request, trace
from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices import response, schemes, search, spea2
from deniable.solvers.matrices.search import Matrices
from deniable_studies.drawing import grid, legend, letter, plot_method
from deniable_studies.study import Judged, Rows, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

N_RECORDS = 10_000
"""Huang and Du, section VI.C."""

WARNER_STEPS = 1_000
"""p from 0 to 1 by 0.001 (section VI.B)."""

# Privacy is a sum of products: of two values nearer than this none is the more private.
_EQUAL = 1e-12
# Margin of the bound's privacy values at both ends, as a part of the possible range.
_MARGIN = 0.02
# A bound holds to rounding; the mechanism that attains it comes as near as this.
_ROUNDING = 1e-9
_MOST_OF = 0.9


@dataclass(frozen=True)
class Effort:
    """How much is spent on one prior and one δ.

    Args:
        generations: of the search.
        population: its population and its archive.
        n_levels: levels of privacy at which the bound is computed.
        n_starts: of the search for the best square matrix at each level.
    """

    generations: int
    population: int
    n_levels: int
    n_starts: int


@dataclass(frozen=True)
class Case:
    """A prior and a worst posterior.

    Args:
        name: for tables and titles.
        prior: of the attribute.
        delta: δ, the worst posterior allowed.
    """

    name: str
    prior: Prior
    delta: float

    @property
    def shares(self) -> FloatArray:
        """p, shape (n,)."""
        return np.array(self.prior.shares)

    @property
    def most_private(self) -> float:
        """1 − max p: the error of the best guess from the prior alone."""
        return 1.0 - max(self.prior.shares)


@dataclass(frozen=True)
class Level:
    """The least errors at one level of privacy, per record (N·MSE); None where there is no matrix.

    Args:
        privacy: least requested privacy.
        bound: no mechanism of any number of answers has a smaller error.
        warner, search, square: of the best matrix of each that is private enough.
    """

    privacy: float
    bound: float
    warner: float | None
    search: float | None
    square: float | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Both fronts and the bound for one case.

    Args:
        case: the experiment.
        warner: Warner's front, by rising privacy.
        search: the front of the search, by rising privacy.
        levels: by rising privacy.
    """

    case: Case
    warner: Matrices
    search: Matrices
    levels: Sequence[Level]


@dataclass(frozen=True)
class Beaten:
    """How many points of Warner's front the search's front beats.

    Args:
        n_points: of Warner's front.
        n_beaten: a matrix of the search is at least as private and errs less.
        n_beyond: of the others, those more private than any matrix of the search.
        n_common: points in the range of privacy that both fronts reach.
        n_common_beaten: of these, those that are beaten.
        median_ratio: median over the points that are not beyond the search of the search's error
            over Warner's; None if there are none.
    """

    n_points: int
    n_beaten: int
    n_beyond: int
    n_common: int
    n_common_beaten: int
    median_ratio: float | None

    @property
    def fraction(self) -> float:
        """Of Warner's points, those that are beaten."""
        return self.n_beaten / self.n_points

    @property
    def n_left(self) -> int:
        """How many are not beaten."""
        return self.n_points - self.n_beaten


def warner_front(prior: FloatArray, delta: float) -> Matrices:
    """Return the matrices of Warner's sweep that keep δ and that no other dominates.

    Source: Huang and Du, section VI.B. p = 1/n, a uniform answer, is left out: nothing can be
    estimated from it.
    """
    n = len(prior)
    truths = [k / WARNER_STEPS for k in range(WARNER_STEPS + 1)]
    matrices = np.stack([schemes.warner(n, p) for p in truths if abs(n * p - 1.0) > 1e-9])
    matrices = matrices[response.worst_posterior(matrices, prior) <= delta + _EQUAL]
    return _front(matrices, prior)


def search_front(
    prior: FloatArray,
    delta: float,
    effort: Effort,
    generator: np.random.Generator,
    setting: Setting | None = None,
) -> Matrices:
    """Return the front of the evolutionary search of Huang and Du, by rising privacy.

    Args:
        prior: p, shape (n,).
        delta: δ.
        effort: generations and sizes.
        generator: draws everything.
        setting: for its progress callback.
    """
    options = search.Options(
        population_size=effort.population,
        archive_size=effort.population,
        max_generations=effort.generations,
    )

    def advance(generation: search.Generation) -> None:
        if setting is not None and generation.number % 25 == 0:
            setting.advance(generation.number / effort.generations)

    with threadpool_limits(1):
        found = search.search(
            prior, generator, most_posterior=delta, options=options, on_generation=advance
        )
    return _front(found.front.matrices, prior)


def _front(matrices: FloatArray, prior: FloatArray) -> Matrices:
    privacy = np.round(response.privacy(matrices, prior), 12)
    errors = response.record_mse(matrices, prior)
    return Matrices(matrices, privacy, errors).take(spea2.non_dominated(privacy, errors))


def at_level(front: Matrices, privacy: float) -> int | None:
    """Return which matrix of a front errs least among those that are private enough, or None."""
    enough = np.flatnonzero(front.privacy >= privacy - _EQUAL)
    return int(enough[np.argmin(front.record_mse[enough])]) if len(enough) else None


def beaten(warner: Matrices, found: Matrices) -> Beaten:
    """Compare the search's front with each point of Warner's."""
    best = np.array([_least(found, level) for level in warner.privacy])
    wins = best < warner.record_mse
    reached = np.isfinite(best)
    ratios = (best[reached] / warner.record_mse[reached]).tolist()
    low, high = common_range(warner, found)
    common = (warner.privacy >= low - _EQUAL) & (warner.privacy <= high + _EQUAL)
    return Beaten(
        len(warner),
        int(wins.sum()),
        int((~reached).sum()),
        int(common.sum()),
        int((common & wins).sum()),
        median(ratios) if len(ratios) else None,
    )


def common_range(warner: Matrices, found: Matrices) -> tuple[float, float]:
    """Return the range of privacy that both fronts reach; empty if the first is above the second.

    Section VI.A compares fronts "within a privacy range".
    """
    return (
        float(max(warner.privacy[0], found.privacy[0])),
        float(min(warner.privacy[-1], found.privacy[-1])),
    )


def _least(front: Matrices, privacy: float) -> float:
    place = at_level(front, privacy)
    return float("inf") if place is None else float(front.record_mse[place])


def levels_of(case: Case, n_levels: int) -> tuple[float, ...]:
    """Return levels from 1 − δ to 1 − max p, a fiftieth off both ends."""
    low, high = 1.0 - case.delta, case.most_private
    margin = _MARGIN * (high - low)
    return tuple(np.linspace(low + margin, high - margin, n_levels).tolist())


def search_and_compare(
    case: Case, effort: Effort, generator: np.random.Generator, setting: Setting
) -> Comparison:
    """Search with draws of the generator, and compare; see :func:`compare`."""
    found = search_front(case.shares, case.delta, effort, generator, setting.part(0.0, 0.7))
    return compare(case, effort, found, setting.part(0.7, 1.0))


def compare(case: Case, effort: Effort, found: Matrices, setting: Setting) -> Comparison:
    """Compute Warner's front and the bound for the search's front.

    Args:
        case: prior and δ.
        effort: how much to spend; without starts no square matrix is looked for.
        found: the search's front.
        setting: seed and progress.
    """
    methods = ("warner", "square", "bound") if effort.n_starts else ("warner", "bound")
    request = Request(
        case.prior,
        levels_of(case, effort.n_levels),
        most_posterior=case.delta,
        methods=methods,
        n_records=N_RECORDS,
        n_starts=max(1, effort.n_starts),
        seed=setting.seed,
    )
    traced = trace(request, setting.advance)
    errors = {(row.method, row.level): row.mse for row in traced.rows}
    levels = []
    for row in traced.rows:
        if row.method != "bound":
            continue
        place = at_level(found, row.level)
        levels.append(
            Level(
                row.level,
                row.lower_bound * N_RECORDS,
                _per_record(errors.get(("warner", row.level))),
                None if place is None else float(found.record_mse[place]),
                _per_record(errors.get(("square", row.level))),
            )
        )
    return Comparison(case, warner_front(case.shares, case.delta), found, levels)


def _per_record(error: float | None) -> float | None:
    return None if error is None else error * N_RECORDS


def ratios(levels: Sequence[Level], method: str) -> list[float]:
    """Return a method's error over the bound at the levels where it has a matrix."""
    errors = [(getattr(level, method), level.bound) for level in levels]
    return [error / bound for error, bound in errors if error is not None]


# Judges of claims of several experiments.


def beaten_by_case(comparisons: Sequence[Comparison]) -> dict[str, Beaten]:
    """Return how many points are beaten, by the case's name."""
    return {c.case.name: beaten(c.warner, c.search) for c in comparisons}


def always_better(comparisons: Sequence[Comparison]) -> Judged:
    """Judge whether the search beats Warner everywhere."""
    counts = beaten_by_case(comparisons)
    beaten_points = "; ".join(
        f"{name}: {b.n_beaten} of {b.n_points} ({100 * b.fraction:.1f} %)"
        for name, b in counts.items()
    )
    return Judged(
        f"beaten: {beaten_points}",
        all(b.n_left == 0 for b in counts.values()),
        all(b.fraction >= _MOST_OF for b in counts.values()),
        values={
            name: sum(getattr(b, f"n_{name}") for b in counts.values())
            for name in ("left", "beyond")
        },
    )


def better_within_range(comparisons: Sequence[Comparison]) -> Judged:
    """Judge whether the search beats Warner in the range of privacy that both fronts reach."""
    counts = beaten_by_case(comparisons)
    taken = {name: b for name, b in counts.items() if b.n_common}
    fractions = [b.n_common_beaten / b.n_common for b in taken.values()]
    parts = [f"{name} {b.n_common_beaten} of {b.n_common}" for name, b in taken.items()]
    apart = [name for name in counts if name not in taken]
    return Judged(
        f"beaten: {', '.join(parts)}"
        + (f"; no point in the range for {', '.join(apart)}" if apart else ""),
        all(fraction == 1 for fraction in fractions),
        all(fraction >= _MOST_OF for fraction in fractions),
        tested=bool(taken),
    )


def nearest_to_the_bound(comparisons: Sequence[Comparison]) -> Judged:
    """Judge whether the search is nearer to the bound than Warner in the range both reach."""
    nearer = []
    for c in comparisons:
        low, high = common_range(c.warner, c.search)
        for level in c.levels:
            if low <= level.privacy <= high:
                assert level.search is not None
                assert level.warner is not None
                nearer.append(level.search < level.warner)
    over = {m: [r for c in comparisons for r in ratios(c.levels, m)] for m in METHODS}
    span = {m: f"{min(rs):.2f} to {max(rs):.2f} times" for m, rs in over.items() if rs}
    best = f", the best square matrix {span['square']}" if "square" in span else ""
    return Judged(
        f"nearer at {sum(nearer)} of {len(nearer)} levels; over the least possible the search errs "
        f"{span['search']}, Warner {span['warner']}{best}",
        all(nearer),
        sum(nearer) >= _MOST_OF * len(nearer),
        tested=bool(nearer),
    )


def nothing_below_the_bound(comparisons: Sequence[Comparison]) -> Judged:
    """Judge this project's own promise about the bound."""
    least = min(r for c in comparisons for method in METHODS for r in ratios(c.levels, method))
    return Judged(f"the smallest error over the bound is {least:.4f}", least >= 1.0 - _ROUNDING)


# Figures and tables.

METHODS = ("warner", "search", "square")
PRIVACY = "privacy: how often the best guess is wrong"
ERROR = f"MSE of a share, {N_RECORDS:,} people"
LABELS = {"square": "best square matrix", "bound": "least possible"}

# The plot ends at this multiple of the largest bound shown.
_TOP = 8.0
_MARKERS = 22


def draw_fronts(axes: "Axes", comparison: Comparison) -> None:
    """Draw Warner's front and the search's over privacy; grey is where no mechanism can be."""
    levels = comparison.levels
    xs, bound = [v.privacy for v in levels], [v.bound / N_RECORDS for v in levels]
    axes.set_yscale("log")
    least = float(comparison.warner.record_mse[0]) / N_RECORDS
    lowest, highest = 0.6 * min(bound), max(_TOP * max(bound), 1.5 * least)
    # The bound rises with privacy: between two levels the lower one's is proved.
    axes.fill_between(xs, bound, lowest, step="post", color="#E8E8E8", linewidth=0, zorder=0)
    plot_method(
        axes, "bound", xs, bound, label=LABELS["bound"], marker=".", markersize=4, markevery=1
    )
    square = [(v.privacy, v.square / N_RECORDS) for v in levels if v.square is not None]
    if square:
        x, y = zip(*square, strict=True)
        plot_method(axes, "square", x, y, label=LABELS["square"], linewidth=0.9)
    for method, front in (("warner", comparison.warner), ("search", comparison.search)):
        mse = front.record_mse / N_RECORDS
        plot_method(axes, method, front.privacy, mse, markers=_MARKERS, markersize=3.2)
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
            x, y = zip(*found, strict=True)
            plot_method(axes, method, x, y, label=LABELS.get(method), markersize=3.2)
    axes.set_ylim(0.9, 40)
    axes.set_yticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
    axes.minorticks_off()
    grid(axes)


def draw_panels(
    canvas: "MatplotlibFigure",
    comparisons: Sequence[Comparison],
    titles: Sequence[str],
    shape: tuple[int, int],
    ncols: int,
    *,
    as_ratios: bool,
) -> None:
    """Draw a panel for each case: its fronts, or the errors over the bound."""
    panels = canvas.subplots(*shape, sharey=as_ratios, squeeze=False)
    for axes, comparison in zip(panels.ravel(), comparisons, strict=True):
        if as_ratios:
            draw_ratios(axes, comparison.levels)
        else:
            draw_fronts(axes, comparison)
    letter(panels.ravel(), titles)
    for axes in panels[-1]:
        axes.set_xlabel(PRIVACY)
    for axes in panels[:, 0]:
        axes.set_ylabel("MSE over the least possible" if as_ratios else ERROR)
    legend(canvas, panels[0][0], ncols=ncols)


def fronts_rows(comparisons: Sequence[Comparison]) -> Rows:
    """Return every point of both fronts."""
    return [
        [c.case.name, c.case.delta, method, float(privacy), float(error) / N_RECORDS]
        for c in comparisons
        for method, front in (("warner", c.warner), ("search", c.search))
        for privacy, error in zip(front.privacy, front.record_mse, strict=True)
    ]


def levels_rows(comparisons: Sequence[Comparison]) -> Rows:
    """Return the bound at each level, and each method's error over it."""
    return [
        [
            *(c.case.name, c.case.delta, level.privacy, level.bound / N_RECORDS),
            *(next(iter(ratios([level], method)), None) for method in METHODS),
        ]
        for c in comparisons
        for level in c.levels
    ]


def summary_rows(comparisons: Sequence[Comparison]) -> Rows:
    """Return one row per case: ranges, how many of Warner's points are beaten, ratios."""
    rows = []
    for c in comparisons:
        found = beaten(c.warner, c.search)
        over = [ratios(c.levels, method) for method in METHODS]
        rows.append(
            [
                *(c.case.name, len(c.case.prior.shares), c.case.delta),
                *(float(c.warner.privacy[0]), float(c.search.privacy[0]), c.case.most_private),
                *(found.n_points, found.n_beaten, found.median_ratio),
                *(median(each) if each else None for each in over),
            ]
        )
    return rows
