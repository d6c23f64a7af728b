"""Privacy accounting: ε in nats, from the integers the sampler draws from, rounded up.

Neighbouring records are any two records that agree on the unchanged columns. A law returns exact
ratios of probabilities; this module takes their logarithms. Every result is an upper bound of the
true logarithm, at most one unit in the last place above it, and is the same on every machine:
decimal arithmetic from the standard library, no C mathematics. Laws of many weighted attributes
return bounds in nats, of the law as drawn (:class:`~deniable.laws.law.BoundedLaw`): those are above
the truth by parts in 10^12. ``math.inf`` means unbounded.

Observers: docs/guarantees.md; proofs: docs/proofs/accounting.md, Theorem 5.
"""

import math
from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction

from deniable.laws.law import Law, Level, Ratio, checked_arithmetic
from deniable.laws.rounding import rounded_up

_DIGITS = 60
"""Decimal digits of logarithms; a double has seventeen, and weights have 64 bits and more."""
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
# decimal's ln is rounded to the nearest, so one unit more or less makes it a bound.
_LN_2_ABOVE = _UP.next_plus(_UP.ln(Decimal(2)))
_LN_2_BELOW = _UP.next_minus(_UP.ln(Decimal(2)))
_KEEP_BITS = 256
"""Of an integer that is wider: more than the 200 bits that sixty digits hold."""

_CLOSE_BITS = 60
"""A ratio nearer to 1 than 2 to the minus this has a series in place of a quotient."""


def nats_text(level: str) -> str:
    """Return a level, already formatted, with its unit.

    >>> nats_text("1.0000"), nats_text("1"), nats_text("1,200")
    ('1.0000 nat', '1 nat', '1,200 nats')
    """
    return f"{level} {'nat' if float(level.replace(',', '')) == 1 else 'nats'}"


def finite_or_none(value: float) -> float | None:
    """Return a number for JSON: None for "unbounded" or "not defined"."""
    return float(value) if math.isfinite(value) else None


def _log_ratio(ratio: Ratio) -> Decimal:
    """Return an upper bound of ln(numerator/denominator), within about 1e-40 of it relatively."""
    numerator, denominator = ratio
    if numerator == denominator:
        return Decimal(0)
    excess = numerator - denominator
    if excess > 0 and excess.bit_length() + _CLOSE_BITS < denominator.bit_length():
        # Sixty digits of a quotient so close to 1 would hold little of the excess, so use
        # ln(1 + d) <= d − d²/2 + d³/3 = d (1 − d (1/2 − d/3)), within d⁴/4 of it. The inner
        # roundings are worth less than d units in the last place; one more unit covers them.
        d = _UP.divide(Decimal(excess), Decimal(denominator))
        inner = _UP.subtract(Decimal("0.5"), _UP.divide(d, Decimal(3)))
        return _UP.next_plus(_UP.multiply(d, _UP.subtract(Decimal(1), _UP.multiply(d, inner))))
    # Integers far wider than the precision are cut to 256 bits first, outwards.
    up = max(0, numerator.bit_length() - _KEEP_BITS)
    down = max(0, denominator.bit_length() - _KEEP_BITS)
    if up:
        numerator = (numerator >> up) + 1
    if down:
        denominator >>= down
    quotient = _UP.divide(Decimal(numerator), Decimal(denominator))
    logarithm = _UP.next_plus(_UP.ln(quotient))
    ln_2 = _LN_2_ABOVE if up > down else _LN_2_BELOW
    return _UP.add(logarithm, _UP.multiply(Decimal(up - down), ln_2)) if up != down else logarithm


def epsilon_of(level: Level) -> float:
    """Return ε in nats, rounded up: the logarithm of a product of likelihood ratios, or the law's
    own bound.

    The laws give each ratio with its larger number above, so that none is below one.

    >>> epsilon_of(((3, 1), (2, 1)))
    1.7917594692280552
    """
    if isinstance(level, float):
        return level
    total = Decimal(0)
    for ratio in level:
        total = _UP.add(total, _log_ratio(ratio))
    return max(0.0, rounded_up(total))


@checked_arithmetic()
def record_epsilon(law: Law, subset: Sequence[int] | None = None) -> float:
    """Return ε of a block, or of a subset of its columns (positions), in nats."""
    return epsilon_of(law.record_level(subset))


@checked_arithmetic()
def attribute_epsilon(law: Law) -> tuple[float, ...]:
    """Return ε per attribute against an observer of that column alone, shape (k,), in nats."""
    return tuple(map(epsilon_of, law.attribute_levels()))


@checked_arithmetic()
def attribute_epsilon_floor(law: Law) -> tuple[float, ...]:
    """Return ε per attribute alone, rounded down, shape (k,), in nats.

    :func:`attribute_epsilon` is at most one unit in the last place above the level of a law with
    exact ratios; a law with error bounds has a lower one of its own.

    >>> from deniable.laws import MatrixChannel
    >>> warner = MatrixChannel((2,), 2, ((3, 1), (1, 3)))
    >>> attribute_epsilon_floor(warner)[0] < math.log(3) <= attribute_epsilon(warner)[0]
    True
    """
    floors = law.attribute_floors()
    if floors is not None:
        return tuple(floors)
    return tuple(math.nextafter(level, 0.0) for level in attribute_epsilon(law))


@checked_arithmetic()
def epsilon_given_rest(law: Law) -> tuple[float, ...]:
    """Return ε per attribute against an observer of the whole released record with knowledge of all
    other true values, shape (k,), in nats.
    """
    return tuple(map(epsilon_of, law.given_rest_levels()))


CLOSE = 1.01
"""A level given the rest is called a bound ("at most") if the ε of some output is not known to be
within this factor of it."""


@checked_arithmetic()
def given_rest_at_most(law: Law) -> tuple[bool, ...]:
    """Return per attribute whether :func:`epsilon_given_rest` may exceed the true level by more
    than one per cent, shape (k,).
    """
    floors = law.given_rest_floors()
    if floors is None:
        return (False,) * len(law.n_categories)
    levels = epsilon_given_rest(law)
    return tuple(level > CLOSE * floor for level, floor in zip(levels, floors, strict=True))


def compose(levels: Iterable[float], times: int = 1) -> float:
    """Return the ε of independent blocks released together: the sum of their levels, rounded up, in
    nats.
    """
    # In fractions, since a small float can have more than sixty decimal digits: one block alone
    # must keep its level to the last bit.
    total = Fraction(0)
    for level in levels:
        if math.isinf(level):
            return math.inf
        total += Fraction(level)
    return rounded_up(total * times)
