"""What is taken along: the same mechanism again, byte for byte, and one page for a board."""

import asyncio
import base64
import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from deniable.cli import main
from deniable.collect.questionnaire import read_questionnaire
from deniable.design.matrices import response_from_file, with_responses
from deniable.errors import InputError, Notice
from deniable.schema import Attribute, Schema
from deniable.statement.record import mechanism_to_plain, to_json
from deniable.studio import answers, exports
from deniable.studio.draft import Draft
from deniable.studio.page import LANGUAGES, page
from deniable.studio.request import DraftRequest, request_of
from marked import slow_after
from unit.collect import chromium
from unit.studio.asking import inside, studio
from unit.studio.drafts import ODD, attribute, draft

ODDER = (*ODD, "a", "END OF schema.toml")
WITH_LINES = [attribute(name) for name in ODDER]
DRAFTS = {
    "importance": draft(importance__b="3", epsilon="2,5", pairs="0.3", cap="1.5"),
    "levels": draft(*WITH_LINES).with_controls(
        kind="levels", **{f"level.{n}": "0,5" for n in ODDER}
    ),
    "kept": draft(*WITH_LINES, keep=(ODD[4],), method="kronecker", cap="none"),
    "forms": draft(
        attribute("a"), attribute("b"), method="forms", cap="0.9", pairs="0.5", max_questions="1"
    ),
    "strengths": draft(method="lambda", attenuation="0,3"),
    "frontier": draft(attribute(ODD[0]), attribute("b"), matrix_of=ODD[0], matrix_file="it's.json"),
    "frontier alone": draft(attribute("a"), matrix_of="a", matrix_file="it's.json"),
}


def requested(of: Draft, folder: Path) -> DraftRequest:
    (rows := folder / "rows.json").write_text("[[0.7, 0.3], [0.2, 0.8]]")
    law = {"a": response_from_file(rows, Attribute("a", ("0", "1")))[0]}
    point = with_responses(Schema((Attribute("a", ("0", "1")),)), None, law)
    (folder / "it's.json").write_bytes(to_json(mechanism_to_plain(point)))
    rows.unlink()
    request = request_of(of, folder=folder)
    assert not request.problems
    return request


async def never() -> bool:
    return False


def command(words: Sequence[str], patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "argv", ["deniable", *words])
    main()


@pytest.mark.parametrize("name", slow_after(3, DRAFTS))
def test_programs_make_the_same_mechanism(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = requested(DRAFTS[name], tmp_path)
    mechanism = answers.answer(request)["mechanism"].encode()
    (fresh := tmp_path / "fresh").mkdir()
    monkeypatch.chdir(fresh)
    exec(compile(exports.python_program(request), "design.py", "exec"), {})
    assert Path("mechanism.json").read_bytes() == mechanism
    command(["inspect", "mechanism.json"], monkeypatch)
    Path("mechanism.json").unlink()
    # The program for the shell, up to the command, which is then run in this process.
    (stubs := tmp_path / "stubs").mkdir()
    for stub, does in (("deniable", "printf '%s\\0' \"$@\""), ("rm", "true")):
        (stubs / stub).write_text(f"#!/bin/sh\n{does}\n")
        (stubs / stub).chmod(0o755)
    env = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    script = exports.shell_script(request)
    shell = subprocess.run(["sh"], input=script.encode(), env=env, check=True, capture_output=True)
    command(shell.stdout.decode().split("\0")[:-1], monkeypatch)
    assert Path("mechanism.json").read_bytes() == mechanism


@pytest.mark.slow
def test_programs_run_by_themselves(tmp_path: Path) -> None:
    request = requested(DRAFTS["frontier"], tmp_path)
    mechanism = answers.answer(request)["mechanism"].encode()
    programs = {
        "sh": exports.shell_script(request),
        sys.executable: exports.python_program(request),
    }
    (tmp_path / "it's.json").unlink()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for number, (program, text) in enumerate(programs.items()):
        (fresh := tmp_path / str(number)).mkdir()
        (fresh / "design").write_text(text, encoding="utf-8")
        env = {**os.environ, "PATH": path, "TMPDIR": str(tmp_path)}
        subprocess.run([program, "design"], cwd=fresh, env=env, check=True, capture_output=True)
        assert (fresh / "mechanism.json").read_bytes() == mechanism
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {"0", "1"}, "what the program needed is taken away"


def test_a_matrix_that_is_gone_is_told(tmp_path: Path) -> None:
    request = requested(DRAFTS["frontier"], tmp_path)
    (tmp_path / "it's.json").unlink()
    with pytest.raises(InputError, match="cannot be read any more"):
        exports.shell_script(request)


def test_files_of_a_page(tmp_path: Path) -> None:
    async def look() -> None:
        browser, made, _ = await inside(tmp_path)
        early = await browser.ask("/files/mechanism.json")
        assert (early.status, "no design yet" in early.text) == (409, True)
        await made.answer(made.design_request(), never)
        got = {}
        for name in ("schema.toml", "mechanism.json", "design.sh", "design.py", "summary.html"):
            answer = await browser.ask(f"/files/{name}")
            assert answer.status == 200
            assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
            got[name] = answer.body
        assert Schema.from_plain(tomllib.loads(got["schema.toml"].decode())).names
        digest = hashlib.sha256(got["mechanism.json"]).hexdigest()
        summary = got["summary.html"].decode()
        assert digest in summary
        assert "default-src &#39;none&#39;" in summary
        assert not re.search(r"<script|<link|src=|url\(", summary), "it stands by itself"
        for name in ("report.html", "answer.svg", "questionnaire.toml", "else.toml"):
            assert (await browser.ask(f"/files/{name}")).status in (404, 409)

    asyncio.run(look())


def pages(browser: Any, content: str) -> int:
    browser.get("about:blank")
    browser.execute_script(
        "document.open(); document.write(arguments[0]); document.close()", content
    )
    # The wide margins that some printers leave: tables are tables all the same.
    paper = {"paperWidth": 210 / 25.4, "paperHeight": 297 / 25.4}
    paper |= {f"margin{side}": 0.8 for side in ("Top", "Bottom", "Left", "Right")}
    printed = browser.execute_cdp_cmd("Page.printToPDF", paper)["data"]
    return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed)))


@pytest.mark.slow
@pytest.mark.skipif(not chromium.CHROMIUM, reason="needs Chromium and its driver")
def test_the_summary_is_one_page_of_paper(tmp_path: Path) -> None:
    long = [attribute(f"{i} {'what was asked ' * 30}", 2 + i % 5) for i in range(100)]
    many = draft(*long, attribute("q"), keep=tuple(one["name"] for one in long[:20]))
    tables = "\n".join("\t".join(one["name"] for one in long[i : i + 3]) for i in range(20, 40))
    of = many.with_controls(method="kronecker", epsilon="40", tables=tables)
    of = replace(of, schema={**of.schema, "title": "Title " * 200})
    made, _ = studio(tmp_path, of)
    request = made.design_request()
    asyncio.run(made.answer(request, never))
    driver = chromium.launched()
    try:
        for made.language in LANGUAGES:
            assert pages(driver, page(made, "summary", request, {})) == 1
    finally:
        driver.quit()


FORM = {"title": 'Q & "A"', "purpose": "To see.", "contact": "a@b", "closes": "2999-12-31"}


def test_a_questionnaire_asks_what_the_schema_has(tmp_path: Path) -> None:
    merged = {"part": [attribute("a", labels={"0": "none"}), {"name": "b", "bins": [0, 5, 9]}]}
    schema = draft(merged, attribute("c", question="How many?", ordered=True)).made()
    plain = exports.questionnaire(schema, {**FORM, "consent": "I agree.", "open": "yes"})
    (file := tmp_path / "q.toml").write_text(tomli_w.dumps(plain), encoding="utf-8")
    with pytest.warns(Notice, match="without labels"):
        read = read_questionnaire(file, schema, date(2026, 1, 1))
    assert read["respondents"] == "open"
    texts = [one["texts"]["en"] for one in read["questions"]]
    assert [one["text"] for one in texts] == ["a", "b", "How many?"]
    assert texts[0]["labels"] == ["none", "1"]
    assert texts[1]["labels"] == ["0 to under 5", "5 to 9"]
    assert exports.questionnaire(schema, FORM)["respondents"] == "invited"
    with pytest.raises(InputError, match="closes on a date"):
        exports.questionnaire(schema, {**FORM, "closes": "soon"})
