"""The least error at a total: against direct optimisation, known figures and its own limits."""

import itertools
import math
from copy import copy
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import NonlinearConstraint, minimize

from deniable.laws.patterns import FloatArray
from deniable.solvers.patterns.least_error import LeastError, _Columns, independent, solve
from marked import slow_after

NINE = (7, 16, 7, 14, 6, 5, 2, 41, 2)
ONE_LARGE = (18, 2, 430, 13)
EXAMPLE = (2, 2, 2, 2, 6, 6, 3, 5, 3, 4, 7, 4)
FIFTEEN = (73, 8, 100, 16, 16, 7, 14, 6, 5, 2, 60, 50, 60, 41, 2)


def found(n_categories: tuple[int, ...], epsilon: float, **options: object) -> LeastError:
    solution = solve(n_categories, epsilon, **options)  # type: ignore[arg-type]
    assert solution is not None
    return solution


class Patterns:
    """All 2^k patterns of few attributes: errors, levels and caps from their definitions."""

    def __init__(self, n_categories: tuple[int, ...], importance: tuple[float, ...] | None = None):
        self.a = np.array(n_categories, dtype=float)
        self.k = len(self.a)
        self.changed = np.array(list(itertools.product([0, 1], repeat=self.k)))
        self.uniform = np.prod(np.where(self.changed, 1 - 1 / self.a, 1 / self.a), axis=1)
        self.sign = np.where(self.changed, -1 / (self.a - 1), 1.0)
        self.importance = np.ones(self.k) if importance is None else np.array(importance)

    def value(self, density: FloatArray, theta: float = 0.2) -> float:
        mass = self.uniform * density
        mass = mass / mass.sum()
        phi, v, w = mass @ self.sign, (self.a - 1) / self.a**2, self.importance
        shares = (w * v / phi**2).sum() / w.sum()
        total = weight = 0.0
        for i, j in itertools.combinations(range(self.k), 2):
            both = mass @ (self.sign[:, i] * self.sign[:, j])
            variance = v[i] * v[j] / both**2
            variance += v[i] / self.a[j] ** 2 / phi[i] ** 2 + v[j] / self.a[i] ** 2 / phi[j] ** 2
            total, weight = total + w[i] * w[j] * variance, weight + w[i] * w[j]
        return (1 - theta) * math.log(shares) + theta * math.log(total / weight)

    def levels(self, density: FloatArray) -> FloatArray:
        mass = self.uniform * density
        kept = (mass / mass.sum()) @ (1 - self.changed)
        levels: FloatArray = np.log(kept * (self.a - 1) / (1 - kept))
        return levels

    def pairs(self, density: FloatArray) -> list[float]:
        mass = self.uniform * density
        return [
            float(mass @ (self.sign[:, i] * self.sign[:, j]))
            for i, j in itertools.combinations(range(self.k), 2)
        ]

    def given_rest(self, density: FloatArray) -> FloatArray:
        log = np.log(density).reshape((2,) * self.k)
        return np.array([np.abs(np.diff(log, axis=i)).max() for i in range(self.k)])

    def of(self, solution: LeastError) -> FloatArray:
        densities: FloatArray = solution.densities[self.changed @ np.array(solution.costs)]
        return densities


def direct(patterns: Patterns, epsilon: float, multiple: float, start: FloatArray) -> float:
    """Return J of a general-purpose optimiser over log densities."""
    edges = [
        (x, x + (1 << (patterns.k - 1 - i)), i)
        for i in range(patterns.k)
        for x in range(1 << patterns.k)
        if not patterns.changed[x, i]
    ]

    def room(log: FloatArray) -> FloatArray:
        caps = multiple * patterns.levels(np.exp(log))
        falls = np.array([log[x] - log[y] for x, y, _ in edges])
        limits = np.array([caps[i] for _, _, i in edges])
        return np.concatenate([limits - falls, limits + falls, epsilon - log, log])

    answer: Any = minimize(  # type: ignore[call-overload]
        lambda log: patterns.value(np.exp(log)),
        start.tolist(),
        method="SLSQP",
        constraints=NonlinearConstraint(room, 0.0, np.inf),
        options={"maxiter": 500, "ftol": 1e-10},
    )
    # Laws with a pair of negative attenuation may err less; the search is among the others.
    good = room(answer.x).min() > -1e-6 and min(patterns.pairs(np.exp(answer.x))) > 0
    return float(answer.fun) if good else math.inf


@pytest.mark.parametrize(
    ("n_categories", "epsilon", "multiple"),
    slow_after(
        2,
        [((2, 3, 5), 2.0, 2.0), ((2, 3, 5), 0.5, 1.5), ((30, 2, 3), 5.0, 2.0), ((4, 2), 3.0, 2.0)],
    ),
)
def test_general_optimiser_finds_no_less(
    n_categories: tuple[int, ...], epsilon: float, multiple: float
) -> None:
    patterns = Patterns(n_categories)
    solution = found(n_categories, epsilon, multiple=multiple)
    depth = patterns.changed.sum(axis=1)
    starts = [epsilon * (1 - depth / patterns.k) * part for part in (0.3, 0.6, 0.95)]
    best = min(direct(patterns, epsilon, multiple, start) for start in starts)
    assert math.isfinite(best)
    assert solution.objective <= best + 1e-3
    assert patterns.value(patterns.of(solution)) == pytest.approx(solution.objective, abs=1e-9)


@pytest.mark.parametrize("importance", [None, (1.0, 5.0, 2.0, 1.0)])
@pytest.mark.parametrize("multiple", [1.2, 2.0, math.inf])
def test_law_keeps_its_limits_and_has_the_stated_errors(
    importance: tuple[float, ...] | None, multiple: float
) -> None:
    n_categories = (2, 3, 9, 3)
    patterns = Patterns(n_categories, importance)
    solution = found(n_categories, 3.0, multiple=multiple, importance=importance)
    density = patterns.of(solution)
    levels = patterns.levels(density)
    assert np.log(density.max() / density.min()) <= 3.0 * (1 + 1e-9)
    assert (patterns.given_rest(density) <= multiple * levels + 1e-12).all()
    np.testing.assert_allclose(levels, solution.levels, rtol=1e-9)
    np.testing.assert_allclose(solution.caps, multiple * levels, rtol=1e-9)
    assert patterns.value(density) == pytest.approx(solution.objective, abs=1e-9)


def test_largest_levels_and_caps_in_nats_are_kept() -> None:
    patterns = Patterns((2, 3, 9, 3))
    solution = found(
        (2, 3, 9, 3),
        3.0,
        multiple=math.inf,
        limits=[1.0, None, 2.0, 1.5],
        at_most=[None, 0.4, 0.9, None],
    )
    density = patterns.of(solution)
    assert (patterns.given_rest(density)[[0, 2, 3]] <= [1.0, 2.0, 1.5]).all()
    assert (patterns.levels(density)[[1, 2]] <= [0.4, 0.9]).all()
    free = found((2, 3, 9, 3), 3.0, multiple=math.inf)
    assert solution.objective > free.objective


def test_importance_moves_accuracy() -> None:
    plain = found((5, 5, 5), 2.0)
    weighed = found((5, 5, 5), 2.0, importance=(1.0, 1.0, 10.0))
    assert weighed.levels[2] > plain.levels[2] > weighed.levels[0]


def test_pairs_trade_shares() -> None:
    few, many = (found(NINE[:5], 2.0, pairs=theta) for theta in (0.0, 0.6))
    assert few.shares < many.shares


@pytest.mark.parametrize(
    ("n_categories", "epsilon", "most"),
    slow_after(
        2,
        [
            (NINE, 0.5, 6.607),
            (NINE, 2, 2.936),
            (NINE, 8, -0.713),
            (ONE_LARGE, 5, -0.123),
            (ONE_LARGE, 12, -2.500),
            (ONE_LARGE, 14, -2.605),
            (EXAMPLE, 3, 1.747),
        ],
    ),
)
def test_all_patterns_reach_known_figures(
    n_categories: tuple[int, ...], epsilon: float, most: float
) -> None:
    solution = found(n_categories, epsilon)
    assert solution.exhaustive
    assert solution.objective <= most + 0.001


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "most"), [(1, 6.055), (4, 1.800)])
def test_one_score_reaches_known_figures(epsilon: float, most: float) -> None:
    solution = found(FIFTEEN, epsilon)
    assert not solution.exhaustive
    least = min(solution.costs)
    assert sum(cost - least for cost in solution.costs) < least  # the score contains the count
    assert solution.objective <= most


@pytest.mark.slow
def test_two_starts_end_at_the_same_error() -> None:
    for n_categories, epsilon in ((NINE, 1.0), (NINE, 6.0), (ONE_LARGE, 9.0)):
        solution = found(n_categories, epsilon)
        program = solution.program
        other = program.solve(program.start(np.linspace(1.0, 2.0, len(program.single))))
        assert other is not None
        assert program.value(other) == pytest.approx(solution.objective, abs=5e-4)


def test_a_first_round_that_goes_too_far_is_repeated() -> None:
    assert found((6, 3, 9, 5, 33, 4), 0.5).objective <= 6.2121


@pytest.mark.parametrize("n_categories", [(6, 3, 9, 5, 33, 4), ONE_LARGE])
@pytest.mark.parametrize("epsilon", [1.0, 12.0, 40.0])
def test_levels_of_independent_responses_are_near_the_least_error(
    n_categories: tuple[int, ...], epsilon: float
) -> None:
    a, k = np.array(n_categories, dtype=float), len(n_categories)
    off = ~np.eye(k, dtype=bool)

    def value(levels: FloatArray) -> float:
        lift = np.expm1(levels)
        square = (a - 1) / a**2 / (lift / (lift + a)) ** 2
        sums = np.outer(square + 1 / a**2, square + 1 / a**2) - np.outer(1 / a**2, 1 / a**2)
        return float(0.8 * np.log(square.mean()) + 0.2 * np.log(sums[off].mean()))

    def divided(logs: FloatArray) -> FloatArray:
        parts = np.exp(logs - logs.max())
        levels: FloatArray = parts / parts.sum() * epsilon
        return levels

    levels = independent(n_categories, epsilon, 0.2, [1.0] * k, None, None)
    least = minimize(  # type: ignore[call-overload]
        lambda logs: value(divided(logs)), np.log(levels).tolist(), method="L-BFGS-B"
    ).fun
    assert levels.sum() == pytest.approx(epsilon, rel=1e-9)
    assert value(levels) <= least + 0.006


def test_a_thousand_alike() -> None:
    solution = found((5,) * 1000, 4.0)
    assert len(set(solution.costs)) == 1
    assert solution.levels.max() == solution.levels.min() > 0


SEVERAL = (
    ONE_LARGE,
    (2, 3, 4),
    (5,) * 6,
    (430, 2),
    (6, 3, 9, 5, 33, 4),
    (2,) * 20,
    (500, 3, 4, 12, 7, 2),
)


def check_that_more_never_errs_more(n_categories: tuple[int, ...], totals: FloatArray) -> None:
    solutions = [found(n_categories, float(total)) for total in totals]
    errors = [solution.objective for solution in solutions]
    assert all(larger < smaller for smaller, larger in itertools.pairwise(errors))
    # Nor does the law of the next total, mixed with a uniform record until it has this ε.
    for solution, total, following in zip(solutions, totals, solutions[1:], strict=False):
        f = following.density
        most = math.exp(total)
        part = (f.max() - most * f.min()) / (f.max() - most * f.min() + most - 1)
        mixed = (1 - part) * f + part
        program = copy(following.program)
        program.task = solution.program.task
        if program.holds(mixed * (1 + 1e-12)):
            assert solution.objective <= following.objective - 2 * math.log1p(-part) + 1e-4


@pytest.mark.weekly
def test_a_larger_total_never_errs_more_with_one_large_domain() -> None:
    check_that_more_never_errs_more(ONE_LARGE, np.arange(0.5, 15.0, 0.5))


@pytest.mark.parametrize(
    "n_categories",
    [
        *(pytest.param(counts, marks=pytest.mark.slow) for counts in SEVERAL),
        *(pytest.param(counts, marks=pytest.mark.weekly) for counts in (NINE, EXAMPLE, FIFTEEN)),
    ],
)
def test_a_larger_total_never_errs_more(n_categories: tuple[int, ...]) -> None:
    check_that_more_never_errs_more(n_categories, np.arange(0.5, 12.0, 0.5))


@pytest.mark.slow
def test_errors_are_smooth_in_the_total() -> None:
    totals = np.arange(10.5, 14.0, 0.1)
    solutions = [found(ONE_LARGE, float(total)) for total in totals]
    for errors in ([s.shares for s in solutions], [s.pairs for s in solutions]):
        steps = np.abs(np.diff(errors))
        around = np.maximum(steps[:-2], steps[2:])
        assert (steps[1:-1] <= 1.5 * around).all()


@pytest.mark.parametrize("shape", [(1, 1), (4, 3), (2, 7)])
def test_a_matrix_by_columns_has_every_entry_at_its_place(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(5)
    for n in (0, 1, 4, 30):  # the last with several entries at one place
        rows, columns = random.integers(0, [[shape[0]], [shape[1]]], (2, n))
        values = random.normal(size=n)
        dense = np.zeros(shape)
        for row, column, value in zip(rows, columns, values, strict=True):
            dense[row, column] += value
        found = _Columns.of(rows, columns, values, shape)
        again = sparse.csc_matrix((found.data, found.indices, found.indptr), shape)
        assert again.has_canonical_format
        assert again.toarray() == pytest.approx(dense, abs=1e-14)
