"""Disclosure by a response matrix, and the accuracy of estimates through it (Huang and Du).

A response matrix M has one row per output and one column per category, M[y, x] = Pr[y | x]; columns
sum to 1 and there may be more outputs than categories. Every measure takes a batch, shape
(..., m, n), and returns one number per matrix, shape (...). With the prior p, the joint mass of
category x and output y is q_y(x) = M[y, x] p(x), and r_y = Σ_x q_y(x) is the probability of y.
"""

import numpy as np
import numpy.typing as npt

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.prior import SUM_TOLERANCE, to_sum_to_one


def checked_response(matrix: npt.ArrayLike, n_categories: int) -> FloatArray:
    """Return response matrices as floats whose columns sum to 1, shape (..., m, n)."""
    try:
        values = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("response matrix: it must be rows of numbers of equal length") from None
    if values.ndim < 2 or values.shape[-1] != n_categories:
        raise InputError(
            f"response matrix: it needs one column for each of the {n_categories} categories"
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("response matrix: every entry must be a finite number, at least 0")
    with np.errstate(over="ignore"):
        totals = values.sum(axis=-2, keepdims=True)
    off = np.abs(totals - 1.0) > SUM_TOLERANCE
    if off.any():
        column = int(np.argwhere(off)[0][-1])
        raise InputError(f"response matrix: column {column + 1} does not sum to 1")
    return to_sum_to_one(values, totals)


def privacy(matrix: FloatArray, prior: FloatArray) -> FloatArray:
    """Return 1 − A with A = Σ_y max_x q_y(x), the error rate of the best guess from one answer.

    ``matrix``: shape (..., m, n). ``prior``: shape (n,), or (..., n) for one per matrix.

    Source: Huang and Du, equation (8).

    >>> half_true = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    >>> privacy(half_true, np.array([0.5, 0.3, 0.2])).item()
    0.475
    """
    joint = matrix * prior[..., None, :]
    return np.asarray(1.0 - joint.max(axis=-1).sum(axis=-1))


def worst_posterior(matrix: FloatArray, prior: FloatArray) -> FloatArray:
    """Return max_y max_x Pr[x | y], the certainty of the luckiest guess; over outputs that occur.

    ``matrix``: shape (..., m, n). ``prior``: shape (n,) or (..., n).

    Source: Huang and Du, equation (9); at least max_x p(x) by their Theorem 5.
    """
    joint = matrix * prior[..., None, :]
    total = joint.sum(axis=-1)
    share = np.divide(joint.max(axis=-1), total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(share.max(axis=-1))


def record_mse(matrix: FloatArray, prior: FloatArray) -> FloatArray:
    """Return N·MSE, the mean squared error of estimated shares for one row; inf if M is singular.

    The best linear unbiased estimate at this prior has the covariance (J⁻¹ − ppᵀ)/N with J = Mᵀ
    diag(1/r) M, r = Mp; the MSE is its trace over n. Theorem 6 of Huang and Du as printed counts
    each covariance twice; this is the correct sum. ``matrix``: shape (..., m, n). ``prior``: shape
    (n,).

    >>> half_true = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    >>> round(record_mse(half_true, np.array([0.5, 0.3, 0.2])).item(), 6)
    3.54
    """
    occurrence = matrix @ prior
    n = matrix.shape[-1]
    if matrix.shape[-2] == n:
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            pass
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                trace = ((inverse * inverse).sum(axis=-2) * occurrence).sum(axis=-1)
            trace = np.where(np.isnan(trace), np.inf, trace)  # an infinity times 0
            return np.asarray((trace - prior @ prior) / n)
    if matrix.shape[-2] < n:
        return np.full(matrix.shape[:-2], np.inf)
    scale = np.divide(1.0, np.sqrt(occurrence), out=np.zeros_like(occurrence), where=occurrence > 0)
    # Singular values of diag(r^−1/2) M, whose squares are the eigenvalues of J.
    values = np.linalg.svd(matrix * scale[..., None], compute_uv=False)
    singular = values[..., -1] <= values[..., 0] * n * np.finfo(np.float64).eps
    squares = np.where(singular[..., None], 1.0, values) ** 2
    trace = np.where(singular, np.inf, (1.0 / squares).sum(axis=-1))
    return np.asarray((trace - prior @ prior) / n)


def condition(matrix: FloatArray) -> FloatArray:
    """Largest over smallest singular value of M, shape (...); inf if M is singular."""
    values = np.linalg.svd(matrix, compute_uv=False)
    least = values[..., -1]
    if matrix.shape[-2] < matrix.shape[-1]:
        least = np.zeros_like(least)
    tiny = least <= values[..., 0] * matrix.shape[-1] * np.finfo(np.float64).eps
    return np.asarray(np.where(tiny, np.inf, values[..., 0] / np.where(tiny, 1.0, least)))


def epsilon(matrix: FloatArray) -> FloatArray:
    """Return max_y ln(max_x M[y, x]/min_x M[y, x]) in nats, shape (...): ε of local differential
    privacy, inf where an output excludes a category. Outputs that never occur are left out.

    >>> round(epsilon(np.array([[0.75, 0.25], [0.25, 0.75]])).item(), 6)  # ln 3
    1.098612
    """
    largest, least = matrix.max(axis=-1), matrix.min(axis=-1)
    excluded = (least == 0) & (largest > 0)
    plain = least > 0
    with np.errstate(over="ignore"):
        ratio = np.divide(largest, least, out=np.ones_like(largest), where=plain)
    return np.asarray(np.where(excluded, np.inf, np.log(ratio)).max(axis=-1))


def left_inverse(matrix: FloatArray, prior: FloatArray) -> FloatArray:
    """Return L = J⁻¹ Mᵀ diag(1/r), shape (n, m): the unbiased estimate of least variance if the
    truth is `prior`, shape (n,); M⁻¹ for a square matrix. ``matrix``: shape (m, n)."""
    occurrence = matrix @ prior
    seen = occurrence > 0
    scale = np.sqrt(occurrence[seen])
    left, values, right = np.linalg.svd(matrix[seen] / scale[:, None], full_matrices=False)
    n = matrix.shape[1]
    if len(values) < n or values[-1] <= values[0] * n * np.finfo(np.float64).eps:
        raise InputError(
            "response matrix: it is singular, so some true shares cannot be distinguished"
        )
    inverse = np.zeros((n, len(matrix)))
    inverse[:, seen] = (right.T / values) @ left.T / scale
    return inverse


def accuracy(matrix: FloatArray, prior: FloatArray, score: FloatArray | None = None) -> FloatArray:
    """Return the average score A of the Bayes estimate, shape (...); 1 − `privacy` for the default
    score.

    ``score``: G[x̂, x], of the guess x̂ if x is true, shape (n, n); by default 1 if right and 0 if
    wrong. Source: Huang and Du, equation (4) at its largest, which no estimate exceeds (Theorem 4).
    """
    return np.asarray(_scores(matrix, prior, score).max(axis=-1).sum(axis=-1))


def _scores(matrix: FloatArray, prior: FloatArray, score: FloatArray | None) -> FloatArray:
    """Σ_x G[x̂, x] q_y(x), shape (..., m, n), last axis x̂."""
    joint = matrix * prior[..., None, :]
    if score is None:
        return np.asarray(joint)
    n = matrix.shape[-1]
    table = np.asarray(score, dtype=np.float64)
    if table.shape != (n, n) or not np.isfinite(table).all():
        raise InputError(f"score: it must be a table of {n} x {n} finite numbers")
    return np.asarray(joint @ table.T)


def blend_to_bound(matrix: FloatArray, prior: FloatArray, bound: float) -> FloatArray:
    """Mix a matrix with the least fraction of a uniform answer for `worst_posterior` ≤ `bound`.

    With m outputs and h_yx = q_y(x) − δ r_y, mixing in a fraction t gives
    (1 − t) h + t (p_x − δ)/m, at most 0 for every h > 0 once t = max h/(h + (δ − p_x)/m).

    ``matrix``: shape (..., m, n). ``prior``: shape (n,).
    """
    joint = matrix * prior
    over = joint - bound * joint.sum(axis=-1, keepdims=True)
    room = (bound - prior) / matrix.shape[-2]
    share = np.where(over > 0, over / np.where(over > 0, over + room, 1.0), 0.0)
    most = share.max(axis=(-2, -1), keepdims=True)
    return np.asarray((1.0 - most) * matrix + most / matrix.shape[-2])
