"""Formulas, in the notation of R and statsmodels, and the designs that they mean."""

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.models.cells import Axis, Cells, Columns, contrasts, interactions, of_merged
from deniable.models.syntax import (
    Terms,
    contained,
    marked,
    of_levels,
    parse,
    placeholder,
    printable,
)

MOST_SATURATED = 500
"""Cells of the covariates from which on their distribution has all pairs, and not everything."""

MOST_CELLS = 200_000
MOST_PARAMETERS = 1_500
MOST_NUMBERS = 100_000_000
"""Cells times parameters: a design of 800 MB."""

INTERCEPT = "(Intercept)"
"""The term of the constant."""

MAIN_DEVIATION, ASSOCIATION_DEVIATION = 3.0, 2.5
WEAK_PRIOR = "N(0, 3²) on main effects, N(0, 2.5²) on associations"
"""The prior of these standard deviations."""
"""Standard deviations of the weak prior; of a number's coefficient, for one standard deviation."""


@dataclass(frozen=True)
class Formula:
    """A formula as it was read."""

    text: str
    response: str | None
    right: Terms

    @property
    def names(self) -> tuple[str, ...]:
        """The variables on the right, as they occur."""
        used = {name for term in self.right.terms for f in term for name in self.right.named(f)}
        return tuple(name for name in self.right.columns if name in used)

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables, the response first."""
        return (*([] if self.response is None else [self.response]), *self.names)

    def together(self, attributes: Sequence[str]) -> list[list[str]]:
        """Return, by term, those of some attributes that it brings together, with the response."""
        variables = [
            {self.response, *(name for factor in term for name in self.right.named(factor))}
            for term in self.right.terms
        ]
        return [named for v in variables if (named := [n for n in attributes if n in v])]

    def without(self, term: str) -> tuple[tuple[str, ...], "Formula"]:
        """Return the terms that contain a term, by their names and itself first, and the formula
        that is left without them."""
        terms = {self.named(each): each for each in self.right.terms}
        gone = [name for name, each in terms.items() if each and contained(terms[term], each)]
        left = tuple(each for name, each in terms.items() if name not in gone)
        gone.sort(key=lambda name: name != term)
        return tuple(gone), self.with_terms(left)

    def with_terms(self, terms: Sequence[Sequence[str]]) -> "Formula":
        """Return the formula with other terms of its columns."""
        return replace(self, right=replace(self.right, terms=tuple(map(tuple, terms))))

    def on(self, cells: Cells) -> "Formula":
        """Return the formula with the categories of a table in place of numbers, or other texts,
        that name them by their value."""
        levels = {axis.name: axis.levels for axis in cells.axes if axis.numbers is None}

        def factor(code: str) -> str:
            named = [name for name in self.right.named(code) if name in levels]
            if "(" not in code or len(set(named)) != 1:
                return code
            return of_levels(code, [marked(level) for level in levels[named[0]]])

        terms = tuple(tuple(map(factor, term)) for term in self.right.terms)
        return self.with_terms(terms)

    def as_category(self, name: str) -> bool:
        """Return whether a variable occurs on the right side within ``C()`` only."""
        found = {
            factor.startswith("C(")
            for term in self.right.terms
            for factor in term
            if name in self.right.named(factor)
        }
        return found == {True}

    def named(self, term: Sequence[str]) -> str:
        """Return the name of a term."""
        return self.right.shown(":".join(term)) or INTERCEPT


def read_formula(text: str, others: Sequence[str] = ()) -> Formula:
    """Read a formula; ``.`` means the columns ``others`` less the response."""
    if find_spec("formulaic") is None:
        raise InputError("models need the package formulaic: pip install 'deniable[models]'")
    return Formula(printable(text), *parse(text, others))


@dataclass(frozen=True)
class Term:
    """The columns of one term of a formula, as functions of the term's own variables.

    ``values``: shape (*categories of these axes, columns).
    """

    name: str
    names: tuple[str, ...]
    axes: tuple[int, ...]
    values: NDArray[np.float64]

    def times(self, other: "Term") -> "Term":
        """Return the products of all columns of one with all of the other, the latter fastest."""
        axes = sorted({*self.axes, *other.axes})
        first, second = (
            np.expand_dims(term.values, tuple(i for i, a in enumerate(axes) if a not in term.axes))
            for term in (self, other)
        )
        product = first[..., :, None] * second[..., None, :]
        names = tuple(f"{one}:{two}" for one in self.names for two in other.names)
        values = product.reshape(*product.shape[:-2], len(names))
        return Term(f"{self.name}:{other.name}", names, tuple(axes), values)

    def on(self, cells: Cells) -> NDArray[np.float64]:
        """Return the columns for every cell, shape (cells, columns)."""
        values = self.values[tuple(cells.indices[axis] for axis in self.axes)]
        return np.broadcast_to(values, (cells.n_cells, len(self.names)))


def terms_of(formula: Formula, cells: Cells) -> list[Term]:
    """Return a formula's terms, each on all combinations of its own variables, but those without
    columns, as of one category."""
    spec, terms = spec_of(formula, cells), []
    for term in formula.right.terms:
        variables = {name for factor in term for name in formula.right.named(factor)}
        axes = [i for i, axis in enumerate(cells.axes) if axis.name in variables]
        own = Cells(tuple(cells.axes[i] for i in axes), len(axes))
        names, values = columns_at(formula, term, spec, own.axes, own.values())
        if names:
            shaped = values.reshape(*own.sizes, len(names))
            terms.append(Term(formula.named(term), names, tuple(axes), shaped))
    return terms


def columns_at(
    formula: Formula,
    term: Sequence[str],
    spec: Any,
    axes: Sequence[Axis],
    columns: Sequence[NDArray[Any]],
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Return the names of a term's columns and their values, shape (n, columns).

    ``spec``: of :func:`spec_of`. ``columns``: by axis the levels or numbers of n rows.
    """
    made = _made(spec.subset([_evaluated(term)]), _frame(formula, axes, columns))
    values = np.asarray(made, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError(
            f"formula '{formula.text}': {formula.named(term)} is not a finite number for some "
            f"values of {', '.join(axis.name for axis in axes)}; leave such rows out "
            "with `where`"
        )
    return tuple(formula.right.shown(str(name)) for name in made.columns), values


def _made(spec: Any, frame: Any) -> Any:
    """Return formulaic's columns of a table."""
    from formulaic.errors import DataMismatchWarning

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", DataMismatchWarning)  # categories that no level has
        return spec.get_model_matrix(frame, context={"sqrt": np.sqrt, "abs": np.abs})


def _evaluated(term: Sequence[str]) -> Any:
    """Return a term as formulaic has it."""
    from formulaic.parser.types import Factor, Term  # only here: loading it takes a while

    factors = [Factor(f, eval_method="python" if "(" in f else "lookup") for f in term]
    return Term(factors or [Factor("1", eval_method="literal")])


def _frame(formula: Formula, axes: Sequence[Axis], columns: Sequence[NDArray[Any]]) -> Any:
    """Return rows with placeholders as names, without the response."""
    import pandas

    place = {name: i for i, name in enumerate(formula.right.columns)}
    return pandas.DataFrame(
        {
            placeholder(place[axis.name]): values
            if axis.numbers is not None
            else pandas.Categorical.from_codes(values, pandas.Index([*map(marked, axis.levels)]))
            for axis, values in zip(axes, columns, strict=True)
            if axis.name in place
        },
        index=range(len(columns[0]) if columns else 1),
    )


def spec_of(formula: Formula, cells: Cells) -> Any:
    """Return formulaic's specification of a formula's columns, from a small table with all levels,
    on which its contrasts depend."""
    from formulaic import ModelSpec, SimpleFormula  # only here: loading it takes a while

    longest = np.arange(max([1, *cells.sizes]))
    small = [axis.values(longest % n) for axis, n in zip(cells.axes, cells.sizes, strict=True)]
    table = _frame(formula, cells.axes, small)

    def made(terms: Sequence[Sequence[str]]) -> Any:
        of = SimpleFormula([_evaluated(term) for term in terms], _ordering="none")
        return _made(ModelSpec(of, na_action="ignore", output="pandas"), table).model_spec

    functions = [f for term in formula.right.terms for f in term if "(" in f]
    for factor in dict.fromkeys(functions):
        axes = [axis for axis in cells.axes if axis.name in formula.right.named(factor)]
        texts = [axis for axis in axes if axis.numbers is None]
        why = "check its arguments"
        quoted = {
            each.value for each in ast.walk(ast.parse(factor)) if isinstance(each, ast.Constant)
        }
        known = {marked(level) for axis in texts for level in axis.levels}
        wrong = sorted(each for each in quoted - known if isinstance(each, str)) if texts else []
        if wrong:
            why = f"'{formula.right.shown(wrong[0])}' is not a category of '{texts[0].name}'"
        elif texts:
            why = f"'{texts[0].name}' has categories, not numbers"
        try:
            if not wrong:
                made([[factor]])
                continue
        except Exception:
            pass
        raise InputError(
            f"formula '{formula.text}': {formula.named([factor])} cannot be computed: {why}"
        )
    return made(formula.right.terms)


def check_size(cells: Cells, parameters: int, text: str) -> None:
    """Refuse a model that is too large, before work starts."""
    sizes = " × ".join(f"{len(axis.categories)} ({axis.name})" for axis in cells.axes)
    if cells.n_cells > MOST_CELLS:
        raise InputError(
            f"formula '{text}': its table has {cells.n_cells:,} cells, {sizes}, and a model at "
            f"most {MOST_CELLS:,}; use fewer attributes"
        )
    if parameters > MOST_PARAMETERS or cells.n_cells * parameters > MOST_NUMBERS:
        raise InputError(
            f"formula '{text}': the model has {parameters:,} parameters on {cells.n_cells:,} "
            f"cells, {sizes}; at most {MOST_PARAMETERS:,} parameters, and "
            f"{MOST_NUMBERS // 10**6} million cells times parameters, are fitted; use fewer "
            "attributes or terms"
        )


def design_of(formula: Formula, cells: Cells) -> Columns:
    """Return the design matrix of a formula's log-linear model, without a constant.

    With a response the model has the joint distribution of the covariates, as far as 500 cells all
    of it and beyond all pairs, and per category of the response but the first the right side's
    columns times its indicator: a logistic or multinomial regression. Categories that the model
    merges have columns of their own (:func:`~deniable.models.cells.of_merged`).
    """
    check_size(cells, 0, formula.text)
    if formula.response is None:
        return Columns.joined(columns_of(formula, cells), *of_merged(cells, None))
    response = cells.place(formula.response)
    covariates = [i for i in range(len(cells.axes)) if i != response]
    sizes = [cells.sizes[i] for i in covariates]
    most, n_joint = len(covariates), prod(sizes) - 1
    if prod(sizes) >= MOST_SATURATED:
        most = min(2, most)
        n_joint = sum(prod(n - 1 for n in c) for m in (1, 2) for c in combinations(sizes, m))
    check_size(cells, n_joint, formula.text)
    own = columns_of(formula, cells, n_joint)
    joint = [interactions(cells, covariates, most)] if covariates else []
    return Columns.joined(own, *of_merged(cells, response), *joint)


def columns_of(formula: Formula, cells: Cells, n_joint: int = 0) -> Columns:
    """Return the columns of a formula alone, for a model that has ``n_joint`` others. Raises as
    :func:`design_of`."""
    response = None if formula.response is None else cells.place(formula.response)
    answers = ("", "") if response is None else cells.axes[response].categories
    terms = [t for t in terms_of(formula, cells) if response is not None or t.name != INTERCEPT]
    own = sum(len(term.names) for term in terms)
    check_size(cells, n_joint + own * (len(answers) - 1), formula.text)
    values = np.hstack([np.zeros((cells.n_cells, 0)), *(term.on(cells) for term in terms)])
    names = [name for term in terms for name in term.names]
    labels = tuple(term.name for term in terms for _ in term.names)
    if response is None:
        order = tuple(len(term.axes) for term in terms for _ in term.names)
        return Columns(values, tuple(names), order, labels)
    order = tuple(1 if label == INTERCEPT else 2 for label in labels)
    blocks = []
    for i, answer in enumerate(answers[1:], start=1):
        prefix = f"{answer}: " if len(answers) > 2 else ""
        mine = values * (cells.indices[response] == i)[:, None]
        blocks.append(Columns(mine, tuple(prefix + name for name in names), order, labels))
    return Columns.joined(*blocks)


def prior_precision(columns: Columns, main: float = MAIN_DEVIATION) -> NDArray[np.float64]:
    """Return the precisions of the weak prior on parameters, shape (p,); of numbers, per standard
    deviation. ``main``: prior standard deviation of main effects."""
    deviations = np.where(np.array(columns.order) == 1, main, ASSOCIATION_DEVIATION)
    spread = np.ones(len(columns.names))
    for place, column in enumerate(columns.values.T):
        if np.any((column != 0) & (abs(column) != 1)):
            spread[place] = column[column != 0].std() or 1.0
    return np.asarray((spread / deviations) ** 2)


def symmetric_precision(
    columns: Columns, cells: Cells, response: int | None
) -> NDArray[np.float64]:
    """Return the precision of the weak prior on the functions that a design's columns span, shape
    (p, p), for any reference categories.

    Main effects and interactions sum to 0 along each axis. The prior is on differences of
    categories and differences of differences, and, with a response, on the orthonormal contrasts
    of the covariates' distribution.
    """
    table = columns.values.reshape(*cells.sizes, len(columns.names))
    order, own, joint = (np.full(cells.sizes, value) for value in (0.0, 1.0, 1.0))
    of_response = np.ones(cells.sizes, dtype=bool)
    for i, axis in enumerate(cells.axes):
        n = len(axis.categories)
        basis = np.column_stack([np.full(n, 1 / np.sqrt(n)), contrasts(n)])
        table = np.moveaxis(np.tensordot(basis.T, table, axes=(1, i)), 0, i)
        varies = np.indices(cells.sizes)[i] > 0
        order += varies
        own *= np.where(varies, 2 if axis.numbers is None else 1 / n, 1 / n)
        joint *= np.where(varies, 1, 1 / n)
        if i == response:
            of_response = varies
    deviation = np.where(order == 1, MAIN_DEVIATION, ASSOCIATION_DEVIATION)
    weight = np.where(of_response, own, joint) / deviation**2
    weight[order == 0] = 0
    rows = table.reshape(cells.n_cells, -1) if table.size else np.zeros((cells.n_cells, 0))
    return np.asarray(rows.T @ (rows * weight.reshape(-1, 1)))


def independent(
    columns: Columns, cells: Cells, response: int | None, occurring: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which columns of a design are not combinations of those before them, shape (p,); only
    those of the formula can be.

    ``response``: its axis; None for a log-linear model, which has a constant.
    """
    keep = np.array([term == "" for term in columns.terms], dtype=bool)
    values = columns.values[:, ~keep]
    chosen = np.broadcast_to(
        occurring.reshape(-1, *cells.sizes[cells.n_attributes :])[0], cells.sizes
    )
    before = [np.ones((cells.n_cells, 1))] if response is None else []
    answers = 1
    if response is not None:  # the same columns for every answer but the first
        answers = cells.sizes[response] - 1
        values = values[:, : values.shape[1] // answers]
        chosen = chosen.any(axis=response, keepdims=True) & (
            cells.indices[response].reshape(cells.sizes) == 1
        )
    rows = np.hstack([*before, values])[chosen.ravel()]
    found = independent_of(rows.T @ rows)
    keep[~keep] = np.tile(found[len(before) :], answers)
    return keep


def independent_of(gram: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which columns of a matrix are not combinations of those before them, from their
    products, shape (p, p)."""
    size = np.sqrt(np.diag(gram))
    unit = np.where(size > 0, size, 1)
    left = gram / np.outer(unit, unit)
    found = np.zeros(len(size), dtype=bool)
    for i in range(len(size)):
        if left[i, i] > 1e-11:  # the squared part of the column beyond those before it
            found[i] = True
            left -= np.outer(left[i], left[i] / left[i, i])
    return found


def restrictions(
    larger: Sequence[Term], smaller: Sequence[Term], cells: Cells
) -> NDArray[np.float64]:
    """Return L such that Lβ = 0 where the columns of some terms, times β, are a combination of
    those of others, shape (df, p)."""
    own, across, others = (
        np.block([[_mean_product(one, other, cells) for other in second] for one in first])
        if first and second
        else np.zeros([sum(len(t.names) for t in terms) for terms in (first, second)])
        for first, second in ((larger, larger), (larger, smaller), (smaller, smaller))
    )
    scale = 1 / np.sqrt(np.maximum(np.diag(own), 1e-300))
    beyond = own - across @ np.linalg.pinv(others, rcond=1e-12, hermitian=True) @ across.T
    values, vectors = np.linalg.eigh(beyond * np.outer(scale, scale))
    return np.asarray((vectors / scale[:, None])[:, values > 1e-8].T)


def _mean_product(one: Term, other: Term, cells: Cells) -> NDArray[np.float64]:
    """Return the means over all cells of the products of two terms' columns."""
    shared = set(one.axes) & set(other.axes)
    first, second = (
        term.values.mean(axis=tuple(i for i, a in enumerate(term.axes) if a not in shared)).reshape(
            -1, len(term.names)
        )
        for term in (one, other)
    )
    return np.asarray(first.T @ second / prod(cells.sizes[axis] for axis in shared))
