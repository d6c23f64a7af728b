"""The least error that any mechanism can have within given privacy limits, and one that has it.

Over weights w of the extreme rows q_a (`certificate`): minimise tr(G C⁺ G) with C = K − ppᵀ,
K = Σ w_a q_a q_aᵀ/(1·q_a), subject to Σ w_a q_a = p, total cost at most the budget, w ≥ 0. This is
convex, and exact for any number of outputs.

Scaled to D^{−1/2} C D^{−1/2}, the direction √p has eigenvalue 0 in every mechanism. With an
orthonormal basis U of the others H = Uᵀ D^{−1/2} K D^{−1/2} U is Σ w_a h_a h_aᵀ, and the objective
tr(Eᵀ H⁻¹ E), E Eᵀ = Uᵀ D U: the semidefinite program

    minimise tr T   subject to   [H E; Eᵀ T] ⪰ 0   and the linear constraints.

The off-diagonal block of its dual is −Z of the certificate. About 2^n rows are too many for one
program from n = 9 on; it is solved over some of them, those that violate the dual most are added,
and that is repeated until the certificate, which looks at all rows, closes the gap. Beyond
`MAX_EXACT_CATEGORIES` the rows are not even listed: `relaxed` proves a bound, and `sets` searches
for a mechanism.

The proofs are in docs/proofs/frontier.md, Theorem 3.
"""

from dataclasses import dataclass

import clarabel
import numpy as np
import numpy.typing as npt
from scipy import sparse

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.solvers import highs
from deniable.solvers.matrices import groups, relaxed, sets
from deniable.solvers.matrices.certificate import (
    MAX_EXACT_CATEGORIES,
    Certificate,
    Limits,
    bound_over,
    certify,
    closed_form_bound,
    extreme_rows,
)
from deniable.solvers.matrices.listed import Listed
from deniable.solvers.matrices.response import record_mse
from deniable.solvers.problem import SolverError

_TOLERANCE = 1e-9
_ROUNDING = 1e-9
_GAP, _MOST_GAP = 2e-9, 1e-4
_MOST_ROUNDS = 40
_SEARCHES = 12
_CLOSE = 1e-4
_LOST = 0.01
_LAST_SEARCHES = 4
_NAMED = 100
_MOST_NEWTON, _SETTLED, _DEPENDENT = 30, 1e-9, 1e-14

MAX_WEIGHED_CATEGORIES = 50
"""Beyond, the answers of a mechanism name categories of a group at random, and are not weighed."""

Indices = npt.NDArray[np.intp]
# Weights below this fraction are what an interior-point method leaves of zero.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class FrontierPoint:
    """A mechanism that attains the bound, and the proof that there is no better one.

    Attributes:
        limits: the prior and the required privacy.
        matrix: M[y, x] = Pr[y | x], shape (m, n), with up to n(n + 1)/2 + 1 outputs (up to
            `MAX_EXACT_CATEGORIES`; more beyond).
            None if the search found none.
        record_mse: N·MSE of its estimate at the prior; infinite if there is no matrix.
        certificate: the lower bound over all mechanisms.
        near_rows: which of `extreme_rows(limits)` matter; for the next point of a frontier.

    Raises:
        SolverError: if the error is below the bound by more than rounding. Then the matrix breaks
            the limits, or the bound is wrong.
    """

    limits: Limits
    matrix: FloatArray | None
    record_mse: float
    certificate: Certificate
    near_rows: Indices

    def __post_init__(self) -> None:
        if not self.gap >= -_ROUNDING:
            raise SolverError(
                f"a response matrix came out with an error of {-self.gap:.2g} of the bound below "
                "what is proven for all; this is a mistake of the program, please report it"
            )

    @property
    def gap(self) -> float:
        """How far `record_mse` is above the certified bound, as a fraction of the bound."""
        return self.record_mse / self.certificate.record_mse - 1.0


@dataclass(frozen=True, eq=False)
class _Solution:
    weights: FloatArray
    directions: FloatArray
    multipliers: FloatArray
    budget_multiplier: float


def solve(limits: Limits, near: FrontierPoint | None = None) -> FrontierPoint:
    """Solve the program to a gap of about 1e-8, and read the mechanism off it.

    Beyond `MAX_EXACT_CATEGORIES` the certificate proves a bound that may be below the least error,
    and the mechanism is what a search found: the gap, however large, says how far they are apart.

    Args:
        limits: the prior and the required privacy.
        near: the solution at a nearby privacy, same prior and worst posterior; it saves time and
            never changes what is proved. Best is the next higher privacy (or lower ε), whose
            mechanism keeps these limits too.

    Raises:
        InputError: if the program could not be solved to a gap from 0 to 1e-4 (limits at the very
            edge of what is possible), or beyond `MAX_EXACT_CATEGORIES` not at all.

    Source: docs/proofs/frontier.md.

    >>> from deniable.solvers.matrices.certificate import average_limits, verify
    >>> point = solve(average_limits([0.5, 0.3, 0.2], 0.25))
    >>> round(point.record_mse, 6), point.gap < 1e-8, point.matrix.shape
    (0.346306, True, (7, 3))
    >>> verify(point.certificate) >= point.certificate.claim
    True
    """
    if limits.n_categories > MAX_EXACT_CATEGORIES:
        return _beyond(limits)
    point = _over_all_rows(limits, near)
    if point is None:
        # Where shares are 10⁻⁹, say: there the moments of rows are better conditioned.
        point = _beyond(limits)
        if not point.gap < _MOST_GAP:
            raise InputError(
                "privacy: the limits are too near the edge of what is possible, or some shares too "
                "near 0, to be solved reliably; move them a little"
            )
    return point


def _over_all_rows(limits: Limits, near: FrontierPoint | None) -> FrontierPoint | None:
    """The solution over all extreme rows; None if it is not found to a small gap."""
    rows = extreme_rows(limits)
    generated = _generate(limits, rows, None if near is None else near.near_rows)
    if generated is None:
        return None
    used, solution = generated
    excess = _excess(rows, solution)
    close = used[np.argsort(-excess[used], kind="stable")][: _batch(limits.n_categories)]
    certificate = certify(limits, solution.directions, solution.multipliers)
    if limits.epsilon is not None:
        rows = extreme_rows(limits, inside=True)
    matrix = _mechanism(limits, rows[used], solution.weights)
    if matrix is None:
        return None
    error = float(record_mse(matrix, limits.prior))
    if not -_ROUNDING <= error / certificate.record_mse - 1.0 < _MOST_GAP:
        return None
    return FrontierPoint(limits, matrix, error, certificate, np.sort(close))


def _beyond(limits: Limits) -> FrontierPoint:
    """A proven bound, and the best mechanism that a search finds, for any number of categories."""
    divided = groups.of_like_shares(limits, groups.MOST_GROUPS)
    alike = groups.alike(limits, divided)
    listed = Listed(alike, divided)
    certificate, first, least = relaxed.bound(limits, listed)
    if limits.epsilon is not None and certificate.claim < (1.0 - _LOST) * least:
        # The shares within groups differ too much for the bound at their means to hold for them.
        finer = groups.with_least_share(limits, groups.LOWERED_GROUPS)
        other = relaxed.bound(limits, Listed(groups.lowered(limits, finer), finer))[0]
        certificate = max(certificate, other, key=lambda proof: proof.claim)
    found, dual = sets.mechanism(alike, listed, first, _SEARCHES, _CLOSE, least)
    # Where small sets matter most, Z and λ of the weights may prove more.
    true = groups.at_true_shares(limits, alike.prior, *dual)
    own = certify(limits, *true, part_splits=certificate.part_splits)
    certificate = max(certificate, own, key=lambda proof: proof.claim)
    matrix = None if found is None else _named(limits, listed, found, certificate)
    error = np.inf if matrix is None else float(record_mse(matrix, limits.prior))
    return FrontierPoint(limits, matrix, error, certificate, np.empty(0, dtype=np.intp))


def _named(
    limits: Limits, listed: Listed, found: sets.Weighted, certificate: Certificate
) -> FloatArray | None:
    """A matrix for the true shares, of rows found for groups; None if their sums do not come out.

    Up to `MAX_WEIGHED_CATEGORIES` the weights are those of least error, beyond, near those found.
    """
    n = limits.n_categories
    rows, weights = sets.drawn(limits, listed, found, _NAMED * n)
    if n <= MAX_WEIGHED_CATEGORIES:
        each = Listed(limits, [np.array([x]) for x in range(n)])
        dual = certificate.directions, certificate.multipliers
        args = limits, each, dual, _LAST_SEARCHES, _CLOSE, found.error, rows
        weighed, _ = sets.mechanism(*args)
        if weighed is not None:
            rows, weights = weighed.rows, weighed.weights
    else:
        weights = _with_sums(limits, rows, weights)
    heavy = _heavy(rows, weights)
    rows = rows[heavy]
    weights = _repair(limits, rows, weights[heavy])
    off = np.abs(weights @ rows / limits.prior - 1.0).max()
    over = 0.0 if limits.success is None else float(weights.sum()) - limits.success
    return _matrix(limits, rows, weights) if max(off, over) < 1e-9 else None


def _with_sums(limits: Limits, rows: FloatArray, weights: FloatArray) -> FloatArray:
    """The weights w e^{v·q/(1·q)} that have Σ w q = p.

    By Newton steps to where Σ w (1·q) e^{v·q/(1·q)} − p·v is least, of which that is the gradient.
    """
    p, total = limits.prior, rows.sum(axis=1)
    scaled = rows / total[:, None] / np.sqrt(p)
    for _ in range(_MOST_NEWTON):
        lacking = np.sqrt(p) - (weights * total) @ scaled
        if np.abs(lacking / np.sqrt(p)).max() < _SETTLED:
            break
        curve = (scaled * (weights * total)[:, None]).T @ scaled
        change = scaled @ np.linalg.lstsq(curve, lacking, rcond=_DEPENDENT)[0]
        weights = weights * np.exp(change / max(1.0, float(np.abs(change).max())))
    return weights


def _batch(n_categories: int) -> int:
    return n_categories * (n_categories + 1)


def _generate(
    limits: Limits, rows: FloatArray, first: Indices | None = None
) -> tuple[Indices, _Solution] | None:
    """Solve over a growing set of rows; return their indices and the solution over them, or None if
    none is found."""
    program = _Program(limits)
    used = _first_rows(rows)
    if first is not None and len(first) and first[-1] < len(rows):
        used = np.union1d(first, used)
    batch = _batch(limits.n_categories)
    best: tuple[float, Indices, _Solution] | None = None
    for _ in range(_MOST_ROUNDS):
        solution = program.solve(rows[used])
        if solution is None:
            if len(used) == len(rows):
                break
            more = np.union1d(used, _cheapest(limits, rows))
            used = _spread(len(rows), 2 * len(used), more)
            continue
        proven = bound_over(limits, rows, solution.directions, solution.multipliers)
        if best is None or proven > best[0]:
            best = proven, used, solution
        reached = program.objective(rows[used], solution.weights)
        if reached < proven * (1.0 - _MOST_GAP) and len(used) < len(rows):
            used = _spread(len(rows), 4 * len(used), used)  # of so few it is no mechanism
            continue
        if reached <= proven * (1.0 + _GAP) or len(used) == len(rows):
            break
        excess = _excess(rows, solution)
        excess[used] = -np.inf
        added = np.argsort(excess)[::-1][:batch]
        added = added[excess[added] > 0]
        if not len(added):
            break
        used = np.sort(np.concatenate([used, added]))
    return None if best is None else (best[1], best[2])


def _cheapest(limits: Limits, rows: FloatArray) -> Indices:
    """Rows that a mechanism of least cost is made of: where categories are rare, few are."""
    p = limits.prior
    unit = 1.0 / (rows / p).max(axis=1)  # so that the program's entries are at most 1
    program = highs.Program(
        unit,
        np.zeros(len(rows)),
        np.full(len(rows), highs.INFINITY),
        highs.dense_rows(rows.T * unit / p[:, None]),
        np.ones(len(p)),
        np.ones(len(p)),
    )
    answer = highs.run(program)
    return np.flatnonzero(answer.x > 0.0) if answer.status == "optimal" else np.arange(len(rows))


def _first_rows(rows: FloatArray) -> Indices:
    n = rows.shape[1]
    return _spread(len(rows), 2 * n * (n + 1), np.empty(0, dtype=np.intp))


def _spread(count: int, wanted: int, kept: Indices) -> Indices:
    """At least `wanted` indices below `count`, or all, spread evenly but not in step with bits."""
    if wanted >= count:
        return np.arange(count)
    golden = np.modf(np.arange(1, wanted + 1) * ((5**0.5 - 1) / 2))[0]
    ends = np.array([0, count - 1])
    return np.unique(np.concatenate([kept, ends, (golden * count).astype(np.intp)]))


def _excess(rows: FloatArray, solution: _Solution) -> FloatArray:
    image = rows @ solution.directions
    spread = (image * image).sum(axis=1) / rows.sum(axis=1)
    return np.asarray(spread - rows @ solution.multipliers - solution.budget_multiplier)


class _Program:
    """The semidefinite program for one set of limits, over any rows."""

    def __init__(self, limits: Limits) -> None:
        p = limits.prior
        n = len(p)
        self.limits = limits
        self.root = np.sqrt(p)
        # Householder: a symmetric orthogonal matrix that takes √p to a multiple of the first axis.
        axis = self.root.copy()
        axis[0] += np.linalg.norm(self.root)
        reflection = np.eye(n) - 2.0 * np.outer(axis, axis) / (axis @ axis)
        self.basis = reflection[:, 1:]
        self.error = self.basis.T * self.root  # E with n columns; E Eᵀ = Uᵀ D U
        values, vectors = np.linalg.eigh(self.error @ self.error.T)
        root = (vectors * np.sqrt(values)) @ vectors.T
        self.turn = np.linalg.solve(root, self.error)
        # Scale H and E so that the solution is of order one even at high privacy.
        square = float(p @ p)
        self.scale = min(1.0, (1.0 - square) / closed_form_bound(limits))
        self.size = float(np.linalg.norm(root))
        self.right = root / self.size
        half = n - 1
        i, j = np.triu_indices(2 * half)
        order = np.lexsort((i, j))  # clarabel stacks the upper triangle by columns
        self.i, self.j = i[order], j[order]
        self.weight = np.where(self.i == self.j, 1.0, np.sqrt(2.0))

    def features(self, rows: FloatArray) -> FloatArray:
        """h_a, scaled, shape (number of rows, n − 1)."""
        lift = (rows / self.root) @ self.basis
        return np.asarray(lift / np.sqrt(rows.sum(axis=1) * self.scale)[:, None])

    def objective(self, rows: FloatArray, weights: FloatArray) -> float:
        """tr(Eᵀ H⁻¹ E), in the units of n·N·MSE."""
        features = self.features(rows)
        matrix = (features * weights[:, None]).T @ features * self.scale
        return float(np.trace(np.linalg.solve(matrix, self.error @ self.error.T)))

    def solve(self, rows: FloatArray) -> _Solution | None:
        """Minimise over the given rows; None if they admit no mechanism."""
        p = self.limits.prior
        n, m = len(p), len(rows)
        half = n - 1
        features = self.features(rows)
        upper = np.flatnonzero(self.j < half)
        lower = np.flatnonzero(self.i >= half)
        products = features[:, self.i[upper]] * features[:, self.j[upper]] * self.weight[upper]
        # The entries of H fill the places `upper` of the cone, those of T the places `lower`.
        place = np.concatenate([np.tile(upper, m), lower])
        column = np.concatenate([np.repeat(np.arange(m), len(upper)), m + np.arange(len(lower))])
        entry = np.concatenate([-products.ravel(), -np.ones(len(lower))])
        semidefinite = sparse.coo_matrix((entry, (place, column)), (len(self.i), m + len(lower)))
        constant = np.zeros(len(self.i))
        cross = (self.i < half) & (self.j >= half)
        constant[cross] = self.right[self.i[cross], self.j[cross] - half] * np.sqrt(2.0)
        zero = sparse.csc_matrix((n, len(lower)))
        parts: list[sparse.spmatrix] = [
            sparse.hstack([sparse.csc_matrix(rows.T / p[:, None]), zero])
        ]
        bounds = [np.ones(n)]
        n_nonnegative = m
        if self.limits.success is not None:
            costs = sparse.csc_matrix(np.r_[np.ones(m), np.zeros(len(lower))][None])
            parts.append(costs)
            bounds.append(np.array([self.limits.success]))
            n_nonnegative += 1
        parts.append(-sparse.eye(m, m + len(lower)))
        bounds.append(np.zeros(m))
        linear = np.zeros(m + len(lower))
        linear[m:] = self.i[lower] == self.j[lower]
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
        answer = clarabel.DefaultSolver(
            sparse.csc_matrix((len(linear), len(linear))),
            linear,
            sparse.vstack([*parts, semidefinite]).tocsc(),
            np.concatenate([*bounds, constant]),
            [
                clarabel.ZeroConeT(n),
                clarabel.NonnegativeConeT(n_nonnegative),
                clarabel.PSDTriangleConeT(2 * half),
            ],
            settings,
        ).solve()
        if str(answer.status) in {"PrimalInfeasible", "AlmostPrimalInfeasible"}:
            return None
        dual = np.array(answer.z)
        if not np.isfinite(dual).all():
            return None
        block = np.zeros((2 * half, 2 * half))
        block[self.i, self.j] = dual[n + n_nonnegative :] / self.weight
        directions = -block[:half, half:] @ self.turn
        directions = (self.basis / self.root[:, None]) @ directions / np.sqrt(self.scale)
        budget_multiplier = float(dual[n]) if self.limits.success is not None else 0.0
        weights = np.maximum(np.array(answer.x)[:m], 0.0)
        return _Solution(weights, directions, dual[:n] / p, budget_multiplier)


def _mechanism(limits: Limits, rows: FloatArray, weights: FloatArray) -> FloatArray | None:
    """A matrix with few outputs that has the K and the cost of the solution; None if a category is
    in none of its rows."""
    if not (weights @ rows).all():
        return None
    total = rows.sum(axis=1)
    i, j = np.triu_indices(limits.n_categories)
    # Column a: the entries of q qᵀ/(1·q), which imply those of q, and the cost.
    conserved = np.vstack([rows[:, i].T * rows[:, j].T / total, np.ones(len(rows))])
    keep = np.flatnonzero(_heavy(rows, weights, 1e-3 * _NEGLIGIBLE))
    keep, weights = _reduce(conserved[:, keep], keep, weights[keep])
    large = _heavy(rows[keep], weights)
    rows, weights = rows[keep[large]], weights[large]
    return _matrix(limits, rows, _repair(limits, rows, weights))


def _heavy(
    rows: FloatArray, weights: FloatArray, least: float = _NEGLIGIBLE
) -> npt.NDArray[np.bool_]:
    """Rows that are more than this part of what some category, which may be rare, has in all."""
    part = weights[:, None] * rows / (weights @ rows)
    return np.asarray(part.max(axis=1) > least)


def _matrix(limits: Limits, rows: FloatArray, weights: FloatArray) -> FloatArray:
    """M from weighted rows, broad answers last."""
    matrix = rows * weights[:, None] / limits.prior
    order = np.lexsort(rows.T[::-1])[::-1]
    order = order[np.argsort(-rows.sum(axis=1)[order], kind="stable")]
    return np.asarray((matrix / matrix.sum(axis=0))[order[::-1]])


def _reduce(
    conserved: FloatArray, keep: Indices, weights: FloatArray
) -> tuple[Indices, FloatArray]:
    """Carathéodory: make weights zero, conserving `conserved @ weights`, until few are left."""
    most = len(conserved)
    weights = weights.copy()
    while len(active := np.flatnonzero(weights)) > most:
        # The smallest weights go first; any columns above `most` are dependent on the others.
        some = active[np.argsort(weights[active])][: 2 * most]
        count = len(some) - most
        moves = np.linalg.svd(conserved[:, some])[2][-count:].T
        weights[some] = _walk(weights[some], moves)
    return keep[active], weights[active]


def _walk(weights: FloatArray, moves: FloatArray) -> FloatArray:
    """Go along each column of `moves` until a weight is zero, which it then stays."""
    while moves.shape[1]:
        move = moves[:, 0] if moves[:, 0].max() > 0 else -moves[:, 0]
        falling = move > 1e-12
        ratio = np.divide(weights, move, out=np.full_like(weights, np.inf), where=falling)
        first = int(np.argmin(ratio))
        weights = np.maximum(weights - ratio[first] * move, 0.0)
        weights[first] = 0.0
        # Clear that place in the other moves, with the largest as the pivot: factors up to 1.
        pivot = int(np.argmax(np.abs(moves[first])))
        clear = moves[:, pivot] / moves[first, pivot]
        moves = np.delete(moves, pivot, axis=1)
        moves = moves - clear[:, None] * moves[first]
        moves[first] = 0.0
    return weights


def _repair(limits: Limits, rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Move the weights a little so that Σ w q = p and the cost hold to rounding."""
    equations, wanted = rows.T / limits.prior[:, None], np.ones(limits.n_categories)
    # Where A does not bind, the cost may already follow from the rows (all of them at δ).
    if limits.success is not None and weights.sum() > limits.success * (1.0 - 1e-2):
        equations = np.vstack([equations, np.ones(len(rows))])
        wanted = np.append(wanted, min(limits.success, weights.sum()))
    for _ in range(5):
        # The nearest solution in the relative change of the weights.
        change = np.linalg.lstsq(equations * weights, wanted - equations @ weights, rcond=None)[0]
        weights = np.maximum(weights * (1.0 + change), 0.0)
    return weights
