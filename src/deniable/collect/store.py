"""The store of a study: randomized records, spent invitations, totals. Records and invitations are
not linked.

The key of a record is the SHA-256 of its receipt; an invitation is the SHA-256 of its token and a
spent flag. There are totals per day, but no times, addresses or sequence numbers. On SQLite the
file's bytes do not depend on the order of the records (`deniable.collect.buckets`), and deleted
records are overwritten. Its rollback journal contains the pages that one transaction changes, and
is emptied after it; a write-ahead log would leave an index of the last transaction's pages.
PostgreSQL keeps the order of arrival until the study is closed (docs/collect.md), and a collector
needs no right to read records.

One thread writes. Each group of submissions is one transaction, acknowledged after the commit,
entirely or not at all.
"""

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from deniable.collect.buckets import Buckets, read_buckets
from deniable.collect.rows import Rows, among, read_rows
from deniable.collect.study import Study
from deniable.collect.tables import INVITATION, STUDY, check_version, make_tables
from deniable.errors import InputError

_ADDRESSES = "a store is sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"

ALTERED = "the store has been altered: a record does not fit the study"

PATIENCE = 2.0
"""Seconds that a transaction waits for one of another process."""

_REASONS = {
    "database is locked": "another process uses it; try again, or stop a deniable collect serve of "
    "an earlier version",
    "readonly database": "the file and its folder must be writable, also for reading",
    "disk is full": "the disk is full; free some space first",
}
"""Explanations of messages of SQLite."""

# Held by a writer to the end of its transaction; the number is arbitrary.
_LOCK = "SELECT set_config('lock_timeout', ?, true), pg_advisory_xact_lock(7236487)"


class Outcome(Enum):
    """Result of a submission or withdrawal."""

    STORED = "stored"
    SAME = "stored before"
    OTHER = "another record was stored under this receipt"
    SPENT = "this invitation has been used"
    UNKNOWN = "this invitation is not known"
    CLOSED = (
        "the study is closed; a record that arrived before counts, and its receipt withdraws it"
    )
    GONE = "this receipt was withdrawn"
    NO_RECEIPT = "this receipt is not known"


@dataclass(frozen=True)
class Submission:
    """A decoded submission."""

    id: bytes
    record: bytes
    token: str = ""


@dataclass(frozen=True)
class Totals:
    """Totals of a store."""

    records: int
    withdrawn: int
    invitations: int
    spent: int
    closed: bool


def token_id(token: str) -> bytes:
    """Return the stored hash of an invitation's token."""
    return hashlib.sha256(token.encode()).digest()


def receipt_id(receipt: str) -> bytes:
    """Return the key of a receipt's record."""
    return hashlib.sha256(receipt.encode()).digest()


class Store:
    """The store of one study."""

    def __init__(self, url: str, study: Study) -> None:
        self.study = study
        self._engine = _engine(url)
        self._writes = self._engine.execution_options(writes=True)
        self._is_postgresql = self._engine.dialect.name == "postgresql"
        self._mark = "%s" if self._is_postgresql else "?"
        try:
            with explained(url), self._engine.connect() as connection:
                check_version(connection, _parsed(url).render_as_string())
                identity = connection.execute(sa.select(STUDY.c.identity)).scalar()
            if identity != bytes.fromhex(study.identity):
                raise InputError(
                    "the store belongs to another study; open each study in a folder of its own"
                )
        except InputError:
            self.dispose()
            raise

    @classmethod
    def make(cls, url: str, study: Study) -> "Store":
        """Create the tables of a new store, or use the unused ones that an interrupted run has made
        for this study."""
        with _private_file(_parsed(url)), explained(url), _once(url) as connection:
            found = sa.inspect(connection).has_table("study")
            if not found:
                make_tables(connection, bytes.fromhex(study.identity), study.record_size)
        if not found:
            return cls(url, study)
        with suppress(InputError):  # of another study or version
            store = cls(url, study)
            if store.totals() == Totals(0, 0, 0, 0, closed=False):
                return store
            store.dispose()
        raise InputError("the store already contains a study; name an empty database")

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction that excludes those of other collectors."""
        with self._writes.begin() as connection:
            if self._is_postgresql:
                self._run(connection, _LOCK, (f"{PATIENCE * 1000:.0f}ms",))
            yield connection

    def _run(
        self, connection: sa.Connection, statement: str, values: Sequence[Any] = ()
    ) -> sa.CursorResult[Any]:
        """Execute a statement in the form of the driver: compiling it with SQLAlchemy takes longer
        than the database itself."""
        return connection.exec_driver_sql(statement.replace("?", self._mark), values or None)

    def _records(self, connection: sa.Connection) -> Rows | Buckets:
        run = partial(self._run, connection)
        return Rows(run) if self._is_postgresql else Buckets(run, self.study.record_size)

    def _invited(self, connection: sa.Connection, ids: Sequence[bytes]) -> dict[bytes, bool]:
        """Return whether each known invitation is spent."""
        return among(partial(self._run, connection), "id, spent", "invitation", ids)

    def submit(self, group: Sequence[Submission], today: date) -> list[Outcome]:
        """Store a group of submissions; return their outcomes after the commit. For a closed study
        all outcomes are the same, so that they do not reveal the respondents."""
        tokens = {} if self.study.open_to_all else {each.token: b"" for each in group}
        tokens = {token: token_id(token) for token in tokens}
        with self._writing() as connection:
            if self._run(connection, "SELECT closed FROM study").scalar() or (
                today > self.study.closes
            ):
                return [Outcome.CLOSED] * len(group)
            records = self._records(connection)
            there, gone = records.known([(each.id, each.record) for each in group])
            spent = self._invited(connection, list(tokens.values()))
            outcomes, rows, used = [], [], []
            for each in group:
                token = tokens.get(each.token)
                outcome = _judged(each, token, there, gone, spent)
                if outcome is Outcome.STORED:
                    there[each.id] = each.record
                    rows.append((each.id, each.record))
                    if token is not None:
                        spent[token] = True
                        used.append((token,))
                outcomes.append(outcome)
            if rows:
                rows.sort()  # not in the order of arrival
                records.insert(rows)
                self._count(connection, today, taken=len(rows))
            if used:
                self._run(connection, "UPDATE invitation SET spent = true WHERE id = ?", used)
        return outcomes

    def withdraw(self, receipt: str, today: date) -> Outcome:
        """Delete the record of a receipt; its invitation remains spent."""
        name = receipt_id(receipt)
        with self._writing() as connection:
            was_there = self._records(connection).withdraw(name)
            if not was_there:
                return Outcome.GONE if was_there is None else Outcome.NO_RECEIPT
            self._count(connection, today, withdrawn=1)
        return Outcome.STORED

    def _count(
        self, connection: sa.Connection, today: date, *, taken: int = 0, withdrawn: int = 0
    ) -> None:
        statement = (
            "INSERT INTO total (day, taken, withdrawn) VALUES (?, ?, ?) "
            "ON CONFLICT (day) DO UPDATE SET taken = total.taken + excluded.taken, "
            "withdrawn = total.withdrawn + excluded.withdrawn"
        )
        self._run(connection, statement, (today.isoformat(), taken, withdrawn))

    def invite(self, tokens: Sequence[str]) -> None:
        """Add the hashes of invitations, all or none."""
        # Sorted by hash, so that the order of the tokens is not stored.
        rows = [{"id": name} for name in sorted(map(token_id, tokens))]
        once = "INSERT INTO invitation (id, spent) VALUES (:id, false) ON CONFLICT (id) DO NOTHING"
        with self._writing() as connection:
            connection.execute(sa.text(once), rows)

    def knows(self, tokens: Sequence[str]) -> bool:
        """Whether any of these invitations is in the store."""
        size = 1 << 13  # parameters of one query
        ids = [*map(token_id, tokens)]
        with self._engine.connect() as connection:
            return any(
                self._invited(connection, ids[at : at + size]) for at in range(0, len(ids), size)
            )

    def close(self) -> None:
        """Close the study: submissions are rejected, withdrawals are not. PostgreSQL rows are
        rewritten in the order of their random ids, in one transaction."""
        with self._writing() as connection:
            connection.execute(STUDY.update().values(closed=True))
            self._records(connection).write_anew()

    def totals(self) -> Totals:
        """Return the totals."""

        def count(table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
            counted = sa.select(sa.func.count()).select_from(table).where(*conditions)
            return int(connection.execute(counted).scalar_one())

        with self._engine.connect() as connection:
            taken, withdrawn = self._changes(connection)
            return Totals(
                taken - withdrawn,
                withdrawn,
                count(INVITATION),
                count(INVITATION, INVITATION.c.spent),
                bool(connection.execute(sa.select(STUDY.c.closed)).scalar()),
            )

    def changes(self) -> tuple[int, int]:
        """Return the total numbers of accepted and of withdrawn records; while neither changes, the
        records are the same."""
        with self._engine.connect() as connection:
            return self._changes(connection)

    def _changes(self, connection: sa.Connection) -> tuple[int, int]:
        query = "SELECT sum(taken), sum(withdrawn) FROM total"
        taken, withdrawn = (int(number or 0) for number in self._run(connection, query).one())
        return taken, withdrawn

    def records(self) -> Iterator[np.ndarray[Any, np.dtype[np.uint8]]]:
        """Yield the packed records in batches, shape (n, bytes)."""
        with self._engine.connect() as connection:
            # The driver's own rows: a million take a second, not five.
            driver: Any = connection.connection.driver_connection
            failure: Any = self._engine.dialect.loaded_dbapi
            read = read_rows if self._is_postgresql else read_buckets
            try:
                yield from read(driver, self.study.record_size)
            except ValueError:
                raise InputError(ALTERED) from None
            except failure.Error as error:  # in the form of SQLAlchemy
                raise sa.exc.DBAPIError.instance(None, None, error, failure.Error) from error

    def is_closed(self) -> bool:
        """Whether the study was closed before its last day."""
        with self._engine.connect() as connection:
            return bool(connection.execute(sa.select(STUDY.c.closed)).scalar())

    def dispose(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _judged(
    each: Submission,
    token: bytes | None,
    there: dict[bytes, bytes],
    gone: Collection[bytes],
    spent: dict[bytes, bool],
) -> Outcome:
    if (stored := there.get(each.id)) is not None:
        return Outcome.SAME if stored == each.record else Outcome.OTHER
    if token is not None and token not in spent:
        return Outcome.UNKNOWN
    if each.id in gone:
        return Outcome.GONE
    if token is not None and spent[token]:
        return Outcome.SPENT
    return Outcome.STORED


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # not repeated: it may contain a password
        raise InputError(f"the store's address cannot be used: {_ADDRESSES}") from None
    if "\0" in url or parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise InputError(_ADDRESSES)
    return parsed


def _engine(url: str) -> sa.Engine:
    parsed = _parsed(url)
    is_file = parsed.get_backend_name() == "sqlite"
    options: dict[str, Any] = (
        {"connect_args": {"timeout": PATIENCE, "isolation_level": None}}
        if is_file
        else {"pool_pre_ping": True}
    )
    try:
        # Messages contain no values of records or tokens.
        engine = sa.create_engine(parsed, hide_parameters=True, **options)
    except ImportError:
        raise InputError(
            "a store in PostgreSQL needs psycopg, which is not installed: pip install "
            "'deniable[postgresql]'"
        ) from None
    except ValueError as error:  # an option after a question mark
        raise InputError(f"the store's address cannot be used: {error}") from None
    if not is_file:
        return engine

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        # TRUNCATE empties the journal after every transaction. DELETE in between removes that of a
        # killed process, which SQLite keeps if there is nothing to roll back.
        for mode in ("TRUNCATE", "DELETE", "TRUNCATE"):
            connection.execute(f"PRAGMA journal_mode={mode}")
        for setting in ("synchronous=FULL", "secure_delete=ON"):
            connection.execute(f"PRAGMA {setting}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def _private_file(url: sa.URL) -> Iterator[None]:
    """Create SQLite's file, readable only by its owner, as is then its journal; remove it again
    after a failure."""
    name, made = url.database, False
    if url.get_backend_name() == "sqlite" and name and not name.startswith((":memory:", "file:")):
        with suppress(OSError):  # it exists, or SQLite reports the error
            os.close(os.open(name, os.O_CREAT | os.O_EXCL, 0o600))
            made = True
    try:
        yield
    except BaseException:
        if made and name and not Path(name).stat().st_size:
            Path(name).unlink()
        raise


@contextmanager
def _once(url: str) -> Iterator[sa.Connection]:
    """One writing transaction on a connection of its own."""
    engine = _engine(url)
    try:
        with engine.execution_options(writes=True).begin() as connection:
            yield connection
    finally:
        engine.dispose()


def sqlite_url(path: Path) -> str:
    """Return the URL of a file."""
    return f"sqlite:///{path.absolute()}"


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn a failure of a store into one sentence."""
    where = _parsed(url).render_as_string()  # without its password
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        said = str(error.__cause__ or error).splitlines()[0]
        reason = next((reason for part, reason in _REASONS.items() if part in said), said)
        raise InputError(f"the store {where} cannot be used: {reason}") from None
