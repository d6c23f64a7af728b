"""Caps on ``epsilon_given_rest``, and the columns released unchanged."""

import math
from collections.abc import Sequence

from deniable._checks import check_level
from deniable.errors import InputError
from deniable.laws import Identity
from deniable.mechanism.mechanism import Block, Mechanism
from deniable.schema import Schema

GivenRest = str | float | Sequence[float | None] | None
"""A cap on ``epsilon_given_rest``: "2x" for a multiple of each attribute's own ε, a number of nats,
one number (or None) per protected attribute, "none" for no cap, or None for the method's default:
2x for ``balanced``, no cap for ``lp`` and ``forms``. For ``forms``, where levels belong to forms, a
multiple is of the record's ε: "0.75e"."""


def unchanged_blocks(schema: Schema) -> list[Block]:
    """Return the blocks of the unchanged columns."""
    unchanged = set(range(len(schema.attributes))) - set(schema.protected)
    return [Block((i,), Identity((schema.attributes[i].n_categories,))) for i in sorted(unchanged)]


def refuse_missed_caps(mechanism: Mechanism, caps: Sequence[float | None] | None) -> None:
    """Raise unless a mechanism, as drawn, keeps the caps, one per protected attribute."""
    schema = mechanism.schema
    for i, cap in zip(schema.protected, caps or (), strict=bool(caps)):
        if cap is not None and mechanism.epsilon_given_rest[i] > cap:
            raise InputError(
                f"attribute '{schema.names[i]}': the cap {cap:g} on epsilon_given_rest was missed "
                "by a rounding error of the solver; request a slightly smaller one"
            )


def resolve_caps(
    given_rest: GivenRest, levels: Sequence[float], epsilon: float | None = None
) -> tuple[float | None, ...] | None:
    """Return the cap on ``epsilon_given_rest`` per attribute in nats, or None for no cap.

    ``levels``: ε per attribute, the base of a multiple; shape (k,).
    """
    if given_rest is None or given_rest == "none":
        return None
    if isinstance(given_rest, str):
        multiple = given_rest.removesuffix("x" if epsilon is None else "e")
        try:
            factor = float(multiple)
        except ValueError:
            factor = math.nan
        if epsilon is None and (multiple == given_rest or not factor >= 1):
            raise InputError(
                f"the cap '{given_rest}' on epsilon_given_rest should be a number of nats, or a "
                "multiple of each attribute's own ε such as 2x, at least 1x"
            )
        if epsilon is not None and (multiple == given_rest or not 0 < factor <= 1):
            raise InputError(
                f"the cap '{given_rest}' on epsilon_given_rest should be a number of nats, or a "
                "part of the record's ε such as 0.75e; an attribute's own ε belongs to a form"
            )
        of = levels if epsilon is None else (epsilon,) * len(levels)
        return tuple(factor * level for level in of)
    if isinstance(given_rest, int | float):
        return (check_level(given_rest, "cap on epsilon_given_rest"),) * len(levels)
    if len(given_rest) != len(levels):
        raise InputError(
            f"{len(given_rest)} caps on epsilon_given_rest were given for {len(levels)} attributes"
        )
    return tuple(
        None if cap is None else check_level(cap, "cap on epsilon_given_rest") for cap in given_rest
    )


def cap_text(given_rest: GivenRest) -> str | None:
    """Return a cap as text for a record; None for no cap."""
    if given_rest is None or given_rest == "none":
        return None
    if isinstance(given_rest, str):
        return given_rest
    if isinstance(given_rest, int | float):
        return f"{given_rest:g}"
    return ",".join("none" if cap is None else f"{cap:g}" for cap in given_rest)


def caps_of_text(
    text: str | None, levels: Sequence[float], epsilon: float | None = None
) -> tuple[float | None, ...]:
    """Return the caps that :func:`cap_text` wrote, per attribute in nats; None for no cap.

    >>> caps_of_text("2x", [1.0, 0.5]), caps_of_text("none,0.7", [1.0, 0.5])
    ((2.0, 1.0), (None, 0.7))
    >>> caps_of_text("0.75e", [1.0, 0.5], epsilon=4.0)
    (3.0, 3.0)
    """
    given: GivenRest = text
    if text is not None and not text.endswith(("x", "e")):
        try:
            caps = [None if part == "none" else float(part) for part in text.split(",")]
        except ValueError:
            raise InputError("the cap on epsilon_given_rest is not one that is written") from None
        given = caps if len(caps) > 1 else caps[0]
    return resolve_caps(given, levels, epsilon) or (None,) * len(levels)
