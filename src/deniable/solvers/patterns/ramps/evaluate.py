"""Delivered levels of a clipped ramp, and their derivatives by slopes, start and height.

    F(S) = exp(clip(start − t(S), −E, 0)),    t(S) = Σ_{i changed} c_i,

is the density of a pattern S relative to the pattern in which nothing is changed. C_i = 1 if
attribute i is changed, and all means are under the uniform law μ. Attributes that are alike make a
group, with one slope. E_μ[F] = e^{−E} + E_μ[F − e^{−E}], and E_μ[F C_i] likewise, so that each mean
is a sum of terms in which attributes are independent: over frequencies of the cost t
(`FourierSums`, for searches), or over patterns up to exchange of alike attributes (`PatternSums`,
exact). The law as drawn is evaluated again with error bounds (`quantize`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.sums import saddle_tilt
from deniable.solvers.patterns.orbits import Orbits

TermArray = NDArray[Any]
"""Of real numbers by pattern, of complex ones by frequency."""

STATES = 400
"""Of the grid from cost 0 to a ramp's bottom, up to 60 attributes. Heights differ by 3e-4 nats
between 400 states and all patterns; what is drawn is solved for again."""


class Ramp(NamedTuple):
    """A ramp in nats, with one slope for each group of alike attributes.

    Attributes:
        slopes: c ≥ 0, shape (m,).
        start: cost of changes at which it starts to fall.
        height: E, by how much it falls.
    """

    slopes: FloatArray
    start: float
    height: float


@dataclass(frozen=True, eq=False)
class Response:
    """Delivered levels and their derivatives.

    Attributes:
        level: shape (m,), nats.
        by_slope: ∂ level_i/∂ ln c_j with `start` in place, shape (m, m).
        by_start: ∂ level/∂ start with the height in place, shape (m,).
        by_height: ∂ level/∂E with `start` in place, shape (m,).
    """

    level: FloatArray
    by_slope: FloatArray
    by_start: FloatArray
    by_height: FloatArray


class Delivered(NamedTuple):
    """Contribution of a ramp to a mixture: ln F where everything is changed, E_μ[F], E_μ[F C_i],
    shape (m,), and E_μ[F h_i h_j] of attributes of two groups, shape (m, m), on the diagonal of two
    attributes of one group, NaN if it has one."""

    log_end: float
    total: float
    changed: FloatArray
    pairs: FloatArray

    def ratios(self, n_categories: FloatArray) -> FloatArray:
        """Return φ_ij/(φ_i φ_j), shape (m, m), infinite where a group has no second attribute."""
        single = self.total - self.changed * n_categories / (n_categories - 1.0)
        ratios = self.pairs * self.total / np.outer(single, single)
        return np.where(np.isnan(ratios), np.inf, ratios)


class Prices(NamedTuple):
    """Multipliers of the mixture's linear program, of E_μ[F] (`total`), F at nothing and at
    everything changed (`none`, `all`), E_μ[F C_i] (`changed`, shape (m,)) and E_μ[F h_i h_j]
    (`pairs`, shape (m, m), symmetric; on the diagonal of two attributes of one group)."""

    none: float
    all: float
    total: float
    changed: FloatArray
    pairs: FloatArray


class Worth(NamedTuple):
    """Value of a ramp at some prices, E_μ[F], and the derivatives of both by the slopes, the start
    and the height, shapes (m + 2,)."""

    value: float
    value_by: FloatArray
    mass: float
    mass_by: FloatArray


@dataclass(frozen=True, eq=False)
class _Terms:
    """A ramp's functions of the cost, as terms of their means under μ.

    All in units of e^log_scale, the larger of e^{−E} and what E_μ[F] is about.

    Attributes:
        log_scale, height: ln of the unit; E.
        excess: of F − e^{−E}, shape (n,).
        on_ramp: of F where it is falling, shape (n,).
        above: of e^{−E} where F is above it, shape (n,).
        changed: what multiplies a term for C_i, shape (n, m).
        others: the same for C_i of another attribute of a group of whose attributes one is changed,
            shape (n, m); independent of that, if None.
    """

    log_scale: float
    height: float
    excess: TermArray
    on_ramp: TermArray
    above: TermArray
    changed: TermArray
    others: TermArray | None = None

    @property
    def scale(self) -> float:
        """The unit."""
        return math.exp(self.log_scale)

    @property
    def bottom(self) -> float:
        """e^{−E}."""
        return math.exp(-self.height - self.log_scale)

    def moments(self, terms: TermArray) -> FloatArray:
        """Return the means of h and of h C_i, shape (1 + m,)."""
        return np.append(terms.sum().real, (terms @ self.changed).real)

    def pairs(self, terms: TermArray) -> FloatArray:
        """Return the means of h C_i C_j, i ≠ j, shape (m, m)."""
        pairs = (self.changed.T @ (terms[:, None] * self.changed)).real
        if self.others is not None:
            np.fill_diagonal(pairs, terms @ (self.changed * self.others))
        return np.asarray(pairs)


class RampResponse(Protocol):
    """What Newton's method needs to know of ramps, for one set of groups of attributes."""

    size: FloatArray
    """How many attributes each group has, shape (m,)."""

    def response(self, ramp: Ramp) -> Response:
        """Return levels and derivatives."""
        ...


class RampSums(ABC):
    """What ramps deliver, by sums of terms.

    ``n_categories``: a_i of each group, shape (m,). ``size``: how many attributes each group has,
    shape (m,).
    """

    def __init__(self, n_categories: FloatArray, size: FloatArray) -> None:
        self.n_categories, self.size = n_categories, size

    @abstractmethod
    def _terms(self, ramp: Ramp) -> _Terms: ...

    def response(self, ramp: Ramp) -> Response:
        """Return levels and derivatives."""
        sums = self._terms(ramp)
        excess, on, above = map(sums.moments, (sums.excess, sums.on_ramp, sums.above))
        uniform = sums.bottom * np.append(1.0, 1.0 - 1.0 / self.n_categories)
        mass, beneath = uniform + excess, uniform - above
        kept, changed = mass[0] - mass[1:], mass[1:]

        def moved(whole: FloatArray, part: FloatArray) -> FloatArray:
            """d level where E_μ[F] moves by `whole` and E_μ[F C_i] by `part`, axis 0 being i."""
            shape = (-1,) + (1,) * (part.ndim - 1)
            return np.asarray((whole - part) / kept.reshape(shape) - part / changed.reshape(shape))

        # C_i and the number that is changed of a group: of i's own group, i itself and the others.
        counted = sums.pairs(sums.on_ramp) * self.size
        own = counted.diagonal() / self.size * (self.size - 1.0) + on[1:]
        np.fill_diagonal(counted, own)
        return Response(
            np.log(kept) + np.log(self.n_categories - 1.0) - np.log(changed),
            moved(-on[1:] * self.size, -counted) * ramp.slopes,
            moved(on[0], on[1:]),
            moved(-beneath[0], -beneath[1:]),
        )

    def delivered(self, ramp: Ramp) -> Delivered:
        """Return what the ramp brings to a mixture."""
        sums = self._terms(ramp)
        excess, both = sums.moments(sums.excess), sums.pairs(sums.excess)
        # h_i = 1 − C_i/(1 − r_i); E_μ[h_i] = 0, so that the constant part of F drops out of pairs.
        lie = self.n_categories / (self.n_categories - 1.0)
        single = excess[0] - lie * excess[1:]
        pairs = (single[:, None] - lie * excess[1:] + np.outer(lie, lie) * both) * sums.scale
        pairs[np.diag_indices_from(pairs)] = np.where(self.size > 1, pairs.diagonal(), math.nan)
        changed = (sums.bottom / lie + excess[1:]) * sums.scale
        total = (sums.bottom + float(excess[0])) * sums.scale
        return Delivered(self._log_end(ramp), total, changed, pairs)

    def _log_end(self, ramp: Ramp) -> float:
        """Return ln F where everything is changed."""
        return max(min(ramp.start - float(ramp.slopes @ self.size), 0.0), -ramp.height)


class PatternSums(RampSums):
    """Sums over all patterns, up to exchange of alike attributes, shape (n,): exact."""

    def __init__(self, orbits: Orbits) -> None:
        super().__init__(orbits.groups.n_categories, orbits.size.astype(np.float64))
        self.orbits = orbits
        self._changed = orbits.changed_fraction.T
        self._others = (orbits.changed - 1.0) / np.maximum(self.size - 1.0, 1.0)

    def density(self, ramp: Ramp) -> FloatArray:
        """Return F of every orbit, shape (n,)."""
        return np.asarray(np.exp(np.clip(self._below(ramp), -ramp.height, 0.0)))

    def _below(self, ramp: Ramp) -> FloatArray:
        return np.asarray(ramp.start - self.orbits.changed @ ramp.slopes)

    def _terms(self, ramp: Ramp) -> _Terms:
        below, bottom = self._below(ramp), math.exp(-ramp.height)
        density, chance, above = self.density(ramp), self.orbits.chance, below > -ramp.height
        excess = np.where(above, density - bottom, 0.0) * chance
        on_ramp = np.where(above & (below < 0.0), density, 0.0) * chance
        high = np.where(above, bottom, 0.0) * chance
        return _Terms(0.0, ramp.height, excess, on_ramp, high, self._changed, self._others)


class FourierSums(RampSums):
    """Sums over frequencies of the cost of changes."""

    def __init__(self, n_categories: FloatArray, size: FloatArray | None = None) -> None:
        super().__init__(n_categories, np.ones(len(n_categories)) if size is None else size)

    def _terms(self, ramp: Ramp) -> _Terms:
        return _fourier(ramp, self.n_categories, self.size)

    def worth(self, prices: Prices) -> Callable[[Ramp], Worth]:
        """Return what says what ramps are worth at these prices."""
        a = self.n_categories
        lie = a / (a - 1.0)
        pairs = prices.pairs + np.diag(np.diag(prices.pairs))  # of one group h_i h_j, not half
        everywhere = prices.total + float(prices.changed @ (1.0 / lie))

        def worth(ramp: Ramp) -> Worth:
            sums = self._terms(ramp)
            # What the attributes' fates are worth at a frequency; and with an attribute l changed:
            # its own terms out, and in again with C_l = 1, h_l = −1/(a_l − 1).
            signed = 1.0 - lie * sums.changed
            both = signed @ pairs
            each = prices.total + sums.changed @ prices.changed + 0.5 * (signed * both).sum(axis=1)
            own = prices.changed * (1.0 - sums.changed) - (signed + 1.0 / (a - 1.0)) * both
            lost = sums.changed * sums.on_ramp[:, None]
            falls = np.append(self.size, -1.0)  # how fast the last pattern's cost grows
            value_by = np.concatenate(
                [
                    -(lost * (each[:, None] * self.size + own)).sum(axis=0).real,
                    [(sums.on_ramp @ each).real],
                    [(sums.above @ each).real - sums.bottom * everywhere],
                ]
            )
            mass_by = np.concatenate(
                [
                    -lost.sum(axis=0).real * self.size,
                    [sums.on_ramp.sum().real],
                    [sums.above.sum().real - sums.bottom],
                ]
            )
            value = sums.bottom * everywhere + float((sums.excess @ each).real)
            mass = sums.bottom + float(sums.excess.sum().real)
            end = self._log_end(ramp)
            all_changed = prices.all * math.exp(end)
            value, value_by = value * sums.scale + prices.none + all_changed, value_by * sums.scale
            if end <= -ramp.height:
                value_by[-1] -= all_changed
            elif end < 0.0:
                value_by[:-1] -= all_changed * falls
            return Worth(value, value_by, mass * sums.scale, mass_by * sums.scale)

        return worth


def _tilt(keep: FloatArray, size: FloatArray, costs: FloatArray, start: float) -> float:
    """Return the tilt, per unit of cost, under which changes cost `start` on average: where the
    plateau ends the mass is."""
    keep, costs = np.repeat(keep, size.astype(int)), np.repeat(costs, size.astype(int))
    total = float(costs.sum())
    if total <= 0.0:
        return 0.0
    kept = total - min(max(start, 1e-3 * total), (1.0 - 1e-3) * total)
    return saddle_tilt(keep, costs, kept)


def _fourier(ramp: Ramp, a: FloatArray, size: FloatArray) -> _Terms:
    """Sum by frequency, over a grid of costs from 0 to the bottom.

    A cost between two states is rounded to one of them at random ("dither"), so that e^{−cost} is
    right on average. Costs that lie P or more beyond are added times e^{−βP}, β the tilt.
    """
    bottom = ramp.start + ramp.height
    states = int(STATES * max(1.0, float(size.sum()) / 60.0))  # every dither adds its noise
    unit, keep = bottom / states, 1.0 / a
    costs = np.minimum(ramp.slopes / unit, states + 1.0)  # of more, F is at its bottom
    whole = np.floor(costs)
    dither = np.expm1(-unit * (costs - whole)) / math.expm1(-unit)
    live, spent = costs < states, ramp.start / unit
    most = float(size @ (whole + (dither > 0.0))) + 1.0
    fall = ramp.height + 34.0  # what lies a period beyond is damped to rounding, e^{−34}
    tilt = max(_tilt(keep[live], size[live], costs[live], spent), fall / (4 * states))
    # Tilted as steeply as a ramp falls, its lower part is rounded away.
    tilt = min(tilt, 0.95 * unit)
    period = 1 << math.ceil(math.log2(max(min(most, fall / tilt), states + 1.0)))
    turns = np.exp((-2j * math.pi / period) * np.arange(period))
    for count in (64, period):
        frequencies = np.arange(min(count, period // 2 + 1))
        lost = turns[whole.astype(np.int64)[:, None] * frequencies % period]
        lost *= (np.exp(-tilt * whole) * (1.0 - keep))[:, None]
        step = math.exp(-tilt) * turns[frequencies]
        lost *= (1.0 - dither)[:, None] + dither[:, None] * step
        factor = keep[:, None] + lost
        largest_factor = factor[:, 0].real
        factor[np.abs(factor) < 1e-100] = 1e-100  # divided by below
        law = np.prod((factor / largest_factor[:, None]) ** size[:, None], axis=0)
        if np.abs(law[-12:]).max() <= 1e-13:
            break
    law *= 2.0 / period
    law[[0, -1]] *= 0.5  # the frequencies between count twice: n and −n
    log_factor = float(np.log(largest_factor) @ size) + tilt * spent
    largest = max(-ramp.height, log_factor)
    t = np.arange(states + 1)
    weight = tilt * (t - spent) + (log_factor - largest)
    below = np.minimum(unit * (spent - t), 0.0)
    above = np.exp(weight - ramp.height)
    fallen = np.exp(weight + below)
    values = np.stack([fallen - above, np.where(below < 0.0, fallen, 0.0), above])
    excess, on_ramp, high = np.conj(np.fft.rfft(values, period))[:, : len(law)] * law
    return _Terms(largest, ramp.height, excess, on_ramp, high, (lost / factor).T)
