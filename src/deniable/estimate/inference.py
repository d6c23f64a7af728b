"""Unbiased estimates from a released table, and their errors.

There are two targets. ``table``: the frequencies in the very table that was randomized; only the
randomization is random. ``population``: the probabilities from which the table's rows were drawn;
the drawing is random too. Taking one for the other makes 95 % intervals cover 99.5 % or far less.

L is the unbiased inverse of the channel M (L·M = 1), θ the released frequencies, π̂ = Lθ; record r
has weight w_r, W = Σ w_r, and θ₂ are the squared weights over W² per released cell (θ/n without
weights). With ℓ = Lᵀc the variances of c·π̂ are estimated by

    table       θ₂·ℓ² − (Lθ₂)·c²
    population  θ₂·(ℓ − c·π̂)²

(docs/proofs/estimation.md, Theorem 1; 3 for ranges, 4 for ratios, 5 for strata). For the table the
known part (Lθ₂)·c² is less by the variance of the rounding of numbers (docs/proofs/numbers.md,
section 3).

In a survey a row's contribution (w_r/W)(ℓ(y_r) − c·π̂), under forms less its form's mean, is added
up by cluster, and the variance for the population is that of the clusters' sums within strata
(:mod:`deniable.estimate.survey`). Under published forms the spread between forms is taken off every
variance, since the number of rows of each form is known: Σ_f q_f E_f² − q E², with q_f and q the
squared weights of the form's rows and of all, over W², and E_f and E the mean contributions of
these.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from statistics import NormalDist
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.survey import cell_variance
from deniable.estimate.tabulate import Counts, Floats, Tabulation, less_mean
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import Target, cell_variance_range
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.readable import LARGEST_READABLE, READABLE_ERRORS

UNCERTAIN_ERRORS = READABLE_ERRORS
"""An estimated frequency that is not this many of its standard errors above zero (a relative
standard error above 50 %, or a negative estimate) is marked as uncertain."""

MOST_SURVEYED = 10_000
"""Cells up to which errors of a survey are computed, cell by cell."""

_AT_ONCE = 200
"""Cells whose errors of a survey are computed together."""

Linear = Callable[[Floats], Floats]
"""A linear function of tables."""

UNCERTAIN_TEXT = (
    "less than two standard errors above 0 %, more than two above 100 %, or two standard errors "
    f"are more than {100 * LARGEST_READABLE:g} points"
)


class Value(NamedTuple):
    """One estimated number and its standard error."""

    estimate: float
    standard_error: float


@dataclass(frozen=True)
class Part:
    """The estimate of one stratum's table from its randomized counts.

    ``tabulation``: its released records, counted; shape ``channel.n_outputs``.
    """

    channel: Channel | PublishedChannel
    tabulation: Tabulation

    def __post_init__(self) -> None:
        if self.tabulation.counts.shape != self.channel.n_outputs:
            raise InputError(
                f"the counts have shape {self.tabulation.counts.shape}, but the released values "
                f"of {', '.join(self.channel.attributes)} make a table of shape "
                f"{self.channel.n_outputs}"
            )
        self.channel.check(self.tabulation.n_effective)

    @cached_property
    def values(self) -> Floats:
        """π̂ = Lθ, unbiased; sums to 1, may be negative."""
        return self.channel.inverse.apply(self.tabulation.frequencies)

    @cached_property
    def squares(self) -> Floats:
        """Lθ₂, the unbiased estimate of Σ_r (w_r/W)² 1[x_r]."""
        if self.tabulation.squares is None:
            return self.values / self.tabulation.total
        return self.channel.inverse.apply(self.tabulation.square_frequencies)

    @cached_property
    def variance(self) -> Floats:
        """Estimated variance of every cell given the true table, (L∘L)θ₂ − Lθ₂.

        Limited to the range over all true tables
        (:func:`~deniable.mechanism.prediction.cell_variance_range`).
        """
        second = self.channel.inverse.squared().apply(self.tabulation.square_frequencies)
        second = second - self.between_forms(lambda table: table)
        low, high = cell_variance_range(self.channel)
        per_record = 1.0 / self.tabulation.n_effective
        return np.asarray(np.clip(second - self.squares, low * per_record, high * per_record))

    def influence(self, weights: Floats) -> Floats:
        """Return ℓ = Lᵀc over the released table, for weights c over the true one."""
        return self.channel.inverse.transposed().apply(weights)

    def margin(self, n_by: int) -> "Part":
        """Return the same of the last ``n_by`` attributes."""
        if isinstance(self.channel, PublishedChannel):
            return self._regrouped(self.channel.margin(n_by))
        channel = Channel(self.channel.mechanism, self.channel.attributes[-n_by:])
        counts = self.tabulation.margin(self.channel.margin_axes(n_by))
        return Part(channel, counts.mapped(lambda table: table.reshape(channel.n_outputs)))

    def counted_for(self, attributes: Sequence[str]) -> Tabulation:
        """Return the counts for the last of the attributes alone."""
        if not isinstance(self.channel, PublishedChannel):
            return self.margin(len(attributes)).tabulation
        mechanism = self.channel.mechanism
        counted = self._regrouped(PublishedChannel(mechanism, tuple(attributes))).tabulation
        shape = channel_of(mechanism, attributes).n_outputs
        return counted.mapped(lambda table: table.reshape(shape))

    def _regrouped(self, channel: PublishedChannel) -> "Part":
        mine = self.channel
        assert isinstance(mine, PublishedChannel)
        return Part(channel, self.tabulation.mapped(lambda table: mine.regrouped(table, channel)))

    @cached_property
    def form_means(self) -> tuple[tuple[float, Floats], ...]:
        """Per group of forms q_f, its rows' squared weights over W², and the table E_f, the mean
        contribution of its rows. Empty without forms."""
        if not isinstance(self.channel, PublishedChannel):
            return ()
        pieces = self.channel.forward.pieces(self.tabulation.square_frequencies)
        return tuple(
            (float(piece.sum()), mean.apply(self.values))
            for piece, mean in zip(pieces, self.channel.means, strict=True)
        )

    def between_forms(self, first: Linear, second: Linear | None = None) -> Floats:
        """Return the spread between forms of their rows' mean contribution to a linear function of
        the table, Σ q_f E_f² − q E².

        ``second``: another, for the product of the two in place of the square of one.
        """
        if not self.form_means:
            return np.zeros(())
        second = first if second is None else second
        total = -sum(weight for weight, _ in self.form_means) * first(self.values)
        total = total * second(self.values)
        for weight, mean in self.form_means:
            total = total + weight * first(mean) * second(mean)
        return np.asarray(total)

    def mean_square(self, weights: Floats) -> float:
        """Return Σ_r (w_r/W)² ℓ(y_r)² less the spread between forms, for a linear function of the
        table whose value is near zero (as in a ratio's error); without the spread where the
        difference is negative.

        ``weights``: c, the shape of the table.
        """
        square = float((self.tabulation.square_frequencies * self.influence(weights) ** 2).sum())
        between = self.between_forms(lambda table: np.asarray((weights * table).sum()))
        return float(less_known(np.asarray(square), between))

    def fraction_mean_square(self, fraction: Floats, margin: "Part") -> Floats:
        """Return, per cell, Σ (w_r/W)² D(y_r)² with D a record's influence on a cell's fraction of
        its subgroup, times π(b)."""
        # The influence of a record on R = π(a,b)/π(b) is D = L_J − R L_B over π(b), with L_J, L_B
        # the entries of the inverses for the joint table and for the subgroups (columns of L sum to
        # 1, so summing L_J over a gives L_B). Its mean square needs the maps L_J∘L_J, L_J∘L_B and
        # L_B∘L_B; its mean given x is 1[(a,b)] − R 1[b].
        n_by = margin.values.ndim
        axes = tuple(range(self.values.ndim - n_by, self.values.ndim))
        inverse: Any = self.channel.inverse  # both of the same kind
        margin_inverse = margin.channel.inverse
        frequencies = self.tabulation.square_frequencies
        margin_frequencies = margin.tabulation.square_frequencies
        inside = tuple(range(self.values.ndim - n_by))
        return np.asarray(
            inverse.squared().apply(frequencies)
            - 2 * fraction * inverse.times(margin_inverse, axes).apply(frequencies)
            + fraction**2 * margin_inverse.squared().apply(margin_frequencies)
            - self.between_forms(lambda table: table - fraction * table.sum(axis=inside))
        )

    def known_of_fraction(self, fraction: Floats, margin: "Part") -> Floats:
        """Return, per cell, the estimate of Σ (w_r/W)² (1[(a, b)] − R 1[b])²."""
        return np.asarray((1 - 2 * fraction) * self.squares + fraction**2 * margin.squares)


@dataclass(frozen=True)
class Inference:
    """The estimate of a joint table, and of linear functions of it, from its randomized counts.

    ``attributes``: names, in the order of the table's axes.
    """

    counts: Counts
    attributes: tuple[str, ...]
    target: Target = "table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        one_of(self.target, TARGETS, "target")
        _ = self.parts

    @cached_property
    def parts(self) -> tuple[tuple[float, Part], ...]:
        """Every stratum's fraction W_h of the weight, its channel and counts."""
        return tuple(
            (fraction, Part(channel_of(mechanism, self.attributes, of.counts), of))
            for fraction, (mechanism, of) in zip(
                self.counts.fractions, self.counts.parts, strict=True
            )
        )

    @property
    def channel(self) -> Channel | PublishedChannel:
        """The channel of the first stratum, which has the attributes and shape of all."""
        return self.parts[0][1].channel

    @cached_property
    def answered(self) -> Floats:
        """1 where no attribute has its declared missing category, else 0; shape of the table."""
        table = np.ones(())
        for variable in self.channel.variables:
            of = variable.attribute
            table = np.multiply.outer(table, [float(c != of.missing) for c in of.categories])
        return np.asarray(table)

    @property
    def condition(self) -> float:
        """1/min |φ(T)|, how many times noise is magnified in the worst direction of any stratum."""
        return max(part.channel.condition for _, part in self.parts)

    @cached_property
    def values(self) -> Floats:
        """π̂ = Σ W_h π̂_h, unbiased; sums to 1, may be negative."""
        return self._over_strata(1, (part.values for _, part in self.parts))

    @cached_property
    def squares(self) -> Floats:
        """The unbiased estimate of Σ_r (w_r/W)² 1[x_r]."""
        return self._over_strata(2, (part.squares for _, part in self.parts))

    @cached_property
    def variance(self) -> Floats:
        """Estimated variance of every cell, the shape of the table.

        For the table the sum of W_h² Var_h over strata, which are randomized independently; for
        the population that plus the sampling variance Lθ₂ − 2π̂∘Lθ₂ + π̂²·Σw²/W², or zero where
        noise makes that negative.
        """
        if self.counts.cluster_strata is not None:
            return self._survey_variances(lambda cell: cell)
        variance = self._over_strata(2, (part.variance for _, part in self.parts))
        if self.target == "table":
            for _, around in self._rounding:
                variance = variance + around
        else:
            sampling = self.squares * (1 - 2 * self.values)
            sampling = sampling + self.values**2 * self.counts.square_weight
            variance = variance + np.maximum(sampling, 0.0)
        return variance

    @cached_property
    def _rounding(self) -> tuple[tuple[int, Floats], ...]:
        """Each axis of a number, and the largest variance of a cell from the rounding to its
        points, Σ (w_r/W)² h_j(1 − h_j); shape of the table."""
        sizes = self.values.shape
        return tuple(
            (axis, _both_sides(edges, axis, sizes[axis])) for axis, edges, _ in self._edges
        )

    @cached_property
    def _edges(self) -> tuple[tuple[int, Floats, Floats], ...]:
        """Each axis of a number; upper bounds of Σ (w_r/W)² h_j(x_r) h_{j+1}(x_r) for neighbouring
        points, shape of the table, with one point less on the axis; and the factor of their sum."""
        # With a and b the sums of h_j and h_{j+1} over the rows between two points, the sum of the
        # products is at most ab/(a + b); a and b are at most the shares of the two points. The sum
        # over all points is at most a quarter of that of the rows: a bound for functions with equal
        # steps, such as means.
        of_numbers = [
            axis
            for axis, variable in enumerate(self.channel.variables)
            if variable.attribute.number_grid is not None
        ]
        if not of_numbers:
            return ()
        positive = np.maximum(self.squares, 0.0)
        positive *= max(0.0, float(self.squares.sum())) / max(float(positive.sum()), 1e-300)
        bounds = []
        for axis in of_numbers:
            grid = self.channel.variables[axis].attribute.number_grid
            assert grid is not None
            lower = positive.take(np.arange(grid.n_points - 1), axis=axis)
            upper = positive.take(np.arange(1, grid.n_points), axis=axis)
            sums = np.maximum(lower + upper, 1e-300)
            edges = lower * upper / sums
            quarter = (positive.sum(axis=axis, keepdims=True)) / 4
            largest = np.maximum(edges.sum(axis=axis, keepdims=True), 1e-300)
            bounds.append((axis, edges, np.minimum(1.0, quarter / largest)))
        return tuple(bounds)

    def known(self, weights: Floats) -> Floats:
        """Return Σ (w_r/W)² c(x_r) d(x_r) for the known values of rows under pairs of linear
        functions, shape (m, m); ``weights`` has shape (m, *table)."""
        flat = weights.reshape(len(weights), -1)
        known = (flat * self.squares.ravel()) @ flat.T
        for axis, edges, factor in self._edges:
            n_points = edges.shape[axis]
            points = weights.take(np.arange(n_points + 1), axis=axis + 1)  # without missing values
            steps = np.diff(points, axis=axis + 1)
            largest = np.abs(steps).max(axis=axis + 1, keepdims=True)
            equal = np.ptp(steps, axis=axis + 1, keepdims=True) <= 1e-9 * largest
            steps = (steps * np.sqrt(np.where(equal, factor, 1.0))).reshape(len(weights), -1)
            known -= (steps * edges.ravel()) @ steps.T
        return np.asarray(known)

    def _over_strata(self, power: int, arrays: Iterable[Floats]) -> Floats:
        """Return Σ_h W_h^power array_h; of one stratum its array, which may be large, uncopied."""
        first, *others = arrays
        if not others:
            return first
        weights = [fraction**power for fraction, _ in self.parts]
        terms = zip(weights, (first, *others), strict=True)
        return np.asarray(sum(weight * array for weight, array in terms))

    @cached_property
    def standard_error(self) -> Floats:
        """Square root of :attr:`variance`."""
        return np.sqrt(self.variance)

    def linear(self, weights: Floats) -> Value:
        """Return Σ weights·π̂ and its standard error; ``weights`` broadcasts to the table."""
        return self.ratio(weights, np.ones(()))

    def ratio(self, numerator: Floats, denominator: Floats) -> Value:
        """Return (Σ numerator·π̂)/(Σ denominator·π̂) and its delta-method standard error; NaN if the
        denominator is not positive.

        ``numerator, denominator``: tables of weights; they broadcast to the shape of the table.
        """
        estimate, weights = self.linearized(numerator, denominator)
        return Value(estimate, self.error_of(weights))

    def linearized(self, numerator: Floats, denominator: Floats) -> tuple[float, Floats]:
        """Return a ratio R̂ and the weights c of its error, to first order c·(π̂ − π).

        c = (numerator − R̂ denominator)/(Σ denominator·π̂), so that c·π̂ = 0. The weights of several
        ratios add and subtract like the ratios. NaN if the denominator is not positive.
        """
        below = float((denominator * self.values).sum())
        if below <= 0:
            return float("nan"), np.full(self.values.shape, np.nan)
        estimate = float((numerator * self.values).sum()) / below
        weights = np.asarray(numerator - estimate * denominator) / below
        return estimate, np.broadcast_to(weights, self.values.shape)

    def error_of(self, weights: Floats) -> float:
        """Return the standard error of Σ weights·π̂ where that is 0, as of :meth:`linearized`."""
        if not np.all(np.isfinite(weights)):
            return float("nan")
        if self.counts.cluster_strata is not None:
            return math.sqrt(self.covariance(weights[None])[0, 0])
        variance = np.asarray(
            sum(fraction**2 * part.mean_square(weights) for fraction, part in self.parts)
        )
        if self.target == "table":
            variance = less_known(variance, self.known(weights[None])[0, 0])
        return math.sqrt(variance)

    def covariance(self, weights: Floats) -> Floats:
        """Return the estimated covariances of several linear functions Σ weights·π̂, shape (m, m).

        ``weights``: one table of weights per function, shape (m, *table).
        """
        flat = weights.reshape(len(weights), -1)
        if self.counts.cluster_strata is not None:
            return _survey_covariance([(self, weights)], self.counts.cluster_strata)
        centres = flat @ self.values.ravel() if self.target == "population" else np.zeros(len(flat))
        total = np.zeros((len(flat), len(flat)))
        for fraction, part in self.parts:
            influence = np.array([part.influence(one).ravel() for one in weights])
            influence -= centres[:, None]
            squares = part.tabulation.square_frequencies.ravel()
            total += fraction**2 * (influence * squares) @ influence.T
            total -= fraction**2 * part.between_forms(
                lambda table: (flat @ table.ravel())[:, None], lambda table: flat @ table.ravel()
            )
        if self.target == "table":
            total -= self.known(weights)
        return total

    def contributions(self, part: Part, weights: Floats) -> Floats:
        """Return (ℓ(y) − c·π̂)/W of released values in a survey, shape (m, outputs)."""
        influence = np.array([part.influence(one).ravel() for one in weights])
        frequencies = part.tabulation.frequencies.ravel()
        own = less_mean(influence, frequencies, part.channel.inverse)
        away = weights.reshape(len(weights), -1) @ (part.values - self.values).ravel()
        return np.asarray((own + away[:, None]) / self.counts.total)

    def _survey_variances(self, change: Callable[[Floats], Floats]) -> Floats:
        """Return the variance of a linear function of every cell in a survey, given from the cells'
        indicators, (m, *table)."""
        shape = self.values.shape
        if self.values.size > MOST_SURVEYED:
            raise InputError(
                f"a table of {self.values.size:,} cells has no errors of a survey, at most "
                f"{MOST_SURVEYED:,} cells have; name fewer attributes, or leave out `cluster` and "
                "`strata`"
            )
        variances = np.zeros(self.values.size)
        for start in range(0, self.values.size, _AT_ONCE):
            cells = np.arange(start, min(start + _AT_ONCE, self.values.size))
            members = np.zeros((len(cells), self.values.size))
            members[np.arange(len(cells)), cells] = 1.0
            weights = change(members.reshape(-1, *shape))
            some = np.isfinite(weights.reshape(len(cells), -1)).all(axis=1)
            variances[cells] = np.nan
            if some.any():
                variances[cells[some]] = np.diag(self.covariance(weights[some]))
        return variances.reshape(shape)

    def within(self, n_by: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return each cell's fraction of its subgroup, with standard errors, and which subgroups
        are too uncertain to divide by.

        ``n_by``: the last ``n_by`` axes are those of the subgroups.

        Π̂(a, b)/π̂(b) and its delta-method standard error, the shape of the table, NaN where π̂(b)
        is not positive; π̂(b) less than two of its standard errors above 0, the shape of the
        subgroups.
        """
        if self.counts.cluster_strata is not None:
            return self._within_survey(n_by)
        margin = self.margin(n_by)
        few = margin.values < UNCERTAIN_ERRORS * margin.standard_error
        below = np.where(margin.values > 0, margin.values, np.nan)
        within = self.values / below
        parts = [(part, part.margin(n_by)) for _, part in self.parts]
        mean_square = self._over_strata(
            2, (part.fraction_mean_square(within, of) for part, of in parts)
        )
        variance = np.maximum(mean_square, 0.0)
        if self.target == "table":
            known = self._over_strata(2, (p.known_of_fraction(within, of) for p, of in parts))
            inside = tuple(range(within.ndim - n_by))
            for axis, around in self._rounding:
                if axis in inside:
                    known = known - around
                else:
                    known = known - (1 - 2 * within) * around
                    known = known - within**2 * around.sum(axis=inside)
            variance = less_known(variance, known)
        return within, np.sqrt(variance) / below, few

    def _within_survey(self, n_by: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return the same as :meth:`within` in a survey."""
        inside = tuple(range(self.values.ndim - n_by))
        sizes = self.values.sum(axis=inside)
        within = self.values / np.where(sizes > 0, sizes, np.nan)

        def of_fraction(cells: Floats) -> Floats:
            axes = tuple(1 + axis for axis in inside)
            groups = np.broadcast_to(cells.sum(axis=axes, keepdims=True), cells.shape)
            pairs = zip(cells, groups, strict=True)
            return np.array([self.linearized(cell, group)[1] for cell, group in pairs])

        members = np.eye(sizes.size).reshape(sizes.size, *[1] * len(inside), *sizes.shape)
        members = np.broadcast_to(members, (sizes.size, *self.values.shape))
        errors = np.sqrt(np.diag(self.covariance(members))).reshape(sizes.shape)
        errors_within = np.sqrt(self._survey_variances(of_fraction))
        return within, errors_within, sizes < UNCERTAIN_ERRORS * errors

    def subgroups(self, first: int) -> Iterator[tuple[tuple[tuple[str, str], ...], Floats]]:
        """Yield each combination of categories of the attributes from the ``first`` axis on, by
        name, and its indicator over these axes; without such attributes everybody."""
        names, variables = self.attributes[first:], self.channel.variables[first:]
        shape = self.values.shape[first:]
        for index in np.ndindex(shape):
            member = np.zeros(shape)
            member[index] = 1.0
            categories = (v.attribute.categories[i] for v, i in zip(variables, index, strict=True))
            yield tuple(zip(names, categories, strict=True)), member

    def margin(self, n_by: int) -> "Inference":
        """Return the inference about the last ``n_by`` attributes."""
        attributes = self.attributes[-n_by:]
        counts = Counts(
            tuple((p.channel.mechanism, p.counted_for(attributes)) for _, p in self.parts),
            self.counts.group,
            self.counts.column,
        )
        return Inference(counts, attributes, self.target)


def _both_sides(edges: Floats, axis: int, size: int) -> Floats:
    """Return the sum of the values on both sides of each point of an axis, with zeros up to its
    size."""
    empty = size - edges.shape[axis]
    before, after = ([(0, 0)] * edges.ndim for _ in range(2))
    before[axis], after[axis] = (1, empty - 1), (0, empty)
    return np.asarray(np.pad(edges, before) + np.pad(edges, after))


def less_known(around_zero: Floats, known: Floats) -> Floats:
    """Return the variance given the true table: a mean square less its known part."""
    # The known part is the square of each row's known mean. Where noise in a rare subgroup
    # makes the difference negative, the mean square itself, which estimates the larger variance of
    # the population; but a difference that is zero up to rounding is zero: columns released as they
    # are have no error.
    difference = around_zero - known
    rounding = 1e-12 * np.abs(around_zero)
    limited = np.where(difference < -rounding, around_zero, np.maximum(difference, 0.0))
    return np.asarray(np.where(np.abs(difference) <= rounding, 0.0, limited))


TARGETS: tuple[Target, ...] = get_args(Target)

_Choice = TypeVar("_Choice", bound=str)


def one_of(name: str, known: Sequence[_Choice], subject: str) -> _Choice:
    """Return the known name that a user wrote.

    >>> one_of("table", TARGETS, "target")
    'table'
    """
    for choice in known:
        if choice == name:
            return choice
    names = f"{', '.join(known[:-1])} or {known[-1]}"
    raise InputError(f"the {subject} is {names}, not '{name}'")


def check_between(value: float, subject: str) -> None:
    """Raise unless the value is in (0, 1)."""
    if not isinstance(value, Real) or not 0 < value < 1:
        shown = f"{float(value):g}" if isinstance(value, Real) else type(value).__name__
        shown = repr(value) if isinstance(value, str) else shown
        raise InputError(f"{subject} a number between 0 and 1, not {shown}")


def normal_quantile(level: float) -> float:
    """Return z with Pr[|Z| ≤ z] = level for a standard normal Z."""
    check_between(level, "the confidence level is")
    return NormalDist().inv_cdf(0.5 + level / 2)


def joint_error(changes: Sequence[tuple[Inference, Floats]]) -> float:
    """Return the standard error of Σ weights·π̂ over several groups of rows, independent but for the
    clusters of a survey. ``changes``: their tables and weights."""
    strata = changes[0][0].counts.cluster_strata
    if strata is None:
        return math.hypot(*(inference.error_of(weights) for inference, weights in changes))
    if not all(np.isfinite(weights).all() for _, weights in changes):
        return float("nan")
    each = [(inference, weights[None]) for inference, weights in changes]
    return math.sqrt(_survey_covariance(each, strata)[0, 0])


def _survey_covariance(
    changes: Sequence[tuple[Inference, Floats]], strata: NDArray[np.int64]
) -> Floats:
    """Return the covariances in a survey of sums of linear functions of several tables."""
    parts = [
        (part.tabulation.clusters, inference.contributions(part, weights))
        for inference, weights in changes
        for _, part in inference.parts
        if part.tabulation.clusters is not None
    ]
    return cell_variance(parts, strata)
