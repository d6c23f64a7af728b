"""Unbiased estimates from a released table, and what their errors are.

Two truths can be meant. ``table``: the frequencies in the very table that was randomized; only the
randomization is random. ``population``: the probabilities from which the table's rows were drawn;
the drawing is random too. Taking one for the other makes 95 % intervals cover 99.5 % or far less.

Notation: L the unbiased inverse of the channel M (L·M = 1), θ the released frequencies, π̂ = Lθ;
record r has weight w_r, released values y_r and true values x_r, W = Σ w_r, and
θ₂ = Σ_r w_r² 1[y_r]/W² (θ/n without weights). A released record moves the estimate of a linear
function c·π by (w_r/W) ℓ(y_r), ℓ = Lᵀc, and E[ℓ(y_r) | x_r] = c(x_r). Records are independent, so

    table       Var = Σ_r (w_r/W)² (E[ℓ² | x_r] − c(x_r)²),  estimated by  θ₂·ℓ² − (Lθ₂)·c²
    population  Var = Σ_r (w_r/W)² E[(ℓ(y_r) − c·π)²],       estimated by  θ₂·(ℓ − c·π̂)²

(with weights the population is the one they stand for, and the second line is the usual
linearization of a weighted mean). Without weights these are the quadratic forms of
M⁻¹(diag Mπ − M diag(π) Mᵀ)M⁻ᵀ/n and M⁻¹(diag θ − θθᵀ)M⁻ᵀ/n.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.tabulate import Tabulation
from deniable.mechanism.channel import Channel

Target = Literal["table", "population"]


class Value(NamedTuple):
    """One estimated number and its standard error."""

    estimate: float
    standard_error: float


@dataclass(frozen=True)
class Inference:
    """Everything linear that can be said about a joint table from its randomized counts.

    Args:
        channel: what the mechanism did to these attributes.
        tabulation: the released records, counted; shape ``channel.n_outputs``.
        target: which truth is estimated, ``table`` or ``population``.

    Raises:
        InputError: if the shapes differ, the target is unknown, or the randomization has wiped out
            a component of the table (see :meth:`~deniable.mechanism.Channel.check`).
    """

    channel: Channel
    tabulation: Tabulation
    target: Target = "table"

    def __post_init__(self) -> None:
        if self.target not in ("table", "population"):
            raise InputError(f"the target is 'table' or 'population', not '{self.target}'")
        if self.tabulation.counts.shape != self.channel.n_outputs:
            raise InputError(
                f"the counts have shape {self.tabulation.counts.shape}, but the released values "
                f"of {', '.join(self.channel.attributes)} make a table of shape "
                f"{self.channel.n_outputs}"
            )
        self.channel.check(self.tabulation.n_effective)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """π̂ = Lθ, unbiased; sums to 1, may be negative."""
        return self.channel.inverse.apply(self.tabulation.frequencies)

    @property
    def parts(self) -> tuple[tuple[float, "Inference"], ...]:
        """This table as a mixture of one part; see
        :class:`deniable.estimate.strata.StratifiedInference`."""
        return ((1.0, self),)

    @property
    def condition(self) -> float:
        """1/min |φ(T)|, how many times noise is magnified in the worst direction."""
        return self.channel.condition

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """Lθ₂, the unbiased estimate of Σ_r (w_r/W)² 1[x_r]."""
        if self.tabulation.squares is None:
            return self.values / self.tabulation.total
        return self.channel.inverse.apply(self.tabulation.square_frequencies)

    @cached_property
    def variance(self) -> NDArray[np.float64]:
        """Estimated variance of every cell, the shape of the table.

        For the table, (L∘L)θ₂ − Lθ₂; for the population that plus the sampling variance
        Lθ₂ − 2π̂∘Lθ₂ + π̂²·Σw²/W². Where noise would put the first outside what it can be for any
        true table (:func:`cell_variance_range`), or the second below zero, the nearest possible
        value is taken instead.
        """
        second = self.channel.inverse.squared().apply(self.tabulation.square_frequencies)
        low, high = cell_variance_range(self.channel)
        per_record = 1.0 / self.tabulation.n_effective
        variance = np.clip(second - self.squares, low * per_record, high * per_record)
        if self.target == "population":
            sampling = self.squares * (1 - 2 * self.values) + self.values**2 * per_record
            variance += np.maximum(sampling, 0.0)
        return np.asarray(variance)

    @cached_property
    def standard_error(self) -> NDArray[np.float64]:
        """Square root of :attr:`variance`."""
        return np.sqrt(self.variance)

    def covariance_with(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the estimated covariance of every cell with Σ weights·π̂; the table's shape.

        With weights 1 in one cell and 0 elsewhere it is a column of the covariance matrix:
        L(θ₂∘ℓ) − c∘Lθ₂ for the table, L(θ₂∘(ℓ − c·π̂)) − π̂ θ₂·(ℓ − c·π̂) for the population.
        """
        influence = self.influence(weights)
        frequencies = self.tabulation.square_frequencies
        if self.target == "table":
            covariance = self.channel.inverse.apply(frequencies * influence)
            return np.asarray(covariance - weights * self.squares)
        centred = frequencies * (influence - float((weights * self.values).sum()))
        return np.asarray(self.channel.inverse.apply(centred) - self.values * centred.sum())

    def influence(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ℓ = Lᵀc over the released table, for weights c over the true one."""
        return self.channel.inverse.transposed().apply(weights)

    def linear(self, weights: NDArray[np.float64]) -> Value:
        """Return Σ weights·π̂ and its standard error; ``weights`` broadcasts to the table."""
        return self.ratio(weights, np.ones(()))

    def ratio(self, numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> Value:
        """Return (Σ numerator·π̂)/(Σ denominator·π̂) and its delta-method standard error.

        The ratio R̂ errs by (numerator − R denominator)·(π̂ − π) over the denominator, to first
        order: the variance is that of a linear function. NaN if the denominator is not positive.

        Args:
            numerator, denominator: tables of weights; they broadcast to the shape of the table.
        """
        shape = self.values.shape
        below = float((denominator * self.values).sum())
        if below <= 0:
            return Value(float("nan"), float("nan"))
        estimate = float((numerator * self.values).sum()) / below
        weights = np.broadcast_to(np.asarray(numerator - estimate * denominator), shape)
        influence = self.influence(weights)
        around_zero = float((self.tabulation.square_frequencies * influence**2).sum())
        variance = np.asarray(around_zero)
        if self.target == "table":
            known = float((self.squares * weights**2).sum())
            variance = less_known(variance, np.asarray(known))
        return Value(estimate, float(variance) ** 0.5 / below)

    def shares(self, n_by: int) -> tuple[NDArray[np.float64], NDArray[np.float64], "Inference"]:
        """Return each cell's share of its subgroup, with standard errors.

        Args:
            n_by: the last ``n_by`` axes are those of the subgroups.

        Returns:
            π̂(a, b)/π̂(b) and its delta-method standard error, the shape of the table, NaN where
            π̂(b) is not positive; and the subgroups' own inference, for π̂(b).
        """
        margin = self.margin(n_by)
        below = np.where(margin.values > 0, margin.values, np.nan)
        share = self.values / below
        variance = np.maximum(self.share_mean_square(share, margin), 0.0)
        if self.target == "table":
            variance = less_known(variance, self.known_of_share(share, margin))
        return share, np.sqrt(variance) / below, margin

    def margin(self, n_by: int) -> "Inference":
        """Return the inference about the last ``n_by`` attributes."""
        channel = Channel(self.channel.mechanism, self.channel.attributes[-n_by:])
        counts = self.tabulation.margin(self.channel.margin_axes(n_by))
        return Inference(channel, counts.reshaped(channel.n_outputs), self.target)

    def share_mean_square(
        self, share: NDArray[np.float64], margin: "Inference"
    ) -> NDArray[np.float64]:
        """Return, per cell, Σ (w_r/W)² D(y_r)² with D a record's influence on a share times π(b).

        Args:
            share: R, the shares.
            margin: of the subgroups.
        """
        # The influence of a record on the share R = π(a,b)/π(b) is D = L_J − R L_B over π(b), with
        # L_J, L_B the entries of the inverses for the joint table and for the subgroups (columns of
        # L sum to 1, so summing L_J over a gives L_B). Its mean square needs the maps L_J∘L_J,
        # L_J∘L_B and L_B∘L_B; its mean given x is 1[(a,b)] − R 1[b].
        n_by = margin.values.ndim
        axes = tuple(range(self.values.ndim - n_by, self.values.ndim))
        inverse, margin_inverse = self.channel.inverse, margin.channel.inverse
        frequencies = self.tabulation.square_frequencies
        margin_frequencies = margin.tabulation.square_frequencies
        return np.asarray(
            inverse.squared().apply(frequencies)
            - 2 * share * inverse.times(margin_inverse, axes).apply(frequencies)
            + share**2 * margin_inverse.squared().apply(margin_frequencies)
        )

    def known_of_share(
        self, share: NDArray[np.float64], margin: "Inference"
    ) -> NDArray[np.float64]:
        """Return, per cell, the estimate of Σ (w_r/W)² (1[(a, b)] − R 1[b])²."""
        return np.asarray((1 - 2 * share) * self.squares + share**2 * margin.squares)


def less_known(around_zero: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a mean square less what is known: the variance given the true table."""
    # The known part is the square of what is known of each record. Where noise in a rare subgroup
    # makes the difference negative, the mean square itself, which estimates the larger variance of
    # the population; but a difference that is zero up to rounding is zero: columns released as they
    # are have no error.
    difference = around_zero - known
    rounding = 1e-12 * np.abs(around_zero)
    limited = np.where(difference < -rounding, around_zero, np.maximum(difference, 0.0))
    return np.asarray(np.where(np.abs(difference) <= rounding, 0.0, limited))


def cell_variance_range(
    channel: Channel,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the greatest variance of a cell's estimate from one record, given the
    record, over all records; shapes broadcast to the table.

    The variance for true values x' of the estimate of cell x is u(x, x') − 1[x = x'], with
    u = (L∘L)M, again a pattern kernel times small matrices. Whatever the true table, a cell's
    ``table`` variance is between these two over n.
    """
    found = _second_moments(channel)
    least = np.minimum(found.same_low - 1.0, found.low)
    most = np.maximum(found.same_high - 1.0, found.high)
    return np.maximum(least, 0.0), np.maximum(most, 0.0)


def _second_moments(channel: Channel) -> "_Range":
    # Of u(x, x'). In a product of factors, x' ≠ x means different in at least one; what a pattern
    # factor gives does not depend on x.
    moments = channel.second_moments
    m = len(channel.attributes)
    factors: list[_Range] = []
    kernel = np.maximum(moments.kernel.ravel(), 0.0)
    if kernel.size > 1:
        same, other = kernel[:1], kernel[1:]
        factors.append(_Range(same, same, other.min(keepdims=True), other.max(keepdims=True)))
    matched = set(moments.pattern_axes)
    for axis, matrix in moments.matrices.items():
        axes = moments.axes_of(axis)
        matched.update(axes)
        shape = [channel.n_categories[j] if j in axes else 1 for j in range(m)]
        factors.append(_Range.of(np.maximum(matrix, 0.0), channel.belongs(axis), shape))
    for axis in set(range(m)) - matched:  # released as it is
        n = channel.n_categories[axis]
        shape = [n if j == axis else 1 for j in range(m)]
        factors.append(_Range.of(np.eye(n), np.eye(n, dtype=bool), shape))
    found = factors[0]
    for factor in factors[1:]:
        found = found.times(factor)
    return found


class _Range(NamedTuple):
    """Between which values u(x, x') lies, by x: for true values x' that are counted in cell x, and
    for others. A cell that is a sum over parts holds several x'."""

    same_low: NDArray[np.float64]
    same_high: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of(
        cls, matrix: NDArray[np.float64], on: NDArray[np.bool_], shape: Sequence[int]
    ) -> "_Range":
        """Return the range over the columns of a matrix, in a shape that broadcasts."""
        return cls(
            np.where(on, matrix, np.inf).min(axis=1).reshape(shape),
            np.where(on, matrix, -np.inf).max(axis=1).reshape(shape),
            np.where(on, np.inf, matrix).min(axis=1).reshape(shape),
            np.where(on, -np.inf, matrix).max(axis=1).reshape(shape),
        )

    def times(self, other: "_Range") -> "_Range":
        """Return the range of products: different means different in at least one factor."""
        low = np.minimum(self.low * other.low, self.low * other.same_low)
        high = np.maximum(self.high * other.high, self.high * other.same_high)
        return _Range(
            self.same_low * other.same_low,
            self.same_high * other.same_high,
            np.minimum(low, self.same_low * other.low),
            np.maximum(high, self.same_high * other.high),
        )


@dataclass(frozen=True)
class ExpectedError:
    """Standard errors of a table's cells, predicted before there are data.

    Args:
        worst: the largest standard error of any cell, over all true tables.
        uniform: root of ``mean_variance``.
        mean_variance: variance of a cell, averaged over cells, if the true table is uniform. For
            pattern laws and target ``table`` it is the same for every true table.
    """

    worst: float
    uniform: float
    mean_variance: float


def expected_error(channel: Channel, n_records: int, target: Target = "table") -> ExpectedError:
    """Return the standard errors to expect in a table of these attributes.

    One record's variance at cell x is E u(x, x') − 1[x = x'] (``table``) or E u(x, x') − π(x)²
    (``population``), with u of :func:`cell_variance_range`. Averaged over x and a uniform x', u is
    the mean square of the entries of L over outputs, which for pattern laws is
    Σ_T d_T/φ(T)²/N², d_T = ∏_{i∈T}(a_i − 1), N cells: for one attribute
    (1 − 1/a)(1/φ² − 1)/(a n), resp. (1 − 1/a)/(φ² a n).

    Raises:
        InputError: if there are no records or the channel cannot be inverted.
    """
    if n_records < 1:
        raise InputError("the number of records must be at least 1")
    channel.check(float("inf"))
    found = _second_moments(channel)
    diagonal, high = found.same_high, found.high
    if target == "table":
        worst = float(np.maximum(diagonal - 1.0, high).max())
    else:
        # π(x) = p on the cell, the rest where it hurts most: p u_d + (1 − p) u_o − p², concave.
        p = np.clip((diagonal - high) / 2, 0.0, 1.0)
        worst = float((p * diagonal + (1 - p) * high - p**2).max())
    cells = float(np.prod(channel.n_categories))
    moments = channel.second_moments
    # Mean over x and x' of a product is the product of the means: on the pattern axes the constant
    # component's eigenvalue over the number of cells.
    mean = float(moments.eigenvalues.flat[0]) / float(np.prod(moments.pattern_categories))
    matched = set(moments.pattern_axes)
    for axis, matrix in moments.matrices.items():
        matched.update(moments.axes_of(axis))
        mean *= float(matrix.mean())
    for axis in set(range(len(channel.attributes))) - matched:
        mean /= channel.n_categories[axis]
    mean_variance = max(mean - (1 / cells if target == "table" else 1 / cells**2), 0.0) / n_records
    return ExpectedError((max(worst, 0.0) / n_records) ** 0.5, mean_variance**0.5, mean_variance)
