"""Columns of a formula for rows that a model was not fitted to."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.estimate.query import value_among
from deniable.models.cells import Axis, Cells
from deniable.models.formula import Formula, columns_at, spec_of
from deniable.schema import Attribute
from deniable.tables import open_table
from deniable.tables.rows import groups_of, numbers_of


def read_covariates(
    frame: Any, axes: Sequence[Axis], attributes: Sequence[Attribute]
) -> list[NDArray[Any]]:
    """Return the levels or numbers of a table's rows by axis, shape (n,) each.

    ``frame``: a dataframe or file with the true values. ``attributes``: of the first axes.
    """
    kept = axes[len(attributes) :]
    found: list[list[NDArray[Any]]] = [[] for _ in axes]
    with open_table(
        frame, attributes, [axis.name for axis in kept], other_columns="drop"
    ) as reader:
        for batch in reader:
            where = reader.table, batch.first_row
            for axis, pieces, attribute, codes in zip(
                axes, found, attributes, batch.codes, strict=False
            ):
                own = codes.astype(np.int64)
                pieces.append(_levels(axis, attribute.categories, own, *where))
            for axis, pieces in zip(kept, found[len(attributes) :], strict=True):
                column = batch.kept[axis.name]
                if axis.numbers is None:
                    codes, texts = groups_of(column, reader.table, axis.name)
                    pieces.append(_levels(axis, texts, codes, *where))
                else:
                    pieces.append(numbers_of(column, axis.name, *where))
    return [np.concatenate([np.zeros(0, dtype=np.int64), *pieces]) for pieces in found]


def _levels(
    axis: Axis, texts: Sequence[str], codes: NDArray[np.int64], table: str, first_row: int
) -> NDArray[np.int64]:
    """Return the levels of some categories, given as codes of texts, shape (n,)."""
    place = dict(zip(axis.categories, axis.level_of, strict=True))
    of_text = [place.get(value_among(text, axis.categories) or text, -1) for text in texts]
    levels = np.array(of_text, dtype=np.int64)[codes]
    if (levels < 0).any():
        row = first_row + int(np.argmin(levels))
        raise InputError(
            f"{table}, data row {row}, column '{axis.name}': the model was fitted to no row with "
            "this value; leave the row out"
        )
    return levels


def columns_for(
    formula: Formula, levels: Cells, axes: Sequence[int], columns: Sequence[NDArray[Any]]
) -> NDArray[np.float64]:
    """Return a formula's columns for rows, shape (n, columns).

    ``levels``: table that the model was fitted to. ``columns``: levels or numbers of some of its
    axes, shape (n,) each.
    """
    spec, blocks = spec_of(formula, levels), []
    place, n = {levels.axes[i].name: j for j, i in enumerate(axes)}, len(columns[0])
    for term in formula.right.terms:
        names = {name for factor in term for name in formula.right.named(factor)}
        own = [place[name] for name in sorted(names, key=place.__getitem__)]
        of_term = [levels.axes[axes[j]] for j in own]
        _, values = columns_at(formula, term, spec, of_term, [columns[j] for j in own])
        blocks.append(np.broadcast_to(values, (n, values.shape[1])))
    return np.hstack(blocks)
