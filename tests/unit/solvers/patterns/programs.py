"""The linear programs of pattern laws, written over all patterns and solved by another route."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize


def least_excess(
    counts: Sequence[int],
    levels: Sequence[float],
    caps: Sequence[float] | None = None,
    pair_floor: float | None = None,
) -> float:
    """The least e^ε − 1 of a law that keeps the levels, and the caps and the floor if given.

    In the densities f(S) ≥ 1 against the uniform law up to a factor, with f = 1 where all is
    changed; infinite if there is no such law.
    """
    k = len(counts)
    a = np.array(counts, dtype=float)
    table = np.array(list(itertools.product((0, 1), repeat=k)))  # 1 = changed
    mu = np.prod(np.where(table == 1, (a - 1) / a, 1 / a), axis=1)
    keep = np.exp(levels) / (np.exp(levels) + a - 1)
    place = {tuple(row): j for j, row in enumerate(table.tolist())}
    a_eq = [mu * ((1 - table[:, i]) - keep[i]) for i in range(k)] + [np.eye(1 << k)[-1]]
    b_eq = [0.0] * k + [1.0]
    a_ub = []
    for row in table.tolist():
        for i in range(k):
            if row[i] == 0:
                other = [*row[:i], 1, *row[i + 1 :]]
                falls = np.zeros(1 << k)
                falls[place[tuple(row)]], falls[place[tuple(other)]] = -1.0, 1.0
                a_ub.append(falls)
                if caps is not None and math.isfinite(caps[i]):
                    capped = np.zeros(1 << k)
                    capped[place[tuple(row)]] = 1.0
                    capped[place[tuple(other)]] = -math.exp(caps[i])
                    a_ub.append(capped)
    if pair_floor is not None:
        phi = (a * keep - 1) / (a - 1)
        signs = np.where(table == 1, -1 / (a - 1), 1.0)
        for i, j in itertools.combinations(range(k), 2):
            a_ub.append(-mu * (signs[:, i] * signs[:, j] - pair_floor * phi[i] * phi[j]))
    answer = optimize.linprog(
        np.eye(1, 1 << k)[0], np.array(a_ub), np.zeros(len(a_ub)), np.array(a_eq), b_eq
    )
    return float(answer.fun) - 1.0 if answer.status == 0 else math.inf
