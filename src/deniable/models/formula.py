"""Formulas, in the notation of R and statsmodels, and the designs that they mean."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.models.cells import Cells, Columns, interactions, of_merged

MOST_SATURATED = 500
"""Cells of the covariates from which on their distribution has all pairs, and not everything."""

MOST_CELLS = 200_000
MOST_PARAMETERS = 1_500
MOST_NUMBERS = 100_000_000
"""Cells times parameters: a design of 800 MB."""

INTERCEPT = "(Intercept)"
"""The term of the constant."""

MAIN_DEVIATION, ASSOCIATION_DEVIATION = 3.0, 2.5
"""Standard deviations of the weak prior; of a number's coefficient, for one standard deviation."""


@dataclass(frozen=True)
class Formula:
    """A formula as it was read.

    Args:
        text: as written.
        response: the variable on the left; None for a log-linear model.
        parsed: the right side, as formulaic has it.
        names: the variables on the right.
    """

    text: str
    response: str | None
    parsed: Any
    names: tuple[str, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables, the response first."""
        return (*([] if self.response is None else [self.response]), *self.names)

    def together(self, attributes: Sequence[str]) -> list[list[str]]:
        """Return, by term, those of some attributes that it brings together, with the response."""
        variables = [
            {self.response} | {str(n) for factor in term.factors for n in factor.required_variables}
            for term in self.parsed
        ]
        return [named for v in variables if (named := [n for n in attributes if n in v])]


def read_formula(text: str) -> Formula:
    """Read a formula.

    Raises:
        InputError: if formulaic is not installed, or it is no formula, in one sentence.

    Examples:
        >>> formula = read_formula("income ~ sex + race")
        >>> formula.response, formula.names
        ('income', ('sex', 'race'))
        >>> read_formula("~ sex*race").response is None
        True
    """
    try:
        import formulaic
        from formulaic.errors import FormulaicError
    except ImportError:
        raise InputError(
            "models need the package formulaic: pip install 'deniable[models]'"
        ) from None
    if text.count("~") != 1:
        raise InputError(
            f"'{text}' is not a formula; expected 'response ~ covariates', or '~ terms' for a "
            "log-linear model"
        )
    try:
        parsed = formulaic.Formula(text)
    except (FormulaicError, SyntaxError, ValueError) as error:
        raise InputError(f"formula '{text}': {_plain(error)}") from None
    left, right = getattr(parsed, "lhs", None), getattr(parsed, "rhs", parsed)
    if left is not None:
        terms = [str(term) for term in left] if hasattr(left, "required_variables") else []
        known = sorted(map(str, getattr(left, "required_variables", ())))
        if len(terms) != 1 or len(known) != 1 or terms[0].strip("`") != known[0]:
            raise InputError(
                f"formula '{text}': the left side is one column as it is; a name with other "
                "characters than letters, digits and _ stands between backticks"
            )
    if not hasattr(right, "required_variables"):
        raise InputError(f"formula '{text}': the right side has one part, without |")
    response = None if left is None else known[0]
    names = {str(name) for name in right.required_variables} - {"Treatment", "Sum", "contr"}
    if response in names:
        raise InputError(f"formula '{text}': '{response}' stands on both sides")
    if not names:
        raise InputError(f"formula '{text}': name at least one column on the right side")
    after = text[text.index("~") :]
    in_order = sorted(names, key=lambda name: (after.find(name), name))
    return Formula(text, response, right, tuple(in_order))


def _plain(error: Exception) -> str:
    """Return the first line of a message of formulaic, without marks for a terminal."""
    lines = re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(error)).strip().splitlines() or [""]
    shown = " ".join(line.strip() for line in lines if line.strip())
    return shown[:200].rstrip(".") or type(error).__name__


@dataclass(frozen=True)
class Term:
    """The columns of one term of a formula, as functions of the term's own variables.

    Args:
        name: of the term; of the constant :data:`INTERCEPT`.
        names: of the columns.
        axes: the places of its variables among a model's, in rising order.
        values: shape (*categories of these axes, columns).
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


def spec_of(formula: Formula, cells: Cells) -> Any:
    """Return formulaic's account of the columns that a formula has on some cells, from a small
    table with all levels, as what it means depends on these.

    Raises:
        InputError: if a part of the formula cannot be evaluated.
    """
    import pandas

    longest = np.arange(max(cells.sizes))
    frames = [Cells((axis,), 1).frame() for axis in cells.axes]
    small = [frame.take(longest % len(frame)).reset_index(drop=True) for frame in frames]
    try:
        return formula.parsed.get_model_matrix(pandas.concat(small, axis=1), context={}).model_spec
    except Exception as error:  # a formula may call what it likes
        raise InputError(
            f"formula '{formula.text}': {_plain(error)}; names with other characters than "
            "letters, digits and _ stand between backticks"
        ) from None


def terms_of(spec: Any, cells: Cells) -> list[Term]:
    """Return a formula's terms, each on all combinations of its own variables, from
    :func:`spec_of` the same cells."""
    terms = []
    for term in spec.terms:
        variables = set(map(str, spec.term_variables[term]))
        axes = [i for i, axis in enumerate(cells.axes) if axis.name in variables]
        own = Cells(tuple(cells.axes[i] for i in axes), len(axes))
        made = spec.subset([term]).get_model_matrix(own.frame(), context={})
        values = np.asarray(made, dtype=np.float64).reshape(*own.sizes, made.shape[1])
        name = INTERCEPT if str(term) == "1" else str(term)
        terms.append(Term(name, tuple(map(str, made.columns)), tuple(axes), values))
    return terms


def check_size(cells: Cells, parameters: int, text: str) -> None:
    """Refuse a model that is too large, before work starts.

    Raises:
        InputError: saying its size and the limit.
    """
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
    """Return the design of a log-linear model that a formula means, without a constant.

    With a response the model has the joint distribution of the covariates, as far as 500 cells all
    of it and beyond all pairs, and per category of the response but the first the right side's
    columns times its indicator: a logistic or multinomial regression. Categories that the model
    merges are told apart by columns of their own (:func:`~deniable.models.cells.of_merged`).

    Raises:
        InputError: if the formula cannot be evaluated, or the model is too large.
    """
    check_size(cells, 0, formula.text)
    if formula.response is None:
        return Columns.beside(columns_of(formula, cells), *of_merged(cells, None))
    response = cells.place(formula.response)
    covariates = [i for i in range(len(cells.axes)) if i != response]
    sizes = [cells.sizes[i] for i in covariates]
    most, n_joint = len(covariates), prod(sizes) - 1
    if prod(sizes) >= MOST_SATURATED:
        most = min(2, most)
        n_joint = sum(prod(n - 1 for n in c) for m in (1, 2) for c in combinations(sizes, m))
    check_size(cells, n_joint, formula.text)
    own = columns_of(formula, cells, n_joint)
    joint = interactions(cells, covariates, most)
    return Columns.beside(own, *of_merged(cells, response), joint)


def columns_of(formula: Formula, cells: Cells, n_joint: int = 0) -> Columns:
    """Return the columns of a formula alone, for a model that has ``n_joint`` others. Raises as
    :func:`design_of`."""
    spec = spec_of(formula, cells)
    response = None if formula.response is None else cells.place(formula.response)
    answers = ("", "") if response is None else cells.axes[response].categories
    check_size(cells, n_joint + len(spec.column_names) * (len(answers) - 1), formula.text)
    terms = [t for t in terms_of(spec, cells) if response is not None or t.name != INTERCEPT]
    values = np.hstack([np.zeros((cells.n_cells, 0)), *(term.on(cells) for term in terms)])
    names = [name for term in terms for name in term.names]
    labels = tuple(term.name for term in terms for _ in term.names)
    if response is None:
        return Columns(values, tuple(names), tuple(t.count(":") + 1 for t in labels), labels)
    order = tuple(1 if label == INTERCEPT else 2 for label in labels)
    blocks = []
    for i, answer in enumerate(answers[1:], start=1):
        prefix = f"{answer}: " if len(answers) > 2 else ""
        mine = values * (cells.indices[response] == i)[:, None]
        blocks.append(Columns(mine, tuple(prefix + name for name in names), order, labels))
    return Columns.beside(*blocks)


def prior_precision(columns: Columns, main: float = MAIN_DEVIATION) -> NDArray[np.float64]:
    """Return one over the prior variance of every parameter, shape (p,): N(0, 3²) on main effects,
    or with another deviation, N(0, 2.5²) on associations, of numbers for one standard deviation of
    theirs."""
    deviations = np.where(np.array(columns.order) == 1, main, ASSOCIATION_DEVIATION)
    spread = np.ones(len(columns.names))
    for place, column in enumerate(columns.values.T):
        if np.any((column != 0) & (abs(column) != 1)):
            spread[place] = column[column != 0].std() or 1.0
    return np.asarray((spread / deviations) ** 2)
