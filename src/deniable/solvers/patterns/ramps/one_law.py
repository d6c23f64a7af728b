"""One law for attributes that all have room below their caps: a ramp, or a mixture of ramps.

The best ramp is the answer where it keeps the floor on pairs. Where it breaks the floor ramps are
mixed, or of more than `MOST_MIXED` attributes the ramp's top is moved up.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from deniable.errors import InputError
from deniable.laws.law import PatternLaw
from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import Problem
from deniable.solvers.patterns.optimal import MOST_IN_TABLE, Part
from deniable.solvers.patterns.orbits import alike, orbits
from deniable.solvers.patterns.ramps.evaluate import FourierSums, PatternSums, Ramp
from deniable.solvers.patterns.ramps.mixture import Pool
from deniable.solvers.patterns.ramps.newton import Fit
from deniable.solvers.patterns.ramps.quantize import Sums, Tables
from deniable.solvers.patterns.ramps.search import RampSearch

AIM = 4e-10
"""How far below the request levels are aimed at, in nats: what is drawn must not end above it."""

FLOOR_MARGIN = 1e-9
"""How far above the floor every pair's ratio is kept, for what a record's numbers round."""

MOST_MIXED = 30
"""Attributes up to which ramps are mixed. 40 under a floor of 0.95 would cost 2 to 5 % less, and
take 2.4 s instead of 0.2."""

FEW_ORBITS = 4096
"""Up to which all patterns are summed over in the search for a ramp: twelve different attributes;
of more the grid is as good, and quicker. A hundred that are alike cost 0.35 % more on the grid."""

_GRID_MARGIN = 1e-3
"""How far sums over a grid may be off in a pair's ratio."""


def keep_floor(laws: Iterable[PatternLaw], floor: float | None) -> bool:
    """Return whether every pair's φ_ij ≥ t φ_i φ_j; pairs under two laws have a ratio of 1."""
    return floor is None or all(law.keeps_pair_floor(floor + FLOOR_MARGIN) for law in laws)


class CommonLaw:
    """The search for one law of all attributes.

    ``problem``: the levels, of attributes that all have room below their caps; shape (k,).
    ``caps``: γ in nats, shape (k,). ``height``: about the record's ε, in nats.
    """

    def __init__(
        self, problem: Problem, caps: FloatArray, floor: float | None, height: float
    ) -> None:
        level, k = problem.attribute_epsilon, problem.n_attributes
        self._aimed = replace(problem, attribute_epsilon=level - np.minimum(AIM, 1e-3 * level))
        self._caps, self._floor, self._height = caps, floor, height
        self._groups, size, group_of = alike(self._aimed, caps.tolist())
        self._group_caps = caps[np.unique(group_of, return_index=True)[1]]
        self._sums = FourierSums(self._groups.n_categories, size.astype(np.float64))
        few = math.prod((size + 1).tolist()) <= FEW_ORBITS
        grouped = orbits(self._aimed, caps.tolist()) if few or k <= MOST_IN_TABLE else None
        searched = PatternSums(grouped) if few and grouped is not None else self._sums
        self._margin = FLOOR_MARGIN if few else _GRID_MARGIN
        self._search = RampSearch(searched, self._groups, self._group_caps, height)
        self._drawn: Tables | Sums = Sums(problem.counts.tolist(), group_of)
        if k <= MOST_IN_TABLE and grouped is not None:
            self._drawn = Tables(grouped)

    def best(self) -> Fit | None:
        """Return the best single ramp found, whatever the floor; None if there is none."""
        return self._search.best()

    def keeps_floor(self, fit: Fit) -> bool:
        """Return whether a ramp keeps the floor, as far as the search can tell."""
        return self._floor is None or self._search.least_ratio(fit) >= self._floor + self._margin

    def law(self, fit: Fit | None) -> Part | None:
        """Return the law as drawn: of a ramp, or where that breaks the floor of a mixture of ramps
        or of one with its top moved up; None if none passes its checks."""
        if fit is not None and self.keeps_floor(fit):
            part = self.single(fit)
            if part is not None or self._floor is None:
                return part
        if self._aimed.n_attributes <= MOST_MIXED:
            part = self._mixed(fit)
            if part is not None:
                return part
        return None if fit is None else self.single(fit)

    def single(self, fit: Fit) -> Part | None:
        """Return the law of a ramp as drawn, its top moved up for the floor if need be; None if
        none passes its checks."""
        now: Fit | None = fit
        if self._floor is not None and not self.keeps_floor(fit):
            now = self._search.keeping(self._floor + self._margin, fit)
        # A higher top has more room above the floor; and where two slopes reach their caps at once
        # steps may not settle.
        for _ in range(4):
            part = None if now is None else self._drawn.single(self._groups, self._group_caps, now)
            part = None if part is None else self._checked(part)
            if now is None or (part is not None and keep_floor([part.law], self._floor)):
                return part
            now = self._search.moved(now, 1.02 * now.top)
        return None

    def _checked(self, part: Part) -> Part | None:
        """Return a law if as drawn it meets the levels and keeps the caps."""
        account, level = part.account, self._aimed.attribute_epsilon
        met = (account.attribute_epsilon <= level + AIM).all()
        met &= (account.attribute_epsilon_floor >= level - AIM).all()
        return part if met and (account.epsilon_given_rest <= self._caps).all() else None

    def _mixed(self, fit: Fit | None) -> Part | None:
        """Return the law of the best mixture of ramps about this one as drawn; None if none passes
        its checks."""
        floor = None if self._floor is None else self._floor + 3.0 * FLOOR_MARGIN
        pool = Pool(
            self._sums, self._groups, self._group_caps, floor, self._height, self._drawn.delivered
        )
        ramps = [Ramp(self._groups.attribute_epsilon, 0.0, math.inf)]
        if fit is not None:
            ramps = [each.ramp for each in (fit, *self._search.raised(fit))]
        pool.fill(ramps)
        pool.price()
        found = pool.mixed()
        if found is None:
            return None
        try:
            part = self._drawn.mixed(found.ramps, found.shares)
        except InputError:  # too many parts, or shares too far apart, for one law
            return None
        return self._checked(part) if keep_floor([part.law], self._floor) else None
