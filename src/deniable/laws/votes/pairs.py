"""How well tables of two attributes come through: attenuations of pairs against their singles."""

import math

import numpy as np

from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.mixture import VoteMixture
from deniable.laws.votes.sums import FloatArray

MAX_ALL_PAIRS = 64
"""Attributes up to which every pair is looked at."""


def least_pair_ratio(law: GatedSum | VoteBlend | VoteMixture) -> float:
    """Return min over pairs of φ_ij/(φ_i φ_j), which own responses do not change; 1 if k = 1.

    A product law has 1 everywhere; 0 means that a table of two attributes cannot be estimated. All
    pairs up to `MAX_ALL_PAIRS` attributes; beyond, those among the attributes of the smallest,
    middle and largest weights: there the ratio is a smooth function of the two weights.
    """
    k = law.n_attributes
    if k == 1:
        return 1.0
    moments = law.moments()
    single = moments.gain / (1.0 - law.uniform_keep)
    if isinstance(law, VoteMixture):
        pairs = [(i, j) for i in range(k) for j in range(i)]
        ratios = [law.eigenvalues([i, j])[1, 1] / (single[i] * single[j]) for i, j in pairs]
        return float(min(ratios))
    if k <= MAX_ALL_PAIRS:
        return float(np.nanmin(law.pair_attenuations() / np.outer(single, single)))
    order = np.argsort(_size(law))
    chosen = [order[0], order[1], order[k // 2], order[k // 2 + 1], order[-2], order[-1]]
    least = math.inf
    for at, i in enumerate(chosen):
        for j in chosen[at + 1 :]:
            pair = [int(i), int(j)]
            value = (
                law.attenuation(pair, moments.log_normalizer)
                if isinstance(law, GatedSum)
                else float(law.eigenvalues(pair)[1, 1])
            )
            least = min(least, value / float(single[i] * single[j]))
    return least


def _size(law: GatedSum | VoteBlend) -> FloatArray:
    """Return what every attribute weighs, shape (k,)."""
    if isinstance(law, GatedSum):
        return law.weights + law.dither
    return np.asarray(law.shares @ np.array([_size(part) for part in law.parts]))
