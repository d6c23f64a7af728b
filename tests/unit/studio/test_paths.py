"""Paths that are typed: below the folder of the draft, or refused."""

from pathlib import Path

import pytest

from deniable.errors import InputError
from deniable.studio.paths import kept_path, new_path, path_in, read_path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    (folder / "below").mkdir(parents=True)
    (folder / "file.csv").touch()
    (folder / "out").symlink_to(tmp_path)
    (folder / "dangling").symlink_to(tmp_path / "new")
    (folder / "loop").symlink_to(folder / "loop")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


OUTSIDE = ("..", "../data2/x", "/etc/passwd", "below/../../x", "out/x.csv", "~/x", "dangling")


def test_paths_stay_in_the_folder(folder: Path) -> None:
    assert path_in(folder, "below/x.csv") == folder / "below" / "x.csv"
    assert path_in(folder, str(folder / "below")) == folder / "below"
    for name in OUTSIDE:
        with pytest.raises(InputError, match="is not in the folder"):
            path_in(folder, name)
    for name in ("a\0b", "~nobody-of-this-name/x"):
        with pytest.raises(InputError, match="is no path"):
            path_in(folder, name)


def test_what_is_made_is_in_the_folder(folder: Path) -> None:
    for name in ("release", "below/release", "below/../release", str(folder / "release")):
        assert new_path(folder, name) in ("release", "below/release")
    for name in (*OUTSIDE, "loop/x"):
        with pytest.raises(InputError):
            new_path(folder, name)
    assert new_path(folder, "below") == "below", "the command says that it exists"
    with pytest.raises(InputError, match="is no path"):
        new_path(folder, "loop")
    with pytest.raises(InputError, match="has no folder to be made in"):
        new_path(folder, "nowhere/release")
    with pytest.raises(InputError, match="has no folder to be made in"):
        new_path(folder, "file.csv/release")


def test_a_file_elsewhere_is_written_only_if_that_is_confirmed(folder: Path) -> None:
    assert kept_path(folder, "people.ledger", elsewhere=False) == "people.ledger"
    with pytest.raises(InputError, match="or confirm that it lies elsewhere"):
        kept_path(folder, "~/people.ledger", elsewhere=False)
    home = str(folder.parent / "home" / "people.ledger")
    assert kept_path(folder, "~/people.ledger", elsewhere=True) == home


def test_what_is_read_may_lie_anywhere_and_is_never_an_option(folder: Path) -> None:
    assert read_path(folder, "~/key") == str(folder.parent / "home" / "key")
    assert read_path(folder, "--help.csv") == "./--help.csv"
    assert read_path(folder, "-") == "./-"
