"""Random requests, and the optimum of one, for the tests of laws at levels and for totals."""

import numpy as np

from deniable.proofs.certificate import best_known_bound
from deniable.proofs.problem import Problem
from deniable.solvers.patterns import optimal
from deniable.solvers.patterns.columns import ColumnSolution, solve_columns
from deniable.solvers.patterns.orbits import orbits


def request(seed: int, k: int) -> tuple[list[int], list[float]]:
    """Categories from 2 to 8, and levels from 0.3 to 1.5 nats."""
    random = np.random.default_rng(seed)
    return random.integers(2, 9, k).tolist(), random.uniform(0.3, 1.5, k).tolist()


def by_columns(problem: Problem) -> ColumnSolution:
    """The best mixture of votes over all patterns."""
    counts, levels = problem.counts.tolist(), problem.attribute_epsilon.tolist()
    return solve_columns(orbits(problem), best_known_bound(counts, levels))


def optimum(problem: Problem) -> float:
    """Return ε without caps and floor in nats, from which searches of ramps start."""
    return optimal.solve(problem.counts.tolist(), problem.attribute_epsilon.tolist()).epsilon
