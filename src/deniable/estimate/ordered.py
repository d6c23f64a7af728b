"""Means, totals, deviations and quantiles of attributes, for all records or per subgroup."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np

from deniable.errors import InputError
from deniable.estimate.columns import Presented, target_text
from deniable.estimate.inference import (
    UNCERTAIN_ERRORS,
    Inference,
    Value,
    check_between,
    normal_quantile,
)
from deniable.estimate.query import SampleQuery
from deniable.estimate.scores import (
    SOURCE_TEXT,
    Scores,
    ScoreSource,
    rounding_variance,
    scores_of,
)
from deniable.estimate.tabulate import Counts, Floats
from deniable.mechanism.prediction import Target
from deniable.numerals import count_text
from deniable.schema import Attribute

Statistic = Literal["mean", "total", "deviation", "quantile"]


@dataclass(frozen=True)
class Summary(Presented):
    """One mean, total, standard deviation or quantile of one attribute.

    ``estimate``: a number; for a quantile the category or bin that contains it. None if the
    subgroup's estimated size is not positive, and for a mean of which only edges of bins are known:
    that is between ``low`` and ``high``.
    """

    statistic: Statistic
    attribute: str
    group: tuple[tuple[str, str], ...]
    n_records: int
    target: Target
    estimate: float | str | None = None
    standard_error: float | None = None
    low: float | str | None = None
    high: float | str | None = None
    uncertain: bool = True
    scores: ScoreSource | Literal["interpolated"] | None = None
    least: Value | None = None
    most: Value | None = None
    lowest: float | None = None
    highest: float | None = None
    probability: float | None = None
    confidence: float | None = None
    bounds: tuple[float, float] | None = None
    level: float = 0.95
    left_out: float | None = None
    dates: bool = False

    @property
    def axis(self) -> str:
        """Label of a plot's horizontal axis."""
        return self.attribute

    def table(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return one row of plain values."""
        self._check_level(level)
        plain = self.to_plain()
        for name in ("least", "most"):
            if name in plain:
                plain[name] = plain[name]["estimate"]
        low, high = plain.pop("bounds", None) or (None, None)
        if self.bounds is not None:
            plain |= {"lower_edge": low, "upper_edge": high}
        own = {key: value for key, value in plain.items() if key not in ("group", "n")}
        return [dict(self.group) | own | {"level": self.level}]

    def caption(self, level: float | None = None) -> str:
        """Return a caption."""
        self._check_level(level)
        made = _FROM[self.scores]
        if self.statistic == "deviation" and self.scores == "grid":
            made = "by numbers spread evenly between points, with intervals for any numbers"
        if self.scores == "schema" and self.least is not None:
            made += " and their margins"
        name = _NAMES[self.statistic]
        return (
            f"{name} of {self.attribute}: {count_text(self.n_records, 'row')}, of "
            f"{target_text(self.target)}; {made}; {100 * self.level:g} % intervals"
            + ("; in days since 1970-01-01" if self.dates else "")
            + ("; people without a value are left out" if self.left_out is not None else "")
        )

    def _check_level(self, level: float | None) -> None:
        if level is not None and level != self.level:
            raise InputError(
                f"the interval was made for the level {self.level:g}; estimate again with "
                f"level={level:g}"
            )

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for strict JSON; a bin without an end has the bound None there."""
        plain: dict[str, Any] = {
            "statistic": self.statistic,
            "attribute": self.attribute,
            "group": dict(self.group),
            "n": self.n_records,
            "target": self.target,
            "scores": self.scores,
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
            "uncertain": self.uncertain,
        }
        if self.least is not None and self.most is not None:
            plain |= {"least": self.least._asdict(), "most": self.most._asdict()}
        if self.statistic == "quantile":
            plain |= {"probability": self.probability, "confidence": self.confidence}
        if self.left_out is not None:
            plain["left_out"] = self.left_out
        if self.bounds is not None:
            plain["bounds"] = [end if isfinite(end) else None for end in self.bounds]
        return plain


_NAMES: dict[Statistic, str] = {
    "mean": "Mean",
    "total": "Total",
    "deviation": "Standard deviation",
    "quantile": "Quantiles",
}
_FROM = SOURCE_TEXT | {
    "interpolated": "INTERPOLATED, as if values were spread evenly within bins",
    None: "the category that contains it, and with which probability",
}
"""Sources of the scores of a mean or a quantile, in words."""


@dataclass(frozen=True, kw_only=True)
class _OfOneAttribute(SampleQuery[Summary]):
    takes_answered: ClassVar[bool] = True

    target: Target = "table"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.of) != 1:
            raise InputError("this query is of one attribute; use by for subgroups")

    def to_plain(self, answers: Sequence[Summary]) -> dict[str, Any]:
        """Return the summaries of all groups and subgroups under ``summaries``."""
        return {"level": self.level, "summaries": [answer.to_plain() for answer in answers]}

    def _inference(self, counts: Counts) -> tuple[Inference, Attribute]:
        inference = Inference(counts, (*self.of, *self.subgroups(counts.schema)), self.target)
        return inference, counts.schema.variable(self.of[0]).attribute

    def _summary(
        self,
        statistic: Statistic,
        counts: Counts,
        group: tuple[tuple[str, str], ...],
        **found: Any,
    ) -> Summary:
        attribute = counts.schema.variable(self.of[0]).attribute
        numbers = not isinstance(found.get("estimate"), str)
        return Summary(
            statistic,
            attribute.name,
            group,
            counts.n_records,
            self.target,
            level=self.level,
            dates=attribute.dates and numbers,
            **found,
        )


@dataclass(frozen=True, kw_only=True)
class Mean(_OfOneAttribute):
    """Mean score of an attribute, or the total of its scores, of all rows or per subgroup.

    A mean is a linear function of the table, a subgroup's a ratio of two; see
    :mod:`deniable.estimate.inference` for the errors. Of bins without scores, the mean of the
    numbers that were binned is at least that of the lower edges and at most that of the upper ones;
    by scores with margins, at least that of the scores less their margins and at most that of the
    scores plus them. The interval goes from the first less its sampling error to the second plus
    its own. Each limit fails with probability (1 − level)/2 at most for any numbers, so the
    interval covers with probability ``level`` at least. Scores without margins are
    taken to be the means of their bins. A total is the mean over all rows, 0 for those outside
    the subgroup or without a value, times the number of rows or the sum of weights.

    Args:
        target: truth that errors are for: of these rows (``table``), or of the ``population`` that
            they were drawn from.
        scores: one number per category, or ``middle`` for the middles of bins, whose mean is not
            that of the numbers that were binned; by default the schema's. Without any, the mean of
            bins is given by its least and its largest possible value. Missing values without a
            score do not count.
        total: the total instead of the mean.

    Raises:
        InputError: if it is of several attributes; from :meth:`answer`, if the attribute has no
            numbers, or as :class:`~deniable.estimate.shares.Shares`.
    """

    scores: Scores = None
    total: bool = False

    def answer(self, counts: Counts) -> list[Summary]:
        """Return the mean or total of one group of rows, or of each subgroup in it, the last of
        ``by`` fastest."""
        inference, attribute = self._inference(counts)
        scored = scores_of(attribute, self.scores)
        included = inference.answered if self.answered else np.ones(inference.values.shape)
        known = scored.counted * included.reshape(len(included), -1).max(axis=1) > 0
        bottom, top = float(scored.least[known].min()), float(scored.most[known].max())
        scale = counts.total if self.total else 1.0
        if self.total:
            bottom, top = scale * min(bottom, 0.0), scale * max(top, 0.0)
        z = normal_quantile(self.level)
        summaries = []
        for group, member, few in _subgroups(inference, included):
            below = np.multiply.outer(scored.counted, member) * included
            left_out = _left_out(inference, scored.counted, member, included)
            over = np.ones(()) if self.total else below
            least, most, *exact = (
                _scaled(inference.ratio(np.multiply.outer(scores, member) * below, over), scale)
                for scores in (scored.least, scored.most, scored.values)
                if scores is not None
            )
            found: dict[str, Any] = {"left_out": left_out}
            if isfinite(least.estimate):
                low = least.estimate - z * least.standard_error
                high = most.estimate + z * most.standard_error
                whole = high - low >= top - bottom > 0
                # No score is outside of these, so no mean is.
                low, high = (min(max(end, bottom), top) for end in (low, high))
                if scored.source == "edges":
                    whole = (low, high) == (bottom, top)
                elif exact and top > bottom:
                    whole |= _is_far_outside(exact[0], bottom, top)
                if scored.least is not scored.most:
                    found |= {"least": least, "most": most}
                if exact:
                    found |= exact[0]._asdict()
                found |= {"low": low, "high": high, "uncertain": bool(few or whole)}
                found |= {"lowest": bottom, "highest": top}
            name: Statistic = "total" if self.total else "mean"
            summaries.append(self._summary(name, counts, group, scores=scored.source, **found))
        return summaries


@dataclass(frozen=True, kw_only=True)
class Deviation(_OfOneAttribute):
    """Standard deviation of a number, or of scores of categories, of all rows or per subgroup.

    The rounding of a number adds to its variance between 0 and h²/4 for a distance h of the points.
    The estimate takes numbers as spread evenly between points (h²/6). The interval extends from
    all of h²/4 less the sampling error to none of it plus its own, so it covers with probability
    ``level`` at least, for any numbers. Missing values without a score do not count.

    Args:
        target: truth that errors are for: of these rows (``table``), or of the ``population`` that
            they were drawn from.
        scores: one number per category; by default the schema's.

    Raises:
        InputError: if it is of several attributes; from :meth:`answer`, if the attribute has bins,
            whose inner variance is unknown, or as :class:`Mean`.
    """

    scores: Scores = None

    def answer(self, counts: Counts) -> list[Summary]:
        """Return the deviation in one group of rows, or in each subgroup of it."""
        inference, attribute = self._inference(counts)
        if attribute.bins is not None:
            raise InputError(
                f"'{attribute.name}' has bins, and the variance within a bin is unknown; declare a "
                "range"
            )
        scored = scores_of(attribute, self.scores)
        values = scored.least
        included = inference.answered if self.answered else np.ones(inference.values.shape)
        z = normal_quantile(self.level)
        widest = float(np.ptp(values[scored.counted > 0])) / 2
        summaries = []
        for group, member, few in _subgroups(inference, included):
            below = np.multiply.outer(scored.counted, member) * included
            (mean, of_mean), (square, of_square) = (
                inference.linearized(np.multiply.outer(each, member) * below, below)
                for each in (values, values**2)
            )
            left_out = _left_out(inference, scored.counted, member, included)
            found: dict[str, Any] = {"left_out": left_out}
            if isfinite(mean):
                # The square of the estimated mean is too large by its variance.
                variance = square - mean**2 + inference.error_of(of_mean) ** 2
                error = inference.error_of(of_square - 2 * mean * of_mean)
                none, evenly, most = (variance - part for part in rounding_variance(attribute))
                low, estimate, high = (
                    max(each, 0.0) ** 0.5 for each in (most - z * error, evenly, none + z * error)
                )
                high = min(high, widest)
                found |= {
                    "estimate": estimate,
                    "standard_error": error / (2 * estimate) if estimate else None,
                    "low": low,
                    "high": high,
                    "uncertain": bool(few or low == 0.0),
                }
            summaries.append(
                self._summary("deviation", counts, group, scores=scored.source, **found)
            )
        return summaries


@dataclass(frozen=True, kw_only=True)
class Quantile(_OfOneAttribute):
    """Quantiles of an ordered attribute, of all rows or per subgroup.

    The cumulative frequencies are estimated without bias, made non-decreasing (isotonic
    regression), and inverted: the result is the first category or bin at which they reach ``q``.
    The interval (Woodruff 1952) holds the values whose cumulative frequency is not significantly
    different from ``q``. Records with a missing value are left out.

    Args:
        target: truth that errors are for: of these rows (``table``), or of the ``population`` that
            they were drawn from.
        q: probabilities between 0 and 1, one or several: 0.25,0.5,0.75; 0.5 is the median.
        interpolate: of bins, take the cumulative frequencies as linear within each and answer by a
            number. This assumes values spread evenly within a bin, an error that the interval
            leaves out.

    Raises:
        InputError: if it is of several attributes; from :meth:`answer`, if the attribute has no
            order, a probability is not between 0 and 1, there are no bins to interpolate in, or as
            :class:`~deniable.estimate.shares.Shares`.
    """

    q: float | Sequence[float] = 0.5
    interpolate: bool = False

    def answer(self, counts: Counts) -> list[Summary]:
        """Return the quantiles of one group of rows, or of each subgroup in it, the last of ``by``
        fastest."""
        from scipy.optimize import isotonic_regression  # only here: loading it takes half a second

        probabilities = self.q if isinstance(self.q, Sequence) else (self.q,)
        for probability in probabilities:
            check_between(probability, "a quantile's probability is")
        inference, attribute = self._inference(counts)
        if not attribute.ordered:
            raise InputError(
                f"attribute '{attribute.name}' has no order, so it has no quantiles; "
                "declare ordered = true if its categories are in order"
            )
        scale = _Scale(attribute)
        if self.interpolate:
            scale.check_interpolation(attribute)
        z = normal_quantile(self.level)
        summaries = []
        included = inference.answered if self.answered else np.ones(inference.values.shape)
        for group, member, few in _subgroups(inference, included):
            counted = np.multiply.outer(scale.counted, member)
            steps = [
                inference.ratio(np.multiply.outer(below, member), counted)
                for below in scale.up_to()
            ]
            # All of the group is at or below the last category: no error there.
            estimates = np.array([step.estimate for step in steps] + [1.0])
            errors = np.array([step.standard_error for step in steps] + [0.0])
            lower = estimates - z * errors
            curves: tuple[Floats, ...] = ()
            if np.all(np.isfinite(estimates)):
                curves = (
                    np.maximum.accumulate(estimates + z * errors),
                    np.clip(isotonic_regression(estimates).x, 0.0, 1.0),
                    np.minimum.accumulate(lower[::-1])[::-1],
                )
            left_out = _left_out(inference, scale.counted, member, included)
            for probability in probabilities:
                found = self._crossings(scale, curves, errors, probability, few=few)
                found |= {"left_out": left_out, "probability": probability}
                found["scores"] = "interpolated" if self.interpolate else None
                summaries.append(self._summary("quantile", counts, group, **found))
        return summaries

    def _crossings(
        self,
        scale: "_Scale",
        curves: Sequence[Floats],
        errors: Floats,
        probability: float,
        *,
        few: bool,
    ) -> dict[str, Any]:
        """Return where the upper band, the curve and the lower band reach a probability."""
        if not curves:
            return {}
        crossing = scale.interpolated if self.interpolate else scale.place
        low, middle, high = (crossing(curve, probability) for curve in curves)
        low, high = min(low, middle), max(high, middle)
        whole = (low, high) == scale.ends(self.interpolate)
        found: dict[str, Any] = {"estimate": middle, "low": low, "high": high}
        if self.interpolate:
            found["standard_error"] = (high - low) / (2 * normal_quantile(self.level))
        else:
            found = {name: scale.names[int(place)] for name, place in found.items()}
            likely = _confidence(curves[1], errors, probability)
            found["confidence"] = likely[int(middle)]
            found["bounds"] = scale.bounds(int(low), int(high))
        return found | {"uncertain": bool(few or whole)}


def _left_out(
    inference: Inference, counted: Floats, member: Floats, included: Floats
) -> float | None:
    # Estimated share of a subgroup, among those included, whose category does not count, cut to
    # [0, 1]; None if all count.
    without = np.multiply.outer(1.0 - counted, member) * included
    if not without.any():
        return None
    share = inference.ratio(without, np.broadcast_to(member * included, without.shape)).estimate
    return min(max(share, 0.0), 1.0) if isfinite(share) else None


def _scaled(value: Value, scale: float) -> Value:
    return Value(scale * value.estimate, scale * value.standard_error)


def _is_far_outside(mean: Value, bottom: float, top: float) -> bool:
    far = UNCERTAIN_ERRORS * mean.standard_error
    return not bottom - far <= mean.estimate <= top + far


def _confidence(cumulative: Floats, errors: Floats, probability: float) -> list[float]:
    # The quantile is at or below category j if the cumulative share F_j reaches the probability,
    # which by its normal error has probability Φ((F_j − p)/σ_j); made to rise with j, and to 1 at
    # the last one, these are a distribution over the categories.
    normal = NormalDist()
    reached = [
        float(share >= probability) if error == 0 else normal.cdf((share - probability) / error)
        for share, error in zip(cumulative, errors, strict=True)
    ]
    return [float(part) for part in np.diff(np.maximum.accumulate(reached), prepend=0.0)]


class _Scale:
    """The values of an ordered attribute on a line: bins between edges, points, or categories."""

    def __init__(self, attribute: Attribute) -> None:
        self.counted = np.array([c != attribute.missing for c in attribute.categories], dtype=float)
        self.names = [c for c in attribute.categories if c != attribute.missing]
        self._edges = attribute.bins
        self._points: tuple[float, ...] = ()
        if attribute.number_grid is not None:
            # The share of a point belongs to the numbers around it. The shares up to t_j are
            # between F(t_j) and F(t_{j+1}).
            self._points = points = attribute.number_grid.points
            middles = ((low + high) / 2 for low, high in pairwise(points))
            self._edges = (points[0], *middles, points[-1])

    def ends(self, interpolated: bool) -> tuple[float, float]:
        """Return the whole range: places of categories, or numbers."""
        if interpolated and self._edges is not None:
            return self._edges[0], self._edges[-1]
        return 0.0, len(self.names) - 1.0

    def check_interpolation(self, attribute: Attribute) -> None:
        """Refuse to interpolate where there are no two edges to do so between."""
        if self._edges is None:
            raise InputError(
                f"attribute '{attribute.name}' has no bins to interpolate in; its quantiles are "
                "categories"
            )
        if not all(map(isfinite, self._edges)):
            raise InputError(
                f"attribute '{attribute.name}' has an open interval, in which values cannot be "
                "interpolated; leave `interpolate` out to get the bin that contains the quantile"
            )

    def up_to(self) -> Iterator[Floats]:
        """Yield the indicator of "at or below" for each category but the last."""
        for position in np.flatnonzero(self.counted)[:-1]:
            yield np.where(np.arange(len(self.counted)) <= position, self.counted, 0.0)

    def place(self, cumulative: Floats, probability: float) -> float:
        """Return the first category at which a non-decreasing curve reaches the probability."""
        return float(np.argmax(cumulative >= probability))

    def interpolated(self, cumulative: Floats, probability: float) -> float:
        """Return where a non-decreasing curve, linear within each bin, reaches the probability."""
        assert self._edges is not None
        place = int(self.place(cumulative, probability))
        before = float(cumulative[place - 1]) if place else 0.0
        # A band may start above 0 or below it; within the first bin it comes from 0.
        fraction = (probability - before) / (float(cumulative[place]) - before)
        start, end = self._edges[place : place + 2]
        return start + min(max(fraction, 0.0), 1.0) * (end - start)

    def bounds(self, first: int, last: int) -> tuple[float, float] | None:
        """Return the smallest and the largest number of the bins, or next to the points, from one
        to another."""
        if self._points:
            return self._points[max(first - 1, 0)], self._points[
                min(last + 1, len(self._points) - 1)
            ]
        return None if self._edges is None else (self._edges[first], self._edges[last + 1])


def _subgroups(
    inference: Inference, included: Floats
) -> Iterator[tuple[tuple[tuple[str, str], ...], Floats, bool]]:
    # Each subgroup's name, its indicator over the axes of ``by``, and whether its size is too
    # uncertain to divide by; without subgroups of which ``included`` is 0.
    for names, member in inference.subgroups(1):
        if not (included * member).any():
            continue
        size = inference.linear(member * included)
        few = bool(names) and size.estimate < UNCERTAIN_ERRORS * size.standard_error
        yield (*inference.counts.group, *names), member, few
