"""From a formula and a release to a fitted model."""

from collections.abc import Mapping, Sequence
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
from deniable.models.cells import Axis, Cells, Columns
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
from deniable.schema import Schema

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
        for name in names:
            if name not in schema.keep:
                _known_name(schema, name, self.formula)
        columns = [n for n in names if n not in schema.names and n not in schema.columns]
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
        axes = [
            self._axis(name, schema.variables([name])[0].attribute.categories)
            for name in names
            if name not in columns
        ]
        if not axes:
            raise InputError(
                f"all columns of '{self.formula}' are released as they are; any tool fits it"
            )
        if self.formulas[0].response in columns and self._is_number(release):
            return self._linear(release, axes, columns)
        return self._log_linear(release, axes, columns)

    def to_plain(self, answers: Sequence[Model]) -> dict[str, Any]:
        """Return one model as such, and several under ``groups``."""
        return one_or_groups([answer.to_plain(self.level) for answer in answers])

    def _is_number(self, release: Release) -> bool:
        """Whether the response, a column released as it is, holds numbers, more than two."""
        response = str(self.formulas[0].response)
        if release.counts is not None:
            return False
        _, labels = release.read_rows((), texts=[response]).texts[response]
        return len(labels) > 2 and _numbers(labels) is not None

    def _axis(self, name: str, categories: Sequence[str]) -> Axis:
        axis = Axis(name, tuple(categories))
        return axis.collapsed(self.collapse[name]) if name in self.collapse else axis

    def _cells(self, axes: Sequence[Axis], values: Mapping[str, set[str]]) -> Cells:
        """Return the cells of attributes, and of columns released as they are with the values that
        occur: numbers as numbers, unless they are the response."""
        kept = []
        for name, texts in values.items():
            numbers = None
            if name != self.formulas[0].response and name not in self.collapse:
                numbers = _numbers(sorted(texts))
            if numbers is None:
                kept.append(self._axis(name, sorted(texts)))
            else:
                pairs = sorted(zip(numbers, sorted(texts), strict=True))
                kept.append(
                    Axis(name, tuple(t for _, t in pairs), numbers=tuple(n for n, _ in pairs))
                )
        return Cells((*axes, *kept), len(axes))

    # Log-linear models and regressions of categories

    def _log_linear(
        self, release: Release, axes: Sequence[Axis], columns: Sequence[str]
    ) -> Answers[Model]:
        check_size(Cells(tuple(axes), len(axes)), 0, self.formula)
        by = [name for name in self.by if name not in columns]
        strata = release.strata.column
        groups: dict[Group, list[Counts]] = {}
        for counts in release.count(
            [axis.name for axis in axes],
            by=[*by, *columns],
            where=self.where,
            weights=self.weights,
        ):
            own = counts.group[: len(counts.group) - len(columns)]
            groups.setdefault(own, []).append(counts)
        if strata not in (None, *columns, *by, *self.where):
            raise InputError(
                f"the strata of '{strata}' were randomized by mechanisms of their own; put it into "
                f"the formula, or fit a model within each (by '{strata}')"
            )
        return Answers(
            self.of_counts(members, axes, columns, group) for group, members in groups.items()
        )

    def of_counts(
        self,
        members: Sequence[Counts],
        axes: Sequence[Axis],
        columns: Sequence[str] = (),
        group: Group = (),
    ) -> Model:
        """Return the log-linear model or regression of one group of rows.

        Args:
            members: its rows, counted for each combination of the columns' values, which stand last
                in the groups of the counts.
            axes: the attributes.
            columns: those of the formula that are released as they are.
            group: what the rows have in common.

        Raises:
            InputError: as :meth:`ask`.
        """
        response = self.formulas[0].response
        values = [tuple(v for _, v in m.group)[len(m.group) - len(columns) :] for m in members]
        cells = self._cells(axes, {n: {v[i] for v in values} for i, n in enumerate(columns)})
        check_size(cells, 0, self.formula)
        if response is not None and len(cells.categories[response]) < 2:
            raise InputError(f"all rows have the same '{response}', so there is nothing to model")
        attributes = [axis.name for axis in axes]
        observed = []
        for texts, counts in zip(values, members, strict=True):
            place = 0
            for axis, text in zip(cells.axes[len(axes) :], texts, strict=True):
                place = place * len(axis.categories) + axis.categories.index(text)
            for mechanism, seen in counts.parts:
                for formula in self.formulas:
                    for together in formula.together(attributes):
                        channel_of(mechanism, together).check(seen.n_effective)
                channel = channel_of(mechanism, attributes, seen.counts)
                observed.append(Observed(channel.forward, seen.counts, seen.squares, place))
        likelihood = Likelihood(
            cells.shape, tuple(observed), known_shares(self.known, cells.categories)
        )
        n_records = sum(counts.n_records for counts in members)
        return _compared(
            [
                self._fitted(formula, cells, likelihood, n_records, group)
                for formula in self.formulas
            ]
        )

    def _fitted(
        self,
        formula: Formula,
        cells: Cells,
        likelihood: Likelihood,
        n_records: int,
        group: Group,
    ) -> Model:
        columns = design_of(formula, cells)
        m = sum(term != "" for term in columns.terms)  # those of the formula stand first
        precision = prior_precision(columns)
        if not self.prior:
            precision = np.where(np.arange(len(precision)) < m, 0.0, RIDGE)
        fit = fit_log_linear(likelihood, columns.values, columns.names, precision)
        response = None if formula.response is None else cells.place(formula.response)
        shown = Columns(columns.values[:, :m], columns.names[:m], (), columns.terms[:m])
        values, covariance, share = fit.parameters[:m], fit.covariance[:m, :m], fit.data_share[:m]
        if cells.levels.shape != cells.shape:
            shown = columns_of(formula, cells.levels)
            values, covariance, share = _merged(fit, cells, shown.values, response)
        self._check(shown.names, values, np.sqrt(np.diag(covariance)), share)
        kind: Kind = "log-linear"
        if response is not None:
            n_levels = len(cells.axes[response].levels)
            kind = "logistic" if n_levels == 2 else "multinomial"
        return Model(
            formula=formula.text,
            kind=kind,
            names=shown.names,
            terms=shown.terms,
            coefficients=values,
            covariance=covariance,
            data_share=share,
            levels=cells.levels,
            design=shown.values,
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

    def _check(
        self,
        names: Sequence[str],
        values: NDArray[np.float64],
        errors: NDArray[np.float64],
        share: NDArray[np.float64],
    ) -> None:
        if (lost := np.flatnonzero(share < NOTHING)).size:
            raise InputError(
                f"the release tells nothing of '{names[int(lost[0])]}' in '{self.formula}': all "
                "that is known of it is the prior; leave it out, or collapse categories"
            )
        far = np.flatnonzero((abs(values) > SEPARATED) | (errors > 1000))
        if far.size and not self.prior:
            raise InputError(
                f"'{names[int(far[0])]}' in '{self.formula}' is infinite in the fit: some "
                "combination of categories does not occur (separation); collapse categories, or "
                "fit with the prior"
            )

    # Numbers released as they are

    def _linear(
        self, release: Release, axes: Sequence[Axis], columns: Sequence[str]
    ) -> Answers[Model]:
        if self.known is not None:
            raise InputError("known margins are for models of categories, not of a number")
        response, strata = str(self.formulas[0].response), release.strata.column
        kept = [name for name in columns if name != response]
        rows = release.read_rows(
            [axis.name for axis in axes],
            texts=list(
                dict.fromkeys([*kept, *self.by, *self.where, *([strata] if strata else [])])
            ),
            numbers=[response, *([] if self.weights is None else [self.weights])],
        )
        models = []
        for values in product(*(rows.texts[name][1] for name in self.by)):
            group = (*self.where.items(), *zip(self.by, values, strict=True))
            chosen = np.ones(rows.n_rows, dtype=bool)
            for name, value in group:
                codes, labels = rows.texts[name]
                chosen &= np.array([label == value for label in labels])[codes]
            if chosen.any():
                part = rows.where(chosen)
                models.append(self._of_rows(release, axes, kept, part, group))
        if not models:
            raise InputError("there is no row to estimate from")
        return Answers(sorted(models, key=lambda model: model.group))

    def _of_rows(
        self,
        release: Release,
        axes: Sequence[Axis],
        kept: Sequence[str],
        rows: KeptRows,
        group: Group,
    ) -> Model:
        """Return the linear model of one group of rows."""
        weights = np.ones(rows.n_rows) if self.weights is None else rows.numbers[self.weights]
        if weights.min() < 0 or weights.sum() <= 0:
            raise InputError(f"a weight in '{self.weights}' is negative, or all are 0")
        found = {name: rows.texts[name] for name in kept}
        values = {n: {labels[i] for i in np.unique(codes)} for n, (codes, labels) in found.items()}
        cells = self._cells(axes, values)
        response = str(self.formulas[0].response)
        models = []
        for formula in self.formulas:
            used = [axis for axis in cells.axes if axis.name in formula.names]
            table = Cells(tuple(used), sum(axis in used for axis in axes))
            terms = terms_of(spec_of(formula, table), table)
            parameters, covariance = fit_least_squares(
                rows, release.strata, response, self.weights, terms, table
            )
            names = tuple(name for term in terms for name in term.names)
            design = np.zeros((0, len(names)))
            if table.levels.n_cells <= MOST_LISTED:
                shown = terms_of(spec_of(formula, table.levels), table.levels)
                design = np.hstack([term.on(table.levels) for term in shown])
            models.append(
                Model(
                    formula=formula.text,
                    kind="linear",
                    names=names,
                    terms=tuple(term.name for term in terms for _ in term.names),
                    coefficients=parameters,
                    covariance=covariance,
                    data_share=np.ones(len(names)),
                    levels=table.levels,
                    design=design,
                    response=None,
                    n_records=rows.n_rows,
                    n_effective=float(weights.sum() ** 2 / (weights**2).sum()),
                    group=group,
                    level=self.level,
                    prior=False,
                )
            )
        return _compared(models)


def _compared(models: Sequence[Model]) -> Model:
    """Return the first of one or two models, with its test against the second."""
    return models[0].tested_against(models[1]) if len(models) > 1 else models[0]


def _merged(
    fit: LogLinearFit, cells: Cells, design: NDArray[np.float64], response: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients, covariance and data's share of a formula on merged categories."""
    levels, axes = cells.levels, range(len(cells.axes))
    place = cells.merged_into(axes)
    table = np.bincount(place, fit.probabilities.ravel(), levels.n_cells).astype(np.float64)
    group = levels.merged_into([] if response is None else [i for i in axes if i != response])
    values, change = describe(table, design, group)
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


def _known_name(schema: Schema, name: str, formula: str) -> None:
    try:
        schema.variables([name])
    except InputError as error:
        raise InputError(
            f"formula '{formula}': {error}; a name with other characters than letters, digits and "
            "_ stands between backticks"
        ) from None
