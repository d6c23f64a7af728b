"""The benchmarks: hard designs and what is demanded of them; the report and docs/figures.md."""

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import bench_optimal
import floor_bound
import hard
import numpy as np
import pytest
import report

from deniable.solvers.patterns import linear
from unit.laws.votes import whole_law as oracle

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
MACHINE = {"processor": "a processor", "cores": 2, "load": 3.0, "python": "3.11"}


@pytest.mark.slow
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
    row = (
        "| joint table of 10,000,000 cells with standard errors | 1 s; at 4,096 cells 2,000 times "
        "faster than a dense inverse | `python benchmarks/bench_estimate.py` |"
    )
    docs, readme = tmp_path / "figures.md", tmp_path / "README.md"
    before = [(ROOT / name).read_text() for name in ("docs/figures.md", "README.md")]
    for page, text in zip((docs, readme), before, strict=True):
        page.write_text(text)
    assert report.write_rows(tables, docs, readme) == 1
    for page, old in zip((docs, readme), before, strict=True):
        lines = zip(old.splitlines(), page.read_text().splitlines(), strict=True)
        ((gone, new),) = [(first, second) for first, second in lines if first != second]
        assert gone.startswith("| joint table of")
        assert new == row


def test_every_figure_of_the_readme_stands_in_the_docs() -> None:
    shown = (ROOT / "README.md").read_text().partition("## Six figures")[2].partition("##")[0]
    rows = [line for line in shown.splitlines() if line.startswith("| ")]
    known = (ROOT / "docs" / "figures.md").read_text().splitlines()
    assert len(rows) == 7  # with the head
    assert set(rows) <= set(known)


@pytest.mark.weekly
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
    rows = [row for row in report.rows_on_speed(tables) if row is not None]
    assert len(rows) == 4  # commands, Parquet, CSV, joint tables
    for title in report.GROWTH:
        for row in tables.get(title, []):
            assert {report.GROWTH[title][0], report.GROWTH[title][1]} <= set(row)


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("row", "case"),
    [(name, case) for name, row in hard.ROWS.items() for case in row.small],
    ids=str,
)
def test_far_from_ordinary_designs_what_is_demanded_holds(
    row: str, case: tuple[object, ...]
) -> None:
    # All but the seconds, which are for a machine that does nothing else.
    for line in hard.ROWS[row].measure(*case):
        assert all(demand.held for demand in line.demands), line


def a_line(figure: float = 0.5, seconds: float = 1.0) -> hard.Line:
    return hard.Line(
        2, "", "5", 0, 1.0, 0.1, (hard.Demand("gap", figure, 0.6),), seconds, 4.0, "total 1"
    )


def breaks(seed: int) -> Iterator[hard.Line]:
    yield a_line()
    raise ValueError("no law")


@pytest.mark.parametrize(
    ("measure", "misses"),
    [
        (lambda _: [a_line()], 0),
        (lambda _: [a_line(0.7), a_line()], 1),
        (lambda _: [a_line(math.nan)], 1),
        (lambda _: [a_line(seconds=4.1)], 1),
        (breaks, 1),
    ],
)
def test_the_hard_benchmark_fails_on_a_miss(
    measure: Callable[..., Iterator[hard.Line]],
    misses: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    planted = hard.Row(measure, lambda seeds: ((seed,) for seed in seeds), ())
    monkeypatch.setitem(hard.ROWS, "few", planted)
    options = ["--hard", "--only", "few", "--seeds", "256"]
    monkeypatch.setattr(sys, "argv", ["bench_optimal.py", *options])
    with pytest.raises(SystemExit) as end:
        bench_optimal.main()
    assert end.value.code == min(misses, 1)
    shown = capsys.readouterr().out
    assert shown.count("MISS") == 256 * misses
    assert f"{256 * misses} of " in shown


@pytest.mark.parametrize("seed", range(6))
def test_no_law_with_a_floor_is_below_its_bound(seed: int) -> None:
    random = np.random.default_rng(seed)
    counts, levels = random.integers(2, 60, 5).tolist(), random.uniform(0.5, 4.0, 5).tolist()
    costs = []
    for floor in (0.5, 0.95):
        least = linear.solve(counts, levels, pair_floor=floor).epsilon
        bound = floor_bound.least_epsilon(counts, levels, floor, least + 0.3)
        assert least - 0.02 < bound <= least + 1e-11
        costs.append(least)
    assert costs[0] < costs[1] - 1e-4  # the floor counts
    # Of a part of the columns it holds too.
    assert floor_bound.least_epsilon([*counts, 7], [*levels, 0.4], 0.5, costs[0]) > costs[0] - 0.02


@pytest.mark.parametrize("seed", range(6))
def test_the_pairs_of_the_hard_benchmark_are_those_of_the_enumerated_law(seed: int) -> None:
    law = oracle.random_sum(seed, 5)
    single, both = hard.attenuations(law)
    q = oracle.pattern_law(law)
    single, both = single * law.retention, both * np.outer(law.retention, law.retention)
    for i, j in itertools.combinations(range(law.n_attributes), 2):
        expected = oracle.attenuation(law.n_categories, q, (i, j))
        assert both[i, j] == pytest.approx(expected, abs=1e-11)
        alone = oracle.attenuation(law.n_categories, q, (i,))
        assert single[i] == pytest.approx(alone, abs=1e-11)
