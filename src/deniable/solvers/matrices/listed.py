"""Sets of which there are few enough to list, in groups of like categories, by their excess.

Of rows that are alike but for which categories of a group they name, one stands for all: K is the
same for all categories of a group (`relaxed`), and so are Z and λ.
"""

import math
from itertools import chain, combinations, combinations_with_replacement

import numpy as np
import numpy.typing as npt

from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices.certificate import (
    Limits,
    listed_sizes,
    shape_of_rows,
)
from deniable.solvers.matrices.groups import Groups


class Listed:
    """Small sets, as far as they are compared one by one by `certificate`.

    Args:
        limits: the privacy, at shares that are equal within each group.
        divided: groups of categories that are taken alike.

    >>> from deniable.solvers.matrices.certificate import average_limits
    >>> listed = Listed(average_limits([0.5, 0.3, 0.2], 0.25), [np.array([x]) for x in range(3)])
    >>> rows, excess = listed.largest(np.eye(3), np.zeros(3), 0.0, 3)
    >>> rows.sum(axis=1).tolist(), excess.tolist()
    ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    """

    def __init__(self, limits: Limits, divided: Groups) -> None:
        n = limits.n_categories
        self.limits, self.divided = limits, divided
        self.group = np.zeros(n, dtype=np.intp)
        for number, members in enumerate(divided):
            self.group[members] = number
        self.first = np.array([members[0] for members in divided])
        self.count = np.array([len(members) for members in divided], dtype=float)
        self.local = limits.epsilon is not None
        self.gain = math.expm1(limits.epsilon) if limits.epsilon is not None else 0.0
        least = shape_of_rows(limits)[0]
        sizes = [k for k in listed_sizes(n) if k >= least]
        self.sets = [self._sets(k) for k in sizes]

    def sets_up_to(self, size: int) -> FloatArray:
        """The rows of all listed sets of at most so many categories."""
        some = [self._rows(members) for members in self.sets if members.shape[1] <= size]
        return np.concatenate([np.empty((0, self.limits.n_categories)), *some])

    def pairs_with_part(self, part: float) -> FloatArray:
        """The rows 1_x + φ 1_j, one for each choice of groups."""
        rows = []
        for first in self.divided:
            for second in self.divided:
                if len(second) > 1 or second is not first:
                    row = np.zeros(self.limits.n_categories)
                    row[first[0]], row[second[-1]] = 1.0, part
                    rows.append(row)
        return np.array(rows)

    def _sets(self, size: int) -> npt.NDArray[np.intp]:
        """One set for each choice of groups that can be made."""
        every = combinations_with_replacement(range(len(self.divided)), size)
        chosen = np.fromiter(chain.from_iterable(every), np.intp).reshape(-1, size)
        before = np.zeros_like(chosen)  # how often the group was chosen before
        for at in range(1, size):
            same = chosen[:, at] == chosen[:, at - 1]
            before[:, at] = np.where(same, before[:, at - 1] + 1, 0)
        possible = (before < self.count[chosen]).all(axis=1)
        start = np.concatenate([[0], np.cumsum(self.count)]).astype(np.intp)
        places = start[chosen[possible]] + before[possible]
        return np.asarray(np.concatenate(self.divided)[places])

    def _forms(self, members: npt.NDArray[np.intp], P: FloatArray) -> FloatArray:
        """qᵀPq of sets."""
        linear, pairs, constant = np.diag(P), P, 0.0
        if self.local:
            P = P * np.outer(self.limits.prior, self.limits.prior)
            linear = self.gain * (2.0 * P.sum(axis=1) + self.gain * np.diag(P))
            pairs, constant = self.gain**2 * P, P.sum()
        form = constant + linear[members].sum(axis=1)
        for a, b in combinations(range(members.shape[1]), 2):
            form = form + 2.0 * pairs[members[:, a], members[:, b]]
        return np.asarray(form)

    def _rows(self, members: npt.NDArray[np.intp]) -> FloatArray:
        """Rows of cost 1 as vectors, shape (number of sets, n)."""
        rows = np.zeros((len(members), self.limits.n_categories))
        rows[np.arange(len(members))[:, None], members] = 1.0
        if self.local:
            rows = (1.0 + self.gain * rows) * self.limits.prior
            rows /= rows.sum(axis=1, keepdims=True)
        return rows

    def largest(
        self, Z: FloatArray, multipliers: FloatArray, budget: float, most: int
    ) -> tuple[FloatArray, FloatArray]:
        """The listed rows of largest excess at the mean shares, and what that is, largest first."""
        P = Z @ Z.T - (multipliers[:, None] + multipliers) / 2.0
        found, values = [np.empty((0, self.limits.n_categories))], [np.empty(0)]
        for members in self.sets:
            total = float(members.shape[1])
            form = self._forms(members, P)
            if self.local:
                total = (1.0 + self.gain * self.limits.prior[members].sum(axis=1)) ** 2
            some = np.argsort(-form / total, kind="stable")[:most]
            found.append(self._rows(members[some]))
            values.append((form / total)[some])
        value = np.concatenate(values) - budget
        order = np.argsort(-value, kind="stable")[:most]
        return np.concatenate(found)[order], value[order]
