"""The report of the benchmarks: tables, plots, and the README's rows on speed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import report  # noqa: E402 - it is found now

MACHINE = {"processor": "a processor", "cores": 2, "load": 3.0, "python": "3.11"}


def test_the_report_has_every_table_and_only_rows_of_what_was_measured(tmp_path: Path) -> None:
    title = "joint tables with standard errors"
    cells = [{"cells": 10**k, "s": 1e-7 * 10**k} for k in range(2, 8)]
    dense = [{"cells": 4096, "dense_s": 20.0, "s": 0.01, "ratio": 2000.0}]
    found = {"machine": MACHINE, "tables": {title: cells, "against a dense inverse": dense}}
    (tmp_path / "estimate.json").write_text(json.dumps(found))
    (tmp_path / "other.json").write_text(
        json.dumps({"machine": MACHINE, "tables": {"of another kind": [{"x": None, "y": 1234.5}]}})
    )
    tables, machines = report.read(tmp_path)
    report.write_report(tables, machines, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "| 10,000,000 | 1 |" in text
    assert "|  | 1,230 |" in text
    assert text.count("others were at work") == 2
    assert (tmp_path / "joint-tables-with-standard-errors.png").stat().st_size > 5000
    assert list(report.readme_rows(tables))[2:] == [
        "| joint table of 10,000,000 cells with standard errors | 1 s; at 4,096 cells 2,000 times "
        "faster than a dense inverse | `python benchmarks/bench_estimate.py` |"
    ]


@pytest.mark.slow
def test_a_benchmark_writes_the_rows_that_the_report_looks_for(tmp_path: Path) -> None:
    runs = {
        "estimate": ["bench_estimate.py", "--largest", "100", "--dense", "256"],
        "files": ["bench_files.py", "--rows", "0.01", "--repeats", "1"],
        "commands": ["bench_commands.py", "--repeats", "1"],
    }
    for name, (script, *options) in runs.items():
        command = [sys.executable, str(BENCHMARKS / script), *options]
        subprocess.run(
            [*command, "--json", str(tmp_path / f"{name}.json")], check=True, capture_output=True
        )
    tables, _ = report.read(tmp_path)
    rows = list(report.readme_rows(tables))[2:]
    assert len(rows) == 4  # commands, Parquet, CSV, joint tables
    for title in report.GROWTH:
        for row in tables.get(title, []):
            assert {report.GROWTH[title][0], report.GROWTH[title][1]} <= set(row)
