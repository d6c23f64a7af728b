"""The strongest product law that preserves given fractions of given covariances.

Under λ-randomization a covariance of attributes a and b is multiplied by λ_a λ_b (Ruiz,
"λ-randomization", equation (9)). Subject to λ_a λ_b ≥ c_ab for some pairs, this finds the λ with
the smallest ε of the record, Σ ε_i, by a primal–dual interior-point method in x_i = −ln λ_i, and
evaluates the bound of docs/proofs/lambda.md, Theorem 6.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import checked_problem

_GAP, _STEPS = 1e-11, 100
"""The gap in nats at which the search ends, and steps at most; 200 attributes take 15."""


@dataclass(frozen=True, eq=False)
class PreservingSolution:
    """The result of the search.

    Attributes:
        attenuation: λ_i, shape (k,). Every demanded product is met in exact arithmetic. Next to 1
            the spacing of floating-point numbers shows in the gap.
        epsilon: Σ ε_i over all attributes, the fixed ones included, in nats.
        lower_bound: no λ that meet the demands have a smaller Σ ε_i, in nats.
    """

    attenuation: FloatArray
    epsilon: float
    lower_bound: float


def solve(
    n_categories: Sequence[int],
    fractions: Mapping[tuple[int, int], float],
    fixed: Mapping[int, float] | None = None,
) -> PreservingSolution:
    """Choose λ by minimising Σ ε_i under λ_a λ_b ≥ c_ab.

    ``n_categories``: a_i, at least 2 each, shape (k,).

    Source: Ruiz, "λ-randomization", equation (9).

    >>> solution = solve([5, 3], {(0, 1): 0.5})
    >>> solution.attenuation.round(4).tolist(), round(solution.epsilon, 4)
    ([0.7007, 0.7135], 4.679)
    """
    sizes = checked_problem(n_categories, [0.0] * len(n_categories)).n_categories
    known = dict(fixed or {})
    _check(len(sizes), fractions, known)
    free = [i for i in range(len(sizes)) if i not in known]
    rows, limits = _demands(fractions, known, free)
    attenuation = np.empty(len(sizes))
    for i, value in known.items():
        attenuation[i] = value
    bound = math.fsum(_epsilon(sizes[i], value) for i, value in known.items())
    if free:
        exponent, prices = _interior_point(sizes[free], rows, limits)
        attenuation[free] = np.exp(-exponent)
        bound += _dual_bound(sizes[free], rows, limits, prices)
        _meet(attenuation, fractions, set(free))
    epsilon = math.fsum(_epsilon(n, value) for n, value in zip(sizes, attenuation, strict=True))
    return PreservingSolution(attenuation, epsilon, min(bound, epsilon))


def _check(k: int, fractions: Mapping[tuple[int, int], float], fixed: Mapping[int, float]) -> None:
    if not fractions:
        raise InputError("preserve: name at least one pair of attributes and a fraction")
    for (a, b), fraction in fractions.items():
        if a == b:
            raise InputError(f"preserve: attribute {a + 1} is paired with itself")
        if not (0 <= a < k and 0 <= b < k):
            raise InputError("preserve: a pair names an attribute that does not exist")
        if not 0 < fraction < 1:
            raise InputError(
                f"preserve: the fraction of a covariance lies between 0 and 1, not at {fraction:g}"
            )
    for i, value in fixed.items():
        if not 0 < value < 1:
            raise InputError(f"preserve: λ of attribute {i + 1} must lie between 0 and 1")
    paired = {i for pair in fractions for i in pair}
    for i in range(k):
        if i not in paired and i not in fixed:
            raise InputError(
                f"preserve: attribute {i + 1} is in no pair, so its λ is undetermined; give its λ "
                "or its strength"
            )


def _demands(
    fractions: Mapping[tuple[int, int], float], fixed: Mapping[int, float], free: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Return A and b of A x ≤ b over the free attributes."""
    place = {i: j for j, i in enumerate(free)}
    rows, limits = [], []
    for (a, b), fraction in fractions.items():
        row = np.zeros(len(free))
        # −ln(c/λ), through the difference where the quotient is near 1.
        allowed = 1.0
        for i in (a, b):
            if i in fixed:
                allowed *= fixed[i]
            else:
                row[place[i]] = 1.0
        if allowed < fraction or (allowed == fraction and row.any()):
            raise InputError(
                f"preserve: the given λ already reduce the covariance of attributes "
                f"{a + 1} and {b + 1} below its fraction of {fraction:g}; raise them or "
                "lower the fraction"
            )
        if row.any():
            rows.append(row)
            limits.append(math.log1p((allowed - fraction) / fraction))
    return np.array(rows).reshape(len(rows), len(free)), np.array(limits)


def _interior_point(
    sizes: FloatArray, rows: FloatArray, limits: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return x and prices, from a primal–dual method that stays strictly inside.

    It stops when the bound that the prices prove is near enough to the ε at x: near the optimum
    rounding keeps the prices from balancing the slopes exactly, and the bound does not need it.
    """
    # Start at a third of the tightest demand on each attribute.
    x = np.min(np.where(rows > 0, limits[:, None], np.inf), axis=0) / 3
    slack = limits - rows @ x
    prices = 1.0 / slack
    best = x, prices, np.inf
    for _ in range(_STEPS):
        gap = _total(sizes, x) - _dual_bound(sizes, rows, limits, prices)
        if gap < best[2]:
            best = x, prices, gap
        if gap <= _GAP:
            break
        aim = 0.1 * float(slack @ prices) / len(limits)
        slope, bend = _derivatives(sizes, x)
        matrix = (rows.T * (prices / slack)) @ rows
        # Where f is flat its bend drowns in rounding; any small bend in its place leads downhill.
        matrix[np.diag_indices_from(matrix)] += np.maximum(bend, 1e-14 * matrix.diagonal())
        step = np.linalg.solve(matrix, -(slope + rows.T @ (aim / slack)))
        price_step = (aim + prices * (rows @ step)) / slack - prices
        length = _longest(x, step, slack, rows, prices, price_step)
        x, prices = x + length * step, prices + length * price_step
        slack = limits - rows @ x
        if slack.min() <= 0:  # no digits left between x and a wall
            break
    return best[0], best[1]


def _total(sizes: FloatArray, x: FloatArray) -> float:
    return math.fsum(np.log1p(sizes / np.expm1(x)))


def _longest(
    x: FloatArray,
    step: FloatArray,
    slack: FloatArray,
    rows: FloatArray,
    prices: FloatArray,
    price_step: FloatArray,
) -> float:
    # Nearly all the way to the first constraint; x shrinks at most fourfold a step, because f bends
    # like a logarithm near 0 and its quadratic model holds no further.
    ratios = [1.0 / 0.99]
    for value, change, part in (
        (x, step, 0.75),
        (slack, -rows @ step, 1.0),
        (prices, price_step, 1.0),
    ):
        falling = change < 0
        if falling.any():
            ratios.append(float((part * value[falling] / -change[falling]).min()))
    return 0.99 * min(ratios)


def _derivatives(sizes: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    above = np.expm1(x)  # y − 1
    y = 1 + above
    slope = -sizes * y / ((above + sizes) * above)
    bend = -slope * (y / above - (sizes - 1) / (above + sizes))
    return slope, bend


def _epsilon(n_categories: float, attenuation: float) -> float:
    return math.log1p(n_categories * (attenuation / (1 - attenuation)))


def _dual_bound(
    sizes: FloatArray, rows: FloatArray, limits: FloatArray, prices: FloatArray
) -> float:
    """Return Σ_i min_x (f_i(x) + s_i x) − ν·b, a lower bound of Σ f_i for any prices ν > 0."""
    s = rows.T @ prices
    # With z = y − 1 the stationary point solves s z² + a(s − 1) z − a = 0.
    half = sizes * (s - 1) / 2
    root = np.sqrt(half**2 + s * sizes)
    z = np.where(half > 0, sizes / (root + np.maximum(half, 0)), (root - half) / s)
    return math.fsum(np.log1p(sizes / z) + s * np.log1p(z)) - math.fsum(prices * limits)


def _meet(
    attenuation: FloatArray, fractions: Mapping[tuple[int, int], float], free: set[int]
) -> None:
    """Raise free λ by single floats until every product holds exactly."""
    from fractions import Fraction

    for (a, b), fraction in fractions.items():
        movable = [i for i in (a, b) if i in free]
        while (
            movable
            and max(attenuation[movable]) < 1
            and Fraction(float(attenuation[a])) * Fraction(float(attenuation[b]))
            < Fraction(fraction)
        ):
            for i in movable:
                attenuation[i] = math.nextafter(attenuation[i], 1.0)
        if movable and max(attenuation[movable]) >= 1:
            raise InputError(
                f"preserve: a fraction of {fraction:g} is too near 1 for attributes "
                f"{a + 1} and {b + 1}"
            )
