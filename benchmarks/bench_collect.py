"""Submissions a second, durable and not stored at all; latency at a steady rate; a pair from a
million stored records.

    python benchmarks/bench_collect.py [--seconds 5] [--records 1000000] [--store postgresql+psycopg://…]

The server runs in a process of its own; the load comes from this one, on the same machine. Rates
depend on how long the disk takes to flush, which is printed beside them.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from deniable.collect.collector import Collector, today
from deniable.collect.counting import collected_by
from deniable.collect.folder import StudyFolder
from deniable.collect.serving import bound_socket, run, server_for
from deniable.collect.store import Outcome, Store, Submission
from deniable.collect.study import new_study
from deniable.design.design import design
from deniable.estimate.shares import Shares
from deniable.schema import Schema
from deniable.statement.record import mechanism_to_plain, to_json

CONNECTIONS = 32
HEAD = (
    "POST /submissions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    "Content-Length: {}\r\n\r\n"
)


class Nowhere:
    """A store that takes everything and keeps nothing: what the server itself can do."""

    def __init__(self, store: Store) -> None:
        self.study = store.study

    def submit(self, group: list[Submission], _today: date) -> list[Outcome]:
        return [Outcome.STORED] * len(group)


def serve(path: Path, durable: bool, ports: "Queue[Any]") -> None:
    folder = StudyFolder(path)
    store: Any = folder.open_store()
    collector = Collector(folder.study, store if durable else Nowhere(store), per_minute=10**9)
    bound = bound_socket("127.0.0.1", 0)
    before: list[float] = []

    def ready() -> None:
        before.append(time.process_time())
        ports.put(bound.getsockname()[1])

    run([(server_for(collector.app()), bound)], ready)
    ports.put(time.process_time() - before[0])


class Client(asyncio.Protocol):
    """A connection that posts one body after another, or one whenever it is told to."""

    def __init__(self, requests: Iterator[bytes], until: float, steady: bool) -> None:
        self.requests, self.until, self.steady = requests, until, steady
        self.received, self.took = b"", []
        self.waiting: list[float] = []
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        if not self.steady:
            self.post(time.perf_counter())

    def post(self, began: float) -> None:
        self.waiting.append(began)
        if len(self.waiting) == 1:
            self.transport.write(next(self.requests))

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.received.endswith(b'"stored"}'):
            return
        assert self.received.startswith(b"HTTP/1.1 201"), self.received
        self.received = b""
        now = time.perf_counter()
        self.took.append(now - self.waiting.pop(0))
        if not self.steady and now < self.until:
            self.post(now)
        elif self.waiting:
            self.transport.write(next(self.requests))
        elif now >= self.until:
            self.transport.close()
            self.ended.set_result(None)


async def load(
    ports: list[int], requests: Iterator[bytes], seconds: float, rate: float | None
) -> list[float]:
    """Post on 32 connections, as fast as answers come, or so many a second: a request that waits
    for an earlier one of its connection counts from when it was due. Return how long each took."""
    loop = asyncio.get_running_loop()
    until = time.perf_counter() + seconds
    made = [
        await loop.create_connection(
            lambda: Client(requests, until, rate is not None), "127.0.0.1", ports[i % len(ports)]
        )
        for i in range(CONNECTIONS)
    ]
    clients = [client for _, client in made]
    if rate is None:
        await asyncio.gather(*(client.ended for client in clients))
    else:
        began = time.perf_counter()
        for number in range(int(seconds * rate)):
            due = began + number / rate
            if (ahead := due - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            clients[number % CONNECTIONS].post(due)
        while any(client.waiting for client in clients):
            await asyncio.sleep(0.01)
    return [took for client in clients for took in client.took]


@contextmanager
def serving(path: Path, durable: bool, processes: int, spent: list[float]) -> Iterator[list[int]]:
    queues: list[Queue[Any]] = [Queue() for _ in range(processes)]
    servers = [Process(target=serve, args=(path, durable, queue)) for queue in queues]
    for server in servers:
        server.start()
    yield [queue.get() for queue in queues]
    for server in servers:
        server.terminate()
    spent += [queue.get() for queue in queues]
    for server in servers:
        server.join()


def flush() -> float:
    """Seconds that the disk takes to flush a page, on average."""
    took = []
    with tempfile.TemporaryFile() as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.fmean(took)


def submissions(path: Path, seconds: float, processes: int) -> None:
    study = StudyFolder(path).study
    record = "0" * sum(study.digits)

    def endless() -> Iterator[bytes]:
        while True:
            sent = {
                "study": study.identity,
                "token": "",
                "receipt": os.urandom(32).hex(),
                "record": record,
            }
            body = json.dumps(sent, separators=(",", ":")).encode()
            yield HEAD.format(len(body)).encode() + body

    rates: dict[bool, float] = {}
    for durable, rate in ((False, None), (True, None), (True, 1000.0)):
        spent: list[float] = []
        with serving(path, durable, processes, spent) as ports:
            began, own = time.perf_counter(), time.process_time()
            took = uvloop.run(load(ports, endless(), seconds, rate))
            found = len(took) / (time.perf_counter() - began)
            own = time.process_time() - own
        rates.setdefault(durable, found)
        centiles = statistics.quantiles(took, n=100)
        what = "stored, on the disk" if durable else "not stored"
        print(
            f"{what}{' at a steady rate' if rate else ''}: {found:,.0f}/s, "
            f"median {centiles[49] * 1000:.1f} ms, p99 {centiles[98] * 1000:.1f} ms; "
            f"{sum(spent) / len(took) * 1e6:.0f} µs of the server's processor each, "
            f"{own / len(took) * 1e6:.0f} µs of the load's"
        )
    print(f"ratio {rates[True] / rates[False]:.2f}; a flush of this disk: {flush() * 1000:.1f} ms")


def fill(path: Path, records: int) -> None:
    folder = StudyFolder(path)
    width = folder.study.record_size
    sizes = np.array(folder.study.design.mechanism.n_outputs)
    with folder.opened() as store:
        for start in range(0, records, 10_000):
            many = min(10_000, records - start)
            codes = np.random.default_rng(start).integers(0, sizes, (many, len(sizes)))
            digits = np.pad(codes, ((0, 0), (0, 2 * width - len(sizes)))).astype(np.uint8)
            packed = (digits[:, 0::2] << 4 | digits[:, 1::2]).tobytes()
            group = [
                Submission(os.urandom(32), packed[width * i : width * (i + 1)]) for i in range(many)
            ]
            store.submit(group, today())


def pair(path: Path, records: int) -> None:
    folder = StudyFolder(path)
    names = tuple(folder.study.design.mechanism.schema.names[:2])
    for what in ("cold", "cold, again"):
        store = folder.open_store()
        release = collected_by(folder, store)
        for state in (what, "unchanged"):
            began, spent = time.perf_counter(), time.process_time()
            (found,) = Shares(names, target="population").run(release)
            found.confidence_interval()
            print(
                f"a pair with intervals of {found.n_records:,} records, {state}: "
                f"{time.perf_counter() - began:.3f} s, {time.process_time() - spent:.3f} s of CPU"
            )
        store.dispose()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"most memory of the process with {records:,} records: {most:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--records", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--store", help="an empty PostgreSQL database: two collectors serve it")
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
        if options.seconds:
            StudyFolder.make(folder / "one", study, options.store)
            submissions(folder / "one", options.seconds, 2 if options.store else 1)
        for records in options.records:
            StudyFolder.make(folder / str(records), study)
            writer = Process(target=fill, args=(folder / str(records), records))
            writer.start()
            writer.join()
            reader = Process(target=pair, args=(folder / str(records), records))
            reader.start()
            reader.join()


if __name__ == "__main__":
    sys.exit(main())
