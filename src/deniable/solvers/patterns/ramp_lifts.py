"""Ramps whose bottom is lifted where both attributes of one pair are kept.

    f(S) = max(F(S), e^b where i and j are both kept),    0 < b <= γ_i, γ_j,

F a ramp (`ramp_response`). Where a floor on pairs stands in the way of the best ramp, it is nearly
always one pair that breaks it, and raising b keeps its ratio up at less cost than moving the top.
The law is in `deniable.laws.votes.lifted`, proofs in docs/proofs/clipped.md.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

from deniable.laws.law import PatternLaw
from deniable.laws.patterns import FloatArray, IntArray
from deniable.solvers.patterns.ramp_response import (
    COARSE,
    GridRamps,
    Ramp,
    Response,
    answer,
    fine_for,
)


class Lift(NamedTuple):
    """What a ramp's bottom is lifted to.

    Attributes:
        pair: places of the two attributes, the smaller first.
        height: b in nats.
    """

    pair: tuple[int, int]
    height: float


class LiftedRamps:
    """Sums over ramps that are lifted for one pair; every attribute is a group of its own.

    Where both are kept, max(F, e^b) = F + e^b − min(F, e^b), and min(F, e^b) is a ramp as well, of
    height b with the same bottom, over the other attributes. With F_b that ramp, all in units of
    the bottom,

        E_μ[f ·] = E_μ[F ·] + r_i r_j E_rest[(e^b − F_b) ·].

    Args:
        n_categories: a_i, shape (k,).
        lift: of the ramp.
        states: of the grid, see :class:`GridRamps`.
    """

    def __init__(self, n_categories: FloatArray, lift: Lift, states: int = COARSE) -> None:
        self.size = np.ones(len(n_categories))
        self._a, self._states = n_categories, states
        self._pair, self._lift = list(lift.pair), lift.height
        self._rest: IntArray = np.delete(np.arange(len(n_categories)), self._pair)
        self._both = 1.0 / float(np.prod(n_categories[self._pair]))
        self._all, self._others = (GridRamps(n) for n in (n_categories, n_categories[self._rest]))

    def response(self, ramp: Ramp, change: FloatArray) -> Response:
        whole = self._all.sums(ramp, change, self._states)
        lifted = self._others.sums(*self._beside(ramp, change), self._states)
        part, high = self._both / lifted.base, math.exp(self._lift)
        excess, on_ramp, above = (
            whole.moments(np.stack([whole.excess, whole.on_ramp, whole.above])) / whole.base
        )
        pairs = whole.pairs(whole.on_ramp) / whole.base
        plateau = lifted.excess + lifted.above - lifted.on_ramp
        beside = part * lifted.moments(
            np.stack([lifted.excess, lifted.on_ramp, plateau - lifted.above])
        )
        uniform = np.append(1.0, 1.0 - 1.0 / self._a)
        places = np.append(0, 1 + self._rest)
        raised = self._both * (high - 1.0) * uniform[places]
        mass, bottom = uniform + excess, uniform - above
        mass[places] += raised - beside[0]
        on_ramp[places] -= beside[1]
        pairs[np.ix_(self._rest, self._rest)] -= part * lifted.pairs(lifted.on_ramp)
        bottom[places] += raised - beside[2]
        return answer(ramp, change, self._a, mass, on_ramp, pairs, bottom)

    def pair_ratios(self, ramp: Ramp, change: FloatArray) -> FloatArray:
        states = max(self._states, fine_for(ramp, change))
        whole = self._all.sums(ramp, change, states)
        lifted = self._others.sums(*self._beside(ramp, change), states)
        # h_i = 1 − C_i/(1 − r_i); E_μ[h_i] = 0, so that constants drop out, and h_i is 1 where i
        # is kept.
        lie = 1.0 / (1.0 - 1.0 / self._a)
        first = whole.moments(whole.excess[None])[0] / whole.base
        total, single, both = _fates(first, whole.pairs(whole.excess) / whole.base, lie)
        part, rest = self._both / lifted.base, self._rest
        first = part * lifted.moments(lifted.excess[None])[0]
        beside, others, among = _fates(first, part * lifted.pairs(lifted.excess), lie[rest])
        raised = self._both * (math.exp(self._lift) - 1.0) - beside
        i, j = self._pair
        single[rest] -= others
        single[[i, j]] += raised
        both[np.ix_(rest, rest)] -= among
        for one in (i, j):
            both[one, rest] -= others
            both[rest, one] -= others
        both[i, j] += raised
        both[j, i] += raised
        ratios = both * (1.0 + total + raised) / np.outer(single, single)
        np.fill_diagonal(ratios, np.inf)
        return np.asarray(ratios)

    def _beside(self, ramp: Ramp, change: FloatArray) -> tuple[Ramp, FloatArray]:
        """Return min(F, e^b) over the other attributes, and how often these are changed."""
        spent = float(ramp.slopes[self._pair] @ change[self._pair])
        top = ramp.top - spent - (ramp.height - self._lift)
        return Ramp(ramp.slopes[self._rest], top, self._lift), change[self._rest]


def _fates(
    first: FloatArray, pairs: FloatArray, lie: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return E[g], E[g h_i] and E[g h_i h_j] from E[g], E[g C_i], (1 + k,), and E[g C_i C_j]."""
    total, changed = float(first[0]), first[1:]
    single = total - lie * changed
    both = single[:, None] - lie * changed + np.outer(lie, lie) * pairs
    return total, single, both


def least_pair(law: PatternLaw) -> tuple[int, int]:
    """Return the pair with the least φ_ij/(φ_i φ_j)."""
    single = law.attenuations()
    return min(
        itertools.combinations(range(len(single)), 2),
        key=lambda pair: law.eigenvalues(pair)[1, 1] / (single[pair[0]] * single[pair[1]]),
    )
