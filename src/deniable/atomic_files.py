"""Output files and folders that appear whole or not at all."""

import ctypes
import errno
import hashlib
import io
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO

from deniable.errors import InputError, notify

if TYPE_CHECKING:
    from filelock import BaseFileLock

_ASIDE = frozenset({"new", "old", "lock"})
"""Names in the hidden folder next to a folder in the making."""

_SETTLED = 60.0
"""Seconds after which the process that makes a file has surely locked it."""


def as_text(name: str) -> str:
    r"""Return a file's name, or text with such names, with ? for bytes that are not text.

    >>> as_text("tab\udce9.csv")
    'tab?.csv'
    """
    return name.encode("utf-8", "replace").decode()


@contextmanager
def atomic_output(
    path: str | Path,
    *,
    overwrite: bool = False,
    private: bool = False,
    before_named: Callable[[], None] = lambda: None,
    beside: Path | None = None,
    reserve: int = 0,
) -> Iterator[BinaryIO]:
    """Open a file that gets its name when the block ends without an exception.

    On Linux the data have no name until they are complete and on the disk: even a killed process
    leaves no file. Elsewhere they are written under a temporary name in the same folder, which an
    exception, an interrupt or SIGTERM removes.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder; name a file in it")
    if beside is None:
        refuse_existing(path, overwrite=overwrite)
        beside = path.parent
    write = _unnamed if _has_unnamed(beside) else _aside
    mode = 0o600 if private else 0o666
    with explain_write_errors(path), write(path, overwrite, before_named, beside, mode) as file:
        if reserve and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, reserve)
        yield file
        file.truncate()


class Digesting(io.RawIOBase):
    """A file written from its beginning, with its digest.

    >>> with atomic_output("table.csv") as file:
    ...     digesting = Digesting(file)
    ...     digesting.write(b"smokes,age\\n")
    11
    >>> digesting.hexdigest() == hashlib.sha256(Path("table.csv").read_bytes()).hexdigest()
    True
    """

    mode = "wb"

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def write(self, content: Any) -> int:
        """Append bytes."""
        self._digest.update(content)
        return self._file.write(content)

    def tell(self) -> int:
        """Return the number of bytes."""
        return self._file.tell()

    def writable(self) -> bool:
        """Return True."""
        return True

    def hexdigest(self) -> str:
        """Return the SHA-256 of the bytes written, in hexadecimal."""
        return self._digest.hexdigest()


@contextmanager
def explain_write_errors(where: str | Path) -> Iterator[None]:
    """Turn a system's write error into one sentence; that of a pipe without a reader is passed on,
    as it is not a user's mistake."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(_write_failure(where, error)) from None


def _write_failure(where: str | Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        why = "the disk is full; free some space, or write it elsewhere"
    elif error.errno in (errno.ENOSYS, errno.ENOLCK):
        why = (
            "its file system has no locks, without which two processes could change the same "
            "files; write it elsewhere, such as to a folder on a local disk"
        )
    elif error.errno == errno.ENOENT:
        why = "its folder does not exist; make it first"
    elif error.errno == errno.EEXIST:
        why = (
            "it exists already; choose another name, or replace it with `overwrite` (releases of "
            "the same people add up: copies of an old one still count)"
        )
    else:
        why = f"system error: {error.strerror or type(error).__name__}"
    return f"{where} cannot be written: {why}"


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Raise, before any work, if an output exists and may not be replaced, after removing the
    remains of a killed run (:func:`sweep`)."""
    sweep(path)
    if not overwrite and os.path.lexists(path):
        raise InputError(_write_failure(path, FileExistsError(errno.EEXIST, "")))
    if not path.absolute().parent.is_dir():
        raise InputError(_write_failure(path, FileNotFoundError(errno.ENOENT, "")))


def refuse_foreign_folder(
    path: Path, what: str, is_ours: Callable[[set[str]], bool], *, overwrite: bool
) -> None:
    """Raise, before any work, if a folder exists and may not be replaced.

    Only older results of the same kind and empty folders are replaced: other files in the folder,
    such as the true table, would be lost.
    """
    refuse_existing(path, overwrite=overwrite)
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise InputError(f"{path} is not a folder and is not replaced; name another folder")
    present = {entry.name for entry in path.iterdir()}
    if present and not is_ours(present):
        raise InputError(
            f"{path} holds other files than {what} and is not replaced; name another folder"
        )


def write_file(
    path: Path,
    content: bytes,
    *,
    overwrite: bool,
    private: bool = False,
    beside: Path | None = None,
) -> None:
    """Write a small file that is not a release, whole or not at all; see :func:`atomic_output`."""
    if not overwrite and os.path.lexists(path):
        raise InputError(
            f"{path} cannot be written: it exists already; choose another name, or replace it "
            "with `overwrite`"
        )
    with atomic_output(path, overwrite=overwrite, private=private, beside=beside) as file:
        file.write(content)


@contextmanager
def replaced_folder(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield an empty folder that gets its name when the block ends without an exception.

    Until then it has a hidden name next to its final place, and is removed on any error; an old
    folder stays until the new one is complete.
    """
    refuse_existing(path, overwrite=overwrite)
    # Named before it is made: a signal may come between.
    aside = path.absolute().parent / f".{path.name}.{uuid.uuid4().hex[:16]}"
    lock = FileLock(aside / "lock")
    try:
        with explain_write_errors(path):
            aside.mkdir(mode=0o700)
            lock.claim()  # free after this process: then the folder is swept
            new = aside / "new"
            new.mkdir()
            yield new
            put_folder(new, path, aside / "old", overwrite=overwrite)
    finally:
        remove_locked_folder(aside, lock)


def remove_locked_folder(folder: Path, lock: "FileLock") -> None:
    """Remove a folder, its lock file last: until then no other process uses it."""
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry != lock.path:
                entry.unlink()
    lock.remove()
    with suppress(OSError):  # another process has made a new one
        folder.rmdir()


def put_folder(new: Path, path: Path, old: Path, *, overwrite: bool) -> None:
    """Give a folder its name, in one step where the system can."""
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "")
    if not path.exists():
        new.rename(path)  # fails if a non-empty folder has appeared meanwhile
        return
    if _exchanged(new, path):
        return
    path.rename(old)
    try:
        new.rename(path)
    except BaseException:
        old.rename(path)
        raise


def _exchanged(first: Path, second: Path) -> bool:
    """Swap two names in one step; return whether the system supports it (Linux's renameat2)."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(renameat2(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0)


class FileLock:
    """A lock file held by one process at a time, free after that process ends, even if killed.

    Where the system has no locks, claiming fails: the existence of a file would outlast its
    process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: BaseFileLock | None = None

    def claim(self, *, patience: float = 0.0) -> bool:
        """Lock the file, made if needed; return False while another process holds it."""
        import filelock  # not needed by commands without output

        if sys.platform != "win32" and not filelock.has_fcntl:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        how: Any = {"mode": 0o600, "thread_local": False, "fallback_to_soft": False}
        lock = filelock.FileLock(self.path, timeout=patience, poll_interval=0.01, **how)
        try:
            lock.acquire()
        except filelock.Timeout:
            return False
        self._lock = lock
        return True

    def take_over(self) -> bool:
        """Lock the file if this user may and no process does; return whether it is locked."""
        with suppress(OSError):
            return self.claim()
        return False

    def release(self) -> None:
        """Unlock the file."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def remove(self) -> None:
        """Remove and unlock the file, on Windows in the reverse order."""
        with suppress(OSError):
            self.path.unlink()
        self.release()


def _hold(file: BinaryIO) -> bool:
    """Lock an open file until it is closed; return False if another process holds it."""
    import filelock

    return filelock.lock_descriptor(file.fileno(), blocking=False)


def sweep(path: Path) -> None:
    """Remove the remains of killed runs next to an output, with a notice for each; a folder that
    such a run had moved away comes back."""
    ours = re.compile(
        rf"\.{re.escape(path.name)}\.([a-z0-9_]{{8}}|[0-9a-f]{{16}}|[a-z0-9_.]+\.partial)"
    )
    try:
        with os.scandir(path.absolute().parent) as beside:
            leftovers = sorted(Path(entry.path) for entry in beside if ours.fullmatch(entry.name))
    except OSError:
        return
    for left in leftovers:
        with suppress(OSError):  # another program's, or removed meanwhile
            if left.is_dir():
                _sweep_folder(left, path)
            elif not _new_and_empty(left, set()):
                with left.open("rb") as file:
                    dead = _hold(file)
                if dead:
                    left.unlink()
                    _warn_of(left, "")


def _new_and_empty(left: Path, held: set[str]) -> bool:
    """Return whether this may belong to a process that has just made and not yet locked it."""
    status = left.lstat()
    empty = held <= {"lock"} if left.is_dir() else not status.st_size
    return empty and time.time() - status.st_mtime < _SETTLED


def _sweep_folder(left: Path, path: Path) -> None:
    names = {entry.name for entry in left.iterdir()}
    lock = FileLock(left / "lock")
    if not names <= _ASIDE or _new_and_empty(left, names) or not lock.claim():
        return
    try:
        held = sorted(p.name for p in (left / "new").iterdir()) if (left / "new").is_dir() else []
        if (left / "old").exists() and not os.path.lexists(path):
            (left / "old").rename(path)
            notify(f"{path} is restored: a killed run had moved it")
        _warn_of(left, f" with {', '.join(held)}" if held else ", empty")
    finally:
        remove_locked_folder(left, lock)


def _warn_of(left: Path, held: str) -> None:
    notify(
        f"a killed run had left {left}{held}; it has been removed. Released rows that "
        "were visible there add up to those of other releases",
    )


def _has_unnamed(folder: Path) -> bool:
    """Return whether this folder's file system supports unnamed files."""
    if not hasattr(os, "O_TMPFILE") or not Path("/proc/self/fd").is_dir():
        return False
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600))
    except OSError:
        return False
    return True


def leaves_nothing(path: Path) -> bool:
    """Return whether a process killed while it writes here leaves no file."""
    return _has_unnamed(path.absolute().parent)


@contextmanager
def _unnamed(
    path: Path, overwrite: bool, before_named: Callable[[], None], beside: Path, mode: int
) -> Iterator[BinaryIO]:
    descriptor = os.open(beside, os.O_TMPFILE | os.O_RDWR, mode)
    with os.fdopen(descriptor, "wb") as file:
        _hold(file)  # a killed process leaves no file under any name
        yield file
        file.flush()
        os.fsync(descriptor)
        before_named()
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            # A link cannot replace a file, as required unless overwriting; then the complete file
            # gets a temporary name and is renamed over the old one.
            name = path.name
            if overwrite:
                name = f".{path.name}.{os.getpid()}.{descriptor}.partial"
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
            os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder, follow_symlinks=True)
            if overwrite:
                try:
                    os.replace(name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
                except BaseException:
                    os.unlink(name, dir_fd=folder)
                    raise
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _aside(
    path: Path, overwrite: bool, before_named: Callable[[], None], beside: Path, mode: int
) -> Iterator[BinaryIO]:
    mask = os.umask(0)
    os.umask(mask)
    descriptor, temporary = tempfile.mkstemp(".partial", f".{path.name}.", beside)
    try:
        with _terminated_as_exception(), os.fdopen(descriptor, "wb") as file:
            _hold(file)
            yield file
            file.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode & ~mask)
            os.fsync(descriptor)
            before_named()
        if overwrite:
            Path(temporary).replace(path)
        else:
            _name_once(Path(temporary), path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _name_once(temporary: Path, path: Path) -> None:
    """Give a file its name unless that is taken, in one step where the system has links."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "") from None
        temporary.rename(path)
    else:
        temporary.unlink()


@contextmanager
def _terminated_as_exception() -> Iterator[None]:
    """Let SIGTERM unwind the stack, unless the program handles it."""
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )

    def leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise SystemExit(128 + number)

    if ours:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
