"""The method forms as an alternative to a design with unreadable shares."""

import math
from collections.abc import Callable
from typing import Any

from deniable.design.outlook import outlook_to_plain
from deniable.errors import InputError
from deniable.readable import LARGEST_READABLE, READABLE_ERRORS
from deniable.statement.account import Design
from deniable.statement.expected_accuracy import expected_accuracy

Again = Callable[[str], Design]
"""Returns the design of the same request by another method."""


def forms_instead(design: Design, n_records: int, again: Again | None) -> list[dict[str, Any]]:
    """Return the readability of each attribute under method forms at the same ε, as plain values
    (:meth:`deniable.mechanism.readability.Readability.to_plain`); empty unless more cells can be
    read than now.
    """
    now = expected_accuracy(design.account).to_plain(n_records)["attributes"]
    if again is None or design.mechanism.forms or all(one["readable"] for one in now):
        return []
    # A search of seconds, left out where the least mean variance of any mechanism is too large.
    limit = outlook_to_plain(design)["limit"]
    if limit and READABLE_ERRORS * math.sqrt(limit["shares"] / n_records) > LARGEST_READABLE:
        return []
    try:
        made = again("forms")
    except InputError:  # fewer than two attributes, or a request that forms cannot meet
        return []
    then: list[dict[str, Any]] = expected_accuracy(made.account).to_plain(n_records)["attributes"]
    return then if _cells(then) > _cells(now) else []


def _cells(tables: list[dict[str, Any]]) -> int:
    return sum(bool(one["readable"]) for one in tables)
