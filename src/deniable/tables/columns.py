"""What a released table consists of: its columns, in order, and the types they keep."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.schema import Attribute
from deniable.tables.arrays import from_numpy, from_values, numpy_type
from deniable.tables.encode import integer_fits, is_fractional, truth_values


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
        """The column of the input whose place it takes."""
        return self.source or self.name

    def codes(self, arrays: Sequence[NDArray[Any]] | Mapping[int, NDArray[Any]]) -> NDArray[Any]:
        """Return the codes that a randomized column shows, shape (n,); of an empty cell the number
        of the labels."""
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
    """The column of a release that holds the number of each row's form."""

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
    """Lay out a release: the table's own order, without the columns that are dropped.

    A randomized column keeps its type where every label can be written in it: whole numbers stay
    whole numbers, true and false stay booleans, text stays text, categorical columns stay
    categorical. Otherwise it becomes text. In a column of numbers or booleans the category for
    missing values is a null again, unless it is a number itself.

    A merged attribute whose released values are its categories comes out as the columns that it was
    read from. Otherwise one column of text with its name stands in the place of the first of them.

    ``numeric``: columns that come out as 64-bit floating-point numbers.
    """
    numbers = set(numeric)
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
            # An answer that stands for several columns is in none of their types.
            missing = None if forms is not None else missing
            own = pa.string() if column.source else _released_type(kind, column.labels, missing)
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
    """Lay out released rows whose table is not known: every column is text, in the schema's
    order."""
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
    """Return, by the input's columns, those of the release, still without a type, and what their
    missing values stand for."""
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


def label_values(labels: Sequence[str], kind: Any) -> list[str | int | bool | None]:
    """Return what each code is written as in a column of a pyarrow type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return [int(label) if integer_fits(label, kind) else None for label in labels]
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
        # Views have no kernels of their own yet; they are made from the text at the end.
        self._values = from_values(
            values, pa.string() if pa.types.is_string_view(value_type) else value_type
        )
        self.index_type = (
            column.kind.index_type if self._categorical else _signed_index(len(values) + 1)
        )

        self.index = numpy_type(self.index_type)

    @property
    def cell_bytes(self) -> float:
        """How many bytes a cell of what :meth:`dictionary` returns takes."""
        kind = self.stored_type
        return float((kind.index_type if pa.types.is_dictionary(kind) else kind).bit_width / 8)

    @property
    def stored_type(self) -> Any:
        """The type of what :meth:`dictionary` returns."""
        if not self._is_text and not self._categorical:
            return self.kind
        ordered = self._categorical and self.kind.ordered
        return pa.dictionary(self.index_type, self._values.type, ordered=ordered)

    def dictionary(self, codes: NDArray[Any]) -> Any:
        """Return text as a dictionary array, which Parquet stores without looking at any row."""
        if not self._is_text and not self._categorical:
            return self._values.take(self._places(codes))
        indices = self._places(codes.astype(self.index, copy=False))
        ordered = self._categorical and self.kind.ordered
        return pa.DictionaryArray.from_arrays(indices, self._values, ordered=ordered)

    def _places(self, codes: NDArray[Any]) -> Any:
        # Of an empty cell a null.
        return from_numpy(codes, self._empty)

    def decode(self, codes: NDArray[Any]) -> Any:
        """Return a column of exactly the declared type."""
        if self._categorical:
            return self.dictionary(codes)
        column = self._values.take(self._places(codes))
        return column if column.type == self.kind else column.cast(self.kind)


def _signed_index(count: int) -> Any:
    return pa.from_numpy_dtype(np.min_scalar_type(-count))
