"""Exact draws of patterns, attribute by attribute, from backward expectations.

Source: docs/proofs/optimal.md, section 6. The law as drawn has the *computed* probabilities:
doubles, drawn exactly (`choices`). No draw depends on a record. The number of bits used is the same
for every pattern, but for those that follow once in 2^16 where the first sixteen do not settle a
choice.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.laws.law import ShiftSampler
from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes import as_drawn
from deniable.laws.votes.backward import Backward, Both, Gate, Weights, clamped
from deniable.laws.votes.choices import BoolArray, Choice, exactly, probabilities, scaled
from deniable.laws.votes.sums import UNIT
from deniable.randomness import BitSource, ExactCategorical, smallest_unsigned

STEP_ROUNDINGS = 12
"""Per attribute at most: coefficient (a−1)/a or (1−θ)/a with its products 3, the sum of the
unchanged parts 1, a choice 3 (quotient 1, the complement's 2 for the rounded total), twice."""

MEMORY = 1 << 27
"""Bytes of tables that a sampler keeps; larger ones are built again for every draw, which takes
about as long as drawing 20,000 rows."""

_HELD = (1, 4)
"""Stride of held tables G_i: every attribute, or fewer where memory is short. Once in 65,536 draws
G_i is needed at one sum: without it, computed from at most 3^3 entries of the next held one, which
makes a cell take 1.2 times as long."""

_FIRST_BITS = 4
"""Bytes for each state: the first sixteen bits of two choices. G_i takes eight."""

_PIECE = 1 << 16
"""Rows drawn at a time, so that their state fits into the second-level cache."""

_MANY = 64
"""From this many different category counts on, lookup tables are small instead of large."""


def path_slack(n_attributes: int, height: float) -> float:
    """Return a bound on the deviation of ln f as drawn from the ideal law's, up to a constant."""
    return 1.01 * (STEP_ROUNDINGS * n_attributes + 8.0 * height + 16) * UNIT


class SumTables:
    """The expected gates of one gated sum, held at some attributes and computed between."""

    def __init__(self, law: Gate, every: int) -> None:
        self.backward = Backward(law)
        self.held: dict[int, FloatArray] = {}
        self._ends = [*range(0, self.backward.k, every), self.backward.k]
        back = self.backward.last()
        for i in range(self.backward.k, 0, -1):
            if i % every == 0 or i == self.backward.k:
                self.held[i] = back
            back = self.backward.before(i - 1, back)
        self.first = float(back[0])
        """G_0."""

    def gates(self, *, backwards: bool = False) -> Iterator[tuple[int, FloatArray]]:
        """Yield every attribute's place i and G_{i+1}, in order or from the last to the first."""
        blocks = list(pairwise(self._ends))
        for first, end in reversed(blocks) if backwards else blocks:
            built = [(end - 1, self.held[end])]
            for i in range(end - 1, first, -1):
                built.append((i - 1, self.backward.before(i, built[-1][1])))
            yield from built if backwards else reversed(built)

    def choices(self, *, backwards: bool = False) -> Iterator[tuple[int, Weights]]:
        """Yield every attribute's place and the weights of its choices on the states before it."""
        for i, back in self.gates(backwards=backwards):
            yield i, self.backward.choices(i, back)

    def exact_patterns(self) -> list[Fraction]:
        """Return the probability of every pattern as drawn, exactly, flattened in C order,
        shape (2^k,)."""
        prefixes = [{0: Fraction(1)}]  # per prefix of a pattern: sum -> probability
        for i in range(self.backward.k):
            n, (low, high) = self.backward.weights[i], self.backward.bounds(i + 1)
            following: list[dict[int, Fraction]] = []
            for masses in prefixes:
                fates: tuple[dict[int, Fraction], ...] = ({}, {})
                for s, mass in masses.items():
                    weights, dither = self.backward.choices_at(i, s, self.held)
                    change, extra = exactly(*weights), exactly(*dither) if dither else Fraction(0)
                    for fate, gain, part in (
                        (1, 0, mass * change),
                        (0, n, mass * (1 - change) * (1 - extra)),
                        (0, n + 1, mass * (1 - change) * extra),
                    ):
                        to = min(max(s + gain, low), high)
                        fates[fate][to] = fates[fate].get(to, Fraction(0)) + part
                following += fates
            prefixes = following
        return [sum(masses.values(), Fraction(0)) for masses in prefixes]

    def fates(self) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities that every attribute is unchanged and changed, shapes (k,)."""
        reached, kept, changed = np.ones(1), [], []
        for i, (change, dither) in self.choices():
            yes, no = probabilities(*change)
            changed.append(float((reached * yes).sum()))
            kept.append(float((reached * no).sum()))
            following = np.zeros(self.backward.n_states(i + 1))
            for shift, chance in self._moves(i, yes, no, dither):
                _add_clamped(following, reached * chance, shift)
            reached = following
        return np.array(kept), np.array(changed)

    def ends(self, retention: FloatArray) -> tuple[float, float, int]:
        """Return the largest and the smallest density of an output, and the exponent of a power of
        two that multiplies both, by a backward pass in which the densities that follow a state are
        times about its G: these are normal numbers.

        From every state the largest is that of the better fate of the next attribute, averaged over
        its dither. These are bounds, and are attained, as one fate is better from every state (f
        falls with every change).
        """
        after = _inverse_power(self.backward.last())
        most = least = 1.0 / after
        for i, (change, dither) in self.choices(backwards=True):
            a, n, size = self.backward.n_categories[i], self.backward.weights[i], len(change[0])
            before, stay = _inverse_power(change[0] + change[1]), self.backward.moves(i)[0]
            gains = [stay, stay + n] if dither is None else [stay, stay + n + 1, stay + n]
            tops = [clamped(after, gain, size) for gain in gains]
            yes = scaled(*change, tops[0], before) * (a / (a - 1))
            if dither is None:
                keeps = [scaled(*change[::-1], tops[1], before) * a]
            else:
                no = probabilities(*change)[1] * a
                fates = zip((dither, dither[::-1]), tops[1:], strict=True)
                keeps = [no * scaled(*weights, top, before) for weights, top in fates]
            found = []
            for later, better in ((most, np.maximum), (least, np.minimum)):
                changed = yes * clamped(later, stay, size)
                ways = zip(keeps, gains[1:], strict=True)
                kept = np.sum([p * clamped(later, to, size) for p, to in ways], axis=0)
                both = as_drawn.fates_after_response(kept, changed, a, float(retention[i]))
                found.append(better(*both))
            (most, least), after = found, before
        return float(most[0]), float(least[0]), -int(math.log2(after[0]))

    def _moves(
        self, i: int, changed: FloatArray, kept: FloatArray, dither: Both | None
    ) -> list[tuple[int, FloatArray]]:
        """Return the shift of every state if i is changed, unchanged, and unchanged with dither,
        each with its part of the mass."""
        n, shift = self.backward.weights[i], self.backward.moves(i)[0]
        if dither is None:
            return [(shift, changed), (shift + n, kept)]
        extra, plain = probabilities(*dither)
        return [(shift, changed), (shift + n, kept * plain), (shift + n + 1, kept * extra)]


def _inverse_power(values: FloatArray) -> FloatArray:
    """Return the inverse of the power of two next above every value."""
    return np.asarray(np.ldexp(1.0, -np.frexp(values)[1]))


def _add_clamped(target: FloatArray, mass: FloatArray, shift: int) -> None:
    """Add shifted masses to target; those beyond an end are added to the entry there."""
    first = min(max(-shift, 0), len(mass))
    last = max(min(len(target) - shift, len(mass)), first)
    target[0] += mass[:first].sum()
    target[-1] += mass[last:].sum()
    target[first + shift : last + shift] += mass[first:last]


class _Stage:
    """The draws at one attribute, under several gated sums whose states follow one another."""

    def __init__(
        self, i: int, parts: Sequence[SumTables], backs: Sequence[FloatArray], *, kept: bool
    ) -> None:
        self._i, self._tables = i, [part.backward for part in parts]
        self._held: list[Mapping[int, FloatArray]] = [
            part.held if kept else {i + 1: back} for part, back in zip(parts, backs, strict=True)
        ]
        sizes, following = (
            [0, *accumulate(table.n_states(place) for table in self._tables)]
            for place in (i, i + 1)
        )
        self._starts = sizes
        self._dithered = [table.dither[i] > 0 for table in self._tables]
        change, dither = self._weights(backs)
        self._change = Choice(*change, lambda state: self._at(state)[0])
        self._dither = Choice(*dither, lambda state: self._at(state)[1] or (1.0, 1.0))
        self._gains = [table.weights[i] for table in self._tables]
        self._ends = [(first, end - 1) for first, end in pairwise(following)]
        moves = [table.moves(i) for table in self._tables]
        self._shifts = [
            shift + first - start
            for (shift, _), first, start in zip(moves, following, sizes, strict=False)
        ]
        self._beyond = [beyond for _, beyond in moves]

    def _weights(self, backs: Sequence[FloatArray]) -> tuple[Both, Both]:
        """Return the weights of both choices on all states; equal ones where there is no dither."""
        found = []
        for table, back in zip(self._tables, backs, strict=True):
            change, dither = table.choices(self._i, back)
            found.append((*change, *(dither or (np.ones_like(change[0]),) * 2)))
        yes, no, extra, plain = (np.concatenate(kind) for kind in zip(*found, strict=True))
        return (yes, no), (extra, plain)

    def _at(self, state: int) -> tuple[tuple[float, float], tuple[float, float] | None]:
        place = bisect_right(self._starts, state) - 1
        table = self._tables[place]
        s = state - self._starts[place] + table.bounds(self._i)[0]
        return table.choices_at(self._i, s, self._held[place])

    def words_agree(self, backs: Sequence[FloatArray]) -> bool:
        """Whether draws use the probabilities that G_{i+1} of each sum gives."""
        change, dither = self._weights(backs)
        return self._change.draws_by(*change) and self._dither.draws_by(*dither)

    def draw(self, state: IntArray, parts: Sequence[slice], source: BitSource) -> BoolArray:
        """Return whether the attribute is changed, and move the rows' states to the next one.

        ``state``: of every row, in the order of the parts, shape (n,).
        """
        changed = self._change.draw(state, source)
        kept = ~changed
        gain = kept.astype(smallest_unsigned(max(self._gains) + 1))
        for weight, rows in zip(self._gains, parts, strict=True):
            gain[rows] *= gain.dtype.type(weight)
        # For all rows, so that the work is the same for every pattern.
        if all(self._dithered):
            gain += self._dither.draw(state, source) & kept
        elif any(self._dithered):
            sizes = [rows.stop - rows.start for rows in parts]
            some = np.flatnonzero(np.repeat(self._dithered, sizes))
            gain[some] += self._dither.draw(state[some], source) & kept[some]
        state += gain
        for rows, shift, beyond, ends in zip(
            parts, self._shifts, self._beyond, self._ends, strict=True
        ):
            if shift:
                state[rows] += shift
            if beyond:
                state[rows].clip(*ends, out=state[rows])
        return changed


class SumSampler:
    """Draws patterns of one gated sum, or of several with given weights.

    The weights are doubles, drawn by exactly, as integers times a power of two. The sum of a row
    is independent of its values; the number of bits used depends on it alone.

    ``alpha``: weight of each sum, times its expected gate, shape (C,).
    """

    def __init__(
        self, laws: Sequence[Gate], alpha: Sequence[float] = (1.0,), memory: int = MEMORY
    ) -> None:
        backs = [Backward(law) for law in laws]
        self._k = backs[0].k
        states = sum(back.n_states(i) for back in backs for i in range(self._k))
        fits = [each for each in _HELD if states * (_FIRST_BITS + 8 / each) <= memory]
        self.kept = bool(fits)
        """Whether the tables are."""
        every = fits[0] if fits else max(1, math.isqrt(self._k))
        self.parts = [SumTables(law, every) for law in laws]
        # Each part's draws have its G_0 in the denominator, so that it cancels.
        ratios = [
            (share * part.first).as_integer_ratio()
            for share, part in zip(alpha, self.parts, strict=True)
        ]
        common = max(bottom for _, bottom in ratios)  # all are powers of two
        self._weights = [top * (common // bottom) for top, bottom in ratios]
        self._which = ExactCategorical(self._weights)
        self._stages: list[_Stage] = []

    def _backs(self) -> Iterator[tuple[int, list[FloatArray]]]:
        """Yield every attribute's place and G_{i+1} of all sums."""
        for gates in zip(*(part.gates() for part in self.parts), strict=True):
            yield gates[0][0], [back for _, back in gates]

    def _built(self) -> Iterator[_Stage]:
        """Return the stage of every attribute, in turn."""
        if self._stages:
            return iter(self._stages)
        stages = (_Stage(i, self.parts, backs, kept=self.kept) for i, backs in self._backs())
        if self.kept:
            self._stages = list(stages)
        return iter(self._stages) if self.kept else stages

    def walk(self, count: int, source: BitSource) -> Iterator[BoolArray]:
        """Yield, attribute by attribute, whether it is changed, shape (count,)."""
        which = self._which.draw(count, source)
        pieces = []
        for start in range(0, count, _PIECE):
            of = which[start : start + _PIECE]
            rows = np.bincount(of, minlength=len(self.parts))
            ends = [0, *np.cumsum(rows).tolist()]
            places = None
            if len(self.parts) > 1:
                order = np.argsort(of, kind="stable")
                places = np.empty_like(order)
                places[order] = np.arange(len(order))
            # Every sum begins in one state.
            state = np.repeat(np.arange(len(self.parts)), rows)
            parts = [slice(*ends) for ends in pairwise(ends)]
            pieces.append((slice(start, start + len(of)), places, state, parts))
        for stage in self._built():
            changed = np.empty(count, dtype=np.bool_)
            for piece, places, state, parts in pieces:
                drawn = stage.draw(state, parts, source)
                changed[piece] = drawn if places is None else drawn.take(places, mode="clip")
            yield changed

    def words_agree(self) -> bool:
        """Whether sums and patterns are drawn by their own probabilities."""
        return self._which.draws_by(self._weights) and all(
            stage.words_agree(backs)
            for stage, (_, backs) in zip(self._built(), self._backs(), strict=True)
        )

    def _chances(self) -> list[Fraction]:
        return [self._which.probability(c) for c in range(len(self.parts))]

    def exact_patterns(self) -> list[Fraction]:
        """Return the probability of every pattern, exactly, flattened in C order, shape (2^k,)."""
        parts, chances = [part.exact_patterns() for part in self.parts], self._chances()
        return [
            sum((chance * mass for chance, mass in zip(chances, masses, strict=True)), Fraction(0))
            for masses in zip(*parts, strict=True)
        ]

    def fates(self) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities that every attribute is unchanged and changed, shapes (k,)."""
        fates = np.array([part.fates() for part in self.parts])
        kept, changed = np.tensordot(np.array(self._chances(), dtype=np.float64), fates, axes=1)
        return kept, changed

    def ends(self, retention: FloatArray) -> tuple[float, float]:
        """Return the largest and the smallest density of an output, up to a factor: of the mixture,
        whose parts all are largest where all attributes are unchanged."""
        most, least, powers = zip(*(part.ends(retention) for part in self.parts), strict=True)
        chances, power = np.frexp(np.array(self._chances(), dtype=np.float64))
        power = power - np.array(powers)
        shares = np.ldexp(chances, power - power.max())
        return float(shares @ most), float(shares @ least)


class VoteSampler(ShiftSampler):
    """Draws, attribute by attribute, whether it changes, a uniform other category, and, where
    retention is below 1, a uniform category of all, each used where needed.

    All are drawn whether used or not, so that the work is the same for every pattern.

    ``n_categories``: a_i, shape (k,). ``retention``: probability of not replacing the output, (k,).
    """

    def __init__(
        self, n_categories: Sequence[int], retention: FloatArray, patterns: SumSampler
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

    def draws(self, law: as_drawn.Stated) -> bool:
        kept = law.retention.tolist()
        for share, choice in zip(kept, self._retained, strict=True):
            if (choice is None) != (share == 1.0):
                return False
            if choice and choice.probability(0) != Fraction(share):
                return False
            if choice and not choice.draws_by(np.array([share]), np.array([1.0 - share])):
                return False
        for n, share in {*zip(law.n_categories, kept, strict=True)}:
            if not self._other[n].draws_by([1] * (n - 1)):
                return False
            if share < 1.0 and not self._any[n].draws_by([1] * n):
                return False
        patterns = self._patterns
        if len(kept) <= as_drawn.EXACT_UP_TO:
            exact = patterns.exact_patterns()
            return patterns.words_agree() and as_drawn.kept_exactly(exact, law)
        return patterns.words_agree() and as_drawn.kept_within_rounding(
            patterns.ends(law.retention), patterns.fates(), law
        )

    def walk(self, count: int, source: BitSource) -> Iterator[NDArray[Any]]:
        only = np.zeros(count, dtype=np.int64)
        walk = self._patterns.walk(count, source)
        for n, changed, retained in zip(self.n_categories, walk, self._retained, strict=True):
            shift = self._other[n].draw(count, source)
            shift += 1
            shift *= changed
            if retained is not None:
                uniform = self._any[n].draw(count, source)
                shift = np.where(retained.draw(only, source), shift, uniform)
            yield shift
