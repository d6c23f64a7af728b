"""The linear program of Algorithms 1 and 2 with all its rows, and with rows for caps and floors.

Over the excess g = f/f_{all} − 1 of each orbit (`orbits`), minimise g_∅ subject to

    g_c ≥ g_{c'}                         whenever c' changes one attribute more (Algorithm 1),
    Σ_c chance_c drift_c g_c = d         for each group (Algorithm 2),
    1 + g_c ≤ e^γ (1 + g_{c'})           a cap γ_i on epsilon_given_rest: X_S ≤ e^γ X_{S∪i},
    Σ_c chance_c (H_c − τ)(1 + g_c) ≥ 0  a floor on a pair: φ_ij ≥ τ = t φ_i φ_j, where H_c is the
                                         mean of h_i h_j in the orbit (`Orbits.pair_attenuation`).

Rows of floors are added once a solution breaks them, and not before.

The proofs are in docs/proofs/restricted.md, Theorems 4 and 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.solvers import highs
from deniable.solvers.patterns.levels import Levels, Ties, solve_levels
from deniable.solvers.patterns.orbits import Orbits

_ROUNDOFF = 2.0**-53
_MAX_ROUNDS = 25
_GOOD_GAP = 1e-8
# Up to this many columns (ten different attributes) the simplex method is tried first: it takes
# about a second, and an interior point's crossover may be singular.
_SIMPLEX_COLUMNS = 1100


@dataclass(frozen=True, eq=False)
class Restricted:
    """Outcome of the restricted program.

    Attributes:
        status: "optimal", "infeasible" or "failed".
        levels: the law, None unless optimal.
        excess_bound: a lower bound on the g_∅ of every law that obeys the rows, from the
            multipliers; −∞ if there is none.
    """

    status: highs.Status
    levels: Levels | None
    excess_bound: float


@dataclass(frozen=True, eq=False)
class _Floor:
    """A row Σ chance weight g ≥ least, which is Σ chance weight (1 + g) ≥ 0.

    The uniform law has no attenuation, so Σ chance weight is −least exactly. Rounding errors of
    `weight` are relative to `size`; shape (n,) both.
    """

    weight: FloatArray
    size: FloatArray
    least: float


@dataclass(frozen=True, eq=False)
class _Network:
    """The program's columns g_c/scale_c (the last orbit has g = 0 and none) and caps per group."""

    orbits: Orbits
    scale: FloatArray
    caps: FloatArray

    @property
    def capped(self) -> IntArray:
        """The edges that have a cap, as indices into the orbits' edges."""
        return np.flatnonzero(np.isfinite(self.caps[self.orbits.edge_group]))

    @property
    def edge_cap(self) -> FloatArray:
        """Their caps."""
        cap: FloatArray = self.caps[self.orbits.edge_group[self.capped]]
        return cap


@dataclass(frozen=True, eq=False)
class _Forest:
    """The rows that hold with equality, as trees of orbits.

    Attributes:
        ties: the components.
        order: the orbits, every parent before its children.
        parent, parent_row: the parent of each orbit and the row that ties it there, counting first
            the edges' monotonicity, then the caps; −1 for a root and for a tie to g = 0.
    """

    ties: Ties
    order: list[int]
    parent: IntArray
    parent_row: IntArray


def solve_restricted(
    orbits: Orbits,
    guess: float,
    *,
    caps: FloatArray | None = None,
    pair_floor: float | None = None,
) -> Restricted:
    """Solve the program.

    HiGHS works to absolute tolerances, so the columns are scaled to be about one: at first by a
    guess, then by the solution found, until the bound from the multipliers meets it.

    Args:
        orbits: the problem by orbits; every level above 0.
        guess: a rough value of the optimal ε in nats; tight caps may raise the optimum far above.
        caps: γ per group in nats, above the group's level; +∞ for none; shape (m,).
        pair_floor: t; None for no floor.
    """
    product = float(orbits.size @ orbits.groups.attribute_epsilon)
    guesses = [guess, (guess + product) / 2.0, product]
    caps = np.full(len(orbits.size), np.inf) if caps is None else caps
    # The product law obeys every cap and every floor up to 1. If HiGHS reports such a program as
    # infeasible, its numbers were out of range, and nothing is said about the request.
    certain = pair_floor is not None and pair_floor > 1.0
    floors: list[_Floor] = []
    best: Levels | None = None
    bound = -np.inf
    scale = None
    infeasible = False
    for _ in range(_MAX_ROUNDS):
        if scale is None:
            if not guesses:
                break
            scale = _first_scale(orbits, guesses.pop(0))
        outcome = _solve_scaled(orbits, _Network(orbits, scale, caps), floors)
        infeasible |= outcome.status == "infeasible" and certain
        if outcome.levels is None:
            scale = None
            continue
        excess = outcome.levels.excess
        broken = [] if pair_floor is None else _broken_floors(orbits, excess, pair_floor, floors)
        if broken:
            floors += broken
            continue
        bound = max(bound, outcome.excess_bound)
        if best is None or excess[0] < best.excess[0]:
            best = outcome.levels
        if best.excess[0] - bound <= _GOOD_GAP * best.excess[0]:
            break
        new_scale = np.maximum(excess, excess[0] / (1.0 + excess[0]))
        # A second solution at the same scale would bring nothing.
        ratio = new_scale / scale
        scale = new_scale if ratio.max() > 4.0 or ratio.min() < 0.25 else None
    if best is not None:
        return Restricted("optimal", best, bound)
    return Restricted("infeasible" if infeasible else "failed", None, -np.inf)


def _first_scale(orbits: Orbits, guess: float) -> FloatArray:
    """Shape (n,): e^{guess − Σ_{changed} ε_i}, clipped at 1 below, as for a clipped law."""
    exponent = np.minimum(guess, orbits.changed @ orbits.groups.attribute_epsilon)
    scale: FloatArray = np.expm1(guess) * np.exp(-exponent)
    return scale


def _edge_rows(network: _Network) -> tuple[highs.Rows, FloatArray]:
    """Monotonicity for every edge, then caps for the capped ones: rows and lower bounds, scaled."""
    u, v, capped = network.orbits.source, network.orbits.target, network.capped
    ratio = network.scale[v] / network.scale[u]
    growth = np.exp(network.edge_cap) * ratio[capped]
    size = np.append(np.maximum(1.0, ratio), np.maximum(1.0, growth))
    first = np.append(np.ones(len(u)), -np.ones(len(capped))) / size
    second = np.append(-ratio, growth) / size
    columns = np.stack([np.append(u, u[capped]), np.append(v, v[capped])], axis=1)
    values = np.stack([first, second], axis=1)
    below = -np.expm1(network.edge_cap) / network.scale[u[capped]]
    lower = np.append(np.zeros(len(u)), below) / size
    present = columns < len(network.scale) - 1
    start = np.append(0, np.cumsum(present.sum(axis=1)))
    return highs.Rows(start, columns[present], values[present]), lower


def _program(orbits: Orbits, network: _Network, floors: list[_Floor]) -> highs.Program:
    """Rows in this order: monotonicity, caps, keep probabilities, floors; all to about one."""
    edge_rows, edge_lower = _edge_rows(network)
    weight = np.vstack([orbits.drift, *(floor.weight for floor in floors)])
    columns = (orbits.chance * network.scale)[:-1]
    dense = weight[:, :-1] * columns
    right = np.append(orbits.groups.keep_excess, [floor.least for floor in floors])
    size = np.abs(dense).max(axis=1)
    dense, right = dense / size[:, None], right / size
    n_columns, n_groups = len(columns), len(orbits.size)
    cost = np.zeros(n_columns)
    cost[0] = 1.0
    upper = np.full(len(edge_lower) + len(right), highs.INFINITY)
    upper[len(edge_lower) : len(edge_lower) + n_groups] = right[:n_groups]
    return highs.Program(
        cost,
        np.zeros(n_columns),
        np.full(n_columns, highs.INFINITY),
        highs.stack(edge_rows, highs.dense_rows(dense)),
        np.append(edge_lower, right),
        upper,
    )


def _solve_scaled(orbits: Orbits, network: _Network, floors: list[_Floor]) -> Restricted:
    """Solve the program at one scale, by one method and then the other."""
    program = _program(orbits, network, floors)
    n_before_floors = len(program.row_lower) - len(floors)
    methods: Sequence[highs.Method] = ("simplex", "interior-point")
    if len(program.cost) > _SIMPLEX_COLUMNS:
        methods = ("interior-point", "simplex")
    status: highs.Status = "failed"
    for method in methods:
        answer = highs.run(program, method)
        if answer.status == "infeasible":
            status = "infeasible"
        if answer.status != "optimal":
            continue
        tight = ~answer.row_basic[n_before_floors:]
        binding = [floor for floor, is_tight in zip(floors, tight, strict=True) if is_tight]
        forest = _forest(network, answer)
        levels = solve_levels(orbits, forest.ties, [floor.weight for floor in binding])
        if levels is not None:
            return Restricted("optimal", levels, _excess_bound(network, forest, levels, binding))
    return Restricted(status, None, -np.inf)


def _forest(network: _Network, answer: highs.Answer) -> _Forest:
    """Orbits joined by the rows that hold with equality; see `levels`.

    A basis contains no cycle of such rows, so that they make a forest.
    """
    u, v, capped = network.orbits.source, network.orbits.target, network.capped
    n = len(network.scale)
    tight = np.flatnonzero(~answer.row_basic[: len(u) + len(capped)])
    edge = np.append(np.arange(len(u)), capped)[tight]
    at_zero = np.flatnonzero(~answer.basic)
    # ln f_first = ln f_second + step
    first = np.append(u[edge], at_zero)
    second = np.append(v[edge], np.full_like(at_zero, n - 1))
    step = np.zeros(len(first))
    is_cap = tight >= len(u)
    step[: len(tight)][is_cap] = network.caps[network.orbits.edge_group[edge[is_cap]]]
    row = np.append(tight, np.full_like(at_zero, -1))
    neighbours: list[list[tuple[int, float, int]]] = [[] for _ in range(n)]
    for a, b, d, r in zip(
        first.tolist(), second.tolist(), step.tolist(), row.tolist(), strict=True
    ):
        neighbours[a].append((b, -d, r))
        neighbours[b].append((a, d, r))
    component, offset = np.full(n, -1), np.zeros(n)
    parent, parent_row = np.full(n, -1), np.full(n, -1)
    order = []
    n_components = 0
    # The last orbit first, so that its component is number 0.
    for root in range(n - 1, -1, -1):
        if component[root] >= 0:
            continue
        component[root] = n_components
        waiting = [root]
        while waiting:
            orbit = waiting.pop()
            order.append(orbit)
            for other, d, r in neighbours[orbit]:
                if component[other] < 0:
                    component[other] = n_components
                    offset[other] = offset[orbit] + d
                    parent[other], parent_row[other] = orbit, r
                    waiting.append(other)
        n_components += 1
    ties = Ties(component, np.exp(offset), np.expm1(offset))
    return _Forest(ties, order, parent, parent_row)


def _broken_floors(
    orbits: Orbits, excess: FloatArray, pair_floor: float, known: list[_Floor]
) -> list[_Floor]:
    """Rows for the pairs whose attenuation is below the floor, the known ones left out."""
    mass = orbits.chance * (1.0 + excess)
    groups = orbits.groups
    attenuation = groups.n_categories * groups.keep_excess / (groups.n_categories - 1.0)
    floors = []
    for i, j in combinations_with_replacement(range(len(orbits.size)), 2):
        if i == j and orbits.size[i] == 1:
            continue
        pair = orbits.pair_attenuation(i, j)
        least = pair_floor * attenuation[i] * attenuation[j]
        # Of two groups the mean is a product; within one it is a difference of terms up to 1.
        pair_size = np.abs(pair) if i != j else np.ones_like(pair)
        floor = _Floor(pair - least, pair_size + abs(least), float(least))
        if floor.weight @ mass < -1e-13 * (floor.size @ mass) and not any(
            np.array_equal(floor.weight, other.weight) for other in known
        ):
            floors.append(floor)
    return floors


def _excess_bound(
    network: _Network, forest: _Forest, levels: Levels, floors: list[_Floor]
) -> float:
    """Lower bound on g_∅ from multipliers, whatever their errors.

    For multipliers y of the rows A g ≥ b (y ≥ 0) and A g = b (any y), and any g that obeys them,
    g_∅ ≥ y·b + Σ_c r_c g_c with the residual r = e_∅ − Aᵀy. A residual below 0 costs at most itself
    times `_largest`, and a sum of n terms is off by less than 2nu times the sum of their sizes.
    """
    orbits = network.orbits
    n = len(network.scale)
    floor_weights = np.maximum(levels.balance_weights, 0.0)
    weight = np.vstack([orbits.drift, *(floor.weight for floor in floors)])
    y_dense = np.append(levels.weights, floor_weights)
    size_dense = np.vstack([orbits.drift_size, *(floor.size for floor in floors)])
    residual = -(y_dense @ weight) * orbits.chance
    residual[0] += 1.0
    falling, capping = _edge_multipliers(network, forest, residual)
    u, v, capped = orbits.source, orbits.target, network.capped
    growth = np.exp(network.edge_cap)
    ends = np.concatenate([u, v, u[capped], v[capped]])
    terms = np.concatenate([falling, -falling, -capping, growth * capping])
    used = np.bincount(ends, terms, n)
    size = np.bincount(ends, np.abs(terms), n) + (np.abs(y_dense) @ size_dense) * orbits.chance
    gamma = (2 * len(y_dense) + 4 * len(orbits.size) + 100) * _ROUNDOFF
    slack = np.minimum(residual - used - gamma * (size + np.abs(residual)), 0.0)[:-1]
    right = np.concatenate(
        [
            levels.weights * orbits.groups.keep_excess,
            floor_weights * np.array([floor.least for floor in floors]),
            -capping * np.expm1(network.edge_cap),
        ]
    )
    margin = (gamma + 2 * n * _ROUNDOFF) * float(np.sum(np.abs(right)))
    largest = _largest(orbits, float(levels.excess[0]))[:-1]
    return float(np.sum(right) + (slack @ largest) * (1.0 + 1e-9) - margin)


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


def _edge_multipliers(
    network: _Network, forest: _Forest, residual: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Multipliers ≥ 0 of monotonicity and of the caps that use up the residual, leaf by leaf.

    An orbit's residual can only be used by the row that ties it to its parent, once its children
    have been dealt with. What a multiplier below 0 would be needed for is left.
    """
    left = residual.tolist()
    n_edges = len(network.orbits.source)
    capped, source = network.capped, network.orbits.source
    y = np.zeros(n_edges + len(capped))
    growth = np.exp(network.edge_cap)
    for orbit in reversed(forest.order):
        row = int(forest.parent_row[orbit])
        if row < 0:
            continue
        parent = int(forest.parent[orbit])
        if row < n_edges:
            near, far, edge = 1.0, -1.0, row
        else:
            near, far, edge = -1.0, float(growth[row - n_edges]), int(capped[row - n_edges])
        own, others = (near, far) if int(source[edge]) == orbit else (far, near)
        y[row] = max(left[orbit] / own, 0.0)
        left[parent] -= others * float(y[row])
    return y[:n_edges], y[n_edges:]
