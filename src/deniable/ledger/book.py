"""Append-only SQLite file of a ledger, written by any number of processes at once.

Every change is one immediate transaction: of two processes that compete for the remaining budget
the second sees the first one's release. Triggers refuse to change or delete an event, and each
event's digest covers all before it, so that other changes are detected.

A release that dies leaves its event *begun* and a locked file next to the ledger. The next writer
finds the lock free: no row was visible, or the release would be counted, so it is withdrawn. A
counted release is never withdrawn, and a withdrawn one never counted: this depends on the events
alone, not on files that can be deleted.
"""

import hashlib
import hmac
import json
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from deniable.atomic_files import FileLock, explain_write_errors, write_file
from deniable.errors import InputError, notify
from deniable.ledger.balance import Balance, balances
from deniable.ledger.events import KINDS, Event, StoredRelease, compared, stored_releases
from deniable.ledger.spending import Spending
from deniable.mechanism.privacy import nats_text
from deniable.numerals import number_text
from deniable.randomness import SystemRandomness
from deniable.strict_json import from_json

EVERYBODY = "everybody"
"""Default population: all releases of the ledger."""

_APPLICATION = 0x64656E79  # "deny", for sqlite and file(1)
_VERSION = 1
_PATIENCE = 120.0
"""Seconds to wait for other writers; each takes milliseconds."""

_DAMAGED = "this is not a ledger, or it is damaged; restore it from a copy"

_OTHER_SECRET = (
    "the ledger has been altered: its secret, the key of the digests of persons, is not the "
    "original one; restore it from a copy"
)

_TABLES = """
CREATE TABLE secret (key BLOB NOT NULL);
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    population TEXT NOT NULL,
    content TEXT NOT NULL,
    digest TEXT NOT NULL
);
CREATE TRIGGER events_stay BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
"""


class Ledger:
    """The releases of one or more populations."""

    def __init__(self, path: str | Path) -> None:
        if not str(path).strip():
            raise InputError("the name of the ledger is blank; give a file")
        self.path = Path(path)
        folder = self.path.absolute().parent
        try:
            there, published = folder.is_dir(), (folder / "record.json").exists()
            is_folder = self.path.is_dir()
        except OSError as error:  # such as a name that is too long
            raise InputError(f"{path}: this cannot be a ledger ({error.strerror})") from None
        if not there:
            raise InputError(f"{path}: the folder of the ledger does not exist; make it first")
        if published:
            raise InputError(
                f"{path}: the ledger lies in the folder of a release, which is published; move it "
                "next to the data"
            )
        if is_folder:
            raise InputError(f"{path} is a folder; name the file of the ledger")

    @property
    def exists(self) -> bool:
        """Whether the file exists."""
        return self.path.exists()

    def events(self) -> list[Event]:
        """Return all events."""
        if not self.exists:
            raise InputError(f"{self.path}: there is no such ledger")
        with self._connection() as connection:
            return self._events(connection)

    def set_budget(self, population: str, nats: float, *, new: bool = False) -> None:
        """Set the largest sum of levels of a population; the latest value counts."""
        if not 0 < nats < math.inf:
            raise InputError(f"the budget must be a positive number of nats, not {nats:g}")
        with self._writing(new=True) as connection:
            _refuse_unknown(self, population, balances(self._events(connection)), new=new)
            self._append(connection, "budget", population, {"nats": float(nats)})

    @contextmanager
    def release(
        self,
        population: str,
        spending: Spending,
        what: str,
        *,
        traceless: bool = True,
        rows_of_person: int = 1,
        new: bool = False,
    ) -> Iterator["Entry"]:
        """Enter a release before it is made; withdrawn if the block fails before any row is
        visible."""
        token = SystemRandomness().bits(np.uint8, 8).tobytes().hex()
        lock = self._lock(token)
        with self._writing(new=True) as connection:
            self._withdraw_the_dead(connection)
            known = balances(self._events(connection))
            _refuse_unknown(self, population, known, new=new)
            _refuse_beyond_budget(self, population, known, spending.of_rows(rows_of_person))
            with explain_write_errors(self.path):
                lock.claim()
            content = {
                "what": what,
                "spending": spending.to_plain(),
                "token": token,
                "traceless": traceless,
                "rows_of_person": rows_of_person,
            }
            event = self._append(connection, "begun", population, content)
        entry = Entry(self, population, spending, event.number, token, rows_of_person)
        try:
            yield entry
        except BaseException:
            if not entry.counted:
                entry.withdraw("it failed without a trace")
            lock.remove()  # if withdrawing fails the next writer does it
            raise
        lock.remove()

    def entry(self, number: int, token: str) -> "Entry":
        """Return a release started by this or another process, to continue it."""
        events = self.events()
        release = self._stored(events, number, token)
        if release.withdrawn:
            raise InputError(
                f"{self.path}: the release in event {number} was withdrawn, so no row of it may be "
                "drawn; start again"
            )
        entry = Entry(
            self,
            release.population,
            release.spending,
            number,
            token,
            release.rows_of_person,
            counted=release.counted,
        )
        if release.counted:
            entry.standing = _standing(events, release.population)
        return entry

    def _stored(self, events: Iterable[Event], number: int, token: str) -> StoredRelease:
        for release in stored_releases(events):
            if (release.number, release.token) == (number, token):
                return release
        raise InputError(
            f"{self.path}: the release was entered into a ledger as event {number}, and this is "
            "another ledger, or an earlier state of it; restore that one"
        )

    def publish_again(self, release: StoredRelease, sha256: str) -> tuple[int, float]:
        """Enter that counted draws were written to another file.

        Returns the number of releases of the population, and ε of all of them together in nats.
        """
        with self._writing() as connection:
            content = {"release": release.number, "sha256": sha256}
            self._append(connection, "published", release.population, content)
            return _standing(self._events(connection), release.population)

    def digest_of(self, people: Iterable[Any]) -> str:
        """Return a digest of a set of persons that needs this file's secret."""
        with self._writing() as connection:
            key = self._secret(connection)
        digest = hmac.new(key, digestmod=hashlib.sha256)
        for text in sorted(f"{type(person).__name__} {person}" for person in people):
            digest.update(hashlib.sha256(text.encode()).digest())
        return digest.hexdigest()

    # --- one transaction at a time -----------------------------------------------------------

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = None
        try:
            connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        except sqlite3.Error as error:
            raise InputError(f"{self.path}: {_reason(error)}") from None
        except UnicodeDecodeError:  # sqlite's error quotes the text
            raise InputError(f"{self.path}: {_DAMAGED}") from None
        finally:
            if connection is not None:
                connection.close()

    @contextmanager
    def _writing(self, *, new: bool = False) -> Iterator[sqlite3.Connection]:
        if not self.exists:
            if not new:
                raise InputError(f"{self.path}: the ledger is missing; restore it")
            self._make()
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _make(self) -> None:
        """Make the whole file at once: an empty file is a lost ledger."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.executescript(_TABLES)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            key = SystemRandomness().bits(np.uint8, 32).tobytes()
            connection.execute("INSERT INTO secret VALUES (?)", (key,))
            self._append(connection, "opened", "", {"secret": hashlib.sha256(key).hexdigest()})
            content = connection.serialize()
        try:
            write_file(self.path, content, overwrite=False, private=True)
        except InputError:
            if not self.exists:  # another process may have been first
                raise

    def _secret(self, connection: sqlite3.Connection) -> bytes:
        keys = [key for (key,) in connection.execute("SELECT key FROM secret")]
        if len(keys) != 1 or not isinstance(keys[0], bytes):
            raise InputError(f"{self.path}: {_OTHER_SECRET}")
        return keys[0]

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        if not self.path.stat().st_size:
            raise InputError(
                f"{self.path} is empty: it is no ledger, or has lost its content; restore it from "
                "a copy, or remove the file to start a new ledger"
            )
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise InputError(f"{self.path}: this is a database, but not a ledger of deniable")
        if version > _VERSION:
            raise InputError(f"{self.path}: written by a later version of deniable; update it")

    def _events(self, connection: sqlite3.Connection) -> list[Event]:
        self._check_kind(connection)
        events: list[Event] = []
        before = ""
        for number, time, kind, population, content, digest in connection.execute(
            "SELECT number, time, kind, population, content, digest FROM events ORDER BY number"
        ):
            try:
                event = Event(number, time, kind, population, from_json(content), before)
                as_entered = number == len(events) + 1 and event.digest == digest
                as_entered = as_entered and isinstance(event.content, dict)
            except (TypeError, ValueError, RecursionError):
                as_entered = False
            if not as_entered:
                raise InputError(
                    f"{self.path}: the ledger has been altered: event {len(events) + 1} is not the "
                    "original one; restore it from a copy"
                )
            if kind not in KINDS:
                raise InputError(f"{self.path}: written by a later version of deniable; update it")
            events.append(event)
            before = digest
        if not events:
            raise InputError(f"{self.path}: the ledger has been altered: it is empty")
        digest = hashlib.sha256(self._secret(connection)).hexdigest()
        if any(event.content.get("secret", digest) != digest for event in events):
            raise InputError(f"{self.path}: {_OTHER_SECRET}")
        return events

    def _append(
        self, connection: sqlite3.Connection, kind: Any, population: str, content: Mapping[str, Any]
    ) -> Event:
        last = connection.execute(
            "SELECT number, digest FROM events ORDER BY number DESC LIMIT 1"
        ).fetchone()
        number, before = (0, "") if last is None else last
        time = datetime.now(UTC).isoformat(timespec="seconds")
        event = Event(number + 1, time, kind, population, content, before)
        connection.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
            (event.number, time, kind, population, json.dumps(content), event.digest),
        )
        return event

    def _lock(self, token: str) -> FileLock:
        return FileLock(self.path.with_name(f".{self.path.name}.{token}.running"))

    def _withdraw_the_dead(self, connection: sqlite3.Connection) -> None:
        # A writer makes such a file in its own transaction and holds it until the end.
        begun = {
            release.token: release
            for release in stored_releases(self._events(connection))
            if not release.counted and not release.withdrawn and release.traceless
        }
        start, end = f".{self.path.name}.", ".running"
        with os.scandir(self.path.absolute().parent) as beside:
            names = [e.name for e in beside if e.name.startswith(start) and e.name.endswith(end)]
        for token in (name[len(start) : -len(end)] for name in names):
            lock = self._lock(token)
            if not lock.take_over():
                continue
            if token in begun:
                release = begun[token]
                why = "its process ended before a row was visible"
                content = {"release": release.number, "why": why}
                self._append(connection, "withdrawn", release.population, content)
            lock.remove()


@dataclass
class Entry:
    """A release in the making; see :meth:`Ledger.release`.

    ``number``: of its first event; ``token``: random text that identifies it, too. ``spending``,
    ``rows_of_person``: as begun. ``counted``: whether a row may have been visible; then it counts
    for good. ``standing``, once it is counted: number of releases of the population, and ε of all
    of them together in nats.
    """

    ledger: Ledger
    population: str
    spending: Spending
    number: int
    token: str
    rows_of_person: int = 1
    counted: bool = False
    standing: tuple[int, float] = field(init=False)

    def count(
        self,
        spending: Spending | None = None,
        *,
        rows_of_person: int | None = None,
        people: Iterable[Any] | None = None,
    ) -> None:
        """Enter that rows may be visible from now on; the release then counts for good."""
        ledger = self.ledger
        digest = None if people is None else ledger.digest_of(people)
        spending = self.spending if spending is None else spending
        rows_of_person = self.rows_of_person if rows_of_person is None else rows_of_person
        with ledger._writing() as connection:
            events = ledger._events(connection)
            if self._stored(events).withdrawn:
                raise InputError(
                    f"{ledger.path}: the release in event {self.number} was withdrawn meanwhile, "
                    "and no row is released; start again"
                )
            before = balances(_without(events, self.number))
            _refuse_beyond_budget(ledger, self.population, before, spending.of_rows(rows_of_person))
            content = {
                "release": self.number,
                "spending": spending.to_plain(),
                "rows_of_person": rows_of_person,
                "people": digest,
            }
            events.append(ledger._append(connection, "counted", self.population, content))
        self.counted = True
        others = _populations_of(events)[digest] if digest else {}
        if others := {n for n in others if compared(n) != compared(self.population)}:
            notify(
                f"population '{min(others)}' has exactly the same people: the levels of both add "
                "up, but this ledger adds them separately",
            )
        self.standing = _standing(events, self.population)

    def publish(self, sha256: str) -> None:
        """Enter that the released file is complete."""
        with self.ledger._writing() as connection:
            known = self._stored(self.ledger._events(connection)).published
            if known == sha256:  # it died after publication
                return
            if known is not None:
                raise InputError(
                    f"{self.ledger.path}: the release in event {self.number} was already published "
                    "with other rows; these are a second draw, which is not counted; "
                    "remove them, and start again"
                )
            content = {"release": self.number, "sha256": sha256}
            self.ledger._append(connection, "published", self.population, content)

    def withdraw(self, why: str) -> None:
        """Enter that no row was drawn, or none remains, so that the release does not count."""
        with self.ledger._writing() as connection:
            if self._stored(self.ledger._events(connection)).counted:
                raise InputError(
                    f"{self.ledger.path}: rows of the release in event {self.number} were drawn, "
                    "so it remains counted"
                )
            content = {"release": self.number, "why": why}
            self.ledger._append(connection, "withdrawn", self.population, content)

    def _stored(self, events: Iterable[Event]) -> StoredRelease:
        return self.ledger._stored(events, self.number, self.token)


def _without(events: Iterable[Event], number: int | None) -> list[Event]:
    """Return the events without those of a release, identified by its first event."""
    return [
        e for e in events if number is None or number not in (e.number, e.content.get("release"))
    ]


def _standing(events: Iterable[Event], population: str) -> tuple[int, float]:
    """Return the number of releases of a population with visible rows, and ε of all of them."""
    counted = [r for r in balances(events)[compared(population)].releases if r.counted]
    return len(counted), Balance("", tuple(counted)).epsilon


def _refuse_beyond_budget(
    ledger: Ledger, population: str, known: Mapping[str, Balance], spending: Spending
) -> None:
    balance = known.get(compared(population))
    if balance is None or balance.allows(spending.epsilon):
        return
    count = len(balance.releases)
    wanted = (
        nats_text(number_text(spending.epsilon, 6))
        if spending.epsilon < math.inf
        else "without a bound on what it reveals"
    )
    raise InputError(
        f"the budget of population '{balance.population}' does not allow this release, which "
        f"is {wanted}: {balance.left_text} after {count} release{'' if count == 1 else 's'} "
        f"({ledger.path.name}); reduce the levels, or raise the budget"
    )


def _refuse_unknown(
    ledger: Ledger, population: str, known: Mapping[str, Balance], *, new: bool
) -> None:
    """Raise for an unknown population in a ledger with budgets: a mistyped name would have no
    budget and its releases would be added to no others."""
    if new or compared(population) in known or all(b.budget is None for b in known.values()):
        return
    names = [f"'{balance.population}'" for balance in known.values()]
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    raise InputError(
        f"population '{population}' is not in this ledger, which has budgets ({ledger.path.name}); "
        f"set `population` to one of {listed}, or set `new_population` "
        "if these are other people"
    )


@dataclass(frozen=True)
class Population:
    """A population and its ledger."""

    ledger: Ledger
    name: str = EVERYBODY
    new: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable():
            raise InputError("the name of a population must be one non-empty line of text")
        object.__setattr__(self, "name", " ".join(self.name.split()))

    def check(self, spending: Spending, replacing: int | None = None) -> None:
        """Raise, before any row is read, if the budget does not allow the release. The entry checks
        again in its transaction."""
        known = self._known(replacing)
        if known:
            _refuse_unknown(self.ledger, self.name, known, new=self.new)
            _refuse_beyond_budget(self.ledger, self.name, known, spending)

    def outlook(self, spending: Spending, replacing: int | None = None) -> dict[str, Any]:
        """Return the state of the ledger before and after a release, as plain values."""
        before = self._known(replacing).get(compared(self.name), Balance(self.name))
        return {
            "file": str(self.ledger.path),
            "new": not self.ledger.exists,
            "before": before.to_plain(),
            "after": before.after(spending).to_plain(),
        }

    def _known(self, replacing: int | None) -> dict[str, Balance]:
        if not self.ledger.exists:
            return {}
        return balances(_without(self.ledger.events(), replacing))


def population_of(
    ledger: str | Path | None = None,
    name: str = EVERYBODY,
    *,
    new: bool = False,
    new_ledger: bool | None = None,
) -> Population | None:
    """Return the population in the named ledger or that of DENIABLE_LEDGER; None without a
    ledger."""
    named = None if ledger is None else Ledger(ledger)
    if (found := named or usual_ledger()) is not None:
        may_be_new = named is not None if new_ledger is None else new_ledger
        if not (found.exists or may_be_new):
            by = "" if named else ", and DENIABLE_LEDGER names it"
            raise InputError(
                f"{found.path}: there is no such ledger{by}; restore it, name another, or start a "
                "new one with `new_ledger`"
            )
        return Population(found, name, new)
    if name != EVERYBODY:
        raise InputError(
            "`population` needs a ledger; name its file with `ledger`, or in the environment "
            "variable DENIABLE_LEDGER"
        )
    return None


def usual_ledger() -> Ledger | None:
    """Return the ledger of DENIABLE_LEDGER; None if it is unset or blank."""
    named = os.environ.get("DENIABLE_LEDGER", "").strip()
    try:
        return Ledger(named) if named else None
    except InputError as error:
        raise InputError(f"DENIABLE_LEDGER: {error}") from None


@contextmanager
def remembered(
    population: Population | None,
    spending: Spending,
    what: str,
    *,
    traceless: bool = True,
    rows_of_person: int = 1,
) -> Iterator[Entry | None]:
    """Enter a release into its ledger, if it has one; see :meth:`Ledger.release`."""
    if population is None:
        yield None
        return
    ledger = population.ledger
    if not ledger.exists:
        notify(
            f"{ledger.path} is a new ledger without a budget or earlier releases; "
            "if an older one existed, restore it",
        )
    how: Any = {"traceless": traceless, "rows_of_person": rows_of_person, "new": population.new}
    with ledger.release(population.name, spending, what, **how) as entry:
        yield entry


def same_people(events: Iterable[Event]) -> list[tuple[str, str]]:
    """Return pairs of populations with releases of exactly the same persons."""
    populations = _populations_of(events).values()
    return sorted({pair for names in populations for pair in combinations(sorted(names), 2)})


def _populations_of(events: Iterable[Event]) -> dict[str, set[str]]:
    """Return the populations per set of persons, by its digest."""
    names: dict[str, set[str]] = {}
    for release in stored_releases(events):
        if release.people is not None and not release.withdrawn:
            names.setdefault(release.people, set()).add(release.population)
    return names


def unfinished(events: Iterable[Event]) -> list[StoredRelease]:
    """Return the releases that are begun but neither counted nor withdrawn: in progress, or died
    where rows may remain. They count."""
    return [r for r in stored_releases(events) if not r.counted and not r.withdrawn]


def _reason(error: sqlite3.Error) -> str:
    text = str(error)
    if "not a database" in text or "malformed" in text:
        return _DAMAGED
    if "locked" in text:
        return f"other programs have locked the ledger for {_PATIENCE:g} seconds; try again"
    if "no such table" in text or "no such column" in text:
        return "this is a database, but not a ledger of deniable"
    if "readonly" in text:
        return "the ledger, or its folder, cannot be written; check its permissions"
    if "disk is full" in text:
        return "the disk is full; free some space"
    return f"the ledger cannot be used: {text}"
