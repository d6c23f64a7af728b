"""Laws of votes: their interface, and their levels *as drawn*.

A law of votes reweights a uniform record by its unchanged attributes, f(S), and then replaces every
output by a uniform category with probability 1 − retention_i. A subclass gives the ideal law, each
number with its error bound; the levels of the law as drawn are computed here, with every rounding
the safe way (docs/proofs/optimal.md, Theorem 10; docs/proofs/clipped.md, section 7).
"""

import math
import sys
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import Field, dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from deniable.laws.law import BoundedLaw
from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.rounding import next_above
from deniable.laws.votes.sampling import path_slack
from deniable.laws.votes.sums import UNIT

LARGEST_HEIGHT = 1280.0
"""The largest level in nats of a law of votes before its own responses. Up to it e^{±E/2} and their
products in accounts and samplers are normal double-precision numbers (docs/proofs/optimal.md,
section 6); beyond, stated levels would fall below the true ones."""

LARGEST_NORMAL = 640.0
"""The largest E in nats at which e^{±E} and such products are normal numbers: that of ramps, and of
laws drawn in a browser."""

LEAST_NORMAL = 2.0**-1022
"""Smaller numbers have fewer digits than the error bounds assume."""

PAIR_BY_PAIR = 64
"""Attributes up to which all pairs are summed state by state, measured 3 to 20 times as fast at 24
and 60; beyond, by `frequencies`, which are six times as fast at 200."""

AT_A_TIME = 10
"""Attributes whose patterns are all evaluated, for levels given the rest."""

MOST_LOOKED_AT = 128
"""Attributes up to which it is looked how near to the bound on that level some output comes: up to
0.4 s where it was measured."""

MAX_ALL_PAIRS = 1000
"""Attributes up to which every pair is evaluated: half a million pairs."""


@dataclass(frozen=True)
class Moments:
    """Keep and change probabilities after retention, with one relative error bound for all.

    Attributes:
        keep, change: p_i and 1 − p_i, each without cancellation, shape (k,).
        gain: the votes' contribution to p_i − 1/a_i, shape (k,).
        log_normalizer: ln E_μ[f], μ the uniform law.
        relative_error: of `keep` and `change`.
        odds_error: of `keep`/`change`, but for `factor_error`; None for twice `relative_error`.
        factor_error: of a common factor of all the votes' contributions. It changes a level of ε
            nats by at most 1 − e^{−ε} times as much.
    """

    keep: FloatArray
    change: FloatArray
    gain: FloatArray
    log_normalizer: float
    relative_error: float
    odds_error: float | None = None
    factor_error: float = 0.0

    def levels(self, n_categories: IntArray) -> FloatArray:
        """Return ε_i = ln(p_i (a_i − 1)/(1 − p_i)), not rounded either way, shape (k,), nats.

        Infinite where 1 − p_i is too small for double precision.
        """
        with np.errstate(divide="ignore"):
            level = np.log(self.keep) + np.log(n_categories - 1.0) - np.log(self.change)
        return np.asarray(level)

    def levels_error(self, levels: FloatArray) -> FloatArray:
        """Return the error of `levels`, their own logarithms apart, shape (k,), nats."""
        odds = 2.0 * self.relative_error if self.odds_error is None else self.odds_error
        return np.asarray(1.01 * (odds + np.clip(levels, 0.0, 1.0) * self.factor_error))


@dataclass(frozen=True, eq=False)
class Account:
    """Bounds in nats for a law as drawn.

    Attributes:
        epsilon: the record's level, rounded up.
        attribute_epsilon: ε_i, rounded up, shape (k,).
        attribute_epsilon_floor: ε_i, rounded down, shape (k,).
        epsilon_given_rest: level against full knowledge of the rest, rounded up, shape (k,).
    """

    epsilon: float
    attribute_epsilon: FloatArray
    attribute_epsilon_floor: FloatArray
    epsilon_given_rest: FloatArray


class VoteLaw(BoundedLaw):
    """A uniform record, reweighted by its unchanged attributes. Frozen; equal if all its numbers
    are equal.

    A subclass is a frozen dataclass (``eq=False``) with the fields `n_categories`, shape (k,), and
    `retention`, the probability in (0, 1] of *not* replacing the output, shape (k,).
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    of_votes: ClassVar[tuple[str, ...]] = ()
    """Cached properties that do not depend on the retention."""
    retention: FloatArray

    @property
    @abstractmethod
    def ideal_epsilon(self) -> float:
        """The record's level of the ideal law before retention, not rounded, nats."""

    @property
    @abstractmethod
    def largest_height(self) -> float:
        """The largest `ideal_epsilon` that :meth:`at_height` takes, in nats."""

    @property
    @abstractmethod
    def opens(self) -> bool:
        """Whether the ideal level is reached, by the record that keeps everything."""

    @property
    def density_slack(self) -> float:
        """Error bound of ln f before drawing, up to a constant."""
        return 0.0

    @property
    @abstractmethod
    def attribute_weights(self) -> FloatArray:
        """Weight of every attribute in the votes, on any one scale, shape (k,)."""

    @abstractmethod
    def at_height(self, height: float) -> Self:
        """Return the law with another `ideal_epsilon` and the same proportions of its votes."""

    def with_retention(self, retention: FloatArray) -> Self:
        """Return the law with other own responses and the same votes."""
        other = replace(self, retention=retention)
        # Cached properties of the votes do not depend on the own responses.
        kept = {name: self.__dict__[name] for name in self.of_votes if name in self.__dict__}
        other.__dict__.update(kept)
        return other

    @abstractmethod
    def moments(self) -> Moments:
        """Return every attribute's keep and change probability, retention included."""

    @abstractmethod
    def given_rest(self) -> FloatArray:
        """Return bounds on the ideal law's levels given the rest, shape (k,), nats."""

    @abstractmethod
    def subset_level(self, subset: Sequence[int]) -> tuple[float, float]:
        """Return ln(max f_A/min f_A) of the ideal law projected to the columns A, at least one, and
        how far it may be off, in nats."""

    @abstractmethod
    def bounded_pair_attenuations(self) -> tuple[FloatArray, float]:
        """Return φ({i, j}) for all pairs, (k, k), NaN on the diagonal, and the error of each,
        drawing apart."""

    def pair_eigenvalues(self) -> FloatArray:
        """Return φ of every two attributes, shape (k, k), and of each by itself on the diagonal."""
        values = self.bounded_pair_attenuations()[0].copy()
        np.fill_diagonal(values, self.attenuations())
        return values

    @property
    def n_attributes(self) -> int:
        """k."""
        return len(self.n_categories)

    @cached_property
    def counts(self) -> IntArray:
        """a_i, shape (k,)."""
        return np.array(self.n_categories, dtype=np.int64)

    @property
    def uniform_keep(self) -> FloatArray:
        """r_i = 1/a_i, shape (k,)."""
        return np.asarray(1.0 / self.counts, dtype=np.float64)

    @cached_property
    def _values(self) -> tuple[Any, ...]:
        values = [getattr(self, field.name) for field in fields(self)]
        return tuple(v.tobytes() if isinstance(v, np.ndarray) else v for v in values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoteLaw) and (type(self), self._values) == (
            type(other),
            other._values,
        )

    def __hash__(self) -> int:
        return hash(self._values)

    def keep_probabilities(self) -> FloatArray:
        return self.moments().keep

    def attenuations(self) -> FloatArray:
        # φ_i = (p_i − r_i)/(1 − r_i), from the part of p_i that is added to the uniform record's:
        # exact at small ε.
        return np.asarray(self.moments().gain / (1.0 - self.uniform_keep))

    @property
    def drawing_slack(self) -> float:
        """Error of the logarithm of a ratio of pattern probabilities by drawing, nats."""
        return 2.0 * (path_slack(self.n_attributes, self.ideal_epsilon) + self.density_slack)

    @cached_property
    def account(self) -> Account:
        """The law's levels as drawn."""
        above, below = self.attribute_bounds()
        epsilon = self._record_level
        given = self.given_rest() * (1 + 32 * UNIT) + self.drawing_slack
        # Two patterns that differ in one attribute are two patterns.
        return Account(epsilon, above, below, np.minimum(given, epsilon))

    def attribute_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return ε_i as drawn, rounded up and rounded down, shapes (k,), in nats."""
        moments = self.moments()
        level = moments.levels(self.counts)
        known = np.isfinite(level)
        level[~known] = 0.0
        # ln of a quotient of two numbers with that relative error; three rounded logarithms.
        logarithms = 4 * UNIT * (np.abs(level) + np.log(self.counts) + 2)
        wrong = moments.levels_error(level) + self.drawing_slack + logarithms
        # Of a probability that is no double the record's level alone is known.
        above = np.where(known, level + wrong, self._height_bound)
        return above, np.maximum(level - wrong, 0.0)

    @property
    def _height_bound(self) -> float:
        """The level of the ideal law as drawn, rounded up."""
        return next_above(self.ideal_epsilon * (1 + 4 * UNIT) + self.drawing_slack)

    def extremes_stay(self) -> bool:
        """Whether own responses certainly do not change the record's level: a quick sufficient
        test."""
        return False

    @cached_property
    def _record_level(self) -> float:
        """The record's level, rounded up: the ideal law's, or, where own responses or votes that
        are never fully won leave less, that of all columns."""
        height = self._height_bound
        if self.opens and (np.all(self.retention == 1.0) or self.extremes_stay()):
            return height
        return min(height, self._projected(range(self.n_attributes)))

    def _projected(self, subset: Sequence[int]) -> float:
        level, wrong = self.subset_level(subset)
        return next_above(level + wrong + self.drawing_slack + 4 * UNIT * (1 + abs(level)))

    def record_level(self, subset: Sequence[int] | None = None) -> float:
        if subset is None or len(subset) == self.n_attributes:
            return self._record_level
        # A projection never reveals more than the whole.
        return min(self._projected(subset), self._record_level) if len(subset) else 0.0

    def attribute_levels(self) -> list[float]:
        return [*self.account.attribute_epsilon.tolist()]

    def attribute_floors(self) -> list[float]:
        return [*self.account.attribute_epsilon_floor.tolist()]

    def given_rest_levels(self) -> list[float]:
        return [*self.account.epsilon_given_rest.tolist()]

    def given_rest_floors(self) -> list[float]:
        return [*self._given_rest_floors.tolist()]

    @cached_property
    def _given_rest_floors(self) -> FloatArray:
        # The largest step among many outputs, some attributes at a time, where the others bring the
        # sum to where the gate rises. That of all outputs, if one look is at all attributes.
        k = self.n_attributes
        found = np.zeros(k)
        if k > MOST_LOOKED_AT:
            return found
        for first in range(0, k, AT_A_TIME):
            start = max(0, min(first, k - AT_A_TIME))  # the last look is at no fewer
            subset = list(range(start, min(start + AT_A_TIME, k)))
            density = self.output_densities(subset)
            for axis, i in enumerate(subset):
                kept, changed = np.moveaxis(density, axis, 0).reshape(2, -1)
                with np.errstate(over="ignore"):
                    largest = min(float((kept / changed).max()), sys.float_info.max)
                found[i] = max(found[i], math.log(largest))
        return found

    @abstractmethod
    def output_densities(self, subset: Sequence[int]) -> FloatArray:
        """Return the densities, up to a factor, of outputs by the attributes of a subset, the
        others fixed, shape (2,)·m; index 0 is unchanged."""

    def least_pair_ratio(self) -> float:
        """Return min over pairs of φ_ij/(φ_i φ_j), which own responses do not change; 1 if k = 1.

        0 means that a table of two attributes cannot be estimated. All pairs up to `MAX_ALL_PAIRS`
        attributes, of the law as drawn, rounded down by their error; beyond, those among the
        attributes of the smallest, middle and largest weights: there the ratio is a smooth
        function of the two weights.
        """
        k = self.n_attributes
        if k == 1:
            return 1.0
        if k <= MAX_ALL_PAIRS:
            return float(np.nanmin(self.pair_ratio_floors))
        single = self.attenuations()
        order = np.argsort(self.attribute_weights).tolist()
        chosen = [order[0], order[1], order[k // 2], order[k // 2 + 1], order[-2], order[-1]]
        return min(
            self.pair_attenuation(i, j) / float(single[i] * single[j])
            for at, i in enumerate(chosen)
            for j in chosen[at + 1 :]
        )

    def keeps_pair_floor(self, floor: float) -> bool:
        # φ_ij = E[(1 − D_i)(1 − D_j)] with D ≥ 0, so that φ_ij ≥ φ_i + φ_j − 1: attributes that are
        # hardly ever changed keep a floor without a test of their pairs.
        if self.n_attributes > 1:
            wrong = 2.0 * (self.moments().relative_error + self.drawing_slack)
            low, high = np.sort(self.attenuations())[:2].tolist()
            if low + high - 1.0 - wrong >= max(floor, 0.0) * (low + wrong) * (high + wrong):
                return True
            # Of many attributes three pairs are tested first, in a thirtieth of the time of all.
            single, order = self.attenuations(), np.argsort(self.attribute_weights).tolist()
            for at in (0, len(order) // 2 - 1, -2) if len(order) > PAIR_BY_PAIR else ():
                i, j = order[at], order[at + 1]
                if self.pair_attenuation(i, j) < floor * single[i] * single[j]:
                    return False
        return self.least_pair_ratio() >= floor

    @cached_property
    def pair_ratio_floors(self) -> FloatArray:
        """φ_ij/(φ_i φ_j) of the law as drawn, rounded down, (k, k); the diagonal is NaN."""
        return self._ratio_floors(*self.bounded_pair_attenuations())

    def _ratio_floors(self, pairs: FloatArray, wrong: float) -> FloatArray:
        """Return the ratios of pairs, (k, k), rounded down by a common error, drawing apart."""
        single = self.attenuations()
        # Drawing moves every probability by a factor; |h_i h_j| ≤ 1 and |h_i| ≤ 1. A φ_i is a
        # difference of probabilities, each with the relative error of all moments.
        drawn = 1.01 * self.drawing_slack
        most = single + self.moments().relative_error + drawn + 8 * UNIT
        return np.asarray((pairs - wrong - drawn - 8 * UNIT) / np.outer(most, most))


def after_response(
    level: FloatArray, uniform_keep: FloatArray, retention: FloatArray
) -> FloatArray:
    """Return levels against full knowledge after every attribute's own response, (k,), nats.

    With retention λ a ratio R becomes (λR + (1−λ)m)/(λ + (1−λ)m), m = rR + 1 − r; divided by R
    everywhere to avoid overflow. A level over 700 counts as 700 in it: its e^{−level} would
    underflow; hence the minimum.
    """
    fall = np.exp(-np.minimum(level, 700.0))
    blur = (1.0 - retention) * (uniform_keep + (1.0 - uniform_keep) * fall)
    after = np.log((retention + blur) / (retention * fall + blur))
    return np.where(retention < 1, np.minimum(after, level), level)
