"""Estimates from a running or finished study, counted in its store."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.collect.folder import StudyFolder
from deniable.collect.releasing import unpacked
from deniable.collect.study import Study
from deniable.errors import InputError
from deniable.estimate.counting import Rows
from deniable.estimate.source import Release
from deniable.estimate.survey import NO_SAMPLE, SampleColumns
from deniable.estimate.tabulate import Counts, Tabulation, Tabulator
from deniable.mechanism.channel import Channel
from deniable.mechanism.strata import Strata
from deniable.tables.selection import Where


class Records(Protocol):
    """A source of records: a store, or its content at some moment."""

    def changes(self) -> tuple[int, int]:
        """Return the total numbers of accepted and of withdrawn records."""

    def records(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the packed records in batches, shape (n, bytes)."""


@dataclass(frozen=True)
class Collected(Release):
    """The records of a study so far, as a release for queries."""

    identified: bool = True
    folder: StudyFolder | None = None
    store: Records | None = None
    counted: dict[tuple[str, ...], tuple[tuple[int, int], Tabulation]] = field(default_factory=dict)

    def count_tables(
        self,
        tables: Sequence[Sequence[str]],
        *,
        by: Sequence[str] = (),
        where: Where = None,
        weights: str | None = None,
        numbers: Sequence[str] = (),  # noqa: ARG002 - no unchanged columns
        by_form: bool = False,  # noqa: ARG002 - no forms
        sample: SampleColumns = NO_SAMPLE,
    ) -> list[list[Counts]]:
        """Return the counts of all records."""
        if by or where or weights or sample.names:
            raise InputError(
                "a study's store has no rows to group, select or weigh; collect export makes a "
                "release that does"
            )
        return [self._count(names) for names in tables]

    def _count(self, names: Sequence[str]) -> list[Counts]:
        with self._open() as (study, store):
            # Read before counting, so that a record arriving meanwhile causes a new count.
            changes = store.changes()
            known = self.counted.get(tuple(names))
            if known is None or known[0] != changes:
                known = changes, self._tabulated(study, store, names)
                self.counted[tuple(names)] = known
        return [Counts.of(study.design.mechanism, known[1])]

    @contextmanager
    def _open(self) -> Iterator[tuple[Study, Records]]:
        assert self.folder is not None
        with ExitStack() as until_the_end:
            store = self.store or until_the_end.enter_context(self.folder.opened())
            yield self.folder.study, store

    def _tabulated(self, study: Study, store: Records, names: Sequence[str]) -> Tabulation:
        mechanism = study.design.mechanism
        places = {variable.position for variable in mechanism.schema.variables(names)}
        channel = Channel(mechanism, tuple(names))
        tabulator = Tabulator(channel.n_outputs)
        for packed in store.records():
            tabulator.add(channel.released_codes(unpacked(study, packed, places)))
        return tabulator.tabulation()

    @property
    def can_be_read_again(self) -> bool:
        """True: a store can be read again."""
        return True

    def first_rows(self, names: Sequence[str], most: int) -> dict[str, Rows]:
        """Return the codes of the first records."""
        pieces: list[list[NDArray[Any]]] = []
        rows = 0
        with self._open() as (study, store):
            places = [study.design.mechanism.schema.position(name) for name in names]
            for packed in store.records():
                codes = unpacked(study, packed, places)
                pieces.append([codes[i] for i in places])
                rows += len(pieces[-1][0])
                if rows >= most:
                    break
        if not pieces:
            return {}
        joined = [np.concatenate(column) for column in zip(*pieces, strict=True)]
        return {"": Rows(tuple(names), joined)}


def open_collected(path: Path) -> Collected:
    """Return the source of estimates of a study."""
    return collected_by(StudyFolder(path))


def collected_by(folder: StudyFolder, store: Records | None = None) -> Collected:
    """Return the source of estimates of a study, with its records if already read."""
    return Collected(Strata.one(folder.study.design.mechanism), folder=folder, store=store)
