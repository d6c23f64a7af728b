"""The privacy required of one attribute's answers, and lower bounds on the error under it.

The bounds are proofs: nothing here imports a solver, and whatever found a certificate need not be
trusted. Proofs of what is stated here: docs/proofs/frontier.md.

*Extreme rows.* An answer (output) y of any mechanism is a row q_y(x) = Pr[y | x] p(x) ≥ 0, and any
rows with Σ_y q_y = p are a mechanism. Privacy limits are linear in the rows once each is scaled to
"cost" 1:

* average privacy: the cost is max_x q(x), and Σ_y cost ≤ A = 1 − privacy; with a worst posterior δ
  a row is allowed if max q ≤ δ Σ q;
* ε-LDP: the cost is Σ_x q(x), which adds up to 1 by itself; a row is allowed if q(x)/p(x) varies by
  at most e^ε.

The error of the estimate depends on the rows through K = Σ_y q_y q_yᵀ/(1·q_y). q qᵀ/(1·q) is
matrix-convex and homogeneous of degree one, so a row may be replaced by extreme rows of the allowed
set at no greater cost without making K smaller.

*Certificate.* Write C = K − ppᵀ and G = D − ppᵀ, D = diag(p). Every mechanism has
n·N·MSE ≥ tr(G C⁺ G). Take any n x n matrix Z and any vector λ, and let

    m = max(0, max over extreme rows of cost 1 of ‖Zᵀq‖²/(1·q) − λ·q).

By Cauchy–Schwarz tr(ZᵀG)² ≤ tr(ZᵀCZ) tr(G C⁺ G), and with Σ q_y = p and total cost at most b

    tr(ZᵀCZ) = Σ_y ‖Zᵀq_y‖²/(1·q_y) − ‖Zᵀp‖² ≤ λ·p + m b − ‖Zᵀp‖²,

so that tr(ZᵀG)²/(λ·p + m b − ‖Zᵀp‖²) is a lower bound.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import numpy.typing as npt

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.solvers.matrices.response import checked_prior

MAX_EXACT_CATEGORIES = 16
"""Above this many categories the extreme rows, about 2^n, are too many to enumerate."""

MAX_EPSILON = 30.0
"""Above this many nats e^−ε leaves no trace in floating-point rows; it protects nothing either."""

# Closer than this to the least possible A (or δ), relative to the room 1 − max p, the program has
# no interior left to speak of.
_LEAST_ROOM = 1e-6

_EPS = float(np.finfo(np.float64).eps)


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
        """The most that the costs of all rows may add up to."""
        if self.success is None:
            return 1.0
        # max q ≤ δ 1·q of every row, so that the costs add up to δ at most.
        return min(self.success, self.most_posterior or 1.0)


def average_limits(
    prior: npt.ArrayLike, privacy: float, most_posterior: float | None = None
) -> Limits:
    """Return the limits of average privacy and, optionally, of a worst posterior.

    Args:
        prior: p, shape (n,), entries above 0 that sum to 1.
        privacy: 1 − A, from 0 to (just below) 1 − max p.
        most_posterior: δ, from (just above) max p to 1; None or 1 for no bound.

    Raises:
        InputError: if the prior is no distribution or the privacy cannot be reached.

    Source: Huang and Du, equations (8) and (9).

    >>> average_limits([0.5, 0.3, 0.2], 0.25).success
    0.75
    """
    p = checked_prior(prior)
    most = float(p.max())
    least = most + _LEAST_ROOM * (1.0 - most)
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

    Args:
        prior: p, shape (n,), entries above 0 that sum to 1.
        epsilon: level in nats, above 0 and at most `MAX_EPSILON`.

    Raises:
        InputError: if the prior is no distribution or the level is out of range.
    """
    p = checked_prior(prior)
    if not 1e-3 <= epsilon <= MAX_EPSILON:
        raise InputError(f"epsilon: the level must be from 0.001 to {MAX_EPSILON:g} nats")
    return Limits(p, None, None, float(epsilon))


def extreme_rows(limits: Limits, *, inside: bool = False) -> FloatArray:
    """Return every extreme allowed row, each of cost 1, shape (number of rows, n).

    Rounding only ever widens the set of allowed rows (by at most 1e-12), so that a bound over these
    rows is a bound. With `inside` the same rows under ε-LDP err on the other side, so that a
    mechanism made of them keeps ε.

    Raises:
        InputError: if there are more than `MAX_EXACT_CATEGORIES` categories.
    """
    n = limits.n_categories
    if n > MAX_EXACT_CATEGORIES:
        raise InputError(
            f"prior: the exact bound takes at most {MAX_EXACT_CATEGORIES} categories, not {n}; "
            "use the closed-form bound"
        )
    subsets: FloatArray = np.array(
        (np.arange(1, 1 << n)[:, None] >> np.arange(n)) & 1, dtype=np.float64
    )
    if limits.epsilon is not None:
        # 1 + (e^ε − 1) 1_B for proper B, divided by e^ε; widened by a few units in the last place.
        low = math.exp(-limits.epsilon) * (1.0 + (16.0 if inside else -4.0) * _EPS)
        rows = np.where(subsets[:-1] == 1, 1.0, low) * limits.prior
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))
    if limits.most_posterior is None:
        return subsets
    whole, part = sum_bound(limits.most_posterior)
    sizes = subsets.sum(axis=1)
    full: FloatArray = subsets[sizes >= whole + (part > 0)]
    if part == 0.0:
        return np.asarray(full)
    partial = []
    for members in combinations(range(n), whole):
        for extra in set(range(n)).difference(members):
            row = np.zeros(n)
            row[list(members)] = 1.0
            row[extra] = part
            partial.append(row)
    return np.concatenate([full, np.array(partial).reshape(-1, n)])


def sum_bound(most_posterior: float) -> tuple[int, float]:
    """(⌊1/δ⌋, 1/δ − ⌊1/δ⌋): a row with largest entry 1 is allowed if it sums to at least that.

    The fraction is rounded down, and to 0 if it is below 1e-12. A δ that is 1/k but for rounding,
    like 0.2, has k and 0: an entry of a row changes by k u at most, which θ of the bounds covers.

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


def shape_of_rows(limits: Limits) -> tuple[int, float]:
    """(fewest categories whose entries may all be 1, φ of the rows with one fewer, or 0)."""
    if limits.most_posterior is None:
        return 1, 0.0
    whole, part = sum_bound(limits.most_posterior)
    return whole + (part > 0), part


def closed_form_bound(limits: Limits) -> float:
    """A lower bound on n·N·MSE for any number of categories, in O(n log n).

    With s = Σp² and τ an upper bound on Σ_y Σ_x q_y(x)²/r_y, the chance that two people who gave
    the same answer agree, it is (1 − s)²/(τ − s). Under ε-LDP it is at least
    4 e^ε (Σ' √p)²/(e^ε − 1)² as well, the sum without the largest p. Tight for a uniform prior
    without δ, and for one under ε-LDP.

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
    return bound * (1.0 - 1e-12)


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
    """max over B of Σ posterior² for the row p∘(1 + (e^ε − 1) 1_B), or a little more.

    With β = p(B) it is (s + (E² − 1) Σ_B p²)/(1 + (E − 1) β)², E = e^ε. Given β, Σ_B p² is at most
    what taking the likeliest categories first (the last in part) gives: piecewise linear in β. On
    each piece (a + bβ)/(1 + cβ)² is largest at an end or at β = (b − 2ac)/(bc).
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


_UNIT = float(np.finfo(np.float64).eps) / 2

# Another machine may add up in another order; its own rigorous bound then differs by about this.
_CLAIM_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class Certificate:
    """A claimed lower bound with what proves it.

    Attributes:
        limits: the prior and the required privacy.
        directions: Z, shape (n, n).
        multipliers: λ, shape (n,).
        claim: the lower bound on n·N·MSE that is claimed.
        splits: beyond `MAX_EXACT_CATEGORIES`, what helps to bound the excess of all rows at once,
            shape (n, n); any numbers do, and None stands for zeros.
        squares: further help there, shape (any, n + 1): ‖R (1, 1_B)‖² is added; None for none.
        part_splits: as `splits`, for the rows 1_S + φ 1_j with |S| = ⌊1/δ⌋.
        outside: as the splits, for the categories that a set leaves out, shape (n,).
    """

    limits: Limits
    directions: FloatArray
    multipliers: FloatArray
    claim: float
    splits: FloatArray | None = None
    squares: FloatArray | None = None
    part_splits: FloatArray | None = None
    outside: FloatArray | None = None

    @property
    def record_mse(self) -> float:
        """The claimed lower bound on N·MSE."""
        return self.claim / self.limits.n_categories


def certify(
    limits: Limits,
    directions: FloatArray,
    multipliers: FloatArray,
    splits: FloatArray | None = None,
    squares: FloatArray | None = None,
    part_splits: FloatArray | None = None,
    outside: FloatArray | None = None,
) -> Certificate:
    """Return the certificate that claims all that Z and λ prove.

    Raises:
        InputError: if the shapes do not fit.
    """
    helps = splits, squares, part_splits, outside
    claim = proven_bound(limits, directions, multipliers, *helps) * (1.0 - _CLAIM_SLACK)
    return Certificate(limits, directions, multipliers, claim, *helps)


def verify(certificate: Certificate) -> float:
    """Recompute what Z and λ prove, and return it: a lower bound on n·N·MSE.

    Raises:
        InputError: if that is less than the certificate claims.
    """
    proven = proven_bound(
        certificate.limits,
        certificate.directions,
        certificate.multipliers,
        certificate.splits,
        certificate.squares,
        certificate.part_splits,
        certificate.outside,
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
    splits: FloatArray | None = None,
    squares: FloatArray | None = None,
    part_splits: FloatArray | None = None,
    outside: FloatArray | None = None,
) -> float:
    """The lower bound on n·N·MSE that Z and λ prove, rounded down rigorously; 0 if none.

    A sum of N products has an error of at most about N u times the sum of their absolute values,
    in whatever order it is added up (Higham 2002, section 3.1). Every quantity is therefore
    evaluated with its sum of absolute values, and moved by θ = 8(n + 8) u times that to the safe
    side; u = 2⁻⁵³. This covers the rounding of the rows and of the prior as well.

    Up to `MAX_EXACT_CATEGORIES` the largest excess m is found over all extreme rows; beyond, it is
    bounded from above by `most_excess`.

    Raises:
        InputError: if the shapes do not fit.
    """
    if limits.n_categories <= MAX_EXACT_CATEGORIES:
        return bound_over(limits, extreme_rows(limits), directions, multipliers)
    Z, multiplier = _checked(limits, directions, multipliers)
    excess = most_excess(limits, Z, multiplier, splits, squares, part_splits, outside)
    return _bound_by(limits, excess, Z, multiplier)


def bound_over(
    limits: Limits, rows: FloatArray, directions: FloatArray, multipliers: FloatArray
) -> float:
    """As `proven_bound`, with the extreme rows at hand; a bound only if all of them are given.

    Args:
        limits: the prior and the required privacy.
        rows: `extreme_rows(limits)`.
        directions: Z, shape (n, n).
        multipliers: λ, shape (n,).

    Raises:
        InputError: if the shapes do not fit.
    """
    Z, multiplier = _checked(limits, directions, multipliers)
    return _bound_by(limits, _most_excess(rows, Z, multiplier, _theta(limits)), Z, multiplier)


def _theta(limits: Limits) -> float:
    return 8.0 * (limits.n_categories + 8) * _UNIT


def _checked(
    limits: Limits, directions: FloatArray, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    n = limits.n_categories
    Z, multiplier = np.asarray(directions, float), np.asarray(multipliers, float)
    if Z.shape != (n, n) or multiplier.shape != (n,):
        raise InputError(f"certificate: it needs a {n} x {n} matrix and {n} multipliers")
    if not (np.isfinite(Z).all() and np.isfinite(multiplier).all()):
        raise InputError("certificate: every number must be finite")
    return Z, multiplier


def _bound_by(limits: Limits, excess: float, Z: FloatArray, multiplier: FloatArray) -> float:
    """tr(ZᵀG)²/(λ·p + m b − ‖Zᵀp‖²), rounded down, for an excess m that is not too small."""
    theta = _theta(limits)
    p = limits.prior
    # Denominator, rounded up: λ·p + m b − ‖Zᵀp‖².
    along, along_size = Z.T @ p, np.abs(Z).T @ p
    spent = excess * limits.budget
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
    limits: Limits,
    Z: FloatArray,
    multiplier: FloatArray,
    splits: FloatArray | None = None,
    squares: FloatArray | None = None,
    part_splits: FloatArray | None = None,
    outside: FloatArray | None = None,
) -> float:
    """An upper bound on m of the certificate for any number of categories, rounded up.

    Times 1·q, the excess of a row is qᵀPq with P = ZZᵀ − (λ1ᵀ + 1λᵀ)/2. With q = b + a∘1_B that is
    c₀ + Σ_{x ∈ B} (c(x) + Σ_{x' ∈ B, x' ≠ x} R(x, x')), R(x, x') = a(x) a(x') P(x, x') + S(x, x'),
    for any S with S(x', x) = −S(x, x'). For any V the sum of V(x, x') over x ≠ x' outside B may be
    added, as it is linear in the pairs in B, and taken off again. Given |B| = k, an inner sum is at
    most that of the k − 1 largest R(x, ·) if x is in B, and of the n − k − 1 largest −V(x, ·) if
    not; B has the k for which the difference is largest. Any square may be added before; small sets
    are compared one by one (`listed_sizes`).

    Args:
        limits: the prior and the required privacy.
        Z: directions, shape (n, n).
        multiplier: λ, shape (n,).
        splits: S is half of what these differ from their transpose, and half of their sum with it
            V, but for `outside`; None for none.
        squares: R of the square ‖R (1, 1_B)‖² that is added for sets, shape (any, n + 1).
        part_splits: as `splits`, for rows 1_S + φ 1_j.
        outside: h, shape (n,): (h(x') − h(x))/2 is added to V(x, x').

    Raises:
        InputError: if the splits, the squares or h have another shape.

    Source: docs/proofs/frontier.md, Theorem 7.
    """
    n = limits.n_categories
    theta = _theta(limits)
    skew, left_out = _halves(splits, n, "splits")
    h = _table(None if outside is None else np.asarray(outside)[None], 1, n, "outside")[0]
    size = np.abs(Z) @ np.abs(Z).T + (np.abs(multiplier)[:, None] + np.abs(multiplier)) / 2.0
    # That much more of `size` than the product needs covers the sums of the entries below.
    P = Z @ Z.T - (multiplier[:, None] + multiplier) / 2.0 + theta * size
    R = _table(squares, None, n + 1, "squares")
    more = R.T @ R + theta * (1.0 + len(R)) * (np.abs(R).T @ np.abs(R))
    least, part = shape_of_rows(limits)
    largest = listed_sizes(n)[-1]
    if limits.epsilon is not None:
        # Rows p∘(1 + E 1_B), E at least e^ε − 1; of cost 1 they are divided by 1·q.
        gain = math.expm1(limits.epsilon) * (1.0 + theta)
        W = _up(P * np.outer(limits.prior, limits.prior), theta)
        constant = float(W.sum())
        linear = _up(2.0 * gain * W.sum(axis=1), theta) + _up(gain**2 * np.diag(W), theta)
        pairs = _up(gain**2 * W, theta)
        totals = 1.0 + gain * np.cumsum(np.sort(limits.prior))
    else:
        constant, linear, pairs = 0.0, np.diag(P), P
        totals = np.sqrt(np.arange(1.0, n + 1.0))
    best = 0.0
    for k in range(least, min(largest, n) + 1):
        members = sets_of(n, k)
        some = constant + _most_listed(linear, pairs, members, theta)
        total = totals[k - 1]
        if limits.epsilon is not None:
            total = 1.0 + gain * limits.prior[members].sum(axis=1)
        best = max(best, float(_up(some / total**2, theta).max()))
    sizes = np.arange(max(least, largest + 1), n + 1)
    linear = _up(linear + _up(2.0 * more[0, 1:] + np.diag(more)[1:], theta), theta)
    apart = left_out + (h - h[:, None]) / 2.0
    rest = _most_of_sets(linear, pairs + more[1:, 1:], skew, left_out, apart, sizes, theta)
    rest = _up(constant + more[0, 0] + rest, theta)
    best = max(best, float(_up(rest / totals[sizes - 1] ** 2, theta).max(initial=0.0)))
    if part > 0.0:
        halves = _halves(part_splits, n, "part_splits")
        best = max(best, _most_of_parts(P, *halves, least - 1, part, theta))
    return best


_MAX_SETS = 1_000_000


def listed_sizes(n_categories: int) -> range:
    """Sizes of sets that are few enough to be compared one by one: up to 5, and 1 and 2 always.

    >>> listed_sizes(41), listed_sizes(200)
    (range(1, 6), range(1, 3))
    """
    few = [k for k in (3, 4, 5) if math.comb(n_categories, k) <= _MAX_SETS]
    return range(1, 3 + len(few))


def sets_of(n_categories: int, size: int) -> npt.NDArray[np.intp]:
    """All sets of one size, shape (number of sets, size)."""
    every = np.fromiter(chain.from_iterable(combinations(range(n_categories), size)), np.intp)
    return every.reshape(-1, size)


def _table(given: FloatArray | None, n_rows: int | None, width: int, name: str) -> FloatArray:
    table = np.zeros((n_rows or 1, width)) if given is None else np.asarray(given, float)
    fits = table.ndim == 2 and table.shape[1] == width and len(table) == (n_rows or len(table))
    if not fits or not np.isfinite(table).all():
        raise InputError(
            f"certificate: its {name} must be a {n_rows or 'm'} x {width} matrix of finite numbers"
        )
    return table


def _halves(given: FloatArray | None, n: int, name: str) -> tuple[FloatArray, FloatArray]:
    """(S with S(x', x) = −S(x, x'), V with V(x', x) = V(x, x') and V(x, x) = 0)."""
    table = _table(given, n, n, name)
    symmetric = (table + table.T) / 2.0
    np.fill_diagonal(symmetric, 0.0)
    return np.asarray((table - table.T) / 2.0), np.asarray(symmetric)


def _most_listed(
    linear: FloatArray, pairs: FloatArray, members: npt.NDArray[np.intp], theta: float
) -> FloatArray:
    """Σ_{x ∈ B} (linear + Σ_{x' ≠ x} pairs) of each set B, rounded up."""
    some, size = linear[members].sum(axis=1), np.abs(linear)[members].sum(axis=1)
    for a, b in combinations(range(members.shape[1]), 2):
        entry = pairs[members[:, a], members[:, b]]
        some, size = some + 2.0 * entry, size + 2.0 * np.abs(entry)
    return np.asarray(some + theta * size)


def _most_of_parts(
    P: FloatArray,
    skew: FloatArray,
    left_out: FloatArray,
    whole: int,
    part: float,
    theta: float,
) -> float:
    """At least the most of qᵀPq/(1·q) over the rows 1_S + φ 1_j with |S| = ⌊1/δ⌋, j not in S.

    Entry (x, j) of a table is that of x if j is the part; `left_out` counts without j.
    """
    n = len(P)
    apart, size = left_out.sum(axis=1), np.abs(left_out).sum(axis=1)
    linear = _up(np.diag(P), theta)[:, None] + _up(2.0 * part * P, theta)
    linear = _up(linear, theta) - 2.0 * (apart[:, None] - left_out) + 2.0 * theta * size[:, None]
    inner = _up(_up(linear, theta) + _without(_up(P + skew + left_out, theta), whole, theta), theta)
    outer = _without(-left_out, n - whole - 1, theta)
    np.fill_diagonal(outer, 0.0)
    gain = inner - outer + theta * (np.abs(inner) + np.abs(outer))
    np.fill_diagonal(gain, -np.inf)
    largest = -np.sort(-gain, axis=0)[:whole]
    form = largest.sum(axis=0) + outer.sum(axis=0) + apart.sum() - 2.0 * apart
    more = np.abs(largest).sum(axis=0) + np.abs(outer).sum(axis=0) + size.sum() + 2.0 * size
    form = _up(form + theta * more + _up(part**2 * np.diag(P), theta), theta)
    return float(_up(form / (whole + part), theta).max())


def _without(R: FloatArray, number: int, theta: float) -> FloatArray:
    """Entry (x, j): at least the sum of the `number` − 1 largest R(x, ·) but for R(x, x), R(x, j).

    They are the `number` largest without R(x, j), or without the least of them.
    """
    n = len(R)
    if number == 0:
        return np.zeros((n, n))
    others = -np.sort(-R[~np.eye(n, dtype=bool)].reshape(n, n - 1), axis=1)[:, :number]
    rest = others.sum(axis=1)[:, None] - np.maximum(R, others[:, -1:])
    return np.asarray(rest + theta * (np.abs(others).sum(axis=1)[:, None] + np.abs(R)))


def _up(value: FloatArray | float, theta: float) -> FloatArray:
    return np.asarray(value + theta * np.abs(value))


def _most_of_sets(
    linear: FloatArray,
    pairs: FloatArray,
    skew: FloatArray,
    left_out: FloatArray,
    apart: FloatArray,
    sizes: npt.NDArray[np.intp],
    theta: float,
) -> FloatArray:
    """At least the most of Σ_{x ∈ B} (linear + Σ_{x' ≠ x} pairs) over |B| = k for each size k.

    For categories outside B `left_out` is added in pairs, and `apart`, which is `left_out` if each
    two orders of a pair are taken together, is taken off.
    """
    n = len(linear)
    linear = linear - 2.0 * left_out.sum(axis=1) + 2.0 * theta * np.abs(left_out).sum(axis=1)
    inner = _largest(_up(pairs + skew + left_out, theta), theta)[:, sizes - 1]
    inner = _up(_up(linear, theta)[:, None] + inner, theta)
    outer = _largest(-apart, theta)[:, np.maximum(n - sizes - 1, 0)]
    gain = inner - outer + theta * (np.abs(inner) + np.abs(outer))
    ordered = -np.sort(-gain, axis=0)
    most = np.array([ordered[:k, at].sum() for at, k in enumerate(sizes)])
    most += outer.sum(axis=0) + left_out.sum()
    size = np.abs(gain).sum(axis=0) + np.abs(outer).sum(axis=0) + np.abs(left_out).sum()
    return np.asarray(most + theta * size)


def _largest(R: FloatArray, theta: float) -> FloatArray:
    """Entry (x, m): at least the sum of the m largest R(x, ·) but for R(x, x)."""
    n = len(R)
    others = R[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    largest = np.zeros((n, n))
    largest[:, 1:] = np.cumsum(-np.sort(-others, axis=1), axis=1)
    # The rounding of a sum is in proportion to the sum of absolute values, which these bound.
    return np.asarray(largest + theta * np.abs(others).sum(axis=1)[:, None])


def _most_excess(rows: FloatArray, Z: FloatArray, multiplier: FloatArray, theta: float) -> float:
    """m, rounded up."""
    total = rows.sum(axis=1)
    image = np.abs(rows @ Z) + theta * (rows @ np.abs(Z))
    spread = (image * image).sum(axis=1) / total
    price = rows @ multiplier
    size = spread + rows @ np.abs(multiplier)
    return max(0.0, float((spread - price + theta * size).max()))
