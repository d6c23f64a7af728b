"""The whole law of a gated sum or a blend by enumeration, written without the code under test."""

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deniable.laws.patterns import FloatArray
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.vote_law import VoteLaw


def patterns(k: int) -> NDArray[np.int64]:
    """All patterns, 1 = changed, in C order, shape (2^k, k)."""
    return np.array(list(itertools.product((0, 1), repeat=k)))


def uniform_law(n_categories: Sequence[int]) -> FloatArray:
    """μ of every pattern, shape (2^k,)."""
    a = np.asarray(n_categories, dtype=np.float64)
    return np.prod(np.where(patterns(len(a)) == 1, (a - 1) / a, 1 / a), axis=1)


def gate(law: GatedSum, s: float) -> float:
    """g(s), from the sentence that defines it."""
    x = min(max((s - law.start) / law.width, 0.0), 1.0)
    if law.gate == "vote":
        return 1 + math.expm1(law.height) * x
    return math.exp(law.height * x)


def density(law: VoteLaw) -> FloatArray:
    """f(S), not normalised, before retention, by enumerating the dither, shape (2^k,)."""
    if isinstance(law, VoteBlend):
        shares = law.alpha * np.exp([-0.5 * part.height for part in law.parts])
        parts = zip((shares / shares.sum()).tolist(), law.parts, strict=True)
        return np.asarray(sum(share * density(part) for share, part in parts))
    table = patterns(law.n_attributes)
    assert isinstance(law, GatedSum)
    found = []
    for row in table:
        masses = {0: 1.0}
        for i in np.flatnonzero(row == 0):
            after: dict[int, float] = {}
            for s, mass in masses.items():
                low = s + int(law.weights[i])
                after[low] = after.get(low, 0.0) + mass * (1 - law.dither[i])
                after[low + 1] = after.get(low + 1, 0.0) + mass * law.dither[i]
            masses = after
        found.append(sum(mass * gate(law, s) for s, mass in masses.items()))
    return np.array(found)


def pattern_law(law: VoteLaw) -> FloatArray:
    """q(S) with retention, by mixing along every axis, shape (2^k,)."""
    q = uniform_law(law.n_categories) * density(law)
    k = law.n_attributes
    q = (q / q.sum()).reshape((2,) * k)
    for i in range(k):
        keep, r = float(law.retention[i]), 1 / law.n_categories[i]
        total = q.sum(axis=i, keepdims=True)
        q = keep * q + (1 - keep) * np.concatenate([total * r, total * (1 - r)], axis=i)
    return q.reshape(-1)


def given_rest(n_categories: Sequence[int], q: FloatArray) -> FloatArray:
    """max over S without i of |ln f(S)/f(S ∪ i)|, shape (k,)."""
    k = len(n_categories)
    logs = np.log(q / uniform_law(n_categories)).reshape((2,) * k)
    return np.array([float(np.abs(np.diff(logs, axis=i)).max()) for i in range(k)])


def subset_level(n_categories: Sequence[int], q: FloatArray, subset: Sequence[int]) -> float:
    """ln max/min of the projected density."""
    k = len(n_categories)
    rest = tuple(i for i in range(k) if i not in subset)
    projected = q.reshape((2,) * k).sum(axis=rest)
    uniform = uniform_law(n_categories).reshape((2,) * k).sum(axis=rest)
    f = projected / uniform
    return float(np.log(f.max() / f.min()))


def attenuation(n_categories: Sequence[int], q: FloatArray, chosen: Sequence[int]) -> float:
    """φ(T) by its definition."""
    a = np.asarray(n_categories, dtype=np.float64)
    h = np.where(patterns(len(a)) == 1, -1 / (a - 1.0), 1.0)
    return float(q @ np.prod(h[:, list(chosen)], axis=1))


def random_sum(seed: int, largest: int = 6) -> GatedSum:
    """A gated sum with dither, ties, both gates, small and large heights, some retention."""
    random = np.random.default_rng(seed)
    k = int(random.integers(1, largest + 1))
    weights = random.integers(0, 40, k)
    weights[0] += 3
    dither = np.where(random.random(k) < 0.4, 0.0, random.random(k))
    top = float((weights + dither).sum())
    vote = seed % 2 == 1
    return GatedSum(
        tuple(random.integers(2, 9, k).tolist()),
        weights,
        dither,
        "vote" if vote else "ramp",
        float(random.uniform(0.0, 0.8) * top),
        1.0 if vote else float(random.uniform(0.1, 1.0) * top),
        float(random.choice([0.1, 1.0, 4.0, 30.0])),
        np.where(random.random(k) < 0.5, 1.0, random.uniform(0.5, 1.0, k)),
    )


def random_blend(seed: int, largest: int = 6) -> VoteBlend:
    """A blend of one to four gates, with dither, soft or sharp, and some retention: of every five
    two are of votes of one height."""
    random = np.random.default_rng(seed)
    k, n_votes = int(random.integers(1, largest + 1)), int(random.integers(1, 5))
    n_categories = tuple(random.integers(2, 9, k).tolist())
    height = float(random.choice([0.1, 1.0, 4.0, 30.0]))
    parts = []
    for number in range(n_votes):
        several = seed % 5 > 1
        gate: Literal["vote", "ramp"] = "ramp" if several and (seed + number) % 4 else "vote"
        if several:
            height /= 1.0 + 0.3 * number
        weights = random.integers(0, 40, k)
        weights[0] += 3
        dither = np.where(random.random(k) < 0.4, 0.0, random.random(k))
        top = float((weights + dither).sum())
        start, width = float(random.uniform(0.0, 0.8) * top), float(random.choice([1.0, 0.4 * top]))
        parts.append(
            GatedSum(n_categories, weights, dither, gate, start, width, height, np.ones(k))
        )
    return VoteBlend(
        tuple(parts),
        random.exponential(size=n_votes) * random.choice([1e-9, 1.0], n_votes),
        np.where(random.random(k) < 0.5, 1.0, random.uniform(0.5, 1.0, k)),
    )
