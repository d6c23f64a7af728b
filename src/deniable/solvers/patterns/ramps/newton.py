"""The ramp that delivers given levels, by Newton's method with all derivatives.

With start = Σ c_i q_i − top, q_i the requested probability of a change, `top` moves E only to
second order at the best ramp. For a given top the k + 1 unknowns ln c and E solve

    delivered level of i = requested level of i,     i = 1..k,
    max_i c_i/γ_i = a share of the caps, 1 if possible,

or the last is replaced by a slope that rests just above the bottom: the case of one level far above
the others, which then decides E by itself. The same system with the derivative by the top on its
right side gives dE/d top. Source: docs/proofs/clipped.md, section 4.
"""

import math
from dataclasses import dataclass

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import Problem
from deniable.solvers.patterns.ramps.evaluate import Ramp, RampResponse

_STALLED = 5
"""Steps in a row that may pass without the miss falling by a third. Without it tight caps take 1.6
times as long, and one level of 20 nats ends at a ramp that is half again as high."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A ramp that delivers the levels, up to `miss`, as a part of those below one nat.

    ``top``: start less the average cost of changes, in nats. ``by_top``, ``slopes_by_top``: dE and
    d ln c by it along the solutions. ``share``: of the caps that its steepest slope reaches.
    ``from_zero``: whether it falls from the first change on, start = 0: no pair's ratio is then
    below 1 (docs/proofs/clipped.md, Proposition 6).
    """

    ramp: Ramp
    top: float
    by_top: float
    slopes_by_top: FloatArray
    miss: float
    share: float
    from_zero: bool


class RampFit:
    """Newton steps to ramps for given levels and caps.

    ``caps``: γ in nats, infinite for none, shape (m,). ``relative``: whether a level below one nat
    may miss only such a part of itself.
    """

    def __init__(
        self,
        sums: RampResponse,
        problem: Problem,
        caps: FloatArray,
        tolerance: float,
        stalled: float = 0.0,
        *,
        relative: bool = True,
    ) -> None:
        self.sums, self.problem, self.caps = sums, problem, caps
        self.unit = np.minimum(problem.attribute_epsilon, 1.0) if relative else 1.0
        self._tolerance, self._stalled = tolerance, stalled

    def at(
        self,
        slopes: FloatArray,
        height: float,
        top: float | None,
        share: float = 1.0,
    ) -> Fit | None:
        """Return the ramp with this top whose steepest slope reaches this share of its cap.

        ``top``: of the ramp, in nats; None for one that falls from the first change on. ``share``:
        of the caps, above 0.
        """
        now = best = _Point(self, slopes, height, top, share)
        since_better = 0
        for _ in range(24):  # of 130 ramps that settled none took more than 17
            if now.miss <= self._tolerance:
                return now.fit()
            if since_better > _STALLED or not math.isfinite(now.miss):
                break
            move = now.newton()
            if move is None:
                break
            for length in (1.0, 0.3):
                new = _Point(
                    self,
                    now.slopes * np.exp(length * move[:-1]),
                    now.height + length * float(move[-1]),
                    top,
                    share,
                )
                if new.miss < 1.5 * now.miss:
                    break
            now = new
            since_better = 0 if now.miss < 0.7 * best.miss else since_better + 1
            best = min(best, now, key=lambda point: point.miss)
        return best.fit() if best.miss <= self._stalled else None

    def again(self, fit: Fit) -> Fit | None:
        """Return the ramp with the same top and share; None if the steps from it do not settle."""
        top = None if fit.from_zero else fit.top
        return self.at(fit.ramp.slopes, fit.ramp.height, top, fit.share)


class _Point:
    """The equations at one point, and the Newton step from it."""

    def __init__(
        self,
        fit: RampFit,
        slopes: FloatArray,
        height: float,
        top: float | None,
        share: float,
    ) -> None:
        self._sums, self.slopes, self.height = fit.sums, slopes, height
        self._share, self._from_zero = share, top is None
        # What each slope adds to the average cost of changes, and its derivative by ln c.
        self._average = slopes * fit.sums.size * fit.problem.change_probability
        average = float(self._average.sum())
        self._top = average if top is None else top
        self.ramp = Ramp(slopes, average - self._top, height)
        self.miss = math.inf
        # Far off, slopes vanish or the ramp has no bottom: the miss stays infinite there.
        if not (slopes > 0.0).all() or height <= 0.0 or self.ramp.start + height <= 0.0:
            return
        with np.errstate(all="ignore"):  # far off, numbers leave their range: the miss is infinite
            self._got = fit.sums.response(self.ramp)
        caps = share * (1.0 - 1e-10) * fit.caps  # but for rounding
        bound = np.where(caps < height, caps, np.inf)
        if not np.isfinite(bound).any():
            # Nothing fixes the slopes: those of 1.2 E are a vote but for 1e-3 of ε.
            bound = np.full_like(caps, 1.2 * height)
        used = np.log(slopes) - np.log(bound)
        self._tightest, self._steepest = int(np.argmax(used)), int(np.argmax(slopes))
        over = float(used[self._tightest])
        bottom = self.ramp.start + height
        # A slope that rests may be any size above the bottom.
        above = math.log(float(slopes[self._steepest]) / bottom) - 0.003
        self._rests = above > over
        level = fit.problem.attribute_epsilon
        self._residual = np.append(self._got.level - level, above if self._rests else over)
        miss = np.append(np.abs(self._residual[:-1]) / fit.unit, abs(float(self._residual[-1])))
        self.miss = float(miss.max()) if np.isfinite(miss).all() else math.inf

    def _matrix(self) -> FloatArray:
        """Return the derivatives of the equations by ln c and E, shape (m + 1, m + 1)."""
        m, got = len(self.slopes), self._got
        start_by = np.zeros(m) if self._from_zero else self._average  # d start/d ln c
        matrix = np.empty((m + 1, m + 1))
        matrix[:m, :m] = got.by_slope + np.outer(got.by_start, start_by)
        matrix[:m, m] = got.by_height
        if self._rests:
            matrix[m] = np.append(-start_by, -1.0) / (self.ramp.start + self.height)
            matrix[m, self._steepest] += 1.0
        else:
            matrix[m] = np.eye(1, m + 1, self._tightest)
        return matrix

    def newton(self) -> FloatArray | None:
        """Return the step of (ln c, E), shortened where it is long."""
        move = _solved(self._matrix(), -self._residual)
        if move is None:
            return None
        reach = min(0.4 * self.height, 1.0)  # further off the equations are not linear
        longest = max(float(np.abs(move[:-1]).max()) / 0.8, abs(float(move[-1])) / reach)
        return move / max(1.0, longest)

    def fit(self) -> Fit:
        """Return the point as a fit."""
        along = _solved(self._matrix(), np.append(self._got.by_start, 0.0))
        if along is None:
            along = np.full(len(self.slopes) + 1, np.nan)
        return Fit(
            self.ramp,
            self._top,
            float(along[-1]),
            along[:-1],
            self.miss,
            self._share,
            self._from_zero,
        )


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """Solve, rows scaled to one; with a little damping where the matrix is singular."""
    size = np.abs(matrix).max(axis=1)
    if not (np.isfinite(size).all() and (size > 0).all()):
        return None
    matrix, right = matrix / size[:, None], right / size
    try:
        with np.errstate(all="ignore"):
            found = np.linalg.solve(matrix, right)
        if np.isfinite(found).all() and np.abs(found).max() < 1e3:
            return np.asarray(found)
        damped = matrix.T @ matrix + 1e-6 * np.eye(len(matrix))
        found = np.linalg.solve(damped, matrix.T @ right)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(found) if np.isfinite(found).all() else None
