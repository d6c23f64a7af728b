"""Columns to codes: every way in which a file or a dataframe can spell a category."""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.patterns import code_type
from deniable.schema import Attribute, category_text
from deniable.tables.arrays import booleans, from_numpy, from_values, to_numpy

_UNKNOWN = -1
_MISSING = -2
_OUTSIDE = -3
"""What a value is when it is no category; real codes are 0 … a−1."""

_DECIMAL_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


class ColumnEncoder:
    """Turns one column of a table, batch by batch, into an attribute's codes.

    Text is matched exactly; integers by their decimal text; booleans by ``true`` and ``false``.
    With bins, numbers and numeric text are put into [e₀, e₁), …, the last interval closed, and a
    text that is already an interval's label is that interval. Missing are nulls, NaN and the empty
    text, which can never be a category.

    Args:
        attribute: the public domain.
        table: the table's name, for messages.
        show_values: whether messages may contain the offending value.
        column_type: the type of the column, if it is already known.

    Raises:
        InputError: if a column of that type can never hold this attribute.
    """

    def __init__(
        self,
        attribute: Attribute,
        table: str,
        *,
        show_values: bool = False,
        column_type: Any = None,
    ) -> None:
        self.attribute = attribute
        self.table = table
        self.show_values = show_values
        self._code_type = code_type(attribute.n_categories)
        self._categories: dict[Any, tuple[Any, NDArray[np.int32]]] = {}
        self._edges = None if attribute.bins is None else np.array(attribute.bins)
        missing = attribute.missing
        self._missing_code = _MISSING if missing is None else attribute.categories.index(missing)
        self._missing_number = math.nan
        if missing is not None and re.match(_NUMBER, missing):
            self._missing_number = float(missing)
        if column_type is not None:
            self._check_type(column_type)

    def encode(self, column: Any, first_row: int = 1) -> NDArray[Any]:
        """Return the codes of a pyarrow array, shape (n,), in
        :func:`~deniable.laws.patterns.code_type`.

        Args:
            column: one batch of the column.
            first_row: number of its first row, counting data rows of the table from 1.

        Raises:
            InputError: naming table, row and column of the first value that is no category.
        """
        if not _is_plain(column.type):
            self._check_type(column.type)
        codes = self._codes(column)
        # Codes of categories are never negative, so the smallest one tells whether all is well.
        if len(codes) and codes.min() < 0:
            row = int(np.argmax(codes < 0))
            raise self._refusal(int(codes[row]), first_row + row, column[row])
        return codes.astype(self._code_type, copy=False)

    def _codes(self, column: Any) -> NDArray[Any]:
        kind = column.type
        if pa.types.is_dictionary(kind):
            return self._dictionary_codes(column)
        if self._edges is not None and _is_text(kind):
            return self._dictionary_codes(column.dictionary_encode())
        if self._edges is not None and not pa.types.is_null(kind):
            return self._interval_codes(column)
        return self._category_codes(column)

    def _dictionary_codes(self, column: Any) -> NDArray[Any]:
        values = column.dictionary
        if self._edges is not None and _is_text(values.type):
            value_codes = self._numeric_text_codes(values)
        else:
            value_codes = self._codes(values)
        if len(values) == 0:  # then every index is null
            return np.full(len(column), self._missing_code, dtype=np.int32)
        # A dictionary may list values that no row has: only the rows decide.
        codes: NDArray[Any] = value_codes[to_numpy(column.indices, null=0)]
        if column.indices.null_count:
            absent = to_numpy(column.indices.is_null())
            codes = np.where(absent, np.int32(self._missing_code), codes)
        return codes

    def _category_codes(self, column: Any) -> NDArray[Any]:
        kind = column.type
        if pa.types.is_null(kind):
            return np.full(len(column), self._missing_code, dtype=np.int32)
        if pa.types.is_string_view(kind):
            column, kind = column.cast(pa.large_string()), pa.large_string()
        categories, category_codes = self._categories_as(kind)
        places = pc.index_in(column, value_set=categories)
        unknown = places.null_count > 0
        if unknown:
            category_codes = np.append(category_codes, np.int32(_UNKNOWN))
        codes: NDArray[np.int32] = to_numpy(places, null=len(categories))
        if unknown or len(category_codes) != self.attribute.n_categories:
            codes = category_codes[codes]
        if unknown:
            if _is_text(kind):
                absent = to_numpy(pc.binary_length(column), null=0) == 0
            else:
                absent = to_numpy(column.is_null())
            codes = np.where(absent, np.int32(self._missing_code), codes)
        return codes

    def _categories_as(self, kind: Any) -> tuple[Any, NDArray[np.int32]]:
        """Return the categories that a column of this type can hold, and their codes."""
        if kind not in self._categories:
            names = self.attribute.categories
            codes = range(len(names))
            if pa.types.is_boolean(kind):
                codes = [c for c in codes if names[c] in ("false", "true")]  # type: ignore[assignment]
                values: list[Any] = [names[c] == "true" for c in codes]
            elif pa.types.is_integer(kind):
                codes = [c for c in codes if integer_fits(names[c], kind)]  # type: ignore[assignment]
                values = [int(names[c]) for c in codes]
            else:
                values = list(names)
            self._categories[kind] = (
                from_values(values, kind),
                np.array(codes, dtype=np.int32),
            )
        return self._categories[kind]

    def _interval_codes(self, column: Any) -> NDArray[np.int32]:
        assert self._edges is not None
        # Widening to 64-bit floats may round an integer beyond 2⁵³, where edges are rounded too.
        return self._place(to_numpy(column.cast(pa.float64(), safe=False), null=math.nan))

    def _place(self, numbers: NDArray[np.float64]) -> NDArray[np.int32]:
        edges = self._edges
        assert edges is not None
        codes = (np.searchsorted(edges, numbers, side="right") - 1).astype(np.int32)
        last = len(edges) - 2
        codes[numbers == edges[-1]] = last
        # A NaN sorts behind every edge and is set to missing below.
        codes[(codes > last) | (codes < 0)] = _OUTSIDE
        if not math.isnan(self._missing_number):
            codes[numbers == self._missing_number] = self._missing_code
        codes[np.isnan(numbers)] = self._missing_code
        return codes

    def _numeric_text_codes(self, values: Any) -> NDArray[Any]:
        """Return the codes of distinct texts: interval labels, numbers, or neither."""
        codes = self._category_codes(values)
        open_places = np.flatnonzero(codes == _UNKNOWN)
        if not len(open_places):
            return codes
        texts = values.cast(pa.large_string()).take(from_numpy(open_places))
        numeric = to_numpy(pc.match_substring_regex(texts, _NUMBER))
        places = open_places[numeric]
        numbers = to_numpy(texts.filter(booleans(numeric)).cast(pa.float64()))
        codes = codes.astype(np.int32, copy=True)
        codes[places] = self._place(numbers)
        return codes

    def _check_type(self, kind: Any) -> None:
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        where = f"{self.table}, column '{self.attribute.name}'"
        if _is_plain(kind):
            return
        if pa.types.is_boolean(kind) and self._edges is None:
            return
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            if self._edges is not None:
                return
            raise InputError(
                f"{where}: the column holds fractional numbers and the attribute has no bins; "
                "declare bins in the schema, or convert the column to whole numbers "
                '(pandas: astype("Int64"))'
            )
        raise InputError(
            f"{where}: a column of type {kind} cannot be matched with "
            f"{'bins' if self._edges is not None else 'categories'}; convert it to text"
        )

    def _refusal(self, reason: int, row: int, value: Any) -> InputError:
        where = f"{self.table}, row {row}, column '{self.attribute.name}'"
        if reason == _MISSING:
            return InputError(
                f"{where}: the value is missing; fill it in, or declare "
                'missing = "category:NA" for this attribute in the schema'
            )
        shown = category_text(value.as_py()) if self.show_values else ""
        what = f"the value {shown!r}" if self.show_values else "the value"
        if reason == _OUTSIDE:
            return InputError(
                f"{where}: {what} lies outside the declared bins; widen the outer edges in the "
                "schema, or correct the table"
            )
        if self._edges is not None:
            return InputError(
                f"{where}: {what} is neither a number nor the label of an interval; correct the "
                "table"
            )
        return InputError(
            f"{where}: {what} is not one of the declared categories; add it to the categories in "
            "the schema, or correct the table"
        )


class AttributeEncoder:
    """Turns the columns that an attribute stands in, batch by batch, into its codes.

    Args:
        attribute: one column, or several merged into one.
        table: the table's name, for messages.
        show_values: whether messages may contain the offending value.
        column_types: the types of the columns, by name.

    Raises:
        InputError: if a column of its type can never hold what is declared for it.
    """

    def __init__(
        self,
        attribute: Attribute,
        table: str,
        *,
        show_values: bool = False,
        column_types: Mapping[str, Any],
    ) -> None:
        self._code_type = code_type(attribute.n_categories)
        self._columns = [
            ColumnEncoder(c, table, show_values=show_values, column_type=column_types[c.name])
            for c in attribute.columns
        ]

    def encode(self, batch: Any, first_row: int = 1) -> NDArray[Any]:
        """Return the codes of a record batch, shape (n,), the last column fastest.

        Args:
            batch: some rows of the table.
            first_row: number of its first row, counting data rows of the table from 1.

        Raises:
            InputError: naming table, row and column of the first value that is no category.
        """
        first, *others = self._columns
        codes = first.encode(batch.column(first.attribute.name), first_row)
        for encoder in others:
            codes = codes.astype(self._code_type, copy=False) * encoder.attribute.n_categories
            codes += encoder.encode(batch.column(encoder.attribute.name), first_row)
        return codes


def integer_fits(text: str, kind: Any) -> bool:
    """Return whether a category is the decimal text of an integer of a pyarrow integer type."""
    if not _DECIMAL_INTEGER.fullmatch(text):
        return False
    bits = int(kind.bit_width)
    if pa.types.is_signed_integer(kind):
        return -(1 << (bits - 1)) <= int(text) < 1 << (bits - 1)
    return 0 <= int(text) < 1 << bits


def _is_text(kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_plain(kind: Any) -> bool:
    return bool(_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind))
