"""Limits on the privacy of one attribute's answers, and lower bounds on the error under them.

The bounds are proofs: no solver is imported here. An answer y is a row q_y(x) = Pr[y | x] p(x) ≥ 0,
and rows with Σ_y q_y = p are a mechanism. Limits are linear in rows scaled to cost 1; a certificate
is an n x n matrix Z and a vector λ (docs/proofs/frontier.md, Theorems 3 and 5).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.prior import checked_prior

MAX_EXACT_CATEGORIES = 16
"""Above this many categories the extreme rows, about 2^n, are not listed one by one."""

MOST_KINDS = 1 << 18
"""Kinds of rows that are compared: 16 categories have up to 1.7 · 10⁵ rows (65,535 sets, and with a
worst posterior between 1/9 and 1/8 102,960 rows with a part)."""

Groups = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Limits:
    """A prior and the required privacy; build it with `average_limits` or `local_limits`.

    Attributes:
        prior: p, shape (n,), sums to 1.
        success: A, the largest average success of the best guess; None under ε-LDP.
        most_posterior: δ, the largest posterior of any category after any answer, or None.
        epsilon: level in nats under ε-LDP, otherwise None.
    """

    prior: FloatArray
    success: float | None
    most_posterior: float | None
    epsilon: float | None

    @property
    def n_categories(self) -> int:
        """n."""
        return len(self.prior)

    @property
    def budget(self) -> float:
        """Limit on the sum of the costs of all rows."""
        if self.success is None:
            return 1.0
        # max q ≤ δ 1·q of every row, so that the costs add up to δ at most.
        return min(self.success, self.most_posterior or 1.0)


def average_limits(
    prior: npt.ArrayLike, privacy: float, most_posterior: float | None = None
) -> Limits:
    """Return the limits of average privacy and, optionally, of a worst posterior.

    ``prior``: p, shape (n,), entries above 0 that sum to 1. ``privacy``: 1 − A, from 0 to (just
    below) 1 − max p. ``most_posterior``: δ, from (just above) max p to 1; None or 1 for no bound.

    Source: Huang and Du, equations (8) and (9).

    >>> average_limits([0.5, 0.3, 0.2], 0.25).success
    0.75
    """
    p = checked_prior(prior)
    most = float(p.max())
    # Nearer to the least possible, max p, the program has no interior left to speak of.
    least = most + 1e-6 * (1.0 - most)
    if not 0.0 <= privacy <= 1.0 - least:
        raise InputError(
            f"privacy: it must be from 0 to {1.0 - least:.8g}; above that the prior alone "
            "already gives more away"
        )
    if most_posterior is not None:
        if not least <= most_posterior <= 1.0:
            raise InputError(
                f"most_posterior: the bound must be from {least:.8g} to 1; even without an answer "
                f"the likeliest category has probability {most:.6g}"
            )
        if most_posterior == 1.0:
            most_posterior = None
    return Limits(p, 1.0 - privacy, most_posterior, None)


def local_limits(prior: npt.ArrayLike, epsilon: float) -> Limits:
    """Return the limits of ε-local differential privacy.

    The prior then only weighs the errors of the estimate.

    ``prior``: p, shape (n,), entries above 0 that sum to 1. ``epsilon``: level in nats, from 0.001
    to 30; above, e^−ε vanishes in floating-point rows.
    """
    p = checked_prior(prior)
    if not 1e-3 <= epsilon <= 30.0:
        raise InputError("epsilon: the level must be from 0.001 to 30 nats")
    return Limits(p, None, None, float(epsilon))


@dataclass(frozen=True, eq=False)
class RowKinds:
    """Extreme rows by the number of categories of each group that they name, one of each kind.

    A row is v for average privacy and p∘(1 + (e^ε − 1) v) under ε-LDP, where v is 1 for the
    categories that it names, φ for at most one that it names in part, and 0 for the others.

    Attributes:
        sums: Σ v over each group, shape (number of kinds, number of groups).
        squares: Σ v² over each group, same shape.
    """

    sums: FloatArray
    squares: FloatArray

    def __len__(self) -> int:
        return len(self.sums)


def row_kinds(limits: Limits, sizes: npt.NDArray[np.intp]) -> RowKinds:
    """Return every kind of extreme row (docs/proofs/frontier.md, Theorem 3).

    ``sizes``: number of categories of each group, shape (number of groups,).
    """
    grids = np.meshgrid(*[np.arange(size + 1.0) for size in sizes], indexing="ij")
    count: FloatArray = np.stack([grid.ravel("F") for grid in grids], axis=1)
    named = count.sum(axis=1)
    if limits.epsilon is not None:
        count = count[(named > 0) & (named < sizes.sum())]
        return RowKinds(count, count)
    whole, part = (0, 0.0) if limits.most_posterior is None else sum_bound(limits.most_posterior)
    full = count[named >= max(1, whole + (part > 0))]
    if part == 0.0:
        return RowKinds(full, full)
    row, group = np.nonzero((named == whole)[:, None] & (count < sizes))
    extra = np.eye(len(sizes))[group]
    return RowKinds(
        np.concatenate([full, count[row] + part * extra]),
        np.concatenate([full, count[row] + part**2 * extra]),
    )


def n_kinds(limits: Limits, sizes: npt.NDArray[np.intp]) -> float:
    """Return at least the number of `row_kinds`, without making them.

    >>> n_kinds(local_limits([0.5, 0.3, 0.2], 1.0), np.array([1, 2]))
    6.0
    """
    # Infinite beyond 10³⁰⁸, without a warning.
    number: float = math.prod((sizes + 1.0).tolist())
    whole, part = (0, 0.0) if limits.most_posterior is None else sum_bound(limits.most_posterior)
    if part > 0.0 and number <= MOST_KINDS:
        # Coefficients of Π (1 + z + … + z^size): kinds by the number of named categories.
        of_size = np.ones(1)
        for size in sizes:
            of_size = np.convolve(of_size, np.ones(size + 1))
        others = min(len(sizes), int(sizes.sum()) - whole)
        number += float(of_size[whole]) * others if others > 0 else 0.0
    return number


def rows_of(limits: Limits, named: FloatArray) -> FloatArray:
    """Return the rows of cost 1 for v of `RowKinds`, shape (number of rows, n).

    Under ε-LDP they are rounded inwards, so that mechanisms made of them keep ε.
    """
    if limits.epsilon is None:
        return named
    # p∘(1 + (e^ε − 1) v), divided by e^ε; moved by a few units in the last place.
    low = math.exp(-limits.epsilon) * (1.0 + 16.0 * 2.0**-52)
    rows = np.where(named == 1.0, 1.0, low) * limits.prior
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def sum_bound(most_posterior: float) -> tuple[int, float]:
    """Return (⌊1/δ⌋, 1/δ − ⌊1/δ⌋): a row with largest entry 1 is allowed if its sum is at least
    their sum.

    The fraction is rounded down, and to 0 if it is below 1e-12; a δ that differs from 1/k by
    rounding, like 0.2, has k and 0, an error that θ of the bounds covers.

    >>> sum_bound(0.2), sum_bound(0.375)
    ((5, 0.0), (2, 0.6666666666666665))
    """
    inverse = 1 / Fraction(most_posterior)
    whole = math.floor(inverse)
    if most_posterior == 1.0 / (whole + 1):
        return whole + 1, 0.0
    part = float(inverse - whole)
    part = math.nextafter(part, 0.0) if part > 1e-12 else 0.0
    return whole, part


def closed_form_bound(limits: Limits) -> float:
    """Return a lower bound on n·N·MSE for any number of categories, in O(n log n).

    Tight for a uniform prior without δ, and for one under ε-LDP (docs/proofs/frontier.md,
    section 4).

    >>> round(closed_form_bound(average_limits([0.5, 0.3, 0.2], 0.25)), 6)
    1.038919
    """
    square = float(limits.prior @ limits.prior)
    # Even the true answers of a sample have n·N·MSE = 1 − s.
    bound = max(1.0 - square, (1.0 - square) ** 2 / (_agreement(limits, square) - square))
    if limits.epsilon is not None:
        # The same argument with D^{−1/2} C D^{−1/2} for C: its trace is the mean χ² of an answer,
        # (E − 1)² β(1 − β)/(1 + (E − 1)β)² ≤ (E − 1)²/(4E) for a row with p(B) = β.
        roots = np.sqrt(np.sort(limits.prior)[:-1]).sum()
        bound = max(bound, float(roots / math.sinh(limits.epsilon / 2.0)) ** 2)
    return float(bound) * (1.0 - 1e-12)


def _agreement(limits: Limits, square: float) -> float:
    """τ: the largest possible Σ_y Σ_x q_y(x)²/r_y."""
    if limits.success is None:
        return _local_agreement(limits, square)
    success, delta = limits.success, limits.most_posterior
    if delta is None:
        return success
    # Given the largest posterior m of an answer, Σ posterior² ≤ ⌊1/m⌋ m² + (1 − ⌊1/m⌋ m)² = g(m).
    # The best mixture of m ≤ δ with mean A is the concave envelope of g: m up to 1/⌈1/δ⌉, where
    # g(1/j) = 1/j, and then the chord to (δ, g(δ)), since g is convex between.
    whole, part = sum_bound(delta)
    corner = 1.0 / (whole + (part > 0))
    top = whole * delta**2 + (1.0 - whole * delta) ** 2
    if success <= corner or delta <= corner:
        return min(success, delta)
    fraction = min(1.0, (success - corner) / (delta - corner))
    return corner + fraction * (top - corner)


def _local_agreement(limits: Limits, square: float) -> float:
    """Return max over B of Σ posterior² for the row p∘(1 + (e^ε − 1) 1_B), or slightly more.

    With β = p(B) and E = e^ε it is (s + (E² − 1) Σ_B p²)/(1 + (E − 1) β)². Given β, Σ_B p² is at
    most that of the likeliest categories (the last in part): piecewise linear in β. On each piece
    (a + bβ)/(1 + cβ)² is largest at an end or at β = (b − 2ac)/(bc).
    """
    assert limits.epsilon is not None
    p = np.sort(limits.prior)[::-1]
    gain = math.expm1(limits.epsilon)
    both = gain * (gain + 2.0)
    mass = np.concatenate([[0.0], np.cumsum(p)])
    squares = np.concatenate([[0.0], np.cumsum(p * p)])
    best = float(((square + both * squares) / (1.0 + gain * mass) ** 2).max())
    if float(p[0] - p[-1]) <= 1e-15:
        return best  # Equal shares: β is always a whole number of them.
    slope = both * p
    base = square + both * (squares[:-1] - p * mass[:-1])
    turn = (slope - 2.0 * base * gain) / (slope * gain)
    inside = (turn > mass[:-1]) & (turn < mass[1:])
    values = (base + slope * turn) / (1.0 + gain * turn) ** 2
    return max(best, float(values[inside].max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class Certificate:
    """A claimed lower bound with its proof.

    Attributes:
        limits: the prior and the required privacy.
        directions: Z, shape (n, n).
        multipliers: λ, shape (n,).
        claim: the lower bound on n·N·MSE that is claimed.
        groups: the group of each category, 0, 1, …, shape (n,); rows that name equally many
            categories of each group are checked together. None if every category is by itself.
    """

    limits: Limits
    directions: FloatArray
    multipliers: FloatArray
    claim: float
    groups: Groups | None = None

    @property
    def record_mse(self) -> float:
        """The claimed lower bound on N·MSE."""
        return self.claim / self.limits.n_categories


def certify(
    limits: Limits,
    directions: FloatArray,
    multipliers: FloatArray,
    groups: Groups | None = None,
) -> Certificate:
    """Return the certificate of the largest bound that Z and λ prove."""
    # Another machine may add up in another order, and its own rigorous bound then differs by some
    # hundred roundings of 2⁻⁵³.
    claim = proven_bound(limits, directions, multipliers, groups) * (1.0 - 1e-12)
    return Certificate(limits, directions, multipliers, claim, groups)


def verify(certificate: Certificate) -> float:
    """Recompute and return the lower bound on n·N·MSE that Z and λ prove."""
    proven = proven_bound(
        certificate.limits, certificate.directions, certificate.multipliers, certificate.groups
    )
    if not proven >= certificate.claim:
        raise InputError(
            f"certificate: it claims a bound of {certificate.claim:.12g}, but proves only "
            f"{proven:.12g}"
        )
    return proven


def proven_bound(
    limits: Limits,
    directions: FloatArray,
    multipliers: FloatArray,
    groups: Groups | None = None,
) -> float:
    """Return the lower bound on n·N·MSE that Z and λ prove, at least `closed_form_bound`.

    A sum of N products has an error of at most about N u times the sum of their absolute values,
    in any order of summation (Higham 2002, section 3.1; u = 2⁻⁵³). Every quantity is therefore
    moved by θ = 8(n + 8) u times its sum of absolute values to the safe side. This covers the
    rounding of the rows and of the prior too.

    ``directions``: Z, shape (n, n). ``multipliers``: λ, shape (n,).
    """
    n = limits.n_categories
    divided = np.arange(n) if groups is None else np.asarray(groups)
    present = np.unique(divided)
    if divided.shape != (n,) or not np.array_equal(present, np.arange(len(present))):
        raise InputError(f"certificate: it needs the group, 0, 1, …, of each of {n} categories")
    sizes = np.bincount(divided)
    if (number := n_kinds(limits, sizes)) > MOST_KINDS:
        raise InputError(
            f"certificate: {number:.3g} kinds of rows are too many to check; with groups of "
            f"categories it may be at most {MOST_KINDS}"
        )
    by_kinds = bound_over(limits, row_kinds(limits, sizes), directions, multipliers, divided)
    return max(by_kinds, closed_form_bound(limits))


def bound_over(
    limits: Limits,
    kinds: RowKinds,
    directions: FloatArray,
    multipliers: FloatArray,
    groups: Groups,
) -> float:
    """Return the bound of Z and λ over these kinds of rows, or 0; valid only for all kinds."""
    n = limits.n_categories
    Z, multiplier = np.asarray(directions, float), np.asarray(multipliers, float)
    if Z.shape != (n, n) or multiplier.shape != (n,):
        raise InputError(f"certificate: it needs a {n} x {n} matrix and {n} multipliers")
    if not (np.isfinite(Z).all() and np.isfinite(multiplier).all()):
        raise InputError("certificate: every number must be finite")
    theta = 8.0 * (n + 8) * 2.0**-53
    p = limits.prior
    # Denominator, rounded up: λ·p + m b − ‖Zᵀp‖².
    along, along_size = Z.T @ p, np.abs(Z).T @ p
    spent = most_excess(limits, kinds, Z, multiplier, groups) * limits.budget
    bottom = float(multiplier @ p + spent - along @ along)
    size = float(np.abs(multiplier) @ p + spent + along_size @ along_size)
    bottom += theta * size
    # Numerator, rounded down: tr(ZᵀD) − pᵀZp.
    diagonal = np.diag(Z)
    top = float(diagonal @ p - p @ Z @ p)
    top -= theta * float(np.abs(diagonal) @ p + p @ np.abs(Z) @ p)
    if top <= 0.0 or bottom <= 0.0:
        return 0.0
    return top / bottom * top * (1.0 - theta)


def most_excess(
    limits: Limits, kinds: RowKinds, Z: FloatArray, multiplier: FloatArray, groups: Groups
) -> float:
    """Return an upper bound on m of the certificate over all rows of these kinds, rounded up.

    Times 1·q, the excess of a row is qᵀPq with P = ZZᵀ − (λ1ᵀ + 1λᵀ)/2. It is bounded by the
    largest P(x, x) in each group and the largest P(x, x') of each two groups, equal for all rows of
    a kind. Under ε-LDP 1 + (e^ε − 1) v takes the place of v, and p(x) p(x') P(x, x') that of
    P(x, x').

    Source: docs/proofs/frontier.md, Theorem 7.
    """
    n = limits.n_categories
    theta = 8.0 * (n + 8) * 2.0**-53
    size = np.abs(Z) @ np.abs(Z).T + (np.abs(multiplier)[:, None] + np.abs(multiplier)) / 2.0
    pairs = Z @ Z.T - (multiplier[:, None] + multiplier) / 2.0 + theta * size
    constant, single, total = 0.0, np.diag(pairs), kinds.sums.sum(axis=1)
    if limits.epsilon is not None:
        gain = math.expm1(limits.epsilon) * (1.0 + theta)
        W = _up(pairs * np.outer(limits.prior, limits.prior), theta)
        constant = float(W.sum() + theta * np.abs(W).sum())
        # The terms of x alone: 2 E Σ_x' W(x, x') and E² W(x, x).
        single = _up(2.0 * gain * (W.sum(axis=1) + theta * np.abs(W).sum(axis=1)), theta)
        single = _up(single + _up(gain**2 * np.diag(W), theta), theta)
        pairs = _up(gain**2 * W, theta)
        # 1·q is at least that of the rarest categories of each group; of cost 1, rows have 1.
        total = (1.0 + gain * _least_sums(limits.prior, groups, kinds.sums)) ** 2
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(kinds.sums.shape[1]))
    others = np.where(np.eye(n, dtype=bool), -np.inf, pairs)[np.ix_(order, order)]
    between = np.maximum.reduceat(np.maximum.reduceat(others, starts, axis=0), starts, axis=1)
    between = np.where(np.isfinite(between), between, 0.0)  # a group of one has no pair
    own = np.diag(between)

    def form(single: FloatArray, own: FloatArray, between: FloatArray) -> FloatArray:
        image = (kinds.sums @ between) * kinds.sums
        most = -_least_sums(-single, groups, kinds.squares)
        return np.asarray(most + kinds.squares @ own + image.sum(axis=1))

    value = constant + form(single, -own, between)
    value += theta * (abs(constant) + form(np.abs(single), np.abs(own), np.abs(between)))
    return max(0.0, float(_up(value / total, theta).max()))


def _least_sums(values: FloatArray, groups: Groups, count: FloatArray) -> FloatArray:
    """Return the least sum of these numbers of values of each group, with fractions, by kind."""
    least = np.zeros(len(count))
    for group in range(count.shape[1]):
        sums = np.concatenate([[0.0], np.cumsum(np.sort(values[groups == group]))])
        least += np.interp(count[:, group], np.arange(len(sums)), sums)
    return least


def _up(value: FloatArray | float, theta: float) -> FloatArray:
    return np.asarray(value + theta * np.abs(value))
