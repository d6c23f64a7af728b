"""Finding a law: seconds per method as the number of attributes grows.

    python benchmarks/bench_design.py

For the linear program and the heuristic, the times that Yamamoto and Shibuya print in Table I
(their machine, not ours) stand beside ours. "solver" is the numerics alone; "design" adds turning
the law into integers, accounting for it from these, and the lower bound.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from deniable.design.design import design
from deniable.schema import Schema
from deniable.solvers.patterns import heuristic, linear

PAPER = {("lp", 10): "54.9", ("heuristic", 1_000): "1.14", ("heuristic", 100_000): "13,478"}


def median(run: Callable[[], object], repeats: int) -> float:
    """Return the median time in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def instance(k: int, seed: int) -> tuple[list[int], list[float]]:
    """Return the paper's setting: five categories, levels uniform in [1, 8]."""
    return [5] * k, np.random.default_rng(seed).uniform(1, 8, k).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--largest", type=int, default=1_000_000)
    arguments = parser.parse_args()
    repeats = arguments.repeats
    print(
        f"{'method':>10} {'k':>9} {'solver':>10} {'design':>10} {'paper, theirs':>14}   seconds, "
        f"median of {repeats} instances"
    )
    for k in (2, 4, 6, 8, 10, 11, 12):
        problems = iter([instance(k, seed) for seed in range(2 * repeats)])
        alone = median(lambda problems=problems: linear.solve(*next(problems)), repeats)
        schema = Schema.anonymous([5] * k)
        whole = median(
            lambda problems=problems, schema=schema: design(
                schema, attribute_epsilon=next(problems)[1], method="lp"
            ),
            repeats,
        )
        line("lp", k, alone, whole)
    for k in (10, 100, 1_000, 10_000, 100_000, 1_000_000):
        if k > arguments.largest:
            continue
        problems = iter([instance(k, seed) for seed in range(2 * repeats)])
        alone = median(lambda problems=problems: heuristic.solve(*next(problems)), repeats)
        whole = None
        if k <= 1_000:
            schema = Schema.anonymous([5] * k)
            whole = median(
                lambda problems=problems, schema=schema: design(
                    schema,
                    attribute_epsilon=next(problems)[1],
                    method="heuristic",
                    allow_changed_levels=True,
                ),
                repeats,
            )
        line("heuristic", k, alone, whole)


def line(method: str, k: int, alone: float, whole: float | None) -> None:
    """Print one row."""
    whole_text = "" if whole is None else f"{whole:.4f}"
    print(f"{method:>10} {k:>9,} {alone:>10.5f} {whole_text:>10} {PAPER.get((method, k), ''):>14}")


if __name__ == "__main__":
    main()
