"""Readability of tables of shares, expected before there are data or estimated from a release.

Plans, designs, records, reports, pages and results all print a :class:`Readability`; the rule is in
:mod:`deniable.readable`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.mechanism.prediction import Target
from deniable.readable import HALF_WIDTH_ERRORS, LARGEST_READABLE, READABLE_ERRORS


def is_readable(shares: ArrayLike, standard_errors: ArrayLike) -> NDArray[np.bool_]:
    """Return which shares can be read: two of their standard errors are at most 10 points and at
    most the share itself, and the share exceeds 1 by at most as much. NaN cannot be read.
    """
    values, width = np.asarray(shares), READABLE_ERRORS * np.asarray(standard_errors)
    least = np.minimum(LARGEST_READABLE, values)
    return np.asarray((width <= least) & (values <= 1 + width), dtype=np.bool_)


@dataclass(frozen=True)
class Readability:
    """The number of readable cells of a table.

    ``standard_error``: of a cell, as a fraction of 1: the root of the mean square over cells, or
    the largest in the worst case; None if a component was destroyed.
    """

    attributes: tuple[str, ...]
    cells: int
    readable: int
    standard_error: float | None
    n_records: int
    target: Target

    @classmethod
    def of(
        cls,
        attributes: tuple[str, ...],
        shares: ArrayLike,
        standard_errors: ArrayLike,
        n_records: int,
        target: Target,
    ) -> "Readability":
        """Return the readability of a table from its cells' shares and standard errors."""
        errors = np.asarray(standard_errors, dtype=np.float64)
        readable = is_readable(shares, errors)
        known = errors[np.isfinite(errors)]
        error = math.sqrt(float(np.mean(known**2))) if known.size else None
        return cls(attributes, readable.size, int(readable.sum()), error, n_records, target)

    @property
    def half_width(self) -> float | None:
        """Half-width of a 95 % interval, as a fraction of 1: 1.96 standard errors."""
        return None if self.standard_error is None else HALF_WIDTH_ERRORS * self.standard_error

    def rows_for(self, half_width: float) -> int | None:
        """Return the least number of rows with at most this half-width; None if there is none."""
        if self.half_width is None:
            return None
        return max(1, math.ceil(self.n_records * (self.half_width / half_width) ** 2))

    @property
    def readable_from(self) -> int | None:
        """From how many rows on a share can be read if all are equally frequent; None if from
        none."""
        limit = min(LARGEST_READABLE, 1 / self.cells) / READABLE_ERRORS
        return self.rows_for(HALF_WIDTH_ERRORS * limit)

    @property
    def is_readable(self) -> bool:
        """Whether at least half of the cells can be read."""
        return 2 * self.readable >= self.cells

    def to_plain(self, within: float | None = None) -> dict[str, Any]:
        """Return plain values; with a requested half-width also the rows that it needs."""
        needed = {} if within is None else {"rows_needed": self.rows_for(within)}
        return {
            "attributes": list(self.attributes),
            "cells": self.cells,
            "readable": self.readable,
            "standard_error": self.standard_error,
            "half_width": self.half_width,
            "rows": self.n_records,
            "readable_from": self.readable_from,
            "target": self.target,
            **needed,
        }
