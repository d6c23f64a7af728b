"""The response matrix of least variance for the mean of a number on [−1, 1].

Inputs are the points t_j of a grid, outputs have values y. A matrix P with Σ_o P_jo y_o = t_j gives
an unbiased mean. A number x between two points is rounded at random, so that E y² is linear there,
and the variance E y² − x² is largest near the middle. With V the largest and A the average variance
over [−1, 1]:

    minimise (1 − s) V + s A  subject to  Σ_o P_jo = 1,  Σ_o P_jo y_o = t_j,  L_o ≤ P_jo ≤ e^ε L_o,
    Σ_o P_jo y_o² ≤ V + t_j²,  and so for the mean of two neighbouring points at their middle.

*Columns.* A vector between L and e^ε L is a mixture of vectors with entries L and e^ε L only, so
outputs may be taken as pairs (y, S) with the mass e^ε L on the inputs of S and L elsewhere: a
linear program with infinitely many columns. By symmetry (x, y) → (−x, −y) columns come in pairs of
equal mass, and only half of the inputs have rows.

*Pricing.* With multipliers π, μ, ν of the rows, reflected to all inputs, a column gains
Σ_j p_j f_j(y), f_j(y) = π_j + μ_j y + ν_j y². The best S for y is {j: f_j(y) > 0}, the best y for S
the vertex of a parabola. If no column gains more than r Σ_j p_j, then V is at most r times the
number of points above the optimum, since all masses add up to that number.

Columns found on a coarse grid are nearly right on a finer one, where they start the search.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from deniable.laws.patterns import FloatArray
from deniable.solvers import highs

_Sets = npt.NDArray[np.bool_]

LEVELS = (0.01, 12.0)
"""Levels in nats for which masses of outputs are well above the solver's tolerance."""

MOST_POINTS = 65
"""Points of the largest grid: up to two seconds."""

GAP = 1e-3
"""Relative distance from the least variance at which the search ends."""

_COARSE = 9
"""Points of the first grid."""

_VALUES = 400
"""Values from 0 to the largest that are priced first."""

_LARGEST = 1.5
"""Largest |y| in units of (e^ε + 1)/(e^ε − 1); at the optimum it is 1 to 1.3."""

_AT_ONCE = 30
"""Columns added between two solutions."""

_MOST_ROUNDS = 300
"""Solutions after which the search ends; a few tens are enough."""


@lru_cache(maxsize=64)
def matrix_for_mean(n_points: int, epsilon: float, share: float) -> tuple[FloatArray, FloatArray]:
    """Return the matrix M[y, x] = Pr[output y | point x], shape (m, n_points), and the values y of
    its outputs, ascending. ``epsilon``: in nats. ``share``: s, weight of the average variance.

    >>> matrix, values = matrix_for_mean(3, 1.0, 0.2)
    >>> (values @ matrix).round(9).tolist(), bool((matrix.max(1) <= 2.7183 * matrix.min(1)).all())
    ([-1.0, 0.0, 1.0], True)
    """
    grids = [n_points]
    while grids[-1] > _COARSE:
        grids.append((grids[-1] + 1) // 4 * 2 + 1)
    search = _Search(grids[-1], epsilon, share)
    for points in (*grids[-2::-1], None):
        search.solve()
        if points is not None:
            search = search.refined(points)
    return search.matrix()


class _Search:
    """Columns and master program on one grid. Values are in units of (e^ε + 1)/(e^ε − 1)."""

    def __init__(self, n_points: int, epsilon: float, share: float) -> None:
        self.epsilon, self.share, self.fall = epsilon, share, math.exp(-epsilon)
        self.unit = 1 / math.tanh(epsilon / 2)
        self.points = np.linspace(-1, 1, n_points)
        self.values: list[float] = []
        self.sets: list[_Sets] = []
        half = n_points // 2
        self._totals, self._half = n_points - half, half
        t, unit = self.points[: self._totals], self.unit
        middles = (self.points[:half] + self.points[1 : half + 1]) / 2
        squares = np.concatenate([t, middles]) / unit
        self._bounds = np.concatenate([np.ones(len(t)), t[:half], squares**2])
        equal = len(t) + half
        self._solver = highs.new_solver(
            {
                "small_matrix_value": 1e-12,
                "simplex_scale_strategy": 0,
                "primal_feasibility_tolerance": 1e-10,
                "dual_feasibility_tolerance": 1e-10,
            }
        )
        for row, bound in enumerate(self._bounds.tolist()):
            low = bound if row < equal else -highs.INFINITY
            self._solver.addRow(low, bound, 0, np.array([], dtype=np.int32), np.array([]))
        on = np.arange(equal, len(self._bounds), dtype=np.int32)
        # Of the average: E y² is linear between the points.
        self._weights = np.full(n_points, share / (n_points - 1))
        self._weights[[0, -1]] /= 2
        self._squares = share / 3 / unit**2
        self._solver.addCol(1.0 - share, 0.0, highs.INFINITY, len(on), on, np.full(len(on), -1.0))
        # k-ary response is feasible.
        attenuation = -math.expm1(-epsilon) / (1 + (n_points - 1) * self.fall)
        self.add(self.points / attenuation / unit, np.eye(n_points, dtype=bool))

    def _entries(self, values: FloatArray, sets: _Sets) -> FloatArray:
        """Return the rows of pairs of columns, shape (columns, rows)."""
        mass = np.where(sets, 1.0, self.fall)
        both = mass + mass[:, ::-1]
        mean = (self.unit * values)[:, None] * (mass - mass[:, ::-1])
        square = (values**2)[:, None] * both
        half = self._half
        middles = (square[:, :half] + square[:, 1 : half + 1]) / 2
        return np.hstack(
            [both[:, : self._totals], mean[:, :half], square[:, : self._totals], middles]
        )

    def add(self, values: FloatArray, sets: _Sets) -> None:
        """Add pairs of columns."""
        costs = 2 * values**2 * (np.where(sets, 1.0, self.fall) @ self._weights)
        for cost, value, chosen, entries in zip(
            costs.tolist(), values.tolist(), sets, self._entries(values, sets), strict=True
        ):
            on = np.flatnonzero(entries).astype(np.int32)
            self._solver.addCol(cost, 0.0, highs.INFINITY, len(on), on, entries[on])
            self.values.append(value)
            self.sets.append(chosen)

    def refined(self, n_points: int) -> "_Search":
        """Return a search on a finer grid, from the columns in use here: each set with the points
        near its ends, or without."""
        finer = _Search(n_points, self.epsilon, self.share)
        used = np.flatnonzero(self.masses > 0)
        near = (self.points[1] - self.points[0]) / 2 + 1e-9
        values = np.array(self.values)[used]
        ends = [self.points[self.sets[i]][[0, -1]] if self.sets[i].any() else (2, 2) for i in used]
        low, high = np.array(ends)[:, :, None].transpose(1, 0, 2)
        for below in (1e-9, near):
            for above in (1e-9, near):
                inside = (finer.points >= low - below) & (finer.points <= high + above)
                finer.add(values, inside)
        return finer

    def solve(self) -> None:
        """Add columns until the variance is within :data:`GAP` of the least."""
        bound = 0.0
        for _ in range(_MOST_ROUNDS):
            highs.optimize(self._solver)
            solution = self._solver.getSolution()
            variance = self._solver.getObjectiveValue() - self._squares
            values, sets, gains, bound_here = self._price(np.array(solution.row_dual))
            bound = max(bound, variance - bound_here)
            if variance - bound <= GAP * variance:
                break
            chosen: dict[bytes, int] = {}
            for place in np.argsort(-gains).tolist():
                if gains[place] <= 0 or len(chosen) == _AT_ONCE:
                    break
                chosen.setdefault(sets[place].tobytes(), place)
            if not chosen:
                break
            places = list(chosen.values())
            self.add(values[places], sets[places])
        # Masses below the solver's tolerance are left out; the others are brought back to the
        # equations by the least change.
        masses = np.array(self._solver.getSolution().col_value)[1:]
        masses[masses < 1e-9] = 0.0
        used = np.flatnonzero(masses)
        equal = self._totals + self._half
        rows = self._entries(np.array(self.values)[used], np.array(self.sets)[used])[:, :equal].T
        missed = self._bounds[:equal] - rows @ masses[used]
        masses[used] += np.linalg.lstsq(rows, missed, rcond=None)[0]
        self.masses = np.maximum(masses, 0.0)

    def _price(self, multipliers: FloatArray) -> tuple[FloatArray, _Sets, FloatArray, float]:
        """Return columns with the gain of each per unit of mass, and how far above the optimum the
        variance can be."""
        totals, half, unit = self._totals, self._half, self.unit
        shape = len(self.points)
        one, first, second = (np.zeros(shape) for _ in range(3))
        one[:totals] = multipliers[:totals]
        first[:half] = multipliers[totals : totals + half] * unit
        middles = multipliers[2 * totals + half :] / 2
        second[:totals] = multipliers[totals + half : 2 * totals + half]
        second[:half] += middles
        second[1 : half + 1] += middles
        one, first, second = one + one[::-1], first - first[::-1], second + second[::-1]
        second -= 2 * self._weights
        values = np.linspace(-_LARGEST, 0, _VALUES)
        for last in (False, True):
            gain = one + np.outer(values, first) + np.outer(values**2, second)
            sets = gain > 0
            mass = np.where(sets, 1.0, self.fall)
            if not last:
                bend = np.minimum(mass @ second, -1e-300)
                values = np.clip(-(mass @ first) / (2 * bend), -_LARGEST, 0)
        gains = (mass * gain).sum(axis=1) / mass.sum(axis=1)
        return values, sets, gains, shape * max(0.0, float(gains.max()))

    def matrix(self) -> tuple[FloatArray, FloatArray]:
        """Return the matrix and the values of its outputs."""
        used = np.flatnonzero(self.masses > 0)
        mass = np.where(np.array(self.sets)[used], 1.0, self.fall) * self.masses[used, None]
        values = np.array(self.values)[used] * self.unit
        return merged(np.vstack([mass, mass[:, ::-1]]), np.concatenate([values, -values]))


def merged(
    matrix: FloatArray, values: FloatArray | Sequence[float]
) -> tuple[FloatArray, FloatArray]:
    """Return a matrix with one output for each distinct value, ascending. The sum of several rows
    keeps the mean and the bound on their ratios."""
    distinct, place = np.unique(values, return_inverse=True)
    rows = np.zeros((len(distinct), matrix.shape[1]))
    np.add.at(rows, place, matrix)
    return rows / rows.sum(axis=0), distinct
