"""The smallest total that reaches a wished error: a design for a purpose, from the number of rows.

The standard error of the median share falls as ε rises. The search starts between what independent
randomization gives: the largest level that the error asks of one attribute, and the sum of these
levels. Who randomizes attributes together needs something between the two.
"""

import math
from collections.abc import Callable

from deniable.design.account import Design
from deniable.design.design import design
from deniable.design.worth import worth
from deniable.errors import InputError
from deniable.schema import Schema

CLOSE = 0.02
"""A total is found if its error is below the wished one by no more than this part of it."""

_DESIGNS = 16
_LARGEST = math.log(1000.0)
"""Of the logarithm of a total."""

Progress = Callable[[float | None], None]


def design_for_error(
    schema: Schema,
    n_records: int,
    error: float,
    *,
    method: str | None = None,
    progress: Progress = lambda _fraction: None,
) -> Design:
    """Return a design whose median share has this standard error, or up to 2 % less.

    Args:
        schema: the attributes; levels must not be written in it.
        n_records: rows there will be.
        error: wished standard error of the median share, as a fraction of 1.
        method: as in :func:`deniable.design.design.design`.
        progress: called after every design that was tried.

    Raises:
        InputError: if the error is not between 0 and 1, there are no rows, or no total is found.

    >>> made = design_for_error(Schema.anonymous((2, 3)), 1000, 0.02, method="kronecker")
    >>> 0.0196 <= worth(made.account).to_plain(1000)["median"]["standard_error"] <= 0.02
    True
    """
    if not 0 < error < 1:
        raise InputError(f"a wished error is between 0 and 1 (100 points), not {error:g}")
    if n_records < 1:
        raise InputError("the number of rows must be at least 1")
    variance = n_records * error**2
    levels = [_level(schema.n_categories[i], variance) for i in schema.protected]
    # What is followed is log(error/wished) over log ε, which falls nearly along a line.
    at = (math.log(max(levels)) + math.log(math.fsum(levels))) / 2
    slope, before = -1.0, None
    for tried in range(_DESIGNS):
        made = design(schema, epsilon=math.exp(at), method=method)
        progress((tried + 1) / _DESIGNS)
        variance = max(worth(made.account).median.variance, 1e-300)
        off = math.log(math.sqrt(variance / n_records) / error)
        if -CLOSE <= off <= 0:
            return made
        if before is not None:
            slope = min(max((off - before[1]) / (at - before[0]), -4.0), -0.25)
        before = (at, off)
        if off > 0 and at == _LARGEST:
            break
        at = min(at + min(max(-(off + CLOSE / 2) / slope, -1.5), 1.5), _LARGEST)
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
