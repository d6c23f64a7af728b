"""The four observers of a release, with the numbers in the report."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from deniable.mechanism.privacy import finite_or_none
from deniable.statement.account import Design


@dataclass(frozen=True)
class Observer:
    """The levels of one of the four observers.

    ``least``: ε in nats of the best protected attribute, or set of columns; None if unbounded.
    """

    key: Literal["anyone", "one_column", "knows_the_rest", "some_columns"]
    least: float | None
    largest: float | None
    at_most: bool = False

    @property
    def factor(self) -> float | None:
        """e^ε: limit on the factor by which odds change; None if unbounded, or too large for
        a number."""
        if self.largest is None or self.largest > math.log(1e300):
            return None
        return math.exp(self.largest)

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"factor": self.factor}


def observers(design: Design) -> tuple[Observer, ...]:
    """Return the levels of the four observers of a release by a design."""
    mechanism = design.mechanism
    protected = mechanism.schema.protected
    alone = [mechanism.attribute_epsilon[i] for i in protected]
    given_rest = [mechanism.epsilon_given_rest[i] for i in protected]
    whole = finite_or_none(mechanism.epsilon)
    least = finite_or_none(min(alone))
    return (
        Observer("anyone", whole, whole),
        Observer("one_column", least, finite_or_none(max(alone))),
        Observer(
            "knows_the_rest",
            finite_or_none(min(given_rest)),
            finite_or_none(max(given_rest)),
            any(mechanism.given_rest_at_most[i] for i in protected),
        ),
        # ε of a set of columns is at least that of each of them, and at most the record's.
        Observer("some_columns", least, whole, at_most=True),
    )
