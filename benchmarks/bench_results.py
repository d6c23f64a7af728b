"""Estimated tables to dataframes and files: seconds and peak memory by number of cells.

    python benchmarks/bench_results.py [--largest CELLS]

Estimating the table is not timed; its intervals are. Peak memory, after the pandas dataframe, is
that of the process, with the estimate and all libraries.
"""

import argparse
import resource
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench_estimate import counted, mechanism_of
from measured import Measured, seconds

from deniable.estimate.columns import columns_of
from deniable.estimate.shares import Estimate, Shares
from deniable.estimate.tabulate import Counts


def estimated(cells: int) -> Estimate:
    sizes = (100, 30, cells // 3000)
    mechanism = mechanism_of(sizes)
    return Shares(mechanism.schema.names).answer(Counts.of(mechanism, counted(sizes)))[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--largest", type=int, default=12_000_000, help="cells of the largest table"
    )
    measured = Measured(parser)
    options = parser.parse_args()
    estimated(6000).to_pandas()  # loads the library
    estimated(6000).to_polars()
    print(f"{'cells':>12} {'pandas s':>9} {'Polars s':>9} {'Parquet s':>9} {'CSV s':>9} {'GB':>6}")
    cells = 12_000
    while cells <= options.largest:
        pandas = seconds(estimated(cells).to_pandas)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        polars = seconds(estimated(cells).to_polars)
        with TemporaryDirectory() as folder:
            columns = columns_of([estimated(cells)], 0.95)
            write = partial(columns.write, caption="Shares", overwrite=True)
            parquet = seconds(partial(write, Path(folder) / "a.parquet"))
            csv = seconds(partial(write, Path(folder) / "a.csv"))
        print(
            f"{cells:>12,} {pandas:>9.3f} {polars:>9.3f} {parquet:>9.3f} {csv:>9.3f} {peak:>6.2f}"
        )
        measured.add(
            "tables to dataframes and files",
            cells=cells,
            pandas_s=pandas,
            polars_s=polars,
            parquet_s=parquet,
            csv_s=csv,
            peak_GB=round(peak, 2),
        )
        cells *= 10
    measured.write(options)


if __name__ == "__main__":
    main()
