"""A release in parts by an engine against one process.

A table of twelve categorical columns in Parquet files, by the default law. In turn, several times,
(a) one process makes the release, (b) one worker with one thread of Dask, or one executor with one
core of Spark, makes it; and of a frame of Spark's (c) Spark writes it with a mapInArrow that does
nothing, (d) the release of the frame is made. Engines are started, and have done something, before.
The ratios are b : a and d : c, taken within each pair; less is better. An engine that is not
installed is passed over: .venv/bin/uv pip install distributed pyspark==4.3.0, and Java.

    python benchmarks/bench_engines.py --rows 2     # million
"""

import argparse
import logging
import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_files import DOMAIN, make_table

from deniable import Attribute, Design, Schema, design
from deniable.engines import dask, spark
from deniable.engines.processes import share_parts
from deniable.release.release import Options
from deniable.tables.files import files_of

FILES = 8


def seconds(work: Callable[[Path], Any], folder: Path) -> float:
    """Return how long it takes to make a folder, which is removed."""
    output = folder / "out"
    start = time.perf_counter()
    work(output)
    passed = time.perf_counter() - start
    shutil.rmtree(output)
    return passed


def compare(
    name: str, ours: Callable[[Path], Any], other: Callable[[Path], Any], args: Any
) -> None:
    """Print a line: the seconds of both and their ratio."""
    pairs = [(seconds(other, args.folder), seconds(ours, args.folder)) for _ in range(args.pairs)]
    ratios = sorted(b / a for a, b in pairs)
    first, second = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{name:28} {first:7.2f} {second:7.2f} {statistics.median(ratios):7.2f} "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f})",
        flush=True,
    )


def by_dask(people: Path, plan: Design, one: Callable[[Path], Any], args: Any) -> None:
    """Measure a worker of Dask."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR
        ) as cluster,
        Client(cluster) as client,
    ):
        client.submit(bool, dask.share).result()  # imports what is needed
        compare("units by Dask", lambda out: dask.share(client, people, plan, out), one, args)


def by_spark(people: Path, plan: Design, one: Callable[[Path], Any], args: Any) -> None:
    """Measure an executor of Spark."""
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    frame = session.read.parquet(f"file://{people}")

    def empty(output: Path) -> None:
        frame.mapInArrow(lambda batches: batches, frame.schema).write.parquet(f"file://{output}")

    def of_frame(output: Path) -> None:
        with warnings.catch_warnings(action="ignore"):
            spark.share_frame(frame, plan, output)

    try:
        session.sparkContext.parallelize([0], 1).map(lambda _: bool(spark.share)).count()
        compare("units by Spark", lambda out: spark.share(session, people, plan, out), one, args)
        if tuple(map(int, session.version.split(".")[:2])) >= (4, 2):
            compare("frame by Spark : mapInArrow", of_frame, empty, args)
    finally:
        session.stop()


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, default=2, help="millions")
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    schema = Schema(tuple(Attribute(name, tuple(texts)) for name, texts in DOMAIN.items()))
    plan = design(schema, epsilon=4)
    with tempfile.TemporaryDirectory() as folder:
        args.folder = Path(folder)
        people = args.folder / "people"
        people.mkdir()
        for number in range(FILES):
            make_table(people / f"{number}.parquet", int(args.rows * 1e6 / FILES))
        files = files_of(people) or []

        def one(output: Path) -> None:
            share_parts(files, plan, output, Options(), jobs=1)

        seconds(one, args.folder)
        print(f"{'':28} {'other s':>7} {'ours s':>7} {'ratio':>7}")
        for measured in (by_dask, by_spark):
            try:
                measured(people, plan, one, args)
            except ImportError as error:
                print(f"{measured.__name__}: {error.name} is not installed")


if __name__ == "__main__":
    main()
