"""The public listener: its contract, and what attacks get."""

import contextlib
import http.client
import json
import os
import re
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import sqlalchemy as sa

from deniable.collect import collector, serving, store
from deniable.collect.client import draw
from deniable.collect.collector import submission_size
from deniable.collect.folder import StudyFolder
from deniable.collect.page import page_bytes, policy
from deniable.collect.store import Submission, receipt_id
from deniable.randomness import SeededRandomness
from unit.collect import postgres, studies
from unit.collect.studies import ANSWERS, body_of, example_folder, get, post, served

Address = Callable[[], str | None]
CONTRACT = json.loads((Path(collector.__file__).parent / "openapi.json").read_text())


@pytest.fixture(scope="module")
def url(everyone: StudyFolder) -> Iterator[str]:
    with served(everyone, per_minute=100_000) as address:
        yield address


@pytest.fixture(scope="module")
def invited_url(invited: StudyFolder) -> Iterator[str]:
    with served(invited, per_minute=100_000) as address:
        yield address


def test_everyone_gets_the_same_page_with_its_policy(url: str, everyone: StudyFolder) -> None:
    status, content, headers = get(url, "", Accept_Language="ar", Cookie="a=b")
    assert (status, content) == (200, page_bytes(everyone.study))
    assert headers["content-security-policy"] == policy()
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers
    assert "server" not in headers
    assert get(url, "", If_None_Match=headers["etag"])[:2] == (304, b"")
    status, content, headers = get(url, "study.json")
    assert content == everyone.study.content
    assert headers["etag"] == f'"{everyone.study.identity}"'


def test_every_outcome_has_its_status(address: Address, tmp_path: Path) -> None:
    """What becomes of which submission is for the store's tests."""
    folder = example_folder(tmp_path, address(), respondents='"invited"')
    study, store = folder.study, folder.open_store()
    first, second = studies.invited(store, 2)
    sent = draw(study, ANSWERS, first, SeededRandomness(2))
    record = json.loads(sent.body)["record"]
    other = {"record": record[:-1] + ("1" if record[-1] == "0" else "0")}
    with served(folder) as url:

        def withdraw(receipt: str, study: str = study.identity) -> int:
            body = json.dumps({"study": study, "receipt": receipt}).encode()
            return post(url, body, "withdrawals")[0]

        assert len(sent.body) == submission_size(study)
        assert post(url, sent.body)[:2] == (201, {"status": "stored"})
        for _ in range(30):  # as if every answer had been lost after the commit
            assert post(url, sent.body)[0] == 200
        assert post(url, body_of(study, other, token=second, seed=2))[0] == 409
        assert post(url, body_of(study, token=first, seed=3))[0] == 409  # spent
        assert post(url, body_of(study, token="0" * 32, seed=4))[0] == 403  # guessed
        for token in ("", "'; DROP TABLE submission; --"[:32].ljust(32), "A" * 32, second[:-1]):
            assert post(url, body_of(study, {"token": token}, seed=5))[0] == 422
        assert store.totals().records == 1
        assert [withdraw(receipt) for receipt in ("0" * 32, "x")] == [404, 422]
        assert withdraw(sent.receipt, "0" * 64) == 422
        assert [withdraw(sent.receipt) for _ in range(3)] == [200, 200, 200]
        assert post(url, sent.body)[0] == 409
        store.close()
        assert json.loads(get(url, "readyz")[1]) == {"status": "closed"}
        # Who has answered, is known, was never invited: the same to the byte, but for the date.
        found = []
        for body in (
            *(sent.body, body_of(study, other, token=first, seed=2)),
            *(body_of(study, token=token, seed=6) for token in (first, second, "0" * 32)),
        ):
            answer = raw(
                url, HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            found.append(re.sub(rb"date: [^\r]*", b"", answer))
        assert found[0].startswith(b"HTTP/1.1 410 ")
        assert {*found} == {found[0]}
    store.dispose()


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"study": "0" * 64}, 422),
        ({"study": "' OR 1=1 --".ljust(64)}, 422),
        ({"receipt": "G" * 64}, 422),
        ({"record": "99999"}, 422),
        ({"record": "1320"}, 422),
        ({"record": "٣"}, 413),
        ({"record": "1" * 99}, 413),
        ({"token": "0" * 32}, 413),
        ({"more": "x"}, 413),
    ],
)
def test_fields_that_do_not_fit_are_refused(
    url: str, everyone: StudyFolder, changes: dict[str, str], status: int
) -> None:
    found, answer, _ = post(url, body_of(everyone.study, changes, seed=9))
    assert found == status
    assert set(answer) == {"error"}


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[" * 150, b'{"a":' * 25, b"null", b'"x"', b"\xff\xfe\xfd", b"NaN", b"1" * 100],
)
def test_what_is_no_submission_is_refused(url: str, body: bytes) -> None:
    assert post(url, body)[0] == 422
    assert post(url, body, "withdrawals")[0] in (413, 422)


def test_only_the_studys_own_page_may_post(url: str, everyone: StudyFolder) -> None:
    body = body_of(everyone.study, seed=20)
    own = f"http://{urlsplit(url).netloc}"
    for origin in ("http://evil.example", "null", f"{own}.evil.example", "http://127.0.0.1:1"):
        assert post(url, body, Origin=origin)[0] == 400
    assert post(url, body, Sec_Fetch_Site="cross-site")[0] == 400
    assert post(url, body, Content_Type="text/plain")[0] == 415
    assert post(url, body, Content_Type="application/x-www-form-urlencoded")[0] == 415
    assert post(url, body, Origin=own, Sec_Fetch_Site="same-origin")[0] == 201
    assert get(url, "submissions")[0] == 405
    assert get(url, "nothing")[0] == 404


def raw(url: str, content: bytes, wait: float = 5.0) -> bytes:
    with socket.create_connection(
        (urlsplit(url).hostname or "", urlsplit(url).port or 0), timeout=wait
    ) as connection:
        connection.sendall(content)
        received = b""
        try:
            while piece := connection.recv(65536):
                received += piece
        except TimeoutError:
            received += b"(still open)"
        except ConnectionError:  # cut before all was read
            pass
        return received


HEAD = b"POST /submissions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def test_bodies_are_counted_while_they_stream(url: str) -> None:
    huge = HEAD + b"Content-Length: 99999999\r\n\r\n"
    assert raw(url, huge).startswith(b"HTTP/1.1 413")
    chunks = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"fff\r\n" + b"x" * 4095 + b"\r\n"
    assert raw(url, chunks).startswith(b"HTTP/1.1 413")
    twice = HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"
    assert raw(url, twice).startswith(b"HTTP/1.1 400")


def test_slow_and_idle_connections_are_cut(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "SLOWEST", 0.05)
    assert raw(url, HEAD + b"Content-Length: 20\r\n\r\n{").startswith(b"HTTP/1.1 408")
    monkeypatch.setattr(serving, "HEAD_WITHIN", 0.1)
    assert raw(url, b"") == b""  # says nothing
    assert raw(url, b"POST /submissions HT") == b""  # never finishes its head


def test_a_head_that_trickles_is_cut_before_every_request(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEAD_WITHIN", 0.15)
    where = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
    health = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    early = b"GET /submissions HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n"
    for first, status in ((health, b"200"), (early, b"405"), (health * 3, b"200")):
        answer = b""
        while not answer:  # we may be too slow ourselves
            connection = socket.create_connection(where, timeout=20)
            with connection, contextlib.suppress(ConnectionError):
                connection.sendall(first)
                answer = connection.recv(65536)
                began = time.monotonic()
                while time.monotonic() < began + 10:  # of the next head, or of the refused body
                    connection.sendall(b"G")
                    time.sleep(0.03)
                raise AssertionError("a byte now and then keeps a connection")
        assert answer.split()[1] == status


def test_an_address_may_ask_so_often(everyone: StudyFolder) -> None:
    with served(everyone, per_minute=3) as url:
        found = [post(url, b"{}", X_Forwarded_For=f"192.0.2.{n}")[0] for n in range(5)]
        assert found == [422, 422, 422, 429, 429]  # forged headers change nothing
        assert post(url, b"{}")[2]["retry-after"] == "60"
    with served(everyone, per_minute=3, hops=1) as url:
        found = [post(url, b"{}", X_Forwarded_For=f"6.6.6.6, 192.0.2.{n}")[0] for n in range(5)]
        assert found == [422] * 5


def test_a_locked_store_is_503_and_recovers_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    folder = example_folder(tmp_path)
    with served(folder) as url:
        assert get(url, "healthz")[0] == 200
        assert json.loads(get(url, "readyz")[1]) == {"status": "open"}
        body = body_of(folder.study, seed=30)
        blocker = sqlite3.connect(folder.path / "store.sqlite", isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        status, answer, headers = post(url, body)
        assert (status, answer, headers["retry-after"]) == (
            503,
            {"error": "nothing was stored; try again"},
            "5",
        )
        blocker.execute("ROLLBACK")
        blocker.close()
        assert post(url, body)[0] == 201


@pytest.mark.slow
@pytest.mark.skipif(not postgres.INITDB, reason=postgres.REASON)
def test_so_is_postgresql_that_is_locked_or_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.1)
    with postgres.cluster() as running:
        folder = example_folder(tmp_path, running.url(running.database()))
        with served(folder) as url:
            assert post(url, body_of(folder.study, seed=31))[0] == 201
            body = body_of(folder.study, seed=32)
            blocker = sa.create_engine(folder.url)
            with blocker.begin() as connection:
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7236487)")
                assert post(url, body)[0] == 503
            blocker.dispose()
            assert post(url, body)[0] == 201
            running.kill()
            body = body_of(folder.study, seed=33)
            assert post(url, body)[0] == 503
            assert get(url, "readyz")[0] == 503
            running.start()
            monkeypatch.undo()  # on a busy machine the first connection takes longer than that
            assert get(url, "readyz")[0] == 200
            assert [post(url, body)[0] for _ in range(2)] == [201, 200]


def test_nothing_is_logged(
    everyone: StudyFolder, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with served(everyone) as url, caplog.at_level("DEBUG", "uvicorn"):
        get(url, "")
        post(url, body_of(everyone.study, seed=50))
        post(url, b"{")
    assert capfd.readouterr() == ("", "")
    assert "127.0.0.1" not in caplog.text


def test_the_contract_lists_every_path_and_status() -> None:
    assert set(CONTRACT["paths"]) == {
        *("/", "/study.json", "/submissions", "/withdrawals", "/healthz", "/readyz")
    }
    stated = set(CONTRACT["paths"]["/submissions"]["post"]["responses"])
    assert {str(status) for status in collector._STATUS.values()} <= stated


@pytest.mark.parametrize(
    ("pragma", "mended"),
    [("max_page_count = 1", "max_page_count = 1073741823"), ("query_only = 1", "query_only = 0")],
)
def test_a_full_or_read_only_disk_is_503_and_recovers_by_itself(
    tmp_path: Path, pragma: str, mended: str
) -> None:
    folder = example_folder(tmp_path)
    kept, state = folder.open_store(), [pragma]
    filler = [Submission(receipt_id(f"{n}"), b"\1\2\0") for n in range(180)]
    kept.submit(filler, date(2026, 1, 1))  # nearly two buckets

    def set_state(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute(f"PRAGMA {state[0]}")

    sa.event.listen(kept._engine, "checkout", set_state)
    one = json.loads(body_of(folder.study, seed=70))
    bodies = (json.dumps(one | {"receipt": f"{n:064x}"}, separators=(",", ":")) for n in range(99))
    with served(folder, kept) as url:
        found = []
        for body in bodies:  # a bucket that is not full still has room
            status, _, headers = post(url, body.encode())
            found.append(status)
            if status != 201:
                break
        assert (found[-1], headers["retry-after"]) == (503, "5")
        assert post(url, body.encode())[0] == 503
        assert get(url, "")[0] == 200  # the page is handed out
        state[0] = mended
        assert [post(url, body.encode())[0] for _ in range(2)] == [201, 200]
        assert kept.totals().records == len(filler) + len(found)


def test_a_disk_that_is_nearly_full_and_a_store_that_is_gone_are_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = example_folder(tmp_path)
    with served(folder) as url:
        with monkeypatch.context() as patch:
            patch.setattr(collector, "LEAST_SPACE", 1 << 60)
            status, content, _ = get(url, "readyz")
            assert (status, json.loads(content)) == (503, {"status": "the disk is nearly full"})
        with monkeypatch.context() as patch:
            patch.setattr(collector, "today", lambda: date(2100, 1, 1))
            assert json.loads(get(url, "readyz")[1]) == {"status": "closed"}
        assert get(url, "readyz")[0] == 200
        with sqlite3.connect(folder.path / "store.sqlite") as raw:
            raw.execute("DROP TABLE study")
            raw.execute("DROP TABLE bucket")
        raw.close()
        assert get(url, "readyz")[0] == 503
        body = json.dumps({"study": folder.study.identity, "receipt": "0" * 32}).encode()
        assert post(url, body, "withdrawals")[0] == 503
        assert post(url, body_of(folder.study, seed=80))[0] == 503


def test_more_than_can_wait_are_told_to_come_back(
    address: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "WAITING", 1)
    folder = example_folder(tmp_path, address())
    kept, entered, go_on = folder.open_store(), Event(), Event()
    plain = kept.submit

    def slow(*given: Any) -> Any:
        entered.set()
        go_on.wait(20)
        return plain(*given)

    monkeypatch.setattr(kept, "submit", slow)
    found: list[int] = []

    def send(seed: int) -> None:
        found.append(post(url, body_of(folder.study, seed=seed))[0])

    with served(folder, kept) as url:
        threads = [Thread(target=send, args=(90 + n,)) for n in range(6)]
        threads[0].start()
        entered.wait(20)
        for thread in threads[1:]:
            thread.start()
        while len(found) < 4:  # one is being written, one waits
            time.sleep(0.005)
        go_on.set()
        for thread in threads:
            thread.join()
        assert sorted(found) == [201, 201, 503, 503, 503, 503]
        assert kept.totals().records == 2


def test_who_goes_before_the_end_of_a_body_is_forgotten(url: str, everyone: StudyFolder) -> None:
    with socket.create_connection(
        (urlsplit(url).hostname or "", urlsplit(url).port or 0)
    ) as connection:
        connection.sendall(HEAD + b"Content-Length: 200\r\n\r\n{")
    assert post(url, body_of(everyone.study, seed=95))[0] in (200, 201)


REQUESTS = int(os.environ.get("REQUESTS", "300"))


@pytest.mark.slow
def test_nothing_that_is_posted_breaks_the_server(
    invited_url: str, invited: StudyFolder, url: str, everyone: StudyFolder
) -> None:
    """Requests made from the contract: right ones, each field in turn as its pattern forbids, and
    bodies, paths, methods and heads that are bent. Every answer is one that the contract states."""
    seed = int(time.time())
    random = np.random.default_rng(seed)
    kept = invited.open_store()
    tokens = studies.invited(kept, 40)
    kept.dispose()
    receipts = [f"{n:032x}" for n in range(30)]
    odd = ["", "0", "g" * 64, "'; DROP TABLE submission; --", "\u202e", "\0", "<script>", "9" * 400]
    found: Counter[int] = Counter()
    connections = {
        address: http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
        for address in (url, invited_url)
    }
    for _ in range(REQUESTS):
        address, study = [(url, everyone.study), (invited_url, invited.study)][random.integers(2)]
        receipt = str(random.choice(receipts))
        sent: dict[str, Any] = {
            "study": study.identity,
            "token": "" if study.open_to_all else str(random.choice(tokens)),
            "receipt": receipt_id(receipt).hex(),
            "record": study.encode([int(random.integers(n)) for n in study.plain["outputs"]]),
        }
        path = str(random.choice(["/submissions", "/submissions", "/withdrawals"]))
        if path == "/withdrawals":
            sent = {"study": study.identity, "receipt": receipt}
        method, kind = "POST", "application/json"
        bend = int(random.integers(6))
        if bend == 1:
            names = [*sent, "more"]
            values = [*odd, None, True, 7, 1e400, [], {}, [[[[]]]]]
            sent[names[random.integers(len(names))]] = values[random.integers(len(values))]
        body = json.dumps(sent, separators=(",", ":")).encode()
        if bend == 2:
            at = int(random.integers(len(body)))
            cut = int(random.integers(0, 3))
            body = body[:at] + random.bytes(int(random.integers(0, 3))) + body[at + cut :]
        if bend == 3:
            paths = [*CONTRACT["paths"], "/x", "/%00", "//", "/submissions/", "/..%2f"]
            path = str(random.choice(paths))
            methods = ["GET", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH"]
            method = str(random.choice(methods))
        if bend == 4:
            kind = str(random.choice(["application/json; charset=x", "x/y", "", "application/*"]))
        connection = connections[address]
        connection.request(method, path, body, {"Content-Type": kind})
        response = connection.getresponse()
        response.read()
        found[response.status] += 1
        if method == "POST" and path in CONTRACT["paths"]:
            stated = CONTRACT["paths"][path]["post"]["responses"]
            assert str(response.status) in stated, (seed, path, body, response.status)
        assert response.status < 500, (seed, method, path, body)
        if response.headers.get("Connection") == "close":
            connection.close()
    for connection in connections.values():
        connection.close()
    assert set(found) >= {200, 201, 404, 405, 409, 413, 415, 422}, found
