"""The main ways through the package on a Python that lacks what Windows lacks."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


Run = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def windows(tmp_path: Path) -> Run:
    """Run lines of Python in a module of the package, on such a Python (tests/as_on_windows)."""
    if not sys.platform.startswith("linux"):
        pytest.skip("what is open is read off Linux's /proc")

    def run(lines: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "planted.py"
        file.write_text("__package__ = 'deniable'\n" + lines, encoding="utf-8")
        return subprocess.run(
            [sys.executable, file],
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            check=False,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "tests" / "as_on_windows"),
                "AS_ON_WINDOWS": str(tmp_path),
                "TMPDIR": str(tmp_path),
            },
        )

    return run


PLANTED = {
    "import fcntl": "ModuleNotFoundError: Windows has no fcntl",
    "from resource import setrlimit": "ModuleNotFoundError: Windows has no resource",
    "os.getuid()": "AttributeError: Windows has no getuid",
    "from os import O_TMPFILE": "ImportError: cannot import name 'O_TMPFILE'",
    "signal.SIGKILL": "AttributeError: Windows has no SIGKILL",
    "assert sys.platform != 'win32'": "AssertionError",
    "file = open('a', 'w'); os.unlink('a')": "PermissionError",
    "file = open('b', 'w'); os.replace('b', 'c')": "PermissionError",
    "open('d', 'w').close(); file = open('e', 'w'); os.replace('d', 'e')": "PermissionError",
    "os.mkdir('f'); file = open('f/a', 'w'); os.rename('f', 'g')": "PermissionError",
    "os.mkdir('h'); file = open('h/a', 'w'); shutil.rmtree('h')": "PermissionError",
    "open('a:b.txt', 'w')": "OSError: [Errno 22] Windows allows no such name",
    "os.mkdir('aux')": "OSError: [Errno 22] Windows allows no such name",
    "open('report.', 'w')": "OSError: [Errno 22] Windows allows no such name",
    "open('i', 'w').close(); os.replace('i', 'j'); os.unlink('j')": "",
}
"""Lines of the package, and the error of each."""


def test_a_planted_use_of_what_windows_lacks_is_found(windows: Run) -> None:
    done = windows(
        "import json, os, shutil, signal, sys\n"
        "said = []\n"
        f"for line in {[*PLANTED]!r}:\n"
        "    try:\n"
        "        exec(line)\n"
        "        said.append('')\n"
        "    except Exception as error:\n"
        "        said.append(f'{type(error).__name__}: {error}')\n"
        "print(json.dumps(said))\n"
    )
    assert done.returncode == 0, done.stderr
    for (line, problem), said in zip(PLANTED.items(), json.loads(done.stdout), strict=True):
        assert said.startswith(problem) if problem else not said, (line, said)


MAIN = f"""
import asyncio, sys, urllib.request
from pathlib import Path
from deniable import engines, release
from deniable.cli import main
from deniable.engines import processes
from deniable.studio.making import Job

def run(command, *more):
    try:
        main([*command.split(), *more])
    except SystemExit as end:
        if end.code:
            raise

processes._BYTES = 1  # two processes, also for little
example = Path({str(ROOT)!r}, "examples")
head, *rows = (example / "insurance.csv").read_bytes().splitlines(keepends=True)
Path("tables").mkdir()
for number in range(3):
    Path("tables", f"part{{number}}.csv").write_bytes(head + b"".join(rows[number:900:3]))
table, schema = "tables/part0.csv", "insurance.toml"
Path(schema).write_bytes((example / schema).read_bytes())
# At a level at which the tables can be read no other design is searched for.
share = ["--schema", schema, "--epsilon=30", "--method=kronecker"]
share += ["--ledger=people.ledger", "--output=release"]
for more in ([], ["--force", "--shuffle"]):
    run("share", table, *share, *more)
run("inspect release")
run("estimate release --of=race,hhi --output=shares.csv")
run("share tables --jobs=2 --shuffle --force", *share)
run("ledger show people.ledger")
run("collect demo --files=example")
run("design --schema=example/schema.toml --epsilon=2.3 --output=mechanism.json")
asked = "--mechanism=mechanism.json --questionnaire=example/questionnaire.toml"
run(f"collect open {{asked}} --output=study")

async def served(*words):
    job = Job(words, Path.cwd())
    running = asyncio.create_task(job.run())
    while not job.result():
        assert not running.done(), job.lines
        await asyncio.sleep(0.05)
    address = job.result().get("respondents") or job.result()["address"]
    visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    page = await asyncio.to_thread(visitor.open, address)
    assert page.status == 200
    page.close()
    job.stop()
    await running
    assert job.status == 0, (job.status, job.lines)

asyncio.run(served("collect", "serve", "study", "--port=0", "--json"))
asyncio.run(served("collect", "demo", "--no-browser", "--json"))
asyncio.run(served("studio", schema, "--no-browser", "--json"))
print("all of it")
"""


@pytest.mark.slow
def test_the_main_ways_go_through(windows: Run, tmp_path: Path) -> None:
    done = windows(MAIN)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all of it\n")
    assert "Error" not in done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name[0] == "."] == []
    made = {"people.ledger", "release", "shares.csv", "study"}
    assert {path.name for path in tmp_path.iterdir()} >= made
    assert not [*(tmp_path / "study").glob("*-journal")]
