"""Response matrices for numbers with a law of their own: the least error of the mean.

In a law of several attributes the points of a number are categories. A number alone is released as
one of more values than points, whose average estimates the mean; the grid is finer the larger ε is,
unless the schema sets it.
"""

import math
from dataclasses import replace

import numpy as np

from deniable.laws import MatrixChannel
from deniable.laws.patterns import FloatArray
from deniable.schema import Attribute
from deniable.solvers.matrices.numbers import LEVELS, MOST_POINTS, matrix_for_mean, merged

_AIM = 2e-11
"""The program's level is this far below the request, in nats; rounding to integers takes less."""


_AVERAGES = {"mean": 0.2, "typical": 1.0, "distribution": 0.2}
"""Weight of the average variance next to the largest, by purpose. At 0.2 the largest is within
0.1 % of the least, and the solution is found sooner."""


def grid_for(level: float) -> int:
    """Return the points of a grid whose rounding adds less than 1 % to the variance of a mean, up
    to about 6 nats. The least standard error falls like e^{−level/3}."""
    return min(MOST_POINTS, 1 + 2 * math.ceil(3.5 * math.exp(level / 3)))


def number_response(attribute: Attribute, level: float) -> tuple[Attribute, MatrixChannel] | None:
    """Return the attribute with its grid and its released values, and the matrix for a level in
    nats; None if it has none: of categories or dates, or outside the limits of the program."""
    number = attribute.range is not None and not attribute.dates and not attribute.parts
    if not number or not LEVELS[0] <= level <= LEVELS[1]:
        return None
    attribute = replace(
        attribute, categories=(), answers=(), grid=attribute.grid or grid_for(level)
    )
    grid = attribute.number_grid
    assert grid is not None
    with_missing = attribute.n_categories > grid.n_points
    if grid.n_points > MOST_POINTS or (attribute.missing is not None and not with_missing):
        return None
    level -= _AIM
    matrix, values = matrix_for_mean(grid.n_points, level, _AVERAGES[attribute.purpose])
    scaled = (grid.low + grid.high) / 2 + (grid.high - grid.low) / 2 * values
    texts = [grid.text(value) for value in scaled.tolist()]
    # Values that are written alike are one.
    matrix, shown = merged(matrix, [float(text) for text in texts])
    answers = tuple(grid.text(value) for value in shown.tolist())
    if with_missing:
        matrix = _with_missing(matrix, level)
        answers = (*answers, str(attribute.missing))
    return replace(attribute, answers=answers), MatrixChannel.from_probabilities(matrix)


def _with_missing(matrix: FloatArray, level: float) -> FloatArray:
    """Return the matrix with a further input and output for missing values.

    With l the least entry of each output, Λ = Σ l and q the probability of the further output for
    a number, missing values get (1 − q) l for the other outputs, and e^ε q = 1 − (1 − q) Λ.
    """
    least = matrix.min(axis=1)
    rare = (1 - least.sum()) / (math.exp(level) - least.sum())
    rows = np.column_stack([matrix, least]) * (1 - rare)
    last = np.full(rows.shape[1], rare)
    last[-1] = 1 - rows[:, -1].sum()
    return np.vstack([rows, last])
