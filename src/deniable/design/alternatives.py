"""What would make a release tell more, with figures: forms, another ε, fewer attributes.

Where a release can be read, two figures are enough: how many rows forms save, and ε at which a
typical share is within two points. Where it cannot, the three ways out are tried. Those that
suffice come first: forms, which cost completeness only, then fewer attributes, then a larger ε.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from deniable.design.account import Design
from deniable.design.expected_accuracy import (
    ExpectedAccuracy,
    Shares,
    expected_accuracy,
    rows_saved_by_forms,
)
from deniable.design.sample_size import design_for_error
from deniable.errors import InputError
from deniable.schema import Schema

TWO_POINTS = 0.02 / 1.959964
"""The standard error with which a share is within two points with probability 95 %."""

_ORDER = ("forms", "fewer", "epsilon")
"""What costs the steward least first."""

_TIMES = (1.5, 3.0)
"""The totals that are tried, as multiples of the one asked for."""

_ABOUT = 0.05
"""How far, in parts, the error may be from the wished one: ε is told to two digits."""

Again = Callable[[Schema, float, str | None], Design]
"""Designs for a schema, a total and a method (None for the same), as the first was asked for."""


@dataclass(frozen=True)
class Way:
    """One way to a release that tells more.

    Args:
        kind: what is changed: the method to forms, the schema to fewer attributes, or ε.
        left_out: the attributes that are left out, the least important first.
        epsilon: of the record, in nats.
        error: the standard error of the typical share, or cell, that is too uncertain now.
        readable: whether it can be read then.
    """

    kind: Literal["forms", "fewer", "epsilon"]
    left_out: tuple[str, ...]
    epsilon: float
    error: float
    readable: bool

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "kind": self.kind,
            "left_out": list(self.left_out),
            "epsilon": self.epsilon,
            "standard_error": self.error,
            "readable": self.readable,
        }


def alternatives(
    design: Design, n_records: int, importance: Mapping[str, float], again: Again | None
) -> dict[str, Any]:
    """Return what would make a release of a design tell more, as plain values.

    Args:
        design: of the release.
        n_records: its rows.
        importance: how much attributes matter, by name; 1 if not named.
        again: designs otherwise; None where what was asked for is not a total alone, so that only
            the rows that forms save are told.

    Returns:
        ``forms_rows``, how many times fewer rows forms need for shares, or None; ``two_points``, ε
        in nats at which a typical share is within two points at 95 %, or None; ``of``, "share" or
        "pair" if that cannot be read, and ``ways``, what helps then, the most helpful first
        (:class:`Way`).

    Examples:
        >>> import deniable
        >>> schema = deniable.Schema.anonymous((5, 5, 3))
        >>> made = deniable.design(schema, epsilon=1.5)
        >>> again = lambda schema, e, m: deniable.design(schema, epsilon=e, method=m)
        >>> told = alternatives(made, 600, {}, again)
        >>> told["of"], [(way["kind"], way["readable"]) for way in told["ways"]]
        ('share', [('epsilon', True), ('forms', False), ('fewer', False)])
    """
    told: dict[str, Any] = {
        "forms_rows": rows_saved_by_forms(design),
        "two_points": None,
        "of": None,
        "ways": [],
    }
    if again is None or design.budget is None:
        return told
    accuracy = expected_accuracy(design.account)
    for name, of in (("share", _share), ("pair", _pair)):
        shares = of(accuracy)
        if shares is not None and _error(shares, n_records) > shares.largest_error():
            ways = _ways(
                design, design.budget, n_records, importance, again, of, told["forms_rows"]
            )
            return told | {"of": name, "ways": [way.to_plain() for way in ways]}
    schema = design.mechanism.schema
    with suppress(InputError):  # where no total is found
        made = design_for_error(
            schema,
            n_records,
            TWO_POINTS,
            make=lambda epsilon: again(schema, epsilon, None),
            start=design.budget,
            close=_ABOUT,
        )
        told["two_points"] = made.epsilon
    return told


def _share(accuracy: ExpectedAccuracy) -> Shares | None:
    return accuracy.median


def _pair(accuracy: ExpectedAccuracy) -> Shares | None:
    return accuracy.median_pair


Of = Callable[[ExpectedAccuracy], Shares | None]


def _error(shares: Shares, n_records: int) -> float:
    return math.sqrt(shares.variance / n_records)


def _ways(
    design: Design,
    total: float,
    n_records: int,
    importance: Mapping[str, float],
    again: Again,
    of: Of,
    forms_rows: float | None,
) -> list[Way]:
    """Return the ways that there are: first those after which it can be read."""
    schema = design.mechanism.schema
    ways = []

    def tried(kind: Literal["forms", "fewer"], left_out: tuple[str, ...], made: Design) -> bool:
        shares = of(expected_accuracy(made.account))
        if shares is None:
            return False
        error = _error(shares, n_records)
        ways.append(Way(kind, left_out, total, error, error <= shares.largest_error()))
        return ways[-1].readable

    now = of(expected_accuracy(design.account))
    assert now is not None
    if of is _share and forms_rows is not None:
        error = _error(now, n_records) / math.sqrt(forms_rows)
        ways.append(Way("forms", (), total, error, error <= now.largest_error()))
    elif of is _pair and design.mechanism.forms is None:
        tried("forms", (), again(schema, total, "forms"))
    weakest = sorted(
        (schema.attributes[i] for i in schema.protected),
        key=lambda one: (importance.get(one.name, 1.0), -one.n_categories),
    )
    # Half of them, or fewer if that is enough; a table of two needs two that are left.
    most = min(len(weakest) // 2, len(weakest) - 2)
    for number in sorted({most // 2, most} - {0}) if most > 0 else ():
        names = tuple(one.name for one in weakest[:number])
        left = replace(
            schema, attributes=tuple(a for a in schema.attributes if a.name not in names)
        )
        if tried("fewer", names, again(left, total, None)):
            break
    # Of those with fewer attributes the last tried is told.
    ways = [way for way in ways[:-1] if way.kind == "forms"] + ways[-1:]
    for times in _TIMES:
        made = again(schema, times * total, None)
        shares = of(expected_accuracy(made.account))
        if shares is not None and (error := _error(shares, n_records)) <= shares.largest_error():
            ways.append(Way("epsilon", (), times * total, error, True))
            break
    return sorted(ways, key=lambda way: (not way.readable, _ORDER.index(way.kind)))
