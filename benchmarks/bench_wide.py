"""Wide tables: rows a second, CPU time and peak memory; and a PLINK fileset variant by variant.

Each job runs in a process of its own, so that its memory is its own; its CPU seconds are those of
reading, drawing and writing, without imports and without reading the mechanism. The attributes have
three categories; *product* is independent responses, *alike* and *different* are votes, the default
law, with equal levels and with levels that all differ.

    python benchmarks/bench_wide.py                             # tables, small enough for a minute
    python benchmarks/bench_wide.py --people 500000 --plink     # a biobank's 1,000 variants
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measured import Measured

from deniable.design.design import design
from deniable.randomness import SystemRandomness
from deniable.release.release import Options, randomize_table
from deniable.schema import Attribute, Schema
from deniable.statement.record import mechanism_to_plain, read_design, to_json
from deniable.tables.plink import packed

GENOTYPE = ("0", "1", "2")
LEVEL = 0.3


def names(k: int) -> list[str]:
    """Return the names of the columns."""
    return [f"rs{i}" for i in range(1, k + 1)]


def make_mechanism(law: str, k: int, path: Path) -> None:
    """Write a mechanism: for a few thousand attributes and more only the product is designed."""
    levels = np.linspace(0.2, 0.5, k) if law == "different" else np.full(k, LEVEL)
    schema = Schema(tuple(Attribute(name, GENOTYPE) for name in names(k)))
    method = "kronecker" if law == "product" else None
    plan = design(schema, attribute_epsilon=levels.tolist(), method=method or "balanced")
    path.write_bytes(to_json(mechanism_to_plain(plan)))


def make_table(path: Path, rows: int, k: int) -> None:
    """Write a table of independent columns, in pieces."""
    generator = np.random.default_rng(1)
    if path.suffix == ".csv":
        with path.open("wb") as file:
            file.write((",".join(names(k)) + "\n").encode())
            for start in range(0, rows, 1000):
                count = min(1000, rows - start)
                text = np.full((count, 2 * k), ord(","), dtype=np.uint8)
                text[:, ::2] = generator.integers(ord("0"), ord("3"), (count, k))
                text[:, -1] = ord("\n")
                file.write(text.tobytes())
    elif path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts = pa.array(GENOTYPE)
        schema = pa.schema([(name, pa.string()) for name in names(k)])
        with pq.ParquetWriter(path, schema) as writer:
            for start in range(0, rows, 20_000):
                count = min(20_000, rows - start)
                columns = [texts.take(pa.array(generator.integers(0, 3, count))) for _ in range(k)]
                writer.write_table(pa.table(columns, schema=schema))
    else:
        with path.open("wb") as file:
            file.write(b"\x6c\x1b\x01")
            for _ in range(k):
                copies = generator.binomial(2, generator.uniform(0.1, 0.5), rows)
                file.write(packed(np.array([3, 2, 0], dtype=np.uint8)[copies]).tobytes())
        lines = (f"1 {name} 0 {i} A G\n" for i, name in enumerate(names(k)))
        path.with_suffix(".bim").write_text("".join(lines))
        with path.with_suffix(".fam").open("w") as fam:
            fam.writelines(f"F{p} P{p} 0 0 0 -9\n" for p in range(rows))


def make(mechanism: Path, source: Path, law: str, rows: int, k: int) -> None:
    """Write a table and a mechanism, if they are not there."""
    if not source.exists():
        make_table(source, rows, k)
    if not mechanism.exists():
        make_mechanism(law, k, mechanism)


def run_job(mechanism: Path, source: Path) -> None:
    """Randomize a table and print CPU seconds, wall seconds and the peak memory in MB."""
    law = read_design(mechanism).mechanism
    before, start = time.process_time(), time.perf_counter()
    target = source.with_name(f"out{source.suffix}")
    randomize_table(source, law, target, Options(overwrite=True), SystemRandomness())
    cpu, wall = time.process_time() - before, time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak}))


def measure(
    kind: str, law: str, rows: int, k: int, folder: Path, repeats: int, measured: Measured
) -> None:
    """Print a line for one table and one law: the median of several runs."""
    source, mechanism = folder / f"t{rows}x{k}.{kind}", folder / f"{law}{k}.json"
    command = [sys.executable, __file__, "--job", str(mechanism), str(source)]
    # Making them is a job too: what a process has held counts as its children's peak.
    subprocess.run([*command, "--make", law, str(rows), str(k)], check=True)
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(repeats)
    ]
    cpu, wall, peak = (float(np.median([r[key] for r in runs])) for key in ("cpu", "wall", "peak"))
    print(
        f"{kind:8} {k:7,} {law:10} {rows:9,} {cpu:8.2f} {wall:8.2f} {rows / cpu:12,.0f} "
        f"{rows * k / cpu / 1e6:8.1f} {peak:8.0f}",
        flush=True,
    )
    measured.add(
        "wide tables",
        format=kind,
        columns=k,
        law=law,
        rows=rows,
        CPU_s=cpu,
        s=wall,
        rows_CPU_s=rows / cpu,
        peak_MB=peak,
    )


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--job", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--plink", action="store_true", help="the fileset only")
    parser.add_argument("--people", type=int, default=50_000, help="in the fileset")
    parser.add_argument("--repeats", type=int, default=3)
    measured = Measured(parser)
    arguments = parser.parse_args()
    if arguments.make:
        law, rows, k = arguments.make
        make(arguments.job[0], arguments.job[1], law, int(rows), int(k))
        return
    if arguments.job:
        run_job(*arguments.job)
        return
    print(
        f"{'format':8} {'columns':>7} {'law':10} {'rows':>9} {'CPU s':>8} {'wall s':>8} "
        f"{'rows/CPU s':>12} {'Mcells/s':>8} {'peak MB':>8}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not arguments.plink:
            for law in ("product", "alike", "different"):
                measure("csv", law, 20_000, 1000, folder, arguments.repeats, measured)
                measure("parquet", law, 40_000, 1000, folder, arguments.repeats, measured)
            measure("csv", "product", 2_000, 10_000, folder, arguments.repeats, measured)
        for law in ("product", "alike", "different"):
            measure("bed", law, arguments.people, 1000, folder, arguments.repeats, measured)
    measured.write(arguments)


if __name__ == "__main__":
    main()
