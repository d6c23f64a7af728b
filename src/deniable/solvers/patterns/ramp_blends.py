"""Mixtures of ramps that meet the levels together, for more attributes than can be enumerated.

The same linear program as in `ramp_mixtures`, over gated sums as they are drawn
(`deniable.laws.votes.gated`). What they deliver is known nearly for all (`ramp_families`), and to
the last digits for those that the program uses, so that the mixture, a blend
(`deniable.laws.votes.blend`), meets its levels without a further search. A ramp whose top falls is
two gated sums, which are mixed as one.

What is mixed for stricter caps is among what is mixed for looser ones, whatever the floor: the best
ramps under each of them, with their neighbours; and what prices ask for (`ramp_pricing`), which is
looked for under a few caps and floors only, the same for every request, in one order: the caps
from the strictest on, and of stricter floors those that cost about as much.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.solvers.patterns.optimal import Part
from deniable.solvers.patterns.ramp_families import Column, RampFamily, Shape
from deniable.solvers.patterns.ramp_laws import AIM, FLOOR_MARGIN, keep_floor
from deniable.solvers.patterns.ramp_mixtures import FACTORS, Mixing, about_ramp, below_caps
from deniable.solvers.patterns.ramp_pricing import HIGHER, FallingRamp, RampPrices
from deniable.solvers.patterns.ramp_response import GridRamps
from deniable.solvers.patterns.ramps import AtLevels, Fit, RampSearch
from deniable.solvers.problem import Problem, checked_problem

MOST_ATTRIBUTES = 30
"""Of more it takes too long to evaluate all pairs of everything that is mixed."""

_SURELY = 2e-3
"""How far above the floor a ramp's pairs are said to keep it: a coarse grid tells ratios to a
thousandth or so."""

_FALL_FROM = (0.0, *np.geomspace(0.03, 2.0, 12).tolist())
_FALL_FROM_WITHOUT = _FALL_FROM[::2]
"""Where the steepest ramps start to fall, and those with one slope 0, in parts of the mean of what
changes cost."""

_RAISED = 1.4
"""Times the top that it is moved up by for ramps that are mixed."""

_LEAST_FALL = 0.005
"""A ramp falls by more than this part of where it starts to: by a few units of its grid."""

_HARDLY = 1e-7
"""Slopes of so much of the levels are all but the uniform law."""

_NEARLY, _STALLED_AT = 1e-7, 1e-5
"""How near ramps meet their levels, in nats or as a part below one, and how near they may come to
a halt."""

_ABOVE = 0.01
"""Part of ε by which the best ramp under some caps lies above what is held where stricter ones are
left: a search may end that much above the best."""

_EVEN = 1e-6
"""Part by which caps may differ as multiples of the levels and count as the same."""

_BOUNDS, _ROUNDINGS = 4.0, 1e-12
"""Times the error bounds of its parts' pairs, and what mixing adds, that a blend's pairs may be off
for certain."""

_DEAR, _NEAR, _GAINED = 0.2, 0.02, 1e-3
"""Nats that the floor costs beyond which ramps are looked for by the program's prices; by how much
the mixture differs from the best ramp where they are, under each caps; and what they gain."""

_PRICED, _PRICED_AT, _STARTS = 10, 21, 10
"""Times that this is done of so many attributes, and from how many ramps; of more attributes it is
done fewer times, and from fewer."""

_LITTLE_IN_A_ROW = 2
"""Rounds in a row that gain less, after which it ends: prices are averaged, and one that gains
nothing may be followed by ten that gain much."""

_NEW = 0.5
"""Part of the newest prices in those that are used: they swing less so."""

_CAPS, _FLOORS = {2.0: 1.0, 1.5: 0.8, 1.25: 1.0}, (0.5, 0.9, 1.0)
"""Caps, as multiples of the levels, and floors for which this is done, for caps with the part of
the times: the same for every request, so that what is found for a stricter one is found for a
looser one."""

_STRICT, _MOST_STRICTLY = 1.25, 19
"""Caps for which it is done of more attributes only where all of those are looser, and then for one
floor: of 30 more takes too long."""

_CLOSE, _CLOSE_OF_ONE = 0.01, 0.02
"""Part of ε up to which a mixture may cost more under a stricter floor for this to be done for that
one too: beyond, hardly anything that is found there costs less than what is found here. And where
it is done for one of the caps only, which takes little."""

_EVENLY = 2e-3
"""Part by which caps may differ from these."""

_INEXACT = 1e-12
"""Relative error of what a part delivers above which it is left out where a mixture fails."""

_LEAST_SHARE = 1e-25
_ROUNDS = 8
"""Times that what is used is evaluated and the program solved again, the last time with nothing
else; two or three are the rule."""


@dataclass(frozen=True, eq=False)
class Blend:
    """What is found.

    Attributes:
        part: the mixture; None if none passes its checks.
        best: the ramp under the loosest caps that has one, a start for similar requests.
        ramp: the best that keeps the floor, if one does.
        evenly: of uneven caps, the best under their tightest multiple for all.
        ramps: the best, whatever the floor, under each of the caps that were looked at, and None
            under the others.
        meeting: from other levels and caps, shapes (k,), to the best mixture of the same ramps that
            meets and keeps them; None if none is found.
    """

    part: Part | None
    best: Fit | None
    ramp: Fit | None
    evenly: Fit | None
    ramps: list[Fit | None]
    meeting: Callable[[FloatArray, FloatArray], Part | None]


@dataclass
class _Stage:
    """What is mixed for some caps.

    Attributes:
        caps: γ in nats, shape (k,).
        places: of ramps in the pool.
        ramp: the best under these caps, once it is known.
        ratio: the least ratio of a pair in it.
        looked_at: whether it has been looked for.
        mixed: whether it and its neighbours are in the pool.
        raised: whether those with its top moved up are.
    """

    caps: FloatArray
    places: list[int]
    ramp: Fit | None = None
    ratio: float = 0.0
    looked_at: bool = False
    mixed: bool = False
    raised: bool = False


def blended(
    counts: IntArray,
    aimed: FloatArray,
    caps: Sequence[FloatArray],
    height: float,
    floor: float | None,
    *,
    times: float | None = None,
) -> Blend:
    """Return the mixture of least ε that is found.

    Args:
        counts: a_i, shape (k,), k at most `MOST_ATTRIBUTES`.
        aimed: levels in nats, shape (k,).
        caps: γ in nats, the loosest first, and where these are uneven their tightest multiple of
            the levels next; shapes (k,).
        height: about the record's ε, in nats.
        floor: t, or None.
        times: where mixtures are looked for several times, the part of the rounds in which prices
            are asked for, and then for the loosest two of the caps and one floor; all if None.
    """
    pool = _Pool(checked_problem(counts.tolist(), aimed.tolist()), height, floor)
    # All but the uniform law, and independent responses.
    first = [place for part in (_HARDLY, 1.0) for place in pool.add(part * aimed, [Shape(0.0)])]
    stages = [_Stage(limits, first + pool.add_steepest(below_caps(limits))) for limits in caps]
    best = keeping = None
    multiples = caps[0] / aimed
    uneven, gained = bool(np.ptp(multiples) > _EVEN * multiples.min()), False
    for number, stage in enumerate(stages):
        search = pool.search(stage.caps)
        fit = stage.ramp = search.best(1.0, afar=best is None or number <= uneven)
        stage.looked_at = True
        if fit is None:
            continue
        best = best or fit
        stage.ratio = search.least_ratio(fit)
        held = min(pool.epsilon(), math.inf if keeping is None else keeping.w)
        if fit.w >= held:
            if gained and fit.w >= (1.0 + _ABOVE) * held:
                break  # without the floor stricter caps cost more, and with it no less
            continue
        gained = True
        stage.places, stage.mixed = stage.places + pool.add_about(fit, stage.caps), True
        if floor is None or stage.ratio >= floor + _SURELY:
            keeping = fit
        else:
            _raise(pool, stage, search)
    before, priced = pool.size, False
    rungs = _to_price(stages, aimed)
    only = rungs[0][0] if times is None and len(rungs) == 1 else None
    if only is not None and only.mixed and not only.raised:  # as it is under a stricter floor
        _raise(pool, only, pool.search(only.caps))
    close = _CLOSE if only is None else _CLOSE_OF_ONE
    floors = _floors_to_price(pool, stages, floor, keeping, close)
    if times is not None:
        rungs = [(stage, times * part) for stage, part in rungs[:2]]
    if times is not None or len(counts) > _MOST_STRICTLY:
        floors = islice(floors, 1)
    for least in floors:
        priced |= _add_lacking(pool, rungs, least)
    law = _passing(pool.law(), aimed, caps[0], floor)
    if priced and law is None:
        law = _passing(pool.law(exactly=True), aimed, caps[0], floor)
    if priced and (law is None or law.account.epsilon > pool.epsilon(before)):
        other = _passing(pool.law(before), aimed, caps[0], floor)
        law = min(filter(None, (law, other)), key=lambda one: one.account.epsilon, default=None)
    ramps = [stage.ramp for stage in stages]

    def meeting(aimed: FloatArray, caps: FloatArray) -> Part | None:
        pool.meet(checked_problem(counts.tolist(), aimed.tolist()))
        return _part(_passing(pool.law(), aimed, caps, floor))

    evenly = ramps[1] if uneven and len(ramps) > 1 else None
    return Blend(_part(law), best, keeping, evenly, ramps, meeting)


def _part(law: VoteBlend | None) -> Part | None:
    return None if law is None else Part(tuple(range(len(law.n_categories))), law, law.account)


def _passing(
    law: VoteBlend | None, aimed: FloatArray, caps: FloatArray, floor: float | None
) -> VoteBlend | None:
    """Return the law if it passes its checks."""
    return law if law and keep_floor([law], floor) and _keeps(law, aimed, caps) else None


def _keeps(law: VoteBlend, aimed: FloatArray, caps: FloatArray) -> bool:
    """Whether a law as drawn meets the levels and keeps the caps."""
    above, below = law.attribute_bounds()
    met = (above <= aimed + AIM).all() and (below >= aimed - AIM).all()
    return bool(met and (law.account.epsilon_given_rest <= caps).all())


def _is_multiple(caps: FloatArray, of: FloatArray) -> bool:
    return bool((np.abs(caps / of - 1.0) < _EVENLY).all())


def _floors_to_price(
    pool: "_Pool", stages: list[_Stage], floor: float | None, keeping: Fit | None, close: float
) -> Iterator[float]:
    """Yield the floors for which prices are asked, the lowest first: of the request, and stricter
    ones that mixtures keep for little more. None that a ramp keeps for little, if it costs no more
    than a mixture: then there is little to gain.

    Args:
        pool: what is mixed so far.
        stages: of the request.
        floor: t, or None.
        keeping: the best ramp that keeps it, if one does.
        close: part of ε that stricter ones may cost more.
    """
    found = [(stage.ramp.w, stage.ratio) for stage in stages if stage.ramp is not None]
    best = found[0][0] if found else -math.inf
    held = min(pool.epsilon(), math.inf if keeping is None else keeping.w)
    asked = floor is not None and (keeping is None or keeping.w > best + _DEAR)
    for one in _FLOORS:
        if floor is not None and one < floor:
            continue
        kept = min(
            (epsilon for epsilon, ratio in found if ratio >= one + _SURELY), default=math.inf
        )
        dear = kept > best + _DEAR
        if not (asked and dear):
            costs = pool.epsilon_above(one)
            if not asked and costs > (1.0 + close) * held:
                return
            dear = dear or costs < kept - _NEAR
        if dear:
            yield one
        asked = False


def _raise(pool: "_Pool", stage: _Stage, search: RampSearch) -> None:
    """Add the ramps with the top moved up from the best under a stage's caps."""
    assert stage.ramp is not None
    for ramp in search.raised(stage.ramp, _RAISED):
        stage.places = stage.places + pool.add_about(ramp, stage.caps)
    stage.raised = True


def _to_price(stages: list[_Stage], aimed: FloatArray) -> list[tuple[_Stage, float]]:
    """Return those for whose caps prices are asked, the loosest first, with the part of the times;
    where all of these are looser, the strictest there is."""
    multiples = {
        one: stage for stage in stages for one in _CAPS if _is_multiple(stage.caps, one * aimed)
    }
    if len(aimed) > _MOST_STRICTLY and len(multiples) > 1:
        multiples.pop(_STRICT, None)
    return [(stage, _CAPS[one]) for one, stage in multiples.items()] or [(stages[-1], 1.0)]


def _add_lacking(pool: "_Pool", stages: list[tuple[_Stage, float]], floor: float) -> bool:
    """Add ramps that mixtures for some caps lack, by their programs' prices, if there are any.

    From the strictest caps to the loosest, each with all that was added for stricter ones: what is
    found for some depends on nothing that is looser, and is the same for every request that has
    them among its stages. Not where a mixture costs about what the best ramp does without a floor.
    """
    alone = pool.some([], floor)
    lacking, taken, known = set[int](), set[int](), set[int]()
    for stage, part in reversed(stages):
        first = alone.size
        alone.take(pool, [place for place in stage.places if place not in taken])
        taken |= set(stage.places)
        known |= set(range(first, alone.size))
        if not stage.looked_at:
            continue
        search = pool.search(stage.caps)
        ramp = stage.ramp or search.best(1.0, afar=False)
        if ramp is not None and not stage.raised:
            for one in [*([] if stage.mixed else [ramp]), *search.raised(ramp, _RAISED)]:
                alone.add_about(one, stage.caps)
        if ramp is None or abs(alone.epsilon() - ramp.w) > _NEAR:
            lacking |= set(alone.price(below_caps(stage.caps), part))
    pool.take(alone, sorted(lacking - known))
    return not lacking <= known


@dataclass(frozen=True, eq=False)
class _Held:
    """One ramp, or two that are mixed as one.

    Attributes:
        family, shapes: of the ramps.
        parts: of each in their sum, where nothing is changed.
        column: what the sum delivers.
        ramp: what it is, or nearly is.
    """

    family: RampFamily
    shapes: tuple[Shape, ...]
    parts: tuple[float, ...]
    column: Column
    ramp: FallingRamp


class _Pool:
    """What is mixed.

    Args:
        problem: the attributes and their levels.
        about: about the record's ε, in nats.
        floor: t, or None.
    """

    def __init__(self, problem: Problem, about: float, floor: float | None) -> None:
        self._problem = problem
        self._counts, self._about = tuple(problem.counts.tolist()), about
        self._change = problem.change_probability
        self._floor = None if floor is None else floor + 2.0 * FLOOR_MARGIN
        self._pairs = np.triu_indices(problem.n_attributes, 1)
        self._mixing = Mixing(problem, *self._pairs, about)
        self._held: list[_Held] = []
        self._drawn: dict[int, list[GatedSum]] = {}
        self._inexact: set[int] = set()

    def some(self, places: Iterable[int], floor: float) -> "_Pool":
        """Return a pool of some of what is mixed here, under another floor."""
        pool = _Pool(self._problem, self._about, floor)
        pool.take(self, places)
        return pool

    def take(self, other: "_Pool", places: Iterable[int]) -> None:
        """Add what is mixed in another pool for the same attributes."""
        for place in places:
            self._hold(other._held[place])

    def _hold(self, held: "_Held") -> None:
        self._held.append(held)
        self._mixing.add(*held.column)

    def meet(self, problem: Problem) -> None:
        """Ask for other levels of the same attributes."""
        self._problem, self._change = problem, problem.change_probability
        self._mixing.meet(problem)

    def search(self, caps: FloatArray) -> RampSearch:
        """Return the search for a ramp under caps, shape (k,)."""
        sums, target = GridRamps(self._problem.n_categories), AtLevels(self._problem, caps)
        return RampSearch(sums, target, self._about, _NEARLY, _STALLED_AT)

    def add(self, slopes: FloatArray, shapes: Iterable[Shape]) -> list[int]:
        """Add ramps; slopes c, shape (k,). Return their places."""
        held = [one for shape in shapes if (one := self._falling(slopes, shape))]
        if not held:
            return []
        bottom = max(shape.fall_from + shape.height for shape in held)
        family = RampFamily(self._counts, slopes, bottom)
        first = len(self._held)
        for shape, column in zip(held, family.columns(held), strict=True):
            ramp = FallingRamp(family.slopes_of(shape), shape.fall_from, shape.height)
            self._hold(_Held(family, (shape,), (1.0,), column, ramp))
        return list(range(first, len(self._held)))

    def _falling(self, slopes: FloatArray, shape: Shape) -> Shape | None:
        """Return a ramp with the height that it falls by at most; None if it hardly does."""
        total = float(slopes.sum())
        if shape.place >= 0:
            total += shape.slope - float(slopes[shape.place])
        height = min(shape.height, total - shape.fall_from, self._about + HIGHER)
        falls = height > _LEAST_FALL * shape.fall_from
        return replace(shape, height=height) if falls else None

    def add_about(self, fit: Fit, caps: FloatArray) -> list[int]:
        """Add a ramp and its neighbours under caps, shape (k,); return their places."""
        ramp, steepest = fit.ramp, below_caps(caps)
        fall_from = max(float(ramp.slopes @ self._change) - ramp.top, 0.0)
        slopes, most, highest = about_ramp(ramp.slopes, ramp.height, steepest)
        shapes = [Shape(fall_from, ramp.height)]
        for factor in FACTORS:
            height = min(factor * ramp.height, highest)
            shapes += [Shape(factor * fall_from, ramp.height), Shape(fall_from, height)]
            other = np.minimum(factor * slopes, most).tolist()
            shapes += [Shape(fall_from, ramp.height, i, slope) for i, slope in enumerate(other)]
        return self.add(slopes, shapes)

    def add_steepest(self, steepest: FloatArray) -> list[int]:
        """Add ramps as steep as the caps allow, and with each slope 0 in turn; return where."""
        mean = float(steepest @ self._change)
        shapes = [Shape(part * mean) for part in _FALL_FROM]
        for i in range(len(steepest)):
            shapes += [Shape(part * mean, place=i) for part in _FALL_FROM_WITHOUT]
        return self.add(steepest, shapes)

    @property
    def size(self) -> int:
        """How many are mixed so far."""
        return len(self._held)

    def epsilon(self, first: int | None = None) -> float:
        """Return the record's ε of the best mixture, in nats; infinite if there is none.

        Args:
            first: how many may be used; all if None.
        """
        shares = self._mixing.shares(self._floor, None if first is None else np.arange(first))
        return math.inf if shares is None else self._mixing.epsilon(shares)

    def epsilon_above(self, floor: float) -> float:
        """Return the same under another floor, of which the program knows nothing afterwards."""
        mixing = copy(self._mixing)
        shares = mixing.shares(floor + 2.0 * FLOOR_MARGIN)
        return math.inf if shares is None else mixing.epsilon(shares)

    def price(self, steepest: FloatArray, part: float) -> list[int]:
        """Add ramps that the program's prices ask for, no steeper than this, in such a part of the
        rounds; return the places of all that the mixture uses."""
        epsilon, prices = self._mixing.epsilon, None
        shares = better = self._mixing.shares(self._floor)
        gained_little = 0
        for _ in range(math.ceil(part * _PRICED * _PRICED_AT / len(steepest))):
            if better is None or self._mixing.prices is None:
                break
            shares = better
            most = np.argsort(-shares)[: min(_STARTS, _STARTS * _PRICED_AT // len(steepest))]
            starts = [self._held[place].ramp for place in most[shares[most] > 0.0].tolist()]
            mass = self._mixing.mass(shares)
            prices = self._mixing.prices.beside(prices, _NEW)
            pricing = RampPrices(self._problem, prices, self._mixing.scale, mass)
            for ramp in pricing.lacking(starts, steepest):
                self.add(ramp.slopes, [Shape(ramp.fall_from, ramp.height)])
            better = self._mixing.shares(self._floor)
            if better is None:
                break
            enough = epsilon(shares) - epsilon(better) >= _GAINED
            gained_little = 0 if enough else gained_little + 1
            if gained_little == _LITTLE_IN_A_ROW:
                break
        last = shares if better is None else better
        used: list[int] = [] if last is None else np.flatnonzero(last > 0.0).tolist()
        return used

    def law(self, first: int | None = None, *, exactly: bool = False) -> VoteBlend | None:
        """Return the best mixture; None if none is found.

        What it uses is evaluated as it is drawn, until it uses nothing else.

        Args:
            first: how many may be used; all if None.
            exactly: whether to leave out those that are known to few digits: the largest error of
                all counts for what is mixed.
        """
        among = np.arange(self.size if first is None else first)
        for left in reversed(range(_ROUNDS)):
            if exactly:
                among = np.setdiff1d(among, [*self._inexact])
            shares = self._mixing.shares(self._floor, among)
            if shares is None:
                return None
            used = np.flatnonzero(shares > _LEAST_SHARE).tolist()
            new = [place for place in used if place not in self._drawn]
            if not new:
                return self._blend(used, shares[used])
            for place in new:
                self._settle(place)
            if left == 1:
                among = np.intersect1d(among, list(self._drawn))
        return None

    def _settle(self, place: int) -> None:
        held = self._held[place]
        laws = self._drawn[place] = [held.family.law(shape) for shape in held.shapes]
        sums = np.zeros(1 + len(self._counts) + len(self._pairs[0]))
        for law, part in zip(laws, held.parts, strict=True):
            got = law.moments()
            if got.relative_error > _INEXACT:
                self._inexact.add(place)
            pairs, wrong = law.bounded_pair_attenuations()
            sure = pairs[self._pairs] - _BOUNDS * (wrong + law.drawing_slack + _ROUNDINGS)
            mass = part * math.exp(got.log_normalizer - law.height)
            sums += mass * np.concatenate([[1.0], got.change, sure])
        total, changed, pairs = np.split(sums, [1, 1 + len(self._counts)])
        self._mixing.correct(place, float(total[0]), changed, pairs)

    def _blend(self, used: list[int], shares: FloatArray) -> VoteBlend:
        parts = [law for place in used for law in self._drawn[place]]
        logs = np.concatenate(
            [
                math.log(shares[at]) + np.log(self._held[place].parts)
                for at, place in enumerate(used)
            ]
        )
        logs -= 0.5 * np.array([part.height for part in parts])
        alpha = np.exp(logs - logs.max())
        return VoteBlend(tuple(parts), alpha, np.ones(len(self._counts)))
