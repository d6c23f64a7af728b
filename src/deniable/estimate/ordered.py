"""Means and quantiles of ordered attributes, for all records or per subgroup."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.inference import UNCERTAIN_ERRORS, Inference, normal_quantile
from deniable.estimate.question import Question
from deniable.estimate.tabulate import Counts
from deniable.mechanism.prediction import Target
from deniable.schema import Attribute


@dataclass(frozen=True)
class Summary:
    """One mean or quantile of one attribute.

    Args:
        statistic: ``mean`` or ``quantile``.
        attribute: its name.
        group: attributes and categories of the subgroup; empty for everybody.
        estimate: a number, or for quantiles of an attribute without bins a category; None if the
            subgroup's estimated size is not positive.
        standard_error: of a mean; None for quantiles.
        low, high: the ends of the interval, of the same kind as ``estimate``.
        uncertain: not to be used: the size of the subgroup is less than two of its standard errors
            above zero, or the interval is as wide as the attribute's whole range.
    """

    statistic: str
    attribute: str
    group: tuple[tuple[str, str], ...]
    estimate: float | str | None
    standard_error: float | None
    low: float | str | None
    high: float | str | None
    uncertain: bool

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        return {
            "statistic": self.statistic,
            "attribute": self.attribute,
            "group": dict(self.group),
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
            "uncertain": self.uncertain,
        }


def estimate_mean(
    counts: Counts,
    attribute: str,
    by: Sequence[str] = (),
    *,
    scores: Sequence[float] | None = None,
    target: Target = "table",
    level: float = 0.95,
) -> list[Summary]:
    """Estimate the mean score of an attribute, for everybody or per subgroup.

    A mean is a linear function of the table, a subgroup's a ratio of two; see
    :mod:`deniable.estimate.inference` for the errors.

    Args:
        counts: the released records, counted by the outputs of ``attribute`` and then ``by``.
        attribute: its name.
        by: attributes that form subgroups.
        scores: one number per category. By default those of the schema; else the middles of the
            bins, and then the mean is over the records that are not missing, and it is the mean of
            these middles, not of the numbers that were binned.
        target: ``table`` or ``population``.
        level: of the interval.

    Returns:
        One summary per subgroup, the last of ``by`` fastest.

    Raises:
        InputError: if the attribute has no scores, or as in
            :func:`~deniable.estimate.shares.estimate_table`.
    """
    inference = Inference(counts, (attribute, *by), target)
    declared = counts.schema.variable(attribute).attribute
    values, counted = _scores(declared, scores)
    z = normal_quantile(level)
    summaries = []
    for group, member, few in _subgroups(inference, by):
        mean = inference.ratio(_outer(values * counted, member), _outer(counted, member))
        if not np.isfinite(mean.estimate):
            summaries.append(Summary("mean", attribute, group, None, None, None, None, True))
            continue
        half = z * mean.standard_error
        wide = 2 * half >= np.ptp(values[counted > 0]) > 0
        summaries.append(
            Summary(
                "mean",
                attribute,
                group,
                mean.estimate,
                mean.standard_error,
                mean.estimate - half,
                mean.estimate + half,
                bool(few or wide),
            )
        )
    return summaries


def estimate_quantile(
    counts: Counts,
    attribute: str,
    probability: float,
    by: Sequence[str] = (),
    *,
    target: Target = "table",
    level: float = 0.95,
) -> list[Summary]:
    """Estimate a quantile of an ordered attribute, for everybody or per subgroup.

    The cumulative frequencies are estimated without bias, made non-decreasing (isotonic
    regression), and inverted: the answer is the first category at which they reach
    ``probability``. With bins they are taken as linear within each bin, and the answer is a number.
    The interval (Woodruff 1952) holds the values whose cumulative frequency is not significantly
    different from ``probability``. Records with a missing value are left out.

    Args:
        counts: the released records, counted by the outputs of ``attribute`` and then ``by``.
        attribute: its name.
        probability: 0.5 for the median; between 0 and 1.
        by: attributes that form subgroups.
        target: ``table`` or ``population``.
        level: of the interval.

    Returns:
        One summary per subgroup, the last of ``by`` fastest.

    Raises:
        InputError: if the attribute has no order, the probability is not between 0 and 1, or as in
            :func:`~deniable.estimate.shares.estimate_table`.
    """
    from scipy.optimize import isotonic_regression  # only here: loading it takes half a second

    if not 0 < probability < 1:
        raise InputError(f"a quantile's probability is between 0 and 1, not {probability:g}")
    inference = Inference(counts, (attribute, *by), target)
    declared = counts.schema.variable(attribute).attribute
    if not declared.ordered:
        raise InputError(
            f"attribute '{attribute}' has no order, so it has no quantiles; "
            "declare ordered = true if its categories are in order"
        )
    scale = _Scale(declared)
    z = normal_quantile(level)
    summaries = []
    for group, member, few in _subgroups(inference, by):
        steps = [
            inference.ratio(_outer(below, member), _outer(scale.counted, member))
            for below in scale.up_to()
        ]
        # All of the group is at or below the last category: no error there.
        estimates = np.array([step.estimate for step in steps] + [1.0])
        errors = np.array([step.standard_error for step in steps] + [0.0])
        if not np.all(np.isfinite(estimates)):
            summaries.append(Summary("quantile", attribute, group, None, None, None, None, True))
            continue
        middle = scale.crossing(np.clip(isotonic_regression(estimates).x, 0.0, 1.0), probability)
        low = scale.crossing(np.maximum.accumulate(estimates + z * errors), probability)
        lower = estimates - z * errors
        high = scale.crossing(np.minimum.accumulate(lower[::-1])[::-1], probability)
        low, high = min(low, middle), max(high, middle)
        summaries.append(
            Summary(
                "quantile",
                attribute,
                group,
                scale.name(middle),
                None,
                scale.name(low),
                scale.name(high),
                bool(few or (low, high) == scale.ends),
            )
        )
    return summaries


@dataclass(frozen=True, kw_only=True)
class _OfOneAttribute(Question[Summary]):
    # What means and quantiles have in common.
    target: Target = "table"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.of) != 1:
            raise InputError("a mean or a quantile is of one attribute; use by for subgroups")

    def to_plain(self, answers: Sequence[Summary]) -> dict[str, Any]:
        """Return the summaries of all groups and subgroups under ``summaries``."""
        return {"level": self.level, "summaries": [answer.to_plain() for answer in answers]}


@dataclass(frozen=True, kw_only=True)
class Mean(_OfOneAttribute):
    """What is the mean score of an attribute?

    Args:
        target: ``table`` or ``population``.
        scores: one number per category; by default the schema's, or the middles of the bins.

    Raises:
        InputError: if it is of several attributes, or as :func:`estimate_mean`.
    """

    scores: Sequence[float] | None = None

    def answer(self, counts: Counts) -> list[Summary]:
        """Return the mean of one group of rows, or of each subgroup in it."""
        return estimate_mean(
            counts,
            self.of[0],
            self.subgroups(counts.schema),
            scores=self.scores,
            target=self.target,
            level=self.level,
        )


@dataclass(frozen=True, kw_only=True)
class Quantile(_OfOneAttribute):
    """What is a quantile of an ordered attribute?

    Args:
        target: ``table`` or ``population``.
        probability: 0.5 for the median.

    Raises:
        InputError: if it is of several attributes, or as :func:`estimate_quantile`.
    """

    probability: float = 0.5

    def answer(self, counts: Counts) -> list[Summary]:
        """Return the quantile of one group of rows, or of each subgroup in it."""
        return estimate_quantile(
            counts,
            self.of[0],
            self.probability,
            self.subgroups(counts.schema),
            target=self.target,
            level=self.level,
        )


class _Scale:
    """The values of an ordered attribute on a line: bin edges, or 0, 1, … for categories."""

    def __init__(self, attribute: Attribute) -> None:
        self.counted = np.array([c != attribute.missing for c in attribute.categories], dtype=float)
        self._names = [c for c in attribute.categories if c != attribute.missing]
        self._edges = attribute.bins
        last = len(self._names) - 1
        self.ends = (0.0, float(last)) if self._edges is None else (self._edges[0], self._edges[-1])

    def up_to(self) -> Iterator[NDArray[np.float64]]:
        """Yield the indicator of "at or below" for each category but the last."""
        for position in np.flatnonzero(self.counted)[:-1]:
            yield np.where(np.arange(len(self.counted)) <= position, self.counted, 0.0)

    def crossing(self, cumulative: NDArray[np.float64], probability: float) -> float:
        """Return where a non-decreasing curve first reaches the probability."""
        place = int(np.argmax(cumulative >= probability))
        if self._edges is None:
            return float(place)
        before = float(cumulative[place - 1]) if place else 0.0
        # A band may start above 0 or below it; within the first bin it comes from 0.
        fraction = (probability - before) / (float(cumulative[place]) - before)
        start, end = self._edges[place : place + 2]
        return start + min(max(fraction, 0.0), 1.0) * (end - start)

    def name(self, value: float) -> float | str:
        """Return a place on the line as the user knows it."""
        return value if self._edges is not None else self._names[int(value)]


def _scores(
    attribute: Attribute, given: Sequence[float] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # The score of each category, and 1 where the category counts.
    n = attribute.n_categories
    scores = attribute.category_scores() if given is None else attribute.checked_scores(given)
    if scores is not None:
        return np.asarray(scores), np.ones(n)
    if attribute.bins is None:
        raise InputError(
            f"attribute '{attribute.name}' has no numbers to average; give one score per category"
        )
    # Bins and a category for what is missing, which does not count.
    counted = np.arange(n) < len(attribute.bins) - 1
    edges = np.asarray(attribute.bins)
    middles = np.zeros(n)
    middles[counted] = (edges[:-1] + edges[1:]) / 2
    return middles, counted.astype(float)


def _subgroups(
    inference: Inference, by: Sequence[str]
) -> Iterator[tuple[tuple[tuple[str, str], ...], NDArray[np.float64], bool]]:
    # Each subgroup's name, after that of the group of rows it lies in; its indicator over the axes
    # of ``by``; and whether its size is too uncertain to divide by.
    shape = inference.values.shape[1:]
    labels = [variable.attribute.categories for variable in inference.channel.variables[1:]]
    for index in product(*(range(n) for n in shape)):
        member = np.zeros(shape)
        member[index] = 1.0
        names = ((name, labels[j][index[j]]) for j, name in enumerate(by))
        group = (*inference.counts.group, *names)
        size = inference.linear(np.broadcast_to(member, inference.values.shape))
        few = bool(by) and size.estimate < UNCERTAIN_ERRORS * size.standard_error
        yield group, member, few


def _outer(weights: NDArray[np.float64], member: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.multiply.outer(weights, member)
