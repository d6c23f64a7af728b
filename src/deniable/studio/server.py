"""The listener: what is asked of the page, and what is done about it."""

import asyncio
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from deniable.collect.door import Door
from deniable.errors import InputError
from deniable.report.rendering import read
from deniable.studio import answers, exports, importing, working
from deniable.studio.draft import Keeper, digest
from deniable.studio.page import CHECKS, POLICY, VIEWS, page
from deniable.studio.place import Place
from deniable.studio.state import State
from deniable.studio.steps import STEPS, Asked
from deniable.studio.wish import Wish

_LONGEST_FORM = 4_000_000
"""Bytes that a form may have: the names of a thousand columns, and their categories."""

_ALONE_AFTER = 3600.0
"""Seconds without a page after which the studio ends."""


_REPORTS = {"report.html": "release", "about.html": "ask"}
"""Pages that commands write beside what they make, and the names of their jobs."""


class Studio(State):
    """The page, of what is there.

    Args:
        keeper: the draft.
        place: where it is.
        ended: called when nobody has looked for an hour; None to go on for ever.
    """

    def __init__(
        self,
        keeper: Keeper,
        place: Place,
        ended: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(keeper, place)
        self.ended = ended
        name = f"studio-{place.cache.name}"
        self.door = Door(place.port, place.secret, name, POLICY, _LONGEST_FORM, self.token)
        self._looked = time.monotonic()

    def app(self) -> ASGIApp:
        """Return the ASGI application."""
        routes = [
            Route("/", self._first),
            Route("/enter/{secret}", self.door.enter),
            Route("/do", self._do, methods=["POST"]),
            Route("/answers/{digest}", self._answers),
            Route("/alive", self._alive),
            Route("/files/{name}", self._file),
            Route("/browser/{name}", self._script),
            Route("/{view}", self._view),
        ]
        failed = {Exception: self._failed}
        app = Starlette(routes=routes, lifespan=self._lifespan, exception_handlers=failed)
        return self.door.before(app)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> Any:
        tasks = [asyncio.create_task(working.warm())]
        if self.ended is not None:
            tasks.append(asyncio.create_task(self._end_when_alone()))
        yield
        self.answers.drop()
        for task in (*tasks, *self.running):
            task.cancel()
        await asyncio.gather(*tasks, *self.running, return_exceptions=True)

    async def _failed(self, _request: Request, error: Exception) -> Response:
        """Say where it failed, without a word of what was typed."""
        if not isinstance(error, ClientDisconnect):
            where = "".join(traceback.format_tb(error.__traceback__))
            sys.stderr.write(f"{where}{type(error).__name__}\n")
        return self.door.said(500, "this failed; the window that the program runs in says where")

    async def _end_when_alone(self) -> None:
        while (left := self._looked + _ALONE_AFTER - time.monotonic()) > 0 or self.running:
            await asyncio.sleep(max(left, 1.0))
        assert self.ended is not None
        self.ended()

    # --- what is looked at -----------------------------------------------------------------------

    async def _first(self, _request: Request) -> Response:
        view = "design" if self.keeper.draft.attributes else "start"
        return RedirectResponse(f"/{view}", 303, self.door.headers)

    async def _view(self, request: Request) -> Response:
        view = request.path_params["view"]
        if view not in (*VIEWS, *CHECKS):
            return self.door.said(404, "there is no such page")
        await importing.look(self, view)
        at, _, name = request.headers.get("hx-target", "").partition("-")
        job = self.jobs.get(name)
        ended: dict[str, Any] = {}
        if at == "at" and (job is None or not job.waits):
            # The page asked for progress, and there is none any more: all of the job is exchanged.
            ended = {"HX-Retarget": f"#job-{name}", "HX-Reselect": f"#job-{name}"}
        try:
            return self._shown(view, within=request.query_params.get("in", ""), **ended)
        except InputError as error:
            return self.door.said(404, str(error))

    @property
    def state(self) -> str:
        """A name for the draft, by which a page knows whether it shows this one."""
        return digest(self.keeper.draft.to_toml())

    def _shown(
        self, view: str, *, partial: bool = False, within: str = "", **headers: str
    ) -> Response:
        """Return a view; ``partial`` if only its answers, and what is wrong, are exchanged."""
        self._looked = time.monotonic()
        wish = self.understood()
        computing = self._compute(wish)
        said, self.said = self.said, {}
        content = page(self, view, wish, said, partial=partial, computing=computing, within=within)
        headers = {**self.door.headers, "X-Draft": self.state, **headers}
        return Response(content, 200, headers, "text/html; charset=utf-8")

    def _compute(self, wish: Wish) -> str:
        """Begin to compute what is wished, or else what is compared with it; return its digest."""
        if not wish.problems:
            for each in (wish, *(self.understood(pin) for pin in self.keeper.draft.pins)):
                if not each.problems and self.answers.known(each.digest) is None:
                    self.answers.want(each.digest, answers.answer, each)
                    return each.digest
        self.answers.drop()
        return ""

    async def _answers(self, request: Request) -> Response:
        """Answer when what was asked for is there; nothing if something else is wanted by then."""
        digest = request.path_params["digest"]
        self._compute(self.understood())
        if await self.answers.wait(digest, request.is_disconnected) is None:
            return Response(status_code=204, headers=self.door.headers)
        return self._shown("design", partial=True)

    async def _alive(self, _request: Request) -> Response:
        self._looked = time.monotonic()
        return JSONResponse({"draft": self.state}, 200, self.door.headers)

    async def _script(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ("htmx.min.js", "studio.js"):
            return self.door.said(404, "there is no such file")
        headers = {**self.door.headers, "Cache-Control": "no-cache"}
        return Response(read("deniable.studio", "browser", name), 200, headers, "text/javascript")

    # --- what is done ----------------------------------------------------------------------------

    async def _do(self, request: Request) -> Response:
        """Do a step, and show the page again."""
        form = await self.door.form(request)
        if form is None:
            return self.door.said(403, "this was not sent from the page; load it again")
        view = was = form.pop("view", "design")
        name, _, which = form.pop("do", "").partition(" ")
        step = STEPS.get(name)
        form |= {"which": which} if which else {}
        if name == view:
            self.filled[view] = form
        if view not in (*VIEWS, *CHECKS) or step is None:
            return self.door.said(400, "there is no such step")
        try:
            view = await step(Asked(self, form, request.is_disconnected)) or view
        except InputError as error:
            self.said = {form.get("at", "page"): str(error)}
        partial = request.headers.get("hx-target") == "answers"
        if request.headers.get("hx-request") or self.said:
            # The address stays that of the view; htmx would put that of the form there.
            address = {"HX-Push-Url": "false" if view == was else f"/{view}"}
            within = form.get("at", "") if name == "declare" else ""  # what is open stays open
            await importing.look(self, view)
            return self._shown(view, partial=partial, within=within, **address)
        # Without a script, the page cannot ask for the answer later.
        if name == "ask":
            await self.made(name, request.is_disconnected)
        wish = self.understood()
        self._compute(wish)
        if not wish.problems:
            await self.answers.wait(wish.digest, request.is_disconnected)
        return RedirectResponse(f"/{view}", 303, self.door.headers)

    async def _file(self, request: Request) -> Response:
        """Hand out a file that was asked for."""
        name, wish = request.path_params["name"], self.understood()
        if name in _REPORTS:
            return self._report(name)
        if name in ("answer.svg", "questionnaire.toml") and (self.cache / name).is_file():
            headers = self.door.headers if name == "answer.svg" else self.door.handed_out(name)
            return FileResponse(self.cache / name, 200, headers)
        answer = self.answers.known(wish.digest)
        if wish.problems or not answer or "mechanism" not in answer:
            return self.door.said(409, "there is no design yet; wait for it, or mend the wishes")
        makers: dict[str, Callable[[], str]] = {
            "schema.toml": partial(exports.schema_file, wish),
            "mechanism.json": lambda: answer["mechanism"],
            "design.sh": partial(exports.shell_script, wish),
            "design.py": partial(exports.python_program, wish),
            "summary.html": lambda: page(self, "summary", wish, {}),
        }
        if name not in makers:
            return self.door.said(404, "there is no such file")
        try:
            content = makers[name]()
        except InputError as error:
            return self.door.said(409, str(error))
        return Response(content, 200, self.door.handed_out(name), "application/octet-stream")

    def report(self, name: str = "report.html") -> Path | None:
        """Return the page beside what a command made: the report of the release, or that of
        synthetic copies; None if there is none."""
        job = self.jobs.get(_REPORTS[name])
        file = self.folder / (job.output if job else "") / name
        return file if job and job.status == 0 and job.output and file.is_file() else None

    def _report(self, name: str) -> Response:
        if (file := self.report(name)) is None:
            return self.door.said(409, "there is no such page yet")
        # The page has a policy of its own, which allows its style.
        headers = {k: v for k, v in self.door.headers.items() if k != "Content-Security-Policy"}
        return FileResponse(file, 200, headers, "text/html; charset=utf-8")
