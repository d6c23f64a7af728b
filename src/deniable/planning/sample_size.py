"""Rows, half-width or ε of a study: two are given, the third is computed.

Half-widths of shares fall as ε rises. The search starts between the largest level that the
half-width needs of one attribute under independent randomization and the sum of these levels;
joint randomization needs a total between the two.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from pathlib import Path
from typing import Any

from deniable._checks import check_positive, typed
from deniable.design.design import design, schema_of
from deniable.errors import InputError
from deniable.mechanism.prediction import Target
from deniable.mechanism.readability import Readability
from deniable.numerals import count_text, number_text, significant
from deniable.proofs.problem import MAX_LEVEL
from deniable.readable import HALF_WIDTH_ERRORS, LARGEST_READABLE, READABLE_ERRORS, RULE
from deniable.schema import Schema
from deniable.statement.account import Design
from deniable.statement.expected_accuracy import expected_means, mean_variance
from deniable.statement.expected_tables import Assumed, expected_tables, sampling_half_width

_DESIGNS = 24
"""Designs after which a search ends with the smallest total found."""
_HALVED = 6
"""Designs after which a search bisects."""
_PER_DECADE = 900
"""Totals of three digits between a power of ten and the next."""

Progress = Callable[[float | None], None]
Make = Callable[[float], Design]
"""Designs for a total in nats."""


@dataclass(frozen=True)
class Plan:
    """A design, and the readability of tables at a number of rows."""

    design: Design
    tables: tuple[Readability, ...]
    within: float | None = None

    @property
    def rows(self) -> int:
        """Number of rows, given or needed."""
        return self.tables[0].n_records

    @property
    def deciding(self) -> Readability:
        """The table with the largest half-width."""
        return max(self.tables, key=_width)

    def to_plain(self) -> dict[str, Any]:
        """Return ε of the record in nats, the method, the rows, the tables
        (:meth:`deniable.mechanism.readability.Readability.to_plain`) and the standard errors of
        means of numbers as plain values."""
        return {
            "epsilon": self.design.epsilon,
            "method": self.design.method,
            "rows": self.rows,
            "within": self.within,
            "deciding": list(self.deciding.attributes),
            "tables": [table.to_plain() for table in self.tables],
            "means": expected_means(self.design.mechanism, self.rows, self.tables[0].target),
        }


@typed
def plan(
    schema: Schema | str | Path,
    *,
    rows: int | None = None,
    error: float | None = None,
    within: float | None = None,
    epsilon: float | None = None,
    tables: Sequence[str | Sequence[str]] = (),
    means: Mapping[str, float] | None = None,
    assume: Assumed = "uniform",
    target: Target = "table",
    method: str | None = None,
    progress: Progress = lambda _fraction: None,
    make: Make | None = None,
) -> Plan:
    """Return the design, rows and readability for a purpose, from two of rows, accuracy and ε.

    The smallest ε is found to three digits: the design at the next smaller total of three digits
    misses the half-width. If a method's errors are not monotone in ε, a still smaller total may
    meet it too.

    Args:
        schema: the attributes, or the file that declares them; levels must not be written in it.
        rows: number of rows.
        error: largest standard error of a share, as a fraction of 1: 0.02 is two points. The same
            as ``within``, divided by 1.96.
        within: largest half-width of an interval of 95 %, as a fraction of 1.
        epsilon: total for the whole record, in nats.
        tables: tables that must meet ``within``, as for :func:`deniable.expected_tables`; by
            default every attribute by itself.
        means: largest standard error of the mean of a number, in its unit, by its name; with or
            without ``within``, if its values are spread evenly over the range.
        assume: the true tables, as in ``expected_tables``.
        target: ``table`` without sampling error, if the rows are the whole population, or
            ``population`` for a survey of a larger one.
        method: as in :func:`deniable.design.design.design`.
        progress: called after every design.
        make: returns the design for a total in nats; by default by ``method``.

    Returns:
        The design, and the readability: ``.design.epsilon``, ``.rows``, ``.tables``.

    Raises:
        InputError: unless two are given and possible, if sampling alone is less accurate, no
            total is found, or no cell of one of the ``tables`` is readable at it.

    Examples:
        >>> import deniable
        >>> schema = deniable.Schema.anonymous((5, 5, 3))
        >>> print(deniable.plan(schema, epsilon=3, within=0.04, method="kronecker").rows)
        5489
        >>> planned = deniable.plan(schema, rows=10_000, within=0.04, method="kronecker")
        >>> round(planned.design.epsilon, 2), planned.deciding.half_width <= 0.04
        (2.36, True)
    """
    within = _wished(error, within)
    if (rows is None) + (within is None and not means) + (epsilon is None) != 1:
        raise InputError(
            "give two of `rows`, `within` (or `error`, `means`) and `epsilon`; the third is "
            "computed"
        )
    if rows is not None and rows < 1:
        raise InputError("the number of rows must be at least 1")
    schema = schema_of(schema)
    wished = {
        name: check_positive(value, f"mean of '{name}'") for name, value in (means or {}).items()
    }
    for name in wished:
        if schema.variable(name).attribute.number_grid is None:
            raise InputError(f"mean of '{name}': it is not a number with a range; name one that is")
    named = tables or [(schema.names[i],) for i in schema.protected]
    make = make or (lambda total: design(schema, epsilon=total, method=method))
    if epsilon is None:
        assert rows is not None
        found = _smallest(schema, named, rows, within, wished, make, assume, target, progress)
        if tables and within is not None:
            _refuse_unreadable(found)
        return found
    made = make(epsilon)
    if rows is None:
        needed: list[float | None] = [
            mean_variance(made.mechanism, name, target) / e**2 for name, e in wished.items()
        ]
        if within is not None:
            needed += [t.rows_for(within) for t in expected_tables(made, named, 1, assume, target)]
        if {None, math.inf} & {*needed}:
            raise InputError("a table cannot be estimated: the randomization has destroyed it")
        rows = math.ceil(max(each for each in needed if each is not None))
    return Plan(made, expected_tables(made, named, rows, assume, target), within)


def _wished(error: float | None, within: float | None) -> float | None:
    """Return the requested half-width, as a fraction of 1."""
    if error is not None and within is not None:
        raise InputError("`within` is 1.96 times `error`; give one of them")
    for name, given in (("standard error", error), ("half-width", within)):
        if given is not None and not 0 < given < 1:
            raise InputError(f"a wished {name} is between 0 and 1 (100 points), not {given:g}")
    return within if error is None else HALF_WIDTH_ERRORS * error


def _refuse_unreadable(planned: Plan) -> None:
    """Raise if some table of a plan has no readable cell."""
    for table in planned.tables:
        if not table.readable and table.half_width is not None:
            largest = HALF_WIDTH_ERRORS / READABLE_ERRORS * min(LARGEST_READABLE, 1 / table.cells)
            limit = significant(100 * largest, 2, ROUND_FLOOR)
            raise InputError(
                f"within {number_text(100 * table.half_width, 2)} points none of the "
                f"{table.cells} cells of the table of {', '.join(table.attributes)} can be read: "
                f"{RULE}; set the half-width to {limit} points or less, or use tables with fewer "
                "cells"
            )


def _smallest(
    schema: Schema,
    tables: Sequence[str | Sequence[str]],
    rows: int,
    within: float | None,
    means: Mapping[str, float],
    make: Make,
    assume: Assumed,
    target: Target,
    progress: Progress,
) -> Plan:
    """Return the plan with the smallest total of three digits."""
    if target == "population" and within is not None:
        alone = max(sampling_half_width(schema, table, rows, assume) for table in tables)
        if alone >= within:
            raise InputError(
                f"no ε is enough: drawing {rows:,} people from a population gives intervals of "
                f"± {100 * alone:.3g} points by itself, more than {100 * within:g}; "
                "use more rows or a larger half-width"
            )
    expected: tuple[Readability, ...] = ()

    def off(made: Design) -> float:
        nonlocal expected
        errors = [
            math.sqrt(mean_variance(made.mechanism, name, target) / rows) / error
            for name, error in means.items()
        ]
        if within is not None:
            expected = expected_tables(made, tables, rows, assume, target)
            errors.append(max(map(_width, expected)) / within)
        return math.log(min(max(*errors, 1e-150), 1e22))  # some are 0 or infinite

    start = float(len(schema.protected))
    if within is not None:
        variance = rows * (within / HALF_WIDTH_ERRORS) ** 2
        levels = [_level(schema.n_categories[i], variance) for i in schema.protected]
        start = math.sqrt(max(levels) * math.fsum(levels))
    made = _search(make, off, start, progress)
    if made is None and (within is None or max(map(_width, expected)) <= within):
        raise InputError(
            f"no total was found at which {count_text(rows, 'row')} give these standard errors of "
            "means; use more rows, or larger errors"
        )
    if made is None:
        assert within is not None
        worst = max(expected, key=_width)
        least = (
            "has no bound"
            if worst.half_width is None
            else f"is {number_text(100 * worst.half_width, 2)}"
        )
        raise InputError(
            f"no total was found at which {count_text(rows, 'row')} give the table of "
            f"{', '.join(worst.attributes)} a half-width of {100 * within:g} points: the last one "
            f"tried {least}; use more rows, a larger half-width or other tables"
        )
    return Plan(made, expected_tables(made, tables, rows, assume, target), within)


def _width(table: Readability) -> float:
    return math.inf if table.half_width is None else table.half_width


def _total(place: int) -> float:
    """Return a total of three digits by its place among them.

    >>> [_total(place) for place in (0, 1, 899, 900, 2600)]
    [0.01, 0.0101, 0.0999, 0.1, 9.0]
    """
    decade, digits = divmod(place, _PER_DECADE)
    return float(f"{digits + 100}e{decade - 4}")


def _place(total: float) -> int:
    """Return the place of the smallest total of three digits that is no less.

    >>> _place(0.01), _place(8.991), _place(9.0)
    (0, 2600, 2600)
    """
    decade = math.floor(math.log10(total))
    digits = math.ceil(round(total / 10.0 ** (decade - 2), 9))
    return (decade + 2) * _PER_DECADE + digits - 100


_LAST = _place(MAX_LEVEL)


def _search(
    make: Make, off: Callable[[Design], float], start: float, progress: Progress
) -> Design | None:
    """Return the design of the smallest total of three digits at which something is small enough;
    None if none is found."""
    low, high, found = -1, _LAST + 1, None  # places, and the design at the upper one
    # `off` as a function of log ε falls nearly along a line.
    slope, before = -1.0, None
    place = min(max(_place(start), 0), _LAST)
    for tried in range(_DESIGNS):
        at = math.log(_total(place))
        made = make(_total(place))
        progress((tried + 1) / _DESIGNS)
        now = off(made)
        if now > 0:
            low = place
        else:
            high, found = place, made
        if high - low <= 1:
            break
        if before is not None:
            slope = min(max((now - before[1]) / (at - before[0]), -4.0), -0.25)
        before = (at, now)
        place = _place(math.exp(at + min(max(-now / slope, -1.5), 1.5)))
        if tried >= _HALVED and found is not None:
            place = (low + high) // 2
        place = min(max(place, low + 1), high - 1)
    return found


def _level(n_categories: int, variance: float) -> float:
    """Return ε of independent randomization with this variance contributed by one row."""
    # (a − 1)(1/φ² − 1)/a² = v and φ = (e^ε − 1)/(e^ε − 1 + a): with t = 1/φ² − 1, e^ε − 1 is
    # a φ/(1 − φ) = a (√(1 + t) + 1)/t.
    t = max(variance * n_categories**2 / (n_categories - 1), 1e-200)
    return math.log1p(n_categories * (math.sqrt(1 + t) + 1) / t)
