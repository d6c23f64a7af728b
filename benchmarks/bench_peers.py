"""Randomizing a table: this package beside others that offer local differential privacy.

    pip install '.[peers]' && python benchmarks/bench_peers.py

Twelve attributes, k-ary response on each, the total divided evenly: the one thing that all of them
do, each as its documentation says, one value or one person after the other where it has nothing
else. What is drawn is the same law; whether the bits can be foreseen is not. A package that is not
installed, or does not run, is named and left out.
"""

import argparse
import statistics
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from measured import Measured, cpu_seconds
from numpy.typing import NDArray

from deniable.design.design import design
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness
from deniable.schema import Schema

N = (2, 5, 7, 16, 41, 2, 5, 7, 16, 41, 2, 5)
EPSILON = 12.0

Columns = list[NDArray[Any]]
Run = Callable[[Columns], object]


def multi_freq_ldpy() -> Run:
    from multi_freq_ldpy.mdim_freq_est.SPL_solution import SPL_GRR_Client

    def run(columns: Columns) -> object:
        rows = np.column_stack(columns).astype(np.int64)
        return [SPL_GRR_Client(row, list(N), len(N), EPSILON) for row in rows]

    return run


def pure_ldp() -> Run:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    clients = [DEClient(EPSILON / len(N), a, lambda code: code) for a in N]

    def run(columns: Columns) -> object:
        pairs = zip(clients, columns, strict=True)
        return [[client.privatise(code) for code in column.tolist()] for client, column in pairs]

    return run


def diffprivlib() -> Run:
    from diffprivlib.mechanisms import ExponentialCategorical

    # With every value as far from every other the exponential mechanism is k-ary response.
    clients = []
    for a in N:
        labels = [str(code) for code in range(a)]
        far = [[one, other, 1.0] for one in labels for other in labels if one < other]
        clients.append(ExponentialCategorical(epsilon=EPSILON / len(N), utility_list=far))

    def run(columns: Columns) -> object:
        pairs = zip(clients, columns, strict=True)
        return [[client.randomise(str(code)) for code in column] for client, column in pairs]

    return run


def opendp() -> Run:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    clients = []
    for a in N:
        keep = float(np.exp(EPSILON / len(N)) / (np.exp(EPSILON / len(N)) + a - 1))
        clients.append(dp.m.make_randomized_response(list(range(a)), keep))

    def run(columns: Columns) -> object:
        pairs = zip(clients, columns, strict=True)
        return [[client(code) for code in column.tolist()] for client, column in pairs]

    return run


PEERS = {
    "multi-freq-ldpy": multi_freq_ldpy,
    "pure-ldp": pure_ldp,
    "diffprivlib": diffprivlib,
    "opendp": opendp,
}


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000, help="that others randomize")
    parser.add_argument("--repeats", type=int, default=3)
    measured = Measured(parser)
    arguments = parser.parse_args()
    random = np.random.default_rng(1)

    def table(rows: int) -> Columns:
        return [random.integers(0, a, rows).astype(np.uint8) for a in N]

    few, many = table(arguments.rows), table(1_000_000)
    plan = design(Schema.anonymous(N), epsilon=EPSILON, method="kronecker")
    randomizer = Randomizer(plan.mechanism, SystemRandomness())
    randomizer.randomize(many)
    print(f"{'package':16} {'version':>8} {'cells a CPU s':>14} {'times as fast':>14}")
    for name, peer in PEERS.items():
        try:
            run, installed = peer(), version(name)
            run([column[:10] for column in few])  # what is compiled, is compiled now
        except (ImportError, PackageNotFoundError) as error:
            print(f"{name:16} left out: {error}", flush=True)
            continue
        pairs = [
            (
                arguments.rows * len(N) / cpu_seconds(lambda run=run: run(few)),
                len(many[0]) * len(N) / cpu_seconds(lambda: randomizer.randomize(many)),
            )
            for _ in range(arguments.repeats)
        ]
        theirs = statistics.median(a for a, _ in pairs)
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"{name:16} {installed:>8} {theirs:>14,.0f} {ratio:>14,.0f}", flush=True)
        measured.add(
            "other packages", package=name, version=installed, cells_CPU_s=theirs, ratio=ratio
        )
    measured.write(arguments)


if __name__ == "__main__":
    main()
