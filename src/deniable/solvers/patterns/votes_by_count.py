"""Votes of many answers that are alike, by the number of hits.

A form includes m of n attributes with a categories each and votes yes where at least t answers hit.
With z the normalised hits of probability r = 1/a, Σ z is linear in their number, and
Σ_{i<j} z_i z_j = ((Σ z)² − Σ z²)/2, so such a form's information on an attribute, or on a pair, is
a sum over a binomial law for any m (docs/proofs/forms.md, section 1).
"""

import math
from collections.abc import Sequence

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray


class VotesByCount:
    """Forms with more attributes of one class than a table of patterns can have.

    ``epsilon``: of the record, in nats.

    >>> votes = VotesByCount([2], [50], 8.0, 9)
    >>> place = int(np.argmax(votes.single))
    >>> votes.forms[place].tolist(), round(float(votes.single[place]), 4)
    ([0, 50, 35], 0.1481)
    """

    def __init__(
        self, n_categories: Sequence[int], members: Sequence[int], epsilon: float, fewer: int
    ) -> None:
        self._odds = math.expm1(epsilon)
        singles, pairs, forms = [np.empty(0)], [np.empty(0)], [np.empty((0, 3), dtype=np.int64)]
        for i, (a, n) in enumerate(zip(n_categories, members, strict=True)):
            if n > fewer:
                # The information changes little from one of 24 sizes to the next.
                sizes = np.geomspace(fewer + 1, n, 24).round().astype(np.int64)
                for m in np.unique(sizes).tolist():
                    means = self._means(1 / a, m)
                    singles.append(m / n * means[0] ** 2 / (a - 1))
                    pairs.append(m * (m - 1) / (n * (n - 1)) * means[1] ** 2 / (a - 1) ** 2)
                    forms.append(np.column_stack([np.full((m, 2), [i, m]), np.arange(1, m + 1)]))
        self.single: FloatArray = np.concatenate(singles)
        """Information of each form on an attribute of its class, the mean over its members."""
        self.pair: FloatArray = np.concatenate(pairs)
        """Information on a pair of them."""
        self.forms: IntArray = np.concatenate(forms)
        """Class, number of questions, and least number of hits, shape (forms, 3)."""

    def _means(self, r: float, m: int) -> FloatArray:
        """Return the means of z, and of z_i z_j, under votes from 1, …, m hits on, shape (2, m)."""
        log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, m + 1)))])
        hits = np.arange(m + 1)
        log_law = log_factorial[m] - log_factorial - log_factorial[::-1]
        law = np.exp(log_law + hits * math.log(r) + (m - hits) * math.log1p(-r))
        total = (hits - m * r) / math.sqrt(r * (1 - r))
        squares = (hits * (1 - r) ** 2 + (m - hits) * r**2) / (r * (1 - r))
        of_pairs = (total**2 - squares) / max(m * (m - 1), 1)
        values = np.array([np.ones(m + 1), total / m, of_pairs])
        above = np.cumsum((law * values)[:, ::-1], axis=1)[:, ::-1][:, 1:]
        return np.asarray(self._odds * above[1:] / (1 + self._odds * above[0]))

    def density(self, asked: int, least: int) -> FloatArray:
        """Return the density of answers by the number of changes, at least 1, (asked + 1,)."""
        return np.where(asked - np.arange(asked + 1) >= least, 1 + self._odds, 1.0)
