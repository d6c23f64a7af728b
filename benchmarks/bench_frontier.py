"""The privacy–accuracy frontier of one attribute: seconds, gaps, and how far methods are from it.

    python benchmarks/bench_frontier.py [--levels 10] [--generations 20000] [--starts 400]

Ten categories from a normal distribution (equal-width bins over ±3 standard deviations), worst
posterior 0.75, as in section VI of Huang and Du. For each level of privacy: the exact bound with
its certificate, the mechanism that attains it, Warner's matrix, and the best square matrix of 20
starts beside the best of many. Then the bound for 4 to 41 categories, and the evolutionary search.
"""

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from deniable.errors import InputError
from deniable.frontier.folder import write
from deniable.frontier.methods import METHODS, SEARCH
from deniable.frontier.priors import from_distribution
from deniable.frontier.tracing import Request, trace
from deniable.proofs.rows import average_limits, local_limits, verify
from deniable.solvers.matrices import frontier, response, schemes, search, square
from deniable.solvers.matrices.search import hypervolume, outer_hypervolume

N_CATEGORIES = 10
DELTA = 0.75
REFERENCE = 100.0


def normal_prior(n: int) -> np.ndarray:
    """Shares of n bins of equal width over ±3 standard deviations."""
    edges = np.linspace(-3.0, 3.0, n + 1) / math.sqrt(2.0)
    shares = np.diff([math.erf(edge) for edge in edges])
    return np.asarray(shares / shares.sum())


def levels_of(prior: np.ndarray, count: int) -> np.ndarray:
    """Privacy levels from what δ gives anyway to nearly all there is."""
    return np.linspace(1.0 - DELTA, 0.98 * (1.0 - prior.max()), count)


def frontier_part(prior: np.ndarray, count: int, n_starts: int) -> None:
    print(
        f"{'privacy':>8} {'N·MSE':>9} {'gap':>8} {'outputs':>7} {'bound s':>8} {'check s':>8} "
        f"{'warner':>8} {'square':>8} {'best':>8} {'square s':>8}   ratios to the bound"
    )
    bound_times, square_times, losses = [], [], []
    for level in levels_of(prior, count):
        limits = average_limits(prior, float(level), DELTA)
        start = time.perf_counter()
        point = frontier.solve(limits)
        bound_times.append(time.perf_counter() - start)
        start = time.perf_counter()
        bound = verify(point.certificate) / len(prior)
        check = time.perf_counter() - start
        try:
            truthful = schemes.warner_at(prior, float(level), DELTA)
            warner = float(response.record_mse(schemes.warner(len(prior), truthful), prior)) / bound
        except InputError:
            warner = math.nan
        start = time.perf_counter()
        design = square.solve(limits, np.random.default_rng(1))
        square_times.append(time.perf_counter() - start)
        many = square.solve(limits, np.random.default_rng(2), n_starts=n_starts)
        best = min(design.record_mse, many.record_mse)
        losses.append(design.record_mse / best)
        print(
            f"{level:8.3f} {point.record_mse:9.4f} {point.gap:8.1e} {len(point.matrix):7d} "
            f"{bound_times[-1]:8.3f} {check:8.3f} {warner:8.3f} {design.ratio(bound):8.3f} "
            f"{best / bound:8.3f} {square_times[-1]:8.3f}"
        )
    print(
        f"bound: median {statistics.median(bound_times):.3f} s a point (target 0.2); square: "
        f"median {statistics.median(square_times):.2f} s (target 1), median "
        f"{100 * (statistics.median(losses) - 1):.2f} % above the best of {n_starts + 20} starts "
        "(target 2 %)"
    )


def search_part(prior: np.ndarray, generations: int) -> None:
    options = search.Options(max_generations=generations)
    start = time.perf_counter()
    result = search.search(prior, np.random.default_rng(1), most_posterior=DELTA, options=options)
    seconds = time.perf_counter() - start
    front = result.front
    levels = np.linspace(0.0, 0.999 * (1.0 - prior.max()), 60)
    bounds = np.array(
        [
            frontier.solve(average_limits(prior, float(level), DELTA)).certificate.record_mse
            for level in levels
        ]
    )
    outer = outer_hypervolume(levels, bounds, 1.0 - float(prior.max()), REFERENCE)
    covered = hypervolume(front.privacy, front.record_mse, REFERENCE)
    print(
        f"search: {generations} generations at population {options.population_size} in "
        f"{seconds:.1f} s (target 60 s for 20000); {len(front)} matrices, privacy "
        f"{front.privacy.min():.3f} to {front.privacy.max():.3f}, at least "
        f"{100 * covered / outer:.1f} % of the hypervolume that any mechanism can cover"
    )


def whole_part(prior: np.ndarray) -> None:
    methods = tuple(name for name in METHODS if name != SEARCH)
    start = time.perf_counter()
    found = trace(
        Request(
            from_distribution(f"normal,{len(prior)}"), None, most_posterior=DELTA, methods=methods
        )
    )
    traced = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "frontier", found, overwrite=False)
    print(
        f"40 points, all methods but the search, {len(found.rows)} rows: {traced:.1f} s (target "
        f"60), and {time.perf_counter() - start - traced:.1f} s to write table, plot and proofs"
    )
    near = None
    start = time.perf_counter()
    for level in levels_of(prior, 40)[::-1]:
        near = frontier.solve(average_limits(prior, float(level), DELTA), near)
    print(f"of that the bound alone: {(time.perf_counter() - start) / 40:.3f} s a point")


def size_part() -> None:
    for n in (4, 8, 12, 16, 20, 41):
        prior = normal_prior(n)
        for name, limits in (
            ("average", average_limits(prior, 0.5 * (1.0 - prior.max()))),
            ("δ = 0.75", average_limits(prior, 0.5 * (1.0 - prior.max()), DELTA)),
            ("ε = 1", local_limits(prior, 1.0)),
        ):
            start = time.perf_counter()
            point = frontier.solve(limits)
            seconds = time.perf_counter() - start
            print(f"n = {n:2d}  {name:9} {seconds:7.2f} s  gap {point.gap:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--levels", type=int, default=10)
    parser.add_argument("--generations", type=int, default=20_000)
    parser.add_argument("--starts", type=int, default=400)
    arguments = parser.parse_args()
    prior = normal_prior(N_CATEGORIES)
    with threadpool_limits(1):  # as the command does: many small systems
        frontier_part(prior, arguments.levels, arguments.starts)
        whole_part(prior)
        size_part()
        search_part(prior, arguments.generations)


if __name__ == "__main__":
    main()
