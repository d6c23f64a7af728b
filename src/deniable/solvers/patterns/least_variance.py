"""The least variance of shares that any mechanism of a record level can have.

Any mechanism: any outputs, for rows one at a time, nothing assumed of the estimate but that it is
unbiased. What an answer tells of attribute i is I_i, Fisher's information per person and per free
share at the uniform truth, and the variance of a cell is at least (a_i − 1)/(a_i² I_i). Two
inequalities hold for the I_i of every ε-private mechanism together, M = e^ε:

*Trace* (docs/proofs/forms.md, Theorem 4): Σ (a_i − 1) I_i ≤ (M − 1)²/(4M).

*Entropy* (Theorem 5): an answer that is M times as likely on a set of measure m as elsewhere has
Σ χ²_i ≤ X_m and Σ KL_i ≤ K_m, where χ²_i and KL_i are the distances of attribute i's law given the
answer from the uniform one; and among laws on a categories with the same KL the largest χ² has one
large category and the rest equal. So for any prices C and any multipliers λ, ν ≥ 0

    Σ C_i I_i ≤ H = max_m {Σ_i max_p [(C_i/(a_i − 1) − λ) χ²_i(p) − ν KL_i(p)] + λ X_m + ν K_m},

and Σ κ_i/I_i ≥ (Σ √(κ_i C_i))²/H for costs κ by Cauchy and Schwarz. Prices and multipliers are
searched for; whatever they are, the bound holds.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.solvers.problem import MAX_LEVEL, checked_problem

_SAFE = 1 - 1e-9
"""Sums and logarithms are right to a part in 10¹² or so; the bound gives way by a thousand times
that."""

_SIZES, _POINTS, _MULTIPLIERS, _POLISHED = 120, 160, 12, 8
"""Ranges of sizes m, points of the laws p, values of λ and of ν, and pairs of them that are
searched for besides: twice as many of each raise the bounds of Adult by 0.2 % at most."""

_LAST_LOGIT = 60.0
"""The law p that gives one category e^60 times what another gets is as good as certain."""


def least_share_variance(
    n_categories: Sequence[int], epsilon: float, importance: Sequence[float] | None = None
) -> float:
    """Return a number that no ε-private mechanism's mean variance of shares is below, for one row.

    The mean is over the cells of an attribute, and over attributes by their importance, at the
    uniform truth; n rows have an n-th of it.

    Args:
        n_categories: a_i, shape (k,).
        epsilon: of the record, in nats.
        importance: how much each attribute counts, shape (k,).

    Raises:
        InputError: if an argument is out of its range.

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
    """Return the bound for kinds of attributes: categories and part of the importance, and how many
    there are."""
    n = np.array([kind[0] for kind, _ in kinds], dtype=np.float64)
    costs = np.array([kind[1] for kind, _ in kinds]) * (n - 1) / n**2
    members = np.array([number for _, number in kinds], dtype=np.float64)
    trace = float((members * np.sqrt(costs * (n - 1))).sum()) ** 2 / math.sinh(epsilon / 2) ** 2
    return _SAFE * max(trace, _Entropy(n, costs, members, epsilon).bound())


class _Entropy:
    """The entropy bound; attributes that are alike are counted together.

    Args:
        n: categories of each kind of attribute.
        costs: κ of one attribute of each kind.
        members: attributes of each kind.
        epsilon: of the record.
    """

    def __init__(
        self, n: FloatArray, costs: FloatArray, members: FloatArray, epsilon: float
    ) -> None:
        self._n, self._costs, self._members = n, costs, members
        self._square, self._entropy = _answers(epsilon)
        dense = min(epsilon + 3, _LAST_LOGIT - 1)  # where answers can be; beyond, for the bound
        self._logits = np.append(np.linspace(0.0, dense, _POINTS), _LAST_LOGIT)
        square, entropy = _distances(self._logits[:, None], n)
        self._laws = square.T.copy(), entropy.T.copy()
        self._mixed = _mixed_laws(np.linspace(1e-3, dense, 20 * _POINTS)[:, None], n)

    def bound(self) -> float:
        """Return the best bound that is found."""

        # Prices for which some answer is optimal: with x_i = (a_i − 1) I_i, where the slopes of
        # κ_i (a_i − 1)/x and of −(λ x + ν KL_i(x)) agree. Two numbers to search for.
        def loss(logs: FloatArray) -> float:
            return -math.log(self._at(self._prices(logs), 1)[0])

        starts = [np.array(start) for start in product((-8.0, -5.0, -2.0), (-3.0, -1.0, 1.0))]
        logs = _lowest(loss, min(starts, key=loss), 24)
        prices = self._prices(logs)
        _, multipliers = self._at(prices, _POLISHED)
        lam, nu = multipliers
        inner = self._exact(prices, lam, nu)
        most = (inner[:, None] + np.outer(lam, self._square) + np.outer(nu, self._entropy)).min(0)
        return self._total(prices) / float(most.max())

    def _prices(self, logs: FloatArray) -> FloatArray:
        """Return prices C, the largest of them C_i/(a_i − 1) being 1."""
        first, second = np.exp(logs)
        square, entropy = self._mixed
        # Over the points of the law: the least κ (a − 1)/x + first x + second KL(x).
        worth = self._costs * (self._n - 1)
        worth = worth / worth.max()
        value = worth / np.maximum(square, 1e-300) + first * square + second * entropy
        information = np.take_along_axis(square, np.argmin(value, axis=0)[None], axis=0)[0]
        paid = worth / information**2
        return np.asarray((self._n - 1) * paid / paid.max())

    def _total(self, prices: FloatArray) -> float:
        return float((self._members * np.sqrt(self._costs * prices)).sum()) ** 2

    def _at(self, prices: FloatArray, polished: int) -> tuple[float, tuple[FloatArray, FloatArray]]:
        """Return about what these prices prove, and the multipliers that prove it."""
        grid = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, _MULTIPLIERS)])
        lam = np.repeat(grid, _MULTIPLIERS + 1)
        nu = np.tile(np.concatenate([[0.0], np.geomspace(1e-3, 1e3, _MULTIPLIERS)]), len(grid))
        values = self._inner(prices, lam, nu)[:, None]
        table = values + np.outer(lam, self._square) + np.outer(nu, self._entropy)
        best, most = table.argmin(axis=0), table.min(axis=0)
        for _ in range(polished):
            worst = int(np.argmax(most))
            at = self._square[worst], self._entropy[worst]

            def dual(logs: FloatArray, at: tuple[float, float] = at) -> float:
                first, second = np.exp(logs)
                inner = self._inner(prices, np.array([first]), np.array([second]))
                return float(inner[0] + first * at[0] + second * at[1])

            start = np.log(np.array([lam[best[worst]], nu[best[worst]]]) + 1e-4)
            logs = _lowest(dual, start, 22)
            lam, nu = np.append(lam, np.exp(logs[0])), np.append(nu, np.exp(logs[1]))
            new = self._inner(prices, lam[-1:], nu[-1:])[0]
            new = new + lam[-1] * self._square + nu[-1] * self._entropy
            settled = new[worst] > most[worst] * (1 - 1e-4)
            best = np.where(new < most, len(lam) - 1, best)
            most = np.minimum(most, new)
            if settled:
                break
        return self._total(prices) / float(most.max()), (lam, nu)

    def _inner(self, prices: FloatArray, lam: FloatArray, nu: FloatArray) -> FloatArray:
        """Return Σ_i max_p[…] over the points of the laws, shape (multipliers,)."""
        square, entropy = self._laws
        slope = np.maximum(prices / (self._n - 1) - lam[:, None], 0.0)
        best = (slope[:, :, None] * square - nu[:, None, None] * entropy).max(axis=2)
        return np.asarray(np.maximum(best, 0.0) @ self._members)

    def _exact(self, prices: FloatArray, lam: FloatArray, nu: FloatArray) -> FloatArray:
        """Return the same over all p, rounded up."""
        slope = np.maximum(prices / (self._n - 1) - lam[:, None], 0.0)
        nu = nu[:, None]

        def rises(logit: FloatArray) -> NDArray[np.bool_]:
            p = 1 / (1 + (self._n - 1) * np.exp(-logit))
            return np.asarray(2 * slope * self._n * (self._n * p - 1) / (self._n - 1) > nu * logit)

        # The value can be largest at the uniform law, where it is 0, or at the last p up to which
        # it rises.
        left = np.full(slope.shape, 0.0)
        for logit in self._logits[1:]:
            left = np.where(rises(np.full(slope.shape, logit)), logit, left)
        at = np.searchsorted(self._logits, left)
        right = np.append(self._logits, _LAST_LOGIT + 1)[at + 1]
        for _ in range(24):
            middle = (left + right) / 2
            up = rises(middle)
            left, right = np.where(up, middle, left), np.where(up, right, middle)
        square, entropy = _distances(left, self._n)
        value = np.maximum(slope * square - nu * entropy, 0.0)
        return np.asarray((self._members * value).sum(axis=1) * (1 + 1e-10))


def _lowest(function: Callable[[FloatArray], float], start: FloatArray, steps: int) -> FloatArray:
    """Return where a function of two numbers is about lowest (Nelder and Mead)."""
    from scipy.optimize import minimize  # only here: loading it takes a tenth of a second

    corners = start + np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    options: Any = {"initial_simplex": corners, "maxiter": steps, "xatol": 1e-3, "fatol": 1e-4}
    return np.asarray(minimize(function, start, method="Nelder-Mead", options=options).x)


def _distances(logit: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return χ² and KL, from the uniform law, of the law that gives one category e^logit times
    what each other gets."""
    rest = (n - 1) * np.exp(-logit)
    square = (n - 1) * (-np.expm1(-logit) / (1 + rest)) ** 2
    return square, np.log(n) - np.log1p(rest) - rest / (1 + rest) * logit


def _mixed_laws(logits: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return χ² and the least KL that answers can have together: some of them may tell nothing of
    the attribute, and others more than the mean."""
    square, entropy = _distances(logits, n)
    dearest = np.argmin(entropy / square, axis=0)[None]
    tangent = np.take_along_axis(square, dearest, axis=0)
    fewest = np.take_along_axis(entropy, dearest, axis=0)
    return square, np.where(square < tangent, square / tangent * fewest, entropy)


def _answers(epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Return X_m and K_m, the most of each over a range of sizes m; the ranges cover 0 to 1.

    With q the probability of the set given the answer, X_m = e^ε q/d + (1 − q)/d − 1 and
    K_m = ε q − ln d, d = 1 + (e^ε − 1) m. Each rises up to one size and falls from there.
    """
    odds = math.expm1(epsilon)
    peaks = [1 / (odds + 2), ((1 + odds) * epsilon / odds - 1) / odds]
    logits = np.concatenate(
        [np.linspace(-epsilon - 12, 12, _SIZES), [math.log(m) - math.log1p(-m) for m in peaks]]
    )
    size = np.sort(1 / (1 + np.exp(-logits)))
    size = np.concatenate([[0.0], size, [1.0]])
    total = 1 + odds * size
    square = (odds / total) * (odds * size / total) * (1 - size)
    entropy = (1 + odds) * size / total * epsilon - np.log(total)
    return np.maximum(square[1:], square[:-1]), np.maximum(entropy[1:], entropy[:-1])
