"""Solve one sparse linear program with HiGHS: return its point, multipliers and basis.

By default HiGHS drops coefficients below 1e−9 and accepts violations of 1e−7. Here both are set to
the least it allows, 1e−12 and 1e−10. These are absolute, so callers scale their rows and columns to
about one first, and correct the remaining error (`patterns.restricted`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import highspy
import numpy as np
import numpy.typing as npt

from deniable.laws.patterns import FloatArray, IntArray

Method = Literal["simplex", "interior-point"]
Status = Literal["optimal", "infeasible", "failed"]

_MAX_ITERATIONS, _MAX_SECONDS = 200_000, 300.0
"""The programs of this package take a few thousand steps; one that takes more is stalling."""

INFINITY = float(highspy.kHighsInf)


@dataclass(frozen=True, eq=False)
class Rows:
    """A sparse matrix by rows: row r has the entries start[r]:start[r + 1] of index and value."""

    start: IntArray
    index: IntArray
    value: FloatArray


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise cost·x subject to row_lower ≤ rows x ≤ row_upper, lower ≤ x ≤ upper."""

    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    rows: Rows
    row_lower: FloatArray
    row_upper: FloatArray


@dataclass(frozen=True, eq=False)
class Answer:
    """The solution of a program.

    Attributes:
        status: "optimal" or "infeasible", as claimed by HiGHS.
        x: the point, one entry per column.
        multipliers: one per row; the derivative of the least cost by the row's bound.
        basic, at_upper: basis status of each column.
        row_basic: basis status of each row; a row that is not basic holds with equality.
    """

    status: Status
    x: FloatArray
    multipliers: FloatArray
    basic: npt.NDArray[np.bool_]
    at_upper: npt.NDArray[np.bool_]
    row_basic: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Basis:
    """The basic variables; the others are at their lower bounds.

    Attributes:
        columns, rows: whether each is basic.
    """

    columns: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.bool_]


def dense_rows(matrix: FloatArray) -> Rows:
    """Take the nonzero entries of a matrix of shape (rows, columns)."""
    row, index = np.nonzero(matrix)
    start = np.searchsorted(row, np.arange(len(matrix) + 1))
    return Rows(start, index, matrix[row, index])


def stack(*blocks: Rows) -> Rows:
    """Put blocks of rows over the same columns on top of one another."""
    offsets = np.cumsum([0, *(len(block.index) for block in blocks)])
    starts = [block.start[:-1] + offset for block, offset in zip(blocks, offsets, strict=False)]
    return Rows(
        np.concatenate([*starts, offsets[-1:]]),
        np.concatenate([block.index for block in blocks]),
        np.concatenate([block.value for block in blocks]),
    )


class _Silent(highspy.Highs):
    """A solver whose constructor prints no header, unlike that of HiGHS 1.16.

    (Type errors are ignored because its methods have no types.)
    """

    def enableCallbacks(self) -> None:  # noqa: N802 - HiGHS's own name
        self.silent()
        super().enableCallbacks()  # type: ignore[no-untyped-call]


def new_solver(options: Mapping[str, bool | int | float | str]) -> highspy.Highs:
    """Return an empty, silent solver on one thread."""
    solver = _Silent()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "threads": 1, "presolve": "off", **options}.items():
        solver.setOptionValue(name, value)
    return solver


def optimize(solver: highspy.Highs) -> highspy.HighsModelStatus:
    """Run a solver, and return its model status.

    The first solver in a process starts the threads for all, and one with another number of threads
    then fails. If other code of the process ran first, its number is used; the simplex method works
    on one thread anyway.
    """
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kNotset:
        solver.setOptionValue("threads", 0)
        solver.run()
    return solver.getModelStatus()


def run(program: Program, method: Method = "simplex", start: Basis | None = None) -> Answer:
    """Solve a program on one thread.

    >>> import numpy as np
    >>> rows = dense_rows(np.array([[1.0, 1.0]]))  # minimise x + 2y subject to x + y >= 1, x <= 0.6
    >>> bounds = np.zeros(2), np.array([0.6, INFINITY])
    >>> one, none = np.array([1.0]), np.array([INFINITY])
    >>> answer = run(Program(np.array([1.0, 2.0]), *bounds, rows, one, none))
    >>> answer.status, answer.x.round(9).tolist()
    ('optimal', [0.6, 0.4])
    """
    solver = _loaded(program, method)
    if start is not None:
        _set_basis(solver, start)
    return _answer(solver, optimize(solver))


def _set_basis(solver: highspy.Highs, start: Basis) -> None:
    status = highspy.HighsBasisStatus
    basis = highspy.HighsBasis()
    basis.col_status = [status.kBasic if one else status.kLower for one in start.columns.tolist()]
    basis.row_status = [status.kBasic if one else status.kLower for one in start.rows.tolist()]
    solver.setBasis(basis)


class Repeated:
    """A program that is solved repeatedly with other costs, each time from the last basis.

    >>> import numpy as np
    >>> rows = dense_rows(np.array([[1.0, 1.0]]))  # x + y = 1, both between 0 and 0.6
    >>> bounds, one = (np.zeros(2), np.full(2, 0.6)), np.array([1.0])
    >>> repeated = Repeated(Program(np.zeros(2), *bounds, rows, one, one))
    >>> [repeated.least(np.array(cost)).round(9).tolist() for cost in ([1.0, 2.0], [2.0, 1.0])]
    [[0.6, 0.4], [0.4, 0.6]]
    """

    def __init__(self, program: Program) -> None:
        self._solver = _loaded(program, "simplex")
        self._columns = np.arange(len(program.cost), dtype=np.int32)

    def least(self, cost: FloatArray) -> FloatArray | None:
        """Return a point of least cost; None if none is found."""
        self._solver.changeColsCost(len(self._columns), self._columns, cost)
        if optimize(self._solver) != highspy.HighsModelStatus.kOptimal:
            return None
        return np.array(self._solver.getSolution().col_value)


def _loaded(program: Program, method: Method) -> highspy.Highs:
    options: dict[str, bool | int | float | str] = {
        "small_matrix_value": 1e-12,
        # Callers have scaled. HiGHS's own scaling on top makes small coefficients so large that
        # bases go singular: ten attributes with up to 10,000 categories then take minutes.
        "simplex_scale_strategy": 0,
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
        "simplex_iteration_limit": _MAX_ITERATIONS,
        "time_limit": _MAX_SECONDS,
        "solver": "simplex" if method == "simplex" else "ipm",
    }
    solver = new_solver(options)
    rows = program.rows
    # Arrays directly: as a model's attributes they would be read number by number.
    solver.passModel(
        len(program.cost),
        len(program.row_lower),
        len(rows.value),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        program.cost,
        program.lower,
        program.upper,
        program.row_lower,
        program.row_upper,
        rows.start.astype(np.int32),
        rows.index.astype(np.int32),
        rows.value,
        np.zeros(len(program.cost), dtype=np.int32),  # every column is continuous
    )
    return solver


def _answer(solver: highspy.Highs, model: highspy.HighsModelStatus) -> Answer:
    basis, point = solver.getBasis(), solver.getSolution()
    is_basic, is_upper = highspy.HighsBasisStatus.kBasic, highspy.HighsBasisStatus.kUpper
    status: Status = "failed"
    if model == highspy.HighsModelStatus.kOptimal and basis.valid:
        status = "optimal"
    elif model in (
        highspy.HighsModelStatus.kInfeasible,
        highspy.HighsModelStatus.kUnboundedOrInfeasible,
    ):
        status = "infeasible"
    columns, rows = list(basis.col_status), list(basis.row_status)
    return Answer(
        status,
        np.array(point.col_value),
        np.array(point.row_dual),
        np.array([entry == is_basic for entry in columns], dtype=np.bool_),
        np.array([entry == is_upper for entry in columns], dtype=np.bool_),
        np.array([entry == is_basic for entry in rows], dtype=np.bool_),
    )
