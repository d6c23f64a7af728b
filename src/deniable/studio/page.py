"""The page: a function of the draft, its results and running jobs."""

import math
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import tomli_w

from deniable.collect.page import source_hash
from deniable.report.plots import Bar, Group, Plot
from deniable.report.rendering import read, render
from deniable.report.wording import epsilon_text, points_text
from deniable.statement.methods import METHODS
from deniable.studio.choosing import ladder, page_of_docs
from deniable.studio.declaring import ROLES, category_lines, problem_of, role_of, undeclared
from deniable.studio.draft import Draft, Keeper, names_of, usual
from deniable.studio.importing import ENCODINGS, reading_in
from deniable.studio.making import notes_of, problems_of, usual_ledger
from deniable.studio.numbers import shown
from deniable.studio.opening import OPENED
from deniable.studio.paths import path_in
from deniable.studio.request import SCALES, DraftRequest, typed
from deniable.studio.sentences import texts, translated
from deniable.studio.state import LANGUAGES, State
from deniable.tables.date_texts import FORMS
from deniable.tables.formats import TABLE_ENDINGS
from deniable.tables.preview import Preview

VIEWS = ("start", "schema", "design", "release", "study", "estimate")
"""The views, in the order in which they are needed."""

CHECKS = ("check_release", "check_study")
"""Check views, between a form and its job."""

STYLE = read("deniable.report", "page.css") + read("deniable.studio", "browser", "studio.css")

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        f"style-src {source_hash(STYLE)}",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
"""Scripts are the two files of the package; no evaluation, no other origin."""


def page(
    studio: State,
    view: str,
    request: DraftRequest,
    said: Mapping[str, str],
    *,
    partial: bool = False,
    computing: str = "",
    within: str = "",
    mine: Draft | None = None,
) -> str:
    """Return the page."""
    draft = studio.keeper.draft
    answer = None if request.problems else studio.answers.known(request.digest)
    preview = studio.preview[1] if studio.preview else Preview()
    spoken = texts(studio.language)
    return render(
        f"deniable.studio/{'check' if view in CHECKS else view}.html.j2",
        title=draft.schema.get("title") or studio.keeper.path.name,
        style=STYLE,
        policy="",
        t=spoken,
        language=studio.language,
        languages=LANGUAGES,
        views=VIEWS,
        view=view,
        token=studio.token,
        studio=studio,
        keeper=studio.keeper,
        draft=draft,
        request=request,
        said=defaultdict(str, said),
        attributes=[defaultdict(str, one) for one in draft.attributes],
        partial=partial,
        mine=mine,
        differing=differing(draft, mine, studio.keeper) if mine else (),
        ladder=lambda words: ladder(request, words),
        page_of_docs=page_of_docs,
        own=lambda sentence: translated(str(sentence), studio.language),
        typed=lambda name: typed(draft.controls, name),
        number_in=lambda text: shown(str(text), spoken["separators"]),
        scales=SCALES,
        methods={name: spec for name, spec in METHODS.items() if spec.offered},
        names_of=names_of,
        problem_of=problem_of,
        category_lines=category_lines,
        within=within,
        reading=reading_in(studio, view),
        preview=preview,
        encodings=ENCODINGS,
        date_forms=FORMS,
        as_control=lambda sentence: _as_control(texts(studio.language)["reading"], sentence),
        roles=ROLES,
        role_of=lambda name: role_of(draft, name),
        by_role=_by_role(draft, preview.names, studio.filled.get(view, {}).get("person")),
        left_out=any(role_of(draft, name) == "leave_out" for name in draft.read),
        undeclared=undeclared(draft, preview.names if view == "release" else [*draft.read]),
        listed=files_in(studio.folder, within) if view == "start" else (),
        offered=offered_in(studio.folder) if view in ("release", "estimate") else None,
        matrices=[name for name, _ in files_in(studio.folder, "") if name.endswith(".json")],
        answer=answer and defaultdict(str, answer),
        told=answer.get("statements") if answer else None,
        computing=computing,
        pins=_pins(studio, draft),
        worst=worst,
        widest=widest,
        usual_ledger=usual_ledger(),
        problems_of=problems_of,
        notes_of=notes_of,
        compared=compared,
        digest=sha256((answer or {}).get("mechanism", "").encode()).hexdigest(),
    )


def _as_control(words: Mapping[str, Any], sentence: str) -> str:
    """Return a sentence of the library with the page's controls in the place of options."""

    def control(found: re.Match[str]) -> str:
        return f"“{words[found[1]]}”" if isinstance(words.get(found[1]), str) else found[0]

    return re.sub(r"`schema\.file\.(\w+)(?: = \w+)?`", control, sentence)


def _by_role(draft: Draft, names: Sequence[str], person: str | None) -> dict[str, list[str]]:
    """Return columns by their role, with the person's id as it was typed last."""
    draft = draft if person is None else replace(draft, person=person)
    return {role: [name for name in names if role_of(draft, name) == role] for role in ROLES}


def differing(theirs: Draft, mine: Draft, keeper: Keeper) -> list[tuple[str, str, str]]:
    """Return the differences of two drafts: name of the part, and its text in both."""
    if keeper.unread:
        return [(keeper.path.name, keeper.text or "", mine.to_toml())]
    first, second = (
        {
            "table": one.table,
            **one.controls,
            **{key: str(value) for key, value in one.schema.items() if key != "attribute"},
            "order": ", ".join(one.columns),
            **{", ".join(names_of(each)): tomli_w.dumps(each) for each in one.attributes},
            **{pin["pin"]: tomli_w.dumps(pin) for pin in one.pins},
        }
        for one in (theirs, mine)
    )
    names = {**first, **second}
    at_first = {name: usual(name) for name in names}
    first, second = at_first | first, at_first | second
    return [(name, first[name], second[name]) for name in names if first[name] != second[name]]


def _pins(studio: State, draft: Draft) -> Sequence[Mapping[str, Any]]:
    """Return the compared requests with their results; None for one still computed."""
    found = []
    for pin in draft.pins:
        request = studio.design_request(pin)
        answer = None if request.problems else studio.answers.known(request.digest)
        found.append(
            {"name": pin["pin"], "request": request, "answer": answer and defaultdict(str, answer)}
        )
    return found


def files_in(folder: Path, within: str) -> list[tuple[str, bool]]:
    """Return the entries of a folder below the page's own, and whether each is a folder."""
    place = path_in(folder, within)
    return [
        (str(path.relative_to(folder.resolve())), path.is_dir())
        for path in (sorted(place.iterdir()) if place.is_dir() else ())
        if not path.name.startswith(".") and (path.is_dir() or path.name.endswith(OPENED))
    ]


def offered_in(folder: Path) -> dict[str, list[str]]:
    """Return the tables and releases in a folder and below, without the contents of releases and
    studies: three levels deep, the first 200 folders, the first 1,000 names of each."""
    offered: dict[str, list[str]] = {"tables": [], "releases": []}
    folders = [folder.resolve()]
    for place in folders:  # which grows
        with suppress(OSError), os.scandir(place) as entries:
            found = {entry.name: entry for entry in islice(entries, 1000)}
            within = place.relative_to(folders[0])
            if within.parts and "record.json" in found:
                offered["releases"].append(str(within))
            elif not within.parts or "study.json" not in found:
                for name, entry in sorted(found.items()):
                    if name.startswith(".") or not name.isprintable():
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if len(folders) < 200 and len(within.parts) < 3:
                            folders.append(place / name)
                    elif name.lower().endswith(TABLE_ENDINGS):
                        offered["tables"].append(str(within / name))
    return offered


def worst(tables: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the largest half-width; None if something cannot be estimated."""
    widths = [table["half_width"] for table in tables]
    return None if None in widths or not widths else max(widths)


def widest(tables: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the table with the largest half-width, the first that cannot be estimated if there is
    one; None if there is no table."""
    return max(
        tables,
        key=lambda one: math.inf if one["half_width"] is None else one["half_width"],
        default=None,
    )


def compared(pins: Sequence[Mapping[str, Any]]) -> tuple[Plot, Plot] | None:
    """Return ε and the largest half-widths of the compared requests, as bars."""
    pinned = [(pin["name"], pin["answer"].get("statements")) for pin in pins if pin["answer"]]
    designs = [(name, each) for name, each in pinned if each]
    if not designs:
        return None
    levels = [(name, each["epsilon"]) for name, each in designs]
    shown = [Group(name, [Bar(level, epsilon_text(level), "alone")]) for name, level in levels]
    return Plot(shown), Plot([_group(name, worst(each["tables"])) for name, each in designs])


def _group(name: str, half_width: float | None) -> Group:
    if half_width is None:
        return Group(name, [Bar(None, "–", "error")])
    return Group(name, [Bar(100 * half_width, points_text(half_width), "error")])
