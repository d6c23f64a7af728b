"""One weighted vote that meets every level, for many attributes.

Minimise over λ >= 0 the smoothed dual ln E_μ[Φ_T(z)] − ln λ·d, z = Σ λ_i (Y_i − p_i), where Φ_T is
(·)_+ rounded off over a width T: Φ_T' = clip(z/T + 1/2, 0, 1).  Its stationarity v_i = c d_i, with
v_i = E_μ[Φ_T'(z) (Y_i − p_i)], says that the law f ∝ 1 + Φ_T'(z)/c meets every level *exactly*:
a single vote with a soft threshold is primal and dual at once, for every T, also where the
unsmoothed optimum is a mixture of many votes; T → 0 closes the gap.

All expectations are of a dithered sum on a grid (see `sums`), whose unit is chosen so that the
standard deviation of z is `resolution` units.  Steps:

Anderson-accelerated fixed point λ_i += (c d_i − v_i)/H_ii with
  H_ii = E_μ[Φ_T''(z) (Y_i − p_i)²] (the curvature's diagonal; its off-diagonal part is near rank
  one for many attributes, which acceleration absorbs), T shrinking in stages;
Newton steps with the full H where that does not converge (levels that differ by orders of
  magnitude: then few attributes decide, and the curvature is far from diagonal).

The proofs are in docs/proofs/optimal.md, Theorem 9.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.sums import SumLaw, saddle_tilt, tilted_sum
from deniable.solvers.patterns.certificate import default_resolution
from deniable.solvers.problem import Problem

STAGES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0)
"""The widths T tried in turn, in standard deviations of z; 0 means one unit of the grid."""

LARGEST_NEWTON = 64
"""Attributes up to which a full curvature (k² vectors) is affordable."""

GOOD_ENOUGH = 5e-5
"""Newton steps take long; they are taken only while the gap exceeds this, in nats."""


@dataclass(frozen=True, eq=False)
class VoteFit:
    """The best vote found: real weights in grid units, its softness, and both bounds (nats)."""

    weights: FloatArray  # λ, (k,)
    threshold: float  # Σ λ_i p_i
    softness: float  # T >= 1, grid units
    log_height: float  # ln(e^E − 1) that makes every keep probability at least the requested one
    lower_bound: float
    lower_bound_weights: FloatArray
    upper_bound: float
    n_evaluations: int

    @property
    def gap(self) -> float:
        return self.upper_bound - self.lower_bound


@dataclass
class VotePoint:
    """A soft vote with its v_i = E_μ[Φ_T'(z) (Y_i − p_i)], and what it and its λ prove."""

    weights: FloatArray
    softness: float
    threshold: float
    objective: float  # ln E[Φ_T(z)] − ln λ·d
    lower_bound: float
    log_height: float
    upper_bound: float
    value: FloatArray  # v e^{−L}, shape (k,)
    log_factor: float  # L
    miss: FloatArray  # c d − v, on the scale of v
    relative_miss: float
    curvature: FloatArray  # H_ii
    full: Callable[[], FloatArray]


class VoteSearch:
    """Evaluates soft votes on a grid, and remembers the best bounds.

    Args:
        problem: the levels.
        resolution: standard deviation of z in grid units.
    """

    def __init__(self, problem: Problem, resolution: float) -> None:
        self.problem = problem
        self.resolution = resolution
        self.spread = np.sqrt(problem.keep_probability * problem.change_probability)
        self.n_evaluations = 0
        self.best_lower: tuple[float, FloatArray] = (-math.inf, problem.attribute_epsilon)
        self.best: VotePoint | None = None

    def scaled(self, weights: FloatArray) -> FloatArray:
        """Return the weights in grid units, none so large that its tilt would overflow."""
        deviation = float(np.linalg.norm(weights * self.spread))
        weights = weights * (self.resolution / deviation)
        return np.minimum(weights, 2.0**27 / len(weights))

    def softness(self, weights: FloatArray, stage: float) -> float:
        return max(stage * float(np.linalg.norm(weights * self.spread)), 1.0)

    def at(self, weights: FloatArray, softness: float) -> VotePoint:
        """Evaluate the smoothed dual, both bounds, the stationarity and the curvature."""
        problem = self.problem
        self.n_evaluations += 1
        keep, change, gain = (
            problem.keep_probability,
            problem.change_probability,
            problem.keep_excess,
        )
        n = np.floor(weights).astype(np.int64)
        threshold = math.fsum(weights * keep)
        tilt = saddle_tilt(problem.uniform_keep, weights, threshold)
        steps = tilted_sum(problem.uniform_keep, n, weights - n, tilt)
        law = SumLaw(steps, floor=math.floor(threshold - softness / 2))
        z = law.support - threshold
        tilted_back = np.exp(np.clip(-tilt * z, -740.0, 600.0))
        log_factor = steps.log_scale - tilt * threshold
        slope = np.clip(z / softness + 0.5, 0.0, 1.0) * tilted_back
        bend = np.where(np.abs(z) < softness / 2, tilted_back / softness, 0.0)
        smooth = np.where(
            z > softness / 2, z, np.clip(z + softness / 2, 0.0, softness) ** 2 / (2 * softness)
        )
        got = law.expectations(np.stack([slope, bend]))
        # E[h (Y_i − p_i)] as (1−p) E[h; kept] − p E[h; changed]: d_i may be tiny beside p_i.
        value = change * got.kept[0] - keep * got.changed[0]
        curvature = change**2 * got.kept[1] + keep**2 * got.changed[1]
        reward = float(weights @ gain)
        scale = float(weights @ value) / reward
        excess = float(np.maximum(z, 0.0) * tilted_back @ law.mass)
        missing = law.dropped * float((np.maximum(z, 0.0) * tilted_back).max(initial=0.0))
        if not (excess > 1e9 * missing and reward > 0.0):  # what matters was dropped: not usable
            return self._void(weights, softness, threshold)
        log_ratio = math.log(reward) - math.log(excess) - log_factor
        least = float((value / gain).min())
        log_height = -math.log(least) - log_factor if least > 0 else math.inf
        miss = scale * gain - value
        point = VotePoint(
            weights,
            softness,
            threshold,
            math.log(float(smooth * tilted_back @ law.mass)) + log_factor - math.log(reward),
            float(np.logaddexp(0.0, log_ratio)),
            log_height,
            float(np.logaddexp(0.0, log_height)),
            value,
            log_factor,
            miss,
            float(np.abs(miss / (scale * gain)).max()),
            np.maximum(curvature, 1e-300),
            lambda: law.pair_expectations(bend, change, -keep),
        )
        if point.lower_bound > self.best_lower[0]:
            self.best_lower = (point.lower_bound, weights)
        if self.best is None or point.upper_bound < self.best.upper_bound:
            self.best = point
        return point

    def _void(self, weights: FloatArray, softness: float, threshold: float) -> VotePoint:
        zero, infinite = np.zeros_like(weights), math.inf
        return VotePoint(
            weights,
            softness,
            threshold,
            infinite,
            -infinite,
            infinite,
            infinite,
            zero,
            0.0,
            zero,
            infinite,
            zero + 1.0,
            lambda: np.eye(len(weights)),
        )

    @property
    def gap(self) -> float:
        assert self.best is not None
        return self.best.upper_bound - self.best_lower[0]

    def accelerate(
        self, weights: FloatArray, stage: float, target: float, gap: float, steps: int
    ) -> tuple[FloatArray, bool]:
        """Run the accelerated fixed point at one T; returns the weights and whether it settled."""
        logs: list[FloatArray] = []
        moves: list[FloatArray] = []
        best_miss, worse = math.inf, 0
        weights = self.scaled(weights)
        kept = weights
        for _ in range(steps):
            point = self.at(weights, self.softness(weights, stage))
            if point.relative_miss < best_miss:
                best_miss, worse, kept = point.relative_miss, 0, weights
            else:
                worse += 1
            if point.relative_miss <= target or self.gap <= gap:
                return weights, True
            if worse >= 5:
                return kept, best_miss < 1e-6
            move = np.log(np.clip(1.0 + point.miss / (point.curvature * weights), 0.5, 2.0))
            logs.append(np.log(weights))
            moves.append(move)
            del logs[:-9], moves[:-9]
            new = logs[-1] + move
            if len(logs) > 1:
                d_log, d_move = np.diff(logs, axis=0).T, np.diff(moves, axis=0).T
                metric = np.sqrt(point.curvature) * weights
                mix = np.linalg.lstsq(d_move * metric[:, None], move * metric, rcond=1e-9)[0]
                new = new - (d_log + d_move) @ mix
            weights = self.scaled(np.exp(logs[-1] + np.clip(new - logs[-1], -0.7, 0.7)))
        return kept, best_miss < 1e-6

    def newton(self, weights: FloatArray, stage: float, gap: float, steps: int) -> FloatArray:
        """Run damped Newton steps on the hyperplane λ·d = const at one T."""
        gain = self.problem.keep_excess
        weights = self.scaled(weights)
        # T in proportion to λ·d makes the objective depend on the direction of λ only.
        unit = self.softness(weights, stage) / float(weights @ gain)
        point = self.at(weights, max(unit * float(weights @ gain), 1.0))
        for _ in range(steps):
            if self.gap <= gap:
                break
            direction = _newton_direction(point, gain)
            # The decrease of ln E[Φ] that the quadratic model promises, twice.
            promise = float(point.miss @ direction) / max(float(point.weights @ gain), 1e-300)
            if promise <= 0 or point.relative_miss < 1e-11:
                break
            size, better = 1.0, None
            for _ in range(10):
                new = np.clip(
                    point.weights + size * direction, 0.05 * point.weights, 20.0 * point.weights
                )
                new = self.scaled(new)
                trial = self.at(new, max(unit * float(new @ gain), 1.0))
                if trial.objective < point.objective or (
                    trial.objective <= point.objective + 1e-13
                    and trial.relative_miss < point.relative_miss
                ):
                    better = trial
                    break
                size *= 0.3
            if better is None:
                break
            settled = point.objective - better.objective < 1e-13
            point = better
            if settled:
                break
        return point.weights


def _newton_direction(point: VotePoint, gain: FloatArray) -> FloatArray:
    """Solve H x − μ d = miss, d·x = 0, scaled to a unit diagonal and slightly regularised."""
    full = point.full()
    # Attributes that nothing near the threshold depends on get a curvature that keeps steps finite.
    own = np.diag(full) * point.weights**2
    scale = point.weights / np.sqrt(np.maximum(own, 1e-24 * max(float(own.max()), 1e-250)))
    k = len(gain)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = full * np.outer(scale, scale) + 1e-11 * np.eye(k)
    side = gain * scale
    side /= np.linalg.norm(side)
    system[:k, k] = system[k, :k] = side
    right = np.append(point.miss * scale, 0.0)
    solved: FloatArray = np.linalg.lstsq(system, right, rcond=1e-15)[0][:k]
    return scale * solved


def fit_vote(
    problem: Problem,
    *,
    gap: float = 1e-7,
    resolution: float | None = None,
    start: FloatArray | None = None,
) -> VoteFit:
    """Fit one soft vote; stops when the two bounds are within `gap` (nats) or nothing improves.

    Args:
        problem: the levels, all above 0.
        gap: the distance of the bounds at which to stop early.
        resolution: standard deviation of z in grid units.
        start: weights to start from; ε_i otherwise (right to 1 % from k = 50 on).
    """
    k = problem.n_attributes
    search = VoteSearch(problem, resolution or default_resolution(k))
    weights = problem.attribute_epsilon if start is None else start
    # Many attributes: smooth enough as it is.
    weights, settled = search.accelerate(weights, 0.0, 1e-11, 0.0, 24)
    if not settled and search.gap > gap:
        weights = search.scaled(problem.attribute_epsilon if start is None else start)
        for stage in STAGES:
            last = stage == STAGES[-1]
            new, settled = search.accelerate(weights, stage, 1e-12 if last else 0.03, gap, 25)
            if not settled and not last:
                break
            weights = new
            if search.gap <= gap:
                break
        if search.gap > max(gap, GOOD_ENOUGH) and not settled and k <= LARGEST_NEWTON:
            for later in STAGES[STAGES.index(stage) :]:
                weights = search.newton(weights, later, max(gap, GOOD_ENOUGH), 8)
    best = search.best
    assert best is not None
    return VoteFit(
        best.weights,
        best.threshold,
        best.softness,
        best.log_height,
        search.best_lower[0],
        search.best_lower[1],
        best.upper_bound,
        search.n_evaluations,
    )
