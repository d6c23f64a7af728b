"""What laws of votes have in common: their accounts and their moments come from ``votes``."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.laws.law import BoundedLaw
from deniable.laws.votes import accounts
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.mixture import VoteMixture

Numbers = TypeVar("Numbers", GatedSum, VoteBlend, VoteMixture)


@dataclass(frozen=True)
class VoteLaw(BoundedLaw, Generic[Numbers]):
    """A law that reweights a uniform record by which attributes it keeps.

    Args:
        numbers: gates or votes, their weights, and the attributes' own responses.
    """

    numbers: Numbers
    n_categories: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_categories", tuple(self.numbers.n_categories.tolist()))

    @cached_property
    def _account(self) -> accounts.Account:
        return accounts.account(self.numbers)

    def record_epsilon_bound(self, subset: Sequence[int] | None = None) -> float:
        if subset is None:
            return self._account.epsilon
        return accounts.subset_epsilon(self.numbers, subset)

    def attribute_epsilon_bounds(self) -> tuple[float, ...]:
        return tuple(self._account.attribute_epsilon.tolist())

    def attribute_epsilon_floors(self) -> tuple[float, ...]:
        return tuple(self._account.attribute_epsilon_floor.tolist())

    def given_rest_bounds(self) -> tuple[float, ...]:
        return tuple(self._account.epsilon_given_rest.tolist())

    def keep_probabilities(self) -> NDArray[np.float64]:
        return self.numbers.moments().keep

    def attenuations(self) -> NDArray[np.float64]:
        # φ_i = (p_i − r_i)/(1 − r_i), from the part of p_i that is added to the uniform record's:
        # exact at small ε.
        return np.asarray(self.numbers.moments().gain / (1.0 - self.numbers.uniform_keep))
