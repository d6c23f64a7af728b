"""The study ``run-time``: its figure, its tables, and what is said about them."""

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deniable_studies import run_time_claims as claims
from deniable_studies.drawing import STYLES, letter, plot_method
from deniable_studies.run_time import (
    AS_PRINTED,
    FULL,
    MODERATE,
    PAPER,
    QUICK,
    USEFUL,
    Effects,
    Scale,
    Timing,
    measure,
    measure_effects,
)
from deniable_studies.study import Cell, Figure, Findings, Setting, Study, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

_NAMES = {AS_PRINTED: "heuristic as printed, plain loops"}
_SHOWN = {PAPER: "ε_i in [1, 10)", MODERATE: "ε of the record about 5"}


def run(setting: Setting) -> Findings:
    """Make Table I again and go on from there."""
    scale = QUICK if setting.quick else FULL
    timings = measure(setting.part(0, 0.9), scale)
    effects = measure_effects(setting.part(0.9, 1), scale.effect_runs)
    return Findings(
        [
            claims.optimal_up_to_ten(timings),
            claims.hard_beyond_ten(timings),
            claims.heuristic_in_time(timings),
            claims.finite_as_printed(timings),
            claims.quadratic(timings),
            claims.little_effect(effects),
            claims.proof_at_any_size(timings, MODERATE),
            claims.proof_at_any_size(timings, PAPER),
        ],
        [figure(timings, scale)],
        [time_table(timings, scale), law_table(timings, scale), _effect_table(effects)],
        choices=[
            "a_i uniform in 2 to 5 and ε_i uniform in [1, 10), as the paper. Because a record at "
            "such levels is hardly protected (table of laws), a second range: ε_i uniform in "
            f"[1, 2)·{USEFUL:g}/√k, which gives ε of about 5.",
            "Time is the processor time of this process on one thread, from the levels to a law in "
            "integers that can be drawn; in brackets of the table, with the law's accounts and the "
            "lower bound. Reading, randomizing and writing are not in it.",
            f"Medians over {scale.runs} runs with another instance each; fewer where they took "
            f"more than {scale.patience:g} s together, but at least {scale.least_runs} (column "
            "runs). The paper prints means of 10 runs; whether they are wall or processor time is "
            "not said; its notebooks time the wall.",
            "The linear program stops at 12 attributes and balanced, at the paper's levels, at 10: "
            "beyond that it leaves the largest levels to answer on their own, after trying. Above "
            "1,000 attributes only the heuristic is timed, and its law is not accounted for: its ε "
            "is the solver's.",
            "The authors time their optimum at the levels that the heuristic achieved; here it is "
            "timed at those requested.",
        ],
        remarks=[
            "Verdicts are about growth and feasibility: the machines differ.",
            "Methods lp, optimal and balanced keep every level whatever the gap; a large gap means "
            "that a smaller ε may exist. The heuristic changes most levels where there are many "
            "attributes (last column of the table of laws).",
        ],
    )


def figure(timings: Sequence[Timing], scale: Scale) -> Figure:
    """Return the figure of growth."""
    return Figure(
        "growth",
        "Processor seconds to find a law over the number of attributes, both logarithmic; median "
        f"of up to {scale.runs} runs, bars from the least to the most. (a) levels as the paper, "
        "(b) levels for a record at ε of about 5. Exponents of k fitted over all sizes shown, from "
        "100 on for the heuristic. Stars: the times that the paper and its notebooks print, on the "
        "authors' machine.",
        lambda canvas: _draw(canvas, timings),
        (9.0, 5.4),
    )


def time_table(timings: Sequence[Timing], scale: Scale) -> Table:
    rows: list[list[Cell]] = [
        [
            t.method,
            t.levels,
            t.n_attributes,
            len(t.seconds),
            t.median,
            min(t.seconds),
            max(t.seconds),
            statistics.median(t.design_seconds) if t.design_seconds else None,
            _printed(t),
        ]
        for t in timings
    ]
    return Table(
        "table-1",
        f"Processor seconds on one thread, medians of up to {scale.runs} runs, and what the paper "
        "and its notebooks print for their machine.",
        [
            "method",
            "levels",
            "attributes",
            "runs",
            "law_s",
            "least_s",
            "most_s",
            "law_and_accounts_s",
            "paper_s",
        ],
        rows,
        measured=True,
    )


def _printed(timing: Timing) -> float | None:
    if timing.levels != PAPER:
        return None
    method = "heuristic" if timing.method == AS_PRINTED else timing.method
    key = method, timing.n_attributes
    return claims.PRINTED.get(key, claims.PUBLISHED.get(key))


def law_table(timings: Sequence[Timing], scale: Scale) -> Table:
    rows: list[list[Cell]] = []
    for t in timings:
        if t.method == AS_PRINTED:
            continue
        gaps = [gap for gap in t.gap if gap is not None]
        rows.append(
            [
                t.method,
                t.levels,
                t.n_attributes,
                statistics.median(t.total),
                statistics.median(t.epsilon),
                # The last digits of a gap are rounding of the search.
                float(f"{max(gaps):.1e}") if gaps else None,
                max(t.changed),
            ]
        )
    return Table(
        "laws",
        f"What was found, over the first {scale.least_runs} instances of each size: medians of "
        "Σ ε_i and of ε of the record in nats, the largest proved gap to the optimum (empty if no "
        "bound was computed), and the most attributes whose level was changed.",
        [
            "method",
            "levels",
            "attributes",
            "sum_nats",
            "epsilon_nats",
            "largest_gap_nats",
            "most_changed",
        ],
        rows,
    )


def _effect_table(effects: Effects) -> Table:
    return Table(
        "effects",
        "Median processor seconds to find a law in five settings of a_i and ε_i; what is not named "
        "is as the paper has it.",
        ["method", "setting", "runs", "law_s"],
        [
            [method, name, len(seconds), statistics.median(seconds)]
            for method, by_setting in effects.items()
            for name, seconds in by_setting.items()
        ],
        measured=True,
    )


def _draw(canvas: "MatplotlibFigure", timings: Sequence[Timing]) -> None:
    panels = canvas.subplots(1, 2, sharey=True, width_ratios=[1.25, 1])
    for panel, levels in zip(panels, (PAPER, MODERATE), strict=True):
        _draw_panel(panel, [t for t in timings if t.levels == levels], levels)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("attributes k")
        panel.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.5)
        panel.set_axisbelow(True)
    panels[0].set_ylabel("seconds")
    letter(panels, [_SHOWN[PAPER], _SHOWN[MODERATE]])
    for panel in panels:
        panel.legend(
            loc="upper left", bbox_to_anchor=(0, -0.14), fontsize=8, borderaxespad=0, ncols=1
        )


def _draw_panel(panel: "Axes", timings: Sequence[Timing], levels: str) -> None:
    for method in dict.fromkeys(t.method for t in timings):
        chosen = [t for t in timings if t.method == method]
        least = 100 if method in ("heuristic", AS_PRINTED) else 1
        fitted = claims.growth(timings, method, levels, least=least)
        style = "heuristic-requested" if method == AS_PRINTED else method
        name = _NAMES.get(method, STYLES[style].label).removesuffix(", at the levels it achieves")
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
    both = claims.PRINTED | claims.PUBLISHED
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


STUDY = Study(
    name="run-time",
    title="Seconds to find a law: Table I, and on to a million attributes",
    source="Yamamoto and Shibuya, section V-C, Table I",
    question="How does the time to find a law grow with the number of attributes, for the linear "
    "program, the optimum, the balanced law and the heuristic?",
    seconds=180,
    run=run,
)
