"""collect, as a designer runs it: from the example's files to a release."""

import contextlib
import json
import os
import shutil
import signal
import socket
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Thread

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from deniable.collect.client import page_at
from deniable.collect.folder import StudyFolder
from unit.collect.studies import (
    ANSWERS,
    body_of,
    example_files,
    example_folder,
    get,
    post,
    served,
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> Path:
    """The example's files, its mechanism, and its study."""
    folder = tmp_path_factory.mktemp("opened")
    _, questionnaire = example_files(folder)
    (folder / "example").mkdir()
    questionnaire.rename(folder / "example" / "questionnaire.toml")
    (folder / "schema.toml").rename(folder / "example" / "schema.toml")
    example_folder(folder)
    return folder


@pytest.fixture
def study(opened, tmp_path) -> Path:
    shutil.copytree(opened, tmp_path, dirs_exist_ok=True)
    return tmp_path / "study"


def test_a_study_is_opened_from_the_examples_files(deniable, tmp_path):
    shipped = deniable("collect", "demo", "--files", "example", "--json").json
    assert shipped["files"] == ["example/schema.toml", "example/questionnaire.toml"]
    design = ["--schema", "example/schema.toml", "--epsilon", "2.3", "--output", "mechanism.json"]
    assert deniable("design", *design).status == 0
    opened = deniable(
        "collect", "open", "--mechanism", "mechanism.json",
        "--questionnaire", "example/questionnaire.toml", "--output", "study",
    )  # fmt: skip
    assert opened.status == 0, opened.err
    assert "Next: deniable collect serve study" in opened.out
    deniable("ledger", "budget", "l", "--epsilon", "4", "--population", "pupils")
    again = ["collect", "open", "--mechanism", "mechanism.json", "--ledger", "l",
             "--questionnaire", "example/questionnaire.toml", "--output"]  # fmt: skip
    mistyped = deniable(*again, "counted", "--population", "pupil")
    assert (mistyped.status, "set --new-population" in mistyped.err) == (2, True)
    checked = deniable(*again, "study", "--population", "pupil", "--check", "--json")
    assert (checked.status, checked.err.startswith("deniable: refused for 2 reasons")) == (2, True)
    assert [one["at"] for one in json.loads(checked.out)["problems"]] == ["output", "ledger"]
    checked = deniable(*again, "counted", "--population", "pupils", "--check")
    assert (checked.status, "before and after" in checked.out) == (0, True)
    assert not (tmp_path / "counted").exists()
    mistyped = ["mistyped" if word == "l" else word for word in again]
    absent = deniable(*mistyped, "counted", "--no-new-ledger")
    assert (absent.status, "start a new one with --new-ledger" in absent.err) == (2, True)
    assert deniable(*again, "counted", "--population", "Pupils", "--new-ledger").status == 0
    (shown,) = deniable("ledger", "show", "l", "--json").json["populations"]
    assert (shown["releases"], shown["epsilon"]) == (1, pytest.approx(2.3))
    assert deniable("ledger", "check", "l", "--json").json["remarks"] == []
    questions = tmp_path / "example" / "questionnaire.toml"
    questions.write_text(questions.read_text().replace('title = "', 'title = "Again: ', 1))
    refused = deniable(*again, "beyond", "--population", "pupils")
    assert (refused.status, "does not allow this release" in refused.err) == (2, True)
    assert not (tmp_path / "beyond").exists()
    assert (tmp_path / "study" / "study.json").is_file()


def test_opening_warns_of_categories_without_labels(deniable, study, tmp_path):
    questions = tmp_path / "example" / "questionnaire.toml"
    mechanism, schema = tmp_path / "mechanism.json", tmp_path / "example" / "schema.toml"
    kept = [line for line in schema.read_text().splitlines() if not line.startswith("labels")]
    schema.write_text("\n".join(kept))
    made = deniable("design", "--schema", "example/schema.toml", "--epsilon", "2.3",
                    "--output", "mechanism.json", "--force")  # fmt: skip
    assert made.status == 0, made.err
    opening = ("collect", "open", "--mechanism", str(mechanism), "--questionnaire", str(questions))
    assert "labels" not in deniable(*opening, "--output", "labelled").err
    questions.write_text(questions.read_text().replace("\nno = {", "\n# no = {", 1))
    warned = deniable(*opening, "--output", "bare")
    assert warned.status == 0, warned.err
    sentence = "respondents read the codes of categories without labels: smokes (no); give"
    assert sentence in " ".join(warned.err.split())


def test_from_the_example_to_a_release(deniable, study, tmp_path):
    (tmp_path / "answers.json").write_text(json.dumps(ANSWERS))
    with served(StudyFolder(study)) as url:
        sent = deniable("collect", "answer", url, "--answers", "answers.json", "--json").json
        assert set(sent["sent"]) == set(ANSWERS)
        assert len(sent["receipt"]) == 32
        said = deniable("collect", "answer", url, "--answers", "answers.json")
        assert "some are random" in said.out
        assert "not your answers" not in said.out
        verified = deniable("collect", "verify", url, "--study", "study/study.json", "--json")
        assert (verified.status, verified.json["same"]) == (0, True)
        assert verified.json["epsilon"] == pytest.approx(2.3)
    assert "2 records, 0 taken back" in deniable("collect", "status", "study").out
    exported = deniable("collect", "export", "study", "--output", "release")
    assert exported.status == 0, exported.err
    assert deniable("inspect", "release").status == 0
    key = ed25519.Ed25519PrivateKey.generate()
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "k").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, none))
    (tmp_path / "k").chmod(0o600)
    signed = deniable(
        *("collect", "export", "study", "--output", "signed", "--sign", "k"),
        *("--ledger", "l", "--population", "pupils", "--new-population"),
    )
    assert "Release 1 of population 'pupils'" in signed.out, signed.err
    assert (tmp_path / "signed" / "SHA256SUMS.sig").is_file()
    assert deniable("estimate", "release", "--of", "smokes", "--json").json["n"] == 2
    closed = deniable("collect", "close", "study", "--json").json
    assert (closed["closed"], closed["records"]) == (True, 2)


def test_a_page_on_disk_is_verified_and_another_is_not(deniable, study, tmp_path):
    made = deniable("collect", "page", "study", "--output", "page.html", "--json").json
    page = tmp_path / "page.html"
    assert made["bytes"] == page.stat().st_size
    assert deniable("collect", "verify", "page.html", "--study", "study").status == 0
    assert "exists already" in deniable("collect", "page", "study", "--output", "page.html").err
    page.write_bytes(page.read_bytes().replace(b"Math.sqrt", b"Math.cbrt"))
    other = deniable("collect", "verify", "page.html", "--study", "study")
    assert other.status == 1
    assert "ANOTHER PAGE" in other.err


def test_invitations_are_links_that_are_kept_nowhere_else(deniable, study, tmp_path):
    refused = deniable("collect", "invite", "study", "--count", "3", "--output", "links.csv")
    assert refused.status == 2
    assert "is open to all" in refused.err
    questions = tmp_path / "example" / "questionnaire.toml"
    questions.write_text(questions.read_text().replace('"open"', '"invited"'))
    opened = deniable(
        "collect", "open", "--mechanism", "mechanism.json", "--questionnaire", questions,
        "--output", "private", "--json",
    )  # fmt: skip
    assert len(opened.json["study"]) == 64
    made = deniable(
        "collect", "invite", "private", "--count", "3", "--url", "https://study.example/",
        "--output", "links.csv", "--qr", "qr", "--json",
    )  # fmt: skip
    assert made.json["invitations"] == 3
    lines = (tmp_path / "links.csv").read_text().splitlines()
    assert lines[0] == "link"
    tokens = [line.removeprefix("https://study.example/#") for line in lines[1:]]
    assert len(set(tokens)) == 3
    assert all(len(token) == 32 for token in tokens)
    assert len(list((tmp_path / "qr").glob("*.svg"))) == 3
    kept = (tmp_path / "private" / "store.sqlite").read_bytes()
    assert not any(token.encode() in kept for token in tokens)


def test_a_record_from_a_file_is_added(deniable, study, tmp_path):
    (tmp_path / "record.json").write_bytes(body_of(StudyFolder(study).study))
    assert deniable("collect", "add", "study", "record.json").out == "1: stored\n"
    assert deniable("collect", "add", "study", "record.json", "--json").json == {"stored before": 1}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["serve", "study", "--host", "0.0.0.0"], "would be sent unencrypted"),
        (["serve", "nowhere"], "not the folder of a study"),
        (["serve", "study", "--port", "99999"], "--port is a number from 0 to 65535"),
        (["serve", "study", "--per-minute", "0"], "expected a number of at least 1"),
        (["serve", "study", "--behind-proxy", "-1"], "a number of proxies"),
        (
            ["serve", "study", "--certificate", "mechanism.json", "--key", "mechanism.json"],
            "give two PEM files",
        ),
        (["answer", "http://h:x/", "--answers", "mechanism.json"], "give the address of a study"),
        (["status", "nowhere"], "not the folder of a study"),
        (["export", "study", "--output", "release"], "the study has no records yet"),
        (["verify", "page.html", "--study", "none.json"], "cannot be read"),
        (["answer", "ftp://x", "--answers", "mechanism.json"], "give the address of a study"),
        (["add", "study", "mechanism.json"], "record 1: the body is not a submission"),
        (["invite", "study", "--count", "0", "--output", "l.csv"], "from 1 to 1,000,000"),
        (["invite", "study", "--count", "9" * 12, "--output", "l.csv"], "from 1 to 1,000,000"),
        (["demo", "--files", "example"], "exists already"),
        (
            ["open", "--mechanism", "mechanism.json", "--questionnaire",
             "example/questionnaire.toml", "--output", "study"],
            "exists already",
        ),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_sentence(deniable, study, words, problem):
    done = deniable("collect", *words)
    assert done.status == 2
    assert problem in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", ["estimate", "inspect", "share", "randomize"])
@pytest.mark.parametrize(
    "store", ["study/store.sqlite", "sqlite:///study/store.sqlite", "postgresql://me:secret@h/db"]
)
def test_a_bare_store_is_refused_with_what_takes_it(deniable, study, command, store):
    more = {
        "estimate": ["--mechanism", "study/study.json", "--of", "smokes"],
        "inspect": [],
        "share": ["--schema", "example/schema.toml", "--epsilon", "1", "--output", "r"],
        "randomize": ["--mechanism", "study/study.json", "--output", "r.csv"],
    }
    refused = deniable(command, store, *more[command])
    assert refused.status == 2
    assert "this is a database" in refused.err
    assert "collect export FOLDER" in refused.err
    assert "secret" not in refused.err


def test_a_study_is_not_randomized_again(deniable, study):
    more = ["--schema", "example/schema.toml", "--epsilon", "1", "--output", "r"]
    refused = deniable("share", "study", *more)
    assert refused.status == 2
    assert "already randomized; deniable collect export" in refused.err


def test_what_serves_beyond_this_machine_needs_both_parts_of_a_certificate(deniable, study):
    done = deniable("collect", "serve", "study", "--certificate", "chain.pem")
    assert "--certificate and --key go together" in done.err
    done = deniable("collect", "serve", "study", "--key", "key.pem", "--host", "0.0.0.0")
    assert "--certificate and --key go together" in done.err
    options = ["--behind-proxy", "1", "--per-minute", "60", "--host", "192.0.2.1"]
    done = deniable("collect", "serve", "study", *options)
    assert "of 192.0.2.1 cannot be used" in done.err


def test_an_older_page_and_an_older_release_are_replaced_if_so_wished(deniable, study, tmp_path):
    (tmp_path / "record.json").write_bytes(body_of(StudyFolder(study).study))
    deniable("collect", "add", "study", "record.json")
    for command in (
        ["page", "study", "--output", "page.html"],
        ["export", "study", "--output", "r"],
    ):
        assert deniable("collect", *command).status == 0
        assert deniable("collect", *command).status == 2
        assert deniable("collect", *command, "--force").status == 0


def test_a_store_that_cannot_be_reached_is_said(deniable, study):
    done = deniable(
        "collect", "open", "--mechanism", "mechanism.json", "--questionnaire",
        "example/questionnaire.toml", "--output", "other", "--store", "mysql://x/y",
    )  # fmt: skip
    assert (done.status, "a store is sqlite:///FILE or postgresql" in done.err) == (2, True)


# Below the ports that systems give away by themselves, and others in every process: a port that is
# free once would else be somebody's a moment later.
PORTS = count(20_000 + os.getpid() * 20 % 12_000)


def free_port() -> int:
    while True:
        port = next(PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextmanager
def stopped_after(port: int, visit):
    """Visit what the next command serves in this process, then end it as SIGTERM does."""
    seen = []

    def visiting():
        url = f"http://127.0.0.1:{port}/"
        while True:
            with contextlib.suppress(OSError):
                get(url, "")
                break
            time.sleep(0.01)
        try:
            seen.append(visit(url))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    visitor = Thread(target=visiting)
    visitor.start()
    yield seen
    visitor.join()


def test_serving_prints_both_addresses_and_ends_when_it_is_told_to(deniable, study):
    port, beside = free_port(), free_port()

    def visit(url):
        return [
            post(url, body_of(StudyFolder(study).study))[0],
            get(f"http://127.0.0.1:{beside}", ""),
        ]

    with stopped_after(port, visit) as seen:
        done = deniable("collect", "serve", "study", "--port", port, "--steward-port", beside)
    secret = StudyFolder(study).secret
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"Respondents: http://127.0.0.1:{port}/",
        f"Steward, on this machine alone: http://127.0.0.1:{beside}/enter/{secret}",
        f"Code of the study: {StudyFolder(study).study.identity}",
    ]
    ((posted, (outside, _, _)),) = seen
    assert (posted, outside) == (201, 403)
    assert "1 record" in deniable("collect", "status", "study").out
    with stopped_after(port, visit_nothing := (lambda url: get(url, "")[0])) as seen:
        done = deniable("collect", "serve", "study", "--port", port, "--listen", "public")
    assert (seen, "Steward" in done.out) == ([200], False)
    with stopped_after(beside, visit_nothing) as seen:
        words = ["--steward-port", beside, "--listen", "steward", "--json"]
        done = deniable("collect", "serve", "study", *words)
    address = f"http://127.0.0.1:{beside}/enter/{secret}"
    assert (seen, done.json["steward"], len(done.json)) == ([403], address, 2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        done = deniable("collect", "serve", "study", "--port", 0, "--steward-port", number)
        assert (done.status, "choose another with --steward-port" in done.err) == (2, True)


def test_the_demo_serves_the_example_and_leaves_nothing(deniable, tmp_path, monkeypatch):
    places, shown = tmp_path / "places", []
    places.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(places))
    monkeypatch.setattr("webbrowser.open", shown.append)
    for word in ("--browser", "--no-browser"):
        with stopped_after(port := free_port(), page_at) as seen:
            assert deniable("collect", "demo", "--port", port, word).status == 0
        assert seen[0].startswith(b"<!doctype html>")
        assert list(places.iterdir()) == []
    assert len(shown) == 1


def test_a_study_is_inspected_and_estimated_from_as_it_is(deniable, study, tmp_path):
    (tmp_path / "record.json").write_bytes(body_of(StudyFolder(study).study))
    deniable("collect", "add", "study", "record.json")
    inspected = deniable("inspect", "study", "--json").json
    assert (inspected["epsilon"], inspected["origin"]["rows"]) == (pytest.approx(2.3), 1)
    frozen = tmp_path / "study" / "study.json"
    content = frozen.read_text()
    frozen.write_text(content.replace('"sizes":[2', '"sizes":[3'))
    assert frozen.read_text() != content
    for altered in ("study", "study/study.json"):
        assert "the study has been altered" in deniable("inspect", altered).err
    frozen.write_text(content)
    assert deniable("estimate", "study", "--of", "smokes", "--json").json["n"] == 1
    refused = deniable("estimate", "study", "--of", "smokes", "--mechanism", "mechanism.json")
    assert (refused.status, "leave out --mechanism" in refused.err) == (2, True)


def test_a_mistyped_ledger_of_an_export_is_refused_if_none_is_to_be_begun(deniable, study):
    export = ["collect", "export", "study", "--output", "r", "--ledger", "mistyped"]
    assert "no such ledger; restore it" in deniable(*export, "--no-new-ledger").err
    assert "the study has no records yet" in deniable(*export, "--new-ledger").err
