"""What a terminal shows while a design takes long, and what is left when it is interrupted."""

import importlib
import io
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from rich.progress import Progress
from rich.status import Status

from deniable.cli import console, main
from marked import weekly_after

RANDOM = np.random.default_rng(2)
COUNTS = RANDOM.choice([2, 5, 9, 16, 42], 50).tolist()
CATEGORIES = ",".join(map(str, COUNTS))
LEVELS = ",".join(f"{level:.2f}" for level in RANDOM.uniform(1.0, 10.0, 50))
SLOW = ["design", "--categories", CATEGORIES, "--attribute-epsilon", LEVELS]

QUIET = 6.0
"""Seconds of its own processor time for which a command may leave a screen as it is on a slow
machine, a fifth of it here: by the clock it would depend on what else the machine does."""


@dataclass
class Screen:
    """A command in a terminal of its own: its exit status and what it wrote, when."""

    status: int = 0
    written: list[tuple[float, str]] = field(default_factory=list)
    worked: list[float] = field(default_factory=lambda: [0.0])
    """Processor time by then, in seconds."""

    @property
    def lines(self) -> list[str]:
        text = "".join(text for _, text in self.written)
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("^C", "")
        return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]

    @property
    def longest_silence(self) -> float:
        return float(np.diff(self.worked).max())


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_a_terminal(folder: Path, *words: str, interrupt: float | None = None) -> Screen:
    """Run a command; press Ctrl-C so many seconds after it first wrote something."""
    screen = Screen()
    began, pressed = time.monotonic(), interrupt is None
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(
            sys.executable,
            [sys.executable, "-m", "deniable", *words],
            {**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
    while True:
        now = time.monotonic() - began
        first = screen.written[0][0] if screen.written else now
        if not pressed and screen.written and now - first >= (interrupt or 0.0):
            os.write(terminal, b"\x03")
            pressed = True
        if select.select([terminal], [], [], 0.02)[0]:
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:  # the other end is closed
                data = b""
            if not data:
                break
            screen.written.append((time.monotonic() - began, data.decode("utf-8", "replace")))
            screen.worked.append(processor_time(pid))
    os.close(terminal)
    screen.status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return screen


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A folder with a table of 30 attributes, and its schema."""
    counts = COUNTS[:30]
    names = ",".join(f"a{i}" for i in range(30))
    rows = np.random.default_rng(3).integers(0, counts, (3000, 30))
    np.savetxt(tmp_path / "t.csv", rows, "%d", ",", header=names, comments="")
    with (tmp_path / "t.toml").open("w") as schema:
        for i, count in enumerate(counts):
            texts = ",".join(f'"{value}"' for value in range(count))
            schema.write(f'[[attribute]]\nname = "a{i}"\ncategories = [{texts}]\n')
    return tmp_path


SHARE = ["share", "t.csv", "--schema", "t.toml", "--epsilon", "6", "--output", "r"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    weekly_after(
        1,
        [
            SHARE,
            SLOW,
            ["design", "--categories", f"10000,{CATEGORIES}", "--epsilon", "1", "--rows", "9"],
        ],
    ),
)
def test_no_phase_leaves_the_screen_as_it_is(table: Path, words: list[str]) -> None:
    screen = in_a_terminal(table, *words)
    assert screen.status == 0, screen.lines[-1]
    assert screen.longest_silence < QUIET


@pytest.mark.slow
@pytest.mark.parametrize("words", weekly_after(1, [SHARE, [*SLOW, "--output", "m.json"]]))
def test_an_interrupted_command_ends_in_one_line_and_leaves_nothing_or_all(
    table: Path, words: list[str]
) -> None:
    before = sorted(path.name for path in table.iterdir())
    moments = (0.0, 0.2, 0.6, 1.2)
    for moment in moments:
        screen = in_a_terminal(table, *words, interrupt=moment)
        output = table / words[-1]
        if output.exists():  # a fast machine was done, or only had to say so
            inspected = [sys.executable, "-m", "deniable", "inspect", str(output)]
            assert subprocess.run(inspected, capture_output=True, check=False).returncode == 0
            shutil.rmtree(output) if output.is_dir() else output.unlink()
            if screen.status == 0:
                continue
        # A shell says 130 of both: where Ctrl-C met a class being made, Python ends by the signal.
        assert screen.status in (130, -signal.SIGINT), (moment, screen.lines)
        said = "deniable: interrupted; no incomplete output remains"
        assert screen.lines[-1] == said, (moment, screen.written[-6:])
        assert sum("deniable:" in line for line in screen.lines) == 1
        assert not any("Traceback" in line for line in screen.lines)
        assert sorted(path.name for path in table.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "label", "place"),
    [
        ("design --categories 5,2 --epsilon 1", "Finding the law", "design.design.design_of"),
        (
            "plan --categories 5,2 --epsilon 1 --error 2pt",
            "Trying totals",
            "planning.sample_size.plan",
        ),
        (
            "share t.csv --schema t.toml --epsilon 1 --output r",
            "Randomizing",
            "release.release.share",
        ),
        (
            "audit m.json --draws 1000",
            "Drawing",
            "audit.audit",
        ),
        (
            "frontier --distribution normal,10 --delta 0.6 --output f",
            "Tracing the frontier",
            "frontier.tracing.trace",
        ),
    ],
)
def test_what_may_take_long_runs_while_the_screen_says_so(
    words: str, label: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command has to take long for this: whatever is wrapped is shown after a second."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,b\n" + "0,1\n1,0\n" * 30)
    columns = (f'[[attribute]]\nname = "{n}"\ncategories = ["0", "1"]\n' for n in "ab")
    Path("t.toml").write_text("".join(columns))
    if "m.json" in words:
        main(["design", "--categories", "5,2", "--epsilon", "1", "--output", "m.json"])
    shown: list[str] = []
    ran: list[list[str]] = []

    @contextmanager
    def noted(display: Progress | Status) -> Iterator[None]:
        is_bar = isinstance(display, Progress)
        shown.append(display.tasks[0].description if is_bar else str(display.status))
        try:
            yield
        finally:
            shown.pop()

    name, _, function = place.rpartition(".")
    module = importlib.import_module(f"deniable.{name}")

    def stopped(*_: object, **__: object) -> None:
        ran.append([*shown])
        raise KeyboardInterrupt

    monkeypatch.setattr(module, function, stopped)
    monkeypatch.setattr(console, "_shown", noted)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(SystemExit):
        main(words.split())
    assert ran == [[label]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("happens", ["raise KeyboardInterrupt", "type('Made', (), {'x': Met()})"])
def test_loading_the_program_can_be_interrupted_too(happens: str) -> None:
    code = (
        "import sys\n"
        "class Met:\n"
        "    def __set_name__(self, *_): raise KeyboardInterrupt\n"
        "class Stop:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'deniable.cli': {happens}\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from deniable.__main__ import main\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 130
    assert ended.stderr == "deniable: interrupted; no incomplete output remains\n"


def test_what_is_done_is_not_interrupted_as_python_ends() -> None:
    """Python gives Ctrl-C up as it ends: it then killed what was whole, and said nothing."""
    code = (
        "import atexit, os, signal, sys\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['deniable', '--version']\n"
        "from deniable.__main__ import main\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("deniable ")
