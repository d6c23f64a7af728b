"""One law for attributes that all have room below their caps: a ramp, or a mixture of ramps.

The best ramp is the answer where it keeps the floor on pairs. Where it breaks the floor ramps are
mixed, or of more than `Settings.most_mixed` attributes the ramp's top is moved up.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from deniable.errors import InputError
from deniable.laws.law import PatternLaw
from deniable.laws.patterns import FloatArray
from deniable.solvers.patterns.optimal import Part, table_part
from deniable.solvers.patterns.orbits import orbits
from deniable.solvers.patterns.ramps import quantize
from deniable.solvers.patterns.ramps.evaluate import GridRamps, OrbitRamps, Ramp
from deniable.solvers.patterns.ramps.mixture import Mixture, Pool
from deniable.solvers.patterns.ramps.newton import Fit, RampFit
from deniable.solvers.patterns.ramps.quantize import MOST_IN_TABLE
from deniable.solvers.patterns.ramps.search import RampSearch
from deniable.solvers.patterns.ramps.settings import SETTINGS
from deniable.solvers.problem import Problem

AIM = 4e-10
"""How far below the request levels are aimed at, in nats: what is drawn must not end above it."""

FLOOR_MARGIN = 1e-9
"""How far above the floor every pair's ratio is kept, for what a record's numbers round."""


def keep_floor(laws: Iterable[PatternLaw], floor: float | None) -> bool:
    """Return whether every pair's φ_ij ≥ t φ_i φ_j; pairs under two laws have a ratio of 1."""
    return floor is None or all(law.keeps_pair_floor(floor + FLOOR_MARGIN) for law in laws)


class CommonLaw:
    """The search for one law of all attributes.

    Args:
        problem: the levels, of attributes that all have room below their caps; shape (k,).
        caps: γ in nats, shape (k,).
        floor: t, or None.
        height: about the record's ε, in nats.
    """

    def __init__(
        self, problem: Problem, caps: FloatArray, floor: float | None, height: float
    ) -> None:
        level, k = problem.attribute_epsilon, problem.n_attributes
        self._aimed = replace(problem, attribute_epsilon=level - np.minimum(AIM, 1e-3 * level))
        self._caps, self._floor, self._height = caps, floor, height
        self._counts: list[int] = problem.counts.tolist()
        kinds = np.stack([problem.n_categories, level, caps])
        sizes = np.unique(kinds, axis=1, return_counts=True)[1]
        self._sums: OrbitRamps | GridRamps
        if math.prod((sizes + 1).tolist()) * len(sizes) <= SETTINGS.most_summed:
            grouped = orbits(self._aimed, caps.tolist())
            self._group_of, tolerances = grouped.group_of, SETTINGS.exactly
            self._sums = OrbitRamps(grouped)
        else:
            self._group_of, tolerances = np.arange(k), SETTINGS.on_a_grid
            self._sums = GridRamps(problem.n_categories)
        first = np.unique(self._group_of, return_index=True)[1]
        self._groups = Problem(problem.n_categories[first], self._aimed.attribute_epsilon[first])
        self._group_caps = caps[first]
        self._search = RampSearch(self._sums, self._groups, self._group_caps, height, *tolerances)

    def best(self, near: Fit | None = None) -> Fit | None:
        """Return the best single ramp found, whatever the floor; None if there is none.

        Args:
            near: one for something similar.
        """
        return self._search.best(near)

    def keeps_floor(self, fit: Fit) -> bool:
        """Return whether a ramp keeps the floor, as far as the search can tell."""
        margin = FLOOR_MARGIN if isinstance(self._sums, OrbitRamps) else SETTINGS.grid_margin
        return self._floor is None or self._search.least_ratio(fit) >= self._floor + margin

    def law(self, fit: Fit | None) -> Part | None:
        """Return the law as drawn: of a ramp, or where that breaks the floor of a mixture of ramps
        or of one with its top moved up; None if none passes its checks."""
        if fit is not None and self.keeps_floor(fit):
            part = self.single(fit)
            if part is not None or self._floor is None:
                return part
        if len(self._counts) <= SETTINGS.most_mixed:
            pool = self.pool(fit)
            self.price(pool)
            part = self.mixed(pool)
            if part is not None:
                return part
        return None if fit is None else self.single(fit)

    def single(self, fit: Fit) -> Part | None:
        """Return the law of a ramp as drawn, its top moved up for the floor if need be; None if
        none passes its checks."""
        floor = self._floor
        now: Fit | None = fit
        if floor is not None and not self.keeps_floor(fit):
            now = self._search.keeping(floor + SETTINGS.grid_margin, fit)
        for _ in range(SETTINGS.tries):
            part = None if now is None else self._drawn(now)
            if now is None or (part is not None and keep_floor([part.law], floor)):
                return part
            now = self._search.moved(now, SETTINGS.higher * now.top)
        return None

    def _drawn(self, fit: Fit) -> Part | None:
        """Return the law of a ramp as drawn, whatever the floor."""
        if len(self._counts) <= MOST_IN_TABLE:
            sums = self._sums
            if isinstance(sums, GridRamps):
                sums = self._patterns()
                exact = RampFit(sums, self._aimed, self._caps, *SETTINGS.exactly)
                ramp, top = fit.ramp, None if fit.from_zero else fit.top
                found = exact.at(ramp.slopes, ramp.height, top, fit.share, beyond=fit.beyond)
                if found is None:
                    return None
                fit = found
            return table_part(self._counts, sums.orbits, sums.density(fit.ramp))
        whole = replace(fit, ramp=fit.ramp._replace(slopes=fit.ramp.slopes[self._group_of]))
        alike = len(fit.ramp.slopes) == 1
        law = quantize.landed(self._aimed, self._caps, whole, alike=alike)
        if law is None:
            return None
        return self._checked(Part(tuple(range(len(self._counts))), law, law.account))

    def _patterns(self) -> OrbitRamps:
        return OrbitRamps(orbits(self._aimed, range(len(self._counts))))

    def _checked(self, part: Part) -> Part | None:
        """Return a law if as drawn it meets the levels and keeps the caps."""
        account, level = part.account, self._aimed.attribute_epsilon
        met = (account.attribute_epsilon <= level + AIM).all()
        met &= (account.attribute_epsilon_floor >= level - AIM).all()
        return part if met and (account.epsilon_given_rest <= self._caps).all() else None

    def pool(self, fit: Fit | None) -> "MixedPool":
        """Return ramps to mix about the best one, under these caps."""
        drawn: quantize.MixedTables | quantize.MixedSums
        exact = isinstance(self._sums, OrbitRamps)
        if len(self._counts) > MOST_IN_TABLE:
            drawn, exact = quantize.MixedSums(self._counts, self._group_of), False
        else:
            sums = self._sums if isinstance(self._sums, OrbitRamps) else self._patterns()
            drawn = quantize.MixedTables(self._counts, sums)
        pool = Pool(self._sums, self._height, None if exact else drawn.delivered)
        level, change = self._groups.attribute_epsilon, self._groups.change_probability
        pool.add_always(level, self._group_caps, change)
        ramps = [Ramp(level, 0.0, math.inf)]
        if fit is not None:
            ramps = [each.ramp for each in (fit, *self._search.raised(fit, SETTINGS.apart))]
        for ramp in ramps:
            pool.add_about(ramp, self._group_caps)
        return MixedPool(pool, drawn)

    def price(self, mixed: "MixedPool", rounds: int = SETTINGS.rounds) -> None:
        """Add what the mixture for these levels lacks, in so many rounds."""
        mixed.pool.price(self._groups, self._floor_aimed, self._group_caps, rounds)

    @property
    def _floor_aimed(self) -> float | None:
        return None if self._floor is None else self._floor + 3.0 * FLOOR_MARGIN

    def mixture(self, mixed: "MixedPool") -> Mixture | None:
        """Return the best mixture for these levels, which may be larger than those it was found
        for; None if there is none."""
        return mixed.pool.mixed(self._groups, self._floor_aimed)

    def mixed(self, mixed: "MixedPool") -> Part | None:
        """Return the law of the best mixture as drawn; None if none passes its checks."""
        found = self.mixture(mixed)
        if found is None:
            return None
        try:
            part = mixed.drawn.part(mixed.pool.ramps, found.places, found.shares)
        except InputError:  # too many parts, or shares too far apart, for one law
            return None
        return self._checked(part) if keep_floor([part.law], self._floor) else None


class MixedPool(NamedTuple):
    """Ramps to mix, and how their mixtures are drawn."""

    pool: Pool
    drawn: quantize.MixedTables | quantize.MixedSums
