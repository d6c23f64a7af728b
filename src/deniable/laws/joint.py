"""One randomized response on whole records: unchanged, or replaced by another record.

As a law of one score its density is e^ε times as large where nothing is changed as elsewhere (Ruiz,
λ-randomization, section 3; docs/proofs/lambda.md, Theorem 5).
"""

import math
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from deniable.errors import InputError
from deniable.laws.patterns import n_records
from deniable.laws.score import MOST_STEPS, ScoreTable

_GUARD_BITS = 64
"""Bits of the difference of the two densities."""


def joint_of_epsilon(n_categories: Sequence[int], epsilon: float) -> ScoreTable:
    """Return the law whose record level is ε nats, never above and within 2⁻⁵⁰ of ε below.

    >>> law = joint_of_epsilon((2, 3), 1.0)
    >>> law.attenuations().round(6).tolist(), law.eigenvalues((0, 1)).round(6).tolist()
    ([0.222625, 0.222625], [[1.0, 0.222625], [0.222625, 0.222625]])
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"the level of the joint law must be above 0 nats, not {epsilon:g}")
    # Digits: 60, and as many as e^ε needs to differ from 1.
    down = Context(
        prec=60 + max(0, -math.floor(math.log10(epsilon))),
        rounding=ROUND_FLOOR,
        Emax=MAX_EMAX,
        Emin=MIN_EMIN,
    )
    # decimal's exp is rounded to nearest; one unit less makes it a lower bound.
    return _of_ratio(n_categories, Fraction(down.next_minus(down.exp(Decimal(epsilon)))))


def joint_of_attenuation(n_categories: Sequence[int], attenuation: float) -> ScoreTable:
    """Return the law P = λI + (1 − λ)P* on whole records, λ rounded down: every interaction is
    multiplied by λ (Ruiz, equation (6), on the product of all categories)."""
    if not 0 < attenuation < 1:
        raise InputError(f"λ of the joint law must lie between 0 and 1, not {attenuation:g}")
    part = Fraction(attenuation)
    return _of_ratio(n_categories, 1 + n_records(n_categories) * part / (1 - part))


def _of_ratio(n_categories: Sequence[int], ratio: Fraction) -> ScoreTable:
    sizes = tuple(int(n) for n in n_categories)
    if len(sizes) ** 2 >= MOST_STEPS:
        raise InputError(
            f"the joint law handles fewer than {math.isqrt(MOST_STEPS):,} attributes, and this "
            "schema has more; use method kronecker"
        )
    above = ratio - 1
    small = math.log2(above.denominator) - math.log2(above.numerator)
    bits = 64 * math.ceil((_GUARD_BITS + max(0.0, small)) / 64)
    kept = (ratio.numerator << bits) // ratio.denominator
    ones = (1,) * len(sizes)
    return ScoreTable(sizes, ones, (kept, *((1 << bits,) * len(sizes))))
