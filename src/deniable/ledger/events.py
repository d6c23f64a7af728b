"""Events of a ledger, each with a digest over all before it.

A release has two or three: *begun* before a row is read, *counted* before a row is visible,
*published* when its folder is complete; *withdrawn* if it failed without a trace. A begun release
counts, with its level at the beginning, until it is counted or withdrawn. *Opened* has the digest
of the key of persons' digests.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from deniable.errors import InputError
from deniable.ledger.spending import Spending

Kind = Literal["opened", "budget", "begun", "counted", "published", "withdrawn"]
KINDS: tuple[str, ...] = get_args(Kind)


def compared(population: str) -> str:
    """Return a population's name for comparison: without case, letter width, and repeated or outer
    blanks, which look alike on screens.

    >>> compared(" Clinic  North ") == compared("clinic north") == compared("ＣＬＩＮＩＣ north")
    True
    """
    folded = unicodedata.normalize("NFKC", population).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


@dataclass(frozen=True)
class Event:
    """A line of the ledger; ``number`` counts from 1 without gaps."""

    number: int
    time: str
    kind: Kind
    population: str
    content: Mapping[str, Any] = field(default_factory=dict)
    before: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 over the event and the previous digest."""
        parts = [self.before, self.number, self.time, self.kind, self.population, self.content]
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class StoredRelease:
    """A release as entered in a ledger."""

    number: int
    time: str
    population: str
    what: str
    spending: Spending
    token: str
    traceless: bool
    rows_of_person: int = 1
    counted: bool = False
    published: str | None = None
    withdrawn: bool = False
    people: str | None = None
    published_before: tuple[str, ...] = ()

    @property
    def of_person(self) -> Spending:
        """Levels of a person with all rows."""
        return self.spending.of_rows(self.rows_of_person)

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, for export."""
        person = self.of_person.to_plain()
        return {
            "event": self.number,
            "time": self.time,
            "population": self.population,
            "command": self.what,
            **self.spending.to_plain(),
            "rows_of_person": self.rows_of_person,
            "epsilon_of_person": person["epsilon"],
            "counted": self.counted,
            "published": self.published,
            "withdrawn": self.withdrawn,
            "people": self.people,
        }


def stored_releases(events: Iterable[Event]) -> list[StoredRelease]:
    """Return the releases in a list of events, in the order of their first ones.

    Populations with equal compared names are one, in the first spelling.
    """
    releases: dict[int, StoredRelease] = {}
    spelt: dict[str, str] = {}
    for event in events:
        population = spelt.setdefault(compared(event.population), event.population)
        try:
            _read(event, population, releases)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError(
                f"event {event.number} of the ledger cannot be read; it was written by another "
                "program, or by a later version"
            ) from None
    return list(releases.values())


def _read(event: Event, population: str, releases: dict[int, StoredRelease]) -> None:
    content = event.content
    if event.kind == "begun":
        releases[event.number] = StoredRelease(
            event.number,
            event.time,
            population,
            str(content["what"]),
            Spending.from_plain(content["spending"]),
            str(content["token"]),
            bool(content["traceless"]),
            _rows(content.get("rows_of_person", 1)),
        )
    elif event.kind in ("counted", "published", "withdrawn"):
        number = content["release"]
        release = releases[number]
        if event.kind == "counted":
            release = replace(
                release,
                counted=True,
                withdrawn=False,
                spending=Spending.from_plain(content["spending"]),
                rows_of_person=_rows(content["rows_of_person"]),
                people=content["people"],
            )
        elif event.kind == "published":
            earlier = () if release.published is None else (release.published,)
            release = replace(
                release,
                published=str(content["sha256"]),
                published_before=(*release.published_before, *earlier),
            )
        else:
            release = replace(release, withdrawn=True)
        releases[number] = release
    elif event.kind not in KINDS:
        raise ValueError("unknown kind")


def _rows(value: Any) -> int:
    rows = int(value)
    if rows < 1:
        raise ValueError("a person with rows has at least one")
    return rows
