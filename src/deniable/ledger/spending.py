"""Levels of one release in nats, by column."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deniable.mechanism.privacy import compose, finite_or_none
from deniable.mechanism.strata import Strata


@dataclass(frozen=True)
class Spending:
    """Levels of a row of one release, in nats; inf without a guarantee."""

    epsilon: float
    alone: Mapping[str, float] = field(default_factory=dict)
    given_rest: Mapping[str, float] = field(default_factory=dict)
    unprotected: tuple[str, ...] = ()

    @classmethod
    def of(cls, strata: Strata, numeric: tuple[str, ...] = ()) -> "Spending":
        """Return the levels of a release by these mechanisms."""
        schema = strata.schema
        alone, given_rest = {}, {}
        levels = zip(
            schema.attributes, strata.attribute_epsilon, strata.epsilon_given_rest, strict=True
        )
        for attribute, level, level_given_rest in levels:
            if attribute.name in schema.keep:
                continue
            for column in attribute.columns:
                alone[column.name] = level
                given_rest[column.name] = level_given_rest
        return cls(strata.epsilon, alone, given_rest, (*strata.unprotected, *numeric))

    def largest(self, other: "Spending") -> "Spending":
        """Return upper bounds of the levels of two releases, of which one will be made."""

        def each(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
            names = dict.fromkeys([*first, *second])
            return {name: max(first.get(name, 0.0), second.get(name, 0.0)) for name in names}

        return Spending(
            max(self.epsilon, other.epsilon),
            each(self.alone, other.alone),
            each(self.given_rest, other.given_rest),
            tuple(dict.fromkeys([*self.unprotected, *other.unprotected])),
        )

    def of_rows(self, count: int) -> "Spending":
        """Return the levels of ``count`` rows of one person together."""

        def times(level: float) -> float:
            return compose([level], times=count)

        return Spending(
            times(self.epsilon),
            {name: times(level) for name, level in self.alone.items()},
            {name: times(level) for name, level in self.given_rest.items()},
            self.unprotected,
        )

    def to_plain(self) -> dict[str, Any]:
        """Return plain values; None for no bound."""
        return {
            "epsilon": finite_or_none(self.epsilon),
            "attributes": {
                name: {
                    "epsilon": finite_or_none(level),
                    "epsilon_given_rest": finite_or_none(self.given_rest[name]),
                }
                for name, level in self.alone.items()
            },
            "unprotected": list(self.unprotected),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Spending":
        """Return the levels from :meth:`to_plain`."""
        attributes = plain["attributes"].items()
        return cls(
            _level(plain["epsilon"]),
            {name: _level(levels["epsilon"]) for name, levels in attributes},
            {name: _level(levels["epsilon_given_rest"]) for name, levels in attributes},
            tuple(plain["unprotected"]),
        )


def _level(value: float | None) -> float:
    if value is None:
        return math.inf
    level = float(value)
    if not level >= 0:
        raise ValueError("a level is not negative")
    return level
