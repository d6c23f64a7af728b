"""How much of the privacy–error plane a set of matrices covers, beside the most that any could."""

import numpy as np

from deniable.errors import InputError
from deniable.solvers.matrices.spea2 import non_dominated
from deniable.solvers.problem import FloatArray


def hypervolume(privacy: FloatArray, error: FloatArray, reference: float) -> float:
    """The area dominated by some points, over privacy from 0 and ln(error) up to a reference.

    Errors span decades, so the area is taken on their logarithms, as they are plotted.

    Args:
        privacy: shape (m,).
        error: shape (m,), above 0.
        reference: points of a larger error count for nothing.

    Raises:
        InputError: if the reference is not above 0.
    """
    _check(reference)
    front = non_dominated(privacy, error)
    front = front[error[front] < reference]
    widths = np.diff(privacy[front], prepend=0.0)
    return float(widths @ np.log(reference / error[front]))


def outer_hypervolume(
    levels: FloatArray, bounds: FloatArray, most_privacy: float, reference: float
) -> float:
    """At least the `hypervolume` of any set of mechanisms, from lower bounds on their errors.

    The least possible error rises with privacy, so the bound at one level holds up to the next.

    Args:
        levels: privacy levels, rising, the first at 0, shape (m,).
        bounds: lower bounds at these levels, shape (m,).
        most_privacy: 1 − max p.
        reference: as in `hypervolume`.

    Raises:
        InputError: if the levels do not rise from 0, or the reference is not above 0.
    """
    _check(reference)
    if not len(levels) or levels[0] != 0.0 or (np.diff(levels) <= 0).any():
        raise InputError("levels: they must rise strictly, and begin with 0")
    widths = np.diff(np.minimum(levels, most_privacy), append=most_privacy)
    return float(widths @ np.maximum(np.log(reference / bounds), 0.0))


def _check(reference: float) -> None:
    if not reference > 0:
        raise InputError("reference: the largest error that counts must be above 0")
