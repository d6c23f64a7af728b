"""The steward's listener: on this machine alone, for whoever knows the secret.

It shares nothing with the public one but the store. A page elsewhere on the web that leads the
steward's browser here gets nothing: the address has to be this machine's by name or number (so that
no other name can be made to point here), requests from other sites are refused, and the cookie is
sent with none of them.
"""

import asyncio
import hmac
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from deniable.collect.collector import HEADERS
from deniable.collect.folder import StudyFolder
from deniable.collect.steward_page import POLICY, steward_page
from deniable.collect.store import Store, Totals
from deniable.collect.watching import Shown, Watch
from deniable.errors import InputError
from deniable.estimate.consistency import Origin
from deniable.mechanism.prediction import Target
from deniable.randomness import SystemRandomness

_HEADERS = {
    **HEADERS,
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": POLICY,
}


class Steward:
    """The steward's part of a study's server.

    Args:
        folder: the study's.
        store: its store.
        port: where it listens, on this machine.
    """

    def __init__(self, folder: StudyFolder, store: Store, port: int) -> None:
        self.watch = Watch(folder, store)
        self._secret = folder.secret
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        # Another in every process: who has seen an old cookie has nothing. Cookies are shared by
        # all ports of a machine, so each study has a name of its own.
        self._session = SystemRandomness().bits(np.uint64, 4).tobytes().hex()
        self._cookie = f"steward-{folder.study.identity[:16]}"
        self._counter = ThreadPoolExecutor(1, "counter")

    def app(self) -> ASGIApp:
        """Return the ASGI application."""
        routes = [
            Route("/", self._look),
            Route("/enter/{secret}", self._enter),
        ]
        inside = Starlette(routes=routes, lifespan=self._lifespan)

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            refused = self._refused(Request(scope)) if scope["type"] == "http" else None
            await (refused or inside)(scope, receive, send)

        return guarded

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> Any:
        yield
        self._counter.shutdown()

    def _refused(self, request: Request) -> Response | None:
        """Refuse what another site may have sent, before anything else is looked at."""
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return _said(421, "this page has its address on this machine alone")
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "none")
        if origin not in (None, f"http://{host}") or site not in ("none", "same-origin"):
            return _said(403, "requests come from the steward's own page, or are typed")
        return None

    async def _enter(self, request: Request) -> Response:
        given = str(request.path_params["secret"])
        if not hmac.compare_digest(given.encode(), self._secret.encode()):
            return _said(403, "this is not the steward's address")
        answer = RedirectResponse("/", 303, headers=_HEADERS)
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path="/")
        return answer

    async def _look(self, request: Request) -> Response:
        given = request.cookies.get(self._cookie, "")
        if not hmac.compare_digest(given.encode(), self._session.encode()):
            return _said(403, "come in by the address that deniable collect serve has printed")
        asked = request.query_params
        study = self.watch.folder.study
        first = study.plain["questions"][0]["column"]
        of = [name for name in (asked.get("of") or first, asked.get("and")) if name]
        target: Target = "table" if asked.get("target") == "table" else "population"
        precision = asked.get("precision", "2").strip().replace(",", ".")
        problem = ""
        if not _is_precision(precision):
            problem = "the precision is a number of percentage points, from 0.0001 to 100"
            precision = "2"
        counting = self._counter.submit(self._counted, of, target)
        try:
            totals, shown, origin, problem_seen = await asyncio.wrap_future(counting)
        except SQLAlchemyError:
            return _said(503, "the store does not answer; try again")
        content = steward_page(
            study,
            totals,
            of=of,
            target=target,
            precision=precision,
            shown=shown,
            origin=origin,
            problem=problem or problem_seen,
        )
        return Response(content, 200, _HEADERS, "text/html; charset=utf-8")

    def _counted(
        self, of: list[str], target: Target
    ) -> tuple[Totals, Shown | None, Origin | None, str]:
        totals = self.watch.totals()
        if not totals.records:
            return totals, None, None, "Nothing has been collected yet."
        try:
            return totals, self.watch.table(of, target), self.watch.origin(), ""
        except InputError as error:
            return totals, None, self.watch.origin(), str(error)


def _is_precision(text: str) -> bool:
    try:
        return 1e-4 <= float(text) <= 100
    except ValueError:
        return False


def _said(status: int, sentence: str) -> Response:
    return Response(sentence + "\n", status, _HEADERS, "text/plain; charset=utf-8")
