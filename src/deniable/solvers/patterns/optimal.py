"""The record's smallest level at given attribute levels, for any number of attributes, with proof.

One call chooses by size and structure: a formula for identical attributes (`_identical`), votes
over all patterns (`columns`) up to `MOST_IN_TABLE` attributes, one soft vote (`votes_dual`) beyond,
several (`blends`) where one is too far from the optimum, and independent blocks where no single law
is near. A law of votes is landed on the levels (`landing`); every law is accounted for as drawn,
and compared with a lower bound that is rounded down and independent of the search
(`deniable.proofs.certificate`). Proofs: docs/proofs/optimal.md.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from deniable.errors import InputError
from deniable.laws.law import PatternLaw
from deniable.laws.pattern_table import PatternTable
from deniable.laws.patterns import FloatArray, other_outputs
from deniable.laws.product import ProductLaw
from deniable.laws.rounding import next_above
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.sums import saddle_tilt
from deniable.laws.votes.vote_law import LARGEST_HEIGHT, Account, VoteLaw
from deniable.proofs.certificate import best_known_bound, weighted_bound
from deniable.proofs.problem import Problem, SolverError, checked_problem
from deniable.solvers.patterns import blends
from deniable.solvers.patterns.columns import solve_columns
from deniable.solvers.patterns.landing import TOLERANCE, land, vote_of
from deniable.solvers.patterns.orbits import Orbits, orbits
from deniable.solvers.patterns.votes_dual import (
    GOOD_ENOUGH,
    LARGEST_NEWTON,
    VoteFit,
    fit_vote,
    follow_vote,
)

MOST_IN_TABLE = 16
"""Most attributes for which the law is a table of all 2^k patterns: 65,536 probabilities are drawn
from as fast as one, and written into a record."""

FAINT = 1e-9
"""Levels below this, in nats, are within another level's tolerance: these attributes answer
independently at no larger cost."""

Method = Literal["single", "identical", "program", "vote", "blend", "blocks"]


@dataclass(frozen=True, eq=False)
class Part:
    """An independent block of the mechanism.

    Attributes:
        attributes: positions in the request, in the law's order.
        law: their randomization.
        account: its levels as drawn.
    """

    attributes: tuple[int, ...]
    law: PatternLaw
    account: Account


@dataclass(frozen=True, eq=False)
class OptimalSolution:
    """Laws that meet every level, their levels as drawn, and a bound on the distance from best.

    Attributes:
        parts: one, except where no single law was found, its level is beyond any law's height, or
            levels are below `FAINT`.
        weights: λ ≥ 0 of the certificate, shape (k,): `certificate.weighted_bound` at the levels
            rounded down gives `lower_bound`.
        lower_bound: on ε of laws with at least these levels, in nats; rounded down.
        method: the search that found it.
    """

    parts: tuple[Part, ...]
    weights: FloatArray
    lower_bound: float
    method: Method

    @property
    def epsilon(self) -> float:
        """The record's level as drawn, in nats, rounded up."""
        return record_level(self.parts)

    @property
    def gap(self) -> float:
        """Upper bound on the distance of `epsilon` from the optimum, in nats."""
        return self.epsilon - self.lower_bound

    @property
    def delivered(self) -> FloatArray:
        """The attributes' levels, rounded down, shape (k,), in nats."""
        return delivered(self.parts)


def record_level(parts: Sequence[Part]) -> float:
    """Return the record's level as drawn, in nats, rounded up: independent parts add up."""
    total = math.fsum(part.account.epsilon for part in parts)
    return total if len(parts) == 1 else next_above(total)


def delivered(parts: Sequence[Part]) -> FloatArray:
    """Return the attributes' levels under all parts, rounded down, shape (k,), in nats."""
    levels = np.empty(sum(len(part.attributes) for part in parts))
    for part in parts:
        levels[list(part.attributes)] = part.account.attribute_epsilon_floor
    return levels


def solve(
    n_categories: Sequence[int],
    attribute_epsilon: Sequence[float],
    *,
    gap: float = 1e-9,
    blocks: bool = True,
) -> OptimalSolution:
    """Find the law with the smallest record level that meets every attribute's level.

    Levels are never above a requested ε_i and within 1e−9 nats below it.

    ``n_categories``: a_i, shape (k,). ``attribute_epsilon``: ε_i in nats, above 0, shape (k,).
    ``gap``: distance of the bounds, in nats, at which the search may stop early.

    Source: docs/proofs/optimal.md.

    >>> solution = solve([5, 5, 3], [1.0, 2.0, 1.5])
    >>> solution.method, round(solution.epsilon, 6), 0 <= solution.gap < 1e-8
    ('program', 3.278141, True)
    """
    problem = positive_levels(n_categories, attribute_epsilon)
    if problem.n_attributes == 1:
        return _certified(problem, [independent(problem, (0,))], np.ones(1), "single")
    if alike(problem):
        weights = np.ones(problem.n_attributes)
        return _certified(problem, [_whole(problem, _identical(problem))], weights, "identical")
    if problem.attribute_epsilon.min() < FAINT:
        return _beside_faint(problem, gap, blocks)
    if problem.n_attributes <= MOST_IN_TABLE:
        with suppress(SolverError):  # with a level of many nats no law of many votes is drawn
            return _exactly(problem)
    return _by_search(problem, gap, blocks)


def _beside_faint(problem: Problem, gap: float, blocks: bool) -> OptimalSolution:
    """Solve for the others; faint levels are answered independently."""
    faint = problem.attribute_epsilon < FAINT
    parts = [independent(problem, np.flatnonzero(faint).tolist())]
    method: Method
    weights, method = np.ones(problem.n_attributes), "blocks"
    others = np.flatnonzero(~faint)
    if others.size:
        levels = problem.attribute_epsilon[others].tolist()
        solved = solve(problem.counts[others].tolist(), levels, gap=gap, blocks=blocks)
        parts += _at_places(solved.parts, others.tolist())
        weights[faint], weights[others], method = 0.0, solved.weights, solved.method
    return _certified(problem, parts, weights, method)


def _at_places(parts: Sequence[Part], places: Sequence[int]) -> list[Part]:
    """Return parts of a smaller request with their positions in the whole one."""
    return [replace(part, attributes=tuple(places[i] for i in part.attributes)) for part in parts]


def _by_search(problem: Problem, gap: float, blocks: bool) -> OptimalSolution:
    """Fit one soft vote by the fixed point; while it is not near the optimum, mix several where
    that is quick, follow it by Newton steps, mix several from there, and answer in blocks; or, if
    these are not wanted, everyone alone."""
    k = problem.n_attributes
    fit = fit_vote(problem, gap=gap)
    tried = _landed_vote(problem, fit)
    least = best_known_bound(problem.counts.tolist(), problem.attribute_epsilon.tolist())

    def known() -> float:
        # The fit's bound may be an estimate, and is -inf where a vote's numbers are lost.
        return max((one.lower_bound for one in tried), default=max(fit.lower_bound, least))

    def above() -> float:
        return min((one.epsilon for one in tried), default=math.inf) - known()

    def enough() -> float:
        return max(gap, GOOD_ENOUGH * known())

    if above() > enough() and blends.mixed_first(problem):
        tried += _landed_blend(problem, fit, enough())
    if above() > enough() and not fit.settled and k <= LARGEST_NEWTON:
        fit = follow_vote(problem, fit, gap=gap)
        tried += _landed_vote(problem, fit)
    if above() > enough() and k <= blends.MAX_ATTRIBUTES:
        tried += _landed_blend(problem, fit, enough())
    if above() > max(1.0, 0.05 * known()):  # else two laws cost more than one
        try:
            alone = [independent(problem, range(k))]
            parts = _in_blocks(problem, known(), gap) if blocks else alone
            tried.append(_certified(problem, parts, fit.lower_bound_weights, "blocks"))
        except SolverError:
            if not tried:
                raise
    return _with_best_proof(problem, tried)


def _with_best_proof(problem: Problem, tried: Sequence[OptimalSolution]) -> OptimalSolution:
    """Return the law of smallest ε with the best proof: another search may have found it."""
    best = min(tried, key=lambda solution: solution.epsilon)
    others = [one for one in tried if one is not best]
    proofs = [_certified(problem, best.parts, one.weights, best.method) for one in others]
    return max([best, *proofs], key=lambda solution: solution.lower_bound)


def _landed_vote(problem: Problem, fit: VoteFit) -> list[OptimalSolution]:
    """Land one soft vote; none if its height or error bounds are beyond one law."""
    with suppress(SolverError, InputError):
        law = land(problem, fit.law(problem))
        return [_certified(problem, [_whole(problem, law)], fit.lower_bound_weights, "vote")]
    return []


def _landed_blend(problem: Problem, fit: VoteFit, enough: float) -> list[OptimalSolution]:
    """Mix votes, and more exactly if the result cannot be landed."""
    for near_enough in (enough, 1e-3 * enough):
        try:
            blend = blends.fit_blend(_a_hair_below(problem), fit, gap=near_enough)
            law = land(problem, blend.law)
        except blends.NoBlendError:
            break
        except (SolverError, InputError):  # also if too large to be held
            continue
        return [_certified(problem, [_whole(problem, law)], blend.weights, "blend")]
    return []


def _a_hair_below(problem: Problem) -> Problem:
    """Return levels within the tolerance, at which votes mixed to the last digit need no own
    responses: these bring a level of 20 nats down to seven digits only."""
    level = problem.attribute_epsilon
    below = level - np.minimum(0.4 * TOLERANCE, 1e-3 * level)
    return checked_problem(problem.counts.tolist(), below.tolist())


def _exactly(problem: Problem) -> OptimalSolution:
    """Mix votes over all patterns, into a table of them."""
    below = _a_hair_below(problem)  # rounding to the table's integers takes less
    counts, grouped = problem.counts.tolist(), orbits(below)
    guess = best_known_bound(counts, below.attribute_epsilon.tolist())
    found = solve_columns(grouped, guess)
    part = table_part(counts, grouped, 1.0 + found.excess)
    shared = (found.weights / grouped.size)[grouped.group_of]
    return _certified(problem, [part], shared, "program")


def table_part(n_categories: Sequence[int], orbits: Orbits, density: FloatArray) -> Part:
    """Return the table of a density over the orbits, shape (n,), with its levels, right to parts in
    10^12; exact levels are computed elsewhere."""
    counts = other_outputs(tuple(n_categories)).astype(np.float64)
    law = PatternTable.from_probabilities(tuple(n_categories), orbits.expand(density) * counts)
    groups, mass = orbits.groups, density * orbits.chance
    kept, changed = orbits.kept_fraction @ mass, orbits.changed_fraction @ mass
    level = np.log(kept) + np.log(groups.n_categories - 1.0) - np.log(changed)
    logs = np.log(density).reshape(tuple((orbits.size + 1).tolist()))
    given = np.array([np.abs(np.diff(logs, axis=i)).max() for i in range(logs.ndim)])
    account = Account(
        math.log(float(density.max() / density.min())) * (1.0 + 1e-12),
        level[orbits.group_of] * (1.0 + 1e-12),
        level[orbits.group_of] * (1.0 - 1e-12),
        given[orbits.group_of],
    )
    return Part(tuple(range(len(n_categories))), law, account)


def positive_levels(n_categories: Sequence[int], attribute_epsilon: Sequence[float]) -> Problem:
    """Check the request of a search that needs every level above 0."""
    problem = checked_problem(n_categories, attribute_epsilon)
    if not problem.attribute_epsilon.all():
        i = int(np.argmin(problem.attribute_epsilon))
        raise InputError(
            f"attribute_epsilon[{i}]: the level must be above 0; leave the attribute out instead"
        )
    return problem


def alike(problem: Problem) -> bool:
    """Whether all attributes have the same categories and the same level."""
    a, level = problem.n_categories, problem.attribute_epsilon
    return bool(np.all(a == a[0]) and np.all(level == level[0]))


def independent(problem: Problem, places: Sequence[int]) -> Part:
    """Return the part in which these attributes answer independently of all others."""
    chosen = list(places)
    levels = problem.attribute_epsilon[chosen]
    law = ProductLaw.from_levels(problem.counts[chosen].tolist(), levels.tolist())
    # No level is exceeded, and each is met to within a part in 2^56.
    total = next_above(math.fsum(levels.tolist()))
    return Part(tuple(chosen), law, Account(total, levels, levels * (1 - 2.0**-50), levels))


def _whole(problem: Problem, law: VoteLaw) -> Part:
    return Part(tuple(range(problem.n_attributes)), law, law.account)


def _certified(
    problem: Problem, parts: Sequence[Part], weights: FloatArray, method: Method
) -> OptimalSolution:
    counts, levels = problem.counts.tolist(), delivered(parts).tolist()
    bound = weighted_bound(counts, levels, weights.tolist())
    return OptimalSolution(tuple(parts), weights, bound, method)


def _in_blocks(problem: Problem, bound: float, gap: float) -> list[Part]:
    """Solve in two independent blocks of attributes with similar levels, or as many as keep each
    below the largest height of a law; their ε add up.

    Similar levels together cost less than dealt out: 58.8 against 65.6 nats for 30 attributes with
    levels from 0.001 to 12 whose optimum is at least 53.3.

    ``bound``: a lower bound on single laws, or an estimate of it, in nats.
    """
    level = problem.attribute_epsilon
    order = np.argsort(level, kind="stable")
    count = max(2, math.ceil(1.05 * bound / LARGEST_HEIGHT))
    ends = np.searchsorted(np.cumsum(level[order]), level.sum() * np.arange(1, count) / count)
    parts: list[Part] = []
    for block in np.split(order, np.clip(ends, 1, len(level) - 1)):
        places = block.tolist()
        try:
            solved = solve(problem.counts[places].tolist(), level[places].tolist(), gap=gap / count)
        except SolverError:  # levels at which hardly any value changes
            parts.append(independent(problem, places))
        else:
            parts += _at_places(solved.parts, places)
    return parts


def _identical(problem: Problem) -> GatedSum:
    """All alike: by symmetry λ = (1, …, 1) is optimal, and its vote {more than kp unchanged} too.

    One threshold meets all k equal levels exactly, so primal and dual values are the same number.
    """
    k = problem.n_attributes
    ones = np.ones(k)
    keep = float(problem.keep_probability[0])
    if not k * keep < k:
        raise SolverError("at these levels hardly any value changes: beyond double precision")
    start = min(float(np.floor(k * keep)), k - 1.0)
    tilt = saddle_tilt(problem.uniform_keep, ones, k * keep)
    return land(problem, vote_of(problem, ones, start, 1.0, max(1.0, tilt)))
