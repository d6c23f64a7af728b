"""The record's smallest level with a cap on what full knowledge of the rest can reveal.

Beside the levels, every attribute's `epsilon_given_rest` is capped, and every pair's attenuation is
at least a part of the product of its singles, so that every table of two attributes can be
estimated. Where the linear program is quick, and its table of patterns small, its exact optimum is
the answer; elsewhere a clipped ramp (`ramps`), which is within about 2 % of it unless the floor
binds. Proofs: docs/proofs/clipped.md.

A law for a stricter request is a law for a looser one. So the same stricter caps are tried for
every request, each from starts of its own, until one costs more without the floor than what is
found costs with it; and independent responses are always among the candidates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.laws.votes.vote_law import Account
from deniable.solvers.patterns import linear, optimal
from deniable.solvers.patterns.certificate import weighted_bound
from deniable.solvers.patterns.importance import limit_epsilon
from deniable.solvers.patterns.optimal import (
    OptimalSolution,
    Part,
    delivered,
    independent,
    record_level,
)
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramp_blends import MOST_ATTRIBUTES as MOST_BLENDED
from deniable.solvers.patterns.ramp_blends import Blend, blended
from deniable.solvers.patterns.ramp_landing import MOST_IN_TABLE
from deniable.solvers.patterns.ramp_laws import (
    AIM,
    Mixed,
    at_levels,
    keep_floor,
    mixture,
)
from deniable.solvers.patterns.ramp_mixtures import MOST_ORBITS
from deniable.solvers.patterns.ramps import Fit
from deniable.solvers.problem import (
    Problem,
    SolverError,
    caps_given_rest,
)

EXACT_ORBITS = 1024
"""Most orbits for which the capped linear program is tried: ten different attributes."""

EXACT_IN_A_SEARCH = 256
"""The same where the program is solved several times."""

_PROGRAM_GAP = 0.02
"""Part of ε by which the capped program's law may miss its proof: the ramp would be no nearer."""

_CAP_EQUALS_LEVEL = 1e-9
LOOSEST = 6.0
"""Where nothing is capped a ramp has caps of so many times the levels; beyond, it is a vote."""

_RUNGS = (4.0, 3.0, 2.5, 2.0, 1.5, 1.25, 1.1)
"""Stricter caps that are tried too, as multiples of the levels: the same for every request, so that
what is found for a stricter one is found for a looser one."""

_BELOW = 0.9999
"""Part of the tightest cap, as a multiple of the level, below which a rung is stricter."""

_ABOUT_AS_TIGHT = 1.25
"""Times the tightest cap, as a multiple of the level, up to which another goes with it."""

_NEXT_TO_NOTHING = 1e-3
"""Part of ε up to which the levels of some come together: their pairs, of which a drawn law tells
few digits, are not worth it if they stand in the others' way."""

_FAINT, _MANY = 0.03, 0.25
"""The same where they are left apart whenever they are such a part of all attributes: where levels
are far apart half of them may be, and a common law costs more than their levels do."""

_FAR = 0.06
"""Part of ε by which a mixture of ramps is above its bound where that is tried: nearer to it, it
took up to two seconds and gained 2 % at most."""

_CLOSE = 1.02
"""Times the optimum without caps up to which a law is taken without a look below its own caps, but
at those that are the same for every request."""

_IN_A_SEARCH, _AS_OF = 0.7, 20
"""Part of the rounds of prices that are asked for where mixtures are looked for several times, and
of how many attributes: fewer have more rounds, and there only as many."""

_AS_GOOD = 5e-4
"""Nats above a mixture up to which one ramp is preferred."""

_LANDED_BELOW = 2e-3
"""Part of ε by which a ramp as drawn may cost less than on the coarse grid of the search."""

_SAME = 1e-6
"""Part of ε by which the same ramp may differ under other caps."""

_BELOW_CAPS = (0.9, 0.8)
"""Beside one large level, the pairs of the others may break the floor at the caps as they are, and
keep it a tenth below."""

_NEAR, _NEAR_PART = 1e-3, 4e-5
"""How near the optimum without caps need be known, in nats, with its part of the levels' sum."""

_PROGRAM_AIM = 2e-11
Method = Literal["optimal", "program", "ramp", "independent", "floor"]


@dataclass(frozen=True, eq=False)
class BalancedSolution:
    """Laws that meet every level and keep caps and floor, and what that costs.

    Attributes:
        parts: one law for the attributes that have room below their cap, and one in which the
            others answer independently.
        optimum: the same levels without caps and floor.
        method: "optimal" if the unrestricted optimum keeps them anyway, "program" for the capped
            linear program, "ramp", "independent" (the Kronecker product) if nothing better was
            found, "floor" (the same) if ramps were, but none that keeps the floor.
        ramp: where the search for a ramp ended, if it found one: a start for similar requests.
        apart: attributes that answer independently of all others, because no common law was found
            that keeps their caps, and the floor on their pairs.
    """

    parts: tuple[Part, ...]
    optimum: OptimalSolution
    method: Method
    ramp: Fit | None = None
    apart: tuple[int, ...] = ()

    @property
    def epsilon(self) -> float:
        """The record's level as drawn, in nats, rounded up."""
        return record_level(self.parts)

    @property
    def weights(self) -> FloatArray:
        """λ ≥ 0 of the lower bound, shape (k,)."""
        return self.optimum.weights

    @cached_property
    def lower_bound(self) -> float:
        """No law that delivers as much, capped or not, is below, in nats; rounded down."""
        levels = delivered(self.parts)
        counts = np.empty(len(levels), dtype=np.int64)
        for part in self.parts:
            counts[list(part.attributes)] = part.law.n_categories
        return weighted_bound(counts.tolist(), levels.tolist(), self.weights.tolist())

    @property
    def gap(self) -> float:
        """How far `epsilon` can be above the unrestricted optimum at most, in nats."""
        return self.epsilon - self.lower_bound

    @property
    def cost(self) -> float:
        """What caps and floor cost: how much more ε than without them, in nats."""
        return self.epsilon - self.optimum.epsilon


def solve(
    n_categories: Sequence[int],
    attribute_epsilon: Sequence[float],
    caps: Sequence[float | None] | None,
    pair_floor: float | None,
    *,
    start: BalancedSolution | None = None,
    exact: int = EXACT_ORBITS,
) -> BalancedSolution:
    """Find a law of small record level that meets every level and keeps caps and floor.

    What is achieved is never above a requested ε_i and within 1e−9 nats below it; caps and floor
    hold for the law as drawn. (Which pairs the floor is looked at for:
    `VoteLaw.least_pair_ratio`.)

    Args:
        n_categories: a_i, shape (k,).
        attribute_epsilon: ε_i in nats, above 0, shape (k,).
        caps: for each attribute an upper bound in nats on its `epsilon_given_rest`, at least ε_i,
            or None for no bound; None for no bounds at all.
        pair_floor: t ≤ 1 such that every pair's φ_ij ≥ t φ_i φ_j; None for no floor.
        start: for the same levels up to rounding, and other caps: what is known already.
        exact: most orbits for which the capped program is solved.

    Raises:
        InputError: if the lengths differ, a number is out of its range, or a cap is below its
            level.
        SolverError: if no result passes its checks.

    Source: docs/proofs/clipped.md.

    >>> solution = solve([5] * 6, [1.0] * 6, [2.0] * 6, 0.5)
    >>> solution.method, round(solution.epsilon, 4), round(solution.cost, 4)
    ('program', 2.9775, 0.1255)
    """
    problem, limits = _request(n_categories, attribute_epsilon, caps, pair_floor)
    optimum = near_optimum(problem, limits, pair_floor) if start is None else start.optimum
    near = None
    if start is not None and start.ramp is not None:  # it may come from the search for a total
        near = replace(start.ramp, w=start.ramp.ramp.height)
    free = _by_room(problem, limits)
    best = _around(problem, limits, pair_floor, optimum, near, exact, free)
    assert best is not None
    shared, clear = free, _without_faint(problem, free, optimum.epsilon)
    far = _FAR if problem.n_attributes <= MOST_BLENDED else 0.0
    exactly = best.method in ("optimal", "program")
    if len(clear) > 1 and not exactly and best.gap > far * best.epsilon:
        fewer = _around(problem, limits, pair_floor, optimum, None, exact, clear, best.epsilon)
        if fewer is not None and fewer.epsilon < best.epsilon:
            free = free if best.method == "ramp" else []  # nothing to go on from, for as long again
            best, shared = fewer, clear
    # Caps just above the levels of some leave a common law of all little room, or none; and with
    # these alone, at their levels, the request is a stricter one.
    multiple = limits / problem.attribute_epsilon
    while free and best.method not in ("optimal", "program"):
        tightest = float(multiple[free].min())
        free = [i for i in free if multiple[i] > _ABOUT_AS_TIGHT * tightest]
        if len(free) < 2:
            break
        stricter = _around(problem, limits, pair_floor, optimum, None, exact, free, best.epsilon)
        if stricter is None:
            break
        if stricter.epsilon < best.epsilon:
            best, shared = stricter, free
        elif best.method == "ramp":
            break
    # Those of next to no level may stand in the others' way.
    dear = _of_some_level(problem, shared, _NEXT_TO_NOTHING * optimum.epsilon)
    alone = best.apart if best.method not in ("independent", "floor") else dear
    if 1 < len(dear) < len(shared) and not set(dear).isdisjoint(alone):
        fewer = _around(problem, limits, pair_floor, optimum, None, exact, dear, best.epsilon)
        best = fewer if fewer is not None and fewer.epsilon < best.epsilon else best
    return compared(best)


def _without_faint(problem: Problem, free: list[int], epsilon: float) -> list[int]:
    """Return these attributes without those of next to no level; none if these are not many.

    Which these are depends on the levels only: what is tried for a request is for a looser one.
    """
    k = problem.n_attributes
    others = _of_some_level(problem, list(range(k)), _FAINT * epsilon)
    many = len(others) <= (1.0 - _MANY) * k
    return [place for place in free if place in others] if many else []


def _of_some_level(problem: Problem, places: list[int], most: float) -> list[int]:
    """Return these attributes without those of the smallest levels, which add up to so much."""
    level = problem.attribute_epsilon[places]
    so_far = np.cumsum(np.sort(level))
    without = set(np.argsort(level, kind="stable")[so_far <= most].tolist())
    return [place for at, place in enumerate(places) if at not in without]


def _around(
    problem: Problem,
    limits: FloatArray,
    floor: float | None,
    optimum: OptimalSolution,
    near: Fit | None,
    exact: int,
    free: list[int],
    known: float = math.inf,
) -> BalancedSolution | None:
    """Solve with these attributes free to share a law, and all others alone; None if that, or with
    fewer free, costs no less than is known, whatever the law."""
    if not free:
        everyone = independent(problem, range(problem.n_attributes))
        return BalancedSolution((everyone,), optimum, "independent")
    alone = sorted(set(range(problem.n_attributes)).difference(free))
    inner = Problem(problem.n_categories[free], problem.attribute_epsilon[free])
    left = known - float(problem.attribute_epsilon[alone].sum())
    level, weights = inner.attribute_epsilon.tolist(), optimum.weights[free].tolist()
    if alone and weighted_bound(inner.counts.tolist(), level, weights) >= left:
        return None
    without = near_optimum(inner, limits[free], floor) if alone else optimum
    if without.lower_bound >= left:
        return None
    if alone and problem.n_attributes > MOST_IN_TABLE:
        exact = min(exact, EXACT_IN_A_SEARCH)
    found, method, ramp = _under(
        inner, limits[free], floor, without, None if alone else near, exact
    )
    parts = [replace(part, attributes=tuple(free[i] for i in part.attributes)) for part in found]
    apart = parts[-1].attributes if method == "ramp" and len(parts) > 1 else ()
    if alone:
        parts.append(independent(problem, alone))
        ramp = None
    return BalancedSolution(tuple(parts), optimum, method, ramp, (*apart, *alone))


def compared(solution: BalancedSolution) -> BalancedSolution:
    """Return the solution; a law that keeps caps and floor is one without them too, and where that
    search ended above it, the best that is known."""
    if solution.cost >= 0.0:
        return solution
    optimum = replace(solution.optimum, parts=solution.parts, lower_bound=solution.lower_bound)
    return replace(solution, optimum=optimum)


def _request(
    n_categories: Sequence[int],
    attribute_epsilon: Sequence[float],
    caps: Sequence[float | None] | None,
    pair_floor: float | None,
) -> tuple[Problem, FloatArray]:
    """Return the levels and the caps, checked."""
    problem = optimal.positive_levels(n_categories, attribute_epsilon)
    limits = caps_given_rest(problem, caps, "caps")
    multiples = _on_grid(limits / problem.attribute_epsilon)
    evenly = np.minimum(multiples * problem.attribute_epsilon, limits)
    limits = np.where(multiples > 1.0, evenly, limits)
    if pair_floor is not None and not pair_floor <= 1.0:
        raise InputError(
            f"pair_floor: at most 1, what independent responses reach, not {pair_floor:g}"
        )
    return problem, limits


def near_optimum(
    problem: Problem, limits: FloatArray, floor: float | None, *, blocks: bool = True
) -> OptimalSolution:
    """Return the optimum without caps and floor: where these are asked for, what the answer is
    compared with, and to no more digits than that takes, whether or not anything is capped, so that
    looser caps are searched for from the same heights. With or without a search for blocks."""
    near = _NEAR + _NEAR_PART * float(problem.attribute_epsilon.sum())
    exact = floor is None and not np.isfinite(limits).any()
    return _optimum(problem, 0.0 if exact else near, blocks)


def _optimum(problem: Problem, gap: float, blocks: bool = True) -> OptimalSolution:
    level = problem.attribute_epsilon.tolist()
    return optimal.solve(problem.counts.tolist(), level, gap=max(gap, 1e-9), blocks=blocks)


def _by_room(problem: Problem, limits: FloatArray) -> list[int]:
    """Return the attributes with room between level and cap."""
    room = limits - problem.attribute_epsilon > _CAP_EQUALS_LEVEL
    free: list[int] = np.flatnonzero(room).tolist()
    return free if len(free) > 1 else []  # beside independent ones, one has nothing to gain


def _under(
    problem: Problem,
    limits: FloatArray,
    floor: float | None,
    optimum: OptimalSolution,
    near: Fit | None,
    exact: int,
) -> tuple[list[Part], Method, Fit | None]:
    """Solve for attributes that all have room below their caps."""
    parts, method, ramp = _under_all(problem, limits, floor, optimum, near, exact)
    tightest = _tightest_of_uneven(problem, limits)
    # Beyond tables, what is mixed for uneven caps, or the single ramps that are looked for, have
    # what is for their tightest multiple.
    tables = problem.n_attributes <= MOST_IN_TABLE
    if method in ("optimal", "program") or tightest is None or not tables:
        return parts, method, ramp
    # Of fewer orbits, and of a stricter request: its answer is one here.
    even = _under(problem, tightest, floor, optimum, None, exact)
    return even if record_level(even[0]) < record_level(parts) else (parts, method, ramp)


def _under_all(
    problem: Problem,
    limits: FloatArray,
    floor: float | None,
    optimum: OptimalSolution,
    near: Fit | None,
    exact: int,
) -> tuple[list[Part], Method, Fit | None]:
    """Solve under these caps, whatever stricter ones would find."""
    if _all_keep(optimum.parts, limits, floor):
        if floor is not None and not np.isfinite(limits).any():
            exact_optimum = _optimum(problem, 0.0)
            optimum = exact_optimum if _all_keep(exact_optimum.parts, limits, floor) else optimum
        return list(optimum.parts), "optimal", None
    product = independent(problem, range(problem.n_attributes))
    few = problem.n_attributes <= MOST_IN_TABLE
    if few and (table := capped_table(problem, limits, floor, exact)):
        better = _costs_less(table, product)
        return ([table], "program", None) if better else ([product], "independent", None)
    search = CommonSearch(problem, limits, floor, optimum.epsilon)
    if few:
        mixed = search.mixed(near)
        if mixed and search.tabled and _costs_less(mixed.part, product):
            return [mixed.part], "ramp", mixed.fit
    best = search.best(near)
    if few and mixed and mixed.part.account.epsilon < record_level(best.parts):
        return [mixed.part], "ramp", mixed.fit  # of fewer orbits
    if record_level(best.parts) < product.account.epsilon:
        return best.parts, "ramp", best.ramp
    # A table that is too large for much is better than independent responses.
    table = None if few else capped_table(problem, limits, floor, exact)
    if table is not None and _costs_less(table, product):
        return [table], "program", None
    return [product], "floor" if best.broken else "independent", None


def _on_grid(multiples: FloatArray) -> FloatArray:
    """Return caps as multiples of the levels, rounded down: what is mixed may differ by 0.1 nats
    for caps that differ by a rounding, and the same caps in another request are the same here."""
    return np.asarray(np.floor(multiples * 1e9 + 1e-3) / 1e9)


def _tightest_of_uneven(problem: Problem, limits: FloatArray) -> FloatArray | None:
    """Return the caps that are all the tightest multiple of the levels; None if they all are."""
    multiples = _on_grid(np.minimum(limits / problem.attribute_epsilon, LOOSEST))
    tightest = float(multiples.min())
    even = float(multiples.max()) <= tightest * (1.0 + 1e-9)
    return None if even else np.minimum(tightest * problem.attribute_epsilon, limits)


def _costs_less(part: Part, than: Part) -> bool:
    return part.account.epsilon < than.account.epsilon


@dataclass
class _Common:
    """What a common law of all but some attributes is, and these.

    Attributes:
        parts: laws; none if none was found.
        ramp: that the common law is, if there are no others.
        broken: whether the floor was broken on the way.
    """

    parts: list[Part]
    ramp: Fit | None
    broken: bool


class _Together:
    """The best common law of some attributes, as more and more caps are tried.

    Attributes:
        places: of the attributes.
        best: the law, and the ramp that it is or is near to.
        least: its ε; what independent responses have at first.
        ramps: the best whatever the floor, by rung, where they are known.
        cover: attributes that stand in the floor's way under the first caps where some do.
        broken: whether the floor was broken.
    """

    def __init__(self, places: list[int], independent: float) -> None:
        self.places = places
        self.best: tuple[Part, Fit | None] | None = None
        self.least = independent
        self.ramps: dict[float, Fit | None] = {}
        self.cover: list[int] = []
        self.broken = False

    def take(self, part: Part, ramp: Fit | None, epsilon: float) -> None:
        """Hold a law if it is better than what is held."""
        if epsilon < self.least:
            self.best, self.least = (part, ramp), epsilon


class CommonSearch:
    """The search for a common law of attributes that all have room below their caps.

    Args:
        problem: the attributes, k of them.
        limits: their caps in nats, shape (k,).
        floor: t, or None.
        without: what the record costs without caps and floor, in nats.

    Attributes:
        tabled: whether ramps are mixed over a table of patterns.
    """

    def __init__(
        self, problem: Problem, limits: FloatArray, floor: float | None, without: float
    ) -> None:
        self._problem, self._floor, self._without = problem, floor, without
        self._level = _tied(problem, limits)
        self._aimed = self._level - np.minimum(AIM, 1e-3 * self._level)
        self._caps = np.minimum(limits, LOOSEST * problem.attribute_epsilon)
        self._multiples = self._caps / problem.attribute_epsilon
        self._rungs = rungs(self._multiples, floor)
        self._height = without + min(0.35, 0.1 * without)
        kinds = np.stack([problem.n_categories, self._level, np.round(self._caps, 9)])
        alike = np.unique(kinds, axis=1, return_counts=True)[1]
        few = problem.n_attributes <= MOST_IN_TABLE
        self.tabled = few and math.prod((alike + 1).tolist()) <= MOST_ORBITS

    def mixed(self, near: Fit | None) -> Mixed | None:
        """Return the best mixture over a table of patterns, and the best ramp; None if it would be
        too large."""
        if not self.tabled:
            return None
        caps = [self._under(rung) for rung in rungs(self._multiples, None)]
        return mixture(self._problem.counts, self._aimed, caps, self._height, self._floor, near)

    def mixtures(self) -> Mixed | Blend | None:
        """Return the best mixture that is found, and what it finds for other levels; None beyond
        the attributes of which ramps are mixed."""
        if self.tabled:
            return self.mixed(None)
        if self._problem.n_attributes > MOST_BLENDED:
            return None
        caps = [self._under(rung) for rung in rungs(self._multiples, None)]
        counts, floor = self._problem.counts, self._floor
        times = _IN_A_SEARCH * min(len(counts) / _AS_OF, 1.0)
        return blended(counts, self._aimed, caps, self._height, floor, times=times)

    def _under(self, rung: float) -> FloatArray:
        return np.minimum(self._caps, rung * self._level)

    def best(self, near: Fit | None) -> _Common:
        """Return the best law found, with the attributes set apart that stand in its way."""
        best = self._common([], self._height, near)
        largest = int(np.argmax(self._level))
        costly = record_level(best.parts) > 1.1 * self._without
        if self._floor is None or not costly or self._level[largest] <= 0.5 * self._without:
            return best
        # Beside a level that takes most of ε the others' pairs rise with it, or break the floor.
        rest = Problem(
            np.delete(self._problem.n_categories, largest), np.delete(self._level, largest)
        )
        about, left = limit_epsilon(rest), record_level(best.parts) - float(self._level[largest])
        if about >= left and near_optimum(rest, self._caps, self._floor).lower_bound >= left:
            return best  # whatever the law of the others
        without = self._common([largest], 1.1 * about, None)
        return min(best, without, key=lambda one: record_level(one.parts))

    def _common(self, apart: list[int], height: float, near: Fit | None) -> _Common:
        """Solve for all but these; and without more, as long as their pairs break the floor."""
        k = self._problem.n_attributes
        broken = False
        while True:
            together = _Together(*self._all_but(apart))
            if not self._blended(together, height):
                self._try_ramps(together, height, near)
            broken |= together.broken
            if together.best is not None:
                inner, ramp = together.best
                inner = replace(inner, attributes=tuple(together.places))
                alone = [independent(self._problem, sorted(apart))] if apart else []
                return _Common([inner, *alone], None if apart else ramp, broken)
            near = None
            apart = apart + [together.places[place] for place in together.cover]
            if not together.cover or k - len(apart) < 2:
                return _Common([independent(self._problem, range(k))], None, broken)

    def _all_but(self, apart: list[int]) -> tuple[list[int], float]:
        """Return all other attributes, and what they cost alone."""
        places = sorted(set(range(self._problem.n_attributes)) - set(apart))
        return places, math.fsum(self._level[places].tolist())

    def _blended(self, together: _Together, height: float) -> bool:
        """Take the best mixture of ramps, or one that is as good; return whether there is one."""
        if self.tabled or len(together.places) > MOST_BLENDED:
            return False
        tried = rungs(self._multiples, None)
        counts, aimed = self._problem.counts[together.places], self._aimed[together.places]
        caps = [self._under(rung)[together.places] for rung in tried]
        found = blended(counts, aimed, caps, height, self._floor)
        together.ramps = dict(zip(tried, found.ramps, strict=True))
        if found.part is None:
            return False
        together.take(found.part, found.best, found.part.account.epsilon)
        # One ramp is simpler, and drawn sooner.
        most, ramp = together.least + _AS_GOOD, math.inf
        for limits, near in zip(caps, (found.ramp or found.best, found.evenly), strict=False):
            if near is None or near.w >= most:
                continue
            ramps = at_levels(counts, aimed, limits, height, self._floor)
            landed = ramps.best(near, most)
            if landed is not None and landed[1].w < ramp:
                ramp = together.least = landed[1].w
                together.best = ramps.part(*landed), landed[1]
        return together.best is not None

    def _try_ramps(self, together: _Together, height: float, near: Fit | None) -> None:
        """Try the ramp of one rung after the other."""
        places = together.places
        used, tightest = math.inf, float(self._multiples.min())
        unchanged, up = math.inf, True
        whole = len(places) == self._problem.n_attributes
        below = {part * tightest for part in _BELOW_CAPS}
        for rung in self._rungs:
            if used <= rung < tightest:
                continue  # what was found last keeps these caps too
            if whole and rung in below and together.least <= _CLOSE * self._without:
                continue
            caps = self._under(rung)[places]
            counts, aimed = self._problem.counts[places], self._aimed[places]
            limits = self._caps[places]
            ramps = at_levels(counts, aimed, caps, height, self._floor, limits=limits)
            free = together.ramps.get(rung)
            worst = (1.0 + _LANDED_BELOW) * together.least
            found, near = ramps.best(near, worst, free=free, up=up), None
            together.cover = together.cover or ramps.broken
            together.broken |= ramps.floor_broken
            if found is not None:
                part = ramps.part(*found)
                used = float((part.account.epsilon_given_rest / self._level[places]).max())
                together.take(part, found[1], found[1].w)
            if together.best and ramps.beaten:
                break  # without the floor stricter caps cost more, and with it no less
            if ramps.ends_unchanged and self._floor == 1.0:
                break  # of ramps that end so stricter caps cost more, and only they keep this floor
            # Two that end so: under stricter caps the best may keep the floor as it is.
            up = up and not (ramps.ends_unchanged and ramps.kept >= unchanged)
            unchanged = (1.0 - _SAME) * ramps.kept if ramps.ends_unchanged else math.inf


def rungs(caps: FloatArray, floor: float | None) -> list[float]:
    """Return the stricter caps that are tried, as multiples of the levels.

    Args:
        caps: the same, as they are, shape (k,).
        floor: t.

    Returns:
        Infinity for the caps as they are; the tightest of them, where they differ; and stricter
        ones.
    """
    tightest = float(caps.min())
    near = () if floor is None else _BELOW_CAPS
    stricter = {*_RUNGS, *(part * tightest for part in near)}
    below = sorted((rung for rung in stricter if 1.02 < rung < _BELOW * tightest), reverse=True)
    uneven = [tightest] if float(caps.max()) > tightest * (1 + 1e-9) else []
    return [math.inf, *uneven, *below]


def _tied(problem: Problem, limits: FloatArray) -> FloatArray:
    """Return the levels, with those that differ by rounding made the smallest of them: attributes
    that are alike then have one slope."""
    kinds = np.stack([problem.n_categories, np.round(problem.attribute_epsilon, 10), limits])
    kind = np.unique(np.round(kinds, 9), axis=1, return_inverse=True)[1].ravel()
    least = np.full(int(kind.max()) + 1, np.inf)
    np.minimum.at(least, kind, problem.attribute_epsilon)
    return np.asarray(least[kind])


def _all_keep(parts: Sequence[Part], limits: FloatArray, floor: float | None) -> bool:
    """Whether caps and floor hold already; pairs in different parts have a ratio of 1."""
    capped = all(
        bool(np.all(part.account.epsilon_given_rest <= limits[list(part.attributes)]))
        for part in parts
    )
    return capped and keep_floor((part.law for part in parts), floor)


def capped_table(
    problem: Problem, limits: FloatArray, floor: float | None, exact: int
) -> Part | None:
    """Return the capped linear program's law; None where it is too large or its numbers fail."""
    k = problem.n_attributes
    if k > linear.MAX_ATTRIBUTES or len(orbits(problem, limits.tolist()).chance) > exact:
        return None
    level = problem.attribute_epsilon
    aimed = level - np.minimum(_PROGRAM_AIM, 1e-3 * level)
    # As for the levels, so that rounding ends below the cap; never below the level aimed at.
    caps = [
        None if math.isinf(cap) else max(cap - _PROGRAM_AIM, aim)
        for cap, aim in zip(limits.tolist(), aimed.tolist(), strict=True)
    ]
    try:
        law, solution = linear.drawn(
            problem.counts.tolist(),
            aimed.tolist(),
            given_rest_cap=caps,
            pair_floor=floor,
            max_gap=_PROGRAM_GAP,
        )
    except (SolverError, InputError, ArithmeticError):
        return None
    account = Account(
        solution.epsilon, level, aimed * (1 - 1e-12), np.minimum(limits, solution.epsilon)
    )
    return Part(tuple(range(k)), law, account)
