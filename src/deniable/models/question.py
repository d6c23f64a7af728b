"""From a formula and a release to a fitted model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.columns import Answers
from deniable.estimate.counting import KeptRows
from deniable.estimate.inference import normal_quantile
from deniable.estimate.known import Margins
from deniable.estimate.question import one_or_groups
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts
from deniable.mechanism.published import channel_of
from deniable.mechanism.strata import Strata
from deniable.models.cells import Axis, Cells
from deniable.models.formula import (
    Formula,
    check_size,
    columns_of,
    design_of,
    prior_precision,
    read_formula,
    spec_of,
    terms_of,
)
from deniable.models.least_squares import fit_least_squares
from deniable.models.likelihood import (
    Likelihood,
    LogLinearFit,
    Observed,
    fit_log_linear,
    known_shares,
)
from deniable.models.merging import describe
from deniable.models.model import NOTHING, Kind, Model

Group = tuple[tuple[str, str], ...]
"""Columns released as they are and the values that a group of rows has in common."""

RIDGE = 1e-10
"""Without a prior, the precision of what is only there for the covariates' joint distribution:
empty cells have a finite logarithm, and nothing else moves by as much as 1e-9."""

SEPARATED = 25.0
"""A log odds ratio beyond this is one of infinity."""

MOST_LISTED = 10_000
"""Combinations of covariates up to which a linear model's predictions are listed."""


@dataclass(frozen=True)
class ModelQuestion:
    """Which model does a formula describe of the population that the rows were drawn from?

    Args:
        formula: ``response ~ covariates``, or ``~ terms`` for a log-linear model.
        collapse: how the model merges categories, by attribute: ``"White|*"``.
        prior: whether to use the weak prior.
        against: another formula, to test against.
        known: margins known exactly.
        by, where, weights, level: as of :class:`~deniable.estimate.question.Question`; ``by`` are
            kept columns.
    """

    formula: str
    collapse: Mapping[str, str] = field(default_factory=dict)
    prior: bool = True
    against: str | None = None
    known: Margins | None = None
    by: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    weights: str | None = None
    level: float = 0.95

    @cached_property
    def formulas(self) -> tuple[Formula, ...]:
        """The formula, and the one to test against.

        Raises:
            InputError: if one is none, or their responses differ.
        """
        texts = [self.formula, *([] if self.against is None else [self.against])]
        read = tuple(map(read_formula, texts))
        if read[0].response != read[-1].response:
            raise InputError(
                f"'{self.formula}' and '{self.against}' have different responses, so no test "
                "compares them"
            )
        return read

    def ask(self, release: Release) -> Answers[Model]:
        """Return the model of every group of rows.

        Raises:
            InputError: if the formula does not fit the release, or the release cannot bear it.
        """
        normal_quantile(self.level)
        schema = release.strata.schema
        names = list(dict.fromkeys(name for f in self.formulas for name in f.variables))
        declared = (*schema.names, *schema.columns)
        columns = [n for n in names if n in schema.keep and n not in declared]
        attributes = [name for name in names if name not in columns]
        try:
            variables = schema.variables(attributes)
        except InputError as error:
            raise InputError(
                f"formula '{self.formula}': {error}; a name with other characters than letters, "
                "digits and _ stands between backticks"
            ) from None
        for name in self.by:
            if name not in schema.keep:
                schema.variables([name])
                raise InputError(
                    f"models are not fitted within subgroups of '{name}', which is randomized; put "
                    "it into the formula, or group by a column released as it is"
                )
            if name in names:
                raise InputError(
                    f"'{name}' stands in the formula and forms the groups; name it once"
                )
        if unknown := [name for name in self.collapse if name not in names]:
            raise InputError(f"`collapse` names '{unknown[0]}', which is not in '{self.formula}'")
        if not attributes:
            raise InputError(
                f"all columns of '{self.formula}' are released as they are; any tool fits it"
            )
        axes = [
            self._axis(name, variable.attribute.categories)
            for name, variable in zip(attributes, variables, strict=True)
        ]
        response = self.formulas[0].response
        if response in columns and release.counts is None and response not in self.collapse:
            _, labels = release.read_rows((), texts=[response]).texts[response]
            if len(labels) > 2 and _numbers(labels) is not None:
                return self._linear(release, response, axes, columns)
        return self._log_linear(release, axes, columns)

    def to_plain(self, answers: Sequence[Model]) -> dict[str, Any]:
        """Return one model as such, and several under ``groups``."""
        return one_or_groups([answer.to_plain(self.level) for answer in answers])

    def _axis(self, name: str, categories: Sequence[str]) -> Axis:
        axis = Axis(name, tuple(categories))
        return axis.collapsed(self.collapse[name]) if name in self.collapse else axis

    def _cells(self, axes: Sequence[Axis], values: Mapping[str, Iterable[str]]) -> Cells:
        """Return the cells of attributes, and of columns released as they are with the values that
        occur: numbers as numbers, unless they are the response."""
        kept = []
        for name, occurring in values.items():
            texts = sorted(set(occurring))
            numbers = _numbers(texts)
            if numbers is None or name == self.formulas[0].response or name in self.collapse:
                kept.append(self._axis(name, texts))
            else:
                pairs = sorted(zip(numbers, texts, strict=True))
                of_axis = tuple(text for _, text in pairs), tuple(number for number, _ in pairs)
                kept.append(Axis(name, of_axis[0], numbers=of_axis[1]))
        return Cells((*axes, *kept), len(axes))

    # Log-linear models and regressions of categories

    def _log_linear(
        self, release: Release, axes: Sequence[Axis], columns: Sequence[str]
    ) -> Answers[Model]:
        check_size(Cells(tuple(axes), len(axes)), 0, self.formula)
        by = [*self.by, *columns]
        groups: dict[Group, list[Counts]] = {}
        for counts in release.count(
            [axis.name for axis in axes], by=by, where=self.where, weights=self.weights
        ):
            own = counts.group[: len(counts.group) - len(columns)]
            groups.setdefault(own, []).append(counts)
        if (strata := release.strata.column) not in (None, *by, *self.where):
            raise InputError(
                f"the strata of '{strata}' were randomized by mechanisms of their own; put it into "
                f"the formula, or fit a model within each (by '{strata}')"
            )
        return Answers(self.of_counts(counts, axes, columns) for counts in groups.values())

    def of_counts(
        self, members: Sequence[Counts], axes: Sequence[Axis], columns: Sequence[str] = ()
    ) -> Model:
        """Return the log-linear model or regression of one group of rows.

        Args:
            members: the rows, counted for each combination of values of ``columns``, which stand
                last in the groups of the counts.
            axes: the attributes.
            columns: those of the formula that are released as they are.

        Raises:
            InputError: as :meth:`ask`.
        """
        n_own = len(members[0].group) - len(columns)
        values = [[value for _, value in counts.group[n_own:]] for counts in members]
        cells = self._cells(axes, {name: [v[i] for v in values] for i, name in enumerate(columns)})
        check_size(cells, 0, self.formula)
        response = self.formulas[0].response
        if response is not None and len(cells.categories[response]) < 2:
            raise InputError(f"all rows have the same '{response}', so there is nothing to model")
        attributes = [axis.name for axis in axes]
        observed = []
        for texts, counts in zip(values, members, strict=True):
            place = 0
            for axis, text in zip(cells.axes[len(axes) :], texts, strict=True):
                place = place * len(axis.categories) + axis.categories.index(text)
            for mechanism, seen in counts.parts:
                for together in (names for f in self.formulas for names in f.together(attributes)):
                    channel_of(mechanism, together).check(seen.n_effective)
                channel = channel_of(mechanism, attributes, seen.counts)
                observed.append(Observed(channel.forward, seen.counts, seen.squares, place))
        known = known_shares(self.known, cells.categories)
        likelihood = Likelihood(cells.shape, tuple(observed), known)
        n_records = sum(counts.n_records for counts in members)
        group = members[0].group[:n_own]
        return _compared(
            [self._fitted(f, cells, likelihood, n_records, group) for f in self.formulas]
        )

    def _fitted(
        self, formula: Formula, cells: Cells, likelihood: Likelihood, n_records: int, group: Group
    ) -> Model:
        columns = design_of(formula, cells)
        m = sum(term != "" for term in columns.terms)  # those of the formula stand first
        precision = prior_precision(columns)
        if not self.prior:
            precision = np.where(np.arange(len(precision)) < m, 0.0, RIDGE)
        fit = fit_log_linear(likelihood, columns.values, columns.names, precision)
        response = None if formula.response is None else cells.place(formula.response)
        names, terms, design = columns.names[:m], columns.terms[:m], columns.values[:, :m]
        values, covariance, share = fit.parameters[:m], fit.covariance[:m, :m], fit.data_share[:m]
        if any(axis.merged for axis in cells.axes):
            shown = columns_of(formula, cells.levels)
            names, terms, design = shown.names, shown.terms, shown.values
            values, covariance, share = _merged(fit, cells, design, response)
        if (lost := np.flatnonzero(share < NOTHING)).size:
            raise InputError(
                f"the release tells nothing of '{names[int(lost[0])]}' in '{self.formula}': all "
                "that is known of it is the prior; leave it out, or collapse categories"
            )
        far = np.flatnonzero((abs(values) > SEPARATED) | (np.diag(covariance) > 1000**2))
        if far.size and not self.prior:
            raise InputError(
                f"'{names[int(far[0])]}' in '{self.formula}' is infinite in the fit: some "
                "combination of categories does not occur (separation); collapse categories, or "
                "fit with the prior"
            )
        kind: Kind = "log-linear"
        if response is not None:
            kind = "logistic" if len(cells.axes[response].levels) == 2 else "multinomial"
        return Model(
            formula=formula.text,
            kind=kind,
            names=names,
            terms=terms,
            coefficients=values,
            covariance=covariance,
            data_share=share,
            levels=cells.levels,
            design=design,
            response=response,
            n_records=n_records,
            n_effective=likelihood.n_effective,
            group=group,
            level=self.level,
            prior=self.prior,
            known=() if self.known is None else self.known.applied(list(cells.categories)),
            fit=fit,
            columns=columns,
        )

    # Numbers released as they are

    def _linear(
        self, release: Release, response: str, axes: Sequence[Axis], columns: Sequence[str]
    ) -> Answers[Model]:
        if self.known is not None:
            raise InputError("known margins are for models of categories, not of a number")
        strata = release.strata
        kept = [name for name in columns if name != response]
        of_strata = [] if strata.column is None else [strata.column]
        rows = release.read_rows(
            [axis.name for axis in axes],
            texts=list(dict.fromkeys([*kept, *self.by, *self.where, *of_strata])),
            numbers=[response, *([] if self.weights is None else [self.weights])],
        )
        models = []
        for values in product(*(rows.texts[name][1] for name in self.by)):
            group = (*self.where.items(), *zip(self.by, values, strict=True))
            chosen = np.ones(rows.n_rows, dtype=bool)
            for name, value in group:
                codes, labels = rows.texts[name]
                chosen &= np.array([label == value for label in labels])[codes]
            if not chosen.any():
                continue
            part = rows.where(chosen)
            found = {name: part.texts[name] for name in kept}
            occurring = {
                n: [labels[i] for i in np.unique(codes)] for n, (codes, labels) in found.items()
            }
            cells = self._cells(axes, occurring)
            fits = [
                self._least_squares(f, response, cells, part, strata, group) for f in self.formulas
            ]
            models.append(_compared(fits))
        if not models:
            raise InputError("there is no row to estimate from")
        return Answers(sorted(models, key=lambda model: model.group))

    def _least_squares(
        self,
        formula: Formula,
        response: str,
        cells: Cells,
        rows: KeptRows,
        strata: Strata,
        group: Group,
    ) -> Model:
        weights = np.ones(rows.n_rows) if self.weights is None else rows.numbers[self.weights]
        if weights.min() < 0 or weights.sum() <= 0:
            raise InputError(f"a weight in '{self.weights}' is negative, or all are 0")
        used = [i for i, axis in enumerate(cells.axes) if axis.name in formula.names]
        table = Cells(tuple(cells.axes[i] for i in used), sum(i < cells.n_attributes for i in used))
        terms = terms_of(spec_of(formula, table), table)
        parameters, covariance = fit_least_squares(
            rows, strata, response, self.weights, terms, table
        )
        design = np.zeros((0, len(parameters)))
        if table.levels.n_cells <= MOST_LISTED:
            shown = terms_of(spec_of(formula, table.levels), table.levels)
            design = np.hstack([term.on(table.levels) for term in shown])
        return Model(
            formula=formula.text,
            kind="linear",
            names=tuple(name for term in terms for name in term.names),
            terms=tuple(term.name for term in terms for _ in term.names),
            coefficients=parameters,
            covariance=covariance,
            data_share=np.ones(len(parameters)),
            levels=table.levels,
            design=design,
            response=None,
            n_records=rows.n_rows,
            n_effective=float(weights.sum() ** 2 / (weights**2).sum()),
            group=group,
            level=self.level,
            prior=False,
        )


def _compared(models: Sequence[Model]) -> Model:
    """Return the first of one or two models, with its test against the second."""
    return models[0].tested_against(models[1]) if len(models) > 1 else models[0]


def _merged(
    fit: LogLinearFit, cells: Cells, design: NDArray[np.float64], response: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients, covariance and data's share of a formula on merged categories."""
    place = cells.merged_into(range(len(cells.axes)))
    table = np.bincount(place, fit.probabilities.ravel(), len(design)).astype(np.float64)
    values, change = describe(table, design, cells.levels.covariates(response))
    linear = change[:, place] @ fit.jacobian()
    covariance = linear @ fit.covariance @ linear.T
    share = np.ones(len(values))
    if fit.precision.min() > 1e-6:  # with the prior
        share = 1 - np.diag(covariance) / ((linear**2) @ (1 / fit.precision))
    return values, covariance, share


def _numbers(values: Sequence[str]) -> list[float] | None:
    """Return texts as numbers, or None if one is none."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    return numbers if np.all(np.isfinite(numbers)) else None
