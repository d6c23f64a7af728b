"""Published forms: variances, distance from the limit, seconds, and rows drawn a second.

    python benchmarks/bench_forms.py

Variances are those of an unbiased cell at the uniform truth, averaged over cells and attributes (or
pairs), for the 45,222 complete rows of the Adult census table: nine attributes. Identical
attributes: how many times fewer rows than the optimum for one law. CPU seconds.
"""

import math
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from deniable import Schema, design
from deniable.mechanism.prediction import expected_variance
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.solvers.patterns import forms
from deniable.solvers.patterns.least_variance import least_share_variance

ADULT = (7, 16, 7, 14, 6, 5, 2, 41, 2)
ROWS = 45_222
TOTALS = (0.5, 1.0, 2.0, 4.0, 8.0)
PAIRS = (0.0, 0.02, 0.2, 0.5)
IDENTICAL = [(5, 10, 2.0), (5, 50, 4.0), (20, 50, 4.0), (20, 10, 8.0), (2, 10, 2.0)]


def shown(shares: float | None, pairs: float | None) -> str:
    """Return both variances for all rows."""
    return f"{(shares or np.nan) / ROWS:.2e} / " + (
        "none" if pairs is None or np.isinf(pairs) else f"{pairs / ROWS:.1e}"
    )


def adult() -> None:
    print(f"{'ε':>4} {'limit':>9} " + " ".join(f"{f'θ = {p}':>25}" for p in PAIRS))
    for epsilon in TOTALS:
        cells = []
        for pairs in PAIRS:
            start = time.process_time()
            found = forms.solve(ADULT, epsilon, pairs=pairs)
            seconds = time.process_time() - start
            cells.append(f"{shown(found.shares, found.pairs)} {seconds:4.1f} s")
        limit = least_share_variance(ADULT, epsilon) / ROWS
        print(f"{epsilon:4} {limit:9.2e} " + " ".join(f"{cell:>25}" for cell in cells))


def others() -> None:
    print("\nother methods, shares / pairs")
    schema = Schema.anonymous(ADULT)
    for epsilon in TOTALS[1:]:
        row = []
        for method in ("optimal", "balanced", "kronecker"):
            expected = expected_variance(design(schema, epsilon=epsilon, method=method).mechanism)
            row.append(f"{method} {shown(expected.shares, expected.pairs)}")
        print(f"{epsilon:4} " + "   ".join(row))


def told_by_response(a: int, epsilon: float) -> float:
    """What k-ary response tells of a share: φ²."""
    return (math.expm1(epsilon) / (math.exp(epsilon) + a - 1)) ** 2


def told_by_subset(a: int, epsilon: float) -> float:
    """What the best subset selection tells (Ye and Barg 2018)."""
    odds = math.expm1(epsilon)
    told = []
    for r in (size / a for size in range(1, a)):
        p = (1 + odds) * r / (1 + odds * r)
        told.append((p - r) ** 2 / (r * (1 - r) * (a - 1)))
    return max(told)


def told_by_bits(a: int, p: float, q: float) -> float:
    """What answers tell that support the true category with probability p and others with q."""
    support = p / a + q * (1 - 1 / a)
    return (a - 1) / a**2 * (p - q) ** 2 / (support * (1 - support))


def told_by_unary(a: int, epsilon: float) -> float:
    """Optimized unary encoding (Wang and others 2017)."""
    return told_by_bits(a, 0.5, 1 / (math.exp(epsilon) + 1))


def told_by_hashing(a: int, epsilon: float) -> float:
    """Optimized local hashing (the same)."""
    g = round(math.exp(epsilon)) + 1
    return told_by_bits(a, math.exp(epsilon) / (math.exp(epsilon) + g - 1), 1 / g)


Told = Callable[[int, float], float]


def peers() -> None:
    """Exact variances at the uniform truth of what others offer, at one ε of the record."""
    k = len(ADULT)

    def shares(told: Told, epsilon: float, rows: float) -> float:
        return float(np.mean([(a - 1) / a**2 / told(a, epsilon) / rows for a in ADULT])) / ROWS

    def better(a: int, epsilon: float) -> float:
        return max(told_by_response(a, epsilon), told_by_unary(a, epsilon))

    print("\nothers, shares: exact variances, Adult, at one ε of the record")
    ways: dict[str, Callable[[float], float]] = {
        "SPL, k-ary response": lambda e: shares(told_by_response, e / k, 1),
        "RS+FD, k-ary response": lambda e: shares(told_by_response, e, 1 / k**2),
        "SMP, k-ary response": lambda e: shares(told_by_response, e, 1 / k),
        "SMP, OUE": lambda e: shares(told_by_unary, e, 1 / k),
        "SMP, better of both": lambda e: shares(better, e, 1 / k),
        "SMP, local hashing": lambda e: shares(told_by_hashing, e, 1 / k),
        "SMP, subset selection": lambda e: shares(told_by_subset, e, 1 / k),
        "best m of k, ε/m each": lambda e: min(
            shares(told_by_subset, e / m, m / k) for m in range(1, k + 1)
        ),
        "forms, θ = 0": lambda e: forms.solve(ADULT, e, pairs=0.0).shares / ROWS,
        "limit": lambda e: least_share_variance(ADULT, e) / ROWS,
    }
    for name, way in ways.items():
        print(f"{name:>24} " + " ".join(f"{way(epsilon):9.2e}" for epsilon in TOTALS))
    print("\nothers, shares / pairs: one random pair of attributes each (CALM)")
    pairs = list(combinations(range(k), 2))
    for name, told in (("k-ary response", told_by_response), ("subset", told_by_subset)):
        cells = []
        for epsilon in TOTALS:
            both = {(i, j): told(ADULT[i] * ADULT[j], epsilon) / len(pairs) for i, j in pairs}
            one = [sum(value for pair, value in both.items() if i in pair) for i in range(k)]
            alone = np.mean([(a - 1) / a**2 / one[i] for i, a in enumerate(ADULT)])
            together = [
                (
                    (ADULT[i] - 1) / one[i]
                    + (ADULT[j] - 1) / one[j]
                    + (ADULT[i] - 1) * (ADULT[j] - 1) / value
                )
                / (ADULT[i] * ADULT[j]) ** 2
                for (i, j), value in both.items()
            ]
            cells.append(shown(float(alone), float(np.mean(together))))
        print(f"{name:>16} " + "   ".join(cells))


def different() -> None:
    print("\n60 attributes of 2 to 20 categories: rows saved on shares / pairs over balanced")
    sizes = tuple(int(n) for n in np.random.default_rng(60).integers(2, 21, 60))
    for epsilon in TOTALS[2:]:
        balanced = expected_variance(design(Schema.anonymous(sizes), epsilon=epsilon).mechanism)
        for pairs in (0.2, 0.5):
            start = time.process_time()
            found = forms.solve(sizes, epsilon, pairs=pairs)
            seconds = time.process_time() - start
            saved = (balanced.shares or np.nan) / found.shares, (balanced.pairs or 0) / found.pairs
            print(f"ε = {epsilon:g}, θ = {pairs}: {saved[0]:.2f} / {saved[1]:.2f}, {seconds:.1f} s")


def capped() -> None:
    print("\nAdult, cap on what is learned by who knows the rest, θ = 0.2, shares / pairs")
    schema = Schema.anonymous(ADULT)
    for epsilon in TOTALS[2:]:
        balanced = design(schema, epsilon=epsilon)
        level = max(balanced.mechanism.epsilon_given_rest)
        expected = expected_variance(balanced.mechanism)
        print(f"{epsilon:4} balanced {level:.3g}: {shown(expected.shares, expected.pairs)}")
        for name, cap in (
            ("the same", level),
            *((f"{f}e", f * epsilon) for f in (0.75, 0.5, 0.35)),
        ):
            start = time.process_time()
            found = forms.solve(ADULT, epsilon, caps=[cap] * len(ADULT))
            seconds = time.process_time() - start
            print(f"     {name:>8} {shown(found.shares, found.pairs)} {seconds:.1f} s", flush=True)


def identical() -> None:
    print("\nidentical attributes, θ = 0: rows saved on shares against one optimal law")
    for a, k, epsilon in IDENTICAL:
        start = time.process_time()
        found = forms.solve((a,) * k, epsilon, pairs=0.0)
        seconds = time.process_time() - start
        one = design(Schema.anonymous((a,) * k), epsilon=epsilon, method="optimal").mechanism
        phi = (a * one.keep_probability[0] - 1) / (a - 1)
        saved = (a - 1) / a**2 / phi**2 / found.shares
        print(f"a = {a:2}, k = {k:2}, ε = {epsilon:g}: {saved:.2f} times, {seconds:.1f} s")


def drawing() -> None:
    print("\nrows a second, Adult, ε = 2")
    schema = Schema.anonymous(ADULT)
    random = np.random.default_rng(1)
    rows = [random.integers(0, n, 1 << 18).astype(np.uint8) for n in ADULT]
    for name, mechanism in (
        ("forms", design(schema, epsilon=2, method="forms").mechanism),
        ("balanced", design(schema, epsilon=2).mechanism),
    ):
        randomizer = Randomizer(mechanism, SystemRandomness())
        randomizer.randomize([column[:1000] for column in rows])
        start = time.process_time()
        randomizer.randomize(rows)
        print(f"{name:>9} {(1 << 18) / (time.process_time() - start):.3g}")


if __name__ == "__main__":
    adult()
    others()
    peers()
    capped()
    different()
    identical()
    drawing()
