"""Between numpy and pyarrow without ``pa.array``, ``pa.scalar`` and ``np.asarray``.

Those ask whether what they are given has to do with pandas, and for that import pandas where it is
installed: a third of a second for every command, for nothing.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.schema import category_text


def from_numpy(values: NDArray[Any]) -> Any:
    """Return numbers, shape (n,), as a pyarrow array that shares their memory."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def to_numpy(array: Any, null: float | None = None) -> NDArray[Any]:
    """Return a pyarrow array of numbers or truth values, shape (n,).

    Args:
        array: the values; numbers without nulls share their memory and are read-only.
        null: what a null becomes, in the numbers' type; None if there are no nulls.
    """
    validity, data = array.buffers()
    start, count = array.offset, len(array)
    kind = np.dtype(array.type.to_pandas_dtype())
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


def from_values(values: Sequence[str | int | bool | None], kind: Any) -> Any:
    """Return texts, integers, booleans and nulls as a pyarrow array of a type that holds them."""
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
