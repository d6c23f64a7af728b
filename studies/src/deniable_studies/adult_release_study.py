"""Study ``adult-release``: nine attributes of Adult, released at one total, by every method."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable.errors import InputError
from deniable_studies import peers
from deniable_studies.adult import CATEGORICAL, read_adult
from deniable_studies.adult import schema as adult_schema
from deniable_studies.adult_release import (
    DRAWN,
    OURS,
    RSFD,
    RSFD_STATED,
    SMP,
    PeerRun,
    Released,
    release_again,
    run_peers,
    sampling_error,
)
from deniable_studies.adult_release_claims import (
    LEVELS,
    agreement_claim,
    at,
    better_claim,
    estimable_claim,
    kinds,
    stated_claim,
)
from deniable_studies.drawing import grid, letter, plot_method
from deniable_studies.study import Cell, Figure, Findings, Setting, Study, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

QUICK_LEVELS = (1.0, 8.0)


def run(setting: Setting) -> Findings:
    """Release Adult again and again under every method, and run the public baselines."""
    if setting.adult is None:
        raise InputError("adult-release needs the Adult data")
    people = read_adult(setting.adult)
    schema = adult_schema()
    columns = [people.codes[name].astype(np.uint8) for name in CATEGORICAL]
    levels = QUICK_LEVELS if setting.quick else LEVELS
    n_releases = 8 if setting.quick else 200
    with_peers = peers.available()
    ours = setting.part(0.0, 0.6 if with_peers else 0.98)
    found = []
    jobs = [(level, method) for level in levels for method in DRAWN]
    for place, (level, method) in enumerate(jobs):
        part = ours.part(place / len(jobs), (place + 1) / len(jobs))
        found.append(release_again(columns, schema, method, level, n_releases, part, [place]))
    concentration = [
        float(np.sum((np.bincount(c, minlength=a) / len(c)) ** 2))
        for c, a in zip(columns, schema.n_categories, strict=True)
    ]
    sampled = {
        level: sampling_error(schema.n_categories, concentration, level, people.n_people)
        for level in levels
    }
    others: list[PeerRun] = []
    if with_peers:
        n_peers = 1 if setting.quick else 5
        peer_levels = levels[-1:] if setting.quick else levels
        for place, level in enumerate(peer_levels):
            start = 0.6 + 0.38 * place / len(peer_levels)
            part = setting.part(start, start + 0.38 / len(peer_levels))
            others += run_peers(columns, schema.n_categories, level, n_peers, part)
    claims = [
        stated_claim(),
        agreement_claim(found),
        better_claim(found, levels),
        estimable_claim(found),
    ]
    setting.advance(1.0)
    return Findings(
        claims,
        [_figure(found, sampled, others, levels, n_releases)],
        [_table(found, sampled, n_releases), _peers_table(others)],
        choices=[
            f"People: {people.n_people:,} complete cases of {people.source}; "
            f"{people.n_incomplete:,} with a missing value are left out. Attributes: the nine "
            "categorical ones, with their published categories.",
            "A table's squared error is averaged over its cells, then over the nine marginals or "
            "the 36 pairs, then over the releases; the truth is the table that was randomized.",
            "Optimum and balanced divide the total so that the marginals' variances are smallest "
            "on average; Kronecker gives every attribute ε/9; λ-randomization gives every "
            "attribute the same λ, chosen so that the record's ε is the total. None of them looks "
            "at the data.",
            "RS+FD with k-ary randomized response is drawn as the pattern law that it is, at the ε "
            "of the record and as its authors set it, where the record's ε is above the total. "
            "SMP is predicted, and drawn where the public package is installed.",
            f"{n_releases} releases per method and level, drawn by the sampler that releases use, "
            "from seeded bits.",
        ],
        remarks=[_peers_remark(others), *_remarks(found, sampled, levels)],
    )


def _peers_remark(others: Sequence[PeerRun]) -> str:
    if not others:
        return (
            "The public baselines of multi-freq-ldpy were not run: it is not installed (extra "
            "“peers”). The predicted errors of SMP and RS+FD are shown without it."
        )
    return (
        f"The public baselines are multi-freq-ldpy {peers.installed_version()}, with k-ary "
        "randomized response. It sets negative shares to 0 and divides by the sum, which lowers "
        "the error of rare categories and biases it; compare with the column of estimates "
        "projected to the simplex, not with the unbiased ones. It estimates no pairs."
    )


def _remarks(
    found: Sequence[Released], sampled: dict[float, float], levels: Sequence[float]
) -> list[str]:
    ahead = []
    for level in levels:
        errors = at(found, "optimal", level).marginals
        if errors is not None and sampled[level] < errors.expected:
            ahead.append(f"{level:g} ({errors.expected / sampled[level]:.1f} times)")
    given = "; ".join(
        f"{method} " + ", ".join(f"{at(found, method, level).given_rest:.2f}" for level in levels)
        for method in (*OURS, RSFD)
    )
    return [
        f"SMP has smaller errors of marginals than the optimum at ε = {', '.join(ahead)}. It "
        "leaves no table of two attributes."
        if ahead
        else "SMP has larger errors of marginals than the optimum at every level shown.",
        "What someone who knows the other eight true values can learn of an attribute at most, in "
        f"nats, at ε = {', '.join(f'{level:g}' for level in levels)}: {given}.",
        "Errors of pairs above 0.01 or so are of no use to anybody: a cell's share is 0.01 on "
        "average, and its standard error 0.1.",
    ]


_COLUMNS = (
    "asked_nats",
    "method",
    "epsilon_nats",
    "epsilon_given_rest_nats",
    "tables",
    "n_tables",
    "expected_mean",
    "expected_median_over_tables",
    "measured_mean",
    "standard_error",
    "measured_mean_simplex",
)


def _table(found: Sequence[Released], sampled: dict[float, float], n_releases: int) -> Table:
    cells: list[list[Cell]] = []
    for row in found:
        for kind, errors in kinds(row):
            cells.append(
                [
                    row.asked,
                    row.method,
                    row.epsilon,
                    row.given_rest,
                    kind,
                    errors.n_tables,
                    errors.expected,
                    errors.expected_median,
                    errors.measured,
                    errors.standard_error,
                    errors.simplex,
                ]
            )
    for level, error in sampled.items():
        cells.append([level, SMP, level, level, "marginals", 9, error, *[None] * 4])
    return Table(
        "errors",
        f"Mean squared errors of estimated shares, {n_releases} releases per method and level: "
        "expected, measured with its standard error, and measured after projection to the simplex. "
        "SMP is predicted only.",
        _COLUMNS,
        cells,
    )


def _peers_table(others: Sequence[PeerRun]) -> Table:
    return Table(
        "peers",
        "Mean squared errors of marginals as multi-freq-ldpy estimates them (negative shares set "
        "to 0, divided by the sum)."
        if others
        else "Empty: multi-freq-ldpy is not installed.",
        ["asked_nats", "method", "n_releases", "measured_mean", "standard_error"],
        [[o.asked, o.method, o.n_releases, o.measured, o.standard_error] for o in others],
    )


def _figure(
    found: Sequence[Released],
    sampled: dict[float, float],
    others: Sequence[PeerRun],
    levels: Sequence[float],
    n_releases: int,
) -> Figure:
    shown = " Large hollow markers: the public package." if others else ""
    return Figure(
        "errors",
        "Mean squared error of estimated shares over the total ε asked for; lines are expected "
        f"errors, markers the mean of {n_releases} releases with bars of two standard errors "
        "(mostly smaller than the marker); for the median over the 36 pairs, and for SMP, "
        "expected errors only. RS+FD as stated has a larger ε of the record than asked for."
        + shown,
        lambda canvas: _draw(canvas, found, sampled, others, levels),
        (7.6, 4.4),
    )


def _draw(
    canvas: "MatplotlibFigure",
    found: Sequence[Released],
    sampled: dict[float, float],
    others: Sequence[PeerRun],
    levels: Sequence[float],
) -> None:
    panels = canvas.subplots(1, 3)
    for method in DRAWN:
        style = RSFD if method == RSFD_STATED else method
        look: dict[str, Any] = (
            {"label": "RS+FD as stated", "linestyle": (0, (1, 4)), "markerfacecolor": "none"}
            if method == RSFD_STATED
            else {}
        )
        rows = [at(found, method, level) for level in levels]
        plot_method(panels[0], style, [], [], **look)
        for panel, kind in ((panels[0], "marginals"), (panels[1], "pairs")):
            errors = [dict(kinds(row)).get(kind) for row in rows]
            if any(e is None for e in errors):
                continue
            known = [e for e in errors if e is not None]
            line, points = {"marker": "", "label": "_"}, {"linestyle": "none", "label": "_"}
            plot_method(panel, style, levels, [e.expected for e in known], **(look | line))
            plot_method(panel, style, levels, [e.measured for e in known], **(look | points))
            panel.errorbar(
                levels,
                [e.measured for e in known],
                [2 * e.standard_error for e in known],
                fmt="none",
                ecolor="#444444",
                elinewidth=0.8,
            )
            if kind == "pairs":
                medians = [e.expected_median for e in known]
                plot_method(panels[2], style, levels, medians, **look)
    plot_method(panels[0], SMP, levels, [sampled[level] for level in levels])
    for method in (peers.SPL, peers.SMP, RSFD, RSFD_STATED):
        theirs = [o for o in others if o.method == method]
        style = RSFD if method == RSFD_STATED else method
        plot_method(
            panels[0],
            style,
            [o.asked for o in theirs],
            [o.measured for o in theirs],
            linestyle="none",
            markersize=8,
            markerfacecolor="none",
            label="_",
        )
    for panel in panels:
        panel.set_yscale("log")
        panel.set_xscale("log", base=2)
        panel.set_xticks(list(levels), [f"{level:g}" for level in levels])
        panel.set_xlabel("total ε, nats")
        grid(panel)
    panels[0].set_ylabel("mean squared error of a share")
    letter(list(panels), ["nine marginals", "36 pairs, mean", "36 pairs, median"])
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=4)


STUDY = Study(
    name="adult-release",
    title="Adult at one ε for the record: errors of all marginals and pairs",
    source="beyond the papers",
    question="Released at the same level for a person's nine attributes, how accurate are shares "
    "and tables of two attributes under each method, and are the errors those that were predicted?",
    seconds=100,
    run=run,
    needs_adult=True,
)
"""The draws are seeded; the people are real and fixed."""
