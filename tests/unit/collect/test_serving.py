"""Where a server may listen, and how it ends."""

import contextlib
import http.client
import ipaddress
import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

import numpy as np
import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from deniable.collect import serving
from deniable.collect.collector import Collector
from deniable.collect.folder import StudyFolder
from deniable.collect.serving import bound_socket, check_listening, is_loopback, run, server_for
from deniable.errors import InputError
from unit.collect.studies import body_of, example_folder, listening, served


def test_answers_are_never_open_on_the_way() -> None:
    check_listening("127.0.0.1", None, None, 0)
    check_listening("::1", None, None, 0)
    check_listening("0.0.0.0", None, None, 1)
    check_listening("0.0.0.0", Path("c"), Path("k"), 0)
    for host in ("0.0.0.0", "192.0.2.1", "::", "study.example"):
        with pytest.raises(InputError, match="would be sent unencrypted"):
            check_listening(host, None, None, 0)
    with pytest.raises(InputError, match="go together"):
        check_listening("127.0.0.1", Path("c"), None, 0)
    with pytest.raises(InputError, match="a number of proxies, not -1"):
        check_listening("0.0.0.0", None, None, -1)
    assert is_loopback("127.9.9.9")
    assert not is_loopback("0.0.0.0")


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} of 127.0.0.1 cannot be used"):
            bound_socket("127.0.0.1", port)
    with pytest.raises(InputError, match="cannot be used"):
        bound_socket("192.0.2.1", 0)
    for port in (99999, 65536, -1, 1 << 80):
        with pytest.raises(InputError, match=f"--port is a number from 0 to 65535, not {port}"):
            bound_socket("127.0.0.1", port)
    with pytest.raises(InputError, match="not a valid address"):
        bound_socket(f"{'a' * 70}.example", 0)


@contextmanager
def served_apart(folder: StudyFolder) -> Iterator[tuple[BaseProcess, str]]:
    """Serve a study from a process of its own that can be killed, and give its address."""
    bound = bound_socket("127.0.0.1", 0)
    bound.listen()  # who comes early waits

    def serve() -> None:
        store = folder.open_store()
        run([(server_for(Collector(folder.study, store).app()), bound)], lambda: None)
        store.dispose()

    process = get_context("fork").Process(target=serve)
    process.start()
    url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
    bound.close()
    try:
        yield process, url
    finally:
        process.kill()
        process.join()


class Load(Thread):
    """Sends records one after another, each until it is acknowledged or the server is gone."""

    def __init__(self, url: str, bodies: Iterator[bytes]) -> None:
        super().__init__()
        self.url, self.bodies = url, bodies
        self.acknowledged: list[bytes] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=20)
        with contextlib.suppress(OSError, http.client.HTTPException), closing(connection):
            for body in self.bodies:
                given = {"Content-Type": "application/json"}
                connection.request("POST", "/submissions", body, given)
                response = connection.getresponse()
                response.read()
                assert response.status == 201
                self.acknowledged.append(body)


def bodies(folder: StudyFolder) -> Iterator[bytes]:
    """Submissions of different people, without end."""
    one = json.loads(body_of(folder.study))
    while True:
        yield json.dumps(one | {"receipt": os.urandom(32).hex()}, separators=(",", ":")).encode()


def stored(folder: StudyFolder) -> list[bytes]:
    with folder.opened() as store, store._engine.connect() as connection:
        if folder.url.startswith("sqlite"):
            assert connection.exec_driver_sql("PRAGMA integrity_check").fetchall() == [("ok",)]
            rows = connection.exec_driver_sql("SELECT content FROM bucket")
            ids = [*chain.from_iterable(map(ids_in, chain.from_iterable(rows)))]
        else:
            rows = connection.exec_driver_sql("SELECT id FROM submission")
            ids = [bytes(name) for (name,) in rows]
        taken, _ = store.changes()
    assert taken == len(ids) == len(set(ids))
    return ids


def ids_in(bucket: bytes) -> list[bytes]:
    """A head of two bytes, then 32 bytes of an id, one that says whether it was withdrawn, and a
    record of three."""
    return [bucket[2 + 36 * i :][:32] for i in range(int.from_bytes(bucket[:2], "little"))]


KILLS = int(os.environ.get("KILLS", "6"))


@pytest.mark.slow
def test_killed_at_any_moment_it_loses_nothing_that_it_acknowledged(
    address: Callable[[], str | None], tmp_path: Path
) -> None:
    folder = example_folder(tmp_path, address())
    moments = np.random.default_rng(KILLS).uniform(0.02, 0.2, KILLS)
    acknowledged: set[bytes] = set()
    for moment in moments:
        with served_apart(folder) as (process, url):
            loads = [Load(url, bodies(folder)) for _ in range(4)]
            for load in loads:
                load.start()
            while not any(load.acknowledged for load in loads):
                time.sleep(0.002)
            time.sleep(moment)
            process.kill()
            for load in loads:
                load.join()
        found = {bytes.fromhex(json.loads(b)["receipt"]) for x in loads for b in x.acknowledged}
        assert found
        acknowledged |= found
        assert acknowledged <= set(stored(folder))
    # What was stored but not acknowledged is at most what was on the way when it was killed.
    assert len(stored(folder)) - len(acknowledged) <= 4 * KILLS


@pytest.mark.slow
def test_sigterm_finishes_what_was_accepted(
    address: Callable[[], str | None], tmp_path: Path
) -> None:
    folder = example_folder(tmp_path, address())
    with served_apart(folder) as (process, url):
        loads = [Load(url, bodies(folder)) for _ in range(4)]
        for load in loads:
            load.start()
        while sum(len(load.acknowledged) for load in loads) < 40:
            time.sleep(0.002)
        process.terminate()
        for load in loads:
            load.join()
        process.join(20)
        assert process.exitcode == 0
    # Every record that was stored was acknowledged: none was on the way when it ended.
    acknowledged = {json.loads(b)["receipt"] for load in loads for b in load.acknowledged}
    assert {name.hex() for name in stored(folder)} == acknowledged


def test_with_a_certificate_it_speaks_tls_alone(tmp_path: Path) -> None:
    certificate, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    write_certificate(certificate, key)
    folder = example_folder(tmp_path)
    context = ssl.create_default_context(cafile=str(certificate))
    with served(folder, certificate=certificate, key=key) as url:
        where = urlsplit(url).netloc
        with closing(http.client.HTTPSConnection(where, timeout=20, context=context)) as secure:
            secure.request("GET", "/healthz")
            assert secure.getresponse().status == 200
        with closing(http.client.HTTPConnection(where, timeout=20)) as plain:
            plain.request("GET", "/healthz")
            with pytest.raises((http.client.HTTPException, OSError)):
                plain.getresponse()


def test_a_certificate_that_cannot_be_used_is_said_before_anything_is_served(
    tmp_path: Path,
) -> None:
    certificate, key, other = (tmp_path / name for name in ("chain.pem", "key.pem", "other.pem"))
    write_certificate(certificate, key)
    server_for(Starlette(), certificate=certificate, key=key)
    write_certificate(tmp_path / "another.pem", other)
    (tmp_path / "text.pem").write_text("no certificate")
    for first, second in (
        (certificate, other),
        (tmp_path / "text.pem", key),
        (certificate, tmp_path / "text.pem"),
        (tmp_path / "none.pem", key),
    ):
        with pytest.raises(InputError, match=r"cannot be used \(.+\); give two PEM files"):
            server_for(Starlette(), certificate=first, key=second)


def test_a_listener_that_ends_before_it_answers_ends_the_others() -> None:
    class Broken(uvicorn.Server):
        async def serve(self, sockets: object = None) -> None:  # noqa: ARG002
            raise RuntimeError("broken")

    servers = [server_for(Starlette()), Broken(uvicorn.Config(Starlette()))]
    places = [bound_socket("127.0.0.1", 0) for _ in servers]
    with pytest.raises(RuntimeError, match="broken"):
        run(list(zip(servers, places, strict=True)), lambda: None)
    for place in places:
        place.close()


@pytest.mark.parametrize("patience", [20.0, 0.1])
def test_who_reads_slowly_gets_all_of_it_or_is_cut_in_the_end(
    monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr(serving, "HEAD_WITHIN", 0.05)
    monkeypatch.setattr(serving, "READ_WITHIN", patience)
    lost, plain = Event(), serving._TimedProtocol.connection_lost
    monkeypatch.setattr(
        serving._TimedProtocol,
        "connection_lost",
        lambda self, error: (plain(self, error), lost.set()),
    )
    content = bytes(16_000_000)  # more than the system holds
    app = Starlette(routes=[Route("/", lambda _: Response(content))])
    bound = bound_socket("127.0.0.1", 0)
    with listening(app, bound) as url, socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        reader.settimeout(20)
        reader.connect(("127.0.0.1", urlsplit(url).port or 0))
        reader.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert lost.wait(0.2 if patience > 1 else 20) == (patience < 1)
        received = 0
        with contextlib.suppress(ConnectionResetError):
            while piece := reader.recv(1 << 20):
                received += len(piece)
        assert (received > len(content)) == (patience > 1)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"x" * 60_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: x\r\n" * 6_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 48_000_000,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: x\r\n" * 8_000_000,
        b"GET /" + b"x" * 48_000_000,
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
        + b"A: x\r\n" * 8_000_000,
    ],
    ids=["a long header", "many", "one without end", "many without end", "an address", "a trailer"],
)
def test_a_head_is_bounded(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    read, plain = [0], serving._TimedProtocol.data_received

    def count(self: serving._TimedProtocol, data: bytes) -> None:
        read[0] += len(data)
        plain(self, data)

    monkeypatch.setattr(serving._TimedProtocol, "data_received", count)
    app = Starlette(routes=[Route("/", lambda _: Response(b"seen"), methods=["GET", "POST"])])
    bound = bound_socket("127.0.0.1", 0)
    with listening(app, bound) as url, socket.socket() as sender:
        sender.settimeout(20)
        sender.connect(("127.0.0.1", urlsplit(url).port or 0))
        answer = b""
        with contextlib.suppress(OSError):  # it is cut before all was sent
            sender.sendall(head)
        with contextlib.suppress(OSError):
            answer = sender.recv(65536)
        if len(head) < 100_000:  # else the connection may be cut before the answer is read
            assert answer.startswith(b"HTTP/1.1 431 ")
        assert read[0] <= serving.MOST_HEAD + 2 * 262_144  # and what comes in one piece
        fine = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port or 0, timeout=20)
        with closing(fine):
            for _ in range(40):  # heads are counted one by one
                fine.request("GET", "/", headers={"A": "x" * 20_000})
                response = fine.getresponse()
                assert (response.status, response.read()) == (200, b"seen")


def write_certificate(certificate: Path, key: Path) -> None:
    """A certificate of this machine, signed by itself."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, private.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(1))
        .not_valid_after(now + timedelta(1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
