"""The page as a function of the draft: every view in every state, and its texts."""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from deniable.report.rendering import read
from deniable.statement.methods import METHODS
from deniable.studio import answers
from deniable.studio.draft import Draft, Keeper
from deniable.studio.page import (
    CHECKS,
    LANGUAGES,
    STYLE,
    VIEWS,
    compared,
    files_in,
    offered_in,
    page,
    texts,
    worst,
)
from deniable.studio.place import Place
from deniable.studio.request import request_of, tables_text
from deniable.studio.sentences import translated
from deniable.studio.server import Studio
from unit.studio.drafts import ODD, attribute, draft

TEMPLATES = Path(str(__import__("deniable.studio").studio.__file__)).parent / "templates"


def studio(folder: Path, draft: Draft) -> Studio:
    return Studio(Keeper(folder / "d.studio.toml", draft), Place(folder, folder / "cache", "s", 1))


def answered(studio: Studio) -> None:
    """Compute what is requested and what is compared, here."""
    for typed in (studio.keeper.draft.controls, *studio.keeper.draft.pins):
        request = studio.design_request(typed)
        if not request.problems:
            studio.answers._known[request.digest] = answers.answer(request)


class Seen(HTMLParser):
    """The ids of a page, what refers to them, and whether every element ends."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.referred: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids += [found["id"]] if "id" in found else []
        self.referred |= {found["for"]} if "for" in found else set()
        self.referred |= set(found.get("aria-describedby", "").split())
        if tag not in ("meta", "link", "input", "img", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(text: str) -> None:
    seen = Seen(text)
    assert seen.open == []
    assert len(set(seen.ids)) == len(seen.ids)
    assert seen.referred <= set(seen.ids)
    assert "<b>bold" not in text
    assert 'said "no"' not in re.sub(r">[^<]*<", "><", text)  # not in an attribute


def odd(**typed: str) -> Draft:
    names = [attribute(name, 3, labels={"0": ODD[1]}, question=name) for name in ODD]
    declared = [
        *names,
        {"names": ["p", "q"], "bins": [0, 1, "inf"]},
        {"name": "pay", "range": [0, 2.5], "unit": "<b>bold", "missing": "category:NA"},
        {"part": [attribute("m"), attribute("n")]},
    ]
    tables = tables_text([ODD[:3], ["p", "m"]])
    return draft(*declared, keep=(ODD[0], "other"), **{"tables": tables, **typed})


STATES: dict[str, Draft] = {
    "empty": Draft(),
    "odd": odd(),
    "problems": odd(epsilon="1e", rows="0", tables="gone", assume="typed"),
    "levels": odd(
        kind="levels",
        assume="worst",
        **{f"level.{name}": "1" for name in (*ODD[1:], "p", "q", "m+n")},
    ),
    "unchosen": draft(epsilon=""),
    "no schema": draft(attribute("a"), attribute("b", 1)),
    **{
        method: draft(attribute("a"), attribute("b"), method=method, attenuation="0.5")
        for method in METHODS
    },
    "pins": Draft(
        draft().schema, {}, ({"pin": "A", "epsilon": "1"}, {"pin": "B", "rows": "x"}), "t.csv"
    ),
    "refused": draft(
        kind="levels", method="heuristic", level__a="5", level__b="0.1", level__c="3"
    ),
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_every_view_is_shown_in_every_state(tmp_path: Path, state: str) -> None:
    shown = studio(tmp_path, STATES[state])
    request = shown.design_request()
    language = {"odd": "de"}.get(state, "en")
    shown.language = language
    views = (*VIEWS, *CHECKS) if state in ("empty", "odd", "no schema") else ("design", "release")
    for view in views:
        check(page(shown, view, request, {}))
    if request.problems:
        for name, sentence in request.problems.items() if shown.keeper.draft.attributes else ():
            said = translated(sentence, language) or sentence
            expected = "ε has not been chosen yet" if name in request.unchosen else said[:10]
            assert expected in unescape(page(shown, "design", request, {}))
        return
    waiting = page(shown, "design", request, {}, partial=True, computing=request.digest)
    assert f'hx-get="/answers/{request.digest}"' in waiting
    if state == "refused":
        shown.answers._known[request.digest] = {"problem": ODD[1]}
    else:
        answered(shown)
    for view in views:
        text = page(shown, view, request, {"page": ODD[1], "solve": ODD[0]})
        check(text)
        assert view != "design" or f'data-request="{request.digest}"' in text
    if state != "refused":
        check(page(shown, "summary", request, {}))


def test_no_answer_of_another_wish_is_shown(tmp_path: Path) -> None:
    shown = studio(tmp_path, draft())
    answered(shown)
    told = page(shown, "design", shown.design_request(), {})
    for change in ({"epsilon": "3"}, {"within": "3"}, {"rows": "20000"}, {"epsilon": "1e"}):
        shown.keeper.change(lambda _, change=change: draft(**change))
        request = shown.design_request()
        text = page(shown, "design", request, {})
        assert f'data-request="{request.digest}"' in text
        assert "Rows needed" in told
        assert "Rows needed" not in text


def test_too_many_attributes_get_one_sentence(tmp_path: Path) -> None:
    shown = studio(tmp_path, draft(*[attribute(f"a{i}") for i in range(1001)]))
    text = page(shown, "design", shown.design_request(), {})
    assert text.count("1,001 attributes are more than this page can show") == 2  # and in the list


# --- what is shown ------------------------------------------------------------------------------


def test_files_that_can_be_opened_are_listed(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name in ("b.csv", "a.toml", "c.txt", ".hidden.csv", "below/d.json"):
        (tmp_path / name).touch()
    assert files_in(tmp_path, "") == [("a.toml", False), ("b.csv", False), ("below", True)]
    assert files_in(tmp_path, "below") == [("below/d.json", False)]
    assert files_in(tmp_path, "nowhere") == []


def test_tables_and_releases_below_are_offered(tmp_path: Path) -> None:
    for name in (
        *("b.csv", "a.txt", ".hidden.csv", "bell\a.csv", "below/D.CSV", "below/on/e.sav"),
        *("release/data.csv", "release/record.json", "study/study.json", "study/x.csv"),
        *("1/2/3/four.csv", "1/2/3/4/five.csv", "below/released/record.json", ".git/g.csv"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    assert offered_in(tmp_path) == {
        "tables": ["b.csv", "below/D.CSV", "below/on/e.sav", "1/2/3/four.csv"],
        "releases": ["release", "below/released"],
    }
    shown = studio(tmp_path, draft())
    text = page(shown, "release", shown.design_request(), {})
    assert '<option value="below/on/e.sav">' in text
    check(text)
    for i in range(300):
        (tmp_path / f"many{i}").mkdir()
        (tmp_path / f"many{i}" / "t.csv").touch()
    assert 100 < len(offered_in(tmp_path)["tables"]) < 203


def test_what_is_compared_is_drawn() -> None:
    tables = [{"attributes": [f"a{i}"], "half_width": i / 100} for i in range(50)]
    assert worst(tables) == 0.49
    assert worst([{"half_width": None}]) is None
    told = {"statements": {"epsilon": None, "tables": tables}}
    pins: list[Mapping[str, Any]] = [{"name": "A", "answer": told}, {"name": "B", "answer": None}]
    assert [len(plot.groups) for plot in compared(pins) or ()] == [1, 1]
    assert compared(pins[1:]) is None


# --- texts --------------------------------------------------------------------------------------


def keys(of: Mapping[str, Any], before: str = "t") -> Iterator[str]:
    for key, text in of.items():
        if key in ("words", "separators", "sentences"):
            continue  # how the library's numbers are written, which it does in English
        if isinstance(text, dict):
            yield from keys(text, f"{before}.{key}")
        else:
            assert isinstance(text, str)
            assert text.strip()
            yield f"{before}.{key}"


def test_languages_say_the_same_things() -> None:
    first, *others = (set(keys(texts(language))) for language in LANGUAGES)
    assert all(other == first for other in others)


def test_every_text_is_used_and_every_choice_has_one() -> None:
    templates = " ".join(path.read_text("utf-8") for path in sorted(TEMPLATES.iterdir()))
    whole = set(re.findall(r"\b(t(?:\.\w+)+)(?:\[|\.items)", templates))
    used = set(re.findall(r"\bt(?:\.\w+)+", templates))
    said = set(keys(texts("en")))
    assert {
        key
        for key in said
        if key not in used and not key.startswith(tuple(f"{each}." for each in whole))
    } == set()
    for language in LANGUAGES:
        found = texts(language)
        assert set(found["methods"]) == {name for name, spec in METHODS.items() if spec.offered}
        assert set(found["views"]) == {*VIEWS, *CHECKS}
        assert set(found["languages"]) == set(LANGUAGES)
    told = answers.answer(request_of(draft()))["statements"]
    forms = answers.answer(request_of(draft(method="forms")))["statements"]
    observers = {one["key"] for one in (*told["observers"], *forms["observers"])}
    assert observers <= set(texts("en")["observers"])


def test_the_style_is_that_of_reports_and_its_own() -> None:
    assert read("deniable.studio", "browser", "studio.css") in STYLE
