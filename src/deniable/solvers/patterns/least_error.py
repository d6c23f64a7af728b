"""The law of a record level with the least error of shares and of tables of two attributes.

For one row under uniform shares, with v_i = (a_i − 1)/a_i², the mean variances of a cell are

    shares = mean_i v_i/φ_i²,
    pairs = mean_{i<j} (v_i v_j/φ_ij² + v_i/(a_j² φ_i²) + v_j/(a_i² φ_j²)),

means by importance, of a pair by the product. Minimise J = (1 − θ) log shares + θ log pairs over
densities f of scores (`scores.py`) under max f ≤ e^ε min f and caps on ε given the rest.

Attenuations are linear in f. Every round solves a convex program for u = f/f₀ within a trust
region, f₀ the density of the round before: tangents in place of the logarithms, 1/φ_i² of
attributes as it is, 1/φ_ij² by its quadratic expansion. A cap that is a multiple of the own level
moves with f: its linearization is used, with a penalised slack, as f₀ may exceed it. Of the limits
only those are rows of the program that f₀ comes near.

Up to `MOST_PATTERNS` kinds of patterns the scores distinguish all of them. Beyond, costs follow
powers of the levels of independent responses at a fixed total, so that they do not depend on ε, and
the best power is taken. Up to `_MOST_COUNTED` attributes scores also contain the number of changed
attributes.
"""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import clarabel
import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray, IntArray
from deniable.proofs.problem import MAX_LEVEL, checked_problem, optional_limits
from deniable.proofs.scores import Scores, all_patterns

DEFAULT_PAIRS = 0.2
"""θ: how much tables of two count against shares."""

MOST_PATTERNS = 1500
"""Kinds of patterns up to which scores tell all apart: ten different attributes have 1,024."""

LEAST_MULTIPLE = 1 + 1e-6
"""Caps of a smaller multiple of the own level leave independent responses only."""

_MOST_COUNTED, _OF_COUNT = 30, 4
"""Attributes up to which scores contain the number of changes, and, per attribute, the sum of what
costs have above the least one."""

_COSTS = 10
"""Sum of the costs beyond, per attribute."""

_REFERENCE = 0.2
"""Nats per attribute of the total of the independent responses that costs are made from."""

_MOST_GROUPS = 30
"""Kinds of attributes up to which every pair of kinds is a term of its own."""

_ROUNDS = 30
_SETTLED = 1e-4
"""Change of J in a round below which the search ends."""

_REACH, _NEAR = 0.3, 0.5
"""Part of ε by which a log density may move in a round, and part of a limit within which a limit is
a row of the program."""

_RISE = 0.01
"""Of J from a law that keeps its limits, beyond which a round is repeated in half the region."""

_PENALTY = 30.0
"""Price of a slack in units of the objective."""

_MARGIN = 1e-5
"""Part of a limit in nats that the program leaves for what linearization misses."""

_TOLERANCE = 1e-7
"""Of the solver."""

_NEGLIGIBLE_CURVE = 1e-3
"""Part of the largest direction of the curvature of pairs below which a direction is left out."""

_MOST_WHOLE = 200
"""Scores up to which none share a density."""

_NEGLIGIBLE = 1e-9
"""Measure of scores at either end, times e^ε, that share one density."""


@dataclass(frozen=True, eq=False)
class LeastError:
    """A law and its errors.

    Attributes:
        costs: of the attributes, shape (k,).
        densities: by score, shape (Σ costs + 1,); those of scores without outputs are arbitrary.
        levels: own levels in nats, shape (k,).
        caps: on ε given the rest in nats, infinite for none, shape (k,).
        shares, pairs: mean variance of a cell of an attribute, and of two, for one row.
        exhaustive: whether the search was over all patterns.
        program: with the density as it was found, for the certificate.
    """

    costs: tuple[int, ...]
    densities: FloatArray
    levels: FloatArray
    caps: FloatArray
    shares: float
    pairs: float
    exhaustive: bool
    program: "Program"
    density: FloatArray

    @property
    def objective(self) -> float:
        """J."""
        return self.program.value(self.density)


@dataclass(frozen=True, eq=False)
class Task:
    """Attributes in kinds, and limits.

    Attributes:
        n_categories: a of every kind, shape (m,).
        members: attributes of every kind, shape (m,).
        epsilon: of the record, in nats.
        theta: weight of pairs, 0 to 1.
        importance: of an attribute of every kind, shape (m,).
        multiple: cap on ε given the rest as a multiple of the own level; infinite for none.
        limits: caps in nats, infinite for none, shape (m,); the smaller of the two holds.
        at_most: largest own levels in nats, infinite for none, shape (m,).
    """

    n_categories: FloatArray
    members: FloatArray
    epsilon: float
    theta: float
    importance: FloatArray
    multiple: float
    limits: FloatArray
    at_most: FloatArray

    @property
    def variance(self) -> FloatArray:
        """v = (a − 1)/a², shape (m,)."""
        return (self.n_categories - 1) / self.n_categories**2


def solve(
    n_categories: Sequence[int],
    epsilon: float,
    *,
    pairs: float = DEFAULT_PAIRS,
    importance: Sequence[float] | None = None,
    multiple: float = 2.0,
    limits: Sequence[float | None] | None = None,
    at_most: Sequence[float | None] | None = None,
) -> LeastError | None:
    """Return the law of the least error found; None if the limits leave room for independent
    responses only, or no law was found that keeps them.

    `importance`, `limits` and `at_most` have shape (k,); see `Task`.

    >>> found = solve([2, 3, 5], 2.0)
    >>> found.levels.round(2).tolist(), round(found.objective, 3)
    ([0.76, 0.92, 1.01], 0.956)
    """
    k = checked_problem(n_categories, [1.0] * len(n_categories)).n_attributes
    if not 0 < epsilon <= MAX_LEVEL:
        raise InputError(f"epsilon: {epsilon:g} is not in (0, {MAX_LEVEL:g}] nats")
    if not 0 <= pairs <= 1:
        raise InputError(f"pairs: the weight of pairs {pairs:g} is not in [0, 1]")
    counted = np.ones(k) if importance is None else np.asarray(importance, dtype=np.float64)
    capped = optional_limits(limits, k, "limits")
    most = optional_limits(at_most, k, "at_most")
    if multiple < LEAST_MULTIPLE or capped.sum() <= epsilon:
        return None
    keys = list(zip(n_categories, counted.tolist(), capped.tolist(), most.tolist(), strict=True))
    kinds = sorted(set(keys))
    columns = [np.array([kind[j] for kind in kinds], dtype=np.float64) for j in range(4)]
    members = [keys.count(kind) for kind in kinds]
    task = Task(
        columns[0],
        np.array(members, dtype=np.float64),
        epsilon,
        pairs if k > 1 else 0.0,
        columns[1],
        multiple,
        columns[2],
        columns[3],
    )
    place = [kinds.index(key) for key in keys]
    best: tuple[float, Program, FloatArray] | None = None
    exhaustive = math.prod(n + 1 for n in members) <= MOST_PATTERNS
    sizes = [int(a) for a in task.n_categories]
    levels = independent_levels(task, _REFERENCE * k)
    if exhaustive:
        candidates = [all_patterns(sizes, members)]
    else:
        costs = _costs(levels, task.members)
        candidates = [Scores(tuple(sizes), tuple(members), each) for each in costs]
    for scores in candidates:
        program = Program(task, scores)
        density = program.solve(program.start(levels))
        if density is None:
            continue
        value = program.value(density)
        if best is None or value < best[0]:
            best = value, program, density
    if best is None:
        return None
    _, program, density = best
    # To nine digits, so that the last bits of sums do not change the law.
    grid = epsilon * 2.0**-30
    density = np.exp(np.round(np.log(density / density.min()) / grid) * grid)
    density = density / (program.measure @ density)
    shares, tables = program.errors(density)
    scores = program.scores
    return LeastError(
        tuple(scores.costs[i] for i in place),
        program.by_score(density),
        program.levels(density)[place],
        program.caps(density)[place],
        shares,
        tables,
        exhaustive,
        program,
        density,
    )


def least_under_caps(found: LeastError) -> FloatArray:
    """Return the densities, by score, of the least (1 − θ) s/s₀ + θ p/p₀ under a law's caps as
    numbers, s₀ and p₀ its own mean variances."""
    program, f = copy(found.program), found.density
    program.task = replace(program.task, multiple=math.inf, limits=program.caps(f))
    first, second = program.prices(found.shares, found.pairs)
    last = 1.0
    for _ in range(_ROUNDS):
        new = program.step(f, _REACH, (first, second))
        if new is None or not program.positive(new):
            break
        shares, pairs = program.errors(new)
        value, f = first * shares + second * pairs, new
        if abs(last - value) < _SETTLED / 100:
            break
        last = value
    return program.by_score(f)


def independent_levels(task: Task, epsilon: float) -> FloatArray:
    """Return about the levels of independent responses of least J that add up to ε, shape (m,)."""
    a, n, v = task.n_categories, task.members, task.variance
    counted = n * task.importance / (n @ task.importance)
    most = np.minimum(task.at_most, task.limits)
    level = np.minimum(np.full(len(a), epsilon / n.sum()), most)
    for _ in range(60):
        lift = np.expm1(level)
        phi = lift / (lift + a)
        square = v / phi**2
        pairs = counted * square * (counted @ (square + 1 / a**2)) + counted / a**2 * (
            counted @ square
        )
        gain = (1 - task.theta) * counted * square / (counted @ square)
        gain = gain + task.theta * pairs / pairs.sum()
        # The derivative of J by a level, of one attribute: about level^−3, and e^−level beyond.
        slope = gain / n * a * (lift + 1) / (lift * (lift + a))
        level = np.minimum(level * (slope / slope.mean()) ** (1 / (3 + level)), most)
        free = level < most
        rest = epsilon - n[~free] @ level[~free]
        level[free] *= max(rest, 0.0) / max(n[free] @ level[free], 1e-300)
        level = np.maximum(np.minimum(level, most), 1e-9 * epsilon)
    found: FloatArray = level
    return found


def independent(
    n_categories: Sequence[int],
    epsilon: float,
    pairs: float,
    importance: Sequence[float],
    limits: Sequence[float | None] | None,
    at_most: Sequence[float | None] | None,
) -> FloatArray:
    """Return levels of independent responses that add up to at most ε, shape (k,); see `solve`."""
    k = len(n_categories)
    task = Task(
        np.asarray(n_categories, dtype=np.float64),
        np.ones(k),
        epsilon,
        pairs,
        np.asarray(importance, dtype=np.float64),
        1.0,
        optional_limits(limits, k, "limits"),
        optional_limits(at_most, k, "at_most"),
    )
    level = independent_levels(task, epsilon)
    return level * min(1.0, epsilon * (1 - 1e-12) / math.fsum(level.tolist()))


def _costs(levels: FloatArray, members: FloatArray) -> list[tuple[int, ...]]:
    """Return costs of an attribute of every kind, by two powers of levels, shape (m,)."""
    k, costs = int(members.sum()), []
    counted = k <= _MOST_COUNTED
    total = (_OF_COUNT if counted else _COSTS) * k
    for power in (0.25 if counted else 0.75, 1.0):
        ratio, least = levels**power, 0
        if counted:  # differences add up to less, so that no two numbers of changes share a score
            ratio, least = ratio - ratio.min(), total + k
        part = ratio / max(float(ratio @ members), 1e-300) * total
        costs.append(tuple(np.maximum(1, np.round(least + part)).astype(int).tolist()))
    return costs


class Weights(NamedTuple):
    """Coefficients of the mean variances.

    Attributes:
        single, own: of 1/φ² of the kinds in shares and in pairs, shape (m,).
        double: of 1/φ² of pairs of kinds in pairs, shape (pairs,).
        pairs: the pairs of kinds.
        exact: whether every pair of kinds has its own term.
    """

    single: FloatArray
    own: FloatArray
    double: FloatArray
    pairs: list[tuple[int, int]]
    exact: bool


def weights(task: Task, order: Sequence[float]) -> Weights:
    """Return the coefficients; many kinds in groups along `order`, shape (m,), for their pairs."""
    a, n, counted, v = task.n_categories, task.members, task.importance, task.variance
    m, total = len(a), n @ counted
    single = n * counted * v / total
    if not task.theta:
        return Weights(single, np.zeros(m), np.zeros(0), [], True)
    sums = (total**2 - n @ counted**2) / 2
    # Of one attribute the partners are all others.
    partners = (n * counted) @ (1 / a**2) - counted / a**2
    own = n * counted * v * partners / sums
    groups = np.array_split(np.lexsort((a, np.asarray(order))), min(m, _MOST_GROUPS))
    pairs, double = [], []
    heavy, light = n * counted * v, n * (counted * v) ** 2
    for s, first in enumerate(groups):
        for t, second in enumerate(groups[: s + 1]):
            share = heavy[first].sum() * heavy[second].sum()
            if s == t:
                share = (share - light[first].sum()) / 2
            if s == t and len(first) > 1:
                pair = int(first[len(first) // 2]), int(first[len(first) // 2 - 1])
            else:
                pair = int(first[len(first) // 2]), int(second[len(second) // 2])
            if pair[0] != pair[1] or n[pair[0]] > 1:
                pairs.append(pair)
                double.append(share / sums)
    return Weights(single, own, np.array(double), pairs, m <= _MOST_GROUPS)


class Program:
    """The search for the least J over densities of given scores.

    Scores at both ends whose measure is negligible share one density: a *cell* is a score, or all
    at an end. Densities have the shape (n,) of the cells.
    """

    def __init__(self, task: Task, scores: Scores) -> None:
        self.task, self.scores = task, scores
        measure = (scores.measure / scores.scale).astype(np.float64)
        slight = _NEGLIGIBLE * math.exp(-min(task.epsilon, MAX_LEVEL))
        low, high = 0, len(measure) - 1
        if len(measure) > _MOST_WHOLE:
            low += int(np.searchsorted(np.cumsum(measure), slight))
            high -= int(np.searchsorted(np.cumsum(measure[::-1]), slight))
        self.merged: IntArray = np.clip(np.arange(len(measure)), low, high) - low
        self._scores: IntArray = scores.values[low : high + 1]
        self.measure = self._cells(measure[None])[0]
        self.weights = weights(task, scores.costs)
        self.single = self._cells((scores.single / scores.scale).astype(np.float64))
        changed = scores.measure - scores.kept
        self.changed = self._cells((changed / scores.scale).astype(np.float64))
        double = scores.double(self.weights.pairs)
        self.double = self._cells((double / scores.scale).astype(np.float64))
        self.neighbours = []
        for kept, gone in scores.neighbours:
            both = np.unique(np.stack([self.merged[kept], self.merged[gone]]), axis=1)
            both = both[:, both[0] != both[1]]
            self.neighbours.append((both[0], both[1]))

    def _cells(self, rows: FloatArray) -> FloatArray:
        """Add up rows over scores to rows over cells."""
        first = np.flatnonzero(np.diff(self.merged, prepend=-1))
        added: FloatArray = np.add.reduceat(rows, first, axis=1)
        return added

    def by_score(self, density: FloatArray) -> FloatArray:
        """Return densities of all numbers up to the largest score."""
        values = self.scores.values
        densities: FloatArray = np.interp(np.arange(values[-1] + 1), values, density[self.merged])
        return densities

    def errors(self, density: FloatArray) -> tuple[float, float]:
        """Return the mean variances of shares and of pairs."""
        single, double = self.single @ density, self.double @ density
        w = self.weights
        return (
            float((w.single / single**2).sum()),
            float((w.own / single**2).sum() + (w.double / double**2).sum()),
        )

    def value(self, density: FloatArray) -> float:
        """Return J."""
        shares, pairs = self.errors(density)
        theta = self.task.theta
        return (1 - theta) * math.log(shares) + (theta * math.log(pairs) if theta else 0.0)

    def prices(self, shares: float, pairs: float) -> tuple[float, float]:
        """Return the derivatives of J by the two mean variances."""
        theta = self.task.theta
        return (1 - theta) / shares, theta / pairs if theta else 0.0

    def levels(self, density: FloatArray) -> FloatArray:
        """Return the own level of an attribute of every kind in nats, shape (m,)."""
        return self._levels(self.single @ density, self.changed @ density)

    def _levels(self, phi: FloatArray, changed: FloatArray) -> FloatArray:
        # (1 − φ) (a − 1)/a is the probability of a change; as a sum it loses no digits near 0.
        a = self.task.n_categories[:, None] if phi.ndim > 1 else self.task.n_categories
        levels: FloatArray = np.log1p((a - 1) * phi / np.maximum(changed, 1e-300))
        return levels

    def caps(self, density: FloatArray) -> FloatArray:
        """Return the caps on ε given the rest in nats, shape (m,)."""
        return np.minimum(self.task.multiple * self.levels(density), self.task.limits)

    def given_rest(self, density: FloatArray) -> FloatArray:
        """Return ε given the rest of an attribute of every kind in nats, shape (m,)."""
        log = np.log(density)
        return np.array([np.abs(log[x] - log[y]).max(initial=0.0) for x, y in self.neighbours])

    def positive(self, density: FloatArray) -> bool:
        """Whether all attenuations are above 0."""
        return bool((self.single @ density > 0).all() and (self.double @ density > 0).all())

    def holds(self, density: FloatArray) -> bool:
        """Whether the density keeps ε, the caps and the largest levels."""
        return (
            math.log(density.max() / density.min()) <= self.task.epsilon * (1 + 1e-9)
            and bool((self.given_rest(density) <= self.caps(density)).all())
            and bool((self.levels(density) <= self.task.at_most).all())
        )

    def start(self, levels: FloatArray) -> FloatArray:
        """Return the best of some densities that fall between two bends of the mean sum of powers
        of `levels`, shape (m,), over changed attributes."""
        members = self.task.members[:, None]
        depths = [
            (members * levels[:, None] ** power * self.changed).sum(axis=0) / self.measure
            for power in (0.25, 0.75, 1.0)
        ]
        falls = []
        for depth in depths:
            mean = self.measure @ depth
            end = mean + 2 * math.sqrt(max(self.measure @ depth**2 - mean**2, 0.0))
            for bend in np.linspace(0.0, min(end, depth.max()), 24)[1:]:
                widths = np.geomspace(0.05, 1.0, 16)[:, None] * bend
                falls.append(np.clip((bend - depth) / widths, 0.0, 1.0))
        densities = np.exp(self.task.epsilon * (np.concatenate(falls).T - 1.0))
        densities /= self.measure @ densities
        start: FloatArray = densities[:, int(np.argmin(self._ratings(densities)))]
        return start

    def _ratings(self, densities: FloatArray) -> FloatArray:
        """Return J of densities, shape (n, N), with a penalty for what exceeds a limit."""
        task, w = self.task, self.weights
        single, double = self.single @ densities, self.double @ densities
        good = (single > 0).all(axis=0) & (double > 0).all(axis=0)
        single, double = np.maximum(single, 1e-100), np.maximum(double, 1e-100)
        value = (1 - task.theta) * np.log(w.single @ single**-2.0)
        if task.theta:
            value = value + task.theta * np.log(w.own @ single**-2.0 + w.double @ double**-2.0)
        levels = self._levels(single, self.changed @ densities)
        caps = np.minimum(task.multiple * levels, task.limits[:, None])
        log = np.log(densities)
        rest = np.array(
            [np.abs(log[x] - log[y]).max(axis=0, initial=0.0) for x, y in self.neighbours]
        )
        over = np.maximum(rest - caps, 0.0) + np.maximum(levels - task.at_most[:, None], 0.0)
        ratings: FloatArray = np.where(good, value + _PENALTY * over.sum(axis=0), np.inf)
        return ratings

    def solve(self, start: FloatArray) -> FloatArray | None:
        """Return the best density found that keeps all limits; None if there is none."""
        f, reach, last = start, _REACH, self.value(start)
        held = self.holds(f)
        best, least = (f, last) if held else (None, math.inf)
        for done in range(_ROUNDS):
            new = self.step(f, reach)
            if new is None or not self.positive(new) or (held and self.value(new) > last + _RISE):
                reach /= 2
                continue
            value, holds = self.value(new), self.holds(new)
            if holds and value < least:
                best, least = new, value
            if holds and abs(last - value) < _SETTLED:
                break
            f, last, held = new, value, holds
            if done > 8:
                reach *= 0.8
        return best

    def step(
        self, f: FloatArray, reach: float, prices: tuple[float, float] | None = None
    ) -> FloatArray | None:
        """Return the solution of the convex program around a density; None if it is not solved.

        `prices` of the two mean variances replace those of the tangents of J.
        """
        task, w = self.task, self.weights
        n, m = len(f), len(self.single)
        move = min(1.0, reach * task.epsilon)  # of a log density
        phi, double = self.single @ f, self.double @ f
        shares, tables = self.errors(f)
        first, second = prices or self.prices(shares, tables)
        cost = (first * w.single + second * w.own) / phi**2
        cost2 = second * w.double / double**2
        scale = float(cost.sum() + cost2.sum())
        slope, curve = self._pairs(f, double, cost2 / scale)
        r = len(curve)
        # d: u is 1 + move d, in which small ε lose no digits; x: new over old attenuations;
        # z: coordinates of the expansion; low: d of the least density; slack of every kind;
        # t with t x ≥ 1.
        d, x, z, low, slack, t = (int(i) for i in np.cumsum([0, n, m, r, 1, m]))
        rows = Rows(t + m)
        every, kinds = np.arange(n), np.arange(m)
        rows.add([(d + every, self.measure * f)], 0.0)
        for i in range(m):
            rows.add([(d + every, -move / phi[i] * self.single[i] * f), (x + i, 1.0)], 1.0)
        for i in range(r):
            rows.add([(d + every, -move * curve[i]), (z + i, 1.0)], 0.0)
        equal = rows.n
        rows.each([(d + every, 1.0)], math.expm1(move) / move)
        rows.each([(d + every, -1.0)], -math.expm1(-move) / move)
        rows.each([(slack + kinds, -1.0)], 0.0)
        # The least density may rise by the same range; all others lie within e^ε of it.
        fall = np.log(f.min() / f)
        within = min(2 * move, _NEAR * task.epsilon)
        near = np.flatnonzero(fall >= -within)
        least = np.exp(fall[near])
        rows.each([(d + near, -1.0), (low, least)], -np.expm1(fall[near]) / move)
        near = np.flatnonzero(fall + task.epsilon <= within)
        room = fall[near] + task.epsilon
        rows.each([(d + near, 1.0), (low, -np.exp(room))], np.expm1(room) / move)
        self._caps_rows(rows, f, phi, move, (d, x, slack))
        some = np.flatnonzero(np.isfinite(task.at_most))
        lift = np.expm1(task.at_most[some] * (1 - _MARGIN))
        top = lift / (lift + task.n_categories[some]) / phi[some]
        rows.each([(x + some, 1.0), (slack + some, -1.0)], top)
        cones: list[Any] = [clarabel.ZeroConeT(equal), clarabel.NonnegativeConeT(rows.n - equal)]
        for i in range(m):  # t + x ≥ |(t − x, 2)|
            rows.add([(t + i, -1.0), (x + i, -1.0)], 0.0)
            rows.add([(t + i, -1.0), (x + i, 1.0)], 0.0)
            rows.add([], 2.0)
            cones.append(clarabel.SecondOrderConeT(3))
        linear, square = np.zeros((2, t + m))
        linear[:n], linear[slack:t] = move * slope, _PENALTY
        square[z:low], square[t:] = 2.0, 2 * cost / scale
        answer = rows.solve(square, linear, cones)
        if answer is None:
            return None
        new = np.maximum(f * (1 + move * answer[0][:n]), 1e-300)
        new = np.maximum(new, new.max() * math.exp(-task.epsilon))
        density: FloatArray = new / (self.measure @ new)
        return density

    def _pairs(
        self, f: FloatArray, double: FloatArray, cost: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Expand Σ cost/y² of pairs around y = 1 in u: slope, shape (n,), and a root of the
        curvature, shape (r, n), without its negligible directions."""
        if not cost.any():
            return np.zeros(len(f)), np.zeros((0, len(f)))
        relative = self.double * f / double[:, None]
        _, sizes, axes = np.linalg.svd(np.sqrt(3 * cost)[:, None] * relative, full_matrices=False)
        rank = int((sizes > _NEGLIGIBLE_CURVE * sizes[0]).sum())
        return -2 * cost @ relative, sizes[:rank, None] * axes[:rank]

    def _caps_rows(
        self, rows: "Rows", f: FloatArray, phi: FloatArray, move: float, at: tuple[int, int, int]
    ) -> None:
        """Add the caps: f_x u_x ≤ e^cap f_y u_y for cells x, y that differ by one attribute."""
        task, (d, x, slack) = self.task, at
        levels = self.levels(f)
        caps = np.minimum(task.multiple * levels, task.limits)
        caps = caps - _MARGIN * np.minimum(caps, 1.0)
        changed = np.maximum(self.changed @ f, 1e-300)
        # Of a cap that moves, by the attenuation relative to the old one.
        slope = phi * (1 - 1 / task.n_categories) / ((1 - changed) * changed)
        slope = task.multiple * slope if math.isfinite(task.multiple) else np.zeros(len(phi))
        slope = np.where(task.multiple * levels <= task.limits, slope, 0.0)
        for i in np.flatnonzero(caps < task.epsilon):
            kept, gone = self.neighbours[i]
            for over, under in ((kept, gone), (gone, kept)):
                room = caps[i] + np.log(f[under] / f[over])
                near = np.flatnonzero(room < min(2 * move, _NEAR * caps[i]))
                ratio = np.exp(room[near])
                moving = -ratio * slope[i] / move
                rows.each(
                    [
                        (d + over[near], 1.0),
                        (d + under[near], -ratio),
                        (x + i, moving),
                        (slack + i, -1.0),
                    ],
                    np.expm1(room[near]) / move + moving,
                )


class Rows:
    """Rows of a sparse program A v ≤ b, as Clarabel takes them."""

    def __init__(self, width: int) -> None:
        self.n, self._width = 0, width
        self._right: list[FloatArray] = []
        self._parts: list[tuple[IntArray, IntArray, FloatArray]] = []

    def add(self, entries: Sequence[tuple[Any, Any]], right: float) -> None:
        """Add one row: columns with their values."""
        for columns, values in entries:
            columns = np.atleast_1d(columns)
            self._parts.append((np.full(len(columns), self.n), columns, _filled(values, columns)))
        self._right.append(np.array([right]))
        self.n += 1

    def each(self, entries: Sequence[tuple[Any, Any]], right: Any) -> None:
        """Add a row for every element of the first columns; all others are as many, or one."""
        first = entries[0][0]
        at = self.n + np.arange(len(first))
        for columns, values in entries:
            self._parts.append((at, _filled(columns, first), _filled(values, first)))
        self._right.append(_filled(right, first))
        self.n += len(first)

    def solve(
        self,
        square: FloatArray,
        linear: FloatArray,
        cones: list[Any],
        tolerance: float = _TOLERANCE,
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return v of least ½ Σ square v² + linear·v and the multipliers; None if not found."""
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = tolerance
        at, columns, values = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        diagonal = np.arange(len(square))
        answer = clarabel.DefaultSolver(
            _Columns.of(diagonal, diagonal, square, (len(square), len(square))),
            linear,
            _Columns.of(at, columns, values, (self.n, self._width)),
            np.concatenate(self._right),
            cones,
            settings,
        ).solve()
        found = np.array(answer.x)
        done = answer.status in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
        return (found, np.array(answer.z)) if done and np.all(np.isfinite(found)) else None


@dataclass(frozen=True)
class _Columns:
    """A sparse matrix by columns with the attributes of SciPy's that Clarabel reads; `scipy.sparse`
    takes a fifth of a second to load."""

    data: FloatArray
    indices: IntArray
    indptr: IntArray
    shape: tuple[int, int]
    has_canonical_format = True

    @classmethod
    def of(
        cls, rows: IntArray, columns: IntArray, values: FloatArray, shape: tuple[int, int]
    ) -> "_Columns":
        """Return the matrix of these entries; those at one place are added."""
        places, entries = np.unique(columns * shape[0] + rows, return_inverse=True)
        starts = np.searchsorted(places, np.arange(shape[1] + 1) * shape[0])
        data = np.zeros(len(places))
        np.add.at(data, entries, values)
        return cls(data, places % shape[0], starts, shape)


def _filled(values: Any, like: IntArray) -> Any:
    return np.broadcast_to(values, len(like))
