"""Randomizing in memory: million cells a second on one thread, beside what a user would write.

    python benchmarks/bench_randomize.py

First independent responses (kronecker) and a table of patterns (lp) beside the five-line numpy
version, with a generator that is not secure and a probability that is a rounded float, and beside
the keystream, the limit: two bytes of AES-256-CTR for every cell. Then the default law beside
independent responses, in alternating pairs: how many times as long a cell takes. Attributes are of
2, 5, 7, 16 and 41 categories in turn, or all alike with three.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measured import Measured, cpu_seconds, seconds
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


MIXED = (2, 5, 7, 16, 41)
UNEQUAL = (44, 3, 5, 2, 2, 41, 2, 3, 2, 2, 2, 9)
DEFAULT = [
    # attributes, rows at a time, pairs
    (12, 65_536, 15),
    (13, 65_536, 15),
    (16, 65_536, 15),
    (24, 65_536, 15),
    (100, 65_536, 7),
    (1000, 65_536, 5),
    (1000, 4_096, 7),
]


def default_law(measured: Measured) -> None:
    """Print how many times as long a cell takes under the default law as under the product."""
    print(f"\n{'k':>5} {'attributes':>10} {'rows':>7} {'law':>13} {'product':>8} {'default':>8}"
          f" {'ratio':>6}   million cells a CPU second; ratio: median of pairs")  # fmt: skip
    source = SystemRandomness()
    for k, rows, pairs in DEFAULT:
        kinds = [("different", MIXED), ("alike", (3,))]
        kinds += [("floor 0.9", MIXED)] if k in (16, 24) else []
        for attributes, sizes in [*kinds, ("total 2", UNEQUAL)] if k == 24 else kinds:
            n = [sizes[i % len(sizes)] for i in range(k)]
            columns = [np.random.default_rng(1).integers(0, a, rows, dtype=np.uint8) for a in n]
            different = np.linspace(0.2, 0.5, k) if k > 100 else np.full(k, 4 / k)
            levels = np.full(k, 0.3) if attributes == "alike" else different
            request: dict[str, Any] = {"attribute_epsilon": levels.tolist()}
            if attributes == "floor 0.9":  # which is kept by many ramps together
                request = {"attribute_epsilon": np.linspace(1, 10, k).tolist()}
            if attributes == "total 2":
                request = {"epsilon": 2}
            runs = []
            for method in ("kronecker", "balanced"):
                floor = 0.9 if (method, attributes) == ("balanced", "floor 0.9") else None
                plan = design(Schema.anonymous(n), **request, method=method, pair_floor=floor)
                run = partial(Randomizer(plan.mechanism, source).randomize, columns)
                run()  # the first builds what later ones look up
                runs.append(run)
            law = plan.mechanism.blocks[0].law.family
            took = [[cpu_seconds(run) for run in runs] for _ in range(pairs)]
            ratio = statistics.median(b / a for a, b in took)
            product, default = (rows * k / 1e6 / min(times) for times in zip(*took, strict=True))
            print(
                f"{k:>5,} {attributes:>10} {rows:>7,} {law:>13} {product:>8.0f} {default:>8.0f} "
                f"{ratio:>6.2f}",
                flush=True,
            )
            measured.add(
                "the default law against independent responses",
                attributes=k,
                kind=attributes,
                rows=rows,
                law=law,
                product_Mcells_s=product,
                default_Mcells_s=default,
                ratio=ratio,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    measured = Measured(parser)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--attributes", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    k = arguments.attributes
    n = [MIXED[i % 5] for i in range(k)]
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
        speed = {
            name: rows * k / 1e6 / seconds(run, arguments.repeats) for name, run in runs.items()
        }
        ratio = speed["kronecker"] / speed["numpy"]
        print(
            f"{rows:>10,} {speed['kronecker']:>10.0f} {speed['lp']:>10.0f} {speed['numpy']:>10.0f} "
            f"{ratio:>7.1f} {speed['keystream']:>10.0f}"
        )
        measured.add(
            "draws in memory",
            rows=rows,
            **{f"{name}_Mcells_s": value for name, value in speed.items()},
            ratio=ratio,
        )
    default_law(measured)
    measured.write(arguments)


if __name__ == "__main__":
    main()
