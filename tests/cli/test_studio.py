"""studio: every number of its page is the command line's, and the command that opens it."""

import json
import re
import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.conftest import Result
from deniable.collect import serving
from deniable.errors import InputError
from deniable.studio import answers, exports
from deniable.studio.draft import Draft
from deniable.studio.request import request_of, tables_text

Run = Callable[..., Result]

NAMES = ['say "no"', "<b>ü</b>", "x 😀", "\u200fימין"]
METHODS = ["balanced", "kronecker", "kronecker", "lambda", "joint", "heuristic", "lp", "forms"]


# --- the command --------------------------------------------------------------------------------


def test_the_command_prints_the_address_and_opens_it(
    deniable: Run, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(people / "cache"))
    monkeypatch.setattr(serving, "run", lambda _servers, ready: ready())
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    first = deniable("studio", "people.toml", "--json").json
    assert first["draft"] == str(people / "people.studio.toml")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/enter/[0-9a-f]{64}", first["address"])
    assert opened == [first["address"]]
    again = deniable("studio", "people.toml", "--no-browser", "--keep")
    assert f"Studio: {first['address']}\n" in again.out  # a page that is open finds it again
    assert len(opened) == 1
    with socket.create_server(("127.0.0.1", int(first["address"].split("/")[2].partition(":")[2]))):
        elsewhere = deniable("studio", "people.toml", "--no-browser", "--json").json["address"]
    assert elsewhere.rpartition("/")[2] == first["address"].rpartition("/")[2]
    assert elsewhere != first["address"]
    other = deniable("studio", "--no-browser", "--json").json
    assert other["draft"] == str(people / "draft.studio.toml")
    assert other["address"].rpartition("/")[2] not in first["address"]


@pytest.mark.parametrize("words", [[], ["--port=8499"]])
def test_a_draft_is_opened_by_one_studio(
    deniable: Run, people: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(people / "cache"))
    seen: list[Result] = []

    def second(_servers: object, ready: Callable[[], None]) -> None:
        ready()
        if not seen:
            seen.append(deniable("studio", "people.toml", "--no-browser", *words))

    monkeypatch.setattr(serving, "run", second)
    first = deniable("studio", "people.toml", "--no-browser", "--json").json
    said = "".join(seen[0].err.split())
    assert (seen[0].status, seen[0].out) == (2, "")
    assert "isalreadyopen" in said
    assert first["address"] in said
    assert "--port" not in said
    assert deniable("studio", "people.toml", "--no-browser").status == 0  # it has ended


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.csv", "none.csv: there is no such file"),
        ("cut.studio.toml", "this is no draft of the studio"),
        ("people.txt", "this is no schema or draft"),
    ],
)
def test_what_cannot_be_opened_is_said(deniable: Run, people: Path, name: str, said: str) -> None:
    (people / "cut.studio.toml").write_text("table = 'peop")
    (people / "people.txt").touch()
    result = deniable("studio", name, "--no-browser")
    assert (result.status, result.out) == (2, "")
    assert said in " ".join(result.err.split())


# --- its numbers --------------------------------------------------------------------------------


def typed(low: float, high: float) -> st.SearchStrategy[str]:
    """A number as somebody types it, with a point or a comma."""
    numbers = st.floats(low, high).map(lambda number: f"{number:.3g}")
    return st.tuples(numbers, st.sampled_from(".,")).map(lambda pair: pair[0].replace(".", pair[1]))


@st.composite
def any_drafts(draw: st.DrawFn) -> Draft:
    """A draft as somebody may leave it: a few columns, and something in most controls."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    columns = [
        {"name": name, "categories": [str(c) for c in range(draw(st.integers(2, 4)))]}
        for name in names
    ]
    keep = [names[0]] if len(names) > 1 and draw(st.booleans()) else []
    tables = st.lists(st.lists(st.sampled_from(names), min_size=1, unique=True), max_size=2)
    controls = {
        "method": st.sampled_from(METHODS),
        "kind": st.sampled_from(["total", "levels"]),
        "epsilon": typed(0.1, 6),
        "rows": st.integers(1, 10**6).map(str),
        "within": typed(0.5, 9),
        "attenuation": st.just("") | typed(0.1, 0.9),
        "cap": st.sampled_from(["", "none", "1"]),
        "pair_floor": st.sampled_from(["", "", "0", "0,25"]),
        "max_questions": st.sampled_from(["", "2"]),
        "pairs": st.sampled_from(["", "0,5"]),
        "assume": st.sampled_from(["uniform", "worst", "typed"]),
        "tables": tables.map(tables_text),
        **{f"level.{name}": typed(0.3, 3) for name in names},
        **{f"importance.{name}": st.just("") | typed(0.5, 4) for name in names},
    }
    for column in columns:
        first = draw(st.integers(1, 99))
        rest = [0] * (len(column["categories"]) - 2) + [100 - first]
        controls[f"shares.{column['name']}"] = st.just(" ".join(map(str, [first, *rest])))
    chosen = {
        control: draw(text)
        for control, text in controls.items()
        if control.startswith(("epsilon", "level.")) or draw(st.booleans())
    }
    return Draft({"attribute": columns, "keep": keep}).with_controls(**chosen)


drafts = any_drafts().filter(lambda draft: not request_of(draft).problems)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def printed(deniable: Run, draft: Draft) -> Result:
    """What the command line says to the request, typed as a person would."""
    request = request_of(draft)
    Path("schema.toml").write_text(exports.schema_file(request), encoding="utf-8")
    protected = [[name] for name in draft.columns if name not in draft.kept]
    tables = [*protected, *(table for table in request.tables if table not in protected)]
    words = [f"--tables={','.join(map(quoted, table))}" for table in tables]
    if isinstance(request.assume, str):
        words.append(f"--assume={request.assume}")
    elif request.assume:
        named = [f"{name}={':'.join(map(repr, each))}" for name, each in request.assume.items()]
        words.append(f"--assume={','.join(named)}")
    words += [f"--rows={request.rows}", f"--within={request.within!r}", *exports.options(request)]
    return deniable("design", "--schema=schema.toml", "--json", *words)


def check(deniable: Run, draft: Draft) -> None:
    said = printed(deniable, draft)
    try:
        found = answers.answer(request_of(draft))
    except InputError:
        assert said.status == 2
    else:
        assert json.loads(json.dumps(found["statements"])) == said.json  # tuples are lists


same = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(same, max_examples=2)
@given(drafts)
def test_numbers_are_those_of_the_command_line(deniable: Run, draft: Draft) -> None:
    check(deniable, draft)


@pytest.mark.slow
@settings(same, max_examples=30)
@given(drafts)
def test_all_numbers_are_those_of_the_command_line(deniable: Run, draft: Draft) -> None:
    check(deniable, draft)
