"""Models of respondents with a value, fitted to all cells of the data.

Such a model has fewer categories than were released. Its likelihood is that of all cells, in which
every cell with a missing category has a parameter of its own; a linear model multiplies every
function by the indicator of the answers. Kept columns of a linear model become one axis, of the
combinations of values that occur, so that memory does not grow with their product.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.estimate.counting import KeptRows
from deniable.mechanism.strata import Strata
from deniable.models.cells import Axis, Cells, Columns
from deniable.models.formula import Term

UNANSWERED_PRECISION = 0.01
"""Of the prior on the logarithm of an unanswered cell: it weighs a tenth of a row or less."""

_TOGETHER = "\0"


def inside_of(cells: Cells, everybody: Cells) -> NDArray[np.int64]:
    """Return the places of a model's cells among those of the data."""
    index = np.ix_(*_places(cells.axes, everybody.axes))
    return np.arange(everybody.n_cells).reshape(everybody.sizes)[index].ravel()


def with_unanswered(
    columns: Columns, cells: Cells, everybody: Cells
) -> tuple[Columns, NDArray[np.int64]]:
    """Return a design on all cells, with a parameter for each that the model is not about, and the
    places of the model's cells among them.

    >>> few, all_ = (Cells((Axis("a", names),), 1) for names in (("x", "y"), ("x", "?", "y")))
    >>> design = Columns(np.array([[0.0], [1.0]]), ("a",), (1,), ("a",))
    >>> made, inside = with_unanswered(design, few, all_)
    >>> made.values.tolist(), inside.tolist()
    ([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 2])
    """
    inside = inside_of(cells, everybody)
    outside = np.setdiff1d(np.arange(everybody.n_cells), inside)
    if not outside.size:
        return columns, inside
    m = columns.values.shape[1]
    values = np.zeros((everybody.n_cells, m + outside.size))
    values[inside, :m] = columns.values
    values[outside, m + np.arange(outside.size)] = 1.0
    more = ("share of missing answers",) * outside.size
    return Columns(
        values,
        (*columns.names, *more),
        (*columns.order, *(1 for _ in more)),
        (*columns.terms, *("" for _ in more)),
    ), inside


def on_rows(
    rows: KeptRows, strata: Strata, terms: Sequence[Term], cells: Cells
) -> tuple[KeptRows, list[Term], Cells]:
    """Return rows, terms and cells as least squares takes them: on everybody's categories, and with
    the kept columns as one axis.

    ``rows``: released rows, all kept columns among the cells' axes as texts.
    """
    n, kept = cells.n_attributes, cells.axes[cells.n_attributes :]
    own = []
    place = np.zeros(rows.n_rows, dtype=np.int64)
    for axis in kept:
        codes, labels = rows.texts[axis.name]
        index = {text: i for i, text in enumerate(axis.categories)}
        own.append(np.array([index.get(label, 0) for label in labels])[codes])
        _, place = np.unique(place * len(axis.categories) + own[-1], return_inverse=True)
    _, first = np.unique(place, return_index=True)
    labels = [str(i) for i in range(len(first))]
    variables = strata.schema.variables(axis.name for axis in cells.axes[:n])
    whole = tuple(
        Axis(v.attribute.name, v.attribute.categories, numbers=axis.numbers)
        for v, axis in zip(variables, cells.axes[:n], strict=True)
    )
    everybody = Cells((*whole, *([Axis(_TOGETHER, tuple(labels))] if kept else [])), n)

    def spread(axes: Sequence[int], values: NDArray[np.float64]) -> NDArray[np.float64]:
        sizes = [everybody.sizes[axis] for axis in axes]
        made = np.zeros((*sizes, *values.shape[len(axes) :]))
        made[np.ix_(*_places([cells.axes[i] for i in axes], [whole[i] for i in axes]))] = values
        return made

    limited = tuple(i for i in range(n) if cells.sizes[i] < everybody.sizes[i])
    answered = spread(limited, np.ones((*(cells.sizes[i] for i in limited), 1)))
    changed = []
    for term in terms:
        inner = tuple(axis for axis in term.axes if axis < n)
        outer = [own[axis - n][first] for axis in term.axes if axis >= n]
        values: Any = term.values
        if outer:
            values = values[(..., *outer, slice(None))]
        moved = Term(term.name, term.names, inner + (n,) * bool(outer), spread(inner, values))
        if limited:
            moved = moved.times(Term("", ("",), limited, answered))
        changed.append(replace(moved, name=term.name, names=term.names))
    texts = rows.texts | {_TOGETHER: (place, labels)}
    return replace(rows, texts=texts), changed, everybody


def _places(few: Sequence[Axis], many: Sequence[Axis]) -> list[list[int]]:
    """Return, by axis, the places of its categories among more of them."""
    return [
        [place[category] for category in axis.categories]
        for axis, whole in zip(few, many, strict=True)
        for place in [{category: i for i, category in enumerate(whole.categories)}]
    ]
