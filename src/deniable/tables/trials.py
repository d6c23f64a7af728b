"""Tables with chosen rows, for the audit of a program."""

import io
import math
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from deniable.schema import Attribute, Schema
from deniable.schema.attribute import edge_text


def trial_table(schema: Schema, codes: Sequence[NDArray[Any]]) -> Any:
    """Return a pyarrow table of texts whose rows have these codes, like a true table.

    Intervals are numbers, missing values null, and an unchanged column 0.

    ``codes``: one array per attribute, shape (n,); of an attribute with a grid j + 1/2 is the
    number of :func:`middles` between the points j and j + 1.
    """
    columns: dict[str, Any] = {}
    for attribute, values in zip(schema.attributes, codes, strict=True):
        if attribute.parts:
            for part, stride in zip(attribute.parts, attribute.strides, strict=True):
                columns[part.name] = _column(part, values // stride % part.n_categories)
        else:
            columns[attribute.name] = _column(attribute, values)
    for name in schema.keep:
        if name not in columns:
            columns[name] = pa.array(["0"] * len(codes[0]))
    return pa.table(columns)


def middles(attribute: Attribute) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return a number near the middle of every two neighbouring points of a grid, as text, and the
    probability of rounding it to the upper one.

    >>> middles(Attribute("age", range=(0, 90), grid=3))
    (('22.5', '67.5'), (0.5, 0.5))
    """
    grid = attribute.number_grid
    assert grid is not None
    texts, upper = [], []
    for j in range(grid.n_points - 1):
        middle = (grid.points[j] + grid.points[j + 1]) / 2
        if attribute.dates:
            texts.append(edge_text(math.floor(middle), dates=True))
        else:
            texts.append(grid.text(middle))
        number = math.floor(middle) if attribute.dates else Fraction(texts[-1])
        upper.append(grid.offset(number) / grid.step - j)
    return tuple(texts), tuple(upper)


def rounding_of_points(attribute: Attribute) -> NDArray[np.float64] | None:
    """Return the probabilities of the categories that the texts of dates are rounded to, shape
    (a, a); None if all texts are points, which those of a grid with points within a day are not."""
    grid = attribute.number_grid
    if grid is None or not attribute.dates:
        return None
    dates = map(date.fromisoformat, attribute.categories[: grid.n_points])
    places = np.array([grid.offset((day - date(1970, 1, 1)).days) / grid.step for day in dates])
    if np.allclose(places, np.arange(len(places))):
        return None
    hats, n = np.eye(attribute.n_categories), len(places)
    hats[:n, :n] = np.maximum(0.0, 1 - np.abs(places - np.arange(n)[:, None]))
    return hats


def _column(attribute: Attribute, codes: NDArray[Any]) -> Any:
    if codes.dtype.kind == "f":
        return pa.array(middles(attribute)[0], pa.string()).take(pa.array(codes.astype(np.int64)))
    texts = pa.array([_true_text(attribute, c) for c in range(attribute.n_categories)], pa.string())
    return texts.take(pa.array(codes.astype(np.int64)))


def _true_text(attribute: Attribute, code: int) -> str | None:
    category = attribute.categories[code]
    if category == attribute.missing:
        return None
    if attribute.bins is None:
        return category
    low, high = attribute.bins[code], attribute.bins[code + 1]
    value = low if math.isfinite(low) else high - 1.0 if math.isfinite(high) else 0.0
    return edge_text(value, dates=attribute.dates)


def csv_bytes(table: Any) -> bytes:
    """Return a pyarrow table as CSV with a header; missing values are empty."""
    text = io.BytesIO()
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    pyarrow.csv.write_csv(table, text, options)
    return text.getvalue()
