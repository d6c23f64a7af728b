"""A mixture of several votes or ramps for any number of attributes, each with weights of its own.

    f(S) ∝ Σ_c α_c e^{−E_c/2} g_c(S),   α_c > 0,  g_c a gate from 1 up to e^{E_c},

then an optional independent k-ary response per attribute (retention). Source:
docs/proofs/optimal.md, section 5; docs/proofs/clipped.md, section 5.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deniable.errors import InputError
from deniable.laws.law import floats_from_plain
from deniable.laws.patterns import FloatArray
from deniable.laws.plain import HexDouble, PlainLaw
from deniable.laws.votes import backward
from deniable.laws.votes.as_drawn import log_quotient
from deniable.laws.votes.gated import GatedSum, PlainGate
from deniable.laws.votes.sampling import STEP_ROUNDINGS, SumSampler, VoteSampler, path_slack
from deniable.laws.votes.sums import UNIT
from deniable.laws.votes.vote_law import (
    LEAST_NORMAL,
    PAIR_BY_PAIR,
    Moments,
    VoteLaw,
    after_response,
)

LEAST_ALPHA = 1e-60
"""α_c lies between this and its inverse."""

LARGEST_EXPONENT = 690.0
"""Limit on |ln α_c| + E_c/2, so that α_c e^{±E_c/2} of every part is a normal number."""

MOST_STATES_OF_PARTS = 1 << 28
"""The most doubles that `sums` holds for all parts together: 2 GB."""


class PlainBlend(PlainLaw, tag="blended-votes"):
    """The record of the law."""

    votes: list[PlainGate]
    shares: list[HexDouble]
    retention: list[HexDouble]


@dataclass(frozen=True, eq=False)
class VoteBlend(VoteLaw):
    """A uniform record, reweighted by several votes or ramps over its unchanged attributes.

    Like :class:`~deniable.laws.votes.gated.GatedSum`, with more than one vote; the formulas are in
    the module's docstring.

    ``alpha``: α_c > 0, shape (C,).

    >>> ones, zeros = np.ones(2), np.zeros(2)
    >>> one = GatedSum((2, 2), np.array([1, 0]), zeros, "vote", 0, 1, 1.0, ones)
    >>> other = GatedSum((2, 2), np.array([0, 1]), zeros, "vote", 0, 1, 1.0, ones)
    >>> VoteBlend((one, other), np.array([0.75, 0.25]), ones).keep_probabilities().round(4).tolist()
    [0.6733, 0.5578]
    """

    family: ClassVar[str] = "blended-votes"
    Plain = PlainBlend

    parts: tuple[GatedSum, ...]
    alpha: FloatArray
    retention: FloatArray
    n_categories: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts or len(self.alpha) != len(self.parts):
            raise InputError("a blend of votes needs one α per vote, and at least one vote")
        if not np.all((self.alpha >= LEAST_ALPHA) & (self.alpha <= 1 / LEAST_ALPHA)):
            raise InputError(
                f"the α of a blend of votes lie between {LEAST_ALPHA:g} and its inverse"
            )
        if float(np.abs(np.log(self.alpha)).max()) + 0.5 * self.height > LARGEST_EXPONENT:
            raise InputError("the α of a blend of votes are too small or large for its height")
        held = sum(part.states_told_apart for part in self.parts)
        if held > MOST_STATES_OF_PARTS:
            raise InputError("the votes of a blend have too large weights to be held together")
        first = self.parts[0]
        object.__setattr__(self, "n_categories", first.n_categories)
        for part in self.parts:
            if np.any(part.retention != 1.0):
                raise InputError("the parts of a blend are gates without retention")
            if part.n_categories != first.n_categories:
                raise InputError("the parts of a blend of votes are over the same attributes")
        fits = len(self.retention) == first.n_attributes
        if not fits or not np.all((self.retention >= LEAST_NORMAL) & (self.retention <= 1)):
            raise InputError("retention probabilities lie in (0, 1]")

    @property
    def height(self) -> float:
        """The largest E_c in nats."""
        return max(part.height for part in self.parts)

    @property
    def _one_height(self) -> bool:
        return len({part.height for part in self.parts}) == 1

    @property
    def ideal_epsilon(self) -> float:
        """ln(Σ α_c e^{E_c/2}/Σ α_c e^{−E_c/2})."""
        if self._one_height:
            return self.height
        half = np.array([0.5 * part.height for part in self.parts])
        most = float(half.max())
        # Where everything is changed the lowest gates are most of f.
        high = math.fsum((self.alpha * np.exp(half - most)).tolist())
        low = math.fsum((self.alpha * np.exp(most - half)).tolist())
        return 2.0 * most + math.log(high) - math.log(low)

    @property
    def drawing_slack(self) -> float:
        return 2.0 * (path_slack(self.n_attributes, self.height) + self.density_slack)

    @property
    def largest_height(self) -> float:
        return min(part.largest_height for part in self.parts)

    @property
    def opens(self) -> bool:
        return all(part.opens for part in self.parts)

    @property
    def density_slack(self) -> float:
        # The weights of the parts: two products; the divisor of a part cancels. Where heights
        # differ the level itself is computed: exponents, exponentials, a product and a logarithm
        # at either end.
        ends = 0.0 if self._one_height else 4.0 * self.height + 32.0
        return 1.01 * (STEP_ROUNDINGS + 4 + ends) * UNIT

    @property
    def attribute_weights(self) -> FloatArray:
        return np.asarray(self.alpha @ np.array([part.attribute_weights for part in self.parts]))

    def at_height(self, height: float) -> "VoteBlend":
        if not self._one_height:
            raise InputError("a blend of gates of several heights has no other height")
        return replace(self, parts=tuple(part.at_height(height) for part in self.parts))

    @cached_property
    def _logs(self) -> FloatArray:
        """ln E_μ[e^{−E_c/2} g_c], shape (C,)."""
        return np.array([part.moments().log_normalizer - 0.5 * part.height for part in self.parts])

    @cached_property
    def _normalizers(self) -> FloatArray:
        """Fractions of the parts in the law, α_c E_μ[e^{−E_c/2} g_c]/Σ, shape (C,)."""
        masses = self.alpha * np.exp(self._logs - self._logs.max())
        return np.asarray(masses / masses.sum())

    def moments(self) -> Moments:
        return self._moments

    @cached_property
    def _moments(self) -> Moments:
        # Sums over parts of non-negative numbers. E_μ[g_c] is good to half a part's error bound and
        # the roundings of its logarithm and exponential, (2 (|ln E_μ[g_c]| + E_c) + 8) u at most;
        # twice, for numerator and denominator, and C + 8 roundings of products and sums.
        parts = [part.moments() for part in self.parts]
        logs = [abs(one.log_normalizer) for one in parts]
        if not self._one_height:
            logs = [log + part.height for log, part in zip(logs, self.parts, strict=True)]
        mass = self._normalizers
        keep = mass @ np.array([one.keep for one in parts])
        change = mass @ np.array([one.change for one in parts])
        gain = mass @ np.array([one.gain for one in parts])
        r, blur = self.uniform_keep, 1.0 - self.retention
        # f is 1 where everything is changed.
        ends = -0.5 * np.array([part.height for part in self.parts])
        top, bottom = float(self._logs.max()), float(ends.max())
        scale = float(self.alpha @ np.exp(self._logs - top))
        lowest = math.fsum((self.alpha * np.exp(ends - bottom)).tolist())
        return Moments(
            self.retention * keep + blur * r,
            self.retention * change + blur * (1.0 - r),
            self.retention * gain,
            top - bottom + math.log(scale / lowest),
            2 * max(one.relative_error for one in parts)
            + (8 * max(logs) + 4 * len(parts) + 64) * UNIT,
        )

    def given_rest(self) -> FloatArray:
        # A quotient of two sums of positive numbers is at most the largest of their quotients.
        levels = np.array([part.given_rest() for part in self.parts])
        return after_response(levels.max(axis=0), self.uniform_keep, self.retention)

    def output_densities(self, subset: Sequence[int]) -> FloatArray:
        # Where the part rises that has the largest bound, which is this law's.
        chosen = list(subset)
        steepest = max(self.parts, key=lambda part: float(part.given_rest()[chosen].max()))
        kept = steepest.kept_beside(subset)
        parts = [backward.densities(part, subset, kept, self.retention) for part in self.parts]
        return np.asarray(np.tensordot(self.alpha, np.array(parts), axes=1))

    def eigenvalues(self, subset: Sequence[int]) -> FloatArray:
        chosen = [int(i) for i in subset]
        if len(chosen) == 1:
            return np.array([1.0, self._single[chosen[0]]])
        if len(chosen) == 2 and self.n_attributes <= PAIR_BY_PAIR:
            first, second = self._single[chosen].tolist()
            pair = self._bounded_pairs[0][chosen[0], chosen[1]]
            return np.array([[1.0, second], [first, pair]])
        expectations = sum(
            alpha * backward.components(part, chosen)
            for alpha, part in zip(self.alpha.tolist(), self.parts, strict=True)
        )
        return backward.normalized(np.asarray(expectations), self.retention[chosen])

    def pair_attenuation(self, first: int, second: int) -> float:
        parts = np.array([part.pair_attenuation(first, second) for part in self.parts])
        kept = self.retention[first] * self.retention[second]
        return float(self._normalizers @ parts * kept)

    def bounded_pair_attenuations(self) -> tuple[FloatArray, float]:
        return self._bounded_pairs

    @cached_property
    def _bounded_pairs(self) -> tuple[FloatArray, float]:
        parts, wrong = zip(*(p.bounded_pair_attenuations() for p in self.parts), strict=True)
        mixed = np.tensordot(self._normalizers, np.array(parts), axes=1)
        # The fractions of the parts, and adding them up, are among the moments' errors.
        error = float(self._normalizers @ np.array(wrong)) + self.moments().relative_error
        return np.asarray(mixed * np.outer(self.retention, self.retention)), error

    @cached_property
    def _single(self) -> FloatArray:
        return self.attenuations()

    def subset_level(self, subset: Sequence[int]) -> tuple[float, float]:
        # By monotonicity (see `backward.extremes`) the extremes are where all of A is unchanged
        # and where all of it is changed, for every part and so for their sum.
        ends = [backward.extremes(part, subset, self.retention) for part in self.parts]
        kept, changed = self.alpha @ np.array(ends)
        wrong = path_slack(self.n_attributes, self.height) + (len(self.parts) + 2) * UNIT
        return log_quotient(kept, changed), 2.02 * wrong

    def sampler(self) -> VoteSampler:
        patterns = SumSampler(self.parts, self.alpha.tolist())
        return VoteSampler(self.n_categories, self.retention, patterns)

    def to_plain(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "votes": [part.gate_to_plain() for part in self.parts],
            "shares": [value.hex() for value in self.alpha.tolist()],
            "retention": [value.hex() for value in self.retention.tolist()],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "VoteBlend":
        k = len(n_categories)
        parts = [GatedSum.from_plain(vote, n_categories, np.ones(k)) for vote in plain["votes"]]
        shares = floats_from_plain(plain["shares"], "shares", len(parts))
        return cls(tuple(parts), shares, floats_from_plain(plain["retention"], "retention", k))
