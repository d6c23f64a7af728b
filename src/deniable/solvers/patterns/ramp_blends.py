"""Mixtures of ramps that meet the levels together, for more attributes than can be enumerated.

The same linear program as in `ramp_mixtures`, over gated sums as they are drawn
(`deniable.laws.votes.gated`). What they deliver is known nearly for all (`ramp_families`), and to
the last digits for those that the program uses, so that the mixture, a blend
(`deniable.laws.votes.blend`), meets its levels without a further search.

What is mixed for stricter caps is among what is mixed for looser ones, whatever the floor.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.solvers.patterns.optimal import Part
from deniable.solvers.patterns.ramp_families import RampFamily, Shape
from deniable.solvers.patterns.ramp_laws import AIM, FLOOR_MARGIN, keep_floor
from deniable.solvers.patterns.ramp_mixtures import Mixing, below_caps
from deniable.solvers.patterns.ramp_pricing import PatternSample, Ramp
from deniable.solvers.patterns.ramp_response import GridRamps
from deniable.solvers.patterns.ramps import AtLevels, Fit, RampSearch
from deniable.solvers.problem import Problem, checked_problem

MOST_ATTRIBUTES = 30
"""Of more it takes too long to evaluate all pairs of everything that is mixed."""

_FACTORS = (0.7, 0.9, 1.1, 1.4)
"""By which neighbours of a ramp differ from it."""

_SURELY = 2e-3
"""How far above the floor a ramp's pairs are said to keep it: a coarse grid tells ratios to a
thousandth or so."""

_FALL_FROM = (0.0, *np.geomspace(0.03, 2.0, 12).tolist())
_FALL_FROM_WITHOUT = _FALL_FROM[::2]
"""Where the steepest ramps start to fall, and those with one slope 0, in parts of the mean of what
changes cost."""

_RAISED = 1.4
"""Times the top that it is moved up by for ramps that are mixed."""

_HIGHER = 25.0
"""Nats that a ramp's bottom may lie below the record's."""

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

_DEAR, _GAINED = 0.2, 1e-4
"""Nats that the floor costs beyond which ramps are looked for by the program's prices, as long as
that gains."""

_PRICED, _PRICED_AT, _STARTS = 9, 21, 10
"""Times that this is done of so many attributes (of more fewer), and from how many ramps."""

_NEW = 0.7
"""Part of the newest prices in those that are used: they swing less so."""

_AT_MOST, _FLOORS = 2.01, (0.5, 0.9, 1.0)
"""Times the levels that caps are at most under which this is done, and for which floors."""

_LEAST_SHARE = 1e-25
_ROUNDS = 8
"""Times that what is used is evaluated and the program solved again, the last time with nothing
else; two or three are the rule."""


@dataclass(frozen=True, eq=False)
class Blend:
    """What is found.

    Attributes:
        part: the mixture.
        best: the ramp under the loosest caps that has one, a start for similar requests.
        ramp: the best that keeps the floor, if one does.
        evenly: of uneven caps, the best under their tightest multiple for all.
    """

    part: Part
    best: Fit | None
    ramp: Fit | None
    evenly: Fit | None


def blended(
    counts: IntArray,
    aimed: FloatArray,
    caps: Sequence[FloatArray],
    height: float,
    floor: float | None,
) -> Blend | None:
    """Return the mixture of least ε that is found; None if none passes its checks.

    Args:
        counts: a_i, shape (k,), k at most `MOST_ATTRIBUTES`.
        aimed: levels in nats, shape (k,).
        caps: γ in nats, the loosest first, and where these are uneven their tightest multiple of
            the levels next; shapes (k,).
        height: about the record's ε, in nats.
        floor: t, or None.
    """
    problem = checked_problem(counts.tolist(), aimed.tolist())
    pool = _Pool(problem, height, None if floor is None else floor + 2.0 * FLOOR_MARGIN)
    for limits in caps:
        pool.add_steepest(below_caps(limits))
    best = keeping = evenly = None
    multiples = caps[0] / aimed
    uneven, gained = bool(np.ptp(multiples) > _EVEN * multiples.min()), False
    found: dict[int, list[Fit]] = {}
    for place, limits in enumerate(caps):
        search = _search(problem, limits, height)
        fit = search.best(1.0, afar=best is None or place <= uneven)
        if fit is None:
            continue
        best = best or fit
        evenly = fit if uneven and place == 1 else evenly
        held = min(pool.epsilon(), math.inf if keeping is None else keeping.w)
        if fit.w >= held:
            if gained and fit.w >= (1.0 + _ABOVE) * held:
                break  # without the floor stricter caps cost more, and with it no less
            continue
        gained = True
        steepest = below_caps(limits)
        pool.add_about(fit, steepest)
        if floor is None or search.least_ratio(fit) >= floor + _SURELY:
            keeping = fit
            continue
        found[place] = [fit, *search.raised(fit, _RAISED)]
        for raised in found[place][1:]:
            pool.add_about(raised, steepest)
    laws = [pool.law()]
    if floor is not None and (keeping is None or best is None or keeping.w > best.w + _DEAR):
        tight = (place for place, one in enumerate(caps) if (one <= _AT_MOST * aimed).all())
        place = next(tight, len(caps) - 1)
        least = min(one for one in _FLOORS if one >= floor)
        lacking = _lacking(problem, caps[place], height, least, found.get(place))
        for slopes, fall_from, fall in lacking:
            pool.add(slopes, [Shape(fall_from, fall)])
        if lacking:
            laws.append(pool.law())
    for law in sorted(filter(None, laws), key=lambda one: one.account.epsilon):
        if keep_floor([law], floor) and _keeps(law, aimed, caps[0]):
            return Blend(Part(tuple(range(len(counts))), law, law.account), best, keeping, evenly)
    return None


def _keeps(law: VoteBlend, aimed: FloatArray, caps: FloatArray) -> bool:
    """Whether a law as drawn meets the levels and keeps the caps."""
    above, below = law.attribute_bounds()
    met = (above <= aimed + AIM).all() and (below >= aimed - AIM).all()
    return bool(met and (law.account.epsilon_given_rest <= caps).all())


def _search(problem: Problem, caps: FloatArray, height: float) -> RampSearch:
    sums, target = GridRamps(problem.n_categories), AtLevels(problem, caps)
    return RampSearch(sums, target, height, _NEARLY, _STALLED_AT)


def _lacking(
    problem: Problem, caps: FloatArray, height: float, floor: float, ramps: list[Fit] | None
) -> list[Ramp]:
    """Return ramps that a mixture of others lacks, by its program's prices.

    None where the floor costs little: then there is little to gain.

    Args:
        problem, caps, height, floor: as in `blended`, for one request.
        ramps: the best under these caps and those with the top moved up, if they are known.
    """
    steepest = below_caps(caps)
    if ramps is None:
        search = _search(problem, caps, height)
        fit = search.best(1.0)
        ramps = [] if fit is None else [fit, *search.raised(fit, _RAISED)]
    if not ramps:
        return []
    pool = _Pool(problem, height, floor + 2.0 * FLOOR_MARGIN)
    pool.add_steepest(steepest)
    for ramp in ramps:
        pool.add_about(ramp, steepest)
    return pool.price(steepest) if pool.epsilon() > ramps[0].w + _DEAR else []


class _Pool:
    """What is mixed."""

    def __init__(self, problem: Problem, about: float, floor: float | None) -> None:
        self._problem = problem
        self._counts, self._about = tuple(problem.counts.tolist()), about
        self._change, self._floor = problem.change_probability, floor
        self._pairs = np.triu_indices(problem.n_attributes, 1)
        self._mixing = Mixing(problem, *self._pairs, about)
        self._ramps: list[tuple[RampFamily, Shape]] = []
        self._drawn: dict[int, GatedSum] = {}
        for part in (_HARDLY, 1.0):  # all but the uniform law, and independent responses
            self.add(part * problem.attribute_epsilon, [Shape(0.0)])

    def add(self, slopes: FloatArray, shapes: Iterable[Shape]) -> None:
        """Add ramps; slopes c, shape (k,)."""
        held = []
        for shape in shapes:
            total = float(slopes.sum())
            if shape.place >= 0:
                total += shape.slope - float(slopes[shape.place])
            height = min(shape.height, total - shape.fall_from, self._about + _HIGHER)
            if height > 0.0:
                held.append(replace(shape, height=height))
        if not held:
            return
        bottom = max(shape.fall_from + shape.height for shape in held)
        family = RampFamily(self._counts, slopes, bottom)
        self._ramps += [(family, shape) for shape in held]
        for column in family.columns(held):
            self._mixing.add(*column)

    def add_about(self, fit: Fit, steepest: FloatArray) -> None:
        """Add a ramp and its neighbours."""
        slopes, fall_from, height = self._from_top(fit, steepest)
        shapes = [Shape(fall_from, height)]
        for factor in _FACTORS:
            shapes += [Shape(factor * fall_from, height), Shape(fall_from, factor * height)]
            other = np.minimum(factor * slopes, steepest).tolist()
            shapes += [Shape(fall_from, height, i, slope) for i, slope in enumerate(other)]
        self.add(slopes, shapes)

    def _from_top(self, fit: Fit, steepest: FloatArray) -> tuple[FloatArray, float, float]:
        """Return slopes, where the ramp starts to fall, and its height."""
        ramp = fit.ramp
        fall_from = max(float(ramp.slopes @ self._change) - ramp.top, 0.0)
        return np.minimum(ramp.slopes, steepest), fall_from, ramp.height

    def add_steepest(self, steepest: FloatArray) -> None:
        """Add ramps as steep as the caps allow, and with each slope 0 in turn."""
        mean = float(steepest @ self._change)
        shapes = [Shape(part * mean) for part in _FALL_FROM]
        for i in range(len(steepest)):
            shapes += [Shape(part * mean, place=i) for part in _FALL_FROM_WITHOUT]
        self.add(steepest, shapes)

    def epsilon(self) -> float:
        """Return the record's ε of the best mixture so far, in nats; infinite if there is none."""
        shares = self._mixing.shares(self._floor)
        return math.inf if shares is None else self._mixing.epsilon(shares)

    def price(self, steepest: FloatArray) -> list[Ramp]:
        """Add ramps that the program's prices ask for, no steeper than this; return those of them
        that the mixture uses."""
        sample, worth, first = PatternSample(self._problem), None, len(self._ramps)
        shares = better = self._mixing.shares(self._floor)
        for _ in range(_PRICED * _PRICED_AT // len(steepest)):
            if better is None or self._mixing.prices is None:
                break
            shares = better
            new = sample.worth(self._mixing.prices, self._mixing.scale)
            worth = new if worth is None else _NEW * new + (1.0 - _NEW) * worth
            most = np.argsort(-shares)[:_STARTS]
            starts = [self._ramp(place) for place in most[shares[most] > 0.0].tolist()]
            size = sample.size(self._mixing.mass(shares), self._mixing.scale)
            for slopes, fall_from, height in sample.lacking(starts, worth, size, steepest):
                self.add(slopes, [Shape(fall_from, height)])
            better = self._mixing.shares(self._floor)
            if better is None or self._gain(shares, better) < _GAINED:
                break
        last = shares if better is None else better
        used = [] if last is None else np.flatnonzero(last > 0.0).tolist()
        return [self._ramp(place) for place in used if place >= first]

    def _gain(self, shares: FloatArray, better: FloatArray) -> float:
        return self._mixing.epsilon(shares) - self._mixing.epsilon(better)

    def _ramp(self, place: int) -> Ramp:
        family, shape = self._ramps[place]
        return Ramp(family.slopes_of(shape), shape.fall_from, shape.height)

    def law(self) -> VoteBlend | None:
        """Return the best mixture; None if none is found.

        What it uses is evaluated as it is drawn, until it uses nothing else.
        """
        among = None
        for left in reversed(range(_ROUNDS)):
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
                among = np.array(sorted(self._drawn))
        return None

    def _settle(self, place: int) -> None:
        family, shape = self._ramps[place]
        law = self._drawn[place] = family.law(shape)
        got = law.moments()
        mass = math.exp(got.log_normalizer - law.height)
        pairs, wrong = law.bounded_pair_attenuations()
        sure = pairs[self._pairs] - _BOUNDS * (wrong + law.drawing_slack + _ROUNDINGS)
        self._mixing.correct(place, mass, mass * got.change, mass * sure)

    def _blend(self, used: list[int], shares: FloatArray) -> VoteBlend:
        parts = [self._drawn[place] for place in used]
        logs = np.log(shares) - 0.5 * np.array([part.height for part in parts])
        alpha = np.exp(logs - logs.max())
        return VoteBlend(tuple(parts), alpha, np.ones(len(self._counts)))
