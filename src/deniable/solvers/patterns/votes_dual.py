"""One weighted vote that meets every level, for many attributes.

Minimise over λ ≥ 0 the smoothed dual ln E_μ[Φ_T(z)] − ln λ·d, z = Σ λ_i (Y_i − p_i), where Φ_T is
(·)_+ smoothed over a width of about T. With x = Φ_T'(z) and v_i = E_μ[x (Y_i − p_i)] its
stationarity v_i = c d_i means that the law f ∝ 1 + x/c meets every level *exactly*: a single vote
with a soft threshold is primal and dual at once, for every T, also where the unsmoothed optimum is
a mixture of many votes; T → 0 closes the gap.

Steps:

`fit_vote`: Anderson-accelerated fixed point λ_i += (c d_i − v_i)/H_ii from λ = ε, with a gate one
  unit of the grid wide; H_ii = E_μ[Φ_T''(z) (Y_i − p_i)²] is the curvature's diagonal. Its
  off-diagonal part is near rank one for many attributes at ordinary levels, which acceleration
  absorbs. Beyond `LARGEST_NEWTON` attributes on a logistic gate so steep that it is nearly a step,
  by Fourier inversion (`fourier`): its λ is carried to a grid that is too fine for searching.
`follow_vote`: Newton steps in ln λ where that does not converge (levels that differ by orders of
  magnitude, or of many nats), on a logistic gate, Φ_T' = σ(z/T), with the whole curvature by
  Fourier inversion, T falling from a width with smooth derivatives; each T starts from the last λ.
  A piecewise linear gate has a singular curvature, as strips of z have no pattern. The law drawn is
  a mixture of linear gates near the logistic one, from which the fixed point continues.

The proofs are in docs/proofs/optimal.md, Theorem 9.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import MOST_STATES, GatedSum
from deniable.laws.votes.sums import SumLaw, saddle_tilt, tilted_sum
from deniable.proofs.complement import shared, spared
from deniable.proofs.problem import Problem
from deniable.solvers.patterns.fourier import (
    LogisticVote,
    logistic_vote,
    usual_deviation,
    usual_tilt,
)
from deniable.solvers.patterns.landing import vote_of

LARGEST_NEWTON = 1500
"""Attributes up to which a whole curvature (k² numbers, k³ operations) is affordable."""

GOOD_ENOUGH = 2e-5
"""A gap, as a part of ε, at which no other search starts: a tenth of the promised one."""

LEAST_RESOLUTION = 20_000
"""Units of the grid in the budget θ, at least."""


def default_resolution(n_attributes: int) -> float:
    """Return the standard deviation of z in units of the grid, at a cost of 10^8 additions.

    The dither adds at most k/4 to the variance of z: at 20 √k a relative 1/1600 at worst.
    """
    return max(20.0 * math.sqrt(n_attributes), min(6e3, 1.5e6 / n_attributes))


def linear_gates(softness: float) -> tuple[FloatArray, FloatArray]:
    """Return widths and shares of linear gates whose mixture approximates the logistic gate of this
    T, with its tails; for T = 0 one of width 0.

    The logistic density f is a mixture of uniform densities on [−a, a] with weights −2 a f'(a) da;
    those up to A have a total of 2 (σ(A) − 1/2) − 2 A f(A).
    """
    if softness == 0.0:
        return np.zeros(1), np.ones(1)
    ends = np.array([0.0, 1.5, 3.0, 4.5, 6.5, 9.0, 13.0, 20.0, 30.0])
    risen = 1.0 / (1.0 + np.exp(-ends))
    below = 2.0 * (risen - 0.5) - 2.0 * ends * risen * (1.0 - risen)
    shares = np.diff(below)
    return softness * (ends[1:] + ends[:-1]), shares / shares.sum()


@dataclass(frozen=True, eq=False)
class VoteGrid:
    """A soft vote on its grid.

    Attributes:
        weights: λ, with λ·d = 1, shape (k,).
        unit: of the grid, on the same scale.
        on_grid: weights of the unchanged attributes, in units, limited for a change that loses by
            itself and an unchanged attribute that wins by itself. Shape (k,).
        middle: of the gates, in units of the unchanged attributes' sum.
        widths, shares: of the linear gates that are mixed, the widths in units.
        more: increase of E_μ[z_+] from the limited weights to λ, on the scale of λ.
    """

    weights: FloatArray
    unit: float
    on_grid: FloatArray
    middle: float
    widths: FloatArray
    shares: FloatArray
    more: float

    def law(self, problem: Problem, log_height: float) -> GatedSum | VoteBlend:
        """Return the law of height E, ln(e^E − 1) given."""
        parts = [
            vote_of(problem, self.on_grid, self.middle - width / 2, width, log_height)
            for width in self.widths.tolist()
        ]
        if len(parts) == 1:
            return parts[0]
        return VoteBlend(tuple(parts), self.shares, np.ones(problem.n_attributes))


@dataclass(frozen=True, eq=False)
class VotePoint(VoteGrid):
    """An evaluated soft vote on its grid, with its bound.

    Attributes:
        objective: ln E_μ[z_+].
        value: v_i over E_μ[z_+], shape (k,).
        diagonal: of the curvature over E_μ[z_+], shape (k,).
        lower_bound: the bound that λ proves, in nats.
    """

    objective: float
    value: FloatArray
    diagonal: FloatArray
    lower_bound: float


_Vote = TypeVar("_Vote", VotePoint, LogisticVote)


@dataclass(frozen=True, eq=False)
class VoteFit:
    """The best vote found, and both bounds in nats.

    Attributes:
        vote: the vote.
        log_height: ln(e^E − 1) that makes every keep probability at least the requested one; on a
            grid too fine to search on, an estimate.
        lower_bound: the best proven, not rounded; on a grid too fine to search on an estimate, by
            Fourier inversion (5e-4 above at 2,000 attributes).
        lower_bound_weights: its λ, shape (k,).
        upper_bound: E where it was searched, infinite if that vote misses a level at any height.
        settled: whether the search ended at the optimum for its gate.
    """

    vote: VoteGrid
    log_height: float
    lower_bound: float
    lower_bound_weights: FloatArray
    upper_bound: float
    settled: bool

    @property
    def gap(self) -> float:
        return self.upper_bound - self.lower_bound

    def law(self, problem: Problem) -> GatedSum | VoteBlend:
        """Return the law, before its height is set exactly."""
        return self.vote.law(problem, self.log_height)


class VoteSearch:
    """Evaluates soft votes, with memory of the best bounds."""

    def __init__(self, problem: Problem, resolution: float) -> None:
        self.problem = problem
        self.resolution = resolution
        self.lower_bound, self.lower_bound_weights = -math.inf, problem.attribute_epsilon
        self.upper_bound = math.inf
        self.best: VotePoint | None = None

    @property
    def gap(self) -> float:
        return self.upper_bound - self.lower_bound

    def normed(self, weights: FloatArray) -> FloatArray:
        """Return λ scaled to λ·d = 1."""
        return np.asarray(weights / float(weights @ self.problem.keep_excess))

    def log_height(self, vote: VotePoint | LogisticVote) -> float:
        """Return ln(e^E − 1) that makes every keep probability at least the requested one."""
        least = float((vote.value / self.problem.keep_excess).min())
        return -math.log(least) - vote.objective if least > 0 else math.inf

    def place(self, weights: FloatArray, softness: float, unit: float | None = None) -> VoteGrid:
        """Put a vote on the grid; see `at`."""
        problem = self.problem
        budget = math.fsum((weights * problem.change_probability).tolist())
        widths, shares = linear_gates(softness)
        widest = min(float(widths.max()), budget)
        # An unchanged attribute that wins alone is above the gate, despite rounding of all others.
        above = widest / 2 + max(0.01 * shared(weights, budget), 2.0 * (unit or 0.0))
        cut = spared(weights, budget - above)
        counted, budget = weights - cut, budget - float(cut.sum())
        if not unit:
            unit = budget / LEAST_RESOLUTION
            if softness == 0.0:
                unit = min(unit, usual_deviation(problem, counted, budget) / self.resolution)
        # A law holds no more states than this.
        most = 0.9 * MOST_STATES / (math.sqrt(problem.n_attributes) + 8)
        unit = max(unit, float(np.minimum(counted, budget + widest).sum()) / most)
        widths, budget = np.clip(widths, unit, budget) / unit, budget / unit
        costs = counted / unit
        # A changed attribute of this cost loses, despite rounding of all others.
        loses = math.floor(budget + widths.max() / 2) + 1.0
        loses += np.count_nonzero(costs < loses)
        on_grid = np.minimum(costs, loses)
        middle = math.fsum(on_grid.tolist()) - budget
        more = float(cut @ problem.uniform_keep)
        return VoteGrid(weights, unit, on_grid, middle, widths, shares, more)

    def at(
        self, weights: FloatArray, softness: float = 0.0, unit: float | None = None
    ) -> VotePoint:
        """Evaluate a vote on the grid.

        ``weights``: λ ≥ 0, with λ·d = 1, shape (k,).
        """
        problem = self.problem
        keep, change = problem.keep_probability, problem.change_probability
        grid = self.place(weights, softness, unit)
        n = np.floor(grid.on_grid).astype(np.int64)
        tilt = saddle_tilt(problem.uniform_keep, grid.on_grid, grid.middle)
        steps = tilted_sum(problem.uniform_keep, n, grid.on_grid - n, tilt)
        law = SumLaw(steps, floor=math.floor(grid.middle - grid.widths.max() / 2))
        z = law.support - grid.middle
        slope, bend = np.zeros(len(z)), np.zeros(len(z))
        for width, share in zip(grid.widths.tolist(), grid.shares.tolist(), strict=True):
            slope += share * np.clip(z / width + 0.5, 0.0, 1.0)
            bend += share / width * (np.abs(z) < width / 2)
        tilted_back = np.exp(np.clip(-tilt * z, -740.0, 600.0))
        got = law.expectations(np.stack([slope, bend]) * tilted_back)
        # E[h (Y_i − p_i)] as (1−p) E[h; kept] − p E[h; changed]: d_i may be tiny against p_i.
        value = change * got.kept[0] - keep * got.changed[0]
        diagonal = change**2 * got.kept[1] + keep**2 * got.changed[1]
        positive = np.maximum(z, 0.0) * tilted_back
        mean = float(positive @ law.mass)
        if not mean > 1e9 * law.dropped * float(positive.max(initial=0.0)):
            mean = math.nan  # the decisive states were dropped: not usable
        log_factor = steps.log_scale - tilt * grid.middle + math.log(grid.unit)
        if grid.more:  # of an optimum beyond 709 nats the factor is no double
            mean += grid.more * float(np.exp(-log_factor))
        objective = math.log(mean) + log_factor
        point = VotePoint(
            **vars(grid),
            objective=objective,
            value=value / mean / grid.unit,
            diagonal=np.maximum(diagonal / mean / grid.unit**2, 1e-300),
            lower_bound=float(np.logaddexp(0.0, -objective)),
        )
        if point.lower_bound > self.lower_bound:
            self.lower_bound, self.lower_bound_weights = point.lower_bound, weights
        upper = float(np.logaddexp(0.0, self.log_height(point)))
        if upper < self.upper_bound or self.best is None:
            self.upper_bound, self.best = upper, point
        return point

    def accelerate(
        self,
        weights: FloatArray,
        evaluate: Callable[[FloatArray], _Vote],
        target: float,
        gap: float,
        steps: int,
    ) -> _Vote | None:
        """Run the accelerated fixed point on one kind of gate; return where it settled."""
        logs: list[FloatArray] = []
        moves: list[FloatArray] = []
        best_miss, worse = math.inf, 0
        best: _Vote | None = None
        weights = self.normed(weights)
        for _ in range(steps):
            point = evaluate(weights)
            miss = self.miss(point)
            size = float(np.abs(miss / self.problem.keep_excess).max())
            size /= float(weights @ point.value)
            if size < best_miss:
                best, best_miss, worse = point, size, 0
            else:
                worse += 1
            if size <= target or self.gap <= gap:
                return point
            if worse == 5 or not math.isfinite(size):
                break
            move = np.log(np.clip(1.0 + miss / (point.diagonal * weights), 0.5, 2.0))
            logs.append(np.log(weights))
            moves.append(move)
            del logs[:-9], moves[:-9]
            new = logs[-1] + move
            if len(logs) > 1:
                d_log, d_move = np.diff(logs, axis=0).T, np.diff(moves, axis=0).T
                metric = np.sqrt(point.diagonal) * weights
                known = np.column_stack([d_move, move]) * metric[:, None]
                if not np.isfinite(known).all():
                    break
                mix = np.linalg.lstsq(known[:, :-1], known[:, -1], rcond=1e-9)[0]
                new = new - (d_log + d_move) @ mix
            if not np.isfinite(new).all():
                break  # next to a level of hundreds of nats other contributions underflow
            weights = self.normed(np.exp(logs[-1] + np.clip(new - logs[-1], -0.7, 0.7)))
        return best if best_miss < 1e-6 else None

    def steep(self, weights: FloatArray) -> LogisticVote | None:
        """Return the vote on a gate that is as good as a step, or None where the fixed point does
        not settle on it."""
        start = self.normed(weights)
        # A hundredth of the scale on which z, or its tilted density, changes.
        wide = 0.5 * usual_deviation(self.problem, start)
        softness = 0.01 * min(1.0 / usual_tilt(self.problem, start), wide)
        logistic = partial(logistic_vote, self.problem, softness=softness, pairs=False)
        vote = self.accelerate(start, logistic, 1e-6, 0.0, 24)
        return vote if vote is not None and vote.resolved else None

    def finest(self, vote: LogisticVote) -> VoteFit:
        """Return a vote as a drawable law, on a grid too fine to search on."""
        problem, weights = self.problem, vote.weights
        budget = float(weights @ problem.change_probability)
        # Of 10,000 attributes at ε = 7.5 the dither costs 5e-4 nats at this resolution.
        unit = min(budget / LEAST_RESOLUTION, usual_deviation(problem, weights) / 2000.0)
        grid = self.place(weights, 0.0, unit)
        lower = float(np.logaddexp(0.0, -vote.objective))
        height = self.log_height(vote)
        upper = float(np.logaddexp(0.0, height))
        return VoteFit(grid, height, lower, weights, upper, True)

    def miss(self, vote: VotePoint | LogisticVote) -> FloatArray:
        """Return c d − v, with c = λ·v as λ·d = 1, shape (k,)."""
        scale = float(vote.weights @ vote.value)
        return np.asarray(scale * self.problem.keep_excess - vote.value)

    def step(self, vote: LogisticVote, damping: float) -> tuple[FloatArray, float]:
        """Return a Levenberg–Newton step in ln λ at λ·d = 1, (k,), and its predicted decrease.

        The curvature in ln λ is λ_i λ_j H_ij, and the positive part of −λ_i miss_i on the diagonal.
        """
        weights, gain = vote.weights, self.problem.keep_excess
        k = len(weights)
        slope, reward = weights * self.miss(vote), weights * gain
        quadratic = vote.curvature * np.outer(weights, weights)
        own = np.maximum(np.diag(quadratic), 0.0)
        damped = own + np.maximum(-slope, 0.0)
        damped += damping * (own + float(weights @ vote.value) * reward)
        scale = 1.0 / np.sqrt(np.maximum(damped, 1e-300))
        system = np.zeros((k + 1, k + 1))
        system[:k, :k] = quadratic * np.outer(scale, scale)
        system[np.arange(k), np.arange(k)] = damped * scale**2 + 1e-13
        side = reward * scale
        system[:k, k] = system[k, :k] = side / np.linalg.norm(side)
        try:
            move = scale * np.linalg.solve(system, np.append(slope * scale, 0.0))[:k]
        except np.linalg.LinAlgError:
            move = np.zeros(k)
        move = np.where(np.isfinite(move).all(), move, 0.0)  # no step: the damping then grows
        return move, float(slope @ move) - 0.5 * float(move @ quadratic @ move)

    def follow(self, gap: float) -> list[LogisticVote]:
        """Minimise on logistic gates of falling T, from the λ that proves most.

        Ends where the bounds are within `gap`, frequencies run out, or the gate is about as narrow
        as a unit of the grid.
        """
        weights = self.normed(self.lower_bound_weights)
        softness = 0.7 / usual_tilt(self.problem, weights)
        damping = 1e-2
        votes: list[LogisticVote] = []
        for _ in range(40):  # then T is a part in 10^12; ordinary levels take 10 to 20
            vote = logistic_vote(self.problem, weights, softness)
            if not vote.resolved:
                break
            vote, damping = self.descend(vote, damping)
            votes.append(vote)
            weights = vote.weights
            budget = float(weights @ self.problem.change_probability)
            unit = shared(weights, budget) / LEAST_RESOLUTION
            if self.above(vote) <= gap or 4.0 * softness < unit:
                break
            softness *= 0.5
        return votes

    def above(self, vote: LogisticVote) -> float:
        """Return the distance of this vote's height from its proven bound, in nats."""
        return float(np.logaddexp(0.0, self.log_height(vote)) - np.logaddexp(0.0, -vote.objective))

    def descend(self, vote: LogisticVote, damping: float) -> tuple[LogisticVote, float]:
        """Take Newton steps at one T until v is near proportional to d."""
        damping = max(damping, 1e-4)
        for _ in range(14):
            miss, scale = self.miss(vote), float(vote.weights @ vote.value)
            if float(np.abs(miss / self.problem.keep_excess).max()) < 2e-3 * scale:
                break
            move, promise = self.step(vote, damping)
            new = self.normed(vote.weights * np.exp(np.clip(move, -2.0, 2.0)))
            trial = logistic_vote(self.problem, new, vote.softness)
            fall = vote.objective - trial.objective
            if fall > 0 or (fall > -1e-12 and promise < 1e-10):
                damping *= 0.2 if fall > 0.5 * promise else 2.0 if fall < 0.1 * promise else 1.0
                vote = trial
            else:
                damping *= 8.0
        return vote, damping

    def fit(self, settled: bool) -> VoteFit:
        """Return the best evaluated vote."""
        assert self.best is not None
        bounds = self.lower_bound, self.lower_bound_weights, self.upper_bound
        return VoteFit(self.best, self.log_height(self.best), *bounds, settled)


@np.errstate(all="ignore")  # steps out of range are reverted
def fit_vote(problem: Problem, *, gap: float = 1e-7, resolution: float | None = None) -> VoteFit:
    """Fit one soft vote by the fixed point.

    ``problem``: the levels, all above 0. ``gap``: the distance of the bounds, in nats, at which to
    stop early.
    """
    k, level = problem.n_attributes, problem.attribute_epsilon
    search = VoteSearch(problem, resolution or default_resolution(k))
    if k > LARGEST_NEWTON and resolution is None:
        steep = search.steep(level)
        if steep is not None:
            return search.finest(steep)
    # Where an attribute wins by itself at λ = ε, the λ that are sought are orders of magnitude off.
    far = k <= LARGEST_NEWTON and spared(level, float(level @ problem.change_probability)).any()
    settled = search.accelerate(level, search.at, 1e-11, gap, 1 if far else 24)
    return search.fit(settled is not None)


@np.errstate(all="ignore")
def follow_vote(problem: Problem, fit: VoteFit, *, gap: float = 1e-7) -> VoteFit:
    """Fit one soft vote by Newton steps, up to `LARGEST_NEWTON` attributes.

    ``problem``: the levels, all above 0. ``gap``: the distance of the bounds, in nats, at which to
    stop early.
    """
    search = VoteSearch(problem, default_resolution(problem.n_attributes))
    search.lower_bound, search.lower_bound_weights = fit.lower_bound, fit.lower_bound_weights
    enough = max(gap, GOOD_ENOUGH * search.lower_bound)
    settled = False
    for vote in search.follow(enough)[::-1]:  # the law's own grid may be too coarse for the last
        wide = partial(search.at, softness=vote.softness)
        settled = search.accelerate(vote.weights, wide, 1e-9, enough, 24) is not None
        if settled or search.gap <= 10.0 * enough:
            break
    if search.best is None:
        return fit
    bounds = search.lower_bound, search.lower_bound_weights
    if search.upper_bound > fit.upper_bound:
        return replace(fit, lower_bound=bounds[0], lower_bound_weights=bounds[1])
    return search.fit(settled)
