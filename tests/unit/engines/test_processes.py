"""Processes on the units of a release: the same release as one process makes, or one sentence."""

import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deniable.engines import processes
from deniable.engines.processes import (
    cores,
    make,
    parts_of,
    prepare,
    resumed,
    share_parts,
)
from deniable.errors import InputError, Notice
from deniable.release.parts import finish
from deniable.release.release import job_folder
from deniable.tables.files import files_of
from unit.release.tables_in_parts import DESIGN, OPTIONS, content, released_rows, write_parts

SIZES = (6, 5, 4, 3, 2)
ALL = [str(n) for n in range(sum(SIZES))]


@pytest.fixture
def people(tmp_path: Path) -> list[Path]:
    files = files_of(write_parts(tmp_path / "people", SIZES))
    assert files is not None
    return files


@pytest.fixture
def worth_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the tables were large."""
    monkeypatch.setattr(processes, "_BYTES", 1)


def test_what_is_released_in_parts(people, tmp_path):
    assert parts_of(people) == people
    assert parts_of(tmp_path / "people") == people
    assert parts_of(people[0]) is None
    assert parts_of(people[:1]) is None
    assert parts_of("-") is None


@pytest.mark.slow
def test_seeded_parts_are_the_same_for_any_number_of_processes(people, tmp_path, worth_a_process):
    options = replace(OPTIONS, shuffle=True)
    made = []
    for jobs in (1, 3):
        share_parts(people, DESIGN, tmp_path / f"{jobs}", options, seed=3, jobs=jobs)
        made.append(content(tmp_path / f"{jobs}"))
    assert made[0] == made[1]


def test_two_processes_make_what_one_makes_and_have_one_bar(people, tmp_path, monkeypatch):
    seen: list[tuple[str, int | None, list[float | None]]] = []

    def bar(label: str, rows: int | None) -> AbstractContextManager[object]:
        seen.append((label, rows, []))
        return nullcontext(seen[-1][2].append)

    share_parts(people, DESIGN, tmp_path / "one", OPTIONS, seed=3, jobs=2)  # not worth a second
    job = prepare(people, DESIGN, tmp_path / "two", OPTIONS, seed=3, bar=bar)
    monkeypatch.setattr(processes, "_BYTES", 1)
    make(job, 2, bar)
    finish(job)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert released_rows(tmp_path / "two") == ALL
    assert [(label, rows) for label, rows, _ in seen] == [
        ("Looking at the data", None),
        ("Randomizing", 20),
    ]
    assert seen[0][2] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    drawn = seen[1][2]
    assert len(drawn) == len(people)
    assert drawn == sorted(drawn)
    assert drawn[-1] == 1.0


def test_many_small_tables_are_worth_processes_too(people, tmp_path, monkeypatch):
    job = prepare(people, DESIGN, tmp_path / "release", OPTIONS)
    counts = []
    monkeypatch.setattr(processes, "_in_processes", lambda _job, _stage, n, _more: counts.append(n))
    for units in (5, 2):  # for which it pays
        monkeypatch.setattr(processes, "_BYTES", units * processes._BYTES_OF_UNIT)
        make(job, 7)
    assert counts == [2, 3]


@pytest.mark.slow
def test_an_error_of_a_process_is_the_sentence_of_the_command(people, tmp_path, worth_a_process):
    people[3].write_text(people[3].read_text() + "99,x,perhaps\n")
    with pytest.raises(InputError, match=r"people-3\.csv, data row 4, column 'b'"):
        share_parts(people, DESIGN, tmp_path / "release", OPTIONS, jobs=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people"]


def test_what_breaks_off_says_how_to_go_on(people, tmp_path):
    job = prepare(people, DESIGN, tmp_path / "release", OPTIONS)
    moved = people[2].rename(tmp_path / "away.csv")
    with (
        pytest.warns(Notice, match=r"2 of 5 parts made.* continue with deniable share --resume"),
        pytest.raises(InputError, match=r"people-2\.csv is missing"),
    ):
        make(job, 1)
    first = content(job.folder / "release" / "data")
    moved.rename(people[2])
    again = resumed(tmp_path / "release")
    make(again, 1)
    finish(again)
    after = content(tmp_path / "release" / "data")
    assert len(first) == 2
    assert first.items() <= after.items()
    assert released_rows(tmp_path / "release") == ALL
    with pytest.raises(InputError, match="no unfinished release of that name"):
        resumed(tmp_path / "release")


def test_two_runs_on_one_job_are_one(people, tmp_path):
    job = prepare(people, DESIGN, tmp_path / "release", OPTIONS)
    for second in (lambda: make(job), lambda: finish(job)):
        with job.alone(), pytest.raises(InputError, match="another process is making this release"):
            second()
    assert resumed(job.folder).stored == job.stored


def test_a_process_that_is_killed_is_told_of(people, tmp_path, monkeypatch, worth_a_process):
    job = prepare(people, DESIGN, tmp_path / "release", OPTIONS, jobs=1)
    monkeypatch.setattr(processes, "__name__", "deniable.nowhere")
    with (
        pytest.warns(Notice, match="0 of 5 parts made"),
        pytest.raises(InputError, match="ended with status 1, perhaps for lack of memory"),
    ):
        make(job, 2)


def test_an_interrupt_ends_all_processes(people, tmp_path, monkeypatch, worth_a_process):
    job = prepare(people, DESIGN, tmp_path / "release", OPTIONS, jobs=1)
    children = []

    def interrupt(workers: object, more: object) -> None:
        children.extend(workers)
        raise KeyboardInterrupt

    monkeypatch.setattr(processes, "_listen", interrupt)
    with pytest.warns(Notice, match="continue with"), pytest.raises(KeyboardInterrupt):
        make(job, 2)
    assert [child.returncode for child in children] == [-signal.SIGKILL] * 2
    monkeypatch.undo()
    make(job, 1)
    finish(job)
    assert released_rows(tmp_path / "release") == ALL


def test_if_one_process_cannot_be_started_the_others_end(
    people, tmp_path, monkeypatch, worth_a_process
):
    job = prepare(people, DESIGN, tmp_path / "release", OPTIONS, jobs=1)
    children = []
    start = subprocess.Popen

    def once(*words: Any, **how: Any) -> Any:
        if children:
            raise OSError(11, "Resource temporarily unavailable")
        children.append(start(*words, **how))
        return children[0]

    monkeypatch.setattr(subprocess, "Popen", once)
    with (
        pytest.warns(Notice, match="continue with"),
        pytest.raises(InputError, match=r"release: no process can be started .*fewer `jobs`"),
    ):
        make(job, 2)
    assert children[0].returncode is not None


@pytest.mark.slow
def test_a_process_ends_when_nobody_hears_it(people, tmp_path):
    job = prepare(people, DESIGN, tmp_path / "release", OPTIONS)
    words = [sys.executable, "-m", "deniable.engines.processes", str(job.folder), "draw"]
    nobody, end = os.pipe()
    os.close(nobody)
    ended = subprocess.run(words, stdout=end, stderr=subprocess.PIPE, check=False)
    os.close(end)
    assert (ended.returncode, ended.stderr) == (1, b"")
    assert len(job.remaining("draw")) == 5


def test_a_process_says_its_rows_or_one_sentence(people, tmp_path, monkeypatch):
    """What is measured of the processes: they run where nothing is."""
    job = prepare(people, DESIGN, tmp_path / "release", OPTIONS)
    said: list[bytes] = []
    monkeypatch.setattr(os, "write", lambda _file, text: said.append(text))
    monkeypatch.setattr(os, "_exit", sys.exit)
    people[3].rename(tmp_path / "away.csv")
    with pytest.raises(SystemExit) as end:
        processes._worker(job.folder, "draw")
    assert end.value.code == 2
    assert said[:3] == [b"6\n", b"5\n", b"4\n"]
    assert b"people-3.csv is missing" in said[3]


def test_no_rows_leave_nothing(tmp_path):
    files = files_of(write_parts(tmp_path / "people", (0, 0)))
    assert files is not None
    with pytest.raises(InputError, match="has no rows"):
        share_parts(files, DESIGN, tmp_path / "release", OPTIONS, jobs=1)
    assert not job_folder(tmp_path / "release").exists()


def test_a_number_of_processes_is_at_least_one(people, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="`jobs` must be a positive number of processes, not 0"):
        prepare(people, DESIGN, tmp_path / "release", OPTIONS, jobs=0)
    assert cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cores() == os.cpu_count()
