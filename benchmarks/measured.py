"""What a benchmark measured, row by row, as JSON that report.py reads."""

import argparse
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any


class Measured:
    """Rows by table, and on what machine.

    Args:
        parser: gets the option ``--json FILE``.
    """

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
        self._tables: dict[str, list[dict[str, Any]]] = {}
        self._machine = machine()  # before it is busy with this

    def add(self, table: str, **row: Any) -> None:
        """Add a row to a table; its keys say what is in it, units included."""
        self._tables.setdefault(table, []).append(row)

    def write(self, arguments: argparse.Namespace) -> None:
        """Write the file that was asked for, if one was."""
        if arguments.json is not None:
            found = {"machine": self._machine, "tables": self._tables}
            arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """Return on what this runs, and how busy that is."""
    lines = Path("/proc/cpuinfo")
    names = [
        line.split(":", 1)[1].strip()
        for line in (lines.read_text().splitlines() if lines.exists() else ())
        if line.startswith("model name")
    ]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],  # of the last minute
        "python": platform.python_version(),
    }


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Return the seconds on the clock of the fastest of several runs."""
    return min(_taken(perf_counter, work) for _ in range(repeats))


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one run."""
    return _taken(process_time, work)


def _taken(clock: Callable[[], float], work: Callable[[], object]) -> float:
    start = clock()
    work()
    return clock() - start
