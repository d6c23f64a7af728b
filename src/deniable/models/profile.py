"""Profile-likelihood intervals of numbers of a log-linear model, where normal ones are invalid.

A normal interval takes the likelihood as that of a normal law around the fit. In a category of few
people, next to the noise, it is not: the logarithm of the share may be far below the fit, and the
weak prior decides where that lies. The profile interval of a number g(β) is

    {b : 2 (max ℓ − max ℓ under g(β) = b) ≤ κz²},

ℓ without the prior: only the release counts. κ is 1, and with weights the variance of the number
over that by the information alone. A limit is infinite where no b is improbable enough, as for a
share that is not significantly above 0.

The normal interval is kept where the likelihood agrees with it: along the least favourable line
β̂ ± zσ·Ia/aᵀIa, a = ∂g/∂β and I the inverse information, ℓ drops by ½κz², to a fifth, on both
sides. A fifth of the drop is a tenth of the interval's half, and where a skew law makes one end too
near by that, the other is too far.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.inference import normal_quantile
from deniable.models.likelihood import (
    At,
    Held,
    Likelihood,
    LogLinearFit,
    maximised,
    probabilities_of,
)

AGREES = 0.2
"""By which part of it the drop of the log-likelihood may be off at the ends of a normal interval.
"""

FAR = 30.0
"""Log odds, or a log odds ratio, this far from the largest likelihood are infinite."""

SMALL = 0.25
"""Standard error of log odds that is trusted where a model is too large to compare likelihoods."""

MOST_COMPARED, MOST_PROFILED = 1_000_000, 3_000_000
"""Numbers times cells up to which likelihoods are compared; times parameters up to which profiles
are taken, some ten seconds."""

_FLAT = 1e-4
"""The precision that takes the prior's place: an infinite logarithm is finite, ℓ nearly as is."""
_NEAR = 1e-5
"""Profiles have converged when the squared step, in standard errors, is below this."""
_EXACT = 0.02
"""How exactly ends are found, in standard errors."""
_HELD = 100.0
"""Weight of the constraint on a number, as a multiple of its information."""

_CERTAIN = 1e3
"""Times the rows behind known margins: exact to three percent of a standard error, and a million
times would be a valley too narrow to walk along."""

LIMITS = ("no lower limit", "no upper limit")
UNREAD = "not to be read: the interval does not hold"


class Number(NamedTuple):
    """A number of the parameters.

    ``far``: the distance that counts as infinite.
    """

    of: Callable[[NDArray[np.float64]], At]
    far: float = FAR
    tested: bool = False


class Interval(NamedTuple):
    """An interval, how it was made, and the signed root of the likelihood ratio at 0."""

    low: float
    high: float
    kind: Literal["normal", "profile", "unread"]
    root: float

    @property
    def ends(self) -> tuple[float, float] | tuple[None, None]:
        """Both ends; None where they are not to be read."""
        return (None, None) if self.kind == "unread" else (self.low, self.high)

    @property
    def remark(self) -> str:
        """A remark on the interval, or an empty text."""
        if self.kind == "unread":
            return UNREAD
        ends = zip(LIMITS, (self.low, self.high), strict=True)
        return "; ".join(limit for limit, end in ends if math.isinf(end))


@dataclass(frozen=True)
class Profiles:
    """The likelihood around a fit."""

    fit: LogLinearFit

    def intervals(self, numbers: Sequence[Number], level: float) -> list[Interval]:
        """Return intervals of numbers: normal ones, or profile ones where the likelihood does not
        agree; of models too large for that they are marked."""
        fit, z = self.fit, normal_quantile(level)
        made, wrong = [], []
        compared = len(numbers) * len(fit.design) <= MOST_COMPARED
        for place, number in enumerate(numbers):
            value, change, _ = number.of(fit.parameters)
            error = math.sqrt(max(0.0, float(change @ fit.covariance @ change)))
            root = value / error if error > 0 else 0.0
            made.append(Interval(value - z * error, value + z * error, "normal", root))
            small = error * FAR / number.far <= SMALL
            if error > 0 and not (self._agrees(change, error, z) if compared else small):
                wrong.append(place)
        profiled = compared and len(wrong) * fit.design.size <= MOST_PROFILED
        for place in wrong:
            found = None
            if profiled:
                try:
                    found = self._profile(numbers[place], z)
                except InputError:  # it does not settle
                    found = None
            made[place] = found or made[place]._replace(kind="unread")
        return made

    @cached_property
    def _inverse(self) -> NDArray[np.float64]:
        # Of the information; with weights the fit's covariance is another.
        at = self.fit.likelihood.derivatives(self.fit.probabilities.ravel(), self.fit.design)
        return np.asarray(np.linalg.inv(at.information + np.diag(self.fit.precision)))

    @cached_property
    def _flat(self) -> NDArray[np.float64]:
        return np.asarray(_FLAT * (self.fit.design**2).max(axis=0))

    @cached_property
    def _likelihood(self) -> Likelihood:
        return replace(self.fit.likelihood, certain=_CERTAIN)

    @cached_property
    def _highest(self) -> tuple[NDArray[np.float64], float]:
        """The parameters of the largest likelihood, and its logarithm."""
        found = self._maximised(self.fit.parameters)
        return found, self._height(found)

    def _maximised(
        self, start: NDArray[np.float64], held: Held | None = None
    ) -> NDArray[np.float64]:
        fit = self.fit
        return maximised(self._likelihood, fit.design, fit.names, self._flat, start, held, _NEAR)[0]

    def _height(self, parameters: NDArray[np.float64]) -> float:
        return self._likelihood.height(probabilities_of(self.fit.design @ parameters))

    def _agrees(self, change: NDArray[np.float64], error: float, z: float) -> bool:
        along = self._inverse @ change
        wide = float(change @ along)
        step, allowed = z * error / wide * along, 0.5 * (z * error) ** 2 / wide
        design, at = self.fit.design, self.fit.parameters
        tops = (
            self.fit.likelihood.log_likelihood(probabilities_of(design @ (at + sign * step)))
            for sign in (-1, 1)
        )
        drops = (self.fit.log_likelihood - top for top in tops)
        return all(abs(drop - allowed) <= AGREES * allowed for drop in drops)

    def _profile(self, number: Number, z: float) -> Interval:
        value, change, _ = number.of(self.fit.parameters)
        variance = float(change @ self.fit.covariance @ change)
        root = math.sqrt(variance / float(change @ self._inverse @ change))
        error = min(math.sqrt(variance), number.far / 100)
        low, high = (self._end(number, sign, z * root, error) for sign in (-1, 1))
        at_0 = math.nan
        if number.tested:
            centre = number.of(self._highest[0]).value
            _, at, at_0 = self._held(number, 0.0, error, self._highest[0])
            # The root is nearly proportional to the distance and needed near 0 only.
            at_0 *= centre / root / max(abs(centre - at), 1e-12)
        return Interval(min(low, value), max(high, value), "profile", at_0)

    def _held(
        self, number: Number, value: float, error: float, start: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float, float]:
        """Return the parameters of largest likelihood with the number near a value, the number
        there and the root of twice the drop: all of them of the profile, however near it is."""
        found = self._maximised(start, Held(number.of, value, _HELD / error**2))
        drop = max(0.0, self._highest[1] - self._height(found))
        return found, number.of(found).value, math.sqrt(2 * drop)

    def _end(self, number: Number, sign: int, wanted: float, error: float) -> float:
        """Return where the root is as wanted: steps outwards until it is more, then secants."""
        start, _ = self._highest
        centre = number.of(start).value
        inner, outer = (0.0, 0.0), None  # distance and root
        distance = min(wanted * error, number.far)
        for _ in range(30):
            start, at, root = self._held(number, centre + sign * distance, error, start)
            if abs(root - wanted) < _EXACT:
                break
            if root > wanted:
                outer = distance, root
            elif distance >= number.far:
                return sign * math.inf
            else:
                inner = distance, root
            if outer is None:
                # As if the root were proportional to the distance, but neither near nor far.
                more = wanted / max(root, 1e-9)
                distance = min(distance * min(max(more, 1.5), 3.0), number.far)
            else:
                part = (wanted - inner[1]) / (outer[1] - inner[1])
                distance = inner[0] + min(max(part, 0.1), 0.9) * (outer[0] - inner[0])
        return at
