"""Columns of a released table: order and types."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import floor, log10
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.schema import Attribute
from deniable.schema.attribute import edge_text
from deniable.tables.arrays import Value, from_numpy, from_values, numpy_type
from deniable.tables.encode import NUMBER, integer_fits, is_fractional, truth_values


@dataclass(frozen=True)
class Column:
    """One column of a released table."""

    name: str
    kind: Any
    position: int | None = None
    labels: tuple[str, ...] = ()
    stride: int | None = None
    source: str = ""
    empty: int | None = None
    added: bool = False

    @property
    def replaces(self) -> str:
        """The input column in whose place it is released."""
        return self.source or self.name

    @property
    def of_values(self) -> "Column":
        """The column of values, not of codes."""
        categorical = pa.types.is_dictionary(self.kind)
        return Column(self.name, pa.string() if categorical else self.kind)

    def codes(self, arrays: Sequence[NDArray[Any]] | Mapping[int, NDArray[Any]]) -> NDArray[Any]:
        """Return the codes shown in a randomized column, shape (n,); an empty cell has the number
        of labels."""
        assert self.position is not None
        codes = arrays[self.position]
        if self.stride is None:
            return codes
        parts = codes // self.stride % len(self.labels)
        return (
            parts if self.empty is None else np.where(codes == self.empty, len(self.labels), parts)
        )


@dataclass(frozen=True)
class Forms:
    """The column of a release with the number of each row's form."""

    column: str
    number: int


def released_columns(
    columns: Iterable[tuple[str, Any]],
    attributes: Sequence[Attribute],
    keep: Iterable[str] = (),
    output_labels: Sequence[Sequence[str]] | None = None,
    numeric: Iterable[str] = (),
    forms: Forms | None = None,
) -> tuple[Column, ...]:
    """Lay out a release: the table's column order, without dropped columns.

    A randomized column retains its type where the type can hold every label: whole numbers,
    booleans, text and categorical columns; the points of a number become 64-bit floating-point
    numbers where they are not whole. Otherwise it becomes text. In a column of numbers or
    booleans the category for missing values is null again, unless it is a number itself.

    A merged attribute whose released values are its categories becomes its input columns again.
    Otherwise one text column of its name takes the place of the first of them.

    ``numeric``: columns released as 64-bit floating-point numbers.
    """
    numbers = set(numeric)
    with_range = {c.name for a in attributes for c in a.columns if c.range and not c.dates}
    with_dates = {c.name for a in attributes for c in a.columns if c.range and c.dates}
    kept = set(keep)
    randomized = _randomized_columns(attributes, kept, output_labels, empty=forms is not None)
    layout = []
    for name, kind in columns:
        if name in numbers:
            layout.append(Column(name, pa.float64()))
        elif name in kept:
            layout.append(Column(name, kind))
        elif name in randomized:
            column, missing = randomized[name]
            # Empty cells are null, so no label stands for a missing value.
            missing = None if forms is not None else missing
            own = pa.string() if column.source else _released_type(kind, column.labels, missing)
            numbers_only = all(re.match(NUMBER, t) for t in column.labels if t != missing)
            is_number = pa.types.is_integer(kind) or is_fractional(kind)
            if name in with_range and own == pa.string() and is_number and numbers_only:
                own = pa.float64()
            elif name in with_dates and pa.types.is_date(kind):
                own = kind
            layout.append(replace(column, kind=own))
    if forms is not None:
        numbers_of_forms = tuple(map(str, range(1, forms.number + 1)))
        layout.append(
            Column(forms.column, pa.int32(), len(attributes), numbers_of_forms, added=True)
        )
    return tuple(layout)


def text_columns(
    attributes: Sequence[Attribute],
    output_labels: Sequence[Sequence[str]],
    keep: Sequence[str] = (),
    forms: Forms | None = None,
) -> tuple[Column, ...]:
    """Lay out released rows of an unknown table: all columns text, in the schema's order."""
    names = [column.name for attribute in attributes for column in attribute.columns]
    text = [(name, pa.string()) for name in dict.fromkeys([*names, *keep])]
    return released_columns(text, attributes, keep, output_labels, forms=forms)


def _randomized_columns(
    attributes: Sequence[Attribute],
    kept: Collection[str],
    output_labels: Sequence[Sequence[str]] | None,
    *,
    empty: bool,
) -> dict[str, tuple[Column, str | None]]:
    """Return the release's columns, without types, by input column, with the labels of missing
    values."""
    columns: dict[str, tuple[Column, str | None]] = {}
    for i, attribute in enumerate(attributes):
        if attribute.name in kept:
            continue
        labels = attribute.categories if output_labels is None else tuple(output_labels[i])
        none = len(labels) if empty else None
        if not attribute.parts:
            column = Column(attribute.name, None, i, labels, empty=none)
            columns[attribute.name] = column, attribute.missing
        elif labels != attribute.categories:
            first = attribute.parts[0].name
            columns[first] = Column(attribute.name, None, i, labels, source=first), None
        else:
            for part, stride in zip(attribute.parts, attribute.strides, strict=True):
                column = Column(part.name, None, i, part.categories, stride, empty=none)
                columns[part.name] = column, part.missing
    return columns


def _released_type(kind: Any, labels: Sequence[str], missing: str | None) -> Any:
    if pa.types.is_dictionary(kind):
        value_type = _released_type(kind.value_type, labels, missing)
        index_type = kind.index_type
        if not integer_fits(str(len(labels)), index_type):
            index_type = pa.int32()
        return pa.dictionary(index_type, value_type, ordered=kind.ordered)
    present = [label for label in labels if label != missing]
    if pa.types.is_integer(kind) and all(integer_fits(label, kind) for label in present):
        return kind
    if is_fractional(kind) and all(integer_fits(label, pa.int64()) for label in present):
        return pa.int64()
    if pa.types.is_boolean(kind) and None not in truth_values(present):
        return kind
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return kind
    return pa.string()


def _date(label: str) -> date | None:
    try:
        return date.fromisoformat(label)
    except ValueError:
        return None


def number_column(values: NDArray[np.float64], attribute: Attribute, kind: Any) -> Any:
    """Return numbers, or days, as a column of a pyarrow type: whole in one of whole numbers, else
    with two digits of a step of the grid."""
    grid, missing = attribute.number_grid, np.isnan(values)
    assert grid is not None
    whole = attribute.dates or pa.types.is_integer(kind)
    decimals = 0 if whole else max(0, 1 - floor(log10(grid.points[1] - grid.points[0])))
    values = np.where(missing, grid.low, values).round(decimals)
    if pa.types.is_integer(kind) or pa.types.is_date(kind):
        numbers = pa.array(values.astype(np.int64), mask=missing)
        return numbers.cast(pa.int32()).cast(kind) if attribute.dates else numbers.cast(kind)
    if pa.types.is_floating(kind):
        return pa.array(values, mask=missing).cast(kind)
    texts = [
        attribute.missing
        if gone
        else edge_text(value, dates=True)
        if attribute.dates
        else f"{value:.{decimals}f}"
        for value, gone in zip(values.tolist(), missing.tolist(), strict=True)
    ]
    return pa.array(texts, pa.string())


def label_values(labels: Sequence[str], kind: Any) -> list[Value]:
    """Return the value of each code in a column of a pyarrow type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return [int(label) if integer_fits(label, kind) else None for label in labels]
    if pa.types.is_floating(kind):
        return [float(label) if re.match(NUMBER, label) else None for label in labels]
    if pa.types.is_date(kind):
        return list(map(_date, labels))
    if pa.types.is_boolean(kind):
        return list(truth_values(labels))
    return list(labels)


class Decoder:
    """Turns released codes back into a pyarrow column of a declared type."""

    def __init__(self, column: Column) -> None:
        self.kind = column.kind
        values = label_values(column.labels, column.kind)
        self._empty = None if column.empty is None else len(values)
        self._is_text = isinstance(values[0], str)
        self._categorical = pa.types.is_dictionary(column.kind)
        value_type = column.kind.value_type if self._categorical else column.kind
        # Views have no kernels yet; they are cast from text at the end.
        self._values = from_values(
            values, pa.string() if pa.types.is_string_view(value_type) else value_type
        )
        signed = pa.from_numpy_dtype(np.min_scalar_type(-len(values) - 1))
        self.index_type = column.kind.index_type if self._categorical else signed

        self.index = numpy_type(self.index_type)

    @property
    def cell_bytes(self) -> float:
        """Bytes per cell of the result of :meth:`dictionary`."""
        kind = self.stored_type
        return float((kind.index_type if pa.types.is_dictionary(kind) else kind).bit_width / 8)

    @property
    def stored_type(self) -> Any:
        """Type of the result of :meth:`dictionary`."""
        if not self._is_text and not self._categorical:
            return self.kind
        ordered = self._categorical and self.kind.ordered
        return pa.dictionary(self.index_type, self._values.type, ordered=ordered)

    def dictionary(self, codes: NDArray[Any]) -> Any:
        """Return text as a dictionary array, which Parquet stores without reading rows."""
        if not self._is_text and not self._categorical:
            return self._values.take(self._places(codes))
        indices = self._places(codes.astype(self.index, copy=False))
        ordered = self._categorical and self.kind.ordered
        return pa.DictionaryArray.from_arrays(indices, self._values, ordered=ordered)

    def _places(self, codes: NDArray[Any]) -> Any:
        # Empty cells are null.
        return from_numpy(codes, self._empty)

    def decode(self, codes: NDArray[Any]) -> Any:
        """Return a column of the declared type."""
        if self._categorical:
            return self.dictionary(codes)
        column = self._values.take(self._places(codes))
        return column if column.type == self.kind else column.cast(self.kind)
