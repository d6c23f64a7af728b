"""Outputs that appear whole or not at all."""

import errno
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from deniable.errors import InputError


@contextmanager
def atomic_output(path: str | Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a file that gets its name only when the block has ended without an exception.

    Where the system has files without a name (Linux), the data has none until it is complete and
    on the disk, so that even a killed process leaves nothing. Elsewhere it is written under a
    temporary name in the same folder, which an exception, an interrupt or SIGTERM removes.

    Args:
        path: the file to make.
        overwrite: whether an existing file may be replaced; until then it stays as it is.

    Raises:
        InputError: if the file exists, its folder does not, or the disk is full.

    >>> with atomic_output("table.csv") as file:
    ...     file.write(b"smokes,age\\n")
    11
    >>> Path("table.csv").read_text()
    'smokes,age\\n'
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder; name a file in it")
    refuse_existing(path, overwrite=overwrite)
    write = _unnamed if _has_unnamed(path.parent) else _aside
    with explain_write_errors(path), write(path, overwrite) as file:
        yield file


@contextmanager
def explain_write_errors(where: str | Path) -> Iterator[None]:
    """Turn a failure of the system to write into one sentence.

    A pipe whose reader has gone is no mistake of the user: that error is passed on.

    Raises:
        InputError: if the system could not write.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(_write_failure(where, error)) from None


def _write_failure(where: str | Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        why = "there is no space left for it; free some space, or write it elsewhere"
    elif error.errno == errno.ENOENT:
        why = "its folder does not exist; make it first"
    elif error.errno == errno.EEXIST:
        why = (
            "it exists already; choose another name, or replace it with --force (releases of the "
            "same people add up: an old one that someone has still counts)"
        )
    else:
        why = f"the system says: {error.strerror or type(error).__name__}"
    return f"{where} cannot be written: {why}"


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Stop before any work if an output exists and was not meant to be replaced.

    Raises:
        InputError: if so, or if there is no folder to write into.
    """
    if not overwrite and os.path.lexists(path):
        raise InputError(_write_failure(path, FileExistsError(errno.EEXIST, "")))
    if not path.absolute().parent.is_dir():
        raise InputError(_write_failure(path, FileNotFoundError(errno.ENOENT, "")))


def refuse_foreign_folder(
    path: Path, what: str, is_ours: Callable[[set[str]], bool], *, overwrite: bool
) -> None:
    """Stop before any work if a folder exists and is not to be, or must not be, replaced.

    Only an older result of the same kind and an empty folder are ever replaced: anything else that
    stands there, such as the folder that holds the true table, would be lost.

    Args:
        path: the folder to make.
        what: the kind of result, with its article.
        is_ours: tells from the names in the folder whether it is one.
        overwrite: whether an older one may be replaced.

    Raises:
        InputError: if so.
    """
    refuse_existing(path, overwrite=overwrite)
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise InputError(f"{path} is not a folder, so it is not replaced; name another folder")
    present = {entry.name for entry in path.iterdir()}
    if present and not is_ours(present):
        raise InputError(
            f"{path} holds other files than {what} does, so it is not replaced; name another folder"
        )


def write_file(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write a small file, whole or not at all.

    Raises:
        InputError: as :func:`atomic_output`.

    >>> write_file(Path("note.txt"), b"all of it", overwrite=False)
    >>> Path("note.txt").read_text()
    'all of it'
    """
    with atomic_output(path, overwrite=overwrite) as file:
        file.write(content)


@contextmanager
def replaced_folder(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give an empty folder that gets its name only when the block has ended without an exception.

    It stands beside its final place meanwhile, under a name that begins with a dot, and is removed
    if anything goes wrong; an old folder stays until the new one is complete.

    Raises:
        InputError: if the folder exists and ``overwrite`` is false, or cannot be made.

    >>> with replaced_folder(Path("release"), overwrite=False) as folder:
    ...     made = (folder / "record.json").write_text("{}")
    ...     Path("release").exists()
    False
    >>> [path.name for path in Path("release").iterdir()]
    ['record.json']
    """
    refuse_existing(path, overwrite=overwrite)
    aside = None
    try:
        with explain_write_errors(path):
            aside = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=f".{path.name}."))
            new = aside / "new"
            new.mkdir()
            yield new
            old = aside / "old"
            if path.exists():
                path.rename(old)
            try:
                new.rename(path)
            except BaseException:
                if old.exists():
                    old.rename(path)
                raise
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)


def _has_unnamed(folder: Path) -> bool:
    """Return whether this folder's file system can hold a file without a name."""
    if not hasattr(os, "O_TMPFILE") or not Path("/proc/self/fd").is_dir():
        return False
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600))
    except OSError:
        return False
    return True


@contextmanager
def _unnamed(path: Path, overwrite: bool) -> Iterator[BinaryIO]:
    descriptor = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(descriptor)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            # A link cannot replace a file, which is what is wanted unless overwriting was asked
            # for; then the complete file takes a temporary name and is renamed over the old one.
            name = path.name
            if overwrite:
                name = f".{path.name}.{os.getpid()}.{descriptor}.partial"
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
            os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder, follow_symlinks=True)
            if overwrite:
                os.replace(name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _aside(path: Path, overwrite: bool) -> Iterator[BinaryIO]:
    mask = os.umask(0)
    os.umask(mask)
    descriptor, temporary = tempfile.mkstemp(".partial", f".{path.name}.", path.parent)
    try:
        with _terminated_as_exception(), os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, 0o666 & ~mask)
            os.fsync(descriptor)
        if not overwrite and os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "")
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


@contextmanager
def _terminated_as_exception() -> Iterator[None]:
    """Let SIGTERM unwind the stack, unless the program handles it itself."""
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
