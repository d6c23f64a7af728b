"""Proof that no law of one score, or of any pattern, has much smaller errors than a given one.

Let s and p be the mean variances of shares and of pairs of a law, for one row under uniform shares
(`deniable.solvers.patterns.least_error`), and s₀ and p₀ those of the given law. Every density f
with max f ≤ e^ε min f, the caps on ε given the rest as numbers, the largest levels and attenuations
above 0 has

    (1 − θ) s/s₀ + θ p/p₀ ≥ Σ_j 3 (w_j λ_j²/4)^⅓ − t.

w_j are the coefficients of 1/φ_j², of attributes and pairs; λ_j ≥ 0 any numbers; each term is the
minimum of w_j/φ² + λ_j φ. What remains, Σ λ_j φ_j = h·f, is at most t: for any μ ≥ 0 it is at most
g·f with g = h + Σ μ (e^cap at y − at x) over pairs of outputs x, y under one cap, plus the same for
largest levels, and

    (g − t m)·f ≤ min f · (e^ε Σ (g − t m)₊ − Σ (g − t m)₋) ≤ 0

for t large enough, m the uniform measure. g and t are compared in whole numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.laws import ScoreTable
from deniable.laws.patterns import FloatArray
from deniable.proofs.scores import Scores

_UP = 1 + 2.0**-40
"""Factor by which a computed number that is off by some thousand units in the last place is surely
above the exact one."""

_BITS = 80
"""Multipliers are rounded to this many bits below the largest; e^ε and e^cap to as many."""

_MOST_EXPONENT = 700.0
"""Nats below which e^x is a double."""


@dataclass(frozen=True)
class Request:
    """Limits and weights that a law was sought for, per attribute, shape (k,).

    ``caps``: on ε given the rest in nats, infinite for none; ``at_most``: largest own levels.
    """

    n_categories: tuple[int, ...]
    epsilon: float
    theta: float
    importance: tuple[float, ...]
    caps: tuple[float, ...]
    at_most: tuple[float, ...]

    @classmethod
    def of(
        cls,
        n_categories: tuple[int, ...],
        epsilon: float,
        theta: float,
        importance: Sequence[float],
        caps: Sequence[float | None],
        at_most: Sequence[float],
    ) -> "Request":
        """Return a request; a cap of None is infinite."""
        limits = tuple(math.inf if cap is None else cap for cap in caps)
        return cls(n_categories, epsilon, theta, tuple(importance), limits, tuple(at_most))


@dataclass(frozen=True)
class Multipliers:
    """λ of the kinds and of pairs of kinds, μ of caps, and multipliers of the largest levels.

    ``caps``: kind, whether the changed output is the likelier one, score of the unchanged output,
    multiplier. Kinds are those of `kinds`; pairs are those of `pairs`.
    """

    single: tuple[float, ...]
    double: tuple[float, ...]
    levels: tuple[float, ...]
    caps: tuple[tuple[int, bool, int, float], ...]


@dataclass(frozen=True, eq=False)
class Kinds:
    """Attributes with equal categories and cost, with coefficients of 1/φ² of all in a kind.

    ``share`` and ``own``: in the mean variances of shares and of pairs, shape (m,); ``double``: of
    pairs of kinds in that of pairs, shape (pairs,).
    """

    scores: Scores
    place: tuple[int, ...]
    pairs: list[tuple[int, int]]
    share: FloatArray
    own: FloatArray
    double: FloatArray

    def weights(self, theta: float, shares: float, pairs: float) -> tuple[FloatArray, FloatArray]:
        """Return w of the kinds and of the pairs of kinds."""
        first, second = (1 - theta) / shares, theta / pairs if theta else 0.0
        return first * self.share + second * self.own, second * self.double


@dataclass(frozen=True)
class Accuracy:
    """How near a law is to the least error, with its proof.

    No law within the same ε, caps and largest levels, with attenuations above 0, has
    (1 − ``theta``) s/s₀ + ``theta`` p/p₀ below ``at_least``: no pattern law if ``all_patterns``,
    else no law of one score with these costs. ``importance`` and ``at_most`` (infinite for none)
    have the shape (k,).
    """

    theta: float
    importance: tuple[float, ...]
    at_most: tuple[float, ...]
    multipliers: Multipliers
    at_least: float
    all_patterns: bool


def proved(
    law: ScoreTable,
    epsilon: float,
    caps: Sequence[float | None],
    theta: float,
    importance: Sequence[float],
    at_most: Sequence[float],
    multipliers: Multipliers,
) -> Accuracy:
    """Return what multipliers prove of a law; ``caps`` are in nats, None for none, shape (k,)."""
    request = Request.of(law.n_categories, epsilon, theta, importance, caps, at_most)
    of = kinds(law.n_categories, law.costs, importance)
    at_least = least_errors(request, law.costs, *own_errors(law, of), multipliers)
    return Accuracy(
        theta,
        request.importance,
        request.at_most,
        multipliers,
        min(at_least, 1.0),
        of.scores.all_patterns,
    )


def own_errors(law: ScoreTable, of: Kinds) -> tuple[float, float]:
    """Return the mean variances of shares and of pairs of a law, for one row."""
    members = [[i for i, t in enumerate(of.place) if t == kind] for kind in range(len(of.share))]
    single = law.attenuations()[[places[0] for places in members]]
    shares = float((of.share / single**2).sum())
    if not of.pairs:
        return shares, 1.0
    places = [(members[s][0], members[t][-1]) for s, t in of.pairs]
    double = law.pair_eigenvalues()[tuple(np.array(places).T)]
    return shares, float((of.own / single**2).sum() + (of.double / double**2).sum())


def kinds(n_categories: Sequence[int], costs: Sequence[int], importance: Sequence[float]) -> Kinds:
    """Return the kinds of attributes of a law of one score."""
    keys = list(zip(n_categories, costs, strict=True))
    order = sorted(set(keys), key=lambda key: (key[1], key[0]))
    place = tuple(order.index(key) for key in keys)
    members = np.bincount(place).tolist()
    scores = Scores(tuple(a for a, _ in order), tuple(members), tuple(c for _, c in order))
    a, counted = np.array(n_categories, dtype=np.float64), np.array(importance, dtype=np.float64)
    v = (a - 1) / a**2
    heavy, square, inverse = counted * v, (counted * v) ** 2, counted / a**2
    m = len(order)
    share = np.bincount(place, heavy, minlength=m) / counted.sum()
    sums = (counted.sum() ** 2 - counted @ counted) / 2 if len(a) > 1 else 1.0
    own = np.bincount(place, heavy * (inverse.sum() - inverse), minlength=m) / sums
    sums_heavy = np.bincount(place, heavy, minlength=m)
    sums_square = np.bincount(place, square, minlength=m)
    pairs = [(s, t) for s in range(m) for t in range(s + 1) if s != t or members[s] > 1]
    double = [
        sums_heavy[s] * sums_heavy[t] if s != t else (sums_heavy[s] ** 2 - sums_square[s]) / 2
        for s, t in pairs
    ]
    return Kinds(scores, place, pairs, share, own, np.array(double) / sums)


def least_errors(
    request: Request,
    costs: Sequence[int],
    shares: float,
    pairs: float,
    multipliers: Multipliers,
) -> float:
    """Return a number that (1 − θ) s/s₀ + θ p/p₀ of no law of the scores is below.

    ``shares`` and ``pairs``: s₀ and p₀. Scores that tell all patterns apart prove it of all pattern
    laws. Any multipliers ≥ 0 prove something; useless ones a number below 0.
    """
    of = kinds(request.n_categories, costs, request.importance)
    scores, m = of.scores, len(of.scores.costs)
    single, double = of.weights(request.theta, shares, pairs)
    largest = max(*multipliers.single, *multipliers.double, *multipliers.levels, 1e-300)
    largest = max(largest, *(mu for *_, mu in multipliers.caps), 1e-300)
    unit = _BITS - math.frexp(largest)[1]

    def whole(value: float) -> int:
        top, bottom = value.as_integer_ratio()
        return (top << unit) // bottom if unit >= 0 else top // (bottom << -unit)

    rows = [whole(value) for value in multipliers.single]
    pair_rows = [whole(value) for value in multipliers.double]
    # Everything below is times 2^(unit + _BITS) ∏ a_i.
    total = sum(
        (number * row for number, row in zip(rows, scores.single, strict=True)),
        start=np.zeros(len(scores.values), dtype=object),
    )
    used = [place for place, number in enumerate(pair_rows) if number]
    for place, row in zip(used, scores.double([of.pairs[j] for j in used]), strict=True):
        total = total + pair_rows[place] * row
    total = total * (1 << _BITS)
    for t, value in enumerate(multipliers.levels):
        most = max(request.at_most[i] for i in range(len(of.place)) if of.place[i] == t)
        if whole(value) and most < _MOST_EXPONENT:
            lift = math.expm1(most)
            attenuation = _ratio(lift / (lift + scores.n_categories[t]))
            total = total + whole(value) * (
                attenuation * scores.measure - (1 << _BITS) * scores.single[t]
            )
    caps = [
        max(request.caps[i] for i in range(len(of.place)) if of.place[i] == t) for t in range(m)
    ]
    # A cap above the exponent of doubles is left out: the bound stays one.
    ratios = [_ratio(math.exp(cap)) if cap < _MOST_EXPONENT else None for cap in caps]
    for t, other, score, value in multipliers.caps:
        ratio, mu = ratios[t], whole(value) * scores.scale
        x, y = scores.place[score], scores.place[score + scores.costs[t]]
        if ratio is None or x < 0 or y < 0:
            continue
        over, under = (y, x) if other else (x, y)
        total[over] -= mu << _BITS
        total[under] += mu * ratio
    most = _largest(total, scores, request.epsilon, unit)
    used_single = np.array([math.ldexp(number, -unit) for number in rows])
    used_double = np.array([math.ldexp(number, -unit) for number in pair_rows])
    terms = np.concatenate([single, double]) * np.concatenate([used_single, used_double]) ** 2
    return math.fsum(3 * np.cbrt(terms / 4)) / _UP - most


def _ratio(value: float) -> int:
    """Return a whole number at least value · 2^_BITS, of a number that was computed."""
    top, bottom = (value * _UP).as_integer_ratio()
    return -(-(top << _BITS) // bottom)


def _largest(total: "np.ndarray", scores: Scores, epsilon: float, unit: int) -> float:
    """Return an upper bound of g·f for densities f within e^ε."""
    scale = scores.scale << _BITS
    scaled = np.array([value / scale for value in total]) * math.ldexp(1.0, -unit)
    measure = np.array([value / scores.scale for value in scores.measure])
    ratio = _ratio(math.exp(epsilon))
    low, high = float(scaled.sum()), float((scaled / np.maximum(measure, 1e-300)).max())
    for _ in range(200):
        middle = 0.5 * (low + high)
        over = scaled - middle * measure
        rest = math.exp(epsilon) * over[over > 0].sum() + over[over < 0].sum()
        low, high = (middle, high) if rest > 0 else (low, middle)
    step = 1e-13 * max(1.0, abs(high))
    while True:
        top, bottom = high.as_integer_ratio()
        # (g − t m) times 2^(unit + _BITS) ∏ a_i · bottom
        line = (top << (unit + _BITS)) if unit + _BITS >= 0 else 0
        over = total * bottom - line * scores.measure
        above = sum(value for value in over if value > 0)
        below = -sum(value for value in over if value < 0)
        if ratio * above <= below << _BITS:
            return high
        high, step = high + step, 2 * step
