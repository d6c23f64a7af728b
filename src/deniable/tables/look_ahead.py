"""Batches fetched by a thread ahead of the caller."""

import queue
import threading
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")


def read_ahead(items: Iterable[_T]) -> Generator[_T, None, None]:
    """Yield the items while a thread fetches the next one.

    Parsing and the caller's work both release the interpreter lock, so they share two cores. At
    most two items are in memory, one of them the caller's.
    """
    ready: queue.SimpleQueue[tuple[_T | None, BaseException | None]] = queue.SimpleQueue()
    wanted = threading.Semaphore(1)
    stopped = threading.Event()

    def fetch() -> None:
        source = iter(items)
        try:
            while True:
                wanted.acquire()
                if stopped.is_set():
                    return
                ready.put((next(source), None))
        except StopIteration:
            ready.put((None, None))
        except BaseException as error:  # handed over: the consumer raises it
            ready.put((None, error))

    thread = threading.Thread(target=fetch, name="deniable-read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            got: list[Any] = [*ready.get()]
            wanted.release()
            if (error := got.pop()) is not None:
                raise error
            if got[0] is None:
                return
            yield got.pop()
    finally:
        stopped.set()
        wanted.release()
        # A thread that waits for a pipe cannot be woken; it ends with the process.
        thread.join(timeout=1)
