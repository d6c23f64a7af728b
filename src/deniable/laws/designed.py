"""A response matrix designed for a prior, and its guessing probabilities under that prior."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.law import Guesses
from deniable.laws.matrix import MatrixChannel
from deniable.laws.plain import Bits, Decimal, HexInteger, PlainLaw

_SUM_TOLERANCE = 1e-9
"""Tolerance of the prior's sum: a prior written with ten digits passes."""

_ROUNDED = 1e-14
"""Largest distance of a rounded share from its multiple: errors of floating point only."""


class PlainDesigned(PlainLaw, tag="designed matrix", omit_defaults=True):
    """The record of the law."""

    bits: Bits
    weights: list[list[HexInteger]]
    prior: list[Decimal]
    prior_source: Annotated[str, msgspec.Meta(max_length=1 << 16)] | None = None
    prior_steps: Annotated[int, msgspec.Meta(ge=2, le=1 << 32)] | None = None


@dataclass(frozen=True)
class DesignedChannel(MatrixChannel):
    """One attribute with a response matrix and the prior it was designed for.

    Its ε may be unbounded. Instead the success of guesses from an answer is limited, if people are
    distributed like the prior (Huang and Du, equations (8) and (9)). The estimate has its least
    variance there, too (:meth:`left_inverse`).

    ``weights``: input x gives output y with probability ``weights[y][x] / 2**bits``; shape (m, a).
    ``prior``: the distribution that the matrix was designed for, shape (a,): the exact
    values of the floats, divided by their sum.

    >>> law = DesignedChannel((2,), 2, ((4, 1), (0, 3)), prior=(0.5, 0.5))
    >>> law.record_level(), law.guesses()
    (inf, Guesses(before=(1, 2), after=(7, 8), worst_posterior=(1, 1)))
    """

    family: ClassVar[str] = "designed matrix"
    Plain = PlainDesigned

    prior: tuple[float, ...] = ()
    prior_source: str | None = None
    prior_steps: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        (n,) = self.n_categories
        object.__setattr__(self, "prior", tuple(float(value) for value in self.prior))
        if len(self.prior) != n or not all(0 < value <= 1 for value in self.prior):
            raise InputError(
                f"the prior of a response matrix needs a probability above 0 for each of {n} "
                "categories"
            )
        if abs(sum(self.prior) - 1) > _SUM_TOLERANCE:
            raise InputError("the prior of the response matrix does not add up to 1")
        if (steps := self.prior_steps) is not None and any(
            abs(value * steps - round(value * steps)) > _ROUNDED * steps for value in self.prior
        ):
            raise InputError(
                "the prior of the response matrix was read off the data and is not rounded to "
                f"1/{steps}, as its source states"
            )

    @classmethod
    def for_prior(
        cls,
        matrix: NDArray[np.float64],
        prior: Sequence[float],
        source: str | None = None,
        steps: int | None = None,
    ) -> "DesignedChannel":
        """Turn a column-stochastic matrix in floating point, shape (m, a), into integers."""
        plain = MatrixChannel.from_probabilities(matrix)
        return cls(plain.n_categories, plain.bits, plain.weights, tuple(prior), source, steps)

    def left_inverse(self) -> NDArray[np.float64]:
        """Return L with L·M = 1, shape (a, m): unbiased for any truth.

        Square matrices have one inverse. With more outputs than categories it is the one of least
        variance if the truth is the prior, L = J⁻¹ Mᵀ diag(1/r), J = Mᵀ diag(1/r) M, r = M·prior
        (docs/proofs/frontier.md, Lemma 1).
        """
        matrix = self.matrix()
        if matrix.shape[0] == matrix.shape[1]:
            return super().left_inverse()
        prior = np.array(self.prior) / sum(self.prior)
        occurrence = matrix @ prior
        seen = occurrence > 0
        scale = np.sqrt(occurrence[seen])
        inverse = np.zeros((matrix.shape[1], matrix.shape[0]))
        # The pseudoinverse of diag(r^−½) M is J⁻¹ Mᵀ diag(r^−½).
        inverse[:, seen] = np.linalg.pinv(matrix[seen] / scale[:, None]) / scale
        return inverse

    def guesses(
        self, guessed: Sequence[int] | None = None, known: Sequence[int] | None = None
    ) -> Guesses:
        """Return the success of guesses if people are distributed as the prior.

        ``guessed``: the value to guess of every category, shape (a,); by default the category
        itself. ``known``: the value known beforehand of every category, shape (a,); by default
        none.

        Source: Huang and Du: ``after``, Σ_y max_x M[y, x] p(x), is one minus the privacy of their
        equation (8); ``worst_posterior`` is equation (9).
        """
        cells: dict[int, dict[int, list[int]]] = {}  # categories by the known and the guessed value
        for x in range(self.n_categories[0]):
            value, given = x if guessed is None else guessed[x], 0 if known is None else known[x]
            cells.setdefault(given, {}).setdefault(value, []).append(x)
        # Integers: masses of categories over a common denominator, as floats are dyadic.
        unit = max(value.as_integer_ratio()[1] for value in self.prior)
        prior = np.array([[int(Fraction(value) * unit) for value in self.prior]], dtype=object)
        joint = np.array(self.weights, dtype=object) * prior
        before = after = 0
        worst = Fraction(0)
        for of in cells.values():
            groups = list(of.values())
            before += max(prior[0, group].sum() for group in groups)
            table = np.stack([joint[:, group].sum(axis=1) for group in groups], axis=1)
            most = table.max(axis=1)
            after += most.sum()
            ratios = set(zip(most, table.sum(axis=1), strict=True))
            worst = max(worst, *(Fraction(a, b) for a, b in ratios if b))
        whole = prior.sum()
        found = Fraction(before, whole), Fraction(after, whole << self.bits), worst
        return Guesses(*(value.as_integer_ratio() for value in found))

    def to_plain(self) -> dict[str, Any]:
        # As text: the shortest decimal that reads back as the same number, in any language.
        plain = {**super().to_plain(), "prior": [repr(value) for value in self.prior]}
        stated = {"prior_source": self.prior_source, "prior_steps": self.prior_steps}
        return plain | {key: value for key, value in stated.items() if value is not None}

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], n_categories: tuple[int, ...]
    ) -> "DesignedChannel":
        matrix = MatrixChannel.from_plain(plain, n_categories)
        try:
            values = tuple(map(float, plain["prior"]))
        except ValueError:
            raise InputError(
                "the prior of the response matrix holds something that is not a number"
            ) from None
        source, steps = plain.get("prior_source"), plain.get("prior_steps")
        return cls(n_categories, matrix.bits, matrix.weights, values, source, steps)
