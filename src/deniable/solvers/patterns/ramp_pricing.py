"""What a mixture of ramps lacks, where patterns are too many to enumerate.

The multipliers of the linear program of `ramp_mixtures` say what a density F would be worth to the
mixture: the less its reduced cost

    −E_μ[F (total + Σ_i changed_i C_i + Σ_ij pairs_ij h_i h_j)]
    − top F(nothing changed) − scale F(all changed)

is below 0, the more a unit of it brings. How large a share it can have is limited by what a unit
takes up of the mixture,

    F(nothing changed) + E_μ[F]/mass + scale F(all changed),

mass the mixture's E_μ[f] (the program's columns have about this size): from ramps in use the one
over the other is lowered in slopes, place and height. By the reduced cost alone it would be ramps
that hardly fall, of which next to nothing can be mixed.

Then from the same ramps with a top that falls where one attribute is changed: the one that is
changed least, to which the caps leave the least of what it would cost without them.

Both sums are by frequencies, as in `ramp_families`, for ramps whose slopes fall on a grid by
dither. With z_i the factor by which the tilted law's transform changes where i is changed,
φ_i = r_i + (1 − r_i) z_i, c_i = (1 − r_i) z_i/φ_i and s_i = r_i (1 − z_i)/φ_i, a frequency adds

    ∏ φ_i (total + Σ_i changed_i c_i + ½ s'Ps),    P_ij = pairs_ij,

of which the derivatives by every z_i take one product P s: all derivatives cost about as much as
the sum. (A sample of patterns told the cost of the ramps that it was drawn for, but not of those
that a search by it ends at: these were the sample's mistakes.)
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.sums import saddle_tilt
from deniable.solvers.patterns.ramp_mixtures import Prices
from deniable.solvers.patterns.ramp_response import ComplexArray
from deniable.solvers.problem import Problem

_DAMPED, _STEEPEST_TILT = 20.0, 0.97
"""Nats that sums beyond those told apart are damped by; and of the ramp's own slope, the most."""

_NOTHING = 1e-100
"""In place of a factor of 0, by which is divided again."""

_FURTHER = 2.5
"""Times the bottom of the ramp where a search starts that it may come to."""

HIGHER = 25.0
"""Nats that a ramp's bottom may lie below the record's."""

_STEPS, _GAINED = 3, 1e-4
"""Steps of a search, and what a ramp must gain for what it takes up."""

_TOP = 0.4
"""Part of the cap that a top falls by at first: from 0 few searches find where to."""


class _Grid:
    """A grid of what ramps cost.

    Args:
        states: units up to the lowest bottom that a search may come to.
        told_apart: sums, more than twice as many.

    Attributes:
        states, told_apart: as given.
        frequencies: whole numbers, from 0 to half of the sums.
        turns: e^{−iω} of all multiples.
        weight: of a frequency in a sum over all; the others count twice: n and −n.
        least_tilt: in nats of a unit.
    """

    def __init__(self, states: int, told_apart: int) -> None:
        self.states, self.told_apart = states, told_apart
        self.frequencies = np.arange(told_apart // 2 + 1)
        self.turns = np.exp((-2j * math.pi / told_apart) * np.arange(told_apart))
        ends = self.frequencies % (told_apart // 2) == 0
        self.weight = np.where(ends, 1.0, 2.0) / told_apart
        self.least_tilt = _DAMPED / told_apart


_COARSE, _FINE, _MOST_COARSELY = _Grid(96, 256), _Grid(192, 512), 19
"""Grids, and attributes up to which the first is used: beyond, their slopes are fewer units."""


class FallingRamp(NamedTuple):
    """The density exp(max(min(fall_from − Σ_{changed} c_i, −[j changed] top), −height)).

    Attributes:
        slopes: c_i in nats, shape (k,).
        fall_from, height: in nats.
        place: of attribute j, where the top falls; −1 if it does nowhere.
        top: by how much, in nats.
    """

    slopes: FloatArray
    fall_from: float
    height: float
    place: int = -1
    top: float = 0.0


class RampPrices:
    """What ramps would bring to a mixture.

    Args:
        problem: the attributes and their levels.
        prices: of the mixture's program.
        scale: what a density of 1 where all is changed is worth.
        mass: the mixture's E_μ[f].

    Attributes:
        keep: r_i = 1/a_i, shape (k,).
        top, total, changed: the prices; see :class:`~.ramp_mixtures.Prices`.
        pairs: those of the pairs, shape (k, k), both ways round.
        scale, mass: as given.
        rarest: place of the attribute that is changed least.
    """

    def __init__(self, problem: Problem, prices: Prices, scale: float, mass: float) -> None:
        k = problem.n_attributes
        self.keep, self.scale, self.mass = 1.0 / problem.n_categories, scale, mass
        self.top, self.total, self.changed = prices.top, prices.total, prices.changed
        self.pairs = np.zeros((k, k))
        self.pairs[np.triu_indices(k, 1)] = prices.pairs
        self.pairs += self.pairs.T
        self.rarest = int(np.argmin(problem.change_probability))

    def lacking(self, ramps: Iterable[FallingRamp], steepest: FloatArray) -> list[FallingRamp]:
        """Return ramps that the mixture gains by, one near each of some at most.

        Args:
            ramps: to start from.
            steepest: slopes that keep the caps, shape (k,).
        """
        found = [self._lowered(ramp, steepest) for ramp in ramps]
        return [ramp for ramp in found if ramp is not None]

    def topped(self, ramp: FallingRamp, steepest: FloatArray) -> FallingRamp:
        """Return the ramp with a top that falls where the rarest change is, if it has none."""
        if ramp.place >= 0:
            return ramp
        return ramp._replace(place=self.rarest, top=_TOP * float(steepest[self.rarest]))

    def reduced_cost(self, ramp: FallingRamp) -> tuple[float, FloatArray]:
        """Return the reduced cost of a ramp over what it takes up, and the derivatives by slopes,
        where it starts to fall, its height, and by how much its top falls; shape (k + 3,)."""
        at = np.append(ramp.slopes, [ramp.fall_from, ramp.height, ramp.top])
        place = ramp.place if ramp.place >= 0 else self.rarest
        return _ReducedCost(self, at, place, max(ramp.fall_from + ramp.height, 1.0))(at)

    def _lowered(self, ramp: FallingRamp, steepest: FloatArray) -> FallingRamp | None:
        """Return a ramp of less reduced cost near another; None if that is not below 0."""
        from scipy.optimize import minimize

        slopes = np.minimum(ramp.slopes, steepest)
        total = math.fsum(slopes.tolist())
        fall_from = min(ramp.fall_from, total)
        height = min(ramp.height, total - fall_from, math.log(self.scale) + HIGHER)
        place = ramp.place if ramp.place >= 0 else self.rarest
        top = ramp.top if ramp.place >= 0 else 0.0
        room = (_FURTHER - 1.0) / 2.0 * max(fall_from + height, 1.0)
        most = np.append(steepest, [fall_from + room, height + room, 0.0])
        if ramp.place >= 0:
            most[-1] = steepest[place]
        start = np.minimum(np.append(slopes, [fall_from, height, top]), most)
        cost = _ReducedCost(self, start, place, float(most[-3] + most[-2]))
        found = minimize(
            cost,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, float(one)) for one in most],
            options={"maxiter": _STEPS},
        )
        if not found.fun < -_GAINED:
            return None
        fall_from, height, top = found.x[-3:].tolist()
        return FallingRamp(found.x[:-3], fall_from, height, ramp.place, top)


class _ReducedCost:
    """The reduced cost of a ramp over what it takes up, and its derivatives.

    Args:
        of: the prices.
        about: slopes, where the ramp starts to fall, its height, and by how much its top falls,
            where evaluated first; shape (k + 3,).
        place: of the attribute where the top may fall.
        bottom: nats that the ramp starts to fall at and falls by, together, at most.
    """

    def __init__(self, of: RampPrices, about: FloatArray, place: int, bottom: float) -> None:
        grid = self._grid = _COARSE if len(of.keep) <= _MOST_COARSELY else _FINE
        self._of, self._place, self._unit = of, place, bottom / grid.states
        self._others = np.delete(np.arange(len(of.keep)), place)
        self._keep = of.keep[self._others]
        self._among = np.ascontiguousarray(of.pairs[np.ix_(self._others, self._others)])
        self._beside = of.pairs[place, self._others]
        tilt = max(self._saddle(about), grid.least_tilt)
        self._tilt = min(tilt, max(_STEEPEST_TILT * self._unit, grid.least_tilt))
        self._one = math.exp(-self._tilt) * grid.turns[: len(grid.frequencies)]
        units = np.arange(grid.states + 2)
        self._t, self._grown = self._unit * units, np.exp(self._tilt * units)

    def _saddle(self, about: FloatArray) -> float:
        """Return β for one unit, where sums are about as large as the plateau is wide."""
        cost = np.minimum(about[self._others] / self._unit, self._grid.states + 1.0)
        live = cost > 0.0
        total = float(cost[live].sum())
        if total <= 0.0:
            return 0.0
        kept = total - min(max(float(about[-3]) / self._unit, 1e-3 * total), 0.999 * total)
        return saddle_tilt(self._keep[live], cost[live], kept)

    def _factors(self, slopes: FloatArray) -> tuple[ComplexArray, ComplexArray]:
        """Return z and its derivative by the slope of every other attribute, shapes (k − 1, n)."""
        grid = self._grid
        units = np.minimum(slopes / self._unit, grid.states + 1.0)
        whole = np.floor(units).astype(np.int64)
        # The dither that falls by the rest: 1 − θ + θ e^−unit = e^−rest.
        rest, step = (units - whole) * self._unit, -math.expm1(-self._unit)
        z = grid.turns[np.outer(whole, grid.frequencies) % grid.told_apart]
        z *= np.exp(-self._tilt * whole)[:, None]
        falls = z * (self._one - 1.0)
        z += (-np.expm1(-rest) / step)[:, None] * falls
        falls *= (np.exp(-rest) / step)[:, None]
        return z, falls

    def __call__(self, at: FloatArray) -> tuple[float, FloatArray]:
        """Return both.

        Args:
            at: slopes, where the ramp starts to fall, its height, and by how much its top falls;
                shape (k + 3,).
        """
        of, place, told_apart = self._of, self._place, self._grid.told_apart
        slopes, (fall_from, height, top) = at[:-3], at[-3:].tolist()
        kept, own = float(of.keep[place]), float(of.changed[place])
        r, price = self._keep[:, None], of.changed[self._others]
        z, by_slope = self._factors(slopes[self._others])
        phi = (1.0 - r) * z
        phi += r
        law = np.prod(phi, axis=0)
        if not law.all():
            phi[phi == 0.0] = _NOTHING
            law = np.prod(phi, axis=0)
        share = r / phi
        signed = share * (1.0 - z)
        halves = signed.view(np.float64)
        among = (self._among @ halves).view(np.complex128)
        beside = (self._beside @ halves).view(np.complex128)
        worth = (of.total + float(price.sum())) - (price @ share.view(np.float64)).view(
            np.complex128
        )
        worth += 0.5 * np.einsum("in,in->n", signed, among)
        # Where attribute j is kept, and where it is changed; and the chance of the others' sum.
        by_fate = np.empty((3, len(law)), dtype=np.complex128)
        by_fate[0] = kept * (worth + beside)
        by_fate[1] = (1.0 - kept) * (worth + own) - kept * beside
        by_fate[2] = 1.0
        worths, chances = by_fate[:2], np.array([[kept], [1.0 - kept]])
        # The ramp over its bottom by the others' sum, in both cases.
        end, tops = math.exp(-height), np.array([[0.0], [-top]])
        below = (fall_from - self._t) - np.array([[0.0], [slopes[place]]])
        over = np.minimum(below, tops)
        above = over > -height
        grown = above * self._grown
        ramp, high = np.exp(np.maximum(over, -height)) * grown, end * grown
        excess, on_slope = ramp - high, below < tops
        falling, on_top = ramp * on_slope, ramp[1] * ~on_slope[1]
        # By states: E_μ[F W] and E_μ[F] are sums over these.
        states = np.fft.irfft(law * by_fate, told_apart)[:, : len(self._t)]
        worth_at, chance_at = states[:2], chances * states[2]
        everywhere = of.total + float(of.changed @ (1.0 - of.keep))
        mass = float(np.vdot(excess, chance_at)) + end
        total = math.fsum(slopes.tolist())
        all_changed = math.exp(max(min(fall_from - total, -top), -height))
        takes_up = 1.0 + mass / of.mass + of.scale * all_changed
        cost = -float(np.vdot(excess, worth_at)) - end * everywhere
        cost = (cost - of.top - of.scale * all_changed) / takes_up
        # d(cost) takes_up = −d E_μ[F (W + cost/mass)] − (1 + cost) scale d F(all changed).
        more = cost / of.mass
        worth_at = worth_at + more * chance_at
        spectra = np.conj(np.fft.rfft(excess, told_apart)) * (law * self._grid.weight)
        both = (spectra * (worths + more * chances)).sum(axis=0)
        plain, crossed = (chances * spectra).sum(axis=0), kept * (spectra[0] - spectra[1])
        # ∂c_i/∂z_i = (1 − r_i) r_i/φ_i² and ∂s_i/∂z_i = −r_i/φ_i².
        inner = price[:, None] * (1.0 - r) - among
        inner *= plain
        inner -= np.outer(self._beside, crossed)
        inner *= share
        inner += (1.0 - r) * both
        by_slope /= phi
        derivative = np.empty_like(at)
        # Re Σ_n inner[i, n] by_slope[i, n]
        inner.imag *= -1.0
        derivative[self._others] = np.einsum(
            "in,in->i", inner.view(np.float64), by_slope.view(np.float64)
        )
        by_fall = (falling * worth_at).sum(axis=1)
        derivative[place] = -by_fall[1]
        derivative[-3] = by_fall.sum()
        derivative[-2] = float(np.vdot(high, worth_at)) - end * (everywhere + more)
        derivative[-1] = -float(on_top @ worth_at[1])
        weight = of.scale * all_changed * (1.0 + cost)
        if all_changed == end:
            derivative[-2] -= weight
        elif fall_from - total < -top:
            derivative[-3] += weight
            derivative[:-3] -= weight
        else:
            derivative[-1] -= weight
        return cost, -derivative / takes_up
