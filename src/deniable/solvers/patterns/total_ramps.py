"""Ramps that spend a total: the one at the largest scale of the levels that it pays for.

A ramp's height is what it costs: where a total is given, the height is known, and the search for
the ramp (`ramps`, `AtTotal`) has the levels' common scale as its last unknown. Where one level
takes much of the total, that scale moves too steeply with the ramp's top: there it is found by
secants over ramps at given levels. As for given levels (`balanced`), the same stricter caps are
tried for every request, and where one of them is best, others about it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from deniable.laws.law import PatternLaw
from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.vote_law import LARGEST_HEIGHT
from deniable.solvers.patterns.balanced import LOOSEST, Method, rungs
from deniable.solvers.patterns.optimal import Part
from deniable.solvers.patterns.ramp_laws import AIM, RampLaws, at_levels
from deniable.solvers.patterns.ramp_response import Ramp
from deniable.solvers.patterns.ramps import AtTotal, Fit, Target
from deniable.solvers.problem import Problem

UNSPENT, _UNSPENT_BY_RAMPS = 5e-7, 1e-8
"""Part of a total that may be left, where secants come near it and where the height is given."""

_SECANTS, _SPENT_NEARLY = 8, 1e-4
"""Ramps at given levels from which that of a total is neared, and how near, in ln ε."""

_GIANT, _PART_OF_GIANT = 0.55, 0.7
"""Part of a total from which on one of the optimum's levels is a giant, and at which it is tried
first."""

_FAR_BELOW = 0.75
"""Part of the optimum's scale up to which a ramp that spends the total is compared with one at
given levels."""

_LOOSER = 1.1
"""Step to looser caps, as a factor, in which a ramp that keeps the floor is followed."""

_STARTS, _LOWER = 3, 0.2
"""Scales at which a ramp that keeps the floor is looked for, and their distance in logarithms."""

_SPENT_ABOUT, _LANDINGS = 2e-3, 6
"""How near ramps come to a total, in ln ε, before they are drawn, and how often they are."""

_CELL, _STRIDES, _LEAST_CAP = 0.01, 8, 1.02
"""Steps between caps that are tried about stricter ones that are best, in the logarithm of the
multiple of the levels, how many of them are taken at once at first, and where they end."""

_HALFWAY = (5.0, 3.5, 2.25, 1.75, 1.35, 1.17)
"""Multiples of the levels that are tried beside those of `rungs` where there is a floor: the best
ramp under looser caps may break it, or be another that buys less."""

_RISE, _RISES = 2e-3, 2
"""Part of ε by which stricter caps cost more than the last ones, and how often, after which none
are tried."""

_OF_USE = 2.0
"""Times the total that a ramp at given levels may cost: from a dearer one without a plateau no
secant comes to the total."""


@dataclass(frozen=True, eq=False)
class Division:
    """What is asked of levels that are to be as large as a total pays for.

    Attributes:
        problem: the attributes; its levels are the ratios.
        total: of the record, in nats.
        at_most: largest levels, infinite for none, shape (k,).
        multiple: caps as multiples of the levels; infinite for none.
        limits: caps in nats, infinite for none, shape (k,).
        floor: t, or None.
    """

    problem: Problem
    total: float
    at_most: FloatArray
    multiple: float
    limits: FloatArray
    floor: float | None

    def levels(self, scale: float) -> FloatArray:
        """Return the levels at a scale, shape (k,)."""
        return np.minimum(scale * self.problem.attribute_epsilon, self.at_most)

    def caps(self, levels: FloatArray, multiple: float | None = None) -> FloatArray:
        """Return the caps at these levels, or stricter ones of so many times the levels."""
        return np.minimum((self.multiple if multiple is None else multiple) * levels, self.limits)

    def start(self, scale: float, part: float) -> float:
        """Return a scale to start from, given about where the optimum spends the total, with the
        largest level at most a part of it: none is above it, whatever its limit for many attributes
        says."""
        return min(0.95 * scale, part * self.total / float(self.levels(1.0).max()))


class Reached(NamedTuple):
    """A scale, the levels there, the laws that meet them, how they were found, and the ramp, if it
    is one, with the multiple of the levels under which it was."""

    scale: float
    levels: FloatArray
    parts: list[Part]
    method: Method
    ramp: Fit | None
    multiple: float = math.inf


def worth(reached: Reached) -> float:
    """Return the sum of the levels' logarithms: of scales that is the order, but beyond the scale
    at which every level is the largest it may be there is nothing to gain."""
    return float(np.log(reached.levels).sum())


class Secant:
    """Steps to where ln ε is that of the total, over the logarithm of the scale.

    Args:
        slope: of ln ε, before two of them are known.
        least, most: between which it is taken to be.
    """

    def __init__(self, slope: float, least: float = 0.3, most: float = 5.0) -> None:
        self._slope, self._last = slope, (math.nan, math.nan)
        self._least, self._most = least, most

    def next(self, at: float, over: float) -> float:
        """Return where to look next, from where ln ε is so much over."""
        moved, rose = at - self._last[0], over - self._last[1]
        if moved * rose > 0.0:
            self._slope = min(max(rose / moved, self._least), self._most)
        self._last = at, over
        return at - over / self._slope


class _Found(NamedTuple):
    """What a look under some caps came to.

    Attributes:
        reached: the laws that spend the total, if they were found.
        beaten: whether what is found without the floor buys no more than what is known.
        near: a ramp to start from for other caps.
        cost: the record's ε at the scale that is known, if that is above the total.
    """

    reached: Reached | None = None
    beaten: bool = False
    near: Fit | None = None
    cost: float | None = None


def _grown(fit: Fit, times: float) -> Fit:
    """Return a ramp at given levels as a start for so many times the levels."""
    slopes, top, height = times * fit.ramp.slopes, times * fit.ramp.top, times * fit.w
    return replace(fit, ramp=Ramp(slopes, top, height), w=height)


class TotalRamps:
    """The search for the ramp of a total.

    Args:
        division: what is asked.
        kinds: the kind of each attribute, shape (k,). At a scale the levels of two kinds may be
            equal, and ramps have a slope for each all the same: they go from one scale to another.

    Attributes:
        floor_broken: whether the floor stood in the way of a ramp.
    """

    def __init__(self, division: Division, kinds: IntArray) -> None:
        self._division, self._kinds = division, kinds
        self._problem, self._total = division.problem, division.total
        self._loosest = min(division.multiple, LOOSEST)
        self.floor_broken = False
        self._afar: Fit | None = None
        """The last ramp that secants found where no start settled: near those for other caps."""

    def best(self, scale: float, least: float) -> Reached | None:
        """Return the best of what is found under the caps and under stricter ones.

        Args:
            scale: about where the optimum spends the total.
            least: what it has to be worth.
        """
        if float(self._division.levels(scale).max()) > _GIANT * self._total:
            beside = self._beside_a_giant(scale)
            if beside is not None and worth(beside) > least:
                return beside
        best = self._at_given_height(scale, least)
        if best is None or best.scale > _FAR_BELOW * scale:
            return best
        # A ramp of this height may have its mass on the top, at levels that cost much less.
        near = self._near(best.scale, self._total, best.multiple, placed=False)
        if near is None or near.w <= math.log(best.scale):
            return best
        found = self._by_ramps(scale, best.multiple, best, near).reached
        return best if found is None else max(best, found, key=worth)

    def _at_given_height(self, scale: float, least: float) -> Reached | None:
        """Return the best of what is found at the height that spends the total."""
        best, tried = self._down(scale, partial(self._by_ramps, scale), least)
        if best is None:
            best, tried = self._down(scale, partial(self._by_ramps, scale, afar=True), least)
        if best is None or best.multiple == self._loosest:
            return best
        # From there the caps as they are may buy more after all.
        self._afar = self._afar or best.ramp
        near = self._near(best.scale, self._total, self._loosest, placed=False)
        found = self._by_ramps(scale, self._loosest, best, near).reached
        if found is not None and worth(found) > worth(best):
            return found
        return self._between(
            best, tried, lambda cap, known: self._by_ramps(scale, cap, known, known.ramp)
        )

    def _down(
        self,
        scale: float,
        look: Callable[[float, Reached | None], _Found],
        least: float = -math.inf,
    ) -> tuple[Reached | None, list[float]]:
        """Return the best of what is found from the caps as they are to the strictest, and the
        multiples of the levels that were tried.

        Args:
            scale: about where the optimum spends the total.
            look: returns what is found at a multiple, given what is best by now.
            least: what it has to be worth.

        What stricter caps cost is looked at where the best so far spends the total; where they cost
        more and more, no others are tried.
        """
        about = self._division.levels(scale)
        multiples = np.minimum(self._division.caps(about), LOOSEST * about) / about
        best, tried, cost, rises = None, list[float](), self._total, 0
        for rung in self._rungs(multiples):
            multiple = min(self._loosest, rung)
            tried.append(multiple)
            found = look(multiple, best)
            if found.reached and worth(found.reached) > (worth(best) if best else least):
                best, cost, rises = found.reached, self._total, 0
            elif best is not None and found.beaten:
                break  # without the floor stricter caps buy less, and with it no more
            elif best is not None and found.cost is not None:
                rises = rises + 1 if found.cost > (1.0 + _RISE) * cost else 0
                cost = found.cost
                if rises == _RISES:
                    break
        return best, tried

    def _rungs(self, multiples: FloatArray) -> list[float]:
        """Return the caps that are tried, the loosest first: the same below every request's."""
        looks = rungs(multiples, None)
        if self._division.floor is None:
            return looks
        least = float(multiples.min())
        return sorted({*looks, *(one for one in _HALFWAY if one < 0.98 * least)}, reverse=True)

    def _between(
        self, best: Reached, tried: list[float], look: Callable[[float, Reached], _Found]
    ) -> Reached:
        """Return the best of what is found under caps about the stricter ones that are best, on a
        lattice that is the same for every request: what a stricter request finds.

        Args:
            best: what is best by now.
            tried: all multiples by now.
            look: returns what is found at a multiple, given what is best by now.
        """
        step = _STRIDES
        while step:
            here = math.log(best.multiple) / (_CELL * step)
            caps = [math.exp(_CELL * step * n) for n in (math.floor(here) + 1, math.ceil(here) - 1)]
            for cap in caps:
                if cap in tried or not _LEAST_CAP < cap < self._loosest:
                    continue
                tried.append(cap)
                found = look(cap, best).reached
                if found is not None and worth(found) > worth(best):
                    best = found
                    break
            else:
                step //= 2
        return best

    def _beside_a_giant(self, scale: float) -> Reached | None:
        """Return the best of what is found at given levels, under the caps and under stricter ones,
        where one level takes much of the total.

        There the scale at a given height moves steeply with the top, and the height at given levels
        gently.
        """
        start = self._division.start(scale, _PART_OF_GIANT)
        near: Fit | None = None
        starts, astray = _STARTS, False

        def look(multiple: float, best: Reached | None) -> _Found:
            nonlocal near, starts, astray
            found = self._by_levels(start, multiple, best, near, starts)
            # Where the loosest caps led nowhere, stricter ones need their own starts.
            better = found.reached and best and worth(found.reached) > worth(best)
            if astray and best is not None and not found.beaten and not better:
                anew = self._by_levels(start, multiple, None, None, _STARTS)
                if anew.reached and worth(anew.reached) > worth(best):
                    found = anew
            near, starts = found.near, 1
            astray = astray or (best is None and found.reached is None)
            return found

        best, tried = self._down(scale, look)
        if best is None or best.multiple == self._loosest:
            return best
        best = self._loosened(best)
        if best.multiple == self._loosest:
            return best

        def followed(cap: float, known: Reached) -> _Found:
            assert known.ramp is not None
            kept = self._at_levels(math.log(known.scale), cap).still_keeping(known.ramp)
            if kept is None:
                return self._by_levels(start, cap, known, near)
            return self._by_levels(start, cap, known, kept, follow=True)

        return self._between(best, [*tried, best.multiple], followed)

    def _loosened(self, best: Reached) -> Reached:
        """Return what is bought under looser caps by a ramp followed there from stricter ones."""
        kept, cap = best.ramp, best.multiple
        assert kept is not None
        while cap < self._loosest:
            looser = min(_LOOSER * cap, self._loosest)
            next_one = self._at_levels(math.log(best.scale), looser).still_keeping(kept)
            if next_one is None or next_one.w > kept.w:
                break
            kept, cap = next_one, looser
        if cap == best.multiple:
            return best
        found = self._by_levels(best.scale, cap, best, kept, follow=True).reached
        return found if found is not None and worth(found) > worth(best) else best

    def _by_ramps(
        self,
        scale: float,
        multiple: float,
        known: Reached | None,
        near: Fit | None = None,
        *,
        afar: bool = False,
    ) -> _Found:
        """Return the best ramp of the height that spends the total.

        Args:
            scale: about where the optimum spends the total.
            multiple: of the levels, the caps.
            known: what is best by now.
            near: a ramp for something similar.
            afar: whether to go a long way where no start is close enough.
        """
        height = self._total * (1 - 1e-12) - 1e-11
        if near is None and self._afar is not None:
            near = self._near(math.exp(self._afar.w), height, multiple)
        worst = None if known is None else math.log(known.scale)
        for _ in range(4):
            if not 0.0 < height <= LARGEST_HEIGHT:
                return _Found()
            start = self._division.start(scale, 0.8)
            ramps = self._at_height(height, scale, multiple)
            result = ramps.best(near, worst)
            self.floor_broken |= ramps.floor_broken
            settled = ramps.floor_broken or ramps.beaten
            if result is None and near is None and afar and not settled:
                near = self._near(start, height, multiple)
                result = ramps.best(near, worst)
            if result is None:
                return _Found(beaten=ramps.beaten)
            worst = None
            law, reached = result
            near, part = reached, ramps.part(law, reached)
            unspent = self._total - part.account.epsilon
            if unspent < 0.0:
                return _Found()
            if unspent <= _UNSPENT_BY_RAMPS * self._total:
                break
            # The ramp's top or bottom lies beyond all patterns: part of its height does nothing.
            height += unspent
        scale = math.exp(reached.w)
        levels = self._division.levels(scale)
        return _Found(Reached(scale, levels, [part], "ramp", reached, multiple))

    def _at_height(self, height: float, scale: float, multiple: float) -> RampLaws:
        """Return the ramps of a height, about at a scale."""

        def target(places: list[int]) -> Target:
            return AtTotal(
                self._problem.n_categories[places],
                self._problem.attribute_epsilon[places],
                self._division.at_most[places],
                multiple,
                self._division.limits[places],
                height,
                AIM,
            )

        about = Problem(self._problem.n_categories, self._division.levels(scale))
        start = math.log(self._division.start(scale, 0.8))
        return RampLaws(about, self._kinds, target, start, self._division.floor)

    def _by_levels(
        self,
        scale: float,
        multiple: float,
        known: Reached | None,
        near: Fit | None,
        starts: int = 1,
        *,
        follow: bool = False,
    ) -> _Found:
        """Return what secants over ramps at given levels find.

        Args:
            scale: about where the total is spent.
            multiple, known, near: see :meth:`_by_ramps`.
            starts: scales at most at which a ramp that keeps the floor is looked for.
            follow: whether the ramp to start from keeps the floor at the scale that is known.
        """
        at = math.log(scale if known is None else known.scale)
        ramps, free = self._at_levels(at, multiple), near if follow else None
        kept = free
        for _ in range(0 if follow else starts):
            free = ramps.searched(near, placed=False)
            near = near if free is None else free
            if known is not None and free is not None and free.w >= self._total:
                return _Found(beaten=True, near=near)
            kept = None if free is None else ramps.keeping(free)
            self.floor_broken |= ramps.floor_broken
            if kept is not None:
                break
            at -= _LOWER
            ramps = self._at_levels(at, multiple)
        if kept is None:
            return _Found(near=near)
        if known is not None and kept.w * (1.0 + _SPENT_NEARLY) >= self._total:
            return _Found(near=near, cost=kept.w)
        secant, bound = Secant(1.0), follow or kept is not free
        for _ in range(_SECANTS):
            over = math.log(kept.w / self._total)
            if abs(over) < _SPENT_ABOUT:
                break
            at, last = secant.next(at, over), at
            ramps, start = self._at_levels(at, multiple), _grown(kept, math.exp(at - last))
            if bound:
                kept = ramps.still_keeping(start)
            else:
                free = ramps.searched(start, placed=False)
                kept = None if free is None else ramps.keeping(free)
                bound = kept is not free
            if kept is None:
                return _Found(near=near)

        found: list[Reached] = []

        def drawn(fit: Fit) -> tuple[PatternLaw, Fit] | None:
            """Draw the ramp at the scale at which it costs the total, moved along with it."""
            here, secant = at, Secant(1.0)
            for _ in range(_LANDINGS):
                ramps = self._at_levels(here, multiple)
                landed = ramps.drawn(fit)
                if landed is None:
                    return None
                part = ramps.part(*landed)
                over = math.log(part.account.epsilon / self._total)
                if -UNSPENT < over <= 0.0:
                    scale = math.exp(here)
                    levels = self._division.levels(scale)
                    found.append(Reached(scale, levels, [part], "ramp", landed[1], multiple))
                    return landed
                here, last = secant.next(here, over + 0.4 * UNSPENT), here
                fit = _grown(landed[1], math.exp(here - last))
            return None

        landed = ramps.best(None, drawn=drawn, free=kept)
        return _Found(found[-1] if landed else None, near=near)

    def _at_levels(self, at: float, multiple: float) -> RampLaws:
        """Return the ramps at the levels of a scale, of which the logarithm is given."""
        levels = self._division.levels(math.exp(at))
        aimed = levels - np.minimum(AIM, 1e-3 * levels)
        return self._ramps(aimed, self._division.caps(levels, multiple), self._total)

    def _ramps(self, levels: FloatArray, caps: FloatArray, about: float) -> RampLaws:
        counts, floor = self._problem.counts, self._division.floor
        useful = _OF_USE * self._total
        return at_levels(counts, levels, caps, about, floor, self._kinds, useful=useful)

    def _near(
        self, scale: float, height: float, multiple: float, placed: bool = True
    ) -> Fit | None:
        """Return about the ramp that spends the total, by secants over ramps at given levels,
        with the top of one for other caps or placed anew.

        Where one level takes nearly all of the total, the scale at a given height moves steeply
        with the top, and the height at given levels gently.
        """
        at, spent, secant = math.log(scale), height, Secant(1.0)
        near = self._afar and replace(self._afar, w=height)
        for _ in range(_SECANTS):
            levels = self._division.levels(math.exp(at))
            ramps = self._ramps(levels, self._division.caps(levels, multiple), spent)
            near = ramps.searched(near, placed)
            if near is None:
                return None
            over = math.log(near.w / height)
            if abs(over) < _SPENT_NEARLY:
                self._afar = replace(near, w=at)
                return self._afar
            at, last = secant.next(at, over), at
            near = _grown(near, math.exp(at - last))
            spent = near.w
        return None
