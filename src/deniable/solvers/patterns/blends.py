"""Several votes at once, for more attributes than can be enumerated.

Where a few attributes have levels far above those of the others, many patterns lie on the optimum's
threshold, and a single vote, however soft, is up to several nats off. Column generation as in
`columns`, with votes on a grid: the master mixes them, the dynamic program prices them. What
remains is the grid: a pattern on the threshold is rounded by up to a unit, which costs about one
part in `default_resolution` (1e−3 nats, measured), and a bound from the same grid is off as much.

The proofs are in docs/proofs/optimal.md, section 5.
"""

import math
from dataclasses import dataclass

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.blend import VoteBlend
from deniable.solvers.patterns.certificate import default_resolution
from deniable.solvers.patterns.columns import Master, polished
from deniable.solvers.patterns.landing import vote_of
from deniable.solvers.patterns.votes_dual import VoteFit, VoteSearch
from deniable.solvers.problem import Problem, SolverError

MAX_ATTRIBUTES = 256
"""Beyond, a vote takes too long to price a few hundred of them."""

MAX_COLUMNS = 400

PATIENCE = 60
"""So many votes, and one more per attribute, may pass without the gap falling by a hundredth."""

INSIDE = 0.2
"""How far from the best multipliers towards the master's to price; see `columns`."""

NEGLIGIBLE = 1e-16
"""Votes with a smaller part in the mixture are left out. Parts of 1e-12 matter: with so little, a
vote on one attribute alone can meet its level of 0.001."""


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
        problem: the levels, all above 0.
        fit: the best single vote, which meets them or, if its upper bound is infinite, does not.
        gap: stop when the bounds are this close, in nats.

    Raises:
        SolverError: if the master problem cannot be solved, or no blend meets the levels.
    """
    votes = _Votes(problem, fit.lower_bound)
    gain = problem.keep_excess
    center = fit.lower_bound_weights / float(fit.lower_bound_weights @ gain)
    best = votes.begin(fit, center)
    mark, since = math.inf, 0
    while True:
        duals, weights = votes.master.solve()
        total = float(weights.sum())
        upper = float(np.logaddexp(0.0, math.log(total) + fit.lower_bound))
        if math.isinf(upper) or upper - best < 0.99 * mark:
            mark, since = upper - best, len(votes)
        settled = upper - best <= gap or len(votes) - since > PATIENCE + problem.n_attributes
        if settled or len(votes) >= MAX_COLUMNS or not duals.any():
            break
        before = len(votes)
        outer = duals / gain
        outer /= float(outer @ gain)
        for step in (INSIDE, 1.0):
            direction = center + step * (outer - center)
            bound, column = votes.price(direction)
            if bound > best:
                best, center = bound, direction
                break
            if float(column @ duals) > 1.0 + 1e-9:
                break  # the master's multipliers are cut off
        if len(votes) == before:
            break
    if math.isinf(upper):
        raise SolverError("no blend of votes was found that meets the levels")
    law = votes.blend(weights)
    return BlendFit(law, center, best, law.ideal_epsilon)


class _Votes:
    """The votes priced so far, and the master program that mixes them.

    Args:
        problem: the levels.
        unit: columns are v/d times e^unit, of order one if this is a lower bound in nats.
    """

    def __init__(self, problem: Problem, unit: float) -> None:
        k = problem.n_attributes
        self.problem = problem
        self.unit = unit
        self.master = Master(np.ones(k))
        self._search = VoteSearch(problem, default_resolution(k))
        self._votes: list[tuple[FloatArray, float]] = []
        self._columns: list[FloatArray] = []

    def __len__(self) -> int:
        return len(self._votes)

    def price(
        self, direction: FloatArray, softness: float | None = None
    ) -> tuple[float, FloatArray]:
        """Add the vote of λ = `direction`; return the lower bound that λ proves, and the column.

        A vote beyond double precision is left out: its bound is −∞ and its column 0.
        """
        weights = self._search.scaled(direction)
        soft = self._search.softness(weights, 0.0) if softness is None else softness
        point = self._search.at(weights, soft)
        scale = math.exp(point.log_factor + self.unit)
        column = point.value * scale / self.problem.keep_excess
        if not 0 < np.abs(column).max() < math.inf:
            return -math.inf, np.zeros(len(column))
        self._votes.append((weights, soft))
        self._columns.append(column)
        self.master.add(column)
        return point.lower_bound, column

    def begin(self, fit: VoteFit, center: FloatArray) -> float:
        """Add the votes to start from; return the lower bound that λ = `center` proves."""
        self.price(fit.weights, fit.softness)
        if math.isinf(fit.upper_bound):  # it misses a level: "i kept" meets that of i
            for alone in np.eye(self.problem.n_attributes):
                self.price(alone)
        best, _ = self.price(center)
        self.price(fit.weights)
        self.price(self.problem.attribute_epsilon)
        return best

    def blend(self, weights: FloatArray) -> VoteBlend:
        """Return the mixture of votes with the master's weights, solved in full precision."""
        problem = self.problem
        used = np.flatnonzero(weights > NEGLIGIBLE * float(weights.sum()))
        columns = np.array([self._columns[c] for c in used]).T
        mixture = polished(columns, weights[used], np.ones(problem.n_attributes))
        log_height = math.log(float(mixture.sum())) + self.unit
        parts = []
        for c in used:
            at, soft = self._votes[c]
            start = math.fsum(at * problem.keep_probability) - soft / 2
            parts.append(vote_of(problem, at, start, soft, log_height))
        return VoteBlend(tuple(parts), mixture / mixture.sum(), np.ones(problem.n_attributes))
