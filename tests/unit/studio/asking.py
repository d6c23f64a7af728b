"""Asks a listener in this process, as a browser would."""

import asyncio
import multiprocessing
import re
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

from starlette.types import ASGIApp

from deniable.studio import answers, working
from deniable.studio.draft import Draft, Keeper
from deniable.studio.place import Place
from deniable.studio.server import Studio

PORT = 8123
SECRET = "0123456789abcdef" * 4
HTMX = {"HX-Request": "true"}
PARTIAL = {**HTMX, "HX-Target": "answers"}

SCHEMA = {
    "attribute": [
        {"name": "smokes", "categories": ["no", "yes"]},
        {"name": "drinks", "categories": ["never", "sometimes", "often"]},
    ]
}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Browser:
    """Has the cookie after `enter`, and the token that stands in the page's forms."""

    def __init__(self, app: ASGIApp, port: int = PORT) -> None:
        self.app, self.own, self.token = app, {"Host": f"127.0.0.1:{port}"}, ""
        self.is_gone = asyncio.Event()

    async def ask(
        self, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        path, _, query = path.partition("?")
        given = {**self.own, **(headers or {})}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET" if body is None else "POST",
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in given.items()],
        }
        sent: list[Any] = []
        parts = [{"type": "http.request", "body": body or b"", "more_body": False}]

        async def receive() -> Any:
            if not parts:
                await self.is_gone.wait()
                return {"type": "http.disconnect"}
            return parts.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        try:
            await self.app(scope, receive, send)
        except Exception:  # which the server would log
            if not sent:
                raise
        head = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], head, b"".join(each.get("body", b"") for each in sent))

    async def enter(self, secret: str = SECRET) -> Answer:
        answer = await self.ask(f"/enter/{secret}")
        if "set-cookie" in answer.headers:
            self.own["Cookie"] = answer.headers["set-cookie"].split(";")[0]
        return answer

    async def do(self, step: str, headers: Mapping[str, str] | None = None, **form: str) -> Answer:
        """Post a step, with htmx's headers if no others are given."""
        if not self.token:
            page = (await self.ask("/start")).text
            self.token = re.findall(r'name="token" value="(\w+)"', page)[0]
        form = {"token": self.token, "do": step, **form}
        return await self.ask("/do", urlencode(form).encode(), HTMX if headers is None else headers)


class Fake:
    """Computes in this process, when `go` is set, and counts."""

    def __init__(self) -> None:
        self.go, self.begun, self.ended = asyncio.Event(), 0, 0
        self.go.set()

    async def __call__(self, function: Any, *given: Any) -> Any:
        self.begun += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended += 1
            raise
        return function(*given)


def studio(folder: Path, draft: Draft | None = None, **options: Any) -> tuple[Studio, Fake]:
    """A studio of two questions, which computes in this process."""
    keeper = Keeper(folder / "draft.studio.toml", draft or Draft(SCHEMA, {"epsilon": "2"}))
    cache = folder / "cache"
    cache.mkdir(exist_ok=True)
    made, fake = Studio(keeper, Place(folder, cache, SECRET, PORT), **options), Fake()
    made.answers = working.Answers(fake)
    return made, fake


async def inside(folder: Path, **options: Any) -> tuple[Browser, Studio, Fake]:
    """Whoever has come in."""
    made, fake = studio(folder, **options)
    browser = Browser(made.app())
    await browser.enter()
    return browser, made, fake


def answer_of(made: Studio) -> Any:
    """What is told of a studio's request."""
    return answers.answer(made.design_request())


def processes() -> list[BaseProcess]:
    """Return the processes that compute for a studio; joblib keeps others for later."""
    return [
        each
        for each in multiprocessing.active_children()
        if type(each).__name__ == "ForkServerProcess"
    ]
