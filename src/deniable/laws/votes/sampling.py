"""Exact draws of patterns, attribute by attribute, from backward expectations.

With G_i as in `backward`: given the partial sum s before attribute i, change it with probability
(1 − r_i) G_{i+1}(s)/G_i(s), else keep it; if kept, take the dither 1 with probability
θ_i G_{i+1}(s+n_i+1) / ((1−θ_i) G_{i+1}(s+n_i) + θ_i G_{i+1}(s+n_i+1)). The product over a path
telescopes to μ(S) Pr(B) g(s)/G_0.

**The law as drawn** has the *computed* probabilities: doubles, drawn exactly (a double is a finite
binary fraction; random bits are compared with it, most significant first, as many as it takes).
The telescoping survives the rounding: with the computed G̃_i in place of G_i each factor is
(computed part)/(computed G̃_i)·(1 + δ), where δ holds only the roundings of *this* step, at most
`STEP_ROUNDINGS` u. So f_drawn(S) = const · E_B[g̃(s) (1 ± STEP_ROUNDINGS u)^k], for every S, and
ln max f/min f exceeds E by at most twice `path_slack`; every probability, keep probabilities too,
is within that factor of the ideal law's. Nothing needs a wider table than doubles, and nothing is
ever rounded to zero: G̃ lies between e^{−E/2} and e^{E/2}, far inside the range of doubles, and
the quotient of two of them is kept as such where it would underflow.

Of the two probabilities of a choice the smaller is stored, so that both are good to 3 u relatively.
No draw depends on a record. The number of words used is the same for every pattern, but for one
more in 2^64 where a word leaves a choice open.

The proofs are in docs/proofs/optimal.md, Theorem 10.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.laws.law import ShiftSampler
from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.backward import Backward
from deniable.laws.votes.sums import UNIT
from deniable.randomness import BitSource, ExactCategorical

if TYPE_CHECKING:
    from deniable.laws.votes.gated import GatedSum

BoolArray = NDArray[np.bool_]

STEP_ROUNDINGS = 12
"""Per attribute at most: coefficient (a−1)/a or (1−θ)/a with its products 3, the sum of the kept
parts 1, a choice 3 (quotient 1, the complement's 2 for the rounded total), twice."""

MEMORY = 1 << 28
"""Bytes of tables that a sampler keeps; larger ones are built again for every batch."""

_BYTES_PER_STATE = 66
_MANY = 64
"""From this many different category counts on, lookup tables are small instead of large."""
_FLIP = np.uint64(1 << 63)
_FULL_PRECISION = 2.0**-960
"""Quotients below this may lose digits to underflow."""


def path_slack(n_attributes: int, height: float) -> float:
    """Return how far ln f of the law as drawn may be from the ideal law's, up to a constant."""
    return 1.01 * (STEP_ROUNDINGS * n_attributes + 8.0 * height + 16) * UNIT


class Choice:
    """A binary choice for each of some states, with probabilities that are exact rationals.

    Args:
        yes, no: positive weights of the two outcomes, shape (n_states,). The smaller of the two
            probabilities is the rounded quotient, the larger exactly one less it. A quotient too
            small for a double to hold all its digits is not rounded at all: it is the ratio of the
            two doubles. So no outcome ever has probability zero.
    """

    def __init__(self, yes: FloatArray, no: FloatArray) -> None:
        total = yes + no
        flip = yes > no
        self._least, self._total = np.where(flip, no, yes), total
        self.smaller = self._least / total
        words = np.ldexp(self.smaller, 64).astype(np.uint64)
        # smaller <= 1/2, except that rounding may give exactly 1/2: as a word that is 2^63, the
        # bit that marks a flip; take the largest word below, ties then go the exact way.
        self._words = np.minimum(words, _FLIP - np.uint64(1)) | np.where(flip, _FLIP, np.uint64(0))

    @classmethod
    def of_probability(cls, probability: float) -> "Choice":
        """Return a choice of one state with exactly this probability of yes.

        1 − p is exact for p >= 1/2, and below it the smaller is p itself: the two add up to 1.
        """
        return cls(np.array([probability]), np.array([1.0 - probability]))

    def probability(self, state: int) -> Fraction:
        """Return the probability of yes, exactly."""
        smaller = self._exactly(state)
        return 1 - smaller if self._words[state] >= _FLIP else smaller

    def _exactly(self, state: int) -> Fraction:
        quotient = float(self.smaller[state])
        if quotient >= _FULL_PRECISION:
            return Fraction(quotient)
        return Fraction(float(self._least[state])) / Fraction(float(self._total[state]))

    def draw(self, states: IntArray, source: BitSource) -> BoolArray:
        """Return whether yes, for one draw at each of `states`, shape (n,)."""
        entry = self._words[states]
        flip = entry >= _FLIP
        level = entry & ~_FLIP
        word = source.bits(np.uint64, len(states))
        below = word < level
        for row in np.flatnonzero(word == level):
            smaller = self._exactly(int(states[row]))
            below[row] = _below(smaller, int(level[row]), source)
        return np.asarray(below ^ flip)


def _below(probability: Fraction, word: int, source: BitSource) -> bool:
    """Whether U < probability for a uniform U whose first 64 bits are `word`."""
    rest = probability * 2**64 - word
    while 0 < rest < 1:
        rest *= 2**64
        digit, more = int(rest), int(source.bits(np.uint64, 1)[0])
        if more != digit:
            return more < digit
        rest -= digit
    return rest >= 1


class SumSampler:
    """Draws patterns of a gated sum, before its retention is applied.

    Args:
        law: what to draw from.
        memory: tables of at most so many bytes are kept, larger ones built again for every batch.
    """

    def __init__(self, law: "GatedSum", memory: int = MEMORY) -> None:
        k = law.n_attributes
        self.law = law
        self.backward = Backward(law)
        stride = max(1, math.isqrt(k))
        # G_i at every √k-th attribute, from which the tables between can be built in order.
        self._checkpoints: dict[int, FloatArray] = {}
        self._tables: list[tuple[Choice, Choice | None]] | None = None
        back = self.backward.last()
        for i in range(k, 0, -1):
            if i % stride == 0 or i == k:
                self._checkpoints[i] = back
            back = self.backward.joined(i - 1, *self.backward.parts(i - 1, back))
        n_states = sum(high - low + 1 for low, high in map(self.backward.bounds, range(k)))
        if n_states * _BYTES_PER_STATE <= memory:
            self._tables = list(self.tables())

    def tables(self) -> Iterator[tuple[Choice, Choice | None]]:
        """Yield, attribute by attribute, the choice to change it, and that to dither if kept."""
        if self._tables is not None:
            yield from self._tables
            return
        first = 0
        for end in sorted(self._checkpoints):
            back, built = self._checkpoints[end], []
            for i in range(end - 1, first - 1, -1):
                built.append(self._choices(i, back))
                back = self.backward.joined(i, *self.backward.parts(i, back))
            yield from reversed(built)
            first = end

    def _choices(self, i: int, back: FloatArray) -> tuple[Choice, Choice | None]:
        stay, plain, extra = self.backward.parts(i, back)
        a = self.backward.n_categories[i]
        changes = Choice((a - 1) / a * stay, plain / a + extra / a)
        return changes, Choice(extra, plain) if self.backward.dither[i] > 0 else None

    def draw(self, count: int, source: BitSource) -> BoolArray:
        """Return patterns, True where the attribute is changed, shape (k, count)."""
        state = np.zeros(count, dtype=np.int64)
        pattern = np.empty((self.law.n_attributes, count), dtype=np.bool_)
        low = self.backward.bounds(0)[0]
        for i, (changes, dither) in enumerate(self.tables()):
            changed = changes.draw(state, source)
            pattern[i] = changed
            gain = np.full(count, self.backward.weights[i], dtype=np.int64)
            if dither is not None:  # drawn for all, so that the work is the same for every pattern
                gain += dither.draw(state, source)
            gain *= ~changed
            next_low, next_high = self.backward.bounds(i + 1)
            state += gain + (low - next_low)
            np.clip(state, 0, next_high - next_low, out=state)
            low = next_low
        return pattern


class TableSampler:
    """Draws patterns of a law given by its density over all 2^k patterns, along the binary tree.

    The same argument as in the module's heading, with the prefix of the pattern for a state.

    Args:
        n_categories: a_i, shape (k,).
        density: f of every pattern on any scale, flattened in C order, shape (2^k,).
    """

    def __init__(self, n_categories: Sequence[int], density: FloatArray) -> None:
        back = density / math.sqrt(float(density.min()) * float(density.max()))
        choices = []
        for a in reversed(n_categories):
            kept, changed = back[0::2] / a, back[1::2] * ((a - 1) / a)
            choices.append(Choice(changed, kept))
            back = changed + kept
        self.choices = tuple(reversed(choices))

    def draw(self, count: int, source: BitSource) -> BoolArray:
        """Return patterns, True where the attribute is changed, shape (k, count)."""
        prefix = np.zeros(count, dtype=np.int64)
        pattern = np.empty((len(self.choices), count), dtype=np.bool_)
        for i, choice in enumerate(self.choices):
            pattern[i] = choice.draw(prefix, source)
            prefix = 2 * prefix + pattern[i]
        return pattern


class BlendSampler:
    """Draws a vote, then a pattern under it.

    The votes' weights are doubles, drawn by exactly, as integers times a power of two. Which vote a
    row falls to has nothing to do with its values; the bits used depend on that alone.

    Args:
        parts: the votes.
        weights_of_parts: shape (C,).
    """

    def __init__(self, parts: Sequence["GatedSum"], weights_of_parts: FloatArray) -> None:
        weights = [float(weight).as_integer_ratio() for weight in weights_of_parts.tolist()]
        common = max(denominator for _, denominator in weights)  # all are powers of two
        self._vote = ExactCategorical([top * (common // bottom) for top, bottom in weights])
        memory = MEMORY // len(parts)
        self._patterns = [SumSampler(part, memory) for part in parts]
        self._n_attributes = parts[0].n_attributes

    def draw(self, count: int, source: BitSource) -> NDArray[np.bool_]:
        """Return patterns, True where the attribute is changed, shape (k, count)."""
        vote = self._vote.draw(count, source)
        pattern = np.empty((self._n_attributes, count), dtype=np.bool_)
        for c, patterns in enumerate(self._patterns):
            rows = np.flatnonzero(vote == c)
            if rows.size:
                pattern[:, rows] = patterns.draw(rows.size, source)
        return pattern


class PatternDraws(Protocol):
    """Tables for drawing patterns."""

    def draw(self, count: int, source: BitSource) -> NDArray[np.bool_]:
        """Return patterns, True where the attribute is changed, shape (k, count)."""
        ...


class VoteSampler(ShiftSampler):
    """Draws the pattern, and a uniform other category for every attribute, used where it changed;
    where retention is below 1 also a uniform category of all, used where it is not retained.

    Everything is drawn whether or not it is used, so that the work is the same for every pattern.

    Args:
        n_categories: a_i, shape (k,).
        retention: probability of not replacing the output, shape (k,).
        patterns: draws patterns.
    """

    def __init__(
        self, n_categories: Sequence[int], retention: FloatArray, patterns: PatternDraws
    ) -> None:
        super().__init__(n_categories)
        self._patterns = patterns
        sizes = set(self.n_categories)
        prefix_bits = 16 if len(sizes) < _MANY else 8
        self._other = {n: ExactCategorical([1] * (n - 1), prefix_bits=prefix_bits) for n in sizes}
        replaced = {n for n, kept in zip(self.n_categories, retention, strict=True) if kept < 1.0}
        self._any = {n: ExactCategorical([1] * n, prefix_bits=prefix_bits) for n in replaced}
        self._retained = [
            Choice.of_probability(kept) if kept < 1.0 else None for kept in retention.tolist()
        ]

    def shifts(self, count: int, source: BitSource) -> list[NDArray[Any]]:
        pattern = self._patterns.draw(count, source)
        only = np.zeros(count, dtype=np.int64)
        shifts = []
        for n, changed, retained in zip(self.n_categories, pattern, self._retained, strict=True):
            shift = self._other[n].draw(count, source)
            shift += 1
            shift *= changed
            if retained is not None:
                uniform = self._any[n].draw(count, source)
                shift = np.where(retained.draw(only, source), shift, uniform)
            shifts.append(shift)
        return shifts
