"""The budget given, and how much each attribute matters: the most useful law of that record level.

Minimise F = Σ_i c_i/φ_i² over all laws of record level ε, φ_i = (p_i − r_i)/(1 − r_i): the variance
of an unbiased marginal of attribute i falls as 1/φ_i². (For the variance averaged over its cells
take c_i = (1 − r_i) r_i times the attribute's importance.) The keep probabilities of laws with
max f ≤ M min f, M = e^ε, form a convex set P, and F is convex on it. With a cap on ε_i the
attribute counts f_i(min(p_i, cap_i)) = max(f_i(p_i), f_i(cap_i)), convex as well: whatever lies
above its cap is brought down by an own response, which only lowers the other promises.

Oracle: max λ·p over P is attained by a vote 1 + (M − 1) 1[Σ λ_i Y_i > t] with t = λ·p, the value
itself (Neyman–Pearson, with the constant that normalises the law). Simplicial decomposition: keep
the laws found so far, minimise F over their mixtures (a small cone program), ask the oracle with
the multipliers λ of that program, and with others nearer to the best λ so far. For *any* λ ≥ 0 a
lower bound on F is

    Σ_i min_{0 < x ≤ cap_i} (cost_i/x² + λ_i x) − max_{p∈P} λ·(p − r),   cost_i = c_i (1 − r_i)²,

so the gap is known at every step. The proof is docs/proofs/optimal.md, Theorem 11.

Beyond `MAX_EXACT` attributes only levels are chosen, from the limit of many attributes. There the
record's level is K = Σ KL(p_i ‖ r_i), whose derivative by p_i is ε_i, and a correction that varies
slowly; so stationarity reads 2 cost_i/(p_i − r_i)³ = μ ε_i with one μ for all, and μ is chosen for

    ε ≈ ln(1 + e^K Σ ε_i d_i/(σ/√(2π) − σ² e^{σ²/2} Φ(−σ))),   σ² = Σ ε_i² p_i (1 − p_i),

the level of the vote λ_i = ε_i with a normal law for its sum. The caller then searches for a law at
multiples of these levels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import clarabel
import numpy as np
from scipy import sparse
from scipy.special import erfcx, xlog1py

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.halves import Halves
from deniable.laws.votes.mixture import VoteMixture
from deniable.solvers.problem import (
    MAX_LEVEL,
    Problem,
    SolverError,
    checked_problem,
    optional_limits,
)

MAX_EXACT = 20
"""Up to so many attributes the optimal law itself is found, and not only its levels."""

_SCALE = 2.0**40
"""The largest integer weight of a vote."""

_TOLERANCE, _MAX_VOTES = 1e-8, 400
"""The relative gap at which the search ends, and votes after which it is given up."""

_NEGLIGIBLE = 1e-12
"""Votes with a smaller part in the mixture are left out."""

_INSIDE = 0.3
"""How far from the λ of the best bound to that of the program votes are asked for, too: with the
program's alone it takes up to twice as many programs."""


@dataclass(frozen=True, eq=False)
class ImportanceSolution:
    """Levels that make the most of a budget, and up to `MAX_EXACT` attributes their law.

    Attributes:
        attribute_epsilon: ε_i in nats, shape (k,): of the law as drawn, rounded up; beyond
            `MAX_EXACT` attributes, levels that cost about the budget.
        law: its record level as drawn is at most the budget; None beyond `MAX_EXACT`, and where
            levels alone are wanted.
        objective: Σ c_i/φ_i² at these levels.
        lower_bound: what no law of this record level and these caps is below, not rounded; None
            beyond `MAX_EXACT`.
    """

    attribute_epsilon: FloatArray
    law: VoteMixture | None
    objective: float
    lower_bound: float | None

    @property
    def keep_probability(self) -> FloatArray | None:
        """p_i of the law, shape (k,), or None if there is none."""
        return None if self.law is None else self.law.moments().keep


def solve(
    n_categories: Sequence[int],
    epsilon: float,
    importance: Sequence[float],
    at_most: Sequence[float | None] | None = None,
    *,
    with_law: bool = True,
) -> ImportanceSolution:
    """Find the law of record level ε, or levels for one, that minimise Σ c_i/φ_i².

    Args:
        n_categories: a_i, shape (k,).
        epsilon: record level in nats, above 0 and at most `MAX_LEVEL`.
        importance: c_i > 0, shape (k,).
        at_most: for each attribute an upper bound on ε_i in nats, or None for none; shape (k,).
        with_law: whether the law is wanted; its levels alone, not rounded, take less time.

    Raises:
        InputError: if the lengths differ or a number is out of its range.
        SolverError: if the search does not settle.

    >>> solution = solve([2, 3, 5], 2.0, [1.0, 1.0, 2.0])
    >>> solution.attribute_epsilon.round(3).tolist(), round(solution.objective, 4)
    ([0.822, 0.822, 1.187], 38.2511)
    """
    k = len(n_categories)
    a = checked_problem(n_categories, [1.0] * k).n_categories
    weights = np.asarray(importance, dtype=np.float64)
    if weights.shape != (k,):
        raise InputError(f"importance: {weights.size} were given for {k} attributes")
    if not (np.all(np.isfinite(weights)) and np.all(weights > 0.0)):
        raise InputError("importance: every importance must be finite and above 0")
    if not 0.0 < epsilon <= MAX_LEVEL:
        raise InputError(f"epsilon: the record's level must lie above 0 and at most {MAX_LEVEL:g}")
    caps = _caps(k, at_most)
    r = 1.0 / a
    cost = weights * (1.0 - r) ** 2
    if k > MAX_EXACT:
        levels = _limit_levels(n_categories, epsilon, cost, caps)
        gain = checked_problem(n_categories, levels.tolist()).keep_excess
        return ImportanceSolution(levels, None, float((cost / gain**2).sum()), None)
    # ε as drawn is a few units in the last place above the law's own.
    height = epsilon * (1.0 - 1e-12)
    top = checked_problem(n_categories, np.minimum(caps, MAX_LEVEL).tolist()).keep_excess
    mixture, bound = _decomposition(a.astype(np.int64), height, cost, top)
    if not with_law:
        moments = mixture.moments()
        levels = np.minimum(moments.levels(a.astype(np.int64)), np.minimum(caps, epsilon))
        gain = np.minimum(moments.gain, top)
        return ImportanceSolution(levels, None, float((cost / gain**2).sum()), bound)
    height -= max(0.0, mixture.account.epsilon - epsilon) + mixture.drawing_slack
    law = _capped(mixture.at_height(height), caps)
    levels = law.account.attribute_epsilon
    gain = law.moments().gain
    return ImportanceSolution(levels, law, float((cost / gain**2).sum()), bound)


def _caps(k: int, at_most: Sequence[float | None] | None) -> FloatArray:
    """Return the caps, infinite for none, shape (k,)."""
    caps = optional_limits(at_most, k, "at_most")
    if not np.all(caps > 0.0):
        i = int(np.argmin(caps > 0.0))
        raise InputError(f"at_most[{i}]: a largest level must be above 0 nats, not {caps[i]:g}")
    return caps


def _decomposition(
    n_categories: IntArray, height: float, cost: FloatArray, top: FloatArray
) -> tuple[VoteMixture, float]:
    """Return the best mixture of votes of this height, and the lower bound on F."""
    r = 1.0 / n_categories
    oracle = _Oracle(r, math.expm1(height))
    # Votes have gains ≥ 0, and "i kept" a positive one of attribute i: so has their mixture.
    uniform = np.zeros(len(r))
    gains = [oracle.ask(direction, uniform) for direction in [np.sqrt(cost), *np.eye(len(r))]]
    best, best_bound = None, 0.0
    while len(gains) < _MAX_VOTES:
        columns = np.array(gains)
        mixture, slope = _best_mixture(columns, cost, top)
        gain = mixture @ columns
        objective = float((cost / np.minimum(gain, top) ** 2).sum())
        for direction in [slope] if best is None else [slope, best + _INSIDE * (slope - best)]:
            gains.append(oracle.ask(direction, gain))
            bound = _lower_bound(direction, cost, top, float(direction @ gains[-1]))
            if bound > best_bound:
                best, best_bound = direction, bound
        if objective - best_bound <= _TOLERANCE * objective:
            return oracle.law(n_categories, mixture), best_bound
    raise SolverError("importance: the search did not settle; ask for levels instead")


def _lower_bound(slope: FloatArray, cost: FloatArray, top: FloatArray, most: float) -> float:
    """Return Σ_i min_{0 < x ≤ top_i} (cost_i/x² + λ_i x) − max λ·gain; the minimum is at
    x³ = 2 cost_i/λ_i, or at the cap."""
    with np.errstate(divide="ignore"):
        x = np.minimum(np.cbrt(2.0 * cost / slope), top)
    return float((cost / x**2 + slope * x).sum()) - most


def _best_mixture(
    gains: FloatArray, cost: FloatArray, top: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Minimise Σ cost_i/x_i² over mixtures β, x ≤ β·gains, x ≤ top.

    In units of a first mixture's gains and cost: minimise w·t subject to x² t ≥ 1 (a power cone),
    Σ β = 1, β ≥ 0. The multipliers of x ≤ β·gains are λ.

    Returns:
        β, shape (C,), and λ, shape (k,).
    """
    n, k = gains.shape
    unit = np.minimum(gains.max(axis=0), top)
    weight = cost / unit**2
    scale = float(weight.sum())
    columns = (gains / unit).T
    x, t = slice(n, n + k), slice(n + k, n + 2 * k)
    rows = np.zeros((1 + 2 * k + n + 3 * k, n + 2 * k))
    rows[0, :n] = 1.0
    mixed, capped, positive = rows[1 : 1 + k], rows[1 + k : 1 + 2 * k], rows[1 + 2 * k :]
    mixed[:, :n], mixed[:, x] = -columns, np.eye(k)
    capped[:, x] = np.eye(k)
    positive[:n, :n] = -np.eye(n)
    positive[n::3, x], positive[n + 1 :: 3, t] = -np.eye(k), -np.eye(k)
    right = np.concatenate(
        [[1.0], np.zeros(k), top / unit, np.zeros(n), np.tile([0.0, 0.0, 1.0], k)]
    )
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * k + n)]
    cones += [clarabel.PowerConeT(2.0 / 3.0)] * k
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-11
    linear = np.concatenate([np.zeros(n + k), weight / scale])
    square = sparse.csc_matrix((n + 2 * k, n + 2 * k))
    matrix = sparse.csc_matrix(rows)
    answer = clarabel.DefaultSolver(square, linear, matrix, right, cones, settings).solve()
    mixture = np.maximum(np.array(answer.x[:n]), 0.0)
    slope = np.maximum(np.array(answer.z[1 : 1 + k]), 0.0) * scale / unit
    if not (np.all(np.isfinite(mixture)) and mixture.any() and slope.any()):
        raise SolverError("importance: a cone program was not solved; ask for levels instead")
    return mixture / mixture.sum(), slope


class _Oracle:
    """Votes of one height that say most about λ, and their laws' gains p − r."""

    def __init__(self, uniform_keep: FloatArray, excess: float) -> None:
        self._keep, self._excess = uniform_keep, excess
        self._halves = Halves(uniform_keep)
        self._votes: list[tuple[IntArray, int, float]] = []

    def ask(self, direction: FloatArray, known: FloatArray) -> FloatArray:
        """Return the gains of the law that maximises direction·p, shape (k,).

        Args:
            direction: λ.
            known: gains of a law of this height, which the search starts from.
        """
        weights = np.rint(direction * (_SCALE / float(direction.max()))).astype(np.int64)
        r = self._keep
        value = float(weights @ (r + known)) * (1.0 - 1e-14)  # t may be no higher than the best
        best: tuple[float, int, float, FloatArray] | None = None
        for _ in range(60):  # Dinkelbach: t rises to the value of the best vote, and stops there
            threshold = math.floor(value) + 1
            won, kept, changed = self._halves.vote(weights, threshold)
            normalizer = 1.0 + self._excess * won
            gain = self._excess * ((1.0 - r) * kept - r * changed) / normalizer
            new = float(weights @ (r + gain))
            if best is not None and new <= best[0] * (1 + 1e-15):
                break
            best, value = (new, threshold, normalizer, gain), new
        assert best is not None
        self._votes.append((weights, best[1], best[2]))
        return best[3]

    def law(self, n_categories: IntArray, mixture: FloatArray) -> VoteMixture:
        """Return Σ_c β_c (1 + (M−1) 1_{D_c})/Z_c as one law: m_c ∝ β_c/Z_c, Σ m_c = M − 1."""
        used = np.flatnonzero(mixture > _NEGLIGIBLE)
        parts = np.array([mixture[j] / self._votes[j][2] for j in used])
        return VoteMixture(
            tuple(n_categories.tolist()),
            np.array([self._votes[j][0] for j in used]),
            np.array([self._votes[j][1] for j in used], dtype=np.int64),
            self._excess * parts / parts.sum(),
            np.ones(len(n_categories)),
        )


def _capped(law: VoteMixture, caps: FloatArray) -> VoteMixture:
    """Bring levels above their caps down by own responses."""
    promised = law.account
    over = promised.attribute_epsilon > caps
    if not over.any():
        return law
    margin = 2.0 * (promised.attribute_epsilon - promised.attribute_epsilon_floor)
    target = np.where(over, np.maximum(caps - margin, 0.0), 1.0)
    target_gain = checked_problem(law.n_categories, target.tolist()).keep_excess
    retention = np.where(over, target_gain / law.moments().gain, 1.0)
    return replace(law, retention=np.minimum(retention, 1.0))


def _limit_levels(
    n_categories: Sequence[int], epsilon: float, cost: FloatArray, caps: FloatArray
) -> FloatArray:
    """Return the levels with ε_i gain_i³/cost_i = const or at their caps, at about this budget.

    Two nested bisections of monotone functions: over ln const, and within it over all ln ε_i.
    """
    a = np.asarray(n_categories, dtype=np.float64)
    largest = np.minimum(caps, epsilon)  # no attribute's level is above the record's

    def at(log_constant: float) -> FloatArray:
        low, high = np.full(len(a), math.log(1e-12)), np.log(largest)
        for _ in range(60):
            middle = 0.5 * (low + high)
            lift = np.expm1(np.exp(middle))
            gain = (a - 1.0) * lift / (a * (lift + a))
            short = middle + 3.0 * np.log(gain) - np.log(cost) < log_constant
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.asarray(np.minimum(np.exp(0.5 * (low + high)), largest))

    # Where one level is the record's, the others rise until the limit is above it.
    low, high = -120.0, 120.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high)
            if limit_epsilon(checked_problem(n_categories, at(middle).tolist())) <= epsilon
            else (low, middle)
        )
    return at(low)


def limit_epsilon(problem: Problem) -> float:
    """Return the optimum's level in the limit of many attributes, in nats; see the heading.

    At large levels the limit is far away: what is returned lies between the largest level and the
    sum of all, like every optimum.

    >>> limit_epsilon(checked_problem([5] * 20, [40.0] * 20)) >= 40.0
    True
    """
    a, level = problem.n_categories, problem.attribute_epsilon
    kept = problem.keep_probability * np.log1p(problem.keep_excess * a)
    # Zero where nothing changes any more.
    changed = xlog1py(
        problem.change_probability, np.maximum(-problem.keep_excess * a / (a - 1.0), -1.0)
    )
    entropy = math.fsum((kept + changed).tolist())
    variance = float(level**2 @ (problem.keep_probability * problem.change_probability))
    deviation = math.sqrt(variance)
    # e^{σ²/2} Φ(−σ) = erfcx(σ/√2)/2
    tail = deviation / math.sqrt(2 * math.pi) - 0.5 * variance * float(erfcx(deviation / 2**0.5))
    largest, total = float(level.max()), math.fsum(level.tolist())
    if not tail > 0.0:  # nothing changes: all levels together are needed for that
        return total
    total_limit = float(
        np.logaddexp(0.0, entropy + math.log(float(level @ problem.keep_excess) / tail))
    )
    return min(max(total_limit, largest), total)
