"""The command line as a user runs it: a process with standard streams."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Result:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is not strict JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def deniable(tmp_path: Path) -> Callable[..., Result]:
    """Run the command in an empty folder."""

    def run(*arguments: object, stdin: str = "") -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "deniable", *map(str, arguments)],
            cwd=tmp_path,
            input=stdin.encode(),
            capture_output=True,
            timeout=120,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


SCHEMA = """
title = "Five people"
[[attribute]]
name = "sex"
categories = ["f", "m"]
[[attribute]]
name = "age"
bins = [0, 30, 60, 120]
[[attribute]]
name = "blood"
categories = ["A", "B", "AB", "0"]
missing = "category:NA"
"""

TABLE = "sex,age,blood\nf,25,A\nm,61,0\nf,30,\nm,59,AB\nf,119,B\n"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A tiny table and its schema, in the folder the commands run in."""
    (tmp_path / "people.csv").write_text(TABLE)
    (tmp_path / "people.toml").write_text(SCHEMA)
    return tmp_path
