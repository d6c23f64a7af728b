"""Randomizing in memory: million cells a second on one thread, beside what a user would write.

    python benchmarks/bench_randomize.py

The comparison is the five-line numpy version with a generator that is not secure and a probability
that is a rounded float. The limit is the keystream: two bytes of AES-256-CTR for every cell.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.design.design import design
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.schema import Schema


def five_lines(columns: list[NDArray[Any]], keep: list[float], n: list[int]) -> list[NDArray[Any]]:
    """What a user would write: fast, but neither secure nor exact."""
    generator = np.random.default_rng()
    released = []
    for codes, p, a in zip(columns, keep, n, strict=True):
        other = (codes + generator.integers(1, a, len(codes), dtype=codes.dtype)) % a
        released.append(np.where(generator.random(len(codes)) < p, codes, other))
    return released


def best(run: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several times, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--attributes", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    k = arguments.attributes
    n = [(2, 5, 7, 16, 41)[i % 5] for i in range(k)]
    schema = Schema.anonymous(n)
    source = SystemRandomness()
    print(
        f"{k} attributes of {sorted(set(n))} categories; million cells a second, best of "
        f"{arguments.repeats}"
    )
    print(f"{'rows':>10} {'kronecker':>10} {'lp':>10} {'numpy':>10} {'ratio':>7} {'keystream':>10}")
    laws = {m: design(schema, epsilon=8, method=m) for m in ("kronecker", "lp")}
    for rows in arguments.rows:
        columns = [np.random.default_rng(1).integers(0, a, rows, dtype=np.uint8) for a in n]
        keep = list(laws["kronecker"].mechanism.keep_probability)
        runs: dict[str, Callable[[], object]] = {
            name: partial(Randomizer(plan.mechanism, source).randomize, columns)
            for name, plan in laws.items()
        }
        runs["numpy"] = partial(five_lines, columns, keep, n)
        runs["keystream"] = partial(source.bits, np.uint16, rows * k)
        speed = {name: rows * k / 1e6 / best(run, arguments.repeats) for name, run in runs.items()}
        ratio = speed["kronecker"] / speed["numpy"]
        print(
            f"{rows:>10,} {speed['kronecker']:>10.0f} {speed['lp']:>10.0f} {speed['numpy']:>10.0f} "
            f"{ratio:>7.1f} {speed['keystream']:>10.0f}"
        )


if __name__ == "__main__":
    main()
