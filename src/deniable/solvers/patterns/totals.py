"""The largest levels in given ratios whose balanced law costs no more than a total.

One search for the scale of the levels, by secants of ln ε over ln scale, around what `balanced`
finds at given levels: of few attributes the linear program, else a ramp, else a mixture. Ramps that
were found at one scale are good starts at the next, and those that were mixed at one can be mixed
to meet larger levels, so that a step takes a few hundredths of a second.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeVar

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.proofs.certificate import weighted_bound
from deniable.proofs.problem import Problem, SolverError, checked_problem, optional_limits
from deniable.solvers.patterns import balanced
from deniable.solvers.patterns.balanced import (
    EXACT_IN_A_SEARCH,
    LOOSEST,
    BalancedSolution,
    Method,
    capped_table,
    compared,
    unrestricted,
)
from deniable.solvers.patterns.importance import limit_epsilon
from deniable.solvers.patterns.optimal import (
    MOST_IN_TABLE,
    OptimalSolution,
    Part,
    independent,
    record_level,
)
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramps.mixture import ROUNDS, Pool
from deniable.solvers.patterns.ramps.newton import Fit
from deniable.solvers.patterns.ramps.one_law import MOST_MIXED, CommonLaw, keep_floor

UNSPENT = 1e-7
"""Part of a total that may be left: levels are known to 1e-9 nats."""

_BELOW_LIMIT = 0.9
"""Part of a cap in nats up to which a total's division raises a level, while others can rise: at
the cap itself only an independent response keeps it."""

T = TypeVar("T")
_Found = tuple[float, T] | None
"""ε in nats and what has it; None where nothing is found."""


@dataclass(frozen=True, eq=False)
class Spent:
    """A total divided: levels, and laws that meet them.

    Attributes:
        levels: ε_i in nats, shape (k,); no law exceeds them.
        parts: the laws; their record level is at most the total.
        solve: from them to what the optimum at these levels is known to cost, which takes a search
            of its own.
    """

    levels: FloatArray
    parts: tuple[Part, ...]
    solve: Callable[[], BalancedSolution]

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

    ``n_categories``: a_i, shape (k,). ``total``: of the record, in nats. ``ratios``: proportions of
    the levels, shape (k,), in nats at scale 1. ``at_most``: largest ε_i, infinite for none, shape
    (k,). ``multiple``: the cap on `epsilon_given_rest` as a multiple of ε_i, above 1; infinite for
    none. ``limits``: caps in nats, None for none; with the multiple, the smaller holds.

    >>> spent = spend([5] * 6, 3.0, [1.0] * 6, [math.inf] * 6, 2.0, 0.5)
    >>> spent.levels.round(4).tolist()[:2], 0 <= 3.0 - spent.solution.epsilon < 1e-6
    ([1.0065, 1.0065], True)
    """
    search = _TotalSearch(n_categories, total, ratios, at_most, multiple, limits, pair_floor, fair)
    return search.best(search.about() if scale is None else scale)


class _Reached(NamedTuple):
    """Levels, laws that meet them, and how they were found."""

    levels: FloatArray
    parts: list[Part]
    method: Method

    @property
    def worth(self) -> float:
        """The sum of the levels' logarithms: of scales that is the order, but beyond the scale at
        which every level is the largest it may be there is nothing to gain."""
        return float(np.log(self.levels).sum())


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
        # d ln ε/d ln scale, here as at ordinary levels; of small ones it is 1.
        self._slope = 1.2
        self._at_most = np.minimum(self._alone, _BELOW_LIMIT * self._limits)

    def about(self) -> float:
        """Return about the scale at which the optimum spends the total: see `limit_epsilon`."""
        low = math.log(self._total / math.fsum(self._ratios.tolist()))
        high = math.log(self._total / float(self._ratios.min()))
        for _ in range(40):
            middle = 0.5 * (low + high)
            levels = np.minimum(self._levels(math.exp(middle)), self._total)
            needed = limit_epsilon(self._at(levels))
            low, high = (middle, high) if needed <= self._total else (low, middle)
        return math.exp(low)

    def best(self, scale: float) -> Spent:
        """Return the levels at the largest scale that was found, and their laws."""
        scale = min(scale, float((self._at_most / self._ratios).max()))  # beyond, none rises
        product = self._independent()
        if math.fsum(self._alone.tolist()) > self._total > float(self._at_most.max()):
            whole = self._solved(self._at_most)
            if whole is not None and record_level(whole[0]) <= self._total:
                return self._spent(_Reached(self._at_most, *whole))
        found, few = None, self._problem.n_attributes <= MOST_IN_TABLE
        if few and len(orbits(self._problem, self._at_most.tolist()).chance) <= EXACT_IN_A_SEARCH:
            found = self._drawn(scale, self._program, "program")
        if found is None and not self._fair:
            found = self._by_ramps(scale)
        return self._spent(max(filter(None, (product, found)), key=lambda one: one.worth))

    def _spent(self, reached: _Reached) -> Spent:
        return Spent(reached.levels, tuple(reached.parts), lambda: self._solution(reached))

    def _solution(self, reached: _Reached) -> BalancedSolution:
        problem, parts = self._at(reached.levels), tuple(reached.parts)
        try:
            optimum = unrestricted(problem, restricted=True)
        except SolverError:  # as where next to nothing is changed: nothing but this law is known
            levels = reached.levels
            bound = weighted_bound(problem.counts.tolist(), levels.tolist(), levels.tolist())
            optimum = OptimalSolution(parts, levels, bound, "blocks")
        return compared(BalancedSolution(parts, optimum, reached.method))

    def _levels(self, scale: float) -> FloatArray:
        return np.minimum(scale * self._ratios, self._at_most)

    def _caps(self, levels: FloatArray) -> FloatArray:
        return np.minimum(self._multiple * levels, self._limits)

    def _at(self, levels: FloatArray) -> Problem:
        return checked_problem(self._problem.counts.tolist(), levels.tolist())

    def _independent(self) -> _Reached:
        """Independent responses: their levels, which may be at their caps, add up to the total."""
        low, high = 0.0, self._total / float(self._ratios.min())
        for _ in range(200):
            middle = 0.5 * (low + high)
            levels = np.minimum(middle * self._ratios, self._alone)
            spends = math.fsum(levels.tolist()) > self._total * (1 - 1e-14)
            low, high = (low, middle) if spends else (middle, high)
        levels = np.minimum(low * self._ratios, self._alone)
        parts = [independent(self._at(levels), range(len(levels)))]
        return _Reached(levels, parts, "independent")

    def _largest(self, scale: float, look: Callable[[FloatArray], _Found[T]]) -> _Found[T]:
        """Return the largest scale found at which levels cost no more than the total, and what was
        found there, by secants of ln ε over ln scale; None if there is none.

        ``look``: from levels to their ε in nats and what has it; None where nothing is found.
        """
        best, low, high = None, -math.inf, math.inf
        at, last = math.log(scale), None
        aim = math.log((1.0 - 0.4 * UNSPENT) * self._total)
        for _ in range(14):  # five are the rule
            levels = self._levels(math.exp(at))
            found = look(levels)
            if found is None:
                high, at = min(high, at), -math.inf
            else:
                over = math.log(found[0]) - aim
                if found[0] <= self._total:
                    low, best = max(low, at), (math.exp(at), found[1])
                    if over > -UNSPENT or np.array_equal(levels, self._at_most):
                        return best
                else:
                    high = min(high, at)
                if last is not None and (over - last[1]) * (at - last[0]) > 0.0:
                    self._slope = min(max((over - last[1]) / (at - last[0]), 0.02), 20.0)
                last, at = (at, over), at - over / self._slope
            if not low < at < high:
                at = 0.5 * ((low if low > -math.inf else high - 1.0) + high)
        return best

    def _drawn(
        self, scale: float, look: Callable[[FloatArray], Part | None], method: Method
    ) -> _Reached | None:
        """Return the law at the largest levels that cost no more than the total."""

        def drawn(levels: FloatArray) -> _Found[_Reached]:
            part = look(levels)
            if part is None:
                return None
            return record_level([part]), _Reached(levels, [part], method)

        best = self._largest(scale, drawn)
        return None if best is None else best[1]

    def _program(self, levels: FloatArray) -> Part | None:
        """Return the law of the capped linear program."""
        caps, floor = self._caps(levels), self._floor_at(levels)
        return capped_table(self._at(levels), caps, floor, EXACT_IN_A_SEARCH)

    def _solved(self, levels: FloatArray) -> tuple[list[Part], Method] | None:
        counts, caps = self._problem.counts.tolist(), self._caps(levels).tolist()
        try:
            found = balanced.solve(counts, levels.tolist(), caps, self._floor_at(levels))
        except SolverError:
            return None
        return list(found.parts), found.method

    def _floor_at(self, levels: FloatArray) -> float | None:
        """Return t, raised where that is asked for: φ_ij ≥ φ'_i φ'_j, with φ' of independent
        responses that spend the same."""
        if not self._fair:
            return self._floor
        counts = self._problem.n_categories
        fair = Problem(counts, self._independent().levels)
        share = np.sort(fair.keep_excess / Problem(counts, levels).keep_excess)[-2:]
        return max(self._floor or 0.0, min(1.0, float(np.prod(share))))

    def _by_ramps(self, scale: float) -> _Reached | None:
        """Return what ramps buy, one or a mixture of them."""
        near: Fit | None = None

        def searched(levels: FloatArray) -> _Found[Fit]:
            nonlocal near
            near = self._common(levels).best(near)
            return None if near is None else (near.ramp.height, near)

        reached = self._largest(0.9 * scale, searched)
        if reached is None:
            return None
        scale, one = reached
        keeps = self._common(self._levels(scale)).keeps_floor(one)
        if not keeps and len(self._ratios) <= MOST_MIXED:
            return self._by_mixture(0.97 * scale, one)  # about what the floor costs

        def single(levels: FloatArray, *, sure: bool) -> Part | None:
            nonlocal one
            common = self._common(levels)
            one = common.best(one) or one
            return common.single(one, sure=sure)

        # Of many attributes all pairs take longer than all else: they are looked at once, at last.
        for sure in (False, True):
            found = self._drawn(scale, partial(single, sure=sure), "ramp")
            if found is None or keep_floor([found.parts[0].law], self._floor):
                return found
        return None

    def _by_mixture(self, scale: float, near: Fit) -> _Reached | None:
        """Return what mixtures of ramps buy: first of ramps about single ones, then of those that
        the linear program asks for at the scale which these reach."""

        def mixture(levels: FloatArray) -> _Found[None]:
            found = self._common(levels).mixture(pool)
            return None if found is None else (found.epsilon, None)

        pool = self._pool(scale, near)
        for _ in range(3):
            found = mixture(self._levels(scale))
            if found is None or found[0] <= self._total:
                break
            scale *= 0.98 * self._total / found[0]  # the ramps would be steeper than the caps there
            pool = self._pool(scale, near)
        for rounds in (ROUNDS // 2, ROUNDS // 2):
            self._common(self._levels(scale)).price(pool, rounds)
            reached = self._largest(scale, mixture)
            scale = max(scale, reached[0]) if reached is not None else scale
        return self._drawn(scale, lambda levels: self._common(levels).mixed(pool), "ramp")

    def _pool(self, scale: float, near: Fit) -> Pool:
        """Return ramps to mix at a scale."""
        common = self._common(self._levels(scale))
        return common.pool(common.best(near))

    def _common(self, levels: FloatArray) -> CommonLaw:
        caps = np.minimum(self._caps(levels), LOOSEST * levels)
        return CommonLaw(self._at(levels), caps, self._floor, self._total)
