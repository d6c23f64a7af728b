"""Binary choices with exact probabilities, one for every state of a table.

A probability is a double, which is a finite binary fraction: random bits are compared with it, most
significant first, as many as it takes (docs/proofs/optimal.md, Theorem 10).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.backward import pieces
from deniable.randomness import BitSource

BoolArray = NDArray[np.bool_]

_BITS = 16


class Choice:
    """A binary choice for each of some states, with probabilities that are exact rationals.

    The smaller of the two probabilities is the rounded quotient, the larger exactly one less it.

    Sixteen random bits settle a draw unless they are the first sixteen of the probability. What is
    needed beyond them once in 65,536 draws is held too, or worked out again, from the same weights
    by the same operations, hence to the same doubles.

    Args:
        weights: gives the positive weights of yes and of no on a slice of the states.
        states: those at which there will be draws.
        holds: whether the probabilities are held; else only their first sixteen bits are.
    """

    def __init__(
        self,
        weights: Callable[[slice], tuple[FloatArray, FloatArray]],
        states: slice,
        *,
        holds: bool,
    ) -> None:
        self._states = states
        n_states = states.stop - states.start
        self._first = np.empty(n_states, dtype=np.uint16)
        held = (np.empty(n_states), np.empty(n_states, dtype=np.bool_)) if holds else None
        for piece in pieces(states):
            smaller, flip = _smaller(*weights(piece))
            here = self._within(piece)
            # Where yes is the likelier outcome the bits are read with 0 for 1. Either way yes is
            # drawn if what they say as a number is below the one that is stored.
            first = self._first[here]
            first[:] = smaller * 2.0**_BITS
            first ^= np.negative(flip.astype(np.uint16))
            if held is not None:
                held[0][here], held[1][here] = smaller, flip
        self._held, self._weights = held, None if holds else weights

    def _within(self, states: slice) -> slice:
        return slice(states.start - self._states.start, states.stop - self._states.start)

    @classmethod
    def between(cls, yes: FloatArray, no: FloatArray) -> "Choice":
        """Return a choice of given weights, shapes (n_states,)."""
        return cls(lambda states: (yes[states], no[states]), slice(0, len(yes)), holds=True)

    @classmethod
    def of_probability(cls, probability: float) -> "Choice":
        """Return a choice of one state with exactly this probability of yes.

        1 − p is exact for p >= 1/2, and below it the smaller is p itself: the two add up to 1.
        """
        return cls.between(np.array([probability]), np.array([1.0 - probability]))

    @property
    def n_states(self) -> int:
        return len(self._first)

    def _quotients(self, states: slice | None = None) -> tuple[FloatArray, BoolArray]:
        states = states or self._states
        if self._weights is not None:
            return _smaller(*self._weights(states))
        assert self._held is not None
        smaller, flip = self._held
        return smaller[self._within(states)], flip[self._within(states)]

    def probability(self, state: int) -> Fraction:
        """Return the probability of yes, exactly."""
        smaller, flip = self._exactly(state)
        return 1 - smaller if flip else smaller

    def _exactly(self, state: int) -> tuple[Fraction, bool]:
        smaller, flip = self._quotients(slice(state, state + 1))
        return Fraction(smaller.item()), bool(flip[0])

    def both(self) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of yes and of no, shapes (n_states,), rounded once."""
        smaller, flip = self._quotients()
        return np.where(flip, 1.0 - smaller, smaller), np.where(flip, smaller, 1.0 - smaller)

    def words_agree(self) -> bool:
        """Return whether the bits that draws are compared with are the probabilities' first, and no
        outcome is impossible."""
        smaller, flip = self._quotients()
        first = np.floor(smaller * 2.0**_BITS)  # exactly
        return bool(
            np.all(smaller > 0)
            and np.array_equal(self._first, np.where(flip, 2**_BITS - 1 - first, first))
        )

    def draw(self, states: IntArray, source: BitSource) -> BoolArray:
        """Return whether yes, for one draw at each of `states`, shape (n,)."""
        begin = self._states.start
        stored = self._first.take(states - begin if begin else states, mode="clip")
        bits = source.bits(np.uint16, len(states))
        yes = bits < stored
        for row in np.flatnonzero(bits == stored):
            smaller, flip = self._exactly(int(states[row]))
            first = int(smaller * 2**_BITS)
            yes[row] = _below(smaller * 2**_BITS - first, source) != flip
        return yes


class Stacked(Choice):
    """The choices of several tables as one, whose states follow one another.

    The words that draws are compared with are the tables' own, in one piece.

    Args:
        choices: of every table; None where there is nothing to choose.
        sizes: how many states each table has.
    """

    def __init__(self, choices: Sequence[Choice | None], sizes: Sequence[int]) -> None:
        self._choices = choices
        self._starts = [0, *accumulate(sizes)]
        self._states = slice(0, self._starts[-1])
        self._first = np.zeros(self._starts[-1], dtype=np.uint16)
        for choice, (start, end) in zip(choices, pairwise(self._starts), strict=True):
            if choice is not None:
                self._first[start:end] = choice._first
                choice._first = self._first[start:end]

    def _exactly(self, state: int) -> tuple[Fraction, bool]:
        place = bisect_right(self._starts, state) - 1
        choice = self._choices[place]
        assert choice is not None
        return choice._exactly(state - self._starts[place])


def _smaller(yes: FloatArray, no: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the smaller probability, and whether it is that of no."""
    return np.minimum(yes, no) / (yes + no), np.greater(yes, no)


def _below(probability: Fraction, source: BitSource) -> bool:
    """Whether U < probability for a fresh uniform U."""
    while probability:
        probability *= 2**64
        digit, drawn = int(probability), int(source.bits(np.uint64, 1)[0])
        if drawn != digit:
            return drawn < digit
        probability -= digit
    return False
