"""What an audit shows of k-ary randomized response, and how fast; and LDP-Auditor, if it is there.

    python benchmarks/bench_audit.py [--draws 200000] [--error 0.01]

LDP-Auditor (Arcolezi and Gambs, PETS 2024) is no package: clone github.com/hharcolezi/ldp-audit,
install its requirements, and put the clone on PYTHONPATH. Both draw as many rows. Its limit is
of one number at the whole error; ours shares the error with seven other kinds of questions.
"""

import argparse
import time

from deniable import Schema, design
from deniable.audit import Plan, audit
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SystemRandomness

CASES = ((2, 0.5), (5, 1.0), (16, 2.0), (16, 4.0))


def ours(k: int, epsilon: float, draws: int, error: float) -> tuple[float, float]:
    """Return the lower limit of ε in nats, and seconds."""
    mechanism = design(Schema.anonymous((k,)), attribute_epsilon=[epsilon]).mechanism
    start = time.perf_counter()
    randomizer = Randomizer(mechanism, SystemRandomness())
    found = audit(Plan(mechanism, draws, error), randomizer.randomize)
    return found.epsilon.at_least, time.perf_counter() - start


def theirs(k: int, epsilon: float, draws: int, error: float) -> tuple[float, float] | None:
    """Return the same of LDP-Auditor; None if it is not here."""
    try:
        from ldp_audit.base_auditor import LDPAuditor
    except ImportError:
        return None
    auditor = LDPAuditor(nb_trials=draws // 2, alpha=error, epsilon=epsilon, k=k, n_jobs=1)
    start = time.perf_counter()
    return float(auditor.run_audit("GRR")), time.perf_counter() - start


def main() -> None:
    """Print the table."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--draws", type=int, default=200_000)
    words.add_argument("--error", type=float, default=0.01)
    given = words.parse_args()
    print(f"{given.draws:,} draws, error {given.error:g}; lower limit of ε in nats (seconds)")
    for k, epsilon in CASES:
        both = [f(k, epsilon, given.draws, given.error) for f in (ours, theirs)]
        shown = ["not here" if one is None else f"{one[0]:.4f} ({one[1]:.3f})" for one in both]
        print(f"k = {k:2}, ε = {epsilon:g}: deniable {shown[0]}, LDP-Auditor {shown[1]}")


if __name__ == "__main__":
    main()
