"""What a draft begins with."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deniable
from deniable.errors import InputError
from deniable.schema import FileFormat
from deniable.statement.record import mechanism_to_plain, to_json
from deniable.studio import opening
from deniable.studio.answers import answer
from deniable.studio.draft import Draft, Keeper
from deniable.studio.opening import begun, draft_of, names_in
from deniable.studio.request import request_of
from unit.studio.drafts import ODD, attribute, draft


def opened(path: Path) -> Draft:
    return asyncio.run(draft_of(path))


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a cache of its own, and no process beside this one."""

    async def at_once(function: Callable[..., Any], *given: Any) -> Any:
        return function(*given)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(opening, "in_process", at_once)


def test_names_are_pasted_one_per_line_or_as_a_first_row() -> None:
    for typed in ("a\nb\r\n\n c ", "a,b,c", "a\tb\tc", "a; b;c", '"a", b,"c"', "\na,b,c\n"):
        assert names_in(typed) == ["a", "b", "c"]
    assert names_in('"income, net",age') == ["income, net", "age"]
    assert names_in("\n".join(ODD)) == list(ODD)
    for typed in ("", " \n ", ",,"):
        with pytest.raises(InputError, match="paste the names"):
            names_in(typed)


def test_a_schema_begins_a_draft_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        "[[attribute]]\nname = 'born'\nbins = [1950-01-01, 1980-01-01, 2000-01-01]\nepsilon = 1\n"
        "[[attribute]]\nnames = ['a', 'b']\ncategories = [1, 2]\nepsilon = 0.1234567891\n"
    )
    found = opened(path)
    assert found.controls == {"kind": "levels", "level.born": "1", "level.a": "0.1234567891"}
    schema = deniable.Schema.from_toml(path)
    assert deniable.Schema.from_plain(request_of(found).schema) == schema
    told = answer(request_of(found))["statements"]
    assert told["epsilon"] == deniable.design(schema).epsilon


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon": 3},
        {"epsilon": 2.5, "given_rest": "1.5x", "pairs": 0.3},
        {"attribute_epsilon": [1, 0.5], "given_rest": "none", "pair_floor": 0},
        {"method": "forms", "epsilon": 2, "given_rest": "0.5e"},
        {"method": "lambda", "attenuation": 0.4},
        {"method": "joint", "attenuation": 0.4},
    ],
)
def test_a_mechanism_begins_a_draft_that_makes_it_again(
    tmp_path: Path, asked: dict[str, object]
) -> None:
    design = deniable.design(deniable.Schema.anonymous((2, 3)), **asked)  # type: ignore[arg-type]
    path = tmp_path / "mechanism.json"
    path.write_bytes(to_json(mechanism_to_plain(design)))
    request = request_of(opened(path))
    assert request.problems == {}
    found = answer(request)
    told = found["statements"]
    assert told["epsilon"] == pytest.approx(design.epsilon, rel=1e-8)
    for one, level in zip(told["attributes"], design.mechanism.attribute_epsilon, strict=True):
        assert one["epsilon"] == pytest.approx(level, rel=1e-8)
    if "epsilon" in asked:
        assert found["mechanism"].encode() == path.read_bytes()


def test_a_table_begins_a_draft_that_knows_it(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("sex,age,id\n" + "".join(f"{'fm'[i % 2]},{i % 40},{i}x\n" for i in range(80)))
    found = opened(path)
    assert (found.columns[:2], found.table) == (("sex", "age"), "people.csv")
    assert all(one["drafted"] for one in found.attributes)
    path.write_text("sex\nf\nf\n")
    with pytest.raises(InputError, match="it has no column of categories"):
        opened(path)


KLINIK = "Größe;Stadt;Nr\n" + "".join(
    f"1,{50 + i % 45};{('Köln', 'Würzburg')[i % 2]};P{i:03}\n" for i in range(90)
)


def test_every_column_that_was_read_is_in_the_draft_with_the_reason_why_it_was_set_aside(
    tmp_path: Path,
) -> None:
    path = tmp_path / "klinik.csv"
    path.write_text(KLINIK, encoding="latin-1")
    with pytest.raises(InputError, match="not UTF-8"):
        opened(path)
    found = asyncio.run(draft_of(path, FileFormat(encoding="latin-1")))
    assert found.columns == ("Größe", "Stadt")
    assert found.schema["file"] == {"separator": ";", "decimal": ",", "encoding": "latin-1"}
    aside = "has a value of its own in every row"
    assert found.read == {"Größe": "", "Stadt": "", "Nr": aside}


def test_a_table_that_cannot_be_read_as_it_is_begins_a_draft_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "klinik.csv"
    path.write_text(KLINIK, encoding="latin-1")
    keeper, _ = begun(path)
    assert keeper.draft == Draft(table="klinik.csv")
    read = asyncio.run(draft_of(path, FileFormat(encoding="latin-1")))
    keeper.change(lambda _: read)
    assert begun(path)[0].draft == read, "the draft that was begun before"
    keeper.change(lambda _: draft(attribute("z")))
    with pytest.raises(InputError, match="is another draft, begun before"):
        begun(path)
    with pytest.raises(InputError, match="there is no such file"):
        begun(tmp_path / "nobody.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("none.csv", None),
        ("folder", None),
        ("picture.png", b"\x89PNG"),
        ("broken.json", b"{"),
        ("broken.toml", b"\xff"),
        ("broken.toml", b"[["),
        ("broken.studio.toml", b"\xff"),
        ("empty.csv", b""),
        ("broken.parquet", b"PAR1"),
    ],
)
def test_what_cannot_be_opened_is_said_in_one_sentence(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    path = tmp_path / name
    (tmp_path / "folder").mkdir()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        opened(path)
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_draft_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keeper, place = begun(None)
    assert (keeper.draft, keeper.path) == (Draft(), tmp_path / "draft.studio.toml")
    keeper.change(lambda _: draft(epsilon="1"))
    assert begun(None)[0].draft == keeper.draft
    place.listening(1234)
    again = begun(Path("draft.studio.toml"))[1]
    assert (again.secret, again.port, again.folder) == (place.secret, 1234, tmp_path)


def test_a_draft_that_was_begun_before_is_not_lost(tmp_path: Path) -> None:
    source = tmp_path / "s.toml"
    source.write_text("[[attribute]]\nname = 'a'\ncategories = ['0', '1']\n")
    keeper, _ = begun(source)
    assert not keeper.path.exists()  # nothing was changed yet
    keeper.change(lambda draft: draft.with_controls(epsilon="1"))
    assert begun(source)[0].draft.controls == {"epsilon": "1"}
    Keeper(keeper.path, Draft()).change(lambda _: draft(attribute("z")))
    with pytest.raises(InputError, match="is another draft, begun before"):
        begun(source)
