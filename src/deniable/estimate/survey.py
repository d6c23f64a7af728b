"""Variances of a survey: of the totals of clusters within strata.

The clusters are those of the whole sample: a group of rows is a domain, and a cluster without a row
in it has the total 0 (Särndal, Swensson and Wretman 1992, section 5.8).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.tables import Batch
from deniable.tables.rows import gaps_in, groups_of

Floats = NDArray[np.float64]

_AT_ONCE = 2_000_000
"""Numbers of a batch of clusters' totals."""


@dataclass(frozen=True)
class Survey:
    """Clusters and strata of a sample.

    ``cluster``: of every row, shape (n,). ``stratum``: of every cluster of the sample.
    """

    cluster: NDArray[np.int64]
    stratum: NDArray[np.int64]

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64] | slice) -> "Survey":
        """Return the sample with some of its rows."""
        return replace(self, cluster=self.cluster[chosen])


def total_variance(sums: Floats, stratum: NDArray[np.int64]) -> Floats:
    """Return the variance of a total: Σ_h n_h/(n_h − 1) Σ_c (s_c − s̄_h)(s_c − s̄_h)ᵀ.

    ``sums``: of the clusters, shape (clusters, p).
    """
    n = _sizes(stratum)
    means = np.zeros((len(n), sums.shape[1]))
    np.add.at(means, stratum, sums)
    centred = sums - (means / n[:, None])[stratum]
    return np.asarray(centred.T @ (centred * (n / (n - 1))[stratum, None]))


def _sizes(stratum: NDArray[np.int64]) -> Floats:
    """Return the clusters of every stratum, at least 2."""
    n = np.bincount(stratum).astype(float)
    if (n == 1).any():
        raise InputError(
            "a stratum of `strata` has one cluster, which shows no variance; merge it with "
            "another stratum"
        )
    return n


@dataclass(frozen=True)
class SampleColumns:
    """Kept columns that describe a sample: cluster and stratum of each row.

    ``rows``: whether rows without both are a sample, too.
    """

    cluster: str | None = None
    strata: str | None = None
    rows: bool = False

    @property
    def names(self) -> list[str]:
        """The columns that are given."""
        return [name for name in (self.cluster, self.strata) if name is not None]

    @property
    def reader(self) -> "SampleReader | None":
        """The reader of a sample; None of rows without one."""
        return SampleReader(self) if self.names or self.rows else None


NO_SAMPLE = SampleColumns()
"""Rows that are no sample."""


class SampleReader:
    """Clusters and strata of rows, batch by batch; without clusters a row is one, and clusters of
    equal name in two strata are two."""

    def __init__(self, columns: SampleColumns) -> None:
        self._columns = columns
        self._strata: dict[str, int] = {}
        self._clusters: dict[tuple[int, str], int] = {}
        self._stratum: list[NDArray[np.int64]] = []
        self._n = 0

    def clusters(self, batch: Batch, weights: str | None) -> NDArray[np.int64]:
        """Return the cluster of every row, shape (n,); −1 of rows without a cluster, stratum or
        weight, which are not in the sample."""
        inside = np.ones(batch.n_rows, dtype=bool)
        for name in [*self._columns.names, *([] if weights is None else [weights])]:
            inside &= ~gaps_in(batch.kept[name])
        stratum = np.zeros(batch.n_rows, dtype=np.int64)
        if self._columns.strata is not None:
            codes, labels = groups_of(batch.kept[self._columns.strata])
            stratum = np.array([self._strata.setdefault(x, len(self._strata)) for x in labels])[
                codes
            ]
        found = np.full(batch.n_rows, -1, dtype=np.int64)
        if self._columns.cluster is None:
            found[inside] = self._n + np.arange(inside.sum())
            self._stratum.append(stratum[inside])
            self._n += int(inside.sum())
            return found
        codes, labels = groups_of(batch.kept[self._columns.cluster])
        pairs, place = np.unique(stratum[inside] * len(labels) + codes[inside], return_inverse=True)
        of_pairs = [divmod(pair, len(labels)) for pair in pairs.tolist()]
        n = len(self._clusters)
        known = [
            self._clusters.setdefault((h, labels[c]), len(self._clusters)) for h, c in of_pairs
        ]
        self._stratum.append(np.array([h for h, _ in [*self._clusters][n:]], dtype=np.int64))
        found[inside] = np.array(known, dtype=np.int64)[place]
        return found

    @property
    def stratum(self) -> NDArray[np.int64]:
        """The stratum of every cluster of the batches so far."""
        return np.concatenate(self._stratum)


@dataclass(frozen=True)
class ClusterCells:
    """Weights of released records summed by cluster and cell, of the pairs that occur.

    ``cluster``, ``cell``, ``weight``: shape (p,); the cell is an index of the flat table.
    """

    cluster: NDArray[np.int64]
    cell: NDArray[np.int64]
    weight: Floats

    @classmethod
    def of(cls, parts: "Sequence[ClusterCells]") -> "ClusterCells":
        """Return several together."""
        columns = zip(*((part.cluster, part.cell, part.weight) for part in parts), strict=True)
        return cls(*map(np.concatenate, columns)).merged()

    def merged(self) -> "ClusterCells":
        """Return the same with equal pairs of cluster and cell together."""
        n = int(self.cell.max(initial=0)) + 1
        pairs, place = np.unique(self.cluster * n + self.cell, return_inverse=True)
        cluster, cell = np.divmod(pairs, n)
        return ClusterCells(cluster, cell, np.bincount(place, self.weight).astype(np.float64))


def cell_variance(
    parts: Sequence[tuple[ClusterCells, Floats]], stratum: NDArray[np.int64]
) -> Floats:
    """Return the variance of totals of contributions that released cells have, as
    :func:`total_variance`, in batches of clusters.

    ``parts``: clusters' weights by cell, and contributions of shape (functions, cells).
    """
    n, m = _sizes(stratum), len(parts[0][1])
    means, squares = np.zeros((len(n), m)), np.zeros((m, m))
    step = max(1, _AT_ONCE // m)
    for start in range(0, len(stratum), step):
        within = stratum[start : start + step]
        sums = np.zeros((len(within), m))
        for cells, contributions in parts:
            some = slice(*np.searchsorted(cells.cluster, [start, start + step]))
            place, cell = cells.cluster[some] - start, cells.cell[some]
            for i, function in enumerate(contributions):
                weighted = cells.weight[some] * function[cell]
                sums[:, i] += np.bincount(place, weighted, minlength=len(sums))
        np.add.at(means, within, sums / n[within, None])
        squares += sums.T @ (sums * (n / (n - 1))[within, None])
    return np.asarray(squares - means.T @ (means * (n**2 / (n - 1))[:, None]))
