"""The record's smallest level at exactly the requested attribute levels: the linear program.

`solve` solves the program of Algorithms 1 and 2 in equivalent, better coordinates: densities
instead of probabilities, and one column per orbit of identical attributes (`orbits`). With levels
only, votes suffice, which are monotone, and are generated as columns (`columns`); with caps or a
floor that such a law breaks the program has all rows (`restricted`). The law is checked, and
returned with a lower bound.

Source: Yamamoto and Shibuya (ISCC 2024), section IV.A and Algorithms 1 and 2.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce

import numpy as np

from deniable.errors import InputError
from deniable.laws.pattern_table import PatternTable
from deniable.laws.patterns import FloatArray
from deniable.proofs import certificate
from deniable.proofs.problem import Problem, SolverError, caps_given_rest, checked_problem
from deniable.solvers.patterns.columns import solve_columns
from deniable.solvers.patterns.orbits import Orbits, orbits
from deniable.solvers.patterns.restricted import solve_restricted

MAX_ATTRIBUTES = 20
"""The table of pattern probabilities has 2^k entries."""

MAX_EDGES = 120_000
"""The most pairs of comparable orbits with caps or floors: 13 different attributes."""

MAX_GAP = 1e-4
"""Largest distance of a result from its proven bound, as a fraction of ε. Levels up to 3 nats
end below 3e-7; with caps, levels of 5 to 20 nats and thousands of categories the tolerance of HiGHS
is magnified up to 8e-5 in the proof."""


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """An optimal law and its proof.

    Attributes:
        pattern_probability: q(S), shape (2,)*k, axis i = attribute i, index 1 = changed.
        epsilon: privacy level of the record, ln(max X/min X) of that table, in nats.
        weights: λ ≥ 0, shape (k,), for `certificate.weighted_bound`.
        epsilon_lower_bound: no law that obeys the same restrictions is below, in nats.
    """

    pattern_probability: FloatArray
    epsilon: float
    weights: FloatArray
    epsilon_lower_bound: float


def solve(
    n_categories: Sequence[int],
    attribute_epsilon: Sequence[float],
    *,
    given_rest_cap: Sequence[float | None] | None = None,
    pair_floor: float | None = None,
    max_gap: float = MAX_GAP,
) -> LinearSolution:
    """Find the pattern law with the smallest record level at exactly the requested levels.

    Levels are never above a requested ε_i (beyond an ulp or so of p_i) and within 1e−11 below.

    ``n_categories``: a_i, shape (k,), k at most `MAX_ATTRIBUTES`. ``attribute_epsilon``: ε_i in
    nats, shape (k,). ``given_rest_cap``: caps on ε given the rest in nats, at least ε_i, or None
    for none. ``pair_floor``: t such that φ_ij ≥ t φ_i φ_j. ``max_gap``: largest distance from the
    proven bound, as a fraction of ε. Source: Yamamoto and Shibuya (ISCC 2024), section IV.A;
    docs/proofs/restricted.md.

    >>> solution = solve([5, 5, 3], [1.0, 2.0, 1.5])
    >>> round(solution.epsilon, 6), solution.epsilon - solution.epsilon_lower_bound < 1e-9
    (3.278141, True)
    """
    problem = checked_problem(n_categories, attribute_epsilon)
    if problem.n_attributes > MAX_ATTRIBUTES:
        raise InputError(
            "linear program: it works on the table of all 2^k patterns, for at most "
            f"{MAX_ATTRIBUTES} attributes, not {problem.n_attributes}; use the heuristic or "
            "Kronecker"
        )
    if pair_floor is not None and not math.isfinite(pair_floor):
        raise InputError(f"pair_floor: it must be a finite number, not {pair_floor:g}")
    # No ratio of two probabilities of an optimal law exceeds that of the product law.
    caps = caps_given_rest(problem, given_rest_cap, "given_rest_cap")
    caps = np.where(caps >= math.fsum(problem.attribute_epsilon.tolist()), np.inf, caps)
    # An attribute at level 0 is uniform, independently of the others; one whose cap equals its
    # level has X_S = e^{ε_i} X_{S∪i} for every S: it answers by an independent k-ary response.
    level = problem.attribute_epsilon
    independent = (level > 0.0) & (caps - level <= 1e-9)
    active = (level > 0.0) & ~independent
    if pair_floor is not None and pair_floor > 1.0 and independent.any() and (level > 0).sum() > 1:
        raise InputError(_infeasible(pair_floor))
    density = np.ones((2,) * problem.n_attributes)
    for i in np.flatnonzero(independent):
        factor = np.exp(level[i]), 1.0
        shape = [2 if j == i else 1 for j in range(problem.n_attributes)]
        density = density * np.reshape(factor, shape)
    weights = np.zeros(problem.n_attributes)
    bound = math.fsum(level[independent].tolist())
    if active.any():
        inner = Problem(problem.n_categories[active], level[active])
        grouped = orbits(inner, caps[active].tolist())
        excess, group_weights, inner_bound = _optimum(
            inner, grouped, caps[active], pair_floor, max_gap
        )
        weights[active] = (group_weights / grouped.size)[grouped.group_of]
        bound += inner_bound
        axes = tuple(int(i) for i in np.flatnonzero(~active))
        density = density * np.expand_dims(grouped.expand(1.0 + excess), axes)
    return _solution(problem, density, weights, bound)


def drawn(
    n_categories: Sequence[int],
    attribute_epsilon: Sequence[float],
    *,
    given_rest_cap: Sequence[float | None] | None = None,
    pair_floor: float | None = None,
    max_gap: float = MAX_GAP,
) -> tuple[PatternTable, LinearSolution]:
    """Return the optimum as a law in integers, which keeps the floor as drawn, and its proof.

    For two attributes with hardly any information, a rounding of 10^−16 in their table is a
    considerable part of φ_i φ_j: the program gets more room above the floor.

    >>> law, solution = drawn([3, 3, 2], [1e-5, 1e-5, 0.5], pair_floor=0.9)
    >>> law.keeps_pair_floor(0.9)
    True
    """
    problem = checked_problem(n_categories, attribute_epsilon)
    attenuation = problem.keep_excess / (1.0 - 1.0 / problem.n_categories)
    pair = max(float(np.prod(np.sort(attenuation)[:2])), 1e-300)
    # Twice the tolerance of the program's rows, or a rounding; at most a thousandth.
    room = min(max(2e-9, 2.0**-51 / pair), 1e-3)
    solution = solve(
        n_categories,
        attribute_epsilon,
        given_rest_cap=given_rest_cap,
        pair_floor=None if pair_floor is None else pair_floor + room,
        max_gap=max_gap,
    )
    law = PatternTable.from_probabilities(n_categories, solution.pattern_probability)
    if pair_floor is None or law.keeps_pair_floor(pair_floor):
        return law, solution
    raise SolverError(
        "linear program: rounding breaks the floor on pairs at these levels; use Kronecker"
    )


def _infeasible(floor: float | None) -> str:
    if floor is None:
        return "given_rest_cap: no law obeys the caps; raise them"
    return (
        f"pair_floor: no law has every pair's attenuation at least {floor:g} times its product "
        "under these levels and caps; a floor of 1 or less is always possible"
    )


def _optimum(
    problem: Problem, grouped: Orbits, caps: FloatArray, floor: float | None, max_gap: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return the excess of every orbit, λ per group, and the lower bound in nats."""
    counts, level = problem.n_categories.tolist(), problem.attribute_epsilon.tolist()
    guess = certificate.best_known_bound(counts, level)
    _, first = np.unique(grouped.group_of, return_index=True)

    def proved(weights: FloatArray, *known: float) -> float:
        shared = (np.maximum(weights, 0.0) / grouped.size)[grouped.group_of]
        return max(guess, *known, certificate.weighted_bound(counts, level, shared.tolist()))

    limits, restricted = caps[first], bool(np.isfinite(caps).any()) or floor is not None
    if not restricted:
        with suppress(SolverError):
            votes = solve_columns(grouped, guess)
            bound, reached = proved(votes.weights), math.log1p(float(votes.excess[0]))
            if reached - bound <= 1e-6 * reached:  # else the program with all rows is solved
                return votes.excess, votes.weights, bound
    # In each group, every orbit has one but those in which the whole group is changed.
    edges = round(len(grouped.chance) * float((grouped.size / (grouped.size + 1.0)).sum()))
    if edges > MAX_EDGES:
        raise InputError(
            f"linear program: caps and floors on {problem.n_attributes} different attributes need "
            f"{edges} rows, more than the {MAX_EDGES} it can handle; omit them, or use "
            "Kronecker"
        )
    answer = solve_restricted(grouped, guess, caps=limits, pair_floor=floor)
    if answer.status == "infeasible":
        raise InputError(_infeasible(floor))
    if answer.excess is not None:
        bound = proved(answer.weights, math.log1p(max(answer.excess_bound, 0.0)) * (1.0 - 2.0**-49))
        reached = math.log1p(float(answer.excess[0]))
        if reached - bound <= max_gap * reached:
            return answer.excess, np.maximum(answer.weights, 0.0), bound
    raise SolverError(
        "linear program: the solver's result did not pass its checks at these levels; "
        "use the heuristic or Kronecker"
    )


def _solution(
    problem: Problem, density: FloatArray, weights: FloatArray, bound: float
) -> LinearSolution:
    """Normalise, and compute ε from the table."""
    outputs: FloatArray = reduce(
        np.multiply.outer,
        [np.array([1.0, a - 1.0]) for a in problem.n_categories.tolist()],
        np.ones(()),
    )
    law = outputs * density
    law /= law.sum()
    single = law / outputs
    low, high = float(single.min()), float(single.max())
    epsilon = math.log1p((high - low) / low)
    return LinearSolution(law, epsilon, weights, min(bound, epsilon))
