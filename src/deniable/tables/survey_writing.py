"""Released rows as an SPSS, Stata or Parquet file with labels, made from the released file and the
schema alone."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from deniable.errors import InputError
from deniable.schema import Attribute, Schema
from deniable.tables.codebook import number_text
from deniable.tables.columns import Column
from deniable.tables.csv_text import check_has_text
from deniable.tables.encode import is_fractional, is_single_valued, is_text
from deniable.tables.reading import AS_RELEASED, column_names, open_table
from deniable.tables.survey_source import SurveySource, need
from deniable.tables.writing import TableWriter

COPIES = ("sav", "dta", "parquet", "csv")
"""Formats of the copies of a release."""

FILE_LABEL = "Randomized values: see record.json and report.html"
"""Label of such files, at most 64 bytes in SPSS."""

_NAMES = {
    # Pattern and description of a valid name.
    "sav": (
        r"(?!.*\.$)[^\W\d_][\w.@#$]{0,63}",
        "SPSS takes letters, digits, . _ @ # $, 64 bytes at most",
    ),
    "dta": (r"[^\W\d]\w{0,31}", "Stata takes letters, digits and _, 32 at most"),
}
_RESERVED = {
    "sav": {"ALL", "AND", "BY", "EQ", "GE", "GT", "LE", "LT", "NE", "NOT", "OR", "TO", "WITH"},
    "dta": {"_all", "_n", "_N", "_cons", "_pi", "_b", "_coef", "_rc", "_skip", "byte", "double",
            "float", "if", "in", "int", "long", "strL", "using", "with"},
}  # fmt: skip
_LABEL_BYTES = {"sav": 120, "dta": 32000}
"""Largest label of a value, in bytes."""

_TEXT_BYTES = 32767
"""Largest text in SPSS, in bytes; Stata has no limit."""

_MOST_COLUMNS = {"sav": 1 << 20, "dta": 32767}

_FIRST_DAY = {"sav": -141427, "dta": -683003}
"""1582-10-15 and 0100-01-01, the programs' first days, in days from 1970-01-01."""

_QUESTION_CHARACTERS = {"sav": 85, "dta": 80}
"""Largest question text in characters: SPSS has 256 bytes, up to three per character."""


@dataclass(frozen=True)
class Coded:
    """Representation of a randomized column."""

    values: Mapping[str, float]
    labels: Mapping[float, str] = field(default_factory=dict)
    missing: tuple[float, ...] = ()
    empty: float | None = None


def coded(column: Column, attribute: Attribute | None, kind: str = "sav") -> Coded:
    """Return the representation of a randomized column: its categories if they are numbers, else
    numbers from 1 with the categories as labels.
    """
    texts = column.labels
    missing = None if attribute is None else attribute.missing
    present = [text for text in texts if text != missing]
    names = _names(texts, attribute)
    numbers = all(_is_number(text) for text in present)
    if numbers and kind == "dta" and any(names[text] != text for text in present):
        numbers = all(float(text).is_integer() for text in present)
    if numbers and (attribute is None or not attribute.bins):
        values = {text: float(text) for text in texts if text != missing or _is_number(text)}
        labels = {v: names[text] for text, v in values.items() if names[text] != text}
        if missing is not None and missing in texts and missing not in values:
            # A number outside the categories codes it.
            values[missing] = 1.0 + max(0, *map(math.ceil, values.values()))
            labels[values[missing]] = names[missing]
    else:
        start = 0
        while {str(start + place) for place in range(1, len(texts) + 1)} & set(texts):
            start += 1000  # no number equals another category
        values = {text: float(start + place) for place, text in enumerate(texts, start=1)}
        labels = {value: names[text] for text, value in values.items()}
    stands = values.get(missing) if missing is not None else None
    return Coded(
        values,
        labels,
        () if stands is None else (stands,),
        stands if column.empty is None else None,
    )


def _names(texts: Sequence[str], attribute: Attribute | None) -> dict[str, str]:
    """Return a label per text: the readable name where it is unique."""
    if attribute is None:
        return {text: text for text in texts}
    count = Counter(attribute.label(text) for text in texts)
    named = {}
    for text in texts:
        label = attribute.label(text)
        named[text] = text if count[label] > 1 or (label != text and label in texts) else label
    return named


def _is_number(text: str) -> bool:
    try:
        return number_text(float(text)) == text
    except (ValueError, OverflowError):
        return False


def refuse_copies(kinds: Sequence[str], columns: Sequence[Column], schema: Schema) -> None:
    """Raise, before any draw, if a release cannot be written in these formats."""
    for kind in kinds:
        if kind not in COPIES:
            raise InputError(f"a release is written as {', '.join(COPIES)}, not as '{kind}'")
        if kind == "csv":
            for column in columns:
                check_has_text(column)
        if kind not in _NAMES:
            continue
        leave_out = f"leave out `also` {kind}"
        need("pyreadstat", f"a .{kind} file", "such files")
        if _backend() is None:
            raise InputError(
                f"to write a .{kind} file, pyreadstat needs pandas or Polars, and neither is "
                "installed; python -m pip install pandas installs one"
            )
        pattern, rule = _NAMES[kind]
        if len(columns) > _MOST_COLUMNS[kind]:
            raise InputError(
                f"a .{kind} file has at most {_MOST_COLUMNS[kind]:,} columns and the release "
                f"{len(columns):,}; {leave_out}"
            )
        seen: dict[str, str] = {}
        for column in columns:
            own = column.name.upper() if kind == "sav" else column.name
            if (other := seen.setdefault(own, column.name)) != column.name:
                raise InputError(
                    f"columns '{other}' and '{column.name}' have one name in a .{kind} file, which "
                    f"ignores case; rename one in the table, or {leave_out}"
                )
            if (
                not re.fullmatch(pattern, column.name)
                or own in _RESERVED[kind]
                or (kind == "sav" and len(column.name.encode()) > 64)
            ):
                raise InputError(
                    f"column '{column.name}' has no valid name for a .{kind} file ({rule}); "
                    f"rename it in the table, or {leave_out}"
                )
            if column.position is None:
                if not _is_written(column.kind):
                    raise InputError(
                        f"column '{column.name}' of type {column.kind} cannot be written to a "
                        f".{kind} file; convert it, or {leave_out}"
                    )
                continue
            for label in coded(column, _attribute(column, schema), kind).labels.values():
                if len(label.encode()) > _LABEL_BYTES[kind] or "\0" in label:
                    raise InputError(
                        f"column '{column.name}': a category's name has a NUL, or is longer than "
                        f"the {_LABEL_BYTES[kind]} bytes that a .{kind} file has for it; give it "
                        f"another label in the schema, or {leave_out}"
                    )
        # The library checks the rest on an empty table.
        with TemporaryDirectory() as folder:
            how = _codings(columns, schema, kind)
            nothing = {
                c.name: _plain(pa.array([], c.kind), c.kind, how.get(c.name)) for c in columns
            }
            _write_survey(Path(folder) / f"data.{kind}", pa.table(nothing), columns, schema, how)


def _is_written(kind: Any) -> bool:
    """Return whether unchanged values of a pyarrow type fit into a survey file: single values
    without durations and time zones."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    return is_single_valued(kind) and not zoned and not pa.types.is_duration(kind)


def refuse_values(
    kinds: Sequence[str], table: str, kept: Mapping[str, Any], first_row: int
) -> None:
    """Raise, before any draw, if unchanged values do not fit into these formats."""
    for kind in set(kinds) & set(_NAMES):
        for name, column in kept.items():
            values = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for wrong, why in _wrong_values(kind, values):
                if pc.any(wrong).as_py():
                    row = first_row + pc.index(wrong, True).as_py()
                    raise InputError(
                        f"{table}, data row {row}, column '{name}': {why}, which a .{kind} file "
                        f"cannot hold; correct it, or leave out `also` {kind}"
                    )


def _wrong_values(kind: str, values: Any) -> list[tuple[Any, str]]:
    """Return, per fault, which values a format cannot hold, shape (n,), and the fault."""
    of = values.type
    if is_text(of):
        found = [(pc.match_substring(values, "\0"), "a text with a NUL")]
        if kind == "sav":
            long = pc.greater(pc.binary_length(values), _TEXT_BYTES)
            found.append((long, f"a text of more than {_TEXT_BYTES:,} bytes"))
        return found
    if pa.types.is_date(of) or pa.types.is_timestamp(of):
        days = values.cast(pa.date32(), safe=False)
        first = pa.scalar(_FIRST_DAY[kind], pa.int32()).cast(pa.date32())
        return [(pc.less(days, first), f"a date before {first}")]
    if pa.types.is_integer(of) or is_fractional(of):
        size = pc.abs(values.cast(pa.float64(), safe=False))
        if pa.types.is_floating(of):
            most = {"sav": 1.79e308, "dta": 2.0**1023}[kind]
            return [(pc.greater(size, most), "a number that is infinite or too large")]
        return [
            (pc.greater_equal(size, 2.0**53), "a number of more digits than 64-bit floats have")
        ]
    return []


def _codings(columns: Sequence[Column], schema: Schema, kind: str) -> dict[str, Coded]:
    return {
        column.name: coded(column, _attribute(column, schema), kind)
        for column in columns
        if column.position is not None
    }


def _attribute(column: Column, schema: Schema) -> Attribute | None:
    """Return the attribute of a column; None if its texts are no categories."""
    with suppress(InputError):
        variable = schema.variable(column.name)
        attribute = variable.attribute
        if set(attribute.categories) >= set(column.labels):
            return attribute
    return None


def _backend() -> Literal["pandas", "polars"] | None:
    if find_spec("pandas"):
        return "pandas"
    return "polars" if find_spec("polars") else None


def write_copy(rows: Path, target: Path, columns: Sequence[Column], schema: Schema) -> None:
    """Write a copy of a release's rows in the format of the target's name; .sav and .dta hold all
    rows in memory, at 4 to 8 bytes a cell."""
    kind = target.suffix[1:]
    names = [column.name for column in columns]
    with open_table(rows, [], names, file_format=AS_RELEASED) as reader:
        batches = (batch.kept for batch in reader)
        if kind == "csv":
            own = [Column(name, of) for name, of in reader.columns]
            with TableWriter(target, own) as writer:
                for kept in batches:
                    writer.write([], kept)
        elif kind == "parquet":
            _write_parquet(target, dict(reader.columns), batches, columns, schema)
        else:
            how = _codings(columns, schema, kind)
            kinds = {column.name: column.kind for column in columns}
            pieces = [
                pa.table({n: _plain(kept[n], kinds[n], how.get(n)) for n in names})
                for kept in batches
            ]
            table = pa.concat_tables(pieces)
            for place, name in enumerate(names):
                if name not in how and pa.types.is_large_string(table.schema.field(name).type):
                    table = table.set_column(place, name, _as_numbers(table.column(name)))
            _write_survey(target, table, columns, schema, how)


def holds_rows(copy: Path, rows: Path, columns: Sequence[Column], schema: Schema) -> bool | None:
    """Return whether a copy made by :func:`write_copy` holds a release's rows: equal columns and
    values, and in SPSS and Stata files equal labels; None if a library or a common type for the
    comparison is missing. Memory is bounded."""
    kind, names = copy.suffix[1:], [column.name for column in columns]
    if kind in _NAMES and find_spec("pyreadstat") is None:
        return None
    if list(column_names(copy, AS_RELEASED)) != names:
        return False
    how = _codings(columns, schema, kind) if kind in _NAMES else {}
    with (
        open_table(rows, [], names, file_format=AS_RELEASED) as released,
        open_table(copy, [], names, file_format=AS_RELEASED) as copied,
    ):
        for name, coding in how.items():
            assert isinstance(copied.source, SurveySource)
            named = copied.source.codebook[name].names().items()
            if {value: label for value, label in named if label} != {
                number_text(value): label.strip() for value, label in coding.labels.items()
            }:
                return False
        pieces = [(pa.table(batch.kept) for batch in reader) for reader in (released, copied)]
        for own, other in _in_step(*pieces):
            if own is None or other is None:
                return False
            for name in names:
                true = own.column(name).combine_chunks()
                if name in how:
                    true = _plain(true, None, how[name])
                try:
                    if not _are_alike(true, other.column(name).combine_chunks()):
                        return False
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    return None
    return True


def _in_step(first: Iterator[Any], second: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield equal numbers of rows of two sequences of tables; None in place of missing rows."""
    own, other = next(first, None), next(second, None)
    while own is not None and other is not None:
        count = min(own.num_rows, other.num_rows)
        yield own.slice(0, count), other.slice(0, count)
        own = own.slice(count) if own.num_rows > count else next(first, None)
        other = other.slice(count) if other.num_rows > count else next(second, None)
    if own is not other:
        yield own, other


def _are_alike(first: Any, second: Any) -> bool:
    """Return whether two columns, of types of their own files, hold the same values."""
    first, second = _bare(first), _bare(second)
    if first.type != second.type:
        if any(getattr(array.type, "tz", None) for array in (first, second)):
            raise pa.ArrowNotImplementedError("time zones cannot be compared")
        texts = [pa.types.is_string(array.type) for array in (first, second)]
        number = not any(pa.types.is_temporal(array.type) for array in (first, second))
        common = pa.float64() if number else pa.timestamp("us")
        if any(texts):
            common = (second if texts[0] else first).type
        first, second = _bare(first.cast(common)), _bare(second.cast(common))
    if pa.types.is_timestamp(first.type):  # Stata stores milliseconds
        moments = [
            array.cast(pa.timestamp("us"), safe=False).cast(pa.int64()) for array in (first, second)
        ]
        apart = pc.max(pc.abs(pc.subtract(*moments))).as_py() or 0
        return apart <= 1000 and bool(first.is_null().equals(second.is_null()))
    return bool(first.equals(second))


def _bare(array: Any) -> Any:
    """Return a column without categories, with nulls for missing values and empty texts, and
    without blanks at the ends of texts, which SPSS adds and CSV readers remove."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_floating(array.type):
        return pc.if_else(pc.is_nan(array), None, array)
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    if pa.types.is_string(array.type):
        array = pc.utf8_trim_whitespace(array)
        return pc.if_else(pc.equal(array, ""), None, array)
    return array


def _write_parquet(
    target: Path, kinds: Mapping[str, Any], batches: Any, columns: Sequence[Column], schema: Schema
) -> None:
    """Write Parquet with question texts and labels in its columns' metadata."""
    import pyarrow.parquet as pq

    fields = [
        pa.field(column.name, kinds[column.name], metadata=_about(column, schema) or None)
        for column in columns
    ]
    layout = pa.schema(fields, metadata={"note": FILE_LABEL})
    with pq.ParquetWriter(target, layout) as writer:
        for kept in batches:
            arrays = [kept[name].cast(layout.field(name).type) for name in layout.names]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=layout))


def _about(column: Column, schema: Schema) -> dict[str, str]:
    """Return the metadata of a column in Parquet."""
    attribute = _attribute(column, schema) if column.position is not None else None
    about = {}
    if attribute is not None and attribute.question:
        about["question"] = attribute.question
    if attribute is not None and attribute.labels:
        about["labels"] = json.dumps(dict(attribute.labels), ensure_ascii=False)
    return about


def metadata_texts(columns: Sequence[Column], schema: Schema) -> set[str]:
    """Return the metadata texts of a Parquet copy."""
    return {FILE_LABEL}.union(*(_about(column, schema).values() for column in columns))


def _plain(array: Any, kind: Any, how: Coded | None) -> Any:
    """Return a column as the numbers, texts, dates or moments written."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if how is None:
        if pa.types.is_boolean(array.type):
            return array.cast(pa.int32())
        if pa.types.is_temporal(kind):
            return array.cast(kind)
        number = is_fractional(kind) or pa.types.is_integer(kind)
        try:
            return array.cast(pa.float64() if number else pa.large_string())
        except pa.ArrowInvalid:
            raise InputError(
                "an unchanged column has whole numbers beyond 2^53, which no .sav or .dta file can "
                "hold; make it text, or leave out `also` sav and dta"
            ) from None
    texts = array.cast(pa.string())
    places = pc.index_in(texts, value_set=pa.array(list(how.values), pa.string()))
    numbers = pa.array(list(how.values.values()), pa.float64()).take(places)
    if how.empty is not None:
        numbers = pc.fill_null(numbers, how.empty)
    return numbers


def _as_numbers(column: Any) -> Any:
    """Return a column of text as numbers if all its texts are numbers, as in CSV, without needless
    zeros (postcodes) and of at most 15 characters."""
    number = pc.match_substring_regex(column, r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$")
    wrong = pc.invert(pc.and_(number, pc.less_equal(pc.binary_length(column), 15)))
    if column.null_count == len(column) or pc.any(wrong).as_py():
        return column
    return column.cast(pa.float64())


def _write_survey(
    target: Path,
    table: Any,
    columns: Sequence[Column],
    schema: Schema,
    how: Mapping[str, Coded],
) -> None:
    import pyreadstat

    kind = target.suffix[1:]
    attributes = {c.name: _attribute(c, schema) for c in columns if c.position is not None}
    room = _QUESTION_CHARACTERS[kind]
    asked = {n: a.question for n, a in attributes.items() if a is not None and a.question}
    for place, name in enumerate(table.column_names):
        column = table.column(name)
        whole = name in how and all(value == int(value) for value in how[name].values.values())
        if whole and not column.null_count:
            table = table.set_column(place, name, column.cast(pa.int32()))
    labels: dict[str, dict[Any, str]] = {
        name: {int(v) if v == int(v) else v: text for v, text in coding.labels.items()}
        for name, coding in how.items()
        if coding.labels
    }
    options: dict[str, Any] = {
        "file_label": FILE_LABEL,
        "column_labels": {
            n: q if len(q) <= room else f"{q[: room - 1]}…" for n, q in asked.items()
        },
        "variable_value_labels": labels,
    }
    import narwhals as nw  # only here: no other release needs it

    frame = nw.from_arrow(table, backend=_backend() or "pandas").to_native()
    try:
        if kind == "dta":
            pyreadstat.write_dta(frame, target, **options)
            return
        pyreadstat.write_sav(
            frame,
            target,
            row_compress=True,
            note=[
                "The values are randomized: deniable has drawn them, and no cell is a true value",
                "unless codebook.csv lists its column as unchanged. record.json has the law,",
                "from which deniable estimate computes shares and tables with their errors.",
            ],
            missing_ranges={n: list(c.missing) for n, c in how.items() if c.missing},
            variable_measure={
                n: "ordinal" if a is not None and a.ordered else "nominal"
                for n, a in attributes.items()
            },
            **options,
        )
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
        raise InputError(f"{target.name}: cannot be written ({error})") from None
