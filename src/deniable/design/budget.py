"""Dividing a total among the attributes.

Every search returns a design that has been accounted for and keeps the budget, never the other end
of a bracket.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable.design.level_designs import LevelDesigns
from deniable.design.methods import FUNCTIONS
from deniable.design.solving import importances_and_limits
from deniable.errors import InputError
from deniable.statement.account import Design
from deniable.statement.methods import DEFAULT_METHOD, methods_taking

_LEAST_PART = 1e-5
"""How near an end of its bracket a secant may lead, as a part of it."""

_BEYOND = 1.25
"""ε rises at least about as the scale to the power of the inverse."""

_JUMP, _JUMP_WITHIN = 0.5, 0.01
"""Part of a budget by which the last total above it is too large where no law is found from some
scale on, and then the part of that scale to which it is neared."""

_NEAR = 1e-6
"""Part of a budget that a search may leave unspent where each step is a design of its own."""


def within_budget(
    designs: LevelDesigns,
    budget: float,
    importance: Mapping[str, float],
    at_most: Mapping[str, float],
    *,
    pairs: float | None = None,
) -> Design:
    """Return a design whose total is as near the budget as can be, and not above it.

    ``budget``: largest ε of the record, in nats. ``pairs``: θ of the method of least error.
    """
    protected = [designs.schema.attributes[i] for i in designs.schema.protected]
    importances, limits = importances_and_limits(designs.schema, importance, at_most)
    weigh = bool(importance) or any(a.importance for a in protected)
    ratios = np.array([a.ratio or 1.0 for a in protected])
    by_ratio = any(a.ratio for a in protected)
    if weigh and by_ratio:
        raise InputError(
            "ratios and importances are two ways to divide the same total; give one of them"
        )
    caps = np.array([math.inf if limit is None else limit for limit in limits])
    divide = FUNCTIONS[designs.method.name].divide
    if divide is not None and not by_ratio:
        solution = divide(designs.task, budget, importances, limits, pairs)
        result = designs.of_total(solution)
    elif designs.method.division == "importance" and not by_ratio:
        result = _by_importance(designs, budget, importances, limits, caps)
    elif weigh:
        raise InputError(
            f"importances divide a total under methods {methods_taking('importance', joined='and')}"
            f", not {designs.method.name}"
        )
    else:
        result = _by_ratio(designs, budget, ratios, caps)
    return replace(result, budget=budget)


def _by_ratio(
    designs: LevelDesigns,
    budget: float,
    ratios: NDArray[np.float64],
    caps: NDArray[np.float64],
) -> Design:
    """Return the design with the largest common scale of the levels, cut off at their caps."""
    # A law at scale s has max(ε_i) <= ε <= Σ ε_i, so without caps the scale lies between these
    # two; and beyond the scale at which every level is capped nothing changes any more.
    high = _largest_scale(designs, budget, ratios, caps)
    low = min(budget / float(ratios.sum()), high)

    def at(scale: float) -> Design:
        return designs.at(np.minimum(scale * ratios, caps).tolist())

    result: Design | None
    if designs.method.division == "sum" and np.all(caps == math.inf):
        result = at(low * (1 - 1e-15))  # the sum of k rounded levels stays below
    else:
        result = _largest(at, budget, high, high, _unsure(designs, budget, 1e-10))
    if result is None:
        raise InputError(
            f"the {designs.method.name} method keeps no levels in these ratios within "
            f"ε = {budget:g}; use method {DEFAULT_METHOD}"
        )
    # Without ratios no level was requested, so that none can be missed.
    by_ratio = any(designs.schema.attributes[i].ratio for i in designs.schema.protected)
    return result if by_ratio or not result.changed else _unrequested(result)


def _by_importance(
    designs: LevelDesigns,
    budget: float,
    importance: Sequence[float],
    at_most: Sequence[float | None],
    caps: NDArray[np.float64],
) -> Design:
    """Return the design of about the least mean variance of shares within the budget: the levels of
    the law of least error, at the largest scale that keeps it."""
    from deniable.solvers.patterns import least_error as solver

    sizes = designs.task.n_categories
    found = solver.solve(
        sizes, budget, pairs=0.0, importance=importance, multiple=math.inf, at_most=at_most
    )
    levels = (
        solver.independent(sizes, budget, 0.0, importance, None, at_most)
        if found is None
        else found.levels
    )
    # At these levels the optimum spends about the budget.
    most = _largest_scale(designs, budget, levels, caps)
    scaled = _largest(
        lambda scale: designs.at(np.minimum(scale * levels, caps).tolist()),
        budget,
        min(1.0, most),
        most,
        _unsure(designs, budget, _NEAR * budget),
    )
    if scaled is None:
        raise InputError(f"method {designs.method.name} keeps no levels within ε = {budget:g}")
    return _unrequested(scaled)


def _unrequested(design: Design) -> Design:
    """Return a design whose levels are results of the division, not requested."""
    return replace(design, requested_epsilon=(None,) * len(design.requested_epsilon))


def _largest_scale(
    designs: LevelDesigns, budget: float, ratios: NDArray[np.float64], caps: NDArray[np.float64]
) -> float:
    """Return a scale beyond which no law keeps the budget, or nothing changes any more."""
    if np.any(caps < math.inf):
        return float(np.max(np.minimum(caps, budget) / ratios))
    return min(budget, designs.method.largest_level) / float(ratios.max())


def _unsure(designs: LevelDesigns, budget: float, within: float) -> Callable[[Design], float]:
    """Return how far below the budget a design may end, in nats: laws found at two scales may
    differ by a part of the remaining gap."""

    def unsure(design: Design) -> float:
        capped = "caps" in designs.method.takes
        return (
            within if design.gap is None or capped else max(within, min(design.gap, budget / 1e3))
        )

    return unsure


def _largest(
    at: Callable[[float], Design],
    budget: float,
    high: float,
    most: float,
    unsure: Callable[[Design], float],
) -> Design | None:
    """Return the design at the largest scale that keeps the budget, for a total that rises with it.

    A secant between the ends of a bracket that begins at scale 0, where nothing is told (Illinois
    rule: the value of an end that stays twice is halved), aimed at half of ``unsure`` under the
    budget: landing there ends the search, and so does a bracket that has closed (about, where no
    law is found from some scale on).

    ``budget``: in nats. ``unsure``: how far below the budget a design may end, in nats: the more,
    the less exactly its total is found.
    """
    best, low, below = None, 0.0, -budget
    candidate = at(high)
    while (above := candidate.epsilon - budget) <= 0:
        best, low, below = candidate, high, above
        if high >= most or above >= -unsure(best):
            return best
        high = min(most, high * (budget / best.epsilon) ** _BEYOND * (1 + 1e-9))
        candidate = at(high)
    stayed, over = 0, above
    for _ in range(60):
        near = unsure(best or candidate)
        closed = 1e-12 if over <= _JUMP * budget else _JUMP_WITHIN
        if high - low <= closed * high or (best is not None and best.epsilon >= budget - near):
            break
        part = (-near / 2 - below) / (above - below)
        scale = low + (high - low) * min(max(part, _LEAST_PART), 1 - _LEAST_PART)
        candidate = at(scale)
        difference = candidate.epsilon - budget
        if difference <= 0:
            low, below, best = scale, difference, candidate
            above = above / 2 if stayed == -1 else above
            stayed = -1
        else:
            high, above, over = scale, difference, difference
            below = below / 2 if stayed == 1 else below
            stayed = 1
    return best
