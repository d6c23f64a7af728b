"""Submissions a second, durable and not stored at all, and a pair from a million stored records.

    python benchmarks/bench_collect.py [--seconds 5] [--records 1000000]

The server runs in a process of its own; the load comes from this one, on the same machine.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from datetime import date
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Any

import numpy as np

from deniable.collect.collector import Collector, today
from deniable.collect.counting import open_collected
from deniable.collect.folder import StudyFolder
from deniable.collect.serving import bound_socket, run, server_for
from deniable.collect.store import Outcome, Store, Submission
from deniable.collect.study import new_study
from deniable.design.design import design
from deniable.design.record import mechanism_to_plain, to_json
from deniable.estimate.shares import Shares
from deniable.schema import Schema

CONNECTIONS = 32


class Nowhere:
    """A store that takes everything and keeps nothing: what the server itself can do."""

    def __init__(self, store: Store) -> None:
        self.study = store.study

    def submit(self, group: list[Submission], _today: date) -> list[Outcome]:
        return [Outcome.STORED] * len(group)

    def check(self) -> None: ...


def serve(path: Path, durable: bool, ports: "Queue[int]") -> None:
    folder = StudyFolder(path)
    store: Any = folder.open_store()
    collector = Collector(folder.study, store if durable else Nowhere(store), per_minute=10**9)
    bound = bound_socket("127.0.0.1", 0)
    run([(server_for(collector.app()), bound)], lambda: ports.put(bound.getsockname()[1]))


async def load(port: int, bodies: list[bytes], seconds: float) -> tuple[float, list[float]]:
    """Post bodies on 32 connections; return how many a second, and how long each took."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    waiting = iter(bodies)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end and (body := next(waiting, None)) is not None:
            began = time.perf_counter()
            head = "POST /submissions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 201"), answer
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            took.append(time.perf_counter() - began)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return len(took) / (time.perf_counter() - began), took


def submissions(path: Path, seconds: float) -> None:
    study = StudyFolder(path).study
    record = "0" * sum(study.digits)
    rates = {}
    for durable in (False, True):
        bodies = [
            json.dumps(
                {"study": study.identity, "token": "", "receipt": os.urandom(32).hex(),
                 "record": record},
                separators=(",", ":"),
            ).encode()
            for _ in range(int(20_000 * seconds))
        ]  # fmt: skip
        ports: Queue[int] = Queue()
        server = Process(target=serve, args=(path, durable, ports))
        server.start()
        rate, took = asyncio.run(load(ports.get(), bodies, seconds))
        server.terminate()
        server.join()
        rates[durable] = rate
        centiles = statistics.quantiles(took, n=100)
        what = "stored, on the disk" if durable else "not stored"
        print(f"{what}: {rate:,.0f}/s, median {centiles[49] * 1000:.1f} ms, "
              f"p99 {centiles[98] * 1000:.1f} ms")  # fmt: skip
    print(f"ratio {rates[True] / rates[False]:.2f}")


def pair(path: Path, records: int) -> None:
    folder = StudyFolder(path)
    study, store = folder.study, folder.open_store()
    width = study.record_size
    sizes = np.array(study.design.mechanism.n_outputs)
    for start in range(0, records, 50_000):
        codes = np.random.default_rng(start).integers(0, sizes, (50_000, len(sizes)))
        text = ["".join(f"{c:x}" for c in row) + "0" * (2 * width - len(row)) for row in codes]
        ids = sorted(os.urandom(32) for _ in text)
        group = [Submission(i, bytes.fromhex(t)) for i, t in zip(ids, text, strict=True)]
        for at in range(0, len(group), 10_000):
            store.submit(group[at : at + 10_000], today())
    store.dispose()
    for _ in range(3):
        began = time.perf_counter()
        Shares(tuple(study.design.mechanism.schema.names[:2])).ask(open_collected(path))
        print(f"a pair with intervals of {records:,} records: {time.perf_counter() - began:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--records", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        names = [f"a{i}" for i in range(1, 13)]
        questions = "".join(f'[[question]]\nattribute = "{n}"\ntext = "?"\n' for n in names)
        head = 'title = "T"\npurpose = "P"\ncontact = "C"\ncloses = 2099-01-01\n'
        head += 'respondents = "open"\nconsent = ["Yes."]\n'
        (folder / "q.toml").write_text(head + questions)
        plan = design(Schema.anonymous((5,) * 12), epsilon=4.0, method="kronecker")
        (folder / "m.json").write_bytes(to_json(mechanism_to_plain(plan)))
        study = new_study(folder / "m.json", folder / "q.toml", date.today())
        StudyFolder.make(folder / "one", study)
        submissions(folder / "one", options.seconds)
        StudyFolder.make(folder / "two", study)
        pair(folder / "two", options.records)


if __name__ == "__main__":
    sys.exit(main())
