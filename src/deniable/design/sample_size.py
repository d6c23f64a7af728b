"""The sample size of a study, or the error or ε of one: of the three the third from two.

The standard error of the median share falls as ε rises. The search starts between what independent
randomization gives: the largest level that the error asks of one attribute, and the sum of these
levels. Who randomizes attributes together needs something between the two.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from deniable._checks import typed
from deniable.design.account import Design
from deniable.design.design import design, schema_of
from deniable.design.expected_accuracy import expected_accuracy
from deniable.design.expected_tables import Assumed, ExpectedTable, expected_tables
from deniable.errors import InputError
from deniable.numerals import count_text, number_text
from deniable.schema import Schema
from deniable.solvers.problem import MAX_LEVEL

CLOSE = 0.02
"""A total is found if its error is below the wished one by no more than this part of it."""

_DESIGNS = 16
_HALVED = 6
"""After so many designs a total is looked for in the middle."""
_FINE = math.log(1.01)
"""Of the logarithm of a total that is called the smallest."""
_LARGEST = math.log(MAX_LEVEL)
"""Of the logarithm of a total."""

Progress = Callable[[float | None], None]
Make = Callable[[float], Design]
"""Designs for a total in nats."""


@dataclass(frozen=True)
class Plan:
    """A design, and the rows that it is for.

    Args:
        design: the design.
        rows: how many rows there will be, or are needed.
    """

    design: Design
    rows: int

    def to_plain(self) -> dict[str, Any]:
        """Return ε of the record in nats, the method, and what is expected of estimates
        (:meth:`deniable.design.expected_accuracy.ExpectedAccuracy.to_plain`), as plain values."""
        return {
            "epsilon": self.design.epsilon,
            "method": self.design.method,
            "worth": expected_accuracy(self.design.account).to_plain(self.rows),
        }


def plan(
    schema: Schema | str | Path,
    *,
    rows: int | None = None,
    error: float | None = None,
    epsilon: float | None = None,
    method: str | None = None,
    progress: Progress = lambda _fraction: None,
    make: Make | None = None,
) -> Plan:
    """Find what a purpose takes: of rows, error and ε give two, and get the third.

    Args:
        schema: the attributes, or the file that declares them; levels must not be written in it.
        rows: how many rows there will be.
        error: wished standard error of the median share, as a fraction of 1: 0.02 is two points.
        epsilon: total for the whole record, in nats.
        method: as in :func:`deniable.design.design.design`.
        progress: called after every design that was tried.
        make: designs for a total in nats, if that takes more than a method.

    Returns:
        The design, and the rows that it is for: ``.design.epsilon``, ``.rows``, ``.to_plain()``.

    Raises:
        InputError: if not two are given, one of them is impossible, or no total is found.

    Examples:
        >>> import deniable
        >>> schema = deniable.Schema.anonymous((5, 5, 3))
        >>> print(deniable.plan(schema, epsilon=3, error=0.02, method="kronecker").rows)
        5715
        >>> planned = deniable.plan(schema, rows=10_000, error=0.02, method="kronecker")
        >>> round(planned.design.epsilon, 1)
        2.4
        >>> planned.to_plain()["worth"]["median"]["standard_error"] <= 0.02
        True
    """
    if sum(given is None for given in (rows, error, epsilon)) != 1:
        raise InputError("give two of `rows`, `error` and `epsilon`; the third is what is found")
    for name, given in (("rows", rows), ("error", error), ("epsilon", epsilon)):
        if given is not None and not isinstance(given, Real):
            raise InputError(f"{name} is a number, not {given!r}; an error of two points is 0.02")
    schema = schema_of(schema, "a plan")
    if error is not None and not 0 < error < 1:
        raise InputError(f"a wished error is between 0 and 1 (100 points), not {error:g}")
    if rows is not None and rows < 1:
        raise InputError("the number of rows must be at least 1")
    if epsilon is None:
        assert rows is not None
        assert error is not None
        made = design_for_error(schema, rows, error, method=method, progress=progress, make=make)
        return Plan(made, rows)
    made = design(schema, epsilon=epsilon, method=method) if make is None else make(epsilon)
    if rows is None:
        assert error is not None
        needed = expected_accuracy(made.account).median.rows_for(error)
        if not math.isfinite(needed):
            raise InputError("the randomization leaves nothing of a typical share to estimate")
        rows = max(1, math.ceil(needed))
    return Plan(made, rows)


def design_for_error(
    schema: Schema,
    n_records: int,
    error: float,
    *,
    method: str | None = None,
    progress: Progress = lambda _fraction: None,
    make: Make | None = None,
    start: float | None = None,
    close: float = CLOSE,
) -> Design:
    """Return a design whose median share has this standard error, or up to 2 % less.

    Args:
        schema: the attributes; levels must not be written in it.
        n_records: rows there will be.
        error: wished standard error of the median share, as a fraction of 1.
        method: as in :func:`deniable.design.design.design`.
        progress: called after every design that was tried.
        make: designs for a total in nats, if that takes more than a method.
        start: the total to begin with, in nats.
        close: by which part of it the error may be below the wished one.

    Raises:
        InputError: if no total is found.

    >>> made = design_for_error(Schema.anonymous((2, 3)), 1000, 0.02, method="kronecker")
    >>> 0.0196 <= expected_accuracy(made.account).to_plain(1000)["median"]["standard_error"] <= 0.02
    True
    """
    make = make or (lambda epsilon: design(schema, epsilon=epsilon, method=method))

    def off(made: Design) -> float:
        variance = expected_accuracy(made.account).median.variance
        return _log(math.sqrt(variance / n_records) / error)

    variance = n_records * error**2
    levels = [_level(schema.n_categories[i], variance) for i in schema.protected]
    made = _search(make, off, start or _start(levels), progress, close=close)
    if made is None:
        raise InputError(
            f"no total was found at which {count_text(n_records, 'row')} give a standard error of "
            f"{100 * error:g} points; ask for another error, or for levels per attribute"
        )
    return made


@dataclass(frozen=True)
class SmallestEpsilon:
    """The smallest ε for tables.

    Args:
        design: that has it.
        within: the wished half-width, as a fraction of 1.
        tables: what to expect of them, in the order of the request.
    """

    design: Design
    within: float
    tables: tuple[ExpectedTable, ...]

    @property
    def deciding(self) -> ExpectedTable:
        """The table with the largest half-width, which decides."""
        return max(self.tables, key=_width)

    def to_plain(self) -> dict[str, Any]:
        """Return ε of the record in nats, the method and the tables as plain values."""
        return {
            "epsilon": self.design.epsilon,
            "method": self.design.method,
            "within": self.within,
            "rows": self.tables[0].n_records,
            "deciding": list(self.deciding.attributes),
            "tables": [table.to_plain() for table in self.tables],
        }


@typed
def smallest_epsilon(
    schema: Schema | str | Path,
    tables: Sequence[str | Sequence[str]],
    n_records: int,
    within: float,
    *,
    make: Make | None = None,
    assume: Assumed = "uniform",
    progress: Progress = lambda _fraction: None,
) -> SmallestEpsilon:
    """Return the smallest ε of the record at which every table is this accurate.

    The design meets the wish, and one with a total 1 % smaller was tried and does not. Where a
    method's errors do not fall steadily with ε, a still smaller total may meet it too.

    Args:
        schema: the attributes, or the file that declares them; levels must not be written in it.
        tables: as in :func:`deniable.design.expected_tables.expected_tables`, at least one.
        n_records: rows there will be.
        within: largest half-width of an interval of 95 %, as a fraction of 1: 0.02 is two points.
        make: designs for a total in nats; by default by the default method.
        assume: what the true tables are, as in ``expected_tables``.
        progress: called after every design that was tried.

    Raises:
        InputError: if a table cannot be asked for, or no total is enough for it.

    Examples:
        >>> import deniable
        >>> schema = deniable.Schema.anonymous((2, 3))
        >>> found = deniable.smallest_epsilon(schema, ["a1", "a2"], 1000, 0.05)
        >>> found.deciding.attributes, round(found.deciding.half_width, 3), len(found.tables)
        (('a1',), 0.05, 2)
    """
    schema = schema_of(schema, "the smallest ε")
    if not tables:
        raise InputError("name at least one table that is to be this accurate")
    if not 0 < within < 1:
        raise InputError(f"a wished half-width is between 0 and 1 (100 points), not {within:g}")
    make = make or (lambda epsilon: design(schema, epsilon=epsilon))
    expected: tuple[ExpectedTable, ...] = ()

    def off(made: Design) -> float:
        nonlocal expected
        expected = expected_tables(made, tables, n_records, assume)
        return _log(max(map(_width, expected)) / within)

    variance = n_records * (within / 2) ** 2
    start = _start([_level(schema.n_categories[i], variance) for i in schema.protected])
    made = _search(make, off, start, progress, fine=_FINE)
    if made is None:
        worst = max(expected, key=_width)
        least = (
            "has no bound"
            if worst.half_width is None
            else f"is {number_text(100 * worst.half_width, 2)}"
        )
        raise InputError(
            f"no total was found at which {count_text(n_records, 'row')} give the table of "
            f"{', '.join(worst.attributes)} a half-width of {100 * within:g} points: the last that "
            f"was tried {least}; ask for more rows, a larger half-width or other tables"
        )
    return SmallestEpsilon(made, within, expected_tables(made, tables, n_records, assume))


def _width(table: ExpectedTable) -> float:
    return math.inf if table.half_width is None else table.half_width


def _log(ratio: float) -> float:
    """Return the logarithm, within bounds also where something is wiped out, or exact."""
    return math.log(min(max(ratio, 1e-150), 1e22))


def _start(levels: Sequence[float]) -> float:
    return math.sqrt(max(levels) * math.fsum(levels))


def _search(
    make: Make,
    off: Callable[[Design], float],
    start: float,
    progress: Progress,
    *,
    close: float = 0.0,
    fine: float = 0.0,
) -> Design | None:
    """Return the design of the smallest total that is found at which something is small enough;
    None if none is.

    Args:
        make: designs for a total.
        off: the logarithm of what is to be small, over the wish.
        start: the first total.
        progress: called after every design.
        close: that it may be below the wish by this part.
        fine: that the logarithm of the total may be above the smallest by this much.
    """
    # What is followed is `off` over log ε, which falls nearly along a line.
    at, slope, before = math.log(start), -1.0, None
    low, high, found = -math.inf, math.inf, None
    for tried in range(_DESIGNS):
        made = make(min(math.exp(at), MAX_LEVEL))
        progress((tried + 1) / _DESIGNS)
        now = off(made)
        if now > 0:
            low = max(low, at)
        elif at < high:
            high, found = at, made
        if -close <= now <= 0:
            return made
        if fine and high - low <= fine:
            return found
        if before is not None:
            slope = min(max((now - before[1]) / (at - before[0]), -4.0), -0.25)
        before = (at, now)
        if now > 0 and at == _LARGEST:
            return None
        step = min(max(-(now + close / 2) / slope, -1.5), 1.5)
        at += step + fine / 2
        if fine:  # next to an end, if it is beyond it; halved, if that does not end soon
            near = 0.99 * fine
            at = min(max(at, low + near), high - near)
            if tried >= _HALVED and math.isfinite(high - low):
                at = (low + high) / 2
        at = min(at, _LARGEST)
    return found if fine else None


def _level(n_categories: int, variance: float) -> float:
    """Return ε of independent randomization at which one record adds this much variance."""
    # (a − 1)(1/φ² − 1)/a² = v and φ = (e^ε − 1)/(e^ε − 1 + a): with t = 1/φ² − 1, e^ε − 1 is
    # a φ/(1 − φ) = a (√(1 + t) + 1)/t.
    t = max(variance * n_categories**2 / (n_categories - 1), 1e-200)
    return math.log1p(n_categories * (math.sqrt(1 + t) + 1) / t)
