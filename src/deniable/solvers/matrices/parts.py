"""Moments of the rows 1_S + φ 1_j with |S| = k, for the program of `relaxed`.

In units in which K is linear in their weights w the unknowns are X(x, x') = Σ w [x, x' ∈ S],
Y(x, j) = Σ w [x ∈ S, j is the part] and y_j = Σ w [j is the part]:

    K = X + φ (Y + Yᵀ) + φ² diag y,   cost (k + φ) Σ y.

Every such row keeps Σ_x' X(x, x') = k X(x, x), Σ_j Y(x, j) = X(x, x), Σ_x Y(x, j) = k y_j,
Y(j, j) = 0 and

    X(x, x) ≥ X(x, x') + Y(x, x'),   X ≥ 0,   y_j ≥ Y(x, j) ≥ 0,

and the weight of the rows that name neither of two categories, Σ y less those that name one and
with those that name both, is not negative.

Entries stand for categories of groups that are taken alike, as those of K do in `relaxed`.
"""

import numpy as np
import numpy.typing as npt
from scipy import sparse

from deniable.laws.patterns import FloatArray


class Parts:
    """Linear maps of the unknowns X, Y and y.

    Args:
        count: how many categories each group has.
        sums: of a symmetric matrix, given by its entries, the sum over a row of each group,
            shape (G, number of entries): those of the pairs g ≤ h, then of each group of several
            those between two of its categories.
        whole: k.
        part: φ.

    Attributes:
        size: how many unknowns there are.
        moments: of the entries of K, shape (number of entries, size).
        equal: what is 0, shape (3 G, size).
        slope: what is not negative, shape (any, size).
        cost: shape (size,).
    """

    def __init__(self, count: FloatArray, sums: sparse.csr_matrix, whole: int, part: float) -> None:
        self.count, self.whole, self.part = count, whole, part
        n_groups, n_entries = len(count), sums.shape[1]
        i, j = np.triu_indices(n_groups)
        off, on = np.flatnonzero(i != j), np.flatnonzero(i == j)
        several = np.flatnonzero(count > 1)
        self.first, self.second, self.n_off = i[off], j[off], len(off)
        self.size = n_entries + 2 * len(off) + len(several) + n_groups
        unit = sparse.eye(self.size, format="csr")
        ends = np.cumsum([n_entries, len(off), len(off), len(several)])
        X, ahead, behind, inner, y = (unit[at] for at in np.split(np.arange(self.size), ends))
        diagonal, pair, within = X[on], X[off], X[len(i) :]

        def placed(rows: npt.NDArray[np.intp], height: int) -> sparse.csr_matrix:
            at = np.arange(len(rows))
            return sparse.csr_matrix((np.ones(len(rows)), (rows, at)), (height, len(rows)))

        self.moments = (
            X
            + part * (placed(off, n_entries) @ (ahead + behind))
            + 2.0 * part * (placed(np.arange(len(i), n_entries), n_entries) @ inner)
            + part**2 * (placed(on, n_entries) @ y)
        )
        # Y(x, j) with x in the group of the row: over j; with j in it: over x.
        own = placed(several, n_groups) @ sparse.diags(count[several] - 1.0) @ inner
        first, second = placed(self.first, n_groups), placed(self.second, n_groups)
        times_first, times_second = (
            sparse.diags(count[groups]) for groups in (self.first, self.second)
        )
        over_parts = first @ times_second @ ahead + second @ times_first @ behind + own
        over_sets = second @ times_first @ ahead + first @ times_second @ behind + own
        self.equal = sparse.vstack(
            [
                sums @ X - float(whole) * diagonal,
                over_parts - diagonal,
                over_sets - float(whole) * y,
            ]
        ).toarray()
        named, weight = diagonal + y, sparse.csr_matrix(y.T @ count)

        def of_all(number: int) -> sparse.csr_matrix:
            return sparse.csr_matrix(sparse.csr_matrix(np.ones((number, 1))) @ weight)

        both = pair + ahead + behind
        one = named[self.first] + named[self.second]
        self.slope = sparse.vstack(
            [
                diagonal[self.first] - pair - ahead,
                diagonal[self.second] - pair - behind,
                of_all(len(off)) - one + both,
                of_all(len(several)) - 2.0 * named[several] + within + 2.0 * inner,
                diagonal[several] - within - inner,
                y[self.second] - ahead,
                y[self.first] - behind,
                y[several] - inner,
                *(pair, within, ahead, behind, inner),
            ]
        ).tocsr()
        self.cost = np.asarray((whole + part) * (y.T @ count))

    def at_random(self, weight: float) -> FloatArray:
        """The unknowns if all rows have the same weight, so much in all."""
        n = self.count.sum()
        named = weight * self.whole / n
        apart = named / (n - 1.0)
        X = np.full(self.moments.shape[0], (self.whole - 1) * apart)
        groups = len(self.count)
        X[np.flatnonzero(np.equal(*np.triu_indices(groups)))] = named
        Y = np.full(self.size - len(X) - groups, apart)
        return np.concatenate([X, Y, np.full(groups, weight / n)])

    def splits(self, equal: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Of pairs of groups, from the multipliers of `equal` and of `slope`.

        Those of X(x, x) ≥ X(x, x') + Y(x, x') and of Σ_x' X(x, x') = k X(x, x) count in the row of
        x alone, and those of rows that name neither in both (`relaxed`).
        """
        groups, n_off = len(self.count), self.n_off
        first, second, neither = np.split(multipliers[: 3 * n_off], 3)
        inner = multipliers[3 * n_off : 3 * n_off + int((self.count > 1).sum())]
        return splits_of(self.count, first - second, neither, inner, -equal[:groups])


def splits_of(
    count: FloatArray, unlike: FloatArray, neither: FloatArray, inner: FloatArray, sizes: FloatArray
) -> FloatArray:
    """A table of groups whose halves a certificate takes for S and V.

    Args:
        count: how many categories each group has.
        unlike: of pairs g < h, by how much the multiplier of X(x, x) ≥ X(x, x') is more than that
            of X(x', x') ≥ X(x, x').
        neither: multipliers that neither of two categories is named by less than nothing.
        inner: these for two categories of the same group, where it has several.
        sizes: multipliers of Σ_x' X(x, x') ≥ k X(x, x).
    """
    i, j = np.triu_indices(len(count), 1)
    skew, both = np.zeros((2, len(count), len(count)))
    skew[i, j], both[i, j] = 0.5 * np.array([unlike, neither]) / (count[i] * count[j])
    several = np.flatnonzero(count > 1)
    within = np.zeros(len(count))
    within[several] = inner / (count * (count - 1.0))[several]
    each = 0.5 * sizes / count
    return np.asarray(skew - skew.T - (each[:, None] - each) + both + both.T + np.diag(within))
