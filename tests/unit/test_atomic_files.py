import errno
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import pytest

from deniable import atomic_files
from deniable.atomic_files import (
    FileLock,
    atomic_output,
    explain_write_errors,
    replaced_folder,
    write_file,
)
from deniable.errors import InputError, Notice
from marked import slow_after

KILL = 9
unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights and signals")


@pytest.fixture(params=["unnamed", "aside"])
def way(request, monkeypatch, tmp_path):
    """Both ways of writing; the second is what systems without nameless files get."""
    if request.param == "aside":
        monkeypatch.setattr(atomic_files, "_has_unnamed", lambda _: False)
    elif not atomic_files._has_unnamed(tmp_path):
        pytest.skip("this file system has no files without a name")
    return request.param


@unix
@pytest.mark.usefixtures("way")
def test_the_file_appears_at_the_end_with_the_usual_permissions(tmp_path):
    path = tmp_path / "o"
    with atomic_output(path) as file:
        file.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    (tmp_path / "plain").write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@unix
@pytest.mark.usefixtures("way")
def test_a_private_file_is_its_owners_also_where_it_replaces_one_that_was_not(tmp_path):
    path = tmp_path / "o"
    path.write_bytes(b"old")
    with pytest.raises(InputError, match="exists already"):
        write_file(path, b"new", overwrite=False)
    write_file(path, b"new", overwrite=True, private=True)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.usefixtures("way")
def test_an_old_file_stays_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "o"
    path.write_bytes(b"old")
    with atomic_output(path, overwrite=True) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("way")
def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "o"
    output = atomic_output(path)
    output.__enter__().write(b"ours")
    path.write_bytes(b"theirs")
    with pytest.raises(InputError, match="exists already"):
        output.__exit__(None, None, None)
    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("when", ["before it is complete", "before it is named"])
def test_an_exception_leaves_nothing(tmp_path, when):
    def stop() -> None:
        raise KeyboardInterrupt

    def interrupted() -> None:
        with atomic_output(tmp_path / "o", before_named=stop) as file:
            file.write(b"half")
            if when == "before it is complete":
                stop()

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@unix
def test_impossible_places_are_one_sentence(tmp_path):
    with pytest.raises(InputError, match="its folder does not exist"):
        atomic_output(tmp_path / "none" / "o").__enter__()
    with pytest.raises(InputError, match="its folder does not exist"):
        replaced_folder(tmp_path / "none" / "r", overwrite=False).__enter__()
    with pytest.raises(InputError, match="it is a folder"):
        atomic_output(tmp_path, overwrite=True).__enter__()
    if os.getuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match="Permission denied"):
            atomic_output(tmp_path / "o").__enter__()
        tmp_path.chmod(0o700)


WRITER = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from deniable import atomic_files\n"
    "if sys.argv[2] == 'aside': atomic_files._has_unnamed = lambda folder: False\n"
    "with atomic_files.atomic_output(sys.argv[1], overwrite=True) as file:\n"
    "    file.write(b'half'); file.flush(); print('ready', flush=True); time.sleep(60)\n"
)


@unix
@pytest.mark.parametrize("existing", slow_after(1, [True, False]))
@pytest.mark.parametrize("number", slow_after(2, [KILL, signal.SIGTERM, signal.SIGINT]))
def test_a_killed_process_leaves_the_old_file_or_none(tmp_path, way, number, existing):
    if way == "aside" and number == KILL:
        pytest.skip("without nameless files a kill -9 leaves the temporary name, never the file's")
    path = tmp_path / "o"
    if existing:
        path.write_bytes(b"old")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path, way], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(timeout=30) != 0
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([b"old"] if existing else [])


def test_a_folder_appears_when_it_is_complete_and_an_old_one_stays_until_then(tmp_path):
    with replaced_folder(tmp_path / "r", overwrite=False) as folder:
        (folder / "old").write_text("old")
        assert not (tmp_path / "r").exists()
    with (
        pytest.raises(InputError, match="exists"),
        replaced_folder(tmp_path / "r", overwrite=False),
    ):
        pass
    with pytest.raises(ZeroDivisionError), replaced_folder(tmp_path / "r", overwrite=True):
        raise ZeroDivisionError
    assert (tmp_path / "r" / "old").read_text() == "old"
    with replaced_folder(tmp_path / "r", overwrite=True) as folder:
        (folder / "new").write_text("new")
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["new"]
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_a_folder_that_was_just_made_when_the_run_is_stopped_goes_too(tmp_path, monkeypatch):
    def made_and_stopped(path, mode=0o777, made=os.mkdir):
        made(path, mode)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", made_and_stopped)
    with pytest.raises(KeyboardInterrupt), replaced_folder(tmp_path / "r", overwrite=False):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_old_folder_comes_back_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    old = tmp_path / "r"
    old.mkdir()
    (old / "kept").write_text("old")
    rename = type(tmp_path).rename

    def fail_on_the_new_one(path, target):
        if path.name == "new":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(atomic_files, "_exchanged", lambda *_: False)
    monkeypatch.setattr(type(tmp_path), "rename", fail_on_the_new_one)
    with pytest.raises(KeyboardInterrupt), replaced_folder(old, overwrite=True):
        pass
    assert (old / "kept").read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_an_old_folder_and_the_new_one_change_places_in_one_step(tmp_path, monkeypatch):
    old = tmp_path / "r"
    old.mkdir()
    (old / "kept").write_text("old")
    if not atomic_files._exchanged(old, tmp_path / "r"):
        pytest.skip("this system cannot swap two names")
    monkeypatch.setattr(type(tmp_path), "rename", None)  # two steps are never needed
    with replaced_folder(old, overwrite=True) as folder:
        (folder / "new").write_text("new")
    assert [p.name for p in old.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [old]


def test_of_two_writers_of_one_folder_the_second_is_refused(tmp_path):
    second = replaced_folder(tmp_path / "r", overwrite=False)
    (second.__enter__() / "theirs").write_text("second")
    with replaced_folder(tmp_path / "r", overwrite=False) as folder:
        (folder / "ours").write_text("first")
    with pytest.raises(InputError, match="exists already"):
        second.__exit__(None, None, None)
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["ours"]
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


def left_behind(folder: Path, *held: str) -> Path:
    """What a run that was killed leaves beside the folder r."""
    left = folder / ".r.ab_12xyz"
    for name in held:
        (left / name).parent.mkdir(parents=True, exist_ok=True)
        (left / name).write_text(name)
    left.mkdir(exist_ok=True)
    os.utime(left, (0, 0))
    return left


def test_what_a_killed_run_left_is_named_and_swept_by_the_next(tmp_path):
    left = left_behind(tmp_path, "new/data.csv", "new/record.json")
    with (
        pytest.warns(
            Notice, match=r"left .*\.r\.ab_12xyz with data\.csv, record\.json; it has been"
        ),
        replaced_folder(tmp_path / "r", overwrite=False),
    ):
        assert not left.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_an_old_folder_that_a_killed_run_had_moved_comes_back(tmp_path):
    left_behind(tmp_path, "old/data.csv")
    with pytest.warns(Notice) as said, pytest.raises(InputError, match="exists already"):
        atomic_files.refuse_existing(tmp_path / "r", overwrite=False)
    assert "is restored" in str(said[0].message)
    assert (tmp_path / "r" / "data.csv").read_text() == "old/data.csv"


def test_what_a_run_is_still_making_and_what_is_not_ours_is_left_alone(tmp_path):
    with replaced_folder(tmp_path / "r", overwrite=False) as folder:
        atomic_files.sweep(tmp_path / "r")
        assert folder.exists()
    foreign = left_behind(tmp_path, "new/data.csv", "notes.txt")
    (tmp_path / ".r.x").mkdir()
    (tmp_path / ".r.v2.ab_12xyz").mkdir()
    fresh = tmp_path / ".r.abcdefgh"
    fresh.mkdir()
    atomic_files.sweep(tmp_path / "r")
    assert foreign.exists()
    assert fresh.exists()
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.usefixtures("way")
def test_the_name_of_a_file_that_a_killed_run_left_is_swept(tmp_path):
    left = tmp_path / ".o.12.3.partial"
    left.write_text("rows")
    output = atomic_output(tmp_path / "o", overwrite=True)
    with pytest.warns(Notice, match="had left"):
        file = output.__enter__()
    file.write(b"whole")
    atomic_files.sweep(tmp_path / "o")  # its own is held
    output.__exit__(None, None, None)
    assert [p.name for p in tmp_path.iterdir()] == ["o"]


@unix
def test_without_locks_nothing_is_written_and_nothing_called_dead(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    import fcntl

    left = left_behind(tmp_path, "new/data.csv")
    with monkeypatch.context() as file_system:
        file_system.setattr(fcntl, "flock", refuse)
        for start in (
            lambda: replaced_folder(tmp_path / "r", overwrite=False),
            lambda: atomic_output(tmp_path / "o"),
        ):
            with pytest.raises(InputError, match="its file system has no locks"), start():
                pass
    with monkeypatch.context() as system:
        system.setattr(filelock, "has_fcntl", False)
        with pytest.raises(OSError, match="not implemented"):
            FileLock(tmp_path / "lock").claim()
    assert [*tmp_path.iterdir()] == [left]
    assert (left / "new" / "data.csv").exists()


HOLDER = (
    "import os, sys, time\n"
    "from pathlib import Path\n"
    "from deniable.atomic_files import FileLock\n"
    "lock = FileLock(Path(sys.argv[1]))\n"
    "assert lock.claim()\n"
    "{more}"
    "print('held', flush=True); time.sleep(60)\n"
)


@contextmanager
def held_elsewhere(path: Path, more: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds a lock; killed at the end."""
    words = [sys.executable, "-c", HOLDER.format(more=more), path]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def test_a_lock_is_held_by_one_process_until_it_is_killed(tmp_path):
    path = tmp_path / "lock"
    with held_elsewhere(path):
        assert not FileLock(path).claim()
        start = time.monotonic()
        assert not FileLock(path).claim(patience=0.2)
        assert 0.2 <= time.monotonic() - start < 5
    lock = FileLock(path)
    assert lock.claim()
    assert not FileLock(path).claim()  # also not by the same process twice
    lock.remove()
    assert not path.exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads processes off Linux's /proc")
def test_a_lock_is_free_when_its_process_has_gone_though_a_forked_child_lives(tmp_path):
    path = tmp_path / "lock"
    # The child writes a byte once its own hooks after the fork have run.
    more = (
        "import threading\n"
        "read, write = os.pipe()\n"
        "if os.fork() == 0: os.write(write, b'x'); time.sleep(60)\n"
        "os.read(read, 1)\n"
    )
    with held_elsewhere(path, more) as process:
        assert not FileLock(path).claim()
        (forked,) = (
            Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii").split()
        )
        process.kill()
        process.wait()
        try:
            assert FileLock(path).claim()
        finally:
            os.kill(int(forked), KILL)


@unix
def test_a_lock_of_a_file_that_was_removed_meanwhile_is_of_the_file_that_is_there(tmp_path):
    path = tmp_path / "lock"
    lock, other = FileLock(path), FileLock(path)
    assert lock.claim()
    path.unlink()
    assert other.claim()
    assert not FileLock(path).claim()


@unix
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_nothing_but_a_file_is_locked(tmp_path, kind):
    path = tmp_path / "lock"
    if kind == "folder":
        path.mkdir()
    else:
        (tmp_path / "data.csv").write_text("rows", encoding="utf-8")
        path.symlink_to(tmp_path / "data.csv")
    assert not FileLock(path).take_over()
    with pytest.raises(InputError, match="cannot be written"), explain_write_errors(path):
        FileLock(path).claim()


def test_a_failure_of_the_system_is_said_in_its_words_and_a_closed_pipe_is_left_alone(tmp_path):
    def failing(error: OSError) -> None:
        with explain_write_errors("o.csv"):
            raise error

    with pytest.raises(InputError, match=r"o\.csv cannot be written: the disk is full"):
        failing(OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(InputError, match="system error: Read-only file system"):
        failing(OSError(errno.EROFS, "Read-only file system"))
    with pytest.raises(BrokenPipeError):
        failing(BrokenPipeError(errno.EPIPE, "Broken pipe"))


def test_a_file_system_without_nameless_files_is_recognised(tmp_path, monkeypatch):
    def refuse(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert not atomic_files._has_unnamed(tmp_path)
    with monkeypatch.context() as patch:
        patch.delattr(os, "O_TMPFILE", raising=False)
        assert not atomic_files._has_unnamed(tmp_path)


def test_sigterm_leaves_nothing_where_files_need_a_name_in_this_process_too(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_files, "_has_unnamed", lambda _: False)

    def stopped() -> None:
        with atomic_output(tmp_path / "o") as file:
            file.write(b"half")
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(SystemExit) as end:
            stopped()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
    assert end.value.code == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_under_way_elsewhere_takes_no_look_at_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "scandir", lambda _: pytest.fail("thousands of files are looked at"))
    beside = tmp_path / "attempts"
    beside.mkdir()
    for overwrite in (False, True):
        with atomic_output(tmp_path / "x", overwrite=overwrite, beside=beside) as file:
            file.write(b"all")
    with (
        pytest.raises(InputError, match="it exists already"),
        atomic_output(tmp_path / "x", beside=beside),
    ):
        pass
    assert (tmp_path / "x").read_bytes() == b"all"
