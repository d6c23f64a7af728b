"""The clipped ramp: every level met, and every attribute protected against those who know the rest.

    f ∝ exp(clip(Σ_{i kept} c_i − τ, 0, E)),   0 < c_i <= γ_i

has record level E and `epsilon_given_rest` at most c_i. These laws run from the Kronecker product
(E = Σ ε_i, c_i = ε_i) to the weighted vote (E = ε*, c → ∞).  The k + 2 unknowns c, τ, E solve

    p_i(c, τ, E) = requested p_i,                 i = 1..k,
    E_f[s | on the ramp] = E_f[s],                s = Σ_{i kept} c_i,
    max_i c_i/γ_i = 1:  some cap is just reached.

The second makes E_f[s] stationary in τ: of all ramps with these slopes the one that tells most. The
third pins the common scale of c, to which p hardly responds near a vote (scaling c changes nothing
in a vote), while it responds to E strongly; so E, not the scale, is solved for.  One accelerated
fixed point does it all, with the exact response to E and the diagonal of the response to c.

The proofs are in docs/proofs/clipped.md, Theorem 3 and section 4.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.gated import LARGEST_HEIGHT, GatedSum, on_grid
from deniable.solvers.patterns.certificate import default_resolution
from deniable.solvers.problem import Problem

SETTLED = 1e-3
"""A relative miss of the levels that landing can mend."""

SEARCHED = 24
"""Attributes up to which the place of the ramp is searched for."""

_GOLDEN = (math.sqrt(5) - 1) / 2

_STEP = 0.06
"""Distance of the places tried first."""

NARROWER = 0.15
"""What a search leaves of the interval in which the best place may lie; the place moves with the
levels, too."""


@dataclass
class RampState:
    """A ramp before it is put on a grid."""

    slopes: FloatArray  # c_i, nats
    # Top of the ramp minus Σ c_i p_i, nats: there the mass is, if E is large. Over E it is called
    # the ramp's place.
    offset: float
    height: float  # E


@dataclass
class _Response:
    law: GatedSum
    miss: FloatArray  # requested p − p, (k,)
    by_height: FloatArray  # ∂p_i/∂E with the ramp's top in place
    by_slope: FloatArray  # E_f[on the ramp (Y_i − p_i)²], the diagonal of ∂p_i/∂c_i
    shift: float  # Σ c_i p_i − E_f[s | on the ramp], nats


class _Fitter:
    def __init__(self, problem: Problem, resolution: float) -> None:
        self.problem = problem
        self.resolution = resolution
        a, epsilon = problem.n_categories, problem.attribute_epsilon
        self._alike = bool(np.all(a == a[0]) and np.all(epsilon == epsilon[0]))

    @property
    def searched(self) -> bool:
        """Whether the ramp's place is to be searched for."""
        return self.problem.n_attributes <= SEARCHED or self._alike

    def law(self, state: RampState) -> tuple[GatedSum, float]:
        """Return the ramp on its grid and the number of grid units in a nat."""
        problem, slopes = self.problem, state.slopes
        deviation = math.sqrt(
            float(slopes**2 @ (problem.keep_probability * problem.change_probability))
        )
        unit = min(self.resolution / deviation, 2.0**27 / float(slopes.sum()))
        if self._alike:
            unit = 1.0 / float(slopes[0])  # then all weights are 1 and only their number counts
        weights = np.ones(len(slopes)) if self._alike else slopes * unit
        n, dither = on_grid(weights)
        width = state.height * unit
        top = float(weights @ problem.keep_probability) + state.offset * unit
        start = max(min(top, float(weights.sum())) - width, 0.0)
        law = GatedSum(
            tuple(problem.counts.tolist()),
            n,
            dither,
            "ramp",
            start,
            width,
            state.height,
            np.ones(problem.n_attributes),
        )
        return law, unit

    def response(self, state: RampState) -> _Response:
        """Evaluate one ramp and how its keep probabilities respond."""
        problem = self.problem
        law, unit = self.law(state)
        sums, steps, reference, log_factor = law.tilted
        s = sums.support
        back = np.exp(np.clip(-steps.tilt * (s - reference), -740.0, 600.0))
        full = np.exp(law.gate_exponent(s) - state.height) * back
        on_ramp = np.where((s > law.start) & (s < law.start + law.width), full, 0.0)
        top = np.where(s >= law.start + law.width, full, 0.0)
        got = sums.expectations(np.stack([law.gate_excess(s) * back, on_ramp, top]))
        scale = max(log_factor, 0.0)
        base, part = math.exp(-scale), math.exp(log_factor - scale)
        total = base + part * float(got.total[0])
        # E_μ[h (Y_i − p_i)] = (1−p_i) E_μ[h; kept] − p_i E_μ[h; changed]
        value = (problem.change_probability * got.kept - problem.keep_probability * got.changed) * (
            part / total
        )
        square = (
            (
                problem.change_probability**2 * got.kept[1]
                + problem.keep_probability**2 * got.changed[1]
            )
            * part
            / total
        )
        mass = float(got.total[1])
        shift = 0.0
        if mass > 0:
            mean = float(sums.dot(on_ramp * s, sums.mass)) / mass
            shift = (float((law.weights + law.dither) @ problem.keep_probability) - mean) / unit
        return _Response(
            law,
            problem.keep_excess * (base / total) - value[0],
            value[1] + value[2],
            np.maximum(square, 1e-300),
            shift,
        )

    def fit(
        self,
        state: RampState,
        rescale: Callable[[RampState], float],
        target: float,
        *,
        centring: bool,
        steps: int = 60,
    ) -> tuple[RampState, _Response, float]:
        """Solve for c and E, and for τ if `centring`.

        `rescale` says by what factor all slopes must be multiplied.
        """
        problem = self.problem
        k = problem.n_attributes
        states: list[FloatArray] = []
        moves: list[FloatArray] = []
        best: tuple[RampState, _Response, float] | None = None
        worse = 0
        for _ in range(steps):
            # The scale is a gauge: put it right first, so that the fixed point never sees it.
            factor = rescale(state)
            state = RampState(state.slopes * factor, state.offset, state.height)
            now = self.response(state)
            size = float(
                np.abs(now.miss / (problem.keep_excess * problem.change_probability)).max()
            )
            if best is None or size < best[2]:
                best, worse = (state, now, size), 0
            else:
                worse += 1
            settled = not centring or abs(now.shift) <= 0.01 * state.height
            if (size <= target and settled) or worse > 8:
                break
            c = state.slopes
            reach = float(c @ now.by_height)
            climb = float(c @ now.miss) / reach if reach > 0 else 0.1 * state.height
            climb = min(max(climb, -0.25 * state.height), 0.25 * state.height)
            rest = now.miss - climb * now.by_height
            move = np.concatenate(
                [
                    np.clip(rest / (now.by_slope * c), -0.5, 0.5),
                    [centring * 0.7 * now.shift / state.height, climb / state.height],
                ]
            )
            states.append(np.concatenate([np.log(c), [state.offset, math.log(state.height)]]))
            states[-1][k] /= state.height
            moves.append(move)
            del states[:-7], moves[:-7]
            new = states[-1] + move
            if len(states) > 1:
                d_state, d_move = np.diff(states, axis=0).T, np.diff(moves, axis=0).T
                weight = np.append(np.sqrt(now.by_slope) * c, [0.3, 1.0])
                mix = np.linalg.lstsq(d_move * weight[:, None], move * weight, rcond=1e-9)[0]
                new = new - (d_state + d_move) @ mix
            new = states[-1] + np.clip(new - states[-1], -0.4, 0.4)
            height = min(
                math.exp(float(new[k + 1])), float(problem.attribute_epsilon.sum()), LARGEST_HEIGHT
            )
            slopes = np.minimum(np.exp(new[:k]), 3.0 * height)
            state = RampState(slopes, float(new[k]) * height, height)
        assert best is not None
        return best

    def best(
        self, state: RampState, rescale: Callable[[RampState], float]
    ) -> tuple[RampState, _Response, float]:
        """Solve, with the ramp placed where E is least.

        Many attributes: s is all but continuous and the stationary place is the best.  Few: E has
        kinks where an end of the ramp meets a value of s, and the place is searched for.
        """
        state, now, miss = self.fit(state, rescale, 1e-3, centring=True, steps=30)
        if not self.searched:
            return self.fit(state, rescale, 1e-11, centring=False)
        first = state.offset / state.height if miss < 0.1 else 0.5
        places = [first + _STEP * i for i in (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5)]
        search = _PlaceSearch(self, state, rescale)
        place = min(places, key=search.height)
        return search.between(place - _STEP, place + _STEP) or (state, now, math.inf)


class _PlaceSearch:
    """The search for the place of least E, place being the ramp's top over E as in `RampState`."""

    def __init__(
        self, fitter: _Fitter, start: RampState, rescale: Callable[[RampState], float]
    ) -> None:
        self._fitter, self._start, self._rescale = fitter, start, rescale
        self._tried: dict[float, tuple[RampState, _Response, float]] = {}

    def height(self, place: float) -> float:
        """Return E of the ramp at a place, warm from the nearest one tried; infinite for none."""
        tried = self._tried
        nearest = min(tried, key=lambda x: abs(x - place)) if tried else None
        warm = tried[nearest][0] if nearest is not None else self._start
        warm = RampState(warm.slopes, place * warm.height, warm.height)
        trial = self._fitter.fit(warm, self._rescale, 1e-6, centring=False, steps=40)
        if trial[2] > 1e-4:
            return math.inf
        tried[place] = trial
        return trial[0].height

    def between(self, low: float, high: float) -> tuple[RampState, _Response, float] | None:
        """Return the best ramp tried, after a golden section of this interval to a fiftieth.

        No smoothness is assumed: E has a kink where it is least.
        """
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        at_left, at_right = self.height(left), self.height(right)
        for _ in range(8):
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - _GOLDEN * (high - low)
                at_left = self.height(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + _GOLDEN * (high - low)
                at_right = self.height(right)
        if not self._tried:
            return None
        best = min(self._tried.values(), key=lambda trial: trial[0].height)
        return self._fitter.fit(best[0], self._rescale, 1e-11, centring=False)


class RampFit:
    """Ramps for given levels and caps, each search warm from the last.

    Args:
        problem: the levels, all above 0, of at least two attributes.
        caps: γ_i in nats, each above its ε_i, shape (k,); infinite for none.
        start_height: the optimum without caps, in nats: where to start looking.

    Attributes:
        state: the ramp found last; where the next search starts.
    """

    def __init__(self, problem: Problem, caps: FloatArray, start_height: float) -> None:
        self._fitter = _Fitter(problem, 0.5 * default_resolution(problem.n_attributes))
        # Where there is no cap at all the scale is a gauge; slopes of several E are a vote.
        self._caps = np.minimum(caps, 8.0 * start_height)
        self.state = RampState(
            1.5 * problem.attribute_epsilon,
            min(2.0, 0.5 * start_height),
            start_height + min(0.05 * start_height, 0.5),
        )

    @property
    def least_fraction(self) -> float:
        """Below this fraction of the caps some attribute is left less than its own level."""
        return float((self._fitter.problem.attribute_epsilon / self._caps).max())

    def at(self, fraction: float) -> GatedSum | None:
        """Return the ramp of least record level whose slopes keep this fraction of the caps.

        None if the search does not settle.
        """
        state, response, miss = self._fitter.best(
            self.state, lambda state: self._factor(state, fraction)
        )
        if not miss < SETTLED:
            return None
        self.state = state
        return response.law

    def near(self, fraction: float, reach: float = 0.0) -> GatedSum | None:
        """Return the ramp that keeps this fraction of the caps and lies about where `state` does.

        One fit at its place, or a search within ``reach`` of that, instead of one through all
        places. None if it does not settle.
        """

        def rescale(state: RampState) -> float:
            return self._factor(state, fraction)

        if reach and self._fitter.searched:
            search = _PlaceSearch(self._fitter, self.state, rescale)
            place = self.state.offset / self.state.height
            search.height(place)
            trial = search.between(place - reach, place + reach)
        else:
            centring = not self._fitter.searched
            trial = self._fitter.fit(self.state, rescale, 1e-11, centring=centring)
        if trial is None or not trial[2] < SETTLED:
            return None
        self.state = trial[0]
        return trial[1].law

    def _factor(self, at: RampState, fraction: float) -> float:
        """By what all slopes must be multiplied for the steepest to just keep its cap."""
        # A cap at or above E holds whatever c_i is.
        bound = np.where(self._caps < at.height * (1 - 1e-9), self._caps, math.inf)
        if not np.isfinite(bound).any():
            return 1.0
        # What the slopes come to on the grid: dither makes them a shade steeper.
        law, _unit = self._fitter.law(at)
        steepest = law.slope_bounds() / bound
        return fraction * (1 - 2e-6) / float(steepest.max())
