"""The options under which a table is read, as they are typed, shown and handed to commands."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deniable.errors import InputError
from deniable.schema import FileFormat
from deniable.studio import importing, opening
from deniable.studio.draft import Draft
from deniable.studio.importing import Reading
from deniable.studio.making import Job
from unit.studio.asking import Browser, inside, studio
from unit.studio.drafts import attribute, draft
from unit.studio.test_opening import KLINIK
from unit.studio.test_steps import run_here


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(function: Callable[..., Any], *given: Any) -> Any:
        return function(*given)

    monkeypatch.setattr(opening, "in_process", at_once)
    monkeypatch.setattr(importing, "in_process", at_once)
    monkeypatch.setattr(Job, "run", run_here)


def test_options_are_those_of_the_schema_and_what_is_typed() -> None:
    stated = {"separator": "\t", "header": False, "columns": ("a", "b"), "encoding": "latin-1"}
    typed = importing.typed_options(stated)
    assert typed == {"separator": "tab", "header": "no", "encoding": "latin-1"}
    same = Reading("t.csv", typed, stated)
    assert (same.file_format, same.options) == (FileFormat(**stated), [])
    other = Reading("t.csv", {**typed, "encoding": "utf-8", "header": "yes"}, stated)
    assert other.options == ["--encoding=utf-8", "--header"]
    assert other.file_format == FileFormat(**stated).with_changes(
        FileFormat(encoding="utf-8", header=True)
    )
    with pytest.raises(InputError, match="there is no encoding"):
        _ = Reading("t.csv", {"encoding": "x"}, {}).file_format


def shown_rows(page: str) -> list[str]:
    (rows,) = re.findall(r'<table class="first">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    return re.findall(r"<td>(?:<span[^>]*>)?([^<]*)", rows)


@pytest.mark.slow
def test_a_latin_1_table_is_opened_and_every_column_has_a_role(tmp_path: Path) -> None:
    (tmp_path / "klinik.csv").write_text(KLINIK, encoding="latin-1")

    async def work() -> None:
        browser, made, _ = await inside(tmp_path, draft=Draft())
        page = (await browser.do("open klinik.csv", view="start")).text
        assert "not UTF-8 text; set “Encoding”" in page
        assert '<option value="windows-1252" selected>' in page
        assert "detected: semicolon" in page
        assert shown_rows(page)[:3] == ["1,50", "Köln", "P000"]
        page = (await browser.do("open klinik.csv", view="start", encoding="latin-1")).text
        assert "Columns read from <bdi>klinik.csv" in page
        assert '<option value="latin-1" selected>' in page
        assert re.findall(r'<label for="role-\d"><bdi>(.*?)</bdi>', page) == [
            "Größe",
            "Stadt",
            "Nr",
        ]
        assert "has a value of its own in every row" in page
        page = (await browser.do("open klinik.csv", view="schema", decimal=".")).text
        assert "not UTF-8 text" in page, "what was chosen is shown, and the draft stays"
        assert made.keeper.draft.columns == ("Größe", "Stadt")
        assert '<option value="." selected>' in page

        roles = {"role.0": "keep", "role.1": "leave_out", "role.2": "person"}
        await browser.do("roles", view="schema", **roles)
        changed = made.keeper.draft
        assert (changed.kept, changed.person) == (("Größe",), "Nr")
        assert changed.columns == ("Größe",)
        await browser.do("roles", view="schema", **{"role.1": "randomize", "role.2": "randomize"})
        declared = {one["name"]: one for one in made.keeper.draft.attributes}
        assert list(declared["Stadt"]["categories"]) == ["Köln", "Würzburg"], "drafted again"
        assert declared["Nr"]["categories"] == ["no", "yes"]
        assert made.keeper.draft.person == ""

    asyncio.run(work())


def test_a_table_named_on_the_command_line_is_asked_about_first(tmp_path: Path) -> None:
    (tmp_path / "klinik.csv").write_text(KLINIK, encoding="latin-1")

    async def work() -> None:
        browser, _, _ = await inside(tmp_path, draft=Draft(table="klinik.csv"))
        page = (await browser.ask("/start")).text
        assert "not UTF-8 text" in page
        assert 'value="open klinik.csv" class="main"' in page

    asyncio.run(work())


@pytest.mark.slow
def test_a_release_is_read_with_the_options_that_are_shown(tmp_path: Path) -> None:
    (tmp_path / "klinik.csv").write_text(KLINIK, encoding="latin-1")
    (tmp_path / "other.csv").write_text(KLINIK.replace(";", "|"), encoding="utf-8")
    towns = attribute("Stadt", 2) | {"categories": ["Köln", "Würzburg"]}
    of = draft(towns)
    stated = {"encoding": "latin-1", "separator": ";"}
    of = Draft(of.schema | {"file": stated}, of.controls, (), "klinik.csv", {"Nr": "x"}, "Nr")

    async def work() -> None:
        made, _ = studio(tmp_path, of)
        browser = Browser(made.app())
        await browser.enter()
        page = (await browser.ask("/release")).text
        assert shown_rows(page)[:2] == ["1,50", "Köln"]
        for line in ("randomize: <bdi>Stadt", "leave out: <bdi>Größe", "person&#39;s id: <bdi>Nr"):
            assert line in page
        form = {"table": "other.csv", "output": "release", "drop_other_columns": "yes"}
        page = (await browser.do("look", view="release", **form, encoding="utf-8")).text
        assert "Declared, but not in the file: <bdi>Stadt" in page
        typed = {**form, "encoding": "utf-8", "separator": "|"}
        page = (await browser.do("look", view="release", **typed)).text
        assert shown_rows(page)[:2] == ["1,50", "Köln"]
        for name, step in (("check_release", "release"), ("release", "make_release")):
            await browser.do(step, view="release", **typed)
            job = made.jobs[name]
            while job.status is None:
                await asyncio.sleep(0.01)
        assert job.status == 0, job.lines
        assert {"--encoding=utf-8", "--separator=|"} <= set(job.arguments)
        assert (tmp_path / "release" / "data.csv").exists()
        for name in ("../t.csv", "/etc/passwd", "~/t.csv"):
            page = (await browser.do("release", view="release", **form | {"table": name})).text
            assert "is not in the folder" in page

    asyncio.run(work())
