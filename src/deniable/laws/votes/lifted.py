"""A clipped ramp whose bottom is lifted where both attributes of one pair are kept.

    f(S) = E_B[ max(g(s), e^b 1{both of the pair are kept}) ],   g a ramp from 1 up to e^E,

with s and g as in :mod:`~deniable.laws.votes.gated` and 0 < b < E, then an optional independent
k-ary response per attribute (retention). A ramp gives a table of two attributes of many categories
less than their marginals promise, since it is about e^0 wherever some others are changed; a floor
on that pair then flattens the ramp for everybody. The lift gives the pair what it lacks, and costs
the others nothing of their caps (docs/proofs/clipped.md, *A ramp lifted for one pair*).

What it promises before rounding (:class:`VoteLaw` has it as drawn): the record's level is that of
the ramp, E. Given the rest, every other attribute has the ramp's level, and the two of the pair
that of max(c n, b) in place of c n, c = E/width.

With h = max(e^b − g, 0) and the pair's attributes first, f = g + 1{both kept} h: a mixture of the
ramp and of a law that keeps both, of which the moments and the pairs are sums over the others.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deniable.errors import InputError
from deniable.laws.law import floats_from_plain
from deniable.laws.patterns import FloatArray
from deniable.laws.plain import HexDouble, HexInteger, PlainLaw
from deniable.laws.votes import as_drawn, backward, frequencies
from deniable.laws.votes.backward import Backward
from deniable.laws.votes.choices import BoolArray
from deniable.laws.votes.gated import PAIR_BY_PAIR, GatedSum
from deniable.laws.votes.sampling import (
    MEMORY,
    SumSampler,
    VoteSampler,
    path_slack,
)
from deniable.laws.votes.sums import UNIT, SumExpectations, SumLaw, tilted_sum
from deniable.laws.votes.vote_law import LEAST_NORMAL, Moments, VoteLaw, after_response
from deniable.randomness import BitSource, ExactCategorical


class PlainLiftedRamp(PlainLaw, tag="lifted-ramp"):
    """The record of such a law."""

    height: HexDouble
    start: HexDouble
    width: HexDouble
    weights: list[HexInteger]
    dither: list[HexDouble]
    pair: list[int]
    lift: HexDouble
    retention: list[HexDouble]


@dataclass(frozen=True, eq=False)
class LiftedRamp(VoteLaw):
    """A uniform record, reweighted by a ramp whose bottom is lifted where one pair is kept.

    Like :class:`~deniable.laws.votes.gated.GatedSum` with a ramp for its gate; the formulas are in
    the module's heading.

    Args:
        ramp: the ramp over all attributes, without retention of its own.
        pair: positions of the two attributes, the smaller first.
        lift: b in nats, above the ramp where only the pair is kept, and below its height.
        retention: probability in (0, 1] of *not* replacing the output by a uniform category, (k,).

    Raises:
        InputError: if the parts do not fit together or a number is out of its range.

    >>> weights, ones = np.array([6, 6, 5, 5, 5]), np.ones(5)
    >>> ramp = GatedSum((9, 9, 2, 2, 2), weights, 0 * ones, "ramp", 10.0, 10.0, 2.0, ones)
    >>> lifted = LiftedRamp(ramp, (0, 1), 1.2, ones)
    >>> [round(law.least_pair_ratio(), 3) for law in (ramp, lifted)]
    [0.634, 0.742]
    """

    family: ClassVar[str] = "lifted-ramp"
    of_votes: ClassVar[tuple[str, ...]] = ("_excess", "_masses", "_lifted_pairs", "_others_sum")
    Plain = PlainLiftedRamp

    ramp: GatedSum
    pair: tuple[int, int]
    lift: float
    retention: FloatArray
    n_categories: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pair", tuple(self.pair))
        object.__setattr__(self, "n_categories", self.ramp.n_categories)
        if self.ramp.gate != "ramp" or np.any(self.ramp.retention != 1.0):
            raise InputError("what is lifted is a ramp without retention")
        k = self.n_attributes
        if len(self.pair) != 2 or not 0 <= self.pair[0] < self.pair[1] < k:
            raise InputError("a ramp is lifted for two attributes, the smaller position first")
        alone = int(self.ramp.weights[list(self.pair)].sum())
        at_bottom = float(self.ramp.gate_exponent(np.array([alone]))[0])
        if not max(at_bottom, LEAST_NORMAL) < self.lift < self.ramp.height:
            raise InputError(
                "a ramp is lifted above what it is where only the pair is kept, and below its end"
            )
        if len(self.retention) != k or not np.all(
            (self.retention >= LEAST_NORMAL) & (self.retention <= 1)
        ):
            raise InputError("retention probabilities lie in (0, 1], one per attribute")

    @property
    def ideal_epsilon(self) -> float:
        """E: the ramp's ends stay."""
        return self.ramp.height

    @property
    def opens(self) -> bool:
        return self.ramp.opens

    @property
    def attribute_weights(self) -> FloatArray:
        return self.ramp.attribute_weights

    def at_height(self, height: float) -> "LiftedRamp":
        return replace(self, ramp=self.ramp.at_height(height))

    @cached_property
    def others(self) -> list[int]:
        """All attributes but the pair's."""
        return [i for i in range(self.n_attributes) if i not in self.pair]

    def pair_fates(self) -> Iterator[tuple[tuple[bool, bool], float, int]]:
        """Yield the fates of the pair, changed or not and with which dither: whether each is
        changed, the probability under the uniform law, and what the pair adds to the sum."""
        fates = []
        for i in self.pair:
            a, theta = self.n_categories[i], float(self.ramp.dither[i])
            n = int(self.ramp.weights[i])
            kept = [(False, (1.0 - theta) / a, n), (False, theta / a, n + 1)]
            fates.append([(True, (a - 1) / a, 0), *(fate for fate in kept if fate[1] > 0)])
        for first, one, n in fates[0]:
            for second, other, m in fates[1]:
                yield (first, second), one * other, n + m

    @cached_property
    def _others_sum(self) -> tuple[SumLaw | None, FloatArray]:
        """The law of the others' sum, and e^{−b} h there, averaged over the pair's dither and with
        the probability that the pair is kept."""
        kept = [(p, n) for changed, p, n in self.pair_fates() if not any(changed)]
        law, support = None, np.zeros(1, dtype=np.int64)
        if self.others:
            weights, dither = self.ramp.weights[self.others], self.ramp.dither[self.others]
            steps = tilted_sum(self.uniform_keep[self.others], weights, dither, 0.0)
            slope = self.ramp.height / self.ramp.width
            last = math.ceil(self.ramp.start + self.lift / slope) + 1 - min(n for _, n in kept)
            law = SumLaw(steps, ceiling=last, careful=True)
            support = law.support
        values = np.zeros(len(support))
        for p, n in kept:
            below = self.lift - self.ramp.gate_exponent(support + n)
            values += p * -np.expm1(-np.maximum(below, 0.0))
        return law, values

    @cached_property
    def _excess(self) -> SumExpectations:
        """e^{−b} E_μ[h; both kept], also split by the fates of the others, (1,) and (1, k − 2)."""
        law, values = self._others_sum
        if law is None:
            return SumExpectations(values, np.empty((1, 0)), np.empty((1, 0)))
        return law.expectations(values)

    @cached_property
    def _masses(self) -> tuple[float, float, float]:
        """Fractions of the ramp and of what lifts it in the law, and ln E_μ[f]."""
        log_ramp = self.ramp.moments().log_normalizer
        added = math.exp(self.lift - log_ramp) * float(self._excess.total[0])
        return 1.0 / (1.0 + added), added / (1.0 + added), log_ramp + math.log1p(added)

    def _fates_if_lifted(self) -> tuple[FloatArray, FloatArray]:
        """Return how often attributes are kept, and changed, under what lifts the ramp, (k,)."""
        excess, total = self._excess, float(self._excess.total[0])
        keep, change = np.ones(self.n_attributes), np.zeros(self.n_attributes)
        if total > 0:
            keep[self.others] = excess.kept[0] / total
            change[self.others] = excess.changed[0] / total
        return keep, change

    def moments(self) -> Moments:
        # Sums of non-negative numbers. h is off by at most (4 E + 8) u e^b, and e^b is at most f
        # wherever h > 0; e^{b − ln E_μ[g]} by (E + |ln E_μ[g]| + 4) u beside half the ramp's own
        # error. Dropped states miss at most their chance times r_i r_j e^b, and where f is lifted
        # the part with attribute l kept, or changed, is at least r_l r_i r_j e^b.
        ramp, law = self.ramp.moments(), self._others_sum[0]
        of_ramp, of_lift, log_normalizer = self._masses
        kept, changed = self._fates_if_lifted()
        keep = of_ramp * ramp.keep + of_lift * kept
        change = of_ramp * ramp.change + of_lift * changed
        r, blur = self.uniform_keep, 1.0 - self.retention
        gain = of_ramp * ramp.gain + of_lift * ((1.0 - r) * kept - r * changed)
        missing = law.dropped * max(self.n_categories) if law else 0.0
        sums = max(ramp.relative_error, 2.0 * (law.error() if law else 0.0))
        size = 16 * self.ramp.height + 8 * abs(ramp.log_normalizer)
        return Moments(
            self.retention * keep + blur * r,
            self.retention * change + blur * (1.0 - r),
            self.retention * gain,
            log_normalizer,
            sums + 2.0 * missing + (size + 64) * UNIT,
        )

    def given_rest(self) -> FloatArray:
        level = self.ramp.slope_bounds()
        slope, pair = self.ramp.height / self.ramp.width, list(self.pair)
        n, theta = self.ramp.weights[pair], self.ramp.dither[pair]
        plain, extra = (np.maximum(slope * gain, self.lift) for gain in (n, n + 1))
        with np.errstate(divide="ignore"):  # ln 0 = −∞ where there is no dither
            level[pair] = np.logaddexp(np.log1p(-theta) + plain, np.log(theta) + extra)
        level = np.minimum(level, self.ramp.height)
        return after_response(level, self.uniform_keep, self.retention)

    def _tables(self, chosen: Sequence[int]) -> tuple[Backward, Backward]:
        """Return the expected gates of the ramp and of the lifted one, the pair's attributes before
        those chosen, and these before all others."""
        inside = {*self.pair, *chosen}
        order = [*self.pair, *chosen, *(i for i in range(self.n_attributes) if i not in inside)]
        return Backward(self.ramp, order), Backward(self.ramp, order, least=self.lift)

    def subset_level(self, subset: Sequence[int]) -> tuple[float, float]:
        # f falls with every change, as a maximum of two functions that do: see `extremes`.
        chosen = [int(i) for i in subset if i not in self.pair]
        tables = self._tables(chosen)
        averaged = [table.after(2 + len(chosen)) for table in tables]
        inside = {int(i) for i in subset}
        ends = []
        for kept in (True, False):

            def weights(i: int, kept: bool = kept) -> tuple[float, float]:
                return backward.end_weights(
                    self.n_categories[i], float(self.retention[i]) if i in inside else 0.0, kept
                )

            after = []
            for table, values in zip(tables, averaged, strict=True):
                for place in range(len(chosen) + 1, 1, -1):
                    values = table.weighed(place, values, *weights(chosen[place - 2]))
                after.append(values)
            plain, lifted = after
            first, second = map(weights, self.pair)
            stay, *_ = tables[0].parts(1, plain)
            if_changed = tables[0].weighed(1, plain, *second)
            _, one, other = tables[0].parts(1, lifted)
            if_kept = second[0] * (one + other) + second[1] * stay
            stay, *_ = tables[0].parts(0, if_changed)
            _, one, other = tables[0].parts(0, if_kept)
            ends.append(float((first[0] * (one + other) + first[1] * stay)[0]))
        return math.log(ends[0] / ends[1]), 2.02 * path_slack(self.n_attributes, self.ramp.height)

    def eigenvalues(self, subset: Sequence[int]) -> FloatArray:
        chosen = [int(i) for i in subset]
        if len(chosen) == 2 and self.n_attributes <= PAIR_BY_PAIR:
            first, second = self._single[chosen].tolist()
            pair = self._bounded_pairs[0][chosen[0], chosen[1]]
            return np.array([[1.0, second], [first, pair]])
        others = [i for i in chosen if i not in self.pair]
        added = np.zeros((2,) * len(others))
        plain, lifted = self._tables(others)
        for changed, p, n in self.pair_fates():
            if not any(changed):
                for table, sign in ((lifted, p), (plain, -p)):
                    added += sign * backward.components_from(table, len(others), 2, n)
        # h_i of the pair is 1 where it is kept.
        shape = [1 if i in self.pair else 2 for i in chosen]
        expectations = backward.components(self.ramp, chosen) + added.reshape(shape)
        return backward.normalized(expectations, self.retention[chosen])

    @cached_property
    def _single(self) -> FloatArray:
        return self.attenuations()

    @cached_property
    def _lifted_pairs(self) -> tuple[FloatArray, float]:
        """E[h_i h_j] under what lifts the ramp, (k, k), and how far off each may be."""
        law, values = self._others_sum
        lie = np.asarray(-1.0 / (self.counts - 1.0), dtype=np.float64)
        keep, change = self._fates_if_lifted()
        single = keep + lie * change
        pairs = np.ones((self.n_attributes, self.n_attributes))
        for i in self.pair:
            pairs[i], pairs[:, i] = single, single
        total = float(self._excess.total[0])
        if law is None or total == 0:
            return pairs, 0.0
        if len(self.others) > PAIR_BY_PAIR:
            counts = self.counts[self.others]
            among, wrong = frequencies.pair_expectations(law, values, counts)
        else:
            among = law.pair_expectations(values, np.ones(len(self.others)), lie[self.others])
            wrong = total * law.pair_error()
        pairs[np.ix_(self.others, self.others)] = among / total
        return pairs, wrong / total

    def pair_attenuation(self, first: int, second: int) -> float:
        of_ramp, of_lift, _ = self._masses
        kept = float(self.retention[first] * self.retention[second])
        lifted = float(self._lifted_pairs[0][first, second])
        return kept * (of_ramp * self.ramp.pair_attenuation(first, second) + of_lift * lifted)

    def bounded_pair_attenuations(self) -> tuple[FloatArray, float]:
        return self._bounded_pairs

    @cached_property
    def _bounded_pairs(self) -> tuple[FloatArray, float]:
        of_ramp, of_lift, _ = self._masses
        pairs, wrong = self.ramp.bounded_pair_attenuations()
        lifted, wrong_lift = self._lifted_pairs
        mixed = of_ramp * pairs + of_lift * lifted
        # The fractions, and the single h_i in the pair's rows, are among the moments' errors.
        error = of_ramp * wrong + of_lift * wrong_lift + 2.0 * self.moments().relative_error
        return np.asarray(mixed * np.outer(self.retention, self.retention)), error

    def sampler(self) -> VoteSampler:
        return VoteSampler(self.n_categories, self.retention, LiftedSampler(self))

    def to_plain(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "height": float(self.ramp.height).hex(),
            **self.ramp.gate_to_plain(),
            "pair": list(self.pair),
            "lift": float(self.lift).hex(),
            "retention": [value.hex() for value in self.retention.tolist()],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "LiftedRamp":
        height, lift = floats_from_plain([plain["height"], plain["lift"]], "height", 2).tolist()
        retention = floats_from_plain(plain["retention"], "retention", len(n_categories))
        ones = np.ones(len(n_categories))
        ramp = GatedSum.gate_from_plain(plain, n_categories, "ramp", height, ones)
        return cls(ramp, tuple(plain["pair"]), lift, retention)


class LiftedSampler:
    """Draws the fates of the pair, then those of all others along the ramp or the lifted one.

    The probabilities of the pair's fates are exactly proportional to doubles, μ(fate) G_2(s) with s
    what the pair adds, and G_2 that of the table by which the others are drawn: so the telescoping
    of :mod:`~deniable.laws.votes.sampling` begins with two attributes at once.

    Args:
        law: what to draw from.
    """

    def __init__(self, law: LiftedRamp) -> None:
        self._law = law
        tables = law._tables(law.others)
        # Which of the two tables, and at which state, a row goes on from.
        fates = [(changed, p, not any(changed), n) for changed, p, n in law.pair_fates()]
        low, high = tables[0].bounds(2)
        self._changed = np.array([changed for changed, *_ in fates])
        self._table = np.array([lifted for _, _, lifted, _ in fates], dtype=np.intp)
        self._state = np.clip([n - low for *_, n in fates], 0, high - low)
        self._others = [SumSampler(law.ramp, MEMORY // 2, table, first=2) for table in tables]
        gates = [sampler.first_gates for sampler in self._others]
        self.uniform = np.array([p for _, p, _, _ in fates])
        weights = [
            float(p * gates[table][state])
            for p, table, state in zip(self.uniform, self._table, self._state, strict=True)
        ]
        ratios = [weight.as_integer_ratio() for weight in weights]
        common = max(bottom for _, bottom in ratios)  # all are powers of two
        self._weights = [top * (common // bottom) for top, bottom in ratios]
        self._fate = ExactCategorical(self._weights)

    def walk(self, count: int, source: BitSource) -> Iterator[BoolArray]:
        """Yield, attribute by attribute, whether it is changed, shape (count,)."""
        fate = self._fate.draw(count, source)
        pair = dict(zip(self._law.pair, self._changed[fate].T, strict=True))
        rows = [np.flatnonzero(self._table[fate] == table) for table in range(2)]
        walks = [
            sampler.walk(each.size, source, self._state[fate[each]])
            for sampler, each in zip(self._others, rows, strict=True)
        ]
        for i in range(self._law.n_attributes):
            if i in pair:
                yield pair[i]
                continue
            changed = np.empty(count, dtype=np.bool_)
            for each, walk in zip(rows, walks, strict=True):
                changed[each] = next(walk)
            yield changed

    def words_agree(self) -> bool:
        """Return whether fates and patterns are drawn by their own probabilities."""
        return self._fate.draws_by(self._weights) and all(
            sampler.words_agree() for sampler in self._others
        )

    def _chances(self) -> list[Fraction]:
        return [self._fate.probability(fate) for fate in range(len(self._weights))]

    def exact_patterns(self) -> list[Fraction]:
        """Return the probability of every pattern, exactly, flattened in C order, shape (2^k,)."""
        k = self._law.n_attributes
        masses = np.full((2,) * k, Fraction(0), dtype=object)
        first = np.moveaxis(masses, self._law.pair, (0, 1))  # a view
        for chance, changed, table, state in zip(
            self._chances(), self._changed.astype(int), self._table, self._state, strict=True
        ):
            after = self._others[table].exact_patterns(int(state))
            part = np.array(after, dtype=object).reshape((2,) * (k - 2))
            first[tuple(changed)] += chance * part
        return list(masses.ravel())

    def fates(self) -> tuple[FloatArray, FloatArray]:
        """Return how often every attribute is kept, and changed, summing forward, shapes (k,)."""
        kept, changed = np.zeros((2, self._law.n_attributes))
        chances = np.array([float(chance) for chance in self._chances()])
        for table, sampler in enumerate(self._others):
            here = self._table == table
            reached = np.zeros(len(sampler.first_gates))
            np.add.at(reached, self._state[here], chances[here])
            keep, change = sampler.fates(reached)
            kept[self._law.others] += keep
            changed[self._law.others] += change
        for place, i in enumerate(self._law.pair):
            kept[i] = chances[~self._changed[:, place]].sum()
            changed[i] = chances[self._changed[:, place]].sum()
        return kept, changed

    def ends(self, retention: FloatArray) -> tuple[float, float]:
        """Return the largest and the smallest density of an output: both others' fates and the
        pair's are largest where everything is kept, as f falls with every change."""
        a, chances = self._law.counts, np.array([float(chance) for chance in self._chances()])
        ends = [sampler.ends_from(retention[self._law.others]) for sampler in self._others]
        found = []
        for end, better in enumerate((max, min)):
            density = np.zeros((2, 2))
            for changed, chance, table, state in zip(
                self._changed.astype(int), chances, self._table, self._state, strict=True
            ):
                density[tuple(changed)] += chance * ends[table][end][state]
            for axis, i in enumerate(self._law.pair):
                kept, changed = np.moveaxis(density, axis, 0)
                fates = kept * a[i], changed * (a[i] / (a[i] - 1))
                after = as_drawn.fates_after_response(*fates, int(a[i]), float(retention[i]))
                density = np.stack(after, axis=axis)
            found.append(float(better(density.ravel())))
        return found[0], found[1]
