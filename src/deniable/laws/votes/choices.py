"""Binary choices with exact probabilities, one for every state of a table.

A probability is a finite binary fraction of 53 digits; random bits are compared with it, most
significant first, until they differ (docs/proofs/optimal.md, Theorem 10).
"""

import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from deniable.laws.patterns import FloatArray, IntArray
from deniable.randomness import BitSource

BoolArray = NDArray[np.bool_]

_SHIFT = 1000
"""Power of two by which a weight is multiplied whose quotient is no normal number: it is below 4,
as weights are."""

_BITS = 16
"""Random bits of a draw; more are drawn where they do not settle it, once in 65,536 draws."""


class Choice:
    """A binary choice for each of some states, with probabilities that are exact rationals.

    The smaller of the two probabilities is the rounded quotient, the larger exactly one less it.
    Only the first sixteen bits of every state are held: they settle a draw unless they equal those
    of the probability.

    ``yes, no``: positive weights at every state, shape (n_states,). ``at``: returns both at one
    state, the same to the last bit; None to hold them.
    """

    def __init__(
        self, yes: FloatArray, no: FloatArray, at: Callable[[int], tuple[float, float]] | None
    ) -> None:
        self._first = _first_bits(yes, no)
        self._at = at or (lambda state: (yes.item(state), no.item(state)))

    @classmethod
    def of_probability(cls, probability: float) -> "Choice":
        """Return a choice of one state with exactly this probability of yes.

        1 − p is exact for p >= 1/2, and below it the smaller is p itself: the two add up to 1.
        """
        return cls(np.array([probability]), np.array([1.0 - probability]), None)

    @property
    def n_states(self) -> int:
        return len(self._first)

    def probability(self, state: int) -> Fraction:
        """Return the probability of yes, exactly."""
        return exactly(*self._at(state))

    def draws_by(self, yes: FloatArray, no: FloatArray) -> bool:
        """Whether the bits that draws are compared with are the first of the probabilities
        that these weights have, and no outcome is impossible."""
        return bool(
            np.all(np.minimum(yes, no) > 0) and np.array_equal(self._first, _first_bits(yes, no))
        )

    def draw(self, states: IntArray, source: BitSource) -> BoolArray:
        """Return whether yes, for one draw at each of `states`, shape (n,)."""
        stored = self._first.take(states, mode="clip")
        bits = source.bits(np.uint16, len(states))
        yes = bits < stored
        for row in np.flatnonzero(bits == stored):
            weights = self._at(int(states[row]))
            smaller = _smaller(*weights) * 2**_BITS
            yes[row] = _below(smaller - int(smaller), source) != (weights[0] > weights[1])
        return yes


def _smaller(yes: float, no: float) -> Fraction:
    """Return the quotient of the smaller weight by both, rounded once: as a double with as small an
    exponent as needed."""
    least, both = min(yes, no), yes + no
    if least / both >= sys.float_info.min:
        return Fraction(least / both)
    return Fraction(least * 2.0**_SHIFT / both) * Fraction(1, 2**_SHIFT)


def exactly(yes: float, no: float) -> Fraction:
    """Return the probability of yes that a choice with these weights has."""
    return 1 - _smaller(yes, no) if yes > no else _smaller(yes, no)


def probabilities(yes: FloatArray, no: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of yes and of no, rounded once; below 2^−1022 with fewer digits."""
    smaller = np.minimum(yes, no) / (yes + no)
    return np.where(yes > no, 1.0 - smaller, smaller), np.where(yes > no, smaller, 1.0 - smaller)


def scaled(yes: FloatArray, no: FloatArray, top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Return the probability of yes, rounded once, times top/bottom, both powers of two; it may be
    below 2^−1022 itself."""
    both, more = yes + no, yes > no
    part, whole = np.where(more, 1.0 - no / both, yes), np.where(more, 1.0, both)
    return np.asarray(part * top / (whole * bottom))


def _first_bits(yes: FloatArray, no: FloatArray) -> NDArray[np.uint16]:
    """Return the thresholds of random bits: yes is drawn if they are below as a number.

    The first bits of the smaller probability, inverted where that is of no.
    """
    smaller = np.minimum(yes, no) / (yes + no)
    smaller *= 2.0**_BITS
    first = smaller.astype(np.uint16)
    first ^= np.negative((yes > no).astype(np.uint16))
    return first


def _below(probability: Fraction, source: BitSource) -> bool:
    """Whether U < probability for a fresh uniform U."""
    while probability:
        probability *= 2**64
        digit, drawn = int(probability), int(source.bits(np.uint64, 1)[0])
        if drawn != digit:
            return drawn < digit
        probability -= digit
    return False
