"""Ramps by enumeration of all patterns: the oracle of everything that sums cleverly."""

import itertools

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.solvers.patterns.ramps.evaluate import Prices, Ramp


class Enumerated:
    """All patterns of attributes with these categories: `changed` of shape (2^k, k), `chance` under
    the uniform law, shape (2^k,), and `sign`, the h_i of every pattern."""

    def __init__(self, n_categories: FloatArray) -> None:
        a = self.n_categories = np.asarray(n_categories, dtype=np.float64)
        self.changed = np.array(list(itertools.product((0.0, 1.0), repeat=len(a))))
        self.chance = np.prod(np.where(self.changed == 1, 1 - 1 / a, 1 / a), axis=1)
        self.sign = np.where(self.changed == 1, -1 / (a - 1), 1.0)

    def density(self, ramp: Ramp) -> FloatArray:
        cost = self.changed @ ramp.slopes
        return np.exp(np.clip(ramp.start - cost, -ramp.height, 0.0))

    def levels(self, density: FloatArray) -> FloatArray:
        mass = density * self.chance
        kept, changed = mass @ (1 - self.changed), mass @ self.changed
        return np.log(kept * (self.n_categories - 1) / changed)

    def pairs(self, density: FloatArray) -> FloatArray:
        return (self.sign.T * (density * self.chance)) @ self.sign

    def ratios(self, density: FloatArray) -> FloatArray:
        """φ_ij/(φ_i φ_j), infinite on the diagonal."""
        mass = density * self.chance
        single = mass @ self.sign
        ratios = self.pairs(density) * mass.sum() / np.outer(single, single)
        np.fill_diagonal(ratios, np.inf)
        return ratios

    def given_rest(self, density: FloatArray) -> FloatArray:
        """The largest |ln f(S)/f(S ∪ i)| of every attribute."""
        table = np.log(density).reshape((2,) * len(self.n_categories))
        return np.array([np.abs(np.diff(table, axis=i)).max() for i in range(table.ndim)])

    def worth(self, ramp: Ramp, prices: Prices) -> tuple[float, float]:
        """What a ramp is worth, and E_μ[F]."""
        density = self.density(ramp)
        apart = prices.pairs - np.diag(np.diag(prices.pairs))
        each = prices.total + self.changed @ prices.changed
        each = each + 0.5 * np.einsum("si,ij,sj->s", self.sign, apart, self.sign)
        mass = density * self.chance
        value = mass @ each + prices.none * density[0] + prices.all * density[-1]
        return float(value), float(mass.sum())
