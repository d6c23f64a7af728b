"""The steward's listener: who is let in, and what another site gets."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deniable.collect import steward as module
from deniable.collect.folder import StudyFolder
from unit.collect.studies import example_folder, fill, get, post, stewarded


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
    assert b"Nothing has been collected yet." in content
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
    assert get(url, "", Cookie=cookie, Host=f"localhost:{urlsplit(url).port}")[0] == 200


def test_nothing_is_taken_here(url: str, cookie: str) -> None:
    for path in ("submissions", "withdrawals"):
        assert get(url, path, Cookie=cookie)[0] == 404
    with pytest.raises(ValueError, match="Expecting value"):
        post(url, b"{}", "", Cookie=cookie)  # 405, in words


def test_what_is_asked_for_is_shown(address: Callable[[], str | None], tmp_path: Path) -> None:
    folder = example_folder(tmp_path, address())
    fill(folder, 400)
    with stewarded(folder) as url:
        cookie = get(url, f"enter/{folder.secret}")[2]["set-cookie"].split(";")[0]

        def seen(query: str) -> str:
            status, content, _ = get(url, f"?{query}", Cookie=cookie)
            assert status == 200
            return re.sub(r"\s+", " ", content.decode())

        one = seen("")
        assert "400 records; shares among whom they stand for" in one
        assert "Yes: counts as those of 400 records" in one
        assert one.count('<th scope="row">Yes</th>') == 1
        two = seen("of=smokes&and=lonely&target=table&precision=0,5")
        assert "shares among those who answered" in two
        assert two.count('<th scope="row">Often</th>') == 2
        assert "For ± 0.5 percentage points in every row it takes about" in two
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
