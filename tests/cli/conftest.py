"""The command line as a user runs it: arguments, standard streams, an exit status."""

import io
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deniable.cli import main


@dataclass
class Result:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is not strict JSON")

        assert self.out, self.err
        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def deniable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command in an empty folder, in this process: a new one takes half a second."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, stdin: str = "") -> Result:
        words = [str(argument) for argument in arguments]
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        status = 0
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["deniable", *words])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            # Errors are exceptions here too, so that a traceback would be seen.
            terminate = signal.getsignal(signal.SIGTERM)
            try:
                main()
            except SystemExit as end:
                status = int(end.code or 0)
            finally:
                signal.signal(signal.SIGTERM, terminate)
        return Result(status, *(s.buffer.getvalue().decode() for s in (out, err)))

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
