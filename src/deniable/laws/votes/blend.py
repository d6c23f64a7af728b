"""A mixture of several votes for any number of attributes, each with weights of its own.

    f(S) ∝ Σ_c α_c g_c(S),   α_c > 0,  g_c a soft vote from 1 up to e^E, the same E for all,

then an optional independent k-ary response per attribute (retention). Where a few attributes have
levels far above the others', many patterns lie on the optimum's threshold, and no single vote is
near it: a mixture is (docs/proofs/optimal.md). f lies between 1 and e^E times Σ α_c, so the
record's level is E at most; every part falls when one more attribute is changed, and so does f.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from deniable.errors import InputError
from deniable.laws.votes import backward
from deniable.laws.votes.gated import GatedSum, Moments, after_response
from deniable.laws.votes.sums import UNIT, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class VoteBlend:
    """A law as in the module's heading. Frozen; equal if all its numbers are equal.

    Args:
        parts: votes over the same attributes, of one height, without retention of their own.
        shares: α_c > 0, shape (C,).
        retention: probability in (0, 1] of *not* replacing the output by a uniform category, (k,).

    Raises:
        InputError: if the parts do not fit together or a number is out of its range.
    """

    parts: tuple[GatedSum, ...]
    shares: FloatArray
    retention: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts or len(self.shares) != len(self.parts):
            raise InputError("a blend of votes needs one share per vote, and at least one vote")
        if not (np.all(self.shares > 1e-200) and math.fsum(self.shares.tolist()) < 1e200):
            raise InputError("the shares of a blend of votes are positive and finite")
        first = self.parts[0]
        for part in self.parts:
            if part.gate != "vote" or part.height != first.height or np.any(part.retention != 1.0):
                raise InputError("the parts of a blend are votes of one height, without retention")
            if not np.array_equal(part.n_categories, first.n_categories):
                raise InputError("the parts of a blend of votes are over the same attributes")
        fits = len(self.retention) == first.n_attributes
        if not fits or not np.all((self.retention > 0) & (self.retention <= 1)):
            raise InputError("retention probabilities lie in (0, 1]")

    @cached_property
    def _values(self) -> tuple[object, ...]:
        return (self.parts, self.shares.tobytes(), self.retention.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoteBlend) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values)

    @property
    def n_attributes(self) -> int:
        """k."""
        return self.parts[0].n_attributes

    @property
    def n_categories(self) -> IntArray:
        """a_i, shape (k,)."""
        return self.parts[0].n_categories

    @property
    def uniform_keep(self) -> FloatArray:
        """r_i = 1/a_i, shape (k,)."""
        return self.parts[0].uniform_keep

    @property
    def height(self) -> float:
        """E in nats."""
        return self.parts[0].height

    @property
    def epsilon(self) -> float:
        """The record's level E before rounding, nats."""
        return self.height

    def at_height(self, height: float) -> "VoteBlend":
        """Return the law with another E, in the same proportions."""
        return replace(self, parts=tuple(part.at_height(height) for part in self.parts))

    @cached_property
    def _normalizers(self) -> FloatArray:
        """Shares of the parts in the law, α_c E_μ[g_c]/Σ, shape (C,)."""
        logs = np.array([part.moments().log_normalizer for part in self.parts])
        masses = self.shares * np.exp(logs - logs.max())
        return np.asarray(masses / masses.sum())

    def moments(self) -> Moments:
        """Return every attribute's keep and change probability, retention included.

        Sums over parts of non-negative numbers. E_μ[g_c] is good to half a part's error bound and
        the roundings of its logarithm and exponential, at most (2 |ln E_μ[g_c]| + 8) u; twice, for
        numerator and denominator, and C + 8 roundings of products and sums.
        """
        found = [part.moments() for part in self.parts]
        logs = [abs(one.log_normalizer) for one in found]
        top = max(one.log_normalizer for one in found)
        mass = self._normalizers
        keep = mass @ np.array([one.keep for one in found])
        change = mass @ np.array([one.change for one in found])
        gain = mass @ np.array([one.gain for one in found])
        r, blur = self.uniform_keep, 1.0 - self.retention
        scale = float(self.shares @ np.exp(np.array([one.log_normalizer for one in found]) - top))
        return Moments(
            self.retention * keep + blur * r,
            self.retention * change + blur * (1.0 - r),
            self.retention * gain,
            top + math.log(scale / math.fsum(self.shares.tolist())),
            2 * max(one.relative_error for one in found)
            + (8 * max(logs) + 4 * len(found) + 64) * UNIT,
        )

    def given_rest(self) -> FloatArray:
        """Return an upper bound on each attribute's level against full knowledge, (k,) nats."""
        live = np.any([(part.weights > 0) | (part.dither > 0) for part in self.parts], axis=0)
        return after_response(np.where(live, self.height, 0.0), self.uniform_keep, self.retention)

    def eigenvalues(self, subset: Sequence[int]) -> FloatArray:
        """Return φ(T) for every T ⊆ subset, shape (2,)·m, index 1 on axis j puts subset[j] in."""
        chosen = [int(i) for i in subset]
        found = sum(
            share * backward.components(part, chosen)
            for share, part in zip(self.shares.tolist(), self.parts, strict=True)
        )
        return backward.normalized(np.asarray(found), self.retention[chosen])

    def pair_attenuations(self) -> FloatArray:
        """Return φ({i, j}) for all pairs, (k, k); the diagonal holds NaN."""
        found = [part.pair_attenuations() for part in self.parts]
        mixed = np.tensordot(self._normalizers, found, axes=1)
        return np.asarray(mixed * np.outer(self.retention, self.retention))

    def subset_level(self, subset: Sequence[int]) -> float:
        """Return ln(max f_A/min f_A) of the law projected to the columns A, nats, not rounded up.

        By monotonicity (see `backward.subset_level`) the extremes are where all of A is kept and
        where all of it is changed, for every part and so for their sum.
        """
        ends = [backward.extremes(part, subset, self.retention) for part in self.parts]
        kept, changed = self.shares @ np.array(ends)
        return math.log(kept / changed)

    def weights_of_parts(self) -> FloatArray:
        """Return α_c G^c_0, the parts' weights as a sampler computes them, shape (C,).

        G^c_0 is the number that the part's own sampler divides by first, so that its error cancels
        in the law as drawn.
        """
        first = [float(backward.Backward(part).after(0)[0]) for part in self.parts]
        return np.asarray(self.shares * np.array(first))
