"""Study ``coverage``: do intervals hold the truth as often as they say."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from deniable_studies.coverage import (
    AT_LEAST_ELEVEN,
    GROUPS,
    KINDS,
    LARGE,
    LEVELS,
    N_CATEGORIES,
    TARGETS,
    Group,
    releases,
    sweep,
)
from deniable_studies.drawing import grid, letter, plot_method
from deniable_studies.study import Cell, Claim, Figure, Findings, Setting, Study, Table, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

SLACK = 0.01
"""What the project's own tests allow between coverage and level in cells of 200 records or more."""

ABOUT = (0.05, 0.05, 0.03)
"""What "about the level" is taken to mean at ``LEVELS``."""

ERRORS = 4.0
"""Standard errors that a measured coverage may be off by chance."""


def run(setting: Setting) -> Findings:
    """Release made-up people again and again, and count the intervals that hold the truth."""
    groups = sweep(setting)
    n_releases = releases(quick=setting.quick)
    return Findings(
        [
            _large_claim(groups),
            _every_group_claim(groups),
            _mark_claim(groups),
            _mixed_claim(groups),
        ],
        _figures(groups, n_releases),
        [_table(groups, n_releases)],
        choices=[
            f"People: {' × '.join(map(str, N_CATEGORIES))} categories; the shares of the "
            "120 combinations are drawn once from a Dirichlet distribution with parameter 0.4, so "
            "that a few are common and many rare.",
            "Every marginal, every table of two attributes and the table of all three; cells are "
            "grouped by the number of true records, for target population by the expected one.",
            "Target table: the same people in every release. Target population: drawn anew for "
            "every release, from the known shares.",
            f"{n_releases} releases per case, drawn by the sampler that releases use, from seeded "
            "bits. The total is divided as each method does by itself; λ is the same for all "
            "attributes.",
            "The shipped intervals are the score intervals that the software prints for joint "
            "tables without weights; the plain ones, estimate ± z standard errors, are what it "
            "prints elsewhere.",
        ],
        remarks=[
            _plain_remark(groups),
            "Where the randomization changes next to nothing in a small cell, as the optimum does "
            "at ε = 8 in a table of all attributes, the error of target table is a small whole "
            "number of records. No interval from a normal distribution, not even one with the "
            "true variance, has the stated coverage then.",
            "Each interval is for its own cell. All cells of a table at once are covered far less "
            "often.",
        ],
    )


def _beyond(group: Group, level: int, slack: float) -> bool:
    off = abs(group.shipped[level] - LEVELS[level])
    return off > slack + ERRORS * group.standard_error[level]


def _large_claim(groups: Sequence[Group]) -> Claim:
    large = [g for g in groups if g.group == LARGE]
    wrong = {
        level: sum(_beyond(g, place, SLACK) for g in large) for place, level in enumerate(LEVELS)
    }
    farthest = max(abs(g.shipped[-1] - LEVELS[-1]) for g in large)
    good = not any(wrong.values())
    return Claim(
        "Intervals of cells with 200 true records or more cover what they say, to one point, for "
        "both targets",
        "this project's statistical tests",
        f"at 50, 80 and 95 % in every case and kind of table, {ERRORS:g} standard errors of the "
        "measured coverage allowed for; partly: at 95 %",
        f"{len(large)} groups of such cells; outside: "
        + ", ".join(f"{count} at {level:.0%}" for level, count in wrong.items())
        + f"; the farthest {100 * farthest:.1f} points off at 95 %",
        judge(good, partly=not wrong[LEVELS[-1]]),
        ""
        if good
        else "The error of a cell is a whole number of records times a factor. At 50 and 80 % its "
        "steps show where the randomization changes few records; at 95 % hardly.",
    )


def _every_group_claim(groups: Sequence[Group]) -> Claim:
    places = range(len(LEVELS))
    wrong = [g for g in groups if any(_beyond(g, place, ABOUT[place]) for place in places)]
    wrong_large = [g for g in wrong if g.group >= AT_LEAST_ELEVEN]
    empty = [g for g in wrong if g.group == 0]
    low = min(groups, key=lambda g: g.shipped[-1])
    good = not wrong
    return Claim(
        "Each interval covers its own cell with probability about its level",
        "Estimate.confidence_interval",
        f"within {100 * ABOUT[-1]:g} points of 95 % and {100 * ABOUT[0]:g} of 50 and 80 % in every "
        f"group of cells, however few records are in them, {ERRORS:g} standard errors of the "
        "measured coverage allowed for; partly: wherever a cell has more than ten records",
        f"outside in {len(wrong)} of {len(groups)} groups, of which {len(empty)} have cells "
        f"without records and {len(wrong_large)} cells of more than ten records; the least "
        f"coverage at 95 % is {low.shipped[-1]:.1%} "
        f"({_words(low)})",
        judge(good, partly=not wrong_large),
        ""
        if good
        else "A cell without records is covered too often at 50 and 80 %: an interval of shares "
        "ends at 0, and on that side it cannot miss. Where hardly any record is changed, as by the "
        "optimum at ε = 8 in a table of all attributes, the error itself is a small whole number "
        "and not normal, for which no standard error is the remedy.",
    )


def _mark_claim(groups: Sequence[Group]) -> Claim:
    # An interval is to be read by itself only if its estimate is not marked.
    low = [g for g in groups if LEVELS[-1] - g.shipped[-1] > 0.05 + ERRORS * g.standard_error[-1]]
    unmarked = [g for g in low if g.uncertain < 0.5]
    good = not unmarked
    return Claim(
        "Where intervals of few records cover too little, the estimate is marked as uncertain",
        "this project's statistical tests, which leave cells of fewer than 200 records to the mark",
        "in every group covered less than 90 % at 95 %, at least half of the estimates are marked; "
        "partly: in half of these groups",
        f"{len(low)} groups are covered less than 90 %; in {len(low) - len(unmarked)} of them at "
        "least half of the estimates are marked",
        judge(good, partly=2 * len(unmarked) <= len(low)),
        ""
        if good
        else f"For instance {_words(unmarked[0])}: {unmarked[0].shipped[-1]:.1%} covered, "
        f"{unmarked[0].uncertain:.0%} marked. The mark asks whether an estimate is two standard "
        "errors above zero. Where hardly any record is changed even a cell of two records is, "
        "although its error, one record or none, is not normal.",
    )


def _mixed_claim(groups: Sequence[Group]) -> Claim:
    mixed = [g for g in groups if g.case.target == "table" and g.group == LARGE]
    high = max(mixed, key=lambda g: g.mistaken)
    low = min(mixed, key=lambda g: g.mistaken)
    good = high.mistaken >= 0.995
    return Claim(
        "Taking the population's errors for the table's makes nominal 95 % intervals cover 99.5 to "
        "100 %",
        "this project's theory of estimation",
        "in some case, over cells of 200 records or more; partly: 98 %",
        f"{low.mistaken:.1%} ({_words(low)}) to {high.mistaken:.1%} ({_words(high)})",
        judge(good, partly=high.mistaken >= 0.98),
        "" if good else "The randomization's noise outweighs the sampling's in these cases.",
    )


def _plain_remark(groups: Sequence[Group]) -> str:
    def span(values: Sequence[float]) -> str:
        return f"{min(values):.1%} to {max(values):.1%}"

    noisy = [g for g in groups if g.case.method in ("kronecker", "lambda")]
    people = [g for g in groups if g.case.target == "population"]
    small = [[g for g in chosen if g.group < AT_LEAST_ELEVEN] for chosen in (noisy, people)]
    large = [g for g in groups if g.group == LARGE]
    return (
        "The shipped interval, {c : (π̂ − c)² ≤ z² V(c)} with V(c) the variance if the cell's share "
        "were c, covers at nominal 95 %, in cells of at most ten records: under independent laws "
        f"{span([g.shipped[-1] for g in small[0]])} (plain: "
        f"{span([g.plain[-1] for g in small[0]])}), for target population under any law "
        f"{span([g.shipped[-1] for g in small[1]])} (plain: "
        f"{span([g.plain[-1] for g in small[1]])}). In cells of 200 records or more it is "
        f"{min(g.width for g in large):.3f} to {max(g.width for g in large):.3f} times as wide as "
        "the plain one."
    )


def _words(group: Group) -> str:
    case = group.case
    return (
        f"{case.method}, ε = {case.epsilon:g}, n = {case.n_people:,}, target {case.target}, "
        f"{group.kind}, {GROUPS[group.group]} records"
    )


def _table(groups: Sequence[Group], n_releases: int) -> Table:
    cells: list[list[Cell]] = []
    for g in groups:
        case = g.case
        cells.append(
            [
                case.method,
                case.epsilon,
                case.n_people,
                case.target,
                g.kind,
                GROUPS[g.group],
                g.n_cells,
                *g.shipped,
                *g.standard_error,
                *g.plain,
                g.worst,
                g.worst_plain,
                g.width,
                g.uncertain,
                g.mistaken,
            ]
        )
    return Table(
        "coverage",
        f"Share of intervals that hold the truth, {n_releases} releases per case, by the number of "
        "true records in the cell: as shipped with its standard error, and plain intervals; the "
        "worst single cell; mean width of shipped over plain intervals; share of estimates marked "
        "uncertain; and for target table the coverage of intervals made for the population.",
        [
            "method",
            "epsilon_nats",
            "people",
            "target",
            "kind",
            "true_records",
            "n_cells",
            *(f"shipped_{100 * level:.0f}" for level in LEVELS),
            *(f"standard_error_{100 * level:.0f}" for level in LEVELS),
            *(f"plain_{100 * level:.0f}" for level in LEVELS),
            "worst_cell_shipped_95",
            "worst_cell_plain_95",
            "width_shipped_over_plain",
            "uncertain_share",
            "mistaken_for_population_95",
        ],
        cells,
    )


def _figures(groups: Sequence[Group], n_releases: int) -> list[Figure]:
    epsilon = max(g.case.epsilon for g in groups)
    shown = [g for g in groups if g.case.epsilon == epsilon]
    chance = f"{n_releases} releases per case; all kinds of tables together."
    return [
        Figure(
            "shipped",
            "Coverage of the intervals that the software prints, nominal 95 % (thin line), over "
            f"the true records of a cell, at ε = {epsilon:g} for the record. {chance}",
            lambda canvas: _draw(canvas, shown, lambda g: g.shipped[-1]),
            (7.4, 5.2),
        ),
        Figure(
            "plain",
            "The same for plain intervals, the estimate ± z standard errors, which are printed for "
            f"weighted tables, strata and shares of subgroups. {chance}",
            lambda canvas: _draw(canvas, shown, lambda g: g.plain[-1]),
            (7.4, 5.2),
        ),
        Figure(
            "levels",
            "Coverage less level, in points, at nominal 50, 80 and 95 %, of the intervals that the "
            "software prints: marginals and tables of two attributes, cells of at most ten and of "
            f"at least 200 records; all sizes, levels of ε and targets together. {n_releases} "
            "releases per case.",
            lambda canvas: _draw_levels(canvas, groups),
            (7.4, 3.4),
        ),
    ]


def _pooled(groups: Sequence[Group], value: Callable[[Group], float]) -> float:
    cells = sum(g.n_cells for g in groups)
    return sum(value(g) * g.n_cells for g in groups) / cells if cells else float("nan")


def _draw(
    canvas: "MatplotlibFigure", groups: Sequence[Group], value: Callable[[Group], float]
) -> None:
    sizes = sorted({g.case.n_people for g in groups})
    panels = canvas.subplots(len(TARGETS), len(sizes), sharex=True, sharey=True, squeeze=False)
    methods = list(dict.fromkeys(g.case.method for g in groups))
    for row, target in enumerate(TARGETS):
        for column, size in enumerate(sizes):
            panel = panels[row][column]
            for method in methods:
                line = [
                    _pooled(
                        [
                            g
                            for g in groups
                            if (g.case.target, g.case.n_people, g.case.method, g.group)
                            == (target, size, method, place)
                        ],
                        value,
                    )
                    for place in range(len(GROUPS))
                ]
                plot_method(panel, method, range(len(GROUPS)), [100 * v for v in line])
            panel.axhline(100 * LEVELS[-1], color="#000000", linewidth=0.6)
            panel.set_xticks(range(len(GROUPS)), GROUPS, rotation=45)
            grid(panel)
        panels[row][0].set_ylabel("coverage, %")
    for column in range(len(sizes)):
        panels[-1][column].set_xlabel("true records in the cell")
    letter(
        [panel for row in panels for panel in row],
        [f"{target}, n = {size:,}" for target in TARGETS for size in sizes],
    )
    handles, labels = panels[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=4)


def _shipped_at(place: int) -> Callable[[Group], float]:
    return lambda group: group.shipped[place]


def _draw_levels(canvas: "MatplotlibFigure", groups: Sequence[Group]) -> None:
    chosen = [
        (kind, words, keep)
        for kind in KINDS[:2]
        for words, keep in (
            ("≤ 10", range(AT_LEAST_ELEVEN)),
            ("≥ 200", range(LARGE, LARGE + 1)),
        )
    ]
    panels = canvas.subplots(1, len(chosen), sharey=True)
    methods = list(dict.fromkeys(g.case.method for g in groups))
    for panel, (kind, _, keep) in zip(panels, chosen, strict=True):
        for method in methods:
            these = [
                g for g in groups if g.case.method == method and g.kind == kind and g.group in keep
            ]
            plot_method(
                panel,
                method,
                [100 * level for level in LEVELS],
                [
                    100 * (_pooled(these, _shipped_at(place)) - level)
                    for place, level in enumerate(LEVELS)
                ],
            )
        panel.axhline(0, color="#000000", linewidth=0.6)
        panel.set_xticks([100 * level for level in LEVELS])
        panel.set_xlabel("level, %")
        grid(panel)
    panels[0].set_ylabel("coverage less level, points")
    letter(list(panels), [f"{kind}, {words}" for kind, words, _ in chosen])
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=4)


STUDY = Study(
    name="coverage",
    title="Intervals that hold the truth: how often, by how many people are in a cell",
    source="beyond the papers",
    question="Over repeated releases, how often do intervals at 50, 80 and 95 % hold the truth of "
    "this table, and of the population it was drawn from, in large cells and in small ones?",
    seconds=240,
    run=run,
)
"""Its draws and its people are seeded."""
