"""A vote with a logistic gate: its expectations by Fourier inversion, without a grid.

With z = θ − Σ_{changed} λ_i as in `complement`, a gate x = σ(z/T) = Φ_T'(z), where
Φ_T(z) = T ln(1 + e^{z/T}) ≥ z_+, and 0 < ρ < 1/T, e^{−ρz} σ(z/T) has the Fourier transform

    S(ρ + iω) = ∫ e^{−(ρ + iω) z} σ(z/T) dz = πT/sin(πT (ρ + iω)),

that of e^{−ρz} Φ_T is S/(ρ + iω), and that of e^{−ρz} σ'(z/T)/T is S·(ρ + iω). So with
dν ∝ e^{ρz} dμ, e^L = E_μ[e^{ρz}] and φ(ω) = E_ν[e^{iωz}],

    E_μ[h(z)] = e^L (1/2π) ∫ φ(ω) ĥ(ω) dω,

and the change of an attribute contributes U_i(ω) = π_i e^{−iωλ_i}/(1 − π_i + π_i e^{−iωλ_i}) under
the integral, π_i = ν(i changed): all first moments are a product of a matrix and a vector, all
second moments a product of two matrices. The trapezoid rule is exact but for aliasing and omitted
frequencies. The results are no bounds; they serve the search only.
"""

import math
from dataclasses import dataclass

import numpy as np

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.sums import saddle_tilt
from deniable.proofs.complement import spared
from deniable.proofs.problem import Problem

MOST_NODES = 8192
"""Frequencies at most; a gate so steep that it needs more is not resolved."""

_TAIL = 26.0
"""Nats at which tails of z, the gate and the frequencies are cut off: e^−26 is 5e-12."""


@dataclass(frozen=True, eq=False)
class LogisticVote:
    """Value of a vote with a logistic gate, and its derivatives by λ.

    Attributes:
        weights: λ, with λ·d = 1, shape (k,).
        softness: T, on the same scale.
        objective: ln E_μ[Φ_T(z)], which is ln(1/(e^ε − 1)) where T → 0.
        value: v_i = E_μ[x (q_i − C_i)] over E_μ[Φ_T(z)], shape (k,).
        diagonal: E_μ[x' (q_i − C_i)²] over E_μ[Φ_T(z)], shape (k,).
        curvature: E_μ[x' (q_i − C_i)(q_j − C_j)] over E_μ[Φ_T(z)], shape (k, k); or (0, 0).
        resolved: whether the frequencies were enough for this T.
    """

    weights: FloatArray
    softness: float
    objective: float
    value: FloatArray
    diagonal: FloatArray
    curvature: FloatArray
    resolved: bool


def usual_tilt(problem: Problem, weights: FloatArray, budget: float | None = None) -> float:
    """Return the saddle point ρ > 0, at which the costs of changes average the budget; if they are
    below it anyway, z is near θ and ρ is of the order of 1/θ.

    ``weights``: λ ≥ 0, shape (k,).
    """
    budget = budget or float(weights @ problem.change_probability)
    live = weights < budget
    kept = float(weights[live].sum()) - budget
    tilt = saddle_tilt(problem.uniform_keep[live], weights[live], kept) if kept > 0 else 0.0
    return max(tilt, 0.3 / budget)


def usual_deviation(problem: Problem, weights: FloatArray, budget: float | None = None) -> float:
    """Return the standard deviation of z under the usual tilt, of changes that can be afforded."""
    budget = budget or float(weights @ problem.change_probability)
    change = _changed(problem, weights, usual_tilt(problem, weights, budget))[1]
    live = weights < budget
    return math.sqrt(float((weights**2 * change * (1.0 - change))[live].sum()))


def _changed(problem: Problem, weights: FloatArray, tilt: float) -> tuple[FloatArray, FloatArray]:
    """Return the total of either fate, and the chance π_i of a change, at a tilt, shapes (k,)."""
    keep = problem.uniform_keep
    odds = (1.0 - keep) * np.exp(-np.minimum(tilt * weights, 700.0))
    return keep + odds, odds / (keep + odds)


def logistic_vote(
    problem: Problem,
    weights: FloatArray,
    softness: float,
    *,
    pairs: bool = True,
) -> LogisticVote:
    """Evaluate one vote.

    ``weights``: λ ≥ 0 with λ·d = 1, shape (k,).
    """
    q = problem.change_probability
    budget = float(weights @ q)
    # As in `complement.of_whole`: where an unchanged attribute i alone brings z so far up that the
    # gate is 1, lowering a weight by c leaves the gate unchanged, and E_μ[Φ_T] falls by c r_i.
    cut = spared(weights, budget - _TAIL * softness)
    costs, budget = weights - cut, budget - float(cut.sum())
    tilt = min(usual_tilt(problem, costs, budget), 0.9 / softness)
    total, change = _changed(problem, costs, tilt)
    log_factor = tilt * budget + float(np.log(total).sum())
    deviation = math.sqrt(float(costs**2 @ (change * (1.0 - change))))
    # Aliasing from a period above is e^{−ρ·period}, from below e^{−(1/T − ρ)·period}.
    period = 8.0 * deviation + max(_TAIL / tilt, _TAIL / (1.0 / softness - tilt))
    spacing = 2.0 * math.pi / period
    needed = max(64, math.ceil(_TAIL / (math.pi * softness * spacing)))  # S falls as e^{−πTω}
    k = problem.n_attributes
    smooth, gate, bend = 0.0, 0.0, 0.0
    size = k if pairs else 0
    gate_changed, bend_changed, both_changed = np.zeros(k), np.zeros(k), np.zeros((size, size))
    largest, done, block = 0.0, False, 256 if pairs else 32  # large for products of matrices
    for first in range(0, min(needed, MOST_NODES), block):
        omega = spacing * np.arange(first, first + block)
        turned = np.exp(-1j * np.outer(omega, costs)) * change
        both = (1.0 - change) + turned
        at = tilt + 1j * omega
        wave = np.exp(1j * omega * budget) * np.prod(both, axis=1) * (spacing / math.pi)
        wave *= math.pi * softness / np.sin(math.pi * softness * at)
        if first == 0:
            wave[0] *= 0.5  # the integral over all ω is twice the real part of that over ω > 0
        bent = wave * at
        smooth += float((wave / at).real.sum())
        gate += float(wave.real.sum())
        bend += float(bent.real.sum())
        part = turned / both
        gate_changed += (wave @ part).real
        bend_changed += (bent @ part).real
        if pairs:
            weighed = part * bent[:, None]
            both_changed += part.real.T @ weighed.real - part.imag.T @ weighed.imag
        sizes = np.abs(bent)
        largest = max(largest, float(sizes.max()))
        done = float(sizes[-block // 4 :].max()) < math.exp(-_TAIL) * largest
        if done:
            break
    diagonal = q**2 * bend - 2.0 * q * bend_changed + bend_changed
    curvature = both_changed
    if pairs:
        cross = np.outer(q, bend_changed)
        curvature = bend * np.outer(q, q) - cross - cross.T + both_changed
        np.fill_diagonal(curvature, diagonal)
    if cut.any():
        smooth += float(cut @ problem.uniform_keep) * float(np.exp(-log_factor))
    if not 0.0 < smooth < math.inf:
        return LogisticVote(weights, softness, math.inf, q, diagonal, curvature, False)
    return LogisticVote(
        weights,
        softness,
        math.log(smooth) + log_factor,
        (q * gate - gate_changed) / smooth,
        diagonal / smooth,
        curvature / smooth,
        done or needed <= MOST_NODES,
    )
