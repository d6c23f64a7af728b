"""The record's smallest level with a cap on what full knowledge of the rest can reveal.

Beside the levels, every attribute's `epsilon_given_rest` is capped, and every pair's attenuation is
at least a part of the product of its singles, so that every table of two attributes can be
estimated. The law is a clipped ramp (`ramps`): within about 2 % of the exact capped optimum, which
the linear program finds up to a dozen attributes. Proofs: docs/proofs/clipped.md.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from deniable.errors import InputError
from deniable.laws.law import PatternLaw
from deniable.laws.patterns import FloatArray
from deniable.laws.votes.gated import GatedSum
from deniable.solvers.patterns import optimal
from deniable.solvers.patterns.certificate import weighted_bound
from deniable.solvers.patterns.landing import land
from deniable.solvers.patterns.optimal import (
    OptimalSolution,
    Part,
    delivered,
    independent,
    record_level,
)
from deniable.solvers.patterns.ramps import NARROWER, RampFit, RampState
from deniable.solvers.problem import Problem, SolverError, caps_given_rest

_CAP_EQUALS_LEVEL = 1e-9
_FLOOR_MARGIN = 1e-9
_FLOOR_STEPS = 10
_FLOOR_ROOM = 0.01
_ABOUT = 1.2
"""Factor by which the fraction of the caps that keeps the floor may change from levels to levels
nearby."""
_FRACTIONS = (1.0, 0.85, 0.7)
"""Tried in turn on the caps: where no ramp is found, the caps are tightened a little."""

Method = Literal["optimal", "ramp", "independent", "floor"]


@dataclass(frozen=True, eq=False)
class RampPlace:
    """Where the search for a ramp ended: the start for levels near these, see :func:`solve_near`.

    Attributes:
        state: the ramp.
        fraction: the fraction of the caps that its slopes keep.
        start: where the search began, in nats.
        reach: how far from its place, as a part of E, the best one may be.
    """

    state: RampState
    fraction: float
    start: float
    reach: float = 0.06


@dataclass(frozen=True, eq=False)
class BalancedSolution:
    """Laws that meet every level and keep caps and floor, and what that costs.

    Attributes:
        parts: one law for the attributes that have room below their cap, and one in which the
            others answer independently.
        optimum: the same levels without caps and floor.
        lower_bound: no law that delivers as much, capped or not, is below, in nats; rounded down.
        method: "optimal" if the unrestricted optimum keeps them anyway, "independent" (the
            Kronecker product) if no ramp was found, "floor" (the same) if ramps were, but none
            that keeps the floor.
        place: where the search for the ramp ended, if it found one.
    """

    parts: tuple[Part, ...]
    optimum: OptimalSolution
    lower_bound: float
    method: Method
    place: RampPlace | None = None

    @property
    def epsilon(self) -> float:
        """The record's level as drawn, in nats, rounded up."""
        return record_level(self.parts)

    @property
    def weights(self) -> FloatArray:
        """λ ≥ 0 of the lower bound, shape (k,)."""
        return self.optimum.weights

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
) -> BalancedSolution:
    """Find a law of small record level that meets every level and keeps caps and floor.

    What is achieved is never above a requested ε_i and within 1e−9 nats below it; caps and floor
    hold for the law as drawn. (The floor is looked at for all pairs up to 64 attributes, and for
    representative ones beyond; see `VoteLaw.least_pair_ratio`.)

    Args:
        n_categories: a_i, shape (k,).
        attribute_epsilon: ε_i in nats, above 0, shape (k,).
        caps: for each attribute an upper bound in nats on its `epsilon_given_rest`, at least ε_i,
            or None for no bound; None for no bounds at all.
        pair_floor: t ≤ 1 such that every pair's φ_ij ≥ t φ_i φ_j; None for no floor.

    Raises:
        InputError: if the lengths differ, a number is out of its range, or a cap is below its
            level.
        SolverError: if no result passes its checks.

    Source: docs/proofs/clipped.md.

    >>> solution = solve([5] * 6, [1.0] * 6, [2.0] * 6, 0.5)
    >>> solution.method, round(solution.epsilon, 4), round(solution.cost, 4)
    ('ramp', 2.9775, 0.1255)
    """
    problem, limits = _request(n_categories, attribute_epsilon, caps, pair_floor)
    optimum = optimal.solve(n_categories, attribute_epsilon)
    free, bound = _by_room(problem, limits)
    parts = [independent(problem, bound)] if bound else []
    method: Method = "independent"
    place = None
    if free:
        inner = Problem(problem.n_categories[free], problem.attribute_epsilon[free])
        levels = inner.attribute_epsilon.tolist()
        start = optimum if not bound else optimal.solve(inner.counts.tolist(), levels)
        found, method, place = _with_room(inner, limits[free], pair_floor, start)
        parts = [replace(p, attributes=tuple(free[i] for i in p.attributes)) for p in found] + parts
    bound_at = weighted_bound(n_categories, delivered(parts).tolist(), optimum.weights.tolist())
    return BalancedSolution(tuple(parts), optimum, bound_at, method, place)


def solve_near(
    n_categories: Sequence[int],
    attribute_epsilon: Sequence[float],
    caps: Sequence[float | None] | None,
    pair_floor: float | None,
    place: RampPlace,
    *,
    search: bool = False,
) -> tuple[tuple[Part, ...], RampPlace] | None:
    """Find the laws for levels near those of a ramp that was found, by one fit or a short search.

    Levels and caps are kept as by :func:`solve`; the floor is looked at where it stood in the way
    before (see :func:`keep_floor`). The record's level may be a little higher, the less so the
    nearer the levels.

    Args:
        n_categories, attribute_epsilon, caps, pair_floor: as for :func:`solve`.
        place: where the search at the other levels ended.
        search: whether to look for a better place next to that one.

    Returns:
        The laws and the ramp's place; None where no such ramp keeps the levels and caps, where
        :func:`solve` may find another law.

    Raises:
        InputError: as :func:`solve`.
    """
    problem, limits = _request(n_categories, attribute_epsilon, caps, pair_floor)
    free, bound = _by_room(problem, limits)
    if len(free) != len(place.state.slopes):
        return None
    inner = Problem(problem.n_categories[free], problem.attribute_epsilon[free])
    fit = RampFit(inner, limits[free], place.start)
    fit.state = place.state

    def at(fraction: float, reach: float = 0.0) -> GatedSum | None:
        ramp = fit.near(fraction, reach)
        return None if ramp is None else _landed(inner, ramp, limits[free])

    fraction, law = place.fraction, at(place.fraction, place.reach if search else 0.0)
    if law is not None and fraction < _FRACTIONS[-1]:
        floor = pair_floor or 0.0
        if not keep_floor([law], floor):
            least = max(fraction / _ABOUT, fit.least_fraction)
            fraction, law = _largest_fraction(at, least, fraction, floor)
        elif search and law.least_pair_ratio() >= floor + _FLOOR_ROOM:
            more, larger = _largest_fraction(at, fraction, min(fraction * _ABOUT, 1.0), floor)
            fraction, law = (fraction, law) if larger is None else (more, larger)
    if law is None:
        return None
    parts = [Part(tuple(free), law, law.account)]
    if parts[0].account.epsilon >= independent(inner, range(len(free))).account.epsilon:
        return None
    if bound:
        parts.append(independent(problem, bound))
    left = place.reach * NARROWER if search else place.reach
    return tuple(parts), RampPlace(fit.state, fraction, place.start, left)


def keep_floor(laws: Iterable[PatternLaw], floor: float | None) -> bool:
    """Return whether every pair's φ_ij ≥ t φ_i φ_j; pairs under two laws have a ratio of 1."""
    return floor is None or all(law.least_pair_ratio() >= floor + _FLOOR_MARGIN for law in laws)


def _request(
    n_categories: Sequence[int],
    attribute_epsilon: Sequence[float],
    caps: Sequence[float | None] | None,
    pair_floor: float | None,
) -> tuple[Problem, FloatArray]:
    """Return the levels and the caps, checked."""
    problem = optimal.positive_levels(n_categories, attribute_epsilon)
    limits = caps_given_rest(problem, caps, "caps")
    if pair_floor is not None and not pair_floor <= 1.0:
        raise InputError(
            f"pair_floor: at most 1, what independent responses reach, not {pair_floor:g}"
        )
    return problem, limits


def _by_room(problem: Problem, limits: FloatArray) -> tuple[list[int], list[int]]:
    """Return the attributes with room between level and cap, and the others."""
    room = limits - problem.attribute_epsilon > _CAP_EQUALS_LEVEL
    free, bound = np.flatnonzero(room).tolist(), np.flatnonzero(~room).tolist()
    if len(free) == 1:  # with the others independent of it there is nothing to gain
        free, bound = [], list(range(problem.n_attributes))
    return free, bound


def _with_room(
    problem: Problem, limits: FloatArray, floor: float | None, optimum: OptimalSolution
) -> tuple[list[Part], Method, RampPlace | None]:
    """Solve for attributes that all have room below their caps."""
    if _all_keep(optimum.parts, limits, floor):
        return list(optimum.parts), "optimal", None
    product = independent(problem, range(problem.n_attributes))
    if product.account.epsilon > optimum.epsilon * (1 + 1e-9):
        found, by_floor = _ramp(problem, limits, floor, optimum.epsilon)
        if found is None and by_floor:
            return [product], "floor", None
        if found is not None:
            law, place = found
            part = Part(tuple(range(problem.n_attributes)), law, law.account)
            if part.account.epsilon < product.account.epsilon:
                return [part], "ramp", place
    return [product], "independent", None


def _ramp(
    problem: Problem, limits: FloatArray, floor: float | None, start: float
) -> tuple[tuple[GatedSum, RampPlace] | None, bool]:
    """Return the best ramp found that keeps limits and floor as drawn, and whether only the floor
    stood in the way of one that keeps the limits."""
    fit = RampFit(problem, limits, start)

    def at(fraction: float) -> GatedSum | None:
        ramp = fit.at(fraction)
        return None if ramp is None else _landed(problem, ramp, limits)

    broken = None
    for fraction in _FRACTIONS:
        if fraction <= fit.least_fraction:
            break
        law = at(fraction)
        if law is not None and keep_floor([law], floor):
            return (law, RampPlace(fit.state, fraction, start)), False
        if law is not None:
            broken = fraction
            break
    if broken is None:
        return None, False
    assert floor is not None
    fraction, law = _largest_fraction(at, fit.least_fraction, broken, floor)
    return (None if law is None else (law, RampPlace(fit.state, fraction, start))), True


def _largest_fraction(
    at: Callable[[float], GatedSum | None], low: float, high: float, floor: float
) -> tuple[float, GatedSum | None]:
    """Return the largest fraction of the caps, to about 1 %, whose ramp keeps the floor.

    Towards the product law the ratios rise to 1. Where no ramp is found the fraction is too small.

    Args:
        at: the ramp by fraction; None where none is found.
        low: a fraction that is too small.
        high: a fraction that breaks the floor.
        floor: t.

    Returns:
        The fraction and its law; None for the law if no fraction keeps the floor.
    """
    kept, best = low, None
    for _ in range(_FLOOR_STEPS):
        fraction = math.sqrt(low * high)
        if high - low < 0.01 * high:
            break
        law = at(fraction)
        if law is None:
            low = fraction
        elif keep_floor([law], floor):
            low, kept, best = fraction, fraction, law
            if law.least_pair_ratio() < floor + _FLOOR_ROOM:
                break
        else:
            high = fraction
    return kept, best


def _landed(problem: Problem, ramp: GatedSum, limits: FloatArray) -> GatedSum | None:
    try:
        law = land(problem, ramp)
    except SolverError:
        return None
    return law if bool(np.all(law.account.epsilon_given_rest <= limits)) else None


def _all_keep(parts: Sequence[Part], limits: FloatArray, floor: float | None) -> bool:
    """Whether caps and floor hold already; pairs in different parts have a ratio of 1."""
    capped = all(
        bool(np.all(part.account.epsilon_given_rest <= limits[list(part.attributes)]))
        for part in parts
    )
    return capped and keep_floor((part.law for part in parts), floor)
