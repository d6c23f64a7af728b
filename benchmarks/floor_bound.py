"""What a floor on pairs costs at least, with no cap: a bound below which no law with it is.

Let C_i = 1 if i is changed, h_i = 1 if it is kept and −1/(a_i − 1) if not, E the mean under the
uniform law μ, and f the density of a law with these levels and this floor. For all λ and η ≥ 0

    w = Σ λ_i (q_i − C_i)/d_i + Σ η_ij (h_i h_j/(φ_i φ_j) − t)

has E[f w] ≥ 0, so that max f E[w₊] ≥ min f E[w₋], and ε ≥ ln(E[w₋]/E[w₊])
(docs/proofs/clipped.md, "What a floor costs at least"). The multipliers of a linear program over
all patterns are good ones, and whatever they are, the bound is evaluated from them with rounding
taken off.
"""

import math
from collections.abc import Sequence

import numpy as np

from deniable.proofs.problem import checked_problem
from deniable.solvers import highs

_MOST = 13
"""Attributes that are looked at, those of the largest levels: what holds of a part of the columns
holds of the record."""

_ROUNDING, _OF_SUMS = 1e-13, 1e-8
"""Of every term of w, as a part of its size, and of both sums, in nats."""


def least_epsilon(
    n_categories: Sequence[int], levels: Sequence[float], floor: float, about: float
) -> float:
    """Return what ε is not below at these levels if every φ_ij ≥ floor φ_i φ_j, in nats; −∞ if the
    program is not solved.

    Args:
        n_categories: a_i, shape (k,).
        levels: ε_i in nats, shape (k,).
        floor: t.
        about: about ε, in nats: the scale of the program.
    """
    chosen = np.argsort(levels)[-_MOST:]
    problem = checked_problem([n_categories[i] for i in chosen], [levels[i] for i in chosen])
    a, k = problem.n_categories, problem.n_attributes
    changed = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    chance = np.where(changed, 1.0 - 1.0 / a, 1.0 / a).prod(axis=1)
    sign = np.where(changed, -1.0 / (a - 1.0), 1.0)
    left = problem.keep_excess / (1.0 - 1.0 / a)
    first, second = np.triu_indices(k, 1)
    of_levels = ((problem.change_probability - changed) / problem.keep_excess).T
    of_pairs = (sign[:, first] * sign[:, second] / (left[first] * left[second]) - floor).T
    scale = chance * math.exp(about)
    asked = np.zeros(len(first), dtype=np.bool_)
    best = -math.inf
    while True:
        # f = 1 + x/τ with 0 ≤ x ≤ 1, and τ as large as may be, in units of e^−about.
        rows = np.concatenate([of_levels, of_pairs[asked]])
        of_one = np.append(np.ones(k), np.full(int(asked.sum()), floor))
        matrix = np.column_stack([rows * np.minimum(scale, 1.0), -of_one])
        size = np.abs(matrix).max(axis=1, keepdims=True)
        unit = np.append(np.maximum(np.abs(matrix[:, :-1] / size).max(axis=0), 1e-9), 1.0)
        end = np.full(len(unit), highs.INFINITY)
        end[:-1] = np.maximum(scale, 1.0) * unit[:-1]
        above = np.append(np.zeros(k), np.full(len(rows) - k, highs.INFINITY))
        cost, low = np.append(np.zeros(2**k), -1.0), np.zeros(2**k + 1)
        entries = highs.dense_rows(matrix / size / unit)
        program = highs.Program(cost, low, end, entries, np.zeros(len(rows)), above)
        answer = highs.run(program, "interior-point")
        if answer.status != "optimal":
            return best
        price = -answer.multipliers / size[:, 0]
        price *= math.copysign(1.0, price[:k].sum())
        price[k:] = np.maximum(price[k:], 0.0)
        worth, off = price @ rows, _ROUNDING * (np.abs(price) @ np.abs(rows))
        lost, won = (chance @ np.maximum(one - off, 0.0) for one in (-worth, worth + 2.0 * off))
        best = max(best, math.log(lost / won) - _OF_SUMS)
        x = answer.x[:-1] / unit[:-1] / np.maximum(scale, 1.0)
        mass = chance * (1.0 + x * math.exp(about) / answer.x[-1])
        broken = (of_pairs @ mass < -1e-4 * mass.sum()) & ~asked
        if not broken.any():
            return best
        asked |= broken
