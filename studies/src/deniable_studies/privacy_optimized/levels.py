"""Study ``privacy-levels``: Figures 1 and 2 of Yamamoto and Shibuya, where levels vary.

A draw is an instance that the heuristic and the optimum solve.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from deniable.design.design import design
from deniable.schema import Schema
from deniable.solvers.patterns import heuristic
from deniable_studies.drawing import STYLES, grid
from deniable_studies.privacy_optimized.instances import (
    ATTRIBUTES,
    NEARLY_ALL,
    Draws,
    Instance,
    draw_excess,
    draw_instances,
    draw_levels,
    instance_rows,
    scatter_about_trend,
    slope,
    solve_instance,
    third,
    threshold_above,
)
from deniable_studies.privacy_optimized.printed_program import (
    PrintedProgram,
    compare_printed_program,
)
from deniable_studies.privacy_optimized.two_attributes import (
    BIG,
    SMALL,
    Agreement,
    Trend,
    compare_with_linear_program,
    draw_two_attributes,
    level_steps,
    ratio_to_sum,
    trend,
)
from deniable_studies.study import Judged, Rows, Setting, Study, Values
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

CLEARLY_SMALLER = 0.8
"""A median ε of the record at most so large a part of Σ ε_i is "significantly stronger"."""


# Judges for Figures 3 and 4 too (`category_counts`).


def per_k(values: Mapping[int, float], form: str) -> str:
    """Return values with the k that they belong to."""
    return ", ".join(f"{value:{form}} (k = {k})" for k, value in values.items())


@dataclass(frozen=True)
class Worse:
    """Further draws, in which the heuristic is compared with a Kronecker product.

    Args:
        n_draws: of one number of attributes.
        fraction: of the draws, those with ε of the record no smaller than Σ ε_i, as achieved.
        largest: ratio of the two, over all draws.
    """

    n_draws: int
    fraction: float
    largest: float


Draw = Callable[[np.random.Generator, int], tuple[list[int], list[float]]]
"""Returns (a_i, ε_i) from a generator and k."""


def further_draws(setting: Setting) -> int:
    """Return how many draws are solved for each k."""
    return 1_000 if setting.quick else 20_000


def measure_worse(setting: Setting, draw: Draw, n_draws: int) -> dict[int, Worse]:
    """Solve further draws by the heuristic, for each of the paper's k."""
    found = {}
    for k in ATTRIBUTES:
        generator, ratios = setting.generator(_WORSE, k), []
        for _ in range(n_draws):
            solved = heuristic.solve(*draw(generator, k))
            ratios.append(solved.epsilon / math.fsum(solved.achieved_epsilon.tolist()))
        found[k] = Worse(n_draws, fmean(ratio >= 1 for ratio in ratios), max(ratios))
    return found


def stronger(draws: Draws, worse: Mapping[int, Worse]) -> Judged:
    """Both methods against the Kronecker product.

    Args:
        draws: of the figure.
        worse: further draws of the heuristic.
    """
    optimum = {k: median(i.optimum_achieved / i.sum_achieved for i in d) for k, d in draws.items()}
    rough = {k: median(i.heuristic / i.sum_achieved for i in d) for k, d in draws.items()}
    every = [i for d in draws.values() for i in d]
    above = sum(i.optimum_achieved >= i.sum_achieved for i in every)
    weak = sum(i.heuristic >= i.sum_achieved for i in every)
    fractions = {k: found.fraction for k, found in worse.items()}
    below = not above and not weak and not any(fractions.values())
    return Judged(
        f"median ε/Σ ε_i: optimum {per_k(optimum, '.2f')}; heuristic {per_k(rough, '.2f')}; not "
        f"below in {above} (optimum) and {weak} (heuristic) of {len(every)} draws; the heuristic "
        f"is not below in {per_k(fractions, '.2%')} of the further draws",
        below and max(*optimum.values(), *rough.values()) <= CLEARLY_SMALLER,
        not above,
        "less" if below else "optimum" if above else "heuristic",
        {
            "further": min(found.n_draws for found in worse.values()),
            "worst": max(found.largest for found in worse.values()),
        },
    )


def fraction_near(
    draws: Draws,
    x: Callable[[Instance], float],
    near: Callable[[Instance], bool],
    *,
    upper: bool,
) -> dict[int, float]:
    """Return, by k, the fraction of near-optimal draws among the third with the largest x.

    Args:
        draws: all.
        x: their order.
        near: whether a draw is near-optimal.
        upper: whether the largest third is meant, or the smallest.
    """
    return {
        k: fmean(near(d[j]) for j in third([x(i) for i in d], upper=upper))
        for k, d in draws.items()
    }


def slopes(
    instances: Sequence[Instance], x: Callable[[Instance], float]
) -> list[tuple[float, float]]:
    """Return slope and standard error of the optimum's ε/Σ ε_i in the lower and upper third."""
    places = np.array([x(i) for i in instances], dtype=np.float64)
    ratios = np.array([i.optimum_achieved / i.sum_achieved for i in instances])
    chosen = [third(places, upper=upper) for upper in (False, True)]
    return [slope(places[part], ratios[part]) for part in chosen]


def slopes_text(found: Mapping[int, Sequence[tuple[float, float]]], form: str) -> str:
    """Return slopes of the lower and the upper third in thousandths."""
    return ", ".join(
        " and ".join(f"{1e3 * value:+{form}} ± {1e3 * error:{form}}" for value, error in both)
        + f" (k = {k})"
        for k, both in found.items()
    )


def no_clear_trend(both: Trend, single: Trend) -> Judged:
    """Whether a quantity goes both ways, along steps in both attributes or else in one."""

    def mixed(found: Trend) -> bool:
        return all(0.1 < fraction < 0.9 for fraction in (found.falls, found.rises))

    return Judged(
        f"both grow: it rises along {both.rises:.1%} and falls along {both.falls:.1%} of "
        f"{both.n_steps:,} steps; one grows: {single.rises:.1%} and {single.falls:.1%} of "
        f"{single.n_steps:,}",
        mixed(both),
        mixed(single),
        values={"direction": "rises" if both.rises > both.falls else "falls"},
    )


def falling(values: Sequence[float]) -> tuple[bool, bool]:
    """Return whether values fall strictly from each to the next, and from the first to the last."""
    every = all(later < earlier for earlier, later in itertools.pairwise(values))
    return every, values[-1] < values[0]


def summary_rows(draws: Draws) -> Rows:
    """Return medians and fractions per number of attributes."""
    return [
        [
            *(k, len(d)),
            median(i.optimum_achieved / i.sum_achieved for i in d),
            median(i.heuristic / i.sum_achieved for i in d),
            median(i.optimum_requested / i.sum_requested for i in d),
            fmean(i.kept for i in d),
            fmean(i.n_raised > 0 for i in d),
            median(i.excess_achieved for i in d),
            median(i.excess_requested for i in d),
        ]
        for k, d in draws.items()
    ]


def given_rest_text(draws: Draws) -> str:
    """Return how many times its own ε_i the worst attribute has given the rest."""
    return per_k({k: max(i.given_rest for i in d) for k, d in draws.items()}, ".1f")


# Figures 1 and 2: the levels vary.

N_CATEGORIES = 5
LOWEST, HIGHEST = 1.0, 8.0
TOTAL = 20.0
"""The total of the paper's example, in nats, and its number of attributes (case (c))."""
TOTAL_ATTRIBUTES = 7
POOR_START = (1.5, 1.4, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0)
"""Levels with which the heuristic starts badly: the first two are small. An example, not a draw."""
MORE_ATTRIBUTES = (4, 6, 8, 12)
"""Besides the paper's, for the threshold; no verdict depends on them."""
_BOOTSTRAP, _COMPARED, _WORSE, _PROGRAM = 100, 101, 102, 103
"""Streams of the generator."""


@dataclass(frozen=True)
class Threshold:
    """From where on the heuristic is nearly always nearly optimal, in nats; None if from nowhere.

    Args:
        achieved: Σ ε_i as achieved, against the optimum at the levels achieved.
        low, high: middle 90 % of the same over resampled draws.
        requested: Σ ε_i as requested, against the optimum at the levels requested, where a draw
            with a raised level does not count as near-optimal.
    """

    achieved: float | None
    low: float | None
    high: float | None
    requested: float | None


@dataclass(frozen=True)
class Bought:
    """Levels of seven attributes with five categories at a total of 20 nats for the record.

    Args:
        optimum: Σ ε_i (as achieved) at that ε, on the straight line through the draws.
        heuristic: the same for the heuristic's ε.
        equal: Σ ε_i that method ``optimal`` gives when it divides the total into equal levels.
        largest: the largest ε of the optimum in the draws, in nats.
    """

    optimum: float
    heuristic: float
    equal: float
    largest: float


@dataclass(frozen=True)
class LevelNumbers:
    """Everything that study ``privacy-levels`` rests on.

    Args:
        every: the instances by number of attributes.
        thresholds: of the heuristic, by number of attributes.
        bought: at a total of 20 nats.
        agreement: equations (10) and (11) against the linear program.
        large, small: how the ratio to ε_1 + ε_2 moves when both levels grow, in cases I and II,
            and in III and IV; five categories each.
        small_single: the same in III and IV when one level grows.
        worse: further draws, by number of attributes.
        program: the supplement's linear program for three attributes.
        poor: the instance of ``POOR_START``.
    """

    every: dict[int, list[Instance]]
    thresholds: dict[int, Threshold]
    bought: Bought
    agreement: Agreement
    large: Trend
    small: Trend
    small_single: Trend
    worse: dict[int, Worse]
    program: PrintedProgram
    poor: Instance

    @property
    def draws(self) -> dict[int, list[Instance]]:
        """The instances of the paper's four k."""
        return {k: self.every[k] for k in ATTRIBUTES}


def draw(generator: np.random.Generator, k: int) -> tuple[list[int], list[float]]:
    """Return an instance as the paper draws it: a_i = 5, ε_i uniform in [1, 8]."""
    return [N_CATEGORIES] * k, generator.uniform(LOWEST, HIGHEST, k).tolist()


def _draws(setting: Setting, attributes: Sequence[int]) -> dict[int, list[Instance]]:
    n_draws = 25 if setting.quick else 200
    return draw_instances(setting, attributes, n_draws, draw, linear_program_up_to=10)


@lru_cache(maxsize=1)
def level_draws(setting: Setting) -> dict[int, list[Instance]]:
    """Return the instances of the paper's k, solved once for all studies that need them."""
    return _draws(setting, ATTRIBUTES)


def measure_levels(setting: Setting) -> LevelNumbers:
    """Draw, solve and summarise."""
    quick = setting.quick
    draws = dict(level_draws(setting.part(0, 0.5)))
    if not quick:
        draws |= _draws(setting.part(0.5, 0.95), MORE_ATTRIBUTES)
        draws = {k: draws[k] for k in sorted(draws)}
    bootstrap, resamples = setting.generator(_BOOTSTRAP), 100 if quick else 1000
    both = level_steps(N_CATEGORIES, N_CATEGORIES, both=True)
    single = level_steps(N_CATEGORIES, N_CATEGORIES, both=False)
    return LevelNumbers(
        draws,
        {k: threshold(instances, bootstrap, resamples) for k, instances in draws.items()},
        what_20_buys(draws[TOTAL_ATTRIBUTES]),
        compare_with_linear_program(setting.generator(_COMPARED), 50 if quick else 500),
        trend(both, ratio_to_sum, BIG),
        trend(both, ratio_to_sum, SMALL),
        trend(single, ratio_to_sum, SMALL),
        measure_worse(setting, draw, further_draws(setting)),
        compare_printed_program(setting.generator(_PROGRAM), 20 if quick else 200),
        solve_instance([N_CATEGORIES] * len(POOR_START), POOR_START, linear_program=False),
    )


def threshold(
    instances: Sequence[Instance], generator: np.random.Generator, resamples: int
) -> Threshold:
    """Return the threshold of one k, with a bootstrap."""
    x = np.array([i.sum_achieved for i in instances])
    good = np.array([i.near_achieved for i in instances])
    again = []
    for _ in range(resamples):
        chosen = generator.integers(0, len(x), len(x))
        found = threshold_above(x[chosen], good[chosen])
        # No near-optimal end at all is a threshold beyond every draw.
        again.append(math.inf if found is None else found)
    low, high = np.quantile(again, [0.05, 0.95], method="nearest").tolist()
    return Threshold(
        threshold_above(x, good),
        None if math.isinf(low) else low,
        None if math.isinf(high) else high,
        threshold_above(
            [i.sum_requested for i in instances], [i.near_requested for i in instances]
        ),
    )


def what_20_buys(instances: Sequence[Instance]) -> Bought:
    """Return Σ ε_i at a total of 20 nats, from the draws and from a design for that total."""
    bought = [i.sum_achieved for i in instances]
    optimum = [i.optimum_achieved for i in instances]

    def on_line(x: Sequence[float]) -> float:
        return fmean(bought) + slope(x, bought)[0] * (TOTAL - fmean(x))

    # Equal importance of equal attributes: equal levels.
    schema = Schema.anonymous([N_CATEGORIES] * TOTAL_ATTRIBUTES)
    equal = design(schema, epsilon=TOTAL, method="optimal").mechanism.attribute_epsilon
    return Bought(
        on_line(optimum), on_line([i.heuristic for i in instances]), math.fsum(equal), max(optimum)
    )


def near_optimal(draws: Draws) -> Judged:
    """The heuristic near the optimum where Σ ε_i is large, at the levels achieved."""
    near = fraction_near(draws, lambda i: i.sum_achieved, lambda i: i.near_achieved, upper=True)
    least = min(near.values())
    found = f"near-optimal in that third: {per_k(near, '.0%')}"
    return Judged(found, least >= NEARLY_ALL, least >= 0.5)


def near_optimal_as_requested(draws: Draws) -> Judged:
    """The same where a law counts only if it keeps the levels requested."""
    near = fraction_near(draws, lambda i: i.sum_requested, lambda i: i.near_requested, upper=True)
    ratios = {k: median(i.excess_requested for i in d) for k, d in draws.items()}
    alone = {k: [i.excess_requested for i in d if i.kept] for k, d in draws.items()}
    kept = ", ".join(
        f"{len(values)} of {len(draws[k])} (k = {k}"
        + (f", median {median(values):.3f}, largest {max(values):.3f})" if values else ")")
        for k, values in alone.items()
    )
    least = min(near.values())
    return Judged(
        f"near-optimal in the upper third: {per_k(near, '.0%')}; median over all draws of the "
        f"ratio: {per_k(ratios, '.3f')}; draws that keep every level, and their ratio: {kept}",
        least >= NEARLY_ALL,
        least >= 0.5,
    )


def levels_kept(draws: Draws) -> Judged:
    """Whether the heuristic keeps the levels."""
    kept = {k: fmean(i.kept for i in d) for k, d in draws.items()}
    raised = {k: fmean(i.n_raised > 0 for i in d) for k, d in draws.items()}
    most = {k: max(i.raised_by for i in d) for k, d in draws.items()}
    return Judged(
        f"a level raised in {per_k(raised, '.0%')} of the draws, by up to {per_k(most, '.2f')} "
        f"nats; every level kept in {per_k(kept, '.0%')}",
        max(raised.values()) == 0,
        max(raised.values()) <= 0.05,
    )


def narrower(draws: Draws) -> Judged:
    """Whether the draws scatter less about their trend for more attributes."""
    sums = {k: [i.sum_achieved for i in d] for k, d in draws.items()}
    ratios = {
        k: scatter_about_trend(sums[k], [i.optimum_achieved / i.sum_achieved for i in d])
        for k, d in draws.items()
    }
    nats = {
        k: scatter_about_trend(sums[k], [i.optimum_achieved for i in d]) for k, d in draws.items()
    }
    fully, partly = falling([ratios[k] for k in sorted(ratios)])
    return Judged(
        f"{per_k(ratios, '.4f')}; in nats, ε itself about its parabola: {per_k(nats, '.2f')}",
        fully,
        partly,
        "ends" if partly else "no",
    )


def feature_of_the_optimum(draws: Draws) -> Judged:
    """The optimum's ratio over Σ ε_i: falling where large, not where small."""
    found = {k: slopes(d, lambda i: i.sum_achieved) for k, d in draws.items()}
    falls_high = all(value < -2 * error for _, (value, error) in found.values())
    falls_low = [k for k, ((value, error), _) in found.items() if value < -2 * error]
    steeper = all(high[0] < low[0] for low, high in found.values())
    return Judged(
        "slope per nat in thousandths, lower and upper third, with standard errors: "
        + slopes_text(found, ".1f"),
        falls_high and not falls_low,
        falls_high or steeper,
        "lower" if falls_high else "upper",
        {"falls_low": " and ".join(map(str, falls_low))},
    )


def best_factor(values: Mapping[int, float], shape: Mapping[int, float]) -> float:
    """Return c for which the relative errors c·shape/value − 1 have the least sum of squares."""
    ratios = np.array([shape[k] / values[k] for k in values])
    return float(ratios.sum() / (ratios @ ratios))


def proportional(found: Mapping[int, float | None]) -> Judged:
    """The threshold against k log k."""
    seen = {k: value for k, value in found.items() if value is not None}
    complete = len(seen) == len(found)
    factor, worst = {"k ln k": math.nan, "k": math.nan}, {"k ln k": math.inf, "k": math.inf}
    if len(seen) > 1:
        for name, shape in (
            ("k ln k", {k: k * math.log(k) for k in found}),
            ("k", dict(zip(found, map(float, found), strict=True))),
        ):
            factor[name] = best_factor(seen, shape)
            worst[name] = max(abs(factor[name] * shape[k] / seen[k] - 1) for k in seen)
    near = complete and worst["k ln k"] <= 0.15
    better = worst["k ln k"] < worst["k"]
    said = ", ".join(
        f"{'none' if value is None else format(value, '.1f')} (k = {k})"
        for k, value in found.items()
    )
    return Judged(
        f"thresholds in nats: {said}; farthest from {factor['k ln k']:.2f}·k ln k by "
        f"{worst['k ln k']:.0%}, from {factor['k']:.2f}·k by {worst['k']:.0%}",
        near and better,
        near or (better and math.isfinite(worst["k ln k"])),
        "none" if not complete else "other" if not better else "far",
    )


def buys_40(bought: Bought) -> Judged:
    """A total of 20 for seven attributes."""
    farthest = max(abs(bought.optimum - 40), abs(bought.heuristic - 40))
    return Judged(
        f"{bought.optimum:.1f} by the optimum, {bought.heuristic:.1f} by the heuristic (at the "
        f"levels it achieved); the largest ε drawn is {bought.largest:.1f}; apart from the draws, "
        f"a design for a total of 20 in equal levels gives {bought.equal:.1f}",
        farthest <= 4,
        farthest <= 8,
        "more" if min(bought.optimum, bought.heuristic) > 40 else "other",
    )


def equations(agreement: Agreement) -> Judged:
    """Equations (10) and (11) against the linear program."""
    return Judged(
        f"the largest relative difference on {agreement.n_instances} instances is "
        f"{agreement.worst:.1e}",
        agreement.worst <= 1e-9,
    )


def supplement_program(program: PrintedProgram) -> Judged:
    """The supplement's program for three attributes."""
    same = program.worst <= 1e-6
    return Judged(
        f"A_ub has {program.rows} rows and b_ub {program.entries} entries; with zeros added the "
        f"optimum differs by at most {program.worst:.1e} nats on {program.n_instances} instances",
        same and program.entries == program.rows,
        same,
        values={"missing": program.rows - program.entries},
    )


def certificates(draws: Draws) -> Judged:
    """Judge the proof of every optimum against the linear program."""
    every = [i for d in draws.values() for i in d]
    gap = max(i.gap for i in every)
    checked = [
        abs(i.linear_program - i.optimum_requested) for i in every if i.linear_program is not None
    ]
    worst = max(gap, *checked)
    return Judged(
        f"largest proved gap {gap:.1e} nats in {len(every):,} draws, at the levels requested and "
        f"achieved; largest difference from the linear program {max(checked):.1e} nats in "
        f"{len(checked):,}",
        worst <= 1e-8,
        worst <= 1e-5,
    )


def _threshold_rows(found: Mapping[int, Threshold]) -> Rows:
    def over(value: float | None, shape: float) -> float | None:
        return None if value is None else value / shape

    return [
        [
            *(k, t.achieved, t.low, t.high),
            *(over(t.achieved, k * math.log(k)), over(t.achieved, k), t.requested),
        ]
        for k, t in found.items()
    ]


def _draw_thresholds(canvas: "MatplotlibFigure", found: Mapping[int, Threshold]) -> None:
    axes = canvas.subplots()
    for method, label, values in (
        ("heuristic", "at the levels it achieves", {k: t.achieved for k, t in found.items()}),
        (
            "heuristic-requested",
            "at the levels requested",
            {k: t.requested for k, t in found.items()},
        ),
    ):
        style = STYLES[method]
        seen = {k: value for k, value in values.items() if value is not None}
        axes.plot(
            list(seen), list(seen.values()), linestyle="none", marker=style.marker,
            color=style.colour, label=label,
        )  # fmt: skip
    for k, t in found.items():
        if t.low is not None and t.high is not None:
            axes.plot([k, k], [t.low, t.high], color=STYLES["heuristic"].colour, lw=0.9)
    fitted = {k: t.achieved for k, t in found.items() if k in ATTRIBUTES and t.achieved is not None}
    if len(fitted) > 1:
        ks = np.linspace(min(found), max(found), 100)
        shapes: tuple[tuple[str, str, Callable[[float], float]], ...] = (
            ("-", "c·k ln k", lambda k: k * math.log(k)),
            (":", "c·k", float),
        )
        for line, label, shape in shapes:
            c = best_factor(fitted, {k: shape(k) for k in fitted})
            axes.plot(ks, [c * shape(k) for k in ks], line, color="#777777", lw=1, label=label)
    axes.set_xlabel("attributes k")
    axes.set_ylabel("threshold of Σ ε_i (nats)")
    axes.set_xticks(list(found))
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")
    grid(axes)


def _level_values(n: LevelNumbers) -> Values:
    return {
        "n_draws": len(n.draws[3]),
        "given_rest": given_rest_text(n.draws),
        "poor": n.poor,
    }


STUDY = Study(
    read_text("privacy_optimized/privacy-levels.toml"),
    measure_levels,
    judges={
        "stronger": lambda n: stronger(n.draws, n.worse),
        "near-optimal": lambda n: near_optimal(n.draws),
        "near-optimal-as-requested": lambda n: near_optimal_as_requested(n.draws),
        "levels-kept": lambda n: levels_kept(n.draws),
        "narrower": lambda n: narrower(n.draws),
        "feature-of-the-optimum": lambda n: feature_of_the_optimum(n.draws),
        "proportional": lambda n: proportional({k: n.thresholds[k].achieved for k in ATTRIBUTES}),
        "buys-40": lambda n: buys_40(n.bought),
        "equations": lambda n: equations(n.agreement),
        "supplement-program": lambda n: supplement_program(n.program),
        "trend-of-10": lambda n: Judged(
            f"it falls along {n.large.falls:.1%} of {n.large.n_steps:,} steps",
            n.large.falls >= 0.9,
            n.large.falls >= 0.5,
        ),
        "trend-of-11": lambda n: no_clear_trend(n.small, n.small_single),
        "certificates": lambda n: certificates(n.every),
    },
    figures={
        "figure-1": lambda canvas, n: draw_levels(
            canvas, n.draws, lambda i: i.sum_achieved, "Σ ε_i achieved (nats)"
        ),
        "figure-2": lambda canvas, n: draw_excess(
            canvas, n.draws, lambda i: i.sum_achieved, lambda i: i.sum_requested, "Σ ε_i (nats)"
        ),
        "thresholds": lambda canvas, n: _draw_thresholds(canvas, n.thresholds),
        "two-attributes": lambda canvas, _: draw_two_attributes(canvas),
    },
    tables={
        "summary": lambda n: summary_rows(n.draws),
        "thresholds": lambda n: _threshold_rows(n.thresholds),
        "instances": lambda n: instance_rows(n.every),
    },
    values=_level_values,
)
