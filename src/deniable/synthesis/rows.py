"""Released rows as models of synthetic tables look at them, stratum by stratum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.strata import Strata
from deniable.models.likelihood import Likelihood, Observed


@dataclass(frozen=True)
class Seen:
    """What the rows of one stratum show of some attributes.

    Args:
        mechanism: of the stratum.
        rows: their places among all rows, shape (n,).
        cells: the place of each in the flat table of released values, shape (n,).
        counts: how many show each, shape of the released values.
    """

    mechanism: Mechanism
    rows: NDArray[np.intp]
    cells: NDArray[np.int64]
    counts: NDArray[np.float64]


@dataclass(frozen=True)
class ReleasedRows:
    """Released rows in memory.

    Args:
        strata: what randomized them.
        codes: released codes by the attributes' positions, and the forms' (see
            :class:`~deniable.estimate.counting.KeptRows`), shape (n,) each.
        parts: of every stratum its value and the places of its rows.
        chosen: which of the rows that were read these are, shape (rows read,).
    """

    strata: Strata
    codes: Mapping[int, NDArray[Any]]
    parts: tuple[tuple[str, NDArray[np.intp]], ...]
    chosen: NDArray[np.bool_]

    @classmethod
    def read(
        cls, release: Release, names: Sequence[str], where: Mapping[str, str]
    ) -> "ReleasedRows":
        """Read the rows of a release.

        Args:
            release: to read.
            names: attributes.
            where: kept columns and the one value to select rows by.

        Raises:
            InputError: if they cannot be read, or none is left.
        """
        column = release.strata.column
        texts = list(dict.fromkeys([*where, *([] if column is None else [column])]))
        rows = release.read_rows(names, texts=texts)
        chosen = np.ones(rows.n_rows, dtype=bool)
        for name, value in where.items():
            codes, labels = rows.texts[name]
            chosen &= codes == (labels.index(value) if value in labels else -1)
        if not chosen.any():
            raise InputError("there is no row to synthesize from")
        rows = rows.where(chosen)
        parts = [("", np.arange(rows.n_rows))]
        if column is not None:
            codes, labels = rows.texts[column]
            parts = [(labels[place], np.flatnonzero(codes == place)) for place in np.unique(codes)]
        return cls(release.strata, rows.codes, tuple(parts), chosen)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(len(rows) for _, rows in self.parts)

    def shown(
        self, names: Sequence[str], rows: NDArray[np.intp], stratum: str
    ) -> tuple[Channel | PublishedChannel, list[NDArray[Any]]]:
        """Return the channel on some attributes, and what rows of one stratum show along each of
        its axes of released values."""
        channel = channel_of(self.strata.mechanism_of(stratum), names)
        return channel, channel.released_codes({i: c[rows] for i, c in self.codes.items()})

    def seen(self, names: Sequence[str]) -> list[Seen]:
        """Return what the rows show of some attributes, stratum by stratum.

        Raises:
            InputError: if a row is not of this release.
        """
        found = []
        for stratum, rows in self.parts:
            channel, axes = self.shown(names, rows, stratum)
            cells = np.zeros(len(rows), dtype=np.int64)
            for size, column in zip(channel.n_outputs, axes, strict=True):
                cells = cells * size + column
            counts = np.bincount(cells, minlength=prod(channel.n_outputs))
            found.append(
                Seen(
                    channel.mechanism,
                    rows,
                    cells,
                    counts.reshape(channel.n_outputs).astype(np.float64),
                )
            )
        return found

    def counts(self, names: Sequence[str]) -> Counts:
        """Return the rows counted by some attributes."""
        parts = tuple((s.mechanism, Tabulation.from_counts(s.counts)) for s in self.seen(names))
        return Counts(parts, column=self.strata.column)


def likelihood_of(seen: Sequence[Seen], names: Sequence[str], sizes: Sequence[int]) -> Likelihood:
    """Return the likelihood of a table of some attributes, given what all rows show of them."""
    observed = tuple(
        Observed(channel_of(s.mechanism, names, s.counts).forward, s.counts) for s in seen
    )
    return Likelihood((*sizes, 1), observed)
