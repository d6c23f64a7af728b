"""What a clipped ramp delivers, and how that answers when its slopes, top or height move.

    f(S) = exp(clip(z − top + E, 0, E)),    z = Σ_i c_i (q_i − C_i),

C_i = 1 if attribute i is changed, q_i = 1 − p_i: z has mean 0 under every law that keeps the
levels, so that ``top`` says where the ramp ends relative to where the mass is. Written by what is
*changed*, z = Σ c_i q_i − Σ_{changed} c_i: only the sums of changed costs up to the ramp's bottom
matter, and no probability of a rare change is a difference of two large numbers.

Two ways to the same numbers. Attributes that are alike have one slope. `OrbitRamps` sums over the
orbits of patterns (`orbits`): exact, and quick up to a few thousand orbits. `GridRamps` sums over
a grid of costs, k·R states for any number of attributes.

With P = E_μ[f Y_i], N = E_μ[f C_i] (sums of positive numbers), the delivered level is
ln(P/N) + ln(a_i − 1), and its derivative by anything is dP/P − dN/N.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.sums import SumLaw, changed_sum, saddle_tilt
from deniable.solvers.patterns.orbits import Orbits

ComplexArray = NDArray[np.complex128]

MOST_ON_A_GRID = 30
"""Attributes up to which sums of costs are always taken on a grid. Of more the sum is nearly always
all but normal, and a few dozen frequencies hold all of its law."""

_MOST_FREQUENCIES = 320
_LONGEST = 3000
"""States up to which sums on a grid are taken by Fourier inversion."""

_LOST = math.log(1e-14)
"""ln of the mass that may lie beyond those states, as a part of the rarest change's: it is counted
as though it lay before them."""

_RATES = np.array([1.0, 2.0, 3.0, 4.5, 6.0, 9.0])
"""In Chernoff's bound on that mass, by the sum's deviation."""

_NOTHING = 1e-100
"""In place of a factor of 0, by which is divided again."""

_STEEPEST, _OF_RAMP = 600.0, 0.97
"""Nats by which a tilt may change a law from one end of the grid to the other, and how steep it may
be beside the ramp: under a steeper one the ramp's lower parts are lost to rounding."""

COARSE = 700
"""States of the grid on which a ramp is searched for."""

FINE = 16 * COARSE
_AT_LEAST, _OF_SLOPE = 4 * COARSE, 0.06
"""The same where pairs are looked at, at most: those of two faint attributes, with slopes of less
than a state of the coarse grid, lie at a bend of the ramp or beside it. And at least, where states
are such a part of the smallest slope."""


@dataclass(frozen=True, eq=False)
class Ramp:
    """A ramp in nats, with one slope for each group of alike attributes.

    Attributes:
        slopes: c > 0, shape (m,).
        top: where the ramp ends, above the mean of z under the law.
        height: E.
    """

    slopes: FloatArray
    top: float
    height: float


@dataclass(frozen=True, eq=False)
class Response:
    """Delivered levels and their derivatives.

    Attributes:
        level: shape (m,), nats.
        by_slope: ∂ level_i/∂ ln c_j, shape (m, m).
        by_height: ∂ level/∂E with the top in place, shape (m,).
        by_top: ∂ level/∂ top, shape (m,).
    """

    level: FloatArray
    by_slope: FloatArray
    by_height: FloatArray
    by_top: FloatArray


class RampSums(Protocol):
    """Sums over all patterns, for one set of groups."""

    size: FloatArray
    """How many attributes each group has, shape (m,)."""

    def response(self, ramp: Ramp, change: FloatArray) -> Response:
        """Return levels and derivatives.

        Args:
            ramp: slopes, top and height.
            change: the requested q, shape (m,), which says where the mean of z is.
        """
        ...

    def pair_ratios(self, ramp: Ramp, change: FloatArray) -> FloatArray:
        """Return φ_ij/(φ_i φ_j) for attributes of two groups, (m, m), infinite where a group has
        no second attribute."""
        ...


class OrbitRamps:
    """Sums over orbits, shape (n,): patterns up to exchange of alike attributes."""

    def __init__(self, orbits: Orbits) -> None:
        self.orbits = orbits
        self.size = orbits.size.astype(np.float64)
        self._others = np.log(orbits.groups.n_categories - 1.0)
        self._changed = np.ascontiguousarray(orbits.changed_fraction.T)
        self._kept = np.ascontiguousarray(orbits.kept_fraction.T)

    def density(self, ramp: Ramp, change: FloatArray) -> FloatArray:
        """Return f e^{−E} of every orbit, shape (n,)."""
        above = self._above_bottom(ramp, change)
        density: FloatArray = np.exp(np.clip(above, 0.0, ramp.height) - ramp.height)
        return density

    def response(self, ramp: Ramp, change: FloatArray) -> Response:
        above = self._above_bottom(ramp, change)
        mass = np.exp(np.clip(above, 0.0, ramp.height) - ramp.height) * self.orbits.chance
        changed, kept = mass @ self._changed, mass @ self._kept
        level = np.log(kept) + self._others - np.log(changed)
        on_ramp = np.where((above > 0.0) & (above < ramp.height), mass, 0.0)
        # Of f e^{−E} only the part at the bottom answers to E.
        bottom = np.where(above <= 0.0, -mass, 0.0)
        some = np.flatnonzero(on_ramp)
        if len(some) < 0.7 * len(on_ramp):
            on, changed_on, kept_on = on_ramp[some], self._changed[some], self._kept[some]
        else:
            on, changed_on, kept_on = on_ramp, self._changed, self._kept
        by_log_slope = (change - changed_on) * (on[:, None] * (self.size * ramp.slopes))
        return Response(
            level,
            kept_on.T @ by_log_slope / kept[:, None]
            - changed_on.T @ by_log_slope / changed[:, None],
            bottom @ self._kept / kept - bottom @ self._changed / changed,
            changed_on.T @ on / changed - kept_on.T @ on / kept,
        )

    def pair_ratios(self, ramp: Ramp, change: FloatArray) -> FloatArray:
        return self.ratios(self.density(ramp, change) * self.orbits.chance)

    def ratios(self, mass: FloatArray) -> FloatArray:
        """Return φ_ij/(φ_i φ_j) of a law on the orbits, shape (n,) up to a factor; (m, m)."""
        a = self.orbits.groups.n_categories
        sign = self._kept - self._changed / (a - 1.0)
        total = mass.sum()
        single = mass @ sign / total
        pairs = sign.T @ (sign * mass[:, None]) / total
        for group in range(len(a)):
            if self.size[group] > 1:
                pairs[group, group] = mass @ self.orbits.pair_attenuation(group, group) / total
        ratios = pairs / np.outer(single, single)
        ratios[np.diag_indices(len(a))] += np.where(self.size > 1, 0.0, np.inf)
        return np.asarray(ratios)

    def _above_bottom(self, ramp: Ramp, change: FloatArray) -> FloatArray:
        cost = ramp.slopes * self.size
        bottom = float(cost @ change) - ramp.top + ramp.height
        return np.asarray(bottom - self._changed @ cost)


class GridRamps:
    """Sums over t = Σ_{changed} c_i, on a grid of states from 0 to where the ramp's bottom is, b.

    A cost between two states is rounded to one of them at random ("dither"), so that e^{−cost} is
    right on average: what a change is worth on the ramp. (Where the cost itself is, slopes of less
    than a state come out up to half a state, in nats, too small.) With F = f e^{−E}, F − e^{−E}
    vanishes from b on, so states beyond are left out without loss:

        E_μ[F] = e^{−E} + E_μ[F − e^{−E}],    E_μ[F C_i] = (1 − r_i) e^{−E} + E_μ[(F − e^{−E}) C_i].

    The sums are taken under a law ν tilted to where the plateau ends, but no more than the ramp:
    then no sum is larger than one, and none of what counts is small beside what is lost. Every
    attribute is a group of its own, shapes (k,).
    """

    def __init__(self, n_categories: FloatArray, states: int = COARSE) -> None:
        self.size = np.ones(len(n_categories))
        self._a = n_categories
        self._states = states

    def sums(
        self, ramp: Ramp, change: FloatArray, states: int
    ) -> "_CostSums | _LatticeSums | _FourierSums":
        """Return the sums over one ramp."""
        if len(self._a) > MOST_ON_A_GRID:
            sums = _FourierSums(ramp, change, self._a)
            if sums.settled:
                return sums
        costs = _CostSums(ramp, change, self._a, states)
        return _LatticeSums.of(costs) or costs

    def response(self, ramp: Ramp, change: FloatArray) -> Response:
        sums = self.sums(ramp, change, self._states)
        # F − e^{−E}, F on the ramp, and e^{−E} above the bottom.
        first = sums.moments(np.stack([sums.excess, sums.on_ramp, sums.above]))
        uniform = sums.base * np.append(1.0, 1.0 - 1.0 / self._a)
        return answer(
            ramp,
            change,
            self._a,
            uniform + first[0],
            first[1],
            sums.pairs(sums.on_ramp),
            uniform - first[2],
        )

    def pair_ratios(self, ramp: Ramp, change: FloatArray) -> FloatArray:
        sums = self.sums(ramp, change, max(self._states, fine_for(ramp, change)))
        first, pairs = sums.moments(sums.excess[None]), sums.pairs(sums.excess)
        # h_i = 1 − C_i/(1 − r_i); E_μ[h_i] = 0, so that the constant part of f drops out.
        lie = 1.0 / (1.0 - 1.0 / self._a)
        total, changed = first[0, 0], first[0, 1:]
        single = total - lie * changed
        both = single[:, None] - (lie * changed) + np.outer(lie, lie) * pairs
        ratios = both * (sums.base + total) / np.outer(single, single)
        np.fill_diagonal(ratios, np.inf)
        return np.asarray(ratios)


def fine_for(ramp: Ramp, change: FloatArray) -> int:
    """Return how many states tell the pairs of attributes with these slopes."""
    bottom = float(ramp.slopes @ change) - ramp.top + ramp.height
    needed = bottom / (_OF_SLOPE * float(ramp.slopes.min()))
    return math.ceil(min(max(needed, _AT_LEAST), FINE))


def answer(
    ramp: Ramp,
    change: FloatArray,
    n_categories: FloatArray,
    mass: FloatArray,
    on_ramp: FloatArray,
    pairs: FloatArray,
    bottom: FloatArray,
) -> Response:
    """Return levels and derivatives, of attributes that are each a group.

    Args:
        ramp, change, n_categories: shapes (k,).
        mass: E_μ[F] and E_μ[F C_i], shape (1 + k,).
        on_ramp: the same of the part of F that answers to the slopes.
        pairs: of that part E_μ[· C_i C_j], shape (k, k).
        bottom: of the part that answers to E, shape (1 + k,).
    """
    changed = mass[1:]
    kept = mass[0] - changed

    def moved(whole: FloatArray, part: FloatArray) -> FloatArray:
        """d level where E_μ[F] moves by `whole` and E_μ[F C_i] by `part`, axis 0 being i."""
        shape = (-1,) + (1,) * (part.ndim - 1)
        return np.asarray((whole - part) / kept.reshape(shape) - part / changed.reshape(shape))

    return Response(
        np.log(kept) + np.log(n_categories - 1.0) - np.log(changed),
        moved(change * on_ramp[0] - on_ramp[1:], np.outer(on_ramp[1:], change) - pairs)
        * ramp.slopes,
        moved(-bottom[0], -bottom[1:]),
        moved(-on_ramp[0], -on_ramp[1:]),
    )


class _CostSums:
    """The law of t under ν, and the ramp's functions of it.

    Everything is in units of the larger of e^{−E} and what E_μ[F] is about.
    """

    def __init__(self, ramp: Ramp, change: FloatArray, a: FloatArray, states: int) -> None:
        end_of_top = float(ramp.slopes @ change) - ramp.top
        bottom = end_of_top + ramp.height
        unit = bottom / states
        cost = np.minimum(ramp.slopes / unit, 2.0 * states)
        whole = np.floor(cost).astype(np.int64)
        # Where the plateau ends the mass is: tilted so that t has its mean there.
        live, spent = cost < states, end_of_top / unit
        total = float(cost[live].sum())
        keep = 1.0 / a
        mean = total - min(max(spent, 1e-3 * total), (1.0 - 1e-3) * total)
        tilt = saddle_tilt(keep[live], cost[live], mean) if total > 0.0 else 0.0
        tilt = min(tilt, float(np.float32(min(_STEEPEST / states, _OF_RAMP * unit))))
        dither = np.expm1(-unit * (cost - whole)) / math.expm1(-unit)
        self.steps = changed_sum(keep, whole, dither, tilt, states)
        log_factor = self.steps.log_scale + tilt * spent
        largest = max(-ramp.height, log_factor)
        self.base, factor = math.exp(-ramp.height - largest), math.exp(log_factor - largest)
        t = np.arange(states + 1)
        below = unit * (spent - t)  # in nats: the ramp where it is negative
        weight = tilt * (t - spent)
        self.above = factor * np.exp(weight - ramp.height)
        fallen = factor * np.exp(weight + np.minimum(below, 0.0))
        self.on_ramp = np.where(below < 0.0, fallen, 0.0)
        self.excess = fallen - self.above

    @cached_property
    def _law(self) -> SumLaw:
        return SumLaw(self.steps, ceiling=len(self.above) - 1)

    def moments(self, values: FloatArray) -> FloatArray:
        """Return E[h] and E[h C_i] of functions h of t, shape (n, 1 + k)."""
        got = self._law.expectations(values[:, self._law.support])
        return np.concatenate([got.total[:, None], got.changed], axis=1)

    def pairs(self, values: FloatArray) -> FloatArray:
        """Return E[h C_i C_j], shape (k, k)."""
        nothing = np.zeros(self.steps.n_attributes)
        return self._law.pair_expectations(values[self._law.support], nothing, nothing + 1.0)


class _LatticeSums:
    """The same sums as `_CostSums` by Fourier inversion on its grid, for all attributes at once.

    With φ_i the characteristic functions of what attributes add to t, E_ν[h(t)] is
    (1/P) Σ_n ĥ(ω_n) ∏ φ_i(ω_n), ω_n = 2π n/P, if no mass lies at P or beyond.
    """

    def __init__(self, costs: _CostSums, period: int) -> None:
        steps = costs.steps
        self.base, self._period = costs.base, period
        self.above, self.on_ramp, self.excess = costs.above, costs.on_ramp, costs.excess
        place = np.argsort(steps.order)
        n, low, high = steps.weights[place], steps.low[place, None], steps.high[place, None]
        frequencies = np.arange(period // 2 + 1)
        turns = np.exp((2j * math.pi / period) * np.arange(period))
        changed = turns[np.outer(n, frequencies) % period]
        changed *= low + high * turns[frequencies]
        factor = steps.stay[place, None] + changed
        factor[factor == 0.0] = _NOTHING
        self._law = np.prod(factor, axis=0) / period
        self._law[1 : (period + 1) // 2] *= 2.0  # the other frequencies count twice: n and −n
        changed /= factor
        self._changed = changed

    @classmethod
    def of(cls, costs: _CostSums) -> "_LatticeSums | None":
        """Return the sums; None where they would be longer, or not as good."""
        steps, states = costs.steps, len(costs.above)
        change = steps.low + steps.high
        live = change > 0.0
        if not live.any():
            return None
        n = steps.weights[live]
        all_changed = float(n.sum()) + len(n) + 1.0
        if all_changed > states:  # Chernoff's bound, on what lies beyond
            deviation = math.sqrt(float(n**2 @ (change[live] * steps.stay[live]))) + 1.0
            rates = _RATES / deviation
            lost = _LOST + math.log(float(change[live].min()))
            with np.errstate(over="ignore"):
                grown = np.expm1(np.outer(rates, n + 1.0)) * change[live]
                ends = (np.log1p(grown).sum(axis=1) - lost) / rates
            all_changed = min(all_changed, float(ends.min()))
        if all_changed > _LONGEST:
            return None
        return cls(costs, next_fast_len(max(math.ceil(all_changed), states), real=True))

    def moments(self, values: FloatArray) -> FloatArray:
        """See `_CostSums.moments`."""
        terms = np.fft.rfft(values, self._period) * self._law
        changed = real_product(terms, self._changed)
        return np.concatenate([terms.real.sum(axis=1, keepdims=True), changed], axis=1)

    def pairs(self, values: FloatArray) -> FloatArray:
        """See `_CostSums.pairs`."""
        terms = np.fft.rfft(values, self._period) * self._law
        one = terms * self._changed
        pairs = real_product(one, self._changed)
        np.fill_diagonal(pairs, one.real.sum(axis=1))
        return pairs


class _FourierSums:
    """The same as `_CostSums` by Fourier inversion, for costs as they are.

    With u = t − (where the plateau ends) and ν tilted by τ, E_μ[h] = e^{L} E_ν[g(u)] with
    g = h e^{τ u}, and E_ν[g(u)] is (1/P) Σ_n ĝ(ω_n) E_ν[e^{i ω_n u}], ω_n = 2π n/P, up to what lies
    P away. Changing attribute i multiplies the terms by one factor, so that all pairs are one
    matrix product. Good for a search; nothing is stated from these numbers.
    """

    def __init__(self, ramp: Ramp, change: FloatArray, a: FloatArray) -> None:
        end_of_top = float(ramp.slopes @ change) - ramp.top
        c, height, keep = ramp.slopes, ramp.height, 1.0 / a
        total = float(c.sum())
        mean = total - min(max(end_of_top, 1e-3 * total), (1.0 - 1e-3) * total)
        tilt = min(max(saddle_tilt(keep, c, mean), 0.05), 0.95)
        odds = (a - 1.0) * np.exp(-tilt * c)
        w = odds / (1.0 + odds)
        deviation = math.sqrt(float(c**2 @ (w * (1.0 - w))))
        period = 16.0 * deviation + 40.0 / tilt + min(40.0 / (1.0 - tilt), height)
        step = 2.0 * math.pi / period
        for last in (64, 128, _MOST_FREQUENCIES):
            ends = step * np.arange(last - 12, last)
            spread = 2.0 * w * (1.0 - w) * (np.cos(np.outer(ends, c)) - 1.0)
            left = float(np.log1p(spread).sum(axis=1).max())
            if left <= 2.0 * math.log(1e-13):
                break
        self.settled = left <= 2.0 * math.log(1e-13)
        if not self.settled:
            return
        omega = step * np.arange(last)
        turn = np.exp(1j * np.outer(omega, c))
        factor = 1.0 - w + w * turn
        self._changed = w * turn / factor
        law = np.exp(np.log(factor).sum(axis=1) - 1j * omega * end_of_top) * (2.0 / period)
        law[0] *= 0.5  # the other frequencies count twice: n and −n
        log_factor = float((np.log1p(odds) - np.log(a)).sum()) + tilt * end_of_top
        largest = max(-height, log_factor)
        self.base = math.exp(-height - largest)
        law *= math.exp(log_factor - largest)
        s = tilt - 1j * omega
        ended = np.exp((s - 1.0) * height)
        self.above = law * ended / s
        self.on_ramp = law * (ended - 1.0) / (s - 1.0)
        self.excess = law / s + self.on_ramp - self.above

    def moments(self, values: ComplexArray) -> FloatArray:
        """See `_CostSums.moments`; of functions by frequency."""
        changed = (values @ self._changed).real
        return np.concatenate([values.sum(axis=1).real[:, None], changed], axis=1)

    def pairs(self, values: ComplexArray) -> FloatArray:
        """See `_CostSums.pairs`."""
        pairs = (self._changed.T @ (values[:, None] * self._changed)).real
        np.fill_diagonal(pairs, (values @ self._changed).real)
        return np.asarray(pairs)


def real_product(first: ComplexArray, second: ComplexArray) -> FloatArray:
    """Return Re Σ_n first[a, n] second[b, n], (a, b)."""
    return np.asarray(side_by_side(np.conj(first)) @ side_by_side(second).T)


def side_by_side(of: ComplexArray) -> FloatArray:
    """Return real and imaginary parts side by side, (a, 2n)."""
    return np.ascontiguousarray(of).view(np.float64)
