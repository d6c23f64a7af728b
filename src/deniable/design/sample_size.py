"""The sample size of a study, or the error or ε of one: of the three the third from two.

The standard error of the median share falls as ε rises. The search starts between what independent
randomization gives: the largest level that the error asks of one attribute, and the sum of these
levels. Who randomizes attributes together needs something between the two.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from deniable.design.account import Design
from deniable.design.design import design, schema_of
from deniable.design.expected_accuracy import expected_accuracy
from deniable.errors import InputError
from deniable.schema import Schema

CLOSE = 0.02
"""A total is found if its error is below the wished one by no more than this part of it."""

_DESIGNS = 16
_LARGEST = math.log(1000.0)
"""Of the logarithm of a total."""

Progress = Callable[[float | None], None]


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
) -> Plan:
    """Find what a purpose takes: of rows, error and ε give two, and get the third.

    Args:
        schema: the attributes, or the file that declares them; levels must not be written in it.
        rows: how many rows there will be.
        error: wished standard error of the median share, as a fraction of 1: 0.02 is two points.
        epsilon: total for the whole record, in nats.
        method: as in :func:`deniable.design.design.design`.
        progress: called after every design that was tried.

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
        made = design_for_error(schema, rows, error, method=method, progress=progress)
        return Plan(made, rows)
    made = design(schema, epsilon=epsilon, method=method)
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
    make: Callable[[float], Design] | None = None,
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
    variance = n_records * error**2
    levels = [_level(schema.n_categories[i], variance) for i in schema.protected]
    # What is followed is log(error/wished) over log ε, which falls nearly along a line.
    at = (math.log(max(levels)) + math.log(math.fsum(levels))) / 2 if not start else math.log(start)
    slope, before = -1.0, None
    for tried in range(_DESIGNS):
        made = make(math.exp(at))
        progress((tried + 1) / _DESIGNS)
        variance = max(expected_accuracy(made.account).median.variance, 1e-300)
        off = math.log(math.sqrt(variance / n_records) / error)
        if -close <= off <= 0:
            return made
        if before is not None:
            slope = min(max((off - before[1]) / (at - before[0]), -4.0), -0.25)
        before = (at, off)
        if off > 0 and at == _LARGEST:
            break
        at = min(at + min(max(-(off + close / 2) / slope, -1.5), 1.5), _LARGEST)
    raise InputError(
        f"no total was found at which {n_records} rows give a standard error of "
        f"{100 * error:g} points; ask for another error, or for levels per attribute"
    )


def _level(n_categories: int, variance: float) -> float:
    """Return ε of independent randomization at which one record adds this much variance."""
    # (a − 1)(1/φ² − 1)/a² = v and φ = (e^ε − 1)/(e^ε − 1 + a): with t = 1/φ² − 1, e^ε − 1 is
    # a φ/(1 − φ) = a (√(1 + t) + 1)/t.
    t = max(variance * n_categories**2 / (n_categories - 1), 1e-200)
    return math.log1p(n_categories * (math.sqrt(1 + t) + 1) / t)
