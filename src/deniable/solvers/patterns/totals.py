"""The largest levels whose balanced law costs no more than a total, found with the law together.

What is best of independent responses, the ramps that spend the total (`total_ramps`) and, of few
orbits, the capped program. Where a floor on pairs stood in the way, ramps are mixed: those that are
mixed at some levels can be mixed to meet larger ones.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.solvers.patterns import balanced, linear
from deniable.solvers.patterns.balanced import (
    EXACT_IN_A_SEARCH,
    BalancedSolution,
    CommonSearch,
    Method,
    capped_table,
    compared,
    near_optimum,
)
from deniable.solvers.patterns.certificate import weighted_bound
from deniable.solvers.patterns.importance import limit_epsilon
from deniable.solvers.patterns.optimal import (
    MAX_EXACT,
    OptimalSolution,
    Part,
    independent,
    record_level,
)
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramp_landing import MOST_IN_TABLE
from deniable.solvers.patterns.ramp_laws import AIM
from deniable.solvers.patterns.total_ramps import (
    UNSPENT,
    Division,
    Reached,
    Secant,
    TotalRamps,
    worth,
)
from deniable.solvers.problem import Problem, SolverError, checked_problem, optional_limits

_PROGRAMS, _SOLVED, _SOLVED_OF_MANY = 14, 5, 3
"""Levels at most that are tried by secants for which a program is solved, or a design found: of
more attributes than a table holds each takes seconds."""

_OPTIMA, _UNSPENT_OF_MANY = 8, 2e-5
"""The same for which the optimum is found, and beyond `MAX_EXACT` attributes the part of the total
that may be left: about as much as neighbouring optima, each as near as it was found, differ by."""

_MOST_UNRESTRICTED = 40
"""Attributes up to which that is done: of 60, one of thousands of categories, each optimum takes
four seconds."""

_SLOPES = 0.02, 20.0
"""Least and most of d ln ε / d ln scale, where programs and mixtures are solved by secants."""

_MUCH = 1.1
"""Times the scale that independent responses reach, from which on the optimum's without caps shows
that something better may be found."""

_POOLS, _AFRESH = 3, 1.08
"""How often ramps to mix are looked for at most, and from how many times the levels on again at
those that were bought."""

_CELL = 0.02
"""Spacing, in its logarithm, of each of the levels at which ramps to mix are looked for: requests
that differ little look at the same ones, where chance would else decide which buys more."""

_MIXED_TO, _MIXED_GAINS = 23, 1e-3
"""Attributes up to which ramps are mixed after one was found: beyond, that takes long. And what is
gained at least, in the sum of the levels' logarithms: mixtures take longer to draw."""

_BELOW_LIMIT = 0.9
"""Part of a cap in nats up to which a total's division raises a level, while others can rise: at
the cap itself only an independent response keeps it."""


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
        self._division = Division(
            self._problem, total, self._at_most, multiple, self._limits, pair_floor
        )
        capped = multiple < math.inf or bool(np.isfinite(self._limits).any())
        floored = pair_floor is not None or fair
        few = self._problem.n_attributes <= _MOST_UNRESTRICTED
        self._unrestricted_of_few = few and not capped and not floored
        kinds = [self._problem.n_categories, self._ratios, self._at_most, self._limits]
        kind_of = np.unique(np.stack(kinds), axis=1, return_inverse=True)[1].ravel()
        self._ramps = TotalRamps(self._division, kind_of)
        self._found: dict[bytes, BalancedSolution] = {}  # by levels

    def about(self) -> float:
        """Return about the scale at which the optimum spends the total: see `limit_epsilon`."""
        low = math.log(self._total / math.fsum(self._ratios.tolist()))
        high = math.log(self._total / float(self._ratios.min()))
        for _ in range(40):
            middle = 0.5 * (low + high)
            levels = np.minimum(self._division.levels(math.exp(middle)), self._total)
            needed = limit_epsilon(checked_problem(self._problem.counts.tolist(), levels.tolist()))
            low, high = (middle, high) if needed <= self._total else (low, middle)
        return math.exp(low)

    def best(self, scale: float) -> Spent:
        """Return the levels at the largest scale that was found, and their laws."""
        scale = min(scale, float((self._at_most / self._ratios).max()))  # beyond, none rises
        if self._unrestricted_of_few and (unrestricted := self._unrestricted(scale)):
            return unrestricted
        most, product = self._at_most, self._independent()
        if math.fsum(self._alone.tolist()) > self._total > float(most.max()):
            whole = self._all_below_limits(most)
            if whole is not None:
                return self._spent(max(product, whole, key=worth))
        best = product
        ramps = None if self._fair else self._ramps.best(scale, worth(product))
        if ramps is not None and not self._spends(ramps):
            ramps = None
        if ramps is not None and worth(ramps) > worth(best):
            best = ramps
        most_in_table = MOST_IN_TABLE if best is ramps else linear.MAX_ATTRIBUTES
        if self._problem.n_attributes <= most_in_table:
            grouped = orbits(self._problem, self._at_most.tolist())
            if len(grouped.chance) <= EXACT_IN_A_SEARCH:
                start = best.scale if ramps is None else max(ramps.scale, best.scale)
                program = self._by_secants(start, self._program, _PROGRAMS)
                # A table is drawn faster than a ramp; independent responses are simpler than both.
                gain = 1e-6 if best is product else -1e-6
                if program is not None and worth(program) >= worth(best) + gain:
                    best = program
        if best is product and not self._fair and scale > _MUCH * product.scale:
            # Newton steps to a ramp may settle nowhere, as with levels far apart at a small total.
            start = math.sqrt(product.scale * self._division.start(scale, 0.8))
            times = _SOLVED if self._problem.n_attributes <= MOST_IN_TABLE else _SOLVED_OF_MANY
            solved = self._mixed(start, lower=True) or self._by_secants(start, self._solved, times)
            if solved is not None and worth(solved) > worth(best):
                best = solved
        return self._spent(best)

    def _unrestricted(self, scale: float) -> Spent | None:
        """Return what the optimum buys, without caps and floor; None if that does not spend the
        total."""
        unspent = UNSPENT if self._problem.n_attributes <= MAX_EXACT else _UNSPENT_OF_MANY
        reached = self._by_secants(scale, self._solved, _OPTIMA, unspent=unspent)
        if reached is None or not self._spends(reached, unspent):
            return None
        return self._spent(reached)

    def _spent(self, reached: Reached) -> Spent:
        def mix() -> Spent | None:
            if (
                reached.ramp is None
                or not self._ramps.floor_broken
                or len(reached.levels) > _MIXED_TO
            ):
                return None
            mixed = self._mixed(reached.scale)
            if mixed is None or worth(mixed) <= worth(reached) + _MIXED_GAINS:
                return None
            return self._spent(mixed) if self._spends(mixed) else None

        parts = tuple(reached.parts)
        return Spent(reached.levels, parts, lambda: self._solution(reached), mix)

    def _spends(self, reached: Reached, unspent: float = UNSPENT) -> bool:
        return record_level(reached.parts) > (1.0 - 2.0 * unspent) * self._total

    def _solution(self, reached: Reached) -> BalancedSolution:
        _, levels, parts, method, ramp, _ = reached
        known = self._found.get(levels.tobytes())
        if known is not None and list(known.parts) == parts:
            return known
        problem = checked_problem(self._problem.counts.tolist(), levels.tolist())
        caps = self._division.caps(levels)
        try:
            optimum = near_optimum(problem, caps, self._floor, blocks=False)
        except SolverError:  # as where next to nothing is changed: nothing but this law is known
            bound = weighted_bound(problem.counts.tolist(), levels.tolist(), levels.tolist())
            optimum = OptimalSolution(tuple(parts), levels, bound, "blocks")
        return compared(BalancedSolution(tuple(parts), optimum, method, ramp))

    def _all_below_limits(self, most: FloatArray) -> Reached | None:
        """Return what the total buys where every level may be as large as a division makes it: the
        same part of all caps; None if these levels cost more than the total."""

        def levels(nearness: float) -> FloatArray:
            # The part by which levels are below caps halves where ε rises by about as much.
            return np.minimum((1.0 - 1.0 / nearness) * self._limits, self._alone)

        def look(levels: FloatArray) -> _Laws | None:
            counts, caps = self._problem.counts.tolist(), self._division.caps(levels).tolist()
            whole = balanced.solve(counts, levels.tolist(), caps, self._floor_at(levels))
            over = whole.epsilon > self._total
            return None if over and (levels <= most).all() else (list(whole.parts), whole.method)

        grouped = orbits(self._problem, most.tolist()) if len(most) <= MOST_IN_TABLE else None
        quick = grouped is not None and len(grouped.chance) <= EXACT_IN_A_SEARCH
        times = _PROGRAMS if quick else _SOLVED
        top = math.fsum(self._alone.tolist())
        return self._by_secants(1.0 / (1.0 - _BELOW_LIMIT), look, times, levels, top)

    def _apart(self, scale: float) -> FloatArray:
        """Return the levels of independent responses: these may be at their caps."""
        return np.minimum(scale * self._ratios, self._alone)

    def _independent(self) -> Reached:
        """Independent responses: their levels add up to the total."""
        low, high = 0.0, self._total / float(self._ratios.min())
        for _ in range(200):
            middle = 0.5 * (low + high)
            spends = math.fsum(self._apart(middle).tolist()) > self._total * (1 - 1e-14)
            low, high = (low, middle) if spends else (middle, high)
        levels = self._apart(low)
        problem = Problem(self._problem.n_categories, levels)
        parts = [independent(problem, range(problem.n_attributes))]
        return Reached(low, levels, parts, "independent", None)

    def _mixed(self, scale: float, *, lower: bool = False) -> Reached | None:
        """Return what mixtures of ramps buy.

        What is mixed at some levels can be mixed to meet larger ones, of looser caps, so that the
        scale follows without a further search.

        Args:
            scale: where to begin.
            lower: whether to go on at smaller levels where these cost more than the total.
        """
        best: Reached | None = None
        for _ in range(_POOLS):
            levels = _on_lattice(self._division.levels(scale))
            problem = checked_problem(self._problem.counts.tolist(), levels.tolist())
            caps, about = self._division.caps(levels), float(_on_lattice(self._total))
            mixed = CommonSearch(problem, caps, self._floor, about).mixtures()
            if mixed is None or mixed.part is None:
                break
            costs = mixed.part.account.epsilon / self._total
            if costs > 1.0 and lower:
                scale /= costs * costs
                continue
            found = self._by_secants(scale, partial(self._met, mixed.meeting), _PROGRAMS)
            if found is None or (best is not None and worth(found) <= worth(best)):
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
        part = meeting(levels - np.minimum(AIM, 1e-3 * levels), self._division.caps(levels))
        return None if part is None else ([part], "ramp")

    def _by_secants(
        self,
        scale: float,
        look: Callable[[FloatArray], _Laws | None],
        times: int,
        levels_at: Callable[[float], FloatArray] | None = None,
        top: float = math.inf,
        unspent: float = UNSPENT,
    ) -> Reached | None:
        """Return the best of laws at levels, by secants of ln ε over ln scale; of −ln(top − ε), if
        no scale costs as much as a top.

        Args:
            scale: where to begin.
            look: returns the laws at levels, and how they were found, if they were.
            times: that this is done at most.
            levels_at: returns the levels at a scale, if they are not the division's.
            top: as said, in nats.
            unspent: part of the total that may be left.
        """
        aim = (1.0 - 0.4 * unspent) * self._total
        best: Reached | None = None
        levels = np.empty(0)
        low, high = -math.inf, math.inf
        # Where levels are at their largest, or near their caps, ε rises slowly or steeply.
        at, secant = math.log(scale), Secant(1.1 if math.isinf(top) else 0.3, *_SLOPES)
        for _ in range(times):
            last, levels = levels, (levels_at or self._division.levels)(math.exp(at))
            if best is not None and np.array_equal(levels, last):
                break  # all are the largest they may be
            laws = look(levels)
            if laws is None and best is None:
                return None
            spent = record_level(laws[0]) if laws else math.inf
            if laws and spent <= self._total:
                low, best = max(low, at), Reached(math.exp(at), levels, *laws, None)
                if spent > (1.0 - unspent) * self._total:
                    return best
            else:
                high = min(high, at)
            if spent >= top or not laws:
                at = math.inf
            else:
                left = math.log((top - aim) / (top - spent)) if top < math.inf else 0.0
                at = secant.next(at, left or math.log(spent / aim))
            if not low < at < high:
                at = 0.5 * (low + high)
        return best

    def _program(self, levels: FloatArray) -> _Laws | None:
        """Return the law of the capped program."""
        problem = checked_problem(self._problem.counts.tolist(), levels.tolist())
        floor = self._floor_at(levels)
        part = capped_table(problem, self._division.caps(levels), floor, EXACT_IN_A_SEARCH)
        return None if part is None else ([part], "program")

    def _solved(self, levels: FloatArray) -> _Laws | None:
        """Return what is found where levels are given, if it is better than independent
        responses: mixtures too."""
        counts, caps = self._problem.counts.tolist(), self._division.caps(levels).tolist()
        found = balanced.solve(counts, levels.tolist(), caps, self._floor)
        if found.method in ("independent", "floor"):
            return None
        self._found[levels.tobytes()] = found
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


def _on_lattice(number: float | FloatArray) -> FloatArray:
    """Return the next number of the lattice below."""
    return np.asarray(np.exp(_CELL * np.floor(np.log(number) / _CELL)))
