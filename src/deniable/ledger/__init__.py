"""Every release of a population, remembered: what each said, and what they come to together.

A ledger is a file beside the data, never in a release. It knows the releases that were made with
it, and no others (docs/guarantees.md).
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
