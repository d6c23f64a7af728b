"""The budget given, and how much each attribute matters: the best levels of that record level.

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

Beyond `MAX_PATTERNS` the levels are those of the limit of many attributes. There the record's level
is K = Σ KL(p_i ‖ r_i), whose derivative by p_i is ε_i, and a correction that varies slowly; so
stationarity reads 2 cost_i/(p_i − r_i)³ = μ ε_i with one μ for all, and μ is chosen for

    ε ≈ ln(1 + e^K Σ ε_i d_i/(σ/√(2π) − σ² e^{σ²/2} Φ(−σ))),   σ² = Σ ε_i² p_i (1 − p_i),

the level of the vote λ_i = ε_i with a normal law for its sum. The caller then searches for a law at
multiples of these levels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse
from scipy.special import erfcx, xlog1py

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import (
    MAX_LEVEL,
    Problem,
    SolverError,
    checked_problem,
    optional_limits,
)
from deniable.solvers.patterns.columns import INSIDE
from deniable.solvers.patterns.orbits import Orbits, orbits

MAX_PATTERNS = 1 << 20
"""So many patterns, up to exchange of attributes that are alike, are summed over: at small totals
the limit's levels add up to 1 to 3 % less still at 20 different attributes."""

_TOLERANCE = 1e-6
"""The relative gap at which the search ends."""


@dataclass(frozen=True, eq=False)
class ImportanceSolution:
    """Levels that make the most of a budget.

    Attributes:
        attribute_epsilon: ε_i in nats, shape (k,); their law costs the budget up to `MAX_PATTERNS`
            patterns, and about the budget beyond.
        objective: Σ c_i/φ_i² at these levels.
        lower_bound: what no law of this record level and these caps is below, not rounded; None
            beyond `MAX_PATTERNS`.
    """

    attribute_epsilon: FloatArray
    objective: float
    lower_bound: float | None


def solve(
    n_categories: Sequence[int],
    epsilon: float,
    importance: Sequence[float],
    at_most: Sequence[float | None] | None = None,
) -> ImportanceSolution:
    """Find the levels of a law of record level ε that minimise Σ c_i/φ_i².

    ``n_categories``: a_i, shape (k,). ``epsilon``: record level in nats, above 0 and at most
    `MAX_LEVEL`. ``importance``: c_i > 0, shape (k,). ``at_most``: for each attribute an upper bound
    on ε_i in nats, or None for none; shape (k,).

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
    caps = np.minimum(caps, epsilon)  # no attribute's level is above the record's
    grouped = _alike(n_categories, cost, caps)
    bound = None
    if grouped is None:
        levels = _limit_levels(n_categories, epsilon, cost, caps)
        gain = checked_problem(n_categories, levels.tolist()).keep_excess
    else:
        _, first = np.unique(grouped.group_of, return_index=True)
        top = checked_problem(n_categories, caps.tolist()).keep_excess
        best, bound = _decomposition(grouped, epsilon, cost[first] * grouped.size, top[first])
        with np.errstate(divide="ignore"):  # where nothing changes any more
            reached = np.log1p(grouped.groups.n_categories * best[0] / best[1])
        levels = np.minimum(reached, caps[first])[grouped.group_of]
        gain = np.minimum(best[0], top[first])[grouped.group_of]
    return ImportanceSolution(levels, float((cost / gain**2).sum()), bound)


def _alike(n_categories: Sequence[int], cost: FloatArray, caps: FloatArray) -> Orbits | None:
    """Return the patterns up to exchange of attributes that are alike; None if they are many."""
    kinds = list(zip(n_categories, cost.tolist(), caps.tolist(), strict=True))
    if math.prod(kinds.count(kind) + 1 for kind in set(kinds)) > MAX_PATTERNS:
        return None
    return orbits(checked_problem(n_categories, [1.0] * len(kinds)), kinds)


def _caps(k: int, at_most: Sequence[float | None] | None) -> FloatArray:
    """Return the caps, infinite for none, shape (k,)."""
    caps = optional_limits(at_most, k, "at_most")
    if not np.all(caps > 0.0):
        i = int(np.argmin(caps > 0.0))
        raise InputError(f"at_most[{i}]: a largest level must be above 0 nats, not {caps[i]:g}")
    return caps


def _decomposition(
    grouped: Orbits, height: float, cost: FloatArray, top: FloatArray
) -> tuple[FloatArray, float]:
    """Return the best mixture of votes of this height, and the lower bound on F.

    By groups of attributes that are alike: the cost is of all in the group, shape (m,). Of the
    mixture gains p − r and change probabilities are returned, shape (2, m).
    """
    oracle = _Oracle(grouped, math.expm1(height))
    # Votes have gains ≥ 0, and "i kept" a positive one of attribute i: so has their mixture.
    uniform = np.zeros(len(cost))
    votes = [oracle.ask(direction, uniform) for direction in [np.sqrt(cost), *np.eye(len(cost))]]
    best, best_bound = None, 0.0
    while len(votes) < 400:  # a tenth of that is usual
        columns = np.array(votes)
        mixture, slope = _best_mixture(columns[:, 0], cost, top)
        gain = mixture @ columns[:, 0]
        objective = float((cost / np.minimum(gain, top) ** 2).sum())
        for direction in [slope] if best is None else [slope, best + INSIDE * (slope - best)]:
            votes.append(oracle.ask(direction, gain))
            bound = _lower_bound(direction, cost, top, float(direction @ votes[-1][0]))
            if bound > best_bound:
                best, best_bound = direction, bound
        if objective - best_bound <= _TOLERANCE * objective:
            return np.tensordot(mixture, columns, axes=1), best_bound
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

    Β, shape (C,), and λ, shape (k,).
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
    """Votes of one height that say most about λ, and what their laws tell."""

    def __init__(self, grouped: Orbits, excess: float) -> None:
        self._orbits, self._excess = grouped, excess

    def ask(self, direction: FloatArray, known: FloatArray) -> FloatArray:
        """Return the gains of the law that maximises direction·p, and what it changes, (2, m)."""
        r, chance = self._orbits.groups.uniform_keep, self._orbits.chance
        kept_sum = self._orbits.kept_sum(direction)
        value = float(direction @ (r + known)) * (1.0 - 1e-14)  # t is no higher than the best
        best, told = -math.inf, np.empty((2, len(r)))
        for _ in range(60):  # Dinkelbach: t rises to the value of the best vote, and stops there
            kept, changed = self._orbits.fates(np.where(kept_sum > value, chance, 0.0))
            normalizer = 1.0 + self._excess * float(kept[0] + changed[0])
            gain = self._excess * ((1.0 - r) * kept - r * changed) / normalizer
            new = float(direction @ (r + gain))
            if new <= best * (1 + 1e-15):
                break
            best = value = new
            told = np.array([gain, (1.0 - r + self._excess * changed) / normalizer])
        return told


def _limit_levels(
    n_categories: Sequence[int], epsilon: float, cost: FloatArray, caps: FloatArray
) -> FloatArray:
    """Return the levels with ε_i gain_i³/cost_i = const or at their caps, at about this budget.

    Two nested bisections of monotone functions: over ln const, and within it over all ln ε_i.
    """
    a = np.asarray(n_categories, dtype=np.float64)

    def at(log_constant: float) -> FloatArray:
        low, high = np.full(len(a), math.log(1e-12)), np.log(caps)
        for _ in range(60):
            middle = 0.5 * (low + high)
            lift = np.expm1(np.exp(middle))
            gain = (a - 1.0) * lift / (a * (lift + a))
            short = middle + 3.0 * np.log(gain) - np.log(cost) < log_constant
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.asarray(np.minimum(np.exp(0.5 * (low + high)), caps))

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
