"""Randomizing a file against only copying it.

For each size a table of twelve categorical columns is made, and processes in turn, several times,
(a) copy it batch by batch with pyarrow and nothing else, and (b) read it, encode it, randomize it
by the default law or by independent responses, decode it and write it. The ratio is copy time over
randomize time, taken within each round: 1 means that randomizing costs nothing. A copy of Parquet
keeps the dictionaries in which texts are stored; one of CSV parses and writes texts. CPU seconds
are those of all threads. Peak memory is the process's largest resident size; it must not grow with
the rows.

    python benchmarks/bench_files.py                    # 0.1 and 1 million rows
    python benchmarks/bench_files.py --rows 0.1 1 10    # millions
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq
from measured import Measured

from deniable.design.design import design
from deniable.randomness import SystemRandomness
from deniable.release.release import Options, randomize_table
from deniable.schema import Attribute, Schema
from deniable.statement.record import mechanism_to_plain, read_design, to_json

DOMAIN = {
    "sex": ["female", "male"],
    "insured": ["no", "yes"],
    "employed": ["no", "yes"],
    "citizen": ["no", "yes"],
    "age": ["0-17", "18-29", "30-44", "45-59", "60-74", "75+"],
    "education": ["<9years", "9-11years", "12years", "13-15years", "16years", ">16years"],
    "race": ["white", "black", "other"],
    "hispanic": ["no", "yes"],
    "work": ["private", "self", "federal", "state", "local", "unpaid", "none"],
    "region": ["northcentral", "northeast", "south", "west"],
    "children": ["0", "1", "2", "3+"],
    "marital": ["never", "married", "absent", "separated", "divorced", "widowed", "other", "?"],
}
EPSILON = 4.0
LAWS = {"default": "balanced", "product": "kronecker"}
AIMS = {  # of the default law: by CPU, by the clock
    "csv": (0.65, 0.9),
    "parquet": (0.75, 0.0),
}


def make_table(path: Path, n_rows: int) -> None:
    """Write a table of independent uniform columns, in pieces."""
    generator = np.random.default_rng(20240501)
    schema = pa.schema([(name, pa.string()) for name in DOMAIN])
    writer = (pq.ParquetWriter if path.suffix == ".parquet" else pc_csv.CSVWriter)(path, schema)
    with writer:
        for start in range(0, n_rows, 1 << 19):
            count = min(1 << 19, n_rows - start)
            columns = [
                pa.array(texts).take(pa.array(generator.integers(0, len(texts), count)))
                for texts in DOMAIN.values()
            ]
            writer.write_table(pa.table(columns, schema=schema))


def copy(source: Path, target: Path) -> None:
    """Copy a table with pyarrow, batch by batch: Parquet with its dictionaries, CSV as text."""
    if source.suffix == ".parquet":
        file = pq.ParquetFile(source, read_dictionary=list(DOMAIN))
        with pq.ParquetWriter(target, file.schema_arrow) as writer:
            for batch in file.iter_batches(1 << 16):
                writer.write_batch(batch)
        return
    reader = pc_csv.open_csv(
        source,
        convert_options=pc_csv.ConvertOptions(column_types=dict.fromkeys(DOMAIN, pa.string())),
    )
    with pc_csv.CSVWriter(target, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def make_mechanism(path: Path, law: str) -> None:
    """Design for a total, by the default method or by independent responses."""
    schema = Schema(tuple(Attribute(name, tuple(texts)) for name, texts in DOMAIN.items()))
    plan = design(schema, epsilon=EPSILON, method=LAWS[law])
    path.write_bytes(to_json(mechanism_to_plain(plan)))


def run_job(job: str, source: Path, target: Path) -> None:
    """Run one job and print its seconds and the process's peak memory in MB.

    A job is "make N" (rows), "copy", or the name of a law.
    """
    mechanism = read_design(source.with_name(f"{job}.json")).mechanism if job in LAWS else None
    cpu, start = time.process_time(), time.perf_counter()
    if mechanism is not None:
        randomize_table(source, mechanism, target, Options(overwrite=True), SystemRandomness())
    elif job == "copy":
        copy(source, target)
    else:
        make_table(source, int(job.removeprefix("make ")))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak}))


def measure(job: str, source: Path, target: Path) -> dict[str, float]:
    """Run a job in a process of its own, so that its memory is its own."""
    command = [sys.executable, __file__, "--job", job, str(source), str(target)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def compare(rows: Sequence[int], repeats: int, folder: Path, measured: Measured) -> None:
    """Print a line per format, size and law."""
    print(
        f"{'format':8} {'rows':>11} {'law':8} {'copy CPU s':>10} {'CPU s':>8} {'ratio':>6} "
        f"{'copy s':>8} {'s':>8} {'ratio':>6} {'Mrows/s':>8} {'copy MB':>8} {'MB':>6}"
    )
    for law in LAWS:
        make_mechanism(folder / f"{law}.json", law)
    for kind, (least_cpu, least_wall) in AIMS.items():
        for n_rows in rows:
            source, target = folder / f"table.{kind}", folder / f"out.{kind}"
            measure(f"make {n_rows}", source, target)
            rounds = [
                {job: measure(job, source, target) for job in ("copy", *LAWS)}
                for _ in range(repeats)
            ]
            for law in LAWS:
                # Within each round, side by side: a busy machine slows both.
                ratio = {
                    key: statistics.median(r["copy"][key] / r[law][key] for r in rounds)
                    for key in ("cpu", "wall")
                }
                found = {
                    job: {k: statistics.median(r[job][k] for r in rounds) for k in rounds[0][job]}
                    for job in ("copy", law)
                }
                base, ours = found["copy"], found[law]
                below = ratio["cpu"] < least_cpu or ratio["wall"] < least_wall
                print(
                    f"{kind:8} {n_rows:11,} {law:8} {base['cpu']:10.3f} {ours['cpu']:8.3f} "
                    f"{ratio['cpu']:6.2f} {base['wall']:8.3f} {ours['wall']:8.3f} "
                    f"{ratio['wall']:6.2f} {n_rows / ours['wall'] / 1e6:8.2f} "
                    f"{base['peak']:8.0f} {ours['peak']:6.0f}"
                    f"{'  BELOW THE AIM' if below and law == 'default' else ''}",
                    flush=True,
                )
                measured.add(
                    "a file of twelve columns into another",
                    format=kind,
                    rows=n_rows,
                    law=law,
                    copy_CPU_s=base["cpu"],
                    CPU_s=ours["cpu"],
                    ratio_CPU=ratio["cpu"],
                    copy_s=base["wall"],
                    s=ours["wall"],
                    ratio=ratio["wall"],
                    Mrows_s=n_rows / ours["wall"] / 1e6,
                    peak_MB=ours["peak"],
                )


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[0.1, 1], help="millions")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    measured = Measured(parser)
    options = parser.parse_args()
    if options.job:
        job, source, target = options.job
        run_job(job, Path(source), Path(target))
        return
    with tempfile.TemporaryDirectory() as folder:
        compare([int(r * 1e6) for r in options.rows], options.repeats, Path(folder), measured)
    measured.write(options)


if __name__ == "__main__":
    main()
