"""Estimated shares and joint tables with standard errors and intervals."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.columns import CellTable, target_text
from deniable.estimate.inference import (
    UNCERTAIN_ERRORS,
    Inference,
    normal_quantile,
    one_of,
)
from deniable.estimate.intervals import ShareVariance, has_score_intervals, share_variance
from deniable.estimate.known import Known, Margins, imposed, margin_members, margins_of
from deniable.estimate.query import SampleQuery
from deniable.estimate.simplex import maximum_likelihood, project_to_simplex
from deniable.estimate.tabulate import Counts
from deniable.mechanism.prediction import Target
from deniable.mechanism.readability import Readability, is_readable
from deniable.numerals import count_text
from deniable.tables.answers import Columns

Method = Literal["inversion", "em", "projected"]
METHODS: tuple[Method, ...] = get_args(Method)
IntervalMethod = Literal["score", "normal"]

MAX_COVARIANCES = 1000
"""Cells up to which all their covariances are computed."""


@dataclass(frozen=True)
class Estimate(CellTable):
    """An estimated table: frequencies of combinations of categories, or shares within subgroups.

    Rows of :meth:`table` have a category per attribute, ``estimate``, ``standard_error``, ``low``,
    ``high``, ``uncertain`` and ``count``, the estimated number of rows (or sum of weights).

    Standard errors and intervals are those of the unbiased inversion estimate under every method:
    EM and projection are biased and have no error formula. So the estimate of ``em`` or
    ``projected`` may lie outside its interval.

    Intervals are of one of two kinds, see ``interval_method``. ``score``, for unweighted joint
    tables: the shares between 0 and 1 that do not make the estimate surprising
    (:mod:`deniable.estimate.intervals`). They are not centred on the estimate, and cover at about
    their level or above, in cells of a few rows too. ``normal``, the estimate plus and minus a
    multiple of the standard error: with weights, over strata with mechanisms of their own, for
    shares within subgroups (``by``), and for some parts of a merged attribute that has a response
    matrix. They are cut to [0, 1], and cover too rarely in cells of a few rows.

    Args:
        attributes: names, in the order of the axes; those of ``by`` come last.
        by: the attributes whose categories form the subgroups; empty for a joint table.
        categories: the categories of each axis.
        n_records: rows behind the estimate.
        target: whose frequencies: of the ``table`` that was randomized, or of the ``population`` it
            was drawn from.
        method: how ``values`` were made: ``inversion``, ``em`` or ``projected``.
        condition: 1/min |φ(T)|; how many times the randomization's inverse magnifies noise in its
            worst direction.
        values: the estimates, one axis per attribute; NaN for shares of a subgroup whose own
            estimated size is not positive.
        unbiased: the inversion estimates, which the intervals are about.
        standard_error: of the inversion estimates; score intervals are not made from it.
        uncertain: the cells that cannot be read by themselves
            (:func:`deniable.mechanism.readability.is_readable`): the inversion estimate, or the
            size of the subgroup that it is a share of, is less than two of its standard errors
            above zero; or the estimate is more than two above one, or two of its standard errors
            are above 0.1.
        converged: False if EM stopped before it could certify the optimum; True otherwise.
        group: kept columns and the values by which rows were selected.
        total: sum of the rows' weights; their number if unweighted. Shares times it are counts.
        counts: estimated number of rows (or sum of weights) per cell.
        inference: source of covariances and intervals.
        level: default level of the intervals.
        known: margins that were known exactly and are held, in words.
        covariances: of the cells, with ``known`` or ``answered``, shape (cells, cells).
        answered: whether only respondents with a value are counted.

    Examples:
        >>> import deniable, pandas
        >>> schema = deniable.Schema((deniable.Attribute("smokes", ("no", "yes")),))
        >>> plan = deniable.design(schema, epsilon=1)
        >>> frame = pandas.DataFrame({"smokes": ["no"] * 700 + ["yes"] * 300})
        >>> found = deniable.open(deniable.randomize(frame, plan), plan).shares("smokes")[0]
        >>> [row["smokes"] for row in found.table()], len(list(found.cells()))
        (['no', 'yes'], 2)
        >>> low, high = found.confidence_interval(0.95)
        >>> bool((low < found.values).all() and (found.values < high).all())
        True
        >>> found.to_plain()["target"], found.interval_method
        ('table', 'score')
        >>> found.caption()
        'Shares of smokes: 1,000 rows, of these rows; method inversion, 95 % score intervals'
        >>> len(found.to_pandas()) == len(found.to_polars()) == len(found.covariance()) == 2
        True
        >>> found.plot().axes[0].get_xlabel()
        'share, %'
    """

    attributes: tuple[str, ...]
    by: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    n_records: int
    target: Target
    method: Method
    condition: float
    values: NDArray[np.float64]
    unbiased: NDArray[np.float64] = field(repr=False)
    standard_error: NDArray[np.float64] = field(repr=False)
    uncertain: NDArray[np.bool_] = field(repr=False)
    converged: bool = True
    group: tuple[tuple[str, str], ...] = ()
    total: float = 0.0
    counts: NDArray[np.float64] | None = field(default=None, repr=False)
    inference: Inference | None = field(default=None, repr=False)
    level: float = 0.95
    known: tuple[str, ...] = ()
    covariances: NDArray[np.float64] | None = field(default=None, repr=False)
    answered: bool = False

    @cached_property
    def interval_method(self) -> IntervalMethod:
        """``score`` or ``normal``: how the intervals are made."""
        scored = self.inference is not None and has_score_intervals(self.inference)
        return "score" if scored and not (self.by or self.known or self.answered) else "normal"

    @cached_property
    def _share_variance(self) -> ShareVariance | None:
        if self.inference is None or self.interval_method == "normal":
            return None
        return share_variance(self.inference)

    def confidence_interval(
        self, level: float | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of each cell's interval.

        Each covers its own cell with probability about ``level`` or more; not all cells at once. A
        score interval contains the share nearest to the unbiased estimate, and only that share if
        the estimate is too far outside [0, 1] for this level; its width is then no measure of
        error.

        Raises:
            InputError: if the level is not between 0 and 1.
        """
        level = self._level(level)
        if self._share_variance is not None:
            return self._share_variance.interval(self.unbiased, level)
        margin = normal_quantile(level) * self.standard_error
        low, high = self.unbiased - margin, self.unbiased + margin
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)

    def covariance(self) -> NDArray[np.float64]:
        """Return the estimated covariances of all cells' unbiased estimates, shape (cells, cells),
        in the order of :meth:`cells`.

        Shares of subgroups by the delta method; NaN where a subgroup's estimated size is not
        positive. The diagonal is ``standard_error`` squared, except where that was limited to its
        possible range.

        Raises:
            InputError: if there are more than 1,000 cells.
        """
        if self.covariances is not None:
            return self.covariances
        assert self.inference is not None
        cells = self.unbiased.size
        if cells > MAX_COVARIANCES:
            raise InputError(
                f"the covariances of {cells} cells are {cells**2} numbers; name fewer attributes"
            )
        shape = self.unbiased.shape
        weights = np.eye(cells).reshape(cells, *shape)
        if self.by:
            axes = tuple(range(len(shape) - len(self.by)))
            size = self.inference.values.sum(axis=axes)
            same = weights.sum(axis=tuple(1 + axis for axis in axes), keepdims=True)
            shares = self.unbiased.reshape(cells, *(1 for _ in shape))
            below = np.where(size > 0, size, np.nan)
            weights = (weights - shares * same) / below
        return self.inference.covariance(weights)

    @cached_property
    def readability(self) -> Readability:
        """How much of the table can be read."""
        found = Readability.of(
            *(self.attributes, self.unbiased, self.standard_error, self.n_records, self.target)
        )
        return replace(found, readable=int((~self.uncertain).sum()))

    def caption(self, level: float | None = None) -> str:
        """Return a caption."""
        level = self._level(level)
        what = ", ".join(name for name in self.attributes if name not in self.by)
        text = f"Shares of {what}"
        if self.by:
            text += f" within {', '.join(self.by)}"
        if self.group:
            text += " where " + ", ".join(f"{name} = {value}" for name, value in self.group)
        return (
            f"{text}: {count_text(self.n_records, 'row')}, of {target_text(self.target)}; method "
            f"{self.method}, {100 * level:g} % {self.interval_method} intervals"
            + (f"; known exactly: {', '.join(self.known)}" if self.known else "")
        )

    def cells(self) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
        """Yield each cell's index and its categories, the last attribute fastest."""
        indices = product(*(range(len(names)) for names in self.categories))
        return zip(indices, product(*self.categories), strict=True)

    def to_plain(self, level: float | None = None) -> dict[str, Any]:
        """Return plain values for strict JSON; estimates that are undefined are None.

        Raises:
            InputError: if the level is not between 0 and 1.
        """
        level = self._level(level)
        return {
            "attributes": list(self.attributes),
            "by": list(self.by),
            "group": dict(self.group),
            "n": self.n_records,
            "target": self.target,
            "method": self.method,
            "level": level,
            "interval_method": self.interval_method,
            "condition": self.condition,
            "converged": self.converged,
            "readable": self.readability.to_plain(),
            "cells": [
                {"values": list(labels)} | numbers
                for labels, numbers in zip(
                    product(*self.categories),
                    Columns.of_cells({}, self._numbers(level)).rows(),
                    strict=True,
                )
            ],
        }

    def _numbers(self, level: float) -> dict[str, NDArray[Any] | None]:
        low, high = self.confidence_interval(level)
        return {
            "estimate": self.values,
            "standard_error": self.standard_error,
            "low": low,
            "high": high,
            "uncertain": self.uncertain,
            "count": self.counts,
        }


@dataclass(frozen=True, kw_only=True)
class Shares(SampleQuery[Estimate]):
    """Shares of combinations of categories, of all rows or within subgroups.

    Within subgroups every cell is P(of | by), the ratio of two estimates. Randomized attributes may
    form them; selecting *rows* by these may not be.

    Args:
        method: unbiased ``inversion``, ``em`` (maximum likelihood), or ``projected`` (the nearest
            distribution to the inversion).
        target: truth that errors are for: of these rows (``table``), or of the ``population`` that
            they were drawn from.
        known: CSV file of shares known exactly, which the estimate then has: columns sex,share.

    Raises:
        InputError: from :meth:`answer`, if an attribute is unknown or named twice, the counts have
            another shape, the method or target is unknown, or an attenuation is 0.
    """

    takes_answered: ClassVar[bool] = True

    method: Method = "inversion"
    target: Target = "table"
    known: Known = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "known", margins_of(self.known))
        if self.answered and self.known is not None:
            raise InputError("`known` margins are of all respondents; leave `answered` out")

    def answer(self, counts: Counts) -> list[Estimate]:
        """Return the table of one group of rows."""
        one_of(self.method, METHODS, "method")
        by = self.subgroups(counts.schema)
        inference = Inference(counts, (*self.of, *by), self.target)
        channel = inference.channel
        values, converged = inference.values, True
        if self.method == "projected":
            values = project_to_simplex(values)
        elif self.method == "em":
            values, converged = _most_likely(inference)
        rows = values * counts.total
        unbiased, standard_error = inference.values, inference.standard_error
        marked = ~is_readable(unbiased, standard_error)
        if by:
            unbiased, standard_error, few = inference.within(len(by))
            size = values.sum(axis=tuple(range(len(self.of))))
            values = values / np.where(size > 0, size, np.nan)
            # Comparisons with NaN are False: where a share is undefined its size is uncertain too.
            marked = ~is_readable(unbiased, standard_error) | few
            marked |= ~np.isfinite(values) | ~np.isfinite(unbiased)
        estimate = Estimate(
            attributes=channel.attributes,
            by=tuple(by),
            categories=tuple(variable.attribute.categories for variable in channel.variables),
            n_records=counts.n_records,
            target=self.target,
            method=self.method,
            condition=inference.condition,
            values=values,
            unbiased=unbiased,
            standard_error=standard_error,
            uncertain=marked,
            converged=converged,
            group=counts.group,
            total=counts.total,
            counts=rows,
            inference=inference,
            level=self.level,
        )
        if self.answered:
            return [_of_answered(estimate, inference, len(self.of))]
        known = margins_of(self.known)
        return [estimate if known is None else self._held(estimate, known)]

    def _held(self, estimate: Estimate, known: Margins) -> Estimate:
        """Return an estimate that has the known margins."""
        if self.method != "inversion" or estimate.by:
            raise InputError(
                "known shares are imposed on the inversion estimate of a joint table; leave out "
                "the method, and put the subgroups into the table"
            )
        categories = dict(zip(estimate.attributes, estimate.categories, strict=True))
        found = margin_members(known, categories)
        members, shares = (np.concatenate(pieces) for pieces in zip(*found, strict=True))
        values, covariances = imposed(
            estimate.unbiased.ravel(), estimate.covariance(), members, shares
        )
        shape = estimate.values.shape
        values = values.reshape(shape)
        errors = np.sqrt(np.maximum(np.diag(covariances), 0.0)).reshape(shape)
        return replace(
            estimate,
            values=values,
            unbiased=values,
            standard_error=errors,
            uncertain=~is_readable(values, errors),
            counts=values * estimate.total,
            known=known.applied(estimate.attributes),
            covariances=covariances,
        )


def _of_answered(estimate: Estimate, inference: Inference, n_of: int) -> Estimate:
    """Return shares among respondents with a value: ratios, with the errors of ratios.

    ``n_of``: the axes whose shares are wanted; the others are those of the subgroups.
    """
    answered = inference.answered > 0
    cells = np.argwhere(answered)
    kept = np.ix_(*map(np.unique, cells.T))
    shares, errors, weights, few = [], [], [], []
    for cell in cells:
        one, group = np.zeros(answered.shape), np.zeros(answered.shape)
        one[tuple(cell)] = 1.0
        group[(..., *cell[n_of:])] = answered[(..., *cell[n_of:])]
        share, along = inference.linearized(one, group)
        shares.append(share)
        errors.append(inference.error_of(along))
        size = inference.linear(group)
        few.append(not size.estimate >= UNCERTAIN_ERRORS * size.standard_error)
        weights += [along] * (len(cells) <= MAX_COVARIANCES)
    shape = answered[kept].shape
    unbiased, standard_error = (np.array(each).reshape(shape) for each in (shares, errors))
    rows = np.asarray(estimate.counts)[kept]
    below = rows.sum(axis=tuple(range(n_of)))
    values = rows / np.where(below > 0, below, np.nan)
    marked = ~is_readable(unbiased, standard_error) | np.array(few).reshape(shape)
    return replace(
        estimate,
        categories=tuple(
            tuple(name for name in names if name != variable.attribute.missing)
            for names, variable in zip(
                estimate.categories, inference.channel.variables, strict=True
            )
        ),
        values=values,
        unbiased=unbiased,
        standard_error=standard_error,
        uncertain=marked | ~np.isfinite(values) | ~np.isfinite(unbiased),
        counts=rows,
        covariances=inference.covariance(np.array(weights)) if weights else None,
        answered=True,
    )


def _most_likely(inference: Inference) -> tuple[NDArray[np.float64], bool]:
    # Strata have tables of their own, so that the likelihood is the product of theirs.
    values, converged = np.zeros(inference.values.shape), True
    for fraction, part in inference.parts:
        # A response matrix needs its whole attribute: parts that are not wanted are summed over.
        channel = part.channel if part.channel.complete else part.channel.completed()
        frequencies = part.tabulation.frequencies.reshape(channel.n_outputs)
        fit = maximum_likelihood(frequencies, channel.forward, part.tabulation.n_effective)
        values += fraction * fit.values.sum(axis=tuple(range(values.ndim, fit.values.ndim)))
        converged = converged and fit.converged
    return values, converged
