"""Columns to codes, for all spellings of categories in files and dataframes."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.laws.patterns import code_type
from deniable.randomness import BitSource, happens
from deniable.schema import BLANKS, Attribute, category_text
from deniable.schema.number_grid import NumberGrid
from deniable.tables.arrays import common_form, from_numpy, from_values, to_numpy
from deniable.tables.date_texts import ISO, days_written

_UNKNOWN = -1
_MISSING = -2
_OUTSIDE = -3
_FRACTION = -4
REASONS = (_UNKNOWN, _MISSING, _OUTSIDE, _FRACTION)
"""Negative codes of values that are no category; the codes of categories are 0 … a−1."""

_DECIMAL_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_FRACTIONAL = re.compile(r"-?[0-9]+\.[0-9]+(e-[0-9]+)?")
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""Pattern of a number as text, with a decimal point."""


class ColumnEncoder:
    """Converts one column of a table, batch by batch, to an attribute's codes.

    Text is compared exactly, without blanks at its ends; integers, also in floating-point or
    decimal columns or in the form 3.0, by their decimal text; booleans by ``true`` and ``false`` in
    any case (:func:`truth_values`); dates as ``2025-12-31``. With bins, numbers and numeric text go
    to [e₀, e₁), …, the last interval closed, and an interval's label to that interval. Numbers of a
    range are rounded at random to a neighbouring point of its grid by bits from ``rounding``;
    without it the points are categories. Nulls, NaN and the empty text are missing, and the empty
    text is never a category.
    """

    def __init__(
        self,
        attribute: Attribute,
        table: str,
        *,
        show_values: bool = False,
        column_type: Any = None,
        decimal: str = ".",
        dates: str | None = None,
        rounding: BitSource | None = None,
    ) -> None:
        self.attribute = attribute
        self.table = table
        self.show_values = show_values
        self._rounding = rounding
        self._grid = None if rounding is None else attribute.number_grid
        self._numeric = attribute.bins is not None or self._grid is not None
        self._decimal = decimal
        self._dates = dates
        self._code_type = code_type(attribute.n_categories)
        self._categories: dict[Any, tuple[Any, NDArray[np.int32]]] = {}
        self._edges = None if attribute.bins is None else np.array(attribute.bins)
        self._last = attribute.n_categories - 1
        # Codes of a number, while they are looked up: units from the lowest point.
        self._units = 1 if self._grid is None else self._grid.step
        missing = attribute.missing
        self._missing_code = _MISSING if missing is None else attribute.categories.index(missing)
        self._found_missing = self._missing_code * (1 if missing is None else self._units)
        # Texts for a missing value besides its category.
        self._missing_texts = list(attribute.missing_codes)
        codes = [*([] if missing is None else [missing]), *self._missing_texts]
        if attribute.dates:
            days = self._days(from_values(codes, pa.string()))
            self._missing_numbers = [day for day in days.tolist() if not math.isnan(day)]
        else:
            self._missing_numbers = [float(code) for code in codes if re.match(NUMBER, code)]
        if column_type is not None:
            self._check_type(column_type)

    @property
    def declared(self) -> tuple[Any, ...]:
        """The declarations on which codes depend, besides the column's type."""
        a = self.attribute
        return a.categories, a.bins, a.missing, a.missing_codes, a.dates, a.range, a.outside

    def encode(self, column: Any, first_row: int = 1) -> NDArray[Any]:
        """Return the codes of a pyarrow array, shape (n,), in
        :func:`~deniable.laws.patterns.code_type`.

        ``first_row``: number of its first row among the table's data rows, from 1.
        """
        codes = self.look(column)
        # Codes of categories are never negative: the minimum decides.
        if len(codes) and codes.min() < 0:
            row = int(np.argmax(codes < 0))
            raise self._refusal(int(codes[row]), first_row + row, column[row])
        return self.rounded(codes)

    def rounded(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the result of :meth:`look` in :func:`~deniable.laws.patterns.code_type`, shape
        (n,): a number becomes one of the two points next to it."""
        if self._grid is not None:
            points = codes // self._units  # faster than divmod
            above = codes - points * self._units
            if self.attribute.outside == "clip":
                beyond = points - self._last
                points[beyond == 1], points[beyond == 2] = 0, self._grid.n_points - 1
            assert self._rounding is not None
            codes = points + happens(above, self._units, self._rounding)
        return codes.astype(self._code_type, copy=False)

    def look(self, column: Any) -> NDArray[Any]:
        """Return the codes of a pyarrow array, shape (n,), negative (:data:`REASONS`) where a value
        is no category; of a number the units of its grid from the lowest point."""
        if self.attribute.dates or not _is_plain(column.type):
            self._check_type(column.type)
        return self._codes(column)

    def _codes(self, column: Any) -> NDArray[Any]:
        column = common_form(column)
        kind = column.type
        if pa.types.is_dictionary(kind):
            return self._dictionary_codes(column)
        if pa.types.is_null(kind):
            return np.full(len(column), self._found_missing)
        if self._numeric:
            if is_text(kind):
                written = self._plain_numbers(column)
                if written is None:
                    return self._dictionary_codes(column.dictionary_encode())
                return self._place(written)
            return self._place(days_of(column) if self.attribute.dates else numbers_in(column))
        if pa.types.is_decimal(kind):
            return self._decimal_codes(column)
        if is_fractional(kind):
            return self._number_codes(numbers_in(column))
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            column = _dates(column).cast(pa.string())
        return self._category_codes(column)

    def _plain_numbers(self, texts: Any) -> NDArray[np.float64] | None:
        """Return the numbers in texts, shape (n,), NaN for a missing value; None unless all others
        are numbers, of decimal digits without blanks."""
        if self.attribute.dates or self._decimal != ".":
            return None
        absent = pc.is_in(texts, value_set=self._absent_texts(texts.type))
        if pc.any(absent).as_py():
            texts = pc.if_else(absent, pa.nulls(len(texts), texts.type), texts)
        try:
            numbers = numbers_in(texts.cast(pa.float64()))
        except pa.ArrowInvalid:
            return None
        # The cast also reads "nan" and "inf".
        finite = np.count_nonzero(np.isfinite(numbers))
        return numbers if finite == len(numbers) - texts.null_count else None

    def _absent_texts(self, kind: Any) -> Any:
        missing = self.attribute.missing
        return from_values(["", *([missing] if missing else []), *self._missing_texts], kind)

    def _dictionary_codes(self, column: Any) -> NDArray[Any]:
        values = common_form(column.dictionary)
        if self._numeric and is_text(values.type):
            value_codes = self._numeric_text_codes(values)
        else:
            value_codes = self._codes(values)
        if len(values) == 0:  # then every index is null
            return np.full(len(column), self._found_missing)
        # A dictionary may list values without rows: only the rows decide.
        codes: NDArray[Any] = value_codes.take(to_numpy(column.indices, null=0))
        if column.indices.null_count:
            absent = to_numpy(column.indices.is_null())
            codes = np.where(absent, codes.dtype.type(self._found_missing), codes)
        return codes

    def _category_codes(self, column: Any) -> NDArray[Any]:
        kind = column.type
        categories, category_codes = self._categories_as(kind)
        places = pc.index_in(column, value_set=categories)
        unknown = places.null_count > 0
        if unknown:
            category_codes = np.append(category_codes, np.int32(_UNKNOWN))
        codes: NDArray[np.int32] = to_numpy(places, null=len(categories))
        as_they_are = len(categories) == self.attribute.n_categories and not self._missing_texts
        if unknown or not as_they_are:
            codes = category_codes[codes]
        if unknown:
            if is_text(kind):
                absent = to_numpy(pc.binary_length(column), null=0) == 0
            else:
                absent = to_numpy(column.is_null())
            codes = np.where(absent, np.int32(self._missing_code), codes)
            if is_text(kind) and len(places := np.flatnonzero(codes == _UNKNOWN)):
                codes[places] = self._spelled_otherwise(column.take(from_numpy(places)))
        return codes

    def _spelled_otherwise(self, texts: Any) -> NDArray[Any]:
        """Return the codes of texts with blanks around them, and of whole numbers such as 3.0,
        which programs write where some are missing."""
        texts = pc.utf8_trim(texts, BLANKS)
        if any(map(_DECIMAL_INTEGER.fullmatch, self._names())):
            written = rf"^(-?[0-9]+){re.escape(self._decimal)}0+$"
            texts = pc.replace_substring_regex(texts, written, r"\1")
        categories, category_codes = self._categories_as(texts.type)
        matches = to_numpy(pc.index_in(texts, value_set=categories), null=-1)
        codes: NDArray[Any] = np.append(category_codes, np.int32(_UNKNOWN))[matches]
        codes[to_numpy(pc.binary_length(texts)) == 0] = self._missing_code
        return codes

    def _categories_as(self, kind: Any) -> tuple[Any, NDArray[np.int32]]:
        """Return the categories that this type can hold, and their codes."""
        if kind not in self._categories:
            names = (*self.attribute.categories, *self._missing_texts)
            codes: Sequence[int] = range(len(names))
            if pa.types.is_boolean(kind):
                truth = truth_values(names)
                codes = [c for c in codes if truth[c] is not None]
                values: list[Any] = [truth[c] for c in codes]
            elif pa.types.is_integer(kind):
                codes = [c for c in codes if integer_fits(names[c], kind)]
                values = [int(names[c]) for c in codes]
            else:
                values = list(names)
            n = self.attribute.n_categories
            self._categories[kind] = (
                from_values(values, kind),
                np.array([c if c < n else self._missing_code for c in codes], dtype=np.int32),
            )
        return self._categories[kind]

    def _number_codes(self, numbers: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the codes of numbers: categories that are the texts of numbers."""
        whole = numbers == np.floor(numbers)
        small = whole & (np.abs(numbers) < 2.0**53)
        texts = from_numpy(np.where(small, numbers, 0.0).astype(np.int64))
        codes = np.where(small, self._category_codes(texts), np.int32(_FRACTION))
        codes[np.isnan(numbers)] = self._missing_code
        values, of_values = self._fractions
        if len(values):
            places = np.minimum(np.searchsorted(values, numbers), len(values) - 1)
            codes = np.where(values[places] == numbers, of_values[places], codes)
        if (large := whole & ~small).any():
            distinct, places = np.unique(numbers[large], return_inverse=True)
            written = [f"{number:.0f}" for number in distinct]  # "inf" for infinity
            codes[large] = self._category_codes(from_values(written, pa.string()))[places]
        return codes

    @cached_property
    def _fractions(self) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """The categories that are no whole numbers, ascending, and their codes."""
        texts = enumerate(self.attribute.categories)
        found = sorted((float(t), code) for code, t in texts if _FRACTIONAL.fullmatch(t))
        values, codes = zip(*found, strict=True) if found else ((), ())
        return np.array(values, dtype=np.float64), np.array(codes, dtype=np.int32)

    def _decimal_codes(self, column: Any) -> NDArray[Any]:
        """Return the codes of decimal numbers; only whole ones are categories."""
        encoded = column.dictionary_encode()
        numbers = encoded.dictionary.to_pylist()
        whole = np.array([number == int(number) for number in numbers], dtype=bool)
        written = [str(int(number)) for number in numbers]
        found = self._category_codes(from_values(written, pa.string()))
        codes = np.append(np.where(whole, found, np.int32(_FRACTION)), np.int32(self._missing_code))
        return codes.take(to_numpy(encoded.indices, null=len(numbers)))

    def _place(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        if self._grid is not None:
            codes: NDArray[Any] = self._offsets(numbers, self._grid)
        else:
            codes = self._intervals(numbers)
        for number in self._missing_numbers:
            codes[numbers == number] = self._found_missing
        codes[np.isnan(numbers)] = self._found_missing
        return codes

    def _offsets(self, numbers: NDArray[np.float64], grid: NumberGrid) -> NDArray[np.int64]:
        """Return the units from the lowest point to numbers, shape (n,); NaN becomes 0."""
        inside = numbers
        if not (len(numbers) and numbers.min() >= grid.low and numbers.max() <= grid.high):
            numbers = np.where(np.isnan(numbers), grid.low, numbers)
            inside = np.clip(numbers, grid.low, grid.high)
        offsets = np.rint(inside * grid.per_one).astype(np.int64)
        offsets -= grid.lowest
        offsets *= grid.n_points - 1
        if inside is numbers:
            return offsets
        if self.attribute.outside == "refuse":
            offsets[inside != numbers] = _OUTSIDE
        else:  # counted before they are set to an end
            offsets[numbers < grid.low] = (self._last + 1) * grid.step
            offsets[numbers > grid.high] = (self._last + 2) * grid.step
            offsets[np.isinf(numbers)] = _OUTSIDE  # no number
        return offsets

    def n_outside(self, codes: NDArray[Any]) -> int:
        """Return how many results of :meth:`look` are set to an end of the range."""
        return int((codes > self._last * self._units).sum()) if self._grid is not None else 0

    def _intervals(self, numbers: NDArray[np.float64]) -> NDArray[np.int32]:
        edges = self._edges
        assert edges is not None
        codes = (np.searchsorted(edges, numbers, side="right") - 1).astype(np.int32)
        last = len(edges) - 2
        codes[numbers == edges[-1]] = last
        # A NaN sorts after every edge and is set to missing below. Infinity is no valid value, also
        # of unbounded intervals.
        codes[(codes > last) | (codes < 0) | np.isinf(numbers)] = _OUTSIDE
        return codes

    def _numeric_text_codes(self, values: Any) -> NDArray[Any]:
        """Return the codes of distinct texts: interval labels, numbers, or other texts."""
        values = pc.utf8_trim(values, BLANKS)
        codes = self._category_codes(values)
        if self._grid is not None:  # a point's text is a number like any other
            codes = np.where(
                codes == self._missing_code,
                np.int64(self._found_missing),
                np.minimum(codes, _UNKNOWN),
            )
        open_places = np.flatnonzero(codes == _UNKNOWN)
        if not len(open_places):
            return codes
        texts = values.cast(pa.large_string()).take(from_numpy(open_places))
        dates = self.attribute.dates
        numbers = self._days(texts) if dates else numbers_written(texts, self._decimal)
        places = np.where(np.isnan(numbers), np.int32(_UNKNOWN), self._place(numbers))
        codes = codes.astype(places.dtype, copy=True)
        codes[open_places] = places
        return codes

    def _days(self, texts: Any) -> NDArray[np.float64]:
        days = days_written(texts)
        if self._dates is not None:
            days = np.where(np.isnan(days), days_written(texts, self._dates), days)
        return days

    def _check_type(self, kind: Any) -> None:
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        where = f"{self.table}, column '{self.attribute.name}'"
        if self.attribute.dates:
            fits = is_text(kind) or pa.types.is_null(kind)
            if fits or pa.types.is_date(kind) or pa.types.is_timestamp(kind):
                return
        elif _is_plain(kind):
            return
        categories = self._edges is None and self.attribute.range is None
        if categories and pa.types.is_date(kind):
            return
        if categories and pa.types.is_boolean(kind):
            if self.attribute.missing or any(t is not None for t in truth_values(self._names())):
                return
            raise InputError(
                f"{where}: the column holds true and false, and no category is true or false (or "
                "True, TRUE); rename the categories, or convert the column to text"
            )
        if is_fractional(kind) and not self.attribute.dates:
            names = self._names()
            if (
                not categories
                or any(map(_DECIMAL_INTEGER.fullmatch, names))
                or len(self._fractions[0])
            ):
                return
            raise InputError(
                f"{where}: the column holds fractional numbers and the attribute has no bins; "
                "declare bins in the schema, or convert the column to text"
            )
        needs = "dates" if self.attribute.dates else "" if categories else "numbers"
        raise InputError(f"{where}: {_unfit(kind, needs)}")

    def _names(self) -> list[str]:
        return [name for name in self.attribute.categories if name != self.attribute.missing]

    def _refusal(self, reason: int, row: int, value: Any) -> InputError:
        where = f"{self.table}, data row {row}, column '{self.attribute.name}'"
        shown = f" {category_text(value.as_py())!r}" if self.show_values else ""
        return InputError(
            f"{where}: {self.problem(reason).format(f'the value{shown}', 'is', 'lies')}"
        )

    def problem(self, reason: int) -> str:
        """Return the fault of values and its fix, a format string with places for the values, "is"
        and "lies"."""
        advice = "correct the table"
        label = " nor the label of an interval" if self._edges is not None else ""
        either = "neither" if label else "not"
        if reason == _MISSING:
            return (
                "{0} {1} missing; fill it in, or declare "
                '`missing="NA"` for this attribute in the schema'
            )
        if reason == _OUTSIDE and self._grid is not None:
            what = "{0} {2} outside the declared range"
            advice = (
                'widen the range in the schema, set `outside = "clip"` there, or correct the table'
            )
        elif reason == _OUTSIDE:
            what = "{0} {2} outside the declared bins"
            advice = "widen the outer edges in the schema, or correct the table"
        elif reason == _FRACTION and self.attribute.range is None:
            what = "{0} {1} fractional and the attribute has no bins"
            advice = "declare bins in the schema, or correct the table"
        elif self.attribute.dates:
            form = f"{self._dates} or {ISO}" if self._dates else ISO
            what = f"{{0}} {{1}} {either} a date such as {form}{label}"
            if not self._dates:
                advice += (
                    ", or give the form of dates with `schema.file.dates`, or in the schema's "
                    "[file]"
                )
        elif self._numeric:
            what = f"{{0}} {{1}} {either} a number{label}"
        elif self.attribute.range is not None:
            what = "{0} {1} not a point of the declared grid, so that it was not released by it"
            advice = "check that the table and the schema belong together"
        else:
            what = "{0} {1} not one of the declared categories"
            advice = "add it to the categories in the schema, or correct the table"
        return f"{what}; {advice}"


_TOGETHER_CELLS = 1 << 18
"""Columns with equal declarations are encoded in one call of up to so many cells, which stay in the
cache: saves a fifth of the CPU from CSV to CSV at 300 columns, two fifths at 3,000."""

_MANY_COLUMNS = 16
"""Least number of dictionary columns in such a call: unifying their dictionaries takes as long as a
few calls."""


class ColumnsEncoder:
    """Encodes the columns of a table, those with equal declarations in one call."""

    def __init__(
        self, encoders: Mapping[str, ColumnEncoder], column_types: Mapping[str, Any]
    ) -> None:
        self.encoders = encoders
        alike: dict[Any, list[str]] = {}
        for name, encoder in encoders.items():
            kind = column_types[name]
            # Each dictionary belongs to its column; views combine in newer versions only.
            alone = pa.types.is_dictionary(kind) or pa.types.is_string_view(kind)
            own = name if alone else None
            alike.setdefault((encoder.declared, kind, own), []).append(name)
        self._alike = list(alike.values())

    def look(self, batch: Any) -> Iterator[tuple[list[str], NDArray[Any]]]:
        """Yield column names and their codes, shape (columns, n), negative (:data:`REASONS`) where
        a value is no category."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        together = max(1, _TOGETHER_CELLS // max(1, batch.num_rows))
        for alike in self._alike:
            few = together < _MANY_COLUMNS and pa.types.is_dictionary(columns[alike[0]].type)
            most = 1 if few else together
            for start in range(0, len(alike), most):
                names = alike[start : start + most]
                column = columns[names[0]]
                if len(names) > 1:
                    column = pa.concat_arrays([columns[name] for name in names])
                codes = self.encoders[names[0]].look(column)
                yield names, codes.reshape(len(names), batch.num_rows)


class AttributeEncoder:
    """Converts an attribute's columns, batch by batch, to its codes."""

    def __init__(
        self,
        attribute: Attribute,
        table: str,
        *,
        show_values: bool = False,
        column_types: Mapping[str, Any],
        decimal: str = ".",
        dates: str | None = None,
        rounding: BitSource | None = None,
    ) -> None:
        self._code_type = code_type(attribute.n_categories)
        self.columns = [
            ColumnEncoder(
                c,
                table,
                show_values=show_values,
                column_type=column_types[c.name],
                decimal=decimal,
                dates=dates,
                rounding=rounding,
            )
            for c in attribute.columns
        ]

    def encode(self, batch: Any, first_row: int = 1) -> NDArray[Any]:
        """Return the codes of a record batch, shape (n,), the last column fastest.

        ``first_row``: number of its first row among the table's data rows, from 1.
        """
        return self.combined(
            [c.encode(batch.column(c.attribute.name), first_row) for c in self.columns]
        )

    def combined(self, columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the attribute's codes from those of its columns, shapes (n,)."""
        codes, *others = columns
        for encoder, column in zip(self.columns[1:], others, strict=True):
            codes = codes.astype(self._code_type, copy=False) * encoder.attribute.n_categories
            codes += column
        return codes


def numbers_written(texts: Any, decimal: str) -> NDArray[np.float64]:
    """Return the numbers in texts with this decimal point, blanks around them allowed, shape (n,);
    NaN for other texts.

    >>> numbers_written(pa.array([" 1,5", "1.500", "many"]), ",").tolist()
    [1.5, nan, nan]
    """
    texts = pc.utf8_trim(texts, BLANKS)
    # With a decimal comma 1.500 is ambiguous (1500?) and no number.
    fits = pc.match_substring_regex(texts, NUMBER.replace(r"\.", re.escape(decimal)))
    fitting = pc.if_else(fits, texts, from_values([None], texts.type)[0])
    return numbers_in(pc.replace_substring(fitting, decimal, ".").cast(pa.float64()))


def days_of(column: Any) -> NDArray[np.float64]:
    """Return dates and times as whole days since 1970-01-01, shape (n,); a null is NaN."""
    return numbers_in(_dates(column).cast(pa.int32()))


def _dates(column: Any) -> Any:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = pc.local_timestamp(column)  # the local date
    days = pc.floor_temporal(column, unit="day") if pa.types.is_timestamp(column.type) else column
    return days.cast(pa.date32())


def numbers_in(column: Any) -> NDArray[np.float64]:
    """Return a pyarrow array of numbers, shape (n,); a null is NaN."""
    if pa.types.is_floating(column.type):  # some versions of pyarrow cannot cast half floats
        return to_numpy(column, null=math.nan).astype(np.float64, copy=False)
    # 64-bit floats may round integers beyond 2⁵³; edges are rounded alike.
    return to_numpy(column.cast(pa.float64(), safe=False), null=math.nan)


def integer_fits(text: str, kind: Any) -> bool:
    """Return whether a category is the decimal text of a value of a pyarrow integer type."""
    if not _DECIMAL_INTEGER.fullmatch(text):
        return False
    bits = int(kind.bit_width)
    if pa.types.is_signed_integer(kind):
        return -(1 << (bits - 1)) <= int(text) < 1 << (bits - 1)
    return 0 <= int(text) < 1 << bits


def truth_values(names: Sequence[str]) -> list[bool | None]:
    """Return the boolean of each category; None for other categories.

    Case is ignored, since programs differ, unless two categories differ by case only: then only the
    lower-case one counts.

    >>> truth_values(["True", "FALSE", "unknown"]), truth_values(["True", "true", "no"])
    ([True, False, None], [None, True, None])
    """
    folded = [name.casefold() for name in names]
    return [
        fold == "true" if fold in ("false", "true") and (fold == name or one) else None
        for name, fold in zip(names, folded, strict=True)
        for one in [folded.count(fold) == 1]
    ]


def _unfit(kind: Any, needs: str) -> str:
    """Return the reason why a column of a pyarrow type fits no categories, or no bins, and the
    fix."""
    types = pa.types
    held, advice = "values", f"convert it to {needs or 'text'}"
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.extension_name
    elif holds_bytes(kind):
        held, advice = "bytes", "decode it to text"
    elif types.is_union(kind):
        held = "values of several types"
    elif types.is_nested(kind):
        held, advice = "several values in a cell", "make one column of each"
    elif types.is_time(kind):
        held = "times of day"
        advice += f", such as {'hours after midnight' if needs else '13:30:00'}"
    elif types.is_duration(kind) or types.is_interval(kind):
        held, advice = "spans of time", f"{advice}, such as a number of days"
    elif types.is_timestamp(kind) or types.is_date(kind):
        held = "dates or times"
        advice = f"declare bins of dates, or convert it to {needs or 'dates'}"
    elif needs:
        held = f"no {needs}, which the bins are of"
    return f"the column holds {held} ({kind}); {advice}"


def is_text(kind: Any) -> bool:
    """Return whether a pyarrow type is a text type."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_fractional(kind: Any) -> bool:
    """Return whether a pyarrow type may hold fractions."""
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_single_valued(kind: Any) -> bool:
    """Return whether a pyarrow type holds single values with a text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return not (
        pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) or holds_bytes(kind)
    )


def holds_bytes(kind: Any) -> bool:
    """Return whether a pyarrow type holds bytes that are not text."""
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _is_plain(kind: Any) -> bool:
    return bool(is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind))
