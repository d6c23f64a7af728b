"""How long somebody waits for the studio: its start; a change of a number until what is shown is
greyed, until the first number of the new request and until all; a slider that is dragged; errors of
all tables; bytes of the page; memory after a minute of play.

    python benchmarks/bench_studio.py [--attributes 12 30 100] [--times 5] [--play 60]

Needs Debian's chromium and chromium-driver. Times are those on the clock, as the browser's frames
show it, medians; every change asks for another ε, so that nothing is known already. Memory is the
proportional set size of the program and of all processes below it.
"""

import argparse
import asyncio
import gzip
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import tomli_w
from measured import Measured, seconds
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from deniable.collect.serving import bound_socket, server_for
from deniable.design.design import design
from deniable.schema import Schema
from deniable.statement.expected_tables import expected_tables
from deniable.studio.draft import Keeper
from deniable.studio.place import Place
from deniable.studio.request import from_document
from deniable.studio.server import Studio

TARGETS = {  # by how many attributes, where that counts
    "start to first paint, s": {12: 1.5},
    "change to greyed, s": {12: 0.05},
    "change to the first number, s": {12: 0.15},
    "change to all numbers, balanced, s": {12: 2, 30: 5, 100: 15},
    "change to all numbers, forms, s": {12: 2, 30: 5, 100: 15},
    "errors of all singles and pairs, s": {12: 0.1, 100: 1},
    "a slider dragged: designs begun and not shown": {12: 3},
    "half a second later: designs of other requests": {12: 0},
    "page with script and style, compressed, kB": {12: 60},
    "memory after play, MB": {12: 400},
}

CHANGED = """
const [text, done] = arguments;
const box = document.getElementById("w-epsilon"), before = document.getElementById("answers");
const start = performance.now(), seen = {};
const look = () => {
  const answers = document.getElementById("answers"), now = (performance.now() - start) / 1000;
  if (answers.classList.contains("stale")) seen.greyed ??= now;
  if (answers !== before && answers.querySelector("b")) seen.first ??= now;
  if (answers !== before && !answers.matches("[aria-busy=true]")) done({ ...seen, all: now });
  else requestAnimationFrame(look);
};
box.value = text;
box.dispatchEvent(new Event("input", { bubbles: true }));
look();
"""

DRAGGED = """
const done = arguments[0], slider = document.querySelector("[data-of=w-epsilon]");
const shown = new Set();
new MutationObserver(() => {
  const answers = document.getElementById("answers");
  if (!answers.matches(".stale")) shown.add(answers.dataset.request);
}).observe(document.body, { childList: true, subtree: true });
let at = 0;
const moving = setInterval(() => {
  slider.value = 300 + 5 * at;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  if (++at < 100) return;
  clearInterval(moving);
  setTimeout(() => done(shown.size), 500);
}, 50);
"""

PAINTED = """
const [paint] = performance.getEntriesByName("first-contentful-paint");
return paint ? (performance.timeOrigin + paint.startTime) / 1000 : null;
"""


def schema_of(attributes: int) -> dict[str, Any]:
    """Return a schema whose attributes have 2, 3, 5 and 7 categories in turn."""
    sizes = itertools.islice(itertools.cycle((2, 3, 5, 7)), attributes)
    names = [f"a{i}" for i in range(1, attributes + 1)]
    return {
        "attribute": [
            {"name": name, "categories": [str(code) for code in range(size)]}
            for name, size in zip(names, sizes, strict=True)
        ]
    }


@contextmanager
def served(folder: Path, attributes: int, method: str) -> Iterator[tuple[Studio, str]]:
    """Serve a draft from a thread, so that its state can be looked at; yield it and its address."""
    path = folder / f"{method}-{attributes}.studio.toml"
    keeper = Keeper(path, from_document(schema_of(attributes)).with_controls(method=method))
    with bound_socket("127.0.0.1", 0) as bound:
        place = Place.of(path).listening(bound.getsockname()[1])
        studio = Studio(keeper, place)
        server = server_for(studio.app())
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield studio, place.address
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def started(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command in a folder with schema.toml; yield its process and the page's address."""
    words = ["studio", "schema.toml", "--no-browser", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "deniable", *words], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["address"]
    finally:
        process.terminate()
        process.wait()


def waits(browser: webdriver.Chrome) -> None:
    """Wait until the numbers of the request are shown."""
    while not browser.execute_script(
        "const a = document.getElementById('answers'); return a && !a.matches('[aria-busy=true]');"
    ):
        time.sleep(0.05)


def memory_of(process: int) -> float:
    """Return the megabytes that a process and all below it have to themselves, or share in part."""
    found, waiting = 0, [process]
    while waiting:
        place = Path(f"/proc/{waiting.pop()}")
        try:
            rollup = (place / "smaps_rollup").read_text()
            for children in place.glob("task/*/children"):
                waiting += map(int, children.read_text().split())
        except OSError:
            continue  # it has ended
        found += int(rollup.partition("\nPss:")[2].split()[0])
    return found / 1000


def page_of(address: str) -> float:
    """Return the kilobytes of the page with the script that it loads, compressed."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    base = address.partition("/enter/")[0]
    wanted = (address, f"{base}/browser/htmx.min.js", f"{base}/browser/studio.js")
    contents = (opener.open(one).read() for one in wanted)
    return sum(len(gzip.compress(content, mtime=0)) for content in contents) / 1000


def of_the_start(
    browser: webdriver.Chrome, folder: Path, times: int
) -> Iterator[tuple[str, float]]:
    paints = []
    for _ in range(times + 1):  # the first makes byte code
        start = time.time()
        with started(folder) as (_, address):
            browser.get("about:blank")
            browser.get(address)
            while (painted := browser.execute_script(PAINTED)) is None:
                time.sleep(0.01)
            paints.append(painted - start)
            size = page_of(address)
    yield "start to first paint, s", statistics.median(paints[1:])
    yield "page with script and style, compressed, kB", size


def of_changes(
    browser: webdriver.Chrome, folder: Path, attributes: int, method: str, times: int
) -> Iterator[tuple[str, float]]:
    with served(folder, attributes, method) as (_, address):
        browser.get(address)
        waits(browser)
        found = [browser.execute_async_script(CHANGED, f"{3 + 0.3 * i:.1f}") for i in range(times)]
    if method == "balanced":
        yield "change to greyed, s", statistics.median(one["greyed"] for one in found)
        yield "change to the first number, s", statistics.median(one["first"] for one in found)
    yield f"change to all numbers, {method}, s", statistics.median(one["all"] for one in found)


def of_a_drag(browser: webdriver.Chrome, folder: Path) -> Iterator[tuple[str, float]]:
    with served(folder, 12, "balanced") as (studio, address):
        browser.get(address)
        waits(browser)
        begun = studio.answers.begun
        shown = browser.execute_async_script(DRAGGED)
        running, wanted = (studio.answers._running or ("",))[0], studio.design_request().digest
        yield "a slider dragged: designs begun and not shown", studio.answers.begun - begun - shown
        yield "half a second later: designs of other requests", int(running not in ("", wanted))


def of_errors(attributes: int, times: int) -> Iterator[tuple[str, float]]:
    plan = design(Schema.from_plain(schema_of(attributes)), epsilon=4.0)
    names = plan.mechanism.schema.names
    tables = [[name] for name in names] + [list(pair) for pair in itertools.combinations(names, 2)]
    found = seconds(lambda: expected_tables(plan, tables, 10_000), times)
    yield "errors of all singles and pairs, s", found


def of_play(browser: webdriver.Chrome, folder: Path, wanted: float) -> Iterator[tuple[str, float]]:
    """Move ε and change the method, every half second, for a while."""
    with started(folder) as (process, address):
        browser.get(address)
        waits(browser)
        end, most = time.monotonic() + wanted, 0.0
        for i in itertools.count():
            if time.monotonic() > end:
                break
            browser.execute_script(
                "const box = document.getElementById('w-epsilon'); box.value = arguments[0];"
                "box.dispatchEvent(new Event('input', { bubbles: true }));",
                f"{1 + i % 70 / 10:.1f}",
            )
            if i % 20 == 10:
                methods = ("forms", "balanced", "optimal")
                click = f"input[value={methods[i // 20 % 3]}]"
                browser.execute_script("document.querySelector(arguments[0]).click()", click)
                waits(browser)
            time.sleep(0.5)
            most = max(most, memory_of(process.pid))
        waits(browser)
        yield "memory after play, MB", memory_of(process.pid)
        print(f"most memory during play: {most:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    measured = Measured(parser)
    parser.add_argument("--attributes", type=int, nargs="*", default=[12, 30, 100])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--play", type=float, default=60, help="seconds")
    options = parser.parse_args()

    def show(rows: Iterator[tuple[str, float]], attributes: int = 12) -> None:
        for what, figure in rows:
            target = TARGETS[what].get(attributes)
            missed = " MISS" if target is not None and figure > target else ""
            print(f"{attributes:4} {what:50} {figure:8.3g}  (target {target}){missed}", flush=True)
            measured.add("the studio", attributes=attributes, what=what, figure=figure)

    words = webdriver.ChromeOptions()
    words.binary_location = str(shutil.which("chromium"))
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        words.add_argument(word)
    service = Service(shutil.which("chromedriver"))
    with tempfile.TemporaryDirectory() as place, webdriver.Chrome(words, service) as browser:
        browser.set_script_timeout(600)
        os.environ["XDG_CACHE_HOME"] = place
        folder = Path(place)
        (folder / "schema.toml").write_text(tomli_w.dumps(schema_of(12)))
        show(of_the_start(browser, folder, options.times))
        for attributes in options.attributes:
            show(of_errors(attributes, options.times), attributes)
            for method in ("balanced", "forms"):
                show(of_changes(browser, folder, attributes, method, options.times), attributes)
        show(of_a_drag(browser, folder))
        show(of_play(browser, folder, options.play))
    measured.write(options)


if __name__ == "__main__":
    main()
