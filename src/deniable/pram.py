"""The curator's mode: randomizing a whole table after it was collected (PRAM).

Plain PRAM needs nothing of its own: any law draws whole tables too, and its ε holds. Here is what
only a curator can do, because it looks at the table: invariant PRAM, a matrix per stratum, and the
contraction of numerical attributes. What each of them does and does not guarantee is said in the
``…_STATEMENT`` constants, which records and screens show.

Sources: Gouweleeuw, Kooiman, Willenborg and de Wolf (1998), "Post randomisation for statistical
disclosure control"; Ruiz, "λ-randomization", section 5.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.conversions import check_attenuation
from deniable.errors import InputError
from deniable.families import MatrixChannel
from deniable.families.law import Sampler
from deniable.patterns import code_type
from deniable.randomness import BitSource, ExactCategorical

INVARIANT_STATEMENT = (
    "Invariant PRAM uses the data: its matrix is made from this table's own frequencies, so that "
    "they are kept in expectation. To someone who knows these frequencies already, each record is "
    "protected at the level of the first stage's matrix. The frequencies themselves are protected "
    "by nothing, the matrix gives them away, and as a whole the release is not differentially "
    "private. A category that nobody has is never reported."
)

STRATUM_STATEMENT = (
    "Each stratum has its own matrix, and the column that forms the strata is released as it is: "
    "it is protected by nothing, and two records are compared only within a stratum."
)

NUMERICAL_STATEMENT = (
    "Numerical values are pulled towards their mean: λx + (1 − λ) times the mean. This is a "
    "fixed calculation, not a randomization, and carries no differential-privacy guarantee: the "
    "mean stays as it was, so whoever knows λ can compute every value back exactly, and the order "
    "of the values is kept. What it carries: the mean is the same, standard deviations are λ times "
    "what they were, a covariance is multiplied by the product of the two λ, and correlations do "
    "not change. For a guarantee, cut the attribute into bins fixed in advance and randomize those."
)


@dataclass(frozen=True)
class InvariantResponse:
    """A response whose expected released frequencies are those of the table it was made for.

    Two stages (Gouweleeuw et al.): a category is first answered by the base matrix M; what comes
    out is sent back by Q[x, y] = M[y, x] n_x / Σ_z M[y, z] n_z, the distribution of true categories
    behind the answer y. With R = QM, R n = Q (M n) = n. Both stages are drawn from integers, so
    this holds exactly, not to rounding. With ``share`` α the response is αR + (1 − α)I, invariant
    as well (the ``alpha`` of sdcMicro's ``pram``).

    It is made from the data; see ``INVARIANT_STATEMENT``.

    Args:
        base: the first stage, with as many outputs as categories and positive entries.
        counts: records n_x per category in the table or stratum, shape (a,).
        share: α, above 0 and at most 1; taken as the exact value of the float.

    Raises:
        InputError: if the base has another shape or a zero, a count is negative or no whole number,
            there are no records, or α is out of range.
    """

    base: MatrixChannel
    counts: tuple[int, ...]
    share: float = 1.0

    def __post_init__(self) -> None:
        (n,) = self.base.n_categories
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
        if not 0 < self.share <= 1:
            raise InputError(
                f"the share of invariant PRAM lies above 0 and at most at 1, not at {self.share:g}"
            )

    @classmethod
    def for_codes(
        cls, base: MatrixChannel, codes: NDArray[Any], share: float = 1.0
    ) -> "InvariantResponse":
        """Return the response that keeps the frequencies of one column of codes, shape (n,)."""
        (n,) = base.n_categories
        return cls(base, tuple(np.bincount(codes, minlength=n).tolist()), share)

    @cached_property
    def back_weights(self) -> tuple[tuple[int, ...], ...]:
        """The second stage's integers: answer y is sent to x in proportion to ``[y][x]``."""
        return tuple(
            tuple(weight * count for weight, count in zip(row, self.counts, strict=True))
            for row in self.base.weights
        )

    def exact_matrix(self) -> list[list[Fraction]]:
        """Return αR + (1 − α)I with ``[y][x]`` = Pr[y | x], exactly; shape (a, a)."""
        n = len(self.counts)
        share, total = Fraction(self.share), 1 << self.base.bits
        sums = [sum(row) for row in self.back_weights]
        matrix = [[Fraction(0)] * n for _ in range(n)]
        for x in range(n):
            for back, answered, whole in zip(
                self.back_weights, self.base.weights, sums, strict=True
            ):
                for y in range(n):
                    matrix[y][x] += share * Fraction(answered[x] * back[y], total * whole)
            matrix[x][x] += 1 - share
        return matrix

    def matrix(self) -> NDArray[np.float64]:
        """Return αR + (1 − α)I in floating point, shape (a, a); columns add up to 1."""
        answer = self.base.matrix()
        back = (answer * np.array(self.counts, dtype=np.float64)).T
        back = back / back.sum(axis=0)
        n = len(self.counts)
        return np.asarray(self.share * (back @ answer) + (1 - self.share) * np.eye(n))

    def sampler(self) -> "InvariantSampler":
        """Prepare the tables for drawing."""
        return InvariantSampler(self)


class InvariantSampler:
    """Draws both stages and the coin for every record, whatever it holds."""

    def __init__(self, response: InvariantResponse) -> None:
        (n,) = response.base.n_categories
        self._type = code_type(n)
        self._answer = response.base.sampler()
        self._back = [ExactCategorical(row) for row in response.back_weights]
        changed = Fraction(response.share)
        self._coin = ExactCategorical([changed.denominator - changed.numerator, changed.numerator])

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


def randomize_strata(
    columns: Sequence[NDArray[Any]],
    strata: NDArray[Any],
    samplers: Mapping[int, Sampler],
    source: BitSource,
    names: Sequence[str] | None = None,
) -> list[NDArray[Any]]:
    """Randomize each stratum's rows with its own sampler; rows stay in place.

    Args:
        columns: codes per attribute, shape (n,) each.
        strata: the stratum of every row, codes, shape (n,).
        samplers: by stratum; of laws or of :class:`InvariantResponse`.
        source: where random bits come from.
        names: the strata's names by code, for messages.

    Raises:
        InputError: if a stratum has no rows, or rows have a stratum without a sampler.
    """
    present = set(np.unique(strata).tolist())
    for stratum in sorted({*samplers, *present}):
        called = f"'{names[stratum]}'" if names is not None else f"number {stratum + 1}"
        if stratum not in present:
            raise InputError(f"stratum {called} has no rows; leave it out")
        if stratum not in samplers:
            raise InputError(f"stratum {called} occurs in the table but has no matrix; give it one")
    outputs: list[NDArray[Any]] = []
    for stratum in sorted(present):
        rows = np.flatnonzero(strata == stratum)
        drawn = samplers[stratum].randomize([column[rows] for column in columns], source)
        if not outputs:
            outputs = [np.empty(len(strata), dtype=part.dtype) for part in drawn]
        for output, part in zip(outputs, drawn, strict=True):
            output[rows] = part
    return outputs


def contract_to_mean(
    values: NDArray[np.float64], attenuation: float, strata: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Return λx + (1 − λ)x̄, Ruiz's randomization of a numerical attribute.

    Section 5: the n individuals are the categories, and x' = Px with P = λI + (1 − λ)P*, n × n. See
    ``NUMERICAL_STATEMENT``: no differential privacy, and undone by whoever knows λ.

    Args:
        values: shape (n,), finite.
        attenuation: λ.
        strata: the stratum of every row, shape (n,): the mean is then that of the row's stratum.

    Raises:
        InputError: if λ is not between 0 and 1, there are no values, or one is missing or infinite.
    """
    check_attenuation(attenuation)
    x = np.asarray(values, dtype=np.float64)
    if not x.size:
        raise InputError("there are no rows to randomize")
    if not np.all(np.isfinite(x)):
        row = int(np.argmin(np.isfinite(x)))
        raise InputError(
            f"row {row + 1} of a numerical attribute is missing or not a finite number; remove or "
            "replace it first"
        )
    groups = np.zeros(len(x), dtype=np.intp) if strata is None else np.asarray(strata)
    result = np.empty(len(x))
    for group in np.unique(groups):
        rows = groups == group
        members = x[rows]
        mean = math.fsum(members) / len(members)
        result[rows] = mean + attenuation * (members - mean)
    return result
