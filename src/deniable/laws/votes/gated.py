"""The law of one gated sum: a vote, a clipped ramp, and everything between.

    f(S) ∝ E_B[ g(s) ],   s = Σ_{i unchanged} (n_i + B_i),   g from 1 up to e^E, non-decreasing,

then, optionally, every output i is replaced by a uniform category with probability 1 − retention_i
(an independent k-ary response).  Two gates, both with x = clip((s − start)/width, 0, 1):

    "vote":  g = 1 + (e^E − 1) x      (width 1: the uniform law mixed with one weighted vote)
    "ramp":  g = e^{E x}              (no clipping: the Kronecker product; width → 0: the vote)

Source: docs/proofs/clipped.md, Theorem 3; docs/proofs/optimal.md, section 5.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import floats_from_plain, integers_from_plain
from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.plain import HexDouble, HexInteger, PlainLaw
from deniable.laws.votes import backward, frequencies
from deniable.laws.votes.as_drawn import log_quotient
from deniable.laws.votes.sampling import SumSampler, VoteSampler, path_slack
from deniable.laws.votes.sums import (
    DROP,
    LARGEST_WEIGHT,
    UNIT,
    SumExpectations,
    SumLaw,
    TiltedSum,
    saddle_tilt,
    tilted_sum,
)
from deniable.laws.votes.vote_law import (
    LARGEST_HEIGHT,
    LARGEST_NORMAL,
    LEAST_NORMAL,
    PAIR_BY_PAIR,
    Moments,
    VoteLaw,
    after_response,
)

LEAST_DITHER = 2.0**-60
"""Products of e^{±E/2} with a dither, 1/a and the tilts of `sums` must be normal double-precision
numbers, so that no relative error bound is lost to underflow."""

LEAST_WIDTH = 2.0**-52
"""Of a gate that is exactly a step, so that dividing by it cannot overflow; any other gate rises
over one unit of the sum or more."""

MOST_MISSING = 2.0**-50
"""Limit on the part of an attribute's probability of either fate that dropped states may hold; if
they may hold more, fewer are dropped."""

MOST_UNDERFLOW = 2.0**-1042
"""Limit on the error of an expectation by numbers below 2^{−1022}, which have fewer digits; dropped
states apart."""

MOST_STATES = 1 << 26
"""The most doubles that `sums` holds for a law, about the sum of its weights times √k + 8:
512 MB."""


Tilted = tuple[SumLaw, TiltedSum, int, float]


def on_grid(weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return real weights as integers and dither probabilities; the least dithers become 0."""
    whole = np.floor(weights)
    dither = weights - whole
    return whole.astype(np.int64), np.where(dither < LEAST_DITHER, 0.0, dither)


class PlainGate(msgspec.Struct, forbid_unknown_fields=True):
    """One gate in the record of several."""

    gate: Literal["vote", "ramp"]
    height: HexDouble
    start: HexDouble
    width: HexDouble
    weights: list[HexInteger]
    dither: list[HexDouble]


class PlainGatedSum(PlainLaw, tag="gated-sum"):
    """The record of the law."""

    gate: Literal["vote", "ramp"]
    height: HexDouble
    start: HexDouble
    width: HexDouble
    weights: list[HexInteger]
    dither: list[HexDouble]
    retention: list[HexDouble]


@dataclass(frozen=True, eq=False)
class GatedSum(VoteLaw):
    """A uniform record, reweighted by its unchanged attributes.

    A pattern's density grows with the sum of the weights of the unchanged attributes: in one step
    (the optimum for given levels, a weighted vote), or along a clipped exponential ramp (which also
    caps the level given the rest). It needs 3 k + 3 numbers; the formulas are in the
    module's docstring.

    ``n_categories``: a_i, shape (k,). ``weights``: n_i >= 0, shape (k,). ``dither``: θ_i in [0, 1),
    shape (k,). ``start``: where g starts to rise, in units of the sum, at least 0 and below the
    largest sum. ``width``: length of the rise, in units of the sum, at least 1, or less where it is
    a step: 0 or 1 at every whole sum. ``height``: E in nats, above 0 and at most `largest_height`.

    >>> ones, zeros = np.ones(3), np.zeros(3)
    >>> majority = GatedSum((2, 2, 2), ones.astype(int), zeros, "vote", 1, 1, 1.0, ones)
    >>> majority.keep_probabilities().round(4).tolist(), round(majority.record_level(), 6)
    ([0.6155, 0.6155, 0.6155], 1.0)
    """

    family: ClassVar[str] = "gated-sum"
    of_votes: ClassVar[tuple[str, ...]] = ("_sums", "rise")
    Plain = PlainGatedSum

    n_categories: tuple[int, ...]
    weights: IntArray
    dither: FloatArray
    gate: Literal["vote", "ramp"]
    start: float
    width: float
    height: float
    retention: FloatArray

    def __post_init__(self) -> None:
        k = len(self.n_categories)
        sizes = {len(self.weights), len(self.dither), len(self.retention)}
        if sizes != {k} or k == 0:
            raise InputError("a gated sum needs one weight, dither and retention per attribute")
        if not (min(self.n_categories) >= 2 and np.all(self.weights >= 0)):
            raise InputError("a gated sum needs category counts >= 2 and weights >= 0")
        if int(self.weights.max()) > LARGEST_WEIGHT or not 0 < self.states_held <= MOST_STATES:
            raise InputError(
                "the weights of a gated sum must add up to more than 0, at most to 2^26/(√k + 8)"
            )
        if not (np.all(self.dither >= 0) and np.all(self.dither < 1)):
            raise InputError("dither probabilities lie in [0, 1)")
        if not (np.all(self.retention >= LEAST_NORMAL) and np.all(self.retention <= 1)):
            raise InputError("retention probabilities lie in (0, 1]")
        if self.gate not in ("vote", "ramp"):
            raise InputError("the gate of a gated sum is 'vote' or 'ramp'")
        if not (LEAST_WIDTH <= self.width < 2**52 and 0 <= self.start < 2**52):
            raise InputError("a gate needs a finite start >= 0 and a finite width of 1 or more")
        if 0 < self.start < sys.float_info.min:
            raise InputError("a gate's start is 0 or a normal number, not one so close to 0")
        first, last = self.rise
        if self.width < 1 and last != first + 1:
            raise InputError("a gate narrower than one unit of the sum must be exactly a step")
        if 0 < self.start < LEAST_NORMAL:
            raise InputError("where a gate starts is 0 or a normal number")
        if not LEAST_NORMAL <= self.height <= self.largest_height:
            most = f"{self.largest_height:g}"
            raise InputError(f"the height of a gate lies above 0 and at most at {most}")
        if np.any((self.dither > 0) & (self.dither < LEAST_DITHER)):
            raise InputError(f"a dither probability is 0 or at least {LEAST_DITHER:.1e}")
        if not self.gate_excess(self.weights.sum() + np.count_nonzero(self.dither)) > 0:
            raise InputError("a gate must be reached by the sum of all weights")

    @property
    def states_held(self) -> float:
        """Approximate maximum of doubles that its evaluation holds at once."""
        return self._held(float(self.weights.sum() + self.dither.sum()))

    @property
    def states_told_apart(self) -> float:
        """The same, without the sums from which the rise is out of reach."""
        most = float(self.weights.sum()) + np.count_nonzero(self.dither)
        return self._held(most - self.rise[0] + 1.0)

    def _held(self, states: float) -> float:
        return states * (math.sqrt(self.n_attributes) + 8)

    def place(self, s: IntArray | FloatArray | int) -> FloatArray:
        """Return x, the position of s on the rise of the gate, from 0 to 1, for accounting and
        drawing."""
        x = np.clip((s - self.start) / self.width, 0.0, 1.0)
        # Where start + width was rounded down, x there is a rounding error short of 1.
        return np.where(np.asarray(s) >= self.rise[1], 1.0, x)

    @cached_property
    def rise(self) -> tuple[int, int]:
        """The last whole sum at which the gate is still 1, and the first at which it is e^E."""
        return math.floor(self.start), math.ceil(self.start + self.width)

    def gate_exponent(self, s: IntArray | FloatArray) -> FloatArray:
        """Return ln g(s), in [0, E], within (4 E + 4) u of the exact value."""
        x = self.place(s)
        if self.gate == "ramp":
            return self.height * x
        # ln(1 + (e^E − 1) x) = E + ln(x + (1 − x) e^{−E}), and 0 at x = 0 by definition
        with np.errstate(divide="ignore"):
            level = self.height + np.log(x + (1.0 - x) * math.exp(-self.height))
        return np.where(x > 0, np.maximum(level, 0.0), 0.0)

    def gate_excess(self, s: IntArray | FloatArray) -> FloatArray:
        """Return (g(s) − 1) e^{−E}, without cancellation."""
        if self.gate == "vote":
            return -math.expm1(-self.height) * self.place(s)
        exponent = self.gate_exponent(s)
        return np.exp(exponent - self.height) * -np.expm1(-exponent)

    @property
    def ideal_epsilon(self) -> float:
        """E: 1 <= g <= e^E, averaged or not."""
        return self.height

    @property
    def largest_height(self) -> float:
        return LARGEST_HEIGHT if self.gate == "vote" else LARGEST_NORMAL

    @property
    def opens(self) -> bool:
        return bool(self.place(int(self.weights.sum())) == 1.0)

    def extremes_stay(self) -> bool:
        # From all unchanged, the sum is short of the gate's end, and from all changed beyond its
        # start, with a probability below e^{−60 − E} (Hoeffding; terms from 0 to ⌈n_i + θ_i⌉).
        real, blur = self.attribute_weights, 1.0 - self.retention
        above = float(real @ (1.0 - blur * (1.0 - self.uniform_keep))) - self.rise[1]
        below = self.rise[0] - float(real @ (blur * self.uniform_keep))
        most = np.ceil(real)
        return min(above, below) > math.sqrt(0.5 * (self.height + 60.0) * float(most @ most))

    @property
    def attribute_weights(self) -> FloatArray:
        return self.weights + self.dither

    def slope_bounds(self) -> FloatArray:
        """Return ln((1−θ_i) e^{c n_i} + θ_i e^{c (n_i+1)}) of a ramp, before clipping (k,)."""
        slope = self.height / self.width
        with np.errstate(divide="ignore"):  # ln 0 = −∞ where there is no dither
            noise = np.logaddexp(np.log1p(-self.dither), np.log(self.dither) + slope)
        return np.asarray(self.weights * slope + noise, dtype=np.float64)

    def given_rest(self) -> FloatArray:
        if self.gate == "ramp":
            level = np.minimum(self.slope_bounds(), self.height)
        else:
            live = (self.weights > 0) | (self.dither > 0)
            level = np.where(live, self.height, 0.0)
        return after_response(level, self.uniform_keep, self.retention)

    @property
    def tilted(self) -> Tilted:
        """The law of s where g − 1 has its mass: (law, steps, reference t, ln of the factor)."""
        return self._sums[0]

    @property
    def excess(self) -> SumExpectations:
        """E_ν[(g − 1) e^{−E − ρ (s − t)}]; times e^{log factor} it is E_μ[g − 1]."""
        return self._sums[1]

    @cached_property
    def _sums(self) -> tuple[Tilted, SumExpectations, float]:
        """`tilted`, `excess`, and the absolute error of `excess` by dropped states; summed again
        where that is too large."""
        real = self.weights + self.dither
        top = float(real.sum())
        keep = self.uniform_keep
        mean = self.start
        if self.gate == "ramp":
            odds = np.log(keep) - np.log1p(-keep)
            slope = min(self.height / self.width, 500.0 / float(real.max()))
            mean = float(real @ (1.0 / (1.0 + np.exp(-(odds + slope * real)))))
            mean = min(max(mean, self.start), self.start + self.width)
        least = float(real @ keep)
        mean = min(max(mean, least), least + 0.999999 * (top - least))
        tilt = saddle_tilt(keep, real, mean)
        steps = tilted_sum(keep, self.weights, self.dither, tilt)
        # On the rise −ρ (s − t) is then at most E + 50, ρ being at most its slope.
        reference = round(mean) if tilt < 100.0 else math.floor(mean)
        log_factor = self.height + steps.log_scale - tilt * reference
        floor, drop = math.floor(self.start), DROP
        while True:
            law = SumLaw(steps, floor, careful=True, drop=drop)
            values = self._weighted(law.support, steps, reference)
            excess = law.expectations(values)
            missing = self._may_miss(law, values, reference)
            part = MOST_MISSING * self._rarest(excess, log_factor) / missing
            if part >= 1.0 or drop == 0.0:
                return (law, steps, reference, log_factor), excess, missing
            # Again with room for ten bits; then without dropping.
            drop = 2.0**-10 * part * drop if drop == DROP else 0.0

    def _may_miss(self, law: SumLaw, values: FloatArray, reference: int) -> float:
        """Bound the contribution of dropped states: their mass times the largest value anywhere.

        Values are log-concave in s: the largest inside the support is the largest of all.
        """
        if not 0 < values.argmax() < len(values) - 1:
            most = int(self.weights.sum()) + int(np.count_nonzero(self.dither))
            rise = np.arange(self.rise[0], min(self.rise[1], most) + 1)
            values = self._weighted(rise, law.steps, reference)
        return 1.01 * law.dropped * float(values.max()) + MOST_UNDERFLOW

    def _rarest(self, excess: SumExpectations, log_factor: float) -> float:
        """Return the least probability of an attribute's fate, in the unit of `excess`."""
        base = math.exp(min(-log_factor, 700.0))
        kept, changed = excess.kept[0], excess.changed[0]
        keep = self.uniform_keep
        return float(min((keep * base + kept).min(), ((1.0 - keep) * base + changed).min()))

    def weighted_excess(self) -> FloatArray:
        """Return (g − 1) e^{−E} e^{−ρ (s − t)} on the support of the tilted law."""
        law, steps, reference, _ = self.tilted
        return self._weighted(law.support, steps, reference)

    def _weighted(self, s: IntArray, steps: TiltedSum, reference: int) -> FloatArray:
        exponent = np.clip(-steps.tilt * (s - reference), -740.0, 700.0)
        return np.asarray(self.gate_excess(s) * np.exp(exponent))

    def _sums_error(self) -> float:
        """The relative error bound of either fate's probability in `moments`, but for the sums'
        common factor (docs/proofs/optimal.md, section 7)."""
        (law, _, _, log_factor), excess, missing = self._sums
        rarest = self._rarest(excess, log_factor)
        return law.error() + (missing / rarest if rarest > 0 else math.inf)

    def _factor_error(self) -> float:
        """The same of the factor: its ln has absolute error under
        (20k + 8 (E + |L| + ρt) + 64) u, which covers the gate's (4E + 4) u."""
        _, steps, reference, _log_factor = self.tilted
        size = self.height + abs(steps.log_scale) + steps.tilt * reference
        size += float(np.abs(np.log(steps.low + steps.high)).sum())
        return (20 * self.n_attributes + 8 * size + 64) * UNIT

    def moments(self) -> Moments:
        log_factor = self.tilted[3]
        got = self.excess
        # f = c (1 + (g − 1)), c = 1/(1 + A): both parts are sums of non-negative numbers.  Divided
        # through by e^{log_factor} where that is large.
        scale = max(log_factor, 0.0)
        base, part = math.exp(-scale), math.exp(log_factor - scale)
        keep, flip = self.uniform_keep, 1.0 - self.uniform_keep
        normalizer = base + part * float(got.total[0])
        kept = (keep * base + part * got.kept[0]) / normalizer
        changed = (flip * base + part * got.changed[0]) / normalizer
        blur = 1.0 - self.retention
        lift = part / normalizer * (flip * got.kept[0] - keep * got.changed[0])
        of_sums, of_factor = self._sums_error(), self._factor_error()
        return Moments(
            self.retention * kept + blur * keep,
            self.retention * changed + blur * flip,
            self.retention * lift,
            math.log(normalizer) + scale,
            2.0 * (of_sums + of_factor) + 8 * UNIT,
            2.0 * of_sums + 16 * UNIT,
            of_factor,
        )

    def at_height(self, height: float) -> "GatedSum":
        """Return the law with another E; a ramp keeps its slope E/width.

        A vote's g − 1 only changes by a factor, without new sums unless dropped states are too
        large at that height.
        """
        if self.gate == "ramp":
            return replace(self, height=height, width=self.width * height / self.height)
        other = replace(self, height=height)
        (law, steps, reference, log_factor), same, missing = self._sums
        factor = math.expm1(-height) / math.expm1(-self.height)
        log_factor += height - self.height
        excess = SumExpectations(same.total * factor, same.kept * factor, same.changed * factor)
        missing *= factor
        if missing <= MOST_MISSING * other._rarest(excess, log_factor):
            other.__dict__["_sums"] = (law, steps, reference, log_factor), excess, missing
        return other

    def pair_attenuation(self, first: int, second: int) -> float:
        # Through `sums`: relatively right where φ is tiny, which `eigenvalues` are not.
        chosen = [first, second]
        law, _, _, log_factor = self.tilted
        factors = {i: (1.0, -1.0 / (self.n_categories[i] - 1)) for i in chosen}
        value = law.product_expectation(self.weighted_excess(), factors)
        # E_μ[∏ h_i] = 0: the constant part of g drops out.
        factor = math.exp(log_factor - self.moments().log_normalizer)
        return float(np.prod(self.retention[chosen])) * value * factor

    def bounded_pair_attenuations(self) -> tuple[FloatArray, float]:
        return self._bounded_pairs

    @cached_property
    def _bounded_pairs(self) -> tuple[FloatArray, float]:
        law, _, _, log_factor = self.tilted
        moments, values = self.moments(), self.weighted_excess()
        factor = math.exp(log_factor - moments.log_normalizer)
        # The factor has the relative error of all moments; |h_i h_j| ≤ 1, and E_μ[g − 1] is at most
        # E_μ[g].
        if self.n_attributes > PAIR_BY_PAIR:
            pairs, wrong = frequencies.pair_expectations(law, values, self.counts)
            wrong *= factor * (1.0 + 1e-9)
        else:
            lie = np.asarray(-1.0 / (self.counts - 1), dtype=np.float64)
            pairs = law.pair_expectations(values, np.ones(self.n_attributes), lie)
            wrong = law.pair_error()
        pairs *= factor * np.outer(self.retention, self.retention)
        np.fill_diagonal(pairs, np.nan)
        return pairs, moments.relative_error + wrong

    def subset_level(self, subset: Sequence[int]) -> tuple[float, float]:
        all_kept, all_changed = backward.extremes(self, subset, self.retention)
        level = log_quotient(all_kept, all_changed)
        return level, 2.02 * path_slack(self.n_attributes, self.height)

    def kept_beside(self, subset: Sequence[int]) -> NDArray[np.bool_]:
        """Return the attributes outside a subset to leave unchanged, so that the subset decides the
        sum's place on the rise of the gate, shape (k,)."""
        real = self.attribute_weights
        target = self.start + 0.5 * self.width - 0.5 * float(real[list(subset)].sum())
        kept, total = np.zeros(self.n_attributes, dtype=bool), 0.0
        for i in np.argsort(-real).tolist():
            if i not in subset and total + real[i] <= target:
                kept[i], total = True, total + real[i]
        return kept

    def output_densities(self, subset: Sequence[int]) -> FloatArray:
        return backward.densities(self, subset, self.kept_beside(subset), self.retention)

    def eigenvalues(self, subset: Sequence[int]) -> FloatArray:
        if len(subset) == 1:
            return np.array([1.0, self._attenuations[subset[0]]])
        if len(subset) == 2 and self.n_attributes <= PAIR_BY_PAIR:
            single = self._attenuations[list(subset)]
            pair = self._bounded_pairs[0][subset[0], subset[1]]
            return np.array([[1.0, single[1]], [single[0], pair]])
        expectations = backward.components(self, subset)
        return backward.normalized(expectations, self.retention[list(subset)])

    @cached_property
    def _attenuations(self) -> FloatArray:
        return self.attenuations()

    def sampler(self) -> VoteSampler:
        return VoteSampler(self.n_categories, self.retention, SumSampler([self]))

    def to_plain(self) -> dict[str, Any]:
        retention = [value.hex() for value in self.retention.tolist()]
        return {"family": self.family, **self.gate_to_plain(), "retention": retention}

    def gate_to_plain(self) -> dict[str, Any]:
        """Return all but the retention as plain values."""
        return {
            "gate": self.gate,
            "height": float(self.height).hex(),
            "start": float(self.start).hex(),
            "width": float(self.width).hex(),
            "weights": [f"{weight:x}" for weight in self.weights.tolist()],
            "dither": [value.hex() for value in self.dither.tolist()],
        }

    @classmethod
    def from_plain(
        cls,
        plain: Mapping[str, Any],
        n_categories: tuple[int, ...],
        retention: FloatArray | None = None,
    ) -> "GatedSum":
        """Rebuild a law; with a retention that is given, from :meth:`gate_to_plain`."""
        k = len(n_categories)
        if retention is None:
            retention = floats_from_plain(plain["retention"], "retention", k)
        gate = [plain[name] for name in ("start", "width", "height")]
        start, width, height = floats_from_plain(gate, "gate", 3).tolist()
        weights = integers_from_plain(plain["weights"], "weights", k)
        if max(weights, default=0) > 1 << 60:
            raise InputError("the mechanism's weights are too large")
        dither = floats_from_plain(plain["dither"], "dither", k)
        whole = np.array(weights, dtype=np.int64)
        return cls(n_categories, whole, dither, plain["gate"], start, width, height, retention)
