"""The store of a study: randomized records, spent invitations, totals. Nothing joins them.

A record lies under the SHA-256 of its receipt, an invitation is the SHA-256 of its token and
whether it is spent. There are no times but totals a day, no addresses, no sequence numbers. On
SQLite the bytes of the file follow from which records there are, whatever their order
(`deniable.collect.buckets`), and what is deleted is overwritten. Its rollback journal contains the
pages that one transaction changes, and is empty once that has ended; a write-ahead log would leave
an index of the last transaction's pages. PostgreSQL keeps the order of arrival until the study is
closed (docs/collect.md says what that means), and there a collector needs no right to read records.

One thread writes. It takes what has arrived as one group, one transaction, and answers after the
commit: either all of a group is on the disk, or none was acknowledged.
"""

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from deniable.collect.buckets import Buckets, read_buckets
from deniable.collect.rows import Rows, among, read_rows
from deniable.collect.study import Study
from deniable.errors import InputError

TABLES = sa.MetaData()
STUDY = sa.Table(
    "study",
    TABLES,
    sa.Column("identity", sa.LargeBinary(32), primary_key=True),
    sa.Column("closed", sa.Boolean),
)
INVITATION = sa.Table(
    "invitation",
    TABLES,
    sa.Column("id", sa.LargeBinary(32), primary_key=True),
    sa.Column("spent", sa.Boolean),
)
TOTAL = sa.Table(
    "total",
    TABLES,
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("taken", sa.Integer),
    sa.Column("withdrawn", sa.Integer),
)

_ADDRESSES = "a store is sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"

ALTERED = "the store has been altered: a record does not fit the study"

PATIENCE = 2.0
"""Seconds that a transaction waits for another process's."""

_REASONS = {
    "database is locked": "another process holds it; end deniable collect serve if that is of an "
    "earlier version than this, or try again",
    "readonly database": "it is to be written; allow that for the file and its folder, also where "
    "it is only read, as a store of version 0.2 is changed when it is opened first",
    "disk is full": "there is no space left; free some space first",
}
"""What SQLite's messages mean of a store."""

# Held to the end of a transaction by whoever writes; the number is this program's own.
_LOCK = "SELECT set_config('lock_timeout', ?, true), pg_advisory_xact_lock(7236487)"


class Outcome(Enum):
    """What became of a submission or a withdrawal."""

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
    """What a browser sends, decoded."""

    id: bytes
    record: bytes
    token: str = ""


@dataclass(frozen=True)
class Totals:
    """What a store holds, in numbers."""

    records: int
    withdrawn: int
    invitations: int
    spent: int
    closed: bool


def token_id(token: str) -> bytes:
    """Return what is stored of an invitation's token."""
    return hashlib.sha256(token.encode()).digest()


def receipt_id(receipt: str) -> bytes:
    """Return the name under which a receipt's record is stored."""
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
                _check_version(connection, url)
                identity = connection.execute(sa.select(STUDY.c.identity)).scalar()
            if identity != bytes.fromhex(study.identity):
                raise InputError(
                    "the store is that of another study; one store never mixes laws, so open each "
                    "study in a folder of its own"
                )
        except InputError:
            self.dispose()
            raise

    @classmethod
    def make(cls, url: str, study: Study) -> "Store":
        """Make the tables of a new store; or find them, if a run that was killed has made them for
        this very study, and nothing has happened to them."""
        with _private_file(_parsed(url)), explained(url), _once(url) as connection:
            found = sa.inspect(connection).has_table("study")
            if not found:
                _upgrade(connection, study)
                row = {"identity": bytes.fromhex(study.identity), "closed": False}
                connection.execute(STUDY.insert(), row)
        if not found:
            return cls(url, study)
        with suppress(InputError):  # that of another study, or version
            store = cls(url, study)
            if store.totals() == Totals(0, 0, 0, 0, closed=False):
                return store
            store.dispose()
        raise InputError("the store holds a study already; name an empty database")

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction that no other collector's overlaps."""
        with self._writes.begin() as connection:
            if self._is_postgresql:
                self._run(connection, _LOCK, (f"{PATIENCE * 1000:.0f}ms",))
            yield connection

    def _run(
        self, connection: sa.Connection, statement: str, values: Sequence[Any] = ()
    ) -> sa.CursorResult[Any]:
        """Run a statement as the driver takes it, prepared once: what SQLAlchemy would do for every
        group of submissions takes longer than the database itself."""
        return connection.exec_driver_sql(statement.replace("?", self._mark), values or None)

    def _records(self, connection: sa.Connection) -> Rows | Buckets:
        run = partial(self._run, connection)
        return Rows(run) if self._is_postgresql else Buckets(run, self.study.record_size)

    def _invited(self, connection: sa.Connection, ids: Sequence[bytes]) -> dict[bytes, bool]:
        """Return of each invitation that there is whether it is spent."""
        return among(partial(self._run, connection), "id, spent", "invitation", ids)

    def submit(self, group: Sequence[Submission], today: date) -> list[Outcome]:
        """Take a group of submissions, and return what became of each, once it is on the disk. Once
        the study is closed nothing is looked up: the answer would tell who has answered."""
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
                rows.sort()  # in no order of arrival
                records.insert(rows)
                self._count(connection, today, taken=len(rows))
            if used:
                self._run(connection, "UPDATE invitation SET spent = true WHERE id = ?", used)
        return outcomes

    def withdraw(self, receipt: str, today: date) -> Outcome:
        """Delete the record of a receipt; its invitation stays spent."""
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
        """Let those who have these tokens answer, all of them or none; only hashes are kept."""
        # In the order of what is stored, so that the order of the tokens is not.
        rows = [{"id": name} for name in sorted(map(token_id, tokens))]
        once = "INSERT INTO invitation (id, spent) VALUES (:id, false) ON CONFLICT (id) DO NOTHING"
        with self._writing() as connection:
            connection.execute(sa.text(once), rows)

    def knows(self, tokens: Sequence[str]) -> bool:
        """Whether anyone of those who have these tokens may answer, or has."""
        size = 1 << 13  # as many as one query may name
        ids = [*map(token_id, tokens)]
        with self._engine.connect() as connection:
            return any(
                self._invited(connection, ids[at : at + size]) for at in range(0, len(ids), size)
            )

    def close(self) -> None:
        """End the study: nothing more is taken; withdrawals are. PostgreSQL's rows are written
        anew, in the order of their random ids and as of one transaction."""
        with self._writing() as connection:
            connection.execute(STUDY.update().values(closed=True))
            self._records(connection).write_anew()

    def totals(self) -> Totals:
        """Return what the store holds."""

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
        """Return how many records were ever taken and taken back: as long as neither changes, the
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
            # Rows as the database's own library gives them: a million take a second, not five.
            driver: Any = connection.connection.driver_connection
            failure: Any = self._engine.dialect.loaded_dbapi
            read = read_rows if self._is_postgresql else read_buckets
            try:
                yield from read(driver, self.study.record_size)
            except ValueError:
                raise InputError(ALTERED) from None
            except failure.Error as error:  # as SQLAlchemy tells it
                raise sa.exc.DBAPIError.instance(None, None, error, failure.Error) from error

    def is_closed(self) -> bool:
        """Whether the study was ended before its last day."""
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
    except (sa.exc.ArgumentError, ValueError):  # it may hold a password, so it is not repeated
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
        # No value of a record or a token is in any message.
        engine = sa.create_engine(parsed, hide_parameters=True, **options)
    except ImportError:
        raise InputError(
            "a store in PostgreSQL takes what is not installed here: pip install "
            "'deniable[postgresql]'"
        ) from None
    except ValueError as error:  # of an option behind a question mark
        raise InputError(f"the store's address cannot be used: {error}") from None
    if not is_file:
        return engine

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        # TRUNCATE empties the journal after every transaction. DELETE in between removes the one
        # that a killed process left, also if nothing has to be rolled back, which SQLite keeps.
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
    """Make SQLite's file, if there is none, so that only its owner can read it and its journal; and
    remove it if nothing comes of it."""
    name, made = url.database, False
    if url.get_backend_name() == "sqlite" and name and not name.startswith((":memory:", "file:")):
        with suppress(OSError):  # there is one, or SQLite says why there can be none
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
    """One transaction that writes, and nothing left open after it."""
    engine = _engine(url)
    try:
        with engine.execution_options(writes=True).begin() as connection:
            yield connection
    finally:
        engine.dispose()


def sqlite_url(path: Path) -> str:
    """Return the address of a file."""
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


@contextmanager
def _scripts(connection: sa.Connection | None = None, record_size: int = 0) -> Iterator[Config]:
    with as_file(files("deniable.collect").joinpath("migrations")) as folder:
        config = Config()
        config.set_main_option("script_location", str(folder))
        config.attributes |= {"connection": connection, "record_size": record_size}
        yield config


def _upgrade(connection: sa.Connection, study: Study) -> None:
    with _scripts(connection, study.record_size) as config:
        command.upgrade(config, "head")


def _check_version(connection: sa.Connection, url: str) -> None:
    with _scripts() as config:
        script = ScriptDirectory.from_config(config)
        current = MigrationContext.configure(connection).get_current_revision()
        if current == script.get_current_head():
            return
        if current is None:
            raise InputError(f"{_parsed(url).render_as_string()} holds no study")
        known = {step.revision for step in script.walk_revisions()}
    if current in known:
        raise InputError(
            "the store is of an earlier version of deniable; bring it up to date with: deniable "
            "collect upgrade STUDY"
        )
    raise InputError(
        "the store is of a later version of deniable; update deniable: pip install --upgrade "
        "'deniable[web]'"
    )


def upgrade(url: str, study: Study) -> None:
    """Bring the store of a study up to date."""
    with explained(url), _once(url) as connection:
        _upgrade(connection, study)
