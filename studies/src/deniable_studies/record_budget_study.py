"""Study ``record-budget``: one level for the whole record, and what each method makes of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deniable_studies.drawing import grid, letter, plot_method
from deniable_studies.record_budget import (
    RSFD_STATED,
    SMP,
    Bought,
    Budget,
    Point,
    accounted_fake_data,
    bought,
    example_saving,
    saved,
    sweep,
)
from deniable_studies.record_budget_claims import (
    Points,
    amplification_claim,
    bought_claim,
    cap_claim,
    cost_claim,
    example_claim,
    fake_data_claim,
    given_rest_claim,
    never_worse_claim,
    pairs_claim,
    vanishing_claim,
    where,
)
from deniable_studies.study import Cell, Figure, Findings, Setting, Study, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

DRAWN_CATEGORIES = 5
_TICKS = (2, 4, 6, 8, 10)


def run(setting: Setting) -> Findings:
    """Design every law and look at it; nothing here is random."""
    points = Points(sweep(setting.part(0.0, 0.8)))
    rows = bought(setting.part(0.8, 0.9))
    accounted = accounted_fake_data(setting)
    claims = [
        bought_claim(rows),
        never_worse_claim(points),
        given_rest_claim(points),
        cost_claim(points),
        cap_claim(rows),
        pairs_claim(points),
        vanishing_claim(),
        fake_data_claim(points),
        amplification_claim(accounted),
    ]
    setting.advance(0.95)
    if not setting.quick:
        claims.append(example_claim(example_saving()))
    return Findings(
        claims,
        _figures(points),
        [_points_table(points), _bought_table(rows), _fake_data_table(accounted)],
        choices=_CHOICES,
        remarks=[_sampling_remark(points), *_REMARKS],
    )


_CHOICES = (
    "All attributes are alike, with 2, 5 or 20 categories (5 in a quick run and in the figures), "
    "so that one φ describes every marginal and another every pair.",
    "Every law is asked for a total for the record; the methods divide it themselves, for alike "
    "attributes into equal levels. “Balanced” has its defaults: cap 2x, floor 0.5 on pairs.",
    "Rows needed go with 1/φ²: the variance of an unbiased share, averaged over categories, is "
    "(1 − 1/a)/(a n φ²) as an estimate of the population where the true table is uniform. Saving "
    "is the ratio of φ² to the Kronecker product's.",
    "RS+FD uses k-ary randomized response and uniform fake values. It is drawn twice: answering "
    "at the ε of the record, and as its authors set it, where the record's ε is larger.",
    "SMP says which attribute it answers and answers it at the whole ε. It is no pattern law; it "
    "is shown by the φ of a pattern law whose marginals are as accurate, φ/√k.",
    "A quick run leaves out the shipped example's claim, which takes ten seconds, and one balanced "
    "law of the table of what it buys.",
)

_REMARKS = (
    "What is bought is paid for: under the optimum someone who knows all the other true values "
    "learns up to the whole ε of an attribute, under the Kronecker product ε/k. Balanced lies "
    "between; see the third figure before choosing.",
    "Under the optimum a pair's attenuation can be negative or 0. Negative is harmless, the "
    "inversion divides by it; 0 means that no number of rows is enough.",
)


def _sampling_remark(points: Points) -> str:
    ratios = {b: (points.at(b, SMP).marginal / points.at(b, "optimal").marginal) ** 2
              for b in points.budgets}  # fmt: skip
    ahead = {b: r for b, r in ratios.items() if r > 1}
    behind = max(1 / r for r in ratios.values())
    if not ahead:
        return "SMP needs more rows for marginals than the optimum at every budget."
    best = max(ahead, key=lambda b: ahead[b])
    return (
        f"For marginals alone SMP needs fewer rows than the optimum at {len(ahead)} of "
        f"{len(ratios)} budgets, at the best {ahead[best]:.2f} times fewer ({where(best)}); at the "
        f"worst it needs {behind:.1f} times as many. It leaves nothing for tables of two "
        "attributes, and someone who knows the rest learns up to the whole ε of the attribute that "
        "is answered. Who needs only shares at a small ε is better served by it."
    )


def _points_table(points: Points) -> Table:
    cells: list[list[Cell]] = []
    for budget in points.budgets:
        product = points.at(budget, "kronecker")
        for method in ("optimal", "balanced", "kronecker", "rsfd", RSFD_STATED, SMP):
            point = points.at(budget, method)
            cells.append(
                [
                    budget.n_categories,
                    budget.n_attributes,
                    budget.epsilon,
                    method,
                    point.epsilon,
                    point.attribute_epsilon,
                    point.given_rest,
                    point.marginal,
                    point.pair,
                    saved(point.marginal, product.marginal),
                    saved(point.pair, product.pair),
                    point.cost,
                ]
            )
    return Table(
        "laws",
        "Every method at every budget: levels in nats, attenuations, rows that the Kronecker "
        "product needs for every row (empty where nothing of a pair is left), and what balanced "
        "costs above the optimum at the same attribute levels.",
        [
            "n_categories",
            "n_attributes",
            "budget_nats",
            "method",
            "epsilon_nats",
            "attribute_epsilon_nats",
            "epsilon_given_rest_nats",
            "attenuation_marginal",
            "attenuation_pair",
            "saving_marginals",
            "saving_pairs",
            "cost_share_of_epsilon",
        ],
        cells,
    )


def _bought_table(rows: Sequence[Bought]) -> Table:
    cells: list[list[Cell]] = []
    for row in rows:
        lost = row.lost or (None, None)
        budget = row.printed.budget
        cells.append(
            [
                f"a = {budget.n_categories}, k = {budget.n_attributes}, ε = {budget.epsilon:g}",
                *(value for both in zip(row.stated, row.computed, strict=True) for value in both),
                *lost,
            ]
        )
    return Table(
        "what-it-buys",
        "The five stated cases, optimum against Kronecker product: as stated and as computed; and "
        "by what share the balanced law's attenuations are below the optimum's.",
        [
            "case",
            "optimal_level_stated",
            "optimal_level_nats",
            "kronecker_level_stated",
            "kronecker_level_nats",
            "saving_marginals_stated",
            "saving_marginals",
            "saving_pairs_stated",
            "saving_pairs",
            "balanced_marginal_lost",
            "balanced_pair_lost",
        ],
        cells,
    )


def _fake_data_table(accounted: Sequence[tuple[Budget, float, float]]) -> Table:
    return Table(
        "rsfd-accounted",
        "RS+FD as its authors set it for a given ε, five categories each: the level of its exact "
        "law for a record, and against someone who knows the rest, in nats.",
        ["n_attributes", "asked_nats", "epsilon_nats", "epsilon_given_rest_nats"],
        [[b.n_attributes, b.epsilon, epsilon, given] for b, epsilon, given in accounted],
    )


_STATED_LABEL = "RS+FD as stated: the record's ε is larger"


def _figures(points: Points) -> list[Figure]:
    return [
        Figure(
            "attenuation",
            "Attenuation φ of a marginal (above) and |φ| of a pair (below) over the record's ε, "
            "five categories each; exact numbers, no draws. RS+FD leaves no pair, SMP none either; "
            "a gap is a pair that has vanished.",
            lambda canvas: _draw_attenuation(canvas, points),
            (7.2, 5.6),
        ),
        Figure(
            "saving",
            "Rows that independent randomization needs for every row of another law at the same ε "
            "of the record, over the number of attributes with five categories each; below 1 "
            "(thin line) the other law needs more. Exact numbers, no draws.",
            lambda canvas: _draw_saving(canvas, points),
            (7.2, 5.6),
        ),
        Figure(
            "given-rest",
            "What someone who knows all the other true values learns of an attribute at most "
            "(ε given the rest, nats), over the record's ε; five categories each. Exact numbers.",
            lambda canvas: _draw_given_rest(canvas, points),
            (7.2, 3.7),
        ),
    ]


def _line(points: Points, method: str, budgets: Sequence[Budget]) -> list[Point]:
    return [points.at(budget, method) for budget in budgets]


def _budgets(points: Points, n_attributes: int) -> list[Budget]:
    return [
        b
        for b in points.budgets
        if b.n_categories == DRAWN_CATEGORIES and b.n_attributes == n_attributes
    ]


def _visible(value: float | None) -> float:
    return float("nan") if value is None or abs(value) < 1e-9 else abs(value)


def _plot_stated(axes: "Axes", x: Sequence[float], y: Sequence[float]) -> None:
    plot_method(
        axes, "rsfd", x, y, label=_STATED_LABEL, markerfacecolor="none", linestyle=(0, (1, 3))
    )


def _draw_attenuation(canvas: "MatplotlibFigure", points: Points) -> None:
    columns = (2, 10, 1000)
    panels = canvas.subplots(2, len(columns), sharex=True)
    for column, k in enumerate(columns):
        budgets = _budgets(points, k)
        epsilon = [b.epsilon for b in budgets]
        above, below = panels[0][column], panels[1][column]
        for method in ("optimal", "balanced", "kronecker"):
            line = _line(points, method, budgets)
            plot_method(above, method, epsilon, [p.marginal for p in line])
            plot_method(below, method, epsilon, [_visible(p.pair) for p in line])
        for method in ("rsfd", SMP):
            plot_method(
                above, method, epsilon, [p.marginal for p in _line(points, method, budgets)]
            )
        _plot_stated(above, epsilon, [p.marginal for p in _line(points, RSFD_STATED, budgets)])
        for panel in (above, below):
            panel.set_yscale("log")
            grid(panel)
        below.set_xlabel("ε of the record, nats")
        below.set_xticks(_TICKS)
    panels[0][0].set_ylabel("φ of a marginal")
    panels[1][0].set_ylabel("|φ| of a pair")
    letter(
        [*panels[0], *panels[1]],
        [f"{what}, k = {k:,}" for what in ("marginals", "pairs") for k in columns],
    )
    handles, labels = panels[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=3)


def _draw_saving(canvas: "MatplotlibFigure", points: Points) -> None:
    by_level: dict[float, list[Budget]] = {}
    for budget in points.budgets:
        if budget.n_categories == DRAWN_CATEGORIES:
            by_level.setdefault(budget.epsilon, []).append(budget)
    levels = sorted(sorted(by_level, key=lambda e: (-len(by_level[e]), e))[:3])
    panels = canvas.subplots(2, len(levels), sharex=True, sharey="row", squeeze=False)
    for column, level in enumerate(levels):
        budgets = by_level[level]
        k = [b.n_attributes for b in budgets]
        product = _line(points, "kronecker", budgets)
        for method in ("optimal", "balanced", "rsfd", SMP):
            line = _line(points, method, budgets)
            pairs = [(p, q) for p, q in zip(line, product, strict=True)]
            plot_method(
                panels[0][column],
                method,
                k,
                [saved(p.marginal, q.marginal) or float("nan") for p, q in pairs],
            )
            if method in ("optimal", "balanced"):
                plot_method(
                    panels[1][column],
                    method,
                    k,
                    [saved(p.pair, q.pair) or float("nan") for p, q in pairs],
                )
        for row in (0, 1):
            panel = panels[row][column]
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.axhline(1, color="#000000", linewidth=0.6)
            grid(panel)
        panels[1][column].set_xlabel("number of attributes k")
    panels[0][0].set_ylabel("saving, marginals (times)")
    panels[1][0].set_ylabel("saving, pairs (times)")
    letter(
        [*panels[0], *panels[1]],
        [f"{what}, ε = {level:g}" for what in ("marginals", "pairs") for level in levels],
    )
    handles, labels = panels[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=4)


def _draw_given_rest(canvas: "MatplotlibFigure", points: Points) -> None:
    columns = (2, 10, 1000)
    panels = canvas.subplots(1, len(columns), sharey=True)
    for panel, k in zip(panels, columns, strict=True):
        budgets = _budgets(points, k)
        epsilon = [b.epsilon for b in budgets]
        for method in ("optimal", "balanced", "kronecker", "rsfd", SMP):
            line = _line(points, method, budgets)
            shown: dict[str, Any] = {}
            if method == "optimal":  # SMP lies on it
                shown = {"markersize": 7, "markerfacecolor": "none"}
            plot_method(panel, method, epsilon, [p.given_rest for p in line], **shown)
        panel.set_yscale("log")
        panel.set_xlabel("ε of the record, nats")
        panel.set_xticks(_TICKS)
        grid(panel)
    panels[0].set_ylabel("ε given the rest, nats")
    letter(list(panels), [f"k = {k:,}" for k in columns])
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=3)


STUDY = Study(
    name="record-budget",
    title="One ε for the whole record: what it buys, and what it costs",
    source="beyond the papers",
    question="At the same level for a person's whole record, how much of marginals and pairs does "
    "each method leave, how many rows does that save, and what does someone learn who knows the "
    "rest?",
    seconds=240,
    run=run,
)
"""Nothing in it is random."""
