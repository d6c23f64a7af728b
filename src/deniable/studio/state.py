"""State of the studio: draft, computed designs, running jobs, last message."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from deniable.atomic_files import write_file
from deniable.errors import InputError
from deniable.studio import answers, working
from deniable.studio.draft import Keeper
from deniable.studio.making import Job
from deniable.studio.place import Place
from deniable.studio.request import DraftRequest, request_of
from deniable.tables.preview import Preview

LANGUAGES = ("en", "de")

_JOBS = "jobs.json"


class State:
    """One draft, its results and its jobs."""

    def __init__(self, keeper: Keeper, place: Place) -> None:
        self.keeper = keeper
        self.folder, self.cache = place.folder, place.cache
        self.token = sha256(f"token of {place.secret}".encode()).hexdigest()
        """In every form; the same when the program has ended and is started again."""
        self.answers = working.Answers()
        self.jobs = self._remembered()
        self.running: set[asyncio.Task[Any]] = set()
        self.language = LANGUAGES[0]
        self.filled: dict[str, Mapping[str, str]] = {}
        """Last input of each form."""
        self.unread: Mapping[str, str] = {}
        """The form by which a table was opened last, if it could not be read so."""
        self.preview: tuple[Any, Preview] | None = None
        """First rows of the table shown by a view, and their source."""
        self.from_check: dict[str, Job] = {}
        """Job made from the last check, by view."""
        self.typed: Mapping[str, str] = {}
        """Values of the fields of the next page, by id."""
        self.said: Mapping[str, str] = {}
        """Messages of the last step: by control, or under ``page``."""
        self.solved = ("", "")
        """State of the draft whose ε was found, and the message, which stays until it changes."""

    @property
    def state(self) -> str:
        """A name for the draft, by which a page knows whether it shows this one."""
        return self.keeper.state

    def design_request(self, controls: Mapping[str, str] | None = None) -> DraftRequest:
        """Return the present request, or that of a compared design."""
        return request_of(self.keeper.draft, controls, self.folder)

    async def answer(self, request: DraftRequest, gone: working.Gone) -> Any:
        """Return the result of a request; None if the client disconnected or changed it."""
        self.answers.want(request.digest, answers.answer, request)
        return await self.answers.wait(request.digest, gone)

    def mechanism_file(self, request: DraftRequest) -> Path:
        """Return the file of a request's mechanism, for a later command."""
        return self.cache / request.digest / "mechanism.json"

    def is_of_now(self, job: Job) -> bool:
        """Whether a command takes the mechanism that is shown."""
        return f"--mechanism={self.mechanism_file(self.design_request())}" in job.arguments

    def begin(self, name: str, job: Job, then: Callable[[], None] = lambda: None) -> None:
        """Start a job, replacing the one of this name."""
        if name in self.jobs and self.jobs[name].status is None:
            raise InputError("this is being made already; wait for it, or stop it")
        job.cache = self.cache
        self.jobs[name] = job
        task = asyncio.create_task(self._run(job, then))
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    async def _run(self, job: Job, then: Callable[[], None]) -> None:
        self._remember()
        try:
            await job.run()
        finally:
            self._remember()
        then()

    def _remember(self) -> None:
        """Write the jobs into the cache, for the next start."""
        plain = {
            name: {
                "arguments": job.arguments,
                "output": job.output,
                "picture": job.picture,
                "lines": job.lines,
                "of": job.of,
                "printed": job.printed.decode(errors="replace"),
                "status": None if job.interrupted else job.status,
            }
            for name, job in self.jobs.items()
        }
        with suppress(OSError, InputError):  # a full disk
            content = json.dumps(plain).encode()
            write_file(self.cache / _JOBS, content, overwrite=True, private=True)

    def _remembered(self) -> dict[str, Job]:
        """Return the jobs of the last time, without those whose output has been removed."""
        jobs: dict[str, Job] = {}
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            known = json.loads((self.cache / _JOBS).read_text(encoding="utf-8"))
            for name, plain in known.items():
                job = Job(plain["arguments"], self.folder, plain["output"], cache=self.cache)
                job.lines, picture = plain["lines"], plain["picture"]
                job.picture = picture if Path(picture).is_file() else ""
                job.of = plain.get("of", "")
                job.printed, job.status = plain["printed"].encode(), plain["status"]
                if job.status is None:
                    job.status, job.interrupted = 130, True
                if job.status or (self.folder / job.output).exists():
                    jobs[name] = job
        return jobs

    async def made(self, name: str, gone: working.Gone) -> Job:
        """Wait for a job; cancel it when the client disconnects."""
        job = self.jobs[name]
        while job.status is None:
            await asyncio.sleep(0.05)
            if await gone():
                job.stop()
        return job
