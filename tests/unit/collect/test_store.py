"""The store: what becomes of a submission, whatever came before it, and what lies on the disk."""

import contextlib
import dataclasses
import itertools
import os
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Collection, Iterator
from datetime import date, timedelta
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import pytest
import sqlalchemy as sa

from deniable.collect import store as module
from deniable.collect.folder import StudyFolder
from deniable.collect.releasing import export
from deniable.collect.store import (
    Outcome,
    Store,
    Submission,
    receipt_id,
    sqlite_url,
    token_id,
)
from deniable.errors import InputError
from deniable.randomness import SeededRandomness
from unit.collect import postgres, studies
from unit.collect.studies import TODAY, example_folder, example_study

LATER = date(2100, 1, 1)


def one(number: int | str, token: str = "", record: bytes = b"\x13\x20\x10") -> Submission:
    return Submission(receipt_id(f"receipt {number}"), record, token)


def test_an_invitation_is_spent_once_and_the_same_again_is_the_same(invited: StudyFolder) -> None:
    store = invited.open_store()
    before = store.totals()  # tests may come in any order
    first, second, third = studies.invited(store, 3)
    assert store.submit([one(1, first)], TODAY) == [Outcome.STORED]
    # The same again, another record under the receipt, a spent token, a guessed one.
    other = b"\x00\x00\x00"
    group = [one(1, first), one(1, first, other), one(2, first), one(3, "0" * 32), one(1, second)]
    expected = [Outcome.SAME, Outcome.OTHER, Outcome.SPENT, Outcome.UNKNOWN, Outcome.SAME]
    assert store.submit(group, TODAY) == expected
    # Within one group, too.
    group = [one(4, second), one(4, second), one(5, second), one(4, third, other)]
    expected = [Outcome.STORED, Outcome.SAME, Outcome.SPENT, Outcome.OTHER]
    assert store.submit(group, TODAY) == expected
    totals = store.totals()
    assert totals.records == before.records + 2
    assert totals.invitations == before.invitations + 3
    assert totals.spent == before.spent + 2
    store.dispose()


def test_a_record_is_withdrawn_with_its_receipt_and_stays_away(invited: StudyFolder) -> None:
    store = invited.open_store()
    (token,) = studies.invited(store, 1)
    assert store.submit([one(11, token)], TODAY) == [Outcome.STORED]
    before = store.totals()
    assert store.withdraw("receipt 12", TODAY) is Outcome.NO_RECEIPT
    assert store.withdraw("receipt 11", TODAY) is Outcome.STORED
    assert store.withdraw("receipt 11", TODAY) is Outcome.GONE
    assert store.submit([one(11, token)], TODAY) == [Outcome.GONE]
    assert store.submit([one(13, token)], TODAY) == [Outcome.SPENT]
    after = store.totals()
    assert (after.records, after.withdrawn) == (before.records - 1, before.withdrawn + 1)
    store.dispose()


def test_where_anyone_may_answer_a_withdrawn_record_does_not_come_back(
    everyone: StudyFolder,
) -> None:
    store = everyone.open_store()
    assert store.submit([one(1)], TODAY) == [Outcome.STORED]
    assert store.withdraw("receipt 1", TODAY) is Outcome.STORED
    assert store.submit([one(1)], TODAY) == [Outcome.GONE]
    store.dispose()


@pytest.mark.parametrize("day", [TODAY, LATER])
def test_after_the_end_nothing_tells_what_was_taken(
    address: Callable[[], str | None], tmp_path: Path, day: date
) -> None:
    """Closed by the steward or by its last day: every submission takes the same steps."""
    store = example_folder(tmp_path, address(), respondents='"invited"').open_store()
    first, second, third = studies.invited(store, 3)
    store.submit([one(1, first), one(2, second)], TODAY)
    store.withdraw("receipt 2", TODAY)
    if day == TODAY:
        store.close()
    steps: list[str] = []
    sa.event.listen(
        store._engine, "before_cursor_execute", lambda *given: steps.append(str(given[2:4]))
    )
    found = []
    other = b"\0\0\0"
    for number, token, record in (
        *((1, first, one(0).record), (1, first, other), (1, third, other)),  # answered
        *((2, second, other), (3, second, other)),  # withdrawn
        *((4, third, other), (4, "0" * 32, other)),  # never answered, never invited
    ):
        steps.clear()
        assert store.submit([one(number, token, record)] * 2, day) == [Outcome.CLOSED] * 2
        found.append([*steps])
    assert found == [found[0]] * 7
    assert "SELECT closed" in found[0][-1]
    assert store.withdraw("receipt 1", day) is Outcome.STORED
    assert store.totals().spent == 2
    store.dispose()


def files_of(folder: StudyFolder) -> bytes:
    """All that lies on the disk of a store: database and journal."""
    return b"".join(path.read_bytes() for path in sorted(folder.path.glob("store.sqlite*")))


def content_of(folder: StudyFolder) -> dict[str, bytes]:
    """Every file of a study's folder, the database without its header's two counts of
    transactions."""
    content = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    database = content["store.sqlite"]
    return content | {"store.sqlite": database[:24] + database[28:92] + database[96:]}


def order_on_disk(content: bytes, ids: Collection[bytes]) -> list[bytes]:
    """The attack: ids by where they lie."""
    assert {content.count(name) for name in ids} == {
        1
    }  # no second copy, in free pages or a journal
    return sorted(ids, key=content.index)


def test_what_lies_on_the_disk_joins_nothing(tmp_path: Path) -> None:
    folder = example_folder(tmp_path, respondents='"invited"')
    store = folder.open_store()
    tokens = studies.invited(store, 40)
    for number, token in enumerate(tokens):
        store.submit([one(number, token)], TODAY + timedelta(number % 2))
    store.withdraw("receipt 7", TODAY)
    store.dispose()
    with sqlite3.connect(folder.path / "store.sqlite") as raw:
        tables = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE sql > ''")]
        columns = {
            table: [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]
            for table in sorted(tables)
        }
        assert columns == {
            "bucket": ["number", "content"],
            "bucket_key": ["hash_key"],
            "invitation": ["id", "spent"],
            "study": ["identity", "version", "closed"],
            "total": ["day", "taken", "withdrawn"],
        }
        assert raw.execute("SELECT day, taken, withdrawn FROM total ORDER BY day").fetchall() == [
            (str(TODAY), 20, 1),
            (str(TODAY + timedelta(1)), 20, 0),
        ]
    raw.close()
    content = files_of(folder)
    assert not any(token.encode() in content for token in tokens)
    gone = content.index(receipt_id("receipt 7"))
    assert content[gone + 32 : gone + 36] == b"\1\0\0\0"  # the record is gone
    assert content.count(receipt_id("receipt 7")) == 1


class Copies:
    """Copies of one store that is empty, with its invitations."""

    def __init__(self, place: Path, invitations: int) -> None:
        self.place = place
        (place / "empty").mkdir()
        self._empty = example_folder(place / "empty", respondents='"invited"')
        with self._empty.opened() as store:
            tokens = studies.invited(store, invitations)
        self.arrivals = [one(number, token) for number, token in enumerate(tokens)]

    def copy(self, name: str) -> StudyFolder:
        shutil.copytree(self._empty.path, self.place / name)
        folder = StudyFolder(self.place / name)
        folder.__dict__["study"] = self._empty.study
        return folder

    @contextlib.contextmanager
    def at_once(self, n: int) -> Iterator[tuple[StudyFolder, Store]]:
        """A store that got the first n at once, and in another order."""
        folder = self.copy(f"at once {n}")
        with folder.opened() as store:
            if n:
                store.submit(self.arrivals[:n][::-1], TODAY)
            yield folder, store
        shutil.rmtree(folder.path)


SIZES = (*range(2, 10), 20, 60, 80, 90, 110, 111, 112, 113, 150, 200)


def test_no_file_holds_the_order_of_arrival(tmp_path: Path) -> None:
    """At every size the whole folder is, byte for byte, that of a store which got the same records
    at once, and the same invitations in another order; also while it is served."""
    copies = Copies(tmp_path, max(SIZES))
    growing = copies.copy("growing")
    with growing.opened() as store:
        for n, each in enumerate(copies.arrivals, start=1):
            assert store.submit([each], TODAY) == [Outcome.STORED]
            if n in SIZES:
                order_on_disk(files_of(growing), [each.id for each in copies.arrivals[:n]])
                with copies.at_once(n) as (folder, _):
                    assert content_of(growing) == content_of(folder)
                assert content_of(growing)["store.sqlite-journal"] == b""
        store.withdraw("receipt 0", TODAY)
        store.close()
    with copies.at_once(n) as (folder, other):
        other.withdraw("receipt 0", TODAY)
        other.close()
        assert content_of(growing) == content_of(folder)
        for each in (growing, folder):
            export(each, each.path / "release", SeededRandomness(1))
        ours, theirs = ((f.path / "release" / "data.csv").read_bytes() for f in (growing, folder))
        assert ours == theirs
    assert [path.name for path in growing.path.glob("store*")] == ["store.sqlite"]


@pytest.mark.slow
def test_a_killed_store_holds_the_order_of_no_group_but_the_last(tmp_path: Path) -> None:
    """The journal of the transaction in progress is all that a kill leaves, and the next who opens
    the store removes it."""
    copies = Copies(tmp_path, 200)

    def fill(folder: StudyFolder) -> None:
        with folder.opened() as store:
            for each in copies.arrivals:
                store.submit([each], TODAY)

    for number in range(KILLS := int(os.environ.get("KILLS", "8"))):
        folder = copies.copy(str(number))
        process = get_context("fork").Process(target=fill, args=(folder,))
        process.start()
        time.sleep(0.05 + 0.3 * number / KILLS)
        process.kill()
        process.join()
        killed = content_of(folder)
        with folder.opened() as store:
            n = store.totals().records
        with copies.at_once(n) as (same, _):
            expected = {"store.sqlite-journal": b"", **content_of(same)}
        assert {"store.sqlite-journal": b"", **content_of(folder)} == expected
        if not killed.get("store.sqlite-journal"):
            assert {"store.sqlite-journal": b"", **killed} == expected
        assert killed.keys() <= expected.keys()


def test_the_attack_finds_the_order_in_a_table_of_rows(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    ids = [receipt_id(f"receipt {n}") for n in range(60)]
    with contextlib.closing(sqlite3.connect(folder.path / "store.sqlite")) as raw:
        raw.execute("CREATE TABLE submission (id BLOB PRIMARY KEY, record BLOB) WITHOUT ROWID")
        for name in ids:
            raw.execute("INSERT INTO submission VALUES (?, x'132010')", (name,))
        raw.commit()
    assert order_on_disk(files_of(folder), ids) == ids[::-1]


@pytest.mark.slow
@pytest.mark.skipif(not postgres.INITDB, reason=postgres.REASON)
def test_postgresql_keeps_the_order_until_the_study_is_closed(
    cluster: postgres.Cluster, tmp_path: Path
) -> None:
    database = cluster.database()
    folder = example_folder(tmp_path, cluster.url(database), respondents='"invited"')
    store = folder.open_store()
    tokens = studies.invited(store, 60)
    for number, token in enumerate(tokens):
        store.submit([one(number, token)], TODAY)
    store.withdraw("receipt 59", TODAY)
    arrived = [receipt_id(f"receipt {n}") for n in range(59)]

    def lying(table: str, by: str) -> list[bytes]:
        rows = cluster.run(f"SELECT id FROM {table} ORDER BY {by}", database)
        return [bytes(name) for (name,) in rows]

    for by in ("ctid", "xmin::text::bigint"):
        assert lying("submission", by) == arrived  # as docs/collect.md says
        assert lying("invitation", by) == [token_id(token) for token in tokens]
    before = store.totals()
    store.close()
    assert dataclasses.replace(before, closed=True) == store.totals()
    for table, ids in (("submission", arrived), ("invitation", map(token_id, tokens))):
        assert lying(table, "ctid") == sorted(ids)
        assert cluster.run(f"SELECT count(DISTINCT xmin::text) FROM {table}", database) == [(1,)]
    assert store.withdraw("receipt 59", TODAY) is Outcome.GONE
    assert store.withdraw("receipt 4", TODAY) is Outcome.STORED
    store.dispose()


def test_a_group_waits_for_whoever_reads(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    path = folder.path / "store.sqlite"
    with (
        folder.opened() as store,
        contextlib.closing(sqlite3.connect(path, check_same_thread=False)) as reading,
    ):
        reading.execute("BEGIN")
        reading.execute("SELECT * FROM study").fetchall()
        end = Timer(0.2, reading.rollback)
        end.start()
        assert store.submit([one(1)], TODAY) == [Outcome.STORED]
        assert end.finished.is_set()
        end.join()


def test_the_log_of_an_earlier_version_is_removed(tmp_path: Path) -> None:
    """Version 0.2 kept a write-ahead log, whose index names the pages of the last transaction."""
    folder = example_folder(tmp_path, respondents='"invited"')
    with folder.opened() as store:
        (token,) = studies.invited(store, 1)
    with contextlib.closing(sqlite3.connect(folder.path / "store.sqlite")) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
    with folder.opened() as store:
        assert store.submit([one(1, token)], TODAY) == [Outcome.STORED]
        names = {path.name for path in folder.path.glob("store*")}
        assert names == {"store.sqlite", "store.sqlite-journal"}


def test_a_store_that_an_earlier_version_holds_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    folder = example_folder(tmp_path)
    with contextlib.closing(sqlite3.connect(folder.path / "store.sqlite")) as serving:
        serving.execute("PRAGMA journal_mode=WAL")
        serving.execute("SELECT closed FROM study").fetchall()
        with pytest.raises(InputError, match=r"another process uses it; .* earlier version"):
            folder.open_store()


def test_a_store_with_a_log_in_a_folder_that_cannot_be_written_is_refused() -> None:
    with TemporaryDirectory() as name:  # one that another user may enter
        folder = example_folder(Path(name))
        with contextlib.closing(sqlite3.connect(folder.path / "store.sqlite")) as raw:
            raw.execute("PRAGMA journal_mode=WAL")
        Path(name).chmod(0o755)
        for path in folder.path.iterdir():
            path.chmod(0o444)
        folder.path.chmod(0o555)
        received, sent = Pipe(duplex=False)
        process = get_context("fork").Process(target=_open_as_other_user, args=(folder, sent))
        process.start()
        sent.close()
        message = received.recv()
        process.join()
        folder.path.chmod(0o755)
    assert "the file and its folder must be writable" in message


def _open_as_other_user(folder: StudyFolder, sent: Connection) -> None:
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        folder.open_store()
    except InputError as error:
        sent.send(str(error))


def test_a_bucket_that_has_been_altered_is_refused(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    with folder.opened() as store:
        store.submit([one(1)], TODAY)
    with contextlib.closing(sqlite3.connect(folder.path / "store.sqlite")) as raw:
        raw.execute("UPDATE bucket SET content = x'0100'")
        raw.commit()
    with folder.opened() as store, pytest.raises(InputError, match="has been altered"):
        list(store.records())


def test_records_come_back_packed(everyone: StudyFolder) -> None:
    store = everyone.open_store()
    before = sum(len(batch) for batch in store.records())
    many = [one(1000 + n, record=bytes([n % 2 * 16, n % 4 * 16, 16])) for n in range(50)]
    store.submit(many, TODAY)
    packed = [bytes(row) for batch in store.records() for row in batch]
    assert len(packed) == before + 50
    assert set(packed) >= {each.record for each in many}
    store.dispose()


def test_no_value_is_in_a_message(everyone: StudyFolder, tmp_path: Path) -> None:
    store = everyone.open_store()
    name = Submission(b"\xab" * 32, b"\xcd" * 3)
    with pytest.raises(sa.exc.StatementError) as failed, store._writing() as connection:
        store._run(connection, "INSERT INTO nowhere VALUES (?, ?)", (name.id, name.record))
    store.dispose()
    assert "nowhere" in str(failed.value)
    assert not re.search(r"\\x(ab|cd)|\xab|abab", str(failed.value))


def test_a_store_is_that_of_one_study(everyone: StudyFolder, tmp_path: Path) -> None:
    other = example_study(tmp_path, closes="2098-01-01")
    with pytest.raises(InputError, match="the store belongs to another study"):
        Store(everyone.url, other)
    with pytest.raises(InputError, match="already contains a study"):
        Store.make(everyone.url, other)


def test_a_store_of_another_version_is_refused(
    address: Callable[[], str | None], tmp_path: Path
) -> None:
    folder = example_folder(tmp_path, address())
    engine = sa.create_engine(folder.url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE study SET version = 9999")
    engine.dispose()
    with pytest.raises(InputError, match=r"of another version of deniable; .* pip"):
        folder.open_store()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://somewhere/x", "a store is sqlite:///FILE or postgresql"),
        ("not a url", "address cannot be used: a store is"),
        ("postgresql+psycopg://u:secret@h:port/x", "address cannot be used: a store is"),
        ("postgresql+psycopg://[::1/x", "address cannot be used: a store is"),
        ("sqlite+aiosqlite:///x", "a store is sqlite:///FILE or postgresql"),
        ("sqlite:///x\0", "a store is sqlite:///FILE or postgresql"),
        ("sqlite:///x?timeout=long", "address cannot be used: could not convert"),
        ("sqlite:////nowhere/at/all.sqlite", "cannot be used: unable to open"),
    ],
)
def test_an_address_that_cannot_be_used_is_said_and_leaves_no_file(
    everyone: StudyFolder,
    url: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for refused in (Store, Store.make):
        with pytest.raises(InputError, match=problem) as said:
            refused(url, everyone.study)
        assert "secret" not in str(said.value)
    assert sorted(tmp_path.iterdir()) == before


def test_an_empty_database_holds_no_study(everyone: StudyFolder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no study"):
        Store(sqlite_url(tmp_path / "new.sqlite"), everyone.study)


def test_a_failing_database_takes_nothing_of_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    folder = example_folder(tmp_path)
    store = folder.open_store()
    blocker = sqlite3.connect(folder.path / "store.sqlite", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(sa.exc.OperationalError, match="locked"):
        store.submit([one(1), one(2)], TODAY)
    locked = r"store sqlite:.* cannot be used: another process uses it"
    with pytest.raises(InputError, match=locked), folder.opened() as other:
        other.close()
    blocker.execute("ROLLBACK")
    blocker.close()
    assert store.submit([one(1), one(2)], TODAY) == [Outcome.STORED, Outcome.STORED]
    store.dispose()


@pytest.mark.slow
@pytest.mark.skipif(not postgres.INITDB, reason=postgres.REASON)
def test_a_collector_takes_and_deletes_records_and_cannot_read_one(
    cluster: postgres.Cluster, tmp_path: Path
) -> None:
    """The roles are those that docs/collect.md describes."""
    database = cluster.database()
    folder = example_folder(tmp_path, cluster.url(database), respondents='"invited"')
    page = (Path(__file__).parents[3] / "docs" / "collect.md").read_text()
    (roles,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    for statement in filter(None, map(str.strip, roles.split(";"))):
        cluster.run(statement, database)
    owner = folder.open_store()
    first, second = studies.invited(owner, 2)
    url = cluster.url(database, "collector")
    store = Store(url, folder.study)
    assert store.submit([one(1, first)], TODAY) == [Outcome.STORED]
    assert store.submit([one(1, first), one(2, first)], TODAY) == [Outcome.SAME, Outcome.SPENT]
    assert store.submit([one(1, second, b"xyz")], TODAY) == [Outcome.OTHER]
    assert store.submit([one(3, second)], TODAY) == [Outcome.STORED]
    assert store.withdraw("receipt 3", TODAY) is Outcome.STORED
    assert not store.is_closed()
    for refused in (
        lambda: list(store.records()),
        store.close,
        lambda: studies.invited(store, 1),
    ):
        with pytest.raises(sa.exc.ProgrammingError, match="permission denied"):
            refused()
    store.dispose()
    engine = sa.create_engine(url)
    for statement in (
        "SELECT id FROM submission",
        "SELECT record FROM submission",
        "UPDATE submission SET record = ''",
        "DELETE FROM submission",
        "DELETE FROM invitation",
        "INSERT INTO invitation (id, spent) VALUES ('x', false)",
        "UPDATE study SET closed = true",
        "COPY submission TO STDOUT",
        "CREATE TABLE more (n int)",
    ):
        with (
            engine.connect() as connection,
            pytest.raises(sa.exc.ProgrammingError, match="permission denied"),
        ):
            connection.exec_driver_sql(statement)
    engine.dispose()
    assert [bytes(row) for batch in owner.records() for row in batch] == [one(1).record]
    assert owner.changes() == (2, 1)
    owner.dispose()


KILLS = int(os.environ.get("KILLS", "2"))


@pytest.mark.slow
@pytest.mark.skipif(not postgres.INITDB, reason=postgres.REASON)
def test_a_killed_database_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with postgres.cluster() as running:
        folder = example_folder(tmp_path, running.url(running.database()))
        store, acknowledged = folder.open_store(), set()
        for round_of in range(KILLS):
            killer = Timer(0.1 + 0.1 * round_of / KILLS, running.kill)
            killer.start()
            with contextlib.suppress(sa.exc.OperationalError):
                for number in itertools.count():
                    group = [one(f"{round_of} {number} {n}") for n in range(20)]
                    assert set(store.submit(group, TODAY)) == {Outcome.STORED}
                    acknowledged |= {each.id for each in group}
            killer.join()
            running.start()
            # It recovers without hands, and by the same store.
            packed = sum(len(batch) for batch in store.records())
            assert len(acknowledged) <= packed == store.changes()[0]
            assert packed <= len(acknowledged) + 20 * (round_of + 1)
        store.dispose()
    assert acknowledged


def test_a_missing_driver_is_said(everyone: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'deniable\[postgresql\]'"):
        Store("postgresql+psycopg://nobody@/x", everyone.study)
