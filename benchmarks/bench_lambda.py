"""λ-randomization: exact inverses without a matrix, and what designing with λ costs.

    python benchmarks/bench_lambda.py [--largest CELLS] [--dense CELLS]

Part 1 estimates joint tables (estimate and standard error of every cell) under a product of λ
matrices: by the interaction transform up to --largest cells, by the Kronecker product inverted
numerically up to --dense cells, and by Property 2 of the paper as it is written, a sum of 2^k
Kronecker products. Part 2 chooses λ that keep given covariances, decomposes bistochastic matrices
into permutations, and accounts for the strength of many attributes.
"""

import argparse
from itertools import product

import numpy as np
from bench_estimate import counted
from measured import seconds
from numpy.typing import NDArray

from deniable.design.strength import product_law
from deniable.estimate.shares import Shares
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.laws import joint_of_attenuation, joint_of_epsilon
from deniable.laws.bistochastic import bistochastic_channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.strength import mechanism_strength
from deniable.randomness import SeededRandomness
from deniable.solvers.patterns import birkhoff, preserve


def lambdas(k: int) -> list[float]:
    """From 0.9 down to 0.6."""
    return [0.9 - 0.3 * i / max(k - 1, 1) for i in range(k)]


def mechanism_of(n_categories: tuple[int, ...]) -> Mechanism:
    k = len(n_categories)
    law = product_law(n_categories, lambdas(k))
    return Mechanism.of(law)


def kronecker_inverse(n_categories: tuple[int, ...]) -> NDArray[np.float64]:
    """The inverse of the whole matrix, by LAPACK."""
    matrix = np.ones((1, 1))
    for n, value in zip(n_categories, lambdas(len(n_categories)), strict=True):
        matrix = np.kron(matrix, value * np.eye(n) + (1 - value) / n)
    return np.linalg.inv(matrix)


def property_2_inverse(n_categories: tuple[int, ...]) -> NDArray[np.float64]:
    """The inverse as Property 2 writes it: 2^k terms, each of the size of the whole matrix."""
    cells = int(np.prod(n_categories))
    total = np.zeros((cells, cells))
    values = lambdas(len(n_categories))
    for chosen in product((False, True), repeat=len(n_categories)):
        term = np.ones((1, 1))
        for deviation, n, value in zip(chosen, n_categories, values, strict=True):
            uniform = np.full((n, n), 1 / n)
            term = np.kron(term, (np.eye(n) - uniform) / value if deviation else uniform)
        total += term
    return total


def dense_estimate(
    inverse: NDArray[np.float64], tabulation: Tabulation
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimates and standard errors (target table) from a dense inverse."""
    theta = tabulation.frequencies.ravel()
    values = inverse @ theta
    variance = (inverse**2 @ theta - values) / tabulation.total
    shape = tabulation.counts.shape
    return values.reshape(shape), np.sqrt(np.maximum(variance, 0)).reshape(shape)


def inverses(largest: int, dense: int) -> None:
    print("Joint table under λ-randomization: estimate and standard error of every cell, seconds")
    print(
        f"{'attributes':>20} {'cells':>12} {'transform':>10} {'dense':>9} {'Property 2':>11}"
        f" {'dense/transform':>16} {'difference':>11}"
    )
    shapes = [(5,) * 3, (4,) * 5, (4,) * 6, (10,) * 5, (10,) * 6, (10,) * 7]
    for shape in shapes:
        cells = int(np.prod(shape))
        if cells > largest:
            continue
        mechanism, tabulation = mechanism_of(shape), counted(shape)
        names = mechanism.schema.names

        def transform(
            tabulation: Tabulation = tabulation,
            mechanism: Mechanism = mechanism,
            names: tuple[str, ...] = names,
        ) -> object:
            return Shares(names).answer(Counts.of(mechanism, tabulation))[0]

        fast = seconds(transform, 5 if cells <= 10**5 else 2)
        line = f"{len(shape):>9} of {shape[0]:>2} each {cells:>12,} {fast:>10.4f}"
        if cells <= dense:
            slow = seconds(lambda s=shape, t=tabulation: dense_estimate(kronecker_inverse(s), t), 1)
            terms = seconds(
                lambda s=shape, t=tabulation: dense_estimate(property_2_inverse(s), t), 1
            )
            (ours,) = Shares(names).answer(Counts.of(mechanism, tabulation))
            theirs = dense_estimate(kronecker_inverse(shape), tabulation)
            difference = max(
                float(np.abs(ours.values - theirs[0]).max()),
                float(np.abs(ours.standard_error - theirs[1]).max()),
            )
            line += f" {slow:>9.3f} {terms:>11.3f} {slow / fast:>16.0f} {difference:>11.1e}"
        print(line)
        if cells == 10**7:
            law = joint_of_attenuation(shape, 0.5)
            joint = Mechanism.of(law, mechanism.schema)
            took = seconds(
                lambda m=joint, t=tabulation, n=names: Shares(n).answer(Counts.of(m, t))[0], 2
            )
            print(f"{'the same, one response on whole records':>42} {took:>1.4f}")


def designing() -> None:
    print()
    print("λ that keep covariances with the smallest ε: a chain and a star of demands")
    print(f"{'attributes':>12} {'demands':>8} {'seconds':>9} {'ε':>10} {'gap proved':>11}")
    for k in (3, 10, 100, 300):
        sizes = [2 + i % 9 for i in range(k)]
        chain = {(i, i + 1): 0.2 + 0.6 * ((i * 37) % 100) / 100 for i in range(k - 1)}
        star = {(0, i): 0.1 + 0.8 * ((i * 53) % 100) / 100 for i in range(1, k)}
        for demands in (chain, star):
            took = seconds(lambda s=sizes, d=demands: preserve.solve(s, d), 3)
            found = preserve.solve(sizes, demands)
            gap = found.epsilon - found.lower_bound
            print(f"{k:>12} {len(demands):>8} {took:>9.4f} {found.epsilon:>10.4f} {gap:>11.1e}")

    print()
    print("Bistochastic matrices: made exact in integers, then split into permutations")
    print(f"{'categories':>12} {'exact s':>9} {'split s':>9} {'permutations':>13} {'(r−1)²+1':>9}")
    for n in (5, 20, 40):
        matrix = np.random.default_rng(n).gamma(1.0, size=(n, n))
        for _ in range(1000):
            matrix /= matrix.sum(axis=1, keepdims=True)
            matrix /= matrix.sum(axis=0)
        law = bistochastic_channel(matrix)
        exact = seconds(lambda m=matrix: bistochastic_channel(m), 3)
        split = seconds(lambda w=law.weights: birkhoff.decompose(w), 1)
        count = len(birkhoff.decompose(law.weights).weights)
        print(f"{n:>12} {exact:>9.4f} {split:>9.3f} {count:>13} {(n - 1) ** 2 + 1:>9}")

    print()
    print("One response on whole records (method joint), five categories each")
    print(f"{'attributes':>12} {'design s':>9} {'strength s':>11} {'records a second':>17}")
    for k in (10, 100, 1000):
        sizes = (5,) * k
        design = seconds(lambda s=sizes: joint_of_epsilon(s, 8.0), 3)
        law = joint_of_epsilon(sizes, 8.0)
        mechanism = Mechanism.of(law)
        strength = seconds(lambda m=mechanism: mechanism_strength(m), 3)
        rows = 1_000_000 // k
        columns = [np.zeros(rows, dtype=np.uint8)] * k
        sampler, source = law.sampler(), SeededRandomness(0)
        drawing = seconds(lambda s=sampler, c=columns, b=source: s.randomize(c, b), 3)
        print(f"{k:>12} {design:>9.4f} {strength:>11.4f} {rows / drawing:>17,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=10**7, help="cells of the largest table")
    parser.add_argument("--dense", type=int, default=4096, help="cells of the largest dense one")
    options = parser.parse_args()
    inverses(options.largest, options.dense)
    designing()


if __name__ == "__main__":
    main()
