"""Published forms: variances, distance from the limit, seconds, and rows drawn a second.

    python benchmarks/bench_forms.py

Variances are those of an unbiased cell at the uniform truth, averaged over cells and attributes (or
pairs), for the 45,222 complete rows of the Adult census table: nine attributes. Identical
attributes: how many times fewer rows than the optimum for one law. CPU seconds.
"""

import time

import numpy as np

from deniable import Schema, design
from deniable.mechanism.prediction import expected_variance
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.solvers.patterns import forms
from deniable.solvers.patterns.least_variance import least_share_variance
from deniable_studies.beyond.baselines import SHARES, one_pair, pair_variance, share_variance
from deniable_studies.beyond.offers import OFFERS, draw_offer

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
    names = [*(f"θ = {p}" for p in PAIRS), "θ = 0, no sets"]
    schema = Schema.anonymous(ADULT)
    print(f"{'ε':>4} {'limit':>9} " + " ".join(f"{name:>25}" for name in names))
    for epsilon in TOTALS:
        cells = []
        for pairs in PAIRS:
            start = time.process_time()
            plan = design(schema, epsilon=epsilon, method="forms", pairs=pairs)
            seconds = time.process_time() - start
            found = expected_variance(plan.mechanism)
            cells.append(f"{shown(found.shares, found.pairs)} {seconds:4.1f} s")
        start = time.process_time()
        single = forms.solve(ADULT, epsilon, pairs=0.0)
        seconds = time.process_time() - start
        cells.append(f"{shown(single.shares, single.pairs)} {seconds:4.1f} s")
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


def peers() -> None:
    """Exact variances at the uniform truth of what others offer, at one ε of the record."""
    print("\nothers, shares: exact variances, Adult, at one ε of the record")
    rows = {
        name: [share_variance(ADULT, offer(ADULT, e)) / ROWS for e in TOTALS]
        for name, offer in SHARES.items()
    }
    rows["forms, θ = 0"] = [forms.solve(ADULT, e, pairs=0.0).shares / ROWS for e in TOTALS]
    rows["limit"] = [least_share_variance(ADULT, e) / ROWS for e in TOTALS]
    for name, values in rows.items():
        print(f"{name:>16} " + " ".join(f"{value:9.2e}" for value in values))
    print("\nothers, pairs: one random pair of attributes each (CALM)")
    for oracle in ("response", "subset"):
        cells = [pair_variance(ADULT, one_pair(ADULT, e, oracle)) / ROWS for e in TOTALS]
        print(f"{oracle:>16} " + " ".join(f"{value:9.2e}" for value in cells))


def drawn(n_releases: int = 12) -> None:
    """Mean squared errors of made-up tables of as many rows, each offer drawn again and again,
    beside the exact variance for a population."""
    print(f"\nothers, drawn {n_releases} times from uniform records: squared error / variance")
    random = np.random.default_rng(9)
    for epsilon in TOTALS[1:]:
        for name in OFFERS:
            errors = []
            for _ in range(n_releases):
                people = [random.integers(0, n, ROWS) for n in ADULT]
                shares, _ = draw_offer(name, people, ADULT, epsilon, random)
                errors.append(
                    np.mean([np.mean((s - 1 / n) ** 2) for s, n in zip(shares, ADULT, strict=True)])
                )
            expected = share_variance(ADULT, SHARES[name](ADULT, epsilon)) / ROWS
            spread = np.std(errors, ddof=1) / n_releases**0.5
            print(f"{epsilon:4} {name:>16} {np.mean(errors):.2e} ± {spread:.0e} / {expected:.2e}")


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


def drawing(rounds: int = 5) -> None:
    """Rows drawn a second, in turn: the median of several rounds."""
    schema = Schema.anonymous(ADULT)
    random = np.random.default_rng(1)
    rows = [random.integers(0, n, 1 << 19).astype(np.uint8) for n in ADULT]
    for epsilon in TOTALS[1:]:
        plans = {"balanced": design(schema, epsilon=epsilon).mechanism}
        for pairs in (0.0, 0.2):
            plan = design(schema, epsilon=epsilon, method="forms", pairs=pairs)
            plans[f"forms, θ = {pairs}"] = plan.mechanism
        drawn = {name: Randomizer(plan, SystemRandomness()) for name, plan in plans.items()}
        seconds: dict[str, list[float]] = {name: [] for name in drawn}
        for randomizer in drawn.values():
            randomizer.randomize([column[:1000] for column in rows])
        for _ in range(rounds):
            for name, randomizer in drawn.items():
                start = time.process_time()
                randomizer.randomize(rows)
                seconds[name].append(time.process_time() - start)
        speeds = {name: len(rows[0]) / np.median(each) for name, each in seconds.items()}
        print(
            f"rows a second, Adult, ε = {epsilon:g}: "
            + "; ".join(
                f"{name} {speed:.3g} ({speed / speeds['balanced']:.2f})"
                for name, speed in speeds.items()
            )
        )


if __name__ == "__main__":
    adult()
    others()
    peers()
    drawn()
    capped()
    different()
    identical()
    drawing()
