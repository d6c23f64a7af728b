"""Take the pictures of docs/studio.md from the running page, and print the numbers of its story.

    .venv/bin/python scripts/studio_pictures.py

Needs Debian's chromium and chromium-driver.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"

# What the board asks for, one after the other: rows, points, method.
STORY = [
    ("10000", "2", "balanced"),
    ("10000", "3", "balanced"),
    ("22272", "2", "balanced"),
    ("10000", "2", "forms"),
    ("10000", "3", "forms"),
]


@contextmanager
def studio() -> Iterator[str]:
    """Serve the shipped example's schema from a folder that is thrown away; yield the address."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copy(ROOT / "examples" / "insurance.toml", place)
        words = ["studio", "insurance.toml", "--no-browser", "--json"]
        process = subprocess.Popen(
            [sys.executable, "-m", "deniable", *words],
            cwd=place,
            env={**os.environ, "XDG_CACHE_HOME": place},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            yield json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["address"]
        finally:
            process.terminate()
            process.wait()


class Page:
    """The page, as somebody uses it who waits for its answers."""

    def __init__(self, browser: webdriver.Chrome) -> None:
        self.browser = browser

    def wait(self) -> None:
        time.sleep(0.3)
        done = "return !document.querySelector('#answers[aria-busy=true], .htmx-request')"
        while not self.browser.execute_script(done):
            time.sleep(0.1)
        time.sleep(0.3)

    def put(self, control: str, text: str) -> None:
        """Type into a control, and wait for what follows."""
        self.browser.execute_script(
            "const box = document.getElementById(arguments[0]); box.value = arguments[1];"
            "box.dispatchEvent(new Event('input', { bubbles: true }));",
            *(f"w-{control}", text),
        )
        self.wait()

    def press(self, which: str) -> None:
        self.browser.execute_script("document.querySelector(arguments[0]).click()", which)
        self.wait()

    def text(self, which: str) -> str:
        return self.browser.find_element(By.CSS_SELECTOR, which).text

    def shoot(
        self, name: str, size: tuple[int, int], *, of: str = "", theme: str = "light"
    ) -> None:
        """Keep what is seen, in 64 colours; ``of``: where to scroll to first."""
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scroll = (
            "document.activeElement.blur(); document.querySelector(arguments[0]).scrollIntoView()"
        )
        self.browser.execute_script(f"{scroll}; scrollBy(0, -130)", of or "body")
        time.sleep(0.5)
        path = IMAGES / f"studio-{name}.png"
        self.browser.save_screenshot(str(path))
        Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def tell(page: Page) -> None:
    """Print what the page says of each request of the story, and keep it to compare."""
    for rows, points, method in STORY:
        if not page.browser.find_elements(By.CSS_SELECTOR, f"[value={method}]:checked"):
            page.press(f"[name='w.method'][value={method}]")
        page.put("rows", rows)
        page.put("within", points)
        page.press("button[value=solve]")
        print(f"{rows} rows, ± {points}, {method}: {page.text('#solved')}")
        print("  ", page.text(".who tbody").replace("\n", "\n   "))
        if (rows, points, method) == STORY[0]:
            page.shoot("design", (1200, 800))
        if (rows, points, method) != STORY[-1]:
            page.press("button[value^=pin]")


def main() -> None:
    words = webdriver.ChromeOptions()
    words.binary_location = str(shutil.which("chromium"))
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        words.add_argument(word)
    service = Service(shutil.which("chromedriver"))
    with studio() as address, webdriver.Chrome(words, service) as browser:
        page, start = Page(browser), address.partition("/enter/")[0]
        browser.get(address)
        page.wait()
        tell(page)
        page.press("button[value='speak de']")
        page.shoot("compared", (760, 800), of="button[value^=pin]", theme="dark")
        page.press("button[value='speak en']")
        browser.get(f"{start}/schema")
        page.shoot("columns", (1200, 700))
        summary = browser.execute_async_script(
            "fetch('/files/summary.html').then((answer) => answer.text()).then(arguments[0])"
        )
        with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
            file.write(summary)
            file.flush()
            browser.get(f"file://{file.name}")
            page.shoot("summary", (760, 800))


if __name__ == "__main__":
    main()
