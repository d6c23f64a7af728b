"""Jobs: commands that the studio runs as a user would run them."""

import asyncio
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
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
    """A command that runs, or has run."""

    arguments: Sequence[str]
    folder: Path
    output: str = ""
    picture: str = ""
    serves: bool = False
    cache: Path | None = None
    lines: list[str] = field(default_factory=list)
    of: str = ""
    printed: bytes = b""
    """Its standard output."""
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
        """The command as typed; of a file in the cache only the name."""
        return shlex.join(["deniable", *map(self._shown, self.arguments)])

    @property
    def words(self) -> list[str]:
        """The arguments, and those that only the page needs."""
        return [*self.arguments, *([f"--plot={self.picture}", "--force"] if self.picture else [])]

    @property
    def waits(self) -> bool:
        """Whether its result is still to come."""
        return self.status is None and not (self.serves and self.result())

    def _shown(self, text: str) -> str:
        return text if self.cache is None else re.sub(_below(self.cache), "", text)

    def result(self) -> Any:
        """Return its output as JSON; None if it is not JSON."""
        try:
            return json.loads(self.printed)
        except ValueError:
            return None

    async def run(self) -> None:
        """Run to the end; a cancelled job is first interrupted, as by Control-C."""
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "deniable", *self.words),
            cwd=self.folder,
            stdin=asyncio.subprocess.PIPE,  # whose end ends it; so does the end of this process
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **_VARIABLES, "DENIABLE_LEDGER": usual_ledger()},
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
            self.note(line.decode(errors="replace").rstrip("\r\n"))

    def note(self, text: str) -> None:
        """Take a line that it printed on standard error: progress, or a remark."""
        doing, tab, percent = text.partition("\t")
        if tab and (percent.isdigit() or not percent):
            self.doing = doing
            self.fraction = float(percent) / 100 if percent else None
        elif text and text != f"The plot is in {self.picture}":
            self.lines = [*self.lines[-_MOST_LINES:], self._shown(text)]

    def stop(self) -> None:
        """Stop it, as by the keys Control and C."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()


def usual_ledger() -> str:
    """Return the path in DENIABLE_LEDGER as an absolute one; empty if there is none."""
    named = os.environ.get("DENIABLE_LEDGER", "").strip()
    return str(Path(named).absolute()) if named else ""


def _below(folder: Path) -> str:
    """Return the pattern of the path of a folder and of folders in it, up to a file's name."""
    return re.escape(str(folder)) + r"/(?:[^/\s]+/)*"


SHARED = {
    "output": "--output",
    "person": "--person",
    "person_epsilon": "--person-epsilon",
    "ledger": "--ledger",
    "population": "--population",
    "sign": "--sign",
    "also": "--as",
}
"""Fields of the release form, by option."""

TICKED = {
    "shuffle": "--shuffle",
    "overwrite": "--force",
    "new_ledger": "--new-ledger",
    "new_population": "--new-population",
    "drop_other_columns": "--drop-other-columns",
    "accept_drafted": "--accept-drafted",
}


def options(form: Mapping[str, str]) -> list[str]:
    """Return the command-line options of a form."""
    given = [f"{option}={form[name]}" for name, option in SHARED.items() if form.get(name)]
    given += [option for name, option in TICKED.items() if form.get(name)]
    if form.get("ledger") and not form.get("new_ledger"):
        given.append("--no-new-ledger")
    return given


CHECKED = ("--check", "--json")
"""The option of a dry run."""


@dataclass(frozen=True)
class Problem:
    """A reason why a command refuses."""

    sentence: str
    controls: Sequence[str]


_OPTION = re.compile(r"--[a-z][a-z-]*")
_REFUSED = "deniable: "


def problems_of(jobs: Iterable[Job], labels: Mapping[str, str]) -> list[Problem]:
    """Return the reasons why commands or their checks refused, each once."""
    said: dict[str, str] = {}
    for job in jobs:
        found = job.result() if CHECKED[0] in job.arguments else None
        if found is not None:
            said |= {one["sentence"]: one["at"] for one in found["problems"]}
        elif job.status:
            said = dict.fromkeys(_refusals(job.lines), "") | said
    return _with_controls(said, labels)


def notes_of(job: Job, labels: Mapping[str, str]) -> list[Problem]:
    """Return the output of a command without its refusals."""
    ends = [at for at, line in enumerate(job.lines) if line.startswith(_REFUSED)]
    return _with_controls(dict.fromkeys(job.lines[: ends[0]] if ends else job.lines, ""), labels)


def _with_controls(said: Mapping[str, str], labels: Mapping[str, str]) -> list[Problem]:
    """Return sentences, each about a control, with the controls that have not been named before."""
    names = {option: name for name, option in (SHARED | TICKED).items() if name in labels}

    def label(option: re.Match[str]) -> str:
        if option[0] not in names:
            return option[0]
        return f"“{labels[names[option[0]]].partition(':')[0]}”"

    problems, shown = [], set[str]()
    for sentence, at in said.items():
        controls = [at] if at in labels and at in (*SHARED, *TICKED, "table") else []
        controls += [names[option] for option in _OPTION.findall(sentence) if option in names]
        once = [name for name in dict.fromkeys(controls) if name not in shown]
        shown |= set(once)
        problems.append(Problem(_OPTION.sub(label, sentence), once))
    return problems


def _refusals(lines: Sequence[str]) -> list[str]:
    """Return the refusals in the output of a command.

    >>> _refusals(["a note", "deniable: refused for 2 reasons:", "  one", "    more", "  two"])
    ['one\\n    more', 'two']
    """
    text = "\n".join(lines).rpartition(_REFUSED)[2]
    first, *reasons = re.split(r"\n  (?! )", text)
    return reasons if re.fullmatch(r"refused for \d+ reasons:", first) else [text]
