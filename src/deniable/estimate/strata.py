"""Estimates from tables whose strata were randomized by mechanisms of their own.

The column that forms the strata is released as it is, so every record's mechanism is known. With
π_h the table of stratum h and W_h = total_h/total its share of the weight, π = Σ_h W_h π_h, and
what a record in stratum h adds to the estimate of c·π is (w_r/W) ℓ_h(y_r), ℓ_h = L_hᵀ c. So every
sum over records in :mod:`deniable.estimate.inference` becomes a sum over strata of such sums, each
with its own L; their normalisation to the whole table brings a factor W_h, or W_h² with squared
weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.inference import Inference, Target, Value, less_known
from deniable.estimate.tabulate import Tabulation
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.strata import Strata


@dataclass(frozen=True)
class StratifiedTabulation:
    """Released records counted stratum by stratum.

    Args:
        parts: the mechanism and the counts of every stratum that has rows; counts have one shape.

    Raises:
        InputError: if there is none.
    """

    parts: tuple[tuple[Mechanism, Tabulation], ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError("there are no records to estimate from")

    @property
    def n_records(self) -> int:
        """Rows of all strata."""
        return sum(tabulation.n_records for _, tabulation in self.parts)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return sum(tabulation.total for _, tabulation in self.parts)

    @property
    def shares(self) -> tuple[float, ...]:
        """W_h: each stratum's share of the weight."""
        return tuple(tabulation.total / self.total for _, tabulation in self.parts)

    @property
    def n_effective(self) -> float:
        """(Σw)²/Σw² over all strata."""
        squares = sum(
            share**2 / tabulation.n_effective
            for share, (_, tabulation) in zip(self.shares, self.parts, strict=True)
        )
        return 1.0 / squares

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """Share of the total weight per released cell."""
        parts = zip(self.shares, self.parts, strict=True)
        return np.asarray(sum(share * part.frequencies for share, (_, part) in parts))


Counts = Tabulation | StratifiedTabulation
AnyMechanism = Mechanism | Strata


@dataclass(frozen=True)
class StratifiedInference:
    """What :class:`~deniable.estimate.inference.Inference` says, for the strata together.

    Args:
        parts: every stratum's share of the weight, and the inference about its ``table``.
        target: which truth is estimated, ``table`` or ``population``. In a population the sizes of
            the strata are random too.

    Raises:
        InputError: if the target is unknown.
    """

    parts: tuple[tuple[float, Inference], ...]
    target: Target = "table"

    def __post_init__(self) -> None:
        if self.target not in ("table", "population"):
            raise InputError(f"the target is 'table' or 'population', not '{self.target}'")

    @property
    def channel(self) -> Channel:
        """The channel of the first stratum: it tells the attributes, and the shape of the table."""
        return self.parts[0][1].channel

    @property
    def condition(self) -> float:
        """The worst stratum's."""
        return max(part.condition for _, part in self.parts)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """π̂ = Σ W_h π̂_h, unbiased; sums to 1, may be negative."""
        return np.asarray(sum(share * part.values for share, part in self.parts))

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """The unbiased estimate of Σ_r (w_r/W)² 1[x_r]."""
        return np.asarray(sum(share**2 * part.squares for share, part in self.parts))

    @cached_property
    def variance(self) -> NDArray[np.float64]:
        """Estimated variance of every cell: the strata's randomizations are independent; for the
        population the drawing of rows and strata comes on top, as without strata."""
        variance = np.asarray(sum(share**2 * part.variance for share, part in self.parts))
        if self.target == "population":
            per_record = sum(share**2 / part.tabulation.n_effective for share, part in self.parts)
            sampling = self.squares * (1 - 2 * self.values) + self.values**2 * per_record
            variance = variance + np.maximum(sampling, 0.0)
        return variance

    @cached_property
    def standard_error(self) -> NDArray[np.float64]:
        """Square root of :attr:`variance`."""
        return np.sqrt(self.variance)

    def linear(self, weights: NDArray[np.float64]) -> Value:
        """Return Σ weights·π̂ and its standard error; ``weights`` broadcasts to the table."""
        return self.ratio(weights, np.ones(()))

    def ratio(self, numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> Value:
        """Return (Σ numerator·π̂)/(Σ denominator·π̂) and its delta-method standard error; NaN if
        the denominator is not positive."""
        below = float((denominator * self.values).sum())
        if below <= 0:
            return Value(float("nan"), float("nan"))
        estimate = float((numerator * self.values).sum()) / below
        weights = np.broadcast_to(np.asarray(numerator - estimate * denominator), self.values.shape)
        variance = np.asarray(
            sum(
                share**2
                * float((part.tabulation.square_frequencies * part.influence(weights) ** 2).sum())
                for share, part in self.parts
            )
        )
        if self.target == "table":
            variance = less_known(variance, np.asarray((self.squares * weights**2).sum()))
        return Value(estimate, float(variance) ** 0.5 / below)

    def shares(
        self, n_by: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], "StratifiedInference"]:
        """Return each cell's share of its subgroup, standard errors, and the subgroups' own
        inference; as :meth:`deniable.estimate.inference.Inference.shares`."""
        margins = tuple((share, part.margin(n_by)) for share, part in self.parts)
        margin = StratifiedInference(margins, self.target)
        below = np.where(margin.values > 0, margin.values, np.nan)
        shares = self.values / below
        mean_square = np.zeros(self.values.shape)
        known = np.zeros(self.values.shape)
        for (share, part), (_, part_margin) in zip(self.parts, margins, strict=True):
            mean_square += share**2 * part.share_mean_square(shares, part_margin)
            known += share**2 * part.known_of_share(shares, part_margin)
        variance = np.maximum(mean_square, 0.0)
        if self.target == "table":
            variance = less_known(variance, known)
        return shares, np.sqrt(variance) / below, margin


AnyInference = Inference | StratifiedInference


def infer(
    counts: Counts, mechanism: AnyMechanism, attributes: Sequence[str], target: Target
) -> AnyInference:
    """Return the inference about a joint table, with or without strata.

    Args:
        counts: the released records, counted by the outputs of the attributes.
        mechanism: what randomized them; strata have their own.
        attributes: names, in the order of the table's axes.
        target: ``table`` or ``population``.

    Raises:
        InputError: as :class:`~deniable.estimate.inference.Inference`.
    """
    names = tuple(attributes)
    if isinstance(counts, Tabulation):
        if isinstance(mechanism, Strata):
            (mechanism,) = mechanism.mechanisms.values()
        return Inference(Channel(mechanism, names), counts, target)
    parts = [Inference(Channel(m, names), tabulation, "table") for m, tabulation in counts.parts]
    return StratifiedInference(tuple(zip(counts.shares, parts, strict=True)), target)
