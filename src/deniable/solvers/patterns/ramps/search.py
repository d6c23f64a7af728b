"""The best ramp for given levels and caps: where it starts to fall, and the way to it.

Newton's method (`newton`) finds the ramp with a given top. The best top is where dE/d top vanishes.
Where no start settles under the caps as they are, a ramp for looser caps is followed to them in
small steps of the share of the caps that is used.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import Problem
from deniable.solvers.patterns.ramps.evaluate import RampSums
from deniable.solvers.patterns.ramps.newton import Fit, RampFit

RAISED = 1.4
"""Times the top in a step up: between ramps that are mixed, for a floor on pairs, and under tight
caps. Mixtures of ramps half as far apart are 0.1 % better, in 1.3 times the time."""

LOOSER = 1.5, 3.0
"""How many times looser caps a ramp is looked for, and followed from, where no start settles.
Without them caps of 1.3 times the levels leave independent responses at 30 attributes."""

_STRIDE = 0.12
"""Longest step in ln(share of the caps) on the way."""


class RampSearch:
    """The search for the best ramp.

    ``caps``: γ in nats, infinite for none, shape (m,). ``height``: about the record's ε, in nats,
    where the search starts.
    """

    def __init__(self, sums: RampSums, problem: Problem, caps: FloatArray, height: float) -> None:
        self._sums = sums
        self._fit = RampFit(sums, problem, caps, 1e-7, 1e-5)  # what is drawn is solved for again
        self._level, self._caps, self._height = problem.attribute_epsilon, caps, height

    def best(self) -> Fit | None:
        """Return the best ramp found under the caps; None if there is none."""
        found = next(_settled(self._starts(1.0)), None)
        for looser in LOOSER:
            if found is not None:
                break
            first = next(_settled(self._starts(looser)), None)
            found = None if first is None else self._followed(first)
        return None if found is None else self._placed(found)

    def raised(self, fit: Fit) -> Iterator[Fit]:
        """Yield ramps with the top moved up step by step, as long as they settle; at last one that
        falls from the first change on, which keeps every floor on pairs."""
        now: Fit | None = fit
        while now is not None:
            if RAISED * now.top >= now.ramp.start + now.top:
                break
            now = self.moved(now, RAISED * now.top)
            if now is not None:
                fit = now
                yield fit
        yield from list(_settled(self._from_zero(fit)))[:1]

    def keeping(self, floor: float, fit: Fit) -> Fit | None:
        """Return a ramp that keeps a floor on pairs, by moving the top up; None if none settles."""
        low, kept = fit, None
        for raised in self.raised(fit):
            if self.least_ratio(raised) >= floor:
                kept = raised
                break
            low = raised
        for _ in range(5):  # halving the step leaves a hundredth of the top
            if kept is None or kept.from_zero:
                break
            middle = self.moved(low, 0.5 * (low.top + kept.top))
            if middle is None:
                break
            if self.least_ratio(middle) >= floor:
                kept = middle
            else:
                low = middle
        return kept

    def least_ratio(self, fit: Fit) -> float:
        """Return the least φ_ij/(φ_i φ_j)."""
        return float(self._sums.delivered(fit.ramp).ratios(self._sums.n_categories).min())

    def _from_zero(self, fit: Fit) -> Iterator[Fit | None]:
        """Yield ramps that fall from the first change on: from one, and from the product law."""
        yield self._from(fit, None, fit.share)
        total = float(self._level @ self._sums.size)
        for part in (1.0, 0.9, 0.8, 0.7):
            yield self._fit.at(1.02 * self._level, part * total, None, fit.share)

    def _starts(self, share: float) -> Iterator[Fit | None]:
        """Yield ramps from tops and slopes that have proved good starts: from one nat or two above
        the mean, of slopes half again the levels."""
        level, height = self._level, self._height
        slopes = np.minimum(np.minimum(1.5 * level, level + 1.0), 0.97 * share * self._caps)
        for top in (min(1.5, 0.45 * height), min(2.3, 0.6 * height), min(0.4, 0.15 * height)):
            yield self._fit.at(slopes, height, top, share)

    def _followed(self, fit: Fit) -> Fit | None:
        """Go from a ramp to one that uses all of the caps in small steps, and up with the top."""
        ramp = fit.ramp
        used = float((ramp.slopes / np.minimum(self._caps, ramp.height)).max())
        now = self._from(fit, fit.top, used)
        step, raises = _STRIDE, 8
        while now is not None and used != 1.0:
            if step <= _STRIDE / 6.0:
                # The caps are the tightest that a ramp with this top keeps: go on above it.
                raised = self.moved(now, RAISED * now.top) if raises else None
                if raised is None:
                    return None
                now, step, raises = raised, _STRIDE, raises - 1
            left = -math.log(used)
            share = 1.0 if abs(left) <= step else used * math.exp(math.copysign(step, left))
            new = self._from(now, now.top, share)
            if new is None:
                step *= 0.5
                continue
            if new.by_top < -0.1:  # a higher top is better by more than rounding
                new = self.moved(new, RAISED * new.top) or new
            now, used, step = new, share, min(1.5 * step, _STRIDE)
        return now

    def moved(self, fit: Fit, top: float) -> Fit | None:
        """Return the ramp with another top, from about where the derivatives say it is."""
        move = top - fit.top
        along = np.clip(np.nan_to_num(fit.slopes_by_top * move), -0.3, 0.3)
        up = float(np.clip(np.nan_to_num(fit.by_top * move), -0.3, 0.3))
        return self._fit.at(fit.ramp.slopes * np.exp(along), fit.ramp.height + up, top, fit.share)

    def _from(self, fit: Fit, top: float | None, share: float) -> Fit | None:
        return self._fit.at(fit.ramp.slopes, fit.ramp.height, top, share)

    def _placed(self, fit: Fit) -> Fit:
        """Move the top to where E is least: where its derivative changes its sign."""
        best = now = fit
        ends: dict[bool, Fit] = {}  # by whether E rises with the top
        step = 0.3 * fit.top
        for _ in range(14):
            if not math.isfinite(now.by_top) or now.from_zero:
                break
            ends[now.by_top > 0.0] = now
            if len(ends) == 2:
                low, high = ends[False], ends[True]
                part = -low.by_top / (high.by_top - low.by_top)
                top = low.top + min(max(part, 0.15), 0.85) * (high.top - low.top)
            else:
                top = max(now.top + (-step if now.by_top > 0.0 else step), 0.3 * now.top)
                step *= 1.7
            if abs(now.by_top * (top - now.top)) < 1e-4 * max(now.ramp.height, 0.1):
                break  # a step gains less than a ten-thousandth of ε
            new = self.moved(now, top)
            if new is None:
                step *= 0.2
                if step < 0.01 * now.top or len(ends) == 2:
                    break
                continue
            best, now = min(best, new, key=lambda one: one.ramp.height), new
        return best


def _settled(fits: Iterable[Fit | None]) -> Iterator[Fit]:
    return (fit for fit in fits if fit is not None)
