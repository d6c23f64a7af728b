"""Rows from the log-linear model of all pairs.

The model of a table of at most 100,000 cells has all main effects and pairs
(:mod:`deniable.models.smoothing`). The parameters of every copy are drawn from their posterior
(:func:`~deniable.synthesis.rows.drawn_shares`), then rows from the resulting shares π, or the true
cell x of every released row y with probability π(x) M[y, x]/θ(y).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.mechanism.published import channel_of
from deniable.models.cells import Axis, Cells, interactions
from deniable.models.formula import check_size, prior_precision
from deniable.models.hypotheses import goodness_of_fit
from deniable.models.likelihood import LogLinearFit, fit_log_linear
from deniable.randomness import BitSource
from deniable.synthesis.drawing import Choices, code_type, exponentials
from deniable.synthesis.rows import MAIN, ReleasedRows, Seen, drawn_shares, likelihood_of

MOST_CELLS = 100_000
"""Largest table under the model of all pairs."""

_BLOCK = 1 << 22
"""Cells times released values processed together."""


@dataclass(frozen=True)
class PairsModel:
    """The model of all pairs of some attributes, fitted to released rows."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    fit: LogLinearFit
    seen: tuple[Seen, ...]

    kind: ClassVar[str] = "pairs"

    @classmethod
    def fitted(cls, rows: ReleasedRows, names: Sequence[str]) -> "PairsModel":
        """Fit the model."""
        attributes = [v.attribute for v in rows.strata.schema.variables(names)]
        return cls.of_seen(names, [a.categories for a in attributes], lambda: rows.seen(names))

    @classmethod
    def of_seen(
        cls,
        names: Sequence[str],
        categories: Sequence[Sequence[str]],
        shown: Callable[[], Sequence[Seen]],
    ) -> "PairsModel":
        """Fit the model to rows that are counted only if the table is small enough."""
        axes = (Axis(n, tuple(c)) for n, c in zip(names, categories, strict=True))
        cells = Cells(tuple(axes), len(names))
        if cells.n_cells > MOST_CELLS:
            raise InputError(
                f"the table of {', '.join(names)} has {cells.n_cells:,} cells, and the model of "
                f"all pairs takes at most {MOST_CELLS:,}; name fewer attributes, or use a tree"
            )
        within = sum(
            prod(s - 1 for s in chosen)
            for size in (1, 2)
            for chosen in combinations(cells.sizes, size)
        )
        check_size(cells, within, "all pairs")
        seen = shown()
        for pair in combinations(names, min(2, len(names))):
            for part in seen:
                channel_of(part.mechanism, pair).check(len(part.rows))
        columns = interactions(cells, range(len(names)), 2)
        fit = fit_log_linear(
            likelihood_of(seen, names, cells.sizes),
            columns.values,
            columns.names,
            prior_precision(columns, MAIN),
        )
        return cls(tuple(names), cells.sizes, fit, tuple(seen))

    def to_plain(self) -> dict[str, Any]:
        """Return the model's assumptions as plain values."""
        test = goodness_of_fit(self.fit)
        return {
            "kind": self.kind,
            "attributes": list(self.names),
            "cells": prod(self.sizes),
            "parameters": len(self.fit.parameters),
            "pairs": [list(pair) for pair in combinations(self.names, 2)],
            "independent": [],
            "test": None if test is None else test.to_plain(),
        }

    def drawn(self, copies: int, n_rows: int, bits: BitSource) -> NDArray[np.float64]:
        """Return the cells' shares at drawn parameters of every copy, shape (copies, cells)."""
        weights = (exponentials(n_rows, bits) for _ in range(copies))
        return np.stack([drawn_shares(self.fit, self.seen, each) for each in weights])

    def synthetic(self, copies: int, n_rows: int, bits: BitSource) -> NDArray[Any]:
        """Return new rows of several copies, shape (copies, attributes, rows)."""
        drawn = self.drawn(copies, n_rows, bits)
        choices = Choices(drawn)
        same = np.zeros(n_rows, dtype=np.int64)
        return self._codes(np.stack([choices.draw(same + copy, bits) for copy in range(copies)]))

    def imputed(self, copies: int, n_rows: int, bits: BitSource) -> NDArray[Any]:
        """Return true values of the released rows, drawn given the release, shape (copies,
        attributes, rows)."""
        drawn = self.drawn(copies, n_rows, bits)
        cells = np.zeros((copies, n_rows), dtype=np.int64)
        for part, observed in zip(self.seen, self.fit.likelihood.observed, strict=True):
            back = observed.forward.transposed()
            shown, which = np.unique(part.cells, return_inverse=True)
            order = np.argsort(which, kind="stable")
            starts = np.searchsorted(which[order], np.arange(len(shown) + 1))
            step = max(1, _BLOCK // drawn.shape[1])
            for first in range(0, len(shown), step):
                block = shown[first : first + step]
                units = np.zeros((part.counts.size, len(block)))
                units[block, np.arange(len(block))] = 1.0
                units = units.reshape(*observed.counts.shape, len(block))
                likely = back.apply(units).reshape(-1, len(block)).T
                mine = order[starts[first] : starts[min(first + step, len(shown))]]
                for copy in range(copies):
                    choices = Choices(np.maximum(likely, 0.0) * drawn[copy])
                    cells[copy, part.rows[mine]] = choices.draw(which[mine] - first, bits)
        return self._codes(cells)

    def _codes(self, cells: NDArray[np.int64]) -> NDArray[Any]:
        found = np.empty((len(cells), len(self.sizes), cells.shape[1]), code_type(self.sizes))
        for axis in reversed(range(len(self.sizes))):
            cells, found[:, axis] = np.divmod(cells, self.sizes[axis])
        return found
