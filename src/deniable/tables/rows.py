"""Rows of the columns that pass through: whose they are, and all of them at once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.schema import category_text


def count_rows(persons: Any, rows_of: Counter[Any], table: str, first_row: int) -> None:
    """Add a batch's rows to the number of rows per person.

    Args:
        persons: whose row it is, a pyarrow array.
        rows_of: the counts so far; changed in place.
        table: the table's name, for messages.
        first_row: number of the batch's first row.

    Raises:
        InputError: if a row belongs to nobody.
    """
    if persons.null_count:
        row = first_row + persons.is_null().to_pylist().index(True)
        raise InputError(
            f"{table}, row {row}: the column that says whose row it is, is empty; fill it in, or "
            "leave the row out"
        )
    for entry in persons.value_counts():
        rows_of[entry["values"].as_py()] += entry["counts"].as_py()


def concatenated(batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of several batches, by name, each as one pyarrow array."""
    return {
        name: pa.concat_arrays([_flat(batch[name]) for batch in batches]) for name in batches[0]
    }


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def groups_of(column: Any) -> tuple[NDArray[np.int64], list[str]]:
    """Return which distinct value each row has, shape (n,), and those values as texts; a missing
    value counts as the empty text."""
    encoded = _flat(column).dictionary_encode(null_encoding="encode")
    labels = ["" if v is None else category_text(v) for v in encoded.dictionary.to_pylist()]
    return np.asarray(encoded.indices, dtype=np.int64), labels


def numbers_of(column: Any, name: str, table: str, first_row: int) -> NDArray[np.float64]:
    """Return a kept column as numbers, shape (n,).

    Raises:
        InputError: naming the first row that holds none.
    """
    column = _flat(column)
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
        numbers = pa.array([_number_or_none(v) for v in column.to_pylist()], type=pa.float64())
    if numbers.null_count:
        row = first_row + numbers.is_null().to_pylist().index(True)
        raise InputError(f"{table}, row {row}: column '{name}' does not hold a number")
    return np.asarray(numbers, dtype=np.float64)


def _number_or_none(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
