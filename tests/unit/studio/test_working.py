"""Processes that are ended, and answers that never stand beside another request."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InputError
from deniable.schema import FileFormat
from deniable.studio import answers
from deniable.studio.request import request_of
from deniable.studio.working import Answers, in_process, warm
from deniable.tables.drafting import draft_with_reasons
from unit.studio.asking import processes
from unit.studio.drafts import draft


async def never() -> bool:
    return False


def ended(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run something in a loop, and see that it leaves no process."""
    asyncio.run(asyncio.wait_for(work(), 60))
    assert processes() == []


# --- processes ----------------------------------------------------------------------------------


def test_processes_answer_refuse_and_are_ended(tmp_path: Path) -> None:
    async def work() -> None:
        await warm()
        request = request_of(draft())
        assert await in_process(answers.answer, request) == answers.answer(request)
        with pytest.raises(InputError, match=r"none\.csv"):
            await in_process(draft_with_reasons, str(tmp_path / "none.csv"), FileFormat())
        # What a process dies of, of itself or by another's hand.
        for function, status in ((os.kill, ()), (os._exit, (1,)), (os.abort, ())):
            with pytest.raises(InputError, match="this was not computed: its process was ended"):
                await in_process(function, *status)
        asking = asyncio.create_task(in_process(time.sleep, 60))
        while not (found := processes()):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        os.kill(found[0].pid or 0, signal.SIGKILL)
        with pytest.raises(InputError, match="not computed"):
            await asking

    ended(work)


def test_a_process_is_gone_soon_after_nobody_wants_its_answer() -> None:
    async def work() -> None:
        known = Answers()
        gone = False

        async def has_gone() -> bool:
            return gone

        for leave in ("browser closed", "other request", "end"):
            known.want("slow", time.sleep, 60)
            waiting = asyncio.create_task(known.wait("slow", has_gone))
            while not processes():
                await asyncio.sleep(0.01)
            since = time.monotonic()
            if leave == "browser closed":
                gone = True
            elif leave == "other request":
                known.want("fast", int)
            else:
                known.drop()
            assert await waiting is None
            while any(child.is_alive() for child in processes()):
                await asyncio.sleep(0.01)
            assert time.monotonic() - since < 2
            gone = False

    ended(work)


KILLED = """
import asyncio, os, time
from deniable.schema import FileFormat
from deniable.studio.working import in_process

async def design():
    work = asyncio.create_task(in_process(time.sleep, 600))
    while not multiprocessing.active_children():
        await asyncio.sleep(0.01)
    print("begun", flush=True)
    await work

import multiprocessing
if __name__ == "__main__":
    asyncio.run(design())
"""


def test_processes_end_with_a_studio_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "studio.py"
    file.write_text(KILLED)
    studio = subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE)
    assert studio.stdout is not None
    assert studio.stdout.readline() == b"begun\n"
    studio.kill()
    assert studio.communicate(timeout=20) == (b"", None)  # nobody holds the other end any more


# --- answers ------------------------------------------------------------------------------------


class Fake:
    """Computes nothing; answers when it is told to, in any order, also to who has gone."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, asyncio.Event]] = []
        self.ended = 0

    async def __call__(self, function: Callable[..., Any], *given: Any) -> Any:
        event = asyncio.Event()
        self.asked.append((given[0], event))
        try:
            await event.wait()
        except asyncio.CancelledError:
            self.ended += 1
            if function is stubborn:  # an answer that was under way comes all the same
                await event.wait()
            else:
                raise
        return f"of {given[0]}"


def stubborn() -> None:
    """What is not stopped in time."""


@settings(max_examples=15)
@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8), st.integers(0, 1000))
def test_no_answer_stands_beside_another_wish(order: list[str], seed: int) -> None:
    async def work() -> None:
        fake = Fake()
        known = Answers(fake)
        waiting = []
        for request in order:
            known.want(request, stubborn, request)
            waiting.append((request, asyncio.create_task(known.wait(request, never))))
            await asyncio.sleep(0)
        late = fake.asked[::-1]
        random.Random(seed).shuffle(late)
        for _, event in late:
            event.set()
            await asyncio.sleep(0)
        for request, task in waiting:
            assert await task in (None, f"of {request}")
        assert await waiting[-1][1] == f"of {order[-1]}"
        for request in "abcdef":
            assert known.known(request) in (None, f"of {request}")

    asyncio.run(work())


def test_a_slider_that_is_dragged_leaves_one_design_at_work() -> None:
    async def work() -> None:
        fake = Fake()
        known = Answers(fake)
        for place in range(100):
            known.want(str(place), int, str(place))
            await asyncio.sleep(0)
        known.want("99", int, "99")
        await asyncio.sleep(0)
        assert (known.begun, fake.ended) == (100, 99)
        fake.asked[-1][1].set()
        assert await known.wait("99", never) == "of 99"
        known.want("99", int, "99")
        assert known.begun == 100

    asyncio.run(work())


def test_what_cannot_be_computed_is_the_answer() -> None:
    async def refused(*_: Any) -> Any:
        raise InputError("there is none")

    async def work() -> None:
        known = Answers(refused)
        for i in range(70):
            known.want(str(i), int)
            assert await known.wait(str(i), never) == {"problem": "there is none"}
        assert known.known("0") is None  # the oldest are forgotten
        assert known.known("69") is not None
        assert await known.wait("nobody asked", never) is None

    asyncio.run(work())


def test_of_two_who_wait_one_may_go() -> None:
    async def work() -> None:
        fake = Fake()
        known = Answers(fake)
        known.want("a", int, "a")

        async def gone() -> bool:
            return True

        stays = asyncio.create_task(known.wait("a", never))
        assert await known.wait("a", gone) is None
        fake.asked[-1][1].set()
        assert await stays == "of a"

    asyncio.run(work())
