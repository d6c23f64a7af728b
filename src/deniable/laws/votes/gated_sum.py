"""The law of one weighted sum: a vote, a clipped ramp, and what lies between."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import floats_from_plain, integers_from_plain
from deniable.laws.votes import backward
from deniable.laws.votes.gated import GatedSum
from deniable.laws.votes.sampling import SumSampler
from deniable.laws.votes.vote_law import VoteLaw
from deniable.laws.votes.vote_sampler import VoteSampler

_MAX_CACHED_PAIRS = 64
"""Attributes up to which the attenuations of all pairs are computed together."""


@dataclass(frozen=True)
class GatedSumLaw(VoteLaw[GatedSum]):
    """A uniform record, reweighted by how many of the important attributes it keeps.

    A pattern's density grows with the sum of the weights of the kept attributes: in one step (the
    optimum for given levels, a weighted vote), or along a clipped exponential ramp (which also caps
    what full knowledge of the rest can reveal). It needs 3 k + 3 numbers. See
    :mod:`deniable.laws.votes.gated`.

    Args:
        numbers: gate, weights, dither and retention.
    """

    family: ClassVar[str] = "gated-sum"

    def eigenvalues(self, subset: Sequence[int]) -> NDArray[np.float64]:
        if len(subset) == 2 and len(self.n_categories) <= _MAX_CACHED_PAIRS:
            single = self._attenuations[list(subset)]
            pair = self._pair_attenuations[subset[0], subset[1]]
            return np.array([[1.0, single[1]], [single[0], pair]])
        return backward.eigenvalues(self.numbers, subset)

    @cached_property
    def _attenuations(self) -> NDArray[np.float64]:
        return self.attenuations()

    @cached_property
    def _pair_attenuations(self) -> NDArray[np.float64]:
        return self.numbers.pair_attenuations()

    def sampler(self) -> VoteSampler:
        numbers = self.numbers
        return VoteSampler(numbers.n_categories, numbers.retention, SumSampler(numbers))

    def to_plain(self) -> dict[str, Any]:
        numbers = self.numbers
        return {
            "family": self.family,
            "gate": numbers.gate,
            "height": float(numbers.height).hex(),
            **gate_to_plain(numbers),
            "retention": [value.hex() for value in numbers.retention.tolist()],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]) -> "GatedSumLaw":
        gate = plain.get("gate")
        if gate not in ("vote", "ramp"):
            raise InputError("the mechanism's gate should be 'vote' or 'ramp'")
        (height,) = floats_from_plain([plain.get("height")], "height", 1).tolist()
        retention = floats_from_plain(plain.get("retention"), "retention", len(n_categories))
        return cls(gate_from_plain(plain, n_categories, gate, height, retention))


def gate_to_plain(numbers: GatedSum) -> dict[str, Any]:
    """Return where a gate rises and what the attributes weigh, as plain values."""
    return {
        "start": float(numbers.start).hex(),
        "width": float(numbers.width).hex(),
        "weights": [f"{weight:x}" for weight in numbers.weights.tolist()],
        "dither": [value.hex() for value in numbers.dither.tolist()],
    }


def gate_from_plain(
    plain: Mapping[str, Any],
    n_categories: tuple[int, ...],
    gate: Literal["vote", "ramp"],
    height: float,
    retention: NDArray[np.float64],
) -> GatedSum:
    """Rebuild a gated sum from :func:`gate_to_plain`.

    Raises:
        InputError: if the values do not describe one.
    """
    k = len(n_categories)
    start, width = floats_from_plain([plain.get("start"), plain.get("width")], "gate", 2).tolist()
    weights = integers_from_plain(plain.get("weights"), "weights", k)
    if max(weights, default=0) > 1 << 60:
        raise InputError("the mechanism's weights are too large")
    return GatedSum(
        np.array(n_categories, dtype=np.int64),
        np.array(weights, dtype=np.int64),
        floats_from_plain(plain.get("dither"), "dither", k),
        gate,
        start,
        width,
        height,
        retention,
    )
