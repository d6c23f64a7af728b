"""Errors and covariances of estimates, predicted before there are data.

A pattern law multiplies the covariance C of two attributes' indicators by φ_ij and adds a term
(:mod:`deniable.estimate.covariance`); response matrices transform it into M_i C M_jᵀ.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws import PatternLaw
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism
from deniable.mechanism.published import PublishedChannel, channel_of
from deniable.mechanism.table_map import TableMap

Target = Literal["table", "population"]
"""Which truth is meant: the frequencies in the very table that was randomized, or the probabilities
from which its rows were drawn."""


@dataclass(frozen=True)
class CovariancePrediction:
    """The factor by which a mechanism multiplies the covariance of two attributes.

    ``asked``: under published forms, the share of rows that include both. The other fields then
    describe these rows: the least and the greatest factor over forms, and ``spurious`` farthest
    from 0.
    """

    attributes: tuple[str, str]
    share: float | None
    spurious: float
    least_share: float
    most_share: float
    asked: float | None = None

    @property
    def warning(self) -> str:
        """Warning for readers of a raw cross-table; empty under independent responses."""
        if self.spurious == 0:
            return ""
        first, second = self.attributes
        return (
            f"'{first}' and '{second}' are randomized together: the release shows a covariance "
            "also where they are independent. Do not read it off the released table; estimate it."
        )

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        plain = asdict(self) | {"attributes": list(self.attributes)}
        return {key: value for key, value in plain.items() if key != "asked" or value is not None}

    @classmethod
    def of_share(
        cls, attributes: tuple[str, str], share: float, spurious: float = 0.0
    ) -> "CovariancePrediction":
        """Return the prediction where every covariance is multiplied by one factor."""
        return cls(attributes, share, spurious, abs(share), abs(share))


def predict_covariance(mechanism: Mechanism, first: str, second: str) -> CovariancePrediction:
    """Return the attenuation of the covariance of two attributes (Ruiz, equation (9), and its
    general form for joint laws).
    """
    channel = channel_of(mechanism, (first, second))
    if isinstance(channel, PublishedChannel):
        if channel.all_under_forms:
            return _covariance_under_forms(channel)
        raise InputError(
            f"only one of '{first}' and '{second}' is under forms, so the attenuation of their "
            "covariance differs from form to form; estimate it instead"
        )
    if channel.shared_matrices:
        raise InputError(
            f"the attenuation of the covariance of '{first}' and '{second}' cannot be predicted: "
            f"'{channel.shared_matrices[0]}' is randomized by one matrix, so it depends "
            "on all of its parts"
        )
    positions = channel.positions
    blocks = [mechanism.block_of(position) for position in positions]
    if blocks[0][0] is blocks[1][0]:
        eigenvalues = channel.forward.eigenvalues
        if eigenvalues.ndim < 2:  # both unchanged
            return CovariancePrediction.of_share((first, second), 1.0)
        attenuation = float(eigenvalues[1, 1])
        spurious = attenuation - float(eigenvalues[1, 0]) * float(eigenvalues[0, 1])
        # A product law's φ_ij is the product itself: no rounding error is to look like a term.
        spurious = 0.0 if abs(spurious) <= 4e-16 * abs(attenuation) else spurious
        return CovariancePrediction.of_share((first, second), attenuation, spurious)
    singles = [block.law.attribute_lambdas()[place] for block, place in blocks]
    if singles[0] is not None and singles[1] is not None:
        return CovariancePrediction.of_share((first, second), singles[0] * singles[1])
    least = most = 1.0
    for axis, single in enumerate(singles):
        if single is None:
            weakest, strongest = _contrast_range(channel.forward.matrices[axis])
        else:
            weakest = strongest = abs(single)
        least, most = least * weakest, most * strongest
    return CovariancePrediction((first, second), None, 0.0, least, most)


def _covariance_under_forms(channel: PublishedChannel) -> CovariancePrediction:
    """Return the attenuation of a covariance in rows whose forms include both attributes."""
    first, second = channel.attributes
    asked, left, added = 0.0, [], []
    for fraction, forward in zip(channel.rows, channel.forward.parts, strict=True):
        if len(forward.pattern_axes) < 2:
            continue
        (_, of_second), (of_first, both) = forward.eigenvalues
        asked += fraction
        left.append(float(both))
        added.append(float(both - of_first * of_second))
    if not left:
        raise InputError(f"no form includes both '{first}' and '{second}'")
    sizes = [abs(share) for share in left]
    return CovariancePrediction(
        (first, second),
        left[0] if len(set(left)) == 1 else None,
        max(added, key=abs),
        min(sizes),
        max(sizes),
        asked,
    )


def _contrast_range(matrix: NDArray[np.float64]) -> tuple[float, float]:
    # Rows and columns of C add up to 0: M acts on such vectors only.
    n = matrix.shape[1]
    contrasts = np.linalg.svd(np.full((1, n), 1.0))[2][1:].T
    values = np.linalg.svd(matrix @ contrasts, compute_uv=False)
    return float(values.min()), float(values.max())


def cell_variance_range(
    channel: Channel | PublishedChannel,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the greatest variance of a cell's estimate from one record, given the
    record, over all records; shapes broadcast to the table.

    The variance for true values x' of the estimate of cell x is u(x, x') − 1[x = x'], with
    u = (L∘L)M, again a pattern kernel times small matrices. For every true table, a cell's
    ``table`` variance is between these two over n.
    """
    if isinstance(channel, PublishedChannel):
        return _published_variance_range(channel)
    moment = _second_moments(channel)
    least = np.minimum(moment.same_low - 1.0, moment.low)
    most = np.maximum(moment.same_high - 1.0, moment.high)
    return np.maximum(least, 0.0), np.maximum(most, 0.0)


def _published_variance_range(
    channel: PublishedChannel,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # Given a record and its form, u_c(x, x') − e_c(x, x')², with e_c the row's mean contribution.
    # The assignment of forms to rows adds at most the square of the mean.
    low = high = 0.0
    for fraction, moment, mean in zip(channel.rows, channel.moments, channel.means, strict=True):
        elsewhere = [m for axis, m in moment.matrices.items() if axis not in moment.pattern_axes]
        even = all((m == m.flat[0]).all() for m in elsewhere)
        carried = len(moment.pattern_axes) + len(elsewhere) < len(moment.n_categories)
        scale = float(np.prod([m.max() for m in elsewhere]))
        high += fraction * scale * float(moment.kernel.max())
        if even and not carried:
            scale_of_mean = float(np.prod([m.max() for m in mean.matrices.values()]))
            rest = scale * moment.kernel - (scale_of_mean * mean.kernel) ** 2
            low += fraction * max(0.0, float(rest.min()))
    return np.full((1,) * len(channel.attributes), low), np.full(
        (1,) * len(channel.attributes), high
    )


def _second_moments(channel: Channel) -> "_Range":
    # Of u(x, x'). In a product of factors, x' ≠ x means different in at least one; a pattern
    # factor's value does not depend on x.
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
    for axis in set(range(m)) - matched:  # unchanged
        n = channel.n_categories[axis]
        shape = [n if j == axis else 1 for j in range(m)]
        factors.append(_Range.of(np.eye(n), np.eye(n, dtype=bool), shape))
    whole = factors[0]
    for factor in factors[1:]:
        whole = whole.times(factor)
    return whole


class _Range(NamedTuple):
    """Range of u(x, x') by x, for true values x' counted in cell x (several, if a cell is a sum
    over parts) and for others."""

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


def cell_variances(
    channel: Channel | PublishedChannel, shares: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return the ``table`` variance of every cell's estimate from one record, if the true table is
    the product of shares: Σ u(x, x') π(x') − π(x), with u of :func:`cell_variance_range`.

    ``shares``: true ones, shape (categories,) of each axis. Parts of a merged attribute that are no
    axis are evenly spread.

    >>> from deniable.laws import ProductLaw
    >>> mechanism = Mechanism.of(ProductLaw.from_levels((2, 4), (1.0, 2.0)))
    >>> cell_variances(Channel(mechanism, ("a1",)), [np.array([0.9, 0.1])]).round(4).tolist()
    [0.9207, 0.9207]
    """
    seen = channel.spread(shares)
    if isinstance(channel, PublishedChannel):
        parts = zip(channel.rows, channel.moments, strict=True)
        squares = sum(fraction * moments.apply(seen) for fraction, moments in parts)
    else:
        squares = channel.second_moments.apply(seen)
    return np.maximum(squares - reduce(np.multiply.outer, shares), 0.0)


@dataclass(frozen=True)
class ExpectedError:
    """Standard errors of a table's cells, predicted before there are data."""

    worst: float
    uniform: float
    mean_variance: float


def expected_error(
    channel: Channel | PublishedChannel, n_records: int, target: Target = "table"
) -> ExpectedError:
    """Return the standard errors to expect in a table of these attributes.

    One record's variance at cell x is E u(x, x') − 1[x = x'] (``table``) or E u(x, x') − π(x)²
    (``population``), with u of :func:`cell_variance_range`. Averaged over x and a uniform x', u is
    the mean square of the entries of L over outputs, which for pattern laws is
    Σ_T d_T/φ(T)²/N², d_T = ∏_{i∈T}(a_i − 1), N cells: for one attribute
    (1 − 1/a)(1/φ² − 1)/(a n), resp. (1 − 1/a)/(φ² a n).
    """
    if n_records < 1:
        raise InputError("the number of records must be at least 1")
    channel.check(float("inf"))
    cells = float(np.prod(channel.n_categories))
    if isinstance(channel, PublishedChannel):
        parts = zip(channel.rows, channel.moments, strict=True)
        mean = sum(fraction * _mean(moments) for fraction, moments in parts)
        worst = _worst_published(channel, target)
    else:
        mean = _mean(channel.second_moments)
        worst = _worst(channel, target)
    mean_variance = max(mean - (1 / cells if target == "table" else 1 / cells**2), 0.0) / n_records
    return ExpectedError((max(worst, 0.0) / n_records) ** 0.5, mean_variance**0.5, mean_variance)


def _worst(channel: Channel, target: Target) -> float:
    moment = _second_moments(channel)
    diagonal, high = moment.same_high, moment.high
    if target == "table":
        return float(np.maximum(diagonal - 1.0, high).max())
    # π(x) = p on the cell and the rest on the cell with the largest u_o:
    # p u_d + (1 − p) u_o − p², concave in p.
    p = np.clip((diagonal - high) / 2, 0.0, 1.0)
    return float((p * diagonal + (1 - p) * high - p**2).max())


def _worst_published(channel: PublishedChannel, target: Target) -> float:
    variance = published_share_variance(channel)
    if variance is None:
        return float(cell_variance_range(channel)[1].max())
    constant, slope, square = variance
    if target == "table":
        slope, square = slope - 1, square - 1
    share = min(max(slope / (2 * square), 0.0), 1.0) if square > 0 else 0.0
    ends = [share, 0.0, 1.0]
    return max(constant + slope * s - square * s**2 for s in ends)


def published_share_variance(channel: PublishedChannel) -> tuple[float, float, float] | None:
    """Return V of a share s of one attribute, for the population and one row, as the coefficients
    of constant + slope·s − square·s²; None for several attributes, or where they are not under
    forms alone.

    In form c the answer is a category with probability 1/a + φ_c (s − 1/a), so that second moments
    are linear in s and means too (docs/proofs/forms.md, section 1).
    """
    if len(channel.attributes) > 1 or channel.shared_matrices:
        return None
    (n,) = channel.n_categories
    constant = slope = square = 0.0
    for fraction, moment, mean in zip(channel.rows, channel.moments, channel.means, strict=True):
        if moment.pattern_axes:
            same, other = moment.kernel
            information, untold = mean.kernel
        else:
            same, other, information, untold = 1 / n**2, 1 / n**2, 1 / n, 1 / n
        rise = information - untold
        constant += fraction * (other - untold**2)
        slope += fraction * (same - other - 2 * untold * rise)
        square += fraction * rise**2
    return constant, slope, square


def _mean(moments: TableMap) -> float:
    # Mean over x and x' of a product is the product of the means: on the pattern axes the constant
    # component's eigenvalue over the number of cells.
    mean = float(moments.eigenvalues.flat[0]) / float(np.prod(moments.pattern_categories))
    matched = set(moments.pattern_axes)
    for axis, matrix in moments.matrices.items():
        matched.update(moments.axes_of(axis))
        mean *= float(matrix.mean())
    for axis in set(range(len(moments.n_categories))) - matched:
        mean /= moments.n_categories[axis]
    return mean


@dataclass(frozen=True)
class ExpectedVariance:
    """Mean variance of an unbiased cell at the uniform truth, for one row drawn from a
    population."""

    shares: float | None
    pairs: float | None

    def to_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


MOST_LOOKED_AT = 60
"""Attributes up to which all pairs are computed one by one; under forms there is no limit."""


def expected_variance(mechanism: Mechanism) -> ExpectedVariance:
    """Return the mean variances of shares and pairs, per row."""
    protected = mechanism.schema.protected
    if mechanism.forms is not None and len(mechanism.forms.n_categories) == len(protected):
        return _expected_of_information(mechanism.forms.pair_information(), mechanism)
    names = [mechanism.schema.names[i] for i in protected]

    left = {
        position: value
        for block in mechanism.blocks
        if isinstance(block.law, PatternLaw)
        for position, value in zip(block.attributes, block.law.attribute_lambdas(), strict=True)
        if value
    }

    def variance(table: tuple[str, ...]) -> float:
        position = mechanism.schema.position(table[0])
        if len(table) == 1 and position in left:  # without a channel, of which there may be many
            n = mechanism.schema.n_categories[position]
            return (n - 1) / (n * left[position]) ** 2
        return expected_error(channel_of(mechanism, table), 1, "population").mean_variance

    def mean(tables: Sequence[tuple[str, ...]]) -> float | None:
        try:
            variances = [variance(table) for table in tables]
        except InputError:  # a component was destroyed
            return None
        return float(np.mean(variances)) if tables else None

    few = len(names) <= MOST_LOOKED_AT
    return ExpectedVariance(
        mean([(name,) for name in names]), mean(list(combinations(names, 2))) if few else None
    )


def _expected_of_information(
    information: NDArray[np.float64], mechanism: Mechanism
) -> ExpectedVariance:
    n = np.array([mechanism.schema.n_categories[i] for i in mechanism.schema.protected], float)
    single = np.diagonal(information)
    shares = float(((n - 1) / n**2 / single).mean())
    first, second = np.triu_indices(len(n), 1)
    if not len(first) or (information[first, second] <= 0).any():
        return ExpectedVariance(shares, None)
    cells = (n[first] - 1) / single[first] + (n[second] - 1) / single[second]
    cells += (n[first] - 1) * (n[second] - 1) / information[first, second]
    return ExpectedVariance(shares, float((cells / (n[first] * n[second]) ** 2).mean()))
