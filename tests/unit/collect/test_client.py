"""The other end without a browser: answers in, a draw out; and the check from outside."""

import json
import math
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar, NoReturn

import pytest

from deniable.collect import client
from deniable.collect.client import _code, answer, codes_of, fetch_study, page_at
from deniable.collect.folder import StudyFolder
from deniable.collect.store import receipt_id
from deniable.errors import InputError
from deniable.randomness import SeededRandomness
from deniable.schema import Attribute, Schema
from unit.collect.studies import ANSWERS, example_folder, served


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    return example_folder(tmp_path_factory.mktemp("client"))


def test_without_a_whole_link_nothing_is_drawn(tmp_path: Path) -> None:
    class Untouched(SeededRandomness):
        def bits(self, *_: object) -> NoReturn:
            raise AssertionError("something was drawn")

    with served(example_folder(tmp_path, respondents='"invited"')) as url:
        for link in (url, f"{url}#", f"{url}#{'0' * 31}", f"{url}#{'A' * 32}"):
            with pytest.raises(InputError, match="the whole link"):
                answer(link, ANSWERS, Untouched(1))
        with pytest.raises(InputError, match="not known; it was drawn and sent"):
            answer(f"{url}#{'0' * 32}", ANSWERS)


def test_a_category_is_a_text_a_number_or_a_truth_and_none_stands_for_another() -> None:
    for categories, right, wrong in (
        (("0", "1"), (0, 1, "1"), (True, False, 1.0)),
        (("false", "true"), (False, True, "true"), (0, 1, 1.0)),
    ):
        attribute = Attribute("a", categories)
        assert [_code(attribute, given) for given in right] == [0, 1, 1]
        for given in (*wrong, None, [], {}, ["1"]):
            with pytest.raises(InputError, match="'a' is not one of its categories"):
                _code(attribute, given)


@pytest.mark.parametrize(
    "url",
    ["http://[::1", "http://h:99999/", "http://h:x/", f"http://{'a' * 70}/", "http://a..b/",
     "http://127.0.0.1:1/é/x", "http://a b/", "http://", "ftp://x", "nonsense", "x", "http://\udcff/"],
)  # fmt: skip
def test_what_is_no_address_is_said(url: str) -> None:
    with pytest.raises(InputError, match="give the address of a study"):
        fetch_study(f"{url}#token")


def test_numbers_are_binned_and_categories_looked_up(folder: StudyFolder) -> None:
    schema, bits = folder.study.design.mechanism.schema, SeededRandomness(0)
    assert codes_of(schema, ANSWERS, bits) == [1, 2, 2, 2, 2]
    for value, code in ((0, 0), (4.99, 0), (5, 1), (9, 3), (24, 3), ("[7,9)", 2)):
        assert codes_of(schema, ANSWERS | {"sleep": value}, bits)[3] == code
    for value in (-1, 24.5, float("nan"), None, "seven", True):
        with pytest.raises(InputError, match="'sleep' is not one of its categories"):
            codes_of(schema, ANSWERS | {"sleep": value}, bits)
    with pytest.raises(InputError, match="there is no answer to 'lonely'"):
        codes_of(schema, {k: v for k, v in ANSWERS.items() if k != "lonely"}, bits)
    with pytest.raises(InputError, match="there is no question 'age'"):
        codes_of(schema, ANSWERS | {"age": 3}, bits)


def test_a_number_outside_its_range_is_refused_before_anything_is_drawn() -> None:
    class Untouched(SeededRandomness):
        def bits(self, *_: object) -> NoReturn:
            raise AssertionError("something was drawn")

    age = Attribute("age", range=(18, 90), grid=4, missing="NA")
    born = Attribute("born", range=(date(1950, 1, 1), date(2010, 1, 1)))
    schema = Schema((age, Attribute.merged((Attribute("smokes", ("no", "yes")), born))))
    right = {"age": 42, "smokes": "yes", "born": "1980-01-01"}
    assert codes_of(schema, right, SeededRandomness(1)) == [1, 3 + 1]
    assert codes_of(schema, right | {"age": "NA"}, SeededRandomness(1))[0] == 4
    assert {codes_of(schema, right | {"age": 54.0}, SeededRandomness(n))[0] for n in range(20)} == {
        1,
        2,
    }
    for wrong in (17, 90.5, -1, math.inf, math.nan, "many", True, None, [18]):
        with pytest.raises(InputError, match="'age' should be a number from 18 to 90"):
            codes_of(schema, right | {"age": wrong}, Untouched(1))
    for wrong in ("1949-12-31", "2010-02-30", "1.1.1980", 3652):
        with pytest.raises(InputError, match="'born' should be a date from 1950-01-01 to 2010"):
            codes_of(schema, right | {"born": wrong}, Untouched(1))


class _Odd(BaseHTTPRequestHandler):
    """Answers with what the test has put into `answers`, by path."""

    answers: ClassVar[dict[str, tuple[int, bytes]]] = {}
    posted: ClassVar[list[bytes]] = []

    def _answer(self) -> None:
        if self.command == "POST":
            self.posted.append(self.rfile.read(int(self.headers["Content-Length"])))
        status, content = self.answers.get(self.path, (404, b""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def odd() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Odd) as server:
        running = Thread(target=server.serve_forever)
        running.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        running.join()


def test_what_was_drawn_is_sent_again_and_nothing_else(
    odd: str, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(client.time, "sleep", waited.append)
    _Odd.answers = {"/study.json": (200, folder.study.content), "/submissions": (503, b"")}
    _Odd.posted.clear()
    with pytest.raises(InputError, match="not known whether the record arrived") as failed:
        answer(odd, ANSWERS)
    assert waited == list(client.WAITS)
    assert (len(_Odd.posted), len(set(_Odd.posted))) == (len(waited) + 1, 1)
    receipt = str(failed.value).split("the receipt ")[1].split()[0]
    assert receipt_id(receipt).hex() == json.loads(_Odd.posted[0])["receipt"]
    monkeypatch.setattr(
        client.time, "sleep", lambda _: _Odd.answers.update({"/submissions": (201, b"")})
    )
    _Odd.posted.clear()
    sent = answer(odd, ANSWERS)
    assert _Odd.posted == [sent.body, sent.body]


def test_servers_that_are_not_ours_are_said(odd: str, folder: StudyFolder) -> None:
    _Odd.answers = {}
    with pytest.raises(InputError, match=r"has no study \(status 404\)"):
        fetch_study(odd)
    with pytest.raises(InputError, match=r"has no page \(status 404\)"):
        page_at(odd)
    _Odd.answers["/study.json"] = (200, folder.study.content)
    for content, said in (
        (b'{"error": "the study is closed"}', "the study is closed"),
        (b"<html>", "status 410"),
        (b"[]", "status 410"),
    ):
        _Odd.answers["/submissions"] = (410, content)
        with pytest.raises(InputError, match=f"did not accept the record: {said}"):
            answer(odd, ANSWERS)
    with pytest.raises(InputError, match=r"https://127\.0\.0\.1:1 cannot be reached"):
        fetch_study("https://127.0.0.1:1/")


def test_nothing_is_drawn_for_a_study_that_is_closed(tmp_path: Path) -> None:
    class Untouched(SeededRandomness):
        def bits(self, *_: object) -> NoReturn:
            raise AssertionError("something was drawn")

    folder = example_folder(tmp_path)
    with folder.opened() as store:
        store.close()
    with served(folder) as url, pytest.raises(InputError, match="closed and takes no answers"):
        answer(url, ANSWERS, Untouched(1))


def test_what_was_sent_is_called_as_on_the_page(folder: StudyFolder) -> None:
    said = {client.draw(folder.study, ANSWERS, "", SeededRandomness(n)).called["sleep"]
            for n in range(40)}  # fmt: skip
    assert "5 to under 7" in said
    assert not any("[" in text for text in said)
