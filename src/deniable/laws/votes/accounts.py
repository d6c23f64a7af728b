"""What a law of votes promises *as drawn*: every number a bound, every rounding the safe way.

As drawn, the probability of every pattern is within e^{±δ} of the ideal law's up to one constant
that normalises; δ is `path_slack`, and for a mixture the roundings of its density come on top, for
a blend those of its parts' weights (two products; what a part is divided by first cancels). The
logarithm of a quotient of two sums of such probabilities therefore moves by 2 δ at most, and every
level here is one: of two patterns, of p_i and 1 − p_i, of two values of a projected law. An own
response is drawn exactly, with probabilities that are doubles, and only averages.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.laws.votes import backward
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.independent import IndependentResponses
from deniable.laws.votes.mixture import VoteMixture
from deniable.laws.votes.sampling import STEP_ROUNDINGS, path_slack
from deniable.laws.votes.sums import UNIT, FloatArray

Law = GatedSum | VoteBlend | VoteMixture


@dataclass(frozen=True, eq=False)
class Account:
    """Bounds in nats for a law as drawn.

    Attributes:
        epsilon: the record's level, rounded up.
        attribute_epsilon: ε_i, rounded up, shape (k,).
        attribute_epsilon_floor: ε_i, rounded down: what is certainly delivered, shape (k,).
        epsilon_given_rest: level against full knowledge of the rest, rounded up, shape (k,).
    """

    epsilon: float
    attribute_epsilon: FloatArray
    attribute_epsilon_floor: FloatArray
    epsilon_given_rest: FloatArray


def drawing_slack(law: Law) -> float:
    """Return how far the logarithm of a ratio of pattern probabilities moves by drawing, nats."""
    slack = path_slack(law.n_attributes, law.epsilon)
    if isinstance(law, VoteMixture):
        slack += 1.01 * law.density_roundings * UNIT
    if isinstance(law, VoteBlend):
        slack += 1.01 * (STEP_ROUNDINGS + 4) * UNIT
    return 2.0 * slack


def account(law: Law | IndependentResponses) -> Account:
    """Return what a law promises as drawn."""
    if isinstance(law, IndependentResponses):
        return _independent(law)
    above, below = attribute_levels(law)
    epsilon = _record_level(law)
    return Account(
        epsilon=epsilon,
        attribute_epsilon=above,
        attribute_epsilon_floor=below,
        # Two patterns that differ in one attribute are two patterns.
        epsilon_given_rest=np.minimum(_given_rest(law, drawing_slack(law)), epsilon),
    )


def attribute_levels(law: Law) -> tuple[FloatArray, FloatArray]:
    """Return ε_i rounded up and rounded down, shapes (k,), in nats."""
    slack = drawing_slack(law)
    moments = law.moments()
    level = moments.levels(law.n_categories)
    # ln of a quotient of two numbers with that relative error; three rounded logarithms.
    logarithms = 4 * UNIT * (np.abs(level) + np.log(law.n_categories) + 2)
    wrong = 2.02 * moments.relative_error + slack + logarithms
    return level + wrong, np.maximum(level - wrong, 0.0)


def _record_level(law: Law) -> float:
    """Return the record's level, rounded up: that of the gate or the votes, or, where own
    responses or a gate that is never fully open leave less, that of all columns."""
    height = _up(law.epsilon * (1 + 4 * UNIT) + drawing_slack(law))
    if _opens(law) and np.all(law.retention == 1.0):
        return height
    return min(height, _projected(law, list(range(law.n_attributes))))


def _opens(law: Law) -> bool:
    """Whether the whole height is reached where everything is kept."""
    if isinstance(law, VoteMixture):
        return True
    parts = law.parts if isinstance(law, VoteBlend) else (law,)
    return all(part.weights.sum() >= part.start + part.width for part in parts)


def _given_rest(law: Law, slack: float) -> FloatArray:
    """Return bounds on every attribute's level against full knowledge of the rest."""
    given = law.given_rest()
    if isinstance(law, VoteMixture):
        # |d ln f| of each of the two entries, two logarithms of up to ε, one difference.
        given += (2.02 * law.density_roundings + 6 * (law.epsilon + 1)) * UNIT
    return given * (1 + 32 * UNIT) + slack


def subset_epsilon(law: Law, subset: Sequence[int]) -> float:
    """Return the level against someone who sees only these columns, rounded up, nats.

    Args:
        law: a law of votes.
        subset: positions, each once.
    """
    chosen = [int(i) for i in subset]
    if not chosen:
        return 0.0
    if len(chosen) == law.n_attributes:
        return _record_level(law)
    # A projection never reveals more than the whole.
    return min(_projected(law, chosen), _record_level(law))


def _projected(law: Law, chosen: list[int]) -> float:
    slack = drawing_slack(law)
    k = law.n_attributes
    if isinstance(law, VoteMixture):
        level = law.subset_level(chosen)
        # Products of k masses, and numpy's pairwise sums, on each side of the quotient.
        wrong = 2.02 * (3 * k + 160 + law.density_roundings) * UNIT
    elif isinstance(law, VoteBlend):
        level = law.subset_level(chosen)
        wrong = 2.02 * (path_slack(k, law.height) + (len(law.parts) + 2) * UNIT)
    else:
        level = backward.subset_level(law, chosen)
        wrong = 2.02 * path_slack(k, law.height)
    return _up(level + wrong + slack + 4 * UNIT * (1 + abs(level)))


def _independent(law: IndependentResponses) -> Account:
    levels = law.attribute_epsilon
    total = math.fsum(levels.tolist())
    return Account(_up(total), levels, levels * (1 - 2.0**-50), levels)


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)
