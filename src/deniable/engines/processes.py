"""Processes on this machine that work on the units of a release, one each."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any, NoReturn, cast

from deniable.errors import InputError
from deniable.release import parts
from deniable.release.job import Job, Stage, open_job
from deniable.release.parts import finish, work
from deniable.release.release import Options, job_folder
from deniable.statement.account import Account, Design
from deniable.tables.files import files_of, units_of

Bar = Callable[[str, int | None], AbstractContextManager[Callable[[float | None], None]]]
"""Shows a stage while it runs: its name and its rows, if they are known; is told the fraction."""

_LABELS: dict[Stage, str] = {
    "look": "Looking at the data",
    "draw": "Randomizing",
    "gather": "Shuffling",
}

_BYTES = 1 << 25
"""Of the sources, for which it pays to start a process."""

_BYTES_OF_UNIT = 1 << 19
"""What it takes to begin and end a unit, in bytes that could be read and written instead."""


def no_bar(
    _label: str, _rows: int | None
) -> AbstractContextManager[Callable[[float | None], None]]:
    """Show nothing."""
    return nullcontext(lambda _fraction: None)


def parts_of(source: Any) -> list[Path] | None:
    """Return the files of a source that is released in parts; None if it is one unit of rows, or
    no file."""
    files = files_of(source)
    if files is None:
        single = isinstance(source, str | os.PathLike) and Path(source).is_file()
        files = [Path(source)] if single else []
    return files if len(units_of(files)) > 1 else None


def share_parts(
    files: Sequence[Path],
    design: Design,
    output: Path,
    options: Options,
    *,
    seed: int | None = None,
    jobs: int | None = None,
    bar: Bar = no_bar,
    account: Account | None = None,
) -> dict[str, Any]:
    """Randomize several tables, or one of several units, and write a folder to publish.

    ``seed``: repeatable bits, for tests.
    """
    job = prepare(files, design, output, options, seed=seed, jobs=jobs, bar=bar)
    make(job, jobs, bar)
    return finish(job, account, options.signer)


def prepare(
    files: Sequence[Path],
    design: Design,
    output: Path,
    options: Options,
    *,
    seed: int | None = None,
    jobs: int | None = None,
    bar: Bar = no_bar,
) -> Job:
    """Do what :func:`~deniable.release.parts.prepare` does, by processes; the arguments are those
    of :func:`share_parts`."""
    if options.also:
        raise InputError(
            "`also` is for a release of one table; these rows are released in parts: name one, "
            "or leave it out"
        )
    return parts.prepare(
        files, design, output, options, lambda job: _stage(job, "look", jobs, bar), seed
    )


def make(job: Job, jobs: int | None = None, bar: Bar = no_bar) -> None:
    """Do what is left of a job by processes; see :func:`~deniable.release.parts.make`."""
    parts.make(job, lambda job, stage: _stage(job, stage, jobs, bar))


def resumed(output: Path) -> Job:
    """Return the job of a release that was begun and is not finished."""
    if (output / "job.json").exists():
        return open_job(output)
    folder = job_folder(output.absolute())
    if not (folder / "job.json").exists():
        raise InputError(f"{output}: there is no release of that name that was begun")
    return open_job(folder)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _stage(job: Job, stage: Stage, jobs: int | None, bar: Bar) -> None:
    """Do what is left of one stage."""
    if not (left := job.left(stage)):
        return
    rows = None if stage == "look" else sum(job.rows)
    whole = rows or job.size(stage)  # units count as one while their rows are not known
    before = whole * (job.size(stage) - len(left)) / job.size(stage)
    size = sum(source.identity.size for source in job.stored.sources) + len(left) * _BYTES_OF_UNIT
    count = min(cores() if jobs is None else jobs, len(left), 1 + size // _BYTES)
    if jobs is not None and jobs < 1:
        raise InputError(f"`jobs` is a number of processes, not {jobs}")
    with bar(_LABELS[stage], rows) as advance:
        done = before

        def more(n_rows: int) -> None:
            nonlocal done
            done += n_rows if rows else 1
            advance(min(1.0, done / whole))

        if count <= 1:
            work(job, stage, left, more)
        else:
            _in_processes(job, stage, count, more)


def _in_processes(job: Job, stage: Stage, count: int, more: Callable[[int], None]) -> None:
    """Let several processes work on a stage until nothing is left to begin.

    They are told nothing but where the job is: what is left they see, and what another one works
    on is locked.
    """
    words = [sys.executable, "-m", __name__, str(job.folder), stage]
    workers: list[subprocess.Popen[bytes]] = []
    try:
        workers.extend(_start(words, job) for _ in range(count))
        _listen(workers, more)
        for worker in workers:
            if worker.wait():
                raise InputError(
                    f"{job.output}: a process that worked on it has ended with status "
                    f"{worker.returncode}, perhaps for want of memory; continue with "
                    "`deniable share --resume`, and fewer `jobs`"
                )
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
            if worker.stdout is not None:
                worker.stdout.close()


def _start(words: list[str], job: Job) -> "subprocess.Popen[bytes]":
    try:
        # In a session of its own: an interrupt is for this process, which ends it.
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # on Windows
        )
    except OSError as error:
        raise InputError(
            f"{job.output}: no process can be started ({error.strerror}); continue with "
            "`deniable share --resume`, and fewer `jobs`"
        ) from None


def _listen(workers: Sequence["subprocess.Popen[bytes]"], more: Callable[[int], None]) -> None:
    """Hear what processes say until they say no more."""
    received: SimpleQueue[bytes | None] = SimpleQueue()

    def receive(stream: IO[bytes]) -> None:
        for line in stream:
            received.put(line)
        received.put(None)

    # A thread for each: Windows does not wait for several pipes at once.
    for worker in workers:
        Thread(target=receive, args=(worker.stdout,), daemon=True).start()
    running = len(workers)
    while running:
        try:
            line = received.get(timeout=0.5)  # on Windows Control-C interrupts no longer wait
        except Empty:
            continue
        if line is None:
            running -= 1
        elif isinstance(message := json.loads(line), str):
            raise InputError(message)
        else:
            more(message)


def _worker(folder: Path, stage: Stage) -> NoReturn:
    """Work on a stage of a job as long as the process lives that started this one."""

    def say(what: int | str) -> None:
        try:
            os.write(1, json.dumps(what).encode() + b"\n")
        except OSError:  # it has gone
            os._exit(1)

    status = 0
    try:
        job = open_job(folder)
        work(job, stage, job.left(stage), say)
    except InputError as error:
        say(str(error))
        status = 2
    os._exit(status)


if __name__ == "__main__":
    _worker(Path(sys.argv[1]), cast(Stage, sys.argv[2]))
