"""From ramps in real numbers to laws in the numbers that are drawn from.

Up to `MOST_IN_TABLE` attributes the law is a table of patterns, in exact integers. Beyond, a ramp
is a gated sum (`deniable.laws.votes.gated`), whose slopes lie on a grid, and a mixture of ramps a
blend of these. A single ramp is solved for once more as it is drawn, until it meets every level;
what is mixed is evaluated as it is drawn before it is mixed (`mixture`).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import LEAST_DITHER, MOST_STATES, GatedSum
from deniable.proofs.problem import Problem
from deniable.solvers.patterns.optimal import Part, table_part
from deniable.solvers.patterns.orbits import Orbits
from deniable.solvers.patterns.ramps.evaluate import (
    Delivered,
    FourierSums,
    PatternSums,
    Ramp,
    Response,
)
from deniable.solvers.patterns.ramps.newton import Fit, RampFit
from deniable.solvers.patterns.votes_dual import default_resolution

LANDED_TO = 2e-10
"""How near its level, in nats, a law as drawn comes; levels are aimed at twice that lower."""

UNITS_OF_PART = 1000
"""Of the grid up to the bottom of a ramp that is mixed."""

_MOST_UNITS = 60_000.0
"""The same of a single ramp, at most: where changes are rare the deviation of their cost would ask
for millions."""

_BEYOND_BOTTOM = 1.003
"""A slope above this many times the bottom does what one of this size does."""


class Tables:
    """Laws as tables of all patterns."""

    def __init__(self, orbits: Orbits) -> None:
        self._sums = PatternSums(orbits)
        self._counts = orbits.groups.counts[orbits.group_of].tolist()
        self.delivered = self._sums.delivered

    def single(self, problem: Problem, caps: FloatArray, fit: Fit) -> Part | None:
        """Return the law of a ramp that meets every level as it is drawn; None if none settles.

        ``problem, caps``: levels and γ of the groups, in nats, shape (m,).
        """
        settled = RampFit(self._sums, problem, caps, 1e-12, 1e-11).again(fit)
        return None if settled is None else self.mixed([settled.ramp], np.ones(1))

    def mixed(self, ramps: Sequence[Ramp], shares: FloatArray) -> Part:
        """Return the mixture of ramps with these shares, each 1 where nothing is changed.

        What is promised is right to parts in 10^12: exact levels are worked out elsewhere.
        """
        density = shares @ [self._sums.density(ramp) for ramp in ramps]
        return table_part(self._counts, self._sums.orbits, density)


def gated(n_categories: Sequence[int], ramp: Ramp, unit: float) -> GatedSum:
    """Return a ramp on a grid of this unit, in nats.

    A slope between two multiples of the unit is a mixture of both that falls by just as much, so
    that no cap is exceeded: ln(1 − θ + θ e^unit) = rest.
    """
    bottom = ramp.start + ramp.height
    slopes = np.minimum(ramp.slopes, _BEYOND_BOTTOM * bottom)
    whole = np.floor(slopes / unit)
    dither = np.expm1(np.maximum(slopes - whole * unit, 0.0)) / math.expm1(unit)
    dither = np.where(dither < LEAST_DITHER, 0.0, np.minimum(dither, 1.0 - 2.0**-50))
    most = float(whole.sum()) + np.count_nonzero(dither)
    end = min(float((whole + dither).sum()) - ramp.start / unit, most)
    if ramp.start <= 0.0:  # with all dither up, or the end would lie among the sums
        end = most
    first = max(end - ramp.height / unit, 0.0)
    return GatedSum(
        tuple(n_categories),
        whole.astype(np.int64),
        dither,
        "ramp",
        first,
        end - first,
        (end - first) * unit,
        np.ones(len(slopes)),
    )


class Sums:
    """Laws as gated sums and blends of these.

    ``n_categories``: a_i, shape (k,). ``group_of``: the group of each attribute, shape (k,).
    """

    def __init__(self, n_categories: Sequence[int], group_of: IntArray) -> None:
        self._counts, self._group_of = n_categories, group_of
        _, self._first, self.size = np.unique(group_of, return_index=True, return_counts=True)
        # A second attribute of each group, or the first again where there is none.
        self._alone = self.size < 2
        self._second = len(group_of) - 1 - np.unique(group_of[::-1], return_index=True)[1]

    def law(self, ramp: Ramp, unit: float) -> GatedSum:
        """Return the law of a ramp on a grid of this unit, in nats."""
        return gated(self._counts, ramp._replace(slopes=ramp.slopes[self._group_of]), unit)

    def levels(self, law: GatedSum) -> FloatArray:
        """Return a law's level of each group, shape (m,), in nats."""
        return np.asarray(law.moments().levels(np.asarray(self._counts))[self._first])

    def single(self, problem: Problem, caps: FloatArray, fit: Fit) -> Part | None:
        """Return the law of a ramp: see `Tables.single`."""
        sums = _DrawnRamps(self, problem, fit.ramp)
        try:
            settled = RampFit(sums, problem, caps, LANDED_TO, relative=False).again(fit)
        except (InputError, ValueError):  # on the way a ramp was steeper than a law can be
            return None
        if settled is None:
            return None
        law = sums.law(settled.ramp)
        return Part(tuple(range(len(self._counts))), law, law.account)

    def delivered(self, ramp: Ramp) -> Delivered:
        """Return what a ramp brings to a mixture, its pairs rounded down by what they may be off
        for certain."""
        law = self._part(ramp)
        moments = law.moments()
        pairs, wrong = law.bounded_pair_attenuations()
        total = math.exp(moments.log_normalizer - law.height)
        sure = total * (pairs - 4.0 * (wrong + law.drawing_slack + 1e-12))
        grouped = sure[np.ix_(self._first, self._first)]
        within = np.where(self._alone, math.nan, sure[self._first, self._second])
        np.fill_diagonal(grouped, within)
        return Delivered(-law.height, total, total * moments.change[self._first], grouped)

    def _part(self, ramp: Ramp) -> GatedSum:
        return self.law(ramp, (ramp.start + ramp.height) / UNITS_OF_PART)

    def mixed(self, ramps: Sequence[Ramp], shares: FloatArray) -> Part:
        """Return the mixture of ramps with these shares: see `Tables.mixed`."""
        used = np.flatnonzero(shares > 1e-25)  # a smaller share is below rounding in every sum
        parts = tuple(self._part(ramps[place]) for place in used.tolist())
        logs = np.log(shares[used]) - 0.5 * np.array([part.height for part in parts])
        law = VoteBlend(parts, np.exp(logs - logs.max()), np.ones(len(self._counts)))
        return Part(tuple(range(len(self._counts))), law, law.account)


class _DrawnRamps:
    """What a ramp delivers on the grid of its law; derivatives of the ramp in real numbers."""

    def __init__(self, drawn: Sums, problem: Problem, ramp: Ramp) -> None:
        self._drawn, self.size = drawn, drawn.size.astype(np.float64)
        self._real = FourierSums(problem.n_categories, self.size)
        bottom, k = ramp.start + ramp.height, float(self.size.sum())
        slopes = np.minimum(ramp.slopes, _BEYOND_BOTTOM * bottom)
        variance = problem.keep_probability * problem.change_probability
        # One unit for all steps: where slopes fall on the grid moves the levels.
        self._unit = max(
            2.0 * math.sqrt(float(slopes**2 * variance @ self.size)) / default_resolution(int(k)),
            float(slopes @ self.size) * (math.sqrt(k) + 8.0) / (0.9 * MOST_STATES),
            bottom / _MOST_UNITS,
        )
        self._last: tuple[FloatArray, Response] | None = None

    def law(self, ramp: Ramp) -> GatedSum:
        """Return the law; of one slope for all only how many attributes are changed matters."""
        return self._drawn.law(ramp, self._unit if len(ramp.slopes) > 1 else float(ramp.slopes[0]))

    def response(self, ramp: Ramp) -> Response:
        logs = np.log(ramp.slopes)
        if self._last is None or np.abs(logs - self._last[0]).max() > 0.02:  # else as good as new
            self._last = logs, self._real.response(ramp)
        return replace(self._last[1], level=self._drawn.levels(self.law(ramp)))
