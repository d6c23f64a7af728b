"""Studies to collect with: the shipped example, and others like it."""

import asyncio
import http.client
import json
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from deniable.collect.client import codes_of, draw
from deniable.collect.collector import Collector
from deniable.collect.folder import StudyFolder
from deniable.collect.inviting import new_tokens
from deniable.collect.serving import bound_socket, server_for
from deniable.collect.steward import Steward
from deniable.collect.store import Store, Submission, receipt_id
from deniable.collect.study import Study, new_study
from deniable.design.design import design
from deniable.mechanism.randomizer import Randomizer
from deniable.randomness import SeededRandomness
from deniable.schema import Schema
from deniable.statement.record import mechanism_to_plain, to_json

EXAMPLE = files("deniable.collect").joinpath("example")
TODAY = date(2026, 11, 22)
ANSWERS = {
    "smokes": "yes",
    "alcohol": "weekly",
    "cannabis": "none_given",
    "sleep": 7.5,
    "lonely": "often",
}


def example_files(folder: Path, **changes: str) -> tuple[Path, Path]:
    """Write the example's mechanism and questionnaire, with `changes` of lines in the latter."""
    schema = folder / "schema.toml"
    schema.write_bytes(EXAMPLE.joinpath("schema.toml").read_bytes())
    mechanism, questionnaire = folder / "mechanism.json", folder / "questionnaire.toml"
    plan = design(Schema.from_toml(schema), epsilon=2.3)
    mechanism.write_bytes(to_json(mechanism_to_plain(plan)))
    text = EXAMPLE.joinpath("questionnaire.toml").read_text()
    for key, value in changes.items():
        lines = [line for line in text.splitlines() if not line.startswith(f"{key} = ")]
        text = "\n".join([f"{key} = {value}", *lines])
    questionnaire.write_text(text)
    return mechanism, questionnaire


def example_study(folder: Path, **changes: str) -> Study:
    return new_study(*example_files(folder, **changes), TODAY)


@cache
def _example(**changes: str) -> Study:
    with TemporaryDirectory() as place:
        return example_study(Path(place), **changes)


def example_folder(folder: Path, store: str | None = None, **changes: str) -> StudyFolder:
    """Open the example's study; designed once for all tests, and checked by those of the study."""
    study = _example(**changes)
    made = StudyFolder.make(folder / "study", study, store)
    made.__dict__["study"] = study
    return made


def invited(store: Store, count: int) -> list[str]:
    """Invite some, and return their tokens."""
    tokens = new_tokens(count)
    store.invite(tokens)
    return tokens


@contextmanager
def served(
    folder: StudyFolder,
    store: Store | None = None,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    **options: Any,
) -> Iterator[str]:
    """Serve a study from this process, and give its address."""
    store = store or folder.open_store()
    collector = Collector(folder.study, store, folder=folder.path, **options)
    bound = bound_socket("127.0.0.1", 0)
    with listening(collector.app(), bound, certificate=certificate, key=key) as url:
        yield url
    store.dispose()


@contextmanager
def stewarded(folder: StudyFolder) -> Iterator[str]:
    """Serve the steward's page from this process, and give its address."""
    store, bound = folder.open_store(), bound_socket("127.0.0.1", 0)
    with listening(Steward(folder, store, bound.getsockname()[1]).app(), bound) as url:
        yield url
    store.dispose()


@contextmanager
def listening(app: Any, bound: socket.socket, **tls: Path | None) -> Iterator[str]:
    server = server_for(app, **tls)
    running = Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
    running.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
    finally:
        server.should_exit = True
        running.join()


def body_of(
    study: Study, changes: dict[str, str] | None = None, *, token: str = "", seed: int = 1
) -> bytes:
    """A submission's body: a draw of the example's answers, with `changes` of its fields."""
    sent = json.loads(draw(study, ANSWERS, token, SeededRandomness(seed)).body)
    return json.dumps(sent | (changes or {}), separators=(",", ":")).encode()


def fill(folder: StudyFolder, count: int, answers: dict[str, Any] = ANSWERS) -> None:
    """Store the draws of so many people who all give the same answers."""
    mechanism = folder.study.design.mechanism
    codes = codes_of(mechanism.schema, answers, SeededRandomness(count))
    columns = [np.repeat(code, count) for code in codes]
    drawn = Randomizer(mechanism, SeededRandomness(count)).randomize(columns)
    store = folder.open_store()
    store.submit(
        [
            Submission(receipt_id(f"{count} {row}"), packed(folder.study, codes))
            for row, codes in enumerate(zip(*(column.tolist() for column in drawn), strict=True))
        ],
        TODAY,
    )
    store.dispose()


def packed(study: Study, codes: Sequence[int]) -> bytes:
    """A record as it lies in the store."""
    text = study.encode(codes)
    return bytes.fromhex(text + "0" * (len(text) % 2))


def get(url: str, path: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """Fetch, and return status, content and headers; follows nothing."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    connection.request(
        "GET", f"/{path}", headers={k.replace("_", "-"): v for k, v in headers.items()}
    )
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content, {k.lower(): v for k, v in response.getheaders()}


def post(
    url: str, body: bytes, path: str = "submissions", **headers: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Send a body with headers of its own, and return status, answer and headers."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    try:
        given = {"Content-Type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        connection.request("POST", f"/{path}", body, given)
        response = connection.getresponse()
        content = response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
        return response.status, json.loads(content or b"{}"), found
    finally:
        connection.close()
