"""The units of a release as tasks of an engine that somebody else runs.

A task is told where the job is and which unit is its own. It returns nothing that was drawn: it
commits a part, once, whatever the engine does with it. An engine may run a task twice, at once or
again, and lose what it returned.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from deniable._checks import check_type
from deniable.errors import InputError
from deniable.release.job import Job, Source, Stage, open_job
from deniable.release.parts import finish, make, prepare, work
from deniable.release.publication import Publication
from deniable.statement.account import Design
from deniable.statement.record import read_design
from deniable.tables.files import files_of

Task = Callable[[int], str]
"""Does one piece of work; returns what went wrong, or nothing."""

Run = Callable[[Task, Sequence[int]], Sequence[str]]
"""Lets an engine do pieces of work; returns what their tasks returned."""

_ROUNDS = 3
"""How often work is handed out that comes back undone, since another process was at it."""


def do_unit(folder: str, stage: Stage, number: int) -> str:
    """Do one piece of work of a job; return what went wrong, or nothing."""
    try:
        work(open_job(Path(folder)), stage, [number])
    except InputError as error:
        return str(error)
    return ""


def share_by(
    run: Run,
    source: Any,
    plan: Design | str | Path,
    output: str | Path,
    command: str,
    publication: Publication | None = None,
) -> dict[str, Any]:
    """Randomize tables by the workers of an engine, and write a folder to publish.

    The workers see the tables and the folder of the output under the same names as this process.
    """
    options = (publication or Publication()).options(command)
    if not callable(source):
        check_type("source", source, str | Path | Sequence[str | Path])
    design = plan if isinstance(plan, Design) else read_design(plan)
    files: Source = source if callable(source) else files_of(source) or [Path(source)]
    job = prepare(files, design, Path(output), options, lambda job: _all(run, job, "look"))
    make(job, partial(_all, run))
    return finish(job, signer=options.signer)


def _all(run: Run, job: Job, stage: Stage) -> None:
    for _ in range(_ROUNDS):
        if not (left := job.left(stage)):
            return
        for problem in run(partial(do_unit, str(job.folder), stage), left):
            if problem:
                raise InputError(problem)
    if left := job.left(stage):
        raise InputError(
            f"{job.folder}: other processes work on {len(left)} units; continue with "
            "`deniable share --resume` when they are done"
        )
