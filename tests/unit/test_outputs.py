import os
import stat

import pytest

from deniable.errors import InputError
from deniable.outputs import write_file


def test_a_file_appears_whole_with_ordinary_permissions(tmp_path):
    path = tmp_path / "m.json"
    write_file(path, b"{}", overwrite=False)
    assert path.read_bytes() == b"{}"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert os.listdir(tmp_path) == ["m.json"]


def test_an_existing_file_is_kept_unless_it_is_to_be_replaced(tmp_path):
    path = tmp_path / "m.json"
    path.write_bytes(b"old")
    with pytest.raises(InputError, match="exists"):
        write_file(path, b"new", overwrite=False)
    assert path.read_bytes() == b"old"
    write_file(path, b"new", overwrite=True)
    assert path.read_bytes() == b"new"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        write_file(tmp_path / "nowhere" / "m.json", b"", overwrite=False)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "m.json"
    path.write_bytes(b"old")

    def full_disk(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match="No space left"):
        write_file(path, b"new", overwrite=True)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.json"]
