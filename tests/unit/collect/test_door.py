"""The door of a page on this machine: the steward's page and the studio test it from outside."""

import asyncio
import json
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from deniable.collect.door import Door, new_secret
from unit.studio.asking import Browser


def behind(door: Door) -> Browser:
    """A page that gives back the form that was posted to it."""

    async def form(request: Request) -> Response:
        return JSONResponse(await door.form(request))

    routes = [Route("/", form, methods=["POST"]), Route("/enter/{secret}", door.enter)]
    return Browser(door.before(Starlette(routes=routes)))


def test_a_form_is_taken_with_its_token_and_up_to_its_length() -> None:
    async def look() -> None:
        door = Door(8123, "s", "name", "default-src 'none'", longest_form=200, token="t")
        browser = behind(door)
        assert (await browser.enter("s")).headers["set-cookie"].startswith("name=")
        for posted, taken in (
            ({"token": "t", "a": " é "}, {"a": "é"}),
            ({"token": "t", "a": ""}, {"a": ""}),
            ([("token", "t"), ("a", "1"), ("a", "2")], {"a": "2"}),
            ({"token": "t", "a": "x" * 200}, None),
            ({"token": "x", "a": "1"}, None),
            ({"a": "1"}, None),
        ):
            answer = await browser.ask("/", urlencode(posted).encode())
            assert json.loads(answer.body) == taken
        assert b"\xff" not in (await browser.ask("/", b"token=t&a=%ff\xff")).body

    asyncio.run(look())


def test_a_session_follows_from_the_token_and_is_lost_with_it() -> None:
    async def look() -> None:
        one, two, other = (Door(8123, "s", "name", "", token=t) for t in ("t", "t", ""))
        browser = behind(one)
        await browser.enter("s")
        for door, status in ((one, 405), (two, 405), (other, 403)):
            browser.app = behind(door).app
            assert (await browser.ask("/")).status == status

    asyncio.run(look())
    assert Door(1, "s", "n", "").token != Door(1, "s", "n", "").token


def test_a_secret_has_256_bits_and_is_another_every_time() -> None:
    secrets = {new_secret() for _ in range(20)}
    assert len(secrets) == 20
    assert {len(secret) for secret in secrets} == {64}


def test_a_file_is_handed_out_under_its_name() -> None:
    headers = Door(1, "s", "n", "default-src 'none'").handed_out("a.csv")
    assert headers["Content-Disposition"] == 'attachment; filename="a.csv"'
    assert headers["Content-Security-Policy"] == "default-src 'none'"
