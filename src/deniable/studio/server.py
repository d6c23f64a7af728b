"""HTTP routes of the studio."""

import asyncio
import copy
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
from deniable.studio.draft import Draft, Keeper, OutdatedError, Sketch
from deniable.studio.page import CHECKS, POLICY, VIEWS, page
from deniable.studio.place import Place
from deniable.studio.request import DraftRequest
from deniable.studio.sentences import translated
from deniable.studio.state import LANGUAGES, State
from deniable.studio.steps import REPEATED, STEPS, UNTIED, Post

_LONGEST_FORM = 4_000_000
"""Bytes that a form may have: the names of a thousand columns, and their categories."""

_CHANGED = (
    "the draft has been changed elsewhere; this is its present state, and the step was not taken: "
    "press it again"
)

_ALONE_AFTER = 3600.0
"""Seconds without a page after which the studio ends."""


_REPORTS = {"report.html": "release", "about.html": "estimate"}
"""Pages written next to outputs, and the names of their jobs."""


class Studio(State):
    """The page, a function of the state."""

    def __init__(
        self,
        keeper: Keeper,
        place: Place,
        ended: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(keeper, place)
        self.ended = ended
        self._made_by: dict[str, str] = {}
        """The state of the draft that each page has made last."""
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
        """Report the failure without typed values."""
        if not isinstance(error, ClientDisconnect):
            where = "".join(traceback.format_tb(error.__traceback__))
            sys.stderr.write(f"{where}{type(error).__name__}\n")
        return self._said(500, "this failed; see the terminal of the program for details")

    def _said(self, status: int, sentence: str) -> Response:
        """Return an answer of one sentence, in the page's language if it is there."""
        text = translated(sentence, self.language)
        answer = self.door.said(status, text or sentence)
        answer.headers["Content-Language"] = self.language if text else LANGUAGES[0]
        return answer

    async def _end_when_alone(self) -> None:
        while (left := self._looked + _ALONE_AFTER - time.monotonic()) > 0 or self.running:
            await asyncio.sleep(max(left, 1.0))
        assert self.ended is not None
        self.ended()

    # --- views ----------------------------------------------------------------------------

    async def _first(self, _request: Request) -> Response:
        view = "design" if self.keeper.draft.attributes else "start"
        return RedirectResponse(f"/{view}", 303, self.door.headers)

    async def _view(self, request: Request) -> Response:
        view = request.path_params["view"]
        if view not in (*VIEWS, *CHECKS):
            return self._said(404, "there is no such page")
        await importing.look(self, view)
        at, _, name = request.headers.get("hx-target", "").partition("-")
        job = self.jobs.get(name)
        ended: dict[str, Any] = {}
        if at == "at" and (job is None or not job.waits):
            # A request for progress of a finished job: replace the whole job.
            ended = {"HX-Retarget": f"#job-{name}", "HX-Reselect": f"#job-{name}"}
        try:
            return self._shown(view, within=request.query_params.get("in", ""), **ended)
        except InputError as error:
            return self._said(404, str(error))

    def _shown(
        self,
        view: str,
        *,
        partial: bool = False,
        within: str = "",
        mine: Draft | None = None,
        **headers: str,
    ) -> Response:
        """Return a view; ``partial``: only results and problems are replaced; with the rejected
        draft if the saved one was changed elsewhere."""
        self._looked = time.monotonic()
        self.keeper.look()
        wanted = self.design_request()
        computing = self._compute(wanted)
        said, self.said = self.said, {}
        solved_for, sentence = self.solved
        if solved_for == self.state:
            said = {**said, "solve": sentence}
        content = page(
            self,
            view,
            wanted,
            said,
            partial=partial,
            computing=computing,
            within=within,
            mine=mine,
        )
        self.typed = {}
        headers = {**self.door.headers, "X-Draft": self.state, **headers}
        return Response(content, 200, headers, "text/html; charset=utf-8")

    def _compute(self, wanted: DraftRequest) -> str:
        """Start computing the request, or else a compared one; return its digest."""
        if not wanted.problems:
            for each in (wanted, *(self.design_request(pin) for pin in self.keeper.draft.pins)):
                if not each.problems and self.answers.known(each.digest) is None:
                    self.answers.want(each.digest, answers.answer, each)
                    return each.digest
        self.answers.drop()
        return ""

    async def _answers(self, request: Request) -> Response:
        """Respond with the result; empty if the request has changed meanwhile."""
        digest = request.path_params["digest"]
        self._compute(self.design_request())
        if await self.answers.wait(digest, request.is_disconnected) is None:
            return Response(status_code=204, headers=self.door.headers)
        return self._shown("design", partial=True)

    async def _alive(self, _request: Request) -> Response:
        self._looked = time.monotonic()
        self.keeper.look()
        return JSONResponse({"draft": self.state}, 200, self.door.headers)

    async def _script(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ("htmx.min.js", "studio.js"):
            return self._said(404, "there is no such file")
        headers = {**self.door.headers, "Cache-Control": "no-cache"}
        return Response(read("deniable.studio", "browser", name), 200, headers, "text/javascript")

    # --- steps ----------------------------------------------------------------------------------

    async def _do(self, request: Request) -> Response:
        """Do a step, and show the page again."""
        form = await self.door.form(request)
        if form is None:
            return self._said(403, "this was not sent from the page; load it again")
        view = was = form.pop("view", "design")
        shown, by = form.pop("draft", ""), form.pop("tab", "")
        name, _, which = form.pop("do", "").partition(" ")
        step = STEPS.get(name)
        form |= {"which": which} if which else {}
        if name == view:
            self.filled[view] = form
        if view not in (*VIEWS, *CHECKS) or step is None:
            return self._said(400, "there is no such step")
        self.keeper.look()
        tied = name not in UNTIED or any(control.startswith("w.") for control in form)
        is_shown = not shown or not tied or self.state in (shown, self._made_by.get(by))
        mine = None
        try:
            if is_shown:
                view = await step(Post(self, form, request.is_disconnected)) or view
            elif name in REPEATED:
                raise InputError(_CHANGED)
            else:
                mine = await self._sketched(name, form, shown, request)
        except OutdatedError as error:
            mine = error.mine
        except InputError as error:
            self.said = {form.get("at", "page"): str(error)}
        if by:
            self._made_by = {**dict(list(self._made_by.items())[-63:]), by: self.state}
        htmx = request.headers.get("hx-request")
        partial = request.headers.get("hx-target") == "answers" and mine is None
        if htmx or self.said or mine or name == "solve":
            # The address stays that of the view; htmx would put that of the form there.
            address = {"HX-Push-Url": "false" if view == was else f"/{view}"}
            if mine:
                whole = {"HX-Retarget": "#body", "HX-Reselect": "#body", "HX-Reswap": "outerHTML"}
                address |= whole
            within = form.get("at", "") if name in ("declare", "speak") else ""  # stays open
            await importing.look(self, view)
            return self._shown(view, partial=partial, within=within, mine=mine, **address)
        # Without JavaScript the page cannot fetch the result later.
        if name == "estimate":
            await self.made(name, request.is_disconnected)
        wanted = self.design_request()
        self._compute(wanted)
        if not wanted.problems:
            await self.answers.wait(wanted.digest, request.is_disconnected)
        return RedirectResponse(f"/{view}", 303, self.door.headers)

    async def _sketched(
        self, name: str, form: dict[str, str], shown: str, request: Request
    ) -> Draft | None:
        """Return the step's draft from the draft shown on its page, changed since; None if the step
        changes nothing."""
        base = self.keeper.earlier(shown)
        if base is None:
            if not any(control.startswith("w.") for control in form):
                self.typed = {f"f-{field}": text for field, text in form.items()}
                raise InputError(_CHANGED)
            base, name = self.keeper.draft, "wanted"
        aside = copy.copy(self)
        aside.keeper = Sketch(self.keeper.path, base)
        step = STEPS["update" if name == "solve" else name]
        await step(Post(aside, form, request.is_disconnected))
        self.language, mine = aside.language, aside.keeper.draft
        return None if mine in (base, self.keeper.draft) else mine

    async def _file(self, request: Request) -> Response:
        """Serve a file."""
        name, wanted = request.path_params["name"], self.design_request()
        if name in _REPORTS:
            return self._report(name)
        if name in ("answer.svg", "questionnaire.toml") and (self.cache / name).is_file():
            headers = self.door.headers if name == "answer.svg" else self.door.handed_out(name)
            return FileResponse(self.cache / name, 200, headers)
        answer = self.answers.known(wanted.digest)
        if wanted.problems or not answer or "mechanism" not in answer:
            return self._said(409, "there is no design yet; wait for it, or correct the request")
        makers: dict[str, Callable[[], str]] = {
            "schema.toml": partial(exports.schema_file, wanted),
            "mechanism.json": lambda: answer["mechanism"],
            "design.sh": partial(exports.shell_script, wanted),
            "design.py": partial(exports.python_program, wanted),
            "summary.html": lambda: page(self, "summary", wanted, {}),
        }
        if name not in makers:
            return self._said(404, "there is no such file")
        try:
            content = makers[name]()
        except InputError as error:
            return self._said(409, str(error))
        return Response(content, 200, self.door.handed_out(name), "application/octet-stream")

    def report(self, name: str = "report.html") -> Path | None:
        """Return the report of a release or of synthetic copies; None if there is none."""
        job = self.jobs.get(_REPORTS[name])
        file = self.folder / (job.output if job else "") / name
        return file if job and job.status == 0 and job.output and file.is_file() else None

    def _report(self, name: str) -> Response:
        if (file := self.report(name)) is None:
            return self._said(409, "there is no such page yet")
        # The page has a policy of its own, which allows its style.
        headers = {k: v for k, v in self.door.headers.items() if k != "Content-Security-Policy"}
        return FileResponse(file, 200, headers, "text/html; charset=utf-8")
