"""Laws of one score of a pattern: the sum of the costs of its changed attributes.

With integer costs c_i ≥ 1 the score of a pattern D is S(D) = Σ_{i∈D} c_i, and every output with
score s has a probability in proportion to an integer g(s). N(s), the number of outputs with score
s, is a coefficient of ∏ (1 + (a_i − 1) x^{c_i}): all levels, eigenvalues and draws are ratios of
integers (docs/proofs/score.md). Attributes with equal categories and cost are of one kind.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, repeat
from operator import mul, sub
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.entropy import log2_quotient
from deniable.laws.law import (
    PatternLaw,
    Ratio,
    ShiftSampler,
    at_least_one,
    integers_from_plain,
    largest,
)
from deniable.laws.pattern_table import PatternTableSampler
from deniable.laws.patterns import FloatArray
from deniable.laws.plain import Count, HexInteger, PlainLaw
from deniable.randomness import BitSource, ExactCategorical, smallest_unsigned

MOST_SCORES = 1 << 16
"""Most that costs add up to."""

MOST_STEPS = 1 << 24
"""Most attributes times scores: additions of one convolution."""

MOST_WORDS = 1 << 26
"""Most of `ScoreTable.words`: 512 MB."""

LARGEST_LEVEL = 640.0
"""Largest logarithm in nats of a ratio of densities in floating point."""

MOST_TABLED = 16
"""Most attributes whose patterns are drawn at once, which is faster."""

_MARGIN = 1e-13
"""Relative margin by which rounded densities stay below the wanted levels."""

_BITS = 64
"""Bits of the least density."""

_PREFIX = 16
"""Random bits by which a choice is nearly always settled."""

_ONES = (1 << _PREFIX) - 1

_PIECE = 1 << 16
"""Rows drawn at a time, within the second-level cache."""

_MANY = 64
"""Different numbers of categories from which on lookup tables are small."""


_T = TypeVar("_T")


class Kind(NamedTuple):
    """Attributes with equally many categories and the same cost."""

    n_categories: int
    cost: int
    members: tuple[int, ...]


class PlainScoreTable(PlainLaw, tag="score-table"):
    """Record of a law of one score."""

    costs: list[Count]
    densities: list[HexInteger]


@dataclass(frozen=True)
class ScoreTable(PatternLaw):
    """A law whose outputs are equally likely if the costs of their changes have the same sum.

    `costs` has shape (k,); `densities` holds g(s) for s = 0 … Σ c_i, positive where some output has
    that score and 0 elsewhere.

    >>> law = ScoreTable((2, 3), (1, 1), (9, 3, 1))  # two independent responses of ratio 3
    >>> law.record_level(), law.attenuations().round(6).tolist()
    (((9, 1),), [0.5, 0.4])
    """

    family: ClassVar[str] = "score-table"
    Plain = PlainScoreTable

    n_categories: tuple[int, ...]
    costs: tuple[int, ...]
    densities: tuple[int, ...]

    def __post_init__(self) -> None:
        k = len(self.n_categories)
        if k == 0 or len(self.costs) != k or min(self.costs) < 1 or min(self.n_categories) < 2:
            raise InputError("a score table needs two categories and a cost of 1 per attribute")
        scores = sum(self.costs) + 1
        if scores > MOST_SCORES or k * scores > MOST_STEPS or self.words > MOST_WORDS:
            raise InputError("the costs of a score table are too large to be held")
        if len(self.densities) != scores:
            raise InputError("a score table needs one density per score, from 0 to all costs")
        if any(bool(n) != (g > 0) for n, g in zip(self.outputs, self.densities, strict=True)):
            raise InputError("a score table needs positive densities, 0 where no output is")

    @classmethod
    def from_densities(
        cls,
        n_categories: Sequence[int],
        costs: Sequence[int],
        densities: Sequence[float] | FloatArray,
        epsilon: float = math.inf,
        given_rest: Sequence[float] | FloatArray | None = None,
    ) -> "ScoreTable":
        """Round densities in floating point, shape (Σ c_i + 1,), to parts of 2^64 of the least.

        Their logarithms are shrunk as far as needed for the record's level not to exceed `epsilon`
        and the levels given the rest `given_rest`, shape (k,), in nats. Densities of scores that no
        output has are ignored.
        """
        sizes, prices = tuple(map(int, n_categories)), tuple(map(int, costs))
        attained = np.array(output_counts([(2, cost) for cost in prices])) > 0
        values = np.where(attained, np.asarray(densities, dtype=np.float64), 1.0)
        if not (np.all(np.isfinite(values)) and np.all(values > 0)):
            raise InputError("every score needs a positive density, or ε is infinite")
        logs = np.log(values)
        logs -= logs[attained].min()
        if logs[attained].max() > LARGEST_LEVEL:
            raise InputError(f"the densities of scores differ by over {LARGEST_LEVEL:g} nats")
        caps = [epsilon, *([math.inf] * len(sizes) if given_rest is None else given_rest)]
        shrunk, margin, excess = 1.0, _MARGIN, 1.0
        while excess:
            above = np.ldexp(np.expm1(np.where(attained, shrunk * logs, 0.0)), _BITS).tolist()
            whole = [
                int(more) + (1 << _BITS) if some else 0
                for more, some in zip(above, attained, strict=True)
            ]
            law = cls(sizes, prices, tuple(whole))
            levels = [law.record_level(), *law.given_rest_levels()]
            pairs = [(_nats(level[0]), cap) for level, cap in zip(levels, caps, strict=True)]
            broken = [(nats, cap) for nats, cap in pairs if nats > cap * (1 - _MARGIN)]
            excess = max((nats / cap if cap > 0 else math.inf for nats, cap in broken), default=0.0)
            margin *= 2  # the factor alone may change no integer
            shrunk *= (1 - margin) / max(excess, 1.0)
        return law

    @property
    def words(self) -> float:
        """Most 64-bit words that the numbers of outputs of a sampler take."""
        bits = sum(map(math.log2, self.n_categories))
        return len(self.kinds) * (sum(self.costs) + 1) * bits / 64

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attributes, in the order in which they first appear."""
        members: dict[tuple[int, int], list[int]] = {}
        for i, alike in enumerate(zip(self.n_categories, self.costs, strict=True)):
            members.setdefault(alike, []).append(i)
        return tuple(Kind(*alike, tuple(places)) for alike, places in members.items())

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """N(s), the number of outputs with every score, shape (Σ c_i + 1,)."""
        return tuple(output_counts(zip(self.n_categories, self.costs, strict=True)))

    def outcomes(self) -> tuple[int, ...]:
        """Return the weights N(s) g(s) of the scores in a draw, shape (Σ c_i + 1,)."""
        return tuple(map(mul, self.outputs, self.densities))

    @cached_property
    def total(self) -> int:
        """Σ_s N(s) g(s), the weight of all outputs."""
        return sum(self.outcomes())

    def _without(self, chosen: Sequence[int]) -> list[int]:
        """Return the numbers of outputs by score of all attributes but those chosen."""
        counts = list(self.outputs)
        for i in chosen:
            counts = _divided(counts, self.n_categories[i], self.costs[i])
        return counts

    def seen(self, subset: Sequence[int]) -> list[int]:
        """Return the density of the columns of a subset, by their own score: itself a law of one
        score, Σ_u N_rest(u) g(t + u), with 0 where none of their outputs has the score t."""
        rest = self._without(subset)
        own = output_counts((self.n_categories[i], self.costs[i]) for i in subset)
        return [sum(map(mul, rest, self.densities[t:])) if n else 0 for t, n in enumerate(own)]

    def record_level(self, subset: Sequence[int] | None = None) -> tuple[Ratio, ...]:
        seen = self.densities if subset is None else self.seen(subset)
        return ((max(seen), min(g for g in seen if g)),)

    @cached_property
    def _of_kinds(self) -> list[tuple[int, int]]:
        """For every kind the weights of one output of an attribute of it: kept, and changed."""
        found = []
        for n, _, (first, *_) in self.kinds:
            kept = sum(map(mul, self._without([first]), self.densities))
            found.append((kept, (self.total - kept) // (n - 1)))
        return found

    @cached_property
    def kind_of(self) -> list[int]:
        """The place among the kinds of every attribute."""
        place = {i: t for t, kind in enumerate(self.kinds) for i in kind.members}
        return [place[i] for i in range(len(self.costs))]

    def _by_attribute(self, of_kinds: Sequence[_T]) -> list[_T]:
        return [of_kinds[t] for t in self.kind_of]

    def attribute_levels(self) -> list[tuple[Ratio]]:
        return self._by_attribute([(at_least_one(pair),) for pair in self._of_kinds])

    def given_rest_levels(self) -> list[tuple[Ratio]]:
        levels = []
        for _, cost, (first, *_) in self.kinds:
            scores = (s for s, n in enumerate(self._without([first])) if n)
            ratios = {(self.densities[s], self.densities[s + cost]) for s in scores}
            levels.append((largest([at_least_one(pair) for pair in ratios]),))
        return self._by_attribute(levels)

    def keep_probabilities(self) -> NDArray[np.float64]:
        return np.array(self._by_attribute([kept / self.total for kept, _ in self._of_kinds]))

    def attenuations(self) -> NDArray[np.float64]:
        return np.array(
            self._by_attribute([(kept - changed) / self.total for kept, changed in self._of_kinds])
        )

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        density = np.array([g / self.total for g in self.seen(subset)])
        score = np.zeros((), dtype=np.intp)
        for i in subset:
            score = np.add.outer(score, [0, self.costs[i]])
        values = density[score]
        for axis, i in enumerate(subset):
            kept, changed = np.take(values, 0, axis=axis), np.take(values, 1, axis=axis)
            n = self.n_categories[i]
            values = np.stack([kept + (n - 1) * changed, kept - changed], axis=axis)
        return np.asarray(values)

    @cached_property
    def _of_pairs(self) -> FloatArray:
        """φ of two different attributes of two kinds, shape (kinds, kinds); NaN where a kind has
        one attribute alone."""
        g, found = self.densities, np.full((len(self.kinds),) * 2, math.nan)
        for s, (_, cost, members) in enumerate(self.kinds):
            rest = self._without(members[:1])
            fall = [*map(sub, g, g[cost:])]
            for t, (n_other, other, others) in enumerate(self.kinds[: s + 1]):
                if s == t and len(others) == 1:
                    continue
                both = _divided(rest, n_other, other)
                value = sum(map(mul, both, map(sub, fall, fall[other:]))) / self.total
                found[s, t] = found[t, s] = value
        return found

    def pair_eigenvalues(self) -> NDArray[np.float64]:
        """Return φ of every two attributes, shape (k, k), and of each by itself on the diagonal."""
        values: NDArray[np.float64] = self._of_pairs[np.ix_(self.kind_of, self.kind_of)]
        np.fill_diagonal(values, self.attenuations())
        return values

    def pair_attenuation(self, first: int, second: int) -> float:
        return float(self._of_pairs[self.kind_of[first], self.kind_of[second]])

    def least_pair_ratio(self) -> float:
        single = np.array([(kept - changed) / self.total for kept, changed in self._of_kinds])
        if len(self.costs) == 1:
            return 1.0
        return float(np.nanmin(self._of_pairs / np.outer(single, single)))

    def record_entropy(self) -> float:
        # N(s) outputs have probability g(s)/total each.
        return math.fsum(
            weight / self.total * -_log2(g, self.total)
            for weight, g in zip(self.outcomes(), self.densities, strict=True)
            if g
        )

    def pattern_weights(self) -> tuple[int, ...]:
        """Return the weights of the 2^k patterns of few attributes, as a pattern table has them."""
        weights = [(0, 1)]
        for n, cost in zip(self.n_categories, self.costs, strict=True):
            weights = [
                (s + added, ways * times)
                for s, ways in weights
                for added, times in ((0, 1), (cost, n - 1))
            ]
        return tuple(ways * self.densities[s] for s, ways in weights)

    def sampler(self) -> "PatternTableSampler | ScoreSampler":
        few = len(self.costs) <= MOST_TABLED
        return PatternTableSampler(self) if few else ScoreSampler(self)

    def to_plain(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "costs": list(self.costs),
            "densities": [f"{g:x}" for g in self.densities],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "ScoreTable":
        costs = tuple(plain["costs"])
        if len(costs) != len(n_categories) or sum(costs) >= MOST_SCORES:
            raise InputError("a score table needs one cost per attribute, of 2^16 in all at most")
        densities = integers_from_plain(plain["densities"], "densities", sum(costs) + 1)
        return cls(n_categories, costs, densities)


class ScoreSampler(ShiftSampler):
    """Draws the score of many attributes, then for every kind the number of changes, then which
    attributes change and an other category for each, used where it changes.

    A draw is by N(s) g(s), then by C(m, n) (a − 1)^n times the number of outputs of the later kinds
    that have the rest of the score, then by the changes left among the attributes left.
    """

    def __init__(self, law: ScoreTable) -> None:
        super().__init__(law.n_categories)
        self._kinds, self._kind_of = law.kinds, law.kind_of
        self._score = ExactCategorical(law.outcomes())
        later = [[1]]
        for n, cost, members in reversed(law.kinds):
            later.append(output_counts([(n, cost)] * len(members), later[-1]))
        self._later = later[::-1]
        self._ways = [
            [math.comb(len(members), c) * (n - 1) ** c for c in range(len(members) + 1)]
            for n, _, members in law.kinds
        ]
        self._floors = [self._first_bits(t) for t in range(len(law.kinds) - 1)]
        sizes = set(law.n_categories)
        bits = 16 if len(sizes) < _MANY else 8
        self._others = {n: ExactCategorical([1] * (n - 1), prefix_bits=bits) for n in sizes}

    def _weights(self, t: int, score: int) -> list[int]:
        """Return the weights of the numbers of changes in kind t where the score left is given."""
        rest, cost = self._later[t + 1], self._kinds[t].cost
        left = (score - cost * c for c in range(len(self._ways[t])))
        return [
            ways * rest[s] if 0 <= s < len(rest) else 0
            for ways, s in zip(self._ways[t], left, strict=True)
        ]

    def _edges(self, t: int) -> Iterator[list[int]]:
        """Yield the sums of the first 1 … m + 1 weights of kind t, for every score left."""
        rest, cost = self._later[t + 1], self._kinds[t].cost
        edges = [0] * len(self._later[t])
        for changes, ways in enumerate(self._ways[t]):
            moved = chain(repeat(0, cost * changes), rest, repeat(0))
            edges = [edge + ways * more for edge, more in zip(edges, moved, strict=False)]
            yield edges

    def _first_bits(self, t: int) -> NDArray[np.uint16]:
        """Return the first 16 bits of the boundaries between 0 … m changes, shape (m, scores); all
        ones also for a boundary at 1."""
        *inner, _ = self._edges(t)
        found = [
            [
                min(_ONES, (edge << _PREFIX) // (total or 1))
                for edge, total in zip(edges, self._later[t], strict=True)
            ]
            for edges in inner
        ]
        return np.array(found, dtype=np.uint16)

    def draws(self, law: ScoreTable) -> bool:
        # The kinds' weights add up to those of the kind before and, first, to N(s).
        return (
            (self._kinds, self._kind_of) == (law.kinds, law.kind_of)
            and self._score.draws_by(law.outcomes())
            and self._later[0] == list(law.outputs)
            and self._later[-1] == [1]
            and all(list(self._edges(t))[-1] == self._later[t] for t in range(len(self._kinds)))
            and all(
                np.array_equal(floors, self._first_bits(t)) for t, floors in enumerate(self._floors)
            )
            and all(others.draws_by([1] * (n - 1)) for n, others in self._others.items())
        )

    def walk(self, count: int, source: BitSource) -> Iterator[NDArray[Any]]:
        score = self._score.draw(count, source).astype(np.intp)
        first = {kind.members[0]: t for t, kind in enumerate(self._kinds)}
        left: dict[int, tuple[int, NDArray[Any]]] = {}  # attributes, and changes among them
        pieces = [slice(start, start + _PIECE) for start in range(0, count, _PIECE)]
        for i, n in enumerate(self.n_categories):
            t = self._kind_of[i]
            if i in first:
                changes = [self._changes(t, score[piece], source) for piece in pieces]
                left[t] = len(self._kinds[t].members), np.concatenate(changes or [score])
            among, changes_left = left.pop(t)
            changed = changes_left
            if among > 1:
                drawn = [_chosen(changes_left[piece], among, source) for piece in pieces]
                changed = np.concatenate(drawn or [score])
                left[t] = among - 1, changes_left - changed
            shift = self._others[n].draw(count, source)
            shift += 1
            shift *= changed.astype(shift.dtype)
            yield shift

    def _changes(self, t: int, score: NDArray[np.intp], source: BitSource) -> NDArray[Any]:
        """Return the numbers of changes in kind t, shape (n,), and take them from the score."""
        cost, most = self._kinds[t].cost, len(self._ways[t]) - 1
        if t == len(self._floors):  # the last kind takes all that is left
            return (score // cost).astype(smallest_unsigned(most))
        bits = source.bits(np.uint16, len(score))
        changes, open_ = np.zeros(len(score), dtype=smallest_unsigned(most)), False
        for floors in self._floors[t]:
            stored = floors.take(score, mode="clip")
            changes += bits >= stored
            open_ = open_ | (bits == stored)
        for row in np.flatnonzero(open_):
            weights = self._weights(t, int(score[row]))
            changes[row] = _settled(weights, int(bits[row]), source)
        score -= np.multiply(changes, cost, dtype=np.intp)
        return changes


def _chosen(changes: NDArray[Any], among: int, source: BitSource) -> NDArray[Any]:
    """Return whether the next attribute is among the changed ones, shape (n,)."""
    bits = source.bits(np.uint16, len(changes))
    scaled = bits * np.uint32(among)
    edge = (np.uint32(among) - changes.astype(np.uint32)) << np.uint32(_PREFIX)
    chosen = (scaled >= edge).astype(changes.dtype)
    for row in np.flatnonzero((scaled < edge) & (edge < scaled + np.uint32(among))):
        changed = int(changes[row])
        chosen[row] = _settled([among - changed, changed], int(bits[row]), source)
    return chosen


def _settled(weights: Sequence[int], prefix: int, source: BitSource) -> int:
    """Return the outcome of a draw by weights of which the first 16 bits are drawn."""
    *edges, total = accumulate(weights)
    value, bits = prefix, _PREFIX
    while True:
        low = value * total
        least = sum(edge << bits <= low for edge in edges)
        if least == sum(edge << bits < low + total for edge in edges):
            return least
        more = int(source.bits(np.uint64, 1)[0])
        # The second word brings the bits to 64, every further one adds as many.
        value = value << 48 | more >> _PREFIX if bits == _PREFIX else value << 64 | more
        bits = 64 if bits == _PREFIX else bits + 64


def output_counts(attributes: Iterable[tuple[int, int]], counts: Sequence[int] = (1,)) -> list[int]:
    """Return the coefficients of ∏ (1 + (a − 1) x^c) over pairs (a, c), times a polynomial."""
    found = list(counts)
    for (n, cost), alike in Counter(attributes).most_common():
        if len(found) == 1:  # the binomial theorem
            powers = [math.comb(alike, c) * (n - 1) ** c * found[0] for c in range(alike + 1)]
            found = [0] * (alike * cost + 1)
            found[::cost] = powers
            continue
        none = [0] * cost
        for _ in range(alike):
            moved = zip(found + none, none + found, strict=True)
            found = [kept + (n - 1) * changed for kept, changed in moved]
    return found


def _divided(counts: Sequence[int], n_categories: int, cost: int) -> list[int]:
    """Return the coefficients of a polynomial divided by a factor 1 + (a − 1) x^c that it has."""
    rest = list(counts[:-cost])
    for s in range(cost, len(rest)):
        rest[s] -= (n_categories - 1) * rest[s - cost]
    return rest


def _nats(ratio: Ratio) -> float:
    """Return the logarithm of a ratio of at least 1, without cancellation."""
    return math.log1p((ratio[0] - ratio[1]) / ratio[1])


def _log2(part: int, whole: int) -> float:
    """Return log₂ of a part of a whole, without cancellation."""
    if 2 * part > whole:
        return math.log1p(-((whole - part) / whole)) / math.log(2)
    return log2_quotient(part, whole)
