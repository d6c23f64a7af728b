"""Randomized numbers among the variables of a model."""

from collections.abc import Sequence

from deniable.errors import InputError
from deniable.models.formula import Formula
from deniable.schema import Attribute

FEWEST_POINTS = 5
"""Points of the grid of a number that is a covariate."""


def points_of(
    attribute: Attribute, formulas: Sequence[Formula], *, ordered: bool, answered: bool
) -> tuple[float, ...] | None:
    """Return the points of a number in a regression; None if its points are taken as categories: in
    log-linear models, within ``C()``, and as a response of ordered categories.

    Raises:
        InputError: if its missing category is among the data, or a covariate's points are few.
    """
    name, grid, response = attribute.name, attribute.number_grid, formulas[0].response
    as_category = response is None or (ordered and name == response)
    if grid is None or as_category or all(f.as_category(name) for f in formulas):
        return None
    if attribute.missing is not None and not answered:
        raise InputError(
            f"'{name}' has a missing category, which is no number; give `answered`, or take its "
            f"points as categories, C({name})"
        )
    if name != response and grid.n_points < FEWEST_POINTS:
        raise InputError(
            f"the grid of '{name}' has {grid.n_points} points, too few to tell the effect of a "
            f"number; declare {FEWEST_POINTS} or more for the next release, and take the points as "
            f"categories here, C({name})"
        )
    return grid.points
