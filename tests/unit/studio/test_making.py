"""Commands that the studio runs: what they say, how they are stopped. A shell stands for them."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from deniable.studio.making import CHECKED, Job, notes_of, options, problems_of
from unit.collect.studies import example_folder


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Job]:
    """A job whose command does what a script for the shell says."""
    file = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(file))

    def of(script: str) -> Job:
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return Job(["share", "a table.csv"], tmp_path)

    return of


def test_a_command_is_shown_as_it_is_typed(program: Callable[[str], Job], tmp_path: Path) -> None:
    job = program('printf "%s\\n" "$@" "$DENIABLE_PROGRESS" "$(pwd)" >&2; exit 1')
    assert job.command == "deniable share 'a table.csv'"
    assert (job.status, job.result()) == (None, None)
    asyncio.run(job.run())
    assert job.lines == ["-m", "deniable", "share", "a table.csv", "lines", str(tmp_path)]
    assert job.status == 1


def test_progress_is_told_apart_from_what_is_said(program: Callable[[str], Job]) -> None:
    said = r"Reading\t\nReading\t50\na\tb\nlast words\n"
    job = program(f"printf '{said}' >&2; echo '[1, 2]'; head -c 300000 /dev/zero >&2; exit 3")
    asyncio.run(job.run())
    assert (job.doing, job.fraction) == ("Reading", 0.5)
    assert [line[:10] for line in job.lines[:2]] == ["a\tb", "last words"]
    assert (job.status, job.result()) == (3, [1, 2])


def test_no_path_of_the_cache_is_shown(program: Callable[[str], Job], tmp_path: Path) -> None:
    cache = tmp_path / "a cache"
    picture = cache / "answer.svg"
    job = program(f"echo 'The plot is in {picture}' >&2; echo '{picture}: the disk is full' >&2")
    job.picture, job.cache = str(picture), cache
    job.arguments = ["share", "t.csv", f"--mechanism={cache}/0d3f/mechanism.json"]
    asyncio.run(job.run())
    assert job.lines == ["answer.svg: the disk is full"]
    assert job.command == "deniable share t.csv --mechanism=mechanism.json"
    assert job.words == [*job.arguments, f"--plot={picture}", "--force"]


def test_only_the_last_lines_are_kept(program: Callable[[str], Job]) -> None:
    job = program("for i in $(seq 500); do echo $i; done >&2")
    asyncio.run(job.run())
    assert (len(job.lines), job.lines[-1]) == (201, "500")


WAITS = "echo begun >&2; read _; echo stopped >&2; exit 130"


def test_what_is_stopped_or_cancelled_ends_in_its_own_way(program: Callable[[str], Job]) -> None:
    async def stopped(how: str) -> Job:
        job = program(WAITS)
        running = asyncio.create_task(job.run())
        while not job.lines:
            await asyncio.sleep(0.01)
        for _ in range(2):  # somebody presses twice
            job.stop() if how == "stop" else running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        job.stop()  # what has ended is not there to be stopped
        return job

    for how in ("stop", "cancel"):
        job = asyncio.run(stopped(how))
        assert (job.lines, job.status) == (["begun", "stopped"][: 2 if how == "stop" else 1], 130)


KILLED = """
import asyncio, sys
from pathlib import Path
from deniable.studio.making import Job

async def serve():
    job = Job(["collect", "serve", "study", "--port=0", "--json"], Path(sys.argv[1]))
    running = asyncio.create_task(job.run())
    while not job.result():
        await asyncio.sleep(0.01)
    print(job.printed.decode().replace("\\n", " "), flush=True)
    await running

asyncio.run(serve())
"""


def test_what_is_served_ends_with_a_studio_that_is_killed(tmp_path: Path) -> None:
    example_folder(tmp_path)
    studio = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], stdout=subprocess.PIPE)
    assert studio.stdout is not None
    with studio.stdout:
        address = json.loads(studio.stdout.readline())["respondents"]
        with urlopen(address) as page:
            assert page.status == 200
        studio.kill()
        studio.wait()
    end = time.monotonic() + 20
    with suppress(OSError):  # nobody listens
        while time.monotonic() < end:
            urlopen(address).close()
            time.sleep(0.05)
    assert time.monotonic() < end


@pytest.mark.slow
def test_a_command_has_nothing_to_read(tmp_path: Path) -> None:
    job = Job(["inspect", "/dev/stdin"], tmp_path)
    asyncio.run(asyncio.wait_for(job.run(), 20))
    assert job.status == 2


LABELS = {
    **{"table": "The table", "output": "The folder", "overwrite": "Replace: it", "ledger": "L"},
    **{"new_ledger": "Begin a ledger", "sign": "Key"},
}


def test_a_reason_stands_at_the_controls_that_settle_it(tmp_path: Path) -> None:
    check = Job(["share", "t.csv", *CHECKED], tmp_path, status=2)
    found = [
        {"at": "output", "sentence": "r exists; replace it with --force"},
        {"at": "ledger", "sentence": "l: no such ledger; begin it with --new-ledger"},
        {"at": "ledger", "sentence": "beyond the budget"},
        {"at": "epsilon", "sentence": "there is no --epsilon"},
    ]
    check.printed = json.dumps({"problems": found}).encode()
    check.lines = ["a note (--sign)", "deniable: refused for 4 reasons:", "  r exists; …"]
    said = problems_of([check], LABELS)
    assert [one.controls for one in said] == [
        *(["output", "overwrite"], ["ledger", "new_ledger"], [], []),
    ]
    assert said[0].sentence == "r exists; replace it with “Replace”"
    assert said[3].sentence == "there is no --epsilon"
    (note,) = notes_of(check, LABELS)
    assert (note.sentence, note.controls) == ("a note (“Key”)", ["sign"])


def test_a_command_that_failed_says_why_once(tmp_path: Path) -> None:
    made = Job(["share", "t.csv"], tmp_path, lines=["Replacing r", "deniable: r exists (--force)"])
    made.status = 2
    (problem,) = problems_of([made], LABELS)
    assert (problem.sentence, problem.controls) == ("r exists (“Replace”)", ["overwrite"])
    check = Job(["share", "t.csv", *CHECKED], tmp_path, status=2)
    found = [{"at": "output", "sentence": "r exists (--force)"}]
    check.printed = json.dumps({"problems": found}).encode()
    (problem,) = problems_of([check, made], LABELS)
    assert problem.controls == ["output", "overwrite"]
    made.status = 0
    assert problems_of([made], LABELS) == []


def test_a_named_ledger_is_begun_only_if_the_box_is_ticked() -> None:
    assert options({"ledger": "l"}) == ["--ledger=l", "--no-new-ledger"]
    assert options({"ledger": "l", "new_ledger": "yes"}) == ["--ledger=l", "--new-ledger"]
    assert options({"overwrite": "yes"}) == ["--force"]


def test_the_usual_ledger_is_the_same_from_the_folder_of_the_draft(
    program: Callable[[str], Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Failed before: a relative path was read from the folder of the draft.
    monkeypatch.setenv("DENIABLE_LEDGER", "people.ledger")
    job = program('echo "$DENIABLE_LEDGER" >&2')
    asyncio.run(job.run())
    assert job.lines == [str(Path("people.ledger").absolute())]
