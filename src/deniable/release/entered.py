"""A release in parts in its ledger: entered when all rows have been looked at, spent when the first
is drawn.

Many processes, on several machines, may work on the parts. So that no row is ever drawn that the
ledger has not heard of, the release is *begun* there, with the rows of the person who has the most,
before its job can be worked on, and *counted* before the first row is drawn. A job that is given up
before that is withdrawn; afterwards it counts, whether or not it is ever finished: its parts lay
where workers could read them. The ledger alone says which it is.

A file in the job's folder says which entry it is::

    entry.json            number and token of the entry, and the ledger
    made/drawing          made before it is counted: a job without it that is counted is a copy
    made/spent            made when it is counted: a worker need not reach the ledger
"""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from deniable.atomic_files import write_file
from deniable.errors import InputError
from deniable.ledger import Entry, Ledger, Population, Spending, remembered
from deniable.statement.record import to_json
from deniable.statement.stored import decoded, read_json

_FILE = "entry.json"
_DRAWING = "made/drawing"
_SPENT = "made/spent"


class StoredEntry(msgspec.Struct, forbid_unknown_fields=True):
    """Which entry of which ledger a job is."""

    ledger: str
    number: Annotated[int, msgspec.Meta(ge=1)]
    token: str


def enter(
    job: Path, population: Population | None, spending: Spending, rows_of_person: int
) -> None:
    """Enter a release of which no row is drawn yet, if there is a ledger."""
    if population is None:
        return
    if (job / _DRAWING).exists() or (job / _SPENT).exists():
        raise InputError(
            f"{job / _FILE} is gone, which names the release in its ledger; put it back, or begin "
            "anew"
        )
    with remembered(population, spending, "share", rows_of_person=rows_of_person) as entry:
        assert entry is not None
        stored = StoredEntry(str(population.ledger.path.absolute()), entry.number, entry.token)
        write_file(job / _FILE, to_json(msgspec.to_builtins(stored)), overwrite=False)


def is_entered(job: Path) -> bool:
    """Whether a release in parts has been entered."""
    return (job / _FILE).exists()


def spend(job: Path) -> None:
    """Count the release, unless it is counted: rows are about to be drawn."""
    if (job / _SPENT).exists() or (entry := entry_of(job)) is None:
        return
    (job / "made").mkdir(exist_ok=True)
    try:
        (job / _DRAWING).touch(exist_ok=False)
    except FileExistsError:
        pass
    else:
        if entry.counted:
            (job / _DRAWING).unlink()
            raise InputError(
                f"{job}: by the ledger, rows of this release were drawn, and they are not here: "
                "they were taken away, or this is a copy; put them back, or remove the folder and "
                "begin anew"
            )
    if not entry.counted:
        entry.count()
    (job / _SPENT).touch()


def entry_of(job: Path) -> Entry | None:
    """Return the entry of a release in parts; None if it has none."""
    if not is_entered(job):
        return None
    file = job / _FILE
    stored = decoded(read_json(file), StoredEntry, f"{file}: the entry")
    ledger = Ledger(stored.ledger)
    if not ledger.exists:
        raise InputError(f"{ledger.path}: the ledger of {job} is gone; put it back")
    return ledger.entry(stored.number, stored.token)


def undrawn(job: Path) -> Entry | None:
    """Return the entry of a release in parts of which no row was drawn, as the ledger has it; None
    if there is none, or the ledger cannot be reached."""
    try:
        entry = entry_of(job)
    except InputError:
        return None
    return None if entry is None or entry.counted else entry


def give_back(job: Path) -> None:
    """Withdraw the entry of a release in parts that is about to be removed, if no row was drawn."""
    entry = undrawn(job)
    if entry is not None:
        with suppress(InputError):  # a worker has begun to draw
            entry.withdraw("it was given up before a row was drawn")
