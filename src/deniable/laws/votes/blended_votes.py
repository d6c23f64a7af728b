"""A blend of several weighted votes: near the optimum where a few levels are far above others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import floats_from_plain
from deniable.laws.votes.blend import VoteBlend
from deniable.laws.votes.gated_sum import gate_from_plain, gate_to_plain
from deniable.laws.votes.sampling import MEMORY, SumSampler
from deniable.laws.votes.vote_law import VoteLaw
from deniable.laws.votes.vote_sampler import VoteSampler
from deniable.randomness import BitSource, ExactCategorical


@dataclass(frozen=True)
class BlendedVotesLaw(VoteLaw[VoteBlend]):
    """A uniform record, reweighted by several votes over which attributes it keeps.

    Like :class:`deniable.laws.GatedSumLaw`, with more than one vote; for more attributes than
    :class:`deniable.laws.MixedVotesLaw` can hold. See :mod:`deniable.laws.votes.blend`.

    Args:
        numbers: votes, shares and retention.
    """

    family: ClassVar[str] = "blended-votes"

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        return self.numbers.eigenvalues(subset)

    def sampler(self) -> VoteSampler:
        numbers = self.numbers
        return VoteSampler(numbers.n_categories, numbers.retention, _BlendSampler(numbers))

    def to_plain(self) -> dict[str, Any]:
        numbers = self.numbers
        return {
            "family": self.family,
            "height": float(numbers.height).hex(),
            "votes": [gate_to_plain(part) for part in numbers.parts],
            "shares": [value.hex() for value in numbers.shares.tolist()],
            "retention": [value.hex() for value in numbers.retention.tolist()],
        }

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]
    ) -> "BlendedVotesLaw":
        votes = plain.get("votes")
        if not isinstance(votes, list) or not all(isinstance(vote, dict) for vote in votes):
            raise InputError("the mechanism's votes should be a list of votes")
        (height,) = floats_from_plain([plain.get("height")], "height", 1).tolist()
        alone = np.ones(len(n_categories))
        parts = [gate_from_plain(vote, n_categories, "vote", height, alone) for vote in votes]
        retention = floats_from_plain(plain.get("retention"), "retention", len(n_categories))
        shares = floats_from_plain(plain.get("shares"), "shares", len(parts))
        return cls(VoteBlend(tuple(parts), shares, retention))


class _BlendSampler:
    """Draws a vote, then a pattern under it.

    The votes' weights are doubles, drawn by exactly, as integers times a power of two. Which vote a
    row falls to has nothing to do with its values; the bits used depend on that alone.
    """

    def __init__(self, law: VoteBlend) -> None:
        weights = [float(weight).as_integer_ratio() for weight in law.weights_of_parts().tolist()]
        common = max(denominator for _, denominator in weights)  # all are powers of two
        self._vote = ExactCategorical([top * (common // bottom) for top, bottom in weights])
        memory = MEMORY // len(law.parts)
        self._patterns = [SumSampler(part, memory) for part in law.parts]
        self._n_attributes = law.n_attributes

    def draw(self, count: int, source: BitSource) -> NDArray[np.bool_]:
        """Return patterns, True where the attribute is changed, shape (k, count)."""
        vote = self._vote.draw(count, source)
        pattern = np.empty((self._n_attributes, count), dtype=np.bool_)
        for c, patterns in enumerate(self._patterns):
            rows = np.flatnonzero(vote == c)
            if rows.size:
                pattern[:, rows] = patterns.draw(rows.size, source)
        return pattern
