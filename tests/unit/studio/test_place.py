"""Where a studio is stays the same for a draft, and is nobody else's."""

from pathlib import Path

import pytest

from deniable.studio.place import Place


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "deniable" / "studio"


def test_a_draft_finds_its_address_again(tmp_path: Path) -> None:
    first = Place.of(tmp_path / "a.studio.toml").listening(8123)
    again = Place.of(tmp_path / "a.studio.toml")
    assert again == first
    assert again.address == f"http://127.0.0.1:8123/enter/{first.secret}"
    assert len(first.secret) == 64
    assert first.folder == tmp_path


def test_another_draft_has_another_secret(tmp_path: Path) -> None:
    first, other = (Place.of(tmp_path / f"{name}.studio.toml") for name in "ab")
    assert first.secret != other.secret
    assert first.cache != other.cache


def test_nobody_else_can_look_into_the_cache(tmp_path: Path, cache: Path) -> None:
    Place.of(tmp_path / "a.studio.toml").listening(1)
    (own,) = cache.iterdir()
    for path in (own, own / "address.json"):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", ["", "{}", '{"secret": "x", "port": "y"}', "[]"])
def test_what_cannot_be_read_is_made_anew(content: str, tmp_path: Path) -> None:
    place = Place.of(tmp_path / "a.studio.toml")
    (place.cache / "address.json").write_text(content)
    assert Place.of(tmp_path / "a.studio.toml").port == 0
