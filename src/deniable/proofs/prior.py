"""Priors as floats that sum to 1."""

import numpy as np
import numpy.typing as npt

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray

SUM_TOLERANCE = 1e-9
"""Decimal fractions typed by hand sum to 1 only up to rounding; more than this is a mistake."""


def checked_prior(prior: npt.ArrayLike) -> FloatArray:
    """Return a prior as floats that sum to 1, shape (n,), n ≥ 2."""
    try:
        values = np.array(prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("prior: it must be a flat list of numbers") from None
    if values.ndim != 1 or len(values) < 2:
        raise InputError("prior: it must be a flat list with one number for each of 2 categories")
    if not np.isfinite(values).all() or (values <= 0).any():
        raise InputError(
            f"prior: entry {int(np.argmin(values > 0)) + 1} is not above 0; leave out categories "
            "without rows, or give them a small share"
        )
    with np.errstate(over="ignore"):
        total = float(values.sum())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise InputError(f"prior: its entries sum to {total:.9g}, not to 1")
    return to_sum_to_one(values, total)


def to_sum_to_one(values: FloatArray, totals: FloatArray | float) -> FloatArray:
    """Divide by totals, unless they differ from 1 by rounding only, so that a second call changes
    no value."""
    rounding = 2.0**-52 * values.shape[0 if values.ndim == 1 else -2]
    return np.asarray(np.where(np.abs(totals - 1.0) <= rounding, values, values / totals))
