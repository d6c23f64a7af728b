"""Invitations are links and hashes: both, or neither."""

import stat
from pathlib import Path

import pytest

from deniable.collect.folder import StudyFolder
from deniable.collect.inviting import invite
from deniable.collect.store import Store
from deniable.errors import InputError
from unit.collect.studies import example_folder

URL = "https://study.example/"


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    return example_folder(tmp_path, respondents='"invited"')


def number(study: StudyFolder) -> int:
    with study.opened() as store:
        return store.totals().invitations


def test_an_interrupted_run_is_ended_by_the_same_again(
    study: StudyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    links, images = tmp_path / "links.csv", tmp_path / "qr"
    with monkeypatch.context() as patch:
        patch.setattr(Store, "invite", killed)
        with pytest.raises(KeyboardInterrupt):
            invite(study, 3, URL, links, images)
    assert number(study) == 0
    written = links.read_text()
    for count, url in ((4, URL), (3, "https://other.example/")):  # another run, and not the same
        with pytest.raises(InputError, match="exists, and its links may be in use"):
            invite(study, count, url, links, images)
    invite(study, 3, URL, links, images)
    assert links.read_text() == written
    assert number(study) == 3
    with study.opened() as store:
        assert all(store.knows([line[-32:]]) for line in written.splitlines()[1:])
        assert not store.knows(["0" * 32])
    with pytest.raises(InputError, match="exists, and its links may be in use"):
        invite(study, 3, URL, links)
    assert number(study) == 3


def test_links_are_nobody_elses_to_read(study: StudyFolder, tmp_path: Path) -> None:
    invite(study, 2, URL, tmp_path / "links.csv", tmp_path / "qr")
    assert stat.S_IMODE((tmp_path / "links.csv").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "qr").stat().st_mode) == 0o700


@pytest.mark.parametrize("left", ["text", "folder"])
def test_nobody_is_invited_where_the_links_cannot_be_written(
    study: StudyFolder, tmp_path: Path, left: str
) -> None:
    links, images = tmp_path / "links.csv", tmp_path / "qr"
    if left == "text":
        links.write_bytes(b"link\n\xff\n")
    else:
        images.mkdir()
    with pytest.raises(InputError, match="exists, and its links may be in use"):
        invite(study, 3, URL, links, images)
    assert number(study) == 0


def test_nobody_is_invited_to_a_closed_study(study: StudyFolder, tmp_path: Path) -> None:
    with study.opened() as store:
        store.close()
    with pytest.raises(InputError, match="the study is closed"):
        invite(study, 3, URL, tmp_path / "links.csv")
    assert not (tmp_path / "links.csv").exists()
