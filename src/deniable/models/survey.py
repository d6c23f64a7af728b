"""Variances of a survey: of the totals of clusters within strata."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Survey:
    """Clusters and strata of a sample.

    ``cluster``: of every row, shape (n,). ``stratum``: of every cluster.
    """

    cluster: NDArray[np.int64]
    stratum: NDArray[np.int64]

    @classmethod
    def of(cls, cluster: Codes | None, stratum: Codes | None, n: int) -> "Survey | None":
        """Return the design of n rows by codes of their cluster and stratum, shape (n,): without
        clusters a row is one, and clusters of equal code in two strata are two; None of neither."""
        if cluster is None and stratum is None:
            return None
        within = np.zeros(n, dtype=np.int64) if stratum is None else stratum
        each = np.arange(n) if cluster is None else cluster
        _, first, place = np.unique(
            within * (int(each.max()) + 1) + each, return_index=True, return_inverse=True
        )
        return cls(place, np.unique(within[first], return_inverse=True)[1])

    def squares(self, sums: Floats) -> Floats:
        """Return the variance of a total: Σ_h n_h/(n_h − 1) Σ_c (s_c − s̄_h)(s_c − s̄_h)ᵀ.

        ``sums``: of the clusters, shape (clusters, p).
        """
        n = np.bincount(self.stratum).astype(float)
        if (n == 1).any():
            raise InputError(
                "a stratum of `strata` has one cluster, which shows no variance; merge it with "
                "another stratum"
            )
        means = np.zeros((len(n), sums.shape[1]))
        np.add.at(means, self.stratum, sums)
        centred = sums - (means / n[:, None])[self.stratum]
        return np.asarray(centred.T @ (centred * (n / (n - 1))[self.stratum, None]))
