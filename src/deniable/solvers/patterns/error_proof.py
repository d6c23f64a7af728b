"""Multipliers of the proof that a law of one score has about the least error.

At the attenuations φ_j of the best law under caps as numbers the best λ_j are 2 w_j/φ_j³
(`deniable.proofs.accuracy`). A linear program, the largest Σ λ_j φ_j over densities within the
limits, gives the multipliers of caps and of largest levels.
"""

from collections.abc import Sequence

import clarabel
import numpy as np

from deniable.laws import ScoreTable
from deniable.laws.patterns import FloatArray
from deniable.proofs.accuracy import Accuracy, Multipliers, Request, kinds, own_errors, proved
from deniable.solvers.patterns.least_error import LeastError, Rows, least_under_caps

MOST_NUMBERS = 500_000
"""Pairs of kinds times scores up to which a proof is made and checked, in a second or two."""

_NEAR = 0.5
"""Part of a cap within which a pair of outputs is a row of the program."""


def proof(
    found: LeastError,
    law: ScoreTable,
    epsilon: float,
    caps: Sequence[float | None],
    theta: float,
    importance: Sequence[float],
    at_most: Sequence[float],
) -> Accuracy | None:
    """Return the proof of a law as it is drawn; None if none is found.

    ``epsilon`` and ``caps``, in nats, None for none, are its own. θ of one attribute alone is 0.
    """
    theta = theta if len(law.costs) > 1 else 0.0
    of = kinds(law.n_categories, law.costs, importance)
    request = Request.of(law.n_categories, epsilon, theta, importance, caps, at_most)
    if len(of.pairs) * len(of.scores.values) > MOST_NUMBERS:
        return None
    chosen = multipliers(request, law.costs, least_under_caps(found), *own_errors(law, of))
    if chosen is None:
        return None
    return proved(law, epsilon, caps, theta, importance, at_most, chosen)


def multipliers(
    request: Request, costs: Sequence[int], densities: FloatArray, shares: float, pairs: float
) -> Multipliers | None:
    """Return the multipliers of a proof; None if the program is not solved.

    ``densities``: by score, shape (Σ costs + 1,). ``shares`` and ``pairs``: mean variances.
    """
    of = kinds(request.n_categories, costs, request.importance)
    scores, m = of.scores, len(of.scores.costs)
    measure = (scores.measure / scores.scale).astype(np.float64)
    f = np.asarray(densities, dtype=np.float64)[scores.values]
    f = f / (measure @ f)
    single = (scores.single / scores.scale).astype(np.float64)
    double = (scores.double(of.pairs) / scores.scale).astype(np.float64)
    w, w2 = of.weights(request.theta, shares, pairs)
    phi, phi2 = single @ f, double @ f
    if not ((phi > 0).all() and (phi2 > 0).all()):
        return None
    first, second = 2 * w / phi**3, 2 * w2 / phi2**3
    slope = (first @ single + second @ double) * f
    n = len(f)
    rows, every = Rows(n + 1), np.arange(n)
    rows.add([(every, measure * f)], 0.0)  # u = 1 + d
    fall = np.log(f.min() / f)
    rows.each([(every, -1.0), (n, np.exp(fall))], -np.expm1(fall))
    room = fall + request.epsilon
    rows.each([(every, 1.0), (n, -np.exp(room))], np.expm1(room))
    start, at = rows.n, []
    for t, (kept, gone) in enumerate(scores.neighbours):
        cap = max(request.caps[i] for i in range(len(of.place)) if of.place[i] == t)
        if not cap < request.epsilon:
            continue
        for other, over, under in ((False, kept, gone), (True, gone, kept)):
            room = cap + np.log(f[under] / f[over])
            near = np.flatnonzero(room < _NEAR * cap)
            ratio = np.exp(room[near])
            rows.each([(over[near], 1.0), (under[near], -ratio)], np.expm1(room[near]))
            at += [(t, other, int(scores.values[kept[j]]), float(f[over[j]])) for j in near]
    levels = rows.n
    limited = []
    for t in range(m):
        most = max(request.at_most[i] for i in range(len(of.place)) if of.place[i] == t)
        if np.isfinite(most):
            lift = np.expm1(most)
            top = lift / (lift + scores.n_categories[t])
            rows.add([(every, single[t] * f)], float(top - phi[t]))
            limited.append(t)
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(rows.n - 1)]
    answer = rows.solve(np.zeros(n + 1), np.append(-slope, 0.0), cones, 1e-9)
    if answer is None:
        return None
    found = np.maximum(answer[1], 0.0)
    of_levels = np.zeros(m)
    of_levels[limited] = found[levels:]
    caps = [
        (t, other, score, _rounded(value / density))
        for (t, other, score, density), value in zip(at, found[start:levels], strict=True)
        if value > 1e-9
    ]
    one, two, levels_of = (
        tuple(map(_rounded, values.tolist())) for values in (first, second, of_levels)
    )
    return Multipliers(one, two, levels_of, tuple(caps))


def _rounded(value: float) -> float:
    """Return a multiplier to eight digits: any is a proof, and a record holds hundreds."""
    return float(f"{value:.8g}")
