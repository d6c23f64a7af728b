"""The linear program for three attributes, as the supplement of Yamamoto and Shibuya prints it.

Supplement, section S2.A. The unknowns are x_0 to x_6, densities of the patterns ∅, 1, 2, 3, 12, 13,
23 over that of 123.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from deniable.solvers.patterns import linear

_NOT_BELOW = ((0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 4), (2, 6), (3, 5), (3, 6))
A_UB = np.zeros((12, 7))
for _row, (_above, _below) in enumerate(_NOT_BELOW):
    A_UB[_row, [_above, _below]] = -1, 1
A_UB[9:, 4:] = -np.eye(3)
"""As printed: nine rows of x_a ≥ x_b, three of x_4, x_5, x_6 ≥ 1."""

B_UB = np.array([0, 0, 0, 0, 0, 0, 0, -1, -1, -1], dtype=np.float64)
"""Right-hand sides of ``A_UB`` as printed."""


@dataclass(frozen=True)
class PrintedProgram:
    """The printed program against this package's.

    Args:
        rows: of A_ub.
        entries: of b_ub.
        worst: largest difference of ε, in nats, with zeros added in front of b_ub.
        n_instances: random instances.
    """

    rows: int
    entries: int
    worst: float
    n_instances: int


def compare_printed_program(generator: np.random.Generator, n_instances: int) -> PrintedProgram:
    """Solve random instances of 2 to 5 categories and levels of 0.5 to 4 nats with both."""
    worst = 0.0
    for _ in range(n_instances):
        counts = generator.integers(2, 6, 3).tolist()
        levels = generator.uniform(0.5, 4, 3).tolist()
        optimum = linear.solve(counts, levels).epsilon
        worst = max(worst, abs(_solve(counts, levels) - optimum))
    return PrintedProgram(len(A_UB), len(B_UB), worst, n_instances)


def _solve(counts: Sequence[int], levels: Sequence[float]) -> float:
    """Return ε = ln x_0 of the printed A_eq, b_eq and A_ub, with the zeros that b_ub lacks."""
    a, b, c = (n - 1.0 for n in counts)
    e1, e2, e3 = np.exp(levels)
    transposed = np.array(
        [
            [1, 1, 1],
            [-e1, a, a],
            [b, -e2, b],
            [c, c, -e3],
            [-b * e1, -a * e2, a * b],
            [-c * e1, a * c, -a * e3],
            [b * c, -c * e2, -b * e3],
        ]
    )
    right = np.array([b * c * e1, a * c * e2, a * b * e3])
    b_ub = np.concatenate([np.zeros(len(A_UB) - len(B_UB)), B_UB])
    found = linprog([1.0] + [0.0] * 6, A_UB, b_ub, transposed.T, right, method="highs")
    assert found.fun is not None
    return math.log(found.fun)
