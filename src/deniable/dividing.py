"""Dividing a total among the attributes.

Every search returns a design that has been accounted for and keeps the budget, never the other end
of a bracket.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from deniable.errors import InputError
from deniable.plan import Design, Plan


def within_budget(plan: Plan, budget: float, allow_changed_levels: bool) -> Design:
    """Return the largest levels in the schema's ratios whose total keeps the budget."""
    protected = [plan.schema.attributes[i] for i in plan.schema.protected]
    if any(a.importance for a in protected):
        raise InputError(
            "importances divide a budget only under the optimal methods, which this version does "
            "not have; give ratios or levels instead"
        )
    ratios = np.array([a.ratio or 1.0 for a in protected])
    # A law at scale s has max(ε_i) <= ε <= Σ ε_i, so the scale lies between these two.
    low, high = budget / ratios.sum(), budget / ratios.max()

    def at(scale: float) -> Design:
        return plan.at((scale * ratios).tolist())

    def fits(candidate: Design) -> bool:
        return candidate.epsilon <= budget and (allow_changed_levels or not candidate.changed)

    if plan.method == "kronecker":
        found: Design | None = at(low * (1 - 1e-15))  # the sum of k rounded levels stays below
    elif plan.method == "heuristic":
        found = _largest_on_a_grid(at, fits, low, high)
    else:
        found = _largest_monotone(at, budget, low, high)
    if found is None:
        raise InputError(
            f"the {plan.method} method keeps no levels in these ratios within ε = {budget:g}; use "
            "method kronecker or lp, or allow changed levels"
        )
    return replace(found, budget=budget)


def _largest_monotone(
    at: Callable[[float], Design], budget: float, low: float, high: float
) -> Design | None:
    """Find where the increasing total reaches the budget, and return the end that keeps it.

    A secant between the ends of the bracket (Illinois rule: the value of an end that stays twice
    is halved), until the total is within 1e-10 of the budget or the bracket has closed.
    """
    best: Design | None = None
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


def _largest_on_a_grid(
    at: Callable[[float], Design],
    fits: Callable[[Design], bool],
    low: float,
    high: float,
) -> Design | None:
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
