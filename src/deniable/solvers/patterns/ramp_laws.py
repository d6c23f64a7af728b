"""The laws that ramps are drawn as: the best that keeps caps and floor, at levels or for a total.

The floor on pairs is looked at in the law as drawn. Where the search for a ramp (`ramps`) is on a
coarse grid its ratios are right to a thousandth or so; a law that misses is searched for again with
more room.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.laws.law import PatternLaw
from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.vote_law import Account, VoteLaw
from deniable.solvers.patterns.levels import BoolArray
from deniable.solvers.patterns.optimal import Part, alike
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramp_landing import MOST_IN_TABLE, gated_sum_of, table_of
from deniable.solvers.patterns.ramp_mixtures import BY_ROUNDING, EXACTLY, Mixture, mixed
from deniable.solvers.patterns.ramp_response import GridRamps, OrbitRamps, RampSums
from deniable.solvers.patterns.ramps import AtLevels, Fit, RampFit, RampSearch, Target
from deniable.solvers.problem import Problem, checked_problem

FLOOR_MARGIN = 1e-9
AIM = 4e-10
"""How far below the request levels are aimed at: whatever is drawn must not end above it."""

_SEARCHED_TO, _LANDED_TO = 1e-7, 2e-10
_MOST_ORBITS = 8192
"""Most orbits that are summed over in the search; of more a coarse grid is, as where attributes are
many."""

_STALLED_AT = 1e-5
"""On a coarse grid steps may come no nearer than this: it is solved again where it is landed."""

_DITHERED, _MORE = 0.01, 1.1
"""Part of a cap by which dither on a coarse grid may exceed it, of a thousand attributes 5e-4, and
times that part by which slopes are then made less."""

_TRIES = 3
"""Ramps, each with more room above the floor, of which one as drawn may keep it."""

_MOST_MARGIN = 0.1
"""Where a law misses the floor by more, it is its error bounds that are too wide: of two attributes
that tell next to nothing a pair's ratio is known to no digits."""


def keep_floor(laws: Iterable[PatternLaw], floor: float | None) -> bool:
    """Return whether every pair's φ_ij ≥ t φ_i φ_j; pairs under two laws have a ratio of 1."""
    return floor is None or all(law.keeps_pair_floor(floor + FLOOR_MARGIN) for law in laws)


class RampLaws:
    """Ramps for one problem, and the laws that are drawn from.

    Args:
        problem: attributes that all have room below their caps; the levels, or for a total about
            the levels: they say which attributes are alike.
        also: what else tells attributes apart, shape (k,).
        target: what is asked of the attributes at these places.
        w: where the target's last unknown starts.
        floor: t, or None.
        limits: caps that are kept, shape (k,), where those of the target are stricter.

    Attributes:
        floor_broken: whether the floor stood in the way of the best ramp.
        broken: where no other was found, attributes without which the pairs that it is broken for
            would not be there, the fewest and those with the least levels first.
        kept: w of the ramp found last that keeps the floor, whether or not it is drawn; infinite
            if none.
        ends_unchanged: whether that ramp's top is reached only where nothing is changed.
        better: see :class:`~deniable.solvers.patterns.ramps.Target`.
        beaten: whether the last search was left because what it found is no better than what is
            known.
    """

    def __init__(
        self,
        problem: Problem,
        also: FloatArray | IntArray,
        target: Callable[[list[int]], Target],
        w: float,
        floor: float | None,
        limits: FloatArray | None = None,
    ) -> None:
        k = problem.n_attributes
        self._counts = tuple(problem.counts.tolist())
        self._limits = limits
        self._tabled = k <= MOST_IN_TABLE
        self._alike = alike(problem) and len(set(also)) == 1
        self._floor, self.floor_broken = floor, False
        self._level = problem.attribute_epsilon
        self.broken: list[int] = []
        self.beaten = False
        self.kept, self.ends_unchanged = math.inf, False
        self._whole, self._target = target(list(range(k))), target
        self.better = self._whole.better
        self._group_of = self._kind_of = np.arange(k)
        counts = problem.n_categories
        sums: RampSums = GridRamps(counts)
        self._sums: OrbitRamps | None = None
        if self._tabled or self._alike:
            grouped = orbits(problem, also.tolist())
            self._sums, self._kind_of = OrbitRamps(grouped), grouped.group_of
            if len(grouped.chance) <= _MOST_ORBITS:
                sums, self._group_of = self._sums, self._kind_of
        exactly = isinstance(sums, OrbitRamps)
        near = (EXACTLY, BY_ROUNDING) if exactly else (_SEARCHED_TO, _STALLED_AT)
        self._search = RampSearch(sums, target(_first(self._group_of)), w, *near)
        # A coarse grid tells ratios to about a thousandth.
        self._margin = FLOOR_MARGIN if exactly else 1e-3

    def best(
        self,
        near: Fit | None,
        worst: float | None = None,
        drawn: Callable[[Fit], tuple[PatternLaw, Fit] | None] | None = None,
        free: Fit | None = None,
        *,
        up: bool = True,
    ) -> tuple[PatternLaw, Fit] | None:
        """Return the best law found that keeps caps and floor as drawn, and its ramp.

        Args:
            near: a ramp for something similar.
            worst: the w of the best law that is known already: ramps that are no better are left.
            drawn: from a ramp to its law, if it is another than :meth:`drawn`.
            free: the best ramp, or the best that keeps the floor, if one is known.
            up: whether the top may be moved up for the floor.
        """
        margin, better = self._margin, self.better

        def beaten(fit: Fit) -> bool:
            return worst is not None and better * fit.w >= better * worst

        if free is None or not self._fits(free):
            free = self._search.best(1.0, near)
        self.beaten = free is not None and beaten(free)
        if free is None or self.beaten:
            return None
        for _ in range(_TRIES):
            fit = self._keeping(margin, free, up)
            self.kept = math.inf if fit is None else fit.w
            self.ends_unchanged = fit is not None and fit.ends_unchanged
            landed = None if fit is None or beaten(fit) else (drawn or self.drawn)(fit)
            if fit is None or landed is None:
                return None
            law, ramp = landed
            if keep_floor([law], self._floor):
                return law, ramp
            assert self._floor is not None
            if isinstance(law, VoteLaw):
                self.broken = self._cover(law.pair_ratio_floors < self._floor + FLOOR_MARGIN)
            margin += 2.0 * (self._floor - law.least_pair_ratio()) + 1e-4
            if fit.ends_unchanged or self._floor + margin > 1.0 + _MOST_MARGIN:
                return None  # it is the error bounds that are too wide
        return None

    def keeping(self, fit: Fit) -> Fit | None:
        """Return the best ramp found that keeps the floor, which may be this one."""
        return self._keeping(self._margin, fit)

    def still_keeping(self, near: Fit, *, up: bool = True) -> Fit | None:
        """Return the ramp that keeps the floor, next to one that keeps it for something similar.

        Args:
            near: that one.
            up: whether the top may be moved up for it.
        """
        fit = self._search.beside(near) if self._fits(near) else None
        if fit is None or self._floor is None:
            return fit
        return self._search.still_keeping(self._floor + self._margin, fit, up=up)

    def _fits(self, fit: Fit) -> bool:
        """Whether a ramp has one slope for each group of attributes."""
        return len(fit.ramp.slopes) == int(self._group_of.max()) + 1

    def searched(self, near: Fit | None, placed: bool) -> Fit | None:
        """Return the best ramp found, whatever the floor.

        Args:
            near: a ramp for something similar.
            placed: whether its top will do, where to place it anew takes long.
        """
        beside = None
        if near is not None and placed and not self._tabled:
            beside = self._search.beside(near)
        return beside or self._search.best(1.0, near)

    def _cover(self, broken: BoolArray) -> list[int]:
        """Return attributes that together touch every broken pair, (k, k), at little cost."""
        broken, chosen = broken & ~np.eye(len(broken), dtype=np.bool_), []
        while broken.any():
            chosen.append(int(np.argmax(broken.sum(axis=1) / self._level)))
            broken[chosen[-1]] = broken[:, chosen[-1]] = False
        return chosen

    def _keeping(self, margin: float, fit: Fit, up: bool = True) -> Fit | None:
        """Return the ramp, or the best one found that keeps the floor with this margin."""
        self.broken = []
        if (
            self._floor is None
            or fit.ends_unchanged  # which keeps every floor
            or self._search.least_ratio(fit) >= self._floor + margin
        ):
            return fit
        self.floor_broken = True
        kept = self._search.keeping(self._floor + margin, fit) if up else None
        if kept is None:
            ratios = self._search.pair_ratios(fit) < self._floor + margin
            self.broken = self._cover(ratios[np.ix_(self._group_of, self._group_of)])
        return kept

    def drawn(self, fit: Fit) -> tuple[PatternLaw, Fit] | None:
        """Return the law as drawn of a ramp, or of the nearest that delivers what is asked, and
        that ramp; None where there is none. Whether it keeps the floor is not looked at."""
        if self._tabled:
            assert self._sums is not None
            first = _first(self._kind_of)
            slopes = fit.ramp.slopes
            slopes = slopes[self._group_of][first] if self._fits(fit) else slopes
            top = None if fit.ends_unchanged else fit.ramp.top
            exact = RampFit(self._sums, self._target(first), EXACTLY, stalled=BY_ROUNDING)
            settled = exact.at(slopes, fit.w, top, fit.share, veto=fit.veto)
            if settled is None:
                return None
            change = settled.asked.problem.change_probability
            density = self._sums.density(settled.ramp, change)
            return table_of(self._counts, self._sums.orbits, density), settled
        whole = replace(
            fit,
            ramp=replace(fit.ramp, slopes=fit.ramp.slopes[self._group_of]),
            asked=self._whole.at(fit.w),
        )
        landed = self._landed(whole)
        if landed is not None:
            law, at = landed
            over = float((law.account.epsilon_given_rest / at.asked.caps).max()) - 1.0
            if 0.0 < over < _DITHERED:
                landed = self._landed(replace(whole, share=whole.share * (1.0 - _MORE * over)))
        if landed is None:
            return None
        law, at = landed
        above = law.attribute_bounds()[0] - at.asked.problem.attribute_epsilon
        caps = at.asked.caps if self._limits is None else self._limits
        kept = law.account.epsilon_given_rest <= caps
        if float(above.max()) > AIM or not kept.all():
            return None
        ramp = replace(at.ramp, slopes=at.ramp.slopes[_first(self._group_of)])
        return law, replace(fit, ramp=ramp, w=at.w)

    def _landed(self, fit: Fit) -> tuple[GatedSum, Fit] | None:
        """Return the law as drawn of a ramp with a slope for every attribute, and its ramp."""
        return gated_sum_of(
            self._whole,
            fit,
            _LANDED_TO,
            alike=self._alike,
            limits=self._limits,
        )

    def part(self, law: PatternLaw, fit: Fit) -> Part:
        """Return the law of all attributes with what it promises: for a table, whose exact levels
        are worked out elsewhere, right to parts in 10^12."""
        places = tuple(range(len(self._counts)))
        if isinstance(law, VoteLaw):
            return Part(places, law, law.account)
        assert self._sums is not None
        asked = fit.asked
        density = np.log(self._sums.density(fit.ramp, asked.problem.change_probability))
        height = float(density.max() - density.min())
        level = asked.problem.attribute_epsilon[self._kind_of]
        given = np.minimum(fit.ramp.slopes, height)[self._kind_of]
        least = level * (1.0 - max(fit.miss, EXACTLY))
        return Part(places, law, Account(height, level, least, given))


def _first(group_of: IntArray) -> list[int]:
    """Return the first attribute of each group."""
    first: list[int] = np.unique(group_of, return_index=True)[1].tolist()
    return first


def at_levels(
    counts: IntArray,
    aimed: FloatArray,
    caps: FloatArray,
    height: float,
    floor: float | None,
    kinds: IntArray | None = None,
    limits: FloatArray | None = None,
    useful: float = math.inf,
) -> RampLaws:
    """Return the ramps for levels and caps, shapes (k,), which may be stricter than the limits.

    Attributes with equal categories and levels have one slope; where kinds are given, shape (k,),
    only those of one kind, which have equal caps. None is of use
    whose E is above `useful`, if one is given.
    """
    problem = checked_problem(counts.tolist(), aimed.tolist())
    also: FloatArray | IntArray | None = kinds
    if also is None:
        # Of attributes that are alike, which have one slope, only the tightest cap matters.
        same = np.unique(np.stack([counts, aimed]), axis=1, return_inverse=True)[1].ravel()
        tightest = np.full(int(same.max()) + 1, np.inf)
        np.minimum.at(tightest, same, caps)
        caps = tightest[same]
        also = np.round(caps, 9)

    def target(groups: list[int]) -> Target:
        levels = Problem(problem.n_categories[groups], aimed[groups])
        return AtLevels(levels, caps[groups], useful)

    return RampLaws(problem, also, target, height, floor, limits)


@dataclass(frozen=True, eq=False)
class Mixed:
    """A law that is a mixture of ramps.

    Attributes:
        part: the law.
        fit: the best ramp.
        meeting: from other levels and caps, shapes (k,), to the best mixture of the same ramps that
            meets and keeps them; None if none is found, and where a cap is smaller than it was.
    """

    part: Part
    fit: Fit | None
    meeting: Callable[[FloatArray, FloatArray], Part | None]


def mixture(
    counts: IntArray,
    aimed: FloatArray,
    caps: Sequence[FloatArray],
    height: float,
    floor: float | None,
    near: Fit | None,
) -> Mixed | None:
    """Return the best mixture of ramps over a table of patterns, and the best ramp.

    Args:
        counts: a_i, shape (k,).
        aimed: levels in nats, shape (k,).
        caps: γ in nats, the loosest first, shapes (k,).
        height: about the record's ε, in nats.
        floor: t, or None.
        near: a ramp for something similar.
    """
    problem = checked_problem(counts.tolist(), aimed.tolist())
    grouped = orbits(problem, np.round(caps[0], 9).tolist())
    group_of = grouped.group_of
    first = np.unique(group_of, return_index=True)[1]
    kept = None if floor is None else floor + 3.0 * FLOOR_MARGIN
    best = mixed(OrbitRamps(grouped), [limits[first] for limits in caps], height, kept, near)

    def drawn(found: Mixture | None, aimed: FloatArray, limits: FloatArray) -> Part | None:
        law = None if found is None else table_of(tuple(counts.tolist()), grouped, found.density)
        if found is None or law is None or not keep_floor([law], floor):
            return None
        given = np.minimum(limits, found.epsilon)
        account = Account(found.epsilon, aimed, aimed * (1.0 - 1e-12), given)
        return Part(tuple(range(len(counts))), law, account)

    def meeting(aimed: FloatArray, limits: FloatArray) -> Part | None:
        least = np.full(len(first), np.inf)
        np.minimum.at(least, group_of, aimed)
        apart = float((aimed - least[group_of]).max())  # attributes of a group that are not alike
        if best is None or (limits < caps[0]).any() or apart > AIM:
            return None
        return drawn(best.meeting(least), least[group_of], caps[0])

    part = drawn(best, aimed, caps[0])
    return None if best is None or part is None else Mixed(part, best.fit, meeting)
