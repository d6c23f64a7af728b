"""What is made from the page: releases, studies and answers, by the real commands."""

import asyncio
import csv
import io
import random
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from html import escape
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from deniable.cli import main
from deniable.studio import opening, steps
from deniable.studio.draft import Draft
from deniable.studio.making import Job
from deniable.studio.server import Studio
from unit.studio.asking import Answer, Browser, inside, studio
from unit.studio.drafts import ODD, attribute, draft

COMMAS, QUOTES = ODD[4], ODD[0]
OF = draft(attribute(COMMAS), attribute(QUOTES, 3), attribute("c"), keep=("region",))
WHO = ["person", "region", COMMAS, QUOTES, "c"]


def write_table(file: Path, rows: int) -> None:
    draw = random.Random(1)
    with file.open("w", newline="") as opened:
        out = csv.writer(opened)
        out.writerow(WHO)
        out.writerows(
            [i // 2, draw.choice("ns"), draw.randrange(2), draw.randrange(3), draw.randrange(2)]
            for i in range(rows)
        )


RUN = Job.run


async def run_here(job: Job) -> None:
    """Run a command in this process: another takes two seconds to begin."""
    out, err = io.StringIO(), io.StringIO()
    job.status = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["deniable", *job.words])
        patch.chdir(job.folder)
        try:
            main()
        except SystemExit as end:
            job.status = int(end.code or 0)
    job.printed = out.getvalue().encode()
    for line in err.getvalue().splitlines():
        job.note(line)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studio")
    write_table(folder / "people.csv", 400)
    for name, locked in (("key", NoEncryption()), ("locked", BestAvailableEncryption(b"abc"))):
        key = Ed25519PrivateKey.generate()
        (folder / name).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
        (folder / name).chmod(0o600)
    return folder


@pytest.fixture(scope="module")
def made(folder: Path) -> Iterator[Studio]:
    """A studio that has made a release."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "run", run_here)
        made, _ = studio(folder, OF)
        assert "Read the report" in press(made, "release", RELEASE).text
        yield made


def press(made: Studio, step: str, form: Mapping[str, str]) -> Answer:
    """Press a button and, after a check that finds nothing, the one that makes what was checked;
    return the page that is shown then."""

    async def pressed() -> Answer:
        browser = Browser(made.app())
        await browser.enter()
        view, answer = step, await browser.do(step, None, view=step, **form)
        if step in ("release", "study"):
            view = f"check_{step}"
            if 'role="alert">' in answer.text or await ended(view):  # something stands against it
                return answer
            await browser.do(f"make_{step}", None, view=view, **form)
        if step not in made.jobs:
            return answer
        await ended(step)
        return answer if 'role="alert">' in answer.text else await browser.ask(f"/{view}")

    async def ended(name: str) -> int:
        while (status := made.jobs[name].status) is None:
            await asyncio.sleep(0.01)
        return status

    return asyncio.run(pressed())


def asked(made: Studio, path: str) -> Answer:
    async def look() -> Answer:
        browser = Browser(made.app())
        await browser.enter()
        return await browser.ask(path)

    return asyncio.run(look())


RELEASE = {
    "table": "people.csv",
    "output": "release",
    "shuffle": "yes",
    "person": "person",
    "person_epsilon": "99",
    "ledger": "people.ledger",
    "new_ledger": "yes",
    "population": "all of them",
    "sign": "key",
}


FEW = {"table": "people.csv", "output": "release", "drop_other_columns": "yes"}


def test_a_release_is_what_share_makes(made: Studio, folder: Path) -> None:
    names = {file.name for file in (folder / "release").iterdir()}
    assert {"data.csv", "record.json", "report.html", "SHA256SUMS.sig"} <= names
    assert b"NOT PROTECTED, released unchanged: region" in made.jobs["release"].printed
    assert (folder / "people.ledger").exists()
    page = asked(made, "/release").text
    for typed in ('value="people.ledger"', 'name="shuffle" value="yes" checked'):
        assert typed in page, "what was typed stays"
    report = asked(made, "/files/report.html")
    assert report.body == (folder / "release" / "report.html").read_bytes()
    assert "content-security-policy" not in report.headers, "it brings a policy of its own"
    assert 'href="/files/report.html"' in asked(made, "/design").text


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"output": ""}, "name the table with the people"),
        ({}, "exists already"),
        ({"output": "other", "table": "nobody.csv"}, "nobody.csv: there is no such file"),
        ({"output": "other", "also": "sav"}, "no valid name for a .sav file"),
        (
            {"output": "other", "sign": "locked"},
            "set the environment variable DENIABLE_SIGN_PASSPHRASE",
        ),
    ],
)
def test_why_nothing_was_made_is_told(made: Studio, typed: dict[str, str], sentence: str) -> None:
    before = made.jobs.copy()
    page = press(made, "release", {**RELEASE, **typed})
    made.jobs |= before
    assert sentence in page.text
    assert 'role="alert">' in page.text


def test_a_key_with_a_pass_phrase_signs_if_the_program_has_it(
    made: Studio, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "DENIABLE_SIGN_PASSPHRASE" in asked(made, "/release").text, "said beforehand"
    monkeypatch.setenv("DENIABLE_SIGN_PASSPHRASE", "abc")
    before = made.jobs.copy()
    page = press(made, "release", {**RELEASE, "output": "locked release", "sign": "locked"})
    made.jobs |= before
    assert "/files/report.html" in page.text
    assert (folder / "locked release" / "SHA256SUMS.sig").exists()


def test_what_was_read_off_the_data_is_accepted_or_refused(made: Studio, tmp_path: Path) -> None:
    write_table(tmp_path / "people.csv", 10)
    drafted, _ = studio(tmp_path, draft(attribute("c", drafted=True), attribute(COMMAS)))
    assert 'name="accept_drafted"' in press(drafted, "release", FEW).text
    page = press(drafted, "release", FEW | {"accept_drafted": "yes"}).text
    assert "/files/report.html" in page


THREE = {"table.1": COMMAS, "table.2": QUOTES, "table.3": "c"}


def test_a_release_is_asked_for_any_table(made: Studio) -> None:
    page = press(made, "estimate", {"release": "release", **THREE}).text
    found = made.jobs["estimate"].result()
    assert found["attributes"] == [COMMAS, QUOTES, "c"]
    assert page.count('scope="row"') == 12
    assert f"{100 * found['cells'][0]['high']:.1f}&#160;%" in page
    assert "answer.svg" not in page, "there is no picture of three"
    for typed, sentence in (
        ({}, "name one to three attributes"),
        ({"release": ""}, "name the folder of the release"),
        ({"table.1": COMMAS, "table.2": COMMAS}, "twice"),
        ({"table.1": COMMAS, "release": "nothing"}, "there is no such file or folder"),
    ):
        assert sentence in press(made, "estimate", {"release": "release", **typed}).text


@pytest.mark.slow
def test_an_answer_has_a_picture(made: Studio) -> None:
    page = press(
        made, "estimate", {"release": "release", "table.1": COMMAS, "table.2": QUOTES}
    ).text
    assert page.count('scope="row"') == 6
    assert "/files/answer.svg" in page
    picture = asked(made, "/files/answer.svg")
    assert (picture.status, picture.headers["content-type"]) == (200, "image/svg+xml")
    assert b"<svg" in picture.body
    assert str(made.cache) not in page, "the page shows no path of the cache"
    assert "The plot is in" not in page


MODEL = {"kind": "model", "release": "release", "response": "c", "terms": f'Q("{COMMAS}")'}


@pytest.mark.slow
def test_a_release_is_asked_for_a_model(made: Studio) -> None:
    page = press(made, "estimate", {**MODEL, "where": "region = n\n\n", "collapse": ""}).text
    job = made.jobs["estimate"]
    found = job.result()
    assert job.command.endswith("'--where=region = n' --json")
    assert found["kind"] == "logistic"
    assert page.count('scope="row"') == len(found["coefficients"]) + len(found["tests"])
    assert f"<caption>Logistic model {escape(found['formula'])}" in page.replace("&#34;", "&quot;")
    estimate = found["coefficients"][0]["estimate"]
    assert (f"{estimate:.4g}" if estimate is not None else "the release cannot say") in page
    assert "needs" not in page
    for typed, sentence in (
        ({"terms": ""}, "formula"),
        ({"answered": "yes"}, "has a declared missing category"),
        ({"where": "nonsense"}, "where"),
        ({"collapse": "c"}, "collapse"),
    ):
        page = press(made, "estimate", MODEL | typed).text
        assert 'role="alert">' in page
        assert sentence in page.partition('id="job-estimate"')[2].partition("<form")[0]


def test_synthetic_copies_are_made_and_their_results_combined(made: Studio, folder: Path) -> None:
    form = {"kind": "synthetic", "release": "release", "copies": "5", "rows": "synthetic"}
    assert "name the folder to make" in press(made, "estimate", form).text
    page = press(made, "estimate", form | {"output": "synthetic"}).text
    assert made.jobs["estimate"].result()["copies"] == 5
    assert "<b>5</b> × 400 rows: <code>synthetic</code>" in page
    about = asked(made, "/files/about.html")
    assert about.body == (folder / "synthetic" / "about.html").read_bytes()
    assert "exists already" in press(made, "estimate", form | {"output": "synthetic"}).text
    lines = [f"{copy},share,0.{copy}5,0.01" for copy in range(1, 6)]
    results = folder / "synthetic" / "results.csv"
    results.write_text("\n".join(["copy,term,estimate,std_error", *lines]) + "\n")
    combine = {"kind": "combine", "results": ""}
    assert "name the file with the results" in press(made, "estimate", combine).text
    page = press(made, "estimate", combine | {"results": "synthetic/results.csv"}).text
    (term,) = made.jobs["estimate"].result()["terms"]
    assert f"{term['estimate']:.4g}" in page
    assert asked(made, "/files/about.html").status == 409, "that job is replaced"


def test_a_release_that_says_nothing_is_called_that(made: Studio, tmp_path: Path) -> None:
    write_table(tmp_path / "people.csv", 30)
    of = [attribute(COMMAS), attribute(QUOTES, 3), attribute("c")]
    weak, _ = studio(tmp_path, draft(*of, epsilon="1", method="kronecker"))
    press(weak, "release", FEW)
    page = press(weak, "estimate", {"release": "release", **THREE}).text
    assert "NOTHING CAN BE READ." in page


def test_a_study_asks_the_questions_of_the_columns(tmp_path: Path, made: Studio) -> None:
    opened, _ = studio(
        tmp_path, draft(attribute(COMMAS, question="How?"), attribute("c", ordered=True))
    )
    form = {"output": "study", "title": "Q", "purpose": "P", "contact": "C", "closes": "2999-12-31"}
    assert "name the folder" in press(opened, "study", {}).text
    assert "consent" in press(opened, "study", form).text
    assert "The study is open" in press(opened, "study", form | {"consent": "Yes."}).text
    page = asked(opened, "/study").text
    assert "Try it on this machine" in page
    assert 'name="open" value="yes">' in page, "what was typed stays"
    given = asked(opened, "/files/questionnaire.toml")
    assert given.headers["content-disposition"] == 'attachment; filename="questionnaire.toml"'
    questions = tomllib.loads(given.text)["question"]
    assert [one["text"] for one in questions] == ["How?", "c"]


@pytest.mark.slow
def test_what_was_made_is_listed_again_after_a_restart(tmp_path: Path, made: Studio) -> None:
    write_table(tmp_path / "people.csv", 400)
    first, _ = studio(tmp_path, OF)
    press(first, "release", FEW)
    press(first, "estimate", {"release": "release", "table.1": "c"})
    study = {"output": "study", "title": "Q", "purpose": "P", "contact": "C", "consent": "Yes."}
    first.keeper.change(lambda _: draft(attribute("c")))
    press(first, "study", study | {"closes": "2999-12-31"})
    assert first.jobs["release"].status == 0
    assert "belongs to the draft before the last changes" in asked(first, "/release").text
    first.jobs["rehearsal"] = Job(["collect", "serve", "study"], tmp_path, "study")
    first._remember()  # killed before the rehearsal has ended
    again, _ = studio(tmp_path, first.keeper.draft)
    for view in ("/release", "/estimate"):
        ours, theirs = (asked(each, view).text.partition('id="job-')[2] for each in (first, again))
        ours, theirs = (text.partition("<form")[0] for text in (ours, theirs))
        assert re.sub(r"svg\?\d+", "", ours) == re.sub(r"svg\?\d+", "", theirs)
    assert "Read the report" in asked(again, "/release").text
    assert asked(again, "/files/report.html").status == 200
    told = asked(again, "/study").text
    assert "the studio was closed during this job" in told
    assert "serve study" in told
    assert "Try it on this machine" in told
    assert (again.cache / "jobs.json").stat().st_mode & 0o77 == 0
    # What has been removed meanwhile, or cannot be read, is not listed.
    shutil.rmtree(tmp_path / "release")
    assert "release" not in studio(tmp_path, OF)[0].jobs
    for content in ("", "[]", '{"release": {}}', '{"release": 1}'):
        (again.cache / "jobs.json").write_text(content)
        assert studio(tmp_path, OF)[0].jobs == {}


@pytest.mark.slow
def test_processes_are_stopped_as_by_control_and_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Job, "run", RUN)
    write_table(tmp_path / "few.csv", 1000)
    head, rows = (tmp_path / "few.csv").read_text().split("\n", 1)
    (tmp_path / "people.csv").write_text(head + "\n" + 300 * rows)

    async def walk() -> None:
        made, _ = studio(tmp_path, OF)
        browser = Browser(made.app())
        await browser.enter()
        await browser.do("release", None, view="release", **FEW)
        while made.jobs["check_release"].status is None:
            await asyncio.sleep(0.05)
        await browser.do("make_release", None, view="check_release", **FEW)
        while not list(tmp_path.glob(".release.*")):
            assert made.jobs["release"].status is None
            assert 'id="stop-release"' in (await browser.ask("/release")).text
            await asyncio.sleep(0.01)
        stopped = await browser.do("stop release", view="release")
        assert "interrupted; no incomplete output remains" in stopped.text
        assert not list(tmp_path.glob("*release*"))
        assert made.jobs["release"].doing == "Randomizing"

        made.keeper.change(lambda _: draft(attribute("c")))
        form = {"output": "study", "title": "Q", "purpose": "P", "contact": "C", "consent": "Yes."}
        form |= {"closes": "2999-12-31", "open": "yes"}
        await browser.do("study", None, view="study", **form)
        await asyncio.gather(*made.running)
        await browser.do("make_study", None, view="check_study", **form)
        await asyncio.gather(*made.running)
        await browser.do("rehearse", view="study", output="study")
        while not (at := made.jobs["rehearsal"].result()):
            assert made.jobs["rehearsal"].status is None
            await asyncio.sleep(0.01)
        page = await asyncio.to_thread(lambda: urlopen(at["respondents"]).read().decode())
        assert "<title>Q" in page
        assert at["steward"] in (await browser.ask("/study")).text
        assert at["steward"] not in (await browser.do("stop rehearsal", view="study")).text
        assert made.jobs["rehearsal"].status == 0

    asyncio.run(walk())


# --- requests, by their buttons -------------------------------------------------------------------


async def answered(function: Callable[..., Any], *given: Any) -> Any:
    """Compute in this process."""
    await asyncio.sleep(0)
    return function(*given)


def test_tables_pins_and_languages_are_chosen_by_buttons(tmp_path: Path) -> None:
    async def work() -> None:
        browser, made, _ = await inside(tmp_path)

        def draft() -> Draft:
            return made.keeper.draft

        both = {"table.1": "smokes", "table.2": "drinks"}
        for _ in range(2):  # once is enough
            await browser.do("add_table", **both)
        assert made.design_request().tables == [["smokes", "drinks"]]
        twice = await browser.do("add_table", **{"table.1": "smokes", "table.2": "smokes"})
        assert "choose one to three attributes, each once" in twice.text
        await browser.do("remove_table smokes\tdrinks")
        assert made.design_request().tables == []
        for name in "ABCD":
            await browser.do("pin")
            assert draft().pins[-1]["pin"] == name
        assert "at most 4 are compared" in (await browser.do("pin")).text
        await browser.do("update", **{"w.epsilon": "3"})
        await browser.do("unpin B")
        await browser.do("use A")
        assert [pin["pin"] for pin in draft().pins] == ["A", "C", "D"]
        assert draft().controls == {"epsilon": "2"}
        await browser.do("use none")
        assert draft().controls == {"epsilon": "2"}
        await browser.do("undo")
        assert draft().controls == {"epsilon": "3"}
        await browser.do("redo")
        assert draft().controls == {"epsilon": "2"}
        assert 'lang="de"' in (await browser.do("speak de")).text.partition("<body")[0]
        await browser.do("speak xx")
        assert made.language == "de"

    asyncio.run(work())


def test_the_smallest_total_is_found_unless_the_wish_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(*_: Any) -> Any:
        await asyncio.sleep(60)

    async def work() -> None:
        browser, made, _ = await inside(tmp_path)
        monkeypatch.setattr(steps, "in_process", answered)
        found = await browser.do("solve", **{"w.within": "5", "w.method": "kronecker"})
        assert "<b><bdi>drinks</bdi></b>" in found.text
        assert made.keeper.draft.controls["epsilon"] not in ("2", "4")
        assert "ε" in (await browser.do("solve", **{"w.epsilon": "-1"})).text
        refused = await browser.do("solve", **{"w.epsilon": "2", "w.method": "lambda"})
        assert "this finds a total" in refused.text
        monkeypatch.setattr(steps, "in_process", slow)
        finding = asyncio.create_task(browser.do("solve", **{"w.method": "kronecker"}))
        await asyncio.sleep(0.05)
        await browser.do("update", **{"w.rows": "500"})
        assert "the request was changed" in (await finding).text

    asyncio.run(work())


def test_a_draft_begins_with_names_a_file_or_the_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        browser, made, _ = await inside(tmp_path)
        monkeypatch.setattr(opening, "in_process", answered)
        monkeypatch.setattr(Job, "run", run_here)
        await browser.do("names", names="a, b")
        assert made.keeper.draft.columns == ("a", "b")
        (tmp_path / "t.csv").write_text("sex\n" + "f\nm\n" * 20)
        await browser.do("open t.csv")
        assert (made.keeper.draft.columns, made.keeper.draft.table) == (("sex",), "t.csv")
        for _ in range(2):  # also where it is there
            await browser.do("example")
            assert made.keeper.draft.table == "example/insurance.csv"
            assert "race" in made.keeper.draft.columns

    asyncio.run(work())


def test_all_that_stands_against_a_release_is_shown_at_once(made: Studio, tmp_path: Path) -> None:
    # Failed before: one thing at a time, in words of the command line, with no control for some.
    write_table(tmp_path / "people.csv", 40)
    (tmp_path / "release").mkdir()
    main(["ledger", "budget", str(tmp_path / "l"), "--epsilon", "20", "--population", "all"])
    checked, _ = studio(tmp_path, draft(attribute("c", drafted=True), attribute(COMMAS)))
    before = sorted(tmp_path.iterdir())
    form = {"table": "people.csv", "output": "release", "ledger": "mistyped", "sign": "no key"}
    page = press(checked, "release", form).text
    for name in ("overwrite", "new_ledger", "accept_drafted", "drop_other_columns"):
        assert f'<input type="checkbox" id="f-{name}" name="{name}"' in page
    for name in ("table", "output", "ledger", "sign"):
        assert f'<input type="text" id="f-{name}"' in page
    assert "--" not in re.sub("<[^>]*>", "", page.partition("<main")[2]), "an option of a command"
    assert "release" not in checked.jobs
    ticked = {"accept_drafted": "yes", "drop_other_columns": "yes", "overwrite": "yes"}
    page = press(checked, "release", {**form, **ticked, "sign": "", "ledger": "l"}).text
    assert "is not in this ledger, which has budgets" in page
    assert '<input type="hidden" name="overwrite" value="yes">' in page, "what was settled stays"
    assert '<input type="text" id="f-population"' in page
    assert sorted(tmp_path.iterdir()) == before
    settled = {**form, **ticked, "sign": "", "ledger": "l", "population": "all"}
    assert "The release is made" in press(checked, "release", settled).text
    assert (tmp_path / "release" / "record.json").exists()


def test_a_check_shows_the_ledger_before_and_after(
    made: Studio, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DENIABLE_LEDGER", str(folder / "people.ledger"))
    assert str(folder / "people.ledger") in asked(made, "/release").text
    before, making = made.jobs.copy(), made.from_check.copy()
    page = press(made, "release", {**RELEASE, "ledger": "", "new_ledger": "", "sign": ""}).text
    made.jobs |= before
    made.from_check |= making
    shown = dict(re.findall(r"<dt>([^<]*)</dt>\s*<dd>(.*?)</dd>", page))
    assert shown["Ledger"] == f"<code>{folder / 'people.ledger'}</code>"
    assert "all of them" in shown["Population"]
    spent = shown["Spent before, in nats"], shown["Spent after this"].partition(" ")[0]
    assert (float(spent[0]) >= 8, float(spent[1]) - float(spent[0])) == (True, 8.0)
    assert "no budget" in shown["Left of the budget"]


def test_what_has_changed_since_it_was_checked_is_not_made(made: Studio, tmp_path: Path) -> None:
    write_table(tmp_path / "people.csv", 40)
    checked, _ = studio(tmp_path, OF)

    async def changed() -> Answer:
        browser = Browser(checked.app())
        await browser.enter()
        assert "check it first" in (await browser.do("make_release", view="check_release")).text
        page = (await browser.do("release", view="release", **FEW)).text
        assert 'value="make_release"' in page
        checked.keeper.change(lambda draft: draft.with_controls(epsilon="3"))
        page = (await browser.ask("/check_release")).text
        assert "The design has changed" in page
        assert 'value="make_release"' not in page
        return await browser.do("make_release", view="check_release", **FEW)

    assert "check it first" in asyncio.run(changed()).text
    assert not (tmp_path / "release").exists()


def test_a_release_that_fails_comes_back_to_the_check(made: Studio, tmp_path: Path) -> None:
    # Failed before: the form came back empty of what had been said, and the reason had no control.
    write_table(tmp_path / "people.csv", 40)
    failed, _ = studio(tmp_path, OF)

    async def pressed() -> Answer:
        browser = Browser(failed.app())
        await browser.enter()
        page = (await browser.do("release", view="release", **FEW)).text
        assert 'role="alert">' not in page
        other = {**FEW, "output": "other"}
        page = (await browser.do("make_release", view="check_release", **other)).text
        assert "make_release" in page, "what has been typed since is checked first"
        assert "release" not in failed.jobs
        await browser.do("release", view="check_release", **FEW)
        (tmp_path / "release").mkdir()  # meanwhile
        await browser.do("make_release", view="check_release", **FEW)
        while failed.running:
            await asyncio.sleep(0.01)
        return await browser.ask("/check_release")

    page = asyncio.run(pressed()).text
    assert page.count("it exists already") == 1
    assert '<input type="checkbox" id="f-overwrite" name="overwrite"' in page
    assert '<input type="text" id="f-output" name="output" value="release"' in page
    assert "It failed." in page
    assert 'value="release" class="main">Check again' in page
