"""Algorithm 3 of Yamamoto and Shibuya, in a scaled form that takes O(k) and cannot overflow.

With u_j = (x_{k,j} − 1)/∏ a_i all u_i are known at once (docs/proofs/restricted.md, Theorem 7), and
only line 8 is sequential: u_0 is the rest of W, and attribute i falls back if its u_i would be
negative, or so large that u_0' < max u_j.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.laws.patterns import FloatArray
from deniable.proofs.problem import Problem, checked_problem
from deniable.solvers.patterns.closed_form import scaled_excess


@dataclass(frozen=True, eq=False)
class HeuristicSolution:
    """The law of Algorithm 3: draw one of k + 2 cases, with the weights given in brackets.

    A record drawn uniformly [1]; the record unchanged [`keep_excess`]; only attribute j changed
    [(a_j − 1) `change_excess`_j, shape (k,)]. ``achieved_epsilon``: level of each attribute in
    nats, shape (k,); ``changed``: whether it differs from the request (line 9 of Algorithm 3);
    ``epsilon``: of the record, in nats.
    """

    keep_excess: float
    change_excess: FloatArray
    achieved_epsilon: FloatArray
    changed: npt.NDArray[np.bool_]
    epsilon: float


def solve(n_categories: Sequence[int], attribute_epsilon: Sequence[float]) -> HeuristicSolution:
    """Run Algorithm 3 on the attributes in the order given, on which the result depends.

    The achieved level of an attribute may be smaller *or larger* than the requested one; the first
    two attributes always get theirs. ``n_categories``: a_i, shape (k,), k ≥ 1.
    ``attribute_epsilon``: ε_i in nats, shape (k,). Source: Yamamoto and Shibuya, Algorithm 3; k = 1
    is k-ary response.

    >>> solution = solve([5, 5, 3], [1.0, 2.0, 1.5])
    >>> round(solution.epsilon, 6), solution.changed.any().item()
    (3.959068, False)
    """
    problem = checked_problem(n_categories, attribute_epsilon)
    lift = problem.expm1 / problem.n_categories
    keep_excess, first_two, total = _base(problem, lift)
    # E + a_i − 1 from expm1, because E itself rounds away the digits of a small level.
    excess = (total - lift) / (problem.expm1 + problem.n_categories)
    excess[: len(first_two)] = first_two
    keep_excess, changed = _settle(problem, excess, keep_excess, max(first_two))
    achieved = problem.attribute_epsilon.copy()
    achieved[changed] = np.log1p(problem.n_categories[changed] * total)
    change_excess = np.where(changed, 0.0, excess)
    return HeuristicSolution(
        keep_excess, change_excess, achieved, changed, _total_level(problem, keep_excess)
    )


def _base(problem: Problem, lift: FloatArray) -> tuple[float, list[float], float]:
    """Return u_0, the settled u_j, and W after the first one or two attributes."""
    if problem.n_attributes == 1:
        return float(lift[0]), [0.0], float(lift[0])
    (m, n), (c, b) = problem.n_categories[:2].tolist(), problem.expm1[:2].tolist()
    keep, first, second, case = scaled_excess(m, n, c, b)
    # In cases I and II one of the two is settled at u_j = 0, where W = g_j exactly.
    if case == "I":
        total = float(lift[0])
    elif case == "II":
        total = float(lift[1])
    else:
        total = keep + (m - 1.0) * first + (n - 1.0) * second
    return keep, [first, second], total


def _settle(
    problem: Problem, excess: FloatArray, keep_excess: float, largest: float
) -> tuple[float, npt.NDArray[np.bool_]]:
    """Decide line 8 from attribute 3 on; return the final u_0 and the attributes that fell back.

    u_0 is a long running difference, so its rounding errors are carried along (Neumaier): a million
    attributes would otherwise cost up to a million units in the last place.
    """
    changed = excess < 0.0
    costs = (problem.n_categories - 1.0) * excess
    candidates = np.flatnonzero(~changed)
    candidates = candidates[candidates >= 2]
    rejected = []
    lost = 0.0
    for index, value, cost in zip(
        candidates.tolist(),
        excess[candidates].tolist(),
        costs[candidates].tolist(),
        strict=True,
    ):
        left = keep_excess - cost
        error = (keep_excess - left) - cost
        bar = value if value > largest else largest
        if left + (lost + error) < bar:
            rejected.append(index)
        else:
            keep_excess, lost, largest = left, lost + error, bar
    changed[rejected] = True
    return keep_excess + lost, changed


def _total_level(problem: Problem, keep_excess: float) -> float:
    """ln(1 + u_0 ∏ a_i), from logarithms once the number of records overflows."""
    if keep_excess <= 0.0:
        return 0.0
    log_records = math.fsum(np.log(problem.n_categories).tolist())
    if log_records < 700.0:
        return math.log1p(keep_excess * math.prod(problem.n_categories.tolist()))
    log_excess = math.log(keep_excess) + log_records
    return log_excess if log_excess > 40.0 else math.log1p(math.exp(log_excess))
