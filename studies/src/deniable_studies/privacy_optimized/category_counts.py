"""Study ``category-counts``: Figures 3 and 4 of Yamamoto and Shibuya, where categories vary.

A draw is an instance that the heuristic and the optimum solve.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deniable_studies.privacy_optimized.instances import (
    ATTRIBUTES,
    NEAR_OPTIMAL,
    NEARLY_ALL,
    Draws,
    Instance,
    draw_excess,
    draw_instances,
    draw_levels,
    instance_rows,
    threshold_above,
    threshold_below,
)
from deniable_studies.privacy_optimized.levels import (
    Worse,
    falling,
    fraction_near,
    further_draws,
    given_rest_text,
    level_draws,
    measure_worse,
    no_clear_trend,
    per_k,
    slopes,
    slopes_text,
    stronger,
    summary_rows,
)
from deniable_studies.privacy_optimized.two_attributes import (
    BIG,
    SMALL,
    Trend,
    mean_rise,
    optimal_level,
    size_steps,
    trend,
)
from deniable_studies.study import Judged, Rows, Setting, Study
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

LEVEL = 3.0
FEWEST = 2
MOST = {3: 15, 5: 9, 7: 6, 10: 4}
"""Largest a_i by number of attributes, as in the authors' published notebooks."""
SAME_MOST = 15
"""Largest a_i where every number of attributes has the same range."""
TOLERANCES = (NEAR_OPTIMAL, 1.02, 1.05, 1.1)
"""Further meanings of "almost exact", for the table of thresholds; verdicts use the first."""
RISE_LEVELS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
RISE_SIZES = 8
"""Largest number of categories with two attributes at a level of 2 or more in cases I and II."""
SMALL_LEVELS = (0.5, 1.0, 1.5, 2.0)
"""Equal levels at which two attributes of up to 15 categories reach cases III and IV."""


@dataclass(frozen=True)
class CategoryNumbers:
    """Everything that study ``category-counts`` rests on.

    Args:
        draws: the instances by number of attributes, ranges of a_i as in the authors' notebooks.
        same: instances with one range of a_i for every k.
        worse: further draws of the heuristic, by number of attributes.
        of_levels: the instances of study ``privacy-levels``.
        large, small, small_single: how ε of two attributes moves with their numbers of categories,
            as in :class:`~deniable_studies.privacy_optimized.levels.LevelNumbers`.
        rises: by how many nats equation (10) rises on average, by level.
    """

    draws: dict[int, list[Instance]]
    same: dict[int, list[Instance]]
    worse: dict[int, Worse]
    of_levels: dict[int, list[Instance]]
    large: Trend
    small: Trend
    small_single: Trend
    rises: dict[float, float]


def draw_counts(generator: np.random.Generator, k: int) -> tuple[list[int], list[float]]:
    """Return an instance as in the authors' notebooks: ε_i = 3, a_i uniform in 2 to MOST[k]."""
    return generator.integers(FEWEST, MOST[k] + 1, k).tolist(), [LEVEL] * k


def draw_same(generator: np.random.Generator, k: int) -> tuple[list[int], list[float]]:
    """Return an instance with ε_i = 3 and a_i uniform in 2 to 15 for every k."""
    return generator.integers(FEWEST, SAME_MOST + 1, k).tolist(), [LEVEL] * k


def measure_categories(setting: Setting) -> CategoryNumbers:
    """Draw, solve and summarise."""
    n = 20 if setting.quick else 200
    small = {
        both: [step for level in SMALL_LEVELS for step in size_steps(level, both=both)]
        for both in (True, False)
    }
    return CategoryNumbers(
        draw_instances(setting.part(0, 0.3), ATTRIBUTES, n, draw_counts, linear_program_up_to=10),
        draw_instances(setting.part(0.3, 0.6), ATTRIBUTES, n, draw_same, stream=1),
        measure_worse(setting, draw_counts, further_draws(setting)),
        level_draws(setting.part(0.65, 0.95)),
        trend(size_steps(LEVEL, both=True), optimal_level, BIG),
        trend(small[True], optimal_level, SMALL),
        trend(small[False], optimal_level, SMALL),
        {level: mean_rise(level, RISE_SIZES) for level in RISE_LEVELS},
    )


def thresholds(draws: Draws, tolerance: float = NEAR_OPTIMAL) -> dict[int, float | None]:
    """Return the largest Σ a_i up to which 95 % of the draws are that near the optimum."""
    return {
        k: threshold_below(
            [i.sum_categories for i in d], [i.excess_achieved <= tolerance for i in d]
        )
        for k, d in draws.items()
    }


def rises_then_flat(draws: Draws) -> Judged:
    """The optimum over Σ a_i."""
    found = {k: slopes(d, lambda i: i.sum_categories) for k, d in draws.items()}
    no_rise = [k for k, ((value, error), _) in found.items() if value <= 2 * error]
    still = [k for k, (_, (value, error)) in found.items() if value > 2 * error]
    missed = [
        f"{text} at k = {' and '.join(map(str, places))}"
        for text, places in (
            ("no clear rise in the lower third", no_rise),
            ("still a rise in the upper third", still),
        )
        if places
    ]
    return Judged(
        "slope per category in thousandths, lower and upper third, with standard errors: "
        + slopes_text(found, ".2f"),
        not missed,
        all(high[0] < low[0] for low, high in found.values()),
        values={"missed": "; and ".join(missed)},
    )


def smaller_with_k(draws: Draws) -> Judged:
    """The rise against k."""
    found = {k: slopes(d, lambda i: i.sum_categories)[0] for k, d in draws.items()}
    fully, partly = falling([found[k][0] for k in sorted(found)])
    mean = {k: 1e3 * k * value for k, (value, _) in found.items()}
    return Judged(
        "in thousandths: "
        + ", ".join(f"{1e3 * v:.2f} ± {1e3 * e:.2f} (k = {k})" for k, (v, e) in found.items())
        + f"; per unit of the mean of the a_i: {per_k(mean, '.1f')}",
        fully,
        partly,
        "order" if partly else "no",
    )


def near_optimal_with_few(draws: Draws) -> Judged:
    """The heuristic near the optimum where Σ a_i is small."""
    near, requested = (
        fraction_near(draws, lambda i: i.sum_categories, good, upper=False)
        for good in (lambda i: i.near_achieved, lambda i: i.near_requested)
    )
    least = min(near.values())
    return Judged(
        f"near-optimal in that third: {per_k(near, '.0%')}; at the levels requested, a draw with a "
        f"raised level not counted: {per_k(requested, '.0%')}",
        least >= NEARLY_ALL,
        least >= 0.5,
    )


def same_threshold(draws: Draws, same: Draws) -> Judged:
    """The threshold in Σ a_i against k."""

    def said(draws: Draws) -> str:
        return ", ".join(
            f"none (k = {k}, from {min(i.sum_categories for i in draws[k])} on)"
            if value is None
            else f"{value:.0f} (k = {k})"
            for k, value in thresholds(draws).items()
        )

    found = thresholds(draws)
    seen = [value for value in found.values() if value is not None]
    complete = len(seen) == len(found)
    spread = max(seen) / min(seen) if complete else math.inf
    return Judged(
        f"thresholds in Σ a_i: {said(draws)}"
        + (f"; largest over smallest {spread:.2f}" if complete else "")
        + f"; with the same range of a_i for every k: {said(same)}",
        spread <= 1.25,
        spread <= 1.5,
        "moves" if complete else "none",
    )


def more_sensitive(draws: Draws, of_levels: Draws) -> Judged:
    """The thresholds in Σ a_i and in Σ ε_i against k."""
    counts = thresholds(draws)
    levels = {
        k: threshold_above([i.sum_achieved for i in d], [i.near_achieved for i in d])
        for k, d in of_levels.items()
    }
    seen = [(a, b) for k in draws if (a := counts[k]) is not None and (b := levels[k]) is not None]
    spread, wider = (max(s) / min(s) for s in zip(*seen, strict=True)) if seen else (1.0, 1.0)
    return Judged(
        f"largest over smallest threshold: of Σ ε_i {wider:.2f}, of Σ a_i {spread:.2f}, over the "
        f"{len(seen)} k with both",
        wider > spread,
        tested=len(seen) > 1,
    )


def smaller_with_levels(rises: Mapping[float, float]) -> Judged:
    """The rise with m and n against the levels."""
    return Judged(
        "in nats: "
        + ", ".join(f"{value:.4f} (at {level:g})" for level, value in rises.items())
        + "; as a part of ε_1 + ε_2: "
        + ", ".join(f"{value / (2 * level):.4f}" for level, value in rises.items()),
        *falling(list(rises.values())),
    )


def _count_threshold_rows(draws: Draws) -> Rows:
    found = [thresholds(draws, tolerance) for tolerance in TOLERANCES]
    return [
        [
            k,
            min(i.sum_categories for i in d),
            max(i.sum_categories for i in d),
            *(by_k[k] for by_k in found),
        ]
        for k, d in draws.items()
    ]


def _draw_excess_over_sizes(canvas: "MatplotlibFigure", draws: Draws) -> None:
    draw_excess(canvas, draws, lambda i: i.sum_categories, lambda i: i.sum_categories, "Σ a_i")


STUDY = Study(
    read_text("privacy_optimized/category-counts.toml"),
    measure_categories,
    judges={
        "stronger": lambda n: stronger(n.draws, n.worse),
        "rises-then-flat": lambda n: rises_then_flat(n.draws),
        "smaller-with-k": lambda n: smaller_with_k(n.draws),
        "near-optimal": lambda n: near_optimal_with_few(n.draws),
        "same-threshold": lambda n: same_threshold(n.draws, n.same),
        "more-sensitive": lambda n: more_sensitive(n.draws, n.of_levels),
        "trend-of-10": lambda n: Judged(
            f"it rises along {n.large.rises:.1%} of {n.large.n_steps:,} steps",
            n.large.rises >= 0.9,
            n.large.rises >= 0.5,
        ),
        "smaller-with-levels": lambda n: smaller_with_levels(n.rises),
        "trend-of-11": lambda n: no_clear_trend(n.small, n.small_single),
    },
    figures={
        "figure-3": lambda canvas, n: draw_levels(
            canvas, n.draws, lambda i: i.sum_categories, "Σ a_i"
        ),
        "figure-4": lambda canvas, n: _draw_excess_over_sizes(canvas, n.draws),
        "same-range": lambda canvas, n: _draw_excess_over_sizes(canvas, n.same),
    },
    tables={
        "summary": lambda n: summary_rows(n.draws),
        "thresholds": lambda n: _count_threshold_rows(n.draws),
        "thresholds-same": lambda n: _count_threshold_rows(n.same),
        "instances": lambda n: instance_rows(n.draws),
    },
    values=lambda n: {"n_draws": len(n.draws[3]), "given_rest": given_rest_text(n.draws)},
)
