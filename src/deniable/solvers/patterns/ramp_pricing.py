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

The mean is taken over a sample of patterns, drawn from product laws between the uniform law and one
steeper than the levels, each weighted by μ over the chance that it had of being drawn. What comes
out is a suggestion: it is evaluated before it is mixed, so that an error of the sample spoils no
law. The sample is the same for the same request; nobody's data are drawn.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.solvers.patterns.ramp_mixtures import Prices
from deniable.solvers.problem import Problem

_TILTS = (0.0, 0.3, 0.6, 1.0, 1.6)
"""Parts of the levels at which the product laws lie that patterns are drawn from."""

_DRAWN = 2048
"""Patterns drawn from each."""

_LEAST_KEPT = 0.1
"""How often an attribute is kept in them at least: floors on pairs with one of 10,000 categories
are settled by the few patterns that keep it."""

_STEPS, _GAINED = 8, 1e-4
"""Steps of a search, and what a ramp must gain for what it takes up."""

_TOP = 0.4
"""Part of the cap that a top falls by at first: from 0 few searches find where to."""


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


class PatternSample:
    """Patterns to sum over instead of all.

    Each once, however often it was drawn. The last two, with weights of their own, are those where
    nothing and where all is changed.

    Args:
        problem: the attributes and their levels.

    Attributes:
        changed: 1 where an attribute is changed, shape (n, k).
        weight: Σ_S weight F(S) estimates E_μ[F], shape (n,); 0 for the last two.
        rarest: place of the attribute that is changed least.
    """

    def __init__(self, problem: Problem) -> None:
        a, level = problem.n_categories, problem.attribute_epsilon
        generator = np.random.default_rng(0)  # for a search: nobody's data are drawn
        odds = np.exp(np.outer(_TILTS, level)) / (a - 1.0)
        keep = np.maximum(odds / (1.0 + odds), _LEAST_KEPT)
        draws = [generator.random((_DRAWN, len(a))) >= kept for kept in keep]
        drawn_ones = np.packbits(np.vstack(draws), axis=1)
        _, first, times = np.unique(drawn_ones, axis=0, return_index=True, return_counts=True)
        none, everything = np.zeros((1, len(a))), np.ones((1, len(a)))
        self.changed = np.vstack([np.vstack(draws)[first], none, everything])
        self._sign = 1.0 - self.changed * (a / (a - 1.0))
        kept_odds = np.log(np.vstack([keep, 1.0 / a]))
        logs = kept_odds.sum(axis=1) + self.changed @ (np.log1p(-np.exp(kept_odds)) - kept_odds).T
        drawn, uniform = logs[:, :-1], logs[:, -1]
        most = drawn.max(axis=1)
        mean = most + np.log(np.exp(drawn - most[:, None]).mean(axis=1))
        self.weight = np.exp(uniform - mean) * np.append(times, [0, 0]) / times.sum()
        self._pairs = np.triu_indices(len(a), 1)
        self.rarest = int(np.argmin(problem.change_probability))

    def worth(self, prices: Prices, scale: float) -> FloatArray:
        """Return what a unit of density at each pattern adds to the reduced cost, shape (n,).

        Args:
            prices: the program's.
            scale: what a density of 1 where all is changed is worth.
        """
        of_pairs = np.zeros((self.changed.shape[1],) * 2)
        of_pairs[self._pairs] = prices.pairs
        worth = prices.total + self.changed @ prices.changed
        worth += ((self._sign @ of_pairs) * self._sign).sum(axis=1)
        worth *= -self.weight
        worth[-2:] = -prices.top, -scale
        return np.asarray(worth)

    def size(self, mass: float, scale: float) -> FloatArray:
        """Return what a unit of density at each pattern takes up of the mixture, shape (n,).

        Args:
            mass: the mixture's E_μ[f].
            scale: what a density of 1 where all is changed is worth.
        """
        size = self.weight / mass
        size[-2:] = 1.0, scale
        return np.asarray(size)

    def lacking(
        self,
        ramps: Iterable[FallingRamp],
        worth: FloatArray,
        size: FloatArray,
        steepest: FloatArray,
    ) -> list[FallingRamp]:
        """Return ramps that the mixture gains by, one near each of some at most.

        Args:
            ramps: to start from.
            worth, size: of a density at each pattern, shapes (n,).
            steepest: slopes that keep the caps, shape (k,).
        """
        found = [self._lowered(ramp, worth, size, steepest) for ramp in ramps]
        return [ramp for ramp in found if ramp is not None]

    def topped(self, ramp: FallingRamp, steepest: FloatArray) -> FallingRamp:
        """Return the ramp with a top that falls where the rarest change is, if it has none."""
        if ramp.place >= 0:
            return ramp
        return ramp._replace(place=self.rarest, top=_TOP * float(steepest[self.rarest]))

    def reduced_cost(
        self, at: FloatArray, worth: FloatArray, size: FloatArray, place: int = -1
    ) -> tuple[float, FloatArray]:
        """Return the reduced cost of a ramp over what it takes up, and the derivatives.

        Args:
            at: slopes, where it starts to fall, its height, and by how much its top falls; shape
                (k + 3,).
            worth, size: of a density at each pattern, shapes (n,).
            place: of the attribute where the top falls; −1 if it does nowhere.
        """
        slopes, (fall_from, height, top) = at[:-3], at[-3:].tolist()
        falls = self.changed[:, place] if place >= 0 else np.zeros(len(worth))
        below, on_top = fall_from - self.changed @ slopes, -top * falls
        exponent = np.minimum(below, on_top)
        density = np.exp(np.maximum(exponent, -height))
        takes_up = float(density @ size)
        cost = float(density @ worth) / takes_up
        each = density * ((worth - cost * size) / takes_up)
        on_bottom = exponent <= -height
        falling = np.where(on_bottom | (below >= on_top), 0.0, each)
        on_top = np.where(on_bottom | (below < on_top), 0.0, each)
        by_rest = [falling.sum(), -each[on_bottom].sum(), -(on_top @ falls)]
        return cost, np.concatenate([-(falling @ self.changed), by_rest])

    def _lowered(
        self, ramp: FallingRamp, worth: FloatArray, size: FloatArray, steepest: FloatArray
    ) -> FallingRamp | None:
        """Return a ramp of less reduced cost near another; None if that is not below 0."""
        from scipy.optimize import minimize

        highest = math.fsum(steepest.tolist())
        falls = float(steepest[ramp.place]) if ramp.place >= 0 else 0.0
        most = np.append(steepest, [highest, highest, falls])
        start = np.append(ramp.slopes, [ramp.fall_from, ramp.height, ramp.top])
        found = minimize(
            self.reduced_cost,
            np.minimum(start, most),
            args=(worth, size, ramp.place),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, float(one)) for one in most],
            options={"maxiter": _STEPS},
        )
        if not found.fun < -_GAINED:
            return None
        fall_from, height, top = found.x[-3:].tolist()
        return FallingRamp(found.x[:-3], fall_from, height, ramp.place, top)
