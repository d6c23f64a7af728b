"""Dividing a total among the attributes.

Every search returns a design that has been accounted for and keeps the budget, never the other end
of a bracket.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable.design.level_designs import LevelDesigns
from deniable.design.methods import FUNCTIONS
from deniable.design.solving import Divided, importances_and_limits, solve_apart
from deniable.errors import InputError
from deniable.proofs.problem import MAX_LEVEL, Problem, SolverError
from deniable.statement.account import Design
from deniable.statement.caps import resolve_caps
from deniable.statement.methods import DEFAULT_METHOD, methods_taking

_LEAST_PART = 1e-5
"""How near an end of its bracket a secant may lead, as a part of it."""

_BEYOND = 1.25
"""ε rises at least about as the scale to the power of the inverse."""

_STEPS_TO_APART = 2
"""Divisions that are tried between the best for shares and that of independent responses."""

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
    allow_changed_levels: bool,
) -> Design:
    """Return a design whose total is as near the budget as can be, and not above it.

    ``budget``: largest ε of the record, in nats.
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
    if designs.method.division == "importance" and not by_ratio:
        result = _by_importance(designs, budget, importances, caps)
    elif weigh:
        raise InputError(
            f"importances divide a total under methods {methods_taking('importance', joined='and')}"
            f", not {designs.method.name}"
        )
    else:
        result = _by_ratio(designs, budget, ratios, caps, allow_changed_levels)
    return replace(result, budget=budget)


def _by_ratio(
    designs: LevelDesigns,
    budget: float,
    ratios: NDArray[np.float64],
    caps: NDArray[np.float64],
    allow_changed_levels: bool,
) -> Design:
    """Return the design with the largest common scale of the levels, cut off at their caps."""
    # A law at scale s has max(ε_i) <= ε <= Σ ε_i, so without caps the scale lies between these
    # two; and beyond the scale at which every level is capped nothing changes any more.
    high = _largest_scale(designs, budget, ratios, caps)
    low = min(budget / float(ratios.sum()), high)

    def at(scale: float) -> Design:
        return designs.at(np.minimum(scale * ratios, caps).tolist())

    spent = _at_once(designs, budget, ratios, caps, None)
    if spent is not None and (solution := spent.solution()) is not None:
        return designs.with_levels(solution, spent.levels)

    def fits(candidate: Design) -> bool:
        return candidate.epsilon <= budget and not candidate.changed

    # Without ratios no level was requested, so that none can be missed.
    unrequested = not any(designs.schema.attributes[i].ratio for i in designs.schema.protected)
    result: Design | None
    if designs.method.division == "sum" and np.all(caps == math.inf):
        result = at(low * (1 - 1e-15))  # the sum of k rounded levels stays below
    elif designs.method.division == "grid":
        # Fallback pushes the total above Σ ε_i, by up to Σ ln a_i: smaller scales are tried too.
        usual, small = np.geomspace(high, low / 4, 400), np.geomspace(low / 4, low * 1e-9, 100)
        result = None if allow_changed_levels else _largest_on_a_grid(at, fits, usual)
        if result is None and (allow_changed_levels or unrequested):
            grid = np.append(usual, small[1:])
            result = _largest_on_a_grid(at, lambda one: one.epsilon <= budget, grid)
            result = _unrequested(result) if result is not None and unrequested else result
    else:
        result = _largest(at, budget, high, high, _unsure(designs, 1e-10))
    if result is None:
        raise InputError(
            f"the {designs.method.name} method keeps no levels in these ratios within "
            f"ε = {budget:g}; use method {DEFAULT_METHOD}, or allow changed levels"
        )
    return result


def _by_importance(
    designs: LevelDesigns, budget: float, importance: Sequence[float], caps: NDArray[np.float64]
) -> Design:
    """Return the design that minimises Σ importance · variance within the budget.

    The variance is that of an unbiased share, averaged over the attribute's categories:
    (1 − 1/a)/a · (1/φ² − 1)/n, so that Σ c_i/φ_i² with c_i = importance_i (1 − 1/a_i)/a_i is
    minimised. The levels of the best law without caps and floor (beyond 20 different attributes: of
    its limit for many attributes) give the ratios, and the largest scale that keeps the budget is
    searched for; under ``optimal`` that is about 1.
    """
    from deniable.solvers.patterns import importance as solver

    sizes = np.array(designs.task.n_categories, dtype=np.float64)
    costs = (np.asarray(importance) * (1 - 1 / sizes) / sizes).tolist()
    aim = budget * (1 - 1e-12) - 1e-11
    limits = None if np.all(caps == math.inf) else caps.tolist()
    try:
        solution = solver.solve(designs.task.n_categories, aim, costs, at_most=limits)
    except SolverError as error:
        raise InputError(str(error)) from None
    levels = solution.attribute_epsilon
    spent = _at_once(designs, budget, levels, caps, 1.0)
    rest = resolve_caps(designs.task.given_rest, (math.inf,) * len(caps)) or (None,)
    most = np.minimum(caps, [math.inf if cap is None else cap for cap in rest])
    if spent is not None:
        apart = _apart(budget, sizes, np.asarray(importance), most)
        whole = _not_worse_than_apart(designs, budget, spent, levels, apart, costs, caps)
        if whole is not None:
            return _unrequested(whole)
    # At these levels the optimum spends about the budget, and a capped law more.
    scale = min(1.0, _largest_scale(designs, budget, levels, most))
    scaled = _largest(
        lambda scale: designs.at(np.minimum(scale * levels, most).tolist()),
        budget,
        scale,
        _largest_scale(designs, budget, levels, most),
        _unsure(designs, _NEAR * budget),
    )
    if scaled is None:
        raise InputError(
            f"method {designs.method.name} keeps no levels within ε = {budget:g} under this cap "
            "and floor; loosen them"
        )
    return _unrequested(scaled)


def _apart(
    budget: float,
    sizes: NDArray[np.float64],
    importance: NDArray[np.float64],
    caps: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the levels of independent responses that a total is compared with, shape (k,): even
    ones where all importances are equal, else those of the smallest Σ importance · variance.

    There the derivatives −2 c_i φ_i'/φ_i³ by ε_i are equal, but at caps. They fall with ε_i.
    """
    even = bool(np.all(importance == importance[0]))
    largest = np.minimum(caps, min(budget, MAX_LEVEL))

    def at(log_level: float) -> NDArray[np.float64]:
        if even:
            return np.minimum(math.exp(log_level), largest)
        low, high = np.full(len(sizes), math.log(1e-12)), np.log(largest)
        for _ in range(60):
            level = np.exp(0.5 * (low + high))
            lift = np.expm1(level)
            falls = np.log(2.0 * importance * (1 - 1 / sizes)) + level + np.log1p(sizes / lift)
            above = falls - 2.0 * np.log(lift) > -log_level
            low, high = np.where(above, np.log(level), low), np.where(above, high, np.log(level))
        return np.asarray(np.minimum(np.exp(low), largest))

    low, high = -MAX_LEVEL, MAX_LEVEL
    for _ in range(80):
        middle = 0.5 * (low + high)
        fits = math.fsum(at(middle).tolist()) <= budget * (1 - 1e-14)
        low, high = (middle, high) if fits else (low, middle)
    return at(low)


def _not_worse_than_apart(
    designs: LevelDesigns,
    budget: float,
    first: Divided,
    levels: NDArray[np.float64],
    apart: NDArray[np.float64],
    costs: Sequence[float],
    caps: NDArray[np.float64],
) -> Design | None:
    """Return the design, or one nearer to independent responses that is not worse than they are;
    None where nothing settles.

    ``budget``: in nats. ``levels``: ratios that are best for shares under a law of its own, shape
    (k,). ``apart``: ε_i of the independent responses, shape (k,). ``costs``: c_i of the sum Σ
    c_i/φ_i² that is to be small, shape (k,). ``caps``: largest levels, shape (k,).
    """

    def at(part: float) -> Divided | None:
        ratios = apart ** (1 - part) * levels**part
        made = _at_once(designs, budget, ratios, caps, None)
        return made if made is not None and _loses_nothing(designs, made, apart, costs) else None

    best = first if _loses_nothing(designs, first, apart, costs) else None
    if best is None:
        low, high = 0.0, 1.0
        for _ in range(_STEPS_TO_APART):
            middle = 0.5 * (low + high)
            made = at(middle)
            low, high, best = (low, middle, best) if made is None else (middle, high, made)
        best = best or at(0.0)
    if best is None:
        return designs.with_levels(solve_apart(designs.task, apart.tolist()), apart.tolist())
    solution = best.solution()
    return None if solution is None else designs.with_levels(solution, best.levels)


def _loses_nothing(
    designs: LevelDesigns, divided: Divided, apart: NDArray[np.float64], costs: Sequence[float]
) -> bool:
    """Whether Σ c_i/φ_i², the median variance of shares and, unless pairs are given up, that of
    tables of two are no larger than under independent responses."""
    sizes = np.array(designs.task.n_categories, dtype=np.float64)
    alone = Problem(sizes, apart).keep_excess * sizes / (sizes - 1)
    single = np.empty(len(sizes))
    for together, law in divided.parts:
        single[list(together)] = law.attenuations()

    def no_larger(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> bool:
        return float(np.median(ours**-2.0)) <= float(np.median(theirs**-2.0)) * (1 + 1e-9)

    cost = np.array(costs)
    if cost @ single**-2.0 > cost @ alone**-2.0 * (1 + 1e-9) or not no_larger(single, alone):
        return False
    floor, upper = designs.task.pair_floor, np.triu_indices(len(sizes), 1)
    product, pairs = np.outer(alone, alone)[upper], np.outer(single, single)
    if floor is None or no_larger(floor * pairs[upper], product):
        return True
    for together, law in divided.parts:
        for i, j in itertools.combinations(range(len(together)), 2):
            pair = law.eigenvalues((i, j))[1, 1]
            pairs[together[i], together[j]] = pairs[together[j], together[i]] = pair
    return no_larger(pairs[upper], product)


def _unrequested(design: Design) -> Design:
    """Say of a design that its levels came out of the division: nobody requested them."""
    return replace(design, requested_epsilon=(None,) * len(design.requested_epsilon))


def _at_once(
    designs: LevelDesigns,
    budget: float,
    ratios: NDArray[np.float64],
    caps: NDArray[np.float64],
    scale: float | None,
) -> Divided | None:
    """Return the largest levels that one search finds; None for a method that has none."""
    spend = FUNCTIONS[designs.method.name].spend
    if spend is None:
        return None
    largest = np.minimum(caps, designs.method.largest_level)
    return spend(designs.task, budget, ratios.tolist(), largest.tolist(), scale)


def _largest_scale(
    designs: LevelDesigns, budget: float, ratios: NDArray[np.float64], caps: NDArray[np.float64]
) -> float:
    """Return a scale beyond which no law keeps the budget, or nothing changes any more."""
    if np.any(caps < math.inf):
        return float(np.max(np.minimum(caps, budget) / ratios))
    return min(budget, designs.method.largest_level) / float(ratios.max())


def _unsure(designs: LevelDesigns, within: float) -> Callable[[Design], float]:
    """Return how far below the budget a design may end, in nats.

    What the search finds at two scales may differ by a part of what is left to prove.
    """

    def unsure(design: Design) -> float:
        capped = "caps" in designs.method.takes
        return within if design.gap is None or capped else max(within, design.gap)

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


def _largest_on_a_grid(
    at: Callable[[float], Design],
    fits: Callable[[Design], bool],
    grid: NDArray[np.float64],
) -> Design | None:
    """Search scales from large to small, and refine the first that fits upwards.

    Where the total is not monotone in the scale no bisection over the whole range finds the largest
    scale; a fine grid does up to its spacing, and what is returned has been verified.
    """
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
