"""Several votes at once, for more attributes than can be enumerated.

Where many patterns lie on the optimum's threshold, a single vote, however soft, is up to several
nats off. Column generation as in `columns`, on votes with whole costs
(`deniable.proofs.complement`): the master mixes them, the dynamic program prices them exactly and
bounds ε by the same whole numbers. It starts from the λ of `votes_dual`; from λ = ε a hundred
attributes need hundreds of columns.

A cost rounds up or down by a fraction that differs from column to column: a small level's cost
rounded to 0 in all of them would make the master infeasible. On a grid of `GRIDS[0]` units of θ a
pattern on the threshold is rounded by up to a unit, which costs that part of the mass there; the
second grid removes most of this error, with all columns retained.

The proofs are in docs/proofs/optimal.md, section 5.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.sums import SumLaw
from deniable.proofs.complement import MOST_WHOLE, of_whole, shared
from deniable.proofs.problem import Problem, SolverError
from deniable.solvers.patterns.columns import Columns
from deniable.solvers.patterns.landing import vote_of
from deniable.solvers.patterns.votes_dual import VoteFit

MAX_ATTRIBUTES = 64
"""Beyond, a soft vote is as near, and columns take too long."""

MIXED_FIRST = 40
"""Attributes up to which mixing votes takes less time than Newton steps; at 60 it takes five times
as much (levels of 1 to 10 nats: 2.2 s)."""

MOST_OF_FEW_PATTERNS = 128
"""The same where most changes lose by themselves: 100 attributes at 8 to 20 nats take 3 s, and no
soft vote meets them."""

GRIDS = (4000.0, 20_000.0)
"""Units of θ, less the excess of attributes that win alone, tried in turn."""

_GOLDEN = (math.sqrt(5) - 1) / 2


def mixed_first(problem: Problem) -> bool:
    """Whether to mix votes before following one by Newton steps."""
    k, level = problem.n_attributes, problem.attribute_epsilon
    few = bool(np.median(level) >= level @ problem.change_probability)
    return k <= (MOST_OF_FEW_PATTERNS if few else MIXED_FIRST)


class NoBlendError(SolverError):
    """No mixture of the votes found meets the levels."""


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
    """Mix votes, starting from the λ of the best single one.

    ``problem``: the levels, all above 0. ``gap``: stop when the bounds are this close, in nats.
    """
    votes = _Votes(problem, fit)
    for votes.grid in GRIDS:
        if votes.generate(gap):
            break
    if math.isinf(votes.upper):
        raise NoBlendError("no blend of votes was found that meets the levels")
    law = votes.blend()
    return BlendFit(law, votes.best, votes.lower, law.ideal_epsilon)


class _Votes(Columns):
    """Votes over costs, on a grid of units of θ."""

    def __init__(self, problem: Problem, fit: VoteFit) -> None:
        self.problem, self.grid = problem, GRIDS[0]
        self._parts: list[GatedSum] = []
        super().__init__(problem.keep_excess, fit.lower_bound, fit.lower_bound_weights)

    def price(self, direction: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        problem = self.problem
        budget = float(direction @ problem.change_probability)
        unit = shared(direction, budget) / self.grid
        unit = max(unit, budget / (MOST_WHOLE - problem.n_attributes))
        # A low-discrepancy fraction for every attribute and column.
        places = np.arange(problem.n_attributes) + len(self._parts) * _GOLDEN
        whole = np.floor(direction / unit + np.mod(places * _GOLDEN, 1.0))
        form = of_whole(problem, whole)
        law = SumLaw(form.steps, ceiling=form.ceiling)
        values = np.stack([np.ones(len(law.support)), form.budget - law.support])
        got = law.expectations(values * form.weigh(law.support))
        value = problem.change_probability * got.kept[0] - problem.keep_probability * got.changed[0]
        log_mean = math.log(float(got.total[1])) + form.log_factor
        log_mean = float(np.logaddexp(log_mean, math.log(form.more) if form.more else -math.inf))
        bound = float(np.logaddexp(0.0, math.log(form.gain) - log_mean))
        weights = form.costs.astype(np.float64)
        start = float(weights.sum()) - form.ceiling - 1.0
        self._parts.append(vote_of(problem, weights, start, 1.0, self.unit))
        self.columns.append(value * math.exp(form.log_factor + self.unit) / problem.keep_excess)
        return bound, whole, self.columns[-1]

    def _delivered(self, part: GatedSum) -> FloatArray:
        """Return v/d times e^unit of a vote of that height, by its law's moments."""
        problem = self.problem
        # g − 1 = (e^E − 1) x with e^E − 1 = e^unit.
        value = (
            problem.change_probability * part.excess.kept[0]
            - problem.keep_probability * part.excess.changed[0]
        )
        return np.asarray(value * math.exp(part.tilted[3]) / problem.keep_excess)

    def blend(self) -> VoteBlend:
        """Return the mixture of votes with the master's weights; every level met by its moments."""
        k = self.problem.n_attributes
        # Parts of 1e-12 matter: a vote on one attribute alone can meet its level of 0.001 with it.
        used = np.flatnonzero(self.mixture > 1e-16 * float(self.mixture.sum()))
        # At 19 nats the two computations of a column differ by more than a level's tolerance.
        columns = np.array([self._delivered(self._parts[c]) for c in used]).T
        least = float((columns @ self.mixture[used]).min())
        if not least > 0.0:  # at hundreds of nats
            raise NoBlendError("a level is lost to rounding in the blend of votes that was found")
        mixture = self.mixture[used] / least
        height = float(np.logaddexp(0.0, math.log(float(mixture.sum())) + self.unit))
        parts = tuple(self._parts[c].at_height(height) for c in used)
        return _settled(self.problem, VoteBlend(parts, mixture / mixture.sum(), np.ones(k)))


def _settled(problem: Problem, law: VoteBlend) -> VoteBlend:
    """Return the blend with its nearly met levels met to the last digits.

    By Newton steps in the logarithms of its parts' shares and in its height, on the law's own
    moments: at 20 nats, columns right to ten digits leave an error above a level's tolerance.
    """
    keep, change = problem.uniform_keep, 1.0 - problem.uniform_keep
    miss = law.moments().levels(problem.counts) - problem.attribute_epsilon
    rows = np.abs(miss) < 1e-6  # larger excesses are left to own responses
    if not rows.any():
        return law
    for _ in range(4):
        parts, whole = [part.moments() for part in law.parts], law.moments()
        logs = np.array([part.log_normalizer for part in parts]) - whole.log_normalizer
        shares = law.alpha * np.exp(logs)
        kept = np.array([part.keep for part in parts]).T / whole.keep[:, None]
        changed = np.array([part.change for part in parts]).T / whole.change[:, None]
        # The uniform law's contribution is the part that does not grow with e^E − 1.
        height = math.exp(-whole.log_normalizer) * (change / whole.change - keep / whole.keep)
        slopes = np.column_stack([shares * (kept - changed), height])[rows]
        move = np.linalg.lstsq(slopes, -miss[rows], rcond=1e-13)[0]
        if not np.abs(move).max() < 1.0:
            break  # steps this large do not converge
        alpha = law.alpha * np.exp(move[:-1])
        trial = replace(
            law.at_height(law.height - move[-1] * math.expm1(-law.height)),
            alpha=alpha / math.fsum(alpha),
        )
        missed = trial.moments().levels(problem.counts) - problem.attribute_epsilon
        if not np.abs(missed[rows]).max() < np.abs(miss[rows]).max():
            break
        # An excess is brought down by own responses; a shortfall above 1e-10 nats is not allowed.
        if (-missed[rows]).max() > max((-miss[rows]).max(), 1e-10):
            break
        law, miss = trial, missed
    return law
