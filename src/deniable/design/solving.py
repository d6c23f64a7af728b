"""From levels to laws: what each method answers, and what it is asked.

Independent of the names of methods, which are in :mod:`deniable.statement.methods`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from deniable._checks import check_level, check_positive
from deniable.errors import InputError
from deniable.laws import (
    MatrixChannel,
    PatternLaw,
    PatternTable,
    ProductLaw,
    ScoreTable,
    SingleChangeMixture,
)
from deniable.mechanism.privacy import compose, record_epsilon
from deniable.proofs.accuracy import Accuracy
from deniable.schema import Attribute, Schema
from deniable.statement.caps import GivenRest, resolve_caps

if TYPE_CHECKING:
    from deniable.solvers.patterns.balanced import BalancedSolution

_T = TypeVar("_T")

_AIM = 2e-11
"""Solvers aim this far below the request, so that their rounding never ends above it."""


@dataclass(frozen=True)
class Task:
    """What a method is given besides the levels.

    ``n_categories``: of the attributes to randomize, shape (k,).
    """

    n_categories: tuple[int, ...]
    given_rest: GivenRest = None
    pair_floor: float | None = None


@dataclass(frozen=True)
class Solution:
    """What a method answers: laws, and what is known of how near the optimum they are.

    ``weights``: for the lower bound, shape (k,), if the solver has better ones than the levels.
    ``optimal_epsilon``: ε of the record at these levels without a cap and a floor, in nats.
    ``numbers``: the attributes with a matrix for numbers, by place; they are in no part.
    ``prove``: from ε and caps of the law as it is drawn to the proof of its accuracy.
    """

    parts: tuple[tuple[tuple[int, ...], PatternLaw], ...]
    weights: Sequence[float] | None = None
    optimal_epsilon: float | None = None
    apart: tuple[tuple[int, ...], str] | None = None
    numbers: Mapping[int, tuple[Attribute, MatrixChannel]] = field(default_factory=dict)
    prove: Callable[[float, Sequence[float | None]], Accuracy | None] | None = None

    @classmethod
    def one(cls, law: PatternLaw, weights: Sequence[float] | None = None) -> "Solution":
        """Return one law for all attributes, in their order."""
        return cls(((tuple(range(len(law.n_categories))), law),), weights)


def aimed_below(levels: Sequence[float]) -> list[float]:
    """Return levels a little below the requested ones, where solvers aim."""
    return [level - min(_AIM, level * 1e-3) for level in levels]


def solve_optimal(task: Task, levels: Sequence[float]) -> Solution:
    """Return the law of smallest ε found."""
    return _largest_apart(_optimal, task, levels)


def solve_balanced(task: Task, levels: Sequence[float]) -> Solution:
    """Return the law of smallest ε found that keeps the cap and the floor."""
    return _beside_optimum(_largest_apart(_balanced, task, levels), task, levels)


def _beside_optimum(solution: Solution, task: Task, levels: Sequence[float]) -> Solution:
    """Return the solution with the smallest ε known without a cap and a floor."""
    if solution.optimal_epsilon is not None:
        return solution
    # Laws that keep a cap and a floor are laws without them.
    found = solution, solve_optimal(task, levels)
    known = min(compose(record_epsilon(law) for _, law in one.parts) for one in found)
    return replace(solution, optimal_epsilon=known)


def _optimal(task: Task, levels: Sequence[float]) -> Solution:
    from deniable.solvers.patterns import optimal

    solution = _solved(lambda: optimal.solve(task.n_categories, levels))
    return Solution(_laws(solution.parts), solution.weights.tolist())


def _balanced(task: Task, levels: Sequence[float]) -> Solution:
    from deniable.solvers.patterns import balanced

    caps = resolve_caps(task.given_rest, levels)
    return _of_balanced(
        _solved(lambda: balanced.solve(task.n_categories, levels, caps, task.pair_floor))
    )


def _of_balanced(solution: "BalancedSolution") -> Solution:
    reason = None
    if solution.method == "independent":
        reason = "no common law was found that keeps cap and floor and costs less"
    apart = tuple(range(len(solution.weights))) if reason else solution.apart
    if apart and not reason:
        reason = "no common law was found that keeps cap and floor and costs less"
    return Solution(
        _laws(solution.parts),
        solution.weights.tolist(),
        solution.optimum.epsilon,
        None if reason is None else (apart, reason),
    )


def _multiple(given_rest: GivenRest) -> float | None:
    """Return the cap as a multiple of the levels, infinite for none; None if it is no multiple."""
    if given_rest is None or given_rest == "none":
        return math.inf
    caps = resolve_caps(given_rest, (1.0,)) if isinstance(given_rest, str) else None
    return None if caps is None else caps[0]


def least_error(
    task: Task,
    total: float,
    importance: Sequence[float],
    at_most: Sequence[float | None],
    pairs: float | None,
) -> Solution:
    """Return the law of least error that costs no more than a total in nats.

    `importance` and `at_most` have shape (k,); `pairs` is θ, or None for the default.
    """
    from deniable.solvers.patterns import error_proof
    from deniable.solvers.patterns import least_error as solver

    multiple, limits = _multiple(task.given_rest), None
    if multiple is None:
        multiple, limits = math.inf, resolve_caps(task.given_rest, [1.0] * len(importance))
    theta = solver.DEFAULT_PAIRS if pairs is None else pairs
    found = solver.solve(
        task.n_categories,
        total,
        pairs=theta,
        importance=importance,
        multiple=multiple,
        limits=limits,
        at_most=at_most,
    )
    if found is None:
        levels = solver.independent(
            task.n_categories, total, theta, importance, limits, at_most
        ).tolist()
        reason = "no common law was found that keeps the caps"
        alone = None if len(levels) == 1 else (tuple(range(len(levels))), reason)
        return replace(solve_independent(task, levels), apart=alone)
    law = ScoreTable.from_densities(
        task.n_categories, found.costs, found.densities, total, found.caps
    )

    def prove(epsilon: float, caps: Sequence[float | None]) -> Accuracy | None:
        limits = [math.inf if level is None else level for level in at_most]
        return error_proof.proof(found, law, epsilon, caps, theta, importance, limits)

    return replace(Solution.one(law), prove=prove)


def _largest_apart(
    solve: Callable[[Task, Sequence[float]], Solution], task: Task, levels: Sequence[float]
) -> Solution:
    """Solve for all attributes together, or leave out the largest levels until that can be done.

    Levels of many nats beside ordinary ones may be beyond a solver's arithmetic. An attribute at
    such a level reveals nearly everything; it answers independently, at its own ε.
    """
    order = sorted(range(len(levels)), key=lambda i: levels[i], reverse=True)
    for n_apart in (0, 1, 2, 4, 8, 16, 32, 64, 128):
        apart, rest = sorted(order[:n_apart]), sorted(order[n_apart:])
        if not rest:
            break
        try:
            solution = solve(part_of(task, rest), [levels[i] for i in rest])
        except (_OutOfReachError, ArithmeticError):
            continue
        if not apart:
            return solution
        sizes = [task.n_categories[i] for i in apart]
        alone = ProductLaw.from_levels(sizes, [levels[i] for i in apart])
        parts = tuple((tuple(rest[i] for i in places), law) for places, law in solution.parts)
        return Solution((*parts, (tuple(apart), alone)), apart=(tuple(apart), _TOO_LARGE))
    independent = solve_independent(task, levels)
    return replace(independent, apart=(tuple(range(len(levels))), _TOO_LARGE))


_TOO_LARGE = "the solver's arithmetic does not reach their levels beside the others'"


def part_of(task: Task, places: Sequence[int]) -> Task:
    caps = task.given_rest
    if caps is not None and not isinstance(caps, str | int | float):
        caps = [caps[i] for i in places]
    return replace(task, n_categories=tuple(task.n_categories[i] for i in places), given_rest=caps)


class _OutOfReachError(InputError):
    """A request that a solver's arithmetic cannot answer, though some law may."""


def _laws(parts: Sequence[Any]) -> tuple[tuple[tuple[int, ...], PatternLaw], ...]:
    return tuple((part.attributes, part.law) for part in parts)


def _solved(solve: Callable[[], _T]) -> _T:
    from deniable.proofs.problem import SolverError

    try:
        return solve()
    except SolverError as error:
        raise _OutOfReachError(str(error)) from None


def solve_independent(task: Task, levels: Sequence[float]) -> Solution:
    """Return the product of independent responses."""
    # Its weights are rounded down exactly; there is no rounding to keep clear of.
    return Solution.one(ProductLaw.from_levels(task.n_categories, levels))


def solve_linear_program(task: Task, levels: Sequence[float]) -> Solution:
    """Return the optimum of Algorithms 1 and 2, with caps and floor where they are asked for."""
    from deniable.solvers.patterns import linear

    aimed = aimed_below(levels)
    caps = resolve_caps(task.given_rest, levels)
    if caps is not None:
        # As for the levels, so that rounding ends below the cap; never below the level aimed at.
        caps = tuple(
            None if cap is None else max(cap - _AIM, aim) if cap >= level else cap
            for cap, level, aim in zip(caps, levels, aimed, strict=True)
        )
    law, solution = _solved(
        lambda: linear.drawn(
            task.n_categories, aimed, given_rest_cap=caps, pair_floor=task.pair_floor
        )
    )
    return Solution.one(law, list(solution.weights))


def solve_closed_form(task: Task, levels: Sequence[float]) -> Solution:
    """Return the optimum of two attributes."""
    from deniable.laws.patterns import other_outputs
    from deniable.solvers.patterns import closed_form, linear

    aimed = aimed_below(levels)
    solution = closed_form.solve(task.n_categories, aimed)
    counts = other_outputs(task.n_categories).astype(np.float64)
    law = PatternTable.from_probabilities(task.n_categories, solution.pattern_density * counts)
    # The formula gives no dual; the linear program's prices are one.
    return Solution.one(law, list(linear.solve(task.n_categories, aimed).weights))


def solve_heuristic(task: Task, levels: Sequence[float]) -> Solution:
    """Return the law of Algorithm 3."""
    from deniable.solvers.patterns import heuristic

    solution = heuristic.solve(list(task.n_categories), aimed_below(levels))
    law = SingleChangeMixture.from_excesses(
        task.n_categories, solution.keep_excess, solution.change_excess
    )
    return Solution.one(law)


def importances_and_limits(
    schema: Schema, importance: Mapping[str, float], at_most: Mapping[str, float]
) -> tuple[list[float], list[float | None]]:
    """Return how much each protected attribute counts, and its largest level in nats."""
    protected = [schema.attributes[i] for i in schema.protected]
    names = [attribute.name for attribute in protected]
    for name in (*importance, *at_most):
        if name not in names:
            raise InputError(f"there is no protected attribute '{name}'")
    counted = [importance.get(a.name, a.importance or 1.0) for a in protected]
    for name, value in zip(names, counted, strict=True):
        check_positive(value, f"importance of '{name}'")
    limits = [
        check_level(at_most[name], f"largest level of '{name}'") if name in at_most else None
        for name in names
    ]
    return counted, limits
