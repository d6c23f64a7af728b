"""The linear program of Algorithms 1 and 2 where nothing but the levels is required.

In the notation of `orbits`, with g = M h and M = e^ε − 1, the program is: minimise M subject to
Σ μ (Y_i − p_i) g = d_i, 0 ≤ g ≤ M, and g falling as attributes are changed. Dividing by M,

    maximise t = 1/M   subject to   Σ_c chance_c drift_c h_c = t d,   0 ≤ h ≤ 1:

k rows over 2^k boxed columns instead of k 2^{k−1} rows. "Falling" was left out, because the
optimum falls anyway. Let λ be the multipliers of the rows and z_c = λ·drift_c. Optimality gives
h = 1 where z > 0 and h = 0 where z < 0. If λ > 0, changing one more attribute strictly lowers z, so
of two comparable orbits either the closer one has z > 0, or the farther one z < 0, and h falls.
λ_i < 0 cannot be: among the sets D with {z > 0} ⊆ D ⊆ {z ≥ 0} each keeps attribute i with at most
its chance 1/a_i, and so would h.

That leaves λ_i = 0 for some attributes I, where h need not fall within the ties z = 0. (This is
common where levels differ much: the levels of I could be raised at no cost.)

With rows "≥ t d" instead of "= t d" the program has the same dual over λ ≥ 0, hence the same
optimum. So among the ties a second program

    maximises   Σ_{i∈I} w_i (Σ μ drift_i h − t d_i)   with those terms ≥ 0 and the other rows equal.

The multipliers of I are now at least w > 0, and since comparable ties differ in I only, the
argument above holds within the ties. What the attributes in I keep too often, an independent k-ary
response takes away (`bring_down`).

The proofs are in docs/proofs/restricted.md, Theorem 3.
"""

from dataclasses import dataclass

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.solvers import highs
from deniable.solvers.patterns.levels import BoolArray, Levels, Ties, bring_down, solve_levels
from deniable.solvers.patterns.orbits import Orbits

_TIE = 1e-10
_ZERO_WEIGHT = 1e-11


@dataclass(frozen=True, eq=False)
class _Basis:
    """Optimal basis of a boxed program.

    Attributes:
        fractional: the orbits whose h is basic, shape (n,).
        at_one: the orbits that the basis puts at h = 1, shape (n,).
        tight: the rows that hold with equality, shape (m,).
    """

    fractional: BoolArray
    at_one: BoolArray
    tight: BoolArray


def solve_unrestricted(orbits: Orbits, guess: float) -> Levels | None:
    """Return an optimal law, or None if HiGHS or the clean-up fails.

    Args:
        orbits: the problem; every level above 0.
        guess: a rough value of the optimal ε, for scaling.
    """
    n, m = len(orbits.chance), len(orbits.size)
    high = np.zeros(n, dtype=np.bool_)
    high[0] = True
    free = np.ones(n, dtype=np.bool_)
    free[[0, n - 1]] = False
    objective = np.zeros(m)
    basis = _boxed(orbits, guess, free, high, objective)
    if basis is None:
        return None
    weights, idle = _multipliers(orbits, basis, objective)
    if weights is None or not (weights >= 0.0)[~idle].all():
        return None
    weights[idle] = 0.0
    high, tied = _classify(orbits, weights, free, high)
    if idle.any():
        tied |= basis.fractional
        objective = np.where(idle, 1.0 / orbits.groups.keep_excess, 0.0)
        basis = _boxed(orbits, guess, tied, high & ~tied, objective)
        if basis is None:
            return None
        inner, _ = _multipliers(orbits, basis, objective)
        if inner is None:
            return None
        high, tied = _classify(orbits, inner, tied, high & ~tied)
    high = np.where(tied, basis.at_one, high)
    component = np.where(high, 1, 0)
    component[basis.fractional] = 2 + np.arange(int(basis.fractional.sum()))
    levels = solve_levels(orbits, Ties(component, np.ones(n), np.zeros(n)), exact=basis.tight)
    if levels is None:
        return None
    excess = levels.excess
    for group in np.flatnonzero(~basis.tight):
        excess = bring_down(orbits, excess, int(group))
    return Levels(excess, weights, levels.balance_weights)


def _classify(
    orbits: Orbits, weights: FloatArray, free: BoolArray, high: BoolArray
) -> tuple[BoolArray, BoolArray]:
    """Where h = 1, the orbits that are not free included, and which free ones are tied."""
    drift = weights @ orbits.drift
    tied = free & (np.abs(drift) <= _TIE * (np.abs(weights) @ orbits.drift_size))
    return np.where(free, drift > 0.0, high), tied


def _boxed(
    orbits: Orbits, guess: float, free: BoolArray, high: BoolArray, objective: FloatArray
) -> _Basis | None:
    """Solve for h over the free orbits, 1 where `high` and 0 elsewhere.

    With a zero objective, maximise t with all rows equal; otherwise maximise the objective's
    combination of the rows, and let the rows in it exceed t d.
    """
    m = len(orbits.size)
    groups = orbits.groups
    # An optimal g is close to e^{ε − Σ_{changed} ε_i} as long as that is above 1 (clipped law), so
    # dividing by it makes all columns alike, and t times M about one.
    scale = np.exp(-np.minimum(guess, orbits.changed @ groups.attribute_epsilon))
    rows = orbits.drift * orbits.chance
    columns = np.flatnonzero(free)
    matrix = np.hstack(
        [
            (rows * scale)[:, columns],
            np.sum(rows[:, high], axis=1, keepdims=True),
            -groups.keep_excess[:, None] / np.expm1(guess),
        ]
    )
    size = np.abs(matrix).max(axis=1)
    matrix /= size[:, None]
    idle = objective > 0.0
    cost = -(objective * size) @ matrix
    if not idle.any():
        cost[-1] = -1.0
    else:
        cost /= np.abs(cost).max()
    program = highs.Program(
        cost,
        np.append(np.zeros(len(columns)), [1.0, 0.0]),
        np.append(1.0 / scale[columns], [1.0, highs.INFINITY]),
        highs.dense_rows(matrix),
        np.zeros(m),
        np.where(idle, highs.INFINITY, 0.0),
    )
    answer = highs.run(program)
    if answer.status != "optimal" or not answer.basic[-1] or answer.basic[-2]:
        return None
    fractional, at_one = np.zeros_like(free), np.zeros_like(free)
    fractional[columns] = answer.basic[:-2]
    at_one[columns] = answer.at_upper[:-2]
    tight = ~answer.row_basic
    if fractional.sum() + 1 != tight.sum() or not tight[~idle].all():
        return None
    return _Basis(fractional, at_one, tight)


def _multipliers(
    orbits: Orbits, basis: _Basis, objective: FloatArray
) -> tuple[FloatArray | None, BoolArray]:
    """Weights on the rows from the basis: z = 0 at every fractional orbit, and one equation more.

    The weights are the objective's plus a correction on the tight rows. When t is maximised, the
    equation more only sets the scale: z = 1 where nothing is changed, whose coefficients are as
    small as those of the ties (λ·d = 1 would drown them at large levels). Otherwise it is the price
    of t, λ·d = 0. Returned with the weights is which of them are 0 up to rounding, judged by what
    they contribute to these equations. No weights are returned if the system is singular.
    """
    tight = basis.tight
    scaling = not objective.any()
    last = orbits.drift[:, 0] if scaling else orbits.groups.keep_excess
    rows = np.vstack([orbits.drift[:, basis.fractional].T, last])
    right = -rows @ objective
    right[-1] += 1.0 if scaling else 0.0
    rows = rows[:, tight]
    row_scale = np.abs(rows).max(axis=1)
    rows = rows / row_scale[:, None]
    column_scale = np.abs(rows).max(axis=0)
    try:
        solution = np.linalg.solve(rows / column_scale, right / row_scale)
    except np.linalg.LinAlgError:
        return None, ~tight
    weights = objective.copy()
    weights[tight] += solution / column_scale
    idle = np.zeros_like(tight)
    idle[tight] = np.abs(solution) <= _ZERO_WEIGHT * np.abs(solution).max()
    return weights, idle
