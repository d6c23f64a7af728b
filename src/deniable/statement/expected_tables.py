"""Expected errors of chosen tables, before there are data.

For even shares the figures are those of :mod:`deniable.statement.expected_accuracy`. Under a
pattern law the mean square error of a table does not depend on the truth; the set of its readable
cells does.
"""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deniable._checks import typed
from deniable.errors import InputError
from deniable.mechanism.prediction import Target, cell_variances, expected_error
from deniable.mechanism.published import channel_of
from deniable.mechanism.readability import Readability
from deniable.readable import HALF_WIDTH_ERRORS
from deniable.schema import Schema
from deniable.schema.names import split_names
from deniable.statement.account import Design
from deniable.statement.expected_accuracy import EvenTables, Shares

MOST_ATTRIBUTES = 3
MOST_CELLS = 10**6

Assumed = Literal["uniform", "worst"] | Mapping[str, Sequence[float]]
"""The assumed truth: even shares, the worst of all tables, or shares by attribute."""

_SUM = 1e-6
"""Tolerance of the sum of shares."""


@typed
def expected_tables(
    design: Design,
    tables: Sequence[str | Sequence[str]],
    n_records: int,
    assume: Assumed = "uniform",
    target: Target = "table",
) -> tuple[Readability, ...]:
    """Return the expected readability of tables from a release by a design.

    Args:
        design: of any method.
        tables: of each one to three names of attributes or of parts of merged ones, as a sequence,
            or as one text as for a shell (``"race,hhi"``).
        n_records: rows that are randomized.
        assume: the true table: ``uniform``, all cells equally frequent; ``worst``, the one with
            the largest standard error of a cell; or shares by attribute, from a source other than
            the data, of which it is the product. Attributes that are not named are uniform.
        target: ``table`` for the shares of these rows, without sampling error, or ``population``
            for those of the population that they are a sample of.

    Raises:
        InputError: if there are no rows, a table cannot be estimated, or shares are invalid.

    Examples:
        >>> import deniable
        >>> plan = deniable.design(deniable.Schema.anonymous((2, 3)), epsilon=3, method="kronecker")
        >>> tables = deniable.expected_tables(plan, ["a1", "a1,a2"], 1000)
        >>> [(t.cells, round(t.half_width, 3), t.readable) for t in tables]
        [(2, 0.038, 2), (6, 0.048, 6)]
        >>> rare = {"a1": [0.98, 0.02]}
        >>> deniable.expected_tables(plan, ["a1"], 1000, rare)[0].readable
        1
    """
    if n_records < 1:
        raise InputError("the number of rows must be at least 1")
    schema = design.mechanism.schema
    if isinstance(assume, str) and assume not in ("uniform", "worst"):
        raise InputError(f"assume: must be uniform, worst or shares by attribute, not '{assume}'")
    typed = {} if isinstance(assume, str) else checked_shares(schema, assume)
    even = EvenTables(design.account)
    return tuple(
        _expected(
            even,
            checked_names(schema, table),
            n_records,
            typed,
            target,
            worst=assume == "worst",
        )
        for table in tables
    )


def checked_names(schema: Schema, table: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of a table.

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
            f"a table of {', '.join(names)} has {cells:,} cells, more than {MOST_CELLS:,}; use "
            "tables of fewer attributes"
        )
    return names


def checked_shares(
    schema: Schema, shares: Mapping[str, Sequence[float]]
) -> dict[str, NDArray[np.float64]]:
    """Return assumed shares, by attribute.

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
    target: Target,
    *,
    worst: bool,
) -> Readability:
    mechanism = even.account.design.mechanism
    sizes = [each.attribute.n_categories for each in mechanism.schema.variables(names)]
    cells = math.prod(sizes)
    alike = not worst and not any(name in typed for name in names)
    if alike and all(even.singles.get(name) is not None for name in names):
        return even.of(*names).readability(n_records, target)
    channel = channel_of(mechanism, names)
    shares = [typed.get(name, np.full(n, 1 / n)) for name, n in zip(names, sizes, strict=True)]
    try:
        channel.check(math.inf)
    except InputError:
        return Shares(names, cells, math.inf).readability(n_records, target)
    even_share = np.full(sizes, 1 / cells)
    if worst:
        error = expected_error(channel, n_records, target).worst
        return Readability.of(names, even_share, np.full(sizes, error), n_records, target)
    share = reduce(np.multiply.outer, shares)
    variances = cell_variances(channel, shares)
    sampled = share * (1 - share) if target == "population" else 0.0
    return Readability.of(
        names, share, np.sqrt((variances + sampled) / n_records), n_records, target
    )


def sampling_half_width(
    schema: Schema, table: str | Sequence[str], n_records: int, assume: Assumed
) -> float:
    """Return the half-width of a table's interval from sampling alone, as a fraction of 1: a lower
    limit for every randomization.
    """
    if assume == "worst":
        return HALF_WIDTH_ERRORS * math.sqrt(0.25 / n_records)
    named = {} if isinstance(assume, str) else checked_shares(schema, assume)
    names, share = checked_names(schema, table), np.ones(())
    for name, each in zip(names, schema.variables(names), strict=True):
        n = each.attribute.n_categories
        share = np.multiply.outer(share, named.get(name, np.full(n, 1 / n)))
    return HALF_WIDTH_ERRORS * math.sqrt(float(np.mean(share * (1 - share))) / n_records)
