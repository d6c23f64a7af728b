"""Take the pictures of docs/studio.md from the running page: .venv/bin/python scripts/studio_pictures.py

Needs Debian's chromium and chromium-driver. Prints what the page says in the page's worked story.
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
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"


@contextmanager
def studio() -> Iterator[str]:
    """Serve the shipped example's schema from a folder that is thrown away; yield the address."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copy(ROOT / "examples" / "insurance.toml", place)
        words = ["studio", "insurance.toml", "--no-browser", "--json"]
        command = [sys.executable, "-m", "deniable", *words]
        environment = {**os.environ, "XDG_CACHE_HOME": place}
        with subprocess.Popen(
            command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True
        ) as process:
            printed = iter(process.stdout or ())
            try:
                yield json.loads("".join(line for line, _ in until_closed(printed)))["address"]
            finally:
                process.terminate()


def until_closed(lines: Iterator[str]) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a JSON object, the last one included."""
    for line in lines:
        yield line, line.startswith("}")
        if line.startswith("}"):
            return


def browser() -> webdriver.Chrome:
    words = webdriver.ChromeOptions()
    words.binary_location = str(shutil.which("chromium"))
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        words.add_argument(word)
    return webdriver.Chrome(options=words, service=Service(shutil.which("chromedriver")))


class Page:
    """The page, as somebody uses it who waits for its answers."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def settled(self) -> None:
        """Wait until what is shown is computed."""
        time.sleep(0.5)
        WebDriverWait(self.driver, 60).until(
            lambda d: not d.find_elements(By.CSS_SELECTOR, "#answers[aria-busy]")
        )
        time.sleep(0.5)

    def press(self, step: str) -> None:
        self.driver.find_element(By.CSS_SELECTOR, f'button[value^="{step}"]').click()
        self.settled()

    def typed(self, control: str) -> str:
        return self.driver.find_element(By.ID, f"w-{control}").get_attribute("value") or ""

    def shot(self, name: str, height: int, *, theme: str = "light", width: int = 1200) -> None:
        """Keep what is seen, in 128 colours."""
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        time.sleep(0.5)
        path = IMAGES / f"studio-{name}.png"
        self.driver.save_screenshot(str(path))
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    with studio() as address, browser() as driver:
        page = Page(driver)
        driver.get(address)
        page.settled()
        page.press("solve")
        print("ε found:", page.typed("epsilon"))
        print(driver.find_element(By.ID, "answers").text)
        print([one.text for one in driver.find_elements(By.CSS_SELECTOR, ".notice")])
        page.shot("design", 900)
        page.press("speak de")
        page.shot("design-dark-german", 900, theme="dark")
        page.press("speak en")
        base = address.partition("/enter/")[0]
        driver.get(base + "/schema")
        page.shot("columns", 700)
        driver.get(base + "/summary")
        page.shot("summary", 900, width=800)
        print(driver.find_element(By.TAG_NAME, "body").text)


if __name__ == "__main__":
    main()
