"""A process that is killed at a chosen moment of its work, as by kill -9."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_DONE, _FAILED = 0, 77


def forked(work: Callable[[], None]) -> int:
    """Do some work in a process of its own; return its process id.

    The process is a copy of this one, so that it starts at once. It leaves with 0 after the work,
    and with 77 after an exception.
    """
    child = os.fork()
    if child:
        return child
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        work()
    except BaseException:
        os._exit(_FAILED)
    os._exit(_DONE)


def finished(child: int) -> bool:
    """Wait for a process; return whether its work was done, and not killed or refused."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == _DONE


def killed(work: Callable[[], None], moment: int, room: str = "deniable") -> bool:
    """Do some work in a process of its own that dies at a moment; return whether it did.

    Moments are calls and returns of functions, of C too, made while a function of the package is
    on the way: between any two of them the state of the disk is the same, since only a call can
    change it.

    Args:
        work: what to do.
        moment: which of them, from 0.
        room: counted are those with a frame of a module that begins like this.
    """

    def work_and_die() -> None:
        left = moment

        def look(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal left
            if frame.f_globals.get("__name__", "").startswith(room):
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        sys.setprofile(look)
        try:
            work()
        finally:
            sys.setprofile(None)

    status = os.waitpid(forked(work_and_die), 0)[1]
    return os.WIFSIGNALED(status)


def moments(work: Callable[[], None], room: str = "deniable") -> int:
    """Return how many moments there are in some work; it is done once, in a process of its own."""
    read, write = os.pipe()

    def count() -> None:
        found = 0

        def look(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal found
            found += frame.f_globals.get("__name__", "").startswith(room)

        sys.setprofile(look)
        try:
            work()
        finally:
            sys.setprofile(None)
            os.write(write, str(found).encode())

    child = forked(count)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    assert finished(child)
    return int(text)
