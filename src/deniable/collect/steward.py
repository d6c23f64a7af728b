"""The steward's listener, on this machine only, with a secret address.

It shares only the store with the public one.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from deniable.collect.door import Door
from deniable.collect.folder import StudyFolder
from deniable.collect.inviting import invite
from deniable.collect.page import page_bytes
from deniable.collect.releasing import export
from deniable.collect.steward_page import POLICY, steward_page
from deniable.collect.store import Store, explained
from deniable.collect.watching import Batch, Shown, Watch
from deniable.errors import InputError
from deniable.mechanism.prediction import Target
from deniable.randomness import SystemRandomness


class Steward:
    """The steward's part of a study's server."""

    def __init__(self, folder: StudyFolder, store: Store, port: int) -> None:
        self.folder, self.store = folder, store
        self.watch = Watch(folder, store)
        name = f"steward-{folder.study.identity[:16]}"
        self._door = Door(port, folder.secret, name, POLICY)
        self._counter = ThreadPoolExecutor(1, "counter")

    def app(self) -> ASGIApp:
        """Return the ASGI application."""
        routes = [
            Route("/", self._page),
            Route("/enter/{secret}", self._door.enter),
            Route("/study.json", self._download),
            Route("/page.html", self._download),
            Route("/close", self._close, methods=["POST"]),
            Route("/invite", self._invite, methods=["POST"]),
            Route("/export", self._export, methods=["POST"]),
        ]
        return self._door.before(Starlette(routes=routes, lifespan=self._lifespan))

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> Any:
        yield
        self._counter.shutdown()

    async def _page(self, request: Request, problem: str = "") -> Response:
        asked = request.query_params
        study = self.folder.study
        first = study.plain["questions"][0]["column"]
        of = [name for name in (asked.get("of") or first, asked.get("and")) if name]
        target: Target = "table" if asked.get("target") == "table" else "population"
        precision = asked.get("precision", "2").strip().replace(",", ".")
        status = 409 if problem else 200
        if not _is_precision(precision):
            problem = "the precision is a number of percentage points, from 0.0001 to 100"
            precision = "2"
        counting = self._counter.submit(self._counted, of, target)
        try:
            is_closed, batch, shown, problem_seen = await asyncio.wrap_future(counting)
        except SQLAlchemyError:
            return self._door.said(503, "the store is not available; try again")
        content = steward_page(
            study,
            batch,
            is_closed=is_closed,
            token=self._door.token,
            of=of,
            target=target,
            precision=precision,
            shown=shown,
            problem=problem or problem_seen,
        )
        return Response(content, status, self._door.headers, "text/html; charset=utf-8")

    def _counted(
        self, of: list[str], target: Target
    ) -> tuple[bool, Batch | None, Shown | None, str]:
        is_closed, batch = self.store.is_closed(), None
        try:
            batch = self.watch.batch()
            if batch is None or not batch.totals.records:
                return is_closed, batch, None, ""
            shown = batch.table(of, target)
            _ = batch.origin  # counted here, not while the page is rendered
            return is_closed, batch, shown, ""
        except InputError as error:
            return is_closed, batch, None, str(error)

    # --- steps and downloads ---------------------------------------------------------------------

    async def _download(self, request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        study = self.folder.study
        content = study.content if name == "study.json" else page_bytes(study)
        return Response(content, 200, self._door.handed_out(name), "application/octet-stream")

    async def _done(self, request: Request, what: Callable[[dict[str, str]], Response]) -> Response:
        """Handle a posted form, one at a time with counts and exports."""
        form = await self._door.form(request)
        if form is None:
            return self._door.said(403, "this was not sent from the page; load it again")

        def work() -> Response:
            with explained(self.folder.url):
                return what(form)

        try:
            return await asyncio.wrap_future(self._counter.submit(work))
        except InputError as error:
            return await self._page(request, str(error))

    async def _close(self, request: Request) -> Response:
        def close(form: dict[str, str]) -> Response:
            if form.get("sure") != "yes":
                raise InputError("the study was not closed: tick the box first")
            self.store.close()
            return RedirectResponse("/", 303, self._door.headers)

        return await self._done(request, close)

    async def _invite(self, request: Request) -> Response:
        def make(form: dict[str, str]) -> Response:
            count, url = form.get("count", ""), form.get("url", "")
            if not (count.isascii() and count.isdigit() and len(count) < 9):
                raise InputError("no links were made: the number of people is a whole number")
            if not url.startswith(("http://", "https://")):
                raise InputError("no links were made: give the study's address, http(s)://…")
            with tempfile.TemporaryDirectory() as place:
                links = Path(place) / "links.csv"
                invite(self.folder, int(count), url, links)
                content = links.read_bytes()
            return Response(
                content, 200, self._door.handed_out("links.csv"), "text/csv; charset=utf-8"
            )

        return await self._done(request, make)

    async def _export(self, request: Request) -> Response:
        def make(_form: dict[str, str]) -> Response:
            place = tempfile.mkdtemp()
            try:
                command = f"deniable collect export {self.folder.path.name} --output release"
                release = Path(place) / "release"
                export(self.folder, release, SystemRandomness(), command=command)
                packed = shutil.make_archive(str(release), "zip", place, "release")
            except BaseException:
                shutil.rmtree(place)
                raise
            gone = BackgroundTask(shutil.rmtree, place)
            return FileResponse(packed, 200, self._door.handed_out("release.zip"), background=gone)

        return await self._done(request, make)


def _is_precision(text: str) -> bool:
    try:
        return 1e-4 <= float(text) <= 100
    except ValueError:
        return False
