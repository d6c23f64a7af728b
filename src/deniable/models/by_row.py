"""Regressions of categories fitted row by row: from rows and a formula to coefficients.

A randomized number x among the covariates was rounded to the points of its grid, with the hat
functions h_j(x) as probabilities. Its effect is that of x, so the sum over randomized covariates
runs over values between the points, not over the points: Pr[o | x] = Σ_j h_j(x) V[j, o]. The
logarithm of its density given the clean covariates is taken as linear between points,
Σ_j h_j(x) θ_j, with as many parameters as points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.counting import KeptRows
from deniable.mechanism.published import channel_of
from deniable.mechanism.strata import Strata
from deniable.models.cells import Axis, Cells, contrasts
from deniable.models.formula import (
    ASSOCIATION_DEVIATION,
    INTERCEPT,
    MAIN_DEVIATION,
    MOST_NUMBERS,
    MOST_PARAMETERS,
    Formula,
    columns_at,
    independent_of,
    spec_of,
)
from deniable.models.least_squares import strata_of
from deniable.models.likelihood import Derivatives, climbed, inverse_of
from deniable.models.row_likelihood import RowLikelihood, RowTerm, columns_in
from deniable.models.syntax import placeholder

Floats = NDArray[np.float64]

RIDGE = 1e-8
"""Without a prior, the precision of the distribution of randomized covariates: combinations that
do not occur have finite logarithms."""

MOST_SHOWN = 4_000_000
"""Entries of the channel of a model's randomized attributes."""

MOST_SAMPLED = 10_000
"""Values of a number from which splines and scales of a formula are made."""

BETWEEN_POINTS = 4
"""Values between two points of the grid of a randomized number."""

MOST_MERGED = 100_000
"""Rows up to which equal ones are merged in any case."""

Errors = Literal["observed", "scores", "robust"]
"""Standard errors from the observed information, from the squares of the rows' scores, or from the
sandwich of both."""

_AT_ONCE = 200_000
"""Rows of a formula that are evaluated at a time."""


@dataclass(frozen=True)
class RowVariables:
    """The variables of a formula on rows.

    ``response``: its axis. ``hidden``: axes of the randomized covariates. ``clean``: levels or
    numbers of the others, shape (n,), by name, with their axes. ``answers``: levels of an unchanged
    response, shape (n,); None of a randomized one.
    """

    response: Axis
    hidden: tuple[Axis, ...]
    axes: Mapping[str, Axis]
    clean: Mapping[str, NDArray[np.float64] | NDArray[np.int64]]
    answers: NDArray[np.int64] | None

    @property
    def cells(self) -> Cells:
        """The covariates' axes."""
        return Cells((*self.hidden, *self.axes.values()), len(self.hidden))


def number_axis(name: str, values: Floats) -> Axis:
    """Return the axis of a column of numbers: its values in order, at most 10,001 of them."""
    n = len(values)
    places = np.unique(np.linspace(0, n - 1, min(n, MOST_SAMPLED + 1)).astype(np.int64))
    numbers = tuple(np.sort(values)[places].tolist())
    return Axis(name, tuple(map(repr, numbers)), numbers=numbers)


@dataclass(frozen=True)
class RowFit:
    """A fitted regression by row.

    ``kept``: which of the columns of ``names`` and ``terms`` are in the design, shape (q,).
    ``parameters``, ``covariance``: of the coefficients in the design. ``share``: the data's part
    of the information on each. ``log_likelihood``: in nats. ``n_effective``: of rows under weights.
    ``listed``: levels or numbers of the distinct combinations of covariates, by covariate; None
    of more than asked for.
    """

    names: tuple[str, ...]
    terms: tuple[str, ...]
    kept: NDArray[np.bool_]
    parameters: Floats
    covariance: Floats
    share: Floats
    log_likelihood: float
    n_effective: float
    likelihood: RowLikelihood = field(repr=False)
    listed: tuple[NDArray[np.float64] | NDArray[np.int64], ...] | None = field(repr=False)


def shown_values(
    rows: KeptRows, strata: Strata, variables: RowVariables, formula: Formula
) -> tuple[NDArray[np.int64], Floats]:
    """Return the index of every row's shown values, shape (n,), and the channel V of these: shape
    (combinations of randomized covariates, shown values, answers)."""
    hidden, response = [axis.name for axis in variables.hidden], variables.response
    k = len(response.levels)
    names = [response.name, *hidden] if variables.answers is None else hidden
    z = prod(len(axis.categories) for axis in variables.hidden)
    shown, start, parts = np.zeros(rows.n_rows, dtype=np.int64), 0, []
    for mechanism, chosen in strata_of(rows, strata) if names else ():
        channel = channel_of(mechanism, names)
        for together in formula.together(names):
            channel_of(mechanism, together).check(float(chosen.sum()))
        cells, outputs = prod(channel.n_categories), prod(channel.n_outputs)
        if cells * outputs > MOST_SHOWN:
            raise InputError(
                f"formula '{formula.text}': {', '.join(names)} have {cells:,} combinations of "
                f"categories and {outputs:,} of released values, too many for a model by row; "
                "leave out randomized attributes"
            )
        codes = channel.released_codes({i: c[chosen] for i, c in rows.codes.items()})
        shown[chosen] = start + np.ravel_multi_index(tuple(codes), channel.n_outputs)
        unit = np.eye(cells).reshape(*channel.n_categories, cells)
        parts.append(channel.forward.apply(unit).reshape(outputs, cells))
        start += outputs
    matrix = np.vstack(parts) if parts else np.ones((1, 1))
    if variables.answers is None:
        known = strata.schema.variable(response.name).attribute.categories
        order = [known.index(category) for category in response.categories]
        v = matrix.reshape(len(matrix), len(known), z)[:, order].transpose(2, 0, 1)
    else:
        v = np.einsum("oz,ky->zoky", matrix, np.eye(k)).reshape(z, -1, k)
        shown = shown * k + variables.answers
    used, shown = np.unique(shown, return_inverse=True)
    return shown, np.ascontiguousarray(v[:, used])


def answered_rows(rows: KeptRows, strata: Strata, response: Axis) -> NDArray[np.bool_]:
    """Return which rows show an answer, shape (n,): a category of the response's axis.

    Raises:
        InputError: if whether there is an answer is randomized, too.
    """
    answered = np.ones(rows.n_rows, dtype=bool)
    for mechanism, chosen in strata_of(rows, strata):
        channel = channel_of(mechanism, [response.name])
        known = channel.variables[0].attribute.categories
        matrix = channel.forward.apply(np.eye(len(known))).reshape(-1, len(known))
        asked = np.array([category in response.categories for category in known])
        without = np.asarray(matrix[:, ~asked].any(axis=1))
        if matrix[without][:, asked].any():
            raise InputError(
                f"whether '{response.name}' was answered is randomized, too, and `answered` then "
                "needs a table of cells: round the numbers, and put them within C()"
            )
        codes = channel.released_codes({i: c[chosen] for i, c in rows.codes.items()})
        answered[chosen] = ~without[np.ravel_multi_index(tuple(codes), channel.n_outputs)]
    return answered


def fit_by_row(
    formula: Formula,
    variables: RowVariables,
    rows: KeptRows,
    strata: Strata,
    *,
    ordered: bool,
    prior: bool,
    weights: Floats | None,
    errors: Errors,
    most_listed: int,
) -> RowFit:
    """Fit a regression of categories by row.

    ``weights``: of the rows, shape (n,). ``most_listed``: of the fit's ``listed``.
    """
    shown, channel = shown_values(rows, strata, variables, formula)
    survey = rows.survey
    z = len(channel)
    numbers = [_between_points(axis) for axis in variables.hidden]
    hats: Floats = np.ones((1, 1))
    for _, each in numbers:
        hats = np.kron(hats, each).astype(np.float64)
    channel = np.tensordot(hats, channel, 1)
    by_point, variables = variables, replace(variables, hidden=tuple(a for a, _ in numbers))
    w = np.ones(len(shown)) if weights is None else weights
    if w.min() < 0 or w.sum() <= 0:
        raise InputError("a weight is negative, or all are 0")
    scale = w.sum() / (w**2).sum()
    codes = {name: _codes(variables.clean[name]) for name in variables.clean}
    first: slice | NDArray[np.intp]
    if any(each is None for each in codes.values()):
        first, of_row, n = slice(None), np.arange(len(shown)), len(shown)
    else:
        sample = [] if survey is None else [survey.cluster]
        place = _combined([*(c for c in codes.values() if c is not None), shown, *sample])
        _, first, of_row = np.unique(place, return_index=True, return_inverse=True)
        n = len(first)
    if survey is not None:
        survey = survey.where(first)
    made = _Evaluated(
        formula,
        variables,
        {name: values[first] for name, values in variables.clean.items()},
        {name: None if c is None else c[first] for name, c in codes.items()},
        n,
    )
    names_of_terms = map(formula.named, formula.right.terms)
    both = zip(names_of_terms, made.terms(formula), strict=True)
    terms = [(name, term) for name, term in both if term.names]
    if ordered:
        terms = [each for each in terms if each[0] != INTERCEPT]
        terms.insert(0, (INTERCEPT, RowTerm(("",), np.ones((1, 1, 1)), made.nowhere)))
    clean = made.of_clean() if variables.hidden else ()
    whole = RowLikelihood(
        tuple(term for _, term in terms),
        clean,
        shown[first].astype(np.int32),
        channel,
        hats @ contrasts(z) if z > 1 else np.zeros((z, 0)),
        np.bincount(of_row, w * scale).astype(np.float64),
        None if weights is None else np.bincount(of_row, (w * scale) ** 2).astype(np.float64),
        ordered,
        np.arange(sum(len(term.names) for _, term in terms)),
        np.arange(sum(len(term.names) for term in clean)),
        survey,
    )
    labels = [name for _, term in terms for name in term.names]
    of_column = [name for name, term in terms for _ in term.names]
    levels = variables.response.levels
    k = len(levels) - 1
    kept = _independent(whole, whole.terms)
    used = _independent(whole, clean) if clean else np.zeros(0, dtype=bool)
    likelihood = replace(whole, columns=np.flatnonzero(kept), clean_columns=np.flatnonzero(used))
    spread = np.concatenate([term.spread for _, term in terms])
    if ordered:
        names = [f"{one}|{two}" for one, two in pairwise(levels)] + labels[1:]
        of_name = [INTERCEPT] * k + of_column[1:]
        kept = np.concatenate([np.ones(k, dtype=bool), kept[1:]])
        wide = np.concatenate([np.ones(k), spread[1:]])
    else:
        prefixes = [f"{level}: " if k > 1 else "" for level in levels[1:]]
        names = [prefix + label for prefix in prefixes for label in labels]
        of_name, kept, wide = of_column * k, np.tile(kept, k), np.tile(spread, k)
    p = likelihood.n_parameters
    if p > MOST_PARAMETERS:
        raise InputError(
            f"formula '{formula.text}': the model has {p:,} parameters, at most "
            f"{MOST_PARAMETERS:,} are fitted; use fewer attributes or terms"
        )
    precision = np.full(p, RIDGE)
    precision[: kept.sum()] = 0.0
    if prior:
        deviation = np.where(np.array(of_name) == INTERCEPT, MAIN_DEVIATION, ASSOCIATION_DEVIATION)
        precision[: kept.sum()] = ((wide / deviation) ** 2)[kept]
        of_clean = np.concatenate([np.ones(0), *(term.spread for term in clean)])
        of_clean = np.where(
            np.arange(len(of_clean)) == 0, 1 / MAIN_DEVIATION, of_clean / ASSOCIATION_DEVIATION
        )[likelihood.clean_columns]
        precision[likelihood.n_coefficients :] = np.tile(of_clean**2, likelihood.contrasts.shape[1])
    if errors == "scores" and (weights is not None or survey is not None):
        raise InputError("with weights or clusters standard errors are robust; leave out `errors`")
    found, covariance = _fitted(
        likelihood, precision, errors, np.array(names, object)[kept].tolist()
    )
    n = int(kept.sum())
    share = np.clip(1 - np.diag(covariance)[:n] * precision[:n], 0.0, 1.0)
    return RowFit(
        tuple(names),
        tuple(of_name),
        kept,
        found[:n],
        covariance[:n, :n],
        share,
        likelihood.height(found),
        float(w.sum() * scale),
        likelihood,
        replace(made, variables=by_point).listed(most_listed),
    )


def _between_points(axis: Axis) -> tuple[Axis, Floats]:
    """Return a randomized number on values between its points, and the hat functions of the points
    there, shape (values, points); another axis and the identity."""
    if axis.numbers is None:
        return axis, np.eye(len(axis.categories))
    n = len(axis.numbers)
    places = (np.arange((n - 1) * BETWEEN_POINTS) + 0.5) / BETWEEN_POINTS
    values = tuple(np.interp(places, np.arange(n), axis.numbers).tolist())
    hats = np.maximum(0.0, 1 - np.abs(places[:, None] - np.arange(n)))
    return Axis(axis.name, tuple(map(repr, values)), numbers=values), hats


def _fitted(
    likelihood: RowLikelihood, precision: Floats, errors: Errors, names: Sequence[str]
) -> tuple[Floats, Floats]:
    """Return the parameters of the largest objective and their covariance."""
    labels = [*names, *["another part"] * (len(precision) - len(names))]
    prior = np.diag(precision)

    def objective(at: Floats) -> float:
        return likelihood.height(at) - 0.5 * float(precision @ at**2)

    def derivatives(at: Floats) -> Derivatives:
        found = likelihood.derivatives(at)
        return Derivatives(
            found.score - precision * at, found.information + prior, found.curvature + prior
        )

    found, at = climbed(objective, derivatives, labels, likelihood.start)
    inverse = inverse_of(at.information if errors == "scores" else at.curvature, labels)
    squares = likelihood.squared_scores(found)
    if errors == "robust" and squares is None:
        squares = at.information - prior
    return found, inverse if squares is None else inverse @ (squares + prior) @ inverse


def _codes(values: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return the index of every value among the distinct ones, shape (n,); None of many rows with
    values that are nearly all distinct, which are not merged."""
    ordered = np.sort(values)  # np.unique hashes, which is slower for many distinct numbers
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if len(values) > MOST_MERGED and 2 * len(distinct) > len(values):
        return None
    return np.searchsorted(distinct, values)


def _independent(likelihood: RowLikelihood, terms: tuple[RowTerm, ...]) -> NDArray[np.bool_]:
    """Return which columns of some terms are not combinations of those before them."""
    q = sum(len(term.names) for term in terms)
    gram = np.zeros((q, q))
    for rows in likelihood.batches():
        flat = columns_in(terms, rows).reshape(-1, q)
        gram += flat.T @ flat
    return independent_of(gram)


def _combined(codes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the index of every row's combination of codes, from 0, shape (n,)."""
    place = np.zeros(len(codes[0]), dtype=np.int64)
    for each in codes:
        _, place = np.unique(place * (int(each.max()) + 1) + each, return_inverse=True)
    return place


@dataclass(frozen=True)
class _Evaluated:
    """A formula's columns on distinct rows.

    ``values``, ``codes``: of the clean covariates, shape (n,) by name; codes as of :func:`_codes`.
    """

    formula: Formula
    variables: RowVariables
    values: Mapping[str, NDArray[np.float64] | NDArray[np.int64]]
    codes: Mapping[str, NDArray[np.int64] | None]
    n: int

    @property
    def nowhere(self) -> NDArray[np.int32]:
        """Places of rows in a term of one value."""
        return np.zeros(self.n, dtype=np.int32)

    def terms(self, formula: Formula) -> list[RowTerm]:
        """Return the columns of every term of a formula of these covariates."""
        spec = spec_of(formula, self.variables.cells)
        return [self._term(formula, term, spec) for term in formula.right.terms]

    def _term(self, formula: Formula, term: Sequence[str], spec: Any) -> RowTerm:
        used = {name for factor in term for name in formula.right.named(factor)}
        hidden = [axis for axis in self.variables.hidden if axis.name in used]
        names = [name for name in self.values if name in used]
        first, places = self._distinct(names)
        inside = Cells(tuple(hidden), len(hidden))
        axes = [*hidden, *(self.variables.axes[name] for name in names)]
        blocks: list[Floats] = []
        labels: tuple[str, ...] = ()
        step = max(1, _AT_ONCE // inside.n_cells)
        for some in (first[i : i + step] for i in range(0, len(first), step)):
            columns = [
                *(np.repeat(levels, len(some)) for levels in inside.values()),
                *(np.tile(self.values[name][some], inside.n_cells) for name in names),
            ]
            labels, made = columns_at(formula, term, spec, axes, columns)
            blocks.append(made.reshape(inside.n_cells, len(some), len(labels)))
        if inside.n_cells * len(first) * len(labels) > MOST_NUMBERS:
            raise InputError(
                f"formula '{formula.text}': {formula.named(term)} has too many combinations of "
                "values; leave it out, or round a number"
            )
        values = np.concatenate(blocks, axis=1)
        if hidden:
            whole = Cells(self.variables.hidden, len(self.variables.hidden))
            own = [i for i, axis in enumerate(whole.axes) if axis.name in used]
            values = values[whole.merged_into(own)]
        return RowTerm(labels, values, places)

    def _distinct(self, names: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32] | None]:
        """Return a row of each combination of some covariates, and the index of every row's; all
        rows and None where they are not merged."""
        if not names:
            return np.zeros(1, dtype=np.int64), self.nowhere
        codes = [self.codes[name] for name in names]
        merged = [each for each in codes if each is not None]
        if len(merged) < len(codes):
            return np.arange(self.n), None
        _, first, places = np.unique(_combined(merged), return_index=True, return_inverse=True)
        return first, places.astype(np.int32)

    def of_clean(self) -> tuple[RowTerm, ...]:
        """Return the terms of the randomized covariates' distribution: the formula's terms of
        clean covariates, a constant, and each clean covariate of other terms."""
        right = self.formula.right
        hidden = {axis.name for axis in self.variables.hidden}
        terms = [
            term
            for term in right.terms
            if term and not hidden & {name for factor in term for name in right.named(factor)}
        ]
        known = {name for term in terms for factor in term for name in right.named(factor)}
        places = {name: placeholder(i) for i, name in enumerate(right.columns)}
        terms += [(places[n],) for n in self.formula.names if n not in known and n not in hidden]
        formula = self.formula.with_terms([(), *terms])
        return tuple(self.terms(formula))

    def listed(self, most: int) -> tuple[NDArray[np.float64] | NDArray[np.int64], ...] | None:
        """Return levels and numbers of the distinct combinations of the formula's covariates."""
        whole = Cells(self.variables.hidden, len(self.variables.hidden))
        names = [name for name in self.values if name in self.formula.names]
        first, _ = self._distinct(names)
        if len(first) * whole.n_cells > most:
            return None
        hidden = [np.repeat(levels, len(first)) for levels in whole.values()]
        clean = [np.tile(self.values[name][first], whole.n_cells) for name in names]
        return (*hidden, *clean)
