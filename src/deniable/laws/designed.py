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
        before = sum(map(max, self._cells([self._prior()], guessed, known)))
        answers = self._cells(self._joint(), guessed, known)
        after = Fraction(sum(map(max, answers)), 1 << self.bits)
        worst = max(max(cells) / sum(cells) for cells in answers if any(cells))
        return Guesses(*(value.as_integer_ratio() for value in (before, after, worst)))

    def _cells(
        self,
        rows: Sequence[Sequence[Fraction]],
        guessed: Sequence[int] | None,
        known: Sequence[int] | None,
    ) -> list[list[Fraction]]:
        """Return, for every answer and every known value, the joint probabilities of the values
        that are to be guessed."""
        (n,) = self.n_categories
        guessed = range(n) if guessed is None else guessed
        known = [0] * n if known is None else known
        answers = []
        for row in rows:
            by_known: dict[int, dict[int, Fraction]] = {}
            for mass, value, given in zip(row, guessed, known, strict=True):
                cells = by_known.setdefault(given, {})
                cells[value] = cells.get(value, Fraction(0)) + mass
            answers += [list(cells.values()) for cells in by_known.values()]
        return answers

    def _prior(self) -> list[Fraction]:
        exact = [Fraction(value) for value in self.prior]
        total = sum(exact)
        return [value / total for value in exact]

    def _joint(self) -> list[list[Fraction]]:
        prior = self._prior()
        return [
            [weight * mass for weight, mass in zip(row, prior, strict=True)] for row in self.weights
        ]

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
