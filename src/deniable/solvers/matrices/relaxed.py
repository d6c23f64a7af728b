"""A bound on the least error with many categories, and the certificate that proves it.

`frontier` chooses weights of about 2^n extreme rows. Here some rows are listed and have weights of
their own; of all larger sets B only the moments X(x, x') = Σ w t² [x, x' ∈ B] and X₀ = Σ w t² are
unknown, t the scale of a row (t² = 1/|B| for average privacy). Every set of at least k categories
keeps

    X(x, x) ≥ X(x, x') ≥ 0,   Σ_x' X(x, x') ≥ k X(x, x),   [X₀ diag Xᵀ; diag X  X] ⪰ 0

and Σ w t² (|B| − l) (|B| − l − 1) ≥ 0 for whole l, Σ w t² (|B| − k) [x ∉ B] ≥ 0 and
Σ w t² [x, x' ∉ B] ≥ 0; of rows with a part of a category those of `parts`. K is linear in all of
these, so that the least tr(G C⁺ G) under them is a lower bound, found by an interior-point method.
Its multipliers are λ and what `certificate`, which trusts nothing here, checks all rows with: the
splits, and the squares that the semidefinite condition is.

Categories of nearly equal shares can be taken alike (`groups`): K is then the same for all of a
group, and the unknowns are those of one category of each group, and of two where it has several.
The certificate is for all categories with their own shares (docs/proofs/frontier.md, section 5).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices.certificate import (
    Certificate,
    Limits,
    certify,
    shape_of_rows,
    sum_bound,
)
from deniable.solvers.matrices.groups import (
    MOST_GROUPS,
    at_larger_shares,
    at_true_shares,
    spread_out,
    within,
)
from deniable.solvers.matrices.listed import Listed
from deniable.solvers.matrices.parts import Parts, splits_of

_TOLERANCE = 1e-9
_MOST_STEPS = 100
_TO_BOUNDARY = 0.95
# The products of slacks and multipliers at the start, over the error: large, since the first steps
# are far from where the error is like its quadratic model.
_START = 10.0
_LEAST_CENTRING = 0.1
_MARGIN = 0.8
_ROUNDING = 1e-9
# Claims within rounding of the best before the last step: nothing is left to gain.
_MOST_READ = 3
# A gap, as a part of the error, at which a solution proves nearly all; and in how many steps it has
# to halve from there on.
_NEAR, _SLOW = 1e-4, 8


def bound(
    limits: Limits, listed: Listed
) -> tuple[Certificate, tuple[FloatArray, FloatArray], float]:
    """Return a certificate of the least error over small sets and the moments of larger ones.

    Where that is less than the bound in closed form, or could not be solved for, that.

    Args:
        limits: the prior and the required privacy.
        listed: of the limits at the mean shares of groups (`alike`), or their least (`lowered`).

    Returns:
        The certificate, its Z and λ at the shares of the groups, and the bound on n·N·MSE there.

    Source: docs/proofs/frontier.md, section 5.

    >>> from deniable.solvers.matrices.certificate import average_limits, verify
    >>> from deniable.solvers.matrices.groups import of_like_shares
    >>> limits = average_limits([0.5, 0.3, 0.2], 0.25)
    >>> certificate, _, _ = bound(limits, Listed(limits, of_like_shares(limits, 3)))
    >>> round(certificate.record_mse, 6), verify(certificate) >= certificate.claim
    (0.346306, True)
    """
    simple = in_closed_form(limits)
    least, part = shape_of_rows(limits)
    rows = listed.sets_up_to(0)
    if limits.epsilon is not None:
        # Moments say enough of larger sets; those of two are worth 0.1 %.
        least = 3 if len(listed.divided) <= MOST_GROUPS else 2
        rows = listed.sets_up_to(least - 1)
    elif least == 2 and part > 0.0:
        # 1_x + φ 1_j: few, and X would be 0 between two categories.
        rows, part = listed.pairs_with_part(part), 0.0
    found = _Relaxed(limits, listed, rows, least, part).solve()
    if found is None:
        return simple, (simple.directions, simple.multipliers), 0.0
    proofs = [simple, found.certificate]
    if limits.epsilon is not None:
        proofs += [_with_more(found.certificate, found.error * 0.5**k) for k in range(3, 12)]
    best = max(proofs, key=lambda proof: proof.claim)
    return best, (found.directions, found.multipliers), found.error


def _with_more(proof: Certificate, more: float) -> Certificate:
    """Under ε-LDP m may as well be added to λ: there the cost of a row is its sum.

    Only what is left is then bounded with the least sum of a row that has as many categories.
    """
    multipliers = proof.multipliers + more
    helps = proof.splits, proof.squares, proof.part_splits, proof.outside
    return certify(proof.limits, proof.directions, multipliers, *helps)


def in_closed_form(limits: Limits) -> Certificate:
    """A bound of Theorem 6 as a certificate.

    For average privacy Z = 1, and λ and m such that λ·p + m A is the concave envelope at A of what
    Σ q²/(1·q) can be. Under ε-LDP the one with D^{−1/2} C D^{−1/2}: Z = D^{−1/2} W with W the
    orthogonal matrix of the largest tr(ZᵀG).
    """
    p = limits.prior
    if limits.epsilon is not None:
        root = np.sqrt(p)
        left, _, right = np.linalg.svd(np.diag(root) - np.outer(root, p))
        return certify(limits, left @ right / root[:, None], np.zeros(len(p)))
    n = limits.n_categories
    rest = 0.0
    delta = limits.most_posterior
    if delta is not None and limits.success is not None:
        whole, part = sum_bound(delta)
        corner = 1.0 / (whole + (part > 0))
        top = whole * delta**2 + (1.0 - whole * delta) ** 2
        if limits.success > corner < delta:
            slope = (top - corner) / (delta - corner) if limits.success < delta else 0.0
            rest = top - slope * delta
    return certify(limits, np.eye(n), np.full(n, rest))


@dataclass(frozen=True, eq=False)
class _Point:
    """A step of the interior-point method.

    Attributes:
        y: the unknowns.
        slack: C y − d, kept above 0.
        matrix: the moments with X₀, and what they still lack to be it, positive definite.
        equal: multipliers of R y = 1.
        multipliers: of the slacks, above 0.
        square: multiplier of the matrix, positive definite.
    """

    y: FloatArray
    slack: FloatArray
    matrix: FloatArray
    equal: FloatArray
    multipliers: FloatArray
    square: FloatArray


@dataclass(frozen=True, eq=False)
class _Found:
    """A solution.

    Attributes:
        certificate: for the true shares.
        directions: Z at the shares of the groups.
        multipliers: λ there.
        error: n·N·MSE there.
    """

    certificate: Certificate
    directions: FloatArray
    multipliers: FloatArray
    error: float


class _Relaxed:
    """The program over K, for groups g of n_g categories with a share each.

    Entries of K or X, one for each pair g ≤ h: between a category of g and one of h, that is on the
    diagonal for g = h; then between two categories of the same g. Along Σ_{x ∈ g} h_x = 0, K is
    κ_g = K(x, x) − K(x, x'), n_g − 1 times; elsewhere it is the G x G matrix with entries
    √(n_g n_h) K(x, x') and K(x, x) + (n_g − 1) K(x, x'). Unknowns y: X, X₀, weights of the rows.
    """

    def __init__(
        self, limits: Limits, listed: Listed, rows: FloatArray, least: int, part: float = 0.0
    ) -> None:
        self.limits, self.rows, self.least = limits, rows, least
        self.count, self.group = listed.count, listed.group
        self.share = listed.limits.prior[listed.first]
        self.lacking = 1.0 - float(self.count @ self.share)
        n_groups = len(self.count)
        self.i, self.j = np.triu_indices(n_groups)
        self.n_pairs = len(self.i)
        self.on = np.flatnonzero(self.i == self.j)
        self.off = np.flatnonzero(self.i != self.j)
        self.several = np.flatnonzero(self.count > 1)
        self.n_entries = self.n_pairs + len(self.several)
        self.n_moments = self.n_entries + 1
        self.parts = Parts(self.count, self._sums(), least - 1, part) if part > 0.0 else None
        self.n_linear = self.n_moments + (0 if self.parts is None else self.parts.size)
        self.size = self.n_linear + len(rows)
        self.error, self.turn = within(self.count, self.share)
        self.square = self.error @ self.error.T
        self._describe()

    # The program: K = J y, R y = 1, C y ≥ d, and a matrix of moments.

    def _describe(self) -> None:
        limits, n_rows = self.limits, len(self.rows)
        self.moments = self._moments()
        self.listed = self._entries_of(self.rows).T
        sums = self._sums()
        self.equal = np.hstack([(sums @ self.moments).toarray(), sums @ self.listed])
        self.equal /= self.share[:, None]
        if limits.epsilon is not None:
            # What the shares lack to 1 is that of a category which no set names.
            gain, ratio = math.expm1(limits.epsilon), self.rows / self.share[self.group]
            member = np.equal.outer(self.group, np.arange(len(self.count))) / self.count
            self.equal[:, self.n_entries] += self.lacking
            self.equal[np.arange(len(self.count)), self.on] += self.lacking * gain
            named = self.lacking * ratio.min(axis=1)[:, None] * (ratio @ member)
            self.equal[:, self.n_linear :] += named.T
        self.right = np.ones(len(self.count))
        if self.parts is not None:
            zero = np.zeros((len(self.parts.equal), self.n_moments))
            rest = np.zeros((len(self.parts.equal), n_rows))
            self.equal = np.vstack([self.equal, np.hstack([zero, self.parts.equal, rest])])
            self.right = np.append(self.right, np.zeros(len(self.parts.equal)))
        unit = sparse.eye(self.n_moments, format="csr")
        pair, inner = unit[self.off], unit[self.n_pairs : self.n_entries]
        diagonal = unit[self.on]
        padded = sparse.hstack([sums, sparse.csr_matrix((len(self.count), 1))]).tocsr()
        blocks = [
            diagonal[self.i[self.off]] - pair,
            diagonal[self.j[self.off]] - pair,
            padded - float(self.least) * diagonal,
            sparse.csr_matrix(np.ones((len(self.count), 1)) * (self.count @ diagonal))
            - padded
            - float(self.least) * (unit[np.full(len(self.count), self.n_entries)] - diagonal),
            unit[np.full(len(self.off), self.n_entries)]
            - diagonal[self.i[self.off]]
            - diagonal[self.j[self.off]]
            + pair,
            unit[np.full(len(self.several), self.n_entries)] - 2.0 * diagonal[self.several] + inner,
            pair,
            inner,
            diagonal[self.several] - inner,
            sparse.csr_matrix(self.count @ diagonal) - float(self.least) * unit[[self.n_entries]],
            self._of_sizes(),
        ]
        self.n_of_sets = sum(block.shape[0] for block in blocks)
        more = [] if self.parts is None else [self.parts.slope]
        every = [sparse.vstack(blocks), *more, sparse.eye(n_rows)]
        slope = sparse.csr_matrix(sparse.block_diag(every))
        self.lower = np.zeros(slope.shape[0])
        if limits.epsilon is None:
            cost = np.zeros((1, self.size))
            cost[0, self.on], cost[0, self.n_linear :] = -self.count, -1.0
            if self.parts is not None:
                cost[0, self.n_moments : self.n_linear] = -self.parts.cost
            slope = sparse.csr_matrix(sparse.vstack([slope, sparse.csr_matrix(cost)]))
            self.lower = np.append(self.lower, -limits.budget)
        self.slope = slope
        self._place()

    def _sums(self) -> sparse.csr_matrix:
        """K 1 of a category of each group, from the entries."""
        i, j, at = self.i, self.j, np.arange(self.n_pairs)
        off = i != j
        rows = np.concatenate([i, j[off], self.several])
        columns = np.concatenate([at, at[off], self.n_pairs + np.arange(len(self.several))])
        values = np.concatenate(
            [np.where(off, self.count[j], 1.0), self.count[i[off]], self.count[self.several] - 1.0]
        )
        shape = (len(self.count), self.n_entries)
        return sparse.coo_matrix((values, (rows, columns)), shape).tocsr()

    def _entries_of(self, rows: FloatArray, total: FloatArray | None = None) -> FloatArray:
        """q qᵀ/(1·q) of each row, averaged over the categories of its groups."""
        member = np.equal.outer(self.group, np.arange(len(self.count))).astype(float)
        sums, squares, several = rows @ member, rows**2 @ member, self.several
        count = self.count
        entries = np.empty((len(rows), self.n_entries))
        entries[:, : self.n_pairs] = (
            sums[:, self.i] * sums[:, self.j] / (count[self.i] * count[self.j])
        )
        entries[:, self.on] = squares / count
        entries[:, self.n_pairs :] = (sums**2 - squares)[:, several] / (count * (count - 1.0))[
            several
        ]
        total = rows.sum(axis=1) if total is None else total
        return np.asarray(entries / total[:, None])

    def _moments(self) -> sparse.csr_matrix:
        """K = X, or p p' (X₀ + E X(x, x) + E X(x', x') + E² X(x, x')) with E = e^ε − 1."""
        if self.limits.epsilon is None:
            sets = sparse.eye(self.n_entries, self.n_moments, format="csr")
            more = [] if self.parts is None else [self.parts.moments]
            return sparse.csr_matrix(sparse.hstack([sets, *more]))
        gain = math.expm1(self.limits.epsilon)
        at = np.arange(self.n_pairs)
        one = np.full(self.n_pairs, self.n_entries)
        scale = self.share[self.i] * self.share[self.j]
        inner = self.n_pairs + np.arange(len(self.several))
        own = self.on[self.several]
        rows = np.concatenate([at, at, at, at, inner, inner, inner])
        columns = np.concatenate(
            [one, self.on[self.i], self.on[self.j], at, one[: len(inner)], own, inner]
        )
        square = self.share[self.several] ** 2
        values = np.concatenate(
            [
                *(scale, gain * scale, gain * scale, gain**2 * scale),
                *(square, 2.0 * gain * square, gain**2 * square),
            ]
        )
        shape = (self.n_entries, self.n_moments)
        return sparse.coo_matrix((values, (rows, columns)), shape).tocsr()

    def _of_sizes(self) -> sparse.csr_matrix:
        """(|B| − k) (|B| − k − 1) for whole k."""
        k = np.arange(self.least, self.limits.n_categories, dtype=float)
        sizes = np.zeros((len(k), self.n_moments))
        sizes[:, self.n_entries] = k * (k + 1.0)
        sizes[:, self.on] = -2.0 * k[:, None] * self.count
        sizes[:, self.off] = 2.0 * self.count[self.i[self.off]] * self.count[self.j[self.off]]
        sizes[:, self.n_pairs : self.n_entries] = (self.count * (self.count - 1.0))[self.several]
        return sparse.csr_matrix(sizes / (1.0 + k[:, None] ** 2))

    def _place(self) -> None:
        """Where the moments stand in the matrix that is positive semidefinite, upper triangle.

        On vectors that are constant on groups: X₀, √n_g X(x, x), √(n_g n_h) X(x, x'), and on the
        diagonal X(x, x) + (n_g − 1) X(x, x').
        """
        n_groups, root = len(self.count), np.sqrt(self.count)
        groups_ = 1 + np.arange(n_groups)
        self.row = np.concatenate([[0], np.zeros(n_groups, dtype=np.intp), 1 + self.i])
        self.column = np.concatenate([[0], groups_, 1 + self.j])
        pairs = 1 + n_groups + np.arange(self.n_pairs)
        at = np.concatenate([[0], groups_, pairs, pairs[self.on[self.several]]])
        unknown = np.concatenate([[self.n_entries], self.on, np.arange(self.n_entries)])
        between = np.where(self.i == self.j, 1.0, root[self.i] * root[self.j])
        entry = np.concatenate([[1.0], root, between, self.count[self.several] - 1.0])
        shape = (len(self.row), self.n_moments)
        self.place = sparse.coo_matrix((entry, (at, unknown)), shape).tocsr()

    def _matrix_of(self, y: FloatArray) -> FloatArray:
        matrix = np.zeros((len(self.count) + 1,) * 2)
        matrix[self.row, self.column] = self.place @ y[: self.n_moments]
        matrix[self.column, self.row] = matrix[self.row, self.column]
        return matrix

    def _against(self, square: FloatArray) -> FloatArray:
        """The derivatives of tr(square · matrix) in y."""
        twice = np.where(self.row == self.column, 1.0, 2.0)
        slope = np.zeros(self.size)
        slope[: self.n_moments] = self.place.T @ (twice * square[self.row, self.column])
        return slope

    def _entries(self, y: FloatArray) -> FloatArray:
        return np.asarray(self.moments @ y[: self.n_linear] + self.listed @ y[self.n_linear :])

    def _start(self) -> FloatArray:
        y = np.zeros(self.size)
        limits, n_rows = self.limits, max(1, len(self.rows))
        if limits.epsilon is not None:
            # Sets by fair coins, each with its complement, and stretches of random orders, of the
            # size that is best for equal shares, so that R y = 1; so for listed rows.
            n = limits.n_categories
            prior, gain = self.share[self.group], math.expm1(limits.epsilon)
            generator = np.random.default_rng(0)
            coins = generator.random((5 * n, n)) < 0.5
            named = max(self.least, round(n / (gain + 2.0)))
            stretch = (np.arange(n)[:, None] - np.arange(n)) % n < named
            stretches = [stretch[:, generator.permutation(n)] for _ in range(10)]
            ratio = self.rows / prior
            listed = ratio > 0.999 * ratio.max(axis=1, keepdims=True)
            sets = np.concatenate([coins, ~coins, *stretches, ~listed])
            weight = np.concatenate(
                [
                    np.full(10 * n, 0.2 / (10 * n)),
                    np.full(10 * n, 0.5 / (10 * n)),
                    np.full(len(listed), 0.3 / n_rows),
                ]
            )
            weight = weight / (1.0 + gain * (sets @ prior))
            ones = np.ones(len(sets))
            y[: self.n_entries] = weight @ self._entries_of(sets.astype(float), ones)
            y[self.n_entries] = weight.sum()
            y[self.n_linear :] = 0.3 / n_rows * (1.0 + gain * (listed @ prior))
            return y / float((self.equal @ y).mean())
        # Halfway from the sets of all categories above a share, of least cost, to the truth.
        order = np.argsort(-self.share, kind="stable")
        heights = np.append(self.share[order], 0.0)
        sets = np.zeros((len(order),) * 2)
        size = total = 0.0
        for at in range(len(order)):
            size += self.count[order[at]]
            members = np.zeros(len(order))
            members[order[: at + 1]] = 1.0
            sets += (heights[at] - heights[at + 1]) * np.outer(members, members) / size
            total += (heights[at] - heights[at + 1]) / size
        most = float(self.share.max())
        truth = max(0.05, 0.5 * (limits.budget - most) / (1.0 - most))
        y[: self.n_pairs] = (1.0 - truth) * sets[self.i, self.j]
        y[self.n_pairs : self.n_entries] = (1.0 - truth) * sets[self.several, self.several]
        y[self.on] += truth * self.share
        y[self.n_entries] = 2.0 * ((1.0 - truth) * total + truth)
        y[self.n_linear :] = 0.1 * limits.budget / n_rows
        if self.parts is not None:
            total = self.least - 1 + self.parts.part
            y[self.n_moments : self.n_linear] = self.parts.at_random(0.5 * limits.budget / total)
        return y

    # The error and its derivatives in the entries of K.

    def _matrix(self, entries: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(G x G matrix, κ of the groups of several)."""
        n_groups = len(self.count)
        matrix = np.zeros((n_groups, n_groups))
        root = np.sqrt(self.count)
        matrix[self.i, self.j] = entries[: self.n_pairs] * root[self.i] * root[self.j]
        np.fill_diagonal(matrix, entries[self.on])
        inner = entries[self.n_pairs :]
        matrix[self.several, self.several] += (self.count[self.several] - 1.0) * inner
        matrix[self.j, self.i] = matrix[self.i, self.j]
        return matrix, entries[self.on[self.several]] - inner

    def _inside(self, entries: FloatArray) -> bool:
        matrix, kappa = self._matrix(entries)
        try:
            np.linalg.cholesky(self.turn.T @ matrix @ self.turn)
        except np.linalg.LinAlgError:
            return False
        return bool((kappa > 0).all())

    def _model(self, entries: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """The error, its gradient and Hessian in the entries, and (UᵀD^{−1/2}KD^{−1/2}U)⁻¹."""
        matrix, kappa = self._matrix(entries)
        inverse = np.linalg.inv(self.turn.T @ matrix @ self.turn)
        first = self.turn @ inverse @ self.turn.T
        second = self.turn @ inverse @ self.square @ inverse @ self.turn.T
        i = np.concatenate([self.i, self.several])
        j = np.concatenate([self.j, self.several])
        root = np.sqrt(self.count)
        weight = np.where(self.i == self.j, 0.5, root[self.i] * root[self.j])
        weight = np.concatenate([weight, 0.5 * (self.count[self.several] - 1.0)])
        gradient = -2.0 * weight * second[i, j]
        total = 2.0 * _products(first, second, i, j, weight)
        # Each κ_g adds (n_g − 1) p²/κ.
        share, times = self.share[self.several], self.count[self.several] - 1.0
        error = float(np.trace(inverse @ self.square) + (times * share**2 / kappa).sum())
        own, inner = self.on[self.several], self.n_pairs + np.arange(len(self.several))
        slope, bend = times * share**2 / kappa**2, 2.0 * times * share**2 / kappa**3
        gradient[own] -= slope
        gradient[inner] += slope
        total[own, own] += bend
        total[inner, inner] += bend
        total[own, inner] -= bend
        total[inner, own] -= bend
        return error, np.asarray(gradient), total, np.asarray(inverse)

    # The interior-point method.

    def solve(self) -> _Found | None:
        """None if no step came near the optimum."""
        point = self._first()
        best: _Found | None = None
        stalled, gaps = 0, list[float]()
        for _ in range(_MOST_STEPS):
            error, gradient, hessian, inverse = self._model(self._entries(point.y))
            gap = float(point.slack @ point.multipliers + (point.matrix * point.square).sum())
            residuals = self._residuals(point, gradient)
            off = float(np.abs(residuals[0] * point.y).sum())
            done = gap < _TOLERANCE * error and off < 1e-7 * error
            gaps.append(gap / error)
            # At the edge of what is possible rounding ends it before.
            slow = gaps[-1] < _NEAR and gaps[-1] > 0.5 * max(gaps[-_SLOW:-1], default=math.inf)
            if done or slow or gap < 1e-7 * error:
                found = self._read(point, inverse, error)
                stalled += 1
                if best is None or found.certificate.claim > best.certificate.claim * (1.0 + 1e-7):
                    stalled = 0
                if best is None or found.certificate.claim > best.certificate.claim:
                    best = found
            if done or slow or stalled == _MOST_READ:
                break
            try:
                point = self._step(point, residuals, hessian, gap, error)
            except (np.linalg.LinAlgError, ValueError):
                if best is None and gaps[-1] < _NEAR:
                    best = self._read(point, inverse, error)
                break
        return best

    def _first(self) -> _Point:
        y = self._start()
        slack = self.slope @ y - self.lower
        slack = np.maximum(slack, 1e-3 * np.asarray(abs(self.slope) @ abs(y)) + 1e-12)
        matrix = self._matrix_of(y)
        matrix[np.diag_indices(len(matrix))] *= 10.0
        error = self._model(self._entries(y))[0]
        each = _START * error / (len(slack) + len(matrix))
        equal = np.zeros(len(self.right))
        equal[: len(self.count)] = 0.5 * error * self.share * self.count
        return _Point(
            y, slack, matrix, equal, each / slack, np.asarray(each * np.linalg.inv(matrix))
        )

    def _residuals(
        self, point: _Point, gradient: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        dual = np.concatenate([self.moments.T @ gradient, gradient @ self.listed])
        dual += self.equal.T @ point.equal - self.slope.T @ point.multipliers
        return (
            dual - self._against(point.square),
            self.right - self.equal @ point.y,
            self.slope @ point.y - self.lower - point.slack,
            self._matrix_of(point.y) - point.matrix,
        )

    def _curve(self, hessian: FloatArray, scaling: FloatArray) -> FloatArray:
        """The second derivatives in y, and those that the matrix adds."""
        n, m = self.n_linear, self.n_moments
        curve = np.zeros((self.size, self.size))
        half = self.moments.T @ hessian
        curve[:n, :n] = (self.moments.T @ half.T).T
        curve[:n, n:] = half @ self.listed
        curve[n:, :n] = curve[:n, n:].T
        curve[n:, n:] = self.listed.T @ hessian @ self.listed
        weight = np.where(self.row == self.column, 0.5, 1.0)
        more = self.place.T @ _products(scaling, scaling, self.row, self.column, weight)
        curve[:m, :m] += (self.place.T @ more.T).T
        return curve

    def _step(
        self,
        point: _Point,
        residuals: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        hessian: FloatArray,
        gap: float,
        error: float,
    ) -> _Point:
        """A predictor and a corrector (Mehrotra; Nesterov and Todd), the slacks eliminated."""
        dual, primal, inner, lacking = residuals
        s, z, S, Y = point.slack, point.multipliers, point.matrix, point.square
        if not (z < 1e250 * s).all():
            raise ValueError("the slacks have vanished")
        turn, both = _scaling(S, Y)
        back = np.linalg.inv(turn)
        inverse, scaling = back.T / both @ back, back.T @ back
        system = self._curve(hessian, scaling)
        system += (self.slope.T @ sparse.diags(z / s) @ self.slope).toarray()
        scale = 1.0 / np.sqrt(np.diag(system))
        system *= scale[:, None]
        system *= scale
        damped = system + 1e-13 * np.eye(len(system))
        factor = linalg.cho_factor(damped, lower=True, overwrite_a=True)
        border = (self.equal * scale).T
        solved = linalg.cho_solve(factor, border)
        schur = border.T @ solved

        def direction(target: FloatArray | float, wanted: FloatArray) -> tuple[FloatArray, ...]:
            pull = wanted - Y - scaling @ lacking @ scaling
            right = self.slope.T @ (target / s - z - z / s * inner) + self._against(pull) - dual
            right = right * scale
            move, change = np.zeros(len(right)), np.zeros(len(primal))
            left, below = right, primal
            for _ in range(3):  # iterative refinement
                first = linalg.cho_solve(factor, left)
                more = np.linalg.solve(schur, border.T @ first - below)
                move, change = move + first - solved @ more, change + more
                left = right - system @ move - border @ change
                below = primal - border.T @ move
            move = move * scale
            ds, dS = self.slope @ move + inner, self._matrix_of(move) + lacking
            dY = wanted - Y - scaling @ dS @ scaling
            return move, change, ds, target / s - z - z / s * ds, dS, dY

        _, _, ds, dz, dS, dY = direction(0.0, np.zeros_like(S))
        reach_s = min(_reach(s, ds), _reach_of_matrix(S, dS))
        reach_z = min(_reach(z, dz), _reach_of_matrix(Y, dY))
        left = float((s + reach_s * ds) @ (z + reach_z * dz))
        share = (left + float(((S + reach_s * dS) * (Y + reach_z * dY)).sum())) / gap
        share = max(_LEAST_CENTRING, share**2 if share < 0.5 else share)
        # Products may not shrink faster than what the gradient is off, nor below rounding.
        off = float(np.abs(dual * point.y).sum())
        target = max(min(1.0, share) * gap, min(off, gap), 0.1 * _TOLERANCE * error) / (
            len(s) + len(S)
        )
        corrected = target - np.clip(reach_s * reach_z * ds * dz, -target, 3.0 * target)
        product = reach_s * reach_z * (back @ dS @ dY @ turn)
        product = (product + product.T) / (both[:, None] + both)
        wanted = target * inverse - back.T @ product @ back
        move, change, ds, dz, dS, dY = direction(corrected, wanted)
        reach_s = _TO_BOUNDARY * min(_reach(s, ds), _reach_of_matrix(S, dS))
        reach_z = _TO_BOUNDARY * min(_reach(z, dz), _reach_of_matrix(Y, dY))
        while not self._inside(self._entries(point.y + reach_s / _MARGIN * move)):
            reach_s *= 0.5
            if reach_s < 1e-12:
                raise ValueError("no step leads on")
        return _Point(
            point.y + reach_s * move,
            s + reach_s * ds,
            S + reach_s * dS,
            point.equal + reach_z * change,
            z + reach_z * dz,
            Y + reach_z * (dY + dY.T) / 2.0,
        )

    def _read(self, point: _Point, inverse: FloatArray, error: float) -> _Found:
        """Z, λ, the splits and the squares of all categories."""
        kappa = self._matrix(self._entries(point.y))[1]
        inner = np.zeros(len(self.count))
        inner[self.several] = self.share[self.several] / kappa
        directions = spread_out(self.turn @ inverse @ self.error, inner, self.count, self.group)
        group = self.group
        multipliers = (point.equal[: len(self.count)] / self.share / self.count)[group]
        values, vectors = np.linalg.eigh(point.square)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        squares = [root[:, :1], (root[:, 1:] / np.sqrt(self.count))[:, group]]
        splits, outside = self._splits(point)
        carried = at_larger_shares if self.lacking > _ROUNDING else at_true_shares
        certificate = certify(
            self.limits,
            *carried(self.limits, self.share[group], directions, multipliers),
            splits,
            np.concatenate(squares, axis=1),
            self._part_splits(point),
            outside,
        )
        return _Found(certificate, directions, multipliers, error)

    def _splits(self, point: _Point) -> tuple[FloatArray, FloatArray]:
        """Let each multiplier of a product of x with others count in the row of x alone.

        They are those of X(x, x) ≥ X(x, x') and of Σ_x' X(x, x') ≥ k X(x, x). Those of pairs of
        which a set has neither count in both, and those of the rest of a row, which are `outside`
        of the certificate, in that row.
        """
        number, n_groups = len(self.off), len(self.count)
        lengths = [number, number, n_groups, n_groups, number, len(self.several)]
        first, second, sizes, rest, neither, inner, _ = np.split(
            point.multipliers, np.cumsum(lengths)
        )
        pairs = splits_of(self.count, first - second, neither, inner, sizes)
        outside = rest / self.count
        pairs -= 0.5 * (outside[:, None] + outside)
        return np.asarray(pairs[self.group[:, None], self.group]), outside[self.group]

    def _part_splits(self, point: _Point) -> FloatArray | None:
        if self.parts is None:
            return None
        at = self.n_of_sets
        equal, multipliers = point.equal[len(self.count) :], point.multipliers[at:]
        pairs = self.parts.splits(equal, multipliers)
        return np.asarray(pairs[self.group[:, None], self.group])


def _products(
    first: FloatArray,
    second: FloatArray,
    i: npt.NDArray[np.intp],
    j: npt.NDArray[np.intp],
    weight: FloatArray,
) -> FloatArray:
    """tr(E_a first E_b second) of symmetric matrices with E_a = w (e_i e_jᵀ + e_j e_iᵀ)."""
    a, b = i[:, None], j[:, None]
    total = first[a, i] * second[b, j]
    total += first[a, j] * second[b, i]
    total += first[b, i] * second[a, j]
    total += first[b, j] * second[a, i]
    total *= weight[:, None] * weight
    return total


def _scaling(S: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """T and d with T⁻¹ S T⁻ᵀ = Tᵀ Y T = diag d."""
    lower = np.linalg.cholesky(S)
    values, vectors = np.linalg.eigh(lower.T @ Y @ lower)
    if values[0] <= 0.0:
        raise ValueError("the matrix has vanished")
    return lower @ vectors / values**0.25, np.sqrt(values)


def _reach(value: FloatArray, change: FloatArray) -> float:
    ratio = np.divide(-value, change, out=np.full_like(value, np.inf), where=change < 0)
    return float(min(1.0, ratio.min()))


def _reach_of_matrix(value: FloatArray, change: FloatArray) -> float:
    lower = np.linalg.cholesky(value)
    half = linalg.solve_triangular(lower, change, lower=True)
    whole = linalg.solve_triangular(lower, half.T, lower=True)
    least = float(np.linalg.eigvalsh((whole + whole.T) / 2.0)[0])
    return min(1.0, -1.0 / least) if least < 0.0 else 1.0
