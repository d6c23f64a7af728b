"""What to expect of the tables that people want, before there are data.

As in :mod:`deniable.design.expected_accuracy` what is estimated are the shares in the very table
that is randomized (target ``table``), so that for even shares the figures are those that ``design
--rows`` prints. Under a pattern law the mean square error of a table does not depend on the truth;
which of its cells can be used does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable._checks import typed
from deniable.design.account import Design
from deniable.design.expected_accuracy import HALF_WIDTH_ERRORS, LARGEST_ERROR, EvenTables
from deniable.errors import InputError
from deniable.mechanism.prediction import cell_variances, expected_error
from deniable.mechanism.published import channel_of
from deniable.schema import Schema
from deniable.schema.names import split_names

MOST_ATTRIBUTES = 3
MOST_CELLS = 10**6

Assumed = Literal["uniform", "worst"] | Mapping[str, Sequence[float]]
"""What is taken to be true: even shares, the worst of all tables, or shares by attribute."""

_Z = NormalDist().inv_cdf(0.975)
"""Standard errors to either side of an estimate that hold 95 %."""

_SUM = 1e-6
"""By how much shares may miss 1 together."""


@dataclass(frozen=True)
class ExpectedTable:
    """What to expect of one table.

    Args:
        attributes: their names, or those of parts of merged ones.
        cells: how many shares it has.
        n_records: rows that it is estimated from.
        standard_error: of a cell, as a fraction of 1: the root of the mean square over cells, or
            the largest where the worst was assumed; None if the randomization wipes something out.
        uncertain: how many cells are too uncertain to use: twice their standard error is more than
            10 points, or than the share itself; the share is even where the worst was assumed.
    """

    attributes: tuple[str, ...]
    cells: int
    n_records: int
    standard_error: float | None
    uncertain: int

    @property
    def half_width(self) -> float | None:
        """Of an interval of 95 %, as a fraction of 1: 1.96 standard errors."""
        return None if self.standard_error is None else _Z * self.standard_error

    def rows_for(self, half_width: float) -> int | None:
        """Return from how many rows on the half-width is at most this; None if from none."""
        if self.half_width is None:
            return None
        return max(1, math.ceil(self.n_records * (self.half_width / half_width) ** 2))

    def to_plain(self, within: float | None = None) -> dict[str, Any]:
        """Return plain values; with a wished half-width also the rows that it takes."""
        needed = {} if within is None else {"rows_needed": self.rows_for(within)}
        return {
            "attributes": list(self.attributes),
            "cells": self.cells,
            "standard_error": self.standard_error,
            "half_width": self.half_width,
            "uncertain": self.uncertain,
            **needed,
        }


@typed
def expected_tables(
    design: Design,
    tables: Sequence[str | Sequence[str]],
    n_records: int,
    assume: Assumed = "uniform",
) -> tuple[ExpectedTable, ...]:
    """Return how accurate tables from a release by a design will be.

    Args:
        design: of any method.
        tables: of each one to three names of attributes or of parts of merged ones, as a sequence,
            or as one text as for a shell (``"race,hhi"``).
        n_records: rows that are randomized.
        assume: what the true table is: ``uniform``, all cells equally frequent; ``worst``, the one
            with the largest standard error of a cell; or shares by attribute, from elsewhere and
            not from the data, whose product it is. Attributes that are not named are uniform.

    Raises:
        InputError: if there are no rows, a table cannot be asked for, or shares are none.

    Examples:
        >>> import deniable
        >>> plan = deniable.design(deniable.Schema.anonymous((2, 3)), epsilon=3, method="kronecker")
        >>> tables = deniable.expected_tables(plan, ["a1", "a1,a2"], 1000)
        >>> [(t.cells, round(t.half_width, 3), t.uncertain) for t in tables]
        [(2, 0.038, 0), (6, 0.048, 0)]
        >>> rare = {"a1": [0.98, 0.02]}
        >>> deniable.expected_tables(plan, ["a1"], 1000, rare)[0].uncertain
        1
    """
    if n_records < 1:
        raise InputError("the number of rows must be at least 1")
    schema = design.mechanism.schema
    if isinstance(assume, str) and assume not in ("uniform", "worst"):
        raise InputError(
            f"what is assumed is uniform, worst or shares by attribute, not '{assume}'"
        )
    typed = {} if isinstance(assume, str) else checked_shares(schema, assume)
    even = EvenTables(design.account)
    return tuple(
        _expected(even, checked_names(schema, table), n_records, typed, worst=assume == "worst")
        for table in tables
    )


def checked_names(schema: Schema, table: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of a table.

    Raises:
        InputError: if it cannot be asked for.

    >>> checked_names(Schema.anonymous((2, 3)), "a2, a1")
    ('a2', 'a1')
    """
    names = tuple(split_names(table) if isinstance(table, str) else table)
    if not 1 <= len(names) <= MOST_ATTRIBUTES:
        raise InputError(
            f"a table is of one to {MOST_ATTRIBUTES} attributes, and {len(names)} were named "
            f"({', '.join(names)})"
        )
    cells = math.prod(each.attribute.n_categories for each in schema.variables(names))
    if cells > MOST_CELLS:
        raise InputError(
            f"a table of {', '.join(names)} has {cells:,} cells, more than {MOST_CELLS:,}; ask for "
            "tables of fewer attributes"
        )
    return names


def checked_shares(
    schema: Schema, shares: Mapping[str, Sequence[float]]
) -> dict[str, NDArray[np.float64]]:
    """Return shares that are assumed, by attribute.

    Raises:
        InputError: if they are no shares of its categories.

    >>> checked_shares(Schema.anonymous((2, 3)), {"a1": [0.25, 0.75]})
    {'a1': array([0.25, 0.75])}
    """
    checked = {}
    for name, values in shares.items():
        count = schema.variable(name).attribute.n_categories
        try:
            array = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"the shares assumed of '{name}' are not all numbers") from None
        if array.shape != (count,):
            raise InputError(
                f"'{name}' has {count} categories, and {array.size} shares were given; give one "
                "for each, in the schema's order"
            )
        if not (array >= 0).all() or not abs(array.sum() - 1) <= _SUM:
            raise InputError(
                f"the shares assumed of '{name}' must be 0 or more and add up to 1, and they add "
                f"up to {array.sum():g}"
            )
        checked[name] = array
    return checked


def _expected(
    even: EvenTables,
    names: tuple[str, ...],
    n_records: int,
    typed: Mapping[str, NDArray[np.float64]],
    *,
    worst: bool,
) -> ExpectedTable:
    mechanism = even.account.design.mechanism
    sizes = [each.attribute.n_categories for each in mechanism.schema.variables(names)]
    cells = math.prod(sizes)
    alike = not worst and not any(name in typed for name in names)
    variances: float | NDArray[np.float64]
    share: float | NDArray[np.float64] = 1 / cells
    if alike and all(even.singles.get(name) is not None for name in names):
        variances = even.of(*names).variance
    else:
        channel = channel_of(mechanism, names)
        shares = [typed.get(name, np.full(n, 1 / n)) for name, n in zip(names, sizes, strict=True)]
        try:
            channel.check(math.inf)
        except InputError:  # wiped out
            variances = math.inf
        else:
            if worst:
                variances = expected_error(channel, 1).worst ** 2
            else:
                variances = cell_variances(channel, shares)
                share = reduce(np.multiply.outer, shares)
    errors = np.sqrt(np.asarray(variances) / n_records)
    unsure = errors > np.minimum(LARGEST_ERROR, np.asarray(share) / HALF_WIDTH_ERRORS)
    error = math.sqrt(float(np.mean(variances)) / n_records)
    return ExpectedTable(
        names,
        cells,
        n_records,
        error if math.isfinite(error) else None,
        round(float(unsure.mean()) * cells),
    )
