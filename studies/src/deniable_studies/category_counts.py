"""Figures 3 and 4 of Yamamoto and Shibuya: the record's level where the category counts vary."""

import numpy as np

from deniable_studies import category_count_claims as claims
from deniable_studies.privacy_level_claims import stronger, summary_table
from deniable_studies.record_levels import (
    ATTRIBUTES,
    NEAR_OPTIMAL,
    Instance,
    draw_excess,
    draw_instances,
    draw_levels,
    instance_table,
    threshold_below,
)
from deniable_studies.study import Cell, Figure, Findings, Setting, Study, Table
from deniable_studies.two_attributes import BIG, SMALL, mean_rise, optimal_level, size_steps, trend

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
"""Up to so many categories two attributes at a level of 2 or more are in cases I and II."""
SMALL_LEVELS = (0.5, 1.0, 1.5, 2.0)
"""Equal levels at which two attributes of up to 15 categories reach cases III and IV."""


def draw(generator: np.random.Generator, k: int) -> tuple[list[int], list[float]]:
    """Return an instance as in the authors' notebooks: ε_i = 3, a_i uniform in 2 to MOST[k]."""
    return generator.integers(FEWEST, MOST[k] + 1, k).tolist(), [LEVEL] * k


def draw_same(generator: np.random.Generator, k: int) -> tuple[list[int], list[float]]:
    """Return an instance with ε_i = 3 and a_i uniform in 2 to 15 whatever k."""
    return generator.integers(FEWEST, SAME_MOST + 1, k).tolist(), [LEVEL] * k


def thresholds(draws: dict[int, list[Instance]], tolerance: float) -> dict[int, float | None]:
    """Return the largest Σ a_i up to which 95 % of the draws are that near the optimum."""
    return {
        k: threshold_below(
            [i.sum_categories for i in d], [i.excess_achieved <= tolerance for i in d]
        )
        for k, d in draws.items()
    }


def run(setting: Setting) -> Findings:
    """Make Figures 3 and 4 again."""
    quick = setting.quick
    n = 20 if quick else 200
    draws = draw_instances(setting.part(0, 0.5), ATTRIBUTES, n, draw, linear_program_up_to=10)
    same = draw_instances(setting.part(0.5, 0.95), ATTRIBUTES, n, draw_same, stream=1)
    by_tolerance = {tolerance: thresholds(draws, tolerance) for tolerance in TOLERANCES}
    by_tolerance_same = {tolerance: thresholds(same, tolerance) for tolerance in TOLERANCES}
    n_draws = len(draws[3])
    within_10 = trend(size_steps(LEVEL, both=True), optimal_level, BIG)
    within_11 = trend(
        [step for level in SMALL_LEVELS for step in size_steps(level, both=True)],
        optimal_level,
        SMALL,
    )
    single_11 = trend(
        [step for level in SMALL_LEVELS for step in size_steps(level, both=False)],
        optimal_level,
        SMALL,
    )
    rises = {level: mean_rise(level, RISE_SIZES) for level in RISE_LEVELS}
    return Findings(
        [
            stronger(draws, "Figure 3"),
            claims.rises_then_flat(draws),
            claims.smaller_with_k(draws),
            claims.near_optimal(draws),
            claims.same_threshold(
                by_tolerance[NEAR_OPTIMAL], draws, by_tolerance_same[NEAR_OPTIMAL], same
            ),
            claims.trend_of_10(within_10),
            claims.smaller_with_levels(rises),
            claims.trend_of_11(within_11, single_11),
        ],
        [
            Figure(
                "figure-3",
                "Figure 3: ε of the record over Σ ε_i, at the levels that the heuristic achieves, "
                f"over Σ a_i; every point is one of {n_draws} draws per panel.",
                lambda canvas: draw_levels(canvas, draws, lambda i: i.sum_categories, "Σ a_i"),
                (7.0, 6.0),
            ),
            Figure(
                "figure-4",
                "Figure 4: ε of the record under the heuristic over the optimum, over Σ a_i. "
                "Triangles up: optimum at the levels that the heuristic achieved, as the authors "
                "do. Triangles down: optimum at the levels requested; filled where the heuristic "
                f"kept all of them. {n_draws} draws per panel.",
                lambda canvas: draw_excess(
                    canvas,
                    draws,
                    lambda i: i.sum_categories,
                    lambda i: i.sum_categories,
                    "Σ a_i",
                ),
                (7.0, 6.0),
            ),
            Figure(
                "same-range",
                "Figure 4 once more with a_i uniform in 2 to 15 for every k, as the authors have "
                f"it for k = 3 only. {n_draws} draws per panel.",
                lambda canvas: draw_excess(
                    canvas,
                    same,
                    lambda i: i.sum_categories,
                    lambda i: i.sum_categories,
                    "Σ a_i",
                ),
                (7.0, 6.0),
            ),
        ],
        [
            summary_table(draws),
            _threshold_table("thresholds", "as the authors draw them", by_tolerance, draws),
            _threshold_table("thresholds-same", "in 2 to 15 for every k", by_tolerance_same, same),
            instance_table(
                draws,
                "Every draw: category counts, levels requested and achieved, and ε of the record "
                "by each method.",
            ),
        ],
        choices=[
            "The paper does not state the range of the a_i. The authors' published notebooks draw "
            "int(uniform(2, m)) with another m for every k: a_i is uniform in "
            + ", ".join(f"{FEWEST} to {most} (k = {k})" for k, most in MOST.items())
            + ". So does this study; a second set of draws has 2 to 15 for every k. (A first run "
            "had only that set, after the notebook for k = 3; the rules were written before it and "
            "have not been changed.)",
            "Levels achieved: ε_i of each attribute under the heuristic's law. As in the authors' "
            "notebooks, the ratio's denominator is their sum, and the optimum is the one at these "
            "levels. The optimum at the levels requested, 3 each, is added.",
            f"Near-optimal: at most {NEAR_OPTIMAL - 1:.0%} above the optimum. Threshold of a k: "
            "the largest Σ a_i such that 95 % of the draws at and below it are near-optimal.",
            "Small and large Σ a_i: the lower and the upper third of the draws. A slope counts as "
            "rising if it is above 0 by two standard errors.",
            f"Trends for two attributes: equal levels, {FEWEST} to {SAME_MOST} categories, both "
            "raised by one; only steps that stay within the cases count. For equation (11) levels "
            "of " + ", ".join(f"{level:g}" for level in SMALL_LEVELS) + ".",
        ],
        remarks=[
            "With ε_i = 3 and at most 15 categories two attributes are always in cases I or II, "
            "because e⁶ = 403 is above 14·14. What the paper says of cases III and IV for large "
            "Σ a_i concerns more attributes only by analogy.",
            "ε_i holds against someone who sees only that column. Against someone who knows the "
            "rest of the record, under the optimum, the worst attribute of a draw had up to "
            + ", ".join(f"{max(i.given_rest for i in d):.1f} (k = {k})" for k, d in draws.items())
            + " times its own ε_i.",
        ],
    )


def _threshold_table(
    name: str,
    which: str,
    found: dict[float, dict[int, float | None]],
    draws: dict[int, list[Instance]],
) -> Table:
    rows: list[list[Cell]] = []
    for k, instances in draws.items():
        sums = [i.sum_categories for i in instances]
        rows.append([k, min(sums), max(sums), *(by_k[k] for by_k in found.values())])
    return Table(
        name,
        f"The largest Σ a_i up to which 95 % of {len(draws[3])} draws are so near the optimum at "
        f"the levels achieved; a_i {which}; empty where the smallest Σ a_i drawn are not.",
        [
            "attributes",
            "smallest_sum_drawn",
            "largest_sum_drawn",
            *(f"within_{tolerance - 1:.0%}".replace("%", "_percent") for tolerance in found),
        ],
        rows,
    )


STUDY = Study(
    name="category-counts",
    title="The record's ε where the numbers of categories vary: Figures 3 and 4",
    source="Yamamoto and Shibuya, section V-A, Figures 3 and 4",
    question="How does ε of the record at the optimum and under the heuristic depend on the "
    "numbers of categories, at ε_i = 3 for every attribute?",
    seconds=60,
    run=run,
)
