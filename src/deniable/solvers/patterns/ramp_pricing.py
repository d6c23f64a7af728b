"""What a mixture of ramps lacks, where patterns are too many to enumerate.

The multipliers of the linear program of `ramp_mixtures` say what a density F would be worth to the
mixture: the less its reduced cost

    −E_μ[F (total + Σ_i changed_i C_i + Σ_ij pairs_ij h_i h_j)]
    − top F(nothing changed) − scale F(all changed)

is below 0, the more. The mean is taken over a sample of patterns, drawn from product laws between
the uniform law and one steeper than the levels, each weighted by μ over the chance that it had of
being drawn. From ramps in use the reduced cost is lowered in slopes, place and height.

What comes out is a suggestion: it is evaluated before it is mixed, so that an error of the sample
spoils no law. The sample is the same for the same request; nobody's data are drawn.
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

_STEPS, _GAINED = 15, 1e-4
"""Steps of a search, and what a ramp must gain."""


class Ramp(NamedTuple):
    """The density exp(clip(fall_from − Σ_{changed} c_i, −height, 0)).

    Attributes:
        slopes: c_i in nats, shape (k,).
        fall_from, height: in nats.
    """

    slopes: FloatArray
    fall_from: float
    height: float


class PatternSample:
    """Patterns to sum over instead of all.

    The last two, with weights of their own, are those where nothing and where all is changed.

    Args:
        problem: the attributes and their levels.

    Attributes:
        changed: 1 where an attribute is changed, shape (n, k).
        weight: Σ_S weight F(S) estimates E_μ[F], shape (n,); 0 for the last two.
    """

    def __init__(self, problem: Problem) -> None:
        a, level = problem.n_categories, problem.attribute_epsilon
        generator = np.random.default_rng(0)  # for a search: nobody's data are drawn
        odds = np.exp(np.outer(_TILTS, level)) / (a - 1.0)
        keep = np.maximum(odds / (1.0 + odds), _LEAST_KEPT)
        draws = [generator.random((_DRAWN, len(a))) >= kept for kept in keep]
        none, everything = np.zeros((1, len(a))), np.ones((1, len(a)))
        self.changed = np.vstack([*draws, none, everything])
        self._sign = 1.0 - self.changed * (a / (a - 1.0))
        kept_odds = np.log(np.vstack([keep, 1.0 / a]))
        logs = kept_odds.sum(axis=1) + self.changed @ (np.log1p(-np.exp(kept_odds)) - kept_odds).T
        drawn, uniform = logs[:, :-1], logs[:, -1]
        most = drawn.max(axis=1)
        mean = most + np.log(np.exp(drawn - most[:, None]).mean(axis=1))
        self.weight = np.exp(uniform - mean) / (len(self.changed) - 2)
        self.weight[-2:] = 0.0
        self._pairs = np.triu_indices(len(a), 1)

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

    def lacking(self, ramps: Iterable[Ramp], worth: FloatArray, steepest: FloatArray) -> list[Ramp]:
        """Return ramps that the mixture gains by, one near each of some at most.

        Args:
            ramps: to start from.
            worth: of a density at each pattern, shape (n,).
            steepest: slopes that keep the caps, shape (k,).
        """
        found = [self._lowered(ramp, worth, steepest) for ramp in ramps]
        return [ramp for ramp in found if ramp is not None]

    def reduced_cost(self, at: FloatArray, worth: FloatArray) -> tuple[float, FloatArray]:
        """Return the reduced cost of a ramp and its derivatives.

        Args:
            at: slopes, where it starts to fall, and its height; shape (k + 2,).
            worth: of a density at each pattern, shape (n,).
        """
        slopes, fall_from, height = at[:-2], at[-2], at[-1]
        exponent = fall_from - self.changed @ slopes
        each = np.exp(np.clip(exponent, -height, 0.0)) * worth
        on_bottom = exponent <= -height
        falling = np.where(on_bottom | (exponent >= 0.0), 0.0, each)
        by_ends = [falling.sum(), -each[on_bottom].sum()]
        return float(each.sum()), np.concatenate([-(falling @ self.changed), by_ends])

    def _lowered(self, ramp: Ramp, worth: FloatArray, steepest: FloatArray) -> Ramp | None:
        """Return a ramp of less reduced cost near another; None if that is not below 0."""
        from scipy.optimize import minimize

        highest = math.fsum(steepest.tolist())
        most = np.append(steepest, [highest, highest])
        start = np.minimum(np.append(ramp.slopes, [ramp.fall_from, ramp.height]), most)
        found = minimize(
            self.reduced_cost,
            start,
            args=(worth,),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, float(one)) for one in most],
            options={"maxiter": _STEPS},
        )
        if not found.fun < -_GAINED:
            return None
        return Ramp(found.x[:-2], float(found.x[-2]), float(found.x[-1]))
