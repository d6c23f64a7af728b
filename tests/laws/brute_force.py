"""The slow, obvious definitions, in exact fractions, that every law is held against.

Nothing here calls the methods under test: a law is read through its integers only. A channel is the
whole matrix over joint records, ``channel[x][y] = Pr[y | x]`` with x and y tuples of codes. An
adversary is what they see of y and which pairs of inputs they have to tell apart.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import inf, isinf, lcm, nextafter

from deniable.laws import (
    Identity,
    Law,
    MatrixChannel,
    PatternTable,
    ProductLaw,
    ScoreTable,
    SingleChangeMixture,
)
from deniable.laws.votes.vote_law import VoteLaw
from deniable.mechanism.mechanism import Mechanism
from unit.laws.votes import whole_law

Record = tuple[int, ...]
Pattern = tuple[int, ...]
PatternProbabilities = dict[Pattern, Fraction]
Channel = dict[Record, dict[Record, Fraction]]
Scaled = dict[Record, dict[Record, int]]


def records(sizes: Sequence[int]) -> Iterator[Record]:
    """Every record of a schema with so many categories per attribute."""
    return product(*(range(n) for n in sizes))


def patterns(k: int) -> Iterator[Pattern]:
    """Every pattern of k attributes: 1 where the attribute is changed; C order."""
    return product((0, 1), repeat=k)


def subsets(k: int) -> Iterator[tuple[int, ...]]:
    """Every set of positions, the empty one first."""
    for size in range(k + 1):
        yield from combinations(range(k), size)


def pattern_probabilities(law: Law) -> PatternProbabilities:
    """q(S) of a pattern law, from its integers and the sentence that describes the family."""
    k = len(law.n_categories)
    found = dict.fromkeys(patterns(k), Fraction(0))
    if isinstance(law, Identity):
        found[(0,) * k] = Fraction(1)
    elif isinstance(law, ProductLaw):
        for pattern in found:
            chance = Fraction(1)
            for changed, weight in zip(pattern, law.keep_weights, strict=True):
                keep = Fraction(weight, 2**law.bits)
                chance *= 1 - keep if changed else keep
            found[pattern] = chance
    elif isinstance(law, PatternTable):
        for pattern, weight in zip(found, law.weights, strict=True):
            found[pattern] = Fraction(weight, 2**law.bits)
    elif isinstance(law, ScoreTable):
        for pattern in found:
            score = sum(cost for cost, changed in zip(law.costs, pattern, strict=True) if changed)
            chance = Fraction(law.densities[score])
            for changed, n in zip(pattern, law.n_categories, strict=True):
                chance *= n - 1 if changed else 1
            found[pattern] = chance
        total = sum(found.values())
        found = {pattern: chance / total for pattern, chance in found.items()}
    elif isinstance(law, SingleChangeMixture):
        uniform = Fraction(law.uniform_weight, 2**law.bits)
        for pattern in found:
            chance = uniform
            for changed, n in zip(pattern, law.n_categories, strict=True):
                chance *= Fraction(n - 1, n) if changed else Fraction(1, n)
            found[pattern] = chance
        found[(0,) * k] += Fraction(law.unchanged_weight, 2**law.bits)
        for j, weight in enumerate(law.change_weights):
            single = tuple(int(i == j) for i in range(k))
            found[single] += Fraction(weight, 2**law.bits)
    elif isinstance(law, VoteLaw):
        return _vote_probabilities(law)
    else:
        raise TypeError(type(law))
    return found


def _vote_probabilities(law: VoteLaw) -> PatternProbabilities:
    """q(S) of a law of votes: f(S) from its definition in floating point, the rest in fractions."""
    sizes = law.n_categories
    found = {}
    for pattern, density in zip(patterns(len(sizes)), whole_law.density(law), strict=True):
        chance = Fraction(float(density))
        for changed, n in zip(pattern, sizes, strict=True):
            chance *= Fraction(n - 1, n) if changed else Fraction(1, n)
        found[pattern] = chance
    total = sum(found.values())
    found = {pattern: chance / total for pattern, chance in found.items()}
    for i, n in enumerate(sizes):
        kept = Fraction(float(law.retention[i]))
        mixed = {}
        for pattern, chance in found.items():
            both = chance + found[(*pattern[:i], 1 - pattern[i], *pattern[i + 1 :])]
            share = Fraction(n - 1, n) if pattern[i] else Fraction(1, n)
            mixed[pattern] = kept * chance + (1 - kept) * share * both
        found = mixed
    return found


def channel_of_patterns(q: PatternProbabilities, sizes: Sequence[int]) -> Channel:
    """Keep the attributes outside S, replace the others by a uniform draw among the rest."""
    each = {}
    for pattern, chance in q.items():
        outputs = 1
        for changed, n in zip(pattern, sizes, strict=True):
            outputs *= n - 1 if changed else 1
        each[pattern] = chance / outputs
    return {
        x: {y: each[tuple(int(a != b) for a, b in zip(x, y, strict=True))] for y in records(sizes)}
        for x in records(sizes)
    }


def channel_of_law(law: Law) -> Channel:
    """The channel of one block."""
    if isinstance(law, MatrixChannel):
        return {
            (x,): {(y,): Fraction(row[x], 2**law.bits) for y, row in enumerate(law.weights)}
            for x in range(law.n_categories[0])
        }
    return channel_of_patterns(pattern_probabilities(law), law.n_categories)


def channel_of_mechanism(mechanism: Mechanism) -> Channel:
    """The product of the blocks' channels, in the schema's order of attributes."""
    parts = [(block.attributes, channel_of_law(block.law)) for block in mechanism.blocks]
    outputs = list(records(_output_counts(mechanism)))
    whole: Channel = {}
    for x in records(mechanism.schema.n_categories):
        whole[x] = {}
        for y in outputs:
            chance = Fraction(1)
            for positions, channel in parts:
                chance *= channel[tuple(x[i] for i in positions)][tuple(y[i] for i in positions)]
            whole[x][y] = chance
    return whole


def _output_counts(mechanism: Mechanism) -> list[int]:
    counts = [0] * len(mechanism.schema.attributes)
    for block in mechanism.blocks:
        for i, n in zip(block.attributes, block.law.n_categories, strict=True):
            counts[i] = len(block.law.weights) if isinstance(block.law, MatrixChannel) else n
    return counts


def scaled(channel: Channel) -> Scaled:
    """The channel times the least number that makes all of it whole.

    Its ratios are the channel's, and integers add and compare many times as fast as fractions.
    """
    common = lcm(*{chance.denominator for row in channel.values() for chance in row.values()})
    return {
        x: {y: chance.numerator * (common // chance.denominator) for y, chance in row.items()}
        for x, row in channel.items()
    }


def seen_through(channel: Channel | Scaled, columns: Sequence[int]) -> Channel | Scaled:
    """The channel to someone who sees only these columns of the output."""
    outputs = next(iter(channel.values()))  # every row has the same, in the same order
    seen = [tuple(y[i] for i in columns) for y in outputs]
    result = {x: dict.fromkeys(seen, 0) for x in channel}
    for x, row in channel.items():
        for key, chance in zip(seen, row.values(), strict=True):
            result[x][key] += chance
    return result


def worst_ratio(channel: Channel | Scaled, told: Callable[[Record], Record]) -> Fraction | None:
    """max Pr[y|x]/Pr[y|x'] over all outputs y and inputs x, x' that agree on what is told.

    None if it is unbounded. The pairs of one output are looped over as the largest over the
    smallest probability among the inputs of which the same is told.
    """
    worst = Fraction(1)
    groups: dict[Record, list[dict[Record, Fraction | int]]] = {}
    for x, row in channel.items():
        groups.setdefault(told(x), []).append(row)
    for rows in groups.values():
        for y in rows[0]:
            chances = [row[y] for row in rows]
            high, low = max(chances), min(chances)
            if high == 0:
                continue
            if low == 0:
                return None
            if high * worst.denominator > low * worst.numerator:
                worst = Fraction(high, low)
    return worst


def record_ratio(
    channel: Channel | Scaled, columns: Sequence[int] | None = None, kept: Sequence[int] = ()
) -> Fraction | None:
    """For someone who sees these columns, whatever they know; neighbours agree on kept columns."""
    seen = channel if columns is None else seen_through(channel, columns)
    return worst_ratio(seen, lambda x: tuple(x[i] for i in kept))


def given_rest_ratio(channel: Channel | Scaled, i: int) -> Fraction | None:
    """For someone who sees the whole output and knows all the true values but attribute i's."""
    return worst_ratio(channel, lambda x: x[:i] + x[i + 1 :])


def keep_probability(channel: Channel, i: int) -> Fraction:
    """Probability that attribute i comes out as it went in, averaged over the inputs."""
    rows = [
        sum((chance for y, chance in row.items() if y[i] == x[i]), Fraction(0))
        for x, row in channel.items()
    ]
    return sum(rows, Fraction(0)) / len(rows)


def eigenvalue(q: PatternProbabilities, sizes: Sequence[int], members: Iterable[int]) -> Fraction:
    """φ(T) = Σ_S q(S) ∏_{i∈T} h_i(S), h_i = 1 if attribute i is kept, else −1/(a_i − 1)."""
    members = list(members)
    total = Fraction(0)
    for pattern, chance in q.items():
        for i in members:
            chance *= Fraction(-1, sizes[i] - 1) if pattern[i] else 1
        total += chance
    return total


def inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    """Gauss and Jordan, exactly.

    Raises:
        ZeroDivisionError: if the matrix is singular.
    """
    n = len(matrix)
    work = [[*row, *(Fraction(int(i == j)) for j in range(n))] for i, row in enumerate(matrix)]
    for column in range(n):
        pivot = next((r for r in range(column, n) if work[r][column] != 0), None)
        if pivot is None:
            raise ZeroDivisionError("singular")
        work[column], work[pivot] = work[pivot], work[column]
        lead = work[column][column]
        work[column] = [value / lead for value in work[column]]
        for r in range(n):
            if r != column and work[r][column] != 0:
                factor = work[r][column]
                work[r] = [a - factor * b for a, b in zip(work[r], work[column], strict=True)]
    return [row[n:] for row in work]


@lru_cache(maxsize=1024)
def true_logarithm(ratio: Fraction) -> Decimal:
    """ln of a fraction, right to a hundred significant digits.

    A fraction of b-bit integers that is not 1 differs from it by at least 2^-b, so b/3 decimals
    more than wanted are enough to leave that many after the subtraction.
    """
    bits = max(ratio.numerator.bit_length(), ratio.denominator.bit_length())
    precise = Context(prec=110 + bits // 3, Emax=10**9, Emin=-(10**9))
    return precise.subtract(
        precise.ln(Decimal(ratio.numerator)), precise.ln(Decimal(ratio.denominator))
    )


def is_rounded_up(epsilon: float, ratio: Fraction | None) -> bool:
    """Whether ε is not below ln(ratio) and at most one unit in the last place above it.

    The unit is taken up to a factor 1 + 1e-27: where the logarithm is that close under a float, the
    next float but one may be returned.
    """
    if ratio is None:
        return isinf(epsilon)
    if ratio == 1:
        return epsilon == 0
    true = true_logarithm(ratio)
    below = Decimal(nextafter(epsilon, -inf))
    return Decimal(epsilon) >= true and below < true * (1 + Decimal("1e-27"))
