"""Tables of small groups: shares by the fitted all-pairs model, next to the unbiased ones.

Inverted cells have the noise of the interactions of all attributes. The log-linear model with all
main effects and pairs takes higher interactions of the logarithms as 0; where that is nearly true,
errors of rare cells are several times smaller. The score test against the saturated model tests it.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.columns import CellTable, target_text, where_text
from deniable.estimate.known import Known, margins_of
from deniable.estimate.query import Query
from deniable.estimate.shares import Estimate, Shares
from deniable.estimate.tabulate import Counts
from deniable.mechanism.prediction import Target
from deniable.mechanism.published import channel_of
from deniable.models.cells import Axis, Cells, interactions
from deniable.models.formula import check_size, prior_precision
from deniable.models.hypotheses import Test, goodness_of_fit
from deniable.models.likelihood import (
    At,
    Likelihood,
    LogLinearFit,
    Observed,
    fit_log_linear,
    known_shares,
    probabilities_of,
)
from deniable.models.profile import Number, Profiles
from deniable.numerals import count_text


@dataclass(frozen=True)
class Smoothed(CellTable):
    """Shares by the all-pairs model, next to the unbiased ones.

    Rows of :meth:`table` have a category per attribute, ``estimate``, ``standard_error``, ``low``,
    ``high``, ``uncertain``, ``unbiased`` and ``unbiased_standard_error``.

    ``attributes``: names, in the order of the axes. ``categories``: the categories of each axis.
    """

    attributes: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    n_records: int
    unbiased: Estimate | None
    fit: LogLinearFit = field(repr=False)
    group: tuple[tuple[str, str], ...] = ()
    level: float = 0.95
    known: tuple[str, ...] = ()

    target: ClassVar[Target] = "population"

    @property
    def values(self) -> NDArray[np.float64]:
        """The model's shares, one axis per attribute."""
        return self.fit.probabilities[..., 0]

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Of the model's shares if the model holds."""
        return self.fit.standard_errors_of_cells()[..., 0]

    @cached_property
    def goodness_of_fit(self) -> Test | None:
        """The score test against the saturated model; None above 1,000 cells."""
        return goodness_of_fit(self.fit)

    def _numbers(self, level: float) -> dict[str, NDArray[Any] | None]:
        # Normal intervals of the logarithm of the share, or of the profile likelihood where that
        # disagrees; none where the table is too large for it.
        share, error = self.values, self.standard_error
        logarithms = [Number(partial(self._logarithm, place)) for place in range(share.size)]
        found = Profiles(self.fit).intervals(logarithms, level)
        ends = np.array([each.ends for each in found], dtype=float)  # None becomes NaN
        low, high = np.exp(np.minimum(ends, 0.0)).T.reshape(2, *share.shape)
        known = self.unbiased
        return {
            "estimate": share,
            "standard_error": error,
            "low": low,
            "high": high,
            "uncertain": (error > share / 2) | np.isnan(low),
            "unbiased": None if known is None else known.unbiased,
            "unbiased_standard_error": None if known is None else known.standard_error,
        }

    def _logarithm(self, place: int, parameters: NDArray[np.float64]) -> At:
        share = probabilities_of(self.fit.design @ parameters)
        centred = self.fit.design - share @ self.fit.design
        bend = -centred.T @ (share[:, None] * centred)
        return At(math.log(max(float(share[place]), 1e-300)), centred[place], bend)

    def caption(self, level: float | None = None) -> str:
        """Return a caption."""
        known = f"; known exactly: {', '.join(self.known)}" if self.known else ""
        return (
            f"Shares of {', '.join(self.attributes)}{where_text(self.group)} by the model "
            f"of all pairs: {count_text(self.n_records, 'row')}, of {target_text('population')}; "
            f"{100 * self._level(level):g} % intervals if the model holds{known}"
        )

    def remarks(self) -> list[str]:
        """Return the test of the model in a sentence."""
        if (test := self.goodness_of_fit) is None:
            return ["Too many cells, or too few, to test the model of all pairs."]
        verdict = (
            "The table disagrees with the model; use the unbiased shares."
            if test.p_value < 0.05
            else "The test does not reject the model."
        )
        return [f"{test.sentence('All pairs against the saturated model')} {verdict}"]

    def to_plain(self, level: float | None = None) -> dict[str, Any]:
        """Return plain values for strict JSON."""
        test = self.goodness_of_fit
        return {
            "attributes": list(self.attributes),
            "group": dict(self.group),
            "n": self.n_records,
            "target": "population",
            "smooth": "pairs",
            "level": self._level(level),
            "known": list(self.known),
            "cells": self.table(level),
            "goodness_of_fit": None if test is None else test.to_plain(),
        }


@dataclass(frozen=True, kw_only=True)
class Smooth(Query[Smoothed]):
    """Shares of combinations of categories by the model of all pairs.

    Args:
        known: CSV file of shares known exactly, which the table then has: columns sex,share.

    Raises:
        InputError: if there are fewer than three attributes; from :meth:`answer`, if a group is
            formed by a randomized one, rows were randomized by different mechanisms, or the table
            is too large.
    """

    known: Known = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "known", margins_of(self.known))
        if len(self.of) < 3:
            raise InputError(
                "the model of all pairs is for three attributes or more; of fewer it is the table"
            )

    def answer(self, counts: Counts) -> list[Smoothed]:
        """Return the table of one group of rows."""
        if inside := self.subgroups(counts.schema):
            raise InputError(f"put '{inside[0]}' into the table to be smoothed, not among by")
        if len(counts.parts) > 1:
            raise InputError(
                f"the strata of '{counts.column}' were randomized by mechanisms of their own; "
                f"smooth within each (by '{counts.column}')"
            )
        ((mechanism, tabulation),) = counts.parts
        variables = counts.schema.variables(self.of)
        categories = tuple(variable.attribute.categories for variable in variables)
        cells = Cells(tuple(map(Axis, self.of, categories)), len(self.of))
        check_size(cells, 0, " + ".join(self.of))
        for pair in combinations(self.of, 2):
            channel_of(mechanism, pair).check(tabulation.n_effective)
        margins = margins_of(self.known)
        shares = Shares(self.of, level=self.level, target="population", known=margins)
        try:
            (unbiased,) = shares.answer(counts)
        except InputError:  # no form includes all; the pairs may be known
            unbiased = None
        columns = interactions(cells, range(len(self.of)), 2)
        channel = channel_of(mechanism, self.of, tabulation.counts)
        observed = Observed(channel.forward, tabulation.counts, tabulation.squares)
        likelihood = Likelihood(cells.shape, (observed,), known_shares(margins, cells.categories))
        fit = fit_log_linear(likelihood, columns.values, columns.names, prior_precision(columns))
        known = () if margins is None else margins.applied(self.of)
        return [
            Smoothed(
                tuple(self.of),
                categories,
                counts.n_records,
                unbiased,
                fit,
                counts.group,
                self.level,
                known,
            )
        ]
