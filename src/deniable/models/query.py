"""From a formula and a release to a fitted model."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._checks import check_fields
from deniable.errors import InputError
from deniable.estimate.columns import Answers
from deniable.estimate.counting import KeptColumn, KeptRows
from deniable.estimate.inference import normal_quantile
from deniable.estimate.known import Known, margins_of
from deniable.estimate.query import Where, one_or_groups
from deniable.estimate.source import Release
from deniable.estimate.survey import SampleColumns
from deniable.estimate.tabulate import Counts
from deniable.mechanism.published import channel_of
from deniable.mechanism.strata import Strata
from deniable.models.by_row import Errors, RowVariables, answered_rows, fit_by_row, number_axis
from deniable.models.cells import Axis, Cells, interactions
from deniable.models.everybody import UNANSWERED_PRECISION, on_rows, with_unanswered
from deniable.models.formula import (
    MOST_CELLS,
    MOST_PARAMETERS,
    Formula,
    Term,
    check_size,
    columns_of,
    design_of,
    independent,
    prior_precision,
    read_formula,
    terms_of,
)
from deniable.models.least_squares import fit_least_squares
from deniable.models.likelihood import (
    Likelihood,
    Observed,
    fit_log_linear,
    known_shares,
)
from deniable.models.merging import (
    CoefficientMap,
    coefficients_of_levels,
    first_coefficients,
    of_levels,
)
from deniable.models.model import NOTHING, RIDGE, Kind, Model, spread_out
from deniable.models.numbers import points_of
from deniable.models.syntax import printable, shown_name
from deniable.schema import Attribute
from deniable.schema.names import names_of
from deniable.tables.selection import Selection

Group = tuple[tuple[str, str], ...]
"""Kept columns and the values that a group of rows has in common."""

NO_ROW = 1e-3
"""An estimated number of rows below this is 0."""

SEPARATED = 25.0
"""A log odds ratio beyond this is one of infinity."""

MOST_CATEGORIES = 100
"""Distinct values up to which a kept column is taken as categories."""

MOST_COMBINATIONS = 2_000_000
"""Combinations of the values of the variables that one term of a linear model brings together."""

MOST_LISTED = 10_000
"""Combinations of covariates up to which a linear model's predictions are listed."""


@dataclass(frozen=True)
class ModelQuery:
    """A regression or log-linear model of the population that the rows were drawn from.

    Args:
        formula: ``response ~ covariates``, or ``~ terms`` for a log-linear model.
        collapse: merged categories by attribute, ``race=White|*``: levels with ``|`` between them,
            the reference first, ``*`` for all others.
        prior: use the weak prior, N(0, 3²) on main effects and N(0, 2.5²) on associations; by
            default for tables of categories, and not for models by row.
        ordered: proportional odds of the response's categories, in their order.
        against: another formula, to test against; one has to contain the other.
        known: CSV file of shares known exactly, of a census: columns sex,share.
        by: kept columns; a model is fitted to every group of rows.
        where: conditions on kept columns, by which rows are selected.
        weights: kept column with a weight per row; rows without one are left out.
        cluster: kept column with the cluster of each row, for standard errors of a survey.
        strata: kept column with the stratum of each row, within which clusters were drawn.
        errors: standard errors of a model by row without weights or clusters: of the observed
            information, of the squares of the scores (as in R's rr), or of both (robust).
        level: probability that an interval holds.
        answered: only respondents whose true value is the declared missing category of no variable
            of the formula.
    """

    formula: str
    collapse: Mapping[str, str] = field(default_factory=dict)
    prior: bool | None = None
    ordered: bool = False
    against: str | None = None
    known: Known = None
    by: Sequence[str] = ()
    where: Where = None
    weights: str | None = None
    cluster: str | None = None
    strata: str | None = None
    errors: Errors = "observed"
    level: float = 0.95
    answered: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_of(self.by, "by"))
        check_fields(self)
        object.__setattr__(self, "known", margins_of(self.known))

    @cached_property
    def formulas(self) -> tuple[Formula, ...]:
        """The formula, and the one to test against."""
        return self._formulas(())

    def _formulas(self, others: Sequence[str]) -> tuple[Formula, ...]:
        """Return the formulas with ``.`` for other columns."""
        texts = [self.formula, *([] if self.against is None else [self.against])]
        read = tuple(read_formula(text, others) for text in texts)
        if read[0].response != read[-1].response:
            raise InputError(
                f"'{self.formula}' and '{self.against}' have different responses, so no test "
                "compares them"
            )
        return read

    def run(self, release: Release) -> Answers[Model]:
        """Return the model of every group of rows."""
        normal_quantile(self.level)
        schema = release.strata.schema
        response = self.formulas[0].response
        others = [c.name for a in schema.attributes if a.name != response for c in a.columns]
        formulas = self._formulas(others)
        names = list(dict.fromkeys(name for f in formulas for name in f.variables))
        declared = (*schema.names, *schema.columns)
        columns = [n for n in names if n in schema.keep and n not in declared]
        attributes = [name for name in names if name not in columns]
        try:
            variables = schema.variables(attributes)
        except InputError as error:
            unknown = [name for name in attributes if name not in declared]
            odd = [
                shown_name(name)
                for name in (*declared, *schema.keep)
                if unknown and unknown[0] in name and shown_name(name) != name
            ]
            hint = f"; write {odd[0]}" if odd else ""
            raise InputError(
                f"formula '{formulas[0].text}': {printable(f'{error}{hint}')}"
            ) from None
        for name in self.by:
            if name not in schema.keep:
                schema.variables([name])
                raise InputError(
                    f"models are not fitted within subgroups of '{name}', which is randomized; put "
                    "it into the formula, or group by a kept column"
                )
            if name in names:
                raise InputError(f"'{name}' is in the formula and in `by`; name it once")
        if unknown := [name for name in self.collapse if name not in names]:
            raise InputError(f"`collapse` names '{unknown[0]}', which is not in '{self.formula}'")
        if not any(term for term in formulas[0].right.terms) and (
            response is None or not formulas[0].right.terms
        ):
            raise InputError(f"'{formulas[0].text}' has no terms; name one or more")
        if not attributes and names != [response]:
            raise InputError(
                f"all columns of '{self.formula}' are released unchanged; fit it in any statistics "
                "package"
            )
        missing = {
            name: variable.attribute.missing
            for name, variable in zip(attributes, variables, strict=True)
            if self.answered and variable.attribute.missing is not None
        }
        if self.answered and not missing:
            raise InputError(
                f"no attribute of '{self.formula}' has a declared missing category; leave "
                "`answered` out"
            )
        axes = [
            self._axis(name, [c for c in variable.attribute.categories if c != missing.get(name)])
            for name, variable in zip(attributes, variables, strict=True)
        ]
        points = {}
        for name, variable in zip(attributes, variables, strict=True):
            if variable.position in schema.protected and name not in self.collapse:
                points[name] = points_of(
                    variable.attribute, formulas, ordered=self.ordered, answered=self.answered
                )
        axes = [replace(axis, numbers=points.get(axis.name)) for axis in axes]
        rounded = [name for name, found in points.items() if found is not None]
        hidden = [
            name
            for name, variable in zip(attributes, variables, strict=True)
            if variable.position in schema.protected
        ]
        kinds = release.kept_columns(columns, self.where) if columns else {}
        numbers = [name for name in columns if self._is_number(name, kinds[name])]
        for name in columns:
            values = kinds[name].values
            if name not in numbers and (values is None or len(values) > MOST_CATEGORIES):
                raise InputError(
                    f"'{name}' has {kinds[name].count} different values that the model would take "
                    f"as categories; at most {MOST_CATEGORIES} are. Leave it out, or select rows "
                    "with `where`"
                )
        if response in numbers or response in rounded:
            if release.counts is not None:
                raise InputError(
                    f"'{response}' is a column of numbers, and a linear model needs the released "
                    "rows, not counts of them"
                )
            if self.ordered or self.errors != "observed":
                raise InputError(
                    "`ordered` and `errors` are for a response of categories, and "
                    f"'{response}' is a column of numbers"
                )
            models = self._linear(release, formulas, axes, columns, numbers)
        elif self._is_by_row(release, axes, hidden, [*numbers, *rounded], kinds, missing):
            models = self._by_row(release, formulas, axes, hidden, columns, numbers)
        else:
            models = self._log_linear(release, axes, columns, numbers, kinds)
        models.selection = replace(models.selection, answered=tuple(missing))
        return Answers(models, models.selection)

    def _is_by_row(
        self,
        release: Release,
        axes: Sequence[Axis],
        hidden: Sequence[str],
        numbers: Sequence[str],
        kinds: Mapping[str, KeptColumn],
        missing: Collection[str],
    ) -> bool:
        """Whether the model is fitted by row: with numbers among the covariates, a table of too
        many cells, ordered categories, or the clusters of a survey."""
        obstacles = {
            "a log-linear model": self.formulas[0].response is None,
            "`known`": self.known is not None,
            "`answered` of other than a randomized response": self.answered
            and (
                self.ordered or [*missing] != [n for n in hidden if n == self.formulas[0].response]
            ),
            "`collapse` of a randomized attribute": any(name in self.collapse for name in hidden),
            "a file of counts": release.counts is not None,
        }
        obstacle = next((what for what, holds in obstacles.items() if holds), None)
        needed = {
            "ordered": self.ordered,
            "cluster": self.cluster,
            "strata": self.strata,
            "errors": self.errors != "observed",
        }
        option = next((name for name, given in needed.items() if given), None)
        if option is not None and obstacle is not None:
            raise InputError(f"`{option}` needs a model by row, and {obstacle} one of cells")
        cells = prod(len(axis.categories) for axis in axes)
        cells *= prod(MOST_CELLS if k.values is None else len(k.values) for k in kinds.values())
        return obstacle is None and bool(option or numbers or cells > MOST_CELLS)

    def _is_number(self, name: str, kind: KeptColumn) -> bool:
        """Whether the model takes a kept column as numbers: not within ``C()``, merged, or as a
        response of two values."""
        if name == self.formulas[0].response and kind.is_binary:
            return False
        as_category = name in self.collapse or all(f.as_category(name) for f in self.formulas)
        return kind.is_number and not as_category

    def to_plain(self, answers: Sequence[Model]) -> dict[str, Any]:
        """Return one model, or several under ``groups``."""
        return one_or_groups([answer.to_plain(self.level) for answer in answers])

    def _axis(self, name: str, categories: Sequence[str]) -> Axis:
        axis = Axis(name, tuple(categories))
        return axis.collapsed(self.collapse[name]) if name in self.collapse else axis

    def _cells(
        self,
        axes: Sequence[Axis],
        values: Mapping[str, Iterable[str]],
        numbers: Collection[str],
        decimal: str = ".",
    ) -> Cells:
        """Return the cells of attributes, and of kept columns with the values that occur."""
        kept = []
        for name, occurring in values.items():
            if name not in numbers:
                kept.append(self._axis(name, sorted(set(occurring))))
                continue
            pairs = sorted((float(text.replace(decimal, ".")), text) for text in {*occurring})
            texts = tuple(text for _, text in pairs)
            kept.append(Axis(name, texts, numbers=tuple(number for number, _ in pairs)))
        return Cells((*axes, *kept), len(axes))

    # Log-linear models and regressions of categories

    def _log_linear(
        self,
        release: Release,
        axes: Sequence[Axis],
        columns: Sequence[str],
        numbers: Sequence[str],
        kinds: Mapping[str, KeptColumn],
    ) -> Answers[Model]:
        for name in numbers:
            found = kinds[name].values
            if found is None or len(found) > MOST_PARAMETERS:
                raise InputError(
                    f"'{name}' has {kinds[name].count} different values, and this model has cells "
                    f"and parameters for each; at most {MOST_PARAMETERS:,}: round it, or leave it "
                    "out"
                )
        kept = (Axis(name, tuple(kind.values or ())) for name, kind in kinds.items())
        check_size(Cells((*axes, *kept), len(axes)), 0, self.formula)
        by = [*self.by, *columns]
        groups: dict[Group, list[Counts]] = {}
        for counts in release.count(
            [axis.name for axis in axes],
            by=by,
            where=self.where,
            weights=self.weights,
            numbers=numbers,
        ):
            own = counts.group[: len(counts.group) - len(columns)]
            groups.setdefault(own, []).append(counts)
            selection = counts.selection
        self._check_strata(release, by, selection)
        models = (self.of_counts(counts, axes, columns, numbers) for counts in groups.values())
        return Answers(models, selection)

    def _check_strata(self, release: Release, named: Sequence[str], selection: Selection) -> None:
        """Raise if strata with mechanisms of their own are mixed."""
        strata = release.strata.column
        if strata not in (None, *named, *dict(selection.group)):
            raise InputError(
                f"the strata of '{strata}' were randomized by mechanisms of their own; put it into "
                f"the formula, or fit a model within each (by '{strata}')"
            )

    def of_counts(
        self,
        members: Sequence[Counts],
        axes: Sequence[Axis],
        columns: Sequence[str] = (),
        numbers: Sequence[str] = (),
    ) -> Model:
        """Return the log-linear model or regression of one group of rows."""
        n_own = len(members[0].group) - len(columns)
        values = [[value for _, value in counts.group[n_own:]] for counts in members]
        schema = members[0].schema
        occurring = {name: [v[i] for v in values] for i, name in enumerate(columns)}
        cells = self._cells(axes, occurring, numbers, schema.file.decimal or ".")
        variables = schema.variables(axis.name for axis in axes)
        everybody = Cells(
            tuple(
                axis
                if len(axis.categories) == variable.attribute.n_categories
                else Axis(axis.name, variable.attribute.categories)
                for axis, variable in zip(axes, variables, strict=True)
            )
            + cells.axes[len(axes) :],
            len(axes),
        )
        check_size(everybody, 0, self.formula)
        attributes = [axis.name for axis in axes]
        formulas = self._formulas(attributes)
        observed = []
        for texts, counts in zip(values, members, strict=True):
            place = 0
            for axis, text in zip(cells.axes[len(axes) :], texts, strict=True):
                place = place * len(axis.categories) + axis.categories.index(text)
            for mechanism, seen in counts.parts:
                for together in (names for f in formulas for names in f.together(attributes)):
                    channel_of(mechanism, together).check(seen.n_effective)
                channel = channel_of(mechanism, attributes, seen.counts)
                observed.append(Observed(channel.forward, seen.counts, seen.squares, place))
        known = known_shares(margins_of(self.known), everybody.categories)
        likelihood = Likelihood(everybody.shape, tuple(observed), known)
        prior = self.prior is not False
        empty = () if prior else _empty(cells, everybody, likelihood)
        named = tuple((cells.axes[i].name, cells.axes[i].categories[c]) for i, c in empty)
        left = (a.without([c for j, c in empty if j == i]) for i, a in enumerate(cells.axes))
        cells = Cells(tuple(left), len(axes)) if empty else cells
        for axis in cells.axes:
            if named and len(axis.levels) < 2:
                raise InputError(
                    f"all rows have the same '{axis.name}'; leave it out of the formula"
                )
        response = formulas[0].response
        if response is not None and len(cells.levels.categories[response]) < 2:
            raise InputError(f"all rows have the same '{response}', so no model can be fitted")
        n_records = sum(counts.n_records for counts in members)
        of_axes = tuple(variable.attribute for variable in variables)
        group = members[0].group[:n_own]
        return _compared(
            [
                self._fitted(f, cells, everybody, likelihood, n_records, group, named, of_axes)
                for f in formulas
            ]
        )

    def _fitted(
        self,
        formula: Formula,
        cells: Cells,
        everybody: Cells,
        likelihood: Likelihood,
        n_records: int,
        group: Group,
        empty: tuple[tuple[str, str], ...],
        attributes: tuple[Attribute, ...],
    ) -> Model:
        formula = formula.on(cells)
        response = None if formula.response is None else cells.place(formula.response)
        columns = design_of(formula, cells)
        keep = independent(columns, cells, response, likelihood.occurring)
        m = sum(term != "" for term in columns.terms)  # those of the formula come first
        shown, kept = columns, keep[:m]
        columns, inside = with_unanswered(columns.where(keep), cells, everybody)
        check_size(everybody, len(columns.names), formula.text)
        precision = prior_precision(columns)
        precision[len(columns.names) - everybody.n_cells + len(inside) :] = UNANSWERED_PRECISION
        prior = self.prior is not False
        if not prior:
            precision = np.where(np.array(columns.terms) != "", 0.0, RIDGE)
        fit = fit_log_linear(likelihood, columns.values, columns.names, precision)
        n = int(kept.sum())
        values, covariance, share = fit.parameters[:n], fit.covariance[:n, :n], fit.data_share[:n]
        coefficient_map: CoefficientMap = partial(first_coefficients, n)
        if any(axis.merged for axis in cells.axes):
            shown = columns_of(formula, cells.levels)
            m = len(shown.names)  # fewer than before if the response's categories are merged
            kept = kept[:m]
            design = shown.values[:, kept]
            coefficient_map = partial(
                coefficients_of_levels, fit.design, cells, design, response, inside
            )
            values, covariance, share = of_levels(fit, coefficient_map)
        names = [name for name, own in zip(shown.names, kept, strict=False) if own]
        if (lost := np.flatnonzero(share < NOTHING)).size:
            raise InputError(
                f"the release has no information on '{names[int(lost[0])]}' in "
                f"'{self.formula}' beyond the prior; leave it out, or collapse categories"
            )
        far = np.flatnonzero((abs(values) > SEPARATED) | (np.diag(covariance) > 1000**2))
        if far.size and not prior:
            raise InputError(
                f"'{names[int(far[0])]}' in '{self.formula}' is infinite in the fit: some "
                "combination of categories does not occur (separation); collapse categories, or "
                "fit with the prior"
            )
        values, covariance, share = spread_out(kept, values, covariance, share)
        kind: Kind = "log-linear"
        if response is not None:
            kind = "logistic" if len(cells.axes[response].levels) == 2 else "multinomial"
        margins = margins_of(self.known)
        return Model(
            formula=formula.text,
            kind=kind,
            parsed=formula,
            cells=cells,
            everybody=everybody,
            names=shown.names[:m],
            terms=shown.terms[:m],
            levels=cells.levels,
            design=shown.values[:, :m],
            coefficients=values,
            covariance=covariance,
            data_share=share,
            response=response,
            n_records=n_records,
            n_effective=likelihood.n_effective,
            group=group,
            level=self.level,
            prior=prior,
            known=() if margins is None else margins.applied(list(cells.categories)),
            fit=fit,
            columns=columns,
            merged=any(axis.merged for axis in cells.axes),
            coefficient_map=coefficient_map,
            empty=empty,
            attributes=attributes,
        )

    # Regressions by row

    def _by_row(
        self,
        release: Release,
        formulas: Sequence[Formula],
        axes: Sequence[Axis],
        hidden: Sequence[str],
        columns: Sequence[str],
        numbers: Sequence[str],
    ) -> Answers[Model]:
        texts = [name for name in columns if name not in numbers]
        rows = self._rows(release, axes, texts, numbers)
        if self.answered:
            response = next(axis for axis in axes if axis.name == formulas[0].response)
            rows = rows.where(answered_rows(rows, release.strata, response))
        if any(name != formulas[0].response for name in hidden):
            self._check_strata(release, [*self.by, *columns], rows.selection)
        models = []
        for group, part in self._groups(rows):
            variables, empty = self._variables(part, release.strata, axes, hidden, texts, numbers)
            fits = [
                self._regression(each, variables, part, release.strata, axes, empty, group)
                for each in formulas
            ]
            models.append(_compared(fits))
        return Answers(models, rows.selection)

    def _rows(
        self, release: Release, axes: Sequence[Axis], texts: Sequence[str], numbers: Sequence[str]
    ) -> KeptRows:
        """Read the variables of the formulas, with groups, weights and sample."""
        named = [] if release.strata.column is None else [release.strata.column]
        return release.read_rows(
            [axis.name for axis in axes],
            texts=list(dict.fromkeys([*texts, *self.by, *named])),
            numbers=numbers,
            where=self.where,
            weights=self.weights,
            sample=SampleColumns(self.cluster, self.strata),
        )

    def _groups(self, rows: KeptRows) -> Iterator[tuple[Group, KeptRows]]:
        """Yield the groups of rows, in the order of their values."""
        for values in product(*(sorted(rows.texts[name][1]) for name in self.by)):
            chosen = np.ones(rows.n_rows, dtype=bool)
            for name, value in zip(self.by, values, strict=True):
                codes, labels = rows.texts[name]
                chosen &= codes == labels.index(value)
            if chosen.any():
                part = rows.where(chosen) if self.by else rows
                yield (*rows.selection.group, *zip(self.by, values, strict=True)), part

    def _variables(
        self,
        rows: KeptRows,
        strata: Strata,
        axes: Sequence[Axis],
        hidden: Sequence[str],
        texts: Sequence[str],
        numbers: Sequence[str],
    ) -> tuple[RowVariables, tuple[tuple[str, str], ...]]:
        """Return the variables of the formulas on rows, and the categories of unchanged attributes
        that do not occur."""
        response = str(self.formulas[0].response)
        of_clean: dict[str, Axis] = {}
        clean: dict[str, NDArray[Any]] = {}
        empty = []
        mechanism = next(iter(strata.mechanisms.values()))
        for axis in axes:
            if axis.name in hidden:
                continue
            (codes,) = channel_of(mechanism, [axis.name]).released_codes(rows.codes)
            occurring = np.bincount(codes, minlength=len(axis.categories)) > 0
            gone = np.flatnonzero(~occurring).tolist()
            empty += [(axis.name, axis.categories[i]) for i in gone]
            place = np.cumsum(occurring) - 1
            of_clean[axis.name] = own = axis.without(gone)
            clean[axis.name] = own.values(place[codes])
        for name in texts:
            codes, labels = rows.texts[name]
            values = sorted({labels[i] for i in np.unique(codes)})
            of_clean[name] = own = self._axis(name, values)
            place = np.array([values.index(text) if text in values else 0 for text in labels])
            clean[name] = own.values(place[codes])
        for name in numbers:
            clean[name] = rows.numbers[name]
            of_clean[name] = number_axis(name, clean[name])
        answers = clean.pop(response, None)
        of_response = of_clean.pop(response, None)
        if of_response is None:
            of_response = next(axis for axis in axes if axis.name == response)
        if len(of_response.levels) < 2:
            raise InputError(f"all rows have the same '{response}', so no model can be fitted")
        unknown = tuple(axis for axis in axes if axis.name in hidden and axis.name != response)
        return RowVariables(of_response, unknown, of_clean, clean, answers), tuple(empty)

    def _regression(
        self,
        formula: Formula,
        variables: RowVariables,
        rows: KeptRows,
        strata: Strata,
        axes: Sequence[Axis],
        empty: tuple[tuple[str, str], ...],
        group: Group,
    ) -> Model:
        response = variables.response
        of_name = {axis.name: axis for axis in (response, *variables.cells.axes)}
        order = [axis.name for axis in axes if axis.name in of_name]
        order += [name for name in of_name if name not in order]
        cells = Cells(tuple(of_name[name] for name in order), sum(a.name in of_name for a in axes))
        formula = formula.on(cells)
        fit = fit_by_row(
            formula,
            variables,
            rows,
            strata,
            ordered=self.ordered,
            prior=self.prior is True,
            weights=None if self.weights is None else rows.numbers[self.weights],
            errors=self.errors,
            most_listed=MOST_LISTED,
        )
        variances = np.diag(fit.covariance)
        far = np.flatnonzero((abs(fit.parameters) > SEPARATED) & (variances > SEPARATED))
        if far.size and self.prior is not True:
            raise InputError(
                f"'{np.array(fit.names, object)[fit.kept][far[0]]}' in '{self.formula}' is "
                "infinite in the fit (separation); leave it out, collapse categories, or fit with "
                "the prior"
            )
        values, covariance, share = spread_out(fit.kept, fit.parameters, fit.covariance, fit.share)
        kind: Kind = "logistic" if len(response.levels) == 2 else "multinomial"
        schema = strata.schema
        return Model(
            formula=formula.text,
            parsed=formula,
            cells=cells,
            everybody=cells,
            kind="proportional odds" if self.ordered else kind,
            names=fit.names,
            terms=fit.terms,
            coefficients=values,
            covariance=covariance,
            data_share=share,
            levels=cells.levels,
            design=np.zeros((0, len(values))),
            response=cells.place(response.name),
            n_records=rows.n_rows,
            n_effective=fit.n_effective,
            group=group,
            level=self.level,
            prior=self.prior is True,
            attributes=tuple(v.attribute for v in schema.variables(order[: cells.n_attributes]))
            if cells.n_attributes
            else (),
            empty=empty,
            by_row=fit,
        )

    # Numbers

    def _linear(
        self,
        release: Release,
        formulas: Sequence[Formula],
        axes: Sequence[Axis],
        columns: Sequence[str],
        numbers: Sequence[str],
    ) -> Answers[Model]:
        if self.known is not None:
            raise InputError("known margins are for models of categories, not of a number")
        strata, response = release.strata, str(formulas[0].response)
        kept = [name for name in columns if name != response]
        rows = self._rows(release, axes, [n for n in kept if n not in numbers], numbers)
        models = []
        for group, part in self._groups(rows):
            for name in kept:
                if name in numbers:
                    found, codes = np.unique(part.numbers[name], return_inverse=True)
                    part.texts[name] = codes, [f"{number:.15g}" for number in found.tolist()]
            occurring = {
                n: [labels[i] for i in np.unique(codes)]
                for n, (codes, labels) in part.texts.items()
                if n in kept
            }
            cells = self._cells(axes, {name: occurring[name] for name in kept}, numbers)
            fits = [self._least_squares(f, response, cells, part, strata, group) for f in formulas]
            models.append(_compared(fits))
        return Answers(models, rows.selection)

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
        for together in formula.together([axis.name for axis in table.axes]):
            count = prod(table.sizes[table.place(name)] for name in together)
            if len(together) > 1 and count > MOST_COMBINATIONS:
                raise InputError(
                    f"formula '{formula.text}': {', '.join(together)} have {count:,} combinations "
                    f"of values, and a term at most {MOST_COMBINATIONS:,}; round a number"
                )
        formula = formula.on(table)
        n, of_response = table.n_attributes, [a for a in cells.axes if a.name == response]
        fitted = Cells((*table.axes[:n], *of_response, *table.axes[n:]), n + len(of_response))
        terms = terms_of(formula, fitted)
        rounded = [Term("", ("",), (n,), np.array(axis.numbers)[:, None]) for axis in of_response]
        on_all, changed, everybody = on_rows(rows, strata, [*terms, *rounded], fitted)
        kept, parameters, covariance, unread = fit_least_squares(
            on_all,
            strata,
            changed.pop() if rounded else response,
            self.weights,
            changed,
            everybody,
        )
        parameters, covariance, share = spread_out(
            kept, parameters, covariance, np.ones(len(parameters))
        )
        design = np.zeros((0, len(kept)))
        if table.levels.n_cells <= MOST_LISTED:
            shown = terms_of(formula, table.levels)
            design = np.hstack([term.on(table.levels) for term in shown])
        return Model(
            formula=formula.text,
            parsed=formula,
            cells=table,
            everybody=table,
            kind="linear",
            names=tuple(name for term in terms for name in term.names),
            terms=tuple(term.name for term in terms for _ in term.names),
            coefficients=parameters,
            covariance=covariance,
            data_share=share,
            levels=table.levels,
            design=design,
            response=None,
            n_records=rows.n_rows,
            n_effective=float(weights.sum() ** 2 / (weights**2).sum()),
            group=group,
            level=self.level,
            prior=False,
            attributes=tuple(
                v.attribute
                for v in strata.schema.variables(
                    axis.name for axis in table.axes[: table.n_attributes]
                )
            ),
            unread=unread,
        )


def _empty(cells: Cells, everybody: Cells, likelihood: Likelihood) -> tuple[tuple[int, int], ...]:
    """Return the axes and categories whose estimated share is 0, of levels that have no other: of
    the model without associations, which has an estimate of every share."""
    columns = interactions(everybody, range(len(everybody.axes)), 1)
    precision = np.full(len(columns.names), RIDGE)
    fit = fit_log_linear(likelihood, columns.values, columns.names, precision)
    table = fit.probabilities.reshape(everybody.sizes)
    found = []
    for i in range(everybody.n_attributes):
        of_all = table.sum(axis=tuple(j for j in range(table.ndim) if j != i))
        share = dict(zip(everybody.axes[i].categories, of_all.tolist(), strict=True))
        axis = cells.axes[i]
        of_level = np.bincount(axis.level_of, [share[name] for name in axis.categories])
        gone = of_level * likelihood.n_effective < NO_ROW
        found += [(i, c) for c, level in enumerate(axis.level_of) if gone[level]]
    return tuple(found)


def _compared(models: Sequence[Model]) -> Model:
    """Return the first of one or two models, with its test against the second."""
    return models[0].tested_against(models[1]) if len(models) > 1 else models[0]
