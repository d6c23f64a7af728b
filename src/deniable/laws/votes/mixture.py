"""The law that mixes several weighted votes over all patterns of about twenty attributes at most.

    f(S) ∝ 1 + Σ_c m_c 1[Σ_{i kept} n^c_i >= θ_c],    integers n^c_i >= 0, θ_c, and m_c > 0,

then an optional independent k-ary response per attribute (retention). The empty pattern must win
every vote and the full one none; then ε = ln(1 + Σ m_c). The optimum of Yamamoto and Shibuya's
linear program is of this form with at most k votes (docs/proofs/optimal.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deniable.errors import InputError
from deniable.laws.law import floats_from_plain, integers_from_plain
from deniable.laws.patterns import FloatArray, IntArray, pattern_eigenvalues
from deniable.laws.plain import HexDouble, HexInteger, PlainLaw
from deniable.laws.votes.halves import Halves, kept_sums, product_masses
from deniable.laws.votes.sampling import TableSampler, VoteSampler
from deniable.laws.votes.sums import UNIT
from deniable.laws.votes.vote_law import LARGEST_HEIGHT, LEAST_NORMAL, Moments, VoteLaw

MAX_ATTRIBUTES = 20
"""All 2^k patterns are held: 8 MB of doubles."""

MAX_WEIGHT = 1 << 52
"""Of an attribute in a vote: sums of twenty stay below 2^63."""

LEAST_MULTIPLIER = 2.0**-1000
MOST_MULTIPLIED = math.exp(LARGEST_HEIGHT)
"""Between these a vote's multiplier lies: its products with masses of patterns are normal
numbers."""

_LIMIT = 1 << 60
"""Weights and thresholds of a record above this are refused before they are made int64."""

MOST_PATTERNS_OF_VOTES = 1 << 26
"""Votes times patterns, at most: every vote is counted over all of them."""


class PlainMixture(PlainLaw, tag="mixed-votes"):
    """The record of such a law."""

    votes: list[list[HexInteger]]
    thresholds: list[HexInteger]
    multipliers: list[HexDouble]
    retention: list[HexDouble]


@dataclass(frozen=True, eq=False)
class VoteMixture(VoteLaw):
    """A uniform record, or a uniform record conditioned on winning one of several weighted votes.

    The optimum of Yamamoto and Shibuya's linear program is such a law, with at most k votes. The
    formulas are in the module's heading.

    Args:
        n_categories: a_i, shape (k,), k up to `MAX_ATTRIBUTES`.
        votes: n^c_i from 0 to `MAX_WEIGHT`, shape (C, k).
        thresholds: θ_c from 1 to Σ_i n^c_i, shape (C,).
        multipliers: m_c > 0, shape (C,).
        retention: probability in (0, 1] of *not* replacing the output by a uniform category, (k,).

    Raises:
        InputError: if the shapes differ or a number is out of its range.

    >>> votes, thresholds = np.array([[1, 1]]), np.array([2])
    >>> both = VoteMixture((2, 2), votes, thresholds, np.array([1.0]), np.ones(2))
    >>> both.keep_probabilities().round(4).tolist(), round(both.record_level(), 4)
    ([0.6, 0.6], 0.6931)
    """

    family: ClassVar[str] = "mixed-votes"
    Plain = PlainMixture
    of_votes: ClassVar[tuple[str, ...]] = ("density", "_parts")

    n_categories: tuple[int, ...]
    votes: IntArray
    thresholds: IntArray
    multipliers: FloatArray
    retention: FloatArray

    def __post_init__(self) -> None:
        k = len(self.n_categories)
        n_votes = len(self.multipliers)
        if not 1 <= k <= MAX_ATTRIBUTES:
            raise InputError(f"a mixture of votes has 1 to {MAX_ATTRIBUTES} attributes, not {k}")
        if n_votes == 0 or self.votes.shape != (n_votes, k) or len(self.thresholds) != n_votes:
            raise InputError("a mixture of votes needs k weights and one threshold per vote")
        if not (min(self.n_categories) >= 2 and np.all(self.votes >= 0)):
            raise InputError("a mixture of votes needs category counts >= 2 and weights >= 0")
        if np.any(self.votes > MAX_WEIGHT):
            raise InputError("the weights of a vote are at most 2^52")
        if np.any(self.thresholds <= 0) or np.any(self.thresholds > self.votes.sum(axis=1)):
            raise InputError("a vote's threshold lies above 0 and at most at its sum of weights")
        in_range = (self.multipliers >= LEAST_MULTIPLIER) & (self.multipliers <= MOST_MULTIPLIED)
        if not np.all(in_range) or math.fsum(self.multipliers.tolist()) > MOST_MULTIPLIED:
            raise InputError(
                f"the multipliers of a mixture of votes are at least {LEAST_MULTIPLIER:g}, and add "
                f"up to at most e^{LARGEST_HEIGHT:g}"
            )
        if len(self.retention) != k or not np.all(
            (self.retention >= LEAST_NORMAL) & (self.retention <= 1)
        ):
            raise InputError("retention probabilities lie in (0, 1]")

    @property
    def ideal_epsilon(self) -> float:
        """ln(1 + Σ m_c), nats; retention cannot raise it.

        Votes with 0 < θ_c <= Σ n^c_i are won by the empty pattern and lost by the full one, and by
        monotonicity those two are the largest and the smallest f.
        """
        return math.log1p(math.fsum(self.multipliers.tolist()))

    @property
    def opens(self) -> bool:
        return True

    @property
    def density_slack(self) -> float:
        return 1.01 * self.density_roundings * UNIT

    @property
    def attribute_weights(self) -> FloatArray:
        return self.multipliers @ self.votes

    @cached_property
    def density(self) -> FloatArray:
        """f of every pattern before retention, from 1 to e^ε, flattened in C order, (2^k,).

        Each is off by at most C u relatively: it is a sum of C + 1 positive numbers.
        """
        cut = self.n_attributes // 2
        f = np.ones((2**cut, 2 ** (self.n_attributes - cut)))
        for weights, threshold, multiplier in zip(
            self.votes, self.thresholds, self.multipliers, strict=True
        ):
            need = threshold - kept_sums(weights[cut:])
            won = kept_sums(weights[:cut])[:, None] >= need
            np.add(f, multiplier, out=f, where=won)
        return f.ravel()

    @cached_property
    def final_density(self) -> FloatArray:
        """f of every pattern after retention, on the same scale, shape (2,)·k.

        An own k-ary response replaces f by λ f + (1 − λ)(r f_kept + (1 − r) f_changed) along its
        axis: at most 8 roundings an attribute on top of those of `density`.
        """
        f = self.density.reshape((2,) * self.n_attributes)
        for i in np.flatnonzero(self.retention < 1).tolist():
            a, kept = self.n_categories[i], float(self.retention[i])
            mean = np.take(f, [0], axis=i) / a + np.take(f, [1], axis=i) * ((a - 1) / a)
            f = kept * f + (1.0 - kept) * mean
        return f

    @property
    def density_roundings(self) -> int:
        """How many roundings an entry of `final_density` has seen at most."""
        return len(self.multipliers) + 8 * int(np.count_nonzero(self.retention < 1))

    @cached_property
    def pattern_probability(self) -> FloatArray:
        """q of every pattern, retention included, shape (2,)·k."""
        masses = product_masses(self.uniform_keep).reshape((2,) * self.n_attributes)
        q = masses * self.final_density
        return np.asarray(q / q.sum())

    def at_height(self, height: float) -> "VoteMixture":
        factor = math.expm1(height) / math.fsum(self.multipliers.tolist())
        other = replace(self, multipliers=self.multipliers * factor)
        other.__dict__["_parts"] = self._parts
        return other

    def moments(self) -> Moments:
        r = self.uniform_keep
        won, kept, changed = self._parts
        m = self.multipliers
        normalizer = 1.0 + float(m @ won)
        part_kept, part_changed = m @ kept, m @ changed
        keep, change = (r + part_kept) / normalizer, (1.0 - r + part_changed) / normalizer
        blur = 1.0 - self.retention
        # Masses: k factors; suffix sums and the sum over halves: 2^{k/2} additions each at worst.
        k = self.n_attributes
        error = 2 * (2 * k + 2 * 2.0 ** ((k + 1) // 2) + len(m) + 32) * UNIT
        return Moments(
            self.retention * keep + blur * r,
            self.retention * change + blur * (1.0 - r),
            self.retention * ((1.0 - r) * part_kept - r * part_changed) / normalizer,
            math.log(normalizer),
            error,
        )

    @cached_property
    def _parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """μ(D_c), μ(D_c; i kept), μ(D_c; i changed) of every vote: (C,), (C, k), (C, k)."""
        halves = Halves(self.uniform_keep)
        parts = [
            halves.vote(n, int(threshold))
            for n, threshold in zip(self.votes, self.thresholds, strict=True)
        ]
        won, kept, changed = zip(*parts, strict=True)
        return np.array(won), np.array(kept), np.array(changed)

    def eigenvalues(self, subset: Sequence[int]) -> FloatArray:
        return pattern_eigenvalues(self.pattern_probability, self.n_categories, subset)

    def bounded_pair_attenuations(self) -> tuple[FloatArray, float]:
        return self._bounded_pairs

    @cached_property
    def _bounded_pairs(self) -> tuple[FloatArray, float]:
        k = self.n_attributes
        pairs = np.full((k, k), np.nan)
        for i in range(k):
            for j in range(i):
                pairs[i, j] = pairs[j, i] = self.pair_attenuation(i, j)
        # Chances of patterns are products of k masses and a density, over their sum; of those of a
        # pair's four outcomes a quarter of all patterns each is added up, in an order not known.
        roundings = 3 * k + self.density_roundings + 2.0**k + 32
        return pairs, 1.01 * roundings * UNIT

    def subset_level(self, subset: Sequence[int]) -> tuple[float, float]:
        # By monotonicity (see `backward.extremes`) the extremes are where all of A is kept and
        # where all of it is changed; f_A averages f over the other attributes.
        chosen, k = list(subset), self.n_attributes
        ends = []
        for changed in (0, 1):
            f = self.final_density[tuple(changed if i in chosen else slice(None) for i in range(k))]
            masses = product_masses(np.delete(self.uniform_keep, chosen)).reshape(f.shape)
            ends.append(float((f * masses).sum()))
        # Products of k masses, and numpy's pairwise sums, on each side of the quotient.
        wrong = 2.02 * (3 * k + 160 + self.density_roundings) * UNIT
        return math.log(ends[0] / ends[1]), wrong

    def given_rest(self) -> FloatArray:
        f = np.log(self.final_density)
        steps = [float(np.abs(np.diff(f, axis=i)).max()) for i in range(self.n_attributes)]
        # |d ln f| of each of the two entries, two logarithms of up to ε, one difference.
        return np.array(steps) + (2.02 * self.density_roundings + 6 * (self.ideal_epsilon + 1)) * (
            UNIT
        )

    def sampler(self) -> VoteSampler:
        patterns = TableSampler(self.n_categories, self.density)
        return VoteSampler(self.n_categories, self.retention, patterns)

    def to_plain(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "votes": [[f"{weight:x}" for weight in vote] for vote in self.votes.tolist()],
            "thresholds": [f"{threshold:x}" for threshold in self.thresholds.tolist()],
            "multipliers": [value.hex() for value in self.multipliers.tolist()],
            "retention": [value.hex() for value in self.retention.tolist()],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "VoteMixture":
        k = len(n_categories)
        votes = plain["votes"]
        if not 0 < len(votes) <= MOST_PATTERNS_OF_VOTES >> min(k, MAX_ATTRIBUTES):
            raise InputError("a mixture has at least one vote, and at most 2^26 patterns of all")
        weights = [integers_from_plain(vote, "votes", k) for vote in votes]
        thresholds = integers_from_plain(plain["thresholds"], "thresholds", len(votes))
        if max(map(max, weights), default=0) > _LIMIT or max(thresholds) > _LIMIT:
            raise InputError("the mechanism's votes are too large")
        return cls(
            n_categories,
            np.array(weights, dtype=np.int64).reshape(len(votes), k),
            np.array(thresholds, dtype=np.int64),
            floats_from_plain(plain["multipliers"], "multipliers", len(votes)),
            floats_from_plain(plain["retention"], "retention", k),
        )
