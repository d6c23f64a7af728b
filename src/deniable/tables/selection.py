"""Selection of rows: conditions on unchanged columns, and gaps left out."""

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.errors import InputError, Notice
from deniable.schema import BLANKS, category_text
from deniable.tables.arrays import from_values
from deniable.tables.date_texts import days_written
from deniable.tables.encode import NUMBER, days_of, numbers_written
from deniable.tables.reading import Batch
from deniable.tables.rows import gaps_in, groups_of, numbers_and_gaps

_OPERATOR = re.compile("<=|>=|!=|==|=|<|>")


@dataclass(frozen=True)
class Condition:
    """A condition on an unchanged column."""

    column: str
    operator: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        values = " or ".join(value or "(empty)" for value in self.values)
        return f"{self.column} {self.operator} {values}"


Where = Mapping[str, Any] | Sequence[str | Condition] | str | None
"""Conditions as given: texts such as ``age>=18``, or a value or list of values by column."""


def conditions_of(where: Where, columns: Collection[str]) -> tuple[Condition, ...]:
    """Return the conditions on rows."""
    if isinstance(where, Mapping):
        return tuple(Condition(str(name), "=", _texts(value)) for name, value in where.items())
    given = [where] if isinstance(where, str | Condition) else where or ()
    try:
        found = tuple(c if isinstance(c, Condition) else _read(c, columns) for c in given)
    except TypeError:
        raise InputError(
            "`where` is a condition such as 'age>=18', a list of them, or a dictionary of values "
            "by column, {'region': 'south'}"
        ) from None
    columns_of_values = [each.column for each in found if each.operator == "="]
    for name in columns_of_values:
        if columns_of_values.count(name) > 1:
            raise InputError(
                f"`where`: '{name}' is given twice; give one condition with | between its values"
            )
    return found


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list | tuple | set | frozenset) else [value]
    return tuple("" if one is None else category_text(one) for one in values)


def _read(text: str, columns: Collection[str]) -> Condition:
    matches = list(_OPERATOR.finditer(text))
    of_columns = (match for match in matches if text[: match.start()].strip() in columns)
    match = next(of_columns, matches[0] if matches else None)
    if match is None or not (name := text[: match.start()].strip()):
        raise InputError(
            f"`where` '{text}': expected column=value, or a comparison by !=, <, <=, > or >="
        )
    operator, value = match[0].replace("==", "="), text[match.end() :].strip()
    if operator in ("=", "!="):
        return Condition(name, operator, tuple(map(str.strip, value.split("|"))))
    if re.match(NUMBER, value) is None and np.isnan(_day(value)):
        raise InputError(
            f"`where` '{text}': {operator} compares with a number or with a date such as 2025-12-31"
        )
    return Condition(name, operator, (value,))


def _day(text: str) -> float:
    try:
        return float((date.fromisoformat(text) - date(1970, 1, 1)).days)
    except ValueError:
        return np.nan


def places_of(
    value: str, labels: Sequence[str], *, decimal: str = ".", single: bool = False
) -> NDArray[np.bool_]:
    """Return which labels equal a value, shape (labels,), as text, number, day or truth value,
    without blanks around them.

    ``single``: the column holds 32-bit floats, in whose texts the last digits are noise.

    >>> places_of("3", ["3.0", "30", "3"]).tolist(), places_of("True", ["true"]).tolist()
    ([True, False, True], [True])
    """
    value, labels = value.strip(BLANKS), [label.strip(BLANKS) for label in labels]
    same = np.array([label == value for label in labels], dtype=bool)
    texts = from_values(labels, pa.string())
    if re.match(NUMBER, value):
        numbers, wanted = numbers_written(texts, decimal), float(value)
        same |= numbers == wanted
        if single:
            same |= numbers.astype(np.float32) == np.float32(wanted)
    elif not np.isnan(day := _day(value)):
        same |= days_written(texts) == day
    lower = [label.lower() for label in labels]
    if {*lower} <= {"true", "false", ""}:
        wanted_text = {"1": "true", "0": "false"}.get(value, value.lower())
        same |= np.array([text == wanted_text for text in lower], dtype=bool)
    return same


def value_among(value: str, labels: Sequence[str]) -> str | None:
    """Return the label that equals a value, or None."""
    if value in labels:
        return value
    places = np.flatnonzero(places_of(value, labels))
    return labels[int(places[0])] if len(places) == 1 else None


@dataclass(frozen=True)
class Selection:
    """Rows and people of an estimate."""

    conditions: tuple[Condition, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()
    answered: tuple[str, ...] = ()

    @property
    def group(self) -> tuple[tuple[str, str], ...]:
        """Columns with one value in all rows, with that value."""
        return tuple((c.column, c.values[0]) for c in self.conditions if _is_one_value(c))

    def text(self) -> str:
        """Return the selection in sentences, without :attr:`group`."""
        said = []
        if more := [str(c) for c in self.conditions if not _is_one_value(c)]:
            said.append(f"Only rows where {' and '.join(more)}.")
        if self.left_out:
            parts = [
                f"{count:,} {'row' if count == 1 else 'rows'} where '{name}' is empty"
                for name, count in self.left_out
            ]
            said.append(f"Left out: {', '.join(parts)}.")
        if self.answered:
            said.append(f"Only respondents with an answer to {', '.join(self.answered)}.")
        return " ".join(said)

    def to_plain(self) -> dict[str, Any]:
        """Return the non-empty of ``where``, ``left_out`` and ``answered`` as plain values."""
        plain: dict[str, Any] = {}
        if self.conditions:
            plain["where"] = [str(condition) for condition in self.conditions]
        if self.left_out:
            plain["left_out"] = [{"column": name, "rows": count} for name, count in self.left_out]
        if self.answered:
            plain["answered"] = list(self.answered)
        return plain


def _is_one_value(condition: Condition) -> bool:
    return condition.operator == "=" and len(condition.values) == 1


class Selector:
    """Selects rows batch by batch."""

    def __init__(
        self,
        conditions: Sequence[Condition] = (),
        *,
        missing: Mapping[str, str] | None = None,
        numbers: Sequence[str] = (),
        texts: Sequence[str] = (),
        decimal: str = ".",
        show_values: bool = False,
    ) -> None:
        self._conditions = tuple(conditions)
        self._numbers = tuple(dict.fromkeys(numbers))
        self._texts = tuple(dict.fromkeys(texts))
        self._decimal = decimal
        self._missing = missing or {}
        self._show_values = show_values
        self._left_out: dict[str, float] = {}
        listed = [c for c in self._conditions if c.operator in ("=", "!=")]
        self._unseen = {(c, value) for c in listed for value in c.values if value}

    @property
    def columns(self) -> tuple[str, ...]:
        """Unchanged columns that it reads."""
        conditions = (condition.column for condition in self._conditions)
        return tuple(dict.fromkeys([*conditions, *self._numbers, *self._texts]))

    def choose(
        self,
        batch: Batch,
        table: str,
        records: NDArray[np.float64] | None = None,
        gaps_of: Mapping[str, NDArray[np.bool_]] = MappingProxyType({}),
    ) -> tuple[NDArray[np.bool_] | None, dict[str, NDArray[np.float64]]]:
        """Return which rows of a batch are selected, shape (n,), None for all; and the columns of
        numbers, valid in the selected rows. ``gaps_of``: empty cells of other columns, whose rows
        are left out."""
        if not self.columns and not gaps_of:
            return None, {}
        chosen = np.ones(batch.n_rows, dtype=bool)

        def leave_out(name: str, gaps: NDArray[np.bool_]) -> None:
            if (gone := chosen & gaps).any():
                count = float(gone.sum() if records is None else records[gone].sum())
                self._left_out[name] = self._left_out.get(name, 0.0) + count
                chosen[gone] = False

        def refuse(name: str, wrong: NDArray[np.bool_], needed: str) -> None:
            if not (wrong & chosen).any():
                return
            place = int(np.argmax(wrong & chosen))
            shown = f" {batch.kept[name][place].as_py()!r}" if self._show_values else ""
            raise InputError(
                f"{table}, data row {batch.first_row + place}, column '{name}': the value{shown} "
                f"is not {needed}; leave such rows out with `where` '{name}!=VALUE', or in a "
                f"formula take the column as categories, C({name})"
            )

        for condition in self._conditions:
            column = batch.kept[condition.column]
            if condition.operator in ("=", "!="):
                chosen &= self._equal(condition, column) == (condition.operator == "=")
                continue
            (value,) = condition.values
            by_day = re.match(NUMBER, value) is None
            numbers, gaps = _days(column) if by_day else numbers_and_gaps(column, self._decimal)
            leave_out(condition.column, gaps)
            refuse(condition.column, np.isnan(numbers), "a date" if by_day else "a number")
            wanted = _day(value) if by_day else float(value)
            chosen &= _COMPARED[condition.operator](numbers, wanted)
        found = {}
        for name in self._numbers:
            found[name], gaps = numbers_and_gaps(batch.kept[name], self._decimal)
            leave_out(name, gaps)
            refuse(name, ~np.isfinite(found[name]), "a finite number")
        for name in self._texts:
            leave_out(name, gaps_in(batch.kept[name]))
        for name, gaps in gaps_of.items():
            leave_out(name, gaps)
        return chosen, found

    def _equal(self, condition: Condition, column: Any) -> NDArray[np.bool_]:
        codes, labels = groups_of(column)
        single = pa.types.is_float32(column.type)
        same, gaps = np.zeros(len(labels), dtype=bool), gaps_in(column)
        empty = {"", self._missing.get(condition.column, "")}.intersection(condition.values)
        for value in condition.values:
            here = places_of(value, labels, decimal=self._decimal, single=single)
            if here.any() or (value in empty and gaps.any()):
                self._unseen.discard((condition, value))
            same |= here
        equal = same[codes]
        return equal | gaps if empty else equal

    def selection(self) -> Selection:
        """Return the selection, after all rows are read."""
        for condition, value in sorted(self._unseen, key=str):
            text = f"no row has the value '{value}' in '{condition.column}'"
            if condition.operator == "=":
                raise InputError(f"`where`: {text}")
            warnings.warn(f"{text}, so the condition excludes no row", Notice, stacklevel=2)
        return Selection(
            self._conditions, tuple((name, round(n)) for name, n in self._left_out.items())
        )


_COMPARED = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def _days(column: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return days since 1970-01-01, NaN in cells without a date, and which cells are gaps."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return days_of(column), gaps_in(column)
    codes, labels = groups_of(column)
    texts = from_values([label.strip(BLANKS) for label in labels], pa.string())
    return days_written(texts)[codes], gaps_in(column)
