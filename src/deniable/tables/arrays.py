"""Conversions between numpy and pyarrow without ``pa.array``, ``pa.scalar`` and ``np.asarray``.

These import pandas where it is installed, which costs every command a third of a second.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.schema import category_text

_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}


def numpy_type(kind: Any) -> np.dtype[Any]:
    """Return the numpy type of a pyarrow type of numbers.

    ``to_pandas_dtype`` needs pandas in older versions of pyarrow.

    >>> numpy_type(pa.int8()), numpy_type(pa.float64()), numpy_type(pa.bool_())
    (dtype('int8'), dtype('float64'), dtype('bool'))
    """
    name = str(kind)
    return np.dtype(_NAMES.get(name, name))


def from_numpy(values: NDArray[Any], null: int | None = None) -> Any:
    """Return numbers, shape (n,), as a pyarrow array that shares their memory."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    valid = None
    if null is not None:
        valid = pa.py_buffer(np.packbits(values != null, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, buffer])


def to_numpy(array: Any, null: float | None = None) -> NDArray[Any]:
    """Return a pyarrow array of numbers or truth values, shape (n,)."""
    validity, data = array.buffers()
    start, count = array.offset, len(array)
    kind = numpy_type(array.type)
    if data is None or count == 0:
        return np.zeros(0, dtype=kind)
    if pa.types.is_boolean(array.type):
        return _bits(data, start, count)
    values = np.frombuffer(data, dtype=kind, count=count, offset=start * kind.itemsize)
    if null is None or validity is None:
        return values
    return np.where(_bits(validity, start, count), values, kind.type(null))


def _bits(buffer: Any, start: int, count: int) -> NDArray[np.bool_]:
    # Whole bytes only: a slice may begin far inside a long buffer.
    first = start // 8
    packed = np.frombuffer(buffer, dtype=np.uint8)[first:]
    start -= 8 * first
    return np.unpackbits(packed, count=start + count, bitorder="little")[start:].astype(bool)


def booleans(values: NDArray[np.bool_]) -> Any:
    """Return truth values, shape (n,), as a pyarrow array."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


Value = str | float | bool | date | None
"""A value of a released column."""


def from_values(values: Sequence[Value], kind: Any) -> Any:
    """Return texts, numbers, booleans, dates and nulls as a pyarrow array of a type that holds
    them."""
    texts = [b"" if value is None else category_text(value).encode() for value in values]
    ends = np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64)
    present = np.packbits(np.array([v is not None for v in values], bool), bitorder="little")
    array = pa.Array.from_buffers(
        pa.large_string(),
        len(texts),
        [pa.py_buffer(present), pa.py_buffer(ends), pa.py_buffer(b"".join(texts))],
    )
    return array.cast(kind)


def text_scalar(text: str) -> Any:
    """Return a text as a pyarrow scalar."""
    return from_values([text], pa.string())[0]


def plain_type(kind: Any) -> Any:
    """Return a pyarrow type without run-end encoding."""
    return plain_type(kind.value_type) if pa.types.is_run_end_encoded(kind) else kind


def plain_array(column: Any) -> Any:
    """Return a pyarrow array without run-end encoding."""
    return pc.run_end_decode(column) if pa.types.is_run_end_encoded(column.type) else column


def taken(column: Any, places: NDArray[Any]) -> Any:
    """Return the elements of a pyarrow array at some places, shape (n,); views have no kernel for
    it."""
    kind, rows = column.type, from_numpy(places)
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string()).take(rows).cast(kind)
    if pa.types.is_binary_view(kind):
        return column.cast(pa.large_binary()).take(rows).cast(kind)
    return column.take(rows)


def common_form(column: Any) -> Any:
    """Return a pyarrow array in a form that every kernel supports.

    String views and half floats have few kernels, in older versions hardly any.
    """
    kind = column.type
    if pa.types.is_float16(kind):
        single = from_numpy(to_numpy(column, null=np.nan).astype(np.float32))
        return pc.if_else(column.is_valid(), single, None)
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        values = column.dictionary.cast(pa.large_string())
        return pa.DictionaryArray.from_arrays(column.indices, values, ordered=kind.ordered)
    return column
