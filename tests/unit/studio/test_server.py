"""The listener of the studio, asked in this process: who is let in, and what is answered."""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deniable.studio import server, steps
from deniable.studio.draft import Draft
from deniable.studio.place import Place
from unit.studio.asking import HTMX, PARTIAL, PORT, SECRET, Browser, inside, studio


def test_only_who_has_the_address_is_let_in(tmp_path: Path) -> None:
    async def look() -> None:
        made, _ = studio(tmp_path)
        browser = Browser(made.app())
        for path in ("/", "/design", "/alive", "/files/schema.toml", "/browser/studio.js"):
            assert (await browser.ask(path)).status == 403
        assert (await browser.ask("/do", b"do=undo")).status == 403
        for secret in (SECRET[:-1] + "0", "%C3%A9", "x/y"):
            answer = await browser.enter(secret)
            assert answer.status in (403, 404)
            assert "set-cookie" not in answer.headers
        answer = await browser.enter()
        assert (answer.status, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
        assert SECRET not in cookie
        assert (await browser.ask("/design")).status == 200
        browser.own["Cookie"] = browser.own["Cookie"][:-1] + "x"
        assert (await browser.ask("/design")).status == 403

    asyncio.run(look())


def test_another_site_gets_nothing_and_changes_nothing(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        before = made.keeper.draft
        own = f"http://127.0.0.1:{PORT}"
        for headers, status in (
            ({"Host": "evil.example"}, 421),
            ({"Host": "127.0.0.1:1"}, 421),
            ({"Host": ""}, 421),
            ({"Origin": "https://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": own, "Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403),
        ):
            assert (await browser.ask("/design", headers=headers)).status == status
            assert (await browser.do("example", headers)).status == status
        for token in ("", "0" * 64, "é"):
            assert (await browser.do("wish", token=token, **{"w.epsilon": "9"})).status == 403
        large = "x" * server._LONGEST_FORM
        assert (await browser.do("wish", **{"w.epsilon": large})).status == 403
        assert made.keeper.draft is before
        headers = {"Origin": own, "Sec-Fetch-Site": "same-origin", **HTMX}
        assert (await browser.do("wish", headers, **{"w.epsilon": "3"})).status == 200
        assert made.keeper.draft.wish["epsilon"] == "3"

    asyncio.run(look())


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "secret.csv"
    outside.write_text("a,b\n1,2\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.csv").symlink_to(outside)

    async def look() -> None:
        browser, made, _ = await inside(folder)
        for path in ("/do", "/nothing", "/files/nothing", "/files/..%2Fx", "/browser/studio.css"):
            assert (await browser.ask(path)).status in (404, 405, 409)
        for place in ("../..", "/etc", "..%2f"):
            answer = await browser.ask(f"/start?in={place}")
            assert answer.status == 404
            assert "is not in the folder that this page may look into" in answer.text
        assert (await browser.do("nothing")).status == 400
        assert (await browser.do("undo", view="nothing")).status == 400
        for name in ("../secret.csv", str(outside), "link.csv"):
            answer = await browser.do(f"open {name}", view="start")
            assert "is not in the folder that this page may look into" in answer.text
        assert made.keeper.draft.table == ""
        for name in ("schema.toml", "answer.svg", "report.html"):
            assert (await browser.ask(f"/files/{name}")).status == 409

    asyncio.run(look())


def test_nothing_runs_but_the_two_scripts(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        await browser.ask(f"/answers/{made.understood().digest}")
        for view in server.VIEWS:
            answer = await browser.ask(f"/{view}")
            policy = answer.headers["content-security-policy"]
            assert "unsafe" not in policy
            assert "script-src 'self';" in policy
            assert "default-src 'none'" in policy
            assert answer.headers["cache-control"] == "no-store"
            scripts = re.findall(r"<script.*?</script>", answer.text)
            assert len(scripts) == 2
            assert all(
                re.fullmatch(r'<script src="/browser/.*" defer></script>', s) for s in scripts
            )
            assert not re.search(
                r"\son\w+=|\sstyle=|javascript:|https?://(?!www.w3.org)", answer.text
            )
        for script in ("htmx.min.js", "studio.js"):
            answer = await browser.ask(f"/browser/{script}")
            assert answer.headers["content-type"].startswith("text/javascript")
        assert len((await browser.ask("/browser/studio.js")).body) <= 10_000

    asyncio.run(look())


def test_steps_change_the_draft_and_name_it(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        first = made.state
        answer = await browser.do("wish", PARTIAL, **{"w.epsilon": "3"})
        assert answer.headers["x-draft"] == made.state != first
        assert 'id="p-epsilon" hx-swap-oob="true"' in answer.text
        alive = await browser.ask("/alive")
        assert alive.text == f'{{"draft":"{made.state}"}}'
        answer = await browser.do("undo")
        assert made.keeper.draft.wish["epsilon"] == "2"
        assert answer.headers["x-draft"] == first  # what is the same has the same name
        assert answer.headers["hx-push-url"] == "false"
        assert 'value="2"' in answer.text
        await browser.do("redo")
        assert made.keeper.draft.wish["epsilon"] == "3"
        answer = await browser.do("names", names="a, b", view="start")
        assert answer.headers["hx-push-url"] == "/schema"
        assert (await browser.do("speak de")).text.count('lang="de"') == 2
        answer = await browser.do("add_table", **{"table.1": "a", "table.2": "a"})
        assert "choose one to three attributes, each once" in answer.text
        assert "choose one to three" not in (await browser.ask("/design")).text

    asyncio.run(look())


def test_without_a_script_a_form_is_answered_when_it_is_computed(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        answer = await browser.do("wish", {}, **{"w.epsilon": "1,5"})
        assert (answer.status, answer.headers["location"]) == (303, "/design")
        assert made.answers.known(made.understood().digest)["statements"]["epsilon"] <= 1.5
        answer = await browser.do("wish", {}, **{"w.epsilon": "x"})
        assert answer.status == 303

    asyncio.run(look())


def test_an_answer_comes_when_it_is_there_and_not_when_another_is_wanted(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, fake = await inside(tmp_path)
        fake.go.clear()
        digest = made.understood().digest
        waiting = asyncio.create_task(browser.ask(f"/answers/{digest}"))
        await asyncio.sleep(0.01)
        answer = await browser.do("wish", PARTIAL, **{"w.epsilon": "3"})
        assert f'hx-get="/answers/{made.understood().digest}"' in answer.text
        assert (await waiting).status == 204
        assert (fake.begun, fake.ended) == (2, 1)
        fake.go.set()
        answer = await browser.ask(f"/answers/{made.understood().digest}")
        assert answer.status == 200
        assert answer.headers["x-draft"] == made.state
        assert made.understood().digest in answer.text
        assert "hx-get" not in answer.text

    asyncio.run(look())


def test_a_page_that_is_loaded_again_while_it_waits_gets_its_answer(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, fake = await inside(tmp_path)
        fake.go.clear()
        digest = made.understood().digest
        first = asyncio.create_task(browser.ask(f"/answers/{digest}"))
        await asyncio.sleep(0.01)
        browser.is_gone.set()
        page = await browser.ask("/design")
        assert f'hx-get="/answers/{digest}"' in page.text
        assert (await first).status == 204
        assert made.answers._running is None  # nobody waited
        browser.is_gone = asyncio.Event()
        second = asyncio.create_task(browser.ask(f"/answers/{digest}"))
        await asyncio.sleep(0.01)
        fake.go.set()
        assert (await second).status == 200

    asyncio.run(look())


def test_a_failure_is_told_where_it_can_be_read_and_without_what_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(asked: Any) -> None:
        raise KeyError(asked.form["w.epsilon"])

    monkeypatch.setitem(steps.STEPS, "wish", broken)

    async def look() -> None:
        browser, _, _ = await inside(tmp_path)
        answer = await browser.do("wish", **{"w.epsilon": "private"})
        assert answer.status == 500
        assert "says where" in answer.text

    asyncio.run(look())
    said = capsys.readouterr().err
    assert 'raise KeyError(asked.form["w.epsilon"])' in said
    assert said.rstrip().endswith("KeyError")
    assert "private" not in said


def test_it_ends_an_hour_after_the_last_look_and_never_while_something_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, ends = [0.0], []

    async def passes(seconds: float) -> None:
        now[0] += seconds
        if now[0] == 3600:
            await browser.ask("/alive")
        if now[0] > 9000:
            made.running.clear()

    async def look() -> None:
        nonlocal made, browser
        browser, made, _ = await inside(tmp_path, ended=lambda: ends.append(now[0]))
        made.running.add(asyncio.get_running_loop().create_future())  # type: ignore[arg-type]
        monkeypatch.setattr(asyncio, "sleep", passes)
        await made._end_when_alone()

    made: Any = None
    browser: Any = None
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now[0]))
    asyncio.run(look())
    assert ends == [9001]

    async def lives(ended: Any) -> int:
        made, _ = studio(tmp_path, ended=ended)
        monkeypatch.setattr(server.working, "warm", asyncio.Event().wait)
        before = len(asyncio.all_tasks())
        async with made._lifespan(made.app()):
            return len(asyncio.all_tasks()) - before

    assert asyncio.run(lives(lambda: None)) == 2
    assert asyncio.run(lives(None)) == 1  # nobody watches the clock


def test_a_page_finds_its_studio_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    draft = tmp_path / "draft.studio.toml"
    place = Place.of(draft).listening(8124)
    again = Place.of(draft)
    assert again == place
    assert place.cache.stat().st_mode & 0o77 == 0
    assert Place.of(tmp_path / "other.studio.toml").secret != place.secret

    async def look() -> None:
        one, two = (server.Studio(studio(tmp_path)[0].keeper, place) for _ in range(2))
        browser = Browser(one.app(), 8124)
        await browser.enter(place.secret)
        browser.app = two.app()
        page = await browser.ask("/start")
        assert page.status == 200
        assert one.door.token in page.text
        assert one.state == two.state

    asyncio.run(look())


def test_an_empty_draft_begins_at_the_start(tmp_path: Path) -> None:
    async def look() -> None:
        browser, _, _ = await inside(tmp_path, draft=Draft())
        assert (await browser.ask("/")).headers["location"] == "/start"
        browser, _, _ = await inside(tmp_path)
        assert (await browser.ask("/")).headers["location"] == "/design"

    asyncio.run(look())
