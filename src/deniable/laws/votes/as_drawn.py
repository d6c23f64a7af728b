"""Verification of a vote sampler's stored tables against the stated levels, from the tables alone.

For few attributes every pattern's probability is computed as a fraction, from the numbers that
random bits are compared with, and the levels are compared with e to the stated bounds. For many,
two passes over the tables: *forward*, with the probability of every state, for each attribute's
probability of change; and *backward*, with the largest and the smallest density that can still
follow every state, for the level of the record. Neither the gate, nor the law's weights, nor the
account's formulas are used, so that an error in one of them is detected.

The proofs are in docs/proofs/optimal.md, section 6.
"""

import math
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np

from deniable.laws.patterns import FloatArray, other_outputs
from deniable.laws.votes.sums import UNIT

EXACT_UP_TO = 6
"""Attributes up to which all patterns are followed with fractions."""

_SIXTY = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)


class Stated(Protocol):
    """The stated levels of a law, in nats, and its retention."""

    n_categories: tuple[int, ...]

    @property
    def retention(self) -> FloatArray:
        """Probability of not replacing an output, shape (k,)."""
        ...

    def record_level(self, subset: Sequence[int] | None = None) -> float: ...

    def attribute_levels(self) -> Sequence[float]: ...

    def attribute_floors(self) -> Sequence[float]: ...

    def given_rest_levels(self) -> Sequence[float]: ...


def kept_exactly(probabilities: Sequence[Fraction], law: Stated) -> bool:
    """Whether patterns drawn with these probabilities keep every level that a law states.

    ``probabilities``: of every pattern before retention, flattened in C order, shape (2^k,).
    """
    k = len(law.n_categories)
    q = np.array(probabilities, dtype=object).reshape((2,) * k)
    if q.sum() != 1:
        return False
    for i, (a, kept) in enumerate(zip(law.n_categories, law.retention.tolist(), strict=True)):
        replaced = (1 - Fraction(kept)) * q.sum(axis=i, keepdims=True)
        uniform = [replaced * Fraction(1, a), replaced * Fraction(a - 1, a)]
        q = Fraction(kept) * q + np.concatenate(uniform, axis=i)
    density = q / other_outputs(law.n_categories)
    if density.min() <= 0 or _above(density.max() / density.min(), law.record_level()):
        return False
    for i, (a, most, least, given_rest) in enumerate(
        zip(
            law.n_categories,
            law.attribute_levels(),
            law.attribute_floors(),
            law.given_rest_levels(),
            strict=True,
        )
    ):
        kept, changed = np.moveaxis(q, i, 0).reshape(2, -1).sum(axis=1)
        alone = max(kept * (a - 1) / changed, changed / (kept * (a - 1)))
        step = np.divide(*np.moveaxis(density, i, 0).reshape(2, -1))
        if _above(alone, most) or _below(alone, least):
            return False
        if _above(max(step.max(), 1 / step.min()), given_rest):
            return False
    return True


def _above(ratio: Fraction, level: float) -> bool:
    """Return whether ln(ratio) is above a level in nats, decided with sixty digits."""
    return ratio > Fraction(_SIXTY.next_plus(_SIXTY.exp(Decimal(level))))


def _below(ratio: Fraction, level: float) -> bool:
    """Return whether ln(ratio) is below a level in nats, decided with sixty digits."""
    return ratio < Fraction(_SIXTY.next_minus(_SIXTY.exp(Decimal(level))))


def kept_within_rounding(
    ends: tuple[float, float], fates: tuple[FloatArray, FloatArray], law: Stated
) -> bool:
    """Whether drawn patterns keep the levels of the record and of each attribute alone.

    ``fates``: probabilities that each attribute is unchanged and changed, before retention, (k,).
    """
    a = np.array(law.n_categories, dtype=np.float64)
    kept, changed = fates
    # Every step of either pass rounds an entry ten times at most; a last sum, and logarithms.
    slack = (16 * len(a) + 256) * UNIT
    if np.any(np.abs(kept + changed - 1.0) > slack):
        return False
    blur = 1.0 - law.retention
    with np.errstate(divide="ignore"):
        alone = np.log((law.retention * kept + blur / a) * (a - 1)) - np.log(
            law.retention * changed + blur * (1 - 1 / a)
        )
        record = log_quotient(*ends)
    above, below = np.array(law.attribute_levels()), np.array(law.attribute_floors())
    slack_alone = slack + 8 * UNIT * np.abs(alone)
    return bool(
        record <= law.record_level() + slack + 8 * UNIT * abs(record)
        and np.all(alone <= above + slack_alone)
        and np.all(alone >= below - slack_alone)
    )


def log_quotient(top: float, bottom: float) -> float:
    """Return ln(top/bottom) of positive doubles to 4 u, also where the quotient would overflow."""
    (first, power), (second, other) = math.frexp(top), math.frexp(bottom)
    if power - other < 1000:
        return math.log(top / bottom)
    return math.log(first / second) + (power - other) * math.log(2.0)


def fates_after_response(
    kept: FloatArray, changed: FloatArray, n_categories: int, retention: float
) -> tuple[FloatArray, FloatArray]:
    """Return the densities of an attribute's two fates after its own response."""
    mean = kept / n_categories + changed * ((n_categories - 1) / n_categories)
    blur = (1.0 - retention) * mean
    return retention * kept + blur, retention * changed + blur
