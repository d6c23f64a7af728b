"""Mixtures of ramps that meet the levels together, for more attributes than can be enumerated.

The same linear program as in `ramp_mixtures`, over gated sums as they are drawn
(`deniable.laws.votes.gated`): what they deliver is evaluated to the last digits, so that the
mixture, a blend (`deniable.laws.votes.blend`), meets its levels without a further search.

Slopes lie on a grid, between two points of it by dither, as steep as keeps the cap exactly.
"""

import math

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.solvers.patterns.optimal import Part
from deniable.solvers.patterns.ramp_laws import AIM, FLOOR_MARGIN, keep_floor
from deniable.solvers.patterns.ramp_mixtures import Mixing, below_caps
from deniable.solvers.patterns.ramp_response import GridRamps
from deniable.solvers.patterns.ramps import AtLevels, Fit, RampSearch
from deniable.solvers.problem import Problem, checked_problem

MOST_ATTRIBUTES = 30
"""Of more it takes too long to evaluate all pairs of everything that is mixed."""

_STATES = 800
"""Units of the grid up to where a ramp's bottom is."""

_FACTORS = (0.7, 0.9, 1.1, 1.4)
"""By which neighbours of a ramp differ from it."""

_SURELY = 0.02
"""How far above the floor pairs are where nothing need be mixed: a coarse grid tells ratios to a
thousandth or so."""

_FALL_FROM = (0.0, *np.geomspace(0.03, 2.0, 12).tolist())
_FALL_FROM_WITHOUT = _FALL_FROM[::2]
"""Where the steepest ramps start to fall, and those with one slope 0, in parts of the mean of what
changes cost."""

_RAISED = 1.4
"""Times the top that it is moved up by for ramps that are mixed."""

_BEYOND_BOTTOM = 1.003
"""A slope above this many times what the ramp falls by does what one of this size does."""

_HIGHER = 25.0
"""Nats that a ramp's bottom may lie below the record's."""

_HARDLY = 1e-7
"""Slopes of so much of the levels are all but the uniform law."""

_NEARLY = 1e-5
"""How near ramps meet their levels, in nats or as a part below one."""

_BOUNDS, _ROUNDINGS = 4.0, 1e-12
"""Times the error bounds of its parts' pairs, and what mixing adds, that a blend's pairs may be off
for certain."""

_LEAST_DITHER = 1e-15
_LEAST_SHARE = 1e-25


def blended(
    counts: IntArray,
    aimed: FloatArray,
    caps: FloatArray,
    height: float,
    floor: float,
    near: Fit | None,
) -> tuple[Part | None, Fit | None]:
    """Return the mixture of least ε that is found, and the best ramp.

    There is no mixture where that ramp keeps the floor, or where none passes its checks.

    Args:
        counts: a_i, shape (k,), k at most `MOST_ATTRIBUTES`.
        aimed: levels in nats, shape (k,).
        caps: γ in nats, shape (k,).
        height: about the record's ε, in nats.
        floor: t.
        near: a ramp for something similar.
    """
    problem = checked_problem(counts.tolist(), aimed.tolist())
    steepest = below_caps(caps)
    target = AtLevels(problem, caps)
    search = RampSearch(GridRamps(problem.n_categories), target, height, _NEARLY, _NEARLY)
    fit = search.best(1.0, near)
    if fit is not None and search.least_ratio(fit) >= floor + _SURELY:
        return None, fit
    pool = _Pool(problem, height, steepest)
    pool.add(_HARDLY * aimed, 0.0)
    pool.add(aimed, 0.0)
    if fit is not None:
        pool.add_about(fit)
        kept = search.keeping(floor, fit)
        for other in [*search.raised(fit, _RAISED), *([] if kept is None else [kept])]:
            pool.add_fit(other)
    pool.add_steepest()
    law = pool.law(floor + 2.0 * FLOOR_MARGIN)
    if law is None or not keep_floor([law], floor):
        return None, fit
    above, below = law.attribute_bounds()
    met = (above <= aimed + AIM).all() and (below >= aimed - AIM).all()
    if not met or (law.account.epsilon_given_rest > caps).any():
        return None, fit
    return Part(tuple(range(len(counts))), law, law.account), fit


class _Pool:
    """What is mixed."""

    def __init__(self, problem: Problem, about: float, steepest: FloatArray) -> None:
        self._counts, self._about = tuple(problem.counts.tolist()), about
        self._change, self._steepest = problem.change_probability, steepest
        self._pairs = np.triu_indices(problem.n_attributes, 1)
        self._mixing = Mixing(problem, *self._pairs, about)
        self._parts: list[GatedSum] = []

    def add(self, slopes: FloatArray, fall_from: float, height: float = math.inf) -> None:
        """Add exp(clip(fall_from − Σ_{changed} c_i, −height, 0)); slopes c, shape (k,)."""
        total = float(slopes.sum())
        height = min(height, total - fall_from, self._about + _HIGHER)
        if not height > 0.0:
            return
        part = _gated(self._counts, slopes, fall_from, height)
        got = part.moments()
        mass = math.exp(got.log_normalizer - part.height)
        pairs, wrong = part.bounded_pair_attenuations()
        sure = pairs[self._pairs] - _BOUNDS * (wrong + part.drawing_slack + _ROUNDINGS)
        self._parts.append(part)
        self._mixing.add(-part.height, mass, mass * got.change, mass * sure)

    def add_fit(self, fit: Fit) -> None:
        """Add a ramp that meets the levels."""
        self.add(*self._from_top(fit))

    def add_about(self, fit: Fit) -> None:
        """Add a ramp and its neighbours."""
        slopes, fall_from, height = self._from_top(fit)
        self.add(slopes, fall_from, height)
        for factor in _FACTORS:
            self.add(slopes, factor * fall_from, height)
            for i in range(len(slopes)):
                other = slopes.copy()
                other[i] = min(factor * slopes[i], self._steepest[i])
                self.add(other, fall_from, height)

    def _from_top(self, fit: Fit) -> tuple[FloatArray, float, float]:
        """Return slopes, where the ramp starts to fall, and its height."""
        ramp = fit.ramp
        fall_from = max(float(ramp.slopes @ self._change) - ramp.top, 0.0)
        return np.minimum(ramp.slopes, self._steepest), fall_from, ramp.height

    def add_steepest(self) -> None:
        """Add ramps as steep as the caps allow, and with each slope 0 in turn."""
        mean = float(self._steepest @ self._change)
        for part in _FALL_FROM:
            self.add(self._steepest, part * mean)
        for i in range(len(self._steepest)):
            without = self._steepest.copy()
            without[i] = 0.0
            for part in _FALL_FROM_WITHOUT:
                self.add(without, part * mean)

    def law(self, floor: float) -> VoteBlend | None:
        """Return the best mixture; None if none is found."""
        shares = self._mixing.shares(floor)
        if shares is None:
            return None
        used = np.flatnonzero(shares > _LEAST_SHARE)
        parts = [self._parts[place] for place in used]
        logs = np.log(shares[used]) - 0.5 * np.array([part.height for part in parts])
        alpha = np.exp(logs - logs.max())
        return VoteBlend(tuple(parts), alpha, np.ones(len(self._counts)))


def _gated(
    counts: tuple[int, ...], slopes: FloatArray, fall_from: float, height: float
) -> GatedSum:
    """Return the gated sum of a ramp, none of whose slopes is steeper than asked."""
    bottom = fall_from + height
    unit = bottom / _STATES  # in nats
    slopes = np.minimum(slopes, _BEYOND_BOTTOM * bottom)
    whole = np.floor(slopes / unit)
    # The dither that falls by the rest: ln(1 − θ + θ e^unit) = rest.
    dither = np.expm1(np.maximum(slopes - whole * unit, 0.0)) / math.expm1(unit)
    dither = np.where(dither < _LEAST_DITHER, 0.0, np.minimum(dither, 1.0 - 2.0**-50))
    top = float((whole + dither).sum()) - fall_from / unit
    if fall_from == 0.0:
        top = float(whole.sum() + np.count_nonzero(dither))
    start = max(top - height / unit, 0.0)
    return GatedSum(
        counts,
        whole.astype(np.int64),
        dither,
        "ramp",
        start,
        top - start,
        (top - start) * unit,
        np.ones(len(slopes)),
    )
