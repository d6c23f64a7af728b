"""The linear program of Algorithms 1 and 2 with all its rows, and with rows for caps and floors.

Over the excess g of each orbit (`orbits`), g_∅ is minimised under the rows of
docs/proofs/restricted.md, Theorems 1 and 4. Rows of floors are added once a solution breaks them.

HiGHS meets rows to 1e−10. So the levels that it is given are `_AIM` too high, and a row of a floor
is `_ROOM` too strict; then its point is raised where it breaks a cap or falls the wrong way, and
its levels are brought down to the requested ones (`bring_down`), which breaks nothing. Its
multipliers prove a bound at the requested levels, whatever their errors (Theorem 5 there).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import MAX_LEVEL, Problem
from deniable.solvers import highs
from deniable.solvers.patterns.orbits import Orbits

_ROUNDOFF = 2.0**-53
_AIM = 2e-9
"""How far above the requested levels the program's are, in nats (relative to Σ ε_i below 1 nat):
twenty times the tolerance of HiGHS."""

_ROOM = 1e-9
"""How far above 0 a row of a floor is held, relative to its largest term: ten tolerances."""

_SIMPLEX_COLUMNS = 1100
"""Up to so many columns (ten different attributes) the simplex method is tried first: it takes
about a second, and an interior point's crossover may be singular."""


@dataclass(frozen=True, eq=False)
class Restricted:
    """Outcome of the restricted program.

    Attributes:
        status: "optimal", "infeasible" or "failed".
        excess: g of every orbit, shape (n,); None unless optimal.
        weights: the multipliers of the keep probabilities, one per group, shape (m,).
        excess_bound: a lower bound on the g_∅ of every law that obeys the rows, from the
            multipliers; −∞ if there is none.
    """

    status: highs.Status
    excess: FloatArray | None
    weights: FloatArray
    excess_bound: float


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows at one scale of the columns x_c = g_c/scale_c (the last orbit has g = 0 and none).

    Attributes:
        program: rows in this order: falling, caps, keep probabilities, floors; all about one.
        unit: what a multiplier of the program is multiplied by to give one of the rows above, for
            the least g_∅.
    """

    program: highs.Program
    unit: FloatArray


def solve_restricted(
    orbits: Orbits,
    guess: float,
    *,
    caps: FloatArray | None = None,
    pair_floor: float | None = None,
) -> Restricted:
    """Solve the program, with columns scaled by a guess of the optimal ε in nats to be about one.

    ``orbits``: the problem by orbits; every level above 0. ``caps``: γ per group in nats, above the
    group's level; +∞ for none; shape (m,).
    """
    m = len(orbits.size)
    caps = np.full(m, np.inf) if caps is None else caps
    in_program = np.where(caps > MAX_LEVEL, np.inf, caps)  # e^γ may overflow
    level = orbits.groups.attribute_epsilon
    product = float(orbits.size @ level)
    above = np.minimum(_AIM * min(1.0, product), 0.5 * (caps - level))
    aimed = replace(orbits, groups=Problem(orbits.groups.n_categories, level + above))
    scale = _first_scale(orbits, guess)
    pairs = list[tuple[int, int]]()
    while True:
        rows = _rows(aimed, scale, in_program, _floors(aimed, pair_floor, pairs))
        answer = _solved(rows.program)
        failed = Restricted("failed", None, np.zeros(m), -np.inf)
        if answer.status == "infeasible" and pair_floor is not None and pair_floor > 1.0:
            # The product law obeys every cap and every floor up to 1: there, numbers were out of
            # range, and nothing is said about the request.
            return replace(failed, status="infeasible")
        if answer.status != "optimal":
            return failed
        excess = bring_down(orbits, allowed(orbits, caps, scale * np.append(answer.x, 0.0)))
        if not met(orbits, excess):
            return failed
        new = _broken(orbits, excess, pair_floor, pairs)
        if not new:
            floors, multipliers = _floors(orbits, pair_floor, pairs), answer.multipliers * rows.unit
            proved = _excess_bound(orbits, in_program, floors, multipliers, float(excess[0]))
            return Restricted("optimal", excess, *proved)
        pairs += new


def _first_scale(orbits: Orbits, guess: float) -> FloatArray:
    """Shape (n,): e^{guess − Σ_{changed} ε_i}, clipped at 1 below, as for a clipped law."""
    exponent = np.minimum(guess, orbits.changed @ orbits.groups.attribute_epsilon)
    scale: FloatArray = np.expm1(guess) * np.exp(-exponent)
    return scale


@dataclass(frozen=True, eq=False)
class _Floors:
    """Rows Σ chance weight g ≥ least, which is Σ chance weight (1 + g) ≥ 0.

    The uniform law has no attenuation, so Σ chance weight is −least exactly. Rounding errors of
    `weight` are relative to `size`; shape (rows, n) both.
    """

    weight: FloatArray
    size: FloatArray
    least: FloatArray


def _floors(orbits: Orbits, floor: float | None, pairs: Sequence[tuple[int, int]]) -> _Floors:
    """Return the rows of these pairs of groups."""
    a, gain = orbits.groups.n_categories, orbits.groups.keep_excess
    attenuation = a * gain / (a - 1.0)
    weights, sizes, least = [], [], []
    for i, j in pairs if floor is not None else ():
        pair = orbits.pair_attenuation(i, j)
        least.append(floor * attenuation[i] * attenuation[j])
        weights.append(pair - least[-1])
        # Of two groups the mean is a product; within one it is a difference of terms up to 1.
        sizes.append((np.abs(pair) if i != j else np.ones_like(pair)) + abs(least[-1]))
    shape = (len(weights), len(orbits.chance))
    return _Floors(np.reshape(weights, shape), np.reshape(sizes, shape), np.array(least))


def _broken(
    orbits: Orbits, excess: FloatArray, floor: float | None, known: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the pairs of groups whose attenuation is below the floor, the known ones left out."""
    pairs = [
        (i, j)
        for i, j in combinations_with_replacement(range(len(orbits.size)), 2)
        if (i != j or orbits.size[i] > 1) and (i, j) not in known
    ]
    rows = _floors(orbits, floor, pairs if floor is not None else [])
    mass = orbits.chance * (1.0 + excess)
    below = rows.weight @ mass < -1e-15 * (rows.size @ mass)
    return [pair for pair, is_below in zip(pairs, below.tolist(), strict=False) if is_below]


def allowed(orbits: Orbits, caps: FloatArray, excess: FloatArray) -> FloatArray:
    """Return the least excess that is not below this, falls, and keeps the caps, shape (n,)."""
    table = excess.reshape(tuple((orbits.size + 1).tolist())).copy()
    for group, cap in enumerate(caps.tolist()):
        along = np.moveaxis(table, group, 0)
        for c in range(len(along) - 2, -1, -1):
            along[c] = np.maximum(along[c], along[c + 1])
        if np.isfinite(cap):
            for c in range(len(along) - 1):  # (1 + g)/e^γ − 1
                along[c + 1] = np.maximum(along[c + 1], np.exp(-cap) * along[c] + np.expm1(-cap))
    flat = table.ravel()
    return np.asarray((flat - flat[-1]) / (1.0 + flat[-1]))


def _rows(orbits: Orbits, scale: FloatArray, caps: FloatArray, floors: _Floors) -> _Rows:
    """Return the program and the units of its rows."""
    u, v, group = orbits.edges
    edge_cap = caps[group]
    capped = np.flatnonzero(np.isfinite(edge_cap))
    ratio = scale[v] / scale[u]
    growth = np.exp(edge_cap[capped]) * ratio[capped]
    size = np.append(np.maximum(1.0, ratio), np.maximum(1.0, growth))
    first = np.append(np.ones(len(u)), -np.ones(len(capped))) / size
    second = np.append(-ratio, growth) / size
    near = np.append(u, u[capped])
    columns = np.stack([near, np.append(v, v[capped])], axis=1)
    present = columns < len(scale) - 1
    start = np.append(0, np.cumsum(present.sum(axis=1)))
    edge_rows = highs.Rows(start, columns[present], np.stack([first, second], axis=1)[present])
    below = -np.expm1(edge_cap[capped]) / scale[u[capped]]
    edge_lower = np.append(np.zeros(len(u)), below) / size

    dense = (np.vstack([orbits.drift, floors.weight]) * (orbits.chance * scale))[:, :-1]
    dense_size = np.abs(dense).max(axis=1)
    right = np.append(orbits.groups.keep_excess, floors.least) / dense_size
    right[len(orbits.size) :] += _ROOM
    n = len(scale) - 1
    upper = np.full(len(edge_lower) + len(right), highs.INFINITY)
    exact = slice(len(edge_lower), len(edge_lower) + len(orbits.size))
    upper[exact] = right[: len(orbits.size)]
    program = highs.Program(
        np.eye(1, n)[0],
        np.zeros(n),
        np.full(n, highs.INFINITY),
        highs.stack(edge_rows, highs.dense_rows(dense / dense_size[:, None])),
        np.append(edge_lower, right),
        upper,
    )
    units = np.append(scale[0] / scale[near] / size, scale[0] / dense_size)
    return _Rows(program, units)


def _solved(program: highs.Program) -> highs.Answer:
    """Solve the program by one method, and by the other if that fails."""
    methods: Sequence[highs.Method] = ("simplex", "interior-point")
    if len(program.cost) > _SIMPLEX_COLUMNS:
        methods = ("interior-point", "simplex")
    answers = []
    for method in methods:
        answers.append(highs.run(program, method))
        if answers[-1].status == "optimal":
            return answers[-1]
    return next((one for one in answers if one.status == "infeasible"), answers[0])


def _excess_bound(
    orbits: Orbits, caps: FloatArray, floors: _Floors, multipliers: FloatArray, reached: float
) -> tuple[FloatArray, float]:
    """Return λ and a lower bound on g_∅ from multipliers, whatever their errors.

    Source: docs/proofs/restricted.md, Theorem 5; a sum of n terms is off by less than 2nu times the
    sum of their sizes.
    """
    u, v, group = orbits.edges
    edge_cap = caps[group]
    n, m, capped = len(orbits.chance), len(orbits.size), np.flatnonzero(np.isfinite(edge_cap))
    falling, capping, weights, held = np.split(multipliers, np.cumsum([len(u), len(capped), m]))
    falling, capping, held = (np.maximum(each, 0.0) for each in (falling, capping, held))
    dense = np.append(weights, held)
    residual = -(dense @ np.vstack([orbits.drift, floors.weight])) * orbits.chance
    residual[0] += 1.0
    growth = np.exp(edge_cap[capped])
    ends = np.concatenate([u, v, u[capped], v[capped]])
    terms = np.concatenate([falling, -falling, -capping, growth * capping])
    used = np.bincount(ends, terms, n)
    size = (
        np.bincount(ends, np.abs(terms), n)
        + (np.abs(dense) @ np.vstack([orbits.drift_size, floors.size])) * orbits.chance
    )
    gamma = (2 * len(dense) + 4 * m + 100) * _ROUNDOFF
    slack = np.minimum(residual - used - gamma * (size + np.abs(residual)), 0.0)[:-1]
    right = np.concatenate(
        [
            weights * orbits.groups.keep_excess,
            held * floors.least,
            -capping * np.expm1(edge_cap[capped]),
        ]
    )
    margin = (gamma + 2 * n * _ROUNDOFF) * float(np.sum(np.abs(right)))
    largest = _largest(orbits, reached)[:-1]
    bound = float(np.sum(right) + (slack @ largest) * (1.0 + 1e-9) - margin)
    return weights, bound


def _largest(orbits: Orbits, reached: float) -> FloatArray:
    """Bound g of any law that keeps the levels and has g_∅ ≤ reached (twice it is taken), (n,).

    0 ≤ g ≤ g_∅; and p_i Σ_{i changed} μ g = (1 − p_i) Σ_{i kept} μ g − d_i ≤ (1 − p_i) g_∅/a_i.
    """
    groups = orbits.groups
    ratio = groups.change_probability / (groups.keep_probability * groups.n_categories)
    least = np.min(
        ratio[:, None] / np.maximum(orbits.changed_fraction * orbits.chance, 1e-300), axis=0
    )
    largest: FloatArray = 2.0 * reached * np.minimum(1.0, least)
    return largest


def keep_masses(orbits: Orbits, excess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (1 − p_i) times the mass where i is kept and p_i times that where it is changed.

    Shape (m,) each. They are equal where the level is met; their difference over the second is
    e^{achieved − requested} − 1.
    """
    kept, changed = orbits.fates(orbits.chance * (1.0 + excess))
    return orbits.groups.change_probability * kept, orbits.groups.keep_probability * changed


def met(orbits: Orbits, excess: FloatArray) -> bool:
    """Whether no level is missed by more than 1e-13 nats."""
    kept, changed = keep_masses(orbits, excess)
    return bool((kept >= changed * (1.0 - 1e-13)).all())


def bring_down(orbits: Orbits, excess: FloatArray) -> FloatArray:
    """Bring the keep probabilities that are above their request down to it, by an independent k-ary
    response on each attribute, which breaks no cap and no floor.

    ``excess``: f/f_{all} − 1 of every orbit, shape (n,).
    """
    shape = tuple((orbits.size + 1).tolist())
    for group, n in enumerate(orbits.size.tolist()):
        a = float(orbits.groups.n_categories[group])
        for _ in range(12):  # each leaves a rounding of the one before
            kept, changed = keep_masses(orbits, excess)
            if kept[group] - changed[group] <= 2e-16 * changed[group]:  # a rounding
                break
            surplus = (kept[group] - changed[group]) / np.sum(orbits.chance * (1.0 + excess))
            theta = surplus / (orbits.groups.keep_excess[group] + surplus)
            # From c changed attributes of the group, Binomial(c, θ/a) are turned back to the truth
            # and Binomial(n − c, θ(1 − 1/a)) are turned away from it. The small probabilities are
            # kept as they are: 1 − (1 − θ/a) would be off by an ulp of 1.
            back, away = _binomials(n, theta / a), _binomials(n, theta * (1.0 - 1.0 / a))
            mix = np.zeros((n + 1, n + 1))
            for c in range(n + 1):
                mix[c] = np.convolve(back[c, c::-1], away[n - c, : n - c + 1])
            along = np.moveaxis(excess.reshape(shape), group, 0)
            mixed = np.moveaxis(np.tensordot(mix, along, axes=1), 0, group).ravel()
            excess = (mixed - mixed[-1]) / (1.0 + mixed[-1])
    return excess


def _binomials(n: int, p: float) -> FloatArray:
    """Laws of Binomial(c, p), c = 0 .. n, shape (n + 1, n + 1)."""
    laws = np.zeros((n + 1, n + 1))
    laws[0, 0] = 1.0
    for c in range(n):
        laws[c + 1] = laws[c] * (1.0 - p)
        laws[c + 1, 1:] += laws[c, :-1] * p
    return laws
