"""What one waits for: commands as they are typed, start-up included.

    python benchmarks/bench_commands.py

Each command runs several times in a process of its own, in a folder with the shipped example; the
medians of CPU seconds (user and system) and of seconds on the clock are printed.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measured import Measured

EXAMPLES = Path(__file__).parents[1] / "examples"
MIXED = (2, 5, 7, 16, 41)

SHARE = ["share", "insurance.csv", "--schema", "insurance.toml", "--output", "r", "--force"]
COMMANDS = {
    "--help": ["--help"],
    "share of the example": [*SHARE, "--epsilon", "4"],
    "estimate": ["estimate", "r", "--of", "race,hhi"],
    "share --mechanism": [
        *("share", "insurance.csv", "--mechanism", "r/record.json"),
        *("--output", "again", "--force"),
    ],
    "share, 12 columns of 2, 5, 7, 16, 41": [
        *("share", "t12.csv", "--schema", "t12.toml", "--epsilon", "4"),
        *("--output", "r12", "--force"),
    ],
    "share, 16 columns of 2, 5, 7, 16, 41": [
        *("share", "t16.csv", "--schema", "t16.toml", "--epsilon", "4"),
        *("--output", "r16", "--force"),
    ],
}
"""In this order: what one leaves, the next one reads."""


def make_table(folder: Path, k: int) -> None:
    """Write a small table and its schema."""
    counts = [MIXED[i % len(MIXED)] for i in range(k)]
    codes = np.column_stack([np.random.default_rng(i).integers(0, a, 2000) for i, a in
                             enumerate(counts)])  # fmt: skip
    lines = [",".join(f"c{i}" for i in range(k)), *(",".join(map(str, row)) for row in codes)]
    (folder / f"t{k}.csv").write_text("\n".join(lines) + "\n")
    declared = (
        f'[[attribute]]\nname = "c{i}"\ncategories = {[str(j) for j in range(a)]}\n'
        for i, a in enumerate(counts)
    )
    (folder / f"t{k}.toml").write_text("".join(declared))


def run(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a command; return its CPU seconds and those on the clock."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "deniable", *command], cwd=folder, check=True, capture_output=True
    )
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system
    return cpu - before.children_user - before.children_system, wall


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    measured = Measured(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("insurance.csv", "insurance.toml"):
            shutil.copy(EXAMPLES / file, folder)
        for k in (12, 16):
            make_table(folder, k)
        print(f"{'deniable …':40} {'CPU s':>7} {'s':>7}")
        for label, command in COMMANDS.items():
            taken = [run(command, folder) for _ in range(arguments.repeats)]
            cpu, wall = (statistics.median(values) for values in zip(*taken, strict=True))
            print(f"{label:40} {cpu:7.2f} {wall:7.2f}", flush=True)
            measured.add("commands", command=label, CPU_s=cpu, s=wall)
    measured.write(arguments)


if __name__ == "__main__":
    main()
