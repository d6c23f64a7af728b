"""Do counts follow stated probabilities? Decided by exact binomial tails, cell by cell.

A count of n independent draws that fall into a cell with probability p is binomial. It raises an
alarm if it lies in a tail of probability below the level; the level of a check is divided by twice
the number of its cells, so that the chance of any false alarm is at most what was allowed, however
small the expected counts are and however the cells depend on each other.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom


@dataclass(frozen=True)
class Expectation:
    """Cells with the numbers of draws that could have fallen into them.

    Args:
        draws: number of draws per cell, of a shape that broadcasts to that of ``probability``.
        probability: of every cell, exact up to a few units in the last place.
        false_alarm: the chance that counts of these very probabilities raise an alarm.
    """

    draws: NDArray[np.int64]
    probability: NDArray[np.float64]
    false_alarm: float

    @property
    def _level(self) -> float:
        return self.false_alarm / (2 * self.probability.size)

    @cached_property
    def _quiet(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Between which counts a cell raises no alarm, and one more on each side."""
        least = binom.ppf(self._level, self.draws, self.probability) - 1
        return least, binom.isf(self._level, self.draws, self.probability) + 1

    def alarms(self, counts: ArrayLike) -> NDArray[np.intp]:
        """Return the flat positions of the cells that raise an alarm."""
        counts = np.asarray(counts)
        assert counts.shape == self.probability.shape
        low = binom.cdf(counts, self.draws, self.probability) < self._level
        high = binom.sf(counts - 1, self.draws, self.probability) < self._level
        return np.flatnonzero(low | high)

    def miss_probability(self, defective: ArrayLike) -> float:
        """Return a bound of the chance that counts of other probabilities raise no alarm.

        For no alarm every cell's count must lie between its two tails; the cell where that is least
        likely gives the bound.
        """
        defective = np.asarray(defective)
        least, most = self._quiet
        inside = np.minimum(
            binom.cdf(most, self.draws, defective), binom.sf(least - 1, self.draws, defective)
        )
        return float(inside.min())


def expectation(draws: ArrayLike, probability: Any, false_alarm: float) -> Expectation:
    """Return the expectation of cells; fractions become floats."""
    return Expectation(
        np.asarray(draws, dtype=np.int64), np.asarray(probability, dtype=np.float64), false_alarm
    )
