"""The largest levels whose balanced law costs no more than a total, found with the law together.

A ramp's height is what it costs: where a total is given, the height is known, and the search for
the ramp (`ramps`, `AtTotal`) has the levels' common scale as its last unknown. Where one level
takes much of the total, that scale moves too steeply with the ramp's top: there it is found by
secants over ramps at given levels. As for given levels (`balanced`), the same stricter caps are
tried for every request. Where a floor on pairs stood in the way, the best ramp is lifted for the
pair that breaks it (`ramp_lifts`), and ramps are mixed: those that are mixed at some levels can be
mixed to meet larger ones.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from deniable.laws.law import PatternLaw
from deniable.laws.patterns import FloatArray
from deniable.laws.votes.vote_law import LARGEST_HEIGHT
from deniable.solvers.patterns import balanced, linear
from deniable.solvers.patterns.balanced import (
    EXACT_IN_A_SEARCH,
    LOOSEST,
    BalancedSolution,
    CommonSearch,
    Method,
    capped_table,
    compared,
    near_optimum,
    rungs,
)
from deniable.solvers.patterns.importance import limit_epsilon
from deniable.solvers.patterns.optimal import Part, independent, record_level
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramp_landing import MOST_IN_TABLE
from deniable.solvers.patterns.ramp_laws import AIM, RampLaws, at_levels, best_lifted
from deniable.solvers.patterns.ramp_lifts import Lift, least_pair
from deniable.solvers.patterns.ramp_response import Ramp
from deniable.solvers.patterns.ramps import AtTotal, Fit, Target
from deniable.solvers.problem import Problem, checked_problem, optional_limits

_UNSPENT, _UNSPENT_BY_SECANTS = 1e-8, 5e-7
"""Part of a total that may be left."""

_PROGRAMS, _SOLVED, _SOLVED_OF_MANY = 14, 5, 3
"""Levels at most that are tried by secants for which a program is solved, or a design found: of
more attributes than a table holds each takes seconds."""

_MUCH = 1.1
"""Times the scale that independent responses reach, from which on the optimum's without caps shows
that something better may be found."""

_SECANTS, _SPENT_NEARLY = 8, 1e-4
"""Ramps at given levels from which that of a total is neared, and how near, in ln ε."""

_GIANT, _PART_OF_GIANT = 0.55, 0.7
"""Part of a total from which on one of the optimum's levels is a giant, and at which it is tried
first."""

_POOLS, _AFRESH = 3, 1.08
"""How often ramps to mix are looked for at most, and from how many times the levels on again at
those that were bought."""

_MIXED_TO, _MIXED_GAINS = 20, 1e-3
"""Attributes up to which ramps are mixed after one was found: beyond, that takes long and gains
little. And what is gained at least, in the sum of the levels' logarithms: mixtures take longer to
draw."""

_LOOSER = 1.1
"""Step to looser caps, as a factor, in which a ramp that keeps the floor is followed."""

_STARTS, _LOWER = 3, 0.2
"""Scales at which a ramp that keeps the floor is looked for, and their distance in logarithms."""

_SPENT_ABOUT, _LANDINGS = 2e-3, 6
"""How near ramps come to a total, in ln ε, before they are drawn, and how often they are."""

_CELL, _STRIDES, _LEAST_CAP = 0.01, 8, 1.02
"""Steps between caps that are tried about stricter ones that are best, in the logarithm of the
multiple of the levels, how many of them are taken at once at first, and where they end."""

_RISE, _RISES = 2e-3, 2
"""Part of ε by which stricter caps cost more than the last ones, and how often, after which none
are tried."""

_LIFTED = range(11, 65)
"""Attributes of which a ramp is lifted for a pair, where a floor stands in the way of it."""

_STRICTER, _STRICTER_BY = 4, 1.05
"""How often lifts are tried under still stricter caps, where such are best, and in what steps."""

_LIFTED_BELOW = 1e-9
"""How far below another ramp a lifted one ends, in nats: it takes more roundings to draw."""

_BELOW_LIMIT = 0.9
"""Part of a cap in nats up to which a total's division raises a level: at the cap itself only an
independent response keeps it."""


@dataclass(frozen=True, eq=False)
class Spent:
    """A total divided: levels, and laws that meet them.

    Attributes:
        levels: ε_i in nats, shape (k,); no law exceeds them.
        parts: the laws; their record level is at most the total.
        solve: from them to what the optimum at these levels is known to cost, which takes a search
            of its own.
        mix: what mixtures of ramps buy, if that is more, by another search; None if nothing.
    """

    levels: FloatArray
    parts: tuple[Part, ...]
    solve: Callable[[], BalancedSolution]
    mix: Callable[[], "Spent | None"] = lambda: None

    @cached_property
    def solution(self) -> BalancedSolution:
        """The laws, with the optimum at these levels without caps and floor."""
        return self.solve()


def spend(
    n_categories: Sequence[int],
    total: float,
    ratios: Sequence[float],
    at_most: Sequence[float],
    multiple: float,
    pair_floor: float | None,
    *,
    limits: Sequence[float | None] | None = None,
    scale: float | None = None,
    fair: bool = False,
) -> Spent:
    """Find the largest levels in these ratios whose law costs no more than a total.

    Args:
        n_categories: a_i, shape (k,).
        total: of the record, in nats.
        ratios: proportions of the levels, shape (k,), in nats at scale 1.
        at_most: largest ε_i, infinite for none, shape (k,).
        multiple: the cap on `epsilon_given_rest` as a multiple of ε_i, above 1; infinite for none.
        pair_floor: as for :func:`~deniable.solvers.patterns.balanced.solve`.
        limits: caps in nats, None for none; with the multiple, the smaller holds. Shape (k,).
        scale: about where the optimum without cap and floor would spend the total, if known.
        fair: for few attributes, raise the floor to where no table of two attributes is left less
            than independent responses of the same total would leave.

    Raises:
        InputError: if a number is out of its range.
        SolverError: if no result passes its checks.

    >>> spent = spend([5] * 6, 3.0, [1.0] * 6, [math.inf] * 6, 2.0, 0.5)
    >>> spent.levels.round(4).tolist()[:2], 0 <= 3.0 - spent.solution.epsilon < 1e-6
    ([1.0065, 1.0065], True)
    """
    search = _TotalSearch(n_categories, total, ratios, at_most, multiple, limits, pair_floor, fair)
    return search.best(search.about() if scale is None else scale)


_Laws = tuple[list[Part], Method]
"""Laws, and how they were found."""


class _Reached(NamedTuple):
    """A scale, the levels there, the laws that meet them, how they were found, and the ramp, if it
    is one, with the multiple of the levels under which it was."""

    scale: float
    levels: FloatArray
    parts: list[Part]
    method: Method
    ramp: Fit | None
    multiple: float = math.inf


class _Found(NamedTuple):
    """What a look at given levels came to.

    Attributes:
        near: a ramp to start from for other caps.
        cost: the record's ε at the scale that is known, if that is above the total.
        beaten: whether it is so without the floor.
        reached: the laws that spend the total, if they were found.
    """

    near: Fit | None
    cost: float | None = None
    beaten: bool = False
    reached: _Reached | None = None


def _worth(reached: _Reached) -> float:
    """Return the sum of the levels' logarithms: of scales that is the order, but beyond the scale
    at which every level is the largest it may be there is nothing to gain."""
    return float(np.log(reached.levels).sum())


class _Secant:
    """Steps to where ln ε is that of the total, over the logarithm of the scale."""

    def __init__(self, slope: float) -> None:
        self._slope, self._last = slope, (math.nan, math.nan)

    def next(self, at: float, over: float) -> float:
        """Return where to look next, from where ln ε is so much over."""
        moved, rose = at - self._last[0], over - self._last[1]
        if moved * rose > 0.0:
            self._slope = min(max(rose / moved, 0.3), 5.0)
        self._last = at, over
        return at - over / self._slope


def _grown(fit: Fit, times: float) -> Fit:
    """Return a ramp at given levels as a start for so many times the levels."""
    slopes, top, height = times * fit.ramp.slopes, times * fit.ramp.top, times * fit.w
    return replace(fit, ramp=Ramp(slopes, top, height), w=height)


class _TotalSearch:
    """One search for the largest scale of the levels that a total pays for."""

    def __init__(
        self,
        n_categories: Sequence[int],
        total: float,
        ratios: Sequence[float],
        at_most: Sequence[float],
        multiple: float,
        limits: Sequence[float | None] | None,
        pair_floor: float | None,
        fair: bool,
    ) -> None:
        self._problem = checked_problem(n_categories, ratios)
        self._total, self._ratios = total, np.asarray(ratios, dtype=np.float64)
        self._multiple, self._floor, self._fair = multiple, pair_floor, fair
        limited = optional_limits(limits, self._problem.n_attributes, "limits")
        self._limits = np.where(limited < total, limited, np.inf)
        self._alone = np.minimum(np.asarray(at_most, dtype=np.float64), self._limits)
        self._at_most = np.minimum(self._alone, _BELOW_LIMIT * self._limits)
        kinds = [self._problem.n_categories, self._ratios, self._at_most, self._limits]
        self._kinds = np.unique(np.stack(kinds), axis=1, return_inverse=True)[1].ravel()
        """The kind of each attribute, shape (k,). At a scale the levels of two kinds may be equal,
        and ramps have a slope for each all the same: they go from one scale to another."""
        # Of attributes that are all alike no pair is the worst.
        self._liftable = len(self._kinds) in _LIFTED and int(self._kinds.max()) > 0
        self._floor_broken = False
        """Whether the floor stood in the way of a ramp."""
        self._afar: Fit | None = None
        """The last ramp that secants found where no start settled: near those for other caps."""

    def about(self) -> float:
        """Return about the scale at which the optimum spends the total: see `limit_epsilon`."""
        low = math.log(self._total / math.fsum(self._ratios.tolist()))
        high = math.log(self._total / float(self._ratios.min()))
        for _ in range(40):
            middle = 0.5 * (low + high)
            levels = np.minimum(self._levels(math.exp(middle)), self._total)
            needed = limit_epsilon(checked_problem(self._problem.counts.tolist(), levels.tolist()))
            low, high = (middle, high) if needed <= self._total else (low, middle)
        return math.exp(low)

    def best(self, scale: float) -> Spent:
        """Return the levels at the largest scale that was found, and their laws."""
        scale = min(scale, float((self._at_most / self._ratios).max()))  # beyond, none rises
        most, product = self._at_most, self._independent()
        binding = math.fsum(self._alone.tolist()) > self._total > float(most.max())
        if binding and float(np.log(most).sum()) > _worth(product):
            counts, caps = self._problem.counts.tolist(), self._caps(most).tolist()
            whole = balanced.solve(counts, most.tolist(), caps, self._floor_at(most))
            if whole.epsilon <= self._total:
                return Spent(most, whole.parts, lambda: whole)
        best = product
        ramps = None if self._fair else self._by_ladder(scale)
        if ramps is not None and self._floor_broken and self._liftable:
            ramps = self._lifted(ramps)
        if ramps is not None and _worth(ramps) > _worth(best):
            best = ramps
        most_in_table = MOST_IN_TABLE if best is ramps else linear.MAX_ATTRIBUTES
        if self._problem.n_attributes <= most_in_table:
            grouped = orbits(self._problem, self._at_most.tolist())
            if len(grouped.chance) <= EXACT_IN_A_SEARCH:
                start = best.scale if ramps is None else max(ramps.scale, best.scale)
                program = self._by_secants(start, self._program, _PROGRAMS)
                # A table is drawn faster than a ramp; independent responses are simpler than both.
                gain = 1e-6 if best is product else -1e-6
                if program is not None and _worth(program) >= _worth(best) + gain:
                    best = program
        if best is product and not self._fair and scale > _MUCH * product.scale:
            # Newton steps to a ramp may settle nowhere, as with levels far apart at a small total.
            start = math.sqrt(product.scale * self._start(scale, 0.8))
            times = _SOLVED if self._problem.n_attributes <= MOST_IN_TABLE else _SOLVED_OF_MANY
            solved = self._mixed(start, lower=True) or self._by_secants(start, self._solved, times)
            if solved is not None and _worth(solved) > _worth(best):
                best = solved
        return self._spent(best)

    def _spent(self, reached: _Reached) -> Spent:
        def mix() -> Spent | None:
            if reached.ramp is None or not self._floor_broken or len(reached.levels) > _MIXED_TO:
                return None
            mixed = self._mixed(reached.scale)
            if mixed is None or _worth(mixed) <= _worth(reached) + _MIXED_GAINS:
                return None
            spent = record_level(mixed.parts) > (1.0 - 2.0 * _UNSPENT_BY_SECANTS) * self._total
            return self._spent(mixed) if spent else None

        parts = tuple(reached.parts)
        return Spent(reached.levels, parts, lambda: self._solution(reached), mix)

    def _solution(self, reached: _Reached) -> BalancedSolution:
        _, levels, parts, method, ramp, _ = reached
        problem = checked_problem(self._problem.counts.tolist(), levels.tolist())
        optimum = near_optimum(problem, self._caps(levels), self._floor)
        return compared(BalancedSolution(tuple(parts), optimum, method, ramp))

    def _levels(self, scale: float) -> FloatArray:
        return np.minimum(scale * self._ratios, self._at_most)

    def _apart(self, scale: float) -> FloatArray:
        """Return the levels of independent responses: these may be at their caps."""
        return np.minimum(scale * self._ratios, self._alone)

    def _caps(self, levels: FloatArray) -> FloatArray:
        return np.minimum(self._multiple * levels, self._limits)

    def _independent(self) -> _Reached:
        """Independent responses: their levels add up to the total."""
        low, high = 0.0, self._total / float(self._ratios.max()) * len(self._ratios)
        for _ in range(200):
            middle = 0.5 * (low + high)
            spends = math.fsum(self._apart(middle).tolist()) > self._total * (1 - 1e-14)
            low, high = (low, middle) if spends else (middle, high)
        levels = self._apart(low)
        problem = Problem(self._problem.n_categories, levels)
        parts = [independent(problem, range(problem.n_attributes))]
        return _Reached(low, levels, parts, "independent", None)

    def _start(self, scale: float, part: float) -> float:
        """Return a scale to start from, given about where the optimum spends the total, with the
        largest level at most a part of it: none is above it, whatever its limit for many attributes
        says."""
        return min(0.95 * scale, part * self._total / float(self._levels(1.0).max()))

    def _by_ladder(self, scale: float) -> _Reached | None:
        """Return the best of what is found under the caps and under stricter ones."""
        about, apart = self._levels(scale), _worth(self._independent())
        if float(about.max()) > _GIANT * self._total:
            beside = self._beside_a_giant(scale)
            if beside is not None and _worth(beside) > apart:
                return beside
        best, strict, tried, at = None, False, list[float](), math.inf
        for rung in rungs(self._loosest(about) / about, self._floor):
            known = None if best is None else math.log(best.scale)
            multiple = min(self._multiple, rung, LOOSEST)
            tried.append(multiple)
            found, beaten = self._by_ramps(scale, multiple, known, None)
            if found is not None and _worth(found) > (_worth(best) if best else apart):
                best, strict, at = found, rung < math.inf, multiple
            elif best is not None and beaten:
                break  # without the floor stricter caps buy less, and with it no more
        if best is not None and strict:  # from there the caps as they are may buy more after all
            multiple = min(self._multiple, LOOSEST)
            near = self._near(best.scale, self._total, multiple, placed=False)
            found = self._by_ramps(scale, multiple, math.log(best.scale), near)[0]
            if found is not None and _worth(found) > _worth(best):
                return found
            return self._between(
                best,
                at,
                tried,
                lambda cap, known: self._by_ramps(scale, cap, math.log(known.scale), known.ramp)[0],
            )
        return best

    def _between(
        self,
        best: _Reached,
        at: float,
        tried: list[float],
        look: Callable[[float, _Reached], _Reached | None],
    ) -> _Reached:
        """Return the best of what is found under caps about the stricter ones that are best, on a
        lattice that is the same for every request: what a stricter request finds.

        Args:
            best: what is best by now.
            at: the multiple of the levels at which it was found.
            tried: all multiples by now.
            look: returns what is found at a multiple, if it is better than what is known.
        """
        step, most = _STRIDES, min(self._multiple, LOOSEST)
        while step:
            here = math.log(at) / (_CELL * step)
            caps = [math.exp(_CELL * step * n) for n in (math.floor(here) + 1, math.ceil(here) - 1)]
            for cap in caps:
                if cap in tried or not _LEAST_CAP < cap < most:
                    continue
                tried.append(cap)
                found = look(cap, best)
                if found is not None and _worth(found) > _worth(best):
                    best, at = found, cap
                    break
            else:
                step //= 2
        return best

    def _beside_a_giant(self, scale: float) -> _Reached | None:
        """Return the best of what is found at given levels, under the caps and under stricter ones,
        where one level takes much of the total.

        There the scale at a given height moves steeply with the top, and the height at given levels
        gently. What stricter caps cost is looked at where the best so far spends the total; where
        they cost more and more, no others are tried.
        """
        about, start = self._levels(scale), self._start(scale, _PART_OF_GIANT)
        best: _Reached | None = None
        near: Fit | None = None
        astray = False  # where the loosest caps led nowhere, stricter ones need their own starts
        cost, rises, strict, tried, at = self._total, 0, False, list[float](), math.inf
        for rung in rungs(self._loosest(about) / about, self._floor):
            known = None if best is None else math.log(best.scale)
            multiple = min(self._multiple, rung, LOOSEST)
            tried.append(multiple)
            starts = _STARTS if len(tried) == 1 else 1
            found = self._by_levels(start, multiple, known, near, starts)
            if astray and known is not None and not found.beaten:
                anew = self._by_levels(start, multiple, None, None, _STARTS)
                reached = found.reached
                if anew.reached and (not reached or _worth(anew.reached) > _worth(reached)):
                    found = anew
            near = found.near
            astray = astray or (best is None and found.reached is None)
            if found.reached is not None and (best is None or _worth(found.reached) > _worth(best)):
                best, strict, at = found.reached, rung < math.inf, multiple
                cost, rises = self._total, 0
            elif best is not None and found.beaten:
                break  # without the floor stricter caps cost more, and with it no less
            elif best is not None and found.cost is not None:
                rises = rises + 1 if found.cost > (1.0 + _RISE) * cost else 0
                cost = found.cost
                if rises == _RISES:
                    break
        if best is not None and strict:  # from there the caps as they are may buy more after all
            best, at = self._loosened(best, at)
            tried.append(at)
            if at == min(self._multiple, LOOSEST):
                return best

            def followed(cap: float, known: _Reached) -> _Reached | None:
                logarithm = math.log(known.scale)
                kept = known.ramp and self._at_levels(logarithm, cap).still_keeping(known.ramp)
                if kept is None:
                    return self._by_levels(start, cap, logarithm, near).reached
                return self._by_levels(start, cap, logarithm, kept, follow=True).reached

            return self._between(best, at, tried, followed)
        return best

    def _loosened(self, best: _Reached, at: float) -> tuple[_Reached, float]:
        """Return what is bought under looser caps by a ramp followed there from stricter ones, and
        the multiple of the levels that they are."""
        known, kept, cap = math.log(best.scale), best.ramp, at
        assert kept is not None
        while cap < min(self._multiple, LOOSEST):
            looser = min(_LOOSER * cap, self._multiple, LOOSEST)
            next_one = self._at_levels(known, looser).still_keeping(kept)
            if next_one is None or next_one.w > kept.w:
                break
            kept, cap = next_one, looser
        if cap > at:
            found = self._by_levels(best.scale, cap, known, kept, follow=True).reached
            if found is not None and _worth(found) > _worth(best):
                return found, cap
        return best, at

    def _lifted(self, plain: _Reached) -> _Reached:
        """Return the best ramp that is lifted for the pair of the least ratio, or what was found
        without where that is no less."""
        pair, asked = least_pair(plain.parts[0].law), min(self._multiple, LOOSEST)
        found = [self._lifted_for(pair, cap, plain) for cap in {plain.multiple, asked}]
        best = max((plain, *(lifted for lifted in found if lifted)), key=_worth)
        cap = plain.multiple
        for _ in range(_STRICTER if cap < asked else 0):  # another pair may be the worst there
            cap /= _STRICTER_BY
            beside = self._by_ramps(plain.scale, cap, None, plain.ramp)[0]
            if beside is None:
                break
            lifted = self._lifted_for(least_pair(beside.parts[0].law), cap, beside)
            if lifted is None or _worth(lifted) <= _worth(best):
                break
            best = lifted
        return best

    def _lifted_for(
        self, pair: tuple[int, int], multiple: float, plain: _Reached
    ) -> _Reached | None:
        """Return the best ramp under caps of so many times the levels that is lifted for a pair.

        Args:
            pair: places of the two attributes.
            multiple: as said.
            plain: the best without a lift, which says how high a lift may be.
        """
        assert plain.ramp is not None
        ramp = plain.ramp.ramp
        kind_of = self._kinds.tolist()
        kinds = list(dict.fromkeys(kind_of))
        if len(ramp.slopes) == len(kinds):
            ramp = replace(ramp, slopes=ramp.slopes[[kinds.index(kind) for kind in kind_of]])
        near = replace(plain.ramp, ramp=ramp, w=math.log(plain.scale))
        caps = np.minimum(multiple * plain.levels, self._limits)

        def laws(lift: Lift) -> RampLaws:
            return self._at_height(ramp.height - _LIFTED_BELOW, plain.scale, multiple, lift)

        best = best_lifted(laws, near, pair, caps)
        if best is None:
            return None
        ramps, kept = best
        landed = ramps.best(None, free=kept)
        if landed is None:
            return None
        part, scale = ramps.part(*landed), math.exp(landed[1].w)
        if not 0.0 <= self._total - part.account.epsilon <= _UNSPENT_BY_SECANTS * self._total:
            return None
        return _Reached(scale, self._levels(scale), [part], "ramp", landed[1], multiple)

    def _by_ramps(
        self, scale: float, multiple: float, known: float | None, near: Fit | None
    ) -> tuple[_Reached | None, bool]:
        """Return the best ramp under caps of so many times the levels, and whether what was found
        without the floor buys no more than the logarithm of a scale that is known.

        Args:
            scale: about where the optimum spends the total.
            multiple, known: as said.
            near: a ramp for something similar.
        """
        height = self._total * (1 - 1e-12) - 1e-11
        if near is None and self._afar is not None:
            near = self._near(math.exp(self._afar.w), height, multiple)
        for _ in range(4):
            if not 0.0 < height <= LARGEST_HEIGHT:
                return None, False
            start = self._start(scale, 0.8)
            ramps = self._at_height(height, scale, multiple)
            result = ramps.best(near, known)
            self._floor_broken |= ramps.floor_broken
            if result is None and near is None and not (ramps.floor_broken or ramps.beaten):
                near = self._near(start, height, multiple)
                result = ramps.best(near, known)
            if result is None:
                return None, ramps.beaten
            known = None
            law, reached = result
            near, part = reached, ramps.part(law, reached)
            unspent = self._total - part.account.epsilon
            if unspent < 0.0:
                return None, False
            if unspent <= _UNSPENT * self._total:
                break
            # The ramp's top or bottom lies beyond all patterns: part of its height does nothing.
            height += unspent
        scale = math.exp(reached.w)
        return _Reached(scale, self._levels(scale), [part], "ramp", reached, multiple), False

    def _at_height(
        self, height: float, scale: float, multiple: float, lift: Lift | None = None
    ) -> RampLaws:
        """Return the ramps of a height, about at a scale."""

        def target(places: list[int]) -> Target:
            return AtTotal(
                self._problem.n_categories[places],
                self._ratios[places],
                self._at_most[places],
                multiple,
                self._limits[places],
                height,
                AIM,
            )

        about = Problem(self._problem.n_categories, self._levels(scale))
        start = math.log(self._start(scale, 0.8))
        return RampLaws(about, self._kinds, target, start, self._floor, lift)

    def _by_levels(
        self,
        scale: float,
        multiple: float,
        known: float | None,
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
        at = math.log(scale) if known is None else known
        ramps, free = self._at_levels(at, multiple), near if follow else None
        kept = free
        for _ in range(0 if follow else starts):
            free = ramps.searched(near, placed=False)
            near = near if free is None else free
            if known is not None and free is not None and free.w >= self._total:
                return _Found(near, beaten=True)
            kept = None if free is None else ramps.keeping(free)
            self._floor_broken |= ramps.floor_broken
            if kept is not None:
                break
            at -= _LOWER
            ramps = self._at_levels(at, multiple)
        if kept is None:
            return _Found(near)
        if known is not None and kept.w * (1.0 + _SPENT_NEARLY) >= self._total:
            return _Found(near, kept.w)
        secant, bound = _Secant(1.0), follow or kept is not free
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
                return _Found(near)

        found: list[_Reached] = []

        def drawn(fit: Fit) -> tuple[PatternLaw, Fit] | None:
            """Draw the ramp at the scale at which it costs the total, moved along with it."""
            here, secant = at, _Secant(1.0)
            for _ in range(_LANDINGS):
                ramps = self._at_levels(here, multiple)
                landed = ramps.drawn(fit)
                if landed is None:
                    return None
                part = ramps.part(*landed)
                over = math.log(part.account.epsilon / self._total)
                if -_UNSPENT_BY_SECANTS < over <= 0.0:
                    levels = self._levels(math.exp(here))
                    scale = math.exp(here)
                    found.append(_Reached(scale, levels, [part], "ramp", landed[1], multiple))
                    return landed
                here, last = secant.next(here, over + 0.4 * _UNSPENT_BY_SECANTS), here
                fit = _grown(landed[1], math.exp(here - last))
            return None

        landed = ramps.best(None, drawn=drawn, free=kept)
        return _Found(near, reached=None if landed is None else found[-1])

    def _at_levels(self, at: float, multiple: float) -> RampLaws:
        """Return the ramps at the levels of a scale, of which the logarithm is given."""
        levels = self._levels(math.exp(at))
        aimed = levels - np.minimum(AIM, 1e-3 * levels)
        caps = np.minimum(multiple * levels, self._limits)
        return at_levels(self._problem.counts, aimed, caps, self._total, self._floor, self._kinds)

    def _loosest(self, levels: FloatArray) -> FloatArray:
        return np.minimum(self._caps(levels), LOOSEST * levels)

    def _near(
        self, scale: float, height: float, multiple: float, placed: bool = True
    ) -> Fit | None:
        """Return about the ramp that spends the total, by secants over ramps at given levels,
        with the top of one for other caps or placed anew.

        Where one level takes nearly all of the total, the scale at a given height moves steeply
        with the top, and the height at given levels gently.
        """
        at, spent, secant = math.log(scale), height, _Secant(1.0)
        near = self._afar and replace(self._afar, w=height)
        for _ in range(_SECANTS):
            levels = self._levels(math.exp(at))
            caps = np.minimum(multiple * levels, self._limits)
            ramps = at_levels(self._problem.counts, levels, caps, spent, self._floor, self._kinds)
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

    def _mixed(self, scale: float, *, lower: bool = False) -> _Reached | None:
        """Return what mixtures of ramps buy.

        What is mixed at some levels can be mixed to meet larger ones, of looser caps, so that the
        scale follows without a further search.

        Args:
            scale: where to begin.
            lower: whether to go on at smaller levels where these cost more than the total.
        """
        best: _Reached | None = None
        for _ in range(_POOLS):
            levels = self._levels(scale)
            problem = checked_problem(self._problem.counts.tolist(), levels.tolist())
            search = CommonSearch(problem, self._caps(levels), self._floor, self._total)
            mixed = search.mixtures()
            if mixed is None or mixed.part is None:
                break
            costs = mixed.part.account.epsilon / self._total
            if costs > 1.0 and lower:
                scale /= costs * costs
                continue
            found = self._by_secants(scale, partial(self._met, mixed.meeting), _PROGRAMS)
            if found is None or (best is not None and _worth(found) <= _worth(best)):
                break
            best, lower = found, False
            if best.scale < _AFRESH * scale:
                break
            scale = best.scale
        return best

    def _met(
        self, meeting: Callable[[FloatArray, FloatArray], Part | None], levels: FloatArray
    ) -> _Laws | None:
        """Return the law of a mixture that is asked for these levels."""
        part = meeting(levels - np.minimum(AIM, 1e-3 * levels), self._caps(levels))
        return None if part is None else ([part], "ramp")

    def _by_secants(
        self, scale: float, look: Callable[[FloatArray], _Laws | None], times: int
    ) -> _Reached | None:
        """Return the best of laws at levels, by secants of ln ε over ln scale.

        Args:
            scale: where to begin.
            look: returns the laws at levels, and how they were found, if they were.
            times: that this is done at most.
        """
        best: _Reached | None = None
        low, high = -math.inf, math.inf
        at, secant = math.log(scale), _Secant(1.1)
        for _ in range(times):
            levels = self._levels(math.exp(at))
            laws = look(levels)
            if laws is None and best is None:
                return None
            over = math.log(record_level(laws[0]) / self._total) if laws else math.inf
            if laws and over <= 0.0:
                low, best = max(low, at), _Reached(math.exp(at), levels, *laws, None)
                if over > -_UNSPENT_BY_SECANTS:
                    return best
            else:
                high = min(high, at)
            at = secant.next(at, over + 0.4 * _UNSPENT_BY_SECANTS) if laws else math.inf
            if not low < at < high:
                at = 0.5 * (low + high)
        return best

    def _program(self, levels: FloatArray) -> _Laws | None:
        """Return the law of the capped program."""
        problem = checked_problem(self._problem.counts.tolist(), levels.tolist())
        floor = self._floor_at(levels)
        part = capped_table(problem, self._caps(levels), floor, EXACT_IN_A_SEARCH)
        return None if part is None else ([part], "program")

    def _solved(self, levels: FloatArray) -> _Laws | None:
        """Return what is found where levels are given, if it is better than independent
        responses: mixtures too."""
        counts, caps = self._problem.counts.tolist(), self._caps(levels).tolist()
        found = balanced.solve(counts, levels.tolist(), caps, self._floor)
        if found.method in ("independent", "floor"):
            return None
        return list(found.parts), found.method

    def _floor_at(self, levels: FloatArray) -> float | None:
        """Return t, raised where that is asked for: φ_ij ≥ φ'_i φ'_j, with φ' of independent
        responses that spend the same."""
        if not self._fair:
            return self._floor
        counts = self._problem.n_categories
        fair = Problem(counts, self._apart(self._independent().scale))
        share = np.sort(fair.keep_excess / Problem(counts, levels).keep_excess)[-2:]
        return max(self._floor or 0.0, min(1.0, float(np.prod(share))))
