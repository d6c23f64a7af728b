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
ever rounded to zero: G̃ lies between e^{−E/2} and e^{E/2} with E at most 640, so that quotients of
two of them are far inside the range of doubles too.

Of the two probabilities of a choice the smaller is the one computed, so that both are good to 3 u
relatively.
No draw depends on a record. The number of bits used is the same for every pattern, but for those
that follow once in 2^16 where the first sixteen leave a choice open.

The proofs are in docs/proofs/optimal.md, Theorem 10.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.laws.law import ShiftSampler
from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes import as_drawn
from deniable.laws.votes.backward import Backward, clamped
from deniable.laws.votes.choices import BoolArray, Choice, Stacked
from deniable.laws.votes.sums import UNIT
from deniable.randomness import BitSource, ExactCategorical, smallest_unsigned

if TYPE_CHECKING:
    from deniable.laws.votes.gated import GatedSum

STEP_ROUNDINGS = 12
"""Per attribute at most: coefficient (a−1)/a or (1−θ)/a with its products 3, the sum of the kept
parts 1, a choice 3 (quotient 1, the complement's 2 for the rounded total), twice."""

MEMORY = 1 << 27
"""Bytes of tables that a sampler keeps; larger ones are built again whenever they are needed."""

_PIECE = 1 << 16
"""Rows drawn at a time: what is known of them then stays in the second-level cache."""

_HELD = 8
"""Tables that are kept hold G_i at every so many attributes; between, a draw in 65,536 works out
what it needs of G_i from the next."""

_BYTES_PER_STATE = 4 + 8 / _HELD
"""The first sixteen bits of two choices, and a double at some attributes."""

_BYTES_PER_STATE_HELD = 4 + 2 * 9
"""With the probabilities of both choices."""

_ALONE = 1 / 32
"""Rows of a vote with this share and more are added up by themselves, those of others together."""

_MANY = 64
"""From this many different category counts on, lookup tables are small instead of large."""


def path_slack(n_attributes: int, height: float) -> float:
    """Return how far ln f of the law as drawn may be from the ideal law's, up to a constant."""
    return 1.01 * (STEP_ROUNDINGS * n_attributes + 8.0 * height + 16) * UNIT


class SumSampler:
    """Draws patterns of a gated sum, before its retention is applied.

    Args:
        law: what to draw from.
        memory: tables of at most so many bytes are kept when they are needed a second time, larger
            ones built again every time. Whoever goes through all rows once, attribute by
            attribute, holds a few attributes' tables only.
        table: the expected gates by which to draw; None for the law's own, in its order.
        first: place of the first attribute to draw in the table's order; those before it have
            fates already.
    """

    def __init__(
        self,
        law: "GatedSum",
        memory: int = MEMORY,
        table: Backward | None = None,
        first: int = 0,
    ) -> None:
        k = law.n_attributes
        self.law, self._first = law, first
        self.backward = table or Backward(law)
        stride = max(1, math.isqrt(k))
        # G_i at every √k-th attribute, from which the tables between can be built in order.
        self._checkpoints: dict[int, FloatArray] = {}
        self._tables: list[tuple[Choice, Choice | None]] | None = None
        self._used = False
        back = self.backward.last()
        for i in range(k, first, -1):
            if i % stride == 0 or i == k:
                self._checkpoints[i] = back
            back = self.backward.before(i - 1, back)
        self.first_gates = back
        """G before the first attribute that is drawn, on its states."""
        bounds = map(self.backward.bounds, range(first, k))
        n_states = sum(high - low + 1 for low, high in bounds)
        self._keeps = n_states * _BYTES_PER_STATE <= memory
        self._holds = n_states * _BYTES_PER_STATE_HELD <= memory / 4

    @property
    def kept(self) -> bool:
        """Whether the tables are kept, as they are from the second time on if there is room."""
        return self._used and self._keeps

    def tables(self, *, backwards: bool = False) -> Iterator[tuple[Choice, Choice | None]]:
        """Yield, attribute by attribute, the choice to change it, and that to dither if kept.

        Args:
            backwards: from the last attribute to the first.
        """
        if self._tables is None and self.kept:
            self._tables = list(self._built(backwards=False, thinned=True))
        self._used = True
        if self._tables is None:
            yield from self._built(backwards=backwards)
        else:
            yield from reversed(self._tables) if backwards else self._tables

    def _built(
        self, *, backwards: bool, thinned: bool = False, rows: IntArray | None = None
    ) -> Iterator[tuple[Choice, Choice | None]]:
        """Yield the choices of all states, or of those that rows can be in.

        Args:
            backwards: from the last attribute to the first.
            thinned: keep G_i only at some attributes.
            rows: where rows are before the attribute whose choices come next, if only these count.
        """
        ends = sorted(self._checkpoints)
        blocks = list(pairwise([self._first, *ends]))
        for first, end in reversed(blocks) if backwards else blocks:
            sums = self.backward.bounds(first) if rows is None else self._sums(first, rows)
            held, built = {end: (self._checkpoints[end], 0)}, []
            for i in range(end - 1, first - 1, -1):
                states = self.backward.reached(i, first, *sums)
                built.append(self._choices(i, held, states))
                back, begins = held[i + 1]
                held[i] = self.backward.before(i, back, states, begins), states.start
                if thinned and (i + 1) % _HELD and i + 1 < end:
                    del held[i + 1]
            yield from built if backwards else reversed(built)

    def _sums(self, first: int, rows: IntArray) -> tuple[int, int]:
        """Return between which sums rows are before an attribute: as far from the uniform law's
        mean as hardly any row ever is, wherever these are, or all if one of them is further."""
        low, high = self.backward.bounds(first)
        begin, end = min(self._usual[first][0], high), max(self._usual[first][1], low)
        near = not len(rows) or (begin <= low + rows.min() and low + rows.max() <= end)
        return (begin, end) if near else (low, high)

    @cached_property
    def _usual(self) -> list[tuple[int, int]]:
        """Before every attribute the sums that all but about one row in 2^50 have: f is at most
        e^E, and the sum about normal under the uniform law."""
        table, height = self.backward, self.law.height
        counts = np.array(table.weights) + np.array(table.dither)
        keep = 1.0 / np.array(table.n_categories)
        mean = np.cumsum([0.0, *(counts * keep)])
        variance = np.cumsum([0.0, *(counts**2 * keep * (1.0 - keep))])
        far = np.sqrt(2.0 * (height + 35.0) * variance) + counts.max() + 1.0
        ends = np.floor(mean - far).astype(int), np.ceil(mean + far).astype(int)
        return [*zip(ends[0].tolist(), ends[1].tolist(), strict=True)]

    def _choices(
        self, i: int, held: Mapping[int, tuple[FloatArray, int]], states: slice
    ) -> tuple[Choice, Choice | None]:
        """Return the choices of attribute i at these states, from G at some attributes above it,
        also later."""
        a = self.backward.n_categories[i]

        def parts(states: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
            later = min(place for place in held if place > i)
            back, begins = held[later]
            return self.backward.parts(i, back, states, later, begins)

        def change(states: slice) -> tuple[FloatArray, FloatArray]:
            stay, plain, extra = parts(states)
            return (a - 1) / a * stay, plain / a + extra / a

        def dither(states: slice) -> tuple[FloatArray, FloatArray]:
            _, plain, extra = parts(states)
            return extra, plain

        dithers = None
        if self.backward.dither[i] > 0:
            dithers = Choice(dither, states, holds=self._holds)
        return Choice(change, states, holds=self._holds), dithers

    def walk(
        self, count: int, source: BitSource, begin: IntArray | None = None
    ) -> Iterator[BoolArray]:
        """Yield, attribute by attribute, whether it is changed, shape (count,).

        Args:
            count: how many rows.
            source: of random bits.
            begin: where they are before the first attribute, shape (count,); None for 0.
        """
        state = np.zeros(count, dtype=np.int64) if begin is None else begin.astype(np.int64)
        # Tables that are not kept are built where rows can be.
        tables = self.tables() if self.kept else self._built(backwards=False, rows=state)
        self._used = True
        for i, (changes, dither) in enumerate(tables, self._first):
            changed = np.empty(count, dtype=np.bool_)
            n = self.backward.weights[i]
            small = smallest_unsigned(n + 1)
            for start in range(0, count, _PIECE):
                rows = slice(start, start + _PIECE)
                now = state[rows]
                changed[rows] = changes.draw(now, source)
                kept = ~changed[rows]
                gain = kept.astype(small)
                gain *= small.type(n)
                if dither is not None:  # for all, so that the work is the same for every pattern
                    gain += dither.draw(now, source) & kept
                now += gain
                self._within(i, now)
            yield changed

    def _after(self, i: int, state: IntArray, gain: IntArray | int) -> IntArray:
        """Return the states before attribute i + 1, from those before i and what i added."""
        return self._within(i, state + gain)

    def _within(self, i: int, after: IntArray) -> IntArray:
        """Count sums that contain attribute i from the least that is told apart, in place."""
        shift, last, beyond = self.moves(i)
        if shift:
            after += shift
        if beyond:
            after.clip(0, last, out=after)
        return after

    def moves(self, i: int) -> tuple[int, int, bool]:
        """Return what takes states before attribute i, with what i adds, to those before i + 1: how
        far they move; the last of these; and whether some may lie beyond the first or the last, for
        which they stand."""
        (low, high), (before, most) = self.backward.bounds(i + 1), self.backward.bounds(i)
        beyond = before < low or most + self.backward.weights[i] + 1 > high  # with dither
        return before - low, high - low, beyond

    def words_agree(self) -> bool:
        """Return whether all choices are made by their own probabilities."""
        return all(
            choice.words_agree() for pair in self.tables() for choice in pair if choice is not None
        )

    def exact_patterns(self, begin: int = 0) -> list[Fraction]:
        """Return the probability of every pattern of what is drawn from a state, exactly, flattened
        in C order, shape (2^k,)."""
        prefixes = [{begin: Fraction(1)}]  # per prefix of a pattern: state -> probability
        for i, (changes, dither) in enumerate(self.tables(), self._first):
            n, states = self.backward.weights[i], np.arange(changes.n_states)
            moves = [self._after(i, states, gain).tolist() for gain in (0, n, n + 1)]
            following: list[dict[int, Fraction]] = []
            for masses in prefixes:
                fates: tuple[dict[int, Fraction], ...] = ({}, {})
                for state, mass in masses.items():
                    change = mass * changes.probability(state)
                    extra = Fraction(0) if dither is None else dither.probability(state)
                    for fate, move, part in (
                        (1, 0, change),
                        (0, 1, (mass - change) * (1 - extra)),
                        (0, 2, (mass - change) * extra),
                    ):
                        to = moves[move][state]
                        fates[fate][to] = fates[fate].get(to, Fraction(0)) + part
                following += fates
            prefixes = following
        return [sum(masses.values(), Fraction(0)) for masses in prefixes]

    def fates(self, begin: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return how often every attribute is kept, and changed, summing forward, shapes (k,).

        Args:
            begin: how often each state is where drawing begins; None for the only one.
        """
        reached, kept, changed = np.ones(1) if begin is None else begin, [], []
        for i, (changes, dither) in enumerate(self.tables(), self._first):
            yes, no = changes.both()
            change, keep = reached * yes, reached * no
            changed.append(float(change.sum()))
            kept.append(float(keep.sum()))
            low, high = self.backward.bounds(i + 1)
            reached = np.zeros(high - low + 1)
            for gain, mass in self._moves(i, dither, change, keep):
                _add_clamped(reached, mass, gain)
        return np.array(kept), np.array(changed)

    def ends(self, retention: FloatArray) -> tuple[float, float]:
        """Return the largest and the smallest density of an output; see `ends_from`."""
        most, least = self.ends_from(retention)
        return float(most[0]), float(least[0])

    def ends_from(self, retention: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the largest and the smallest density of an output from every state where drawing
        begins, by going backward.

        From every state the largest is that of the better fate of the next attribute, averaged over
        its dither. A maximum of averages is at most the average of maxima, so these are bounds; as
        one fate is the better one from every state (f falls with every change), they are reached.
        """
        low, high = self.backward.bounds(self.law.n_attributes)
        most = least = np.ones(high - low + 1)
        for i, (changes, dither) in zip(
            range(self.law.n_attributes - 1, self._first - 1, -1),
            self.tables(backwards=True),
            strict=True,
        ):
            a = self.backward.n_categories[i]
            yes, no = changes.both()
            (stay, change), *keeps = self._moves(i, dither, yes * (a / (a - 1)), no * a)
            ends = []
            for later, better in ((most, np.maximum), (least, np.minimum)):
                changed = change * clamped(later, stay, stay + len(yes))
                kept = np.sum([p * clamped(later, to, to + len(yes)) for to, p in keeps], axis=0)
                fates = as_drawn.fates_after_response(
                    kept, changed, a, float(retention[i - self._first])
                )
                ends.append(better(*fates))
            most, least = ends
        return most, least

    def _moves(
        self, i: int, dither: Choice | None, changed: FloatArray, kept: FloatArray
    ) -> list[tuple[int, FloatArray]]:
        """Return by how many places every state moves if i is changed, kept, and kept with dither,
        each with its part of what is changed or kept."""
        n = self.backward.weights[i]
        shift = self.backward.bounds(i)[0] - self.backward.bounds(i + 1)[0]
        if dither is None:
            return [(shift, changed), (shift + n, kept)]
        extra, plain = dither.both()
        return [(shift, changed), (shift + n, kept * plain), (shift + n + 1, kept * extra)]


def _add_clamped(target: FloatArray, mass: FloatArray, shift: int) -> None:
    """Add masses to target, so many places further; what would fall off goes to its ends."""
    first = min(max(-shift, 0), len(mass))
    last = max(min(len(target) - shift, len(mass)), first)
    target[0] += mass[:first].sum()
    target[-1] += mass[last:].sum()
    target[first + shift : last + shift] += mass[first:last]


class _Stage:
    """What rows of several gated sums do at one attribute; the sums' states follow one another.

    Args:
        i: which attribute.
        parts: the sums.
        tables: of each the choice to change the attribute, and that to dither if kept.
    """

    def __init__(
        self,
        i: int,
        parts: Sequence[SumSampler],
        tables: Sequence[tuple[Choice, Choice | None]],
    ) -> None:
        changes, dithers = zip(*tables, strict=True)
        sizes = [choice.n_states for choice in changes]
        self.changes = Stacked(changes, sizes)
        self.dithered = np.array([choice is not None for choice in dithers])
        self.dither = Stacked(dithers, sizes)
        weights = [part.backward.weights[i] for part in parts]
        self.weights = np.array(weights, dtype=smallest_unsigned(max(weights) + 1))
        shifts, last, beyond = map(np.array, zip(*(part.moves(i) for part in parts), strict=True))
        self.first = np.cumsum(last + 1) - (last + 1)
        self.last = self.first + last
        self.shifts = shifts + self.first - (np.cumsum(sizes) - sizes)
        self.beyond = beyond


class _Rows:
    """Rows of several gated sums, those of one after those of another, and how far they have got.

    Args:
        counts: how many rows each sum has, shape (C,).
        groups: sums that are handled together: the first, and the one after the last.
    """

    def __init__(self, counts: IntArray, groups: Sequence[tuple[int, int]]) -> None:
        self._counts = counts
        ends = [0, *np.cumsum(counts).tolist()]
        self._state = np.repeat(np.arange(len(counts)), counts)  # each sum begins in one state
        self._groups = [
            (
                slice(ends[first], ends[end]),
                first if end == first + 1 else np.repeat(range(first, end), counts[first:end]),
            )
            for first, end in groups
        ]

    def draw(self, stage: _Stage, source: BitSource) -> BoolArray:
        """Return whether the stage's attribute is changed, and bring the rows to the next."""
        now = self._state
        changed = stage.changes.draw(now, source)
        kept = ~changed
        gain = kept.astype(stage.weights.dtype)
        for rows, part in self._groups:
            gain[rows] *= stage.weights[part]
        # Whether kept or not, so that the work is the same for every pattern.
        if stage.dithered.all():
            gain += stage.dither.draw(now, source) & kept
        else:
            some = np.flatnonzero(np.repeat(stage.dithered, self._counts))
            gain[some] += stage.dither.draw(now[some], source) & kept[some]
        now += gain
        for rows, part in self._groups:
            if (shifts := stage.shifts[part]).any():
                now[rows] += shifts
            if stage.beyond[part].any():
                np.clip(now[rows], stage.first[part], stage.last[part], out=now[rows])
        return changed


class TableSampler:
    """Draws patterns of a law given by its density over all 2^k patterns, along the binary tree.

    The same argument as in the module's heading, with the prefix of the pattern for a state.

    Args:
        n_categories: a_i, shape (k,).
        density: f of every pattern on any scale, flattened in C order, shape (2^k,).
    """

    def __init__(self, n_categories: Sequence[int], density: FloatArray) -> None:
        self._n_categories = tuple(n_categories)
        back = density / math.sqrt(float(density.min()) * float(density.max()))
        choices = []
        for a in reversed(n_categories):
            kept, changed = back[0::2] / a, back[1::2] * ((a - 1) / a)
            choices.append(Choice.between(changed, kept))
            back = changed + kept
        self.choices = tuple(reversed(choices))

    def walk(self, count: int, source: BitSource) -> Iterator[BoolArray]:
        """Yield, attribute by attribute, whether it is changed, shape (count,)."""
        prefix = np.zeros(count, dtype=np.int64)
        for choice in self.choices:
            changed = choice.draw(prefix, source)
            prefix = 2 * prefix + changed
            yield changed

    def words_agree(self) -> bool:
        """Return whether all choices are made by their own probabilities."""
        return all(choice.words_agree() for choice in self.choices)

    def exact_patterns(self) -> list[Fraction]:
        """Return the probability of every pattern, exactly, flattened in C order, shape (2^k,)."""
        masses = [Fraction(1)]
        for choice in self.choices:
            changed = [mass * choice.probability(j) for j, mass in enumerate(masses)]
            masses = [
                part
                for mass, change in zip(masses, changed, strict=True)
                for part in (mass - change, change)
            ]
        return masses

    def _patterns(self) -> FloatArray:
        masses = np.ones(1)
        for choice in self.choices:
            changed, kept = choice.both()
            masses = np.stack([masses * kept, masses * changed], axis=-1).ravel()
        return masses.reshape((2,) * len(self.choices))

    def fates(self) -> tuple[FloatArray, FloatArray]:
        """Return how often every attribute is kept, and changed, shapes (k,)."""
        q, axes = self._patterns(), set(range(len(self.choices)))
        sums = np.array([q.sum(axis=tuple(axes - {i})) for i in sorted(axes)])
        return sums[:, 0], sums[:, 1]

    def ends(self, retention: FloatArray) -> tuple[float, float]:
        """Return the largest and the smallest density of an output, retention (k,) included."""
        density = self._patterns()
        for i, (a, kept) in enumerate(zip(self._n_categories, retention.tolist(), strict=True)):
            fates = np.take(density, 0, axis=i) * a, np.take(density, 1, axis=i) * (a / (a - 1))
            density = np.stack(as_drawn.fates_after_response(*fates, a, kept), axis=i)
        return float(density.max()), float(density.min())


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
        self._weights = [top * (common // bottom) for top, bottom in weights]
        self._vote = ExactCategorical(self._weights)
        memory = MEMORY // len(parts)
        self._patterns = [SumSampler(part, memory) for part in parts]
        self._stages: list[_Stage] = []
        shares = weights_of_parts / weights_of_parts.sum()
        edges = np.flatnonzero(np.maximum(shares[1:], shares[:-1]) >= _ALONE) + 1
        self._groups = list(pairwise([0, *edges.tolist(), len(parts)]))

    def walk(self, count: int, source: BitSource) -> Iterator[BoolArray]:
        """Yield, attribute by attribute, whether it is changed, shape (count,)."""
        vote = self._vote.draw(count, source)
        together = all(patterns.kept for patterns in self._patterns)
        yield from (self._together if together else self._apart)(vote, source)

    def _apart(self, vote: NDArray[Any], source: BitSource) -> Iterator[BoolArray]:
        rows = [np.flatnonzero(vote == c) for c in range(len(self._patterns))]
        walks = (
            patterns.walk(each.size, source)
            for patterns, each in zip(self._patterns, rows, strict=True)
        )
        for parts in zip(*walks, strict=True):
            changed = np.empty(len(vote), dtype=np.bool_)
            for each, part in zip(rows, parts, strict=True):
                changed[each] = part
            yield changed

    def _together(self, vote: NDArray[Any], source: BitSource) -> Iterator[BoolArray]:
        if not self._stages:
            tables = zip(*[patterns.tables() for patterns in self._patterns], strict=True)
            self._stages = [_Stage(i, self._patterns, pairs) for i, pairs in enumerate(tables)]
        pieces = []
        for start in range(0, len(vote), _PIECE):
            piece = slice(start, start + _PIECE)
            order = np.argsort(vote[piece], kind="stable")
            places = np.empty_like(order)
            places[order] = np.arange(len(order))
            counts = np.bincount(vote[piece], minlength=len(self._patterns))
            pieces.append((piece, places, _Rows(counts, self._groups)))
        for stage in self._stages:
            changed = np.empty(len(vote), dtype=np.bool_)
            for piece, places, rows in pieces:
                rows.draw(stage, source).take(places, out=changed[piece], mode="clip")
            yield changed

    def words_agree(self) -> bool:
        """Return whether votes and patterns are drawn by their own probabilities."""
        return self._vote.draws_by(self._weights) and all(
            patterns.words_agree() for patterns in self._patterns
        )

    def exact_patterns(self) -> list[Fraction]:
        """Return the probability of every pattern, exactly, flattened in C order, shape (2^k,)."""
        parts = [patterns.exact_patterns() for patterns in self._patterns]
        chances = [self._vote.probability(c) for c in range(len(parts))]
        return [
            sum((chance * mass for chance, mass in zip(chances, masses, strict=True)), Fraction(0))
            for masses in zip(*parts, strict=True)
        ]

    def fates(self) -> tuple[FloatArray, FloatArray]:
        """Return how often every attribute is kept, and changed, summing forward, shapes (k,)."""
        chances = np.array([float(self._vote.probability(c)) for c in range(len(self._patterns))])
        kept, changed = zip(*(patterns.fates() for patterns in self._patterns), strict=True)
        return chances @ np.array(kept), chances @ np.array(changed)

    def ends(self, retention: FloatArray) -> tuple[float, float]:
        """Return the largest and the smallest density of an output: the parts' together, which all
        are largest where everything is kept."""
        chances = np.array([float(self._vote.probability(c)) for c in range(len(self._patterns))])
        ends = np.array([patterns.ends(retention) for patterns in self._patterns])
        most, least = chances @ ends
        return float(most), float(least)


class PatternDraws(Protocol):
    """Tables for drawing patterns."""

    def words_agree(self) -> bool:
        """Return whether what random bits are compared with are the stored probabilities."""
        ...

    def exact_patterns(self) -> list[Fraction]:
        """Return the probability of every pattern, exactly, flattened in C order, shape (2^k,)."""
        ...

    def fates(self) -> tuple[FloatArray, FloatArray]:
        """Return how often every attribute is kept, and changed, shapes (k,)."""
        ...

    def ends(self, retention: FloatArray) -> tuple[float, float]:
        """Return the largest and the smallest density of an output on one scale, retention (k,)
        included."""
        ...

    def walk(self, count: int, source: BitSource) -> Iterator[BoolArray]:
        """Yield, attribute by attribute, whether it is changed, shape (count,)."""
        ...


class VoteSampler(ShiftSampler):
    """Draws, attribute by attribute, whether it changes, and a uniform other category, used where
    it does; where retention is below 1 also a uniform category of all, used where it is not kept.

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

    def draws(self, law: as_drawn.Stated) -> bool:
        kept = law.retention.tolist()
        for share, choice in zip(kept, self._retained, strict=True):
            if (choice is None) != (share == 1.0):
                return False
            if choice and not (choice.words_agree() and choice.probability(0) == Fraction(share)):
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
