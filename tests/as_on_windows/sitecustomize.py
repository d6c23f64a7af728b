"""With this folder in PYTHONPATH, a Python on Linux is to `deniable` as one on Windows.

What Windows lacks is missing for modules of the package alone: other libraries are tested there by
their authors, and choose by the system that they are really on. For every module an open file
cannot be removed, renamed or replaced, and no file gets a name that Windows does not allow.
"""

import asyncio
import builtins
import errno
import os
import re
import signal
import stat
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import filelock

MODULES = """
curses fcntl grp posix pty pwd readline resource select selectors syslog termios tty
"""
"""What no module of the package may import; select and selectors there wait for sockets only."""

NAMES = {
    os: """
    O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_TMPFILE chown chroot fchdir fchmod fchown fork
    forkpty getegid geteuid getgid getgroups getpgid getuid killpg lockf mkfifo nice openpty
    posix_fadvise posix_fallocate pread pwrite register_at_fork sched_getaffinity
    sched_setaffinity sendfile setpgid setsid setuid statvfs sync sysconf uname wait
    """,
    signal: """
    SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 alarm
    pthread_kill pthread_sigmask setitimer sigwait
    """,
}
NAMES = {module: frozenset(names.split()) for module, names in NAMES.items()}
VALUES = {(sys, "platform"): "win32", (os, "name"): "nt"}


_frame = sys._getframe


def _asked_by_the_package() -> bool:
    asking = _frame(1).f_back
    package = None if asking is None else asking.f_globals.get("__package__")
    return (package or "").partition(".")[0] == "deniable"


class _AsOnWindows(ModuleType):
    def __getattribute__(self, name: str):
        found = super().__getattribute__(name)
        if name[:2] != "__" and _asked_by_the_package():
            if name in NAMES.get(self, ()):
                raise AttributeError(f"Windows has no {name}")
            return VALUES.get((self, name), found)
        return found


_import = builtins.__import__


def _import_as_on_windows(name, *given, **named):
    if name.partition(".")[0] in MODULES.split() and _asked_by_the_package():
        raise ModuleNotFoundError(f"Windows has no {name}")
    return _import(name, *given, **named)


def _is_open(path: str) -> bool:
    """Whether this process has a file, or one in a folder, open or mapped."""
    held = {line.split(maxsplit=5)[-1].rstrip("\n") for line in _open("/proc/self/maps")}
    for one in _listdir("/proc/self/fd"):
        with suppress(OSError):
            held.add(str(Path(f"/proc/self/fd/{one}").readlink()))
    return any(one == path or one.startswith(f"{path}/") for one in held)


def _open(path: str):
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.readlines()


_listdir = os.listdir


def _refuse_open(event: str, *paths, dir_fd) -> None:
    folder = Path() if dir_fd in (None, -1) else Path(f"/proc/self/fd/{dir_fd}").readlink()
    for path in paths:
        whole = os.path.realpath(folder / os.fsdecode(path))
        with suppress(FileNotFoundError):
            kind = os.lstat(whole).st_mode
            # A folder that shutil removes is open here.
            if event != "os.rmdir" and not stat.S_ISLNK(kind) and _is_open(whole):
                raise PermissionError(errno.EACCES, f"{event}: another process uses it", whole)


RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)


def is_allowed(name: str) -> bool:
    """Whether Windows lets a file have a name."""
    bad = re.search(r'[<>:"|?*\\\x00-\x1f]', name) or name[-1:] in (".", " ")
    return name in ("", ".", "..") or not (bad or RESERVED.fullmatch(name))


PLACE = os.environ.get("AS_ON_WINDOWS", "")
"""The folder in which files are looked at."""


def _look(event: str, given) -> None:
    made = {"open": (0,), "os.mkdir": (0,), "os.rename": (0, 1), "os.link": (1,)}.get(event, ())
    for number in made:
        if isinstance(given[number], str | bytes | os.PathLike):
            path = os.path.abspath(os.fsdecode(given[number]))  # noqa: PTH100
            if path.startswith(f"{PLACE}/"):
                for part in Path(path).relative_to(PLACE).parts:
                    if not is_allowed(part):
                        raise OSError(errno.EINVAL, "Windows allows no such name", path)
    if event in ("os.remove", "os.rename", "os.rmdir"):
        *paths, dir_fd = given[:2] if event != "os.rename" else (*given[:2], given[2])
        if os.path.abspath(os.fsdecode(paths[0])).startswith(f"{PLACE}/"):  # noqa: PTH100
            _refuse_open(event, *paths, dir_fd=dir_fd)


def _no_signal_handler(*_):
    raise NotImplementedError


_release = filelock.UnixFileLock._release


def _release_and_remove(lock) -> None:
    _release(lock)
    with suppress(OSError):
        Path(lock.lock_file).unlink()


def _kill(pid: int, number: int) -> None:
    if _asked_by_the_package():
        os._exit(number)  # TerminateProcess
    _really_kill(pid, number)


_really_kill = os.kill

if PLACE:
    sys.modules["uvloop"] = None
    asyncio.SelectorEventLoop.add_signal_handler = _no_signal_handler
    filelock.UnixFileLock._release = _release_and_remove
    os.kill = _kill
    builtins.__import__ = _import_as_on_windows
    for module in (os, signal, sys):
        module.__class__ = _AsOnWindows
    sys.addaudithook(_look)
