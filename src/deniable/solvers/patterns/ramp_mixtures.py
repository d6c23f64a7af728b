"""Mixtures of ramps that meet the levels together.

A ramp (`ramps`) meets every level by itself. Ramps that are mixed need not: the densities that keep
the caps, f(S) ≤ e^γ_i f(S ∪ i) for every S without i, are a cone, which holds every ramp with
slopes of at most γ_i, whatever levels it delivers; and levels, floors and the record's ε are linear
in the shares x_j ≥ 0 of f = Σ x_j F_j. With every F_j 1 where nothing is changed, and f too,

    maximise   Σ x_j F_j(all changed),    which is e^{−ε},
    such that  Σ x_j = 1,
               Σ x_j E_μ[F_j (C_i − q_i)] = 0               every level is met,
               Σ x_j E_μ[F_j (h_i h_j − t φ_i φ_j)] ≥ 0     every floor is kept

(docs/proofs/clipped.md, section 4). What is mixed is chosen beforehand:

* ramps that meet the levels: the best, and some with the top moved up from there as far as it goes;
* neighbours of the best, one number of which is smaller or larger;
* ramps as steep as the caps allow, without a bottom, that start to fall at several places, and the
  same with one attribute left out: at the cone's edges f falls by e^γ_i or not at all;
* the uniform law, which is the bottom of these, and the product law, which keeps every floor.

It is the same for every floor, but for one ramp with its top where that keeps the floor, and has
what is mixed for stricter caps, so that no looser request ends clearly higher. Where the floor
costs something, the program's multipliers say what else to mix.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.vote_law import LARGEST_HEIGHT
from deniable.solvers import highs
from deniable.solvers.patterns.ramp_response import OrbitRamps
from deniable.solvers.patterns.ramps import AtLevels, Fit, RampSearch
from deniable.solvers.problem import Problem

FACTORS = (0.7, 0.9, 1.1, 1.4)
"""By which neighbours of a ramp differ from it."""

_FALL_FROM = (0.0, *np.geomspace(0.03, 2.0, 16).tolist())
"""Where the steepest ramps start to fall, in parts of the mean of what changes cost."""

EXACTLY, BY_ROUNDING = 1e-12, 1e-11
"""To what ramps meet levels over all orbits, where rounding lets them and where it does not, as in
faint levels, and on a grid; in nats or as a part below one."""

_CAP_ROUNDING, _PART_OF_CAP = 1e-7, 1e-3
"""What is left of a cap to rounding, in nats, and at most as a part of it: of a table's weights the
likeliest takes what is left over from all others, and may be one that a cap holds for."""

MOST_ORBITS = 4096
"""Orbits up to which ramps are mixed over all of them: twelve different attributes."""

_DEAR, _DEAR_PART, _CHEAP = 0.2, 0.01, 0.1
"""Nats, or part of ε, that the floor costs from which on this is done in all rounds; for less in as
many fewer, so that a lower floor is not left without it at once; and in none below that part."""

_ROUNDS, _MOST_ROUNDS, _MOVES, _GAINED = 24, 40, 25, 1e-4
"""So many times (of fewer orbits more), in so many steps of a search each, for ramps that gain."""

_MOVED_BY = 1e-6
"""Part of a reduced cost that a step must lower it by: the program, solved again, changes more."""

_STARTS = 4
"""Ramps of the program that a round's searches start from, and as many of all that were there
before the first round: from the program's alone all may end at the same one."""

_ASIDE, _FADED, _GOLDEN = 0.05, 0.75, 0.618
"""Part by which levels are less for which prices are asked at first, the part of the rounds in
which that fades, and steps that spread what differs over all places."""

_NEW = 0.5
"""Part of the newest prices in those that are used: they swing less so."""

_SAME = 1e-3
"""Part by which the reduced costs of two ramps differ at least that are added in a round."""

_ABOVE = 0.01
"""Part of ε by which the best ramp under some caps lies above one that keeps the floor where
stricter ones are left: a search may end that much above the best."""

_TOPS = 0.02
"""Part of the caps that slopes of a top start at: at 0 nothing says where to."""

_DEPENDENT = 1e-6
"""Ramps that meet the levels are the same to these rows: so little tells them apart."""

_AT_ONCE, _LEAST_GAIN = 400, 1e-7
"""Densities that the program is first solved for, and the most that are added at a time; what one
with a share of 1 gains at least, as a part of e^{−ε} or so."""

_KEPT = 200
"""Densities of the least reduced cost that the next program is solved for first."""

_BROKEN, _EXACT = 1e-10, 2e-10
"""By how much a floor is broken when its row is added, and how many nats a level may miss."""

_ROUNDED = 1e-16
"""What rounding may take from a pair's φ_ij: of two faint levels, more than the floor's margin."""


@dataclass(frozen=True, eq=False)
class Prices:
    """What a density is worth to a mixture: the multipliers of the linear program's rows.

    Attributes:
        top, total: of F where nothing is changed, and of E_μ[F].
        changed: of E_μ[F C_i], shape (m,).
        pairs: of E_μ[F h_i h_j], in the order of the pairs.
    """

    top: float
    total: float
    changed: FloatArray
    pairs: FloatArray

    def beside(self, other: "Prices | None", part: float) -> "Prices":
        """Return the mean of so much of these and the rest of others, if there are any."""
        if other is None:
            return self
        return Prices(
            part * self.top + (1.0 - part) * other.top,
            part * self.total + (1.0 - part) * other.total,
            part * self.changed + (1.0 - part) * other.changed,
            part * self.pairs + (1.0 - part) * other.pairs,
        )


class Mixing:
    """The linear program in the shares of what is mixed.

    Args:
        problem: the groups and their levels, m of them.
        first, second: groups of the pairs that have a floor.
        about: about the record's ε in nats, the scale of what is maximised.
    """

    def __init__(self, problem: Problem, first: IntArray, second: IntArray, about: float) -> None:
        # Beyond, no common law is drawn.
        self._pairs, self._about = (first, second), min(about, LARGEST_HEIGHT)
        self.prices: Prices | None = None
        self._looked_at = np.zeros(len(first), dtype=np.bool_)
        self._delivered: list[FloatArray] = []
        self._ends: list[float] = []
        self._active = np.empty(0, dtype=np.int64)
        self._basic: tuple[IntArray, IntArray] | None = None
        self._seen = 0
        self.meet(problem)

    def meet(self, problem: Problem) -> None:
        """Ask for these levels: what a density delivers is the same for all."""
        lift = problem.n_categories * problem.keep_excess / (problem.n_categories - 1.0)
        first, second = self._pairs
        self._change, self._product = problem.change_probability, lift[first] * lift[second]
        self._held = np.empty((0, 2 + len(self._change) + len(first)))

    def add(self, end: float, total: float, changed: FloatArray, pairs: FloatArray) -> None:
        """Add a density that is 1 where nothing is changed.

        Args:
            end: its logarithm where everything is changed.
            total: E_μ[F].
            changed: E_μ[F C_i], shape (m,).
            pairs: E_μ[F h_i h_j] of the pairs, in their order.
        """
        self._ends.append(math.exp(end + self._about))
        self._delivered.append(np.concatenate([[total], changed, pairs]))

    def correct(self, place: int, total: float, changed: FloatArray, pairs: FloatArray) -> None:
        """Replace what was said of a density before: what it delivers, to more digits."""
        self._delivered[place] = np.concatenate([[total], changed, pairs])
        self._rows()[place] = self._of(self._delivered[place][None])

    def _rows(self) -> FloatArray:
        """Return a row for each density, (n, 2 + m + pairs)."""
        new = self._delivered[len(self._held) :]
        if new:
            self._held = np.vstack([self._held, self._of(np.array(new))])
        return self._held

    def _of(self, delivered: FloatArray) -> FloatArray:
        """Return the rows of densities that deliver this."""
        total, changed, pairs = np.split(delivered, [1, 1 + len(self._change)], axis=1)
        levels = changed / self._change - total
        ratios = (pairs - _ROUNDED * total) / self._product
        return np.hstack([np.ones_like(total), total, levels, ratios])

    @property
    def corner(self) -> IntArray:
        """Places of the densities in the basis of the program that was solved last."""
        return np.empty(0, dtype=np.int64) if self._basic is None else self._basic[0]

    @property
    def scale(self) -> float:
        """What a density of 1 where everything is changed is worth."""
        return math.exp(self._about)

    def epsilon(self, shares: FloatArray) -> float:
        """Return the record's ε of a mixture, in nats."""
        return self._about - math.log(float(np.array(self._ends)[: len(shares)] @ shares))

    def mass(self, shares: FloatArray) -> float:
        """Return E_μ[f] of a mixture."""
        return float(self._rows()[: len(shares), 1] @ shares)

    def shares(self, floor: float | None, among: IntArray | None = None) -> FloatArray | None:
        """Return the shares of the mixture of least ε that keeps a floor; None if none is found.

        Args:
            floor: t, or None.
            among: places of densities that may be used; all if None.

        From then on `prices` are those of its program. Of many densities it is solved for some, and
        again with those whose reduced cost is below 0, each time from the last basis; as the shares
        add up to 1, it is off by no more than the least of these.
        """
        rows, ends = self._rows(), np.array(self._ends)
        every = np.arange(len(ends)) if among is None else among
        # Those that are new, and what was used or nearly so.
        new = every[every >= self._seen][:_AT_ONCE]
        self._seen = len(ends)
        active = np.union1d(new, np.intersect1d(self._active, every))
        active = active if len(active) else every
        scaling = np.full(rows.shape[1], 1.0 / float(np.median(rows[:, 1])))
        m, least = len(self._change), floor or 0.0
        scaling[0] = 1.0
        largest = np.abs(rows[:, 2 : m + 2]).max(axis=0)  # small where the level is faint
        scaling[2 : m + 2] = np.maximum(scaling[2 : m + 2], 1.0 / largest)
        none = np.zeros_like(self._looked_at)
        while True:
            looked_at = none if floor is None else self._looked_at
            here = (rows[active] * scaling).T
            total, ratios = here[1], here[m + 2 :]
            equal = np.concatenate([here[:1], here[2 : m + 2]])
            matrix = np.vstack([equal, ratios[looked_at] - least * total])
            scale = np.maximum(np.abs(matrix).max(axis=0), ends[active])
            lower = np.zeros(len(matrix))
            lower[0] = 1.0
            upper = np.where(np.arange(len(matrix)) < len(equal), lower, highs.INFINITY)
            zero, most = np.zeros(len(active)), np.full(len(active), highs.INFINITY)
            program = highs.Program(
                -ends[active] / scale, zero, most, highs.dense_rows(matrix / scale), lower, upper
            )
            names = np.append(np.arange(-len(equal), 0), np.flatnonzero(looked_at))
            answer = highs.run(program, start=self._start(active, names))
            if answer.status == "failed":  # as one that is unbounded, which no share is
                answer = highs.run(replace(program, upper=scale))
            if answer.status != "optimal":
                if len(active) == len(every):
                    return None
                active = every
                continue
            self._basic = active[answer.basic], names[~answer.row_basic]
            of_levels, of_floors = np.split(answer.multipliers, [len(equal)])
            price = np.zeros(rows.shape[1])
            price[0], price[2 : m + 2] = of_levels[0], of_levels[1:]
            price[1] = -least * of_floors.sum()
            price[m + 2 :][looked_at] = of_floors
            price *= scaling
            reduced = -ends - rows @ price
            # Once more without the solver's tolerances.
            used = np.flatnonzero(answer.x > 0.0)
            shares = np.zeros(len(active))
            shares[used] = answer.x[used]
            scaled = equal[:, used] / scale[used]
            left = lower[: len(equal)] - scaled @ shares[used]
            shares[used] += np.linalg.lstsq(scaled, left, rcond=_DEPENDENT)[0]
            shares = np.asarray(np.maximum(shares, 0.0) / scale)
            broken = ratios @ shares < (least - _BROKEN) * (total @ shares)
            broken &= ~looked_at & (floor is not None)
            lacking = np.setdiff1d(every[reduced[every] < -_LEAST_GAIN], active)
            if not broken.any() and not len(lacking):
                break
            self._looked_at = self._looked_at | broken
            lacking = lacking[np.argsort(reduced[lacking])[:_AT_ONCE]]
            active = np.union1d(active, lacking)
        self._active = np.union1d(self._basic[0], np.argsort(reduced)[:_KEPT])
        by_level = price[2 : m + 2]
        self.prices = Prices(
            float(price[0]),
            float(price[1] - by_level.sum()),
            by_level / self._change,
            price[m + 2 :] / self._product,
        )
        result = np.zeros(len(ends))
        result[active] = shares
        return result

    def _start(self, active: IntArray, rows: IntArray) -> highs.Basis | None:
        """Return the basis that was the last: rows that are new are slack in it; None if not all of
        its densities may be used."""
        if self._basic is None:
            return None
        densities, held = self._basic
        columns, slack = np.isin(active, densities), ~np.isin(rows, held)
        whole = int(columns.sum()) == len(densities) == len(rows) - int(slack.sum())
        return highs.Basis(columns, slack) if whole else None


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of ramps.

    Attributes:
        density: f over its value where nothing is changed, of every orbit, shape (n,).
        epsilon: of the record, in nats.
        fit: the best ramp under the loosest caps that has one, a start for similar requests.
        meeting: from other levels of the orbits' groups, shape (m,), to the best mixture of the
            same ramps that meets them.
    """

    density: FloatArray
    epsilon: float
    fit: Fit | None
    meeting: Callable[[FloatArray], "Mixture | None"]


def mixed(
    sums: OrbitRamps,
    caps: Sequence[FloatArray],
    height: float,
    floor: float | None,
    near: Fit | None,
) -> Mixture | None:
    """Return the mixture of least ε over the orbits of patterns; None if none is found.

    Args:
        sums: of the orbits; their levels are what is delivered.
        caps: γ in nats of the groups, the loosest first, and where these are uneven their tightest
            multiple of the levels next; shapes (m,).
        height: about the record's ε, in nats.
        floor: t, or None.
        near: a ramp for something similar.
    """
    orbits = sums.orbits
    pool = _OrbitPool(sums, height)
    pool.add(np.zeros_like(caps[0]), 0.0)
    pool.add(orbits.groups.attribute_epsilon, 0.0)
    found = list(_searched(sums, caps, height, floor, near))
    # From the strictest, so that what is done for them is done first for every looser request.
    for place in range(len(caps) - 1, -1, -1):
        steepest = below_caps(caps[place])
        pool.add_steepest(steepest)
        if place < len(found) and found[place]:
            fit, *others = found[place]
            pool.add_about(fit, steepest)
            for other in others:
                pool.add_fit(other, steepest)
    loosest = next((fits[0] for fits in found if fits), None)
    return pool.mixture(floor, loosest, below_caps(caps[0]))


def _searched(
    sums: OrbitRamps,
    caps: Sequence[FloatArray],
    height: float,
    floor: float | None,
    near: Fit | None,
) -> Iterator[list[Fit]]:
    """Yield the best ramp under each caps, with its top moved up, until stricter caps cost more
    than a ramp that keeps the floor."""
    least = math.inf
    for limits in caps:
        search = RampSearch(
            sums, AtLevels(sums.orbits.groups, limits), height, EXACTLY, BY_ROUNDING
        )
        fit, near = search.best(1.0, near), None
        if fit is None:
            yield []
            continue
        if fit.w >= (1.0 + _ABOVE) * least:
            break
        ramps = [fit, *search.raised(fit)]
        if floor is None or search.least_ratio(fit) >= floor:
            least = min(least, fit.w)
        elif (kept := search.keeping(floor, fit)) is not None:
            ramps.append(kept)
        yield ramps


def below_caps(caps: FloatArray) -> FloatArray:
    """Return the steepest slopes that keep caps in a law as drawn, shape (m,)."""
    return np.asarray(caps - np.minimum(_CAP_ROUNDING, _PART_OF_CAP * caps))


def about_ramp(
    slopes: FloatArray, height: float, steepest: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return the slopes of a ramp and of its neighbours that keep the caps, and heights.

    What falls by no more than a cap keeps it however steep it is.

    Args:
        slopes: of the ramp, shape (m,).
        height: of the ramp, in nats.
        steepest: slopes that keep the caps whatever the height, shape (m,).

    Returns:
        The slopes; the most that they may be, shapes (m,); and how high a ramp of the first may be.
    """
    most = np.where(steepest < height, steepest, np.inf)
    slopes = np.minimum(slopes, most)
    return slopes, most, float(steepest[slopes > steepest].min(initial=math.inf))


_Ramp = tuple[FloatArray, float, float, FloatArray]
"""Slopes c, where it starts to fall, a, height, and slopes d of its top: the density
exp(max(min(a − Σ_{changed} c_i, −Σ_{changed} d_i), −height))."""


class _OrbitPool:
    """What is mixed, over the orbits of patterns."""

    def __init__(self, sums: OrbitRamps, about: float) -> None:
        self._sums, self._problem = sums, sums.orbits.groups
        self._first = np.unique(sums.orbits.group_of, return_index=True)[1]
        self._chance, size = sums.orbits.chance, sums.size
        self._changed = np.ascontiguousarray(sums.orbits.changed_fraction.T)
        a = self._problem.n_categories
        self._sign = 1.0 - self._changed * (a / (a - 1.0))
        self._others = np.triu_indices(len(size), 1)
        alike = np.flatnonzero(size > 1).tolist()
        both = [sums.orbits.pair_attenuation(group, group) for group in alike]
        self._both = np.array(both).reshape(len(both), len(self._chance))
        first, second = (np.append(others, alike).astype(int) for others in self._others)
        self._mixing = Mixing(self._problem, first, second, about)
        self._ramps: list[_Ramp] = []
        self._none = np.zeros(len(size))

    def add(self, slopes: FloatArray, fall_from: float, height: float = math.inf) -> None:
        """Add exp(clip(fall_from − Σ_{changed} c_i, −height, 0)); slopes c, shape (m,)."""
        self._add_one((slopes, fall_from, height, self._none))

    def _add_one(self, ramp: "_Ramp") -> None:
        density = self._density(ramp)
        got = self._sums_of(slice(None), density * self._chance)
        self._add(ramp, math.log(float(density[-1])), got)

    def _sums_of(self, here: IntArray | slice, mass: FloatArray) -> FloatArray:
        """Return sums of a mass over some orbits: of 1, of C_i, and of h_i h_j for the pairs."""
        sign = self._sign[here]
        pairs = (sign.T @ (sign * mass[:, None]))[self._others]
        changed = mass @ self._changed[here]
        return np.concatenate([[mass.sum()], changed, pairs, self._both[:, here] @ mass])

    def _add(self, ramp: "_Ramp", end: float, got: FloatArray) -> None:
        m = len(self._none)
        self._ramps.append(ramp)
        self._mixing.add(end, float(got[0]), got[1 : m + 1], got[m + 1 :])

    def add_fit(self, fit: Fit, steepest: FloatArray) -> None:
        """Add a ramp that meets the levels."""
        slopes, fall_from, height = self._from_top(fit)
        self.add(about_ramp(slopes, height, steepest)[0], fall_from, height)

    def add_about(self, fit: Fit, steepest: FloatArray) -> None:
        """Add a ramp and its neighbours."""
        slopes, fall_from, height = self._from_top(fit)
        slopes, most, highest = about_ramp(slopes, height, steepest)
        self.add(slopes, fall_from, height)
        for factor in FACTORS:
            self.add(slopes, factor * fall_from, height)
            self.add(slopes, fall_from, min(factor * height, highest))
            for group in range(len(slopes)):
                other = slopes.copy()
                other[group] = min(factor * slopes[group], most[group])
                self.add(other, fall_from, height)

    def add_steepest(self, steepest: FloatArray) -> None:
        """Add the ramps with these slopes, and with each of them 0 in turn."""
        mean = float((steepest * self._sums.size) @ self._problem.change_probability)
        for left_out in range(-1, len(steepest)):
            slopes = steepest.copy()
            if left_out >= 0:
                slopes[left_out] = 0.0
            self._add_falling(slopes, [part * mean for part in _FALL_FROM])

    def _add_falling(self, slopes: FloatArray, places: list[float]) -> None:
        """Add ramps that start to fall at these places, ascending.

        F is 1 up to there and e^{place − cost} beyond: sums of both over the patterns between two
        places are enough for all.
        """
        cost = self._changed @ (slopes * self._sums.size)
        order = np.argsort(cost)
        ends = np.searchsorted(cost[order], places, side="right").tolist()
        flat, falling = [], []
        for start, stop in zip([0, *ends], [*ends, len(cost)], strict=True):
            here = order[start:stop]
            chance = self._chance[here]
            flat.append(self._sums_of(here, chance))
            falling.append(self._sums_of(here, chance * np.exp(-cost[here])))
        before = np.cumsum(flat, axis=0)
        after = np.cumsum(falling[::-1], axis=0)[::-1]
        for number, place in enumerate(places):
            got = before[number] + math.exp(place) * after[number + 1]
            end = min(place - float(slopes @ self._sums.size), 0.0)
            self._add((slopes, place, math.inf, self._none), end, got)

    @property
    def size(self) -> int:
        """How many are mixed so far."""
        return len(self._ramps)

    def mixture(self, floor: float | None, fit: Fit | None, steepest: FloatArray) -> Mixture | None:
        """Return the best mixture; None if none is found that meets the levels.

        Args:
            floor: t, or None.
            fit: the best ramp under the loosest caps that has one.
            steepest: slopes that the loosest caps allow, shape (m,).
        """
        shares = self._mixing.shares(floor)
        if shares is not None and fit is not None:
            shares = self._priced(shares, fit, steepest, floor)
        return self._met(shares, floor, fit)

    def _met(
        self, shares: FloatArray | None, floor: float | None, fit: Fit | None
    ) -> Mixture | None:
        """Return the mixture with these shares, if it meets the levels."""
        if shares is None:
            return None
        density = np.zeros_like(self._chance)
        for place in np.flatnonzero(shares):
            density += shares[place] * self._density(self._ramps[place])
        mass = density * self._chance
        changed = mass @ self._changed
        kept = mass @ (1.0 - self._changed)
        level = np.log(kept) + np.log(self._problem.n_categories - 1.0) - np.log(changed)
        if np.abs(level - self._problem.attribute_epsilon).max() > _EXACT:
            return None

        def meeting(levels: FloatArray) -> Mixture | None:
            self._problem = replace(self._problem, attribute_epsilon=levels)
            self._mixing.meet(self._problem)
            return self._met(self._mixing.shares(floor), floor, fit)

        return Mixture(density, math.log(float(density.max() / density.min())), fit, meeting)

    def _priced(
        self, shares: FloatArray, fit: Fit, steepest: FloatArray, floor: float | None
    ) -> FloatArray:
        """Return the shares after adding what the program's prices say it lacks.

        From ramps of the program, and from others, slopes of ramp and top are moved to where the
        reduced cost is least. The less the floor costs, the fewer times: there is less to gain.

        Args:
            shares: before.
            fit, steepest, floor: see :meth:`mixture`.
        """
        dear = min(_DEAR, _DEAR_PART * fit.w)
        costs = (self._mixing.epsilon(shares) - fit.w) / dear
        if costs < _CHEAP:
            return shares
        # Of levels aside of these no ramp alone meets all, in whose corner nothing would gain.
        asked, first, worth = self._problem, self.size, None
        aside = _ASIDE * (np.arange(len(asked.attribute_epsilon)) * _GOLDEN % 1.0)
        rounds = min(_ROUNDS * MOST_ORBITS // len(self._chance), _MOST_ROUNDS)
        rounds = math.ceil(min(costs, 1.0) * rounds)
        for turn in range(rounds):
            left = max(1.0 - turn / (_FADED * rounds), 0.0)
            level = asked.attribute_epsilon * (1.0 - left * aside)
            self._mixing.meet(replace(asked, attribute_epsilon=level))
            now = self._mixing.shares(floor)
            if now is None or (not left and self._mixing.epsilon(now) < fit.w + dear):
                break
            newest = self._worth()
            worth = newest if worth is None else _NEW * newest + (1.0 - _NEW) * worth
            # Where few are used, others are in the corner with a share of 0.
            used = np.union1d(np.flatnonzero(now), self._mixing.corner)
            spread = (turn * _STARTS + np.arange(_STARTS)) * _GOLDEN % 1.0
            starts = [*used[np.argsort(-now[used])][:_STARTS], *(first * spread).astype(int)]
            if not self._add_lacking(starts, worth, steepest):
                if worth is newest:
                    break
                worth = None
        self._mixing.meet(asked)
        better = self._mixing.shares(floor)
        return shares if better is None else better

    def _add_lacking(self, starts: Sequence[int], worth: FloatArray, steepest: FloatArray) -> bool:
        """Add ramps of least reduced cost near these, each once; return whether there are any."""
        costs: list[float] = []
        for place in starts:
            ramp = self._moved(self._ramps[place], worth, steepest)
            if ramp is not None:
                cost = float(self._density(ramp) @ worth)
                if all(abs(cost - other) > _SAME * abs(other) for other in costs):
                    costs.append(cost)
                    self._add_one(ramp)
        return bool(costs)

    def _worth(self) -> FloatArray:
        """Return the reduced cost of a unit of density in every orbit, shape (n,)."""
        prices = self._mixing.prices
        assert prices is not None
        worth = np.full(len(self._chance), prices.total) + self._changed @ prices.changed
        count = len(self._others[0])
        for i, j, price in zip(*self._others, prices.pairs[:count], strict=True):
            if price:
                worth += price * self._sign[:, i] * self._sign[:, j]
        worth += prices.pairs[count:] @ self._both
        worth *= -self._chance
        worth[0] -= prices.top
        worth[-1] -= self._mixing.scale
        return worth

    def _moved(self, ramp: "_Ramp", worth: FloatArray, steepest: FloatArray) -> "_Ramp | None":
        """Return a ramp of least reduced cost near another; None if that is not below 0."""
        from scipy.optimize import minimize

        slopes, fall_from, height, tops = ramp
        m, cost = len(slopes), self._changed * self._sums.size
        highest = float(steepest @ self._sums.size)

        def reduced(at: FloatArray) -> tuple[float, FloatArray]:
            below, top = at[2 * m] - cost @ at[:m], -(cost @ at[m : 2 * m])
            exponent = np.minimum(below, top)
            each = np.exp(np.maximum(exponent, -at[-1])) * worth
            rising = exponent > -at[-1]
            on_ramp = np.where(rising & (below < top), each, 0.0)
            on_top = np.where(rising & (below >= top), each, 0.0)
            by_ends = np.array([on_ramp.sum(), -each[~rising].sum()])
            return float(each.sum()), np.concatenate([-(on_ramp @ cost), -(on_top @ cost), by_ends])

        start = np.concatenate(
            [slopes, np.maximum(tops, _TOPS * steepest), [fall_from, min(height, highest)]]
        )
        bounds = [(0.0, float(most)) for most in [*steepest, *steepest, highest, highest]]
        found = minimize(
            reduced,
            np.minimum(start, [most for _, most in bounds]),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": _MOVES, "ftol": _MOVED_BY},
        )
        if not found.fun < -_GAINED:
            return None
        return found.x[:m], float(found.x[2 * m]), float(found.x[-1]), found.x[m : 2 * m]

    def _density(self, ramp: "_Ramp") -> FloatArray:
        slopes, fall_from, height, tops = ramp
        below = fall_from - self._changed @ (slopes * self._sums.size)
        top = -(self._changed @ (tops * self._sums.size))
        return np.asarray(np.exp(np.maximum(np.minimum(below, top), -height)))

    def _from_top(self, fit: Fit) -> tuple[FloatArray, float, float]:
        """Return slopes of the groups, where the ramp starts to fall, and its height."""
        ramp = fit.ramp
        slopes = ramp.slopes
        if len(slopes) > len(self._sums.size):
            slopes = slopes[self._first]
        spent = float((slopes * self._sums.size) @ self._problem.change_probability)
        return slopes, max(spent - ramp.top, 0.0), ramp.height
