"""Ledgers: every release of a population, its levels and their sum.

A ledger is a file next to the data, never in a release. It contains only the releases made with it
(docs/guarantees.md).
"""

from deniable.ledger.balance import Balance, balances
from deniable.ledger.book import Entry, Ledger, Population, remembered
from deniable.ledger.events import Event, StoredRelease, compared, stored_releases
from deniable.ledger.spending import Spending

__all__ = [
    "Balance",
    "Entry",
    "Event",
    "Ledger",
    "Population",
    "Spending",
    "StoredRelease",
    "balances",
    "compared",
    "remembered",
    "stored_releases",
]
