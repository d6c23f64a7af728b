"""Column generation: the best mixture of votes.

The optimum is of the form f ∝ 1 + Σ_c w_c 1[D_c] with votes D_c (docs/proofs/optimal.md). The
master program minimises Σ w_c subject to Σ w_c v(D_c)_i ≥ d_i, w ≥ 0, where
v(D)_i = E_μ[Y_i − p_i; D] is a vote's contribution to attribute i. Rows are ≥ d, so that their
multipliers are ≥ 0, without loss (Theorem 3); excesses are brought down afterwards. The best vote
at multipliers λ is {Σ λ_i (Y_i − p_i) > 0}, and any λ ≥ 0 proves a lower bound.

Votes are priced at λ_best + s (λ_master − λ_best), λ_best the multipliers of the best lower bound
so far ("in-out" separation): with s = 1 the multipliers oscillate and 16 attributes take 550
columns, with s = 0.2 100 to 120.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import highspy
import numpy as np
import numpy.typing as npt

from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import SolverError
from deniable.solvers import highs
from deniable.solvers.patterns.orbits import Orbits
from deniable.solvers.patterns.restricted import allowed, bring_down, keep_masses, met

INSIDE = 0.2
"""s, the first step from the best multipliers towards the master's."""

PATIENCE = 20
"""Number of votes, plus one per two attributes, within which the gap must fall by a tenth."""

_ONE = np.ones(1)


class Master:
    """Minimise Σ w_c subject to Σ w_c v_i/d_i ≥ 1, w ≥ 0; columns have a largest entry of one.

    ``units``: each row is divided by its own for the solver, shape (k,).
    """

    def __init__(self, units: FloatArray) -> None:
        n_rows = len(units)
        self._units = units
        self._highs = highs.new_solver(
            {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        )
        self._rows = np.arange(n_rows, dtype=np.int32)
        none = np.array([], dtype=np.int32)
        for unit in units.tolist():
            self._highs.addRow(1.0 / unit, highspy.kHighsInf, 0, none, np.array([]))
        # Artificial columns, feasible from the start, at a price far above any optimum's Σ w, which
        # is at most about e^5 units of a lower bound.
        for i in range(n_rows):
            self._highs.addCol(1e5, 0.0, highspy.kHighsInf, 1, self._rows[i : i + 1], _ONE)
        self._scales: list[float] = []

    def add(self, column: FloatArray) -> None:
        """Add v/d of another vote, shape (k,)."""
        column = column / self._units
        scale = 1.0 / float(np.abs(column).max())
        self._scales.append(scale)
        # Entries under 1e-9 would be dropped by the solver without a word: it gets a zero instead.
        entries = np.where(np.abs(column * scale) < 1e-9, 0.0, column * scale)
        self._highs.addCol(scale, 0.0, highspy.kHighsInf, len(entries), self._rows, entries)

    def solve(self) -> tuple[FloatArray, FloatArray]:
        """Return the multipliers of the rows, shape (k,), and the columns' weights, shape (C,).

        While artificial columns are in use the weights are not feasible, and infinite here.
        """
        status = highs.optimize(self._highs)
        # Category counts from 2 to 10,000 with levels from 0.001 to 12 (3 in 1,000 such designs)
        # leave the warm basis singular to working precision: restart, with wider tolerances.
        for tolerance in (1e-10, 1e-9, 1e-8, 1e-7):
            if status == highspy.HighsModelStatus.kOptimal:
                break
            self._highs.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._highs.setOptionValue("dual_feasibility_tolerance", tolerance)
            self._highs.clearSolver()
            status = highs.optimize(self._highs)
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverError("the master problem of the column generation was not solved")
        solution = self._highs.getSolution()
        values = np.array(solution.col_value)
        n_rows = len(self._rows)
        weights = np.maximum(values[n_rows:] * np.array(self._scales), 0.0)
        if values[:n_rows].max() > 1e-9:
            weights = np.full_like(weights, math.inf)
        return np.maximum(np.array(solution.row_dual), 0.0) / self._units, weights


class Columns(ABC):
    """The votes priced so far, and the master program that mixes them.

    ``gain``: d, shape (k,). ``unit``: a lower bound on ε in nats: w is measured in e^unit, which
    makes Σ w about one. ``weights``: λ ≥ 0, shape (k,), of that bound, or to start from.
    """

    def __init__(self, gain: FloatArray, unit: float, weights: FloatArray) -> None:
        self.gain, self.unit = gain, unit
        self.lower, self.upper = unit, math.inf
        self.best, self.center = weights, weights / float(weights @ gain)
        self.columns: list[FloatArray] = []
        self.mixture = np.zeros(0)
        column = self.price(self.center)[2]
        # A row is in units of its demand or, if that is more, of the first vote's contribution.
        self.units = np.maximum(np.abs(column), 1.0)
        self.master = Master(self.units)
        self.master.add(column)
        # "i unchanged" meets the level of i, and bounds the multipliers by its own price.
        for alone in np.eye(len(gain)):
            self.add(alone)

    @abstractmethod
    def price(self, direction: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Append the vote of λ to those priced, and its column, v/d times e^unit; return a lower
        bound in nats, the λ that prove it, and the column."""

    def add(self, direction: FloatArray) -> tuple[bool, FloatArray]:
        """Price a vote and add it to the master; return whether it proves more, and its column."""
        bound, weights, column = self.price(direction)
        self.master.add(column)
        more = bound > self.lower
        if more:
            self.lower, self.best = bound, weights
        return more, column

    def generate(self, gap: float) -> bool:
        """Price votes until the bounds are within `gap` nats; return whether they are."""
        mark, since = math.inf, 0
        k = len(self.gain)
        while len(self.columns) < 12 * k + 40:
            duals, self.mixture = self.master.solve()
            total = float(self.mixture.sum())
            self.upper = float(np.logaddexp(0.0, math.log(total) + self.unit))
            if math.isinf(self.upper) or self.upper - self.lower < 0.9 * mark:
                mark, since = self.upper - self.lower, len(self.columns)
            if self.upper - self.lower <= gap:
                return True
            if len(self.columns) - since > PATIENCE + k // 2 or not duals.any():
                return False
            outer = duals / self.gain
            outer /= float(outer @ self.gain)
            gained = False
            for step in (INSIDE, 1.0):
                direction = self.center + step * (outer - self.center)
                more, column = self.add(direction)
                if more:
                    self.center, gained = direction, True
                if float(column @ duals) > 1.0 + 1e-9:  # the master's multipliers are cut off
                    gained = True
                    break
            if not gained:
                return False
        return False


@dataclass(frozen=True, eq=False)
class ColumnSolution:
    """A law over all patterns that meets the levels, and both bounds.

    Attributes:
        excess: g of every orbit, shape (n,).
        weights: λ of the best lower bound, one per group, shape (m,).
        lower_bound, upper_bound: of the program in nats, not rounded either way.
    """

    excess: FloatArray
    weights: FloatArray
    lower_bound: float
    upper_bound: float


class _Patterns(Columns):
    """Votes over all orbits of patterns; a row is for the attributes of a group."""

    def __init__(self, grouped: Orbits, guess: float) -> None:
        self._orbits = grouped
        self._votes: list[FloatArray] = []
        groups = grouped.groups
        super().__init__(groups.keep_excess, guess, grouped.size * groups.attribute_epsilon)

    def price(self, direction: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        groups = self._orbits.groups
        mass = np.where(self._won(direction), self._orbits.chance, 0.0)
        kept, changed = self._orbits.fates(mass)
        value = groups.change_probability * kept - groups.keep_probability * changed
        excess = float(direction @ value)
        if not excess > 0:
            raise SolverError("a vote is won with a probability too small for double precision")
        bound = float(np.logaddexp(0.0, math.log(float(direction @ self.gain) / excess)))
        self._votes.append(direction)
        self.columns.append(value * math.exp(self.unit) / self.gain)
        return bound, direction, self.columns[-1]

    def _won(self, direction: FloatArray) -> npt.NDArray[np.bool_]:
        need = float(direction @ self._orbits.groups.keep_probability)
        return np.asarray(self._orbits.kept_sum(direction) > need)

    def excess(self) -> FloatArray:
        """Return g of every orbit under the mixture, shape (n,)."""
        total = np.zeros(len(self._orbits.chance))
        for c in np.flatnonzero(self.mixture):
            np.add(total, self.mixture[c], out=total, where=self._won(self._votes[c]))
        return total * math.exp(self.unit)


def solve_columns(grouped: Orbits, guess: float) -> ColumnSolution:
    """Find the law of smallest ε at these levels, without caps or floor.

    Results are never above a level and within 1e-13 nats below it. The bounds end within
    1e-10 nats: a wider gap saves next to no time.

    ``grouped``: the levels, all above 0, by orbit. ``guess``: a lower bound on ε, in nats.
    """
    votes = _Patterns(grouped, guess)
    votes.generate(1e-10)
    if math.isinf(votes.upper):
        raise SolverError("column generation: no feasible mixture was found at these levels")
    free = np.full(len(grouped.size), np.inf)
    excess = allowed(grouped, free, votes.excess())  # monotone but for rounding
    kept, changed = keep_masses(grouped, excess)
    # Σ μ drift g is d plus the excess; a shortfall is compensated by a larger g.
    short = float(((changed - kept) / grouped.groups.keep_excess).max())
    excess = bring_down(grouped, excess * (1.0 + max(short, 0.0) * (1.0 + 1e-6)))
    if not met(grouped, excess):
        raise SolverError("column generation: the mixture of votes misses a level")
    return ColumnSolution(excess, votes.best, votes.lower, votes.upper)
