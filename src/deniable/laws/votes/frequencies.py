"""All pairs of a gated sum at once, by Fourier inversion of its sum's law, with an error bound.

Under the tilted law ν the sum s is a sum of independent whole numbers, 0 … N − 1, so that for any
function h of s, with ω_m = 2π m/N,

    E_ν[h(s) c_i c_j] = (1/N) Σ_m ĥ(m) ψ(m) V_i(m) V_j(m),    ĥ(m) = Σ_s h(s) e^{−i ω_m s},

ψ = ∏ F_l the characteristic function, F_l = stay + low e^{i ω n} + high e^{i ω (n+1)}, and V_i F_i
the same with c_i on each part: unchanged 1, changed −1/(a_i − 1). All pairs are one matrix product
over the frequencies at which ψ is not tiny: of many attributes a few dozen.

Errors, u = 2^{−53}. |F_l|, |V_l F_l| ≤ 1, so with Π(m) the product of all |F_l| but the three
smallest a term is at most |ĥ(m)| Π(m), which bounds the omitted ones. Each F_l and V_l F_l is off
by a few u, which changes a term by at most a few u |ĥ(m)| Π(m) for each l, since V_i divides by the
F_i in ψ; products, quotients, logarithms and exponentials add a relative 64 u per attribute. A fast
transform has an error of at most 8 u log₂ N √N ‖h‖₂ as a vector, which by Cauchy and Schwarz
changes the sum by that times ‖Π‖₂. Dropped states of s contribute at most their mass times the
largest |h|.
"""

import math

import numpy as np

from deniable.laws.patterns import FloatArray, IntArray
from deniable.laws.votes.sums import UNIT, SumLaw

_LEFT_OUT = 1e-19
"""Frequencies whose terms are below this part of the largest are omitted, and counted: each is a
thousandth of one rounding."""

_AT_ONCE = 1 << 18
"""Complex numbers held at once while frequencies are looked through: 4 MB."""


def pair_expectations(
    sums: SumLaw, values: FloatArray, counts: IntArray
) -> tuple[FloatArray, float]:
    """Return E_ν[h(s) c_i c_j] of all pairs, (k, k), and an error bound of each.

    ``counts``: a_i, shape (k,).
    """
    steps, k = sums.steps, len(counts)
    n = int((steps.weights + (steps.high > 0)).sum()) + 1
    table = np.zeros(n)
    table[sums.support] = values
    transform = np.fft.rfft(table)
    lie = 1.0 / (counts[steps.order] - 1.0)
    terms, shares, rests, left_out, largest = [], [], [], 0.0, 0.0
    chunk = max(_AT_ONCE // k, 1)
    for first in range(0, len(transform), chunk):
        m = np.arange(first, min(first + chunk, len(transform)))
        # ω n modulo 2π: whole numbers are reduced before they are divided.
        turned = np.exp(2j * math.pi / n * (np.outer(m, steps.weights) % n))
        kept = turned * (steps.low + steps.high * np.exp(2j * math.pi / n * m)[:, None])
        factor = steps.stay + kept
        factor[np.abs(factor) < UNIT] = UNIT
        logs = np.log(np.abs(factor))
        three = min(3, k)
        rest = np.exp(logs.sum(axis=1) - np.partition(logs, three - 1, axis=1)[:, :three].sum(1))
        double = np.where((m == 0) | (2 * m == n), 1.0, 2.0)
        size = double * np.abs(transform[m]) * rest
        largest = max(largest, float(size.max()))
        live = size > _LEFT_OUT * largest
        left_out += float(size[~live].sum())
        law_of_sum = np.exp(np.log(factor[live]).sum(axis=1))
        terms.append(double[live] * transform[m[live]] * law_of_sum)
        shares.append((kept[live] - steps.stay * lie) / factor[live])
        rests.append(np.stack([size[live], rest[live]]))
    term, share, (size, rest) = np.concatenate(terms), np.concatenate(shares), np.hstack(rests)
    expectations = (share.T @ (term[:, None] * share)).real / n
    pairs = np.empty((k, k))
    pairs[np.ix_(steps.order, steps.order)] = expectations
    roundings = (64 * k + 64 + len(term)) * UNIT * float(size.sum())
    turning = 8.0 * UNIT * math.log2(n + 1) * math.sqrt(n) * float(np.linalg.norm(values))
    error = (left_out + roundings + 2.0 * turning * float(np.linalg.norm(rest))) / n
    return pairs, error + sums.dropped * float(values.max(initial=0.0))
