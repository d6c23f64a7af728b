"""The law of the number of kept attributes when all attributes are alike, without a loop over k.

It computes what `sums.SumLaw` does, for weights n_i = 1 without dither: s is binomial.
"""

import math

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.sums import DROP, UNIT, SumExpectations, TiltedSum


class CountLaw:
    """ν(s) = Binomial(k, π)(s), π the tilted keep probability."""

    def __init__(self, steps: TiltedSum, floor: int = 0, drop: float = DROP) -> None:
        k = steps.n_attributes
        self.steps, self.drop = steps, drop
        keep, stay = float(steps.low[0]), float(steps.stay[0])
        mode = min(max(int((k + 1) * keep), 0), k)
        j = np.arange(k)
        ratios = (k - j) / (j + 1.0) * (keep / stay)  # pmf(j + 1)/pmf(j)
        # From the mode outwards both products only fall; 5 roundings a step.
        up = np.cumprod(ratios[mode:])
        down = np.cumprod(1.0 / ratios[:mode][::-1])[::-1]
        mass = np.concatenate([down, [1.0], up])
        mass /= mass.sum()
        live = np.flatnonzero(mass > drop)
        first, last = int(live[0]), int(live[-1]) + 1
        self.dropped = float(mass[:first].sum() + mass[last:].sum())
        first = min(max(first, floor), last - 1)
        self.support: IntArray = np.arange(first, last, dtype=np.int64)
        self.mass: FloatArray = mass[first:last]
        self._steps_taken = max(mode - first, last - mode) + 1

    def error(self) -> float:
        """Return the relative error bound of every expectation (dropped mass apart).

        The tilted probabilities carry COEFFICIENT_ROUNDINGS twice; powers of them up to the k-th
        would magnify that, but they come as powers of one ratio, whose error is a change of the
        tilt: it is counted for the distance from the mode, where the recurrence starts.
        """
        return 1.01 * (40 * self._steps_taken + math.log2(len(self.mass) + 1) + 64) * UNIT

    def pair_error(self) -> float:
        """See `SumLaw.pair_error`: at most twelve roundings for either factor, and of 1 − s/k one
        that is absolute."""
        return self.error() + 32 * UNIT

    def dot(self, values: FloatArray, mass: FloatArray) -> FloatArray:
        """Return Σ_s values[..., s] mass[s]."""
        return np.asarray((values * mass).sum(axis=-1))

    def expectations(self, values: FloatArray) -> SumExpectations:
        """See `SumLaw.expectations`; by symmetry attribute i is kept with chance s/k given s."""
        values = np.atleast_2d(values)
        k = self.steps.n_attributes
        fraction = self.support / k
        weighed = values * self.mass
        kept = (weighed * fraction).sum(axis=-1)
        changed = (weighed * (1.0 - fraction)).sum(axis=-1)
        ones = np.ones(k)
        return SumExpectations(weighed.sum(axis=-1), np.outer(kept, ones), np.outer(changed, ones))

    def product_expectation(
        self, values: FloatArray, factors: dict[int, tuple[float, float]]
    ) -> float:
        """See `SumLaw.product_expectation`; given s the kept set is uniform of that size."""
        k = self.steps.n_attributes
        # polynomial in "how many more may be kept": draw attributes of T one after another
        chances = {0: np.ones(len(self.support))}  # kept among T so far -> weight
        kept_left = self.support.astype(np.float64)
        for met, (if_kept, if_changed) in enumerate(factors.values()):
            new: dict[int, FloatArray] = {}
            for kept, weight in chances.items():
                fraction = np.clip((kept_left - kept) / (k - met), 0.0, 1.0)
                new[kept + 1] = new.get(kept + 1, 0.0) + weight * fraction * if_kept
                new[kept] = new.get(kept, 0.0) + weight * (1.0 - fraction) * if_changed
            chances = new
        total = sum(chances.values(), np.zeros(len(self.support)))
        return float((np.ravel(values) * self.mass * total).sum())

    def pair_expectations(
        self, values: FloatArray, if_kept: FloatArray, if_changed: FloatArray
    ) -> FloatArray:
        """See `SumLaw.pair_expectations`; all pairs are alike."""
        k = self.steps.n_attributes
        factor = (float(if_kept[0]), float(if_changed[0]))
        pairs = np.full((k, k), self.product_expectation(values, {0: factor, 1: factor}))
        square = {0: (factor[0] ** 2, factor[1] ** 2)}
        np.fill_diagonal(pairs, self.product_expectation(values, square))
        return pairs
