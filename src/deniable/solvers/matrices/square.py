"""Square response matrices at a given privacy: many starts of an interior-point method.

With as many outputs as categories the error is not convex in the matrix, so the result is a local
optimum, the best of those found; `frontier` bounds its distance from the optimum. Variables are
the joint mass q (row y: output, column x: category) and the costs t_y:

    minimise f = tr(D K⁻¹ D),  K = Σ_y q_y q_yᵀ/(1·q_y),   subject to Σ_y q_y = p,
    q ≥ 0,   t_y ≥ q_y(x),   Σ t ≤ A,   t_y ≤ δ Σ_x q_y(x),

or under ε-LDP   p_x t_y ≤ q_y(x) ≤ e^ε p_x t_y.

With u_y = q_y/(1·q_y) a change of q changes K by

    dK = Σ_y (dq_y u_yᵀ + u_y dq_yᵀ − (1·dq_y) u_y u_yᵀ)

and f by −tr(X dK), X = K⁻¹ D² K⁻¹. The Hessian is replaced by its positive Gauss–Newton part
2 tr(X dK K⁻¹ dK). All starts run at once.

*Zeros.* Where the best matrix has an entry 0, an interior-point method ends near 1e−9, which
matters only for ε: about 20 instead of unbounded. Such entries are set to zero. Column sums and
limits are then missed slightly, so the result is mixed with a matrix of the same zeros and the
largest slack, the solution of

    maximise γ   subject to   Σ_y q_y = p,   0 ≤ q_y(x) ≤ t_y,   Σ t ≤ A − γ,
                              t_y ≤ δ Σ_x q_y(x) − γ,   q_y(x) = 0 where the entry is set to zero.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.rows import Limits
from deniable.solvers import highs
from deniable.solvers.matrices.response import epsilon, privacy, record_mse, worst_posterior
from deniable.solvers.matrices.schemes import EPSILON_MARGIN, frapp, warner, warner_at


@dataclass(frozen=True, eq=False)
class SquareDesign:
    """The best square matrix of all starts, M[y, x] = Pr[y | x], shape (n, n), not known to be
    optimal, and N·MSE of each start, shape (number of starts,), Warner's first."""

    limits: Limits
    matrix: FloatArray
    record_mse: float
    start_record_mse: FloatArray

    def ratio(self, lower_bound: float) -> float:
        """N·MSE over a lower bound on it, at least 1."""
        return self.record_mse / lower_bound


def solve(
    limits: Limits,
    generator: np.random.Generator,
    *,
    n_starts: int = 20,
    max_iterations: int = 120,
    tolerance: float = 1e-7,
) -> SquareDesign:
    """Search for the square matrix with the least error.

    >>> from deniable.proofs.rows import average_limits
    >>> limits = average_limits([0.5, 0.3, 0.2], 0.25)
    >>> round(solve(limits, np.random.default_rng(1), n_starts=4).record_mse, 4)
    0.4491
    """
    if n_starts < 1:
        raise InputError("n_starts: there must be at least one start")
    starts = _starts(limits, generator, n_starts)
    joint = _Iteration(limits, starts).run(max_iterations, tolerance)
    matrices = joint / joint.sum(axis=1, keepdims=True)
    # Rounding may have exceeded a limit by 1e-10; and Warner's matrix competes unchanged.
    fraction = _kept_fraction(matrices, limits)
    matrices = fraction * matrices + (1.0 - fraction) / limits.n_categories
    matrices = np.concatenate([matrices, _warner(limits)[None]])
    errors = record_mse(matrices, limits.prior)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    best = int(np.argmin(errors))
    design = SquareDesign(limits, matrices[best], float(errors[best]), errors[:-1])
    return design if limits.success is None else _with_zeros(design)


def _with_zeros(design: SquareDesign) -> SquareDesign:
    """Set the entries to zero that converge to it, if that costs next to no accuracy."""
    limits = design.limits
    # Interior points end near 1e−8 for zeros, but near 1e−6 in the column of a rare category.
    for least in (1e-4, 1e-5, 1e-6):
        matrix = without_below(design.matrix, least)
        if np.count_nonzero(matrix) == matrix.size or (inside := roomy(matrix > 0, limits)) is None:
            continue
        fraction = _kept_fraction(matrix[None], limits, inside)[0]
        matrix = fraction * matrix + (1.0 - fraction) * inside
        error = float(record_mse(matrix, limits.prior))
        if error <= design.record_mse * (1.0 + 1e-5):
            return replace(design, matrix=matrix, record_mse=error)
    return design


def _warner(limits: Limits) -> FloatArray:
    n = limits.n_categories
    if limits.success is None:
        assert limits.epsilon is not None
        return frapp(n, math.exp(limits.epsilon * (1.0 - 2.0 * EPSILON_MARGIN)))
    return warner(n, warner_at(limits.prior, 1.0 - limits.success, limits.most_posterior))


def _keeps(matrices: FloatArray, limits: Limits) -> FloatArray:
    if limits.success is None:
        assert limits.epsilon is not None
        return np.asarray(epsilon(matrices) <= limits.epsilon * (1.0 - EPSILON_MARGIN))
    kept = privacy(matrices, limits.prior) >= 1.0 - limits.success - 1e-12
    if limits.most_posterior is not None:
        kept &= worst_posterior(matrices, limits.prior) <= limits.most_posterior + 1e-12
    return np.asarray(kept)


def _starts(limits: Limits, generator: np.random.Generator, n_starts: int) -> FloatArray:
    """Random matrices strictly within the limits, as joint masses, shape (n_starts, n, n)."""
    n = limits.n_categories
    p = limits.prior
    matrices = generator.dirichlet(np.full(n, 0.5), size=(n_starts, n)).transpose(0, 2, 1)
    # Outputs may be renamed: put much of each column on the diagonal.
    lean = generator.uniform(0.0, 1.0, size=(n_starts, 1, 1))
    matrices = lean * np.eye(n) + (1.0 - lean) * matrices
    matrices[0] = _warner(limits)
    # Towards the uniform answer both limits hold strictly; a tenth of the way from the boundary.
    fraction = 0.9 * _kept_fraction(matrices, limits)
    return np.asarray((fraction * matrices + (1.0 - fraction) / n) * p)


def _kept_fraction(
    matrices: FloatArray, limits: Limits, inside: FloatArray | float | None = None
) -> FloatArray:
    """Return the largest fraction of each matrix in a mixture within the limits with `inside` or a
    uniform answer, shape (b, 1, 1)."""
    if inside is None:
        inside = 1.0 / matrices.shape[1]
    high = np.ones((len(matrices), 1, 1))
    low = np.where(_keeps(matrices, limits)[:, None, None], high, 0.0)
    for _ in range(60):
        middle = (low + high) / 2
        mixed = middle * matrices + (1.0 - middle) * inside
        good = _keeps(mixed, limits)[:, None, None]
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return np.asarray(low)


def _slacks(limits: Limits) -> tuple[FloatArray, FloatArray]:
    """The limits as slope v + offset ≥ 0 in v = (q, t), shapes (rows, n² + n) and (rows,)."""
    n = limits.n_categories
    size = n * n + n
    places = np.arange(n * n)
    own = n * n + np.repeat(np.arange(n), n)  # t_y for each q_y(x)
    if limits.success is None:
        assert limits.epsilon is not None
        shares = np.tile(limits.prior, n)
        above, below = np.zeros((n * n, size)), np.zeros((n * n, size))
        above[places, places], above[places, own] = 1.0, -shares
        below[places, places], below[places, own] = -math.exp(-limits.epsilon), shares
        return np.concatenate([above, below]), np.zeros(2 * n * n)
    above = np.zeros((n * n, size))
    above[places, places], above[places, own] = -1.0, 1.0
    total = np.zeros((1, size))
    total[0, n * n :] = -1.0
    rows: list[FloatArray] = [np.eye(n * n, size), above, total]
    offset = [np.zeros(2 * n * n), np.array([limits.success])]
    if limits.most_posterior is not None:
        worst = np.zeros((n, size))
        worst[:, : n * n] = np.kron(np.eye(n), np.full(n, limits.most_posterior))
        worst[:, n * n :] = -np.eye(n)
        rows.append(worst)
        offset.append(np.zeros(n))
    return np.concatenate(rows), np.concatenate(offset)


class _Iteration:
    """Primal–dual interior-point steps on a batch of starts, shape (b, n, n)."""

    def __init__(self, limits: Limits, joint: FloatArray) -> None:
        self.p = limits.prior
        self.n = n = len(self.p)
        self.limits = limits
        self.square = float(self.p @ self.p)
        size = n * n + n
        self.slope, self.offset = _slacks(limits)
        # Column sums stay p: moves of q lie in the null space of these n rows.
        self.sums = np.zeros((n, size))
        self.sums[:, : n * n] = np.tile(np.eye(n), (1, n))
        self.point = np.concatenate([joint.reshape(len(joint), -1), self._costs(joint)], axis=1)

    def _costs(self, joint: FloatArray) -> FloatArray:
        """Return t_y strictly between the minimum for q_y and the limits by A and δ, or ε."""
        success, delta = self.limits.success, self.limits.most_posterior
        if success is None:
            assert self.limits.epsilon is not None
            answers = joint / self.p
            middle = answers.min(axis=2) * answers.max(axis=2) * math.exp(-self.limits.epsilon)
            return np.asarray(np.sqrt(middle))
        least = joint.max(axis=2)
        room = (success - least.sum(axis=1, keepdims=True)) / (2 * self.n)
        if delta is None:
            return np.asarray(least + room)
        return np.asarray(least + np.minimum(room, (delta * joint.sum(axis=2) - least) / 2))

    def run(self, max_iterations: int, tolerance: float) -> FloatArray:
        """Iterate until every start has converged or failed; return the joint masses (b, n, n)."""
        n = self.n
        slack = self.point @ self.slope.T + self.offset
        value = self._value(self.point)
        # Multipliers that make every complementarity product the same fraction of the error.
        duals = 0.1 * value[:, None] / slack / slack.shape[1]
        running = np.ones(len(self.point), dtype=bool)
        for _ in range(max_iterations):
            at = np.flatnonzero(running)
            if not len(at):
                break
            v, s, z, f = self.point[at], slack[at], duals[at], value[at]
            gap = (s * z).sum(axis=1)
            target = 0.15 * gap / s.shape[1]
            gradient, hessian = self._model(v)
            move = self._direction(v, s, z, target, gradient, hessian)
            if move is None:
                break
            ds = move @ self.slope.T
            dz = target[:, None] / s - z - z / s * ds
            descent = (gradient * move[:, : n * n]).sum(axis=1) - target * (ds / s).sum(axis=1)
            accepted, new, new_value = self._line_search(v, s, f, target, move, ds, descent)
            moved = at[accepted]
            self.point[moved], value[moved] = new[accepted], new_value[accepted]
            slack[moved] = self.point[moved] @ self.slope.T + self.offset
            duals[moved] = (z + _reach(z, dz)[:, None] * dz)[accepted]
            # Keep the products within reach of each other, or steps get short.
            even = target[accepted, None] / np.maximum(slack[moved], 1e-300)
            duals[moved] = np.clip(duals[moved], 1e-8 * even, 1e8 * even)
            running[at[~accepted]] = False
            running[at[accepted & (gap <= tolerance * (f - self.square))]] = False
            running &= (slack > 0).all(axis=1)
        return np.asarray(self.point[:, : n * n].reshape(-1, n, n))

    def _direction(
        self,
        point: FloatArray,
        slack: FloatArray,
        duals: FloatArray,
        target: FloatArray,
        gradient: FloatArray,
        hessian: FloatArray,
    ) -> FloatArray | None:
        """Solve for the primal step, shape (b, n² + n); None if a system is singular.

        The multipliers of the slacks are eliminated, those of the n column sums are not.
        """
        n, size = self.n, point.shape[1]
        system = np.zeros((len(point), size + n, size + n))
        system[:, :size, :size] = self.slope.T @ ((duals / slack)[:, :, None] * self.slope)
        system[:, : n * n, : n * n] += hessian
        system[:, size:, :size] = self.sums
        system[:, :size, size:] = self.sums.T
        right = np.zeros((len(point), size + n))
        right[:, :size] = (target[:, None] / slack) @ self.slope
        right[:, : n * n] -= gradient
        right[:, size:] = self.p - point @ self.sums.T
        try:
            move: FloatArray = np.linalg.solve(system, right[:, :, None])[:, :size, 0]
        except np.linalg.LinAlgError:
            return None
        # The column sums suffer most from an ill-conditioned system: mend them in proportion.
        left = right[:, size:] - move @ self.sums.T
        move[:, : n * n] += point[:, : n * n] * np.tile(left / self.p, (1, n))
        return move

    def _line_search(
        self,
        point: FloatArray,
        slack: FloatArray,
        value: FloatArray,
        target: FloatArray,
        move: FloatArray,
        slack_move: FloatArray,
        descent: FloatArray,
    ) -> tuple[npt.NDArray[np.bool_], FloatArray, FloatArray]:
        """Halve the step until the barrier function f − μ Σ ln s falls along it (Armijo)."""
        step = _reach(slack, slack_move)
        barrier = value - target * np.log(slack).sum(axis=1)
        accepted = np.zeros(len(point), dtype=bool)
        new, new_value = point, value
        for _ in range(25):  # 2⁻²⁵ of a step is no step
            new = point + step[:, None] * move
            new_value = self._value(new)
            new_slack = slack + step[:, None] * slack_move
            new_barrier = new_value - target * np.log(new_slack).sum(axis=1)
            accepted = new_barrier <= barrier + 1e-4 * step * np.minimum(descent, 0.0)
            accepted |= new_barrier <= barrier - 1e-13 * np.abs(barrier)
            if accepted.all():
                break
            step = np.where(accepted, step, 0.5 * step)
        return accepted, new, new_value

    def _value(self, point: FloatArray) -> FloatArray:
        """tr(D K⁻¹ D), shape (b,)."""
        n = self.n
        joint = point[:, : n * n].reshape(-1, n, n)
        inverse = np.linalg.inv(joint) * self.p[:, None]
        return np.asarray(((inverse**2).sum(axis=1) * joint.sum(axis=2)).sum(axis=1))

    def _model(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient (b, n²) and Gauss–Newton Hessian (b, n², n²) in q.

        dK for the entry (y, x) is a uᵀ + u aᵀ with u = u_y, a = e_x − u/2, so for two entries with
        (a, u) and (b, v): tr(X dK G dK') = (uᵀGb)(vᵀXa) + (uᵀGv)(bᵀXa) + (aᵀGb)(vᵀXu)
        + (aᵀGv)(bᵀXu), G = K⁻¹.
        """
        n = self.n
        joint = point[:, : n * n].reshape(-1, n, n)
        occurrence = joint.sum(axis=2)
        u = joint / occurrence[:, :, None]
        inverse = np.linalg.inv(joint)
        G = (inverse * occurrence[:, None, :]) @ inverse.transpose(0, 2, 1)
        GD = G * self.p
        X = GD @ GD.transpose(0, 2, 1)
        ug, ux = u @ G, u @ X  # (b, y, x)
        ugu, uxu = ug @ u.transpose(0, 2, 1), ux @ u.transpose(0, 2, 1)  # (b, y, z)
        own = np.einsum("byy->by", uxu)
        gradient = own[:, :, None] - 2.0 * ux

        return gradient.reshape(len(u), -1), self._hessian(G, X, ug, ux, ugu, uxu)

    def _hessian(
        self,
        G: FloatArray,
        X: FloatArray,
        ug: FloatArray,
        ux: FloatArray,
        ugu: FloatArray,
        uxu: FloatArray,
    ) -> FloatArray:
        n = self.n

        def inner(matrix: FloatArray, row: FloatArray, square: FloatArray) -> FloatArray:
            """aᵀ G b = G_xw − (G u_z)_x/2 − (G u_y)_w/2 + u_yᵀ G u_z/4, axes (b, y, x, z, w)."""
            return np.asarray(
                matrix[:, None, :, None, :]
                - 0.5 * row.transpose(0, 2, 1)[:, None, :, :, None]
                - 0.5 * row[:, :, None, None, :]
                + 0.25 * square[:, :, None, :, None]
            )

        def left(row: FloatArray, square: FloatArray) -> FloatArray:
            """u_yᵀ G b = (G u_y)_w − u_yᵀ G u_z/2, axes (b, y, 1, z, w)."""
            return np.asarray(row[:, :, None, None, :] - 0.5 * square[:, :, None, :, None])

        def right(row: FloatArray, square: FloatArray) -> FloatArray:
            """aᵀ G u_z = (G u_z)_x − u_yᵀ G u_z/2, axes (b, y, x, z, 1)."""
            turned = row.transpose(0, 2, 1)[:, None, :, :, None]
            return np.asarray(turned - 0.5 * square[:, :, None, :, None])

        total = left(ug, ugu) * right(ux, uxu)
        total += ugu[:, :, None, :, None] * inner(X, ux, uxu)
        total += inner(G, ug, ugu) * uxu[:, :, None, :, None]
        total += right(ug, ugu) * left(ux, uxu)
        return np.asarray(2.0 * total.reshape(len(G), n * n, n * n))


def _reach(value: FloatArray, change: FloatArray) -> FloatArray:
    """The longest step up to 1 that keeps `value` positive, with a margin, shape (b,)."""
    ratio = np.divide(-value, change, out=np.full_like(value, np.inf), where=change < 0)
    return np.asarray(np.minimum(1.0, 0.995 * ratio.min(axis=1)))  # usual for interior points


def without_below(matrix: FloatArray, least: float) -> FloatArray:
    """Return a column-stochastic matrix, shape (n, n), with entries below ``least`` set to zero."""
    kept = np.where(matrix < least, 0.0, matrix)
    return np.asarray(kept / kept.sum(axis=0))


def roomy(support: npt.NDArray[np.bool_], limits: Limits) -> FloatArray | None:
    """Return the matrix with zeros off the support and the largest slack under limits of average
    privacy; None if none has any.

    ``support``: where entries may be above zero, shape (n, n).
    """
    n = limits.n_categories
    assert limits.success is not None
    rows, columns = np.nonzero(support)
    size = len(rows)
    entry, cost, room = np.arange(size), size + np.arange(n), size + n
    sums = np.zeros((n, size + n + 1))
    sums[columns, entry] = 1.0
    above = np.zeros((size, size + n + 1))
    above[entry, cost[rows]], above[entry, entry] = 1.0, -1.0
    total = np.zeros((1, size + n + 1))
    total[0, cost], total[0, room] = -1.0, -1.0
    blocks = [sums, above, total]
    lower = [limits.prior, np.zeros(size), np.array([-limits.success])]
    if limits.most_posterior is not None and limits.most_posterior < 1.0:
        worst = np.zeros((n, size + n + 1))
        worst[rows, entry] = limits.most_posterior
        worst[np.arange(n), cost] = -1.0
        worst[:, room] = -1.0
        blocks.append(worst)
        lower.append(np.zeros(n))
    least = np.concatenate(lower)
    most = np.full(len(least), highs.INFINITY)
    most[:n] = limits.prior
    gain = np.zeros(size + n + 1)
    gain[room] = -1.0
    answer = highs.run(
        highs.Program(
            gain,
            np.zeros(size + n + 1),
            np.full(size + n + 1, highs.INFINITY),
            highs.dense_rows(np.concatenate(blocks)),
            least,
            most,
        )
    )
    if answer.status != "optimal" or answer.x[room] <= 0:
        return None
    matrix = np.zeros((n, n))
    matrix[rows, columns] = np.maximum(answer.x[:size], 0.0)
    return np.asarray(matrix / matrix.sum(axis=0))
