"""Methods at one ε for the whole record (`budgets`), over a grid of budgets, without randomness."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from deniable.design.design import design
from deniable.mechanism.mechanism import Mechanism
from deniable.schema import Schema
from deniable_studies.beyond.baselines import (
    RSFD,
    RSFD_STATED,
    amplified_epsilon,
    fake_data_law,
)
from deniable_studies.beyond.budgets import (
    ALL,
    DESIGNED,
    FORMS,
    FORMS_SHARES,
    ONE_PAIR,
    SMP,
    SUBSETS,
    VANISHED,
    Budget,
    Point,
    most_attenuation,
    parts_of_cost,
    point,
    saved,
)
from deniable_studies.drawing import grid as draw_grid
from deniable_studies.drawing import legend, letter, plot_method
from deniable_studies.study import Judged, Rows, Setting, Study, Values
from deniable_studies.text import read_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

ROUNDING = 1e-9
"""In nats, where two accounts of the same law are compared."""


SAME_ROWS = 1e-5
"""Relative: a total is spent to a part in a million."""


class Points:
    """The points of a sweep, by budget and method."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._by = {(point.budget, point.method): point for point in points}
        self.budgets = tuple(dict.fromkeys(point.budget for point in points))

    def at(self, budget: Budget, method: str) -> Point:
        """Return a method at a budget."""
        return self._by[budget, method]

    def of(self, method: str) -> list[Point]:
        """Return a method at every budget."""
        return [self.at(budget, method) for budget in self.budgets]


def sweep(setting: Setting) -> Points:
    """Return every method over the grids of the study, in the order of the table.

    In full: ε = 1 … 10 for k = 2, 5, 10, 100, 1,000 and a = 2, 5, 20, and for a = 5 more values of
    k at ε = 2, 5, 8.
    """
    budgets = list(grid(quick=setting.quick))
    points: list[Point] = []
    for done, budget in enumerate(budgets):
        with setting.step(done, len(budgets)):
            points += [point(budget, method) for method in ALL]
    return Points(points)


def grid(*, quick: bool) -> Iterator[Budget]:
    """Yield the budgets of the study, each once."""
    if quick:
        for k in (2, 5, 10):
            for epsilon in (1.0, 4.0, 10.0):
                yield Budget(5, k, epsilon)
        yield Budget(5, 1000, 4.0)
        return
    budgets = {
        Budget(a, k, float(epsilon))
        for a in (2, 5, 20)
        for k in (2, 5, 10, 100, 1000)
        for epsilon in range(1, 11)
    }
    for k in (2, 3, 5, 7, 10, 20, 30, 50, 100, 200, 500, 1000):
        budgets |= {Budget(5, k, level) for level in (2.0, 5.0, 8.0)}
    yield from sorted(budgets, key=lambda b: (b.n_categories, b.n_attributes, b.epsilon))


@dataclass(frozen=True)
class Printed:
    """A row of the table of gains, as stated by this project.

    Args:
        budget: where.
        optimal_level, kronecker_level: ε of one attribute alone under either, in nats.
        marginals, pairs: rows of the product for a row of the optimum.
    """

    budget: Budget
    optimal_level: float
    kronecker_level: float
    marginals: float
    pairs: float


PRINTED: tuple[Printed, ...] = (
    Printed(Budget(5, 5, 5.0), 1.71, 1.00, 3.4, 7.4),
    Printed(Budget(5, 10, 5.0), 1.25, 0.50, 8.4, 60),
    Printed(Budget(5, 20, 8.0), 1.30, 0.40, 15, 219),
    Printed(Budget(5, 100, 8.0), 0.62, 0.08, 79, 5900),
    Printed(Budget(2, 10, 2.0), 0.51, 0.20, 6.3, 70),
)
HALF_UNITS: tuple[tuple[float, float, float, float], ...] = (
    (0.005, 0.005, 0.05, 0.05),
    (0.005, 0.005, 0.05, 0.5),
    (0.005, 0.005, 0.5, 0.5),
    (0.005, 0.005, 0.5, 50),
    (0.005, 0.005, 0.05, 0.5),
)
"""Half a unit in the last digit of every printed number, in the order of its row."""


@dataclass(frozen=True)
class Bought:
    """Results for a row of the table of gains.

    Args:
        printed: the row.
        half_units: of its four numbers.
        optimal, kronecker: the laws.
        balanced: the balanced law at the same ε; None where it was left out.
    """

    printed: Printed
    half_units: tuple[float, float, float, float]
    optimal: Point
    kronecker: Point
    balanced: Point | None

    @property
    def stated(self) -> tuple[float, float, float, float]:
        """The four printed numbers: two levels in nats, savings of marginals and of pairs."""
        row = self.printed
        return row.optimal_level, row.kronecker_level, row.marginals, row.pairs

    @property
    def computed(self) -> tuple[float, float, float, float]:
        """The same four, computed."""
        return (
            self.optimal.attribute_epsilon or 0.0,
            self.kronecker.attribute_epsilon or 0.0,
            saved(self.optimal.marginal, self.kronecker.marginal) or 0.0,
            saved(self.optimal.pair, self.kronecker.pair) or 0.0,
        )

    @property
    def lost(self) -> tuple[float, float] | None:
        """By what part the balanced law's attenuations are below the optimum's: marginal, pair."""
        if self.balanced is None or not self.optimal.pair or self.balanced.pair is None:
            return None
        return (
            1 - self.balanced.marginal / self.optimal.marginal,
            1 - self.balanced.pair / self.optimal.pair,
        )


def bought(setting: Setting) -> list[Bought]:
    """Return the results for every row of ``PRINTED``.

    The balanced law of 20 attributes takes ten seconds to find and is left out of a quick run.
    """
    rows = []
    for done, (printed, half_units) in enumerate(zip(PRINTED, HALF_UNITS, strict=True)):
        with setting.step(done, len(PRINTED)):
            slow = setting.quick and printed.budget.n_attributes == 20
            optimal, kronecker = (point(printed.budget, m) for m in ("optimal", "kronecker"))
            balanced = None if slow else point(printed.budget, "balanced")
            rows.append(Bought(printed, half_units, optimal, kronecker, balanced))
    return rows


VANISHING: tuple[tuple[int, int, float, float], ...] = ((2, 3, 1.6, 0.1), (5, 6, 2.05, 0.01))
"""Categories, attributes, the ε up to which every pair of the optimum is stated to vanish, and a
unit in its last digit."""


def optimal_pair(n_categories: int, n_attributes: int, epsilon: float) -> float:
    """Return φ of a pair under the optimum of identical attributes."""
    pair = point(Budget(n_categories, n_attributes, epsilon), "optimal").pair
    assert pair is not None
    return pair


def vanishing_up_to(n_categories: int, n_attributes: int) -> float:
    """Return, to 0.0005 nats, the record level up to which the optimum of identical attributes
    wipes out every pair; 0 if some pair survives at 0.5 nats."""
    low, high = 0.5, 6.0
    if abs(optimal_pair(n_categories, n_attributes, low)) >= VANISHED:
        return 0.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        vanished = abs(optimal_pair(n_categories, n_attributes, middle)) < VANISHED
        low, high = (middle, high) if vanished else (low, middle)
    return (low + high) / 2


EXAMPLE = (2, 2, 2, 2, 6, 6, 3, 5, 3, 4, 7, 4)
"""Category counts of the shipped example's twelve attributes, in its schema's order."""

EXAMPLE_EPSILON = 4.0


def example_saving() -> tuple[float, float]:
    """Return the stated saving of the shipped example: marginals, pairs."""
    stated = design(Schema.anonymous(EXAMPLE), epsilon=EXAMPLE_EPSILON).account.saving
    assert stated is not None
    assert stated.pairs is not None
    return stated.marginals, stated.pairs


def accounted_fake_data(setting: Setting) -> list[tuple[Budget, float, float]]:
    """Return RS+FD as its authors set it, accounted for from its exact law.

    Returns:
        Budget, the record's ε and the largest ``epsilon_given_rest``, both in nats.
    """
    rows = []
    for k in (2, 5) if setting.quick else (2, 5, 10):
        for epsilon in (1.0, 4.0, 10.0):
            law = fake_data_law((5,) * k, amplified_epsilon(k, epsilon))
            mechanism = Mechanism.of(law)
            rows.append(
                (Budget(5, k, epsilon), mechanism.epsilon, max(mechanism.epsilon_given_rest))
            )
    return rows


@dataclass(frozen=True)
class Numbers:
    """Everything that the study rests on.

    Args:
        points: every method at every budget.
        bought: the rows of the table of gains.
        accounted: RS+FD as its authors set it, see :func:`accounted_fake_data`.
        example: saving on the shipped example; None in a quick run.
    """

    points: Points
    bought: Sequence[Bought]
    accounted: Sequence[tuple[Budget, float, float]]
    example: tuple[float, float] | None


def measure(setting: Setting) -> Numbers:
    """Design every law and look at it."""
    points = sweep(setting.part(0.0, 0.8))
    rows = bought(setting.part(0.8, 0.9))
    accounted = accounted_fake_data(setting)
    setting.advance(0.95)
    return Numbers(points, rows, accounted, None if setting.quick else example_saving())


# Judges.


def judge_bought(rows: Sequence[Bought]) -> Judged:
    """Judge the table of gains."""
    triples = [t for r in rows for t in zip(r.stated, r.computed, r.half_units, strict=True)]
    right = sum(abs(stated - found) <= half * (1 + 1e-9) for stated, found, half in triples)
    farthest = max(abs(found / stated - 1) for stated, found, _ in triples)
    return Judged(
        f"{right} of {len(triples)} as rounded, the farthest {farthest:.2%} off",
        right == len(triples),
        farthest <= 0.05,
    )


def judge_cap(rows: Sequence[Bought]) -> Judged:
    """Judge the loss of the balanced law in attenuations against the optimum."""
    lost = {row.lost: row for row in rows if row.lost is not None}
    marginals, pairs = zip(*lost, strict=True)
    most = lost[max(lost, key=lambda both: both[1])]
    before, after = (
        (law.pair or 0.0) / law.marginal**2 for law in (most.optimal, most.balanced or most.optimal)
    )
    good = [all(0.015 <= x < 0.045 for x in xs) for xs in (marginals, pairs)]
    return Judged(
        f"of marginals {100 * min(marginals):.1f} to {100 * max(marginals):.1f} % lower, of pairs "
        f"{100 * min(pairs):.1f} to {100 * max(pairs):.1f} %, in {len(lost)} cases",
        all(good),
        good[0],
        "marginals" if good[0] else "more",
        {"before": before, "after": after},
    )


def judge_cost(points: Points) -> Judged:
    """Judge the cost of cap and floor in ε."""
    costs = {p.budget: 100 * (p.cost or 0.0) for p in points.of("balanced")}
    large = {b: cost for b, cost in costs.items() if b.n_attributes >= 10}
    small = [cost for b, cost in costs.items() if b.n_attributes < 10]
    low, middle, high = min(large.values()), median(large.values()), max(large.values())
    dearest = max(large, key=lambda b: large[b])
    cap, floor = parts_of_cost(points.at(dearest, "balanced"))
    return Judged(
        f"{low:.1f} to {high:.1f} %, median {middle:.1f} %; the most at {dearest}, where the cap "
        f"alone costs {100 * cap:.1f} % and the floor on pairs alone {100 * floor:.1f} %; below "
        f"ten attributes up to {max(small):.0f} %",
        high < 6.5,
        middle < 6.5,
    )


def judge_given_rest(points: Points) -> Judged:
    """Judge ε given the rest."""
    wrong = []
    for budget in points.budgets:
        kronecker, optimal, balanced = (
            points.at(budget, method) for method in ("kronecker", "optimal", "balanced")
        )
        if not (
            abs(kronecker.given_rest - budget.epsilon / budget.n_attributes) <= ROUNDING
            and abs(optimal.given_rest - optimal.epsilon) <= ROUNDING
            and balanced.given_rest <= 2 * (balanced.attribute_epsilon or 0.0) + ROUNDING
        ):
            wrong.append(budget)
    ratios = [
        p.given_rest / (p.attribute_epsilon or 1.0)
        for p in points.of("optimal")
        if p.budget.n_attributes >= 10
    ]
    n = len(points.budgets)
    return Judged(
        f"at {n - len(wrong)} of {n} budgets; under the optimum ε is {min(ratios):.1f} to "
        f"{max(ratios):.0f} times an attribute's own, k ≥ 10",
        not wrong,
        len(wrong) <= n / 10,
        values={"where": "; ".join(map(str, wrong[:3]))},
    )


def judge_never_worse(points: Points) -> Judged:
    """Judge whether randomizing together ever loses against the product."""
    shares: list[Point] = []
    pairs: list[tuple[float, Point]] = []
    refused: list[Point] = []
    for method in ("optimal", "balanced"):
        for law, product in zip(points.of(method), points.of("kronecker"), strict=True):
            if (law.marginal / product.marginal) ** 2 < 1 - SAME_ROWS:
                shares.append(law)
            ratio = saved(law.pair, product.pair)
            if ratio is None:
                refused.append(law)
            elif ratio < 1 - SAME_ROWS:
                pairs.append((ratio, law))
    n = len(points.budgets)
    found = (
        f"for shares the product needs fewer rows in {len(shares)} cases"
        if shares
        else f"for shares the product needs as many rows or more at all {n} budgets"
    )
    found += f"; for pairs it needs fewer in {len(pairs)} of {2 * n} cases"
    if pairs:
        ratio, law = min(pairs, key=lambda pair: pair[0])
        found += (
            f" (the worst: {law.method} at {law.budget}, where the product needs {ratio:.2f} times "
            "as many)"
        )
    lost = [law.budget for law in (*shares, *(law for _, law in pairs), *refused)]
    return Judged(
        f"{found}; in {len(refused)} cases no pair can be estimated at all",
        not lost,
        not shares,
        values={
            "attributes": max((b.n_attributes for b in lost), default=0),
            "epsilon": max((b.epsilon for b in lost), default=0.0),
        },
    )


def judge_forms(points: Points) -> Judged:
    """Judge forms for shares alone against all other methods and the bound of all mechanisms."""
    worst, where, ahead = 0.0, "", 0
    for budget in points.budgets:
        own = points.at(budget, FORMS_SHARES).marginal
        rivals = {
            method: (points.at(budget, method).marginal / own) ** 2
            for method in ALL
            if method not in (FORMS, FORMS_SHARES, RSFD_STATED)
        }
        best = max(rivals, key=rivals.__getitem__)
        ahead += rivals[best] > 1 + _SHARES_ALIKE
        if rivals[best] > worst:
            worst, where = rivals[best], f"{best} at {budget}"
    limits = [
        (most_attenuation(b) / points.at(b, FORMS_SHARES).marginal) ** 2 for b in points.budgets
    ]
    return Judged(
        f"another method needs fewer rows at {ahead} of {len(points.budgets)} budgets, at the most "
        f"{worst:.2f} times fewer ({where}); no mechanism needs fewer than 1/{max(limits):.2f} of "
        f"the rows of forms anywhere, in the median 1/{median(limits):.2f}",
        ahead == 0,
        worst <= 1.5,
    )


_SHARES_ALIKE = 1e-4
"""The search for forms stops at so little, relative to the variance."""


def judge_pairs(points: Points) -> Judged:
    """Judge the floor of the balanced law on pairs."""
    least = min((p.pair or 0.0) / p.marginal**2 for p in points.of("balanced"))
    lost = sum(abs(p.pair or 0.0) < VANISHED for p in points.of("optimal"))
    return Judged(
        f"the least ratio is {least:.4f}; under the optimum pairs are lost altogether at {lost} of "
        f"{len(points.budgets)} budgets",
        least >= 0.5 - 1e-6,
        least > 0,
    )


def judge_vanishing() -> Judged:
    """Judge where the optimum's pairs vanish."""
    exact = [
        abs(optimal_pair(a, k, stated)) < VANISHED <= abs(optimal_pair(a, k, stated + unit))
        for a, k, stated, unit in VANISHING
    ]
    ends = [f"{vanishing_up_to(a, k):.3f} (a = {a}, k = {k})" for a, k, _, _ in VANISHING]
    return Judged(f"up to {' and '.join(ends)}", all(exact), any(exact))


def judge_fake_data(points: Points) -> Judged:
    """Judge RS+FD against the optimum, at one and the same level for the record."""
    both = zip(points.of(RSFD), points.of("optimal"), strict=True)
    ratios = [fake.marginal / best.marginal for fake, best in both]
    return Judged(
        f"between {min(ratios):.3f} and {max(ratios):.3f} of the optimum's; of pairs it leaves 0",
        max(ratios) <= 1 + ROUNDING,
    )


def judge_amplification(accounted: Sequence[tuple[Budget, float, float]]) -> Judged:
    """Judge the level of RS+FD for a record."""
    holds = [epsilon <= budget.epsilon + ROUNDING for budget, epsilon, _ in accounted]
    rest = all(abs(given - budget.epsilon) <= 1e-6 for budget, _, given in accounted)
    budget, epsilon, _ = max(accounted, key=lambda row: row[1] - row[0].epsilon)
    return Judged(
        f"kept in {sum(holds)} of {len(holds)} cases; at {budget} the record's ε is {epsilon:.2f}; "
        + (
            "epsilon_given_rest is the requested ε in every case"
            if rest
            else "nor is epsilon_given_rest the requested ε"
        ),
        all(holds),
        any(holds),
    )


def judge_example(example: tuple[float, float] | None) -> Judged:
    """Judge the README's figures for the shipped example."""
    assert example is not None  # full runs only
    marginals, pairs = example
    return Judged(
        f"{marginals:.2f} and {pairs:.1f} times (medians over attributes and pairs)",
        round(marginals) == 9 and round(pairs) == 75,
        abs(marginals / 9 - 1) < 0.1 and abs(pairs / 75 - 1) < 0.1,
    )


# Tables, figures and values of sentences.


def _sampling_remark(points: Points) -> str:
    both = zip(points.of(SMP), points.of("optimal"), strict=True)
    ratios = {sampled.budget: (sampled.marginal / best.marginal) ** 2 for sampled, best in both}
    ahead = {b: r for b, r in ratios.items() if r > 1}
    behind = max(1 / r for r in ratios.values())
    if not ahead:
        return "SMP needs more rows for marginals than the optimum at every budget."
    best = max(ahead, key=lambda b: ahead[b])
    return (
        f"For marginals alone SMP needs fewer rows than the optimum at {len(ahead)} of "
        f"{len(ratios)} budgets, at the best {ahead[best]:.2f} times fewer ({best}); at the "
        f"worst it needs {behind:.1f} times as many. It permits no tables of two "
        "attributes, and given the rest the answered attribute's level is the whole ε. For shares "
        "alone at a small ε it is the better choice."
    )


def _law_rows(points: Points) -> Rows:
    return [
        [
            *(budget.n_categories, budget.n_attributes, budget.epsilon, method, p.epsilon),
            *(p.attribute_epsilon, p.given_rest, p.marginal, p.pair),
            *(saved(p.marginal, product.marginal), saved(p.pair, product.pair), p.cost),
        ]
        for budget in points.budgets
        for product in [points.at(budget, "kronecker")]
        for method in ALL
        for p in [points.at(budget, method)]
    ]


def _bought_rows(rows: Sequence[Bought]) -> Rows:
    return [
        [
            str(row.printed.budget),
            *(value for both in zip(row.stated, row.computed, strict=True) for value in both),
            *(row.lost or (None, None)),
        ]
        for row in rows
    ]


def _at_size(points: Points, k: int) -> list[Budget]:
    """Return the budgets that are drawn for k attributes, by rising level."""
    return [b for b in points.budgets if (b.n_categories, b.n_attributes) == (_DRAWN, k)]


_DRAWN = 5
"""The number of categories in the figures."""
_SIZES = (2, 10, 1000)
_TICKS = (2, 4, 6, 8, 10)


def _line(
    axes: "Axes",
    points: Points,
    method: str,
    budgets: Sequence[Budget],
    x: Sequence[float],
    value: Callable[[Point], float | None],
    **more: Any,
) -> None:
    """Draw a method over budgets; missing and vanished values leave a gap."""
    values = [value(points.at(b, method)) for b in budgets]
    y = [math.nan if v is None or abs(v) < VANISHED else abs(v) for v in values]
    if method == RSFD_STATED:
        method = RSFD
        more = {
            "label": "RS+FD as stated: the record's ε is larger",
            "markerfacecolor": "none",
            "linestyle": (0, (1, 3)),
        }
    plot_method(axes, method, x, y, **more)


def _draw_attenuation(canvas: "MatplotlibFigure", points: Points) -> None:
    panels = canvas.subplots(2, len(_SIZES), sharex=True)
    for (above, below), k in zip(panels.T, _SIZES, strict=True):
        budgets = _at_size(points, k)
        epsilon = [b.epsilon for b in budgets]
        for method in (*DESIGNED, RSFD, SMP, RSFD_STATED):
            _line(above, points, method, budgets, epsilon, lambda p: p.marginal)
        for method in DESIGNED:
            _line(below, points, method, budgets, epsilon, lambda p: p.pair)
        for panel in (above, below):
            panel.set_yscale("log")
            draw_grid(panel)
        below.set_xlabel("ε of the record, nats")
        below.set_xticks(_TICKS)
    panels[0][0].set_ylabel("φ of a marginal")
    panels[1][0].set_ylabel("|φ| of a pair")
    titles = [f"{kind}, k = {k:,}" for kind in ("marginals", "pairs") for k in _SIZES]
    letter(panels.ravel(), titles)
    legend(canvas, panels[0][0], ncols=3)


def _limit(axes: "Axes", points: Points, budgets: Sequence[Budget], x: Sequence[float]) -> None:
    """Draw the bound of all mechanisms."""
    products = [points.at(budget, "kronecker").marginal for budget in budgets]
    most = [
        (most_attenuation(budget) / product) ** 2
        for budget, product in zip(budgets, products, strict=True)
    ]
    plot_method(axes, "limit", x, most)


def _draw_saving(canvas: "MatplotlibFigure", points: Points) -> None:
    by_level: dict[float, list[Budget]] = {}
    for budget in points.budgets:
        if budget.n_categories == _DRAWN:
            by_level.setdefault(budget.epsilon, []).append(budget)
    levels = sorted(sorted(by_level, key=lambda e: (-len(by_level[e]), e))[:3])
    panels = canvas.subplots(2, len(levels), sharex=True, sharey="row", squeeze=False)

    def marginals(point: Point) -> float | None:
        return saved(point.marginal, points.at(point.budget, "kronecker").marginal)

    def pairs(point: Point) -> float | None:
        return saved(point.pair, points.at(point.budget, "kronecker").pair)

    for (above, below), level in zip(panels.T, levels, strict=True):
        budgets = by_level[level]
        k = [b.n_attributes for b in budgets]
        for method in ("optimal", "balanced", FORMS, FORMS_SHARES, RSFD, SMP, SUBSETS, "privunit"):
            _line(above, points, method, budgets, k, marginals)
        _limit(above, points, budgets, k)
        for method in ("optimal", "balanced", FORMS, ONE_PAIR):
            _line(below, points, method, budgets, k, pairs)
        plot_method(above, ONE_PAIR, [], [])
        for panel in (above, below):
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.axhline(1, color="#000000", linewidth=0.6)
            draw_grid(panel)
        below.set_xlabel("number of attributes k")
    panels[0][0].set_ylabel("saving, marginals (times)")
    panels[1][0].set_ylabel("saving, pairs (times)")
    titles = [f"{kind}, ε = {level:g}" for kind in ("marginals", "pairs") for level in levels]
    letter(panels.ravel(), titles)
    legend(canvas, panels[0][0], ncols=3)


def _draw_given_rest(canvas: "MatplotlibFigure", points: Points) -> None:
    panels = canvas.subplots(1, len(_SIZES), sharey=True)
    for panel, k in zip(panels, _SIZES, strict=True):
        budgets = _at_size(points, k)
        epsilon = [b.epsilon for b in budgets]
        for method in (*DESIGNED, RSFD, SMP):
            look: dict[str, Any] = {}
            if method == "optimal":  # SMP lies on it
                look = {"markersize": 7, "markerfacecolor": "none"}
            _line(panel, points, method, budgets, epsilon, lambda p: p.given_rest, **look)
        panel.set_yscale("log")
        panel.set_xlabel("ε of the record, nats")
        panel.set_xticks(_TICKS)
        draw_grid(panel)
    panels[0].set_ylabel("ε given the rest, nats")
    letter(panels, [f"k = {k:,}" for k in _SIZES])
    legend(canvas, panels[0], ncols=3)


def _values(n: Numbers) -> Values:
    return {"sampling": _sampling_remark(n.points)}


STUDY = Study(
    read_text("beyond/record-budget.toml"),
    measure,
    judges={
        "bought": lambda n: judge_bought(n.bought),
        "never-worse": lambda n: judge_never_worse(n.points),
        "given-rest": lambda n: judge_given_rest(n.points),
        "cost": lambda n: judge_cost(n.points),
        "cap": lambda n: judge_cap(n.bought),
        "forms": lambda n: judge_forms(n.points),
        "pairs": lambda n: judge_pairs(n.points),
        "vanishing": lambda _: judge_vanishing(),
        "fake-data": lambda n: judge_fake_data(n.points),
        "amplification": lambda n: judge_amplification(n.accounted),
        "example": lambda n: judge_example(n.example),
    },
    figures={
        "attenuation": lambda canvas, n: _draw_attenuation(canvas, n.points),
        "saving": lambda canvas, n: _draw_saving(canvas, n.points),
        "given-rest": lambda canvas, n: _draw_given_rest(canvas, n.points),
    },
    tables={
        "laws": lambda n: _law_rows(n.points),
        "what-it-buys": lambda n: _bought_rows(n.bought),
        "rsfd-accounted": lambda n: [
            [b.n_attributes, b.epsilon, epsilon, given] for b, epsilon, given in n.accounted
        ],
    },
    values=_values,
)
