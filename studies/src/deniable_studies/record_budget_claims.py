"""What is said of budgets for whole records, against the numbers of study ``record-budget``."""

from collections.abc import Sequence
from statistics import median

from deniable_studies.record_budget import (
    EXAMPLE_EPSILON,
    VANISHED,
    VANISHING,
    Bought,
    Budget,
    Point,
    optimal_pair,
    parts_of_cost,
    saved,
    vanishing_up_to,
)
from deniable_studies.study import Claim, judge

THEORY = "this project's theory of record-level ε"
ROUNDING = 1e-9
"""In nats, where two accounts of the same law are compared."""


class Points:
    """The points of a sweep, by budget and method."""

    def __init__(self, found: Sequence[Point]) -> None:
        self._by = {(point.budget, point.method): point for point in found}
        self.budgets = tuple(dict.fromkeys(point.budget for point in found))

    def at(self, budget: Budget, method: str) -> Point:
        """Return a method at a budget."""
        return self._by[budget, method]

    def of(self, method: str) -> list[Point]:
        """Return a method at every budget."""
        return [self.at(budget, method) for budget in self.budgets]


def where(budget: Budget) -> str:
    """Return a budget in words."""
    return f"a = {budget.n_categories}, k = {budget.n_attributes:,}, ε = {budget.epsilon:g}"


def bought_claim(rows: Sequence[Bought]) -> Claim:
    """Judge the table "what it buys"."""
    right, farthest = 0, 0.0
    for row in rows:
        triples = zip(row.stated, row.computed, row.half_units, strict=True)
        for stated, computed, half_unit in triples:
            right += abs(stated - computed) <= half_unit * (1 + 1e-9)
            farthest = max(farthest, abs(computed / stated - 1))
    total = 4 * len(rows)
    return Claim(
        "At the same ε for the record the optimum leaves every attribute a larger level than the "
        "Kronecker product, and saves rows: "
        + "; ".join(
            f"{r.printed.marginals:g}x for marginals and {r.printed.pairs:g}x for pairs at "
            f"{where(r.printed.budget)}"
            for r in rows
        ),
        f"{THEORY}, the table of what it buys",
        "all twenty numbers (two levels and two savings in five cases) as rounded; partly: all "
        "within 5 %",
        f"{right} of {total} as rounded, the farthest {farthest:.2%} off",
        judge(right == total, partly=farthest <= 0.05),
        "" if right == total else "The stated number was rounded from another law.",
    )


def cap_claim(rows: Sequence[Bought]) -> Claim:
    """Judge what the balanced law loses of the optimum's attenuations."""
    lost = [row.lost for row in rows if row.lost is not None]
    marginals, pairs = [m for m, _ in lost], [p for _, p in lost]
    most = max(
        (row for row in rows if row.lost is not None), key=lambda row: (row.lost or (0, 0))[1]
    )
    before = (most.optimal.pair or 0.0) / most.optimal.marginal**2
    capped = most.balanced or most.optimal
    after = (capped.pair or 0.0) / capped.marginal**2
    good = [all(0.015 <= x < 0.045 for x in xs) for xs in (marginals, pairs)]
    return Claim(
        "With the cap of 2x the attenuations are 2 to 4 % lower than the optimum's",
        f"{THEORY}, beside the table of what it buys",
        "of marginals and of pairs, as rounded, in every case computed; partly: of marginals",
        f"of marginals {100 * min(marginals):.1f} to {100 * max(marginals):.1f} % lower, of pairs "
        f"{100 * min(pairs):.1f} to {100 * max(pairs):.1f} %, in {len(lost)} cases",
        judge(all(good), partly=good[0]),
        ""
        if all(good)
        else "The figure holds for marginals only. A pair's attenuation is not the product of its "
        f"marginals': where pairs lose most, the ratio of the two is {before:.2f} under the "
        f"optimum and {after:.2f} under balanced."
        if good[0]
        else "The cap costs more than stated in these cases.",
    )


def cost_claim(points: Points) -> Claim:
    """Judge what cap and floor cost in ε."""
    large = [p for p in points.of("balanced") if p.budget.n_attributes >= 10]
    costs = [(p.cost or 0.0, p.budget) for p in large]
    low, high = min(c for c, _ in costs), max(c for c, _ in costs)
    middle = median(c for c, _ in costs)
    dearest = next(b for c, b in costs if c == high)
    small = [p.cost or 0.0 for p in points.of("balanced") if p.budget.n_attributes < 10]
    good = high < 0.065
    cap, floor = parts_of_cost(points.at(dearest, "balanced"))
    return Claim(
        "The cap 2x costs 3 to 6 % of ε at k = 10 to 1,000",
        "README, figures",
        "cap and floor of balanced nowhere cost more than 6 % as rounded, for k ≥ 10; partly: the "
        "median is not more than that",
        f"{100 * low:.1f} to {100 * high:.1f} %, median {100 * middle:.1f} %; the most at "
        f"{where(dearest)}, where the cap alone costs {100 * cap:.1f} % and the floor on pairs "
        f"alone {100 * floor:.1f} %; below ten attributes up to {100 * max(small):.0f} %",
        judge(good, partly=middle < 0.065),
        ""
        if good
        else "The README's figure is of the cap, at k = 10, 60, 200 and 1,000 attributes that "
        "differ, each k at one range of levels. It is not a bound: at smaller ε of the record, and "
        "where the floor on pairs binds, cap and floor cost more.",
    )


def given_rest_claim(points: Points) -> Claim:
    """Judge what someone who knows the rest can learn."""
    wrong = []
    for budget in points.budgets:
        kronecker = points.at(budget, "kronecker")
        optimal = points.at(budget, "optimal")
        balanced = points.at(budget, "balanced")
        share = budget.epsilon / budget.n_attributes
        kept = (
            abs(kronecker.given_rest - share) <= ROUNDING
            and abs(optimal.given_rest - optimal.epsilon) <= ROUNDING
            and balanced.given_rest <= 2 * (balanced.attribute_epsilon or 0.0) + ROUNDING
        )
        if not kept:
            wrong.append(budget)
    ratios = [
        p.given_rest / (p.attribute_epsilon or 1.0)
        for p in points.of("optimal")
        if p.budget.n_attributes >= 10
    ]
    good = not wrong
    return Claim(
        "Someone who knows all the other true values learns at most ε/k of an attribute under the "
        "Kronecker product, all of ε under the optimum, and at most twice the attribute's own "
        "level under balanced",
        "README; docs/guarantees.md",
        f"at every budget, to {ROUNDING:g} nats; partly: at nine of ten",
        f"at {len(points.budgets) - len(wrong)} of {len(points.budgets)} budgets; under the "
        f"optimum ε is {min(ratios):.1f} to {max(ratios):.0f} times an attribute's own, k ≥ 10",
        judge(good, partly=len(wrong) <= len(points.budgets) / 10),
        "" if good else f"It fails at {'; '.join(where(b) for b in wrong[:3])}.",
    )


def never_worse_claim(points: Points) -> Claim:
    """Judge whether randomizing together ever loses against the product."""
    losses: list[tuple[str, str, Budget, float]] = []
    refused = []
    for budget in points.budgets:
        product = points.at(budget, "kronecker")
        for method in ("optimal", "balanced"):
            law = points.at(budget, method)
            if (law.marginal / product.marginal) ** 2 < 1 - ROUNDING:
                ratio = (law.marginal / product.marginal) ** 2
                losses.append((method, "marginals", budget, ratio))
            pairs = saved(law.pair, product.pair)
            if pairs is None:
                refused.append((method, budget))
            elif pairs < 1 - ROUNDING:
                losses.append((method, "pairs", budget, pairs))
    marginals = [loss for loss in losses if loss[1] == "marginals"]
    worst = min(losses, key=lambda loss: loss[3], default=None)
    good = not losses and not refused
    found = (
        f"for shares the product needs as many rows or more at all {len(points.budgets)} budgets"
        if not marginals
        else f"for shares the product needs fewer rows in {len(marginals)} cases"
    )
    found += (
        f"; for pairs it needs fewer in {len(losses) - len(marginals)} of "
        f"{2 * len(points.budgets)} cases"
        f"{'' if worst is None else f' (the worst: {worst[0]} at {where(worst[2])}, where the '}"
        f"{'' if worst is None else f'product needs {worst[3]:.2f} times as many)'}"
        f"; in {len(refused)} cases no pair can be estimated at all"
    )
    where_lost = [loss[2] for loss in losses] + [budget for _, budget in refused]
    why = (
        f"All of them have at most {max((b.n_attributes for b in where_lost), default=0)} "
        f"attributes and ε up to {max((b.epsilon for b in where_lost), default=0.0):g}. What is "
        "made largest is the level of single attributes; pairs are a by-product, and with few "
        "attributes a small one. The floor of balanced is half of the marginals' product."
    )
    return Claim(
        "At the same ε independent randomization needs more rows, for shares and for pairs",
        "README, figures, where it is said of the shipped example",
        "for marginals and pairs under optimal and balanced at every budget; partly: for "
        "marginals at every budget",
        found,
        judge(good, partly=not marginals),
        "" if good else why,
    )


def pairs_claim(points: Points) -> Claim:
    """Judge the floor of the balanced law on pairs."""
    ratios = [(p.pair or 0.0) / p.marginal**2 for p in points.of("balanced")]
    lost = sum(abs(p.pair or 0.0) < VANISHED for p in points.of("optimal"))
    good = min(ratios) >= 0.5 - 1e-6
    return Claim(
        "Balanced keeps every table of two attributes estimable: φ of a pair is at least half of "
        "the product of its marginals'",
        "README; docs/proofs/clipped.md",
        "at every budget, to 1e-6; partly: above 0 at every budget",
        f"the least ratio is {min(ratios):.4f}; under the optimum pairs are lost altogether at "
        f"{lost} of {len(points.budgets)} budgets",
        judge(good, partly=min(ratios) > 0),
        "" if good else "The floor was missed where the law was landed on integers.",
    )


def vanishing_claim() -> Claim:
    """Judge where the optimum's pairs vanish."""
    exact = [
        abs(optimal_pair(a, k, stated)) < VANISHED <= abs(optimal_pair(a, k, stated + unit))
        for a, k, stated, unit in VANISHING
    ]
    found = [vanishing_up_to(a, k) for a, k, _, _ in VANISHING]
    return Claim(
        "Under the optimum of identical attributes with k ≡ 1 modulo a, every pair vanishes over "
        "an interval of ε: three binary attributes up to ε = 1.6; k = 6, a = 5 up to 2.05",
        f"{THEORY}, vanishing eigenvalues",
        "|φ| below 1e-9 at the stated ε and not one unit in its last digit higher; partly: one of "
        "the two cases",
        "up to "
        + " and ".join(
            f"{value:.3f} (a = {a}, k = {k})"
            for value, (a, k, _, _) in zip(found, VANISHING, strict=True)
        ),
        judge(all(exact), partly=any(exact)),
        "" if all(exact) else "The stated end of the interval is not where it was found.",
    )


def fake_data_claim(points: Points) -> Claim:
    """Judge RS+FD against the optimum, at one and the same level for the record."""
    ratios = [
        points.at(budget, "rsfd").marginal / points.at(budget, "optimal").marginal
        for budget in points.budgets
    ]
    good = max(ratios) <= 1 + ROUNDING
    return Claim(
        "RS+FD is a pattern law too, so it cannot beat the optimum at equal ε",
        f"{THEORY}, end of the section on the optimum",
        "φ of a marginal is not above the optimum's at any budget, RS+FD at the same ε of the "
        "record",
        f"between {min(ratios):.3f} and {max(ratios):.3f} of the optimum's; of pairs it leaves 0",
        judge(good),
        "" if good else "The optimum is no optimum, or RS+FD was not given the same ε.",
    )


def amplification_claim(accounted: Sequence[tuple[Budget, float, float]]) -> Claim:
    """Judge the level of RS+FD for a record."""
    holds = [epsilon <= budget.epsilon + ROUNDING for budget, epsilon, _ in accounted]
    rest = [abs(given - budget.epsilon) <= 1e-6 for budget, _, given in accounted]
    worst = max(accounted, key=lambda row: row[1] - row[0].epsilon)
    good = all(holds)
    return Claim(
        "RS+FD gives the whole tuple ε-LDP if its one answer is given at ε' = ln(k(e^ε − 1) + 1)",
        "multi-freq-ldpy 0.2.5 by the authors of RS+FD, where ε is the “privacy guarantee” of "
        "RSpFD_GRR_Client",
        "ε of the record, accounted for from the exact law, is not above the ε asked for, in every "
        "case; partly: in some",
        f"kept in {sum(holds)} of {len(holds)} cases; at {where(worst[0])} the record's ε is "
        f"{worst[1]:.2f}"
        + (
            "; epsilon_given_rest is the ε asked for in every case"
            if all(rest)
            else "; nor is epsilon_given_rest the ε asked for"
        ),
        judge(good, partly=any(holds)),
        ""
        if good
        else "Two records that differ in every attribute differ in the one that is answered, "
        "whichever it is, so sampling amplifies nothing: the law's largest ratio is e^ε'. The "
        "formula is right for records that differ in one attribute, that is for "
        "epsilon_given_rest.",
    )


def example_claim(found: tuple[float, float]) -> Claim:
    """Judge the README's figures for the shipped example."""
    marginals, pairs = found
    good = round(marginals) == 8 and round(pairs) == 66
    return Claim(
        f"Shipped example at ε = {EXAMPLE_EPSILON:g}, twelve attributes: independent randomization "
        "needs 8 times as many rows for shares as accurate, 66 times for pairs",
        "README, figures",
        "both as rounded; partly: within 10 %",
        f"{marginals:.2f} and {pairs:.1f} times (medians over attributes and pairs)",
        judge(good, partly=abs(marginals / 8 - 1) < 0.1 and abs(pairs / 66 - 1) < 0.1),
        "" if good else "The law has changed since the README's figure was measured.",
    )
