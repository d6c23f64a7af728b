"""One attribute under k-ary randomized response, and its parameters.

ε is the stored parameter: it alone loses no digits where λ, strength or keep probability come
within rounding of 0 or 1. There, use their complements. All are floating-point numbers, right to a
few units in the last place; the law made from them has integers rounded the safe way
(:mod:`deniable.design.strength`). Source: docs/proofs/lambda.md, Theorem 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from deniable.errors import InputError

MOST_EPSILON = 700.0
"""e^700 is near the largest double; a level like that protects no value."""

_LEAST_EPSILON = 1e-150
"""Strength falls short of 1 by about ε²; below this the shortfall is no longer a double."""


_Number = TypeVar("_Number", float, Decimal)


def keep_of_fall(n_categories: int, fall: _Number) -> _Number:
    """Return p = 1/(1 + (a − 1) t), t = e^−ε (docs/proofs/lambda.md, Theorem 1; Warner 1965 for
    a = 2): no overflow at large ε."""
    return 1 / (1 + (n_categories - 1) * fall)


def keep_probability(n_categories: int, attribute_epsilon: float) -> float:
    """Return p = e^ε/(e^ε + a − 1), the keep probability at a level in nats.

    >>> keep_probability(3, 0.0) == 1 / 3
    True
    """
    return keep_of_fall(n_categories, math.exp(-attribute_epsilon))


def attenuation(n_categories: int, attribute_epsilon: float) -> float:
    """Return φ = (a·p − 1)/(a − 1) = (e^ε − 1)/(e^ε + a − 1), free of cancellation at small ε."""
    if attribute_epsilon > 1:
        t = math.exp(-attribute_epsilon)
        return -math.expm1(-attribute_epsilon) / (1.0 + (n_categories - 1) * t)
    excess = math.expm1(attribute_epsilon)
    return excess / (excess + n_categories)


@dataclass(frozen=True)
class Response:
    """k-ary randomized response of one attribute.

    ``n_categories``: a (Ruiz: r), at least 2. ``epsilon``: level in nats, above 0 and at most 700.

    >>> response = Response(2, math.log(9))
    >>> round(response.epsilon, 6), round(response.attenuation, 6), round(response.strength, 6)
    (2.197225, 0.8, 0.468996)
    """

    n_categories: int
    epsilon: float

    def __post_init__(self) -> None:
        _check_categories(self.n_categories)
        if not 0 < self.epsilon <= MOST_EPSILON:
            raise InputError(
                f"a privacy level lies above 0 and at most at {MOST_EPSILON:g} nats, not at "
                f"{self.epsilon:g}"
            )

    @classmethod
    def from_attenuation(cls, n_categories: int, attenuation: float) -> "Response":
        """Return the response with this λ (equation (6))."""
        check_attenuation(attenuation)
        _check_categories(n_categories)
        return cls(n_categories, math.log1p(n_categories * (attenuation / (1 - attenuation))))

    @classmethod
    def from_strength(cls, n_categories: int, strength: float) -> "Response":
        """Return the least randomized response whose :attr:`strength` is not below this."""
        _check_between(strength, 0.0, 1.0, "the strength")
        if strength > 0.5:
            # 1 − s is exact from here on, and near s = 1 only the shortfall has digits.
            return cls.from_strength_shortfall(n_categories, 1 - strength)
        _check_categories(n_categories)
        return cls(
            n_categories, _largest(lambda e: cls(n_categories, e).strength >= strength, "strength")
        )

    @classmethod
    def from_strength_shortfall(cls, n_categories: int, shortfall: float) -> "Response":
        """Return the least randomized response whose :attr:`strength_shortfall` is not above
        this."""
        _check_between(shortfall, 0.0, 1.0, "the shortfall of the strength from 1")
        _check_categories(n_categories)
        return cls(
            n_categories,
            _largest(lambda e: cls(n_categories, e).strength_shortfall <= shortfall, "strength"),
        )

    @property
    def _t(self) -> float:
        return math.exp(-self.epsilon)

    @property
    def _denominator(self) -> float:
        return 1 + (self.n_categories - 1) * self._t

    @property
    def attenuation(self) -> float:
        """λ = φ, the attenuation of a contrast of this attribute."""
        return -math.expm1(-self.epsilon) / self._denominator

    @property
    def keep_probability(self) -> float:
        """p, the diagonal of P."""
        return keep_probability(self.n_categories, self.epsilon)

    @property
    def change_probability(self) -> float:
        """1 − p."""
        return (self.n_categories - 1) * self._t / self._denominator

    @property
    def entropy(self) -> float:
        """H(P) in bits: the entropy of a row, as all rows have the same.

        −ln p = ln D and −ln((1 − p)/(a − 1)) = ε + ln D, so H = ln D + (1 − p)ε in nats.
        """
        nats = math.log1p((self.n_categories - 1) * self._t)
        return (nats + self.change_probability * self.epsilon) / math.log(2)

    @property
    def strength(self) -> float:
        """H(P)/log₂ a, the β of bistochastic privacy (Ruiz, Definition 1)."""
        return self.entropy * math.log(2) / math.log(self.n_categories)

    @property
    def strength_shortfall(self) -> float:
        """1 − H(P)/log₂ a, to full relative accuracy."""
        return entropy_shortfall(self.n_categories, self.attenuation) / math.log2(self.n_categories)


def entropy_shortfall(n_categories: int, attenuation: float) -> float:
    """Return log₂ a − H(P) in bits, free of cancellation where it is small.

    It is the relative entropy of a row to the uniform one. With g(x) = (1 + x) ln(1 + x) − x, the
    terms of first order in λ cancel and (g((a − 1)λ) + (a − 1) g(−λ))/a remains, a sum of
    non-negative terms.
    """
    others = n_categories - 1
    nats = (_entropy_excess(others * attenuation) + others * _entropy_excess(-attenuation)) / (
        n_categories
    )
    return nats / math.log(2)


def _entropy_excess(x: float) -> float:
    # g(x) = (1 + x) ln(1 + x) − x = x²/2 − x³/6 + x⁴/12 − …; the series where the formula cancels.
    if x <= -1:
        return 1.0
    if abs(x) > 0.25:
        return (1 + x) * math.log1p(x) - x
    total = 0.0
    for n in range(28, 1, -1):
        total = 1 / (n * (n - 1)) - x * total
    return x * x * total


def check_attenuation(attenuation: float, where: str = "") -> float:
    """Return λ as a float."""
    return _check_between(attenuation, 0.0, 1.0, f"{where}λ")


def _largest(keeps: Callable[[float], bool], name: str) -> float:
    """Return the largest level with a property that all smaller ones have, to the last float."""
    low, high = _LEAST_EPSILON, MOST_EPSILON
    if not keeps(low):
        raise InputError(f"the {name} is out of reach: it is too near 1")
    if keeps(high):
        raise InputError(f"the {name} is out of reach: it is too near 0")
    while True:
        # Halve the exponent first, then the interval.
        middle = math.sqrt(low) * math.sqrt(high) if high > 2 * low else low + (high - low) / 2
        if not low < middle < high:
            return low
        if keeps(middle):
            low = middle
        else:
            high = middle


def _check_categories(n_categories: int) -> None:
    if isinstance(n_categories, bool) or n_categories != int(n_categories) or n_categories < 2:
        raise InputError("an attribute needs a whole number of categories, at least 2")
    if n_categories > 1 << 1000:
        raise InputError("conversions are made for up to 2^1000 categories")


def _check_between(value: float, low: float, high: float, name: str) -> float:
    number = _number(value, name)
    if not low < number < high:
        raise InputError(f"{name} must lie between {low:g} and {high:g}, not at {number:g}")
    return number


def _number(value: float, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number") from None
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number")
    return number
