"""Formulas, in the notation of R and statsmodels, and the designs that they mean."""

import re
from dataclasses import dataclass
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
    return Formula(text, response, right, _in_order(right, text, response))


def _in_order(right: Any, text: str, response: str | None) -> tuple[str, ...]:
    names = {str(name) for name in right.required_variables} - {"Treatment", "Sum", "contr"}
    if response in names:
        raise InputError(f"formula '{text}': '{response}' stands on both sides")
    if not names:
        raise InputError(f"formula '{text}': name at least one column on the right side")
    after = text[text.index("~") :]
    return tuple(sorted(names, key=lambda name: (after.find(name), name)))


def _plain(error: Exception) -> str:
    """Return the first line of a message of formulaic, without marks for a terminal."""
    lines = re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(error)).strip().splitlines() or [""]
    shown = " ".join(line.strip() for line in lines if line.strip())
    return shown[:200].rstrip(".") or type(error).__name__


def matrix_of(formula: Formula, frame: Any) -> tuple[Any, dict[str, list[int]]]:
    """Return a formula's columns for the rows of a frame, and which belong to each term.

    Raises:
        InputError: if a part of the formula cannot be evaluated.
    """
    try:
        made = formula.parsed.get_model_matrix(frame, context={})
    except Exception as error:  # a formula may call what it likes
        raise InputError(
            f"formula '{formula.text}': {_plain(error)}; names with other characters than "
            "letters, digits and _ stand between backticks"
        ) from None
    indices = {str(term): list(places) for term, places in made.model_spec.term_indices.items()}
    return made, indices


def check_size(cells: Cells, parameters: int, text: str) -> None:
    """Refuse a model that is too large, before work starts.

    Raises:
        InputError: saying its size and the limit.
    """
    sizes = " × ".join(f"{len(a.categories)} ({a.name})" for a in cells.axes)
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
    response = None if formula.response is None else cells.place(formula.response)
    covariates = [i for i in range(len(cells.axes)) if i != response]
    sizes = [cells.sizes[i] for i in covariates]
    all_of_it = prod(sizes) < MOST_SATURATED
    if response is not None:
        pairs = sum((a - 1) * (b - 1) for i, a in enumerate(sizes) for b in sizes[:i])
        n_joint = prod(sizes) - 1 if all_of_it else pairs + sum(sizes) - len(sizes)
        check_size(cells, n_joint, formula.text)
    made, terms = matrix_of(formula, cells.frame())
    if response is None:
        columns = Columns.beside(_columns(made, terms, cells), of_merged(cells, None))
        check_size(cells, len(columns.names), formula.text)
        return columns
    n_of_response = (cells.sizes[response] - 1) * made.shape[1]
    check_size(cells, n_joint + n_of_response, formula.text)
    parts = [
        _columns(made, terms, cells, response, category)
        for category in range(1, cells.sizes[response])
    ]
    most = len(covariates) if all_of_it else min(2, len(covariates))
    joint = interactions(cells, covariates, most)
    return Columns.beside(*parts, of_merged(cells, response), joint)


def columns_of(formula: Formula, levels: Cells) -> Columns:
    """Return the columns of a formula alone, on a table whose categories are merged already.

    Raises:
        InputError: if the formula cannot be evaluated.
    """
    made, terms = matrix_of(formula, levels.frame())
    if formula.response is None:
        return _columns(made, terms, levels)
    response = levels.place(formula.response)
    parts = [
        _columns(made, terms, levels, response, level) for level in range(1, levels.sizes[response])
    ]
    return Columns.beside(*parts)


def _columns(
    made: Any,
    terms: dict[str, list[int]],
    cells: Cells,
    response: int | None = None,
    category: int = 0,
) -> Columns:
    """Return a formula's columns, as they are or times the indicator of a response's category."""
    values = np.asarray(made, dtype=np.float64)
    names = [str(name) for name in made.columns]
    term_of = {place: term for term, places in terms.items() for place in places}
    chosen = [i for i in range(len(names)) if response is not None or term_of[i] != "1"]
    prefix = ""
    if response is None:
        order = tuple(term_of[i].count(":") + 1 for i in chosen)
    else:
        axis = cells.axes[response]
        order = tuple(1 if term_of[i] == "1" else 2 for i in chosen)
        prefix = "" if len(axis.categories) == 2 else f"{axis.categories[category]}: "
        values = values * (cells.indices[response] == category)[:, None]
    return Columns(
        values[:, chosen],
        tuple(prefix + names[i] for i in chosen),
        order,
        tuple("(Intercept)" if term_of[i] == "1" else term_of[i] for i in chosen),
    )


def prior_precision(columns: Columns) -> NDArray[np.float64]:
    """Return one over the prior variance of every parameter, shape (p,): N(0, 3²) on main effects,
    N(0, 2.5²) on associations, of numbers for one standard deviation of theirs."""
    deviations = np.where(np.array(columns.order) == 1, MAIN_DEVIATION, ASSOCIATION_DEVIATION)
    spread = np.ones(len(columns.names))
    for place, column in enumerate(columns.values.T):
        if np.any((column != 0) & (abs(column) != 1)):
            spread[place] = column[column != 0].std() or 1.0
    return np.asarray((spread / deviations) ** 2)
