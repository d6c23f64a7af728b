"""Lower bound on the variance of shares under any mechanism of a record level.

With I_i Fisher's information on attribute i per row and per free share at the uniform truth, the
variance of a cell is at least (a_i − 1)/(a_i² I_i). The I_i satisfy docs/proofs/forms.md, Theorems
4 and 5. With the best prices for given multipliers, Σ κ_i/I_i for costs κ is at least

    D(λ, ν) = Σ_i min_x {κ_i (a_i − 1)/x + λ x + ν KL_i(x)} − max_m {λ X_m + ν K_m},

where KL_i(x) is the least over answers with mean χ² x. D is concave; maximising it is a linear
program with a row for every x and every m.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import MAX_LEVEL, checked_problem
from deniable.solvers import highs

_POINTS = 3000
"""Ranges of sizes m, and laws p among which prices are chosen: 1,000 prove 0.1 % less of Adult."""


def least_share_variance(
    n_categories: Sequence[int], epsilon: float, importance: Sequence[float] | None = None
) -> float:
    """Return a lower bound on the mean variance of shares under any ε-private mechanism, per row.

    The mean is over an attribute's cells, and over attributes by their importance, at the uniform
    truth; n rows have an n-th of it.

    ``n_categories``: a_i, shape (k,). ``epsilon``: of the record, in nats. ``importance``: weight
    of each attribute, shape (k,).

    >>> round(least_share_variance((2, 2), 1.0), 3), least_share_variance((2, 2), 2.0) < 1
    (2.07, True)
    """
    k = checked_problem(n_categories, [1.0] * len(n_categories)).n_attributes
    if not 0 < epsilon <= MAX_LEVEL:
        raise InputError(f"a limit is for a total above 0 and up to {MAX_LEVEL:g} nats")
    given = np.ones(k) if importance is None else np.asarray(importance, dtype=np.float64)
    kinds = zip(n_categories, (given / given.sum()).tolist(), strict=True)
    return _least(tuple(sorted(Counter(kinds).items())), float(epsilon))


@lru_cache(maxsize=256)
def _least(kinds: tuple[tuple[tuple[int, float], int], ...], epsilon: float) -> float:
    """Return the bound for kinds of attributes: categories and part of the importance, and number
    there are."""
    n = np.array([kind[0] for kind, _ in kinds], dtype=np.float64)
    costs = np.array([kind[1] for kind, _ in kinds]) * (n - 1) / n**2
    members = np.array([number for _, number in kinds], dtype=np.float64)
    paid = costs * (n - 1)
    trace = float((members * np.sqrt(paid)).sum()) ** 2 / math.sinh(epsilon / 2) ** 2
    least = max(trace, float(members @ costs))  # I_i = 1 without any privacy
    # Sums are right to a part in 10¹² or so; the bound is lowered by a thousand times that.
    return (1 - 1e-9) * max(least, _entropy_bound(n, paid, members, epsilon, least))


def _entropy_bound(
    n: FloatArray, paid: FloatArray, members: FloatArray, epsilon: float, unit: float
) -> float:
    """Return the best entropy bound found."""
    sizes = np.stack(_answers(epsilon), axis=1)  # X_m and K_m
    # From where KL still has eight digits to where p is 1 in doubles.
    logits = np.geomspace(1e-4, 60.0, _POINTS)
    square, entropy = _distances(logits[:, None], n)
    # The least KL of a mean of χ²: some answers may have no information on the attribute.
    dearest = np.argmin(entropy / square, axis=0)[None]
    tangent = np.take_along_axis(square, dearest, axis=0)
    below = square < tangent
    slope = np.where(
        below,
        np.take_along_axis(entropy, dearest, axis=0) / tangent,
        logits[:, None] * np.sqrt((n - 1) / square) / (2 * n),  # dKL/dχ²
    )
    entropy = np.where(below, square * slope, entropy)
    # λ and ν are in units that spend the unit on all of X, or of K.
    scale = unit / sizes.max(axis=0)
    lines = np.stack([paid / square, scale[0] * square, scale[1] * entropy], axis=2) / unit
    # λ and ν from a 15th of the rows lower the bound by less than 10⁻⁴.
    lam, nu = _multipliers(lines[::15], sizes[::15] * scale / unit, members) * scale
    at = (paid / square + lam * square + nu * entropy).argmin(axis=0)
    kinds = np.arange(len(n))
    # C/(a − 1): at the optimum both derivatives are the same, but one is steady where KL(x) is a
    # line and the other where x cannot be larger.
    prices = np.where(
        square[at, kinds] < 0.99 * (n - 1),
        lam + nu * slope[at, kinds],
        paid / square[at, kinds] ** 2,
    )
    most = members @ _largest(np.maximum(prices - lam, 0.0), nu, n)
    most += (sizes @ np.array([lam, nu])).max()
    return float((members * np.sqrt(paid * prices)).sum()) ** 2 / float(most)


def _multipliers(lines: FloatArray, sizes: FloatArray, members: FloatArray) -> FloatArray:
    """Return λ and ν that maximise D, neither of them 0.

    ``lines``: constants and factors of λ and ν, of each law and kind, shape (laws, kinds, 3).
    ``sizes``: the factors of both for every size, shape (sizes, 2).
    """
    laws, kinds, _ = lines.shape
    # Of λ, ν, a d_i for each kind, and h: members·d − h, d_i below its lines, h above all sizes.
    rows = np.zeros((laws * kinds + len(sizes), kinds + 3))
    of_lines, of_sizes = np.split(rows, [laws * kinds])
    of_lines[:, :2] = -lines[:, :, 1:].reshape(-1, 2)
    of_lines[:, 2:-1] = np.tile(np.eye(kinds), (laws, 1))
    of_sizes[:, :2], of_sizes[:, -1] = sizes, -1.0
    upper = np.append(lines[:, :, 0].ravel(), np.zeros(len(sizes)))
    program = highs.Program(
        cost=np.concatenate([[0.0, 0.0], -members, [1.0]]),
        lower=np.append([0.0, 0.0], np.full(kinds + 1, -highs.INFINITY)),
        upper=np.full(kinds + 3, highs.INFINITY),
        rows=highs.dense_rows(rows),
        row_lower=np.full(len(rows), -highs.INFINITY),
        row_upper=upper,
    )
    found = highs.run(program)
    # Unsolved where no law is near so little information on so many attributes; any values serve.
    return np.ones(2) if found.status != "optimal" else np.maximum(found.x[:2], 1e-12)


def _largest(slope: FloatArray, nu: float, n: FloatArray) -> FloatArray:
    """Return max_p [slope χ²(p) − ν KL(p)] for each n, over laws with one large category.

    Along the logit ℓ of that category the derivative has the sign of
    f(ℓ) = 2 slope n (np − 1)/(n − 1) − ν ℓ, which from its maximum at
    2 slope n² p (1 − p) = ν (n − 1), p > ½, falls to a single zero: there the value is largest, or
    at the uniform law, where it is 0.
    """
    steep = 2 * slope * n**2 / (n - 1)
    p = (1 + np.sqrt(np.maximum(1 - 4 * nu / np.maximum(steep, 1e-300), 0.0))) / 2
    left = np.log(n - 1) + np.log(p) - np.log1p(-np.minimum(p, 1 - 1e-16))
    right = np.maximum(steep * (n - 1) / n / nu, left)  # f is at most 0 there
    for _ in range(80):
        middle = (left + right) / 2
        rises = steep * (1 / (1 + (n - 1) * np.exp(-middle)) - 1 / n) > nu * middle
        left, right = np.where(rises, middle, left), np.where(rises, right, middle)
    square, entropy = _distances(left, n)
    # KL is right to 10⁻¹⁴.
    return np.asarray(np.maximum(slope * square - nu * (entropy - 1e-14), 0.0))


def _distances(logit: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return χ² and KL, from the uniform law, of the law with one category e^logit times as likely
    as each other."""
    rest = (n - 1) * np.exp(-logit)
    square = (n - 1) * (-np.expm1(-logit) / (1 + rest)) ** 2
    return square, np.log(n) - np.log1p(rest) - rest / (1 + rest) * logit


def _answers(epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Return X_m and K_m, the most of each over a range of sizes m; the ranges cover 0 to 1.

    With q the probability of the set given the answer, X_m = e^ε q/d + (1 − q)/d − 1 and
    K_m = ε q − ln d, d = 1 + (e^ε − 1) m. Each rises up to one size and falls from there.
    """
    odds = math.expm1(epsilon)
    peaks = [1 / (odds + 2), ((1 + odds) * epsilon / odds - 1) / odds]
    logits = np.concatenate(
        [np.linspace(-epsilon - 12, 12, _POINTS), [math.log(m) - math.log1p(-m) for m in peaks]]
    )
    size = np.sort(1 / (1 + np.exp(-logits)))
    size = np.concatenate([[0.0], size, [1.0]])
    total = 1 + odds * size
    square = (odds / total) * (odds * size / total) * (1 - size)
    entropy = (1 + odds) * size / total * epsilon - np.log(total)
    return np.maximum(square[1:], square[:-1]), np.maximum(entropy[1:], entropy[:-1])
