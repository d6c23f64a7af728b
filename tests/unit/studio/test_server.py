"""The listener of the studio, asked in this process: who is let in, and what is answered."""

import asyncio
import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deniable.studio import server, steps
from deniable.studio.choosing import page_of_docs
from deniable.studio.draft import Draft
from deniable.studio.place import Place
from unit.studio.asking import HTMX, PARTIAL, PORT, SCHEMA, SECRET, Browser, inside, studio


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
            assert (await browser.do("update", token=token, **{"w.epsilon": "9"})).status == 403
        large = "x" * server._LONGEST_FORM
        assert (await browser.do("update", **{"w.epsilon": large})).status == 403
        assert made.keeper.draft is before
        headers = {"Origin": own, "Sec-Fetch-Site": "same-origin", **HTMX}
        assert (await browser.do("update", headers, **{"w.epsilon": "3"})).status == 200
        assert made.keeper.draft.controls["epsilon"] == "3"

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
        await browser.ask(f"/answers/{made.design_request().digest}")
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
            rest = answer.text.replace(f'href="{page_of_docs("choosing.md")}"', "")
            assert not re.search(r"\son\w+=|\sstyle=|javascript:|https?://(?!www.w3.org)", rest)
        for script in ("htmx.min.js", "studio.js"):
            answer = await browser.ask(f"/browser/{script}")
            assert answer.headers["content-type"].startswith("text/javascript")
        assert len((await browser.ask("/browser/studio.js")).body) <= 10_000

    asyncio.run(look())


def test_steps_change_the_draft_and_name_it(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        first = made.state
        answer = await browser.do("update", PARTIAL, **{"w.epsilon": "3"})
        assert answer.headers["x-draft"] == made.state != first
        assert 'id="p-epsilon" hx-swap-oob="true"' in answer.text
        alive = await browser.ask("/alive")
        assert alive.text == f'{{"draft":"{made.state}"}}'
        answer = await browser.do("undo")
        assert made.keeper.draft.controls["epsilon"] == "2"
        assert answer.headers["x-draft"] == first  # what is the same has the same name
        assert answer.headers["hx-push-url"] == "false"
        assert 'value="2"' in answer.text
        await browser.do("redo")
        assert made.keeper.draft.controls["epsilon"] == "3"
        answer = await browser.do("names", names="a, b", view="start")
        assert answer.headers["hx-push-url"] == "/schema"
        assert (await browser.do("speak de")).text.count('lang="de"') == 2
        answer = await browser.do("add_table", **{"table.1": "a", "table.2": "a"})
        assert "Wählen Sie ein bis drei Merkmale, jedes einmal" in answer.text
        assert "Wählen Sie ein bis" not in (await browser.ask("/design")).text

    asyncio.run(look())


def test_without_a_script_a_form_is_answered_when_it_is_computed(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        answer = await browser.do("update", {}, **{"w.epsilon": "1,5"})
        assert (answer.status, answer.headers["location"]) == (303, "/design")
        assert made.answers.known(made.design_request().digest)["statements"]["epsilon"] <= 1.5
        answer = await browser.do("update", {}, **{"w.epsilon": "x"})
        assert answer.status == 303

    asyncio.run(look())


def test_an_answer_comes_when_it_is_there_and_not_when_another_is_wanted(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, fake = await inside(tmp_path)
        fake.go.clear()
        digest = made.design_request().digest
        waiting = asyncio.create_task(browser.ask(f"/answers/{digest}"))
        await asyncio.sleep(0.01)
        answer = await browser.do("update", PARTIAL, **{"w.epsilon": "3"})
        assert f'hx-get="/answers/{made.design_request().digest}"' in answer.text
        assert (await waiting).status == 204
        assert (fake.begun, fake.ended) == (2, 1)
        fake.go.set()
        answer = await browser.ask(f"/answers/{made.design_request().digest}")
        assert answer.status == 200
        assert answer.headers["x-draft"] == made.state
        assert made.design_request().digest in answer.text
        assert "hx-get" not in answer.text

    asyncio.run(look())


def test_a_page_that_is_loaded_again_while_it_waits_gets_its_answer(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, fake = await inside(tmp_path)
        fake.go.clear()
        digest = made.design_request().digest
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

    monkeypatch.setitem(steps.STEPS, "update", broken)

    async def look() -> None:
        browser, _, _ = await inside(tmp_path)
        answer = await browser.do("update", **{"w.epsilon": "private"})
        assert answer.status == 500
        assert "see the terminal" in answer.text

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


# --- one draft, several pages ---------------------------------------------------------------------


def test_a_late_page_overwrites_nothing_and_is_shown_both(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        shown = made.state
        await browser.do("update", draft=shown, tab="one", **{"w.epsilon": "3"})
        # The same page may go on before it has its answer; another may not.
        await browser.do("update", draft=shown, tab="one", **{"w.epsilon": "3.5"})
        assert made.keeper.draft.controls["epsilon"] == "3.5"
        for headers, tab in ((PARTIAL, "two"), ({}, "")):
            late = {"draft": shown, "tab": tab, "w.epsilon": "1,25", "w.rows": "500"}
            answer = await browser.do("update", headers, **late)
            assert answer.status == 200
            assert made.keeper.draft.controls == {"epsilon": "3.5"}
            rows = re.findall(r"<tr><th scope=.row.>.*</tr>", answer.text)
            assert re.findall("<pre>(.*?)</pre>", rows[0]) == ["3.5", "1,25"]
            assert re.findall("<pre>(.*?)</pre>", rows[1]) == ["10000", "500"]
            assert not headers or answer.headers["hx-retarget"] == "#body"
        text = unescape(re.findall(r'name="text" value="([^"]*)"', answer.text)[0])
        answer = await browser.do("mine", text=text, draft=shown)
        assert "Save mine" in answer.text  # it is still late
        await browser.do("mine", text=text, draft=made.state)
        assert made.keeper.draft.controls == {"epsilon": "1,25", "rows": "500"}
        assert Draft.from_toml(made.keeper.path) == made.keeper.draft
        await browser.do("undo", draft=made.state)
        assert made.keeper.draft.controls == {"epsilon": "3.5"}

    asyncio.run(look())


def test_two_studios_of_one_draft_overwrite_nothing(tmp_path: Path) -> None:
    async def look() -> None:
        one, first, _ = await inside(tmp_path)
        two, second, _ = await inside(tmp_path)
        shown = second.state
        await one.do("remove 0", view="schema", draft=first.state)
        answer = await two.do("update", PARTIAL, draft=shown, **{"w.epsilon": "1"})
        assert "Save mine" in answer.text
        assert "smokes" in answer.text
        assert Draft.from_toml(first.keeper.path) == first.keeper.draft == second.keeper.draft
        assert (await two.ask("/alive")).text == (await one.ask("/alive")).text

    asyncio.run(look())


@pytest.mark.parametrize("step", ["undo", "redo", "release", "study"])
def test_a_late_page_makes_nothing(tmp_path: Path, step: str) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        shown = made.state
        await browser.do("update", draft=shown, **{"w.epsilon": "3"})
        view = step if step in server.VIEWS else "design"
        answer = await browser.do(step, view=view, draft=shown, table="t.csv", output="out")
        assert "the step was not taken: press it again" in answer.text
        assert made.keeper.draft.controls == {"epsilon": "3"}
        assert not made.jobs

    asyncio.run(look())


def test_a_draft_that_is_edited_by_hand_is_shown(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        await browser.do("update", **{"w.epsilon": "3"})
        shown, path = made.state, made.keeper.path
        path.write_text(path.read_text().replace('"3"', '"2.5"'))
        assert shown not in (await browser.ask("/alive")).text
        assert 'value="2.5"' in (await browser.ask("/design")).text
        answer = await browser.do("update", draft=shown, **{"w.epsilon": "4"})
        assert "Save mine" in answer.text
        path.write_text("[controls")
        answer = await browser.ask("/design")
        assert "is no longer a draft" in answer.text
        answer = await browser.do("update", draft=made.state, **{"w.epsilon": "4"})
        assert "[controls" in answer.text
        assert path.read_text() == "[controls"
        text = unescape(re.findall(r'name="text" value="([^"]*)"', answer.text)[0])
        await browser.do("mine", text=text, draft=made.state)
        assert Draft.from_toml(path).controls == {"epsilon": "4"}

    asyncio.run(look())


# --- what goes, and what stays --------------------------------------------------------------------


def test_a_notice_goes_with_the_next_change(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        answer = await browser.do("solve", draft=made.state)
        assert "The table that decides" in answer.text
        # Results that are ready later replace the page, and the notice with it.
        again = await browser.ask("/design", headers=PARTIAL)
        assert "The table that decides" in again.text
        answer = await browser.do("update", PARTIAL, **{"w.epsilon": "3"})
        for name in ("said", "solved"):
            assert f'<div id="{name}" hx-swap-oob="true">' in answer.text
        assert "The table that decides" not in answer.text

    asyncio.run(look())


@pytest.mark.parametrize(
    ("view", "form", "ids"),
    [
        ("start", {"names": "a, b"}, ["f-names"]),
        ("release", {"of": "release", "output": "x", "population": "p"}, ["f-output"]),
        ("study", {"of": "study", "purpose": "why"}, ["f-purpose"]),
        ("estimate", {"of": "estimate", "release": "r", "table.1": "drinks"}, ["f-release"]),
        ("schema", {"kept.f-more": "c, d", "kept.f-title": "T"}, ["f-more", "f-title"]),
        ("schema", {"at": "0", "which": "0", "question": "Why?"}, ["f-question"]),
    ],
)
def test_another_language_keeps_what_was_typed(
    tmp_path: Path, view: str, form: dict[str, str], ids: list[str]
) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        answer = await browser.do("speak de", view=view, draft=made.state, **form)
        assert 'lang="de"' in answer.text
        for name in ids:
            text = form.get(f"kept.{name}") or form[name[2:]]
            field = rf'id="{name}"[^>]*(value="|>\s*){re.escape(text)}["<]'
            assert re.search(field, answer.text)

    asyncio.run(look())


def test_numbers_are_read_in_the_language_of_the_page_that_they_were_typed_into(
    tmp_path: Path,
) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        for language, typed in (("de", "10.000"), ("en", "12,000"), ("de", "14\u202f000")):
            await browser.do("update", language=language, **{"w.rows": typed, "w.epsilon": "2"})
            digits = re.sub(r"\D", "", typed)
            assert made.design_request().rows == int(digits)
        answer = await browser.do("speak de", language="en", **{"w.within": "2.125"})
        assert 'name="w.within" value="2,125"' in answer.text
        answer = await browser.do("update", language="de", **{"w.rows": "12.000,5"})
        assert "erwartete Zeilen: Das ist keine ganze Zahl" in answer.text
        answer = await browser.do("undo", view="nothing")
        assert answer.text.strip() == "Diesen Schritt gibt es nicht"
        assert answer.headers["content-language"] == "de"

    asyncio.run(look())


def test_without_an_epsilon_nothing_is_computed(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, fake = await inside(tmp_path, draft=Draft(SCHEMA))
        answer = await browser.ask("/design")
        assert "ε has not been chosen yet." in answer.text
        assert '<details id="choosing" open>' in answer.text
        assert "/docs/choosing.md" in answer.text
        assert 'aria-invalid="true"' not in answer.text
        assert (fake.begun, (await browser.ask("/files/mechanism.json")).status) == (0, 409)
        form = {"w.prior": "1", "w.limit": "50", "w.waves": "4", "draft": made.state}
        answer = await browser.do("update", PARTIAL, **form)
        assert '<div id="ladder" hx-swap-oob="true">' in answer.text
        assert 'value="choose 1.14877"' in answer.text
        answer = await browser.do("choose 0.5", {}, draft=made.state)
        assert answer.status == 303
        assert made.design_request().arguments["epsilon"] == 0.5
        assert "4 releases of the same people" in (await browser.ask("/design")).text

    asyncio.run(look())
