"""What given directions Z prove at most where the extreme rows cannot be listed.

For fixed Z the certificate (`certificate`) needs the λ and m of least λ·p + m b for which no
extreme row has ‖Zᵀq‖²/(1·q) > λ·q + m. Its dual is the largest tr(ZᵀKZ) of any
K = Σ w_a q_a q_aᵀ/(1·q_a) with K1 = p and cost at most b. Small sets, and rows with a part φ, are
few enough to be listed; of the larger sets B only the moments Σ w 1_B 1_Bᵀ are unknown. Of these

    X(x, x) ≥ X(x, x') ≥ 0,   Σ_x' X(x, x') ≥ k X(x, x),   [X₀ diag Xᵀ; diag X  X] ⪰ 0

is asked, with X₀ = Σ w and k the least size that is not listed, and Σ w (|B| − l) (|B| − l − 1) ≥ 0
for whole l. This is a semidefinite program of
n + 1 rows. Its multipliers are λ, m and what `certificate` checks its bound over all sets with: the
splits, and the squares that the last condition is. Rows are listed as they are needed.

Categories can be taken alike in groups, as in `relaxed`; unknowns then are those of one category of
each group, and of two where a group has several.
"""

import math
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement

import clarabel
import numpy as np
import numpy.typing as npt
from scipy import sparse

from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices.certificate import (
    Certificate,
    Limits,
    certify,
    listed_sizes,
    parts_are_listed,
    shape_of_rows,
)
from deniable.solvers.matrices.relaxed import Groups, at_true_shares

_TOLERANCE = 1e-10
_FIRST = 1200
_MORE = 400
_MOST_ROUNDS = 8
# Rows whose excess is below this part of the denominator of the bound are not worth listing.
_NEGLIGIBLE = 1e-7


@dataclass(frozen=True, eq=False)
class _Answer:
    value: float
    multipliers: FloatArray
    budget: float
    splits: FloatArray
    squares: FloatArray


class Pricing:
    """The program above for one prior and one privacy, at the mean shares of the groups.

    Args:
        limits: the prior and the required privacy.
        divided: groups of categories that are taken alike; each category by itself if None.

    >>> from deniable.solvers.matrices import relaxed
    >>> from deniable.solvers.matrices.certificate import average_limits
    >>> limits = average_limits([0.5, 0.3, 0.2], 0.25)
    >>> given = relaxed.bound(limits)
    >>> Pricing(limits).prove(given).claim >= given.claim
    True
    """

    def __init__(self, limits: Limits, divided: Groups | None = None) -> None:
        n = limits.n_categories
        divided = [np.array([x]) for x in range(n)] if divided is None else divided
        self.group = np.zeros(n, dtype=np.intp)
        for number, members in enumerate(divided):
            self.group[members] = number
        self.first = np.array([members[0] for members in divided])
        self.second = np.array([members[min(1, len(members) - 1)] for members in divided])
        self.divided = divided
        self.count = np.array([len(members) for members in divided], dtype=float)
        share = np.array([limits.prior[members].mean() for members in divided])
        self.share = share
        prior = share[self.group]
        self.ratio = prior / limits.prior
        self.local = limits.epsilon is not None
        self.true = limits
        self.limits = replace(limits, prior=prior / prior.sum())
        self.gain = math.expm1(limits.epsilon) if limits.epsilon is not None else 0.0
        n_groups = len(divided)
        self.i, self.j = np.triu_indices(n_groups, 1)
        self.several = np.flatnonzero(self.count > 1)
        self.n_moments = 1 + n_groups + len(self.i) + len(self.several)
        self.scale = np.ones(n_groups) if self.local else np.sqrt(share)
        least, self.part = shape_of_rows(limits)
        sizes = [k for k in listed_sizes(n) if k >= least]
        self.least = (sizes[-1] if sizes else least - 1) + 1
        self.sets = [self._sets(k) for k in sizes]
        parts = self.part > 0 and parts_are_listed(n, least - 1)
        self.with_part = self._sets(least - 1) if parts else np.empty((0, 0), dtype=np.intp)

    # The rows that are listed.

    def _sets(self, size: int) -> npt.NDArray[np.intp]:
        """One set for each choice of groups that can be made."""
        chosen = np.array(list(combinations_with_replacement(range(len(self.divided)), size)))
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

    def _parts(self, P: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
        """The rows 1_S + φ 1_x of largest qᵀPq/(1·q), and what that is."""
        members, n_groups = self.with_part, len(self.divided)
        whole = members.shape[1]
        used = np.zeros((len(members), n_groups), dtype=np.intp)
        for at in range(whole):
            used[np.arange(len(members)), self.group[members[:, at]]] += 1
        extra = np.array(
            [group[np.minimum(used[:, g], len(group) - 1)] for g, group in enumerate(self.divided)]
        ).T
        form = self._forms(members, P)[:, None] + self.part**2 * np.diag(P)[self.first]
        for at in range(whole):
            form += 2.0 * self.part * P[members[:, at][:, None], extra]
        form[used >= self.count] = -np.inf
        some = np.argpartition(-form.ravel(), min(most, form.size - 1))[:most]
        some = some[np.isfinite(form.ravel()[some])]
        rows = self._rows(members[some // n_groups])
        rows[np.arange(len(some)), extra.ravel()[some]] = self.part
        return rows, form.ravel()[some] / (whole + self.part)

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
        if len(self.with_part):
            rows, forms = self._parts(P, most)
            found.append(rows)
            values.append(forms)
        value = np.concatenate(values) - budget
        order = np.argsort(-value, kind="stable")[:most]
        return np.concatenate(found)[order], value[order]

    # The program.

    def prove(self, given: Certificate) -> Certificate:
        """Return the best certificate with the directions of a given one, or that one.

        Args:
            given: a certificate for these limits; its directions and multipliers must be alike
                within each group (under ε-LDP, as `relaxed` scales them).

        Source: docs/proofs/frontier.md, section 5.
        """
        Z, multipliers = given.directions, given.multipliers
        if self.local:
            Z, multipliers = Z / self.ratio[:, None], multipliers / self.ratio
        along = Z.T @ self.limits.prior
        rows = self.largest(Z, multipliers, 0.0, _FIRST)[0]
        best: _Answer | None = None
        for _ in range(_MOST_ROUNDS):
            answer = self._solve(Z, rows)
            if answer is None:
                break
            best = answer
            more, excess = self.largest(Z, answer.multipliers, answer.budget, _MORE)
            if excess.max(initial=-np.inf) <= _NEGLIGIBLE * (answer.value - along @ along):
                break
            rows = np.unique(np.concatenate([rows, more]), axis=0)
        if best is None:
            return given
        mean = self.share[self.group]
        directions, multipliers = at_true_shares(self.true, mean, Z, best.multipliers)
        found = certify(self.true, directions, multipliers, best.splits, best.squares)
        return max(found, given, key=lambda proof: proof.claim)

    def _solve(self, Z: FloatArray, rows: FloatArray) -> _Answer | None:
        count, group = self.count, self.group
        n_groups, n_moments = len(count), self.n_moments
        i, j, several = self.i, self.j, self.several
        diagonal = 1 + np.arange(n_groups)
        pair = 1 + n_groups + np.arange(len(i))
        inner = 1 + n_groups + len(i) + np.arange(len(several))
        size = n_moments + len(rows)
        # The objective tr(ZᵀKZ).
        Q = Z @ Z.T
        if self.local:
            Q = Q * np.outer(self.limits.prior, self.limits.prior)
        between = Q[np.ix_(self.first, self.first)]
        within = Q[self.first, self.second][several]
        value = np.zeros(size)
        value[diagonal] = count * np.diag(between)
        value[pair] = 2.0 * count[i] * count[j] * between[i, j]
        value[inner] = count[several] * (count[several] - 1.0) * within
        if self.local:
            value[1:n_moments] *= self.gain**2
            value[diagonal] += 2.0 * self.gain * count * Q.sum(axis=1)[self.first]
            value[0] = Q.sum()
        value[n_moments:] = ((rows @ Z) ** 2).sum(axis=1) / rows.sum(axis=1)
        # Σ_x' X(x, x') for a category of each group, and K1 = p.
        weight = self.share if self.local else np.ones(n_groups)
        sums = np.zeros((n_groups, size))
        sums[np.arange(n_groups), diagonal] = weight
        sums[i, pair], sums[j, pair] = count[j] * weight[j], count[i] * weight[i]
        sums[several, inner] = (count[several] - 1.0) * weight[several]
        if self.local:
            sums *= self.gain**2
            sums[np.arange(n_groups), diagonal] += self.gain
            sums[:, diagonal] += self.gain * count * self.share
            sums[:, 0] = 1.0
        else:
            sums /= self.share[:, None]
        members = sparse.csr_matrix(
            (1.0 / count[group], (group, np.arange(len(group)))), (n_groups, len(group))
        )
        sums[:, n_moments:] = members @ rows.T / self.share[:, None]
        # The inequalities.
        more = np.zeros((n_groups + 1, size))
        more[np.arange(n_groups), diagonal] = 1.0 - self.least
        more[i, pair], more[j, pair] = count[j], count[i]
        more[several, inner] = count[several] - 1.0
        more[n_groups, diagonal], more[n_groups, 0] = count, -self.least
        # (|B| − k) (|B| − k − 1) for whole k.
        k = np.arange(self.least, self.limits.n_categories, dtype=float)
        whole = np.zeros((len(k), size))
        whole[:, 0], whole[:, diagonal] = k * (k + 1.0), -2.0 * k[:, None] * count
        whole[:, pair] = 2.0 * count[i] * count[j]
        whole[:, inner] = (count * (count - 1.0))[several]
        whole /= 1.0 + k[:, None] ** 2
        unit = sparse.eye(size, format="csr")
        below = [unit[diagonal[i]] - unit[pair], unit[diagonal[j]] - unit[pair]]
        inside = unit[diagonal[several]] - unit[inner]
        signs = sparse.vstack([*below, inside, unit[1 + n_groups :], sparse.csr_matrix(whole)])
        blocks = [sparse.csr_matrix(sums), -sparse.csr_matrix(more), -signs]
        right = [np.ones(n_groups), np.zeros(n_groups + 1 + signs.shape[0])]
        if not self.local:
            cost = np.zeros((1, size))
            cost[0, diagonal], cost[0, n_moments:] = count, 1.0
            blocks.append(sparse.csr_matrix(cost))
            right.append(np.array([self.limits.budget]))
        scale = np.ones(size)
        scale[diagonal], scale[pair] = self.scale**2, self.scale[i] * self.scale[j]
        scale[inner] = self.scale[several] ** 2
        linear = sparse.vstack(blocks) @ sparse.diags(scale)
        largest = float(np.abs(value * scale).max())
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
        moments, at = self._semidefinite(size)
        n_nonnegative = linear.shape[0] - n_groups
        answer = clarabel.DefaultSolver(
            sparse.csc_matrix((size, size)),
            -value * scale / largest,
            sparse.csc_matrix(sparse.vstack([linear, moments])),
            np.concatenate([*right, np.zeros(moments.shape[0])]),
            [
                clarabel.ZeroConeT(n_groups),
                clarabel.NonnegativeConeT(n_nonnegative),
                clarabel.PSDTriangleConeT(n_groups + 1),
            ],
            settings,
        ).solve()
        dual = np.array(answer.z) * largest
        if "olved" not in str(answer.status) or not np.isfinite(dual).all():
            return None
        multipliers = dual[:n_groups] / (count * self.share)
        # A multiplier of x and x' counts in the row of x alone, as its product does.
        splits = np.tile(-dual[n_groups : 2 * n_groups] / count, (n_groups, 1)).T
        above = dual[2 * n_groups + 1 :]
        splits[i, j] += above[: len(i)] / (count[i] * count[j])
        splits[j, i] += above[len(i) : 2 * len(i)] / (count[i] * count[j])
        splits = splits[group[:, None], group]
        square = np.zeros((n_groups + 1,) * 2)
        square[at] = dual[n_groups + n_nonnegative :]
        square[at] *= np.where(at[0] == at[1], 1.0, math.sqrt(0.5))
        square += np.triu(square, 1).T
        outer = 1.0 / np.concatenate([[1.0], self.scale])
        values, vectors = np.linalg.eigh(square)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T * outer
        squares = np.concatenate([root[:, :1], (root[:, 1:] / np.sqrt(count))[:, group]], axis=1)
        budget = 0.0 if self.local else float(dual[n_groups + n_nonnegative - 1])
        return _Answer(
            -float(answer.obj_val) * largest, multipliers[group], budget, splits, squares
        )

    def _semidefinite(
        self, size: int
    ) -> tuple[sparse.csr_matrix, tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
        """The moments, upper triangle by columns, scaled; and where its entries are.

        On vectors that are constant on groups: √n_g diag, √(n_g n_h) X, and on the diagonal
        X(x, x) + (n_g − 1) X(x, x').
        """
        count = self.count
        n_groups = len(count)
        row, column = np.triu_indices(n_groups + 1)
        order = np.lexsort((row, column))
        row, column = row[order], column[order]
        place = np.zeros((n_groups + 1,) * 2, dtype=np.intp)
        place[row, column] = np.arange(len(row))
        groups = 1 + np.arange(n_groups)
        root, several = np.sqrt(count), self.several
        half = math.sqrt(2.0)
        at = np.concatenate(
            [
                [place[0, 0]],
                place[0, groups],
                place[groups, groups],
                place[1 + self.i, 1 + self.j],
                place[1 + several, 1 + several],
            ]
        )
        unknown = np.concatenate([[0], groups, np.arange(1, self.n_moments)])
        entry = np.concatenate(
            [
                [1.0],
                half * root * self.scale,
                np.ones(n_groups),
                half * root[self.i] * root[self.j],
                count[several] - 1.0,
            ]
        )
        shape = (len(row), size)
        return sparse.coo_matrix((-entry, (at, unknown)), shape).tocsr(), (row, column)
