"""How strongly two attributes go together: Cramér's V of the true table, from a randomized one.

V² = Φ²/(min(a, b) − 1) is between 0 (independent) and 1 (one attribute determines the other). Φ̂²
is corrected for its bias, tr AΣ, and has the variance g + 2 tr (AΣ)², g = τΦ² that of the delta
method (docs/proofs/estimation.md, Theorem 13). Under published forms Σ and g are within forms.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from deniable.estimate.chi_square import (
    Chosen,
    CovarianceOf,
    independent_covariance,
    interaction_influence,
    table_influence,
)
from deniable.estimate.tabulate import Floats
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap

LEVEL, POWER = 0.05, 0.8
"""The p-value below which an association counts as found, and how probable that has to be."""


@dataclass(frozen=True)
class Association:
    """V² of two attributes in the population, corrected for the noise in its estimate.

    ``square``: the estimate of V²; nearly unbiased, so it may be negative or above 1. ``slope,
    floor``: if V² is v, the variance of ``square`` is about slope·v + floor, randomization and
    sampling together. ``detectable``: the V from which on the χ² test at 5 % finds an association
    with probability 80 %, if it is spread evenly over all interactions; above 1 if it finds none so
    surely.
    """

    square: float
    slope: float
    floor: float
    detectable: float

    @property
    def standard_error(self) -> float:
        """Of ``square``, at its own value; at V = 0 if it is negative."""
        return sqrt(self.slope * max(self.square, 0.0) + self.floor)

    @property
    def value(self) -> float:
        """Cramér's V: the root of ``square``, cut to 0 … 1."""
        return sqrt(min(max(self.square, 0.0), 1.0))

    def interval(self, quantile: float) -> tuple[float, float]:
        """Return an interval for V, both ends cut to 0 … 1.

        It holds every V² = v that ``square`` is within ``quantile`` standard deviations of, where
        the standard deviation is that at v: (V̂² − v)² = z²(τ v + f), a quadratic in v.
        """
        slope, floor = self.slope, self.floor
        middle = self.square + quantile**2 * slope / 2
        inside = slope * self.square + (quantile * slope / 2) ** 2 + floor
        margin = quantile * sqrt(max(inside, 0.0))
        low, high = middle - margin, middle + margin
        return sqrt(min(max(low, 0.0), 1.0)), sqrt(min(max(high, 0.0), 1.0))


def association(
    frequencies: Floats,
    inverse: TableMap | StackedMap,
    n_records: float,
    chosen: Chosen | None = None,
    covariance_of: CovarianceOf | None = None,
) -> Association:
    """Estimate V² from the frequencies of released pairs.

    ``frequencies``: θ, shape of the outputs of the two attributes. ``inverse``: L, from released to
    true tables, shape (a, b). ``covariance_of``: in a survey.
    """
    if covariance_of is None:
        covariance_of = independent_covariance(frequencies, inverse, n_records)
    table, of_table = table_influence(frequencies, inverse, chosen)
    influence = interaction_influence(table, of_table)
    first, second = table.sum(axis=1), table.sum(axis=0)
    product = np.outer(first, second)
    square = float((table**2 / product).sum()) - 1.0

    scaled = (influence / np.sqrt(product)[:, :, None]).reshape(table.size, frequencies.size)
    covariance = covariance_of(scaled)  # √A Σ √A
    bias, spread = float(np.trace(covariance)), float((covariance**2).sum())

    gradient = (
        2 * table / product
        - ((table**2 / second).sum(axis=1) / first**2)[:, None]
        - ((table**2 / first[:, None]).sum(axis=0) / second**2)[None, :]
    )
    slope = float(covariance_of(np.tensordot(gradient, of_table, 2).reshape(1, -1))[0, 0])
    most = min(table.shape) - 1
    ratio = slope / square if square > 0 else 0.0  # π̂ an exact product: then the slope is 0 too
    free = (len(first) - 1) * (len(second) - 1)
    detectable = sqrt(_found_from(free) * bias / free / most)
    return Association((square - bias) / most, ratio / most, 2 * spread / most**2, detectable)


def _found_from(free: int) -> float:
    """Return the least noncentrality at which χ² with ``free`` degrees of freedom exceeds its 95 %
    point with probability :data:`POWER`.

    The corrected X² is, near independence, Φ̃ᵀΣ̃⁺Φ̃ of the vector Φ̃ of √A C, Σ̃ = √A Σ √A: a χ² with
    that of the true vector as noncentrality. Spread evenly over the (a − 1)(b − 1) interactions
    that is Φ² times the mean of 1/λ over the eigenvalues of Σ̃, at least Φ²·(a − 1)(b − 1)/tr Σ̃,
    from which V is computed; the two are equal if the noise is the same in all directions.
    """
    from scipy.special import chdtri, chndtrinc  # only here: loading it takes a fifth of a second

    return float(chndtrinc(chdtri(free, LEVEL), free, 1 - POWER))
