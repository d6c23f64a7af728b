"""What a clipped ramp delivers, and how that answers when its slopes, start or height move.

    F(S) = exp(clip(start − t(S), −E, 0)),    t(S) = Σ_{i changed} c_i,

is the density of a pattern S relative to the pattern in which nothing is changed: 1 as long as the
changes cost at most `start` nats, e^{−E} from start + E on. C_i = 1 if attribute i is changed, and
all means are under the uniform law μ, under which attribute i is kept with probability r_i = 1/a_i.

Two ways to the same numbers. `OrbitRamps` sums over all patterns, up to exchange of attributes that
are alike (`orbits`): exact, and quick up to a few thousand orbits. `GridRamps` sums by Fourier
inversion, for any number of attributes. Nothing is stated from these numbers: the law as drawn is
evaluated again with error bounds (`quantize`).

With P = E_μ[F Y_i], N = E_μ[F C_i] (sums of positive numbers), the delivered level is
ln(P/N) + ln(a_i − 1), and its derivative by anything is dP/P − dN/N.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.sums import saddle_tilt
from deniable.solvers.patterns.orbits import Orbits
from deniable.solvers.patterns.ramps.settings import SETTINGS

ComplexArray = NDArray[np.complex128]


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
    """What a ramp brings to a mixture.

    Attributes:
        log_end: ln F where everything is changed.
        total: E_μ[F].
        changed: E_μ[F C_i], shape (m,).
        pairs: E_μ[F h_i h_j] of attributes of two groups, shape (m, m), where h_i is 1 if i is kept
            and −1/(a_i − 1) if not; on the diagonal of two attributes of one group, NaN if it has
            one.
    """

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
    """What a density F is worth to a mixture: the multipliers of the mixture's linear program,

        none F(nothing changed) + all F(all changed)
            + E_μ[F (total + Σ_i changed_i C_i + Σ_{i<j} pairs_ij h_i h_j)].

    Attributes:
        none, all, total: as above.
        changed: of the groups, shape (m,).
        pairs: of attributes of two groups, shape (m, m), symmetric; on the diagonal of two
            attributes of one group.
    """

    none: float
    all: float
    total: float
    changed: FloatArray
    pairs: FloatArray


class Worth(NamedTuple):
    """What a ramp is worth at some prices, and how much of a mixture it takes up.

    Attributes:
        value, mass: by the prices, and E_μ[F].
        value_by, mass_by: derivatives by the slopes, the start and the height, shapes (m + 2,).
    """

    value: float
    value_by: FloatArray
    mass: float
    mass_by: FloatArray


class RampResponse(Protocol):
    """What Newton's method needs to know of ramps, for one set of groups of attributes."""

    size: FloatArray
    """How many attributes each group has, shape (m,)."""

    def response(self, ramp: Ramp) -> Response:
        """Return levels and derivatives."""
        ...


class RampSums(RampResponse, Protocol):
    """Sums over all patterns: what the search for a ramp, and for a mixture, needs besides."""

    n_categories: FloatArray
    """a_i of each group, shape (m,)."""

    def delivered(self, ramp: Ramp, *, finely: bool = False) -> Delivered:
        """Return what the ramp brings to a mixture; `finely`: with digits enough for pairs."""
        ...

    def worth(self, prices: Prices) -> Callable[[Ramp], Worth]:
        """Return what says what ramps are worth at these prices."""
        ...


class OrbitRamps:
    """Sums over orbits, shape (n,): patterns up to exchange of alike attributes."""

    def __init__(self, orbits: Orbits) -> None:
        self.orbits = orbits
        self.size = orbits.size.astype(np.float64)
        self.n_categories = orbits.groups.n_categories
        self._changed = np.ascontiguousarray(orbits.changed_fraction.T)
        self._kept = np.ascontiguousarray(orbits.kept_fraction.T)

    def density(self, ramp: Ramp) -> FloatArray:
        """Return F of every orbit, shape (n,)."""
        cost = self._changed @ (ramp.slopes * self.size)
        return np.asarray(np.exp(np.clip(ramp.start - cost, -ramp.height, 0.0)))

    def response(self, ramp: Ramp) -> Response:
        below = ramp.start - self._changed @ (ramp.slopes * self.size)
        mass = np.exp(np.clip(below, -ramp.height, 0.0)) * self.orbits.chance
        changed, kept = mass @ self._changed, mass @ self._kept
        on_ramp = np.flatnonzero((below < 0.0) & (below > -ramp.height))
        at_bottom = np.where(below <= -ramp.height, -mass, 0.0)
        on, changed_on, kept_on = mass[on_ramp], self._changed[on_ramp], self._kept[on_ramp]
        by_log_slope = -changed_on * (on[:, None] * (self.size * ramp.slopes))
        return Response(
            np.log(kept) + np.log(self.n_categories - 1.0) - np.log(changed),
            kept_on.T @ by_log_slope / kept[:, None]
            - changed_on.T @ by_log_slope / changed[:, None],
            kept_on.T @ on / kept - changed_on.T @ on / changed,
            at_bottom @ self._kept / kept - at_bottom @ self._changed / changed,
        )

    def delivered(self, ramp: Ramp, *, finely: bool = False) -> Delivered:
        del finely  # sums over orbits are exact
        density = self.density(ramp)
        return self.sums_of(density * self.orbits.chance, math.log(float(density[-1])))

    def sums_of(self, mass: FloatArray, log_end: float) -> Delivered:
        """Return the same of any density times the orbits' chance, shape (n,)."""
        sign = self._kept - self._changed / (self.n_categories - 1.0)
        pairs = sign.T @ (sign * mass[:, None])
        for group in range(len(self.size)):
            pairs[group, group] = math.nan
            if self.size[group] > 1:
                pairs[group, group] = mass @ self.orbits.pair_attenuation(group, group)
        return Delivered(log_end, float(mass.sum()), mass @ self._changed, pairs)

    def worth(self, prices: Prices) -> Callable[[Ramp], Worth]:
        sign = self._kept - self._changed / (self.n_categories - 1.0)
        apart = prices.pairs - np.diag(np.diag(prices.pairs))
        each = prices.total + self._changed @ prices.changed
        each = each + 0.5 * ((sign @ apart) * sign).sum(axis=1)
        for group in np.flatnonzero(np.diag(prices.pairs)).tolist():
            each += prices.pairs[group, group] * self.orbits.pair_attenuation(group, group)
        each *= self.orbits.chance
        each[0] += prices.none
        each[-1] += prices.all
        by = np.column_stack([each, self.orbits.chance])

        def worth(ramp: Ramp) -> Worth:
            below = ramp.start - self._changed @ (ramp.slopes * self.size)
            density = np.exp(np.clip(below, -ramp.height, 0.0))[:, None] * by
            falling = np.where(((below < 0.0) & (below > -ramp.height))[:, None], density, 0.0)
            bottom = density[below <= -ramp.height].sum(axis=0)
            value, mass = density.sum(axis=0).tolist()
            by_slope = -(self._changed.T @ falling) * self.size[:, None]
            moves = np.vstack([by_slope, falling.sum(axis=0), -bottom])
            return Worth(value, moves[:, 0], mass, moves[:, 1])

        return worth


class GridRamps:
    """Sums by Fourier inversion; every attribute is a group of its own, shapes (k,).

    F − e^{−E} vanishes from the bottom on, so that costs beyond are left out without loss:

        E_μ[F] = e^{−E} + E_μ[F − e^{−E}],    E_μ[F C_i] = (1 − r_i) e^{−E} + E_μ[(F − e^{−E}) C_i].
    """

    def __init__(self, n_categories: FloatArray) -> None:
        self.size = np.ones(len(n_categories))
        self.n_categories = n_categories

    def _sums(self, ramp: Ramp, states: int) -> "_Frequencies":
        if len(self.n_categories) > SETTINGS.most_on_a_grid:
            sums = _continuous(ramp, self.n_categories)
            if sums is not None:
                return sums
        return _on_a_grid(ramp, self.n_categories, states)

    def response(self, ramp: Ramp) -> Response:
        sums = self._sums(ramp, SETTINGS.states)
        excess, on, above = sums.moments(np.stack([sums.excess, sums.on_ramp, sums.above]))
        uniform = sums.bottom * np.append(1.0, 1.0 - 1.0 / self.n_categories)
        mass, beneath = uniform + excess, uniform - above
        kept, changed = mass[0] - mass[1:], mass[1:]

        def moved(whole: FloatArray, part: FloatArray) -> FloatArray:
            """d level where E_μ[F] moves by `whole` and E_μ[F C_i] by `part`, axis 0 being i."""
            shape = (-1,) + (1,) * (part.ndim - 1)
            return np.asarray((whole - part) / kept.reshape(shape) - part / changed.reshape(shape))

        return Response(
            np.log(kept) + np.log(self.n_categories - 1.0) - np.log(changed),
            moved(-on[1:], -sums.pairs(sums.on_ramp)) * ramp.slopes,
            moved(on[0], on[1:]),
            moved(-beneath[0], -beneath[1:]),
        )

    def delivered(self, ramp: Ramp, *, finely: bool = False) -> Delivered:
        sums = self._sums(ramp, SETTINGS.states_for_pairs if finely else SETTINGS.states)
        excess, both = sums.moments(sums.excess[None])[0], sums.pairs(sums.excess)
        # h_i = 1 − C_i/(1 − r_i); E_μ[h_i] = 0, so that the constant part of F drops out of pairs.
        lie = self.n_categories / (self.n_categories - 1.0)
        single = excess[0] - lie * excess[1:]
        pairs = (single[:, None] - lie * excess[1:] + np.outer(lie, lie) * both) * sums.scale
        np.fill_diagonal(pairs, math.nan)
        log_end = max(min(ramp.start - float(ramp.slopes.sum()), 0.0), -ramp.height)
        changed = (sums.bottom / lie + excess[1:]) * sums.scale
        return Delivered(log_end, (sums.bottom + float(excess[0])) * sums.scale, changed, pairs)

    def worth(self, prices: Prices) -> Callable[[Ramp], Worth]:
        a, changed = self.n_categories, prices.changed
        lie = a / (a - 1.0)
        everywhere = prices.total + float(changed @ (1.0 / lie))

        def worth(ramp: Ramp) -> Worth:
            sums = self._sums(ramp, SETTINGS.states_for_prices)
            # What the attributes' fates are worth at a frequency; and with attribute l changed:
            # its own terms out, and in again with C_l = 1, h_l = −1/(a_l − 1).
            signed = 1.0 - lie * sums.changed
            both = signed @ prices.pairs
            each = prices.total + sums.changed @ changed + 0.5 * (signed * both).sum(axis=1)
            if_changed = each[:, None] + changed * (1.0 - sums.changed)
            if_changed -= (signed + 1.0 / (a - 1.0)) * both
            lost = sums.changed * sums.on_ramp[:, None]
            value = sums.bottom * everywhere + float((sums.excess @ each).real)
            mass = sums.bottom + float(sums.excess.sum().real)
            value_by = np.concatenate(
                [
                    -(lost * if_changed).sum(axis=0).real,
                    [(sums.on_ramp @ each).real],
                    [(sums.above @ each).real - sums.bottom * everywhere],
                ]
            )
            mass_by = np.concatenate(
                [
                    -lost.sum(axis=0).real,
                    [sums.on_ramp.sum().real],
                    [sums.above.sum().real - sums.bottom],
                ]
            )
            end = ramp.start - float(ramp.slopes.sum())
            falls = min(max(end, -ramp.height), 0.0)
            all_changed = prices.all * math.exp(falls)
            value, value_by = value * sums.scale + prices.none + all_changed, value_by * sums.scale
            if -ramp.height < end < 0.0:
                value_by[:-2] -= all_changed
                value_by[-2] += all_changed
            elif end <= -ramp.height:
                value_by[-1] -= all_changed
            return Worth(value, value_by, mass * sums.scale, mass_by * sums.scale)

        return worth


@dataclass(frozen=True, eq=False)
class _Frequencies:
    """A ramp's functions of the cost t, as terms by frequency of their means under μ.

    All in units of `scale`, the larger of e^{−E} and what E_μ[F] is about.

    Attributes:
        scale: the unit.
        bottom: e^{−E}.
        excess: of F − e^{−E}, shape (n,).
        on_ramp: of F where it is falling, shape (n,).
        above: of e^{−E} where F is above it, shape (n,).
        changed: what multiplies a term for C_i, shape (n, k).
    """

    scale: float
    bottom: float
    excess: ComplexArray
    on_ramp: ComplexArray
    above: ComplexArray
    changed: ComplexArray

    def moments(self, terms: ComplexArray) -> FloatArray:
        """Return the means of functions h and of h C_i, shape (number of functions, 1 + k)."""
        return np.column_stack([terms.sum(axis=1).real, (terms @ self.changed).real])

    def pairs(self, terms: ComplexArray) -> FloatArray:
        """Return the means of h C_i C_j, shape (k, k)."""
        pairs = (self.changed.T @ (terms[:, None] * self.changed)).real
        np.fill_diagonal(pairs, (terms @ self.changed).real)
        return np.asarray(pairs)


def _tilt(keep: FloatArray, costs: FloatArray, start: float) -> float:
    """Return the tilt, per unit of cost, under which changes cost `start` on average: where the
    plateau ends the mass is."""
    total = float(costs.sum())
    if total <= 0.0:
        return 0.0
    kept = total - min(max(start, 1e-3 * total), (1.0 - 1e-3) * total)
    return saddle_tilt(keep, costs, kept)


def _on_a_grid(ramp: Ramp, a: FloatArray, states: int) -> _Frequencies:
    """Sum over a grid of costs from 0 to the bottom.

    A cost between two states is rounded to one of them at random ("dither"), so that e^{−cost} is
    right on average: what a change is worth on the ramp. With φ_i the transform of what attribute i
    adds under the tilt β, E_μ[h(t)] is (1/P) Σ_n ĥ(ω_n) ∏ φ_i(ω_n), ω_n = 2π n/P, h times e^{βt}:
    what lies P or more beyond comes in times e^{−βP}.
    """
    bottom = ramp.start + ramp.height
    unit, keep = bottom / states, 1.0 / a
    costs = np.minimum(ramp.slopes / unit, states + 1.0)  # of more, F is at its bottom
    whole = np.floor(costs)
    dither = np.expm1(-unit * (costs - whole)) / math.expm1(-unit)
    live, spent = costs < states, ramp.start / unit
    most = float((whole + (dither > 0.0)).sum()) + 1.0
    tilt = max(
        _tilt(keep[live], costs[live], spent), (ramp.height + SETTINGS.damped) / (4 * states)
    )
    tilt = min(tilt, SETTINGS.steepest_tilt * unit)
    needed = min(most, (ramp.height + SETTINGS.damped) / tilt)
    period = 1 << math.ceil(math.log2(max(needed, states + 1.0)))
    frequencies = np.arange(period // 2 + 1)
    turns = np.exp((-2j * math.pi / period) * np.arange(period))
    step = math.exp(-tilt) * turns[frequencies]
    n = whole.astype(np.int64)[:, None]
    lost = turns[n * frequencies % period] * np.exp(-tilt * whole)[:, None]
    lost *= (1.0 - dither)[:, None] + dither[:, None] * step
    lost *= (1.0 - keep)[:, None]
    factor = keep[:, None] + lost
    size = factor[:, 0].real  # the largest of each row
    factor[np.abs(factor) < 1e-100] = 1e-100  # divided by below
    law = np.prod(factor / size[:, None], axis=0) * (2.0 / period)
    law[0] *= 0.5  # the other frequencies count twice: n and −n
    law[-1] *= 0.5
    log_factor = float(np.log(size).sum()) + tilt * spent
    largest = max(-ramp.height, log_factor)
    t = np.arange(states + 1)
    weight = tilt * (t - spent) + (log_factor - largest)
    below = np.minimum(unit * (spent - t), 0.0)
    above = np.exp(weight - ramp.height)
    fallen = np.exp(weight + below)
    values = np.stack([fallen - above, np.where(below < 0.0, fallen, 0.0), above])
    excess, on_ramp, high = np.conj(np.fft.rfft(values, period)) * law
    bottom = math.exp(-ramp.height - largest)
    changed = np.asarray((lost / factor).T, dtype=np.complex128)
    return _Frequencies(math.exp(largest), bottom, excess, on_ramp, high, changed)


def _continuous(ramp: Ramp, a: FloatArray) -> _Frequencies | None:
    """Sum over frequencies of the cost as it is; None if its law takes too many.

    With u = t − start and the law tilted by τ, E_μ[h] = e^{L} (1/P) Σ_n ĝ(ω_n) E[e^{i ω_n u}],
    g = h e^{τ u}, ω_n = 2π n/P, up to what lies P away.
    """
    c, height, keep = ramp.slopes, ramp.height, 1.0 / a
    tilt = min(max(_tilt(keep, c, ramp.start), 0.05), SETTINGS.steepest_tilt)
    odds = (a - 1.0) * np.exp(-tilt * c)
    chance = odds / (1.0 + odds)
    deviation = math.sqrt(float(c**2 @ (chance * (1.0 - chance))))
    period = 16.0 * deviation + SETTINGS.damped / tilt + min(SETTINGS.damped / (1.0 - tilt), height)
    step = 2.0 * math.pi / period
    for last in SETTINGS.frequencies:
        ends = step * np.arange(last - 12, last)
        spread = 2.0 * chance * (1.0 - chance) * (np.cos(np.outer(ends, c)) - 1.0)
        if 0.5 * float(np.log1p(spread).sum(axis=1).max()) <= math.log(SETTINGS.negligible):
            break
    else:
        return None
    omega = step * np.arange(last)
    turn = np.exp(1j * np.outer(omega, c))
    factor = 1.0 - chance + chance * turn
    law = np.exp(np.log(factor).sum(axis=1) - 1j * omega * ramp.start) * (2.0 / period)
    law[0] *= 0.5  # the other frequencies count twice: n and −n
    log_factor = float((np.log1p(odds) - np.log(a)).sum()) + tilt * ramp.start
    largest = max(-height, log_factor)
    law *= math.exp(log_factor - largest)
    s = tilt - 1j * omega
    ended = np.exp((s - 1.0) * height)
    above, on_ramp = law * ended / s, law * (ended - 1.0) / (s - 1.0)
    bottom = math.exp(-height - largest)
    excess = law / s + on_ramp - above
    changed = np.asarray(chance * turn / factor, dtype=np.complex128)
    return _Frequencies(math.exp(largest), bottom, excess, on_ramp, above, changed)
