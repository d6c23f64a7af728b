"""From a ramp in real numbers to a law in the numbers that are drawn from.

Up to `MOST_IN_TABLE` attributes the law is a table of patterns, in exact integers. Beyond, it is a
gated sum (`deniable.laws.votes.gated`), whose slopes lie on a grid: there the equations are solved
once more for the law itself, with the derivatives of the ramp, until every level is met. What is
left over, an own response of the attribute brings down.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

from deniable.errors import InputError
from deniable.laws.pattern_table import PatternTable
from deniable.laws.patterns import FloatArray, other_outputs
from deniable.laws.votes.gated import MOST_STATES, GatedSum, on_grid
from deniable.solvers.patterns.complement import default_resolution
from deniable.solvers.patterns.orbits import Orbits
from deniable.solvers.patterns.ramp_response import COARSE, FINE, GridRamps, Ramp, Response
from deniable.solvers.patterns.ramps import Fit, RampFit, Target

MOST_IN_TABLE = 16
"""Most attributes for which the law is a table of all 2^k patterns."""

_BEYOND_BOTTOM = 1.003
"""A slope above this many times b does what one of this size does."""

_MOST_BELOW = 60_000.0
"""Units of the grid up to b: where changes are rare the deviation of z would ask for millions."""

_AT_THE_END = 1e-12
"""Part of the largest sum within which a ramp ends there."""

_STEPS = 60
_RAISED, _LAST = (1.0, 1.001, 1.01), 1.1
"""Times the top at which a law is looked for: where two slopes reach their caps there may be none
below, and with a shade less of the caps, none there. And one at last: where two slopes together are
about what brings down to the bottom, steps next to the best top may not settle."""

_DITHERED = 2e-5
_SAME, _MOVED = 0.02, 1e-9
"""Up to such a change of ln c derivatives are corrected, and from such a move on: what shorter ones
tell is rounding."""


def table_of(n_categories: tuple[int, ...], orbits: Orbits, density: FloatArray) -> PatternTable:
    """Return the table of a density over the orbits of patterns, up to a factor, shape (n,)."""
    counts = other_outputs(n_categories).astype(np.float64)
    return PatternTable.from_probabilities(n_categories, orbits.expand(density) * counts)


def gated_sum_of(
    target: Target,
    fit: Fit,
    tolerance: float,
    *,
    alike: bool,
    limits: FloatArray | None = None,
) -> tuple[GatedSum, Fit] | None:
    """Return the gated sum that delivers what is asked as exactly as evaluated.

    Args:
        target: what is asked, of every attribute by itself.
        fit: the ramp in real numbers. Dither makes slopes a shade steeper than its share of the
            caps, so a little less is aimed at.
        tolerance: the most that a level may miss, in nats.
        alike: whether all attributes are.
        limits: caps, shape (k,), that are kept by steps at its w where those to its share of its
            own do not settle.

    Returns:
        The law and its ramp; None if the steps do not settle.
    """
    shares: list[float | None] = [fit.share * (1.0 - _DITHERED)]
    if limits is not None:
        shares.insert(0 if (limits > fit.asked.caps).all() else 1, None)
    for states in (COARSE, FINE):
        too_steep = False
        tops = (*_RAISED, _LAST) if states == FINE else _RAISED
        for raised, share in itertools.product(tops[:1] if fit.ends_unchanged else tops, shares):
            top = None if fit.ends_unchanged else raised * fit.ramp.top
            sums = _DrawnRamps(fit.asked.problem.n_categories, states, alike)
            again = RampFit(sums, target, tolerance, relative=False, steps=_STEPS)
            try:
                settled = again.at(fit.ramp.slopes, fit.w, top, share, veto=fit.veto)
            except (InputError, ValueError):  # on the way a ramp was steeper than a law can be
                return None
            if settled is None:
                continue
            # Where no w has slopes of that share of the caps, there are still some that deliver
            # what is asked.
            slopes = settled.ramp.slopes
            if share is None and limits is not None and (slopes > limits).any():
                too_steep = True
            else:
                return sums.law(settled.ramp, settled.asked.problem.change_probability), settled
        if too_steep:
            break  # no finer derivatives change that
    return None


class _Found(NamedTuple):
    """What a ramp delivers on the grid.

    Attributes:
        ramp, change: asked for.
        level: delivered, shape (k,).
        by: derivatives of the levels by ln c, E and top, shape (k, k + 2).
        about: ln c where these were the ramp's own, shape (k,).
    """

    ramp: Ramp
    change: FloatArray
    level: FloatArray
    by: FloatArray
    about: FloatArray


class _DrawnRamps:
    """What a ramp delivers once it is on the grid of the law; derivatives of the ramp itself."""

    def __init__(self, n_categories: FloatArray, states: int, alike: bool) -> None:
        self.size = np.ones(len(n_categories))
        self._n_categories, self._alike = n_categories, alike
        self._counts = n_categories.astype(np.int64)
        self._resolution = 0.5 * default_resolution(len(n_categories))
        self._coarse = GridRamps(n_categories, states)
        self._unit: float | None = None
        self._last: _Found | None = None

    def law(self, ramp: Ramp, change: FloatArray) -> GatedSum:
        """Return the law on its grid."""
        bottom = float(ramp.slopes @ change) - ramp.top + ramp.height
        slopes = np.minimum(ramp.slopes, _BEYOND_BOTTOM * bottom)
        keep = 1.0 - change
        if self._unit is None:  # one for all steps: where slopes fall on it moves the levels
            deviation = math.sqrt(float(slopes**2 @ (keep * change)))
            most = 0.9 * MOST_STATES / (math.sqrt(len(slopes)) + 8.0)
            unit = min(self._resolution / deviation, most / float(slopes.sum()))
            self._unit = min(unit, _MOST_BELOW / bottom)
        unit = self._unit
        weights = slopes * unit
        if self._alike:  # only how many are kept matters
            unit = 1.0 / float(slopes[0])
            weights = np.ones_like(slopes)
        whole, dither = on_grid(weights)
        top = float(weights @ keep) + ramp.top * unit
        if top >= (1.0 - _AT_THE_END) * float(weights.sum()):
            # With all dither up, or it would lie on both sides of the end.
            top = float(whole.sum() + np.count_nonzero(dither))
        start = max(float(weights @ keep) + (ramp.top - ramp.height) * unit, 0.0)
        width = top - start
        return GatedSum(
            tuple(self._counts.tolist()),
            whole,
            dither,
            "ramp",
            start,
            width,
            width / unit,
            np.ones_like(slopes),
        )

    def response(self, ramp: Ramp, change: FloatArray) -> Response:
        """Return the law's levels, with the ramp's derivatives as the levels found so far correct
        them: by the least change that explains the last move (Broyden's)."""
        level = self.law(ramp, change).moments().levels(self._counts)
        slopes = np.log(ramp.slopes)
        k, last = len(slopes), self._last
        if last is None or np.abs(slopes - last.about).max() > _SAME:
            got = self._coarse.response(ramp, change)
            by = np.column_stack([got.by_slope, got.by_height, got.by_top])
            about = slopes
        else:
            # What moves the mean of z moves the top as far the other way.
            top = ramp.top - last.ramp.top - float(ramp.slopes @ (change - last.change))
            moved = np.append(
                slopes - np.log(last.ramp.slopes), [ramp.height - last.ramp.height, top]
            )
            by, about, length = last.by, last.about, float(moved @ moved)
            if length > _MOVED**2:
                by = by + np.outer(level - last.level - by @ moved, moved / length)
        self._last = _Found(ramp, change, level, by, about)
        return Response(level, by[:, :k], by[:, k], by[:, k + 1])

    def pair_ratios(self, ramp: Ramp, change: FloatArray) -> FloatArray:
        return self._coarse.pair_ratios(ramp, change)
