"""The record's smallest level with a cap on what full knowledge of the rest can reveal.

Beside the levels, every attribute's `epsilon_given_rest` is capped, and every pair's attenuation is
at least a part of the product of its singles, so that every table of two attributes can be
estimated. The answer is the first of these that exists, or independent responses if they cost less:

1. the optimum without caps and floor (`optimal`), where it keeps them anyway;
2. where the table of patterns is small, the linear program with caps and floor (`linear`): exact;
3. a clipped ramp, or a mixture of ramps (`ramps.one_law`): within about 2 % of the optimum.

Attributes without room between level and cap answer independently. Proofs: docs/proofs/clipped.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.laws.votes.vote_law import Account
from deniable.proofs.certificate import weighted_bound
from deniable.proofs.problem import Problem, SolverError, caps_given_rest
from deniable.solvers.patterns import linear, optimal
from deniable.solvers.patterns.optimal import (
    MOST_IN_TABLE,
    OptimalSolution,
    Part,
    delivered,
    independent,
    record_level,
)
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramps.one_law import CommonLaw, keep_floor

EXACT_ORBITS = 1024
"""Most orbits for which the capped linear program is tried: ten different attributes, in a second
or so."""

LOOSEST = 6.0
"""Where nothing is capped a ramp has caps of so many times the levels: ε is within 1e-3 of that of
a vote, and pairs keep more of their attenuation."""

_PROGRAM_AIM = 2e-11
"""How far below levels and caps the linear program aims, in nats: rounding to a table's integers
takes less."""

Method = Literal["optimal", "program", "ramp", "independent"]


@dataclass(frozen=True, eq=False)
class BalancedSolution:
    """Laws that meet every level and keep caps and floor, and what that costs.

    Attributes:
        parts: one law for the attributes that have room below their cap, and one in which the
            others answer independently.
        optimum: the same levels without caps and floor.
        method: "optimal" if the unrestricted optimum keeps them anyway, "program" for the linear
            program, "ramp" for a ramp or a mixture of ramps, "independent" (the Kronecker product)
            if nothing better was found.
        apart: attributes that answer independently of all others.
    """

    parts: tuple[Part, ...]
    optimum: OptimalSolution
    method: Method
    apart: tuple[int, ...] = ()

    @property
    def epsilon(self) -> float:
        """The record's level as drawn, in nats, rounded up."""
        return record_level(self.parts)

    @property
    def weights(self) -> FloatArray:
        """λ ≥ 0 of the lower bound, shape (k,)."""
        return self.optimum.weights

    @cached_property
    def lower_bound(self) -> float:
        """No law that delivers as much, capped or not, is below, in nats; rounded down."""
        levels = delivered(self.parts)
        counts = np.empty(len(levels), dtype=np.int64)
        for part in self.parts:
            counts[list(part.attributes)] = part.law.n_categories
        return weighted_bound(counts.tolist(), levels.tolist(), self.weights.tolist())

    @property
    def gap(self) -> float:
        """How far `epsilon` can be above the unrestricted optimum at most, in nats."""
        return self.epsilon - self.lower_bound

    @property
    def cost(self) -> float:
        """What caps and floor cost: how much more ε than without them, in nats."""
        return self.epsilon - self.optimum.epsilon


def solve(
    n_categories: Sequence[int],
    attribute_epsilon: Sequence[float],
    caps: Sequence[float | None] | None,
    pair_floor: float | None,
    *,
    exact: int = EXACT_ORBITS,
) -> BalancedSolution:
    """Find a law of small record level that meets every level and keeps caps and floor.

    Levels are never above a requested ε_i and within 1e−9 nats below it; caps and floor hold for
    the law as drawn. ``n_categories``: a_i, shape (k,). ``attribute_epsilon``: ε_i in nats, above
    0, shape (k,). ``caps``: on ε given the rest in nats, at least ε_i, or None for none.
    ``pair_floor``: t ≤ 1 such that every pair's φ_ij ≥ t φ_i φ_j; None for none. Source:
    docs/proofs/clipped.md.

    >>> solution = solve([5] * 6, [1.0] * 6, [2.0] * 6, 0.5)
    >>> solution.method, round(solution.epsilon, 4), round(solution.cost, 4)
    ('program', 2.9775, 0.1255)
    """
    problem = optimal.positive_levels(n_categories, attribute_epsilon)
    limits = caps_given_rest(problem, caps, "caps")
    if pair_floor is not None and not pair_floor <= 1.0:
        raise InputError(
            f"pair_floor: at most 1, what independent responses reach, not {pair_floor:g}"
        )
    restricted = pair_floor is not None or bool(np.isfinite(limits).any())
    optimum = unrestricted(problem, restricted)
    room = limits - problem.attribute_epsilon > 1e-9  # nats; else the cap is the level
    if room.sum() < 2:  # beside independent responses, one attribute has nothing to gain
        room[:] = False
    free, bound = np.flatnonzero(room).tolist(), np.flatnonzero(~room).tolist()
    parts: list[Part] = []
    method: Method = "independent"
    if free:
        inner = Problem(problem.n_categories[free], problem.attribute_epsilon[free])
        known = unrestricted(inner, restricted) if bound else optimum
        part, method = _with_room(inner, limits[free], pair_floor, known, exact)
        parts = [replace(p, attributes=tuple(free[i] for i in p.attributes)) for p in part]
    if bound:
        parts.append(independent(problem, bound))
    return compared(BalancedSolution(tuple(parts), optimum, method, tuple(bound)))


def compared(solution: BalancedSolution) -> BalancedSolution:
    """Return the solution; a law that keeps caps and floor is one without them too, and where that
    search ended above it, the best that is known."""
    if solution.cost >= 0.0:
        return solution
    optimum = replace(solution.optimum, parts=solution.parts, lower_bound=solution.lower_bound)
    return replace(solution, optimum=optimum)


def unrestricted(problem: Problem, restricted: bool) -> OptimalSolution:
    """Return the optimum without caps and floor: where these are asked for, to no more digits than
    it takes to compare with it, a tenth of what a cap costs."""
    level = problem.attribute_epsilon
    gap = 1e-3 + 4e-5 * float(level.sum()) if restricted else 1e-9
    return optimal.solve(problem.counts.tolist(), level.tolist(), gap=gap)


def _with_room(
    problem: Problem,
    limits: FloatArray,
    floor: float | None,
    optimum: OptimalSolution,
    exact: int,
) -> tuple[list[Part], Method]:
    """Solve for attributes that all have room below their caps."""
    if _all_keep(optimum.parts, limits, floor):
        return list(optimum.parts), "optimal"
    product = independent(problem, range(problem.n_attributes))
    method: Method = "program"
    part = capped_table(problem, limits, floor, exact)
    if part is None:
        method, level = "ramp", equal_where_alike(problem, limits)
        caps = np.minimum(limits, LOOSEST * level)
        height = optimum.epsilon + min(0.35, 0.1 * optimum.epsilon)  # about what caps cost
        search = CommonLaw(Problem(problem.n_categories, level), caps, floor, height)
        part = search.law(search.best())
    if part is None or part.account.epsilon >= product.account.epsilon:
        return [product], "independent"
    return [part], method


def equal_where_alike(problem: Problem, limits: FloatArray) -> FloatArray:
    """Return the levels, those of attributes that differ by rounding made the smallest of them: one
    slope will do for all that are alike, and sums over patterns need few orbits."""
    kinds = np.stack([problem.n_categories, problem.attribute_epsilon, limits])
    kind = np.unique(np.round(kinds, 9), axis=1, return_inverse=True)[1].ravel()
    least = np.full(int(kind.max()) + 1, np.inf)
    np.minimum.at(least, kind, problem.attribute_epsilon)
    return np.asarray(least[kind])


def _all_keep(parts: Sequence[Part], limits: FloatArray, floor: float | None) -> bool:
    """Whether caps and floor hold already."""
    capped = all(
        bool(np.all(part.account.epsilon_given_rest <= limits[list(part.attributes)]))
        for part in parts
    )
    return capped and keep_floor((part.law for part in parts), floor)


def capped_table(
    problem: Problem, limits: FloatArray, floor: float | None, exact: int
) -> Part | None:
    """Return the capped linear program's law; None where it is too large or its numbers fail."""
    k = problem.n_attributes
    if k > MOST_IN_TABLE or len(orbits(problem, limits.tolist()).chance) > exact:
        return None
    level = problem.attribute_epsilon
    aimed = level - np.minimum(_PROGRAM_AIM, 1e-3 * level)
    # As for the levels, so that rounding ends below the cap; never below the level aimed at.
    caps = [
        None if math.isinf(cap) else max(cap - _PROGRAM_AIM, aim)
        for cap, aim in zip(limits.tolist(), aimed.tolist(), strict=True)
    ]
    try:
        law, solution = linear.drawn(
            problem.counts.tolist(),
            aimed.tolist(),
            given_rest_cap=caps,
            pair_floor=floor,
            max_gap=0.02,  # a ramp is as near
        )
    except (SolverError, InputError, ArithmeticError):
        return None
    account = Account(
        solution.epsilon, level, aimed * (1 - 1e-12), np.minimum(limits, solution.epsilon)
    )
    return Part(tuple(range(k)), law, account)
