"""Score intervals of shares (Wilson 1927): the shares c with (π̂ − c)² ≤ z² V(c).

V(c) is the variance that the estimate would have if the share were c: n V(c) = b + σc − tc², t = 1
for the population and 0 for the table. Where errors come in few steps, each end is the outer one of
two intervals. Derivations: docs/proofs/estimation.md, Theorem 7 and after (ζ is z there, τ is t);
for users: docs/intervals.md.

It is not used in a survey or with weights, where V depends on the weights in the cell; over strata,
where it depends on how c divides among them; for some of the parts of an attribute with a response
matrix, where it depends on the others; nor for shares of subgroups, which are ratios.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from deniable.estimate.inference import Inference, Part, normal_quantile
from deniable.estimate.simplex import project_to_simplex
from deniable.estimate.tabulate import Floats
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import cell_variance_range, published_share_variance
from deniable.mechanism.published import PublishedChannel

STEPS_ALLOWED = 1.2
"""The power of the level that intervals are held to where errors come in few steps."""

_ROUNDING = 1e-12
"""Variances of one record below this, as a part of its second moment, are zero."""

_BLOCK = 1 << 14
"""Cells of a block."""


@dataclass(frozen=True)
class ShareVariance:
    """The variance of each cell's estimate as a function of the cell's true share.

    ``at_zero, at_one``: n V(0) and n V(1), the shape of the table. ``step``: δ, the largest change
    of n times the estimate by one row; broadcasts to the shape of the table.
    """

    at_zero: Floats
    at_one: Floats
    sampling: float
    n_records: float
    step: Floats

    def at(self, shares: Floats) -> Floats:
        """Return V at one share per cell; outside [0, 1] the same polynomial, which may be
        negative."""
        slope = self._slope
        return np.asarray(
            (self.at_zero + slope * shares - self.sampling * shares**2) / self.n_records
        )

    def interval(self, estimates: Floats, level: float) -> tuple[Floats, Floats]:
        """Return the limits of each cell's interval, between 0 and 1, from unbiased estimates.

        Works through the table in blocks, whose intermediate values fit into the cache.
        """
        limits, start = np.empty((2, estimates.size)), 0
        arrays = (estimates, self.at_zero, self.at_one, self.step)
        flags: tuple[Literal["external_loop"], Literal["buffered"]] = ("external_loop", "buffered")
        with np.nditer(arrays, flags, order="C", buffersize=_BLOCK) as blocks:
            for some, at_zero, at_one, step in blocks:
                block = replace(self, at_zero=at_zero, at_one=at_one, step=step)
                limits[:, start : start + some.size] = block._limits(some, level)
                start += some.size
        low, high = limits.reshape(2, *estimates.shape)
        return low, high

    def _limits(self, estimates: Floats, level: float) -> tuple[Floats, Floats]:
        low, high = self.score_interval(estimates, normal_quantile(level))
        allowed = level**STEPS_ALLOWED
        quantile = normal_quantile(allowed)
        part = max(0.5, 1 - quantile * math.sqrt(-math.log(allowed)))
        outwards = part * self.step / self.n_records
        below, _ = self.score_interval(estimates - outwards, quantile)
        _, above = self.score_interval(estimates + outwards, quantile)
        return np.minimum(low, below), np.maximum(high, above)

    def score_interval(self, estimates: Floats, quantile: float) -> tuple[Floats, Floats]:
        """Return the limits of each cell's score interval, without regard to steps."""
        slope, scale = self._slope, quantile**2 / self.n_records
        leading = 1 + scale * self.sampling
        middle = (estimates + scale * slope / 2) / leading
        spread = self.n_records * self.at(estimates)
        spread = scale * (spread + scale * (self.sampling * self.at_zero + slope**2 / 4))
        half = np.sqrt(np.maximum(spread, 0.0)) / leading
        none = spread < 0
        low = np.where(none, estimates, np.minimum(middle - half, estimates))
        high = np.where(none, estimates, np.maximum(middle + half, estimates))
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)

    @property
    def _slope(self) -> Floats:
        return np.asarray(self.at_one - self.at_zero + self.sampling)


def has_score_intervals(inference: Inference) -> bool:
    """Whether V is a function of the cell's share, given the rest of the estimated table."""
    counts = inference.counts
    if len(inference.parts) > 1 or counts.column is not None or counts.cluster_strata is not None:
        return False
    ((_, part),) = inference.parts
    if part.tabulation.squares is not None or not part.channel.complete:
        return False
    return not isinstance(part.channel, PublishedChannel) or part.channel.all_under_forms


def share_variance(inference: Inference) -> ShareVariance:
    """Return V of every cell of a joint table."""
    ((_, part),) = inference.parts
    channel, tabulation = part.channel, part.tabulation
    if isinstance(channel, PublishedChannel):
        return _under_forms(inference, part, channel)
    own = _own_moments(channel)
    squared, cubed = channel.inverse.squared(), channel.inverse.cubed()
    nearest = project_to_simplex(inference.values)
    expected = channel.forward.apply(nearest)
    second, third = squared.apply(expected), cubed.apply(expected)
    covariance = third  # in place: these tables may be large
    if inference.target == "table":
        sampling, variance = 0.0, second - nearest
        covariance -= own * nearest
    else:
        sampling, variance = 1.0, second - nearest**2
        covariance -= second * nearest
    least, most = cell_variance_range(channel)
    step = np.asarray(_length(channel.inverse.row_range(), sampling))
    # Without variance at that table, all are in the cell or none.
    varies = variance > _ROUNDING * np.maximum(own, 1.0)
    still = np.where(nearest > 0.5, own - most, own)
    if not (sampling or varies.all()):
        # A cell that no released row can come from is empty.
        known = ~varies & (channel.forward.transposed().apply(tabulation.frequencies) == 0)
        still, step = np.where(known, 1.0, still), np.where(known, 0.0, step)
    slope = np.divide(covariance, variance, out=still, where=varies)
    at_zero = squared.apply(tabulation.frequencies)
    at_zero -= slope * inference.values
    np.maximum(at_zero, least, out=at_zero)
    slope += at_zero
    slope -= 1.0
    at_one = np.maximum(slope, least, out=slope)
    return ShareVariance(at_zero, at_one, sampling, tabulation.total, step)


def _step_under_forms(channel: PublishedChannel, sampling: float) -> Floats:
    """Return δ where the records of each form have steps of their own, Σ f δ³/Σ f δ².

    The error of the normal approximation to a sum of steps is its third moment over its second. The
    largest step may be that of a form with hardly any rows.
    """
    lengths = [_length(ends, sampling) for ends in channel.inverse.row_ranges()]
    second = sum(f * length**2 for f, length in zip(channel.rows, lengths, strict=True))
    third = sum(f * length**3 for f, length in zip(channel.rows, lengths, strict=True))
    return np.asarray(third / second)


def _length(ends: tuple[Floats, Floats], sampling: float) -> Floats:
    """Return δ from the range of a row's contributions: its largest change by another answer, or
    (population) by another person."""
    low, high = ends
    return np.maximum(high, 0.0) - np.minimum(low, 0.0) if sampling else high - low


def _under_forms(inference: Inference, part: Part, channel: PublishedChannel) -> ShareVariance:
    """Return V under published forms.

    n V is less by the spread of the forms' means E_f. Of one attribute V is quadratic in the share,
    in closed form. Of several, E_f follows the share by the regression δ_f of its error on that of
    the estimate, δ_f = Σ_T (h_f(T) − 1) v_T/Σ_T v_T at the uniform truth, h_f(T) the eigenvalues of
    E_f and v_T = d_T/I_T, and S by the β of Theorem 7, with covariances within forms.
    """
    closed = published_share_variance(channel)
    n_records = part.tabulation.total
    sampling = 0.0 if inference.target == "table" else 1.0
    if closed is not None:
        at_none, rise, square = closed
        at_all = at_none + rise - square
        shape = inference.values.shape
        square -= 1 - sampling
        return ShareVariance(
            np.full(shape, max(at_none, 0.0)),
            np.full(shape, max(at_all, 0.0)),
            square,
            n_records,
            _step_under_forms(channel, sampling),
        )
    nearest = project_to_simplex(inference.values)
    second, third = channel.inverse.squared(), channel.inverse.cubed()
    expected = channel.forward.apply(nearest)
    square_moment, cube = second.apply(expected), third.apply(expected)
    covariance, variance = cube, square_moment
    hat = second.apply(part.tabulation.frequencies)
    spread = np.zeros(inference.values.shape)
    steps = 0.0
    slope = np.zeros(inference.values.shape)
    for fraction, mean, moment, delta in zip(
        channel.rows, channel.means, channel.moments, _followed(channel), strict=True
    ):
        at = mean.apply(nearest)
        covariance = covariance - fraction * moment.apply(nearest) * at
        variance = variance - fraction * at**2
        own = mean.apply(inference.values) - inference.values
        # (E_f − π̂ + δ (s − π̂))² − its part in s
        base = own - delta * inference.values
        spread = spread + fraction * base**2
        slope = slope - 2 * fraction * delta * base
        steps += fraction * delta**2
    varies = variance > _ROUNDING * np.maximum(square_moment, 1.0)
    beta = np.where(varies, covariance / np.where(varies, variance, 1.0), 1.0)
    at_zero = hat - beta * inference.values - spread
    slope = slope + beta - (1 - sampling)
    square = steps + sampling
    least, _ = cell_variance_range(channel)
    at_zero = np.maximum(at_zero, least)
    at_one = np.maximum(at_zero + slope - square, least)
    return ShareVariance(at_zero, at_one, square, n_records, _step_under_forms(channel, sampling))


def _followed(channel: PublishedChannel) -> list[float]:
    """Return δ of every group of forms."""
    axes = range(len(channel.n_categories))
    dimension = np.ones(())
    for n in channel.n_categories:
        dimension = np.multiply.outer(dimension, np.array([1.0, n - 1.0]))
    weights = dimension / channel.attenuation**2
    weights.flat[0] = 0.0
    followed = []
    for mean in channel.means:
        gains = np.zeros(weights.shape)
        inside = tuple(slice(None) if axis in mean.pattern_axes else 0 for axis in axes)
        gains[inside] = mean.eigenvalues
        followed.append(float(((gains - 1) * weights).sum() / weights.sum()))
    return followed


def _own_moments(channel: Channel) -> Floats:
    # u(x, x): a product over the factors of the channel; 1 on an axis that is released unchanged.
    moments = channel.second_moments
    m = len(channel.attributes)
    own = np.full((1,) * m, float(moments.kernel.flat[0]))
    for axis, matrix in moments.matrices.items():
        axes = moments.axes_of(axis)
        shape = [channel.n_categories[j] if j in axes else 1 for j in range(m)]
        own = own * np.diagonal(matrix).reshape(shape)
    return own
