"""Mixtures of ramps that keep levels, caps and a floor on pairs, by one linear program.

The program is that of docs/proofs/clipped.md, section 5. At first it mixes the best single ramp,
with its top moved up step by step, their neighbours, one number of which is smaller or larger, the
uniform and the product law, and the steepest ramp under the caps. From the ramps in use a few steps
of a quasi-Newton method each lead to ramps that are worth more at the program's multipliers (column
generation).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import Problem
from deniable.solvers import highs
from deniable.solvers.patterns.ramps.evaluate import Delivered, FourierSums, Prices, Ramp, Worth

ROUNDS = 16
"""Of column generation. 24 attributes under a floor of 0.9 end 0.4 % above what 64 rounds find."""

_TRIED, _STEPS = 8, 3
"""Ramps in use from which a round looks for others, and quasi-Newton steps from each: with five and
six ε is 0.1 % higher, and takes a tenth longer."""

_FACTORS = 0.8, 1.25
"""By which a neighbour of a ramp differs from it; without the smaller ε is up to 1.7 % higher."""

_BELOW_RECORD = 25.0
"""Nats that a ramp's bottom may lie below the record's: e^{−25} does not count."""


def below_caps(caps: FloatArray) -> FloatArray:
    """Return the steepest slopes that keep caps in a law as drawn, shape (m,)."""
    # Rounding: a table's largest integer takes up what all others lose.
    return np.asarray(caps - np.minimum(1e-3 * caps, 1e-7))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Shares of ramps.

    Attributes:
        ramps: that are mixed.
        shares: of each, adding up to 1 where nothing is changed.
        epsilon: of the record, in nats.
    """

    ramps: list[Ramp]
    shares: FloatArray
    epsilon: float


class Pool:
    """Ramps to mix, and the contributions of each.

    ``problem``: the levels, shape (m,). ``caps``: γ in nats, shape (m,). ``floor``: on pairs, or
    None. ``about``: about the record's ε, in nats. ``exactly``: returns the contributions of a ramp
    as it is drawn.
    """

    def __init__(
        self,
        sums: FourierSums,
        problem: Problem,
        caps: FloatArray,
        floor: float | None,
        about: float,
        exactly: Callable[[Ramp], Delivered],
    ) -> None:
        self._sums, self._about, self._exactly = sums, about, exactly
        self._problem, self._steepest, self._floor = problem, below_caps(caps), floor
        self.ramps: list[Ramp] = []
        self._exact: set[int] = set()
        m, a = len(sums.size), problem.n_categories
        self._scale = math.exp(about)
        self._first, self._second = np.triu_indices(m)
        one_each = (self._first == self._second) & (sums.size[self._first] < 2)
        self._first, self._second = self._first[~one_each], self._second[~one_each]
        single = a * problem.keep_excess / (a - 1.0)
        self._product = single[self._first] * single[self._second]
        # End, total, total by level, pairs.
        self._rows = np.empty((0, 2 + m + len(self._first)))

    def add(self, ramps: Iterable[Ramp]) -> None:
        """Add ramps, as far as they fall by more than a hundredth of where they start to."""
        new = []
        for slopes, start, height in ramps:
            falls = min(height, float(slopes @ self._sums.size) - start)
            falls = min(falls, self._about + _BELOW_RECORD)
            if falls > 0.01 * start:
                self.ramps.append(Ramp(slopes, start, falls))
                new.append(self._row(self._sums.delivered(self.ramps[-1])))
        self._rows = np.vstack([self._rows, *new])

    def _row(self, got: Delivered) -> FloatArray:
        end = math.exp(got.log_end) * self._scale
        pairs = got.pairs[self._first, self._second]
        by_level = got.changed / self._problem.change_probability - got.total
        return np.concatenate([[end, got.total], by_level, pairs])

    def fill(self, ramps: Iterable[Ramp]) -> None:
        """Add ramps with their neighbours; the uniform and the product law, with which any levels
        and floors are met; and the steepest ramp under the caps."""
        level, change = self._problem.attribute_epsilon, self._problem.change_probability
        # A ramp with slopes of 1e-7 of the levels is next to the uniform law.
        self.add(Ramp(part * level, 0.0, math.inf) for part in (1e-7, 1.0))
        mean = float((self._steepest * self._sums.size) @ change)
        self.add([Ramp(self._steepest, 0.5 * mean, math.inf)])
        for ramp in ramps:
            self._add_about(ramp)

    def _add_about(self, ramp: Ramp) -> None:
        """Add a ramp and its neighbours under the caps."""
        steepest = self._steepest
        # A ramp that falls by less than a cap keeps it, however steep it is.
        most = np.where(steepest < ramp.height, steepest, np.inf)
        slopes = np.minimum(ramp.slopes, most)
        highest = float(steepest[slopes > steepest].min(initial=math.inf))
        self.add([Ramp(slopes, ramp.start, ramp.height)])
        for factor in _FACTORS:
            self.add([Ramp(slopes, factor * ramp.start, ramp.height)])
            self.add([Ramp(slopes, ramp.start, min(factor * ramp.height, highest))])
            for i in range(len(slopes)):
                other = slopes.copy()
                other[i] = min(factor * slopes[i], most[i])
                self.add([Ramp(other, ramp.start, ramp.height)])

    def mixed(self) -> Mixture | None:
        """Return the mixture of least ε that meets levels and keeps a floor; None if none is found.

        What it uses is evaluated as it is drawn, until it uses nothing else; at last it may not.
        """
        for tries in range(8):
            among = np.arange(len(self.ramps)) if tries < 5 else np.array(sorted(self._exact))
            solved = self._shares(self._rows[among])
            if solved is None:
                return None
            shares = solved[0]
            used = among[shares > 0.0].tolist()
            new = [place for place in used if place not in self._exact]
            if not new:
                shares = shares[shares > 0.0]
                epsilon = self._epsilon(float(self._rows[used, 0] @ shares))
                return Mixture([self.ramps[place] for place in used], shares, epsilon)
            for place in new:
                self._rows[place] = self._row(self._exactly(self.ramps[place]))
            self._exact.update(new)
        return None

    def _epsilon(self, end: float) -> float:
        return self._about - math.log(end)

    def _shares(self, rows: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        m = self._problem.n_attributes
        return _shares(rows, self._product, m, self._floor, self._scale)

    def price(self) -> None:
        """Add ramps that the program's multipliers ask for."""
        m, smooth = self._problem.n_attributes, None
        costs = list[float]()
        for _ in range(ROUNDS):
            rows = self._rows
            solved = self._shares(rows)
            if solved is None:
                return
            shares, newest = solved
            costs.append(self._epsilon(float(rows[:, 0] @ shares)))
            if len(costs) > 6 and costs[-7] - costs[-1] < 3e-4 * costs[-1]:  # in six rounds
                return
            # As they swing, the mean of the newest and those before.
            smooth = newest if smooth is None else 0.5 * (newest + smooth)
            by_level = smooth[3 : m + 3]
            pairs = np.zeros((m, m))
            pairs[self._first, self._second] = smooth[m + 3 :]
            pairs += np.triu(pairs, 1).T
            prices = Prices(
                smooth[0],
                self._scale,
                smooth[2] - float(by_level.sum()),
                by_level / self._problem.change_probability,
                pairs,
            )
            worth, mass = self._sums.worth(prices), float(rows[:, 1] @ shares)
            most = np.argsort(-shares)[:_TRIED]
            starts = [self.ramps[place] for place in most[shares[most] > 0.0].tolist()]
            found = [self._better(worth, mass, ramp) for ramp in starts]
            self.add(ramp for ramp in found if ramp is not None)

    def _better(self, worth: Callable[[Ramp], Worth], mass: float, ramp: Ramp) -> Ramp | None:
        """Return a ramp near another that is worth most for what it takes up; None if none is
        worth more than 0.

        A unit takes up F(nothing changed) + E_μ[F]/mass + e^about F(all changed) of the mixture:
        of a ramp that hardly falls next to nothing can be mixed.
        """
        from scipy.optimize import minimize

        size, steepest = self._sums.size, self._steepest
        whole = float(steepest @ size)
        most = np.append(steepest, [whole, min(whole, self._about + _BELOW_RECORD)])

        def cost(at: FloatArray) -> tuple[float, FloatArray]:
            ramp = Ramp(at[:-2], float(at[-2]), float(at[-1]))
            got = worth(ramp)
            falls = min(float(ramp.slopes @ size) - ramp.start, ramp.height)
            end = math.exp(self._about - max(falls, 0.0))
            takes, takes_by = 1.0 + got.mass / mass + end, got.mass_by / mass
            if falls < ramp.height:
                takes_by[:-2] -= end * size
                takes_by[-2] += end
            else:
                takes_by[-1] -= end
            return -got.value / takes, (got.value * takes_by / takes - got.value_by) / takes

        start = np.minimum(np.append(ramp.slopes, [ramp.start, ramp.height]), most)
        least = np.append(np.zeros(len(steepest)), [0.0, min(0.01, most[-1])])
        found = minimize(
            cost,
            np.maximum(start, least),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(least.tolist(), most.tolist(), strict=True)),
            options={"maxiter": _STEPS, "maxfun": 2 * _STEPS},
        )
        if not found.fun < 0.0:
            return None
        return Ramp(found.x[:-2], float(found.x[-2]), float(found.x[-1]))


def _shares(
    rows: FloatArray, product: FloatArray, m: int, floor: float | None, scale: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return the best shares of densities, shape (n,), and the multipliers of the rows, shape
    (1 + columns of `rows`,), that of Σ x first; None if the program is not solved.

    Rows of floors are added once a solution breaks them. The shares are corrected at the end
    without the solver's tolerances: what they leave of the levels is less than a nat in 10^10.
    """
    ends, total = rows[:, 0], rows[:, 1]
    levels, pairs = rows[:, 2 : m + 2].T, rows[:, m + 2 :].T
    least = floor or 0.0
    # What a unit takes up of the mixture: of the uniform law e^−ε.
    size = 1.0 + total * scale + ends
    of_levels = 1.0 / np.abs(levels / size).max(axis=1, initial=1e-300)
    equal = np.vstack([np.ones(len(ends)), levels * of_levels[:, None]]) / size
    looked_at = np.zeros(len(product), dtype=np.bool_)
    while True:
        floors = (pairs[looked_at] / product[looked_at, None] - least * total) / size
        of_floors = 1.0 / np.abs(floors).max(axis=1, initial=1e-300)
        matrix = np.vstack([equal, floors * of_floors[:, None]])
        lower = np.zeros(len(matrix))
        lower[0] = 1.0
        upper = np.where(np.arange(len(matrix)) < len(equal), lower, highs.INFINITY)
        zero, most = np.zeros(len(ends)), size  # no share is above 1
        program = highs.Program(-ends / size, zero, most, highs.dense_rows(matrix), lower, upper)
        answer = highs.run(program)
        if answer.status != "optimal":
            return None
        used = np.flatnonzero(answer.x > 0.0)
        shares = np.zeros(len(ends))
        left = lower[: len(equal)] - equal[:, used] @ answer.x[used]
        exact = answer.x[used] + np.linalg.lstsq(equal[:, used], left, rcond=1e-6)[0]
        shares[used] = np.maximum(exact, 0.0) / size[used]
        broken = ~looked_at & (pairs @ shares < product * (least - 1e-10) * float(total @ shares))
        if floor is None or not broken.any():
            break
        looked_at |= broken
    multipliers = np.zeros(1 + rows.shape[1])
    multipliers[0] = answer.multipliers[0]
    multipliers[3 : m + 3] = answer.multipliers[1 : m + 1] * of_levels
    of_floors *= answer.multipliers[m + 1 :]
    multipliers[2] = -least * of_floors.sum()
    multipliers[m + 3 :][looked_at] = of_floors / product[looked_at]
    return shares, multipliers
