"""Persons of rows, and unchanged columns of all rows."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.errors import InputError
from deniable.schema import BLANKS, category_text
from deniable.tables.arrays import common_form, from_values, to_numpy
from deniable.tables.encode import is_single_valued, is_text, numbers_in, numbers_written

_OF_PERSONS = re.compile(
    r"(^|[_. -])(id|ids|identifiers?|uuid|guid|ssn|nhs|passport|e-?mail|pseudonym)($|[_. -])|"
    r"^(p|person|patient|participant|user|client|customer|member|subject|respondent|case|household|"
    r"hh|student|pupil|worker|employee|panel)[_. -]?(id|nr|no|num|number|code|key)$|"
    r"^id[_. -]?(code|nr|no|num|number)$|"
    r"^(individual|participant|patient|person|respondent|subject|whose|who)$",
    re.IGNORECASE,
)

_MOST_PERSONS = 1 << 20
"""Largest number of distinct values searched for repetition."""


def is_person_column(name: str) -> bool:
    """Return whether a column's name is that of a person identifier.

    >>> [name for name in ("id", "PatientID", "person", "wave", "income", "idea") if
    ...  is_person_column(name)]
    ['id', 'PatientID', 'person']
    """
    return _OF_PERSONS.search(name) is not None


class Repeats:
    """Whether a value of a column repeats, among its first million distinct values."""

    def __init__(self) -> None:
        self.found = False
        self._seen: Any = None

    def add(self, values: Any) -> None:
        """Add a batch of values, a pyarrow array without nulls."""
        if self.found or (self._seen is not None and len(self._seen) >= _MOST_PERSONS):
            return
        values = common_form(_flat(values))
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        together = values if self._seen is None else pa.concat_arrays([self._seen, values])
        self._seen = together.unique()
        self.found = len(self._seen) < len(together)


def count_rows(persons: Any, rows_of: Counter[Any], table: str, first_row: int) -> None:
    """Add a batch's rows to the number of rows per person."""
    refuse_missing_persons(persons, table, first_row)
    for entry in persons.value_counts():
        rows_of[entry["values"].as_py()] += entry["counts"].as_py()


def refuse_missing_persons(persons: Any, table: str, first_row: int) -> None:
    """Raise if a row has no person."""
    if (empty := gaps_in(persons)).any():
        row = first_row + int(np.argmax(empty))
        raise InputError(
            f"{table}, data row {row}: the person column is empty; fill it in, or leave the row out"
        )


def concatenated(batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of several batches, by name, each as one pyarrow array."""
    return {
        name: pa.concat_arrays([_flat(batch[name]) for batch in batches]) for name in batches[0]
    }


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def groups_of(column: Any, table: str = "", name: str = "") -> tuple[NDArray[np.int64], list[str]]:
    """Return the index of each row's distinct value, shape (n,), and those values as texts; a
    missing value is the empty text."""
    column = common_form(_flat(column))
    if pa.types.is_dictionary(column.type):
        # A dictionary may list a value twice or without rows, and may contain a null.
        own, labels = groups_of(column.dictionary, table, name)
        if "" not in labels:
            labels = [*labels, ""]
        own = np.append(own, labels.index(""))
        groups = own[to_numpy(column.indices.cast(pa.int64()), null=len(own) - 1)]
        present = np.unique(groups)
        return np.searchsorted(present, groups), [labels[place] for place in present]
    kind = column.type
    if not is_single_valued(kind):
        raise InputError(
            f"{table}, column '{name}': values of type {kind} are not single values; convert the "
            "column to text, or leave it out"
        )
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.int64), [""][: len(column)]
    encoded = column.dictionary_encode(null_encoding="encode")
    labels = ["" if v is None else category_text(v) for v in encoded.dictionary.to_pylist()]
    return to_numpy(encoded.indices).astype(np.int64), labels


NO_NUMBER = ("", "na", "n/a", "nan", "null", ".")
"""Texts of empty cells in columns of numbers, also in upper case."""


def gaps_in(column: Any) -> NDArray[np.bool_]:
    """Return which cells of a column are empty, shape (n,): nulls, NaN and blank texts."""
    column = common_form(_flat(column))
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    empty = pc.is_null(column, nan_is_null=True)
    if is_text(column.type):
        empty = pc.or_(
            empty, pc.fill_null(pc.equal(pc.binary_length(pc.utf8_trim(column, BLANKS)), 0), True)
        )
    return to_numpy(empty)


def numbers_and_gaps(
    column: Any, decimal: str = "."
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return an unchanged column as numbers, shape (n,), NaN for other texts; and which cells are
    gaps: empty or :data:`NO_NUMBER`.

    >>> numbers, gaps = numbers_and_gaps(pa.array(["1.5", "NA", "many", None]))
    >>> numbers.tolist(), gaps.tolist()
    ([1.5, nan, nan, nan], [False, True, False, True])
    """
    column = common_form(_flat(column))
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    gaps = gaps_in(column)
    if is_text(column.type):
        written = pc.is_in(
            pc.utf8_lower(pc.utf8_trim(column, BLANKS)), from_values(NO_NUMBER, column.type)
        )
        return numbers_written(column, decimal), gaps | to_numpy(written)
    if pa.types.is_boolean(column.type):
        return np.full(len(column), np.nan), gaps
    try:
        return numbers_in(column), gaps
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # dates, structures, bytes
        return np.full(len(column), np.nan), gaps


def numbers_of(
    column: Any, name: str, table: str, first_row: int, decimal: str = "."
) -> NDArray[np.float64]:
    """Return an unchanged column as numbers, shape (n,), with this decimal point in texts."""
    numbers, _ = numbers_and_gaps(column, decimal)
    if (lacking := ~np.isfinite(numbers)).any():
        row = first_row + int(np.argmax(lacking))
        raise InputError(f"{table}, data row {row}: column '{name}' does not hold a number")
    return numbers
