"""The least error of any mechanism within given privacy limits, and a mechanism that attains it.

The program of docs/proofs/frontier.md, section 2, over weights w of the extreme rows
(`deniable.proofs.rows`). With U an orthonormal basis of the complement of √p and
H = Uᵀ D^{−1/2} K D^{−1/2} U = Σ w_a h_a h_aᵀ it is the semidefinite program

    minimise tr T   subject to   [H E; Eᵀ T] ⪰ 0   and the linear constraints,  E Eᵀ = Uᵀ D U.

The off-diagonal block of its dual is −Z of the certificate. From n = 9 on it is solved over some
of the rows; those that violate the dual most are added until the certificate closes the gap. Beyond
`MAX_EXACT_CATEGORIES` categories of similar shares form groups (`deniable.proofs.groups`).
"""

import math
from dataclasses import dataclass

import clarabel
import numpy as np
import numpy.typing as npt
from scipy import sparse

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.groups import alike, at_true_shares, of_like_shares
from deniable.proofs.problem import SolverError
from deniable.proofs.rows import (
    MAX_EXACT_CATEGORIES,
    Certificate,
    Groups,
    Limits,
    RowKinds,
    bound_over,
    certify,
    closed_form_bound,
    row_kinds,
    rows_of,
)
from deniable.solvers import highs
from deniable.solvers.matrices.mechanisms import drawn_mechanism, exact_mechanism
from deniable.solvers.matrices.response import record_mse
from deniable.solvers.matrices.schemes import blank_answer, blank_answer_at

Indices = npt.NDArray[np.intp]

_TOLERANCE = 1e-9
"""Of the solver, as a fraction of the error: gap and feasibility."""

_MOST_GAP = 1e-4
"""Of a solution over all rows, as a fraction of the error; solved ones have 10⁻⁸ or less."""


@dataclass(frozen=True, eq=False)
class FrontierPoint:
    """A mechanism near the bound, and the proof of the bound.

    ``matrix``: M[y, x] = Pr[y | x], shape (m, n); None if the drawn rows make no mechanism.
    ``record_mse``: N·MSE of its estimate at the prior. ``certificate``: the lower bound over all
    mechanisms. ``near_rows``: kinds of rows with weight or nearly so, to start the next point from.
    """

    limits: Limits
    matrix: FloatArray | None
    record_mse: float
    certificate: Certificate
    near_rows: Indices

    def __post_init__(self) -> None:
        if not self.gap >= -_TOLERANCE:
            raise SolverError(
                f"a response matrix has an error of {-self.gap:.2g} of the bound below "
                "the proven minimum; this is an error of the program, please report it"
            )

    @property
    def gap(self) -> float:
        """Distance of `record_mse` from the certified bound, as a fraction of the bound."""
        return self.record_mse / self.certificate.record_mse - 1.0


@dataclass(frozen=True, eq=False)
class _Solution:
    """Weights of some kinds of rows, and the multipliers of the dual (`_Program.solve`): of H,
    shape (G − 1, G − 1), of each κ, shape (groups of several,), 1/κ scaled, λ of each group, shape
    (G,), m."""

    weights: FloatArray
    between: FloatArray
    apart: FloatArray
    slope: FloatArray
    prices: FloatArray
    budget_multiplier: float


def solve(limits: Limits, near: FrontierPoint | None = None) -> FrontierPoint:
    """Solve the program to a gap of about 1e-8, and construct the mechanism.

    Beyond `MAX_EXACT_CATEGORIES` the bound may be below the least error and the mechanism's error
    above it; the gap is their distance.

    Source: docs/proofs/frontier.md.

    >>> from deniable.proofs.rows import average_limits, verify
    >>> point = solve(average_limits([0.5, 0.3, 0.2], 0.25))
    >>> round(point.record_mse, 6), point.gap < 1e-8, point.matrix.shape
    (0.346306, True, (7, 3))
    >>> verify(point.certificate) >= point.certificate.claim
    True
    """
    exact = limits.n_categories <= MAX_EXACT_CATEGORIES
    # A group more takes up to twice as long; at 18 and 20 categories 12 instead of 10 raised the
    # bound by less than 0.1 %.
    groups = np.arange(limits.n_categories) if exact else of_like_shares(limits, 10)
    point = _in_groups(limits, groups, near)
    if point is not None and (point.gap < _MOST_GAP or not exact):
        return point
    raise InputError(
        "privacy: the limits are too near the edge of the possible range, or some shares too "
        "near 0, to be solved reliably; move them a little"
    )


def _in_groups(limits: Limits, groups: Groups, near: FrontierPoint | None) -> FrontierPoint | None:
    """Return the solution with equal shares in each group, or None."""
    sizes = np.bincount(groups)
    kinds = row_kinds(limits, sizes)
    same = alike(limits, groups)
    program = _Program(same, groups)
    generated = _generate(program, kinds, None if near is None else near.near_rows)
    if generated is None:
        return None
    used, solution = generated
    excess = program.excess(_take(kinds, used), solution)
    close = used[np.argsort(-excess, kind="stable")][: _batch(len(sizes))]
    dual = program.dual(solution)
    if len(sizes) < len(groups):
        dual = at_true_shares(limits, same.prior, *dual)
        certificate = certify(limits, *dual, groups)
        matrix = drawn_mechanism(limits, groups, _take(kinds, used), solution.weights)
        matrix = _or_blank(limits, matrix)
    else:
        certificate = certify(limits, *dual)
        rows = rows_of(limits, kinds.sums[used])
        matrix = exact_mechanism(limits, rows, solution.weights)
    error = np.inf if matrix is None else float(record_mse(matrix, limits.prior))
    if len(sizes) == len(groups) and error < certificate.record_mse * (1.0 - _TOLERANCE):
        return None  # at the very edge a matrix may break the limits
    return FrontierPoint(limits, matrix, error, certificate, np.sort(close))


def _or_blank(limits: Limits, matrix: FloatArray | None) -> FloatArray | None:
    """Return the truth or no answer if that is allowed and has less error, as from 100 categories
    on."""
    if matrix is None or limits.success is None or limits.most_posterior is not None:
        return matrix
    truth = blank_answer_at(limits.prior, 1.0 - limits.success)
    blank = blank_answer(limits.n_categories, truth)
    return min(matrix, blank, key=lambda each: float(record_mse(each, limits.prior)))


def _batch(n_groups: int) -> int:
    return n_groups * (n_groups + 1)


def _take(kinds: RowKinds, chosen: Indices) -> RowKinds:
    return RowKinds(kinds.sums[chosen], kinds.squares[chosen])


def _generate(
    program: "_Program", kinds: RowKinds, first: Indices | None = None
) -> tuple[Indices, _Solution] | None:
    """Solve over a growing set of rows; return their indices and the solution over them, or None if
    none is found."""
    limits, groups = program.limits, program.groups
    n_groups = len(program.count)
    used = _first_rows(len(kinds), n_groups)
    if first is not None and len(first) and first[-1] < len(kinds):
        used = np.union1d(first, used)
    best: tuple[float, Indices, _Solution] | None = None
    while True:
        solution = program.solve(_take(kinds, used))
        if solution is None:
            if len(used) == len(kinds):
                break
            more = np.union1d(used, _cheapest(program, kinds))
            used = _spread(len(kinds), 2 * len(used), more)
            continue
        proven = bound_over(limits, kinds, *program.dual(solution), groups)
        if best is None or proven > best[0]:
            best = proven, used, solution
        reached = program.objective(_take(kinds, used), solution.weights)
        if reached < proven * (1.0 - _MOST_GAP) and len(used) < len(kinds):
            used = _spread(len(kinds), 4 * len(used), used)  # of so few it is no mechanism
            continue
        if reached <= proven * (1.0 + 2.0 * _TOLERANCE) or len(used) == len(kinds):
            break
        excess = program.excess(kinds, solution)
        excess[used] = -np.inf
        added = np.argsort(excess)[::-1][: _batch(n_groups)]
        added = added[excess[added] > 0]
        if not len(added):
            break
        used = np.sort(np.concatenate([used, added]))
    return None if best is None else (best[1], best[2])


def _cheapest(program: "_Program", kinds: RowKinds) -> Indices:
    """Return the rows of a mechanism of least cost: where categories are rare, few rows."""
    rows = program.moments(kinds)[0] / (program.count * program.share)
    unit = 1.0 / rows.max(axis=1)  # so that the program's entries are at most 1
    ones = np.ones(rows.shape[1])
    answer = highs.run(
        highs.Program(
            unit,
            np.zeros(len(rows)),
            np.full(len(rows), highs.INFINITY),
            highs.dense_rows(rows.T * unit),
            ones,
            ones,
        )
    )
    return np.flatnonzero(answer.x > 0.0) if answer.status == "optimal" else np.arange(len(rows))


def _first_rows(count: int, n_groups: int) -> Indices:
    return _spread(count, 2 * _batch(n_groups), np.empty(0, dtype=np.intp))


def _spread(count: int, wanted: int, kept: Indices) -> Indices:
    """Return at least `wanted` indices below `count`, or all, spread evenly but out of step with
    bits."""
    if wanted >= count:
        return np.arange(count)
    golden = np.modf(np.arange(1, wanted + 1) * ((5**0.5 - 1) / 2))[0]
    ends = np.array([0, count - 1])
    return np.unique(np.concatenate([kept, ends, (golden * count).astype(np.intp)]))


class _Program:
    """The semidefinite program for one set of limits, over any kinds of rows.

    Categories of a group have one share p. On vectors that are constant on groups K is a G x G
    matrix, and along those that add up to 0 within a group of n_g it is κ, n_g − 1 times; each κ
    adds (n_g − 1) p²/κ to the objective. With groups of one that is all of K, and no κ.
    """

    def __init__(self, limits: Limits, groups: Groups) -> None:
        self.limits, self.groups = limits, groups
        self.count = np.bincount(groups).astype(float)
        self.share = np.bincount(groups, limits.prior) / self.count
        self.gain = 0.0 if limits.epsilon is None else math.expm1(limits.epsilon)
        # C is scaled by D^−½ from both sides, or under ε-LDP, where errors of rare categories are
        # as large as others, by D⁻¹; every mechanism has eigenvalue 0 at `root`.
        power = 0.5 if limits.epsilon is None else 1.0
        self.unit = self.share**power
        root = np.sqrt(self.count) * self.share / self.unit
        # Householder: a symmetric orthogonal matrix that takes it to a multiple of the first axis.
        axis = root.copy()
        axis[0] += np.linalg.norm(root)
        basis = (np.eye(len(root)) - 2.0 * np.outer(axis, axis) / (axis @ axis))[:, 1:]
        self.lift = basis / self.unit[:, None]
        self.error = basis.T * (self.share / self.unit)  # E with G columns
        values, vectors = np.linalg.eigh(self.error @ self.error.T)
        half = (vectors * np.sqrt(values)) @ vectors.T
        self.turn = np.linalg.solve(half, self.error)
        # Scale H and E so that the solution is of order one even at high privacy.
        square = float(limits.prior @ limits.prior)
        self.scale = min(1.0, (1.0 - square) / closed_form_bound(limits))
        self.size = float(np.linalg.norm(half))
        self.right = half / self.size
        self.several = np.flatnonzero(self.count > 1)
        inner = (self.count - 1.0) * (self.share / self.unit) ** 2
        self.inner = inner[self.several] / self.size**2
        i, j = np.triu_indices(2 * len(half))
        order = np.lexsort((i, j))  # clarabel stacks the upper triangle by columns
        self.i, self.j = i[order], j[order]
        self.weight = np.where(self.i == self.j, 1.0, np.sqrt(2.0))

    def moments(self, kinds: RowKinds) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return of rows of cost 1 their sums over groups, h scaled, and κ scaled, one row each."""
        sums, squares = kinds.sums, kinds.squares
        if self.limits.epsilon is not None:
            sums = (self.count + self.gain * sums) * self.share
            squares = (self.count + (self.gain**2 + 2.0 * self.gain) * squares) * self.share**2
            total = sums.sum(axis=1, keepdims=True)
            sums, squares = sums / total, squares / total**2
        scale = sums.sum(axis=1, keepdims=True) * self.scale
        features = (sums / np.sqrt(self.count)) @ self.lift / np.sqrt(scale)
        apart = (squares - sums**2 / self.count)[:, self.several]
        apart /= ((self.count - 1.0) * self.unit**2)[self.several] * scale
        return sums, features, apart

    def objective(self, kinds: RowKinds, weights: FloatArray) -> float:
        """Return tr(Eᵀ H⁻¹ E) plus the terms of each κ, in the units of n·N·MSE."""
        _, features, apart = self.moments(kinds)
        matrix = (features * weights[:, None]).T @ features
        value = float(np.trace(np.linalg.solve(matrix, self.error @ self.error.T)))
        value += self.size**2 * float((self.inner / (weights @ apart)).sum())
        return value / self.scale

    def excess(self, kinds: RowKinds, solution: _Solution) -> FloatArray:
        """‖Zᵀq‖²/(1·q) − λ·q − m."""
        sums, features, apart = self.moments(kinds)
        spread = ((features @ solution.between) ** 2).sum(axis=1) + apart @ solution.apart
        return np.asarray(spread - sums @ solution.prices - solution.budget_multiplier)

    def solve(self, kinds: RowKinds) -> _Solution | None:
        """Minimise over the given kinds of rows; None if they admit no mechanism."""
        total = self.count * self.share
        n, m, more = len(total), len(kinds), len(self.several)
        half = n - 1
        sums, features, apart = self.moments(kinds)
        upper = np.flatnonzero(self.j < half)
        lower = np.flatnonzero(self.i >= half)
        products = features[:, self.i[upper]] * features[:, self.j[upper]] * self.weight[upper]
        # Unknowns: the weights, the entries of T (places `lower` of the cone; those of H fill the
        # places `upper`), and of each group of several s ≥ inner/κ.
        size = m + len(lower) + more
        place = np.concatenate([np.tile(upper, m), lower])
        column = np.concatenate([np.repeat(np.arange(m), len(upper)), m + np.arange(len(lower))])
        entry = np.concatenate([-products.ravel(), -np.ones(len(lower))])
        semidefinite = sparse.coo_matrix((entry, (place, column)), (len(self.i), size))
        constant = np.zeros(len(self.i))
        cross = (self.i < half) & (self.j >= half)
        constant[cross] = self.right[self.i[cross], self.j[cross] - half] * np.sqrt(2.0)

        # ‖(s − κ, 2 √inner)‖ ≤ s + κ, three places for each group of several.
        cones = np.zeros((3 * more, m))
        cones[0::3], cones[1::3] = -apart.T, apart.T
        of_s = np.repeat(-np.eye(more), 3, axis=0)
        of_s[2::3] = 0.0
        right = np.zeros(3 * more)
        right[2::3] = 2.0 * np.sqrt(self.inner)
        limited = self.limits.success is not None
        costs = np.ones((int(limited), m))
        of_weights = np.vstack([sums.T / total[:, None], costs, -np.eye(m), cones])
        rest = sparse.coo_matrix((len(of_weights), len(lower)))
        last = sparse.csc_matrix(np.vstack([np.zeros((len(of_weights) - 3 * more, more)), of_s]))
        top = sparse.hstack([sparse.csc_matrix(of_weights), rest, last])
        bounds = [np.ones(n), np.full(len(costs), self.limits.success or 0.0), np.zeros(m), right]
        n_before = n + len(costs) + m
        linear = np.zeros(size)
        linear[m : m + len(lower)] = self.i[lower] == self.j[lower]
        linear[m + len(lower) :] = 1.0
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
        answer = clarabel.DefaultSolver(
            sparse.csc_matrix((size, size)),
            linear,
            sparse.csc_matrix(sparse.vstack([top, semidefinite])),
            np.concatenate([*bounds, constant]),
            [
                clarabel.ZeroConeT(n),
                clarabel.NonnegativeConeT(len(costs) + m),
                *[clarabel.SecondOrderConeT(3)] * more,
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
        of_cones, of_matrix = np.split(dual[n_before:], [3 * more])
        block[self.i, self.j] = of_matrix / self.weight
        # The multipliers (z₀, z₁, z₂) of a cone have z₀ + z₁ = 1 and √inner/κ = −z₂.
        slope = -of_cones[2::3] / np.sqrt(self.inner)
        budget_multiplier = float(dual[n]) if limited else 0.0
        weights = np.maximum(np.array(answer.x)[:m], 0.0)
        between, apart_price = -block[:half, half:], self.inner * slope**2
        return _Solution(weights, between, apart_price, slope, dual[:n] / total, budget_multiplier)

    def dual(self, solution: _Solution) -> tuple[FloatArray, FloatArray]:
        """Z and λ of all categories."""
        between = self.lift @ solution.between @ self.turn / np.sqrt(self.scale)
        root = np.sqrt(self.count)[self.groups]
        Z = between[np.ix_(self.groups, self.groups)] / (root[:, None] * root)
        inner = np.zeros(len(self.count))
        inner[self.several] = solution.slope / (self.size * np.sqrt(self.scale))
        inner *= self.share / self.unit**2
        same = self.groups[:, None] == self.groups
        Z -= np.where(same, (inner / self.count)[self.groups], 0.0)
        Z[np.diag_indices(len(Z))] += inner[self.groups]
        return Z, solution.prices[self.groups]
