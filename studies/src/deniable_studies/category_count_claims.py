"""The claims of the paper about Figures 3 and 4, and their verdicts."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from deniable_studies.record_levels import NEAR_OPTIMAL, NEARLY_ALL, Instance, slope, third
from deniable_studies.study import Claim, judge
from deniable_studies.two_attributes import Trend

Draws = Mapping[int, Sequence[Instance]]

_WHERE = "Yamamoto and Shibuya, section V-A, "


def _slopes(instances: Sequence[Instance]) -> list[tuple[float, float]]:
    """Return slope and standard error of ε/Σ ε_i over Σ a_i in the lower and the upper third."""
    x = np.array([i.sum_categories for i in instances], dtype=np.float64)
    y = np.array([i.optimum_achieved / i.sum_achieved for i in instances])
    places = [third(x, upper=up) for up in (False, True)]
    return [slope(x[chosen], y[chosen]) for chosen in places]


def rises_then_flat(draws: Draws) -> Claim:
    """The optimum over Σ a_i."""
    found = {k: _slopes(d) for k, d in draws.items()}
    rises = {k: low[0] > 2 * low[1] for k, (low, _) in found.items()}
    flat = {k: high[0] <= 2 * high[1] for k, (_, high) in found.items()}
    bends = all(high[0] < low[0] for low, high in found.values())
    fully = all(rises.values()) and all(flat.values())
    said = ", ".join(
        f"{1e3 * low[0]:+.2f} ± {1e3 * low[1]:.2f} and {1e3 * high[0]:+.2f} ± {1e3 * high[1]:.2f} "
        f"(k = {k})"
        for k, (low, high) in found.items()
    )
    missed = [
        text
        for places, text in (
            ([k for k, yes in rises.items() if not yes], "no clear rise in the lower third"),
            ([k for k, yes in flat.items() if not yes], "still a rise in the upper third"),
        )
        if places
        for text in [f"{text} at k = " + " and ".join(map(str, places))]
    ]
    return Claim(
        "As Σ a_i increases, the difference from the Kronecker product-based method becomes "
        "smaller at first, but after a certain value, the difference becomes nearly constant or "
        "larger",
        _WHERE + "Figure 3",
        "for every k, the optimum's ε/Σ ε_i rises with Σ a_i in the lower third of the draws "
        "(slope above 0 by two standard errors) and not in the upper third; partly: for every k "
        "the slope is smaller in the upper third than in the lower",
        f"slope per category in thousandths, lower and upper third, with standard errors: {said}",
        judge(fully, partly=bends),
        "" if fully else f"There is {'; and '.join(missed)}.",
    )


def smaller_with_k(draws: Draws) -> Claim:
    """The rise against k."""
    found = {k: _slopes(d)[0] for k, d in draws.items()}
    values = [found[k][0] for k in sorted(found)]
    mean = {k: k * value for k, (value, _) in found.items()}
    fully = all(later < earlier for earlier, later in itertools.pairwise(values))
    return Claim(
        "The increasing trend becomes smaller as k increases",
        _WHERE + "Figure 3",
        "the slope of the optimum's ε/Σ ε_i per unit of Σ a_i, the figure's axis, in the lower "
        "third of the draws falls strictly from k = 3 to 5, 7 and 10; partly: it is smaller at 10 "
        "than at 3",
        "in thousandths: "
        + ", ".join(f"{1e3 * v:.2f} ± {1e3 * e:.2f} (k = {k})" for k, (v, e) in found.items())
        + "; per unit of the mean of the a_i: "
        + ", ".join(f"{1e3 * v:.1f} (k = {k})" for k, v in mean.items()),
        judge(fully, partly=values[-1] < values[0]),
        ""
        if fully
        else "The order between neighbouring k does not hold with this many draws."
        if values[-1] < values[0]
        else "The slope is not smaller with more attributes.",
    )


def near_optimal(draws: Draws) -> Claim:
    """The heuristic near the optimum where Σ a_i is small."""
    share, asked = {}, {}
    for k, d in draws.items():
        chosen = [d[i] for i in third([i.sum_categories for i in d], upper=False)]
        share[k] = sum(i.excess_achieved <= NEAR_OPTIMAL for i in chosen) / len(chosen)
        asked[k] = sum(
            i.excess_requested <= NEAR_OPTIMAL and i.n_raised == 0 for i in chosen
        ) / len(chosen)
    fully, partly = min(share.values()) >= NEARLY_ALL, min(share.values()) >= 0.5
    return Claim(
        "It can achieve a privacy level close to the optimal solution when Σ a_i is small; below "
        "a certain value, our heuristic method provides an almost exact optimal solution",
        _WHERE + "Figures 3 and 4",
        "at the levels it achieved: among the third of the draws with the smallest Σ a_i, "
        f"{NEARLY_ALL:.0%} at most {NEAR_OPTIMAL - 1:.0%} above the optimum, for every k; partly: "
        "half of them, for every k",
        "near-optimal in that third: "
        + ", ".join(f"{v:.0%} (k = {k})" for k, v in share.items())
        + "; at the levels requested, a draw with a raised level not counted: "
        + ", ".join(f"{v:.0%} (k = {k})" for k, v in asked.items()),
        judge(fully, partly=partly),
        ""
        if fully
        else "How small is small depends on the number of attributes: see the next claim and the "
        "table of thresholds.",
    )


def same_threshold(
    found: Mapping[int, float | None],
    draws: Draws,
    found_same: Mapping[int, float | None],
    same: Draws,
) -> Claim:
    """The threshold in Σ a_i against k."""
    seen = [value for value in found.values() if value is not None]
    complete = len(seen) == len(found)
    spread = max(seen) / min(seen) if seen else float("inf")
    return Claim(
        "The threshold appears to vary little depending on the value of k",
        _WHERE + "Figure 4",
        "the thresholds of the four k (see choices) differ by a factor of at most 1.25; partly: "
        "at most 1.5",
        f"thresholds in Σ a_i: {_said(found, draws)}"
        + (f"; largest over smallest {spread:.2f}" if complete else "")
        + f"; with the same range of a_i for every k: {_said(found_same, same)}",
        judge(complete and spread <= 1.25, partly=complete and spread <= 1.5),
        ""
        if complete and spread <= 1.25
        else "The threshold moves with k by this definition; the tables have it for other meanings "
        "of almost exact."
        if complete
        else "For at least one k not even the smallest Σ a_i drawn are nearly always within 1 %.",
    )


def _said(found: Mapping[int, float | None], draws: Draws) -> str:
    return ", ".join(
        f"none (k = {k}, from {min(i.sum_categories for i in draws[k])} on)"
        if value is None
        else f"{value:.0f} (k = {k})"
        for k, value in found.items()
    )


def trend_of_10(found: Trend) -> Claim:
    """The optimum over m and n in cases I and II."""
    return Claim(
        "The value of (10) tends to increase when the values of m and n increase (cases I and II)",
        _WHERE + "equation (10)",
        "at ε_1 = ε_2 = 3 it rises along at least 90 % of the steps of the grid (see choices); "
        "partly: 50 %",
        f"it rises along {found.rises:.1%} of {found.n_steps:,} steps",
        judge(found.rises >= 0.9, partly=found.rises >= 0.5),
        "" if found.rises >= 0.9 else "It falls along the other steps.",
    )


def smaller_with_levels(rises: Mapping[float, float]) -> Claim:
    """The rise with m and n against the levels."""
    values = list(rises.values())
    fully = all(later < earlier for earlier, later in itertools.pairwise(values))
    return Claim(
        "However, the increasing trend would become smaller as the sum of privacy level for each "
        "attribute information increases",
        _WHERE + "equation (10)",
        "the mean rise of (10), when both attributes get one category more (from 2 to 8 "
        "categories, the same steps at every level), falls strictly from ε_1 = ε_2 = 2 to 8; "
        "partly: it is smaller at 8 than at 2",
        "in nats: "
        + ", ".join(f"{value:.4f} (at {level:g})" for level, value in rises.items())
        + "; as a part of ε_1 + ε_2: "
        + ", ".join(f"{value / (2 * level):.4f}" for level, value in rises.items()),
        judge(fully, partly=values[-1] < values[0]),
        ""
        if fully
        else "For large levels (10) is ε_1 + ln n, and one category more adds ln((n + 1)/n) "
        "whatever the levels. Only the ratio to ε_1 + ε_2, the axis of Figure 3, rises less.",
    )


def trend_of_11(found: Trend, single: Trend) -> Claim:
    """The optimum over m and n in cases III and IV."""
    mixed = all(0.1 < share < 0.9 for share in (found.falls, found.rises))
    partly = all(0.1 < share < 0.9 for share in (single.falls, single.rises))
    return Claim(
        "No clear trend in the value of (11) can be observed when the values of m and n vary "
        "(cases III and IV)",
        _WHERE + "equation (11)",
        "it rises along more than 10 % and less than 90 % of the steps in which both grow, and so "
        "it falls; partly: of those in which one grows",
        f"both grow: it rises along {found.rises:.1%} and falls along {found.falls:.1%} of "
        f"{found.n_steps:,} steps; one grows: {single.rises:.1%} and {single.falls:.1%} of "
        f"{single.n_steps:,}",
        judge(mixed, partly=partly),
        ""
        if mixed
        else "(11) falls strictly in m and in n. Its argument has derivatives with the signs of "
        "−(e^ε_1 − 1)(e^ε_2 + n − 1) in m and −(e^ε_1 − 1)e^ε_2 in n.",
    )
