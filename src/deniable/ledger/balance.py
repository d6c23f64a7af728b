"""Composition of the releases of every population.

Each release is drawn afresh: given the true row, the released rows of two releases are independent,
and both together are at most e^ε₁·e^ε₂ times as likely under one true row as under another: levels
add (sequential composition; Dwork and Roth, 2014, Theorem 3.14). The level of a column adds over
the releases with that column.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

from deniable.ledger.events import Event, StoredRelease, compared, stored_releases
from deniable.ledger.spending import Spending
from deniable.mechanism.privacy import compose, finite_or_none, nats_text


@dataclass(frozen=True)
class Balance:
    """Releases of a population, their sums and the remaining budget.

    ``budget``: the largest allowed sum in nats; None without one.
    """

    population: str
    releases: tuple[StoredRelease, ...] = ()
    budget: float | None = None

    @property
    def epsilon(self) -> float:
        """ε in nats of a person in all releases, with all their rows; inf for no bound."""
        return compose(release.of_person.epsilon for release in self.releases)

    @property
    def alone(self) -> dict[str, float]:
        """ε by column, against an observer of that column of every release."""
        return _sums([release.of_person.alone for release in self.releases])

    @property
    def given_rest(self) -> dict[str, float]:
        """ε by column, against an observer of all releases who knows all other true values."""
        return _sums([release.of_person.given_rest for release in self.releases])

    @property
    def left(self) -> float | None:
        """Remaining budget in nats, rounded down; None without a budget."""
        if self.budget is None:
            return None
        if not math.isfinite(self.epsilon):
            return 0.0
        exact = self._exactly_left(self.budget)
        left = float(max(exact, Fraction(0)))
        return math.nextafter(left, 0.0) if Fraction(left) > exact > 0 else left

    @property
    def left_text(self) -> str:
        """Remaining budget as shown.

        >>> Balance("p", budget=9.0).left_text
        'of 9 nats 9 are left'
        """
        assert self.budget is not None
        assert self.left is not None
        left = left_digits(self.left, self.budget)
        left = "nothing is" if left == "0" else f"{left} are"
        return f"of {nats_text(f'{self.budget:g}')} {left} left"

    def allows(self, epsilon: float) -> bool:
        """Return whether a release of this level is within the budget."""
        if self.budget is None:
            return True
        if not (math.isfinite(epsilon) and math.isfinite(self.epsilon)):
            return False
        return Fraction(epsilon) <= self._exactly_left(self.budget)

    def after(self, spending: Spending) -> "Balance":
        """Return the balance after one more release.

        >>> Balance("p", budget=9.0).after(Spending(4.0)).left
        5.0
        """
        release = StoredRelease(0, "", self.population, "", spending, "", traceless=True)
        return replace(self, releases=(*self.releases, release))

    def _exactly_left(self, budget: float) -> Fraction:
        spent = (Fraction(release.of_person.epsilon) for release in self.releases)
        return Fraction(budget) - sum(spent)

    def to_plain(self) -> dict[str, Any]:
        """Return plain values; None for no bound or no budget."""
        given_rest = self.given_rest
        return {
            "population": self.population,
            "releases": len(self.releases),
            "epsilon": finite_or_none(self.epsilon),
            "budget": self.budget,
            "left": self.left,
            "attributes": [
                {
                    "name": name,
                    "epsilon": finite_or_none(level),
                    "epsilon_given_rest": finite_or_none(given_rest[name]),
                }
                for name, level in self.alone.items()
            ],
            "unfinished": [r.number for r in self.releases if not r.counted],
        }


def balances(events: Iterable[Event]) -> dict[str, Balance]:
    """Return the balance of every population of a ledger, by its
    :func:`~deniable.ledger.events.compared` name."""
    events = list(events)
    result: dict[str, Balance] = {}
    spelt: dict[str, str] = {}
    for event in events:
        key = compared(event.population)
        name = spelt.setdefault(key, event.population)
        if event.kind == "budget":
            balance = result.get(key, Balance(name))
            result[key] = replace(balance, budget=float(event.content["nats"]))
    for release in stored_releases(events):
        if not release.withdrawn:
            key = compared(release.population)
            balance = result.get(key, Balance(release.population))
            result[key] = replace(balance, releases=(*balance.releases, release))
    return result


def left_digits(left: float, budget: float) -> str:
    """Return the remaining budget as shown, rounded down to millionths of the budget: levels that
    fill a budget are slightly smaller.

    >>> left_digits(5.4e-11, 9.0), left_digits(0.99999999, 9.0)
    ('0', '0.99999')
    """
    unit = Decimal(1).scaleb(Decimal(budget).adjusted() - 5)
    near = Decimal(f"{left:.12g}")  # removes binary rounding of decimals
    return f"{near.quantize(unit, ROUND_FLOOR).normalize():f}"


def _sums(levels: Iterable[Mapping[str, float]]) -> dict[str, float]:
    by_column: dict[str, list[float]] = {}
    for one in levels:
        for name, level in one.items():
            by_column.setdefault(name, []).append(level)
    return {name: compose(values) for name, values in by_column.items()}
