"""The steward's listener: who is let in, and what another site gets."""

import html
import http.client
import io
import re
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from deniable.collect import steward as module
from deniable.collect.folder import StudyFolder
from deniable.collect.page import page_bytes
from deniable.collect.store import Outcome, Submission, receipt_id
from unit.collect.studies import (
    TODAY,
    example_folder,
    fill,
    get,
    invited,
    packed,
    post,
    stewarded,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    return example_folder(tmp_path_factory.mktemp("steward"), respondents='"invited"')


@pytest.fixture(scope="module")
def url(folder: StudyFolder) -> Iterator[str]:
    with stewarded(folder) as address:
        yield address


@pytest.fixture(scope="module")
def cookie(url: str, folder: StudyFolder) -> str:
    status, _, headers = get(url, f"enter/{folder.secret}")
    assert (status, headers["location"]) == (303, "/")
    given = headers["set-cookie"]
    assert "HttpOnly" in given
    assert "SameSite=strict" in given
    assert folder.secret not in given
    return given.split(";")[0]


def test_only_who_knows_the_secret_is_let_in(url: str, cookie: str, folder: StudyFolder) -> None:
    assert get(url, "")[0] == 403
    assert get(url, "", Cookie=cookie[:-1] + "x")[0] == 403
    wrong = folder.secret[:-1] + ("0" if folder.secret[-1] != "0" else "1")
    for secret in (wrong, "", "%00", "%C3%A9", "x/y"):
        status, content, headers = get(url, f"enter/{secret}")
        assert status in (403, 404)
        assert "set-cookie" not in headers
        assert folder.secret.encode() not in content
    status, content, headers = get(url, "", Cookie=cookie)
    assert status == 200
    assert b"not shown yet" in content
    assert folder.secret.encode() not in content
    assert headers["cache-control"] == "no-store"
    assert headers["content-security-policy"] == module.POLICY
    assert b"<script" not in content


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "0.0.0.0:{port}"])
def test_a_name_that_was_made_to_point_here_gets_nothing(
    url: str, cookie: str, host: str, folder: StudyFolder
) -> None:
    given = host.format(port=urlsplit(url).port)
    for path in ("", f"enter/{folder.secret}"):
        status, _, headers = get(url, path, Host=given, Cookie=cookie)
        assert status == 421
        assert "set-cookie" not in headers


def test_another_site_gets_nothing(url: str, cookie: str) -> None:
    own = f"http://{urlsplit(url).netloc}"
    assert get(url, "", Cookie=cookie, Origin=own, Sec_Fetch_Site="same-origin")[0] == 200
    assert get(url, "", Cookie=cookie, Origin="https://evil.example")[0] == 403
    assert get(url, "", Cookie=cookie, Origin="null")[0] == 403
    for site in ("cross-site", "same-site"):
        assert get(url, "", Cookie=cookie, Sec_Fetch_Site=site)[0] == 403
    led = {"Cookie": cookie, "Sec_Fetch_Mode": "navigate"}
    assert get(url, "", **led, Sec_Fetch_Site="same-site")[0] == 200
    assert get(url, "", **led, Sec_Fetch_Site="cross-site")[0] == 403
    assert get(url, "", Cookie=cookie, Host=f"localhost:{urlsplit(url).port}")[0] == 200


def test_nothing_is_taken_here(url: str, cookie: str) -> None:
    for path in ("submissions", "withdrawals"):
        assert get(url, path, Cookie=cookie)[0] == 404
    with pytest.raises(ValueError, match="Expecting value"):
        post(url, b"{}", "", Cookie=cookie)  # 405, in words


def test_what_is_asked_for_is_shown(address: Callable[[], str | None], tmp_path: Path) -> None:
    folder = example_folder(tmp_path, address())
    fill(folder, 6000)
    with stewarded(folder) as url:
        cookie = get(url, f"enter/{folder.secret}")[2]["set-cookie"].split(";")[0]

        def seen(query: str) -> str:
            status, content, _ = get(url, f"?{query}", Cookie=cookie)
            assert status == 200
            return re.sub(r"\s+", " ", content.decode())

        one = seen("")
        assert "6,000 records; shares among the population" in one
        assert "Passed: the counts of 6,000 records" in one
        assert one.count(">Yes</th>") == 1
        two = seen("of=smokes&and=lonely&target=table&precision=0,5")
        assert "shares among the respondents" in two
        assert two.count(">Often</th>") == 2
        assert "± 0.5 percentage points in every row need about" in two
        assert 'value="0.5"' in two
        for query, problem in (
            ("of=nothing", "nothing"),
            ("of=smokes&and=smokes", "twice"),
            ("precision=0", "the precision is a number"),
            ("precision=x", "the precision is a number"),
            ("precision=nan", "the precision is a number"),
            ("precision=0.00009", "the precision is a number"),
            ("precision=100.1", "the precision is a number"),
        ):
            assert problem in seen(query).split('role="alert"')[1]
        for precision in ("0.0001", "100"):
            assert 'role="alert"' not in seen(f"precision={precision}")
        assert "<script>" not in seen("of=%3Cscript%3E&precision=%22%3E%3Cscript%3E")


Form = dict[str, str]


class Inside:
    """Whoever has come in by the address: looks, and posts the page's own forms."""

    def __init__(self, url: str, folder: StudyFolder) -> None:
        self.url = url
        self.cookie = get(url, f"enter/{folder.secret}")[2]["set-cookie"].split(";")[0]

    def look(self) -> str:
        status, content, _ = get(self.url, "", Cookie=self.cookie)
        assert status == 200
        return content.decode()

    def send(self, action: str, form: Form, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        (token,) = {*re.findall(r'name="token" value="(\w+)"', self.look())}
        given = {"Cookie": self.cookie, "Origin": self.url.rstrip("/")} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        given["Content-Type"] = "application/x-www-form-urlencoded"
        with closing(http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=20)) as sending:
            sending.request("POST", f"/{action}", urlencode({"token": token} | form), given)
            answer = sending.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, answer.read(), found


def test_only_the_pages_own_forms_are_taken(tmp_path: Path) -> None:
    folder = example_folder(tmp_path, respondents='"invited"')
    fill_invited(folder, 12)
    fine = {"sure": "yes", "count": "2", "url": "https://study.example/"}
    with stewarded(folder) as url, folder.opened() as store:
        inside = Inside(url, folder)
        for action in ("close", "invite", "export"):
            refused = [
                inside.send(action, fine | {"token": ""}),
                inside.send(action, fine | {"token": "0" * 64}),
                inside.send(action, fine | {"token": "\u00e9"}),
                inside.send(action, fine | {"more": "x" * 20_000}),
                inside.send(action, fine, Cookie="steward=1"),
                inside.send(action, fine, Origin="https://evil.example"),
                inside.send(action, fine, Sec_Fetch_Site="cross-site"),
            ]
            assert {status for status, _, _ in refused} == {403}
            assert get(url, action, Cookie=inside.cookie)[0] == 405
        assert inside.send("close", fine, Host="evil.example")[0] == 421
        for name in ("study.json", "page.html"):
            assert get(url, name)[0] == 403
        assert not store.is_closed()
        assert store.totals().invitations == 12


def fill_invited(folder: StudyFolder, count: int) -> None:
    with folder.opened() as store:
        group = [
            Submission(receipt_id(f"{n}"), packed(folder.study, (0, 0, 0, 0, 0)), token)
            for n, token in enumerate(invited(store, count))
        ]
        assert set(store.submit(group, TODAY)) == {Outcome.STORED}


def test_the_page_invites_exports_hands_out_and_closes(tmp_path: Path) -> None:
    folder = example_folder(tmp_path, respondents='"invited"')
    fill_invited(folder, 12)
    with stewarded(folder) as url, folder.opened() as store:
        inside = Inside(url, folder)
        status, content, headers = inside.send(
            "invite", {"count": "3", "url": "https://study.example/"}
        )
        assert (status, headers["cache-control"]) == (200, "no-store")
        assert headers["content-disposition"] == 'attachment; filename="links.csv"'
        head, *links = content.decode().splitlines()
        assert (head, len(links)) == ("link", 3)
        assert all(store.knows([link.removeprefix("https://study.example/#")]) for link in links)
        assert store.totals().invitations == 15
        for form, problem in (
            ({"count": "many", "url": "https://x/"}, "the number of people is a whole number"),
            ({"count": "3", "url": "javascript:x"}, "give the study's address"),
            ({"count": "0", "url": "https://x/"}, "from 1 to 1,000,000"),
        ):
            status, content, _ = inside.send("invite", form)
            assert status == 409
            assert problem in html.unescape(content.decode()).split('role="alert"')[1]
        assert store.totals().invitations == 15

        status, content, headers = inside.send("export", {})
        assert (status, headers["content-disposition"]) == (
            200,
            'attachment; filename="release.zip"',
        )
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(tmp_path)
        assert len((tmp_path / "release" / "data.csv").read_text().splitlines()) == 13
        assert (tmp_path / "release" / "report.html").is_file()

        assert get(url, "study.json", Cookie=inside.cookie)[1] == folder.study.content
        assert get(url, "page.html", Cookie=inside.cookie)[1] == page_bytes(folder.study)

        status, content, _ = inside.send("close", {})
        assert (status, store.is_closed()) == (409, False)
        assert b"the study was not closed: tick the box first" in content
        status, _, headers = inside.send("close", {"sure": "yes"})
        assert (status, headers["location"], store.is_closed()) == (303, "/", True)
        assert "<h2>Close</h2>" not in inside.look()
        status, content, _ = inside.send("invite", {"count": "3", "url": "https://x/"})
        assert (status, b"the study is closed" in content) == (409, True)


def test_an_empty_study_has_nothing_to_export(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    before = set(Path(tempfile.gettempdir()).glob("tmp*/release"))
    with stewarded(folder) as url:
        status, content, _ = Inside(url, folder).send("export", {})
    assert (status, b"the study has no records yet" in content) == (409, True)
    assert set(Path(tempfile.gettempdir()).glob("tmp*/release")) == before


def test_a_store_that_does_not_answer_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = example_folder(tmp_path)
    with stewarded(folder) as url:
        cookie = get(url, f"enter/{folder.secret}")[2]["set-cookie"].split(";")[0]
        with sqlite3.connect(folder.path / "store.sqlite") as raw:
            raw.execute("ALTER TABLE total RENAME TO elsewhere")
        raw.close()
        assert get(url, "", Cookie=cookie)[0] == 503
