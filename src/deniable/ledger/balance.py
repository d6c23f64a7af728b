"""What the releases of every population come to together.

Each release is drawn afresh, so that given the true row the released rows of two of them are
independent, and a row of both together is at most e^ε₁·e^ε₂ times as likely under one true row as
under another: levels add (sequential composition; Dwork and Roth, 2014, Theorem 3.14). The level
of a column adds over the releases that the column was in, whatever columns these had besides.
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
    """One population: its releases, their sums and what is left.

    ``budget``: the most that all of them may come to, in nats; None if none was set.
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
        """The same by column, against someone who sees that column of every release alone."""
        return _sums([release.of_person.alone for release in self.releases])

    @property
    def given_rest(self) -> dict[str, float]:
        """The same by column, against someone who sees all releases and knows all the other true
        values."""
        return _sums([release.of_person.given_rest for release in self.releases])

    @property
    def left(self) -> float | None:
        """What may still be spent, in nats, rounded down; None without a budget."""
        if self.budget is None:
            return None
        if not math.isfinite(self.epsilon):
            return 0.0
        exact = self._exactly_left(self.budget)
        left = float(max(exact, Fraction(0)))
        return math.nextafter(left, 0.0) if Fraction(left) > exact > 0 else left

    @property
    def left_text(self) -> str:
        """What may still be spent, as shown.

        >>> Balance("p", budget=9.0).left_text
        'of 9 nats 9 are left'
        """
        assert self.budget is not None
        assert self.left is not None
        left = left_digits(self.left, self.budget)
        left = "nothing is" if left == "0" else f"{left} are"
        return f"of {nats_text(f'{self.budget:g}')} {left} left"

    def allows(self, epsilon: float) -> bool:
        """Whether a release of this level keeps within the budget."""
        if self.budget is None:
            return True
        if not (math.isfinite(epsilon) and math.isfinite(self.epsilon)):
            return False
        return Fraction(epsilon) <= self._exactly_left(self.budget)

    def after(self, spending: Spending) -> "Balance":
        """Return the balance with one more release.

        >>> Balance("p", budget=9.0).after(Spending(4.0)).left
        5.0
        """
        release = StoredRelease(0, "", self.population, "", spending, "", traceless=True)
        return replace(self, releases=(*self.releases, release))

    def _exactly_left(self, budget: float) -> Fraction:
        spent = (Fraction(release.of_person.epsilon) for release in self.releases)
        return Fraction(budget) - sum(spent)

    def to_plain(self) -> dict[str, Any]:
        """Return plain values; None stands for no bound, and of the budget for none."""
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
    """Return the balance of every population that is in a ledger, by its name as names are compared
    (:func:`~deniable.ledger.events.compared`)."""
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
    """Return what is left as shown: in millionths of the budget, rounded down, since levels that
    were to fill it come out a little smaller.

    >>> left_digits(5.4e-11, 9.0), left_digits(0.99999999, 9.0)
    ('0', '0.99999')
    """
    unit = Decimal(1).scaleb(Decimal(budget).adjusted() - 5)
    near = Decimal(f"{left:.12g}")  # what decimals come to in binary
    return f"{near.quantize(unit, ROUND_FLOOR).normalize():f}"


def _sums(levels: Iterable[Mapping[str, float]]) -> dict[str, float]:
    by_column: dict[str, list[float]] = {}
    for one in levels:
        for name, level in one.items():
            by_column.setdefault(name, []).append(level)
    return {name: compose(values) for name, values in by_column.items()}
