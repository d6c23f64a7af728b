"""A bound on the least error with many categories, and the directions that prove it.

`frontier` chooses weights of about 2^n extreme rows. Here the unknown is what the weights add up
to, K = Σ w_a q_a q_aᵀ/(1·q_a), n(n + 1)/2 numbers. Instead of the cone of all sums of extreme rows,
which has too many faces, K keeps inequalities that every extreme row keeps, so that the least
error over them is a lower bound. For average privacy, K₁ the part of K that is made of rows 1_B:

    K₁(x, x') ≥ 0,   K₁(x, x) ≥ K₁(x, x'),   Σ_x' K₁(x, x') ≥ k K₁(x, x),   K(x, x) ≤ δ p(x),

k the least size of a set. If 1/2 < δ < 1 the rows 1_x + φ 1_x' and the sets of two are listed, and
k is 3; below 1/2 it is ⌈1/δ⌉, and nothing more is said of the rows with φ. Under ε-LDP, for the
moments of the sets B, X(x, x') = Σ w [x, x' ∈ B] t² and X₀ = Σ w t² with t the scale of a row, the
products of any two of 1_B(x) and 1 − 1_B(x), and of |B| − k and |B| − k − 1, are at least 0; the
sets of one and of two are listed. What the solution's dual proves is evaluated by `certificate`,
which trusts nothing here.

Rare categories of nearly equal shares can be taken alike (`groups`): K is then the same for all of
a group, and the unknowns are those of as many categories as there are groups. The certificate is
for all categories with their own shares (docs/proofs/frontier.md, section 5).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices.certificate import Certificate, Limits, certify, sum_bound

MOST_GROUPS = 41
"""Unknowns grow with the square of the groups, and time with their third power."""

_TOLERANCE = 1e-9
_MOST_STEPS = 80
_TO_BOUNDARY = 0.95

Groups = list[npt.NDArray[np.intp]]


def groups(prior: FloatArray, most: int = MOST_GROUPS, *, local: bool = False) -> Groups:
    """Divide categories into at most so many groups of like shares.

    Neighbours in the order of shares are merged, those first of which a mean share is least far
    from their own shares: the least Σ (p − mean)²/mean that a merger adds, or with `local`, for
    ε-LDP, the least Σ (p − mean)², since there shares count only in sums over sets.

    >>> [group.tolist() for group in groups(np.array([0.5, 0.1, 0.3, 0.1]), 3)]
    [[0], [2], [1, 3]]
    """
    order = np.argsort(-prior, kind="stable")
    found = [order[at : at + 1] for at in range(len(order))]

    def added(first: npt.NDArray[np.intp], second: npt.NDArray[np.intp]) -> float:
        def spread(members: npt.NDArray[np.intp]) -> float:
            shares = prior[members]
            distance = float(((shares - shares.mean()) ** 2).sum())
            return distance if local else distance / float(shares.mean())

        return spread(np.concatenate([first, second])) - spread(first) - spread(second)

    while len(found) > most:
        costs = [added(found[at], found[at + 1]) for at in range(len(found) - 1)]
        at = int(np.argmin(costs))
        found[at : at + 2] = [np.concatenate(found[at : at + 2])]
    return found


def divided_for(limits: Limits, most: int = MOST_GROUPS) -> Groups:
    """`groups` of the prior, as they suit the limits."""
    return groups(limits.prior, most, local=limits.epsilon is not None)


def at_true_shares(
    limits: Limits, mean: FloatArray, Z: FloatArray, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Z and λ of the mean shares of groups as they are for the true shares.

    Under ε-LDP rows are p∘v: let Zᵀq of the same v be what it is at the mean shares, and
    (λ·q)(1·q) nearly so (docs/proofs/frontier.md, section 5). Else they are the same.
    """
    if limits.epsilon is None:
        return Z, multipliers
    p = limits.prior
    level = float(multipliers @ mean)
    return Z * (mean / p)[:, None], (multipliers * mean - level * (p - mean)) / p


def bound(limits: Limits, divided: Groups | None = None) -> Certificate:
    """Return a certificate of the least error that the inequalities above allow.

    Args:
        limits: the prior and the required privacy.
        divided: groups of categories to be taken alike; `groups` of the prior if None.

    Where that is less than the bound in closed form, or could not be solved for, that.

    Source: docs/proofs/frontier.md, section 5.

    >>> from deniable.solvers.matrices.certificate import average_limits, verify
    >>> certificate = bound(average_limits([0.5, 0.3, 0.2], 0.25))
    >>> round(certificate.record_mse, 6), verify(certificate) >= certificate.claim
    (0.346306, True)
    """
    simple = in_closed_form(limits, divided)
    try:
        found = _Relaxed(limits, divided_for(limits) if divided is None else divided).certificate()
    except InputError:
        return simple
    return max(simple, found, key=lambda certificate: certificate.claim)


def in_closed_form(limits: Limits, divided: Groups | None = None) -> Certificate:
    """A bound of Theorem 6 as a certificate.

    For average privacy Z = 1, and λ and m such that λ·p + m A is the concave envelope at A of what
    Σ q²/(1·q) can be. Under ε-LDP the one with D^{−1/2} C D^{−1/2}: Z = D^{−1/2} W with W the
    orthogonal matrix of the largest tr(ZᵀG), at the mean shares of the groups.
    """
    if limits.epsilon is not None:
        mean = limits.prior.copy()
        for members in divided or ():
            mean[members] = mean[members].mean()
        root = np.sqrt(mean / mean.sum())
        left, _, right = np.linalg.svd(np.diag(root) - np.outer(root, root * root))
        Z = left @ right / root[:, None]
        return certify(limits, *at_true_shares(limits, mean, Z, np.zeros(len(mean))))
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
        equal: multipliers of R y = r.
        multipliers: of the slacks, above 0.
    """

    y: FloatArray
    slack: FloatArray
    equal: FloatArray
    multipliers: FloatArray


class _Relaxed:
    """The program over K, for groups g of n_g categories with a mean share each.

    Unknowns, one for each pair g ≤ h: K between a category of g and one of h, that is on the
    diagonal for g = h; then K between two categories of the same g; then weights of listed rows or
    X₀. Along Σ_{x ∈ g} h_x = 0, K is κ_g = K(x, x) − K(x, x'), n_g − 1 times; elsewhere it is the
    G x G matrix with entries √(n_g n_h) K(x, x') and K(x, x) + (n_g − 1) K(x, x').
    """

    def __init__(self, limits: Limits, divided: Groups) -> None:
        self.limits = limits
        self.divided = divided
        self.count = np.array([len(group) for group in divided], dtype=float)
        self.share = np.array([limits.prior[group].mean() for group in divided])
        n_groups = len(divided)
        self.i, self.j = np.triu_indices(n_groups)
        self.n_pairs = len(self.i)
        self.on = np.flatnonzero(self.i == self.j)
        self.off = np.flatnonzero(self.i != self.j)
        self.several = np.flatnonzero(self.count > 1)
        self.n_entries = self.n_pairs + len(self.several)
        root = np.sqrt(self.count * self.share)
        axis = root.copy()
        axis[0] += np.linalg.norm(root)
        reflection = np.eye(n_groups) - 2.0 * np.outer(axis, axis) / (axis @ axis)
        basis = reflection[:, 1:]
        self.error = basis.T * np.sqrt(self.share)
        self.square = self.error @ self.error.T
        self.turn = basis / np.sqrt(self.share)[:, None]
        self._describe()

    # The program: K = J y, R y = r, C y >= d.

    def _describe(self) -> None:
        local = self.limits.epsilon is not None
        listed = sparse.csr_matrix(self._listed())
        n_listed = listed.shape[1]
        identity = sparse.eye(self.n_entries, format="csr")
        if local:
            moments = self._moments()
            self.entries = sparse.hstack([moments, moments @ listed]).tocsr()
        else:
            self.entries = sparse.hstack([identity, listed]).tocsr()
        self.n_moments = self.n_entries + local
        self.size = self.n_moments + n_listed
        sums = self._sums()
        self.equal = (sparse.diags(1.0 / self.share) @ sums @ self.entries).toarray()
        nothing = sparse.csr_matrix((self.n_entries, self.size - self.n_entries))
        sets = sparse.hstack([identity, nothing]).tocsr()
        blocks = self._of_sets(sets)
        lower = [np.zeros(block.shape[0]) for block in blocks]
        weights = sparse.eye(self.size, format="csr")[self.n_moments :]
        more = [weights, sums @ sets - float(self._least_size()) * sets[self.on]]
        if local:
            more.append(self._of_moments())
        blocks += more
        lower += [np.zeros(block.shape[0]) for block in more]
        if not local:
            self._of_average(blocks, lower)
        self.slope = sparse.vstack(blocks).tocsr()
        self.least = np.concatenate(lower)

    def _least_size(self) -> int:
        """Of the sets that are not listed."""
        if self.limits.epsilon is not None:
            return 3
        if self.limits.most_posterior is None:
            return 1
        whole, part = sum_bound(self.limits.most_posterior)
        return 3 if whole == 1 else whole + (part > 0)

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

    def _of_sets(self, sets: sparse.csr_matrix) -> list[sparse.csr_matrix]:
        """X(x, x') ≥ 0 and X(x, x) ≥ X(x, x') for any moments of sets."""
        pair, inner = sets[self.off], sets[self.n_pairs :]
        diagonal = sets[self.on]
        return [
            pair,
            diagonal[self.i[self.off]] - pair,
            diagonal[self.j[self.off]] - pair,
            inner,
            diagonal[self.several] - inner,
        ]

    def _listed(self) -> FloatArray:
        """What a unit of weight of each listed row, averaged over the categories of its groups,
        adds to the entries (under ε-LDP to the moments); shape (entries, rows)."""
        n_groups = len(self.count)
        delta = self.limits.most_posterior
        kinds: list[tuple[float, float]] = []  # the second entry beside 1, and the scale
        if self.limits.epsilon is not None:
            kinds = [(0.0, 1.0), (1.0, 1.0)]
        elif delta is not None and sum_bound(delta)[0] == 1:
            part = sum_bound(delta)[1]
            kinds = [(1.0, 0.5)] + [(part, 1.0 / (1.0 + part))] * (part > 0)
        place = np.zeros((n_groups, n_groups), dtype=np.intp)
        place[self.i, self.j] = place[self.j, self.i] = np.arange(self.n_pairs)
        inner = dict(zip(self.several.tolist(), range(self.n_pairs, self.n_entries), strict=True))
        columns = []
        for part, scale in kinds:
            for g, h in np.ndindex(n_groups, n_groups):
                if (part in (0.0, 1.0) and g > h) or (part == 0.0 and g != h):
                    continue
                if part > 0 and g == h and self.count[g] == 1:
                    continue
                column = np.zeros(self.n_entries + (self.limits.epsilon is not None))
                column[self.n_entries :] = 1.0
                column[place[g, g]] += 1.0 / self.count[g]
                column[place[h, h]] += part**2 / self.count[h]
                if g != h:
                    column[place[g, h]] += part / (self.count[g] * self.count[h])
                elif part > 0:
                    column[inner[g]] += 2.0 * part / (self.count[g] * (self.count[g] - 1.0))
                columns.append(column * scale)
        return np.array(columns).T if columns else np.zeros((self.n_entries, 0))

    def _of_average(self, blocks: list[sparse.csr_matrix], lower: list[FloatArray]) -> None:
        """The budget tr K₁ + Σ w ≤ A, and K(x, x) ≤ δ p(x)."""
        delta = self.limits.most_posterior
        assert self.limits.success is not None
        cost = np.zeros((1, self.size))
        cost[0, self.on] = -self.count
        cost[0, self.n_entries :] = -1.0
        blocks.append(sparse.csr_matrix(cost))
        lower.append(np.array([-self.limits.success]))
        if delta is not None:
            blocks.append(-self.entries[self.on])
            lower.append(-delta * self.share)

    def _moments(self) -> sparse.csr_matrix:
        """K = p p' (X₀ + E X(x, x) + E X(x', x') + E² X(x, x')), E = e^ε − 1."""
        assert self.limits.epsilon is not None
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
        shape = (self.n_entries, self.n_entries + 1)
        return sparse.coo_matrix((values, (rows, columns)), shape).tocsr()

    def _of_moments(self) -> sparse.csr_matrix:
        """(1 − 1_B(x)) (1 − 1_B(x')) ≥ 0, and (|B| − k) (|B| − k − 1) ≥ 0."""
        identity = sparse.eye(self.size, format="csr")
        one, diagonal = identity[[self.n_entries]], identity[self.on]
        pair, inner = identity[self.off], identity[self.n_pairs : self.n_entries]

        def both(some: npt.NDArray[np.intp], other: npt.NDArray[np.intp]) -> sparse.csr_matrix:
            ones = sparse.vstack([one] * len(some)) if len(some) else one[:0]
            return ones - diagonal[some] - diagonal[other]

        k = np.arange(self._least_size(), self.limits.n_categories, dtype=float)
        sizes = np.zeros((len(k), self.size))
        sizes[:, self.n_entries] = k * (k + 1.0)
        sizes[:, self.on] = -2.0 * k[:, None] * self.count
        sizes[:, self.off] = 2.0 * self.count[self.i[self.off]] * self.count[self.j[self.off]]
        sizes[:, self.n_pairs : self.n_entries] = (self.count * (self.count - 1.0))[self.several]
        sizes /= 1.0 + np.abs(sizes).max(axis=1, keepdims=True)
        return sparse.vstack(
            [
                both(self.i[self.off], self.j[self.off]) + pair,
                both(self.several, self.several) + inner,
                sparse.csr_matrix(sizes),
            ]
        ).tocsr()

    def _start(self) -> FloatArray:
        y = np.zeros(self.size)
        if self.limits.epsilon is not None:
            # Every category is in B or not, by a fair coin.
            y[self.on], y[self.off], y[self.n_pairs : self.n_entries] = 0.5, 0.25, 0.25
            y[self.n_entries], y[self.n_moments :] = 1.0, 0.1 / max(1, self.size - self.n_moments)
            return np.asarray(y / float(self.count @ (self._sums() @ (self.entries @ y))))
        # Halfway from the sets of all categories above a share, of least cost, to the truth.
        assert self.limits.success is not None
        order = np.argsort(-self.share, kind="stable")
        heights = np.append(self.share[order], 0.0)
        sets = np.zeros((len(order),) * 2)
        size = 0.0
        for at in range(len(order)):
            size += self.count[order[at]]
            members = np.zeros(len(order))
            members[order[: at + 1]] = 1.0
            sets += (heights[at] - heights[at + 1]) * np.outer(members, members) / size
        most = float(self.share.max())
        truth = 0.5 * (self.limits.success - most) / (1.0 - most)
        y[: self.n_pairs] = (1.0 - truth) * sets[self.i, self.j]
        y[self.n_pairs : self.n_entries] = (1.0 - truth) * sets[self.several, self.several]
        y[self.on] += truth * self.share
        y[self.n_entries :] = 0.1 * self.limits.success / max(1, self.size - self.n_entries)
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
        a, b = i[:, None], j[:, None]
        total = first[a, i] * second[b, j]
        total += first[a, j] * second[b, i]
        total += first[b, i] * second[a, j]
        total += first[b, j] * second[a, i]
        total *= 2.0 * weight[:, None] * weight
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
        return error, gradient, total, inverse

    # The interior-point method.

    def certificate(self) -> Certificate:
        y = self._start()
        slack = np.maximum(self.slope @ y - self.least, 1e-3 * (abs(self.slope) @ abs(y)) + 1e-12)
        error = self._model(self.entries @ y)[0]
        point = _Point(y, slack, 0.5 * error * self.share, 0.1 * error / len(slack) / slack)
        best: Certificate | None = None
        for _ in range(_MOST_STEPS):
            error, gradient, hessian, inverse = self._model(self.entries @ point.y)
            gap = float(point.slack @ point.multipliers)
            if gap < 1e-5 * error:
                candidate = self._read(point, inverse)
                best = candidate if best is None or candidate.claim > best.claim else best
            residuals = self._residuals(point, self.entries.T @ gradient)
            small = max(np.abs(residuals[1]).max(), float(np.abs(residuals[0] * point.y).sum()))
            if gap < _TOLERANCE * error and small < 1e-7 * max(error, 1.0):
                break
            try:
                point = self._step(point, residuals, self._curve(hessian), error)
            except (np.linalg.LinAlgError, ValueError):
                break
        if best is None or best.claim <= 0.0:
            raise InputError(
                "privacy: the limits are too near the edge of what is possible to be solved "
                "reliably; move them a little"
            )
        return best

    def _curve(self, hessian: FloatArray) -> FloatArray:
        half = self.entries.T @ hessian
        return np.asarray(self.entries.T @ half.T)

    def _residuals(
        self, point: _Point, gradient: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        return (
            gradient + self.equal.T @ point.equal - self.slope.T @ point.multipliers,
            1.0 - self.equal @ point.y,
            self.slope @ point.y - self.least - point.slack,
        )

    def _step(
        self,
        point: _Point,
        residuals: tuple[FloatArray, FloatArray, FloatArray],
        curve: FloatArray,
        error: float,
    ) -> _Point:
        """A predictor and a corrector (Mehrotra), with the slacks eliminated."""
        dual, primal, inner = residuals
        s, z = point.slack, point.multipliers
        if not (z < 1e250 * s).all():
            raise ValueError("the slacks have vanished")
        system = curve + (self.slope.T @ sparse.diags(z / s) @ self.slope).toarray()
        scale = 1.0 / np.sqrt(np.diag(system))
        system *= scale[:, None]
        system *= scale
        damped = system + 1e-13 * np.eye(len(system))
        factor = linalg.cho_factor(damped, lower=True, overwrite_a=True)
        border = (self.equal * scale).T
        solved = linalg.cho_solve(factor, border)
        schur = border.T @ solved

        def direction(target: FloatArray | float) -> tuple[FloatArray, ...]:
            right = (self.slope.T @ (target / s - z - z / s * inner) - dual) * scale
            move, change = np.zeros(len(right)), np.zeros(len(primal))
            left, below = right, primal
            for _ in range(3):  # iterative refinement
                first = linalg.cho_solve(factor, left)
                more = np.linalg.solve(schur, border.T @ first - below)
                move, change = move + first - solved @ more, change + more
                left = right - system @ move - border @ change
                below = primal - border.T @ move
            move = move * scale
            ds = self.slope @ move + inner
            return move, change, ds, target / s - z - z / s * ds

        _, _, ds, dz = direction(0.0)
        reach_s, reach_z = _reach(s, ds), _reach(z, dz)
        gap = float(s @ z)
        share = float((s + reach_s * ds) @ (z + reach_z * dz)) / gap
        target = max(min(0.8, max(1e-3, share**2)) * gap, 0.1 * _TOLERANCE * error) / len(s)
        corrected = target - np.clip(reach_s * reach_z * ds * dz, -target, 3.0 * target)
        move, change, ds, dz = direction(corrected)
        reach_s, reach_z = _TO_BOUNDARY * _reach(s, ds), _TO_BOUNDARY * _reach(z, dz)
        while not self._inside(self.entries @ (point.y + reach_s * move)):
            reach_s *= 0.5
            if reach_s < 1e-12:
                raise ValueError("no step leads on")
        return _Point(
            point.y + reach_s * move,
            s + reach_s * ds,
            point.equal + reach_z * change,
            z + reach_z * dz,
        )

    def _read(self, point: _Point, inverse: FloatArray) -> Certificate:
        """Z, λ and the splits of all categories."""
        n = self.limits.n_categories
        kappa = self._matrix(self.entries @ point.y)[1]
        between = self.turn @ inverse @ self.error
        group = np.zeros(n, dtype=np.intp)
        for number, members in enumerate(self.divided):
            group[members] = number
        root = np.sqrt(self.count)
        directions = between[group[:, None], group] / (root[group][:, None] * root[group])
        inner = np.zeros(len(self.count))
        inner[self.several] = self.share[self.several] / kappa
        same = group[:, None] == group
        directions += np.where(same, -(inner / self.count)[group], 0.0)
        directions[np.diag_indices(n)] += inner[group]
        multipliers = (point.equal / self.share / self.count)[group]
        directions, multipliers = at_true_shares(
            self.limits, self.share[group], directions, multipliers
        )
        return certify(self.limits, directions, multipliers, self._splits(point, group))

    def _splits(self, point: _Point, group: npt.NDArray[np.intp]) -> FloatArray:
        """Let each multiplier of a product of x with others count in the row of x alone.

        They are those of X(x, x) ≥ X(x, x') and of Σ_x' X(x, x') ≥ k X(x, x).
        """
        number, inner = len(self.off), 2 * len(self.several)
        first, second = point.multipliers[number : 2 * number], point.multipliers[2 * number :]
        i, j = self.i[self.off], self.j[self.off]
        pairs = np.zeros((len(self.count),) * 2)
        pairs[i, j] = 0.5 * (first - second[:number]) / (self.count[i] * self.count[j])
        pairs -= pairs.T
        at = 3 * number + inner + self.size - self.n_moments
        sizes = point.multipliers[at : at + len(self.count)] / self.count
        pairs -= 0.5 * (sizes[:, None] - sizes)
        return np.asarray(pairs[group[:, None], group])


def _reach(value: FloatArray, change: FloatArray) -> float:
    ratio = np.divide(-value, change, out=np.full_like(value, np.inf), where=change < 0)
    return float(min(1.0, ratio.min()))
