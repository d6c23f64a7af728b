"""The clipped ramp: every level met, and every attribute protected against those who know the rest.

    f(S) = exp(clip(z − top + E, 0, E)),    z = Σ_i c_i (q_i − C_i),    0 < c_i <= γ_i

has record level E and `epsilon_given_rest` at most c_i (`ramp_response` has the letters). These
laws run from the Kronecker product (E = Σ ε_i, c_i = ε_i) to the weighted vote (E = ε*, c → ∞).
For a given top the k + 1 unknowns solve

    delivered level of i = requested level of i,     i = 1..k,
    max_i c_i/γ_i = a share of the caps, 1 if nothing stands against it,

by Newton steps with all derivatives. For given top and E the levels alone determine the c_i: they
make the convex function E_μ[G(z)] − c·d stationary, G' = f − 1 ≥ 0 rising, d_i = p_i − 1/a_i. The
last unknown is E where the levels are given (`AtLevels`), and their common scale where E is
(`AtTotal`): a total is divided in one search. The same system, solved once more with the derivative
by the top on its right side, says how the unknown moves with the top, so that the best top is
where that derivative vanishes.

The proofs are in docs/proofs/clipped.md, Theorem 3, section 4 and Proposition 6.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.vote_law import LARGEST_HEIGHT
from deniable.solvers.patterns.ramp_response import Ramp, RampSums
from deniable.solvers.problem import Problem, checked_problem

_NORM = 20_000.0
"""The largest share of a cap as a smooth function of all: their norm of this order."""

_VETO = 0.003
"""How far above b, in ln c, a slope is placed that need not be known."""

_ROUNDING = 1e-10
"""Part of a cap that is left to rounding."""

_STEPS, _STEPS_NEAR = 24, 12
"""Steps that are taken at most, and from the ramp for a share of the caps close by: where there is
one it takes about five."""
_STALLED, _STALLED_NEAR = 5, 2
"""Steps in a row that may not lower the miss, and from close by: one in 500 settles after more."""
_FASTEST = 0.8
"""Largest move of ln c in a step."""

_WORTH = 1e-5
"""Part of E, or of the scale, for which the top is not moved any more."""

_AT_CAP = 3e-4
"""What may be left of a cap, in its logarithm, where it counts as reached; more than what the norm
of so many slopes blurs."""

_ORDINARY = 4.0
"""Levels up to which there is one best top, wherever the search starts."""

_GIANT, _OTHERS = 0.55, 16
"""Part of E from which on an ordinary level takes most of it, and of how many attributes: beside
fewer others looser caps do lead on."""

_LOOSER = (1.3, 1.8, 3.0)
"""How many times looser caps are that a ramp is found for, and followed from, where no start
settles under the caps as they are."""

_STRIDE, _SHORTEST = 0.12, 0.02
"""Longest and shortest step in the logarithm of the share of the caps, followed to another."""

_NEAREST, _NEARLY_REACHED = 2e-3, 0.9
"""Part of w to which the best one without a plateau is neared from the product law before a slope
has to reach its cap, and part of the way there that is near enough."""

_LIFT, _LIFTS = 1.15, 8
"""Times the top that it is moved up to on the way, and how often where no step leads on."""

_STEEP = 0.1
"""A change of the last unknown with the top at which the top is moved on the way."""

_FURTHEST = 0.3
"""How far w may move in a step of the top."""

_PLACES, _BEND, _END, _LOOK = 20, 0.15, 0.02, 0.1
"""Tops that are tried; how far from the middle tangents cross at a bend, how near to an end where
that is one, and from where it is looked at, as parts of the way."""

_RAISED, _RAISES = 1.15, 20
"""Times the top that it is moved up by for ramps that are mixed, and how often at most."""

_NEARER = 3
"""How often a step up that fails is halved, in ln: beside a bend a long one may lead nowhere."""

_FLOOR_ROOM = 3e-4
"""How far above its floor the least ratio may end."""

_SAME_RATIO = 1e-6
"""Up to such differences neither ratio nor height answer to the top."""

_SLACK = 1.2
"""Slopes of so many E are nearly a vote: where nothing is capped, the scale of the slopes is fixed
there, since nearly nothing depends on it. Steeper ones fall between the points of a grid."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What a ramp has to deliver at one value of the last unknown, w; shapes (m,).

    Attributes:
        problem: categories and levels of the groups.
        caps: γ.
        height: E.
        levels_move: d level/dw.
        caps_move: d ln γ/dw.
        height_moves: dE/dw.
    """

    problem: Problem
    caps: FloatArray
    height: float
    levels_move: FloatArray
    caps_move: FloatArray
    height_moves: float


class Target(Protocol):
    """What is asked, as a function of the last unknown w."""

    better: float
    """1 if a smaller w is better, −1 if a larger one."""
    useful: float
    """The worst w, times `better`, with which a ramp is of use."""

    def at(self, w: float) -> Asked:
        """Return what is asked at w."""
        ...

    def independent(self, size: FloatArray) -> float:
        """Return the w of independent responses, or the nearest that a law can have.

        Args:
            size: of the groups, shape (m,).
        """
        ...


class AtLevels:
    """Levels and caps are given; w is E.

    Args:
        problem: of the groups.
        caps: γ, infinite for none, shape (m,).
        useful: the E up to which a ramp is of use.
    """

    better = 1.0

    def __init__(self, problem: Problem, caps: FloatArray, useful: float = math.inf) -> None:
        self._problem, self._caps, self._still = problem, caps, np.zeros(len(caps))
        self.useful = useful

    def at(self, w: float) -> Asked:
        return Asked(self._problem, self._caps, w, self._still, self._still, 1.0)

    def independent(self, size: FloatArray) -> float:
        return min(float(self._problem.attribute_epsilon @ size), LARGEST_HEIGHT)


class AtTotal:
    """E and the proportions of the levels are given; w is ln s, levels are min(s·ratio, at_most).

    Args:
        n_categories: of the groups, shape (m,).
        ratios: shape (m,), nats.
        at_most: largest levels, shape (m,).
        multiple: caps as a multiple of the levels; infinite for none.
        limits: caps in nats, infinite for none, shape (m,).
        height: E.
        below: how far below these levels to aim, in nats.
    """

    better, useful = -1.0, math.inf

    def __init__(
        self,
        n_categories: FloatArray,
        ratios: FloatArray,
        at_most: FloatArray,
        multiple: float,
        limits: FloatArray,
        height: float,
        below: float = 0.0,
    ) -> None:
        self._n_categories = n_categories.tolist()
        self._ratios, self._at_most = ratios, at_most
        self._multiple, self._limits = multiple, limits
        self._height, self._below = height, below

    def at(self, w: float) -> Asked:
        free = math.exp(min(w, 50.0)) * self._ratios
        levels = np.minimum(free, np.minimum(self._at_most, 2.0 * self._height))
        moving = (levels == free).astype(np.float64)
        caps = np.minimum(self._multiple * levels, self._limits)
        aimed = levels - np.minimum(self._below, 1e-3 * levels)
        problem = checked_problem(self._n_categories, aimed.tolist())
        caps_move = np.where(caps < self._limits, moving, 0.0)
        return Asked(problem, caps, self._height, moving * levels, caps_move, 0.0)

    def independent(self, size: FloatArray) -> float:
        low = math.log(self._height / float(self._ratios @ size))
        high = math.log(self._height / float(self._ratios.min()))
        for _ in range(60):
            middle = 0.5 * (low + high)
            levels = np.minimum(math.exp(middle) * self._ratios, self._at_most)
            spends = float(levels @ size) > self._height
            low, high = (low, middle) if spends else (middle, high)
        return low


@dataclass(frozen=True, eq=False)
class Fit:
    """A ramp that delivers what is asked, up to `miss`.

    Attributes:
        ramp: slopes by group, top and height.
        w: the last unknown; see :class:`Target`.
        asked: what was asked there.
        by_top: dw/d top along the solutions.
        used_by_top: d ln (c/γ)/d top along them, shape (m,).
        miss: largest miss of a level, as a part of it where it is below one nat, and of the share.
        veto: whether a slope could rest above b instead of a cap being reached.
        ends_unchanged: whether it ends where nothing is changed: no pair's ratio is below 1 then.
        share: of the caps that its steepest slope keeps.
    """

    ramp: Ramp
    w: float
    asked: Asked
    by_top: float
    used_by_top: FloatArray
    miss: float
    veto: bool
    ends_unchanged: bool
    share: float


class RampFit:
    """Newton steps to ramps for one target.

    Args:
        sums: of the groups that the target speaks of.
        target: what is asked.
        tolerance: the miss at which a fit has settled.
        stalled: the miss up to which one is taken whose steps do not come nearer.
        relative: whether levels below one nat may miss only such a part of themselves.
        steps: the most that are taken.
    """

    def __init__(
        self,
        sums: RampSums,
        target: Target,
        tolerance: float,
        *,
        stalled: float = 0.0,
        relative: bool = True,
        steps: int = _STEPS,
    ) -> None:
        self.sums, self.target, self.tolerance, self.relative = sums, target, tolerance, relative
        self._stalled, self._steps = stalled, steps

    def at(
        self,
        slopes: FloatArray,
        w: float,
        top: float | None,
        share: float | None,
        *,
        veto: bool = True,
        steps: int | None = None,
    ) -> Fit | None:
        """Return the ramp with this top whose steepest slope keeps this share of its cap.

        Args:
            slopes, w: where the steps start.
            top: of the ramp, in nats; None to have it end where nothing is changed.
            share: of the caps, above 0; None to leave w where it is, whatever the caps are.
            veto: whether a slope may rest just above b, instead of a cap being reached: the case
                of one level far above the others, which then decides E by itself.
            steps: the most that are taken from a ramp for something similar; None from elsewhere.

        Returns:
            None if the steps do not settle.
        """
        now = _Step(self, slopes, w, top, share, veto)
        stalled, best = 0, now
        most = _STALLED if steps is None else _STALLED_NEAR
        for _ in range(steps or self._steps):
            if now.miss <= self.tolerance:
                return now.resting().fit()
            move = None if stalled > most else now.newton()
            if move is None or not math.isfinite(now.miss):
                break
            length = 1.0
            for _ in range(4):
                new = _Step(
                    self,
                    now.slopes * np.exp(length * move[:-1]),
                    now.w + length * float(move[-1]),
                    top,
                    share,
                    veto,
                )
                if new.miss < 1.5 * now.miss:
                    break
                length *= 0.4
            now = new
            stalled = 0 if now.miss < 0.7 * best.miss else stalled + 1
            best = min(best, now, key=lambda step: step.miss)
        return best.resting().fit() if best.miss <= self._stalled else None


class _Step:
    """The equations at one point, and the Newton step from it."""

    def __init__(
        self,
        fit: RampFit,
        slopes: FloatArray,
        w: float,
        top: float | None,
        share: float | None,
        veto: bool,
    ) -> None:
        self._fit, self.slopes, self.w, self._veto_allowed = fit, slopes, w, veto
        self._still = share is None
        self._share = share or 1.0
        self.asked = fit.target.at(w)
        problem, size = self.asked.problem, fit.sums.size
        spent = float((slopes * size) @ problem.change_probability)
        self._ends_unchanged = top is None
        self.ramp = Ramp(slopes, spent if top is None else top, self.asked.height)
        with np.errstate(all="ignore"):
            got = fit.sums.response(self.ramp, problem.change_probability)
        self._answer = got
        level = problem.attribute_epsilon
        caps = self._share * (1.0 - _ROUNDING) * self.asked.caps
        bound = np.where(caps < self.asked.height, caps, np.inf)
        if not np.isfinite(bound).any():
            bound = np.full_like(caps, _SLACK * self.asked.height)
        # The largest of c_i/γ_i is in nats of a logarithm, from which no power overflows.
        with np.errstate(invalid="ignore"):  # a step to a height below 0 comes to nothing
            used = np.log(slopes) - np.log(bound)
        power = size * np.exp(_NORM * (used - used.max()))
        self._parts = power / power.sum()
        over = float(used.max()) + math.log(float(power.sum())) / _NORM
        # Changing an attribute whose slope is above b brings z below the bottom wherever it was.
        self._bottom = spent - self.ramp.top + self.ramp.height
        self._veto = int(np.argmax(slopes))
        beyond = math.inf
        if self._bottom > 0.0:
            beyond = math.log(float(slopes[self._veto]) / self._bottom) - _VETO
        if self._still:
            self._share = math.exp(min(over, 0.0))
        self.vetoed = veto and beyond > over
        last = 0.0 if self._still else beyond if self.vetoed else over
        self._residual = np.append(got.level - level, last)
        unit = np.minimum(level, 1.0) if fit.relative else np.ones_like(level)
        miss = np.abs(self._residual) / np.append(unit, 1.0)
        self.miss = float(miss.max()) if np.isfinite(miss).all() else math.inf

    @np.errstate(invalid="ignore")  # far off, derivatives may be no numbers: no step is taken then
    def _matrix(self) -> FloatArray:
        got, asked = self._answer, self.asked
        m = len(self.slopes)
        # Levels that move take the mean of z along: d q_i = −p_i q_i d level_i.
        problem = asked.problem
        moved = problem.keep_probability * problem.change_probability * asked.levels_move
        shift = -float((self.slopes * self._fit.sums.size) @ moved)
        each = self.slopes * self._fit.sums.size * problem.change_probability
        matrix = np.empty((m + 1, m + 1))
        matrix[:m, :m] = got.by_slope
        if self._ends_unchanged:  # the top moves with what all changes cost, and b is E
            matrix[:m, :m] += np.outer(got.by_top, each)
            each, shift = np.zeros(m), 0.0
        matrix[:m, m] = got.by_height * asked.height_moves - got.by_top * shift - asked.levels_move
        if self._still:
            matrix[m] = np.append(np.zeros(m), 1.0)
        elif self.vetoed:
            matrix[m, :m] = -each
            matrix[m, m] = shift - asked.height_moves
            matrix[m] /= self._bottom
            matrix[m, self._veto] += 1.0
        else:
            matrix[m, :m] = self._parts
            matrix[m, m] = -float(self._parts @ asked.caps_move)
        return matrix

    def newton(self) -> FloatArray | None:
        """Return the step of (ln c, w), shortened where it is long."""
        move = _solved(self._matrix(), -self._residual)
        if move is None:
            return None
        if self._still:  # with damping it would move a little
            move[-1] = 0.0
        reach = 0.4 * (min(self.asked.height, 2.5) if self.asked.height_moves else 1.0)
        longest = max(float(np.abs(move[:-1]).max()) / _FASTEST, abs(float(move[-1])) / reach)
        return move / max(1.0, longest)

    def resting(self) -> "_Step":
        """Return the same law with the slopes that are above b, and do what b does, just above it:
        the mean of z moves with them, and the top is from there."""
        slopes, size = self.slopes, self._fit.sums.size
        rest = np.minimum(slopes, math.exp(_VETO) * max(self._bottom, 0.0))
        if self._ends_unchanged or self._bottom <= 0.0 or np.array_equal(rest, slopes):
            return self
        change = self.asked.problem.change_probability
        top = self.ramp.top - float(((slopes - rest) * size) @ change)
        share = None if self._still else self._share
        return _Step(self._fit, rest, self.w, top, share, True)

    def fit(self) -> Fit:
        """Return the point as a fit."""
        along = _solved(self._matrix(), np.append(-self._answer.by_top, 0.0))
        if along is None:
            along = np.full(len(self.slopes) + 1, np.nan)
        by_top = float(along[-1])
        used_by_top = along[:-1] - self.asked.caps_move * by_top
        how = self._veto_allowed, self._ends_unchanged, self._share
        return Fit(self.ramp, self.w, self.asked, by_top, used_by_top, self.miss, *how)


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """Solve, rows scaled to one; with a little damping where the matrix is singular."""
    size = np.abs(matrix).max(axis=1)
    if not (np.isfinite(size).all() and (size > 0).all()):
        return None
    matrix, right = matrix / size[:, None], right / size
    try:
        with np.errstate(all="ignore"):
            step = np.linalg.solve(matrix, right)
        if np.isfinite(step).all() and np.abs(step).max() < 1e3:
            return np.asarray(step)
        damped = matrix.T @ matrix + 1e-6 * np.eye(len(matrix))
        step = np.linalg.solve(damped, matrix.T @ right)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(step) if np.isfinite(step).all() else None


class RampSearch:
    """The search for the best ramp at one target: its top, and the share of its caps.

    Args:
        sums: of the groups.
        target: what is asked.
        w: where the last unknown starts.
        tolerance, stalled: see :class:`RampFit`.
    """

    def __init__(
        self, sums: RampSums, target: Target, w: float, tolerance: float, stalled: float = 0.0
    ) -> None:
        self._fit = RampFit(sums, target, tolerance, stalled=stalled)
        self._target, self._w, asked = target, w, target.at(w)
        # Where one level takes most of E, the mass is below the ramp under looser caps too.
        largest = float(asked.problem.attribute_epsilon.max())
        giant = _GIANT * asked.height < largest <= _ORDINARY
        self._loosened = not (giant and sums.size.sum() > _OTHERS)
        # Ramps from the product law, by the share of the caps; most often there is none.
        self._from_product: dict[float, Fit | None] = {}

    def best(self, share: float, near: Fit | None = None, *, afar: bool = True) -> Fit | None:
        """Return the best ramp found at a share of the caps; None if there is none.

        Args:
            share: of the caps.
            near: a ramp for something similar, from which to start.
            afar: whether to go a long way where no start is close enough.
        """
        result = None
        if near is not None and len(near.ramp.slopes) == len(self._fit.sums.size):
            result = self._again(near, near.ramp.top, share) or self._followed(near, share)
        if result is None:
            result = min(_settled(self._starts(share)), key=self._cost, default=None)
        if result is None and afar:
            result = self._from_afar(share)
        return None if result is None else self._placed(result)

    def beside(self, near: Fit) -> Fit | None:
        """Return the ramp with the top of one for something similar, as it is; None if none
        settles."""
        return self._again(near, near.ramp.top, 1.0)

    def _from_afar(self, share: float) -> Fit | None:
        """Return a ramp where no start settles: from the product law, from looser caps, or one
        below which the mass is."""
        without = self._from_independent(share)
        if without is not None and abs(without.by_top) < _STEEP:
            return without
        result = None
        for looser in _LOOSER if self._loosened else ():
            first = min(_settled(self._starts(looser * share)), key=self._cost, default=None)
            result = None if first is None else self._followed(first, share)
            if result is not None:
                break
        if result is None:
            self._loosened = False  # looser caps led nowhere, nor would they from a smaller share
            result = next(_settled(self._at_the_bottom(share)), None)
        return min(_settled([without, result]), key=self._cost, default=None)

    def keeping(self, floor: float, fit: Fit) -> Fit | None:
        """Return the best ramp that keeps a floor on pairs, by moving the top up; None if none
        settles.

        One that ends where nothing is changed keeps every floor (docs/proofs/clipped.md,
        Proposition 6): the last resort, and where the search came by one it is no worse than that.

        Args:
            floor: t.
            fit: the best ramp without it.
        """
        low, middle, end = fit, True, math.inf
        step = min(0.15 * fit.ramp.top + 0.02, _FURTHEST / max(abs(fit.by_top), 1.0))
        below, kept, above = self.least_ratio(fit), None, math.inf
        shortest = 0.01 * step
        for _ in range(40):
            if kept is None:
                end = float((low.ramp.slopes * self._fit.sums.size) @ _change(low))
                top = min(low.ramp.top + step, end)
                if step < min(1e-3 * top, shortest):
                    break
            else:
                reach = kept.ramp.top - low.ramp.top
                if above < floor + _FLOOR_ROOM or reach < 1e-5 * kept.ramp.top:
                    break
                # By turns a secant and the middle: the ratio may rise steeply.
                part = (floor + 0.5 * _FLOOR_ROOM - below) / (above - below)
                middle = not middle
                top = low.ramp.top + (0.5 if middle else min(max(part, 0.05), 0.95)) * reach
            new = self._moved(low, top)
            if new is None:
                if kept is not None:
                    break
                step *= 0.4
                continue
            ratio = self.least_ratio(new)
            if ratio >= floor:
                kept, above, middle = new, ratio, True
            elif ratio <= below and top >= end * (1.0 - 1e-9):
                break
            elif abs(ratio - below) < _SAME_RATIO and abs(new.by_top) < _SAME_RATIO:
                break  # nothing lies where the top is: it is a vote
            else:
                low, below, step = new, ratio, 1.5 * step
        if kept is None:
            kept = next(_settled(self._ending_unchanged(low)), None)
        on_the_way = (fit for fit in _settled(self._from_product.values()) if fit.ends_unchanged)
        return min(itertools.chain(_settled([kept]), on_the_way), key=self._cost, default=None)

    def still_keeping(self, floor: float, fit: Fit, *, up: bool = True) -> Fit | None:
        """Return the best ramp that keeps a floor on pairs, from one that keeps it or nearly does;
        None if none settles, or if the top is not to be moved up and it does not keep it."""
        kept, step = None, 0.01
        for _ in range(_LIFTS):
            ratio = self.least_ratio(fit)
            if ratio < floor:
                return (self.keeping(floor, fit) if up or kept else None) or kept
            kept = fit
            if ratio < floor + _FLOOR_ROOM:
                break
            lower = self._moved(fit, (1.0 - step) * fit.ramp.top)
            if lower is None:
                break
            fit, step = lower, 1.5 * step
        return kept

    def raised(self, fit: Fit, times: float = _RAISED) -> Iterator[Fit]:
        """Yield ramps with the top moved up step by step, and one without a plateau."""
        step, nearer = times, _NEARER
        for _ in range(_RAISES):
            end = float((fit.ramp.slopes * self._fit.sums.size) @ _change(fit))
            top = step * fit.ramp.top + 0.02
            if top >= end:
                break
            new = self._moved(fit, top)
            if new is not None:
                fit, step = new, times
                yield fit
            elif nearer:
                step, nearer = math.sqrt(step), nearer - 1
            else:
                break
        yield from itertools.islice(_settled(self._ending_unchanged(fit)), 1)

    def _ending_unchanged(self, fit: Fit) -> Iterator[Fit | None]:
        """Yield ramps without a plateau: from the one that was found, and from the product law."""
        yield self._fit.at(fit.ramp.slopes, fit.w, None, fit.share)
        yield self._from_independent(1.0)

    def _from_independent(self, share: float) -> Fit | None:
        if share not in self._from_product:
            self._from_product[share] = self._without_plateau(share)
        return self._from_product[share]

    def _without_plateau(self, share: float) -> Fit | None:
        """Go from the product law to a ramp without a plateau: w gets better in steps, the slopes
        follow, and only near the best w that the caps allow are they asked to reach a cap.

        Far from there w hardly moves the slopes, and where levels are large a slope that reaches
        its cap hardly moves w: the one answers for the other only close by.
        """
        w, part = self._target.independent(self._fit.sums.size), 0.5
        now = self._fit.at(self._target.at(w).problem.attribute_epsilon, w, None, None, veto=False)
        used = 0.0 if now is None else _used(now)
        nearly = used + _NEARLY_REACHED * (share - used)
        while now is not None and part > _NEAREST and _used(now) < nearly:
            if not (now.asked.height_moves or now.asked.levels_move.any()):
                break  # every level is the largest it may be
            w = now.w * (1.0 - part) if self._target.better > 0.0 else now.w + part
            new = self._fit.at(now.ramp.slopes, w, None, None, veto=False, steps=_STEPS)
            if new is None or _used(new) > share:
                if self._target.better * w > self._target.useful:
                    return None
                part *= 0.5
            else:
                now = new
        if now is None:
            return None
        reached = self._fit.at(now.ramp.slopes, now.w, None, share, veto=False)
        if reached is None or self._cost(reached) > self._cost(now):  # or it is another solution
            reached = self._followed(now, share)
        return None if reached is None or self._cost(reached) > self._cost(now) else reached

    def least_ratio(self, fit: Fit) -> float:
        """Return the least φ_ij/(φ_i φ_j)."""
        return float(self.pair_ratios(fit).min())

    def pair_ratios(self, fit: Fit) -> FloatArray:
        """Return φ_ij/(φ_i φ_j) by groups, see :meth:`RampSums.pair_ratios`."""
        return self._fit.sums.pair_ratios(fit.ramp, _change(fit))

    def _cost(self, fit: Fit) -> float:
        return self._target.better * fit.w

    def _starts(self, share: float) -> Iterator[Fit | None]:
        """Yield ramps with tops and slopes that have proved good starts."""
        asked = self._target.at(self._w)
        level = asked.problem.attribute_epsilon
        slopes, height = self._first_slopes(share), asked.height
        tops = (min(1.5, 0.45 * height), min(2.3, 0.6 * height), min(0.4, 0.15 * height))
        for place, top in enumerate(tops):
            fitted = self._fit.at(slopes, self._w, top, share)
            yield fitted
            if fitted is not None and place < 2 and float(level.max()) <= _ORDINARY:
                return
        for top in tops:
            yield self._fit.at(slopes, self._w, top, share, veto=False)

    def _at_the_bottom(self, share: float) -> Iterator[Fit | None]:
        """Yield ramps below which the mass is: where one level takes nearly all of E."""
        asked, slopes = self._target.at(self._w), self._first_slopes(share)
        spent = float((slopes * self._fit.sums.size) @ asked.problem.change_probability)
        for top in (asked.height, 1.05 * asked.height):
            if spent + asked.height == top:
                continue  # nothing changes: the ramp would have no bottom
            yield self._fit.at(slopes, self._w, top, share)

    def _first_slopes(self, share: float) -> FloatArray:
        asked = self._target.at(self._w)
        level = asked.problem.attribute_epsilon
        return np.minimum(np.minimum(1.5 * level, level + 1.0), 0.97 * share * asked.caps)

    def _followed(self, fit: Fit, share: float) -> Fit | None:
        """Go from a ramp to another share in small steps, and up with the best top: the tighter
        the caps, the higher it is, and far below it no ramp keeps them."""
        asked = self._target.at(fit.w)
        used = _used(replace(fit, asked=asked))
        now = self._with_share(fit, used)
        step, lifts = _STRIDE, _LIFTS
        while now is not None and used != share:
            if step <= _SHORTEST:
                if used < share:
                    break  # it keeps the caps, and what is left of them may be of no use
                # The caps are the tightest that a ramp with this top keeps: go on above it.
                lifted = self._moved(now, _LIFT * now.ramp.top) if lifts else None
                if lifted is None:
                    return None
                now, step, lifts = lifted, 2.0 * _SHORTEST, lifts - 1
            left = math.log(share / used)
            next_share = share if abs(left) <= step else used * math.exp(math.copysign(step, left))
            new = self._with_share(now, next_share)
            if new is None:
                step *= 0.5
                continue
            if self._target.better * new.by_top < -_STEEP:
                new = self._moved(new, _LIFT * new.ramp.top) or new
            now, used, step = new, next_share, min(1.5 * step, _STRIDE)
        return now

    def _with_share(self, fit: Fit, share: float) -> Fit | None:
        top = None if fit.ends_unchanged else fit.ramp.top
        return self._again(fit, top, share, _STEPS_NEAR)

    def _moved(self, fit: Fit, top: float) -> Fit | None:
        slopes, w, move = fit.ramp.slopes, fit.w, top - fit.ramp.top
        if math.isfinite(fit.by_top):
            w += float(np.clip(fit.by_top * move, -_FURTHEST, _FURTHEST))
            along = move * (fit.used_by_top + fit.asked.caps_move * fit.by_top)
            slopes = slopes * np.exp(along / max(1.0, float(np.abs(along).max()) / _FASTEST))
        return self._fit.at(slopes, w, top, fit.share, veto=fit.veto, steps=_STEPS)

    def _again(self, fit: Fit, top: float | None, share: float, steps: int = _STEPS) -> Fit | None:
        return self._fit.at(fit.ramp.slopes, fit.w, top, share, veto=fit.veto, steps=steps)

    def _placed(self, fit: Fit) -> Fit:
        """Move the top to where w is best: where its derivative changes its sign, or where ramps
        end."""
        better = self._target.better
        best = now = fit
        ends: dict[bool, Fit] = {}  # by whether w gets worse with the top
        step, wall, held = 0.3 * fit.ramp.top, math.nan, True
        for _ in range(_PLACES):
            slope = better * now.by_top
            if not math.isfinite(slope):
                break
            worth = _WORTH * max(now.asked.height if better > 0 else 1.0, 0.1)
            ends[slope > 0.0] = now
            if len(ends) == 2 and ends[False].ramp.top >= ends[True].ramp.top:
                ends = {slope > 0.0: now}
            if len(ends) == 2:
                top, gain = self._between(ends[False], ends[True])
            else:
                away = -1.0 if slope > 0.0 else 1.0
                # Where another slope reaches its cap w has a bend: go there first.
                bend = _to_next_cap(now, away)
                there = abs(slope) * bend >= worth and bend < step
                move = bend if there else step
                if (left := away * (wall - now.ramp.top)) > 0.0:
                    move = min(move, (0.7 if held else 0.3) * left)
                top = max(now.ramp.top + away * move, 0.3 * now.ramp.top)
                gain = abs(slope) * abs(top - now.ramp.top)
                step *= 1.0 if there else 1.7
            if gain < worth:
                break
            new = self._moved(now, top)
            held = new is not None
            if new is None:
                if len(ends) == 2:
                    break
                wall = top
                continue
            if self._cost(new) < self._cost(best):
                best = new
            now = new
        return best

    def _between(self, low: Fit, high: Fit) -> tuple[float, float]:
        """Return where between two tops to look for the best one, and what that may gain.

        From the lower one w gets better, and toward the upper one worse. Where the tangents cross
        in the middle, as those of a parabola do, the best is where the derivative vanishes by
        secant; elsewhere at a bend, and at an end it takes a look whether it is the best.
        """
        better, length = self._target.better, high.ramp.top - low.ramp.top
        falls, rises = -length * better * low.by_top, length * better * high.by_top
        rise = self._cost(high) - self._cost(low)
        part = (rises - rise) / (falls + rises)
        if abs(part - 0.5) > 0.5 - _END:
            part = _LOOK if part < 0.5 else 1.0 - _LOOK
        elif abs(part - 0.5) < _BEND:
            part = min(max(falls / (falls + rises), 0.15), 0.85)
        return low.ramp.top + part * length, min(part * falls, (1.0 - part) * rises)


def _settled(fits: Iterable[Fit | None]) -> Iterator[Fit]:
    return (fit for fit in fits if fit is not None)


def _used(fit: Fit) -> float:
    """Return the largest part of a cap, or of E, that a slope is."""
    return float((fit.ramp.slopes / np.minimum(fit.asked.caps, fit.asked.height)).max())


def _to_next_cap(fit: Fit, away: float) -> float:
    """Return how far the top can go up (1) or down (−1) until a slope, which is not yet at its cap,
    is about to reach it."""
    with np.errstate(all="ignore"):
        left = np.log(fit.share * fit.asked.caps / fit.ramp.slopes)
        way = left / (away * fit.used_by_top)
    way = way[(left > _AT_CAP) & (way > 0.0) & (fit.asked.caps < fit.asked.height)]
    return float(way.min(initial=math.inf)) * (1.0 - _AT_CAP)


def _change(fit: Fit) -> FloatArray:
    return fit.asked.problem.change_probability
