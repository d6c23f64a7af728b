"""Table I of Yamamoto and Shibuya: seconds to find a law, by method and number of attributes.

The package's own heuristic (``deniable.solvers.patterns.heuristic``) is their Algorithm 3 in a
scaled form. Table I times the printed one, whose numbers grow like ∏ a_i; it stands here line by
line, for its run time only and to show how far double precision carries it.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from deniable.design.level_designs import LevelDesigns
from deniable.design.methods import FUNCTIONS, Solve
from deniable.design.solving import Solution, Task
from deniable.schema import Schema
from deniable.solvers.patterns import closed_form, heuristic
from deniable.statement.account import EXACT_WITHIN
from deniable.statement.methods import method_named
from deniable_studies.drawing import STYLES, letter, plot_method
from deniable_studies.study import Judged, Rows, Setting, Study, Values
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

_T = TypeVar("_T")

FEWEST_CATEGORIES, MOST_CATEGORIES = 2, 5
LOWEST, HIGHEST = 1.0, 10.0
USEFUL = 2.5
"""Levels "for a useful record" are uniform in [1, 2)·USEFUL/√k: ε of the record is about 5."""

MODERATE, PAPER = "moderate", "paper"
"""Names of the two ranges of levels."""

AS_PRINTED = "printed"
"""The name of Algorithm 3 in plain loops, as the paper prints it."""

MOST_ACCOUNTED = 1_000
"""Largest k for which the accounts of the law are timed as well."""

PRINTED: dict[tuple[str, int], float] = {
    ("lp", 3): 0.0060,
    ("lp", 5): 0.013,
    ("lp", 10): 54.9,
    ("heuristic", 3): 0.000092,
    ("heuristic", 5): 0.00017,
    ("heuristic", 10): 0.00051,
    ("heuristic", 100): 0.015,
    ("heuristic", 500): 0.27,
    ("heuristic", 1_000): 1.14,
}
"""Table I, seconds on the authors' machine."""

PUBLISHED: dict[tuple[str, int], float] = {("lp", 12): 7_006.9, ("heuristic", 100_000): 13_478.0}
"""From the authors' published notebooks, one run each."""

PRACTICAL = 60.0
"""Seconds up to which a run time is "practical"; the paper calls 54.9 s so."""


@dataclass(frozen=True)
class Scale:
    """A timed method.

    Args:
        sizes: numbers of attributes by method and range of levels.
        runs: instances per size.
        least_runs: instances per size in any case; one for the printed algorithm.
        patience: processor seconds per size after which no run beyond the least starts.
        effect_runs: runs for each setting of the comparison of settings.
    """

    sizes: dict[tuple[str, str], Sequence[int]]
    runs: int
    least_runs: int
    patience: float
    effect_runs: int


FULL = Scale(
    {
        ("closed-form", PAPER): (2,),
        ("lp", PAPER): (3, 5, 8, 10, 12),
        ("optimal", PAPER): (3, 5, 8, 10, 12, 20, 50, 100, 1_000),
        ("balanced", PAPER): (3, 5, 8, 10),
        ("heuristic", PAPER): (3, 5, 10, 100, 500, 1_000, 10_000, 100_000, 1_000_000),
        (AS_PRINTED, PAPER): (3, 5, 10, 100, 500, 1_000, 10_000),
        ("optimal", MODERATE): (3, 5, 10, 30, 100, 1_000),
        ("balanced", MODERATE): (3, 5, 10, 30, 100, 1_000),
    },
    runs=10,
    least_runs=3,
    patience=12.0,
    effect_runs=7,
)
QUICK = Scale(
    {
        ("closed-form", PAPER): (2,),
        ("lp", PAPER): (3, 5, 10, 12),
        ("optimal", PAPER): (3, 5, 10, 12),
        ("balanced", PAPER): (3, 5),
        ("heuristic", PAPER): (3, 10, 100, 1_000, 10_000, 100_000),
        (AS_PRINTED, PAPER): (3, 10, 100, 1_000),
        ("optimal", MODERATE): (3, 10, 30, 100),
        ("balanced", MODERATE): (3, 5, 30),
    },
    runs=3,
    least_runs=2,
    patience=1.0,
    effect_runs=3,
)


@dataclass(frozen=True)
class PrintedRun:
    """Result of the printed algorithm.

    Args:
        values: x_{k,0} to x_{k,k}, shape (k + 1,).
        levels: ε_1 to ε_k after line 10, in nats, shape (k,).
        first_not_finite: the i of the first step with a value that is not a finite number, from 3
            on; None if all are.
    """

    values: list[float]
    levels: list[float]
    first_not_finite: int | None


def run_as_printed(n_categories: Sequence[int], attribute_epsilon: Sequence[float]) -> PrintedRun:
    """Run Algorithm 3 in double precision, in plain loops.

    Args:
        n_categories: a_i, shape (k,), k at least 2.
        attribute_epsilon: ε_i in nats, shape (k,).
    """
    a = [float(n) for n in n_categories]
    levels = list(attribute_epsilon)
    base = closed_form.solve(n_categories[:2], levels[:2]).pattern_density
    x = [float(base[0, 0]), float(base[1, 0]), float(base[0, 1])]
    product, total = a[0], a[0]
    first_not_finite = None
    for i in range(3, len(a) + 1):
        n = a[i - 1]
        for j in range(1, i):
            x[j] = n * x[j] - n + 1
        product *= a[i - 2]
        total += a[i - 2]
        others = 0.0
        for j in range(1, i):
            others += (a[j - 1] - 1) * x[j]
        rest = product - total + i - 2
        growth = math.exp(levels[i - 1])
        # Lines 7: x_0 + (n − 1) x_i = n x_0', x_0 − e^ε x_i = −A − B + e^ε C.
        before = n * x[0]
        last = (before + others + rest - growth * (product - 1)) / (n - 1 + growth)
        x[0] = before - (n - 1) * last
        x.append(last)
        fits = x[0] >= 1 and last >= 1
        for j in range(1, i + 1):
            if x[0] < x[j]:
                fits = False
                break
        if not fits:
            x[0], x[i] = before - n + 1, 1.0
            ratio = (x[0] + others + rest) / (x[i] + product - 1)
            levels[i - 1] = math.log(ratio) if ratio > 0 else math.nan
        if first_not_finite is None and not (
            math.isfinite(x[0]) and math.isfinite(product) and math.isfinite(levels[i - 1])
        ):
            first_not_finite = i
    return PrintedRun(x, levels, first_not_finite)


@dataclass
class Timing:
    """One method at one size.

    Args:
        method: a method, or ``AS_PRINTED``.
        levels: ``PAPER`` or ``MODERATE``.
        n_attributes: k.
        seconds: processor time of finding the law, one per run.
        design_seconds: the same with the law's accounts and the lower bound; None if not timed.
        epsilon: ε of the record of the first ``least_runs`` instances, in nats.
        total: Σ ε_i as requested of the same.
        gap: proved gap of the same, in nats; None if there is no bound.
        changed: attributes of the same whose level is not the requested one.
        not_finite: for the printed algorithm, the steps at which its numbers ceased to be finite.
    """

    method: str
    levels: str
    n_attributes: int
    seconds: list[float] = field(default_factory=list)
    design_seconds: list[float] = field(default_factory=list)
    epsilon: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    gap: list[float | None] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    not_finite: list[int] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return statistics.median(self.seconds)


def instance(generator: np.random.Generator, k: int, levels: str) -> tuple[list[int], list[float]]:
    """Return (a_i, ε_i): a_i uniform in 2 to 5; ε_i uniform in [1, 10), or moderate."""
    counts = generator.integers(FEWEST_CATEGORIES, MOST_CATEGORIES + 1, k).tolist()
    if levels == MODERATE:
        return counts, (generator.uniform(1, 2, k) * USEFUL / k**0.5).tolist()
    return counts, generator.uniform(LOWEST, HIGHEST, k).tolist()


def measure(setting: Setting, scale: Scale) -> list[Timing]:
    """Time every method at every size, on one thread.

    All methods get the same instances: those of a size and range have a generator of their own.
    """
    found = []
    cells = [(method, levels, k) for (method, levels), ks in scale.sizes.items() for k in ks]
    with threadpool_limits(1):
        for method, levels in scale.sizes:  # imports, and whatever else a first call does
            smallest = min(scale.sizes[method, levels])
            warm = instance(setting.generator(smallest, 3), smallest, levels)
            _time_one(Timing(method, levels, smallest), *warm, keep=True)
        for place, (method, levels, k) in enumerate(cells):
            generator = setting.generator(k, levels == MODERATE)
            timing = Timing(method, levels, k)
            spent, least = 0.0, 1 if method == AS_PRINTED else scale.least_runs
            while len(timing.seconds) < scale.runs and (
                len(timing.seconds) < least or spent < scale.patience
            ):
                counts, wanted = instance(generator, k, levels)
                keep = len(timing.seconds) < scale.least_runs
                spent += _time_one(timing, counts, wanted, keep=keep)
            found.append(timing)
            setting.advance((place + 1) / len(cells))
    return found


def _time_one(timing: Timing, counts: list[int], wanted: list[float], *, keep: bool) -> float:
    """Time one instance; return all processor seconds spent on it.

    Args:
        timing: filled.
        counts, wanted: a_i and ε_i.
        keep: whether the law's levels are wanted, too.
    """
    begin = time.process_time()
    if timing.method == AS_PRINTED:
        seconds, printed = timed(lambda: run_as_printed(counts, wanted))
        timing.seconds.append(seconds)
        if printed.first_not_finite is not None:
            timing.not_finite.append(printed.first_not_finite)
        return seconds
    task = task_of(timing.method, counts)
    seconds, found = timed(partial(solve_of(timing.method), task, wanted))
    timing.seconds.append(seconds)
    if keep:
        if timing.n_attributes <= MOST_ACCOUNTED:
            _account(timing, task, found, wanted)
        else:
            rough = heuristic.solve(counts, wanted)
            timing.epsilon.append(rough.epsilon)
            timing.gap.append(None)
            timing.changed.append(int(rough.changed.sum()))
        timing.total.append(math.fsum(wanted))
    return time.process_time() - begin


def _account(timing: Timing, task: Task, solution: Solution, wanted: list[float]) -> None:
    schema = Schema.anonymous(task.n_categories)
    designs = LevelDesigns(schema, method_named(timing.method), task)
    seconds, designed = timed(lambda: designs.of(solution))
    got = designed.mechanism.attribute_epsilon
    timing.design_seconds.append(timing.seconds[-1] + seconds)
    timing.epsilon.append(designed.epsilon)
    timing.gap.append(designed.gap)
    timing.changed.append(
        sum(
            not asked - EXACT_WITHIN <= level <= asked
            for asked, level in zip(wanted, got, strict=True)
        )
    )


def task_of(method: str, counts: Sequence[int]) -> Task:
    """Return a method's inputs besides the levels: its defaults."""
    spec = method_named(method)
    return Task(tuple(counts), spec.given_rest, spec.pair_floor)


def solve_of(method: str) -> Solve:
    """Return the function that turns levels into a law."""
    solve = FUNCTIONS[method].solve
    assert solve is not None
    return solve


def timed(work: Callable[[], _T]) -> tuple[float, _T]:
    """Return the processor seconds of a call, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


Effects = dict[str, dict[str, list[float]]]
"""Seconds by method and size, and by setting."""

EFFECT_SIZES: tuple[tuple[str, int], ...] = (("lp", 10), (AS_PRINTED, 300), ("optimal", 10))
"""With five categories each the printed algorithm overflows beyond 441 attributes."""


def measure_effects(setting: Setting, runs: int) -> Effects:
    """Time three methods where all a_i or all ε_i are small or large.

    Args:
        setting: of the study.
        runs: instances for each; the same numbers of runs in turn, so that a slow moment of the
            machine falls on all of them.
    """
    ranges: dict[str, tuple[tuple[int, int], tuple[float, float]]] = {
        "as the paper": ((FEWEST_CATEGORIES, MOST_CATEGORIES), (LOWEST, HIGHEST)),
        "a_i = 2": ((2, 2), (LOWEST, HIGHEST)),
        "a_i = 5": ((5, 5), (LOWEST, HIGHEST)),
        "ε_i in [1, 2)": ((FEWEST_CATEGORIES, MOST_CATEGORIES), (1.0, 2.0)),
        "ε_i in [9, 10)": ((FEWEST_CATEGORIES, MOST_CATEGORIES), (9.0, 10.0)),
    }
    found: Effects = {}
    with threadpool_limits(1):
        for place, (method, k) in enumerate(EFFECT_SIZES):
            generator = setting.generator(k, 2)
            taken: dict[str, list[float]] = {name: [] for name in ranges}
            for _ in range(runs):
                for name, ((fewest, most), levels) in ranges.items():
                    counts = generator.integers(fewest, most + 1, k).tolist()
                    wanted = generator.uniform(*levels, k).tolist()
                    work: Callable[[], object] = (
                        partial(run_as_printed, counts, wanted)
                        if method == AS_PRINTED
                        else partial(solve_of(method), task_of(method, counts), wanted)
                    )
                    taken[name].append(timed(work)[0])
            found[f"{method}, k = {k:,}"] = taken
            setting.advance((place + 1) / len(EFFECT_SIZES))
    return found


@dataclass(frozen=True)
class Numbers:
    """Everything that the study rests on: times, their scale, and the effect of the settings."""

    scale: Scale
    timings: Sequence[Timing]
    effects: Effects


def take_times(setting: Setting) -> Numbers:
    """Time everything."""
    scale = QUICK if setting.quick else FULL
    return Numbers(
        scale,
        measure(setting.part(0, 0.9), scale),
        measure_effects(setting.part(0.9, 1), scale.effect_runs),
    )


# Judges.


def seconds_text(value: float) -> str:
    """Return seconds with two significant digits, in a unit of their size."""
    factor, unit = (1.0, "s") if value >= 1 else (1e3, "ms") if value >= 1e-3 else (1e6, "µs")
    scaled = value * factor
    return f"{scaled:,.0f} {unit}" if scaled >= 10 else f"{scaled:.2g} {unit}"


def at(timings: Sequence[Timing], method: str, k: int) -> Timing:
    """Return the timing of a method at a size and the paper's levels.

    Raises:
        KeyError: if it was not taken.
    """
    return {(t.method, t.n_attributes): t for t in timings if t.levels == PAPER}[method, k]


def growth(
    timings: Sequence[Timing], method: str, levels: str, *, least: int = 1
) -> tuple[float, int, int] | None:
    """Return the exponent of k in the median time from k = ``least`` on, and the sizes it spans.

    It is the slope of a straight line by least squares in logarithms; None with fewer than two
    sizes.
    """
    chosen = [
        t for t in timings if t.method == method and t.levels == levels and t.n_attributes >= least
    ]
    if len(chosen) < 2:
        return None
    x = np.log([t.n_attributes for t in chosen])
    y = np.log([max(t.median, 1e-9) for t in chosen])
    value = float(np.polyfit(x, y, 1)[0])
    return value, min(t.n_attributes for t in chosen), max(t.n_attributes for t in chosen)


def optimal_up_to_ten(timings: Sequence[Timing]) -> Judged:
    """The linear program at ten attributes."""
    ten = at(timings, "lp", 10).median
    return Judged(f"{seconds_text(ten)} (the paper, on its machine: 54.9 s)", ten <= PRACTICAL)


def hard_beyond_ten(timings: Sequence[Timing]) -> Judged:
    """The exact optimum beyond ten attributes."""
    program, ours = (at(timings, method, 12).median for method in ("lp", "optimal"))
    proved = [
        t
        for t in timings
        if t.method == "optimal"
        and t.levels == PAPER
        and all(gap is not None and gap <= 1e-6 for gap in t.gap)
    ]
    beyond = ""
    if proved:
        largest = max(proved, key=lambda t: t.n_attributes)
        beyond = (
            f"; the optimum is proved to 1e-6 nats up to k = {largest.n_attributes} "
            f"({seconds_text(largest.median)})"
        )
    return Judged(
        f"the linear program needs {seconds_text(program)}, method optimal {seconds_text(ours)} at "
        f"k = 12 (the authors' notebook: 7,007 s){beyond}",
        min(program, ours) > PRACTICAL,
    )


LIMITS = {1_000: 2.0, 10_000: 120.0, 100_000: 4.5 * 3600}
"""Seconds up to which the paper's three times of the heuristic count as reproduced."""


def heuristic_in_time(timings: Sequence[Timing]) -> Judged:
    """The printed algorithm at 1,000, 10,000 and 100,000 attributes."""
    taken = [t for t in timings if t.method == AS_PRINTED and t.n_attributes in LIMITS]
    in_time = all(t.median <= LIMITS[t.n_attributes] for t in taken)
    finite = not any(t.not_finite for t in taken)
    ours = [t for t in timings if t.method == "heuristic" and t.n_attributes in LIMITS]
    return Judged(
        "as printed "
        + ", ".join(
            f"{seconds_text(t.median)} at {t.n_attributes:,} (finite in "
            f"{len(t.seconds) - len(t.not_finite)} of {len(t.seconds)} runs)"
            for t in taken
        )
        + "; this package's form "
        + ", ".join(f"{seconds_text(t.median)} at {t.n_attributes:,}" for t in ours),
        in_time and finite and len(taken) == len(LIMITS),
        in_time,
        "late" if not in_time else "overflow",
        tested=bool(taken),
    )


def finite_as_printed(timings: Sequence[Timing]) -> Judged:
    """Whether the printed recursion gives numbers at the sizes that Table I times."""
    largest = max((t for t in timings if t.method == AS_PRINTED), key=lambda t: t.n_attributes)
    steps, runs = sorted(largest.not_finite), len(largest.seconds)
    found = f"finite in {runs - len(steps)} of {runs} runs"
    if steps:
        found += f"; the first value that is not appears at step {steps[0]} to {steps[-1]}"
    return Judged(found, not steps, values={"k": largest.n_attributes})


def quadratic(timings: Sequence[Timing]) -> Judged:
    """The order of growth of the heuristic."""
    ours = growth(timings, "heuristic", PAPER, least=1_000)
    printed = growth(timings, AS_PRINTED, PAPER, least=100)
    if ours is None or printed is None:
        raise ValueError("too few sizes were timed")
    paper = math.log10(PRINTED["heuristic", 1_000] / PRINTED["heuristic", 100])
    return Judged(
        f"as printed k^{printed[0]:.2f} (k = {printed[1]} to {printed[2]:,}); the paper's own "
        f"times from 100 to 1,000: k^{paper:.2f}; this package's form: k^{ours[0]:.2f} "
        f"(k = {ours[1]:,} to {ours[2]:,})",
        abs(printed[0] - 2) <= 0.25,
        printed[0] <= 2.25,
        "slower" if printed[0] <= 2.25 else "faster",
    )


def little_effect(effects: Effects) -> Judged:
    """Whether a_i and ε_i matter for the run time."""
    medians = {
        method: {name: statistics.median(seconds) for name, seconds in by.items()}
        for method, by in effects.items()
    }
    factors = {method: max(by.values()) / min(by.values()) for method, by in medians.items()}
    worst = max(f for m, f in factors.items() if m.startswith(("lp", AS_PRINTED)))
    return Judged(
        ", ".join(f"{method} {factor:.1f}" for method, factor in factors.items()),
        worst <= 2,
        worst <= 4,
        values={
            "longest": ", ".join(f"{m} {max(by, key=lambda n: by[n])}" for m, by in medians.items())
        },
    )


def proof_at_any_size(timings: Sequence[Timing], levels: str) -> Judged:
    """The gap that the optimum's certificate leaves, at one range of levels."""
    chosen = [t for t in timings if t.method == "optimal" and t.levels == levels]
    worst = {t.n_attributes: max(math.inf if g is None else g for g in t.gap) for t in chosen}
    parts = {t.n_attributes: worst[t.n_attributes] / statistics.median(t.epsilon) for t in chosen}
    most = max(parts.values())
    return Judged(
        "largest gap in nats: "
        + ", ".join(f"{gap:.1e} (k = {k:,})" for k, gap in worst.items())
        + f"; at most {most:.1e} of ε",
        most <= 1e-3,
        most <= 0.01,
        values={"first": next((k for k, part in parts.items() if part > 1e-3), None)},
    )


# Tables and the figure.


def _time_rows(timings: Sequence[Timing]) -> Rows:
    printed = PRINTED | PUBLISHED
    return [
        [
            *(t.method, t.levels, t.n_attributes, len(t.seconds)),
            *(t.median, min(t.seconds), max(t.seconds)),
            statistics.median(t.design_seconds) if t.design_seconds else None,
            printed.get(("heuristic" if t.method == AS_PRINTED else t.method, t.n_attributes))
            if t.levels == PAPER
            else None,
        ]
        for t in timings
    ]


def law_rows(timings: Sequence[Timing]) -> Rows:
    """Return the results without the times."""
    gaps = {id(t): [gap for gap in t.gap if gap is not None] for t in timings}
    return [
        [
            *(t.method, t.levels, t.n_attributes),
            *(statistics.median(t.total), statistics.median(t.epsilon)),
            # The last digits of a gap are rounding of the search.
            float(f"{max(gaps[id(t)]):.1e}") if gaps[id(t)] else None,
            max(t.changed),
        ]
        for t in timings
        if t.method != AS_PRINTED
    ]


def _effect_rows(effects: Effects) -> Rows:
    return [
        [method, name, len(seconds), statistics.median(seconds)]
        for method, by_setting in effects.items()
        for name, seconds in by_setting.items()
    ]


def draw_growth(canvas: "MatplotlibFigure", timings: Sequence[Timing]) -> None:
    """Draw the times over the number of attributes."""
    panels = canvas.subplots(1, 2, sharey=True, width_ratios=[1.25, 1])
    for panel, levels in zip(panels, (PAPER, MODERATE), strict=True):
        _draw_panel(panel, [t for t in timings if t.levels == levels], levels)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("attributes k")
        panel.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.5)
        panel.set_axisbelow(True)
    panels[0].set_ylabel("seconds")
    letter(panels, ["ε_i in [1, 10)", "ε of the record about 5"])
    for panel in panels:
        panel.legend(
            loc="upper left", bbox_to_anchor=(0, -0.14), fontsize=8, borderaxespad=0, ncols=1
        )


def _draw_panel(panel: "Axes", timings: Sequence[Timing], levels: str) -> None:
    for method in dict.fromkeys(t.method for t in timings):
        chosen = [t for t in timings if t.method == method]
        least = 100 if method in ("heuristic", AS_PRINTED) else 1
        fitted = growth(timings, method, levels, least=least)
        style = "heuristic-requested" if method == AS_PRINTED else method
        name = STYLES[style].label.removesuffix(", at the levels it achieves")
        if method == AS_PRINTED:
            name = "heuristic as printed, plain loops"
        ks = [t.n_attributes for t in chosen]
        plot_method(
            panel,
            style,
            ks,
            [t.median for t in chosen],
            label=name if fitted is None else f"{name}: k^{fitted[0]:.1f}",
            markers=20,
        )
        for t in chosen:
            panel.plot(
                [t.n_attributes] * 2,
                [min(t.seconds), max(t.seconds)],
                color=STYLES[style].colour,
                linewidth=0.8,
            )
    if levels != PAPER:
        return
    both = PRINTED | PUBLISHED
    for method, label in (("lp", "the paper, optimal"), ("heuristic", "the paper, heuristic")):
        points = {k: seconds for (name, k), seconds in both.items() if name == method}
        panel.plot(
            list(points),
            list(points.values()),
            linestyle="none",
            marker="*",
            markerfacecolor="none",
            color=STYLES[method].colour,
            label=label,
        )


def _values(n: Numbers) -> Values:
    return {"scale": n.scale}


STUDY = Study(
    read_text("privacy_optimized/run-time.toml"),
    take_times,
    judges={
        "optimal-up-to-ten": lambda n: optimal_up_to_ten(n.timings),
        "hard-beyond-ten": lambda n: hard_beyond_ten(n.timings),
        "heuristic-in-time": lambda n: heuristic_in_time(n.timings),
        "finite-as-printed": lambda n: finite_as_printed(n.timings),
        "quadratic": lambda n: quadratic(n.timings),
        "little-effect": lambda n: little_effect(n.effects),
        "proof-at-moderate-levels": lambda n: proof_at_any_size(n.timings, MODERATE),
        "proof-at-the-papers-levels": lambda n: proof_at_any_size(n.timings, PAPER),
    },
    figures={"growth": lambda canvas, n: draw_growth(canvas, n.timings)},
    tables={
        "table-1": lambda n: _time_rows(n.timings),
        "laws": lambda n: law_rows(n.timings),
        "effects": lambda n: _effect_rows(n.effects),
    },
    values=_values,
)
