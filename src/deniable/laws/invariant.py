"""Invariant PRAM: a response made from a table so that its expected frequencies are unchanged.

Source: Gouweleeuw, Kooiman, Willenborg and de Wolf (1998), "Post randomisation for statistical
disclosure control".

The proofs are in docs/proofs/lambda.md, Theorem 8.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import UNBOUNDED, LawSampler, Level, Ratio
from deniable.laws.matrix import MatrixChannel, PlainMatrix, ResponseLaw
from deniable.laws.patterns import code_type
from deniable.laws.plain import Count, PlainLaw
from deniable.randomness import BitSource, ExactCategorical


class PlainInvariant(PlainLaw, tag="invariant"):
    """The record of the law."""

    base: PlainMatrix
    counts: list[Count]
    share: float


@dataclass(frozen=True)
class InvariantChannel(ResponseLaw):
    """A response whose expected released frequencies are those of the table it was made for.

    A category is first answered by the base matrix M; the result y is returned by
    Q[x, y] = M[y, x] n_x / Σ_z M[y, z] n_z, the distribution of true categories behind y
    (Gouweleeuw et al.). With R = QM, R n = n. Both stages are drawn from integers, so this holds
    exactly. With ``alpha`` the response is αR + (1 − α)I, invariant too (as in sdcMicro's
    ``pram``).

    It is made from the data, and so without differential privacy: its levels are unbounded;
    :meth:`ratio_if_frequencies_known` bounds the information of an answer.

    ``base``: the first stage, with as many outputs as categories and positive entries. ``counts``:
    rows n_x per category in the table or stratum, shape (a,). ``alpha``: α, above 0 and at most
    1; the exact value of the float.

    >>> law = InvariantChannel(MatrixChannel((2,), 2, ((3, 1), (1, 3))), counts=(30, 10))
    >>> law.matrix().round(6).tolist(), (law.matrix() @ law.counts).round(6).tolist()
    ([[0.8, 0.6], [0.2, 0.4]], [30.0, 10.0])
    """

    family: ClassVar[str] = "invariant"
    Plain = PlainInvariant

    base: MatrixChannel
    counts: tuple[int, ...]
    alpha: float = 1.0
    n_categories: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        (n,) = self.base.n_categories
        object.__setattr__(self, "n_categories", (n,))
        object.__setattr__(self, "counts", tuple(int(count) for count in self.counts))
        if len(self.base.weights) != n or len(self.counts) != n:
            raise InputError(
                "invariant PRAM needs a square matrix and one count per category; there are "
                f"{n} categories, {len(self.base.weights)} outputs and {len(self.counts)} counts"
            )
        if min(map(min, self.base.weights)) == 0:
            raise InputError("the first matrix of invariant PRAM needs entries above 0 everywhere")
        if min(self.counts) < 0 or sum(self.counts) == 0:
            raise InputError("invariant PRAM needs the counts of a table with at least one record")
        if not 0 < self.alpha <= 1:
            raise InputError(
                f"α of invariant PRAM lies above 0 and at most at 1, not at {self.alpha:g}"
            )

    @classmethod
    def for_codes(
        cls, base: MatrixChannel, codes: NDArray[Any], alpha: float = 1.0
    ) -> "InvariantChannel":
        """Return the response that preserves the frequencies of one column of codes, (n,)."""
        (n,) = base.n_categories
        return cls(base, tuple(np.bincount(codes, minlength=n).tolist()), alpha)

    @cached_property
    def back_weights(self) -> tuple[tuple[int, ...], ...]:
        """The second stage's integers: answer y is sent back to x in proportion to ``[y][x]``."""
        return tuple(
            tuple(weight * count for weight, count in zip(row, self.counts, strict=True))
            for row in self.base.weights
        )

    def matrix(self) -> NDArray[np.float64]:
        """Return αR + (1 − α)I in floating point, shape (a, a); columns add up to 1."""
        answer = self.base.matrix()
        back = (answer * np.array(self.counts, dtype=np.float64)).T
        back = back / back.sum(axis=0)
        n = len(self.counts)
        return np.asarray(self.alpha * (back @ answer) + (1 - self.alpha) * np.eye(n))

    @cached_property
    def _occurring(self) -> NDArray[np.intp]:
        return np.flatnonzero(np.array(self.counts))

    def left_inverse(self) -> NDArray[np.float64]:
        """Return L, shape (a, a), with L·M = 1 on the categories that occur.

        Rows and columns of the others are 0: they are never reported. On those that occur the
        matrix is similar to a positive definite one if the base is regular (R = D Mᵀ E M with
        diagonal D, E > 0), so it has an inverse.
        """
        n = len(self.counts)
        inverse = np.zeros((n, n))
        some = np.ix_(self._occurring, self._occurring)
        inverse[some] = np.linalg.inv(self.matrix()[some])
        return inverse

    def record_level(self, subset: Sequence[int] | None = None) -> Level:
        return () if subset is not None and not list(subset) else UNBOUNDED

    def ratio_if_frequencies_known(self) -> Ratio:
        """Return the largest factor by which an answer is likelier for one occurring category than
        for another, rounded up.

        It bounds the information of an answer for an observer who knows the frequencies and so the
        matrix. Entries are sums and products of at most 3a + 8 positive numbers, so their relative
        error is below (3a + 16)·2⁻⁵³ each.
        """
        n = len(self.counts)
        some = self.matrix()[np.ix_(self._occurring, self._occurring)]
        ratio = float((some.max(axis=1) / some.min(axis=1)).max())
        return (ratio * (1 + (8 * n + 64) * 2.0**-53)).as_integer_ratio()

    def keep_probabilities(self) -> NDArray[np.float64]:
        """Return the expected fraction of this table's rows whose answer is the truth."""
        counts = np.array(self.counts, dtype=np.float64)
        return np.array([self.matrix().diagonal() @ counts / counts.sum()])

    def to_plain(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "base": self.base.to_plain(),
            "counts": list(self.counts),
            "share": self.alpha,
        }

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]
    ) -> "InvariantChannel":
        base = MatrixChannel.from_plain(plain["base"], n_categories)
        return cls(base, tuple(plain["counts"]), float(plain["share"]))

    def sampler(self) -> "InvariantSampler":
        """Prepare the tables for drawing."""
        return InvariantSampler(self)


class InvariantSampler(LawSampler):
    """Draws both stages and the coin for every row, whether used or not."""

    def __init__(self, response: InvariantChannel) -> None:
        (n,) = response.base.n_categories
        self._type = code_type(n)
        self._answer = response.base.sampler()
        self._back = [ExactCategorical(row) for row in response.back_weights]
        changed = Fraction(response.alpha)
        self._coin = ExactCategorical([changed.denominator - changed.numerator, changed.numerator])

    def draws(self, law: InvariantChannel) -> bool:
        """Whether both stages and the coin are the law's."""
        changed = Fraction(law.alpha)
        return (
            self._answer.draws(law.base)
            and len(self._back) == len(law.back_weights)
            and all(map(ExactCategorical.draws_by, self._back, law.back_weights))
            and self._coin.draws_by([changed.denominator - changed.numerator, changed.numerator])
        )

    def randomize(self, columns: Sequence[NDArray[Any]], source: BitSource) -> list[NDArray[Any]]:
        """Return the randomized codes of one column, shape (n,)."""
        (codes,) = columns
        (answers,) = self._answer.randomize([codes], source)
        outputs = np.empty(len(codes), dtype=self._type)
        for y, table in enumerate(self._back):
            rows = np.flatnonzero(answers == y)
            outputs[rows] = table.draw(rows.size, source)
        randomized = self._coin.draw(len(codes), source).astype(bool)
        return [np.where(randomized, outputs, codes.astype(self._type, copy=False))]
