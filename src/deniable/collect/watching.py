"""What the steward of a running study sees: totals, shares, whether the records can be honest.

All of it is shown in batches of ten records and more. Whoever saw the page before and after a
single record would know what was sent: the category whose share rose.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.atomic_files import write_file
from deniable.collect.counting import Collected, collected_by
from deniable.collect.folder import StudyFolder
from deniable.collect.questionnaire import plain_labels
from deniable.collect.store import Store, Totals
from deniable.errors import InputError
from deniable.estimate.consistency import Origin, find_origin
from deniable.estimate.inference import normal_quantile
from deniable.estimate.shares import Estimate, Shares
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import Target
from deniable.mechanism.readability import Readability
from deniable.strict_json import from_json

BATCH = 10
"""New records at least that come to be shown together."""

MOST_CELLS = 1_000
"""Cells of a table that is shown; more are for ``deniable estimate``."""


@dataclass(frozen=True)
class Cell:
    """A share, and what is known of it."""

    labels: tuple[str, ...]
    share: float
    low: float
    high: float
    margin: float
    leverage: float


@dataclass(frozen=True)
class Shown:
    """A table of one attribute or two."""

    attributes: tuple[str, ...]
    n_records: int
    cells: tuple[Cell, ...]
    readability: Readability

    def needed(self, margin: float) -> int:
        """Return about how many records make every interval reach at most so far to either side:
        margins shrink with the square root of the number of records.

        ``margin``: the wished one, above 0.
        """
        widest = max(cell.margin for cell in self.cells)
        return math.ceil(self.n_records * (widest / margin) ** 2)


def leverage(channel: Channel) -> NDArray[np.float64]:
    """Return by how much a record can move each estimated share, times the number of records.

    An estimated share is the mean of what each record adds to it, which depends on its released
    values alone. So m records of n that somebody made up move it by at most m/n times the largest
    difference of two such summands: 1/φ for one attribute under a pattern law.

    >>> from deniable import Schema, design
    >>> mechanism = design(Schema.anonymous((2,)), epsilon=math.log(3)).mechanism
    >>> leverage(Channel(mechanism, ("a1",))).round(3).tolist()
    [2.0, 2.0]
    """
    outputs = prod(channel.n_outputs)
    summands = channel.inverse.apply(np.eye(outputs).reshape(*channel.n_outputs, outputs))
    return np.asarray(summands.max(axis=-1) - summands.min(axis=-1))


@dataclass(frozen=True)
class Batch:
    """What a store held at one moment."""

    folder: StudyFolder
    totals: Totals
    taken: int
    withdrawn: int
    packed: tuple[NDArray[np.uint8], ...]

    def changes(self) -> tuple[int, int]:
        """Return how many records were ever taken and taken back."""
        return self.taken, self.withdrawn

    def records(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the packed records in batches, shape (n, bytes)."""
        yield from self.packed

    @cached_property
    def _collected(self) -> Collected:
        return collected_by(self.folder, self)

    def table(self, names: Sequence[str], target: Target = "population") -> Shown:
        """Estimate the shares of one attribute, or of the combinations of two."""
        channel = Channel(self.folder.study.design.mechanism, tuple(names))
        if prod(channel.n_categories) > MOST_CELLS:
            raise InputError(
                f"this table has {prod(channel.n_categories):,} cells; deniable estimate writes it"
            )
        (estimate,) = Shares(tuple(names), target=target).ask(self._collected)
        cells = tuple(_cells(estimate, channel))
        return Shown(tuple(names), estimate.n_records, cells, estimate.readability)

    @cached_property
    def origin(self) -> Origin | None:
        """Whether the records can come from honest draws; None where nothing can be told."""
        return find_origin(self._collected)


class Watch:
    """Looks at a running study, a batch of records at a time.

    Which batch was shown last is remembered in the study's folder, so that a server that is started
    anew does not show one more record than the one before it.
    """

    def __init__(self, folder: StudyFolder, store: Store) -> None:
        self.folder, self._store = folder, store
        self._batch: Batch | None = None
        self._file = folder.path / "steward.shown"

    def batch(self) -> Batch | None:
        """Return what is shown: the last batch, or a new one if enough records have come since;
        None as long as there are too few."""
        changes = self._store.changes()
        last = self._last() if self._batch is None else self._batch.changes()
        is_known = self._batch is None and changes == last and changes != (0, 0)
        if changes[0] - last[0] >= BATCH or is_known:
            packed = tuple(self._store.records())
            totals = self._store.totals()
            # Read after the records: none that comes later was counted, so the next batch has as
            # many again.
            taken, withdrawn = self._store.changes()
            write_file(
                self._file,
                json.dumps({"taken": taken, "withdrawn": withdrawn}).encode(),
                overwrite=True,
                private=True,
            )
            totals = Totals(
                sum(map(len, packed)), withdrawn, totals.invitations, totals.spent, totals.closed
            )
            self._batch = Batch(self.folder, totals, taken, withdrawn, packed)
        return self._batch

    def _last(self) -> tuple[int, int]:
        try:
            known: Any = from_json(self._file.read_bytes())
            return int(known["taken"]), int(known["withdrawn"])
        except FileNotFoundError:
            return 0, 0
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{self._file}: this is not what the steward's page has written; remove it"
            ) from None


def _cells(estimate: Estimate, channel: Channel) -> list[Cell]:
    low, high = estimate.confidence_interval(0.95)
    leverages = leverage(channel)
    shown = [variable.attribute for variable in channel.variables]
    labels = [plain_labels(each) for each in shown]
    return [
        Cell(
            tuple(labels[axis][place] for axis, place in enumerate(index)),
            float(estimate.unbiased[index]),
            float(low[index]),
            float(high[index]),
            normal_quantile(0.95) * float(estimate.standard_error[index]),
            float(leverages[index]),
        )
        for index in np.ndindex(estimate.unbiased.shape)
    ]
