"""Sums over all 2^k patterns of a weighted vote in about 2^{k/2} steps.

The attributes are split into two halves.  A pattern of the whole wins the vote Σ_{kept} n_i >= θ
exactly when its right half's sum is at least θ minus its left half's sum; with the right half
sorted by sum, the winners beside each left half are a suffix, and only its sum is needed.
Sums of integers decide, so there are no near ties; all masses have one sign.
"""

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray


def product_masses(uniform_keep: FloatArray) -> FloatArray:
    """Return μ of every pattern, flattened in C order, index 0 = kept, 1 = changed."""
    mass = np.ones(1)
    for r in uniform_keep:
        mass = np.multiply.outer(mass, np.array([r, 1.0 - r])).ravel()
    return mass


def kept_sums(weights: IntArray) -> IntArray:
    """Return Σ_{kept} n_i of every pattern, in the same order."""
    total = np.zeros(1, dtype=np.int64)
    for n in weights:
        total = np.add.outer(total, np.array([n, 0])).ravel()
    return total


class Halves:
    """The uniform law μ over patterns of k attributes, split in the middle."""

    def __init__(self, uniform_keep: FloatArray) -> None:
        k = len(uniform_keep)
        self.cut = k // 2
        self._left = product_masses(uniform_keep[: self.cut])
        self._right = product_masses(uniform_keep[self.cut :])
        n_right = k - self.cut
        codes = np.arange(2**n_right)
        kept = (codes[None, :] >> np.arange(n_right)[::-1, None]) & 1 == 0
        self._rows = np.concatenate([np.ones((1, len(codes)), dtype=bool), kept]) * self._right

    def vote(self, weights: IntArray, threshold: int) -> tuple[float, FloatArray, FloatArray]:
        """Return μ(D), μ(D; i kept), μ(D; i changed) of D = {Σ_{kept} n_i >= threshold}."""
        cut = self.cut
        right = kept_sums(weights[cut:])
        order = np.argsort(right, kind="stable")
        need = threshold - kept_sums(weights[:cut])
        first = np.searchsorted(right[order], need, side="left")
        # Suffix sums: column j holds the sum over the sorted right halves j, j + 1, …
        suffix = np.zeros((len(self._rows), len(order) + 1))
        np.cumsum(self._rows[:, order[::-1]], axis=1, out=suffix[:, 1:])
        suffix = suffix[:, ::-1]
        won = suffix[:, first] @ self._left
        kept = np.empty(len(weights))
        changed = np.empty(len(weights))
        kept[cut:] = won[1:]
        # changed = all − kept would cancel: it has its own suffix sums through the total's rows.
        by_left = suffix[0, first] * self._left
        for i in range(cut):
            by_left = by_left.reshape(2, -1)
            kept[i], changed[i] = by_left[0].sum(), by_left[1].sum()
            by_left = by_left[0] + by_left[1]
        changed[cut:] = self._changed(order, first)
        return float(won[0]), kept, changed

    def _changed(self, order: IntArray, first: IntArray) -> FloatArray:
        lost = self._rows[0] - self._rows[1:]  # exact: each entry is μ or 0
        suffix = np.zeros((len(lost), len(order) + 1))
        np.cumsum(lost[:, order[::-1]], axis=1, out=suffix[:, 1:])
        return np.asarray(suffix[:, ::-1][:, first] @ self._left)
