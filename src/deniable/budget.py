"""Dividing a total: the largest scale of the levels that keeps the budget.

Every search returns a design that has been accounted for and fits, never the other end of a
bracket.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np


class Costed(Protocol):
    """Anything with a total."""

    @property
    def epsilon(self) -> float:
        """ε of the whole record, in nats."""
        ...


_D = TypeVar("_D", bound=Costed)


def largest_monotone(
    at: Callable[[float], _D], budget: float, low: float, high: float
) -> _D | None:
    """Find where the increasing total reaches the budget, and return the end that keeps it.

    A secant between the ends of the bracket (Illinois rule: the value of an end that stays twice
    is halved), until the total is within 1e-10 of the budget or the bracket has closed.
    """
    best: _D | None = None
    at_low, at_high = at(low), at(high)
    if at_high.epsilon <= budget:
        return at_high
    if at_low.epsilon <= budget:
        best = at_low
    below, above = at_low.epsilon - budget, at_high.epsilon - budget
    stayed = 0
    for _ in range(60):
        if high - low <= 1e-12 * high or (best is not None and best.epsilon >= budget - 1e-10):
            break
        # Aim a little under the root: landing just below it ends the search.
        scale = low + (high - low) * min(max(below / (below - above), 1e-3), 1 - 1e-3)
        candidate = at(scale)
        difference = candidate.epsilon - budget
        if difference <= 0:
            low, below, best = scale, min(difference, -1e-300), candidate
            above = above / 2 if stayed == -1 else above
            stayed = -1
        else:
            high, above = scale, difference
            below = below / 2 if stayed == 1 else below
            stayed = 1
    return best


def largest_on_a_grid(
    at: Callable[[float], _D],
    fits: Callable[[_D], bool],
    low: float,
    high: float,
) -> _D | None:
    """Search scales from large to small, and refine the first that fits upwards.

    The heuristic's total is not monotone in the scale, so no bisection over the whole range finds
    the largest scale; a fine grid does up to its spacing, and what is returned has been verified.
    """
    # Fallback can push the total above Σ ε_i, so smaller scales than low are tried too.
    grid = np.geomspace(high, low / 4, 400)
    for position, scale in enumerate(grid):
        best = at(float(scale))
        if not fits(best):
            continue
        bottom, top = float(scale), float(grid[max(position - 1, 0)])
        for _ in range(40):
            middle = (bottom + top) / 2
            candidate = at(middle)
            if fits(candidate):
                bottom, best = middle, candidate
            else:
                top = middle
        return best
    return None
