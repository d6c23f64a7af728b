"""The numbers of a running study for its steward: totals, shares, a test of honest draws.

They change in batches of at least ten records: a page before and after a single record would reveal
the record, as the category whose share rose.
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
"""Least number of new records in a batch."""

MOST_CELLS = 1_000
"""Most cells of a table on the page."""


@dataclass(frozen=True)
class Cell:
    """An estimated share with its interval, margin and leverage."""

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
        """Return the approximate number of records for which every half-width is at most ``margin``
        (above 0): half-widths shrink with the square root of the number of records."""
        widest = max(cell.margin for cell in self.cells)
        return math.ceil(self.n_records * (widest / margin) ** 2)


def leverage(channel: Channel) -> NDArray[np.float64]:
    """Return the most that a record can move each estimated share, times the number of records.

    An estimated share is a mean of summands that depend on the released values alone. So m forged
    records of n move it by at most m/n times the largest difference of two summands: 1/φ for one
    attribute under a pattern law.
    """
    outputs = prod(channel.n_outputs)
    summands = channel.inverse.apply(np.eye(outputs).reshape(*channel.n_outputs, outputs))
    return np.asarray(summands.max(axis=-1) - summands.min(axis=-1))


@dataclass(frozen=True)
class Batch:
    """The content of a store at one moment."""

    folder: StudyFolder
    totals: Totals
    taken: int
    withdrawn: int
    packed: tuple[NDArray[np.uint8], ...]

    def changes(self) -> tuple[int, int]:
        """Return the total numbers of accepted and of withdrawn records."""
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
                f"this table has {prod(channel.n_categories):,} cells, more than {MOST_CELLS:,}; "
                "use deniable estimate"
            )
        (estimate,) = Shares(tuple(names), target=target).run(self._collected)
        cells = tuple(_cells(estimate, channel))
        return Shown(tuple(names), estimate.n_records, cells, estimate.readability)

    @cached_property
    def origin(self) -> Origin | None:
        """Test of honest draws; None if the law does not allow one."""
        return find_origin(self._collected)


class Watch:
    """Batches of records of a running study.

    The last batch is noted in the study's folder, so that a restarted server does not show one more
    record than before.
    """

    def __init__(self, folder: StudyFolder, store: Store) -> None:
        self.folder, self._store = folder, store
        self._batch: Batch | None = None
        self._file = folder.path / "steward.shown"

    def batch(self) -> Batch | None:
        """Return the last batch, or a new one after enough further records; None if there are too
        few."""
        changes = self._store.changes()
        last = self._last() if self._batch is None else self._batch.changes()
        is_known = self._batch is None and changes == last and changes != (0, 0)
        if changes[0] - last[0] >= BATCH or is_known:
            packed = tuple(self._store.records())
            totals = self._store.totals()
            # Read after the records, so that the next batch has at least as many again.
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
                f"{self._file}: not a valid file of the steward's page; remove it"
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
