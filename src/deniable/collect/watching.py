"""What the steward of a running study sees: totals, shares, whether the records can be honest."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

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

MOST_CELLS = 1_000
"""Cells of a table that is shown; more are for ``deniable estimate``."""


@dataclass(frozen=True)
class Cell:
    """A share, and what is known of it.

    Args:
        labels: the categories, one for each attribute.
        share: its unbiased estimate.
        low, high: ends of its interval of 95 %.
        margin: 1.96 standard errors: what the interval reaches to either side, where it does not
            end at 0 or 1.
        leverage: by how much at most m false records among n move it, times n/m.
    """

    labels: tuple[str, ...]
    share: float
    low: float
    high: float
    margin: float
    leverage: float


@dataclass(frozen=True)
class Shown:
    """A table of one attribute or two.

    Args:
        attributes: their names.
        n_records: records behind it.
        cells: in the order of their categories.
    """

    attributes: tuple[str, ...]
    n_records: int
    cells: tuple[Cell, ...]

    def needed(self, margin: float) -> int:
        """Return about how many records make every interval reach at most so far to either side:
        margins shrink with the square root of the number of records.

        Args:
            margin: the wished one, above 0.
        """
        widest = max(cell.margin for cell in self.cells)
        return math.ceil(self.n_records * (widest / margin) ** 2)


def leverage(channel: Channel) -> NDArray[np.float64]:
    """Return by how much a record can move each estimated share, times the number of records.

    An estimated share is the mean of what each record adds to it, which depends on its released
    values alone. So m records of n that somebody made up move it by at most m/n times the largest
    difference of two such summands: 1/φ for one attribute under a pattern law.

    Args:
        channel: on the attributes that are estimated.

    >>> from deniable import Schema, design
    >>> mechanism = design(Schema.anonymous((2,)), epsilon=math.log(3)).mechanism
    >>> leverage(Channel(mechanism, ("a1",))).round(3).tolist()
    [2.0, 2.0]
    """
    outputs = prod(channel.n_outputs)
    summands = channel.inverse.apply(np.eye(outputs).reshape(*channel.n_outputs, outputs))
    return np.asarray(summands.max(axis=-1) - summands.min(axis=-1))


@dataclass
class Watch:
    """Looks at a running study; counts again only what has changed.

    Args:
        folder: the study's.
        store: its store.
    """

    folder: StudyFolder
    store: Store
    _collected: Collected = field(init=False)
    _origin: tuple[tuple[int, int], Origin | None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._collected = collected_by(self.folder, self.store)

    def totals(self) -> Totals:
        """Return what the store holds, in numbers."""
        return self.store.totals()

    def table(self, names: Sequence[str], target: Target = "population") -> Shown:
        """Estimate the shares of one attribute, or of the combinations of two.

        Args:
            names: the attributes, parts of merged ones too.
            target: whose shares: of those who answered (``table``), or of the ``population`` that
                they are a sample of.

        Raises:
            InputError: if there are no records, a name is unknown or twice, or the table is larger
                than what is shown.
        """
        channel = Channel(self.folder.study.design.mechanism, tuple(names))
        if prod(channel.n_categories) > MOST_CELLS:
            raise InputError(
                f"this table has {prod(channel.n_categories):,} cells; deniable estimate writes it"
            )
        (estimate,) = Shares(tuple(names), target=target).ask(self._collected)
        return Shown(tuple(names), estimate.n_records, tuple(_cells(estimate, channel)))

    def origin(self) -> Origin | None:
        """Return whether the records can come from honest draws; None where nothing can be told."""
        changes = self.store.changes()
        if self._origin is None or self._origin[0] != changes:
            self._origin = changes, find_origin(self._collected)
        return self._origin[1]


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
