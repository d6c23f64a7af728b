"""Units of a release as tasks of an external engine.

A task takes the job's path and its unit's number. It returns no draws: it commits a part, once,
however often the engine runs the task or loses its result.
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
from deniable.release.release import opened
from deniable.statement.account import Design
from deniable.statement.record import read_design
from deniable.tables.files import files_of

Task = Callable[[int], str]
"""Does one piece of work; returns its error message, or an empty text."""

Run = Callable[[Task, Sequence[int]], Sequence[str]]
"""Runs pieces of work on an engine; returns their tasks' results."""

_ROUNDS = 3
"""How often work that another process holds is submitted again."""


def do_unit(folder: str, stage: Stage, number: int) -> str:
    """Do one piece of work of a job; return its error message, or an empty text."""
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

    The workers need access to the tables and the output's folder under the same paths as this
    process.
    """
    options = opened(publication, command)
    if not callable(source):
        check_type("source", source, str | Path | Sequence[str | Path])
    design = plan if isinstance(plan, Design) else read_design(plan)
    files: Source = source if callable(source) else files_of(source) or [Path(source)]
    job = prepare(files, design, Path(output), options, lambda job: _all(run, job, "look"))
    make(job, partial(_all, run))
    return finish(job, options.signer)


def _all(run: Run, job: Job, stage: Stage) -> None:
    for _ in range(_ROUNDS):
        if not (left := job.remaining(stage)):
            return
        for problem in run(partial(do_unit, str(job.folder), stage), left):
            if problem:
                raise InputError(problem)
    if left := job.remaining(stage):
        raise InputError(
            f"{job.folder}: other processes work on {len(left)} units; continue with "
            "`deniable share --resume` when they are done"
        )
