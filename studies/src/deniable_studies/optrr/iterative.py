"""Figure 5(d) of Huang and Du: the iterative estimate, for Warner's matrices and the search's."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from deniable.frontier.tracing import Request, trace
from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices.search import Matrices
from deniable_studies.drawing import grid, legend, letter, plot_method
from deniable_studies.optrr.distributions import DELTA, effort, gamma_case, gamma_front
from deniable_studies.optrr.fronts import (
    ERROR,
    LABELS,
    N_RECORDS,
    PRIVACY,
    Effort,
    at_level,
    levels_of,
    warner_front,
)
from deniable_studies.optrr.iterative_estimate import simulated_mse
from deniable_studies.study import Judged, Setting, Study
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

_STREAM = 6
_INTERVAL = 1.96
_METHODS = ("warner", "search")
_TOLERANCE = 1e-7
_PRINTED_STEPS = 20_000


@dataclass(frozen=True)
class Size:
    """How much is simulated.

    Args:
        n_levels: levels of privacy, evenly over the search's range.
        n_simulations: data sets for each matrix.
    """

    n_levels: int
    n_simulations: int


FULL, QUICK = Size(30, 400), Size(8, 60)


@dataclass(frozen=True)
class Point:
    """One matrix at one level of privacy. Errors are of a share from 10,000 answers.

    Args:
        method: warner or search.
        level: the requested privacy.
        privacy: of the matrix.
        inversion: mean squared error of the inversion estimate, computed.
        iterative: that of the iterative estimate, by simulation.
        standard_error: of ``iterative``.
    """

    method: str
    level: float
    privacy: float
    inversion: float
    iterative: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class Trial:
    """Simulations, and the bound of all unbiased linear estimates.

    Args:
        points: by method and rising level.
        bound: (privacy, least mean squared error of linear unbiased estimates), rising.
        ends: least and most privacy of each method's front.
        printed_sum: sum of the limit of equation (3) as printed, for the search's matrices:
            the farthest from 1.
        size: how much was simulated.
        effort: of the search.
    """

    points: Sequence[Point]
    bound: Sequence[tuple[float, float]]
    ends: dict[str, tuple[float, float]]
    printed_sum: float
    size: Size
    effort: Effort


def simulate(setting: Setting) -> Trial:
    """Simulate the iterative estimate at levels of privacy."""
    size = QUICK if setting.quick else FULL
    case = gamma_case()
    prior = case.shares
    spent = effort(setting)
    search = gamma_front(setting.part(0.0, 0.5))
    fronts = {"warner": warner_front(prior, DELTA), "search": search}
    points = points_of(fronts, prior, size, setting.part(0.5, 0.9))
    request = Request(
        case.prior,
        levels_of(case, spent.n_levels),
        most_posterior=DELTA,
        methods=("bound",),
        n_records=N_RECORDS,
    )
    traced = trace(request, setting.part(0.9, 1.0).advance)
    return Trial(
        points,
        [(row.level, row.lower_bound) for row in traced.rows],
        {name: (float(f.privacy[0]), float(f.privacy[-1])) for name, f in fronts.items()},
        _farthest_sum(search, prior),
        size,
        spent,
    )


def points_of(
    fronts: dict[str, Matrices], prior: FloatArray, size: Size, setting: Setting, first: int = 0
) -> list[Point]:
    """Simulate the best matrices of Warner's front and the search's over the search's range.

    `first` is the first of two streams of draws.
    """
    search, points = fronts["search"], []
    levels = np.linspace(search.privacy[0], search.privacy[-1], size.n_levels).tolist()
    for i, (method, front) in enumerate(fronts.items()):
        for j, level in enumerate(levels):
            with setting.step(i * size.n_levels + j, len(fronts) * size.n_levels):
                point = point_at(front, level, method, prior, size, setting, (first + i, j))
                if point is not None:
                    points.append(point)
    return points


def point_at(
    front: Matrices,
    level: float,
    method: str,
    prior: FloatArray,
    size: Size,
    setting: Setting,
    stream: tuple[int, int],
) -> Point | None:
    """Simulate the iterative estimate with a front's best matrix at a level, or return None.

    Args:
        front: by rising privacy.
        level: requested privacy.
        method: whose front it is.
        prior: the true distribution, shape (n,).
        size: how many data sets.
        setting: seed.
        stream: of the draws.
    """
    if level < front.privacy[0] or (place := at_level(front, level)) is None:
        return None
    with threadpool_limits(1):
        error = simulated_mse(
            front.matrices[place],
            prior,
            N_RECORDS,
            size.n_simulations,
            setting.generator(_STREAM, *stream),
            tolerance=_TOLERANCE,
        )
    return Point(
        method,
        level,
        float(front.privacy[place]),
        float(front.record_mse[place]) / N_RECORDS,
        error.mse,
        error.standard_error,
    )


def printed_limit(matrix: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Iterate equation (3) as printed: Σ_j P*(c_j) θ_{i,j} P(c_j) over Σ_j θ_{i,j} P(c_j).

    Args:
        matrix: M[y, x] = θ_{y,x}, shape (n, n).
        frequencies: P*, shape (n,).
    """
    shares = np.full(len(frequencies), 1.0 / len(frequencies))
    for _ in range(_PRINTED_STEPS):
        following = (matrix @ (frequencies * shares)) / (matrix @ shares)
        if np.abs(following - shares).max() <= _TOLERANCE:
            return np.asarray(following)
        shares = following
    return shares


def _farthest_sum(front: Matrices, prior: FloatArray) -> float:
    sums = [float(printed_limit(matrix, matrix @ prior).sum()) for matrix in front.matrices[::10]]
    return max(sums, key=lambda total: abs(total - 1.0))


def pairs_of(points: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Warner's point and the search's at each level where both have one."""
    by = {(point.method, point.level): point for point in points}
    return [
        (point, by["search", level])
        for (method, level), point in by.items()
        if method == "warner" and ("search", level) in by
    ]


def outperforms(pairs: Sequence[tuple[Point, Point]]) -> Judged:
    lower = sum(found.iterative < warner.iterative for warner, found in pairs)
    apart = [
        (warner.iterative - found.iterative)
        / (_INTERVAL * float(np.hypot(warner.standard_error, found.standard_error)))
        for warner, found in pairs
    ]
    surely_lower = sum(gap > 1 for gap in apart)
    surely_not = sum(gap < -1 for gap in apart)

    def verdict(lower: int) -> tuple[bool, bool]:
        return lower == len(pairs), lower >= 0.8 * len(pairs)

    return Judged(
        f"lower at {lower} of {len(pairs)} levels, at {surely_lower} by more than the 95 % "
        f"interval of the difference; higher by more than that at {surely_not}",
        *verdict(lower),
        tested=bool(pairs),
        # Decided if the levels that cannot be told apart do not matter, however they would fall.
        decided=verdict(surely_lower) == verdict(len(pairs) - surely_not),
    )


def _range(trial: Trial) -> Judged:
    widths = {name: most - least for name, (least, most) in trial.ends.items()}
    found = f"{widths['search']:.3f} against {widths['warner']:.3f}"
    return Judged(found, widths["search"] > widths["warner"])


def _much_lower(trial: Trial) -> Judged:
    values = [warner.iterative / found.iterative for warner, found in pairs_of(trial.points)]
    computed = [warner.inversion / found.inversion for warner, found in pairs_of(trial.points)]
    middle = median(values)
    return Judged(
        f"{middle:.2f} times in the median, from {min(values):.2f} to {max(values):.2f}; with the "
        f"inversion estimate {median(computed):.2f} times",
        middle >= 1.5,
        middle > 1,
    )


def _printed(trial: Trial) -> Judged:
    found = f"the limit farthest from that sums to {trial.printed_sum:.4f}"
    return Judged(found, abs(trial.printed_sum - 1.0) <= 1e-6)


def _below(trial: Trial) -> int:
    xs, ys = np.array(trial.bound).T
    count = 0
    for point in trial.points:
        # The bound rises with privacy: the next lower level's holds here.
        place = int(np.searchsorted(xs, point.privacy, side="right")) - 1
        if place >= 0:
            count += point.iterative + _INTERVAL * point.standard_error < ys[place]
    return count


def points_rows(points: Sequence[Point]) -> list[list[str | float]]:
    """Return every point."""
    return [
        [p.method, p.level, p.privacy, p.inversion, p.iterative, p.standard_error] for p in points
    ]


def _draw(canvas: "MatplotlibFigure", trial: Trial) -> None:
    panels = canvas.subplots(1, 2, sharey=True)
    for axes, iterative in zip(panels, (True, False), strict=True):
        axes.set_yscale("log")
        xs, ys = np.array(trial.bound).T
        plot_method(axes, "bound", xs, ys, label=LABELS["bound"] + ", linear estimates")
        for method in _METHODS:
            _draw_points(axes, method, [p for p in trial.points if p.method == method], iterative)
        axes.set_xlabel(PRIVACY)
        grid(axes)
    letter(list(panels), ["iterative estimate", "inversion"])
    panels[0].set_ylabel(ERROR)
    legend(canvas, panels[0], ncols=3)


def _draw_points(axes: "Axes", method: str, points: Sequence[Point], iterative: bool) -> None:
    xs = [p.privacy for p in points]
    ys = np.array([p.iterative if iterative else p.inversion for p in points])
    if iterative:
        half = _INTERVAL * np.array([p.standard_error for p in points])
        axes.errorbar(xs, ys, yerr=half, fmt="none", ecolor="#777777", elinewidth=0.8, capsize=1.5)
    plot_method(axes, method, xs, ys, markers=len(xs), markersize=3.2)


STUDY = Study(
    read_text("optrr/optrr-iterative.toml"),
    simulate,
    judges={
        "outperforms": lambda trial: outperforms(pairs_of(trial.points)),
        "range": _range,
        "much-lower": _much_lower,
        "equation-3": _printed,
    },
    figures={"iterative": _draw},
    tables={
        "iterative": lambda trial: points_rows(trial.points),
        "bound": lambda trial: trial.bound,
    },
    values=lambda trial: {
        "effort": trial.effort,
        "size": trial.size,
        "n_points": len(trial.points),
        "below": _below(trial) or "none",
    },
)
