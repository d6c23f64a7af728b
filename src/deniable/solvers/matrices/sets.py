"""Mechanisms beyond the categories whose extreme rows can be listed: rows by search, then weights.

Whether an extreme row helps is told by its excess (`certificate`): a local search over sets of
categories, flipping one or exchanging two, finds rows of large excess. The weights of least error
over the rows found so far come from a primal–dual interior-point method on the weights themselves,
whose Hessian is 2 (F G Fᵀ)∘(F X Fᵀ) for features F, G = H⁻¹ and X = G E Eᵀ G (`frontier`); it has
no more rank than K has entries, so that thousands of rows cost little. What comes out is a
mechanism with a known error; how good it is, the certificate says.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices.certificate import (
    Certificate,
    Limits,
    certify,
    shape_of_rows,
)
from deniable.solvers.matrices.pricing import Pricing
from deniable.solvers.matrices.relaxed import MOST_GROUPS

Sets = npt.NDArray[np.bool_]

_STARTS = 300
_DIVISIONS = 20
_LIGHT = 1e-7
_MOST_ROWS = 900
_MOST_KEPT = 3000
_MOST_FLIPS = 80
_TO_BOUNDARY = 0.95
_MOST_STEPS = 60


@dataclass(frozen=True, eq=False)
class Weighted:
    """Rows of cost 1 with their weights.

    Attributes:
        rows: shape (m, n).
        weights: shape (m,).
        directions: Z of the dual solution, shape (n, n).
        multipliers: λ, shape (n,).
        budget: m.
        error: n·N·MSE at the prior.
    """

    rows: FloatArray
    weights: FloatArray
    directions: FloatArray
    multipliers: FloatArray
    budget: float
    error: float

    def excess(self, rows: FloatArray) -> FloatArray:
        """‖Zᵀq‖²/(1·q) − λ·q − m."""
        spread = ((rows @ self.directions) ** 2).sum(axis=1) / rows.sum(axis=1)
        return np.asarray(spread - rows @ self.multipliers - self.budget)


def mechanism(
    limits: Limits, certificate: Certificate, rounds: int, close: float
) -> tuple[Weighted | None, Certificate]:
    """Return rows and weights of small error, and the better of two proofs of the bound.

    The other proof is that of the directions of the last weights, which `pricing` completes up to
    `MOST_GROUPS` categories.

    Args:
        limits: the prior and the required privacy.
        certificate: of the bound; its dual says which rows to look for first.
        rounds: of searching for rows and weighing them, at most.
        close: stop once the error is so near the bound, as a fraction of it, or no row is found
            that would bring it nearer.

    Returns:
        The rows, None if those found make no mechanism within the limits; and a certificate.
    """
    generator = np.random.default_rng(0)  # a search for a matrix: nobody's data are drawn
    prices = Pricing(limits)
    n = limits.n_categories
    most = min(max(_MOST_ROWS, n * (n - 1)), _MOST_KEPT)
    rows = _first(limits, generator)
    rows = _joined(rows, *_priced(limits, prices, certificate, rows, generator))
    best: Weighted | None = None
    tolerance = 1e-3
    for step in range(rounds):
        found = _weigh(limits, rows, tolerance)
        if found is None:
            break
        if best is None or found.error < best.error:
            best = found
        own = certify(limits, found.directions, found.multipliers)
        heaviest = rows[np.argsort(-found.weights, kind="stable")]
        new = _joined(*_priced(limits, prices, own, heaviest, generator))
        left = limits.budget * float(found.excess(new).max()) / found.error
        near = best.error / certificate.claim - 1.0 <= close
        if near or (left < 0.3 * close and tolerance < 0.3 * close) or step == rounds - 1:
            proofs = [certificate, prices.prove(own) if n <= MOST_GROUPS and not near else own]
            certificate = max(proofs, key=lambda proof: proof.claim)
            if best.error / certificate.claim - 1.0 <= close or left < 0.03 * close:
                break
        tolerance = max(0.05 * close, min(0.3 * tolerance, 0.1 * left))
        excess = found.excess(rows)
        kept = (found.weights > _LIGHT * found.weights.sum()) | (excess > -0.02 * found.error)
        order = np.argsort(-excess[kept], kind="stable")[: 2 * most]
        rows = _joined(rows[kept][order], new)
    return best, certificate


def _priced(
    limits: Limits,
    prices: Pricing,
    proof: Certificate,
    known: FloatArray,
    generator: np.random.Generator,
) -> list[FloatArray]:
    """Rows of large excess: of those that can be listed, and as far as a search finds them."""
    n = limits.n_categories
    dual = proof.directions, proof.multipliers
    most = min(_MOST_ROWS, n * (n + 1) // 2)
    listed = prices.largest(*dual, 0.0, most)[0]
    return [_inside(limits, listed), _search(limits, *dual, known, generator)]


def _inside(limits: Limits, rows: FloatArray) -> FloatArray:
    """The same rows, moved by rounding so that ε is kept."""
    if limits.epsilon is None:
        return rows
    ratio = rows / limits.prior
    return _as_rows(limits, ratio > 0.999 * ratio.max(axis=1, keepdims=True))


def _joined(*some: FloatArray) -> FloatArray:
    every = np.concatenate(some)
    _, first = np.unique(np.round(every, 12), axis=0, return_index=True)
    return np.asarray(every[np.sort(first)])


def _first(limits: Limits, generator: np.random.Generator) -> FloatArray:
    """Rows that some mechanism within the limits is made of, and enough others."""
    n = limits.n_categories
    least = shape_of_rows(limits)[0]
    if limits.epsilon is not None:
        size = max(1, min(n - 1, round(n / (1.0 + np.exp(limits.epsilon)))))
        sets = [np.eye(n, dtype=bool), ~np.eye(n, dtype=bool)]
        for k in {max(1, size - 1), size, min(n - 1, size + 1)}:
            ranks = generator.random((_MOST_ROWS, n)).argsort(axis=1).argsort(axis=1)
            sets.append(ranks < k)
        return _as_rows(limits, np.unique(np.concatenate(sets), axis=0))
    order = np.argsort(-limits.prior)
    above = np.zeros((n, n), dtype=bool)
    for k in range(n):
        above[k, order[: k + 1]] = True
    single = np.eye(n, dtype=bool)
    pairs = [single[[x, y]].any(axis=0) for x in range(n) for y in range(x)]
    chosen = generator.permutation(len(pairs))[:_MOST_ROWS]
    sets = [above, single, np.array(pairs)[chosen]]
    rows = _as_rows(limits, np.unique(_filled(np.concatenate(sets), least, n, generator), axis=0))
    if limits.most_posterior is None:
        return rows
    return _joined(rows, *(_pieces(limits, generator) for _ in range(_DIVISIONS)))


def _pieces(limits: Limits, generator: np.random.Generator) -> FloatArray:
    """Extreme rows that the prior is a mixture of, at a cost within the limits, if it is δ at most.

    p/A is in the polytope of the u with 0 ≤ u ≤ 1 and Σ u = 1/A. A vertex 1_S + ψ 1_x is taken off,
    at random but with all x that must be in it, until it is itself one. Of each, extreme rows are
    the corners 1_S, 1_S + φ 1_x and 1_S + 1_x that are allowed.
    """
    assert limits.success is not None
    assert limits.most_posterior is not None
    least, part = shape_of_rows(limits)
    left = limits.prior / min(limits.success, limits.most_posterior)
    total = left.sum()
    whole = int(total * (1.0 + 1e-9))
    rest = max(0.0, total - whole)
    scale = 1.0
    corners: list[FloatArray] = []
    while scale > 1e-9 and len(corners) < 8 * len(left):
        now = left / scale
        order = np.argsort(-np.where(now > 1.0 - 1e-9, 2.0 + now, now ** generator.random()))
        vertex = np.zeros(len(left))
        vertex[order[:whole]], vertex[order[whole : whole + 1]] = 1.0, rest
        allowed = [value for value in (0.0, 1.0) if whole + value >= least]
        for value in [*allowed, *[part] * (part > 0 and whole == least - 1)]:
            corner = (vertex == 1.0).astype(float)
            corner[order[whole : whole + 1]] = value
            corners.append(corner)
        # As far as left − t vertex stays above 0 and below scale − t.
        down = np.divide(left, vertex, out=np.full(len(left), np.inf), where=vertex > 0)
        up = np.divide(
            scale - left, 1.0 - vertex, out=np.full(len(left), np.inf), where=vertex < 1.0
        )
        step = max(1e-6 * scale, min(down.min(), up.min(), scale))
        left, scale = np.maximum(left - step * vertex, 0.0), scale - step
    return np.array(corners)


def _filled(sets: Sets, least: int, most: int, generator: np.random.Generator) -> Sets:
    """Add or remove random categories until the sizes are allowed."""
    sets = sets.copy()
    for members in sets:
        while (size := int(members.sum())) < least or size > most:
            members[generator.choice(np.flatnonzero(members == (size > most)))] ^= True
    return sets


def _as_rows(limits: Limits, sets: Sets) -> FloatArray:
    if limits.epsilon is None:
        return sets.astype(float)
    low = np.exp(-limits.epsilon) * (1.0 + 16.0 * np.finfo(float).eps)  # so that ε is kept
    rows = np.where(sets, 1.0, low) * limits.prior
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _search(
    limits: Limits,
    Z: FloatArray,
    multipliers: FloatArray,
    known: FloatArray,
    generator: np.random.Generator,
) -> FloatArray:
    """Rows passed by steepest ascents of the excess, those of largest excess first.

    Times 1·q the excess is qᵀPq (`most_excess`); the budget's multiplier is the same for every row.
    """
    n = limits.n_categories
    local = limits.epsilon is not None
    least = shape_of_rows(limits)[0]
    most = n - 1 if local else n
    scale = limits.prior if local else np.ones(n)
    known = known[:_STARTS] / scale
    near = known > 0.999 * known.max(axis=1, keepdims=True)
    drawn = generator.random((_STARTS, n)) < generator.random((_STARTS, 1))
    sets = _filled(np.concatenate([near, drawn]), least, most, generator)
    P = Z @ Z.T - (multipliers[:, None] + multipliers) / 2.0
    low = np.exp(-limits.epsilon) if limits.epsilon is not None else 0.0
    base, step = low * scale, (1.0 - low) * scale
    seen, values = [], []
    for _ in range(_MOST_FLIPS):
        q = base + sets * step
        y = q @ P
        form, total = (q * y).sum(axis=1), q.sum(axis=1)
        sign = np.where(sets, -step, step)
        flipped = form[:, None] + 2.0 * sign * y + sign**2 * np.diag(P)
        sums = total[:, None] + sign
        power = 2 if local else 1
        now = form / total**power
        size = sets.sum(axis=1)[:, None]
        allowed = np.where(sets, size > least, size < most)
        one = np.divide(flipped, sums**power, out=np.full_like(sums, -np.inf), where=allowed)
        both = flipped[:, :, None] + flipped[:, None, :] - form[:, None, None]
        both += 2.0 * sign[:, :, None] * sign[:, None, :] * P
        exchange = sets[:, :, None] & ~sets[:, None, :]
        sums = sums[:, :, None] + sign[:, None, :]
        two = np.divide(both, sums**power, out=np.full_like(both, -np.inf), where=exchange)
        two = two.reshape(len(sets), -1)
        seen.append(sets)
        values.append(now)
        first, second = one.max(axis=1), two.max(axis=1)
        better = np.maximum(first, second) > now + 1e-12 * np.abs(now)
        if not better.any():
            break
        at = np.flatnonzero(better)
        moved = sets[at].copy()
        single = first[at] >= second[at]
        pair = two[at].argmax(axis=1)
        rows = np.arange(len(at))
        moved[rows[single], one[at].argmax(axis=1)[single]] ^= True
        moved[rows[~single], pair[~single] // n] ^= True
        moved[rows[~single], pair[~single] % n] ^= True
        sets = np.unique(moved, axis=0)
    every, value = np.concatenate(seen), np.concatenate(values)
    every, first_of = np.unique(every, axis=0, return_index=True)
    order = np.argsort(-value[first_of], kind="stable")
    most = min(_MOST_ROWS, n * (n + 1) // 2)
    # Rows of largest excess are much alike: as many others are drawn.
    others = generator.permutation(order[most // 2 : 4 * most])[: most // 2]
    return _as_rows(limits, every[np.concatenate([order[: most // 2], others])])


def _weigh(limits: Limits, rows: FloatArray, tolerance: float) -> Weighted | None:
    """The weights of least error; None if no mechanism within the limits is made of these rows."""
    program = _Weights(limits, rows)
    best: tuple[float, Weighted] | None = None
    for _ in range(_MOST_STEPS):
        before = program.read()
        try:
            gap = program.step(tolerance)
        except np.linalg.LinAlgError:
            break
        # `gap` and `infeasible` are those of the weights before the step.
        if program.infeasible < 1e-6 and (best is None or gap < best[0]):
            best = gap, before
        elif best is not None and best[0] < 1e-4:
            break  # rounding: from here on it gets worse
        if gap < tolerance and program.infeasible < 1e-9:
            break
    return None if best is None else best[1]


class _Weights:
    """Primal–dual interior-point steps on w ≥ 0 and the rest of the budget, s = A − Σ w ≥ 0."""

    def __init__(self, limits: Limits, rows: FloatArray) -> None:
        p = limits.prior
        n = len(p)
        self.limits, self.rows = limits, rows
        self.root = np.sqrt(p)
        axis = self.root.copy()
        axis[0] += np.linalg.norm(self.root)
        reflection = np.eye(n) - 2.0 * np.outer(axis, axis) / (axis @ axis)
        self.basis = reflection[:, 1:]
        self.error = self.basis.T * self.root
        self.square = self.error @ self.error.T
        lift = (rows / self.root) @ self.basis
        self.features = lift / np.sqrt(rows.sum(axis=1))[:, None]
        w = np.full(len(rows), 1.0 / len(rows))
        shares = rows / rows.sum(axis=1, keepdims=True)
        for _ in range(50):  # towards Σ w q = p, by proportions
            w *= np.exp(shares @ np.log(p / (rows.T @ w)))
        self.budget = limits.success
        w = np.append(
            w, [] if self.budget is None else max(0.1 * self.budget, self.budget - w.sum())
        )
        self.w = w  # the slack of the budget comes last
        self.sums = (rows / p).T
        self.right = np.ones(n)
        if self.budget is not None:
            self.sums = np.concatenate(
                [np.pad(self.sums, ((0, 0), (0, 1))), np.ones((1, len(w)))], axis=0
            )
            self.right = np.append(self.right, self.budget)
        self._evaluate()
        self.equal = np.append(
            0.5 * self.value * p, [] if self.budget is None else 0.5 * self.value
        )
        self.z = np.maximum(self.equal @ self.sums - self.slope, 0.1 * self.value)
        self.infeasible = np.inf

    def _evaluate(self) -> None:
        m = len(self.rows)
        matrix = (self.features * self.w[:m, None]).T @ self.features
        self.inverse = linalg.cho_solve(linalg.cho_factor(matrix), np.eye(len(matrix)))
        self.second = self.inverse @ self.square @ self.inverse
        self.value = float(np.trace(self.square @ self.inverse))
        slope = ((self.features @ self.second) * self.features).sum(axis=1)
        self.slope = np.append(slope, np.zeros(len(self.w) - m))

    def step(self, tolerance: float) -> float:
        """Go one step; return how large the complementary products were, over the error."""
        m, w, z = len(self.rows), self.w, self.z
        dual = self.equal @ self.sums - self.slope - z
        primal = self.right - self.sums @ w
        self.infeasible = float(np.abs(primal).max())
        gap = float(w @ z)
        if gap < tolerance * self.value and self.infeasible < 1e-9:
            return gap / self.value
        factor, scale, lifted = self._factor()
        across = (self.sums * (w / z)) @ self.sums.T

        def direction(target: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
            left, below = target / w - z - dual, primal
            move, change = np.zeros(len(w)), np.zeros(len(primal))
            for _ in range(3):  # iterative refinement
                ahead = w / z * left
                right = np.append(ahead[:m] @ lifted, self.sums @ ahead - below)
                solved = scale * linalg.cho_solve(factor, scale * right, check_finite=False)
                curve, change = solved[: lifted.shape[1]], change + solved[lifted.shape[1] :]
                step = left - solved[lifted.shape[1] :] @ self.sums
                step[:m] -= lifted @ curve
                move = move + w / z * step
                left = target / w - z - dual - z / w * move - change @ self.sums
                left[:m] -= lifted @ (move[:m] @ lifted)
                below = primal - self.sums @ move
            move = move + w / z * (np.linalg.lstsq(across, below, rcond=1e-12)[0] @ self.sums)
            return move, change, target / w - z - z / w * move

        dw, _, dz = direction(0.0)
        reach_w, reach_z = _reach(w, dw), _reach(z, dz)
        share = float((w + reach_w * dw) @ (z + reach_z * dz)) / gap
        target = max(min(0.8, max(1e-3, share**2)) * gap, 0.2 * tolerance * self.value) / len(w)
        corrected = target - np.clip(reach_w * reach_z * dw * dz, -target, 3.0 * target)
        dw, change, dz = direction(corrected)
        self.w = w + _TO_BOUNDARY * _reach(w, dw) * dw
        reach_z = _TO_BOUNDARY * _reach(z, dz)
        self.z = z + reach_z * dz
        self.equal = self.equal + reach_z * change
        self._evaluate()
        return gap / self.value

    def _factor(self) -> tuple[tuple[FloatArray, bool], FloatArray, FloatArray]:
        """What one step solves with: a Cholesky factor, its scale, and Φ.

        In coordinates where G is the identity and X diagonal, 2 (F G Fᵀ)∘(F X Fᵀ) is Φ Φᵀ with a
        column for each pair of coordinates. The steps are then solved in as many unknowns as K has
        (Woodbury), however many the rows are: the matrix is Bᵀ W Z⁻¹ B, B = (Φ, sums), plus the
        identity in the places of Φ.
        """
        lower = np.linalg.cholesky(self.inverse)
        values, vectors = np.linalg.eigh(lower.T @ self.square @ lower)
        turned = self.features @ (lower @ vectors)
        i, j = np.triu_indices(turned.shape[1])
        twice = np.where(i == j, 1.0, 2.0) * (values[i] + values[j])
        lifted = turned[:, i] * turned[:, j] * np.sqrt(twice)
        m, n_lifted = lifted.shape
        both = np.zeros((len(self.w), n_lifted + len(self.sums)))
        both[:m, :n_lifted], both[:, n_lifted:] = lifted, self.sums.T
        both *= np.sqrt(self.w / self.z)[:, None]
        system = linalg.blas.dsyrk(1.0, both.T, lower=1)
        on = np.arange(n_lifted)
        system[on, on] += 1.0
        scale = 1.0 / np.sqrt(np.diag(system))
        system *= scale[:, None]
        system *= scale
        system[np.diag_indices(len(system))] += 1e-13
        factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return factor, scale, lifted

    def read(self) -> Weighted:
        n = self.limits.n_categories
        directions = (self.basis / self.root[:, None]) @ (self.inverse @ self.error)
        weights = self.w[: len(self.rows)]
        multipliers = self.equal[:n] / self.limits.prior
        budget = 0.0 if self.budget is None else float(self.equal[n])
        return Weighted(self.rows, weights, directions, multipliers, budget, self.value)


def _reach(value: FloatArray, change: FloatArray) -> float:
    ratio = np.divide(-value, change, out=np.full_like(value, np.inf), where=change < 0)
    return float(min(1.0, ratio.min()))
