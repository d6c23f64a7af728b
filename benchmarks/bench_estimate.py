"""Joint tables by the interaction transform against dense inversion, side by side.

    python benchmarks/bench_estimate.py [--largest CELLS] [--dense CELLS]

Part 1 estimates joint tables of growing size (estimate and standard errors of every cell) from a
pattern law that is no product law. Part 2 does the same with the dense channel, built, inverted and
applied by numpy (LAPACK), up to the largest size that is bearable, and prints the ratio of times
and the largest difference between the two.
"""

import argparse

import numpy as np
from measured import Measured, seconds
from numpy.typing import NDArray

from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import PatternTable
from deniable.mechanism.mechanism import Mechanism

RECORDS_PER_CELL = 10


def mechanism_of(n_categories: tuple[int, ...]) -> Mechanism:
    """One block with a weight for every pattern; most records keep most attributes."""
    k = len(n_categories)
    random = np.random.default_rng(0)
    law = random.dirichlet(np.ones(2**k)) * 0.3 + 1e-4
    law[0] += 0.7
    table = PatternTable.from_probabilities(n_categories, (law / law.sum()).reshape((2,) * k))
    return Mechanism.of(table)


def counted(n_categories: tuple[int, ...]) -> Tabulation:
    """Counts like those of a release; what they are does not change the work."""
    random = np.random.default_rng(1)
    return Tabulation.from_counts(random.poisson(RECORDS_PER_CELL, size=n_categories))


def dense_estimate(
    mechanism: Mechanism, tabulation: Tabulation
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimates and standard errors (target table) by the matrix over the joint table."""
    (block,) = mechanism.blocks
    sizes = mechanism.schema.n_categories
    k = len(sizes)
    assert isinstance(block.law, PatternTable)
    law = np.array([weight / 2**block.law.bits for weight in block.law.weights])
    others = np.ones(1)
    for n in sizes:
        others = np.multiply.outer(others, np.array([1.0, n - 1.0])).ravel()
    codes = np.indices(sizes).reshape(k, -1)
    pattern = np.zeros((codes.shape[1], codes.shape[1]), dtype=np.int64)
    for row in codes:
        pattern = 2 * pattern + (row[:, None] != row)
    matrix = (law / others)[pattern]
    inverse = np.linalg.inv(matrix)
    theta = tabulation.frequencies.ravel()
    values = inverse @ theta
    variance = (inverse**2 @ theta - values) / tabulation.total
    return values.reshape(sizes), np.sqrt(np.maximum(variance, 0)).reshape(sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=10**7, help="cells of the largest table")
    parser.add_argument("--dense", type=int, default=4096, help="cells of the largest dense one")
    measured = Measured(parser)
    options = parser.parse_args()

    print("Interaction transform: estimate and standard error of every cell")
    print(f"{'attributes':>24} {'cells':>12} {'seconds':>10} {'ns per cell':>12}")
    for k in range(2, 10):
        sizes = (10,) * k
        cells = 10**k
        if cells > options.largest:
            break
        mechanism, tabulation = mechanism_of(sizes), counted(sizes)
        names = mechanism.schema.names
        took = seconds(
            lambda m=mechanism, t=tabulation, n=names: Shares(n).answer(Counts.of(m, t))[0],
            5 if cells <= 10**5 else 2,
        )
        print(f"{k:>15} of 10 each {cells:>12,} {took:>10.4f} {took / cells * 1e9:>12.1f}")
        measured.add("joint tables with standard errors", cells=cells, s=took)

    print()
    print("Against the dense inverse, in one run")
    print(
        f"{'attributes':>24} {'cells':>8} {'dense s':>9} {'transform s':>12} {'ratio':>9}"
        f" {'largest difference':>19}"
    )
    for k in range(4, 8):
        sizes = (4,) * k
        cells = 4**k
        if cells > options.dense:
            break
        mechanism, tabulation = mechanism_of(sizes), counted(sizes)
        names = mechanism.schema.names
        dense = dense_estimate(mechanism, tabulation)
        (ours,) = Shares(names).answer(Counts.of(mechanism, tabulation))
        difference = max(
            float(np.abs(ours.values - dense[0]).max()),
            float(np.abs(ours.standard_error - dense[1]).max()),
        )
        slow = seconds(lambda m=mechanism, t=tabulation: dense_estimate(m, t), 1)
        fast = seconds(
            lambda m=mechanism, t=tabulation, n=names: Shares(n).answer(Counts.of(m, t))[0], 5
        )
        print(
            f"{k:>15} of  4 each {cells:>8,} {slow:>9.3f} {fast:>12.5f} {slow / fast:>9.0f}"
            f" {difference:>19.1e}"
        )
        measured.add(
            "against a dense inverse", cells=cells, dense_s=slow, s=fast, ratio=slow / fast
        )
    measured.write(options)


if __name__ == "__main__":
    main()
