"""Turn a law that nearly meets the levels into one that meets them all and exceeds none.

The height E is moved until every attribute has at least its level; excesses are removed by an
independent k-ary response on that attribute (post-processing: no level rises). If all attributes
are within the tolerance already no response is needed, and sampling is faster. At many nats that is
the only way: of a level of 20 nats an own response, whose probability is a double near 1, reaches
seven digits.
"""

import math
from typing import TypeVar

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.gated import GatedSum, on_grid
from deniable.laws.votes.vote_law import LARGEST_HEIGHT, VoteLaw
from deniable.proofs.problem import Problem, SolverError, checked_problem

Law = TypeVar("Law", bound=VoteLaw)

TOLERANCE = 9e-10
"""A level that is met lies at most this far (nats) below the request, and never above it."""


def land(problem: Problem, law: Law) -> Law:
    """Return the law with its height and retention set so that every level is met."""
    level = problem.attribute_epsilon
    above, below = law.attribute_bounds()
    certain = float((above - below).max())
    margin = 0.5 * certain + 0.002 * TOLERANCE
    for _ in range(4):
        landed = _land(problem, law, margin)
        over = float((landed.attribute_bounds()[0] - level).max())
        if over <= 0:
            return _precise(problem, landed)
        # `over` may be less than the change of the level by rounding between attempts.
        margin += 2 * over + 0.05 * certain
    raise _too_wide(problem, margin)


def _too_wide(problem: Problem, wrong: float) -> SolverError:
    return SolverError(
        "the error bounds of this law are too wide to certify its levels: with levels of up to "
        f"{problem.attribute_epsilon.max():g} nats they can be met to about {wrong:.0e} nats only"
    )


def _precise(problem: Problem, law: Law) -> Law:
    """Return the law; raise if own responses overshoot, as their doubles near 1 may."""
    short = problem.attribute_epsilon - law.attribute_bounds()[1]
    if float(short.max()) > 1e-9:
        raise _too_wide(problem, float(short.max()))
    return law


def _land(problem: Problem, law: Law, margin: float) -> Law:
    """Bring every level to at most ε_i − margin and at least ε_i − TOLERANCE."""
    if margin > 0.45 * TOLERANCE:
        raise _too_wide(problem, margin)
    target = problem.attribute_epsilon - margin
    over = law.moments().levels(problem.counts) - target
    if np.all((-0.9 * TOLERANCE + 2.0 * margin <= over) & (over <= 0.0)):
        return law
    law = _move_height(law, target)
    moments = law.moments()
    over = moments.levels(problem.counts) - target
    if np.any(over < -0.5 * TOLERANCE):
        raise SolverError("this law cannot reach the requested levels")
    if float(over.max()) <= 0:
        return law
    aim, flip = checked_problem(problem.counts.tolist(), target.tolist()), 1.0 - law.uniform_keep
    # φ_i = gain_i a_i/(a_i − 1) is multiplied by the retention. Near 1, its complement is computed
    # from the small change probabilities, and rounded up: a double near 1 moves a level of 15 nats
    # by more than the error bounds.
    blur = (aim.change_probability - moments.change) / (flip - moments.change)
    near_one = np.nextafter(1.0 - blur.clip(0.0), 0.0)  # blur < 0: too high by a rounding at most
    retention = np.where(target > 1.0, near_one, np.minimum(aim.keep_excess / moments.gain, 1.0))
    return law.with_retention(np.where(over > 0, retention, 1.0))


def _move_height(law: Law, target: FloatArray) -> Law:
    """Move E until the attribute that is furthest below its target is 0.4 tolerances below it.

    By secant steps within a bracket, and bisection every third step: levels rise with E, but far
    above the target hardly, and secants there do not converge.
    """

    def miss(at: Law) -> float:
        levels = at.moments().levels(at.counts)
        return float((levels - target).min()) / TOLERANCE + 0.4

    low, high = 0.0, law.largest_height
    best, value = law, miss(law)
    best_value = value
    slope = 1.0 / TOLERANCE
    least_slope = 1e-6 / TOLERANCE
    for step in range(120):
        if abs(best_value) <= 0.04:
            break
        low, high = (law.ideal_epsilon, high) if value < 0 else (low, law.ideal_epsilon)
        height = law.ideal_epsilon - value / slope
        if not low < height < high or step % 3 == 2:
            height = 0.5 * (low + min(high, 2 * law.ideal_epsilon + 1))
        if height == law.ideal_epsilon:
            break
        new = law.at_height(height)
        new_value = miss(new)
        change = (new_value - value) / (height - law.ideal_epsilon)
        slope = change if least_slope < change < math.inf else slope
        law, value = new, new_value
        if abs(value) < abs(best_value):
            best, best_value = law, value
    return best


def vote_of(
    problem: Problem, weights: FloatArray, start: float, width: float, log_height: float
) -> GatedSum:
    """Return the vote with real weights λ (integer part and dither), ln(e^E − 1) = log_height."""
    n, dither = on_grid(weights)
    height = max(log_height, 0.0) + math.log1p(math.exp(-abs(log_height)))
    if not 0 < height <= LARGEST_HEIGHT:
        raise SolverError(
            f"the record's level would exceed {LARGEST_HEIGHT:g} nats: split the attributes"
        )
    return GatedSum(
        tuple(problem.counts.tolist()),
        n,
        dither,
        "vote",
        max(start, 0.0),
        width,
        height,
        np.ones(problem.n_attributes),
    )
