"""The optimum, the balanced law and their draws: seconds and gaps as the attributes grow.

    python benchmarks/bench_optimal.py
    python benchmarks/bench_optimal.py --hard                # far from ordinary; exit 1 on a miss
    python benchmarks/bench_optimal.py --hard --only tables  # one row of it

Everything is included: search, landing on the levels, account of the law as drawn, certificate.
The gap is what is proved: ε as drawn, rounded up, less the lower bound, rounded down. Category
counts are uniform in 2 … 9 and levels uniform in the range, a different instance for every repeat.
"""

import argparse
import math
import statistics
import sys
import time

import numpy as np
from hard import ORDINARY, ROWS, print_rows
from hard import ordinary_instance as instance
from measured import Measured

from deniable.randomness import SystemRandomness
from deniable.solvers.patterns import balanced, linear, optimal

BALANCED = [(10, (0.2, 2.0)), (60, (0.3, 1.0)), (200, (0.3, 0.8)), (1000, (0.13, 0.26))]
DRAWS = [(20, (0.3, 1.5), 200_000), (100, (0.2, 1.0), 131_072), (1000, (0.13, 0.26), 65_536)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--hard", action="store_true", help="designs far from ordinary ones")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=ROWS, help="rows of --hard")
    parser.add_argument("--seeds", type=int, default=6, help="draws of everything in these two")
    measured = Measured(parser)
    arguments = parser.parse_args()
    if arguments.hard:
        misses = print_rows(arguments.only, range(arguments.seeds), measured)
        measured.write(arguments)
        sys.exit(1 if misses else 0)
    repeats = arguments.repeats
    print(
        f"{'optimal k':>10} {'levels':>12} {'ε':>9} {'gap':>9} {'target':>8} {'s':>7} {'most':>5}"
    )
    previous: tuple[int, float] | None = None
    for k, levels, target, most in [*ORDINARY, (1000, (1.0, 5.0), math.inf, 10.0)]:
        seconds, gaps, epsilons = [], [], []
        for seed in range(repeats):
            counts, asked = instance(k, levels, seed)
            start = time.perf_counter()
            solution = optimal.solve(counts, asked)
            seconds.append(time.perf_counter() - start)
            gaps.append(solution.gap)
            epsilons.append(solution.epsilon)
        took = statistics.median(seconds)
        measured.add(
            "the optimum with its proof",
            attributes=k,
            levels=f"{levels[0]:g} to {levels[1]:g}",
            gap=statistics.median(gaps),
            s=took,
        )
        growth = ""
        if previous and k > previous[0]:
            growth = f"  k^{math.log(took / previous[1]) / math.log(k / previous[0]):.1f}"
        previous = (k, took)
        share = f"  {max(gaps) / epsilons[int(np.argmax(gaps))]:.0e} of ε" if k == 1000 else ""
        print(
            f"{k:>10,} {levels[0]:>5g}…{levels[1]:<6g} {statistics.median(epsilons):>9.3f} "
            f"{statistics.median(gaps):>9.1e} {target:>8.0e} {took:>7.2f} {most:>5g}{growth}{share}"
        )
    start = time.perf_counter()
    alike = optimal.solve([5] * 10_000, [0.0669] * 10_000)
    took = time.perf_counter() - start
    print(f"{'10,000':>10} {'identical':>12} {alike.epsilon:>9.3f} {alike.gap:>9.1e} {took:>17.2f}")

    print(f"\n{'balanced k':>10} {'levels':>12} {'ε':>9} {'above optimum':>14} {'s':>7}")
    for k, levels in BALANCED:
        seconds, costs, epsilons = [], [], []
        for seed in range(repeats):
            counts, asked = instance(k, levels, seed)
            start = time.perf_counter()
            capped = balanced.solve(counts, asked, [2 * level for level in asked], 0.5)
            seconds.append(time.perf_counter() - start)
            costs.append(capped.cost / capped.optimum.epsilon)
            epsilons.append(capped.epsilon)
        print(
            f"{k:>10,} {levels[0]:>5g}…{levels[1]:<6g} {statistics.median(epsilons):>9.3f} "
            f"{statistics.median(costs):>14.2%} {statistics.median(seconds):>7.2f}"
        )
    worst = 0.0
    for seed in range(3 * repeats):
        counts, asked = instance(4 + seed % 5, (0.3, 1.5), seed)
        caps = [2 * level for level in asked]
        exact = linear.solve(counts, asked, given_rest_cap=caps).epsilon
        worst = max(worst, balanced.solve(counts, asked, caps, None).epsilon / exact - 1)
    print(f"worst excess over the capped linear program, k = 4 … 8, no floor: {worst:.2%}")

    print(f"\n{'draws k':>10} {'ε':>9} {'records/s':>10}")
    for k, levels, count in DRAWS:
        solution = optimal.solve(*instance(k, levels, 0))
        sampler = solution.parts[0].law.sampler()
        true = [np.zeros(count, dtype=np.uint8)] * k
        source = SystemRandomness()
        start = time.perf_counter()
        sampler.randomize(true, source)
        took = time.perf_counter() - start
        print(f"{k:>10,} {solution.epsilon:>9.3f} {count / took:>10,.0f}")
        measured.add("draws from a vote", attributes=k, records_s=count / took)
    measured.write(arguments)


if __name__ == "__main__":
    main()
