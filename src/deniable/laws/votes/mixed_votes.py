"""A mixture of several weighted votes: the optimum for given levels, up to twenty attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import floats_from_plain, integers_from_plain
from deniable.laws.votes.mixture import VoteMixture
from deniable.laws.votes.sampling import TableSampler
from deniable.laws.votes.vote_law import VoteLaw
from deniable.laws.votes.vote_sampler import VoteSampler

_LIMIT = 1 << 60


@dataclass(frozen=True)
class MixedVotesLaw(VoteLaw[VoteMixture]):
    """A uniform record, or a uniform record conditioned on winning one of several weighted votes.

    The optimum of Yamamoto and Shibuya's linear program is such a law, with at most k votes. See
    :mod:`deniable.laws.votes.mixture`.

    Args:
        numbers: votes, thresholds, multipliers and retention.
    """

    family: ClassVar[str] = "mixed-votes"

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        return self.numbers.eigenvalues([int(i) for i in subset])

    def sampler(self) -> VoteSampler:
        numbers = self.numbers
        patterns = TableSampler(numbers.n_categories, numbers.density)
        return VoteSampler(numbers.n_categories, numbers.retention, patterns)

    def to_plain(self) -> dict[str, Any]:
        numbers = self.numbers
        return {
            "family": self.family,
            "votes": [[f"{weight:x}" for weight in vote] for vote in numbers.votes.tolist()],
            "thresholds": [f"{threshold:x}" for threshold in numbers.thresholds.tolist()],
            "multipliers": [value.hex() for value in numbers.multipliers.tolist()],
            "retention": [value.hex() for value in numbers.retention.tolist()],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "MixedVotesLaw":
        k = len(n_categories)
        votes = plain.get("votes")
        if not isinstance(votes, list) or not votes:
            raise InputError("the mechanism's votes should be a list with at least one vote")
        weights = [integers_from_plain(vote, "votes", k) for vote in votes]
        thresholds = integers_from_plain(plain.get("thresholds"), "thresholds", len(votes))
        if max(map(max, weights), default=0) > _LIMIT or max(thresholds) > _LIMIT:
            raise InputError("the mechanism's votes are too large")
        return cls(
            VoteMixture(
                np.array(n_categories, dtype=np.int64),
                np.array(weights, dtype=np.int64).reshape(len(votes), k),
                np.array(thresholds, dtype=np.int64),
                floats_from_plain(plain.get("multipliers"), "multipliers", len(votes)),
                floats_from_plain(plain.get("retention"), "retention", k),
            )
        )
