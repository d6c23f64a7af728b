"""From ramps in real numbers to laws in the numbers that are drawn from.

Up to `MOST_IN_TABLE` attributes the law is a table of patterns, in exact integers. Beyond, a ramp
is a gated sum (`deniable.laws.votes.gated`), whose slopes lie on a grid, and a mixture of ramps a
blend of these. A single ramp is solved for once more on that grid, with the derivatives of the ramp
in real numbers, until the law as drawn meets every level; what is mixed is evaluated as it is drawn
before it is mixed (`mixture`).
"""

import math
from collections.abc import Sequence

import numpy as np

from deniable.errors import InputError
from deniable.laws.pattern_table import PatternTable
from deniable.laws.patterns import FloatArray, IntArray, other_outputs
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import LEAST_DITHER, MOST_STATES, GatedSum
from deniable.laws.votes.vote_law import Account
from deniable.solvers.patterns.optimal import Part
from deniable.solvers.patterns.orbits import Orbits
from deniable.solvers.patterns.ramps.evaluate import (
    Delivered,
    GridRamps,
    OrbitRamps,
    Ramp,
    Response,
)
from deniable.solvers.patterns.ramps.newton import Fit, RampFit
from deniable.solvers.patterns.ramps.settings import SETTINGS
from deniable.solvers.patterns.votes_dual import default_resolution
from deniable.solvers.problem import Problem

MOST_IN_TABLE = 16
"""Most attributes for which the law is a table of all 2^k patterns: 65,536 probabilities are drawn
from as fast as one, and written into a record."""

LANDED_TO = 2e-10
"""How near its level, in nats, a law as drawn comes; levels are aimed at twice that lower."""


def table_part(n_categories: Sequence[int], orbits: Orbits, density: FloatArray) -> Part:
    """Return the table of a density over the orbits, shape (n,), with what it promises: right to
    parts in 10^12, as exact levels are worked out elsewhere."""
    counts = other_outputs(tuple(n_categories)).astype(np.float64)
    law = PatternTable.from_probabilities(tuple(n_categories), orbits.expand(density) * counts)
    groups, mass = orbits.groups, density * orbits.chance
    kept, changed = orbits.kept_fraction @ mass, orbits.changed_fraction @ mass
    level = np.log(kept) + np.log(groups.n_categories - 1.0) - np.log(changed)
    logs = np.log(density).reshape(tuple((orbits.size + 1).tolist()))
    given = np.array([np.abs(np.diff(logs, axis=i)).max() for i in range(logs.ndim)])
    account = Account(
        math.log(float(density.max() / density.min())),
        level[orbits.group_of] * (1.0 + 1e-12),
        level[orbits.group_of] * (1.0 - 1e-12),
        given[orbits.group_of],
    )
    return Part(tuple(range(len(n_categories))), law, account)


def gated(n_categories: Sequence[int], ramp: Ramp, unit: float) -> GatedSum:
    """Return a ramp on a grid of this unit, in nats.

    A slope between two multiples of the unit is a mixture of both that falls by just as much, so
    that no cap is exceeded: ln(1 − θ + θ e^unit) = rest.

    Raises:
        InputError: if the ramp is steeper or higher than a law can be.
    """
    bottom = ramp.start + ramp.height
    slopes = np.minimum(ramp.slopes, SETTINGS.beyond_bottom * bottom)
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


def alike_gated(n_categories: Sequence[int], ramp: Ramp) -> GatedSum:
    """Return a ramp with one slope for all: only how many attributes are changed matters."""
    k, unit = len(n_categories), float(ramp.slopes[0])
    return gated(n_categories, ramp._replace(slopes=np.full(k, unit)), unit)


def landed(problem: Problem, caps: FloatArray, fit: Fit, *, alike: bool) -> GatedSum | None:
    """Return the gated sum of a ramp that meets every level as it is drawn; None if none settles.

    Args:
        problem: levels of every attribute, shape (k,).
        caps: γ in nats, infinite for none, shape (k,).
        fit: the ramp in real numbers, with a slope for every attribute.
        alike: whether all attributes are.
    """
    sums = _DrawnRamps(problem, fit.ramp, alike=alike)
    again = RampFit(sums, problem, caps, LANDED_TO, relative=False)
    ramp = fit.ramp
    top = None if fit.from_zero else fit.top
    try:
        settled = again.at(ramp.slopes, ramp.height, top, fit.share, beyond=fit.beyond)
    except (InputError, ValueError):  # on the way a ramp was steeper than a law can be
        return None
    return None if settled is None else sums.law(settled.ramp)


class _DrawnRamps:
    """What a ramp delivers on the grid of its law; derivatives of the ramp in real numbers."""

    def __init__(self, problem: Problem, ramp: Ramp, *, alike: bool) -> None:
        self.size = np.ones(problem.n_attributes)
        self._counts, self._alike = problem.counts, alike
        self._real = GridRamps(problem.n_categories)
        bottom = ramp.start + ramp.height
        slopes = np.minimum(ramp.slopes, SETTINGS.beyond_bottom * bottom)
        variance = problem.keep_probability * problem.change_probability
        deviation = math.sqrt(float(slopes**2 @ variance))
        # One unit for all steps: where slopes fall on the grid moves the levels.
        self._unit = max(
            2.0 * deviation / default_resolution(len(slopes)),
            float(slopes.sum()) * (math.sqrt(len(slopes)) + 8.0) / (0.9 * MOST_STATES),
            bottom / SETTINGS.most_below,
        )
        self._last: tuple[FloatArray, Response] | None = None

    def law(self, ramp: Ramp) -> GatedSum:
        if self._alike:
            return alike_gated(self._counts.tolist(), ramp)
        return gated(self._counts.tolist(), ramp, self._unit)

    def response(self, ramp: Ramp) -> Response:
        logs = np.log(ramp.slopes)
        if self._last is None or np.abs(logs - self._last[0]).max() > SETTINGS.same:
            self._last = logs, self._real.response(ramp)
        about = self._last[1]
        level = self.law(ramp).moments().levels(self._counts)
        return Response(level, about.by_slope, about.by_start, about.by_height)


class MixedTables:
    """Mixtures of ramps over all patterns, as tables.

    Args:
        n_categories: a_i, shape (k,).
        sums: over the orbits of patterns.
    """

    def __init__(self, n_categories: Sequence[int], sums: OrbitRamps) -> None:
        self._counts, self._sums = n_categories, sums

    def delivered(self, place: int, ramp: Ramp) -> Delivered:
        """Return what a ramp brings to a mixture, to rounding."""
        del place
        return self._sums.delivered(ramp)

    def part(self, ramps: Sequence[Ramp], places: Sequence[int], shares: FloatArray) -> Part:
        """Return the mixture of some of the ramps with these shares."""
        each = [
            share * self._sums.density(ramps[p]) for p, share in zip(places, shares, strict=True)
        ]
        return table_part(self._counts, self._sums.orbits, np.sum(each, axis=0))


class MixedSums:
    """Mixtures of ramps as blends of gated sums, each evaluated as it is drawn.

    Args:
        n_categories: a_i, shape (k,).
        group_of: the group of each attribute, shape (k,): a ramp has one slope for each.
    """

    def __init__(self, n_categories: Sequence[int], group_of: IntArray) -> None:
        self._counts, self._group_of = n_categories, group_of
        _, self._first, size = np.unique(group_of, return_index=True, return_counts=True)
        # A second attribute of each group, or the first again where there is none.
        self._alone = size < 2
        self._second = len(group_of) - 1 - np.unique(group_of[::-1], return_index=True)[1]
        self._laws: dict[int, GatedSum] = {}

    def delivered(self, place: int, ramp: Ramp) -> Delivered:
        """Return what a ramp brings to a mixture, its pairs rounded down by what they may be off
        for certain."""
        law = self._laws[place] = gated(
            self._counts,
            ramp._replace(slopes=ramp.slopes[self._group_of]),
            (ramp.start + ramp.height) / SETTINGS.units_of_part,
        )
        moments = law.moments()
        pairs, wrong = law.bounded_pair_attenuations()
        total = math.exp(moments.log_normalizer - law.height)
        sure = total * (pairs - 4.0 * (wrong + law.drawing_slack + 1e-12))
        grouped = sure[np.ix_(self._first, self._first)]
        within = np.where(self._alone, math.nan, sure[self._first, self._second])
        np.fill_diagonal(grouped, within)
        return Delivered(-law.height, total, total * moments.change[self._first], grouped)

    def part(self, ramps: Sequence[Ramp], places: Sequence[int], shares: FloatArray) -> Part:
        """Return the mixture of some of the ramps with these shares, each 1 where nothing is
        changed."""
        del ramps
        used = [
            (p, share) for p, share in zip(places, shares, strict=True) if share > SETTINGS.left_out
        ]
        parts = tuple(self._laws[place] for place, _ in used)
        logs = np.log([share for _, share in used]) - 0.5 * np.array([p.height for p in parts])
        law = VoteBlend(parts, np.exp(logs - logs.max()), np.ones(len(self._counts)))
        return Part(tuple(range(len(self._counts))), law, law.account)
