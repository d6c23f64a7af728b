"""The file: an append-only SQLite database that any number of processes write at once.

Every change is one immediate transaction, so that of two processes that want the last nat the
second sees what the first has taken. Triggers refuse to change or delete an event, and events
carry digests over all before them, so that a change by other means is noticed.

A release that dies leaves its event *begun* and a file beside the ledger that it had locked. Who
writes next finds the lock free: nothing of the release was seen, or it would have been counted,
and it is withdrawn. A release that is counted is never withdrawn, and one that was withdrawn is
never counted: what is given back depends on the events alone, not on files that can be deleted.
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
"""The population of whoever does not name one: all releases of the ledger together."""

_APPLICATION = 0x64656E79  # "deny", as the file tells sqlite and file(1) whose it is
_VERSION = 1
_PATIENCE = 120.0
"""Seconds to wait for other writers; each takes milliseconds."""

_DAMAGED = "this is not a ledger, or it is damaged; take it from a copy"

_OTHER_SECRET = (
    "the ledger has been altered: its secret, which keys the digests of persons, is not the one "
    "that it was begun with; take it from a copy"
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
    """The releases of one or more populations.

    >>> from deniable.ledger import Ledger, Spending, balances
    >>> ledger = Ledger("people.ledger")
    >>> ledger.set_budget("everybody", 10.0)
    >>> with ledger.release("everybody", Spending(4.0), "share") as entry:
    ...     entry.count(Spending(4.0))
    ...     entry.publish("00" * 32)
    >>> entry.standing, balances(ledger.events())["everybody"].left
    ((1, 4.0), 6.0)
    """

    def __init__(self, path: str | Path) -> None:
        if not str(path).strip():
            raise InputError("the name of the ledger is blank; name its file")
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
                f"{path}: a ledger never stands in the folder of a release, which is published; "
                "keep it beside the data"
            )
        if is_folder:
            raise InputError(f"{path} is a folder; name the file of the ledger")

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    def events(self) -> list[Event]:
        """Return everything that was ever entered."""
        if not self.exists:
            raise InputError(f"{self.path}: there is no such ledger")
        with self._connection() as connection:
            return self._events(connection)

    def set_budget(self, population: str, nats: float, *, new: bool = False) -> None:
        """Say how much all releases of a population may come to; the last word counts."""
        if not 0 < nats < math.inf:
            raise InputError(f"a budget is a positive number of nats, not {nats:g}")
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
        """Enter a release that is about to be made; taken back if the block fails before anybody
        can have seen a row."""
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
                entry.withdraw("it failed, and nothing was left")
            lock.remove()  # not where that failed: then the next release takes it back
            raise
        lock.remove()

    def entry(self, number: int, token: str) -> "Entry":
        """Return a release that this or another process has begun, to go on with it."""
        events = self.events()
        release = self._stored(events, number, token)
        if release.withdrawn:
            raise InputError(
                f"{self.path}: the release in event {number} was withdrawn, so no row of it may be "
                "drawn; begin anew"
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
            "another ledger, or an earlier state of it; put it back"
        )

    def publish_again(self, release: StoredRelease, sha256: str) -> tuple[int, float]:
        """Enter that draws which are counted already were written to another file.

        How many releases of the population there are, and ε of all of them together in nats.
        """
        with self._writing() as connection:
            content = {"release": release.number, "sha256": sha256}
            self._append(connection, "published", release.population, content)
            return _standing(self._events(connection), release.population)

    def digest_of(self, people: Iterable[Any]) -> str:
        """Return a digest of a set of persons, which nobody can compute without this file."""
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
        except UnicodeDecodeError:  # sqlite quotes what it cannot read
            raise InputError(f"{self.path}: {_DAMAGED}") from None
        finally:
            if connection is not None:
                connection.close()

    @contextmanager
    def _writing(self, *, new: bool = False) -> Iterator[sqlite3.Connection]:
        if not self.exists:
            if not new:
                raise InputError(f"{self.path}: the ledger is gone; put it back")
            self._make()
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if not any("secret" in event.content for event in self._events(connection)):
                    self._append_secret(connection)  # of an earlier version
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _make(self) -> None:
        """Make the file, whole: an empty one is a ledger that was lost."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.executescript(_TABLES)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            key = SystemRandomness().bits(np.uint8, 32).tobytes()
            connection.execute("INSERT INTO secret VALUES (?)", (key,))
            self._append_secret(connection)
            content = connection.serialize()
        try:
            write_file(self.path, content, overwrite=False, private=True)
        except InputError:
            if not self.exists:  # it does where another process was first
                raise

    def _append_secret(self, connection: sqlite3.Connection) -> None:
        digest = hashlib.sha256(self._secret(connection)).hexdigest()
        self._append(connection, "opened", "", {"secret": digest})

    def _secret(self, connection: sqlite3.Connection) -> bytes:
        keys = [key for (key,) in connection.execute("SELECT key FROM secret")]
        if len(keys) != 1 or not isinstance(keys[0], bytes):
            raise InputError(f"{self.path}: {_OTHER_SECRET}")
        return keys[0]

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        if not self.path.stat().st_size:
            raise InputError(
                f"{self.path} is empty: it is no ledger, or what was in it is lost; take it from a "
                "copy, or remove the file to begin a new ledger"
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
                    "one that was entered; take it from a copy"
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
        # Whoever makes such a file does so in a transaction of its own and holds it until the end.
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
                why = "its process ended before anybody could have seen a row"
                content = {"release": release.number, "why": why}
                self._append(connection, "withdrawn", release.population, content)
            lock.remove()


@dataclass
class Entry:
    """A release that is being made; see :meth:`Ledger.release`.

    Attributes:
        ledger: where it is entered.
        population: whose data it is.
        spending: the levels of a row, as begun.
        number: of the event that began it.
        token: what it is known by beside its number.
        rows_of_person: the most rows of one person, as begun.
        counted: whether it was entered that somebody can see a row; then it counts for good.
        standing: how many releases of the population there are and ε of all of them together in
            nats, this one included; known once it is counted.
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
        """Enter that from here on somebody can see a row, and that the release counts for good."""
        ledger = self.ledger
        digest = None if people is None else ledger.digest_of(people)
        spending = self.spending if spending is None else spending
        rows_of_person = self.rows_of_person if rows_of_person is None else rows_of_person
        with ledger._writing() as connection:
            events = ledger._events(connection)
            if self._stored(events).withdrawn:
                raise InputError(
                    f"{ledger.path}: the release in event {self.number} was withdrawn meanwhile, "
                    "so nothing of it is released; begin anew"
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
                f"these are exactly the people of population '{min(others)}' too, under another "
                "name: the levels of both add up, and the ledger does not add them",
            )
        self.standing = _standing(events, self.population)

    def publish(self, sha256: str) -> None:
        """Enter that the released file is complete."""
        with self.ledger._writing() as connection:
            known = self._stored(self.ledger._events(connection)).published
            if known == sha256:  # it died after that
                return
            if known is not None:
                raise InputError(
                    f"{self.ledger.path}: the release in event {self.number} was finished before, "
                    "with other rows, so these are a second draw, which the ledger does not count; "
                    "remove them, and begin anew"
                )
            content = {"release": self.number, "sha256": sha256}
            self.ledger._append(connection, "published", self.population, content)

    def withdraw(self, why: str) -> None:
        """Enter that nothing was drawn or is left of it, so that it counts no longer."""
        with self.ledger._writing() as connection:
            if self._stored(self.ledger._events(connection)).counted:
                raise InputError(
                    f"{self.ledger.path}: rows of the release in event {self.number} were drawn, "
                    "so it goes on counting"
                )
            content = {"release": self.number, "why": why}
            self.ledger._append(connection, "withdrawn", self.population, content)

    def _stored(self, events: Iterable[Event]) -> StoredRelease:
        return self.ledger._stored(events, self.number, self.token)


def _without(events: Iterable[Event], number: int | None) -> list[Event]:
    """Return the events that are not about a release, named by the event that began it."""
    return [
        e for e in events if number is None or number not in (e.number, e.content.get("release"))
    ]


def _standing(events: Iterable[Event], population: str) -> tuple[int, float]:
    """Return how many releases of a population somebody can have seen, and ε of all of them."""
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
        f"({ledger.path.name}); release with smaller levels, or not at all"
    )


def _refuse_unknown(
    ledger: Ledger, population: str, known: Mapping[str, Balance], *, new: bool
) -> None:
    """Stop at a population that the ledger does not know, where others have budgets: a name that is
    mistyped, or forgotten, would have no budget, and its releases would be added to no others."""
    if new or compared(population) in known or all(b.budget is None for b in known.values()):
        return
    names = [f"'{balance.population}'" for balance in known.values()]
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    raise InputError(
        f"population '{population}' is not in this ledger, which has budgets ({ledger.path.name}); "
        f"name with `population` whose data these are, of {listed}, or say with `new_population` "
        "that they are of other people than all of these"
    )


@dataclass(frozen=True)
class Population:
    """Whose data a release is about, and where that is remembered."""

    ledger: Ledger
    name: str = EVERYBODY
    new: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable():
            raise InputError("the name of a population is a line of text that is not empty")
        object.__setattr__(self, "name", " ".join(self.name.split()))

    def check(self, spending: Spending, replacing: int | None = None) -> None:
        """Refuse, before any row is read, what the budget does not allow now. The release asks
        again when it is entered, which nothing can come in between."""
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
    """Return whose data it is, in the named ledger or the one that DENIABLE_LEDGER names; None if
    neither is."""
    named = None if ledger is None else Ledger(ledger)
    if (found := named or usual_ledger()) is not None:
        may_be_new = named is not None if new_ledger is None else new_ledger
        if not (found.exists or may_be_new):
            by = "" if named else ", and DENIABLE_LEDGER names it"
            raise InputError(
                f"{found.path}: there is no such ledger{by}; put it back, name another, or begin a "
                "new one with `new_ledger`"
            )
        return Population(found, name, new)
    if name != EVERYBODY:
        raise InputError(
            "`population` is for a ledger; name its file with `ledger`, or in the environment "
            "variable DENIABLE_LEDGER"
        )
    return None


def usual_ledger() -> Ledger | None:
    """Return the ledger that DENIABLE_LEDGER names; None if it is not set, or blank."""
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
    """Enter a release into the ledger, if there is one; see :meth:`Ledger.release`."""
    if population is None:
        yield None
        return
    ledger = population.ledger
    if not ledger.exists:
        notify(
            f"{ledger.path} is a new ledger, without a budget, in which no earlier release counts; "
            "if there was one of that name, put it back",
        )
    how: Any = {"traceless": traceless, "rows_of_person": rows_of_person, "new": population.new}
    with ledger.release(population.name, spending, what, **how) as entry:
        yield entry


def same_people(events: Iterable[Event]) -> list[tuple[str, str]]:
    """Return pairs of populations with releases of exactly the same persons."""
    populations = _populations_of(events).values()
    return sorted({pair for names in populations for pair in combinations(sorted(names), 2)})


def _populations_of(events: Iterable[Event]) -> dict[str, set[str]]:
    """Return the populations with a release of exactly some persons, by the persons' digest."""
    names: dict[str, set[str]] = {}
    for release in stored_releases(events):
        if release.people is not None and not release.withdrawn:
            names.setdefault(release.people, set()).add(release.population)
    return names


def unfinished(events: Iterable[Event]) -> list[StoredRelease]:
    """Return the releases that were begun and neither counted nor withdrawn: they are being made,
    or their process died where it may have left rows behind. They count."""
    return [r for r in stored_releases(events) if not r.counted and not r.withdrawn]


def _reason(error: sqlite3.Error) -> str:
    text = str(error)
    if "not a database" in text or "malformed" in text:
        return _DAMAGED
    if "locked" in text:
        return f"other programs have held the ledger for {_PATIENCE:g} seconds; try again"
    if "no such table" in text or "no such column" in text:
        return "this is a database, but not a ledger of deniable"
    if "readonly" in text:
        return "the ledger, or its folder, cannot be written; see its permissions"
    if "disk is full" in text:
        return "there is no space left for the ledger; free some space first"
    return f"the ledger cannot be used: {text}"
