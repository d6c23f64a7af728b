"""Public HTTP routes of a study: the page, randomized records, withdrawals.

`openapi.json` in this folder is the contract. Requests and addresses are not logged.
"""

import asyncio
import hashlib
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from deniable.collect.limits import Limiter, address_of
from deniable.collect.page import HEADERS, page_bytes, policy
from deniable.collect.store import Outcome, Store, Submission
from deniable.collect.study import Study
from deniable.strict_json import from_json

GROUP = 512
"""Most submissions in one transaction."""

GATHERING, LONGEST_GATHERING = 0.001, 0.005
"""Seconds without another submission after which a group is written, and the most it waits: one
flush of the disk serves the group, and takes longer than either."""

WAITING = 4096
"""Largest queue of submissions; above it, status 503."""

SLOWEST = 10.0
"""Time limit of a body, in seconds."""

LEAST_SPACE = 64 << 20
"""Free bytes on the disk below which the server is not ready."""

_STATUS = {
    Outcome.STORED: 201,
    Outcome.SAME: 200,
    Outcome.OTHER: 409,
    Outcome.SPENT: 409,
    Outcome.GONE: 409,
    Outcome.UNKNOWN: 403,
    Outcome.CLOSED: 410,
}


class _SubmissionBody(msgspec.Struct, forbid_unknown_fields=True):
    study: str
    token: str
    receipt: str
    record: str


class _WithdrawalBody(msgspec.Struct, forbid_unknown_fields=True):
    study: str
    receipt: str


class RefusedError(Exception):
    """A rejected request: status, sentence and headers of the response."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers


def submission_of(study: Study, body: bytes) -> Submission:
    """Return the submission in a request's body."""
    try:
        sent = from_json(body, _SubmissionBody)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RefusedError(422, "the body is not a submission") from None
    if sent.study != study.identity:
        raise RefusedError(422, "the submission is for another study")
    if not _is_hex(sent.receipt, 64):
        raise RefusedError(422, "the receipt's hash is not 64 hexadecimal digits")
    if sent.token != "" if study.open_to_all else not _is_hex(sent.token, 32):
        raise RefusedError(422, "the token is not one of this study")
    try:
        study.decode(sent.record)
    except ValueError as error:
        raise RefusedError(422, str(error)) from None
    packed = bytes.fromhex(sent.record + "0" * (len(sent.record) % 2))
    return Submission(bytes.fromhex(sent.receipt), packed, sent.token)


def submission_size(study: Study) -> int:
    """Return the bytes of a submission: the same for every one of a study."""
    token = "" if study.open_to_all else "0" * 32
    whole = _SubmissionBody("0" * 64, token, "0" * 64, "0" * sum(study.digits))
    return len(msgspec.json.encode(whole))


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and not text.strip("0123456789abcdef")


def today() -> date:
    """Return the day by which a study closes: the date in the last time zone (UTC−12)."""
    return datetime.fromtimestamp(time.time() - 12 * 3600, UTC).date()


class Collector:
    """The public part of a study's server."""

    def __init__(
        self,
        study: Study,
        store: Store,
        *,
        folder: Path | None = None,
        hops: int = 0,
        per_minute: int = 600,
    ) -> None:
        self.study, self.store, self.folder, self.hops = study, store, folder, hops
        self._page = page_bytes(study)
        self._etag = f'"{hashlib.sha256(self._page).hexdigest()}"'
        self._policy = policy()
        self._size = submission_size(study)
        self._limiter = Limiter(per_minute)
        self._waiting: asyncio.Queue[tuple[Submission, asyncio.Future[Outcome | None]]]
        self._writer = ThreadPoolExecutor(1, "writer")

    def app(self) -> ASGIApp:
        """Return the ASGI application."""
        routes = [
            Route("/", self._get_page),
            Route("/study.json", self._get_study),
            Route("/healthz", self._get_health),
            Route("/readyz", self._get_ready),
        ]
        handed_out = Starlette(routes=routes, lifespan=self._lifespan)
        taken = {"/submissions": self._submit, "/withdrawals": self._withdraw}

        # Submissions bypass the framework, which would cost more than all of this handling.
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            take = taken.get(scope.get("path", ""))
            if take is None:
                await handed_out(scope, receive, send)
                return
            try:
                self._check_sender(scope)
                answer = await take(receive)
            except RefusedError as refusal:
                answer = _json(refusal.status, {"error": refusal.sentence}, refusal.headers)
            except ClientDisconnect:
                return
            await answer(scope, receive, send)

        return application

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> Any:
        self._waiting = asyncio.Queue(WAITING)
        writing = asyncio.create_task(self._write())
        yield
        # Accepted submissions are written before the end.
        await self._waiting.join()
        writing.cancel()
        self._writer.shutdown()

    # --- page and state --------------------------------------------------------------------------

    def _fixed(
        self, request: Request, content: bytes, kind: str, etag: str, **more: str
    ) -> Response:
        headers = {**HEADERS, **more, "ETag": etag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    async def _get_page(self, request: Request) -> Response:
        more = {"Content-Security-Policy": self._policy, "X-Frame-Options": "DENY"}
        return self._fixed(request, self._page, "text/html; charset=utf-8", self._etag, **more)

    async def _get_study(self, request: Request) -> Response:
        etag = f'"{self.study.identity}"'
        return self._fixed(request, self.study.content, "application/json", etag)

    async def _get_health(self, _request: Request) -> Response:
        return _json(200, {"status": "running"})

    async def _get_ready(self, _request: Request) -> Response:
        try:
            ended = await asyncio.get_running_loop().run_in_executor(None, self.store.is_closed)
        except SQLAlchemyError:
            return _json(503, {"status": "the store is not available"})
        if self.folder is not None and shutil.disk_usage(self.folder).free < LEAST_SPACE:
            return _json(503, {"status": "the disk is nearly full"})
        closed = ended or today() > self.study.closes
        return _json(200, {"status": "closed" if closed else "open"})

    # --- submissions and withdrawals -------------------------------------------------------------

    def _check_sender(self, scope: Scope) -> None:
        if scope["method"] != "POST":
            raise RefusedError(405, "use POST", Allow="POST")
        headers = dict(scope["headers"])
        origin = headers.get(b"origin")
        same = origin is None or origin.partition(b"://")[2] == headers.get(b"host")
        site = headers.get(b"sec-fetch-site", b"same-origin")
        if not same or site not in (b"same-origin", b"none"):
            raise RefusedError(400, "requests come from the study's own page")
        peer = scope["client"][0] if scope.get("client") else ""
        if self.hops:
            forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
            peer = address_of(peer, [value.decode("latin-1") for value in forwarded], self.hops)
        if not self._limiter.allows(peer, time.monotonic()):
            raise RefusedError(
                429, "too many requests; try again in a minute", **{"Retry-After": "60"}
            )
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise RefusedError(415, "the body should be application/json")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._size:
            raise _too_large()

    async def _body(self, receive: Receive) -> bytes:
        """Read a body, and reject it as soon as it is too long."""
        received = b""
        try:
            async with asyncio.timeout(SLOWEST):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    received += message.get("body", b"")
                    if len(received) > self._size:
                        raise _too_large()
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RefusedError(408, "the body came too slowly", Connection="close") from None
        return received

    async def _submit(self, receive: Receive) -> Response:
        sent = submission_of(self.study, await self._body(receive))
        answer: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        try:
            self._waiting.put_nowait((sent, answer))
        except asyncio.QueueFull:
            raise _busy() from None
        outcome = await answer
        if outcome is None:
            raise _busy()
        return _ANSWERS[outcome]

    async def _withdraw(self, receive: Receive) -> Response:
        body = await self._body(receive)
        try:
            sent = from_json(body, _WithdrawalBody)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise RefusedError(422, "the body is not a withdrawal") from None
        if sent.study != self.study.identity or not _is_hex(sent.receipt, 32):
            raise RefusedError(422, "the receipt is not one of this study")
        loop = asyncio.get_running_loop()
        try:
            outcome = await loop.run_in_executor(
                self._writer, self.store.withdraw, sent.receipt, today()
            )
        except SQLAlchemyError:
            raise _busy() from None
        if outcome is Outcome.NO_RECEIPT:
            raise RefusedError(404, outcome.value)
        # Repeating a withdrawal succeeds: the first response may have been lost.
        before = "" if outcome is Outcome.STORED else " before"
        return _json(200, {"status": f"withdrawn{before}"})

    async def _write(self) -> None:
        """Commit submissions in groups, and resolve their results."""
        loop = asyncio.get_running_loop()
        while True:
            group = [await self._waiting.get()]
            latest = loop.time() + LONGEST_GATHERING
            while len(group) < GROUP:
                if self._waiting.empty() and loop.time() < latest:
                    await asyncio.sleep(GATHERING)
                if self._waiting.empty():
                    break
                group.append(self._waiting.get_nowait())
            outcomes: list[Outcome | None]
            try:
                taken = [each for each, _ in group]
                outcomes = [
                    *await loop.run_in_executor(self._writer, self.store.submit, taken, today())
                ]
            except Exception:  # the group is not acknowledged; the next one may succeed
                outcomes = [None] * len(group)
            for (_, answer), outcome in zip(group, outcomes, strict=True):
                if not answer.done():  # the client may have disconnected
                    answer.set_result(outcome)
                self._waiting.task_done()


def _too_large() -> RefusedError:
    return RefusedError(413, "the body is larger than any of this study", Connection="close")


def _busy() -> RefusedError:
    return RefusedError(503, "nothing was stored; try again", **{"Retry-After": "5"})


def _json(status: int, content: dict[str, str], headers: dict[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(content),
        status,
        {**HEADERS, **(headers or {})},
        "application/json",
    )


_ANSWERS = {
    outcome: _json(status, {("status" if status < 300 else "error"): outcome.value})
    for outcome, status in _STATUS.items()
}
