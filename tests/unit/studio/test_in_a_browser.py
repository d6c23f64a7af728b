"""The page in Chromium: no number beside another request, and nothing that a key cannot reach."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from deniable.collect.serving import bound_socket
from deniable.design.design import design
from deniable.design.statements import design_statements
from deniable.report.wording import points_text
from deniable.schema import Schema
from deniable.studio import server, working
from deniable.studio.draft import Draft, Keeper
from deniable.studio.making import Job
from deniable.studio.place import Place
from unit.collect.chromium import CHROMIUM, DRIVER, broken, launched, sized
from unit.collect.studies import listening
from unit.studio.asking import processes

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs the Debian packages chromium, chromium-driver"
)

SCHEMA = {
    "title": "Four questions",
    "attribute": [
        {"name": "smokes", "categories": ["no", "yes"]},
        {"name": "drinks", "categories": ["never", "sometimes", "often"], "ordered": True},
        {"name": "sleeps", "bins": [0, 6, 8, 24]},
        {"name": 'says "<b>hello</b>" 😀', "categories": ["no", "yes"]},
    ],
}
FIRST = Draft(SCHEMA, {"rows": "2000", "epsilon": "4"})
# With all that a design can show.
FULL = Draft(
    SCHEMA,
    {"tables": "smokes\tdrinks", "assume": "typed", "shares.smokes": "30 70", "kind": "levels"},
    ({"pin": "A"}, {"pin": "B", "method": "kronecker", "epsilon": "40"}),
)

# Looks at every change of the page, and at every frame: numbers that are not greyed are those of
# the ε that stands in the box.
WATCH = """
globalThis.wrong = [];
globalThis.shown = [];
const look = () => {
  const answers = document.getElementById("answers");
  const shown = answers?.querySelector(".facts b")?.textContent;
  if (shown === undefined || answers.matches(".stale")) return;
  const typed = document.getElementById("w-epsilon").value;
  if (globalThis.shown.at(-1) !== shown) globalThis.shown.push(shown);
  if (Number(shown) !== Number(typed.replace(",", "."))) wrong.push([shown, typed]);
};
new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
const often = () => (look(), requestAnimationFrame(often));
often();
"""
TYPE = """
const box = document.getElementById(arguments[0]);
box.focus();
box.value = arguments[1];
box.dispatchEvent(new Event("input", { bubbles: true }));
return document.getElementById("answers").matches(".stale[aria-busy=true]");
"""
FOCUSABLE = """
const all = "a[href], button, input:not([type=hidden]), select, textarea, summary";
const names = (one) => one.type === "radio" ? one.name : one.outerHTML;
const seen = [...document.querySelectorAll(all)]
  .filter((one) => !one.disabled && one.checkVisibility({ visibilityProperty: true }))
  .filter((one) => one.type !== "radio" || one.checked);
"""


class Slow:
    """Computes in this process; how long it takes, and how long answers are on their way, is up to
    a test. An answer whose delay is None is lost."""

    def __init__(self) -> None:
        self.takes, self.running, self.begun, self.shown = 0.0, 0, 0, 0
        self.delay: Callable[[str], float | None] = lambda _path: 0.0

    async def __call__(self, function: Any, *given: Any) -> Any:
        self.begun += 1
        self.running += 1
        try:
            await asyncio.sleep(self.takes)
            return function(*given)
        finally:
            self.running -= 1

    def around(self, app: Any) -> Any:
        async def slow(scope: Any, receive: Any, send: Any) -> None:
            async def late(message: Any) -> None:
                if message["type"] == "http.response.start":
                    await asyncio.sleep(delay or 0.0)
                if delay is not None or message["type"] == "http.response.start":
                    await send(message)  # one without a body is lost

            asked = scope["type"] == "http" and scope["path"].startswith(("/do", "/answers"))
            delay = self.delay(scope["path"]) if asked else 0.0
            await app(scope, receive, late if asked else send)

        return slow


class Running:
    """A studio that is served from this process, and may be served again at the same address."""

    def __init__(self, folder: Path) -> None:
        self.keeper = Keeper(folder / "draft.studio.toml", FIRST)
        self.slow = Slow()
        self.bound = bound_socket("127.0.0.1", 0)
        (folder / "cache").mkdir()
        port = self.bound.getsockname()[1]
        self.place = Place(folder, folder / "cache", "s" * 64, port)
        self.url = f"http://127.0.0.1:{port}"

    def studio(self) -> server.Studio:
        made = server.Studio(self.keeper, self.place)
        self.made = made
        return made


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working, "warm", lambda: asyncio.sleep(0))
        made = Running(tmp_path_factory.mktemp("studio"))
        with listening(made.slow.around(made.studio().app()), made.bound):
            yield made


@pytest.fixture(scope="module")
def chromium(running: Running) -> Iterator[webdriver.Chrome]:
    driver = launched()
    driver.implicitly_wait(0)
    driver.set_window_size(1280, 1000)
    driver.get(running.place.address)
    yield driver
    driver.quit()


@pytest.fixture
def browser(running: Running, chromium: webdriver.Chrome) -> webdriver.Chrome:
    """At the design, which is there."""
    chromium.get("about:blank")
    running.keeper.change(lambda _: FIRST)
    running.slow.takes, running.slow.delay = 0.0, lambda _path: 0.0
    running.made.answers = working.Answers(running.slow)
    running.made.language = "en"
    chromium.get(f"{running.url}/design")
    settled(chromium)
    return chromium


def until(what: Callable[[], Any], seconds: float = 30) -> Any:
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.03)
    return found


def run(browser: webdriver.Chrome, script: str, *given: Any) -> Any:
    return browser.execute_script(script, *given)


def settled(browser: webdriver.Chrome, epsilon: str = "") -> None:
    """Wait for the final numbers, of an ε if it is given."""
    script = """
    const answers = document.getElementById("answers");
    return !answers.matches(".stale") && answers.querySelector(".facts b")?.textContent;
    """
    until(lambda: (shown := run(browser, script)) and epsilon in ("", shown))


def typed(browser: webdriver.Chrome, name: str = "epsilon") -> str:
    return str(browser.find_element(By.ID, f"w-{name}").get_property("value"))


@pytest.mark.slow
def test_what_is_typed_greys_the_numbers_at_once_and_brings_the_command_lines(
    browser: webdriver.Chrome, running: Running
) -> None:
    run(browser, WATCH)
    running.slow.takes = 0.3
    assert run(browser, TYPE, "w-epsilon", "2,5")  # greyed before anything was sent
    until(lambda: run(browser, "return document.querySelector('#answers .promise')?.textContent"))
    settled(browser, "2.5")
    found = design(Schema.from_plain(SCHEMA), epsilon=2.5)
    singles = [[name] for name in found.mechanism.schema.names]
    told = design_statements(found, rows=2000, tables=singles, assume="uniform", within=0.02)
    answers = browser.find_element(By.ID, "answers").text
    for table in told["tables"]:
        assert f"± {points_text(table['half_width'])}" in answers
    assert run(browser, "return [wrong, shown]") == [[], ["4", "2.5"]]
    assert running.keeper.draft.controls["epsilon"] == "2,5"
    # A slider, by keys; its box says the same, and so does what comes.
    until(lambda: run(browser, "return seen") == running.made.state)  # no form is on its way
    slider = browser.find_element(By.CSS_SELECTOR, "[data-of=w-epsilon]")
    slider.send_keys(Keys.ARROW_LEFT)
    lower = float(typed(browser))
    assert 2.3 < lower < 2.5
    assert slider.get_attribute("aria-valuetext") == typed(browser)
    settled(browser, typed(browser))
    # Another method brings other controls, and the focus stays.
    until(lambda: run(browser, "return seen") == running.made.state)
    radio = browser.find_element(By.CSS_SELECTOR, "[name='w.method'][value=kronecker]")
    radio.send_keys(Keys.SPACE)
    until(lambda: running.keeper.draft.controls.get("method") == "kronecker")
    until(lambda: run(browser, "return seen") == running.made.state)
    focused = "return [document.activeElement.name, document.activeElement.value]"
    until(lambda: run(browser, focused) == ["w.method", "kronecker"])
    browser.find_element(By.ID, "undo").send_keys(Keys.ENTER)
    until(lambda: "method" not in running.keeper.draft.controls)
    until(lambda: run(browser, "return seen") == running.made.state)
    assert run(browser, "return document.activeElement.id") == "undo"
    assert browser.current_url == f"{running.url}/design"
    # Nothing that is wrong is computed; it is said beside the control.
    for text in ("1e", "1.234,5"):
        run(browser, TYPE, "w-epsilon", text)
        until(lambda: run(browser, "return document.getElementById('p-epsilon').innerText"))
        box = browser.find_element(By.ID, "w-epsilon")
        assert box.get_attribute("aria-invalid") == "true"
        run(browser, TYPE, "w-epsilon", "3")
        settled(browser, "3")
        assert box.get_attribute("aria-invalid") is None
    assert run(browser, "return wrong") == []


@pytest.mark.slow
def test_slow_and_lost_answers_show_no_wrong_pair(
    browser: webdriver.Chrome, running: Running
) -> None:
    rng = random.Random(int(time.time()))
    run(browser, WATCH)
    running.slow.takes = 0.05
    running.slow.delay = lambda _path: None if rng.random() < 0.2 else rng.random() * 0.4
    for _ in range(40):
        last = f"{rng.randrange(10, 60) / 10:g}"
        run(browser, TYPE, "w-epsilon", last)
        time.sleep(rng.random() * 0.3)
    running.slow.delay = lambda _path: 0.0
    settled(browser, last)
    assert run(browser, "return wrong") == []


@pytest.mark.slow
@pytest.mark.parametrize("guarded", [True, False])
def test_a_stale_answer_is_caught(
    browser: webdriver.Chrome,
    running: Running,
    monkeypatch: pytest.MonkeyPatch,
    guarded: bool,
) -> None:
    if not guarded:
        read = server.read
        monkeypatch.setattr(
            server, "read", lambda *path: read(*path).replace("shouldSwap = false", "x = 0")
        )
        browser.get(f"{running.url}/design")
        settled(browser)
    run(browser, WATCH)
    running.slow.delay = lambda path: 0.5 if path.startswith("/answers") else 0.0
    run(browser, TYPE, "w-epsilon", "3")
    until(lambda: browser.find_elements(By.CSS_SELECTOR, "#answers [role=status]"))
    running.slow.delay = lambda _path: 1.0
    run(browser, TYPE, "w-epsilon", "2")
    if guarded:
        settled(browser, "2")
        assert run(browser, "return wrong") == []
    else:
        until(lambda: run(browser, "return wrong.length"))


@pytest.mark.slow
def test_a_slider_that_is_dragged_computes_little(
    browser: webdriver.Chrome, running: Running
) -> None:
    running.slow.takes = 0.2
    begun = running.slow.begun
    run(
        browser,
        """
        const slider = document.querySelector("[data-of=w-epsilon]");
        let n = 0;
        const moving = setInterval(() => {
          slider.value = 300 + 5 * n;
          slider.dispatchEvent(new Event("input", { bubbles: true }));
          if (++n === 100) { clearInterval(moving); globalThis.still = performance.now(); }
        }, 50);
        """,
    )
    until(lambda: run(browser, "return globalThis.still"))
    settled(browser)
    took = run(browser, "return performance.now() - still")
    assert running.slow.begun - begun <= 4
    assert running.slow.running == 0
    print(f"final {took:.0f} ms after the last position, {running.slow.begun - begun} designs")
    assert running.keeper.draft.controls["epsilon"] == typed(browser)


@pytest.mark.slow
def test_another_window_is_told(browser: webdriver.Chrome, running: Running) -> None:
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(f"{running.url}/design")
    settled(browser)
    run(browser, TYPE, "w-epsilon", "3")
    settled(browser, "3")
    assert not browser.find_element(By.ID, "elsewhere").is_displayed()
    browser.close()
    browser.switch_to.window(first)
    run(browser, "look()")
    until(browser.find_element(By.ID, "elsewhere").is_displayed)
    assert typed(browser) == "4"
    browser.find_element(By.CSS_SELECTOR, "#elsewhere a").click()
    settled(browser, "3")
    assert not browser.find_element(By.ID, "elsewhere").is_displayed()


@pytest.mark.slow
def test_a_button_that_was_pressed_is_not_pressed_again_by_typing(
    browser: webdriver.Chrome, running: Running
) -> None:
    run(browser, "document.querySelector('[name=do][value=solve]').click()")
    until(lambda: browser.find_elements(By.CSS_SELECTOR, "#request .notice[role=status]"))
    found = running.keeper.draft.controls["epsilon"]
    assert typed(browser) == found
    run(browser, TYPE, "w-epsilon", "3")
    settled(browser, "3")
    browser.find_element(By.ID, "w-epsilon").send_keys("5", Keys.ENTER)
    until(lambda: running.keeper.draft.controls["epsilon"] == "35")
    assert run(browser, "return document.activeElement.id") == "w-epsilon"
    assert browser.current_url == f"{running.url}/design"
    # One that stands outside its form; it stays in focus when it has moved.
    browser.get(f"{running.url}/schema")
    browser.find_element(By.CSS_SELECTOR, "[value='down 0']").send_keys(Keys.ENTER)
    until(lambda: running.keeper.draft.columns[1] == "smokes")
    until(lambda: run(browser, "return document.activeElement.value") == "down 1")


@pytest.mark.slow
def test_without_a_script_it_is_a_form(browser: webdriver.Chrome, running: Running) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"{running.url}/design")
        box = browser.find_element(By.ID, "w-epsilon")
        box.clear()
        box.send_keys("3,5")
        browser.find_element(By.ID, "compute").click()
        until(lambda: running.keeper.draft.controls.get("epsilon") == "3,5")
        until(lambda: browser.find_elements(By.CSS_SELECTOR, "#answers .facts b"))
        assert browser.find_element(By.CSS_SELECTOR, "#answers .facts b").text == "3.5"
        browser.find_element(By.ID, "undo").click()
        until(lambda: browser.find_elements(By.CSS_SELECTOR, "#w-epsilon[value='4']"))
        assert not browser.find_element(By.CSS_SELECTOR, "[type=range]").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.slow
def test_every_control_is_reached_by_keys(browser: webdriver.Chrome, running: Running) -> None:
    for view in server.VIEWS:
        browser.get(f"{running.url}/{view}")
        count = run(
            browser,
            FOCUSABLE
            + """
            globalThis.reached = new Set();
            document.addEventListener("focusin", ({ target }) => reached.add(names(target)));
            globalThis.missing = () => seen.map(names).filter((one) => !reached.has(one));
            return seen.length;
            """,
        )
        browser.switch_to.active_element.send_keys(Keys.TAB * (count + 8))
        keys = webdriver.ActionChains(browser, duration=0)
        keys.send_keys(Keys.TAB * (count + 8)).perform()
        assert run(browser, "return missing()") == []


@pytest.mark.slow
@pytest.mark.parametrize(("language", "widths"), [("de", (320, 1280)), ("en", (320,))])
def test_no_rule_of_accessibility_is_broken(
    browser: webdriver.Chrome, running: Running, language: str, widths: tuple[int, ...]
) -> None:
    running.keeper.change(lambda _: FULL)
    running.made.language = "en" if language == "de" else "de"
    browser.get(f"{running.url}/start")
    browser.find_element(By.CSS_SELECTOR, f"[value='speak {language}']").click()
    root = browser.find_element(By.TAG_NAME, "html")
    until(lambda: root.get_attribute("lang") == language)
    for view in server.VIEWS:
        browser.get(f"{running.url}/{view}")
        if view == "design":
            until(lambda: not run(browser, "return document.querySelector('[hx-get]')"))
        assert browser.find_element(By.TAG_NAME, "html").get_attribute("lang") == language
        assert broken(browser, widths) == [], view
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
    try:
        browser.get(f"{running.url}/design")
        assert broken(browser, [1280]) == []
        with sized(browser, 640, dense=2):  # 200 %
            assert run(browser, "return document.documentElement.scrollWidth") <= 640
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.slow
def test_a_result_is_marked_when_its_form_changes_and_announced_when_it_arrives(
    browser: webdriver.Chrome, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [{"values": ["no"], "estimate": 0.4, "low": 0.3, "high": 0.5, "uncertain": False}]
    ends = threading.Event()

    async def run_slowly(job: Job) -> None:
        while not ends.is_set():
            await asyncio.sleep(0.02)
        told = {"attributes": ["smokes"], "cells": 2, "readable": 1, "target": "table"}
        found = {"attributes": ["smokes"], "n": 9, "cells": cells, "readable": told}
        job.printed = json.dumps(found).encode()
        job.status = 0

    monkeypatch.setattr(Job, "run", run_slowly)
    running.made.jobs.pop("estimate", None)
    browser.get(f"{running.url}/estimate")
    run(browser, "document.querySelector('[name=\"table.1\"]').value = 'smokes'")
    start = "document.querySelector('button.main[value=estimate]').click()"
    run(browser, start)
    until(lambda: run(browser, "return document.getElementById('stop-estimate')?.focus() ?? 1"))
    until(lambda: browser.find_elements(By.ID, "stop-estimate"))
    run(browser, "document.getElementById('stop-estimate').focus(); moves = []")
    run(browser, "document.addEventListener('focusin', (e) => moves.push(e.target.id))")
    time.sleep(1.2)  # progress is fetched twice meanwhile
    assert run(browser, "return [document.activeElement.id, moves]") == ["stop-estimate", []]
    ends.set()
    said = "return document.getElementById('announced').textContent"
    until(lambda: run(browser, said) == "The result is here.")
    assert run(browser, "return document.activeElement.id") == "job-estimate"
    assert browser.find_element(By.TAG_NAME, "caption").text == "Shares of smokes, 9 rows, release"
    assert broken(browser) == []
    # Another request: the old numbers are marked at once, and gone when it has started.
    outdated = browser.find_element(By.CLASS_NAME, "outdated")
    assert not outdated.is_displayed()
    ends.clear()
    changed = "box.value = 'other'; box.dispatchEvent(new Event('input', { bubbles: true }))"
    run(browser, f"const box = document.getElementById('f-release'); {changed}")
    assert outdated.is_displayed()
    assert run(browser, "return document.querySelector('.result').matches('.stale')")
    run(browser, start)
    until(lambda: browser.find_elements(By.ID, "stop-estimate"))
    assert not browser.find_elements(By.CSS_SELECTOR, ".result")
    ends.set()
    until(lambda: run(browser, said))
    running.made.jobs.pop("estimate")


def clicked(browser: webdriver.Chrome, by: str, what: str) -> bool:
    """Click something, if it is there, and not just being exchanged."""
    try:
        browser.find_element(by, what).click()
    except (NoSuchElementException, StaleElementReferenceException):
        return False
    return True


@contextmanager
def command(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The studio as a command, and its address."""
    started = subprocess.Popen(
        [sys.executable, "-m", "deniable", "studio", *words, "--no-browser", "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
    )
    assert started.stdout is not None
    try:
        said = b""
        while not said.endswith(b"}\n"):
            said += started.stdout.readline()
        yield started, json.loads(said)["address"]
    finally:
        started.kill()
        started.wait()
        started.stdout.close()


@pytest.mark.slow
def test_the_first_walk_from_a_table_to_a_release_and_a_program_that_is_killed(
    chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    rng = random.Random(1)
    rows = [f"{rng.choice('ny')},{rng.choice('abc')},{rng.choice('ny')}" for _ in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(["smokes,drinks,votes", *rows]) + "\n")
    browser, actions = chromium, 0

    def click(by: str, what: str) -> None:
        nonlocal actions
        actions += 1
        until(lambda: clicked(browser, by, what))

    with command(tmp_path) as (started, address):
        browser.get(address)
        click(By.XPATH, "//button[contains(., 'people.csv')]")
        click(By.CSS_SELECTOR, "[value=confirm_all]")
        click(By.CSS_SELECTOR, "nav [href='/design']")
        until(lambda: browser.find_elements(By.ID, "w-epsilon"))
        run(browser, TYPE, "w-epsilon", "3")
        actions += 1
        settled(browser, "3")
        draft = (tmp_path / "draft.studio.toml").read_bytes()
        started.send_signal(signal.SIGKILL)
        started.wait()
        run(browser, TYPE, "w-epsilon", "2")
        until(browser.find_element(By.ID, "ended").is_displayed)
        assert (tmp_path / "draft.studio.toml").read_bytes() == draft
    with command(tmp_path) as (started, again):
        assert again == address
        settled(browser, "2")  # by itself
        until(lambda: not browser.find_element(By.ID, "ended").is_displayed())
        assert not browser.find_element(By.ID, "elsewhere").is_displayed()
        click(By.CSS_SELECTOR, "nav [href='/release']")
        click(By.CSS_SELECTOR, "button[value=release]")
        click(By.CSS_SELECTOR, "button[value=make_release]")
        click(By.CSS_SELECTOR, "[href='/files/report.html']")
        until(lambda: "report" in browser.current_url)
        assert actions <= 15
        assert len((tmp_path / "release" / "data.csv").read_text().splitlines()) == 301


@pytest.mark.slow
def test_a_page_that_is_closed_ends_what_it_waited_for(
    browser: webdriver.Chrome, running: Running
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        hangs = working.Answers(lambda *_: working.in_process(time.sleep, 60))
        patch.setattr(running.made, "answers", hangs)
        running.keeper.change(lambda draft: replace(draft, controls={"epsilon": "5"}, pins=()))
        first = browser.current_window_handle
        browser.switch_to.new_window("tab")
        browser.get(f"{running.url}/design")
        until(lambda: len(processes()) == 1)
        time.sleep(0.3)  # the page asks for its answer
        browser.close()
        closed = time.monotonic()
        browser.switch_to.window(first)
        until(lambda: not processes(), 2)
        print(f"gone {time.monotonic() - closed:.2f} s after the page")


# --- one draft in two windows, and in two languages -----------------------------------------------


@pytest.mark.slow
def test_two_windows_overwrite_nothing_and_the_late_one_chooses(
    browser: webdriver.Chrome, running: Running
) -> None:
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(f"{running.url}/design")
    settled(browser)
    run(browser, TYPE, "w-epsilon", "3")
    settled(browser, "3")
    browser.close()
    browser.switch_to.window(first)
    run(browser, TYPE, "w-epsilon", "2")
    until(lambda: browser.find_elements(By.CSS_SELECTOR, "button[value=mine]"))
    assert running.keeper.draft.controls["epsilon"] == "3" == typed(browser)
    browser.find_element(By.CSS_SELECTOR, "button[value=mine]").click()
    settled(browser, "2")
    assert running.keeper.draft.controls["epsilon"] == "2" == typed(browser)
    assert not browser.find_elements(By.CSS_SELECTOR, "button[value=mine]")
    running.slow.delay = lambda path: 0.3 if path == "/do" else 0.0
    for text in ("4", "4.5", "5"):  # faster than answers come
        run(browser, TYPE, "w-epsilon", text)
        time.sleep(0.1)
    settled(browser, "5")
    assert not browser.find_elements(By.CSS_SELECTOR, "button[value=mine]")


@pytest.mark.slow
def test_another_language_keeps_every_form(browser: webdriver.Chrome, running: Running) -> None:
    browser.get(f"{running.url}/schema?in=0")
    for name, text in (("more", "one\ntwo"), ("title", "Mine"), ("question", "Why?")):
        browser.find_element(By.ID, f"f-{name}").clear()
        browser.find_element(By.ID, f"f-{name}").send_keys(text)
    browser.find_element(By.ID, "f-ordered").click()
    browser.find_element(By.CSS_SELECTOR, "button[value='speak de']").click()
    until(lambda: browser.find_elements(By.CSS_SELECTOR, "button[value='speak en']"))
    for name, text in (("more", "one\ntwo"), ("title", "Mine"), ("question", "Why?")):
        assert browser.find_element(By.ID, f"f-{name}").get_property("value") == text
    assert browser.find_element(By.ID, "f-ordered").is_selected()
    browser.get(f"{running.url}/design")
    run(browser, TYPE, "w-rows", "10.000")
    until(lambda: running.keeper.draft.controls.get("rows") is None)  # as usual
    running.made.language = "en"
