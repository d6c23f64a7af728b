"""Randomizing a file against only copying it.

For each size a table of twelve categorical columns is made, and two processes in turn, several
times, (a) copy it batch by batch with pyarrow and nothing else, (b) read it, encode it, randomize
it, decode it and write it. The ratio is copy time over randomize time: 1 means that randomizing
costs nothing, and the aim is 0.8 or more. Peak memory is the process's largest resident size; it
must not grow with the rows.

    python benchmarks/bench_files.py                    # 0.1 and 1 million rows
    python benchmarks/bench_files.py --rows 0.1 1 10    # millions
"""

import argparse
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

from deniable.laws import ProductLaw
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.randomness import SystemRandomness
from deniable.release.release import Options, randomize_table
from deniable.schema import Attribute, Schema

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
EPSILON = 1.0
AIM = 0.8


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
    """Copy a table with pyarrow, batch by batch, all columns as text."""
    if source.suffix == ".parquet":
        file = pq.ParquetFile(source)
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


def randomize(source: Path, target: Path) -> None:
    """Randomize a table with one k-ary response per column."""
    schema = Schema(tuple(Attribute(name, tuple(texts)) for name, texts in DOMAIN.items()))
    law = ProductLaw.from_levels(schema.n_categories, [EPSILON] * len(DOMAIN))
    mechanism = Mechanism(schema, (Block(tuple(range(len(DOMAIN))), law),))
    randomize_table(source, mechanism, target, Options(overwrite=True), SystemRandomness())


def make(size: Path, target: Path) -> None:
    """Make a table of ``size`` rows; a job like the others, so that its memory is its own."""
    make_table(target, int(str(size)))


JOBS = {"make": make, "copy": copy, "randomize": randomize}


def measure(job: str, source: Path, target: Path) -> tuple[float, float]:
    """Run a job in a process of its own; return seconds, imports left out, and peak MB."""
    done = subprocess.run(
        [sys.executable, __file__, "--job", job, str(source), str(target)],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def run_job(job: str, source: Path, target: Path) -> None:
    """Run one job and print its seconds and the process's peak memory in MB."""
    start = time.perf_counter()
    JOBS[job](source, target)
    seconds = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6)


def compare(rows: Sequence[int], repeats: int, folder: Path) -> None:
    """Print a line per format and size."""
    print(
        f"{'format':8} {'rows':>11} {'copy s':>8} {'random. s':>9} {'Mrows/s':>8} "
        f"{'ratio':>6} {'copy MB':>8} {'random. MB':>10}"
    )
    for kind in ("csv", "parquet"):
        for n_rows in rows:
            source, target = folder / f"table.{kind}", folder / f"out.{kind}"
            measure("make", Path(str(n_rows)), source)
            pairs = [
                (measure("copy", source, target), measure("randomize", source, target))
                for _ in range(repeats)
            ]
            # The ratio is taken within each pair, run side by side: a busy machine slows both.
            ratio = statistics.median(a[0] / b[0] for a, b in pairs)
            ours = statistics.median(b[0] for _, b in pairs)
            print(
                f"{kind:8} {n_rows:11,} {statistics.median(a[0] for a, _ in pairs):8.3f} "
                f"{ours:9.3f} {n_rows / ours / 1e6:8.2f} {ratio:6.2f} "
                f"{max(a[1] for a, _ in pairs):8.0f} {max(b[1] for _, b in pairs):10.0f}"
                f"{'' if ratio >= AIM else '  BELOW THE AIM'}",
                flush=True,
            )


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[0.1, 1], help="millions")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        job, source, target = options.job
        run_job(job, Path(source), Path(target))
        return
    with tempfile.TemporaryDirectory() as folder:
        compare([int(r * 1e6) for r in options.rows], options.repeats, Path(folder))


if __name__ == "__main__":
    main()
