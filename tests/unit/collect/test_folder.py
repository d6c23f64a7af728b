"""A study's folder: whole or not at all, and private."""

import stat
from pathlib import Path

import pytest

from deniable.collect.folder import StudyFolder
from deniable.collect.store import Store, sqlite_url
from deniable.errors import InputError
from unit.collect.studies import example_folder, invited


def test_a_folder_holds_the_study_a_store_and_a_secret_of_its_own(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    assert {path.name for path in folder.path.iterdir()} == {
        *("study.json", "steward.secret", "store.sqlite")
    }
    assert len(folder.secret) == 64
    assert stat.S_IMODE((folder.path / "steward.secret").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert StudyFolder(folder.path).study.content == folder.study.content
    with pytest.raises(InputError, match="exists already"):
        StudyFolder.make(folder.path, folder.study)


def test_a_store_that_a_killed_run_has_made_is_taken_and_a_used_one_is_not(tmp_path: Path) -> None:
    study = example_folder(tmp_path, respondents='"invited"').study
    url = sqlite_url(tmp_path / "elsewhere.sqlite")
    Store.make(url, study).dispose()  # and killed before the folder was there
    with StudyFolder.make(tmp_path / "other", study, url).opened() as store:
        invited(store, 1)
    with pytest.raises(InputError, match="already contains a study"):
        StudyFolder.make(tmp_path / "third", study, url)
    assert not (tmp_path / "third").exists()


def test_a_store_elsewhere_is_found_again(tmp_path: Path) -> None:
    study = example_folder(tmp_path).study
    url = f"sqlite:///{tmp_path / 'elsewhere.sqlite'}"
    folder = StudyFolder.make(tmp_path / "other", study, url)
    assert folder.url == url
    folder.open_store().dispose()
    assert stat.S_IMODE((tmp_path / "elsewhere.sqlite").stat().st_mode) == 0o600
    with pytest.raises(InputError, match="cannot be used"):
        StudyFolder.make(tmp_path / "third", study, "sqlite:////nowhere/x.sqlite")
    assert not (tmp_path / "third").exists()


def test_private_files_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    (folder.path / "steward.secret").unlink()
    with pytest.raises(InputError, match=r"steward\.secret cannot be read \(No such file"):
        _ = folder.secret
    (folder.path / "store.url").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"store\.url: this is not text"):
        folder.open_store()
    (folder.path / "store.url").unlink()
    (folder.path / "store.sqlite").unlink()
    with pytest.raises(InputError, match="the store is missing"):
        folder.open_store()
