"""Published forms: variances, distance from the limit, seconds, and rows drawn a second.

    python benchmarks/bench_forms.py

Variances are those of an unbiased cell at the uniform truth, averaged over cells and attributes (or
pairs), for the 45,222 complete rows of the Adult census table: nine attributes. Identical
attributes: how many times fewer rows than the optimum for one law. CPU seconds.
"""

import time

import numpy as np

from deniable import Schema, design
from deniable.laws import PublishedForms
from deniable.mechanism.mechanism import Block, Mechanism
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
    found = forms.solve(ADULT, 2.0)
    law = PublishedForms.from_probabilities(
        ADULT,
        [form.share for form in found.forms],
        [(form.asked, form.pattern_probability) for form in found.forms],
    )
    published = Mechanism(schema, (Block(tuple(range(len(ADULT))), law),))
    for name, mechanism in (
        ("forms", published),
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
    capped()
    identical()
    drawing()
