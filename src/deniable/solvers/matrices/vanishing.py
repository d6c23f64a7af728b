"""Response matrices whose optimum has zeros: the entries that only come near them, set to zero.

An interior-point method ends with entries near 1e−9 where the best matrix has none. They say
nothing, except that ε would be stated as about 20, a number without use, where it is unbounded.
Without them the columns no longer add up and a limit may be passed by as much. So the result is
mixed with a matrix of the same zeros that keeps the limits with room to spare: the solution of

    maximise γ   subject to   Σ_y q_y = p,   0 ≤ q_y(x) ≤ t_y,   Σ t ≤ A − γ,
                              t_y ≤ δ Σ_x q_y(x) − γ,   q_y(x) = 0 where the entry is set to zero.
"""

import numpy as np
import numpy.typing as npt

from deniable.solvers import highs
from deniable.solvers.matrices.frontier_rows import Limits
from deniable.solvers.problem import FloatArray

NEARLY_ZERO = (1e-4, 1e-5, 1e-6)
"""Below which of these, tried in turn, probabilities are taken for zeros. What interior points
leave is near 1e−8, but near 1e−6 in the column of a rare category."""


def without_below(matrix: FloatArray, least: float) -> FloatArray:
    """Return a column-stochastic matrix, shape (n, n), with entries below ``least`` set to zero."""
    kept = np.where(matrix < least, 0.0, matrix)
    return np.asarray(kept / kept.sum(axis=0))


def roomy(support: npt.NDArray[np.bool_], limits: Limits) -> FloatArray | None:
    """Return the matrix with zeros off the support that keeps limits of average privacy with the
    most room; None if none has any.

    Args:
        support: where entries may be above zero, shape (n, n).
        limits: average privacy, with or without a worst posterior.
    """
    n = limits.n_categories
    assert limits.success is not None
    rows, columns = np.nonzero(support)
    size = len(rows)
    entry, cost, room = np.arange(size), size + np.arange(n), size + n
    sums = np.zeros((n, size + n + 1))
    sums[columns, entry] = 1.0
    above = np.zeros((size, size + n + 1))
    above[entry, cost[rows]], above[entry, entry] = 1.0, -1.0
    total = np.zeros((1, size + n + 1))
    total[0, cost], total[0, room] = -1.0, -1.0
    blocks = [sums, above, total]
    lower = [limits.prior, np.zeros(size), np.array([-limits.success])]
    if limits.most_posterior is not None and limits.most_posterior < 1.0:
        worst = np.zeros((n, size + n + 1))
        worst[rows, entry] = limits.most_posterior
        worst[np.arange(n), cost] = -1.0
        worst[:, room] = -1.0
        blocks.append(worst)
        lower.append(np.zeros(n))
    least = np.concatenate(lower)
    most = np.full(len(least), highs.INFINITY)
    most[:n] = limits.prior
    gain = np.zeros(size + n + 1)
    gain[room] = -1.0
    answer = highs.run(
        highs.Program(
            gain,
            np.zeros(size + n + 1),
            np.full(size + n + 1, highs.INFINITY),
            highs.dense_rows(np.concatenate(blocks)),
            least,
            most,
        )
    )
    if answer.status != "optimal" or answer.x[room] <= 0:
        return None
    matrix = np.zeros((n, n))
    matrix[rows, columns] = np.maximum(answer.x[:size], 0.0)
    return np.asarray(matrix / matrix.sum(axis=0))
