"""Random laws of every family, small enough for brute force."""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.laws import (
    Identity,
    Law,
    MatrixChannel,
    PatternTable,
    ProductLaw,
    ScoreTable,
    SingleChangeMixture,
)
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum

MAX_RECORDS = 40


@st.composite
def sizes(draw: st.DrawFn, most: int = 4) -> tuple[int, ...]:
    """Category counts of one to ``most`` attributes, few enough records for brute force."""
    found: list[int] = []
    for _ in range(draw(st.integers(1, most))):
        room = MAX_RECORDS // prod(found)
        if room < 2:
            break
        found.append(draw(st.integers(2, min(6, room))))
    return tuple(draw(st.permutations(found)))


@st.composite
def compositions(draw: st.DrawFn, parts: int, total: int, least: int = 1) -> list[int]:
    """Integers not below ``least`` that add up to ``total``, of very different sizes."""
    shares = [draw(st.integers(0, 40)) for _ in range(parts)]
    room = total - parts * least
    scale = sum(1 << share for share in shares)
    weights = [least + room * (1 << share) // scale for share in shares]
    weights[draw(st.integers(0, parts - 1))] += total - sum(weights)
    return weights


@st.composite
def product_laws(draw: st.DrawFn, n: Sequence[int]) -> ProductLaw:
    bits = draw(st.sampled_from([3, 16, 64, 130]))
    weights = [draw(st.integers(1, (1 << bits) - 1)) for _ in n]
    return ProductLaw(tuple(n), bits, tuple(weights))


@st.composite
def pattern_tables(draw: st.DrawFn, n: Sequence[int]) -> PatternTable:
    bits = draw(st.sampled_from([6, 64, 192]))
    weights = draw(compositions(1 << len(n), 1 << bits))
    return PatternTable(tuple(n), bits, tuple(weights))


@st.composite
def score_tables(draw: st.DrawFn, n: Sequence[int]) -> ScoreTable:
    costs = [draw(st.sampled_from([1, 1, 2, 3, 7])) for _ in n]
    attained = {sum(chosen) for chosen in product(*((0, cost) for cost in costs))}
    width = draw(st.sampled_from([1, 8, 90]))
    densities = tuple(
        draw(st.integers(1, 1 << width)) if s in attained else 0 for s in range(sum(costs) + 1)
    )
    return ScoreTable(tuple(n), tuple(costs), densities)


@st.composite
def single_change_mixtures(draw: st.DrawFn, n: Sequence[int]) -> SingleChangeMixture:
    bits = draw(st.sampled_from([6, 64, 192]))
    total = 1 << bits
    uniform = draw(st.integers(1, total))
    rest = draw(compositions(len(n) + 1, total - uniform, least=0))
    return SingleChangeMixture(tuple(n), bits, uniform, rest[0], tuple(rest[1:]))


@st.composite
def retentions(draw: st.DrawFn, k: int) -> np.ndarray:
    """Probabilities of keeping what came out, most of them 1."""
    return np.array([draw(st.sampled_from([1.0, 1.0, 0.9, 0.3, 1 / 3])) for _ in range(k)])


@st.composite
def gated_sum_laws(draw: st.DrawFn, n: Sequence[int]) -> GatedSum:
    k = len(n)
    weights = np.array([draw(st.integers(0, 60)) for _ in n])
    weights[draw(st.integers(0, k - 1))] += 1
    dither = np.array([draw(st.sampled_from([0.0, 0.0, 0.5, 0.123, 0.999])) for _ in n])
    top = float(weights.sum())
    gate = draw(st.sampled_from(["vote", "ramp"]))
    start = draw(st.floats(0.0, 0.95, allow_subnormal=False)) * top
    width = draw(st.sampled_from([1.0, max(1.0, 0.25 * top), top, 3.0 * top]))
    height = draw(st.sampled_from([1e-3, 0.5, 2.0, 8.0, 40.0]))
    retention = draw(retentions(k))
    return GatedSum(tuple(n), weights, dither, gate, start, width, height, retention)


@st.composite
def blended_votes_laws(draw: st.DrawFn, n: Sequence[int]) -> VoteBlend:
    k, n_votes = len(n), draw(st.integers(1, 3))
    heights = st.sampled_from([1e-3, 0.5, 2.0, 8.0, 40.0])
    height, several = draw(heights), draw(st.booleans())
    parts = []
    for _ in range(n_votes):
        gate = draw(st.sampled_from(["vote", "ramp"])) if several else "vote"
        height = draw(heights) if several else height
        weights = np.array([draw(st.integers(0, 60)) for _ in n])
        weights[draw(st.integers(0, k - 1))] += 1
        dither = np.array([draw(st.sampled_from([0.0, 0.0, 0.5, 0.999])) for _ in n])
        start = draw(st.floats(0.0, 0.95, allow_subnormal=False)) * float(weights.sum())
        width = draw(st.sampled_from([1.0, 20.0]))
        parts.append(GatedSum(tuple(n), weights, dither, gate, start, width, height, np.ones(k)))
    shares = np.array([draw(st.sampled_from([1e-9, 0.5, 1.0])) for _ in range(n_votes)])
    return VoteBlend(tuple(parts), shares, draw(retentions(k)))


@st.composite
def matrix_channels(draw: st.DrawFn, n: int) -> MatrixChannel:
    """Square or tall, with or without zeros."""
    m = n + draw(st.integers(0, 3))
    bits = draw(st.sampled_from([5, 64, 150]))
    least = draw(st.sampled_from([0, 1]))
    columns = []
    for _ in range(n):
        shares = [draw(st.integers(0, 20)) for _ in range(m)]
        room = (1 << bits) - m * least
        weights = [least + room * share // max(1, sum(shares)) for share in shares]
        weights[draw(st.integers(0, m - 1))] += (1 << bits) - sum(weights)
        columns.append(weights)
    rows = tuple(zip(*columns, strict=True))
    try:
        return MatrixChannel((n,), bits, rows)
    except InputError:
        assume(False)
        raise


def bounded_laws(n: Sequence[int]) -> st.SearchStrategy[Law]:
    """Any law whose promises are bounds."""
    return st.one_of(gated_sum_laws(n), blended_votes_laws(n))


def pattern_laws(n: Sequence[int]) -> st.SearchStrategy[Law]:
    """Any law that draws patterns and is exact."""
    return st.one_of(
        product_laws(n),
        pattern_tables(n),
        score_tables(n),
        single_change_mixtures(n),
        st.just(Identity(tuple(n))),
    )


def laws(n: Sequence[int]) -> st.SearchStrategy[Law]:
    """Any law."""
    kinds: list[st.SearchStrategy[Law]] = [pattern_laws(n), bounded_laws(n)]
    if len(n) == 1:
        kinds.append(matrix_channels(n[0]))
    return st.one_of(kinds)


@st.composite
def monotone_tables(draw: st.DrawFn, n: Sequence[int]) -> PatternTable:
    """A pattern table whose density falls strictly with every further change."""
    k, bits = len(n), 192
    density: dict[tuple[int, ...], int] = {}
    for pattern in sorted(product((0, 1), repeat=k), key=lambda s: -sum(s)):
        above = [density[(*pattern[:i], 1, *pattern[i + 1 :])] for i in range(k) if not pattern[i]]
        density[pattern] = max(above, default=1000) + draw(st.integers(1, 5000))
    raw = {
        s: x * prod(size - 1 for size, changed in zip(n, s, strict=True) if changed)
        for s, x in density.items()
    }
    total = sum(raw.values())
    weights = [(raw[s] << bits) // total for s in product((0, 1), repeat=k)]
    # What the rounding leaves over goes to "nothing changed", which keeps the order.
    weights[0] += (1 << bits) - sum(weights)
    return PatternTable(tuple(n), bits, tuple(weights))
