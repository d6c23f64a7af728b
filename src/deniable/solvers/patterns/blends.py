"""Several votes at once, for more attributes than can be enumerated.

Where a few attributes have levels far above the others', many patterns lie on the optimum's
threshold, and a single vote, however soft, is up to several nats off. Column generation as in
`columns`, with votes on a grid: the master mixes them, the dynamic program prices them. What
remains is the grid: a pattern on the threshold is rounded by up to a unit, which costs about one in
`resolution` (1e−3 nats, measured), while a bound from the same grid is off by as much.
"""

import math
from dataclasses import dataclass

import numpy as np

from deniable.laws.votes.blend import VoteBlend
from deniable.solvers.patterns.certificate import default_resolution
from deniable.solvers.patterns.columns import Master, polished
from deniable.solvers.patterns.landing import vote_of
from deniable.solvers.patterns.votes_dual import VoteFit, VoteSearch
from deniable.solvers.problem import FloatArray, Problem, SolverError

MAX_ATTRIBUTES = 256
"""Beyond, a vote takes too long to price a few hundred of them."""

MAX_COLUMNS = 400

PATIENCE = 60
"""So many votes, and one more per attribute, may pass without the gap falling by a hundredth."""

INSIDE = 0.2
"""How far from the best multipliers towards the master's to price; see `columns`."""

NEGLIGIBLE = 1e-16
"""Votes of a smaller share are left out. Shares of 1e-12 matter: with so little, a vote on a small
attribute alone can meet a level of 0.001."""


@dataclass(frozen=True, eq=False)
class BlendFit:
    """Votes that meet the levels up to the solver's tolerance, and both bounds.

    Attributes:
        law: the blend, before its height is set exactly.
        weights: λ of the best lower bound, shape (k,).
        lower_bound, upper_bound: in nats, not rounded either way.
    """

    law: VoteBlend
    weights: FloatArray
    lower_bound: float
    upper_bound: float


def fit_blend(problem: Problem, fit: VoteFit, *, gap: float = 1e-6) -> BlendFit:
    """Mix votes, starting from the best single one.

    Args:
        problem: the levels.
        fit: the best single vote found, which meets them.
        gap: stop when the bounds are this close.

    Raises:
        SolverError: if the master problem cannot be solved, or no blend meets the levels.
    """
    k = problem.n_attributes
    gain = problem.keep_excess
    search = VoteSearch(problem, default_resolution(k))
    master = Master(np.ones(k))
    votes: list[tuple[FloatArray, float]] = []
    columns: list[FloatArray] = []

    def price(direction: FloatArray, softness: float | None = None) -> tuple[float, FloatArray]:
        """Add a vote; returns the lower bound of its λ, and v/d times e^{lower bound of `fit`}."""
        weights = search.scaled(direction)
        soft = search.softness(weights, 0.0) if softness is None else softness
        point = search.at(weights, soft)
        column = point.value * math.exp(point.log_factor + fit.lower_bound) / gain
        if not 0 < np.abs(column).max() < math.inf:  # beyond double precision
            return -math.inf, np.zeros(k)
        votes.append((weights, soft))
        columns.append(column)
        master.add(column)
        return point.lower_bound, column

    price(fit.weights, fit.softness)
    if math.isinf(fit.upper_bound):  # it misses a level: "i kept" meets that of i
        for alone in np.eye(k):
            price(alone)
    center = fit.lower_bound_weights / float(fit.lower_bound_weights @ gain)
    best, _ = price(center)
    price(fit.weights)
    price(problem.attribute_epsilon)
    mark, since = math.inf, 0
    while True:
        duals, weights = master.solve()
        total = float(weights.sum())
        upper = float(np.logaddexp(0.0, math.log(total) + fit.lower_bound))
        if math.isinf(upper) or upper - best < 0.99 * mark:
            mark, since = upper - best, len(votes)
        settled = upper - best <= gap or len(votes) - since > PATIENCE + k
        if settled or len(votes) >= MAX_COLUMNS or not duals.any():
            break
        before = len(votes)
        outer = duals / gain
        outer /= float(outer @ gain)
        for share in (INSIDE, 1.0):
            direction = center + share * (outer - center)
            bound, column = price(direction)
            if bound > best:
                best, center = bound, direction
                break
            if float(column @ duals) > 1.0 + 1e-9:
                break  # the master's multipliers are cut off
        if len(votes) == before:
            break
    if math.isinf(upper):
        raise SolverError("no blend of votes was found that meets the levels")
    used = np.flatnonzero(weights > NEGLIGIBLE * total)
    shares = polished(np.array([columns[c] for c in used]).T, weights[used], np.ones(k))
    log_height = math.log(float(shares.sum())) + fit.lower_bound
    parts = []
    for c in used:
        at, soft = votes[c]
        start = math.fsum(at * problem.keep_probability) - soft / 2
        parts.append(vote_of(problem, at, start, soft, log_height))
    law = VoteBlend(tuple(parts), shares / shares.sum(), np.ones(k))
    return BlendFit(law, center, best, law.ideal_epsilon)
