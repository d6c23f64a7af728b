"""The linear program that mixes votes: which of them, and how much of each.

Rows are >= 1, not = 1: the multipliers λ are then >= 0, which loses nothing
(docs/proofs/optimal.md) and keeps to sets that are closed under keeping more attributes.
"""

import math

import highspy
import numpy as np

from deniable.solvers.problem import FloatArray, SolverError

ARTIFICIAL = 1e5
"""Price of an artificial column; Σ w of an optimum is at most about e^5 units of `set_unit`."""

_ONE = np.ones(1)


class Master:
    """min Σ w_c, rows Σ w_c v_i/d_i >= 1, w >= 0; columns scaled to a largest entry of one.

    Args:
        units: each row is divided by its own for the solver, shape (k,).
    """

    def __init__(self, units: FloatArray) -> None:
        n_rows = len(units)
        self._units = units
        self._highs = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in (
            ("output_flag", False),
            ("presolve", "off"),
            ("primal_feasibility_tolerance", 1e-10),
            ("dual_feasibility_tolerance", 1e-10),
        ):
            self._highs.setOptionValue(name, value)
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

    def solve(self) -> tuple[FloatArray, FloatArray]:
        """Return the multipliers of the rows and the weights of the columns.

        While artificial columns are in use the weights are not feasible: they come as infinities.
        """
        self._highs.run()
        # Category counts from 2 to 10,000 beside levels from 0.001 to 12 (3 in 1,000 such designs)
        # leave the warm basis singular to working precision: start afresh, then with less asked.
        for tolerance in (1e-10, 1e-9, 1e-8, 1e-7):
            if self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                break
            self._highs.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._highs.setOptionValue("dual_feasibility_tolerance", tolerance)
            self._highs.clearSolver()
            self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
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
