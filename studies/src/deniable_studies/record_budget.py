"""What a level for the whole record buys, by method: the numbers of study ``record-budget``.

Identical attributes, so that a point is (categories a, attributes k, ε of the record) and one
attenuation φ describes every marginal, another every pair. Rows needed for equally accurate tables
go with 1/φ².
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deniable.design.comparison import saving
from deniable.design.design import design
from deniable.design.plan import Design
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Schema
from deniable_studies.baselines import (
    amplified_epsilon,
    fake_data_attenuation,
    fake_data_given_rest,
    fake_data_law,
    sampling_attenuation,
)
from deniable_studies.study import Setting

DESIGNED: dict[str, str] = {
    "optimal": "optimal",
    "balanced": "balanced",
    "kronecker": "kronecker",
}
RSFD, RSFD_STATED, SMP = "rsfd", "rsfd-as-stated", "smp"

VANISHED = 1e-9
"""|φ| of a pair below this is rounding."""


@dataclass(frozen=True)
class Budget:
    """Where a law is looked at: identical attributes under one level for the record.

    Args:
        n_categories: a, of every attribute.
        n_attributes: k.
        epsilon: the level asked for, in nats.
    """

    n_categories: int
    n_attributes: int
    epsilon: float


@dataclass(frozen=True)
class Point:
    """One method at one budget.

    Args:
        budget: where.
        method: which.
        epsilon: the record's level of the law as it is drawn, in nats.
        attribute_epsilon: of an attribute seen alone, in nats; None where there is no such number.
        marginal: φ of one attribute; for SMP that of a law worth as much.
        pair: φ of two attributes, with its sign; None where no pair is ever seen.
        given_rest: the largest ``epsilon_given_rest``, in nats.
        optimal_epsilon: for ``balanced``, the smallest record level at the same attribute levels.
    """

    budget: Budget
    method: str
    epsilon: float
    attribute_epsilon: float | None
    marginal: float
    pair: float | None
    given_rest: float
    optimal_epsilon: float | None = None

    @property
    def cost(self) -> float | None:
        """What cap and floor of ``balanced`` cost: ε above the optimum's, as a share of it."""
        return None if self.optimal_epsilon is None else self.epsilon / self.optimal_epsilon - 1


def points(budget: Budget, methods: Sequence[str]) -> list[Point]:
    """Return each method at a budget."""
    return [_point(budget, method) for method in methods]


def _point(budget: Budget, method: str) -> Point:
    a, k, epsilon = budget.n_categories, budget.n_attributes, budget.epsilon
    if method in DESIGNED:
        found = design(Schema.anonymous([a] * k), epsilon=epsilon, method=DESIGNED[method])
        return _designed(budget, method, found)
    if method == SMP:
        worth = sampling_attenuation(k, a, epsilon)
        return Point(budget, method, epsilon, None, worth, None, epsilon)
    answer = amplified_epsilon(k, epsilon) if method == RSFD_STATED else epsilon
    phi = fake_data_attenuation(k, a, answer)
    return Point(budget, method, answer, None, phi, 0.0, fake_data_given_rest(k, answer))


def _designed(budget: Budget, method: str, found: Design) -> Point:
    mechanism = found.mechanism
    eigenvalues = Channel(mechanism, mechanism.schema.names[:2]).forward.eigenvalues
    return Point(
        budget,
        method,
        mechanism.epsilon,
        max(mechanism.attribute_epsilon),
        float(eigenvalues[1, 0]),
        float(eigenvalues[1, 1]),
        max(mechanism.epsilon_given_rest),
        found.optimal_epsilon,
    )


def parts_of_cost(point: Point) -> tuple[float, float]:
    """Return what the cap alone and the floor alone cost at a balanced law's levels.

    Args:
        point: of method ``balanced``.

    Returns:
        Shares of the optimum's ε, as :attr:`Point.cost`.
    """
    budget = point.budget
    schema = Schema.anonymous([budget.n_categories] * budget.n_attributes)
    levels = [point.attribute_epsilon or 0.0] * budget.n_attributes
    best = point.optimal_epsilon or point.epsilon
    capped = design(schema, attribute_epsilon=levels, method="balanced", pair_floor=0.0)
    floored = design(schema, attribute_epsilon=levels, method="balanced", given_rest="none")
    return capped.epsilon / best - 1, floored.epsilon / best - 1


def saved(better: float | None, kronecker: float | None) -> float | None:
    """Return how many rows the Kronecker product needs for every row of another law.

    Args:
        better: φ of the other law; None or 0 where it cannot estimate the table at all.
        kronecker: φ of the product.
    """
    if better is None or kronecker is None or abs(better) < VANISHED:
        return None
    return (better / kronecker) ** 2


def sweep(setting: Setting) -> list[Point]:
    """Return every method over the grids of the study, in the order of the table.

    In full: ε = 1 … 10 for k = 2, 5, 10, 100, 1,000 and a = 2, 5, 20, and for a = 5 more values of
    k at ε = 2, 5, 8.
    """
    budgets = list(grid(quick=setting.quick))
    methods = (*DESIGNED, RSFD, RSFD_STATED, SMP)
    found: list[Point] = []
    for done, budget in enumerate(budgets):
        with setting.step(done, len(budgets)):
            found += points(budget, methods)
    return found


def grid(*, quick: bool) -> Iterator[Budget]:
    """Yield the budgets of the study, each once."""
    if quick:
        for k in (2, 5, 10):
            for epsilon in (1.0, 4.0, 10.0):
                yield Budget(5, k, epsilon)
        yield Budget(5, 1000, 4.0)
        return
    seen = set()
    for a in (2, 5, 20):
        for k in (2, 5, 10, 100, 1000):
            for epsilon in range(1, 11):
                seen.add(Budget(a, k, float(epsilon)))
    for k in (2, 3, 5, 7, 10, 20, 30, 50, 100, 200, 500, 1000):
        for level in (2.0, 5.0, 8.0):
            seen.add(Budget(5, k, level))
    yield from sorted(seen, key=lambda b: (b.n_categories, b.n_attributes, b.epsilon))


@dataclass(frozen=True)
class Printed:
    """A row of the table "what it buys", as this project has stated it.

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
    """What came out for a row of the table "what it buys".

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
        """By what share the balanced law's attenuations are below the optimum's: marginal, pair."""
        if self.balanced is None or not self.optimal.pair or self.balanced.pair is None:
            return None
        return (
            1 - self.balanced.marginal / self.optimal.marginal,
            1 - self.balanced.pair / self.optimal.pair,
        )


def bought(setting: Setting) -> list[Bought]:
    """Return what came out for every row of ``PRINTED``.

    The balanced law of 20 attributes takes ten seconds to find and is left out of a quick run.
    """
    rows = []
    for done, (printed, half_units) in enumerate(zip(PRINTED, HALF_UNITS, strict=True)):
        with setting.step(done, len(PRINTED)):
            slow = setting.quick and printed.budget.n_attributes == 20
            optimal, kronecker = points(printed.budget, ("optimal", "kronecker"))
            balanced = None if slow else _point(printed.budget, "balanced")
            rows.append(Bought(printed, half_units, optimal, kronecker, balanced))
    return rows


VANISHING: tuple[tuple[int, int, float, float], ...] = ((2, 3, 1.6, 0.1), (5, 6, 2.05, 0.01))
"""Categories, attributes, the ε up to which every pair of the optimum is stated to vanish, and a
unit in its last digit."""


def optimal_pair(n_categories: int, n_attributes: int, epsilon: float) -> float:
    """Return φ of a pair under the optimum of identical attributes."""
    (point,) = points(Budget(n_categories, n_attributes, epsilon), ("optimal",))
    assert point.pair is not None
    return point.pair


def vanishing_up_to(n_categories: int, n_attributes: int) -> float:
    """Return, to 0.0005 nats, the record level up to which the optimum of identical attributes
    leaves nothing of any pair; 0 if it leaves something at 0.5 nats."""
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
    """Return what ``deniable share`` states that the shipped example saves: marginals, pairs."""
    found = saving(design(Schema.anonymous(EXAMPLE), epsilon=EXAMPLE_EPSILON))
    assert found is not None
    assert found.pairs is not None
    return found.marginals, found.pairs


def accounted_fake_data(setting: Setting) -> list[tuple[Budget, float, float]]:
    """Return RS+FD as its authors set it, accounted for from its exact law.

    Returns:
        Budget, the record's ε and the largest ``epsilon_given_rest``, both in nats.
    """
    ks = (2, 5) if setting.quick else (2, 5, 10)
    found = []
    for k in ks:
        for epsilon in (1.0, 4.0, 10.0):
            law = fake_data_law((5,) * k, amplified_epsilon(k, epsilon))
            mechanism = Mechanism(Schema.anonymous([5] * k), (Block(tuple(range(k)), law),))
            found.append(
                (Budget(5, k, epsilon), mechanism.epsilon, max(mechanism.epsilon_given_rest))
            )
    return found
