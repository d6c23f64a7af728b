"""From a formula and a release to a fitted model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.columns import Answers
from deniable.estimate.inference import normal_quantile
from deniable.estimate.known import Margins
from deniable.estimate.source import Release
from deniable.estimate.tabulate import Counts
from deniable.mechanism.published import channel_of
from deniable.models.cells import Axis, Cells
from deniable.models.formula import (
    MOST_CELLS,
    Formula,
    columns_of,
    design_of,
    matrix_of,
    prior_precision,
    read_formula,
)
from deniable.models.least_squares import Stratum, Term, fit_least_squares
from deniable.models.likelihood import Likelihood, Observed, fit_log_linear, known_shares
from deniable.models.merging import describe
from deniable.models.model import INTERCEPT, NOTHING, Kind, Model
from deniable.schema import Schema

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
        attributes = [n for n in names if n in schema.names or n in schema.columns]
        columns = [n for n in names if n not in attributes]
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
        if self.formulas[0].response in columns and self._is_number(release):
            return self._linear(release, attributes, columns)
        return self._log_linear(release, attributes, columns)

    def to_plain(self, answers: Sequence[Model]) -> dict[str, Any]:
        """Return one model as such, and several under ``groups``."""
        plain = [answer.to_plain(self.level) for answer in answers]
        return plain[0] if len(plain) == 1 else {"groups": plain}

    def _is_number(self, release: Release) -> bool:
        """Whether the response, a column released as it is, holds numbers, more than two."""
        response = str(self.formulas[0].response)
        if release.counts is not None:
            return False
        _, labels = release.read_rows((), texts=[response]).texts[response]
        return len(labels) > 2 and _numbers(labels) is not None

    # Log-linear models and regressions of categories

    def _log_linear(
        self, release: Release, attributes: list[str], columns: list[str]
    ) -> Answers[Model]:
        axes = [self._axis(release.strata.schema, name) for name in attributes]
        _check_cells(axes, self.formula)
        by = [name for name in self.by if name not in columns]
        strata = release.strata.column
        groups: dict[tuple[tuple[str, str], ...], list[tuple[tuple[str, ...], Counts]]] = {}
        counted = release.count(
            attributes, by=[*by, *columns], where=self.where, weights=self.weights
        )
        for counts in counted:
            n_own = len(counts.group) - len(columns)
            values = tuple(value for _, value in counts.group[n_own:])
            groups.setdefault(counts.group[:n_own], []).append((values, counts))
        if strata not in (None, *columns, *by, *self.where):
            raise InputError(
                f"the strata of '{strata}' were randomized by mechanisms of their own; put it into "
                f"the formula, or fit a model within each (by '{strata}')"
            )
        return Answers(
            self._of_group(group, attributes, axes, columns, members)
            for group, members in groups.items()
        )

    def _axis(self, schema: Schema, name: str) -> Axis:
        axis = Axis(name, schema.variables([name])[0].attribute.categories)
        return axis.collapsed(self.collapse[name]) if name in self.collapse else axis

    def _kept_axis(self, name: str, values: Sequence[str], response: str | None) -> Axis:
        numbers = None if name == response else _numbers(values)
        if numbers is not None and name not in self.collapse:
            order = sorted(range(len(values)), key=lambda i: (numbers[i], values[i]))
            return Axis(
                name,
                tuple(values[i] for i in order),
                numbers=tuple(numbers[i] for i in order),
            )
        axis = Axis(name, tuple(sorted(values)))
        return axis.collapsed(self.collapse[name]) if name in self.collapse else axis

    def _of_group(
        self,
        group: tuple[tuple[str, str], ...],
        attributes: list[str],
        axes: list[Axis],
        columns: list[str],
        members: list[tuple[tuple[str, ...], Counts]],
    ) -> Model:
        response = self.formulas[0].response
        kept = [
            self._kept_axis(name, sorted({values[i] for values, _ in members}), response)
            for i, name in enumerate(columns)
        ]
        cells = Cells((*axes, *kept), len(axes))
        _check_cells(cells.axes, self.formula)
        if response is not None and len(cells.axes[cells.place(response)].categories) < 2:
            raise InputError(f"all rows have the same '{response}', so there is nothing to model")
        observed = []
        for values, counts in members:
            place = 0
            for axis, value in zip(kept, values, strict=True):
                place = place * len(axis.categories) + axis.categories.index(value)
            for mechanism, tabulation in counts.parts:
                channel = channel_of(mechanism, attributes, tabulation.counts)
                observed.append(
                    Observed(channel.forward, tabulation.counts, tabulation.squares, place)
                )
        for formula in self.formulas:
            check_together(formula, attributes, members)
        likelihood = Likelihood(
            cells.shape, tuple(observed), known_shares(self.known, cells.categories)
        )
        n_records = sum(counts.n_records for _, counts in members)
        fitted = [
            self._fitted(formula, cells, likelihood, n_records, group) for formula in self.formulas
        ]
        return fitted[0] if len(fitted) == 1 else fitted[0].tested_against(fitted[1])

    def _fitted(
        self,
        formula: Formula,
        cells: Cells,
        likelihood: Likelihood,
        n_records: int,
        group: tuple[tuple[str, str], ...],
    ) -> Model:
        columns = design_of(formula, cells)
        reported = np.array([term != "" for term in columns.terms])
        precision = prior_precision(columns)
        if not self.prior:
            precision = np.where(reported, 0.0, RIDGE)
        fit = fit_log_linear(likelihood, columns.values, columns.names, precision)
        levels = Cells(
            tuple(Axis(axis.name, axis.levels, numbers=axis.numbers) for axis in cells.axes),
            cells.n_attributes,
        )
        response = None if formula.response is None else cells.place(formula.response)
        merged = any(axis.merged for axis in cells.axes)
        if merged:
            shown = columns_of(formula, levels)
            names, terms, design = shown.names, shown.terms, shown.values
            values, covariance, share = _merged(fit, cells, levels, design, response)
        else:
            m = int(reported.sum())  # they stand first
            names, terms, design = columns.names[:m], columns.terms[:m], columns.values[:, :m]
            values, covariance = fit.parameters[:m], fit.covariance[:m, :m]
            share = fit.data_share[:m]
        self._check(names, values, np.sqrt(np.diag(covariance)), share)
        kind: Kind = "log-linear"
        if response is not None:
            kind = "logistic" if len(levels.axes[response].categories) == 2 else "multinomial"
        return Model(
            formula=formula.text,
            kind=kind,
            names=names,
            terms=terms,
            coefficients=values,
            covariance=covariance,
            data_share=share,
            levels=levels,
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
        if self.prior:
            return
        far = np.flatnonzero((abs(values) > SEPARATED) | (errors > 1000))
        if far.size:
            raise InputError(
                f"'{names[int(far[0])]}' in '{self.formula}' is infinite in the fit: some "
                "combination of categories does not occur (separation); collapse categories, or "
                "fit with the prior"
            )

    # Numbers released as they are

    def _linear(
        self, release: Release, attributes: list[str], columns: list[str]
    ) -> Answers[Model]:
        if self.known is not None:
            raise InputError("known margins are for models of categories, not of a number")
        response = str(self.formulas[0].response)
        schema = release.strata.schema
        kept = [name for name in columns if name != response]
        grouping = [name for name in (*self.by, *self.where) if name not in columns]
        strata = release.strata.column
        texts = list(dict.fromkeys([*kept, *grouping, *([] if strata is None else [strata])]))
        numbers = [response, *([] if self.weights is None else [self.weights])]
        rows = release.read_rows(attributes, texts=texts, numbers=numbers)
        chosen = np.ones(rows.n_rows, dtype=bool)
        for name, value in self.where.items():
            codes, labels = rows.texts[name]
            chosen &= codes == (labels.index(value) if value in labels else -1)
        if not chosen.any():
            raise InputError("there is no row to estimate from")
        axes = [self._axis(schema, name) for name in attributes]
        names = [rows.texts[name][1] for name in self.by]
        models = []
        for values in product(*(range(len(labels)) for labels in names)):
            mine = chosen.copy()
            for name, code in zip(self.by, values, strict=True):
                mine &= rows.texts[name][0] == code
            if not mine.any():
                continue
            group = (
                *self.where.items(),
                *((n, rows.texts[n][1][v]) for n, v in zip(self.by, values, strict=True)),
            )
            part = rows.where(mine)
            kept_axes = []
            kept_codes = {}
            for name in kept:
                own, labels = part.texts[name]
                seen = np.unique(own)
                axis = self._kept_axis(name, [labels[i] for i in seen], response)
                order = {label: place for place, label in enumerate(axis.categories)}
                kept_codes[name] = np.array([order.get(label, -1) for label in labels])[own]
                kept_axes.append(axis)
            cells = Cells((*axes, *kept_axes), len(axes))
            fits = [
                self._least_squares(release, formula, cells, part, kept_codes, group)
                for formula in self.formulas
            ]
            models.append(fits[0] if len(fits) == 1 else fits[0].tested_against(fits[1]))
        return Answers(sorted(models, key=lambda model: model.group))

    def _least_squares(
        self,
        release: Release,
        formula: Formula,
        cells: Cells,
        rows: Any,
        kept: Mapping[str, NDArray[np.int64]],
        group: tuple[tuple[str, str], ...],
    ) -> Model:
        used = Cells(
            tuple(axis for axis in cells.axes if axis.name in formula.names),
            sum(axis.name in formula.names for axis in cells.axes[: cells.n_attributes]),
        )
        terms, names, labels = linear_terms(formula, used)
        weights = np.ones(rows.n_rows) if self.weights is None else rows.numbers[self.weights]
        if weights.min() < 0 or weights.sum() <= 0:
            raise InputError(f"a weight in '{self.weights}' is negative, or all are 0")
        response = rows.numbers[str(formula.response)]
        strata = []
        column = release.strata.column
        stratum_codes, stratum_labels = (
            (np.zeros(rows.n_rows, dtype=np.int64), [""]) if column is None else rows.texts[column]
        )
        for place in np.unique(stratum_codes):
            mine = stratum_codes == place
            strata.append(
                Stratum(
                    release.strata.mechanism_of(stratum_labels[place]),
                    rows.where(mine),
                    {name: codes[mine] for name, codes in kept.items()},
                    response[mine],
                    weights[mine],
                )
            )
        fit = fit_least_squares(strata, terms, names)
        levels = Cells(
            tuple(Axis(a.name, a.levels, numbers=a.numbers) for a in used.axes), used.n_attributes
        )
        design = np.zeros((0, len(names)))
        if prod(len(axis.levels) for axis in used.axes) <= MOST_LISTED:
            design = np.asarray(matrix_of(formula, levels.frame())[0], dtype=np.float64)
        return Model(
            formula=formula.text,
            kind="linear",
            names=tuple(names),
            terms=tuple(labels),
            coefficients=fit.parameters,
            covariance=fit.covariance,
            data_share=np.ones(len(names)),
            levels=levels,
            design=design,
            response=None,
            n_records=rows.n_rows,
            n_effective=float(weights.sum() ** 2 / (weights**2).sum()),
            group=group,
            level=self.level,
            prior=False,
        )


def check_together(
    formula: Formula,
    attributes: Sequence[str],
    members: Sequence[tuple[tuple[str, ...], Counts]],
) -> None:
    """Refuse a formula of which the release has wiped out, or never asked, how the attributes of a
    term go together with each other and with the response.

    Raises:
        InputError: naming them.
    """
    for term in formula.parsed:
        variables = {str(n) for factor in term.factors for n in factor.required_variables}
        named = [n for n in attributes if n in variables or n == formula.response]
        for mechanism, tabulation in (part for _, counts in members for part in counts.parts):
            if named:
                channel_of(mechanism, named).check(tabulation.n_effective)


def linear_terms(formula: Formula, cells: Cells) -> tuple[list[Term], list[str], list[str]]:
    """Return the terms of a linear model as functions of their own variables, the names of their
    columns, and the term of each column.

    The formula is read once on a small table with all levels, for what it means depends on these,
    and then term by term on all combinations of a term's own variables.

    Raises:
        InputError: if the formula cannot be evaluated.
    """
    import pandas

    longest = max(cells.sizes)
    frames = {axis.name: Cells((axis,), 1).frame()[axis.name] for axis in cells.axes}
    repeated = pandas.DataFrame(
        {
            name: frame.take(np.arange(longest) % len(frame)).reset_index(drop=True)
            for name, frame in frames.items()
        }
    )
    made, indices = matrix_of(formula, repeated)
    spec = made.model_spec
    names = [str(name) for name in made.columns]
    terms, labels = [], []
    ordered: list[str] = []
    for term, variables in zip(
        spec.terms, (spec.term_variables[t] for t in spec.terms), strict=True
    ):
        chosen = [axis for axis in cells.axes if axis.name in {str(v) for v in variables}]
        n_attributes = sum(axis in cells.axes[: cells.n_attributes] for axis in chosen)
        grid = Cells(tuple(chosen), n_attributes).frame() if chosen else pandas.DataFrame(index=[0])
        for name, frame in frames.items():
            if name not in grid:
                grid[name] = frame.take(np.zeros(len(grid), dtype=int)).reset_index(drop=True)
        values = np.asarray(spec.get_model_matrix(grid, context={}), dtype=np.float64)
        places = indices[str(term)]
        shape = tuple(len(axis.categories) for axis in chosen)
        terms.append(
            Term(
                tuple(axis.name for axis in chosen[:n_attributes]),
                tuple(axis.name for axis in chosen[n_attributes:]),
                values[:, places].reshape(*shape, len(places)),
            )
        )
        ordered += [names[place] for place in places]
        labels += [INTERCEPT if str(term) == "1" else str(term)] * len(places)
    return terms, ordered, labels


def _merged(
    fit: Any, cells: Cells, levels: Cells, design: NDArray[np.float64], response: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients, covariance and data's share of a formula on merged categories."""
    place = cells.merged_into(range(len(cells.axes)))
    table = np.bincount(place, fit.probabilities.ravel(), levels.n_cells).astype(np.float64)
    others = [i for i in range(len(levels.axes)) if i != response]
    group = (
        np.zeros(levels.n_cells, dtype=np.int64) if response is None else levels.merged_into(others)
    )
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


def _check_cells(axes: Sequence[Axis], formula: str) -> None:
    if prod(len(axis.categories) for axis in axes) > MOST_CELLS:
        sizes = " × ".join(f"{len(axis.categories)} ({axis.name})" for axis in axes)
        raise InputError(
            f"formula '{formula}': its table has {sizes} cells, and a model at most "
            f"{MOST_CELLS:,}; use fewer attributes, or coarser ones"
        )
