"""Finding a law: seconds per method as the number of attributes grows.

    python benchmarks/bench_design.py
    python benchmarks/bench_design.py --random 300   # designs of every kind; exit 1 on a miss
    python benchmarks/bench_design.py --looser 20    # how often a looser request costs more

For the linear program and the heuristic, the times that Yamamoto and Shibuya print in Table I
(their machine, not ours) stand beside ours. "solver" is the numerics alone; "design" adds turning
the law into integers, accounting for it from these, and the lower bound.
"""

import argparse
import itertools
import math
import os
import resource
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
from hard import CLASSES, SLOWEST
from measured import Measured

from deniable.design.design import design
from deniable.errors import InputError
from deniable.schema import Schema
from deniable.solvers.patterns import heuristic, linear

PAPER = {("lp", 10): "54.9", ("heuristic", 1_000): "1.14", ("heuristic", 100_000): "13,478"}

LOOSER_CAPS, LOOSER_FLOORS = ("1.1x", "1.25x", "1.5x", "2x", "3x", "none"), (1.0, 0.9, 0.5, 0.0)
LOOSER_TOTALS, WITH_TOTALS, MORE = (1.0, 1.01, 4.0), ("1.25x", "2x", "none"), 1e-3
"""What is asked of a table, from the strictest on; the caps beside which totals are; and nats that
a looser request may cost more."""


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
    parser.add_argument("--random", type=int, metavar="N", help="so many designs of every kind")
    parser.add_argument(
        "--looser", type=int, metavar="N", help="every cap, floor and total of so many tables"
    )
    parser.add_argument("--first", type=int, default=0, help="seed of the first design or table")
    measured = Measured(parser)
    arguments = parser.parse_args()
    if arguments.random:
        raise SystemExit(random_designs(range(arguments.first, arguments.first + arguments.random)))
    if arguments.looser:
        raise SystemExit(looser(range(arguments.first, arguments.first + arguments.looser)))
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
        line(measured, "lp", k, alone, whole)
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
        line(measured, "heuristic", k, alone, whole)
    measured.write(arguments)


def random_request(seed: int) -> tuple[list[int], dict[str, object]]:
    """Return category counts and a request: any class of levels, or a total, 2 to 60 attributes."""
    random = np.random.default_rng(seed)
    k = int(random.integers(2, 61))
    counts = np.rint(np.exp(random.uniform(math.log(2), math.log(50), k))).astype(int)
    categories = random.choice(["2", "5", "2 to 50", "one of 10,000"])
    if categories in ("2", "5"):
        counts[:] = int(categories)
    elif categories == "one of 10,000":
        counts[0] = 10_000
    kind = random.choice([*CLASSES, "total"])
    request: dict[str, object] = {"method": str(random.choice(["balanced", "balanced", "optimal"]))}
    if kind == "total":
        request["epsilon"] = float(random.choice([0.5, 1, 2, 4, 8]))
    elif kind == "equal":
        request["attribute_epsilon"] = [float(random.choice([0.01, 0.3, 1, 4]))] * k
    else:
        request["attribute_epsilon"] = CLASSES[kind](random, k).tolist()
    if request["method"] == "balanced":
        caps = ["1.25x", "2x", "2x", "3x", "none", float(random.uniform(1, 6))]
        request["given_rest"] = caps[int(random.integers(len(caps)))]
        request["pair_floor"] = float(random.choice([0.0, 0.5, 0.5, 0.9, 1.0]))
    return counts.tolist(), request


def random_designs(seeds: range) -> int:
    """Make random designs, each in a process of its own; return 1 if one is slow or breaks.

    A request may be refused in a sentence; whatever else is raised, a warning too, is a miss.
    """
    misses = 0
    for seed in seeds:
        counts, request = random_request(seed)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            limit = int(3 * SLOWEST)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            os.write(writing, random_design(counts, request).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answers:
            answer = answers.read() or f"stopped after {3 * SLOWEST:g} s  MISS"
        os.waitpid(child, 0)
        misses += answer.endswith("MISS")
        asked = ", ".join(
            f"{name} {value if not isinstance(value, list) else f'{max(value):.3g} at most'}"
            for name, value in request.items()
        )
        print(f"{seed:>4} k={len(counts)} of up to {max(counts)}, {asked}: {answer}", flush=True)
    print(f"{misses} of {len(seeds)} missed")
    return min(misses, 1)


def random_design(counts: list[int], request: dict[str, object]) -> str:
    """Return a line about one design."""
    warnings.simplefilter("error")
    start = time.process_time()
    try:
        made = design(Schema.anonymous(counts), **request)  # type: ignore[arg-type]
        known = "unknown" if made.gap is None else f"{made.gap:.2g}"
        answer = f"{made.epsilon:.5g}, above the bound {known}; {' '.join(made.notes)}"
    except InputError as error:
        answer = f"refused: {error}"
    except Exception as error:  # whatever it is, it is what is looked for
        return f"{type(error).__name__}: {error}  MISS"
    seconds = time.process_time() - start
    return f"{seconds:.2f} s, {answer}{'  MISS' if seconds > SLOWEST else ''}"


def looser(seeds: range) -> int:
    """Make designs of random tables of 7 to 30 attributes under every cap, floor and total, and
    compare each with every stricter one; return 1 if one costs 0.001 nats more, or its levels add
    up to as much less.

    That none is so is no theorem (docs/proofs/clipped.md, Looser requests).
    """
    compared, faults, worst = 0, 0, 0.0
    for seed in seeds:
        random = np.random.default_rng(seed)
        k = int(random.integers(7, 31))
        counts = random.integers(2, 51, k)
        counts[0] = random.choice([counts[0], 10_000])
        levels = CLASSES[random.choice(["0.3 to 3", "large", "spread"])](random, k).tolist()
        schema, costs, start = Schema.anonymous(counts.tolist()), {}, time.process_time()
        for cap, floor in itertools.product(LOOSER_CAPS, LOOSER_FLOORS):
            asked = {"given_rest": cap, "pair_floor": floor}
            at = (LOOSER_CAPS.index(cap), LOOSER_FLOORS.index(floor))
            costs[0, *at] = design(schema, attribute_epsilon=levels, **asked).epsilon
            if cap in WITH_TOTALS:
                for number, total in enumerate(LOOSER_TOTALS, 1):
                    made = design(schema, epsilon=total, **asked)
                    costs[number, *at] = -math.fsum(made.mechanism.attribute_epsilon)
        pairs = [
            (strict, loose)
            for strict, loose in itertools.permutations(costs, 2)
            if bool(strict[0]) == bool(loose[0])
            and all(one <= other for one, other in zip(strict, loose, strict=True))
        ]
        more = {pair: costs[pair[1]] - costs[pair[0]] for pair in pairs}
        bad = [pair for pair, by in more.items() if by > MORE]
        most = max(more, key=more.__getitem__)
        compared, faults, worst = compared + len(pairs), faults + len(bad), max(worst, more[most])
        named = [
            f"{('levels', *LOOSER_TOTALS)[total]} {LOOSER_CAPS[cap]} floor {LOOSER_FLOORS[floor]:g}"
            for total, cap, floor in most
        ]
        print(
            f"{seed:>4} k={k} of up to {counts.max()}, levels of {math.fsum(levels):.4g} together, "
            f"{time.process_time() - start:.0f} s: {len(bad)} of {len(pairs)} cost more"
            + (f", {named[1]} {more[most]:.3g} nats more than {named[0]}" if bad else ""),
            flush=True,
        )
    print(f"{faults} of {compared} cost more than a stricter request, by up to {worst:.3g} nats")
    return min(faults, 1)


def line(measured: Measured, method: str, k: int, alone: float, whole: float | None) -> None:
    """Print one row."""
    measured.add("finding a law", method=method, attributes=k, solver_s=alone, design_s=whole)
    whole_text = "" if whole is None else f"{whole:.4f}"
    print(f"{method:>10} {k:>9,} {alone:>10.5f} {whole_text:>10} {PAPER.get((method, k), ''):>14}")


if __name__ == "__main__":
    main()
