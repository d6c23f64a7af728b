"""The draft, its file, and steps back and forth."""

import errno
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable import atomic_files
from deniable.errors import InputError
from deniable.studio.draft import Draft, Keeper, OutdatedError, digest, names_of
from deniable.studio.request import request_of
from unit.studio.drafts import ODD, attribute, draft

FULL = Draft(
    {"title": "Odd", "keep": [ODD[0]], "attribute": [attribute(name) for name in ODD]},
    {"epsilon": "3,5", f"level.{ODD[1]}": "1", "tables": "\t".join(ODD[:3]) + "\n" + ODD[4]},
    ({"pin": "A", "epsilon": "2"},),
    "people.csv",
    dict.fromkeys(ODD, "") | {"id": "has a value of its own in every row"},
    "id",
)


def test_a_draft_is_read_as_it_was_written(tmp_path: Path) -> None:
    for one in (FULL, Draft(), draft(attribute("a", bins=["2000-01-01", "inf"]))):
        keeper = Keeper(tmp_path / "draft.studio.toml", Draft(table="nothing yet"))
        keeper.change(lambda _, one=one: one)
        assert Draft.from_toml(keeper.path) == one


@settings(max_examples=15)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_is_kept(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.studio.toml"
    keeper = Keeper(path, Draft(table="nothing yet"))
    keeper.change(lambda _: Draft({"attribute": [{"name": text}]}, {"epsilon": text, text: "1"}))
    assert Draft.from_toml(path) == keeper.draft


@pytest.mark.parametrize(
    "text",
    [
        "controls = 1",
        "controls.epsilon = 4",
        "other = 1",
        "table = [1]",
        "[[pin]]\nepsilon = '2'",
        "pin = [{pin = 'A'}, {pin = 'B'}, {pin = 'C'}, {pin = 'D'}, {pin = 'E'}]",
        "schema.attribute = 3",
        "schema.attribute = [3]",
        "schema.keep = 'a'",
        "schema.attribute = [{name = 'a', bins = 3}]",
        "schema.attribute = [{name = 'a', labels = 'x'}]",
        "schema.attribute = [{name = 'a', colour = 'x'}]",
        "table = 'cut",
        "x = " + "[" * 10_000,
    ],
)
def test_a_file_that_is_no_draft_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "draft.studio.toml"
    path.write_text(text)
    with pytest.raises(InputError, match="this is no draft of the studio") as refused:
        Draft.from_toml(path)
    assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match="it cannot be read"):
        Draft.from_toml(tmp_path)


def test_wherever_a_draft_is_cut_it_is_read_or_refused(tmp_path: Path) -> None:
    whole, path = FULL.to_toml().encode(), tmp_path / "cut.studio.toml"
    read = 0
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        with suppress(InputError):
            request_of(Draft.from_toml(path))
            read += 1
    assert 0 < read < len(whole) // 7


def test_dates_typed_into_the_file_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "draft.studio.toml"
    path.write_text("schema.attribute = [{name = 'a', bins = [1950-01-01, 2000-01-01]}]")
    assert Draft.from_toml(path).attributes[0]["bins"] == ["1950-01-01", "2000-01-01"]


def test_steps_back_and_forth(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "draft.studio.toml", draft())
    versions = [keeper.version]
    for epsilon in ("1", "2", "2"):
        keeper.change(lambda draft, text=epsilon: draft.with_controls(epsilon=text))
        versions.append(keeper.version)
    assert versions[0] < versions[1] < versions[2] == versions[3]
    keeper.undo()
    assert keeper.draft.controls == {"epsilon": "1"} == Draft.from_toml(keeper.path).controls
    keeper.redo()
    keeper.redo()
    assert keeper.draft.controls == {"epsilon": "2"}
    for _ in range(3):
        keeper.undo()
    assert keeper.draft == draft()
    keeper.change(lambda draft: draft.with_controls(epsilon="3"))
    assert not keeper.after
    assert keeper.version > versions[-1]
    with pytest.raises(InputError):
        keeper.change(lambda _: Draft.from_toml(tmp_path))


def test_what_is_typed_back_to_the_default_is_not_kept() -> None:
    assert draft(epsilon="", rows="5").with_controls(rows="10000", within="").controls == {
        "within": ""
    }


def test_what_another_program_writes_is_taken_over_and_not_overwritten(tmp_path: Path) -> None:
    """Two keepers of one file: whoever is late is told, and nothing of the other is lost."""
    path = tmp_path / "draft.studio.toml"
    one, two = Keeper(path, draft()), Keeper(path, draft())
    one.change(lambda draft: draft.with_controls(epsilon="1"))
    for late in (lambda: two.change(lambda draft: draft.with_controls(rows="5")), two.undo):
        two.look()
        one.change(lambda draft: draft.with_controls(within=str(len(two.before))))
        with pytest.raises(OutdatedError) as outdated:
            late()
        assert Draft.from_toml(path) == one.draft == two.draft
    assert outdated.value.mine.controls == {"epsilon": "1"}
    two.undo()  # what was taken over is a step
    assert two.draft.controls["within"] == "1"
    one.look()
    assert one.draft == two.draft
    state = one.state
    one.look()
    assert one.state == state


def test_a_hand_edit_is_seen_and_one_that_is_no_draft_is_not_overwritten(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "draft.studio.toml", draft())
    keeper.change(lambda draft: draft.with_controls(epsilon="1"))
    good, version, state = keeper.path.read_text(), keeper.version, keeper.state
    for text in (b"[controls", b"\xff"):
        keeper.path.write_bytes(text)
        keeper.look()
        assert "this is no draft" in keeper.unread
        assert keeper.version > version
        assert keeper.state != state
        with pytest.raises(OutdatedError):
            keeper.change(lambda draft: draft.with_controls(epsilon="2"))
        with pytest.raises(OutdatedError):
            keeper.undo()
        assert keeper.path.read_bytes() == text
    keeper.path.write_text(good.replace('"1"', '"3"'))
    keeper.look()
    assert (keeper.unread, keeper.draft.controls) == ("", {"epsilon": "3"})
    keeper.path.write_bytes(b"[")
    keeper.look()
    keeper.change(lambda draft: draft, over=True)
    assert Draft.from_toml(keeper.path) == keeper.draft
    keeper.path.unlink()  # nothing to overwrite
    keeper.look()
    keeper.change(lambda draft: draft.with_controls(epsilon="4"))
    assert Draft.from_toml(keeper.path).controls == {"epsilon": "4"}


def test_a_full_disk_is_said_and_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Keeper(tmp_path / "draft.studio.toml", draft())
    keeper.change(lambda draft: draft.with_controls(epsilon="1"))
    before = keeper.path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files.os, "fsync", full)
        keeper.change(lambda draft: draft.with_controls(epsilon="2"))
    assert "the disk is full" in keeper.unsaved
    assert keeper.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [keeper.path.name]
    assert keeper.draft.controls == {"epsilon": "2"}
    keeper.undo()
    keeper.redo()
    assert not keeper.unsaved
    assert Draft.from_toml(keeper.path) == keeper.draft


def test_names_and_digests() -> None:
    parts = {"part": [attribute("a"), attribute("b")]}
    assert names_of(parts) == ("a+b",)
    assert names_of({**parts, "name": "ab"}) == ("ab",)
    assert Draft({"attribute": [parts, {"names": ["c", "d"]}, {}]}).columns == ("a+b", "c", "d", "")
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1, "b": "2"})
