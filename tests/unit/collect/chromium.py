"""Chromium as a respondent's browser: started, watched, killed, and told what to do."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from deniable.collect.collector import Collector
from deniable.collect.folder import StudyFolder
from unit.collect import studies

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

# Set from outside before the page's own code runs: the page has no hook. Keeps every random byte
# that was drawn after `watch` was set.
WATCHED_BITS = """
const drawn = [];
const original = crypto.getRandomValues.bind(crypto);
crypto.getRandomValues = (array) => { original(array); drawn.push(...array); return array; };
globalThis.takeDrawn = () => drawn.splice(0);
const send = fetch;
globalThis.fetch = (...all) => { globalThis.left = performance.now(); return send(...all); };
"""
NO_STORAGE = "Object.defineProperty(globalThis, 'indexedDB', {get() { throw new Error('off'); }});"
# Whether the browser would ask before the page is left.
WARNS = """
const leaving = new Event("beforeunload", { cancelable: true });
dispatchEvent(leaving);
return leaving.defaultPrevented;
"""
NOTHING_IS_SENT = """
const ask = fetch;
globalThis.fetch = (path, ...rest) =>
  path === "submissions" ? new Promise(() => {}) : ask(path, ...rest);
"""
FULL = """
IDBObjectStore.prototype.put = () => { throw new DOMException("full", "QuotaExceededError"); };
"""
STORED = """
const done = arguments[1], opening = indexedDB.open("deniable", 1);
opening.onerror = () => done(null);
opening.onsuccess = () => {
  const store = opening.result.transaction("kept", "readwrite").objectStore("kept");
  if (arguments[0]) store.clear();
  const reading = store.getAll();
  reading.onsuccess = () => (opening.result.close(), done(reading.result));
};
"""


def launched(*words: str) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    for word in words:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    driver.implicitly_wait(5)
    return driver


def kill(driver: webdriver.Chrome, profile: Path) -> None:
    """End every process of a browser at once, as a crash of the machine would."""
    own = [driver.service.process.pid]
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(profile).encode() in (process / "cmdline").read_bytes():
                own.append(int(process.name))
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    driver.service.process.wait()
    for lock in profile.glob("Singleton*"):
        lock.unlink()


@contextmanager
def first(browser: webdriver.Chrome, script: str) -> Iterator[None]:
    """Run a script in every new document, before the page's own."""
    command = "Page.addScriptToEvaluateOnNewDocument"
    added = browser.execute_cdp_cmd(command, {"source": script})["identifier"]
    try:
        yield
    finally:
        remove = "Page.removeScriptToEvaluateOnNewDocument"
        browser.execute_cdp_cmd(remove, {"identifier": added})


class Watched:
    """Sees every request; `lose` says how many answers to posts are lost after they were given,
    and `after` is called then; `refuse` how many posts before that get nowhere, `deny` how the next
    one is refused. The page
    tries again after two seconds, four and so on: what a test looks at in between is held there by
    a number without end."""

    def __init__(self, refuse: float = 0, lose: float = 0) -> None:
        self.requests: list[tuple[str, str, bytes, bytes, float]] = []
        self.refuse, self.lose, self.deny = refuse, lose, 0
        self.after: Callable[[], object] = lambda: None

    def posts(self) -> list[bytes]:
        return [body for method, path, _, body, _ in self.requests if path == "/submissions"]

    def around(self, app: Any) -> Any:
        async def watched(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                return await app(scope, receive, send)
            began, body = time.monotonic(), b""
            while scope["method"] == "POST":
                message = await receive()
                body += message.get("body", b"")
                if not message.get("more_body"):
                    break
            heads = b"\n".join(name + b": " + value for name, value in scope["headers"])
            query = scope["query_string"].decode()
            self.requests.append((scope["method"], scope["path"] + query, heads, body, began))

            async def again() -> Any:
                return {"type": "http.request", "body": body, "more_body": False}

            async def busy(status: int = 503, answer: bytes = b"") -> None:
                head = {"type": "http.response.start", "status": status, "headers": []}
                await send(head)
                await send({"type": "http.response.body", "body": answer})

            async def nowhere(_message: Any) -> None:
                return None

            if scope["path"] == "/submissions" and self.deny:
                status, self.deny = self.deny, 0
                return await busy(status, b'{"error": "refused by the test"}')
            if scope["path"] == "/submissions" and self.refuse > 0:
                self.refuse -= 1
                return await busy()
            if scope["path"] == "/submissions" and self.lose > 0:
                self.lose -= 1
                await app(scope, again, nowhere)
                self.after()
                return await busy()
            return await app(scope, again if scope["method"] == "POST" else receive, send)

        return watched


@contextmanager
def served(folder: StudyFolder, watch: Watched) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        plain = Collector.app
        patch.setattr(Collector, "app", lambda self: watch.around(plain(self)))
        with studies.served(folder) as url:
            yield url


RULES = """
const done = arguments[0];
const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
axe.run(document, { resultTypes: ["violations"], runOnly: { type: "tag", values: tags } })
  .then((found) => done(found.violations.map((rule) => `${rule.id}: ${rule.nodes[0].html}`)));
"""


def broken(browser: webdriver.Chrome, widths: Sequence[int] = (320, 1280)) -> list[str]:
    """The rules of accessibility that the page breaks as it is now, on screens so wide, or on the
    present one; none if it fits them."""
    if widths:
        first, *others = widths
        with sized(browser, first):
            found = broken(browser, ())
        return found + (broken(browser, others) if others else [])
    if not browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"):
        return ["wider than the screen"]
    if not browser.execute_script("return 'axe' in globalThis"):
        axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        browser.execute_script(axe)  # past the page's policy, which stays as it is
    return list(browser.execute_async_script(RULES))


@contextmanager
def sized(
    browser: webdriver.Chrome, width: int, height: int = 900, dense: int = 1
) -> Iterator[None]:
    """Show pages on a screen of so many pixels."""
    size = {"width": width, "height": height, "deviceScaleFactor": dense, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def state(browser: webdriver.Chrome) -> str:
    return str(browser.execute_script("return document.getElementById('app')?.dataset.state"))


def absent(browser: webdriver.Chrome, selector: str) -> bool:
    """Whether the page has no such element now; to find none by Selenium waits for it to come."""
    script = "return document.querySelector(arguments[0]) === null"
    return bool(browser.execute_script(script, selector))


def stored(browser: webdriver.Chrome) -> list[dict[str, Any]]:
    """What the browser keeps of all studies that this address has served."""
    return list(browser.execute_async_script(STORED, False))


def forget(browser: webdriver.Chrome) -> None:
    assert browser.execute_async_script(STORED, True) == []


def wait_for(browser: webdriver.Chrome, *wanted: str) -> None:
    end = time.monotonic() + 60
    while state(browser) not in wanted:
        assert time.monotonic() < end, f"{state(browser)}, not {wanted}"
        time.sleep(0.02)


def patient(browser: webdriver.Chrome) -> WebDriverWait[webdriver.Chrome]:
    """Waits, also for what the page is just drawing anew."""
    return WebDriverWait(browser, 60, ignored_exceptions=[StaleElementReferenceException])


def fill(browser: webdriver.Chrome, choice: int = -1, hours: str = "7.5") -> None:
    """Go to the questions and answer them: the last choice of each, or another."""
    wait_for(browser, "introduction")
    browser.find_element(By.ID, "agree").click()
    for q in (0, 1, 2, 4):
        browser.find_elements(By.CSS_SELECTOR, f"#q{q} input")[choice].click()
    browser.find_element(By.ID, "q3-number").send_keys(hours)


def send(browser: webdriver.Chrome, end: str, choice: int = -1, hours: str = "7.5") -> None:
    """Answer the questions, send that, and wait for a state of the page."""
    fill(browser, choice, hours)
    browser.find_element(By.ID, "send").click()
    wait_for(browser, end)
