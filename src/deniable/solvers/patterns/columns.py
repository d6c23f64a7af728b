"""The exact optimum for up to about 20 attributes by column generation on the mixture form.

Master (HiGHS): minimise Σ w_c subject to Σ w_c v(D_c)_i ≥ d_i, w ≥ 0. Rows are ≥ d, not = d: the
multipliers λ are then ≥ 0, which loses nothing (docs/proofs/optimal.md, Theorem 3) and leads to
sets that are closed under keeping more attributes; what a row exceeds d by is brought down
afterwards.
Pricing: the best set for λ is the vote {Σ λ_i (Y_i − p_i) > 0}; λ is rounded to integers *before*
the vote is evaluated, so columns and bounds are those of the integers.

Prices are taken at λ_best + s (λ_master − λ_best), λ_best the multipliers of the best lower bound
so far ("in-out" separation). With s = 1 the multipliers swing and k = 16 takes 550 columns; with
s = 0.2 it takes 100 to 120.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.halves import Halves
from deniable.laws.votes.mixture import VoteMixture
from deniable.solvers import highs
from deniable.solvers.problem import Problem, SolverError

ARTIFICIAL = 1e5
"""Price of an artificial column; Σ w of an optimum is at most about e^5 units of `set_unit`."""

_ONE = np.ones(1)


class Master:
    """Minimise Σ w_c subject to Σ w_c v_i/d_i ≥ 1, w ≥ 0; columns have a largest entry of one.

    Args:
        units: each row is divided by its own for the solver, shape (k,).
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
        for i in range(n_rows):  # artificial: feasible from the start
            self._highs.addCol(ARTIFICIAL, 0.0, highspy.kHighsInf, 1, self._rows[i : i + 1], _ONE)
        self._scales: list[float] = []

    def add(self, column: FloatArray) -> None:
        """Add v/d of another vote, shape (k,)."""
        column = column / self._units
        scale = 1.0 / float(np.abs(column).max())
        self._scales.append(scale)
        # Entries under 1e-9 would be dropped by the solver without a word: it gets a zero instead.
        entries = np.where(np.abs(column * scale) < 1e-9, 0.0, column * scale)
        self._highs.addCol(scale, 0.0, highspy.kHighsInf, len(entries), self._rows, entries)

    def meet(self, rows: Sequence[int]) -> None:
        """Have these rows met exactly from now on; their multipliers may then be below 0."""
        for row in rows:
            due = 1.0 / float(self._units[row])
            self._highs.changeRowBounds(row, due, due)

    def solve(self) -> tuple[FloatArray, FloatArray]:
        """Return the multipliers of the rows, shape (k,), and the columns' weights, shape (C,).

        While artificial columns are in use the weights are not feasible, and infinite here.
        """
        status = highs.optimize(self._highs)
        # Category counts from 2 to 10,000 beside levels from 0.001 to 12 (3 in 1,000 such designs)
        # leave the warm basis singular to working precision: start afresh, with wider tolerances.
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


def polished(values: FloatArray, chosen: FloatArray, units: FloatArray) -> FloatArray:
    """Solve the tight rows in full precision, then scale up to be feasible.

    Args:
        values: v/d of the votes in use, shape (k, C).
        chosen: their weights as the solver found them, shape (C,).
        units: what the solver's rows were divided by, shape (k,).
    """
    tight = (values @ chosen - 1.0) / units < 1e-7
    scale = units[tight]
    for _ in range(3):  # the solver's point is good to about 1e-10; each round squares the error
        rest = (1.0 - values[tight] @ chosen) / scale
        step = np.linalg.lstsq(values[tight] / scale[:, None], rest, rcond=1e-13)[0]
        if np.all(chosen + step > 0):
            chosen = chosen + step
    least = float((values @ chosen).min())
    if not least > 0:
        raise SolverError("the solver's mixture of votes misses a level")
    return chosen / least


ATTEMPTS = ((0.2, False), (0.2, True), (0.5, False), (1.0, False))
"""How far from the best multipliers towards the master's to price, and whether the master's rows
are in units of what stands in them, tried in turn. Where one attribute has a level of 25 nats, a
vote that meets another's ordinary level has parts of opposite sign in that row, each e^25 times its
right side."""

GOOD_ENOUGH = 1e-5
"""A gap in nats beyond which the next of these is tried."""

MAX_COLUMNS = 4000

SCALE = 2.0**50
"""The largest integer weight of a vote: rounding moves λ by 2^-51 relatively to the largest."""


@dataclass(frozen=True, eq=False)
class ColumnSolution:
    """Votes and multipliers that meet the levels (never below), and both bounds.

    Attributes:
        law: the mixture.
        weights: λ of the best lower bound, shape (k,).
        lower_bound, upper_bound: in nats, not rounded either way.
        n_columns: how many votes were priced.
    """

    law: VoteMixture
    weights: FloatArray
    lower_bound: float
    upper_bound: float
    n_columns: int


class _Pricing:
    """Votes for given λ, and the lower bound each proves."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._halves = Halves(problem.uniform_keep)
        self.shift, self._factor = 0.0, 1.0
        self.votes: list[IntArray] = []
        self.thresholds: list[int] = []
        self.values: list[FloatArray] = []  # v(D_c) e^shift

    def set_unit(self, shift: float) -> None:
        """Measure Σ w in units of e^shift, a lower bound: then it is of order one."""
        self.shift, self._factor = shift, math.exp(shift)

    def forget(self) -> None:
        """Drop the votes so far."""
        self.votes, self.thresholds, self.values = [], [], []

    def row_sizes(self, direction: FloatArray) -> FloatArray:
        """Return what this vote puts into either side of each row, at least 1, shape (k,)."""
        problem = self.problem
        weights = np.rint(direction * (SCALE / float(direction.max()))).astype(np.int64)
        threshold = math.floor(math.fsum(weights * problem.keep_probability)) + 1
        _, kept, changed = self._halves.vote(weights, threshold)
        both = problem.change_probability * kept + problem.keep_probability * changed
        return np.maximum(both * self._factor / problem.keep_excess, 1.0)

    def price(self, direction: FloatArray) -> tuple[float, IntArray, FloatArray]:
        """Return the lower bound that λ proves, λ as integers, and its column v/d e^shift."""
        problem = self.problem
        weights = np.rint(direction * (SCALE / float(direction.max()))).astype(np.int64)
        threshold = math.floor(math.fsum(weights * problem.keep_probability)) + 1
        _, kept, changed = self._halves.vote(weights, threshold)
        value = (
            problem.change_probability * kept - problem.keep_probability * changed
        ) * self._factor
        self.votes.append(weights)
        self.thresholds.append(threshold)
        self.values.append(value)
        excess = float(weights @ value)
        reward = float(weights @ problem.keep_excess)
        if not excess > 0:
            raise SolverError("a vote is won with a probability too small for double precision")
        bound = float(np.logaddexp(0.0, math.log(reward / excess) + self.shift))
        return bound, weights, value / problem.keep_excess


def solve_columns(problem: Problem, *, gap: float = 1e-10) -> ColumnSolution:
    """Solve to the given gap in nats, or as far as double precision goes.

    Levels from 0.001 to 12 nats beside category counts from 2 to 10,000 can leave the master
    singular to working precision (1 in 1,000 such designs); prices taken elsewhere lead around it.

    Args:
        problem: the levels, all above 0, of at most 22 attributes.
        gap: stop when the bounds of master and pricing are this close.

    Raises:
        SolverError: if no feasible mixture is found.
    """
    solutions: list[ColumnSolution] = []
    for inside, in_units in ATTEMPTS:
        try:
            solutions.append(_generate(problem, gap, inside, in_units))
        except SolverError:
            continue
        if solutions[-1].upper_bound - solutions[-1].lower_bound <= max(gap, GOOD_ENOUGH):
            break
    if not solutions:
        raise SolverError("column generation: no feasible mixture was found at these levels")
    return min(solutions, key=lambda solution: solution.upper_bound - solution.lower_bound)


def _generate(problem: Problem, gap: float, inside: float, in_units: bool) -> ColumnSolution:
    """Generate columns with prices taken this far from the best multipliers to the master's."""
    k = problem.n_attributes
    pricing = _Pricing(problem)
    # "i kept": a vote for every attribute alone, which proves that attribute's own level.
    first = [problem.attribute_epsilon, *np.eye(k)]
    pricing.set_unit(max(pricing.price(direction)[0] for direction in first))
    units = pricing.row_sizes(problem.attribute_epsilon) if in_units else np.ones(k)
    master = Master(units)
    best, best_weights = -math.inf, np.zeros(k, dtype=np.int64)
    pricing.forget()
    for direction in first:
        bound, tried, column = pricing.price(direction)
        master.add(column)
        if bound > best:
            best, best_weights = bound, tried
    center = problem.attribute_epsilon / float(problem.attribute_epsilon @ problem.keep_excess)
    upper = mark = math.inf
    stale = 0
    while len(pricing.votes) < MAX_COLUMNS:
        duals, weights = master.solve()
        upper = float(np.logaddexp(0.0, math.log(float(weights.sum())) + pricing.shift))
        if upper - best <= gap or not duals.any():
            break
        if upper - best < 0.9 * mark:
            mark, stale = upper - best, 0
        else:
            stale += 1
        outer = duals / problem.keep_excess
        outer /= float(outer @ problem.keep_excess)
        gained = False
        for step in (inside, 1.0):
            direction = center + step * (outer - center)
            bound, tried, column = pricing.price(direction)
            master.add(column)
            if bound > best:
                best, best_weights, center, gained = bound, tried, direction, True
            if float(column @ duals) > 1.0 + 1e-9:
                gained = True  # the master's multipliers are cut off
                break
        # The solver's tolerance hides what is left: solve its basis in full.
        if not gained or stale > 20 + 2 * k:
            direction = _polished_duals(problem, pricing, units, duals, weights)
            bound, tried, column = pricing.price(direction)
            master.add(column)
            if bound <= best + 1e-13:
                break
            best, best_weights, center, stale = bound, tried, direction, 0
    if np.isinf(upper):
        raise SolverError("the column generation found no feasible mixture")
    law = _refined(problem, pricing, units, weights)
    weights = best_weights.astype(np.float64)
    return ColumnSolution(law, weights, best, law.ideal_epsilon, len(pricing.votes))


def _basis(problem: Problem, pricing: _Pricing, weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the columns in use and their v/d, (k, C)."""
    used = np.flatnonzero(weights > 1e-13 * weights.sum())
    return used, np.array([pricing.values[c] for c in used]).T / problem.keep_excess[:, None]


def _polished_duals(
    problem: Problem,
    pricing: _Pricing,
    units: FloatArray,
    duals: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """Return λ ∝ y/d with y the solution of (columns in use)ᵀ y = 1 on the rows with y > 0."""
    _, values = _basis(problem, pricing, weights)
    values = values / units[:, None]
    solved = duals * units
    rows = solved > 1e-12 * solved.max()
    for _ in range(2):
        rest = 1.0 - values[rows].T @ solved[rows]
        solved[rows] += np.linalg.lstsq(values[rows].T, rest, rcond=1e-14)[0]
    direction = np.maximum(solved, 0.0) / units / problem.keep_excess
    return direction / float(direction @ problem.keep_excess)


def _refined(
    problem: Problem, pricing: _Pricing, units: FloatArray, weights: FloatArray
) -> VoteMixture:
    """Solve the tight rows for the used columns in full precision, then scale up to be feasible."""
    used, values = _basis(problem, pricing, weights)
    chosen = polished(values, weights[used], units)
    return VoteMixture(
        tuple(problem.counts.tolist()),
        np.array([pricing.votes[c] for c in used]),
        np.array([pricing.thresholds[c] for c in used], dtype=np.int64),
        chosen * math.exp(pricing.shift),
        np.ones(problem.n_attributes),
    )
