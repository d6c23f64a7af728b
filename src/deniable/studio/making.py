"""What is made: by the command line, as whoever types it would make it."""

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_VARIABLES = {
    "DENIABLE_PROGRESS": "lines",
    "DENIABLE_ENDS_WITH_STDIN": "1",
    "PYTHONUNBUFFERED": "1",
}
_MOST_LINES = 200
_LONGEST_LINE = 1 << 20


@dataclass
class Job:
    """A command that runs, or has run.

    Args:
        arguments: of ``deniable``.
        folder: where it works.
        output: what it makes, or is about.
        of: the state of the draft that it is of; empty if it is of none.
    """

    arguments: Sequence[str]
    folder: Path
    output: str = ""
    lines: list[str] = field(default_factory=list)
    of: str = ""
    printed: bytes = b""
    """What it printed as its result."""
    doing: str = ""
    fraction: float | None = None
    """How much of ``doing`` is done."""
    status: int | None = None
    """With which it ended; None while it runs."""
    interrupted: bool = False
    """Whether it ran when the studio was killed."""
    _process: asyncio.subprocess.Process | None = None

    @property
    def command(self) -> str:
        """The command, as it is typed."""
        return shlex.join(["deniable", *self.arguments])

    def result(self) -> Any:
        """Return what it printed, if that is JSON; else None."""
        try:
            return json.loads(self.printed)
        except ValueError:
            return None

    async def run(self) -> None:
        """Run to the end; what is cancelled is stopped first, as by the keys Control and C."""
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "deniable", *self.arguments),
            cwd=self.folder,
            stdin=asyncio.subprocess.PIPE,  # closes with this process, and then it ends
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **_VARIABLES},
            start_new_session=True,
            limit=_LONGEST_LINE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            await asyncio.gather(self._print(process.stdout), self._note(process.stderr))
        finally:
            self.stop()
            self.status = await process.wait()

    async def _print(self, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(1 << 16):
            self.printed += piece

    async def _note(self, stream: asyncio.StreamReader) -> None:
        async for line in stream:
            text = line.decode(errors="replace").rstrip("\r\n")
            doing, tab, percent = text.partition("\t")
            if tab and (percent.isdigit() or not percent):
                self.doing = doing
                self.fraction = float(percent) / 100 if percent else None
            elif text:
                self.lines = [*self.lines[-_MOST_LINES:], text]

    def stop(self) -> None:
        """Stop it, as by the keys Control and C."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.killpg(self._process.pid, signal.SIGINT)


SHARED = {
    "output": "--output",
    "person": "--person",
    "ledger": "--ledger",
    "population": "--population",
    "sign": "--sign",
    "also": "--as",
}
"""What the form of a release asks for, by the option that it becomes."""

TICKED = {
    "shuffle": "--shuffle",
    "new_population": "--new-population",
    "drop_other_columns": "--drop-other-columns",
    "accept_drafted": "--accept-drafted",
}


def options(form: Mapping[str, str]) -> list[str]:
    """Return the options that a form asks for.

    >>> options({"output": "release", "person": "", "shuffle": "yes"})
    ['--output=release', '--shuffle']
    """
    given = [f"{option}={form[name]}" for name, option in SHARED.items() if form.get(name)]
    return given + [option for name, option in TICKED.items() if form.get(name)]
