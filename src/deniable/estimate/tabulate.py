"""Counts of released records: of one stratum, and of a whole table.

The stratum of every row is known, because the column that forms strata is released unchanged. With
π_h the true table of stratum h and W_h its fraction of the weight, π = Σ_h W_h π_h; every estimate
is such a sum, of one term if the table is not divided.

Why sums over records become sums over strata: docs/proofs/estimation.md, Theorem 5.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.survey import ClusterCells
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.stacked_map import StackedMap
from deniable.mechanism.table_map import TableMap
from deniable.schema import Schema
from deniable.tables.selection import Selection

Floats = NDArray[np.float64]

MAX_CELLS = 1 << 28
"""Most cells: one table then takes 2 GiB, and estimation needs several."""


@dataclass(frozen=True)
class Tabulation:
    """Released records counted by the values of some attributes.

    ``counts``: sum of the records' weights per cell (their number if unweighted), any shape.
    ``squares``: sum of the squared weights per cell, the same shape; None if unweighted.
    ``clusters``: the same by cluster of a survey.
    """

    counts: Floats
    squares: Floats | None
    n_records: int
    clusters: ClusterCells | None = None

    def __post_init__(self) -> None:
        arrays = [self.counts] if self.squares is None else [self.counts, self.squares]
        for array in arrays:
            if not (np.all(np.isfinite(array)) and array.min(initial=0) >= 0):
                raise InputError("counts and weights must be finite and not negative")
        if self.total <= 0:
            raise InputError("there are no records to estimate from, or all their weights are 0")

    @classmethod
    def from_counts(cls, counts: NDArray[Any]) -> "Tabulation":
        """Return the tabulation of unweighted records that are already counted."""
        values = np.asarray(counts, dtype=np.float64)
        if np.any(values != np.floor(values)):
            raise InputError("counts must be whole numbers of records")
        return cls(values, None, int(values.sum()) if np.all(np.isfinite(values)) else 0)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.counts.sum())

    @property
    def frequencies(self) -> Floats:
        """θ: fraction of the total weight per cell."""
        return self.counts / self.total

    @property
    def square_frequencies(self) -> Floats:
        """θ₂: sum of squared weights per cell over the squared total weight; θ/n if unweighted."""
        squares = self.counts if self.squares is None else self.squares
        return np.asarray(squares / self.total**2)

    @property
    def n_effective(self) -> float:
        """(Σw)²/Σw², the effective number of records."""
        if self.squares is None:
            return self.total
        return float(self.total**2 / self.squares.sum())

    def mapped(self, change: Callable[[Floats], Floats]) -> "Tabulation":
        """Return the same records with their counts, and the squares, put into another table,
        without clusters."""
        squares = None if self.squares is None else change(self.squares)
        return Tabulation(change(self.counts), squares, self.n_records)

    def margin(self, axes: Sequence[int]) -> "Tabulation":
        """Return the table of fewer attributes, with its axes in the order given."""
        rest = tuple(axis for axis in range(self.counts.ndim) if axis not in axes)
        order = np.argsort(np.argsort(axes))
        return self.mapped(lambda table: np.transpose(table.sum(axis=rest), order))


@dataclass(frozen=True)
class Counts:
    """Released records counted by the values of some attributes, stratum by stratum.

    ``parts``: the mechanism and the counts of every stratum that has rows; counts have one shape.
    ``cluster_strata``: of a survey, the stratum of every cluster.
    """

    parts: tuple[tuple[Mechanism, Tabulation], ...]
    group: tuple[tuple[str, str], ...] = ()
    column: str | None = None
    selection: Selection = field(default=Selection(), compare=False)
    cluster_strata: NDArray[np.int64] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError("there are no records to estimate from")
        refuse_randomized(self.schema, [name for name, _ in self.group])

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        counted: Tabulation | NDArray[Any],
        group: Sequence[tuple[str, str]] = (),
    ) -> "Counts":
        """Return the counts of rows that were all randomized by one mechanism."""
        if not isinstance(counted, Tabulation):
            counted = Tabulation.from_counts(counted)
        return cls(((mechanism, counted),), tuple(group))

    @property
    def schema(self) -> Schema:
        """The schema of all strata."""
        return self.parts[0][0].schema

    @property
    def survey_degrees_of_freedom(self) -> int:
        """Clusters less strata of a survey."""
        assert self.cluster_strata is not None
        return len(self.cluster_strata) - len(np.unique(self.cluster_strata))

    @property
    def n_records(self) -> int:
        """Rows of all strata."""
        return sum(tabulation.n_records for _, tabulation in self.parts)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return sum(tabulation.total for _, tabulation in self.parts)

    @property
    def fractions(self) -> tuple[float, ...]:
        """W_h: each stratum's fraction of the weight."""
        return tuple(tabulation.total / self.total for _, tabulation in self.parts)

    @property
    def square_weight(self) -> float:
        """Σw²/(Σw)² over all records: 1/n without weights."""
        parts = zip(self.fractions, self.parts, strict=True)
        return sum(fraction**2 / part.n_effective for fraction, (_, part) in parts)

    @property
    def frequencies(self) -> Floats:
        """Fraction of the total weight per released cell."""
        parts = zip(self.fractions, self.parts, strict=True)
        return np.asarray(sum(fraction * part.frequencies for fraction, (_, part) in parts))


def refuse_randomized(schema: Schema, columns: Sequence[str]) -> None:
    """Refuse to select rows by a column that is randomized."""
    for name in columns:
        if name in schema.keep:
            continue
        schema.variable(name)
        raise InputError(
            f"rows cannot be selected by '{name}': its values are randomized, so the rows that "
            "show a value are not the people who have it, and estimates from them would be wrong; "
            f"use subgroups instead (by '{name}')"
        )


class Tabulator:
    """Adds up batches of released records.

    ``n_outputs``: values of every attribute counted: the shape of the table.
    """

    def __init__(self, n_outputs: Sequence[int], *, weighted: bool = False) -> None:
        self.n_outputs = tuple(int(n) for n in n_outputs)
        self._cells = prod(self.n_outputs)
        if self._cells > MAX_CELLS:
            raise InputError(
                f"a joint table of these attributes has {self._cells} cells, more than "
                f"{MAX_CELLS}; name fewer attributes"
            )
        self._counts = np.zeros(self._cells)
        self._squares = np.zeros(self._cells) if weighted else None
        self._n_records = 0
        self._clusters: list[ClusterCells] = []

    def add(
        self,
        columns: Sequence[NDArray[Any]],
        weights: Floats | None = None,
        *,
        records: Floats | None = None,
        squares: Floats | None = None,
        clusters: NDArray[np.int64] | None = None,
    ) -> None:
        """Count one batch.

        ``columns``: one array of codes per attribute, in the table's order, shape (n,).
        ``weights``: one weight per row, not negative, shape (n,); given if and only if the
        tabulator was made for weights. ``records``: number of records per row, shape (n,), if
        they were counted before; its weight is then the sum of theirs. ``squares``: the
        sums of the squares of their weights, shape (n,), if so. ``clusters``: of a survey, shape
        (n,).
        """
        cells = np.zeros(len(columns[0]), dtype=np.int64)
        for codes, n in zip(columns, self.n_outputs, strict=True):
            cells *= n
            cells += codes
        before = self._n_records
        if records is None:
            self._n_records += len(cells)
        else:
            if not np.all(np.isfinite(records) & (records >= 0) & (records == np.floor(records))):
                raise InputError("counts must be whole numbers of records, and not negative")
            self._n_records += int(records.sum())
        if clusters is not None:
            each = np.ones(len(cells)) if weights is None else weights
            self._clusters.append(ClusterCells(clusters, cells, each).merged())
        if self._squares is None:
            self._accumulate(self._counts, cells, records)
            return
        if weights is None:
            raise TypeError("this tabulator was made for weighted records")
        weights = np.asarray(weights, dtype=np.float64)
        if not (np.all(np.isfinite(weights)) and weights.min(initial=0) >= 0):
            row = int(np.argmin(np.isfinite(weights) & (weights >= 0)))
            raise InputError(
                f"the weight of record {before + row + 1} is negative or not a finite number"
            )
        self._accumulate(self._counts, cells, weights)
        self._accumulate(self._squares, cells, weights**2 if squares is None else squares)

    def _accumulate(self, totals: Floats, cells: NDArray[np.int64], weights: Floats | None) -> None:
        if self._cells <= 4 * len(cells):
            totals += np.bincount(cells, weights, minlength=self._cells)
            return
        # A batch far smaller than the table: touch only the cells that occur in it.
        occurring, place = np.unique(cells, return_inverse=True)
        totals[occurring] += np.bincount(place, weights, minlength=len(occurring))

    def tabulation(self) -> Tabulation:
        """Return the counts of all batches so far."""
        squares = None if self._squares is None else self._squares.reshape(self.n_outputs).copy()
        clusters = ClusterCells.of(self._clusters) if self._clusters else None
        counts = self._counts.reshape(self.n_outputs).copy()
        return Tabulation(counts, squares, self._n_records, clusters)


def less_mean(influence: Floats, frequencies: Floats, inverse: TableMap | StackedMap) -> Floats:
    """Return centred contributions of released values to linear functions.

    Under forms they are centred within each form, whose number of rows is known
    (docs/proofs/forms.md, section 1).

    ``influence``: shape (functions, outputs); a kept column that is carried along is the last axis
    of the outputs. ``frequencies``: θ, shape (outputs,).
    """
    ends = [frequencies.size]
    if isinstance(inverse, StackedMap):
        stacked = np.cumsum([prod(shape) for shape in inverse.shapes])
        ends = (stacked * (frequencies.size // int(stacked[-1]))).tolist()
    centred = np.empty_like(influence)
    start = 0
    for end in ends:
        own = frequencies[start:end]
        mean = influence[:, start:end] @ own / (float(own.sum()) or 1.0)  # 0 of a form without rows
        centred[:, start:end] = influence[:, start:end] - mean[:, None]
        start = end
    return centred
