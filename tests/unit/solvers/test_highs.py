"""The adapter to HiGHS against all corners of small programs."""

import itertools
import subprocess
import sys

import highspy
import numpy as np
import pytest

from deniable.solvers.highs import INFINITY, Basis, Method, Program, dense_rows, run, stack
from deniable.solvers.patterns.columns import Master


def program(seed: int) -> tuple[Program, np.ndarray]:
    """Minimise a random cost over a box cut by random rows ≥; feasible by construction."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(1, 5)), int(random.integers(1, 5))
    matrix = np.where(random.random((m, n)) < 0.3, 0.0, random.normal(size=(m, n)))
    matrix[:, 0] += 0.1
    inside = random.uniform(0.2, 0.8, n)
    least = matrix @ inside - random.uniform(0.0, 0.3, m)
    cost = random.normal(size=n)
    rows = dense_rows(matrix)
    most = np.full(m, INFINITY)
    return Program(cost, np.zeros(n), np.ones(n), rows, least, most), matrix


def best_corner(of: Program, matrix: np.ndarray) -> float:
    """The least cost at any point where n of all the limits are tight and none is broken."""
    n = len(of.cost)
    planes = np.concatenate([matrix, np.eye(n), np.eye(n)])
    right = np.concatenate([of.row_lower, of.lower, of.upper])
    best = np.inf
    for chosen in map(list, itertools.combinations(range(len(planes)), n)):
        if abs(np.linalg.det(planes[chosen])) < 1e-9:
            continue
        x = np.linalg.solve(planes[chosen], right[chosen])
        inside = (x >= -1e-9).all() and (x <= 1 + 1e-9).all()
        if inside and (matrix @ x >= of.row_lower - 1e-9).all():
            best = min(best, float(of.cost @ x))
    return best


def test_from_any_basis_the_point_is_the_same() -> None:
    for seed in range(25):
        of, matrix = program(seed)
        cold = run(of)
        slack = Basis(np.zeros(len(of.cost), dtype=np.bool_), np.ones(len(matrix), dtype=np.bool_))
        for start in (slack, Basis(cold.basic, cold.row_basic)):
            warm = run(of, start=start)
            assert warm.status == "optimal"
            assert of.cost @ warm.x == pytest.approx(of.cost @ cold.x, abs=1e-9)


@pytest.mark.parametrize("method", ["simplex", "interior-point"])
@pytest.mark.parametrize("seed", range(25))
def test_the_point_is_the_best_corner_and_its_multipliers_prove_it(
    seed: int, method: Method
) -> None:
    of, matrix = program(seed)
    answer = run(of, method)
    assert answer.status == "optimal"
    assert of.cost @ answer.x == pytest.approx(best_corner(of, matrix), abs=1e-8)
    # Duality: y·b plus the least of (cost − Aᵀy)·x over the box is the same number.
    reduced = of.cost - matrix.T @ answer.multipliers
    proved = answer.multipliers @ of.row_lower + np.minimum(reduced, 0.0).sum()
    assert (answer.multipliers >= -1e-9).all()
    assert proved == pytest.approx(of.cost @ answer.x, abs=1e-8)
    # The basis: as many columns and rows as there are rows, the others at a limit.
    assert answer.basic.sum() + answer.row_basic.sum() == len(matrix)
    at_limit = np.where(answer.at_upper, of.upper, of.lower)
    np.testing.assert_allclose(answer.x[~answer.basic], at_limit[~answer.basic], atol=1e-9)
    tight = ~answer.row_basic
    np.testing.assert_allclose((matrix @ answer.x)[tight], of.row_lower[tight], atol=1e-8)


@pytest.mark.parametrize("method", ["simplex", "interior-point"])
def test_a_program_without_a_point_is_infeasible(method: Method) -> None:
    rows = dense_rows(np.array([[1.0, 1.0]]))
    three = Program(np.ones(2), np.zeros(2), np.ones(2), rows, np.array([3.0]), np.array([3.0]))
    assert run(three, method).status == "infeasible"


def test_small_coefficients_are_not_dropped() -> None:
    # x = 1,000 and y at least 1e-10 x. HiGHS drops anything below 1e-9 by itself, and y would be 0.
    rows = dense_rows(np.array([[-1e-10, 1.0]]))
    lower, upper = np.array([1e3, 0.0]), np.array([1e3, 1.0])
    answer = run(Program(np.array([0.0, 1.0]), lower, upper, rows, np.zeros(1), np.ones(1)))
    assert answer.x[1] == pytest.approx(1e-7, abs=1e-10)


def test_rows_are_the_matrix_without_its_zeros_and_stack_on_one_another() -> None:
    random = np.random.default_rng(1)
    blocks = [np.where(random.random((m, 4)) < 0.5, 0.0, random.random((m, 4))) for m in (2, 1, 3)]
    rows = stack(*(dense_rows(block) for block in blocks))
    rebuilt = np.zeros((6, 4))
    for r in range(6):
        span = slice(rows.start[r], rows.start[r + 1])
        rebuilt[r, rows.index[span]] = rows.value[span]
    np.testing.assert_array_equal(rebuilt, np.concatenate(blocks))
    assert (rows.value != 0).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_is_solved_whatever_ran_in_the_process_before(threads: int) -> None:
    """The first solver of a process starts the threads for all; ours must not depend on it."""
    of, matrix = program(0)
    first = highspy.Highs()
    first.setOptionValue("output_flag", False)
    first.setOptionValue("threads", threads)
    highspy.Highs.resetGlobalScheduler(True)
    try:
        first.run()
        answer = run(of)
        master = Master(np.ones(2))
        master.add(np.array([1.0, 0.5]))
        master.add(np.array([0.5, 1.0]))
        _, weights = master.solve()
    finally:
        highspy.Highs.resetGlobalScheduler(True)
    assert answer.status == "optimal"
    assert of.cost @ answer.x == pytest.approx(best_corner(of, matrix), abs=1e-9)
    assert weights == pytest.approx([2 / 3, 2 / 3])


def test_no_program_starts_more_threads_than_one() -> None:
    """Where ours come first, a later solver that asks for one thread must run."""
    highspy.Highs.resetGlobalScheduler(True)
    try:
        Master(np.ones(1)).solve()
        later = highspy.Highs()
        later.setOptionValue("output_flag", False)
        later.setOptionValue("threads", 1)
        assert later.run() == highspy.HighsStatus.kOk
    finally:
        highspy.Highs.resetGlobalScheduler(True)


def test_nothing_is_printed_from_the_first_solver_of_a_process_on() -> None:
    """Its header, in front of a command's own JSON: it is not Python that prints it."""
    code = (
        "import numpy as np\n"
        "from deniable.solvers.patterns.columns import Master\n"
        "Master(np.ones(1)).solve()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
