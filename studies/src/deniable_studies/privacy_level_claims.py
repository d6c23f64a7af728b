"""The claims of the paper about Figures 1 and 2, and their verdicts."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from deniable_studies.privacy_level_figures import best_factor
from deniable_studies.record_levels import (
    NEAR_OPTIMAL,
    NEARLY_ALL,
    Instance,
    scatter_about_trend,
    slope,
    third,
)
from deniable_studies.study import Cell, Claim, Table, judge
from deniable_studies.two_attributes import Agreement, Trend

Draws = Mapping[int, Sequence[Instance]]

CLEARLY_SMALLER = 0.8
"""A median ε of the record at most so large a part of Σ ε_i is "significantly stronger"."""

_WHERE = "Yamamoto and Shibuya, section V-A, "


def _per_k(values: Mapping[int, float], form: str) -> str:
    return ", ".join(f"{value:{form}} (k = {k})" for k, value in values.items())


def stronger(draws: Draws, figure: str = "Figure 1", further: str = "") -> Claim:
    """Both methods against the Kronecker product.

    Args:
        draws: of the figure; the verdict rests on them.
        figure: which.
        further: what more is known, said after what was found.
    """
    optimum = {
        k: float(np.median([i.optimum_achieved / i.sum_achieved for i in d]))
        for k, d in draws.items()
    }
    rough = {
        k: float(np.median([i.heuristic / i.sum_achieved for i in d])) for k, d in draws.items()
    }
    above = [i for d in draws.values() for i in d if i.optimum_achieved >= i.sum_achieved]
    weak = [i for d in draws.values() for i in d if i.heuristic >= i.sum_achieved]
    n_draws = sum(len(d) for d in draws.values())
    below = not above and not weak
    clear = max(*optimum.values(), *rough.values()) <= CLEARLY_SMALLER
    return Claim(
        "Both of our methods provide significantly stronger privacy guarantees than the existing "
        "method regardless of the value of k",
        _WHERE + figure,
        "ε of the record below Σ ε_i (as achieved) in every draw by both methods, and the median "
        f"ratio at most {CLEARLY_SMALLER:g} for every k; partly: below in every draw",
        f"median ε/Σ ε_i: optimum {_per_k(optimum, '.2f')}; heuristic {_per_k(rough, '.2f')}; "
        + f"not below in {len(above)} (optimum) and {len(weak)} (heuristic) of {n_draws} draws"
        + (f"; {further}" if further else ""),
        judge(below and clear, partly=below),
        ""
        if below and clear
        else "The saving is smaller than that for at least one k."
        if below
        else "The optimum itself is no smaller than Σ ε_i somewhere."
        if above
        else "The heuristic can be worse than independent randomization, up to "
        f"{max(i.heuristic / i.sum_achieved for i in weak):.2f} times Σ ε_i in these draws. There "
        + " and ".join(f"{i.n_raised + i.n_lowered} of {len(i.requested)}" for i in weak)
        + " attributes fell back (line 9 of Algorithm 3); each multiplies x_0 − 1 by its number of "
        "categories, however small the level that it ends with.",
    )


def _share_near(instances: Sequence[Instance], places: Sequence[int], requested: bool) -> float:
    chosen = [instances[i] for i in places]
    if requested:
        good = [i.excess_requested <= NEAR_OPTIMAL and i.n_raised == 0 for i in chosen]
    else:
        good = [i.excess_achieved <= NEAR_OPTIMAL for i in chosen]
    return sum(good) / len(good)


def near_optimal(draws: Draws) -> Claim:
    """The heuristic near the optimum where Σ ε_i is large, at the levels achieved."""
    share = {
        k: _share_near(d, third([i.sum_achieved for i in d], upper=True).tolist(), False)
        for k, d in draws.items()
    }
    fully, partly = min(share.values()) >= NEARLY_ALL, min(share.values()) >= 0.5
    return Claim(
        "When Σ ε_i is relatively large, our heuristic method can construct a randomized response "
        "extremely close to the optimal",
        _WHERE + "Figures 1 and 2",
        "at the levels it achieved: among the third of the draws with the largest Σ ε_i, "
        f"{NEARLY_ALL:.0%} at most {NEAR_OPTIMAL - 1:.0%} above the optimum, for every k; partly: "
        "half of them, for every k",
        f"near-optimal in that third: {_per_k(share, '.0%')}",
        judge(fully, partly=partly),
        ""
        if fully
        else "How large is large depends on k: with levels in [1, 8] and many attributes Σ ε_i "
        "seldom exceeds the threshold (next figure).",
    )


def near_optimal_as_requested(draws: Draws) -> Claim:
    """The same where a law counts only if it keeps the levels requested."""
    share = {
        k: _share_near(d, third([i.sum_requested for i in d], upper=True).tolist(), True)
        for k, d in draws.items()
    }
    ratios = {k: float(np.median([i.excess_requested for i in d])) for k, d in draws.items()}
    alone = {k: [i.excess_requested for i in d if i.kept] for k, d in draws.items()}
    fully, partly = min(share.values()) >= NEARLY_ALL, min(share.values()) >= 0.5
    kept = ", ".join(
        f"{len(values)} of {len(draws[k])} (k = {k}"
        + (f", median {np.median(values):.3f}, largest {max(values):.3f})" if values else ")")
        for k, values in alone.items()
    )
    return Claim(
        "The same at the levels requested: when Σ ε_i is relatively large, the heuristic is "
        "extremely close to the optimal",
        _WHERE + "Figures 1 and 2, asked for the levels that were requested",
        "as above, with the optimum at the levels requested, and a draw with a level raised above "
        "the request does not count as near-optimal",
        f"near-optimal in the upper third: {_per_k(share, '.0%')}; median over all draws of the "
        f"ratio: {_per_k(ratios, '.3f')}; draws that keep every level, and their ratio: {kept}",
        judge(fully, partly=partly),
        ""
        if fully
        else "The heuristic answers another question: it changes levels (next claim), and a ratio "
        "below 1 is a record that gained only because attributes were given less than requested.",
    )


def levels_kept(draws: Draws) -> Claim:
    """Whether the heuristic keeps the levels."""
    kept = {k: sum(i.kept for i in d) / len(d) for k, d in draws.items()}
    raised = {k: sum(i.n_raised > 0 for i in d) / len(d) for k, d in draws.items()}
    most = {
        k: max(
            max(0.0, got - asked)
            for i in d
            for asked, got in zip(i.requested, i.achieved, strict=True)
        )
        for k, d in draws.items()
    }
    fully, partly = max(raised.values()) == 0, max(raised.values()) <= 0.05
    return Claim(
        "The heuristic satisfies a near-optimal privacy guarantee for the entire dataset while "
        "maintaining the privacy level for each attribute information",
        "Yamamoto and Shibuya, section IV-B.2; Algorithm 3 recomputes ε_i in its line 10",
        "no draw in which an attribute gets a larger ε_i than requested; partly: at most 5 % of "
        "the draws for every k",
        f"a level raised in {_per_k(raised, '.0%')} of the draws, by up to {_per_k(most, '.2f')} "
        f"nats; every level kept in {_per_k(kept, '.0%')}",
        judge(fully, partly=partly),
        ""
        if fully
        else "Line 9 of Algorithm 3 gives an attribute that does not fit a level that follows from "
        "those before it. That level may be smaller or larger than the request.",
    )


def narrower(draws: Draws) -> Claim:
    """Whether the draws scatter less about their trend for more attributes."""
    spread = {
        k: scatter_about_trend(
            [i.sum_achieved for i in d], [i.optimum_achieved / i.sum_achieved for i in d]
        )
        for k, d in draws.items()
    }
    nats = {
        k: scatter_about_trend([i.sum_achieved for i in d], [i.optimum_achieved for i in d])
        for k, d in draws.items()
    }
    values = [spread[k] for k in sorted(spread)]
    fully = all(later < earlier for earlier, later in itertools.pairwise(values))
    partly = values[-1] < values[0]
    return Claim(
        "For a larger k, there is a narrower range of the achieved privacy levels for the same "
        "Σ ε_i",
        _WHERE + "Figure 1",
        "standard deviation of the optimum's ε/Σ ε_i about a parabola in Σ ε_i strictly falling "
        "from k = 3 to 5, 7 and 10; partly: smaller at 10 than at 3",
        f"{_per_k(spread, '.4f')}; in nats, ε itself about its parabola: {_per_k(nats, '.2f')}",
        judge(fully, partly=partly),
        ""
        if fully
        else "It narrows from the fewest to the most attributes, not at every step between."
        if partly
        else "The ratio does not scatter less with more attributes.",
    )


def feature_of_the_optimum(draws: Draws) -> Claim:
    """The optimum's ratio over Σ ε_i: falling where large, not where small."""
    found = {}
    for k, d in draws.items():
        x = np.array([i.sum_achieved for i in d])
        y = np.array([i.optimum_achieved / i.sum_achieved for i in d])
        found[k] = [slope(x[third(x, upper=up)], y[third(x, upper=up)]) for up in (False, True)]
    falls_high = all(value < -2 * error for _, (value, error) in found.values())
    flat_low = {k: low[0] >= -2 * low[1] for k, (low, _) in found.items()}
    steeper = all(high[0] < low[0] for low, high in found.values())
    fully = falls_high and all(flat_low.values())
    said = ", ".join(
        f"{1e3 * low[0]:+.1f} ± {1e3 * low[1]:.1f} and {1e3 * high[0]:+.1f} ± {1e3 * high[1]:.1f} "
        f"(k = {k})"
        for k, (low, high) in found.items()
    )
    return Claim(
        "When Σ ε_i is large, an increase in Σ ε_i provides much stronger privacy guarantees "
        "compared with the existing method, but the impact is not observed when Σ ε_i is small",
        _WHERE + "Figure 1",
        "for every k, the optimum's ε/Σ ε_i falls with Σ ε_i in the upper third of the draws "
        "(slope below 0 by two standard errors) and not in the lower third; partly: it falls in "
        "the upper third for every k, or everywhere more steeply there than in the lower",
        f"slope per nat in thousandths, lower and upper third, with standard errors: {said}",
        judge(fully, partly=falls_high or steeper),
        ""
        if fully
        else "The ratio falls in the lower third too at k = "
        + " and ".join(str(k) for k, flat in flat_low.items() if not flat)
        + "; with levels of at least 1 nat few draws lie on the flat part at the left end."
        if falls_high and not all(flat_low.values())
        else "With this many draws a slope in the upper third is not told from 0 for every k.",
    )


def proportional(found: Mapping[int, float | None]) -> Claim:
    """The threshold against k log k."""
    seen = {k: value for k, value in found.items() if value is not None}
    complete = len(seen) == len(found)
    logs = {k: k * math.log(k) for k in found}
    plain = {k: float(k) for k in found}
    worst = dict.fromkeys(("k ln k", "k"), math.inf)
    factor = dict.fromkeys(worst, math.nan)
    if len(seen) > 1:
        for name, shape in (("k ln k", logs), ("k", plain)):
            factor[name] = best_factor(seen, shape)
            worst[name] = max(abs(factor[name] * shape[k] / seen[k] - 1) for k in seen)
    near = complete and worst["k ln k"] <= 0.15
    better = worst["k ln k"] < worst["k"]
    said = ", ".join(
        f"none (k = {k})" if value is None else f"{value:.1f} (k = {k})"
        for k, value in found.items()
    )
    return Claim(
        "The threshold seems roughly proportional to k log k",
        _WHERE + "Figure 2",
        "thresholds of the four k (see choices) within 15 % of c·k ln k, c by least squares of the "
        "relative errors, and nearer to that than to any c·k; partly: one of the two",
        f"thresholds in nats: {said}; farthest from {factor['k ln k']:.2f}·k ln k by "
        f"{worst['k ln k']:.0%}, from {factor['k']:.2f}·k by {worst['k']:.0%}",
        judge(near and better, partly=near or (better and math.isfinite(worst["k ln k"]))),
        ""
        if near and better
        else "For at least one k no Σ ε_i was drawn above which the heuristic is nearly always "
        "near-optimal."
        if not complete
        else "c·k fits these thresholds as well or better."
        if not better
        else "k ln k is nearer than k, but more than 15 % off at some k.",
    )


def buys_40(near: float, near_heuristic: float, equal: float, largest: float) -> Claim:
    """A total of 20 for seven attributes."""
    farthest = max(abs(near - 40), abs(near_heuristic - 40))
    return Claim(
        "In case (c) of Figure 1, if the privacy level for the entire dataset is determined to be "
        "20, our methods can distribute a total budget of about 40",
        _WHERE + "last paragraph",
        "Σ ε_i at ε = 20 on the straight line through the draws with k = 7 (see choices), by the "
        "optimum and by the heuristic, within 10 % of 40; partly: within 20 %",
        f"{near:.1f} by the optimum, {near_heuristic:.1f} by the heuristic (at the levels it "
        f"achieved); the largest ε drawn is {largest:.1f}; apart from the draws, a design for a "
        f"total of 20 in equal levels gives {equal:.1f}",
        judge(farthest <= 4, partly=farthest <= 8),
        ""
        if farthest <= 4
        else "More than the paper reads off its figure: a total of 20 buys more than 40."
        if min(near, near_heuristic) > 40
        else "The line through the draws meets 20 at another Σ ε_i.",
    )


def equations(agreement: Agreement) -> Claim:
    """Equations (10) and (11) against the linear program."""
    good = agreement.worst <= 1e-9
    return Claim(
        "The optimal privacy level is (10) in case (I) and (11) in case (III)",
        _WHERE + "equations (10) and (11)",
        "equal to the linear program's optimum to 1e-9 of it on random instances",
        f"the largest relative difference on {agreement.n_instances} instances is "
        f"{agreement.worst:.1e}",
        judge(good),
        "" if good else "The printed formula is not the optimum somewhere.",
    )


def trend_of_10(found: Trend) -> Claim:
    """The ratio to the sum in cases I and II."""
    return Claim(
        "When the values of ε_1 and ε_2 increase, the ratio of the optimal privacy level to "
        "ε_1 + ε_2 tends to decrease (cases I and II)",
        _WHERE + "equation (10)",
        "it falls along at least 90 % of the steps of the grid (see choices); partly: 50 %",
        f"it falls along {found.falls:.1%} of {found.n_steps:,} steps",
        judge(found.falls >= 0.9, partly=found.falls >= 0.5),
        ""
        if found.falls >= 0.9
        else "Near the boundary to cases III and IV, and where the levels differ much, it rises.",
    )


def trend_of_11(found: Trend, single: Trend) -> Claim:
    """The ratio to the sum in cases III and IV."""
    mixed = all(0.1 < share < 0.9 for share in (found.falls, found.rises))
    partly = all(0.1 < share < 0.9 for share in (single.falls, single.rises))
    return Claim(
        "Unlike when Σ ε_i is large, no clear trend can be observed when the values of ε_1 and ε_2 "
        "vary (cases III and IV)",
        _WHERE + "equation (11)",
        "the ratio rises along more than 10 % and less than 90 % of the steps in which both levels "
        "grow, and so it falls; partly: of those in which one level grows",
        f"both grow: it rises along {found.rises:.1%} and falls along {found.falls:.1%} of "
        f"{found.n_steps:,} steps; one grows: {single.rises:.1%} and {single.falls:.1%} of "
        f"{single.n_steps:,}",
        judge(mixed, partly=partly),
        ""
        if mixed
        else "When both levels grow there is a trend: the ratio "
        + ("rises" if found.rises > found.falls else "falls")
        + ". The paper looked for one to the same side as in cases I and II.",
    )


def certificates(draws: Draws) -> Claim:
    """The proof that comes with every optimum, and the linear program beside it."""
    gap = max(i.gap for d in draws.values() for i in d)
    checked = [
        abs(i.linear_program - i.optimum_requested)
        for d in draws.values()
        for i in d
        if i.linear_program is not None
    ]
    n_optima = sum(len(d) for d in draws.values())
    good = gap <= 1e-8 and max(checked) <= 1e-8
    return Claim(
        "The smallest ε, with its proof attached: method optimal equals the linear program and "
        "proves it without one",
        "this project, README",
        "in every draw the proved gap is at most 1e-8 nats, and the linear program differs by at "
        "most 1e-8 nats; partly: 1e-5",
        f"largest proved gap {gap:.1e} nats in {n_optima:,} draws, at the levels requested and "
        f"achieved; largest difference from the linear program {max(checked):.1e} nats in "
        f"{len(checked):,}",
        judge(good, partly=gap <= 1e-5 and max(checked) <= 1e-5),
        "" if good else "In some draw the search stopped before its bounds met.",
    )


def summary_table(draws: Draws) -> Table:
    """Return medians and shares per number of attributes."""
    rows: list[list[Cell]] = []
    for k, d in draws.items():
        rows.append(
            [
                k,
                len(d),
                float(np.median([i.optimum_achieved / i.sum_achieved for i in d])),
                float(np.median([i.heuristic / i.sum_achieved for i in d])),
                float(np.median([i.optimum_requested / i.sum_requested for i in d])),
                sum(i.kept for i in d) / len(d),
                sum(i.n_raised > 0 for i in d) / len(d),
                float(np.median([i.excess_achieved for i in d])),
                float(np.median([i.excess_requested for i in d])),
            ]
        )
    return Table(
        "summary",
        "Medians over the draws of ε of the record over Σ ε_i and of the heuristic's ε over the "
        "optimum's, at the levels achieved and requested; shares of draws in which the heuristic "
        "kept every level, and raised one.",
        [
            "attributes",
            "draws",
            "optimum_over_sum_achieved",
            "heuristic_over_sum_achieved",
            "optimum_over_sum_requested",
            "share_kept",
            "share_raised",
            "excess_at_achieved",
            "excess_at_requested",
        ],
        rows,
    )
