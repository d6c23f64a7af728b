"""A release in parts in its ledger.

Many processes on several machines may work on the parts. So that no row is drawn without the
ledger, the release is entered as *begun* with the largest number of rows per person, after all rows
are read and before the job can be worked on, and as *counted* before the first row is drawn. A job
removed before that is withdrawn; afterwards it counts even if unfinished, since workers could read
its parts. The ledger alone decides.

``entry.json`` in the job's folder holds number and token of the entry, and the ledger;
``made/drawing`` is written before it is counted (a counted job without it is a copy), and
``made/spent`` when it is counted, so that a worker need not reach the ledger.
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
    """Ledger and entry of a job."""

    ledger: str
    number: Annotated[int, msgspec.Meta(ge=1)]
    token: str


def enter(
    job: Path, population: Population | None, spending: Spending, rows_of_person: int
) -> None:
    """Enter a release into its ledger, if it has one, before any row is drawn."""
    if population is None:
        return
    if (job / _DRAWING).exists() or (job / _SPENT).exists():
        raise InputError(
            f"{job / _FILE} is missing; it identifies the release in its ledger; restore it, or "
            "start again"
        )
    with remembered(population, spending, "share", rows_of_person=rows_of_person) as entry:
        assert entry is not None
        stored = StoredEntry(str(population.ledger.path.absolute()), entry.number, entry.token)
        write_file(job / _FILE, to_json(msgspec.to_builtins(stored)), overwrite=False)


def is_entered(job: Path) -> bool:
    """Return whether a release in parts is in its ledger."""
    return (job / _FILE).exists()


def spend(job: Path) -> None:
    """Count the release in its ledger unless it is counted: rows are about to be drawn."""
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
                f"{job}: by the ledger, rows of this release were drawn, and they are missing: "
                "removed, or this folder is a copy; restore them, or remove the folder and start "
                "again"
            )
    if not entry.counted:
        entry.count()
    (job / _SPENT).touch()


def entry_of(job: Path) -> Entry | None:
    """Return the entry of a release in parts; None without one."""
    if not is_entered(job):
        return None
    file = job / _FILE
    stored = decoded(read_json(file), StoredEntry, f"{file}: the entry")
    ledger = Ledger(stored.ledger)
    if not ledger.exists:
        raise InputError(f"{ledger.path}: the ledger of {job} is missing; restore it")
    return ledger.entry(stored.number, stored.token)


def undrawn(job: Path) -> Entry | None:
    """Return the entry of a release in parts if no row was drawn by its ledger; None otherwise, or
    if the ledger cannot be read."""
    try:
        entry = entry_of(job)
    except InputError:
        return None
    return None if entry is None or entry.counted else entry


def give_back(job: Path) -> None:
    """Withdraw the entry of a release in parts before its removal, if no row was drawn."""
    entry = undrawn(job)
    if entry is not None:
        with suppress(InputError):  # a worker has drawn meanwhile
            entry.withdraw("it was given up before a row was drawn")
