"""Released rows as the input of models of synthetic tables, stratum by stratum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts, Tabulation
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.strata import Strata
from deniable.mechanism.table_map import TableMap
from deniable.models.likelihood import Likelihood, LogLinearFit, Observed, fit_log_linear
from deniable.tables.selection import Selection, Where


@dataclass(frozen=True)
class Seen:
    """Released values of some attributes in the rows of one stratum.

    ``rows``: their places among all rows, shape (n,). ``cells``: the place of each in the flat
    table of released values, shape (n,). ``counts``: rows by released value, in the shape of that
    table.
    """

    mechanism: Mechanism
    rows: NDArray[np.intp]
    cells: NDArray[np.int64]
    counts: NDArray[np.float64]


@dataclass(frozen=True)
class ReleasedRows:
    """Released rows in memory.

    ``codes``: released codes by the attributes' positions, and the forms' (see
    :class:`~deniable.estimate.counting.KeptRows`), shape (n,) each. ``chosen``: whether each row
    read is selected, shape (rows read,).
    """

    strata: Strata
    codes: Mapping[int, NDArray[Any]]
    parts: tuple[tuple[str, NDArray[np.intp]], ...]
    chosen: NDArray[np.bool_]
    selection: Selection

    @classmethod
    def read(cls, release: Release, names: Sequence[str], where: Where) -> "ReleasedRows":
        """Read the rows of a release."""
        column = release.strata.column
        rows = release.read_rows(names, texts=[] if column is None else [column], where=where)
        assert rows.chosen is not None
        chosen = rows.chosen
        parts = [("", np.arange(rows.n_rows))]
        if column is not None:
            codes, labels = rows.texts[column]
            parts = [(labels[place], np.flatnonzero(codes == place)) for place in np.unique(codes)]
        return cls(release.strata, rows.codes, tuple(parts), chosen, rows.selection)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(len(rows) for _, rows in self.parts)

    def shown(
        self, names: Sequence[str], rows: NDArray[np.intp], stratum: str
    ) -> tuple[Channel | PublishedChannel, list[NDArray[Any]]]:
        """Return the channel on some attributes, and the released codes of one stratum's rows along
        each of its axes."""
        channel = channel_of(self.strata.mechanism_of(stratum), names)
        return channel, channel.released_codes({i: c[rows] for i, c in self.codes.items()})

    def seen(self, names: Sequence[str]) -> list[Seen]:
        """Return the released values of some attributes, stratum by stratum."""
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


MAIN = 100.0
"""Standard deviation of the prior on main effects. With 3 the share of an empty category would be
nearly one standard error of the release, equally in all copies."""

_MATRIX = 1 << 22
"""Largest channel written out as a matrix: one product instead of a pass per axis and form."""


def likelihood_of(seen: Sequence[Seen], names: Sequence[str], sizes: Sequence[int]) -> Likelihood:
    """Return the likelihood of a table of some attributes, given the released values of all
    rows."""
    cells = prod(sizes)
    forwards = [channel_of(s.mechanism, names, s.counts).forward for s in seen]
    if cells * max(s.counts.size for s in seen) > _MATRIX:
        pairs = zip(forwards, seen, strict=True)
        return Likelihood((*sizes, 1), tuple(Observed(f, s.counts) for f, s in pairs))
    units = np.eye(cells).reshape(*sizes, cells)
    matrices = [forward.apply(units).reshape(-1, cells) for forward in forwards]
    maps = [TableMap((cells,), (), np.ones(()), {0: matrix}) for matrix in matrices]
    pairs = zip(maps, seen, strict=True)
    return Likelihood((cells, 1), tuple(Observed(m, s.counts.ravel()) for m, s in pairs))


def drawn_shares(
    fit: LogLinearFit, seen: Sequence[Seen], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the cells' shares at parameters drawn from their posterior, shape (cells,).

    The draw is the fit to randomly weighted rows (weighted likelihood bootstrap: Newton and Raftery
    1994). A normal law around the fit fails: where a release holds little information on a rare
    category, its share is a hundred times too large in some copies.
    """
    observed = tuple(
        Observed(
            each.forward,
            np.bincount(s.cells, weights[s.rows], s.counts.size)
            .reshape(each.counts.shape)
            .astype(np.float64),
        )
        for s, each in zip(seen, fit.likelihood.observed, strict=True)
    )
    likelihood = Likelihood(fit.likelihood.shape, observed)
    again = fit_log_linear(likelihood, fit.design, fit.names, fit.precision, fit.parameters)
    return again.probabilities.ravel()
