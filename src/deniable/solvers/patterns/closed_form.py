"""The optimal law of two attributes in closed form.

Source: Yamamoto, Shibuya, "Privacy-Optimized Randomized Response for Sharing Multi-Attribute Data"
(ISCC 2024), section IV.B.1, cases (I) to (IV), proof in S3 of the supplement.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable.errors import InputError
from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import checked_problem

Case = Literal["I", "II", "III", "IV"]


@dataclass(frozen=True, eq=False)
class TwoAttributeSolution:
    """The optimal law of two attributes, up to normalisation.

    Attributes:
        pattern_density: x_S = X_S/X_{all}, shape (2, 2), index 0 unchanged, 1 changed; [1, 1] is 1.
        pattern_excess: x_S − 1 to full relative accuracy, also for small levels; shape (2, 2).
        case: the paper's case.
        epsilon: privacy level of the record, ln x_∅, in nats.
    """

    pattern_density: FloatArray
    pattern_excess: FloatArray
    case: Case
    epsilon: float


def solve(n_categories: Sequence[int], attribute_epsilon: Sequence[float]) -> TwoAttributeSolution:
    """Give the two-attribute law with the smallest record level at exactly the requested levels.

    ``n_categories``: (m, n), at least 2 each. ``attribute_epsilon``: (ε₁, ε₂) in nats.

    Source: Yamamoto and Shibuya, section IV.B.1.

    >>> solution = solve([3, 4], [1.0, 0.5])
    >>> solution.case, round(solution.epsilon, 6)
    ('IV', 1.399305)
    """
    problem = checked_problem(n_categories, attribute_epsilon)
    if problem.n_attributes != 2:
        raise InputError(
            f"closed form: it exists for two attributes, not {problem.n_attributes}; "
            "use the linear program or the heuristic"
        )
    m, n = problem.n_categories.tolist()
    c, b = problem.expm1.tolist()
    keep_excess, first, second, case = scaled_excess(m, n, c, b)
    excess = m * n * np.array([[keep_excess, second], [first, 0.0]])
    return TwoAttributeSolution(1.0 + excess, excess, case, math.log1p(float(excess[0, 0])))


def scaled_excess(m: float, n: float, c: float, b: float) -> tuple[float, float, float, Case]:
    """Return (u_0, u_1, u_2, case), u_j = (x_j − 1)/(mn), for c = e^{ε₁} − 1 and b = e^{ε₂} − 1.

    Subtracting 1 from the paper's x_{2,0} and collecting terms leaves, in all four cases, sums of
    products of non-negative numbers; with N = nc(1 + b) + m(n−1)b = mb(1 + c) + n(m−1)c,

        (I)   x_0 − 1 = N/(b + n),    x_1 − 1 = 0,    x_2 − 1 = (nc − mb)/(b + n)
        (III) x_0 − 1 = N/D = x_1 − 1,    x_2 − 1 = mc(b + n)/D,    D = m(n−1) − c(1 + b)

    and (II), (IV) are their mirror images. Between III and IV x_0 ≥ x_2 decides, for the formula
    (III). Where I meets III both have the same x_0: a decision reversed by rounding there costs no
    accuracy.
    """
    if (1.0 + c) * (1.0 + b) >= (m - 1.0) * (n - 1.0):
        if c / m >= b / n:
            keep, change = _vote_for_all(m, n, c, b)
            return keep, 0.0, change, "I"
        keep, change = _vote_for_all(n, m, b, c)
        return keep, change, 0.0, "II"
    if (n - m) * b * c - n * (m - 1.0) * c + m * (n - 1.0) * b >= 0.0:
        keep, change = _vote_for_second(m, n, c, b)
        return keep, keep, change, "III"
    keep, change = _vote_for_second(n, m, b, c)
    return keep, change, keep, "IV"


def _vote_for_all(m: float, n: float, c: float, b: float) -> tuple[float, float]:
    """u_0 and u_2 of case I."""
    # Written so that the largest intermediate is max(c, b), not cb, which may overflow.
    keep = (c / m) * ((1.0 + b) / (b + n)) + ((n - 1.0) / n) * (b / (b + n))
    # x_0 ≥ x_2 holds in exact arithmetic, with equality at a level of 0; it must survive rounding.
    return keep, min(keep, (c / m - b / n) / (b + n))


def _vote_for_second(m: float, n: float, c: float, b: float) -> tuple[float, float]:
    """u_0 = u_1 and u_2 of case III."""
    denominator = m * (n - 1.0) - c * (1.0 + b)
    keep = ((c / m) * (1.0 + b) + ((n - 1.0) / n) * b) / denominator
    return keep, min(keep, (c / n) * (b + n) / denominator)
