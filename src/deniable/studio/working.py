"""Computation in separate processes, stopped when no longer needed."""

import asyncio
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from deniable.errors import InputError

_context: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
if sys.platform != "win32":
    # Imports are preloaded once for all processes: they are two thirds of the CPU time of a design
    # of twelve attributes.
    names = ("balanced_lists", "forms", "least_error", "least_variance", "optimal")
    _context.set_forkserver_preload(
        [
            *("deniable.studio.answers", "scipy.sparse", "clarabel", "importlib.metadata"),
            *(f"deniable.solvers.patterns.{name}" for name in names),
        ]
    )

_MOST_KEPT = 64

Gone = Callable[[], Awaitable[bool]]
"""Whether the client disconnected."""


async def in_process(function: Callable[..., Any], *given: Any) -> Any:
    """Return the value of a function of a module, computed in a process that is stopped with the
    await."""
    here, there = _context.Pipe(duplex=False)
    process = _context.Process(target=_work, args=(there, function, given), daemon=True)
    loop = asyncio.get_running_loop()
    # The first start waits until the modules are loaded.
    starting = loop.run_in_executor(None, process.start)
    try:
        await asyncio.shield(starting)
        there.close()
        done, value = await loop.run_in_executor(None, here.recv)
    except (EOFError, OSError):
        raise InputError(
            "this was not computed: its process was ended, perhaps for want of memory; change "
            "something, or try again"
        ) from None
    finally:
        await asyncio.wait({starting})
        if process.pid is not None:
            process.kill()
            process.join()
        there.close()
    if not done:
        raise InputError(value)
    return value


async def warm() -> None:
    """Preload modules for the processes."""
    with suppress(InputError):
        await in_process(int)


def _work(there: Connection, function: Callable[..., Any], given: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops it
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        there.send((True, function(*given)))
    except InputError as error:
        there.send((False, str(error)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class Answers:
    """Results by request, and the running computation; a result is stored under the digest of its
    request."""

    def __init__(self, compute: Callable[..., Coroutine[Any, Any, Any]] = in_process) -> None:
        self._compute = compute
        self._known: dict[str, Any] = {}
        self._waiting: Counter[str] = Counter()
        self._running: tuple[str, asyncio.Task[Any]] | None = None
        self.begun = 0
        """Designs started so far."""

    def known(self, digest: str) -> Any:
        """Return an answer; None if it is not there yet."""
        return self._known.get(digest)

    def want(self, digest: str, function: Callable[..., Any], *given: Any) -> None:
        """Start a computation, and stop that of another request."""
        if digest in self._known or (self._running and self._running[0] == digest):
            return
        self.drop()
        self.begun += 1
        task = asyncio.create_task(self._compute(function, *given))
        task.add_done_callback(partial(self._finished, digest))
        self._running = (digest, task)

    def _finished(self, digest: str, task: "asyncio.Task[Any]") -> None:
        if self._running and self._running[1] is task:
            self._running = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, InputError):
            raise error
        while len(self._known) >= _MOST_KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[digest] = {"problem": str(error)} if error else task.result()

    def drop(self) -> None:
        """Stop the running computation."""
        if self._running:
            self._running[1].cancel()
            self._running = None

    async def wait(self, digest: str, gone: Gone) -> Any:
        """Wait for a result; None if the request changed or the client disconnected."""
        self._waiting[digest] += 1
        try:
            while digest not in self._known:
                if not self._running or self._running[0] != digest:
                    return None
                await asyncio.wait({self._running[1]}, timeout=0.25)
                if await gone():
                    return None
            return self._known[digest]
        finally:
            self._waiting[digest] -= 1
            if self._running and self._running[0] == digest and not self._waiting[digest]:
                self.drop()
