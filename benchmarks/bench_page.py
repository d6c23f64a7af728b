"""What a respondent's device has to do: bytes of the page, and milliseconds in Chromium until the
first record is drawn and what the study states is checked.

    python benchmarks/bench_page.py [--attributes 12 100] [--times 9]

Needs Debian's chromium and chromium-driver. Every time is of a page of its own, so that nothing is
compiled yet; the processor as it is, and throttled six times.
"""

import argparse
import gzip
import json
import shutil
import statistics
import sys
import tempfile
from datetime import date
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from deniable.collect.page import page_bytes
from deniable.collect.scripts import CHECKING, DRAWING, PAGE, joined
from deniable.collect.study import Study, new_study
from deniable.design.design import design
from deniable.schema import Schema
from deniable.statement.record import mechanism_to_plain, to_json

MEASURED = """
return (({ mechanism, gates, sizes }) => {
  const at = [performance.now()];
  const names = mechanism.attributes.map((attribute) => attribute.name);
  const sampler = new Sampler(mechanism.blocks, gates, names, sizes);
  sampler.draw(sizes.map(() => 0), new SystemBits());
  at.push(performance.now());
  checkStatements(sampler, mechanism);
  at.push(performance.now());
  for (let i = 0; i < 20; i++) sampler.draw(sizes.map(() => 0), new SystemBits());
  at.push(performance.now());
  return [at[1] - at[0], at[2] - at[1], (at[3] - at[2]) / 20];
})(JSON.parse(arguments[0]));
"""


def study_of(attributes: int, method: str | None, folder: Path) -> Study:
    names = [f"a{i}" for i in range(1, attributes + 1)]
    asked = "".join(f'[[question]]\nattribute = "{n}"\ntext = "How often?"\n' for n in names)
    head = 'title = "T"\npurpose = "P"\ncontact = "C"\ncloses = 2099-01-01\n'
    head += 'respondents = "open"\nconsent = ["Yes."]\n'
    (folder / "q.toml").write_text(head + asked)
    plan = design(Schema.anonymous((5,) * attributes), epsilon=4.0, method=method)
    (folder / "m.json").write_bytes(to_json(mechanism_to_plain(plan)))
    return new_study(folder / "m.json", folder / "q.toml", date.today())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--attributes", type=int, nargs="*", default=[12, 100])
    parser.add_argument("--times", type=int, default=9)
    options = parser.parse_args()
    print(f"own code: {len(joined(PAGE)) / 1000:.1f} kB")
    words = webdriver.ChromeOptions()
    words.binary_location = str(shutil.which("chromium"))
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        words.add_argument(word)
    code = joined((*DRAWING, *CHECKING)) + MEASURED
    service = Service(shutil.which("chromedriver"))
    with webdriver.Chrome(options=words, service=service) as browser:
        for attributes in options.attributes:
            for method in (None, "optimal"):
                with tempfile.TemporaryDirectory() as place:
                    study = study_of(attributes, method, Path(place))
                family = study.design.mechanism.blocks[0].law.family
                page = page_bytes(study)
                print(
                    f"{attributes} attributes, {method or 'default'} ({family}): page "
                    f"{len(page) / 1000:.0f} kB, compressed "
                    f"{len(gzip.compress(page, mtime=0)) / 1000:.1f} kB"
                )
                for rate in (1, 6):
                    found = []
                    for _ in range(options.times):
                        browser.get("about:blank")
                        browser.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": rate})
                        found.append(browser.execute_script(code, json.dumps(study.plain)))
                    drawn, checked, again = map(statistics.median, zip(*found, strict=True))
                    print(
                        f"  processor / {rate}: tables and first draw {drawn:.1f} ms, checking "
                        f"{checked:.1f} ms, another draw {again:.2f} ms"
                    )


if __name__ == "__main__":
    sys.exit(main())
