"""Processes on this machine that work on a release, one unit each."""

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
from deniable.statement.account import Design
from deniable.tables.files import files_of, units_of

Bar = Callable[[str, int | None], AbstractContextManager[Callable[[float | None], None]]]
"""Shows the progress of a stage: takes its label and its number of rows, None if unknown, and
returns the function to call with the fraction done."""

_LABELS: dict[Stage, str] = {
    "look": "Looking at the data",
    "draw": "Randomizing",
    "gather": "Shuffling",
}

_BYTES = 1 << 25
"""Bytes of the sources per process that make a process worthwhile."""

_BYTES_OF_UNIT = 1 << 19
"""Fixed cost of a unit, in bytes read and written in the same time."""


def no_bar(
    _label: str, _rows: int | None
) -> AbstractContextManager[Callable[[float | None], None]]:
    """Show nothing."""
    return nullcontext(lambda _fraction: None)


def parts_of(source: Any) -> list[Path] | None:
    """Return the files of a source released in parts; None for a single unit of rows or a source in
    memory."""
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
) -> dict[str, Any]:
    """Randomize several tables, or one of several units, and write a folder to publish.

    ``seed``: repeatable bits, for tests.
    """
    job = prepare(files, design, output, options, seed=seed, jobs=jobs, bar=bar)
    make(job, jobs, bar)
    return finish(job, options.signer)


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
    """Prepare a release by processes; see :func:`~deniable.release.parts.prepare`, arguments as of
    :func:`share_parts`."""
    if options.also:
        raise InputError(
            "`also` needs a release of one table, and these rows are released in parts: name one "
            "table, or leave it out"
        )
    return parts.prepare(
        files, design, output, options, lambda job: _stage(job, "look", jobs, bar), seed
    )


def make(job: Job, jobs: int | None = None, bar: Bar = no_bar) -> None:
    """Do the remaining work of a job by processes; see :func:`~deniable.release.parts.make`."""
    parts.make(job, lambda job, stage: _stage(job, stage, jobs, bar))


def resumed(output: Path) -> Job:
    """Return the job of an unfinished release."""
    if (output / "job.json").exists():
        return open_job(output)
    folder = job_folder(output.absolute())
    if not (folder / "job.json").exists():
        raise InputError(f"{output}: there is no unfinished release of that name")
    return open_job(folder)


def cores() -> int:
    """Return the number of cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _stage(job: Job, stage: Stage, jobs: int | None, bar: Bar) -> None:
    """Do the remaining work of a stage."""
    if not (left := job.remaining(stage)):
        return
    rows = None if stage == "look" else sum(job.rows)
    whole = rows or job.size(stage)  # a unit counts as one while its rows are unknown
    before = whole * (job.size(stage) - len(left)) / job.size(stage)
    size = sum(source.identity.size for source in job.stored.sources) + len(left) * _BYTES_OF_UNIT
    count = min(cores() if jobs is None else jobs, len(left), 1 + size // _BYTES)
    if jobs is not None and jobs < 1:
        raise InputError(f"`jobs` must be a positive number of processes, not {jobs}")
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
    """Let several processes work on a stage until no unit is free.

    They receive only the job's path and read its remaining parts from disk; units in work are
    locked.
    """
    words = [sys.executable, "-m", __name__, str(job.folder), stage]
    workers: list[subprocess.Popen[bytes]] = []
    try:
        workers.extend(_start(words, job) for _ in range(count))
        _listen(workers, more)
        for worker in workers:
            if worker.wait():
                raise InputError(
                    f"{job.output}: a worker process ended with status "
                    f"{worker.returncode}, perhaps for lack of memory; continue with "
                    "`deniable share --resume` and fewer `jobs`"
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
        # In a session of its own, so that an interrupt reaches only this process, which ends it.
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
            "`deniable share --resume` and fewer `jobs`"
        ) from None


def _listen(workers: Sequence["subprocess.Popen[bytes]"], more: Callable[[int], None]) -> None:
    """Pass on the row counts that workers print, until they close their output."""
    received: SimpleQueue[bytes | None] = SimpleQueue()

    def receive(stream: IO[bytes]) -> None:
        for line in stream:
            received.put(line)
        received.put(None)

    # One thread per worker: Windows cannot wait for several pipes.
    for worker in workers:
        Thread(target=receive, args=(worker.stdout,), daemon=True).start()
    running = len(workers)
    while running:
        try:
            line = received.get(timeout=0.5)  # on Windows Control-C cannot interrupt a longer wait
        except Empty:
            continue
        if line is None:
            running -= 1
        elif isinstance(message := json.loads(line), str):
            raise InputError(message)
        else:
            more(message)


def _worker(folder: Path, stage: Stage) -> NoReturn:
    """Work on a stage of a job while the parent process lives."""

    def say(what: int | str) -> None:
        try:
            os.write(1, json.dumps(what).encode() + b"\n")
        except OSError:  # the parent has ended
            os._exit(1)

    status = 0
    try:
        job = open_job(folder)
        work(job, stage, job.remaining(stage), say)
    except InputError as error:
        say(str(error))
        status = 2
    os._exit(status)


if __name__ == "__main__":
    _worker(Path(sys.argv[1]), cast(Stage, sys.argv[2]))
