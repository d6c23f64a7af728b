"""Exact limits of a probability from a count (Clopper and Pearson, 1934).

If an event of probability p occurs c times in n independent draws, the lower limit exceeds p with
probability at most the error, and the upper limit is below p with probability at most the error.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

Floats = NDArray[np.float64]


def lower(count: Any, draws: Any, error: float) -> Floats:
    """Return lower limits, shapes broadcast."""
    c, n = np.asarray(count, dtype=np.float64), np.asarray(draws, dtype=np.float64)
    return np.where(c > 0, beta.ppf(error, np.maximum(c, 1), n - c + 1), 0.0)


def upper(count: Any, draws: Any, error: float) -> Floats:
    """Return upper limits, shapes broadcast."""
    c, n = np.asarray(count, dtype=np.float64), np.asarray(draws, dtype=np.float64)
    return np.where(c < n, beta.ppf(1 - error, c + 1, np.maximum(n - c, 1)), 1.0)


def differs(count: Any, draws: Any, probability: Any, error: float) -> NDArray[np.bool_]:
    """Return where a count is in the two-sided critical region of this size under its claimed
    probability."""
    below = binom.cdf(count, draws, probability)
    above = binom.sf(np.asarray(count) - 1, draws, probability)
    return np.asarray(2 * np.minimum(below, above) <= error)


def power(draws: float, claimed: float, true: float, error: float) -> float:
    """Return the probability that :func:`differs` detects a true probability other than the claimed
    one.
    """
    n = int(draws)
    least = binom.ppf(error / 2, n, claimed)
    while 2 * binom.cdf(least - 1, n, claimed) > error:  # rounding of the percentile
        least -= 1
    most = binom.isf(error / 2, n, claimed)
    while 2 * binom.sf(most, n, claimed) > error:
        most += 1
    # Counts from least to most may be consistent, with one more on each side for safety.
    missed = binom.cdf(most, n, true) - binom.cdf(least - 1, n, true)
    return float(min(max(1.0 - missed, 0.0), 1.0))
