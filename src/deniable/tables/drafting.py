"""Schema drafts from a table, to be replaced by the public codebook."""

import json
import math
import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.atomic_files import as_text
from deniable.errors import InputError
from deniable.schema import BLANKS, FileFormat, category_text
from deniable.schema.attribute import EPOCH, edge_text
from deniable.schema.number_grid import NumberGrid
from deniable.tables.arrays import common_form
from deniable.tables.codebook import Entry
from deniable.tables.csv_source import CsvSource
from deniable.tables.date_texts import FORMS, ISO, days_written, is_written
from deniable.tables.declaring import (
    Seen,
    declared_lines,
    inline_table,
    quoted,
    refuse_contradictions,
    with_texts,
)
from deniable.tables.encode import (
    NUMBER,
    is_fractional,
    is_single_valued,
    numbers_in,
    numbers_written,
)
from deniable.tables.plink import MISSING_BITS, Fileset, is_fileset
from deniable.tables.reading import AS_FOUND, column_names, open_table
from deniable.tables.rows import groups_of, is_person_column
from deniable.tables.survey_source import SurveySource

WARNING = (
    "WARNING: this draft was read off the data. The categories that occur and the ranges of "
    "numbers are themselves information about the people in the table, and a schema is published. "
    "Replace every list of categories and every range by the public codebook, and remove drafted = "
    "true from each replaced declaration, before you release anything"
)
OF_GENOTYPES = (
    "The categories are those of the format: how often a person has the first allele of the .bim "
    "file. Whether genotypes are missing was read off the data. If the variants in the .bim, or "
    "the order of their alleles, were chosen from these people's genotypes, they are information "
    "about these people and are released unprotected"
)
NOT_DECLARED = "Not declared: "
"""Prefix of a draft's line that lists undeclared columns."""

Coding = Literal["additive", "carrier"]
_ALLELES = ('categories = ["0", "1", "2"]', "ordered = true", "scores = [0, 1, 2]")
_CARRIERS = (
    "# Of the number of first alleles only whether there is one:",
    "bins = [0, 1, 2]",
    'labels = { "[0,1)" = "none", "[1,2]" = "carrier" }',
    "scores = [0, 1]",
)
MOST_CATEGORIES = 50
"""A column with more distinct values is left to the steward."""

MISSING_TEXTS = frozenset(
    {"?", ".", "-", "--", "n/a", "na", "nan", "null", "n.a.", "#n/a", "(null)"}
    | {"#null!", "#value!", "#div/0!", "#name?", "#num!", "#ref!", "#getting_data", "#spill!"}
)
"""Texts for missing values, lower case."""

MISSING_NUMBERS = (-9999, -999, -99, -9, -8, -1, 99, 999, 9999, 99999)
"""Numbers for missing values, if far from all other numbers."""

_IDENTIFYING = re.compile(
    r"(^|[_. -])(id|ids|identifiers?|uuid|guid|key|nr|no|ssn|nhs|iban|passport|e-?mail|phone|"
    r"telephone|mobile|address|street|zip|zipcode|zip_code|postal|postcode|plz|surname|lastname|"
    r"firstname|name)($|[_. -])|"
    r"^(case|individual|member|obs|participant|patient|person|respondent|subject)$",
    re.IGNORECASE,
)
_DISTINCT, _MOST_ROUNDED = 1 << 12, 1 << 16
"""Largest number of distinct values counted per column, and of distinct numbers after rounding: a
bound on memory for any number of rows."""

_MOST_CHARACTERS = 1 << 24
"""Largest number of characters in a column's counted distinct values."""

_MOST_STEPS = 20
"""Whole numbers with at most so many values in their range are proposed as ordered categories."""

_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Ends of ranges are multiples of one of these, times a power of ten."""

_MISSING_LABEL = re.compile(
    r"refus|declin|don.?t know|no answer|not? (applicable|stated|available|ascertained|reported)|"
    r"inap|missing|unknown|no response|nonresponse|unspecified|keine? (angabe|antwort)|wei(ß|ss) "
    r"nicht|verweiger|trifft nicht zu|sans réponse|ne sait pas|non répon",
    re.IGNORECASE,
)
"""Labels of values of a number that stand for a missing one."""

_MANY_ROWS = 1000
"""From so many rows on, numbers that all differ count as identifiers; with fewer rows only if they
fill a third of their range."""


def draft_schema(
    source: Any,
    file_format: FileFormat = AS_FOUND,
    progress: Callable[[float | None], None] = lambda _fraction: None,
    codebook: Mapping[str, Entry] | None = None,
    *,
    coding: Coding | None = None,
    show_values: bool = False,
) -> str:
    """Return a schema in TOML with every column of a table, read in one pass.

    Columns with few distinct values become categories (whole numbers ordered, with scores; the
    ordered types of Parquet and frames in their order), numbers and dates with many values become
    ranges with round ends, and identifiers and other texts are listed as comments, to be declared,
    dropped or released unchanged. Declarations read off the data are marked ``drafted``; those of a
    codebook or a survey file's labels are not, unless rows hold further values, which are added and
    listed. A number's labelled values that stand for missing ones become its missing category.
    """
    if is_fileset(source):
        return _draft_of_genotypes(source, progress, carrier=coding == "carrier")
    if coding is not None:
        raise InputError(f"{source}: a coding needs the genotypes of a PLINK .bed; leave it out")
    return draft_with_reasons(source, file_format, progress, codebook, show_values=show_values)[0]


def draft_with_reasons(
    source: Any,
    file_format: FileFormat = AS_FOUND,
    progress: Callable[[float | None], None] = lambda _fraction: None,
    codebook: Mapping[str, Entry] | None = None,
    *,
    show_values: bool = False,
) -> tuple[str, dict[str, str]]:
    """Return :func:`draft_schema` of a table other than a fileset, and per column of the table, in
    order, the reason why the draft does not declare it, empty if it does."""
    if isinstance(source, str) and source == "-":
        raise InputError("a draft reads its table twice; save standard input to a file")
    names = column_names(source, file_format)
    with open_table(source, [], names, file_format=file_format) as reader:
        text = reader.source if isinstance(reader.source, CsvSource) else None
        commas = text is not None and (text.separator != "," or file_format.decimal == ",")
        forms = FORMS if file_format.dates is None else (ISO, file_format.dates)
        held = reader.source.codebook if isinstance(reader.source, SurveySource) else {}
        known = {**held, **(codebook or {})}
        columns = {
            name: _Column(commas=commas, forms=forms, known=known.get(name)) for name in names
        }
        _refuse_numbers_as_names(reader.table, names, surely_named=reader.source.surely_named)
        n_rows = 0
        for batch in reader:
            for name, column in columns.items():
                column.add(batch.kept[name])
            n_rows += batch.n_rows
            progress(reader.fraction)
    if not n_rows:
        raise InputError(f"{reader.table} has no rows; a draft needs some")
    if not reader.source.surely_named:
        for place, (name, column) in enumerate(columns.items(), 1):
            if name in column.counts:
                raise _looks_like_data(
                    f"{reader.table}: the name of column {place} occurs as a value in it"
                )
    _refuse_second_header(reader.table, columns)
    if codebook:
        refuse_contradictions(
            reader.table,
            {name: None if c.many else c.counts for name, c in columns.items()},
            codebook,
            show_values=show_values,
        )
    for column in columns.values():
        column.read_dates()
    dates = file_format.dates or next(filter(None, map(_date_form, columns.values())), None)
    as_read = replace(file_format, dates=dates)
    for column in columns.values():
        column.read_dates(dates)
    if text is not None:
        decimal = file_format.decimal or _decimal(reader.table, columns)
        as_read = replace(as_read, separator=text.separator, decimal=decimal)
        if as_read.columns == () and not as_read.has_header:
            as_read = replace(as_read, columns=names)
    parts = []
    reasons = dict.fromkeys(names, "")
    constant = []
    for name, column in columns.items():
        entry = column.known
        declared = None if entry is None else declared_lines(name, entry, column.seen())
        lines = _declaration(name, column, as_read) if declared is None else declared
        parts += ["", *(lines if entry is None else with_texts(name, lines, entry))]
        if "[[attribute]]" not in lines:
            reasons[name] = _reason(name, lines)
            if column.rows and len(column.counts) == 1 and not column.many:
                constant.append(name)
    left_out = [name for name in names if reasons[name]]
    head = [f"title = {quoted(as_text(Path(reader.table).stem))}", *_left_out(left_out, constant)]
    parts = [*head, *_file_table(as_read), *parts]
    if "drafted = true" in parts:
        parts = ["# " + line for line in textwrap.wrap(WARNING, 96)] + parts
    return "\n".join(parts) + "\n", reasons


def _reason(name: str, lines: Sequence[str]) -> str:
    """Return the reason at the beginning of a column's remark.

    >>> _reason("id", ['# column "id" has fewer than two values: leave it out'])
    'has fewer than two values'
    """
    remark = lines[0].removeprefix(f"# column {quoted(name)} ")
    return re.sub(r"(: leave it out.*|( is)?:)$", "", remark)


def _draft_of_genotypes(
    source: Any, progress: Callable[[float | None], None], *, carrier: bool
) -> str:
    """Return a schema of all variants of a fileset, with one declaration for all."""
    with open_table(source, [], other_columns="drop") as reader:
        fileset = reader.source
        assert isinstance(fileset, Fileset)
        missing = False
        for done, name in enumerate(fileset.variants, 1):
            missing = missing or bool(fileset.bits_found(name)[MISSING_BITS])
            progress(done / len(fileset.variants))
    names = ", ".join(map(quoted, fileset.variants))
    parts = ["# " + line for line in textwrap.wrap(OF_GENOTYPES, 96)]
    parts += [
        f"title = {quoted(as_text(Path(fileset.table).stem))}",
        "# People are numbered in the release. To release their identifiers, unprotected:",
        '# keep = ["FID", "IID"]',
        "",
        "[[attribute]]",
        *textwrap.wrap(f"names = [{names}]", 96, break_long_words=False, break_on_hyphens=False),
        *(_CARRIERS if carrier else _ALLELES),
        'missing = "category:NA"' if missing else 'missing = "error"',
    ]
    return "\n".join(parts) + "\n"


def _refuse_numbers_as_names(table: str, names: Sequence[str], *, surely_named: bool) -> None:
    number = NUMBER.replace(r"\.", "[.,]")
    for place, name in enumerate(names, 1):
        if not surely_named and (re.match(number, name) or _is_date(name)):
            raise _looks_like_data(f"{table}: column {place} would be called by a number or a date")


def _is_date(name: str) -> bool:
    text = pa.array([name])
    return any(not np.isnan(days_written(text, form)[0]) for form in FORMS)


def _date_form(column: "_Column") -> str | None:
    """Return the form of a column's dates if the schema must declare it."""
    (form,) = column.forms if len(column.forms) == 1 else (ISO,)
    return None if form == ISO or not _has_range_of_dates(column) else form


def _refuse_second_header(table: str, columns: dict[str, "_Column"]) -> None:
    """Raise if the first row holds texts in several columns of numbers or dates."""
    odd = [name for name, column in columns.items() if column.begins_with_text]
    if len(odd) > 1:
        raise InputError(
            f"{table}: data row 1 holds a text in '{odd[0]}' and '{odd[1]}', where all other rows "
            "hold numbers or dates, like a second header row; delete it, or correct the row"
        )


def _looks_like_data(why: str) -> InputError:
    # The name may be the first person's value: only its place is shown.
    return InputError(
        f"{why}, so that the first row looks like data; set `schema.file.header = False` if it is "
        "(and name the columns with `schema.file.columns`), or `schema.file.header = True` if it "
        "holds names"
    )


def _decimal(table: str, columns: dict[str, "_Column"]) -> str | None:
    """Return the decimal point of a text file's numbers; None for a point."""
    commas = [name for name, column in columns.items() if column.is_number(",")]
    points = [name for name, column in columns.items() if column.point and column.is_number(".")]
    commas = [name for name in commas if columns[name].comma]
    if commas and points:
        raise InputError(
            f"{table}: '{commas[0]}' has numbers with a decimal comma and '{points[0]}' with a "
            "point; set `schema.file.decimal`; the other column is then text"
        )
    return "," if commas else None


def _left_out(names: Sequence[str], constant: Sequence[str]) -> list[str]:
    """Return the draft's lines on undeclared columns, some of which have a single value."""
    if not names:
        return []
    lines = [f"# {NOT_DECLARED}{', '.join(map(quoted, names))}; release with --drop-other-columns"]
    if constant:
        lines[0] += ", or release those with one value unprotected:"
        lines.append(f"# keep = [{', '.join(map(quoted, constant))}]")
    return lines


def _file_table(file_format: FileFormat) -> list[str]:
    plain = file_format.to_plain()
    if plain.get("separator") == ",":
        del plain["separator"]
    if not plain:
        return []
    written = {
        key: "[" + ", ".join(map(quoted, value)) + "]"
        if isinstance(value, list)
        else json.dumps(value)
        for key, value in plain.items()
    }
    return ["", "[file]", *(f"{key} = {value}" for key, value in written.items())]


class _Column:
    """Summary of a column, in memory that does not depend on the number of rows."""

    def __init__(
        self, *, commas: bool, forms: Sequence[str] = (ISO,), known: Entry | None = None
    ) -> None:
        self.known = known
        self.counts: Counter[str] = Counter()
        """Rows by value, while the values are few."""
        self.many = False
        self._first = ""
        self._characters = 0
        self.missing = 0
        self.rows = 0
        self.single = True
        self.repeats = False
        self._orders: set[tuple[str, ...]] = set()
        """Orders of the values declared by the types of the batches; () for an unordered type."""
        self.codes: Counter[str] = Counter()
        """Rows by text for a missing value."""
        self.padded = False
        """Whether a number has a needless leading zero."""
        self.point = self.comma = self.other = False
        """Whether there are numbers with a point, with a comma, and other texts."""
        self._days: dict[str, Counter[float]] = {form: Counter() for form in forms}
        """Rows by day, for every form that fits all values."""
        self._dated = False
        self.times = False
        """Whether all values are stored as moments in time."""
        self.fractions = False
        self.histogram: Counter[float] = Counter()
        """Rows by number or day, rounded beyond a limit."""
        self._rounded = False
        self._unit = 0.0
        self._commas = commas

    def add(self, column: Any) -> None:
        column = common_form(
            column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        )
        self.rows += len(column)
        kind = _value_type(column.type)
        if not is_single_valued(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
            self.single = False
            return
        self.times = self.times or pa.types.is_timestamp(kind)
        self._orders.add(_declared(column))
        groups, labels = groups_of(column)
        rows = np.bincount(groups, minlength=len(labels))
        whole = _whole_values(column)
        texts = [label.strip(BLANKS) for label in labels]
        if whole:  # 3.0 is 3
            texts = [text.removesuffix(".0") for text in texts]
        coded = [self._stands_for_missing(text) for text in texts]
        if self.rows == len(column) and len(column):
            self._first = texts[groups[0]]
        present = np.array([bool(t) and not c for t, c in zip(texts, coded, strict=True)], bool)
        for text, is_code, count in zip(texts, coded, rows.tolist(), strict=True):
            if not text:
                self.missing += count
            elif is_code:
                self.codes[text] += count
        self.repeats = self.repeats or bool((rows[present] > 1).any())
        seen = [text for text, here in zip(texts, present, strict=True) if here]
        if not self.many:
            self.repeats = self.repeats or any(text in self.counts for text in seen)
            self._characters += sum(len(text) for text in seen if text not in self.counts)
            for text, count in zip(seen, rows[present].tolist(), strict=True):
                self.counts[text] += count
            self.many = len(self.counts) > _DISTINCT or self._characters > _MOST_CHARACTERS
        self._add_numbers(pa.array(seen, pa.large_string()), rows[present])

    def _stands_for_missing(self, text: str) -> bool:
        if self.known is not None and (text in self.known.labels or self.known.is_missing(text)):
            return text not in self.known.labels
        return text.lower() in MISSING_TEXTS

    def seen(self) -> Seen:
        """Return the summary compared with a codebook."""
        values = None if self.many else sorted(self.counts, key=_natural)
        return Seen(values, tuple(self.codes), self.missing > 0, self.is_number("."))

    def _add_numbers(self, values: Any, rows: NDArray[np.int64]) -> None:
        if not len(values):
            return
        for form, seen in list(self._days.items()):
            if (
                not is_written(values[0].as_py(), form)
                or np.isnan(days := days_written(values, form)).any()
            ):
                del self._days[form]
                continue
            for day, count in zip(days.tolist(), rows.tolist(), strict=True):
                seen[day] += count
        if self._days:
            self._dated = True
            return
        self.other = self.other or self._dated  # dates until now, and no longer
        self.padded = self.padded or bool(_matches(values, r"^[+-]?0[0-9]").any())
        by_point = _matches(values, NUMBER)
        by_comma = _matches(values, _WITH_COMMA) if self._commas else np.zeros_like(by_point)
        self.other = self.other or not bool((by_point | by_comma).all())
        if self.other:
            self.histogram.clear()
            return
        self.comma = self.comma or bool((by_comma & ~by_point).any())
        self.point = self.point or bool(_matches(values, r"\.").any())
        texts = pc.replace_substring(values, ",", ".")
        numbers = numbers_written(texts, ".")
        if not np.isfinite(numbers).all():
            self.other = True
            return
        self.fractions = self.fractions or bool((numbers != np.floor(numbers)).any())
        self._count(numbers, rows)

    def _count(self, numbers: NDArray[np.float64], rows: NDArray[np.int64]) -> None:
        if self._rounded:
            numbers = self._round(numbers)
        for number, count in zip(numbers.tolist(), rows.tolist(), strict=True):
            self.histogram[number] += count
        limit = _MOST_ROUNDED if self._rounded else _DISTINCT
        if len(self.histogram) > limit:
            self._rounded = True
            seen = np.array(list(self.histogram))
            self._unit = 10.0 ** np.floor(np.log10((seen.max() - seen.min()) / 400))
            counts, self.histogram = list(self.histogram.values()), Counter()
            for number, count in zip(self._round(seen).tolist(), counts, strict=True):
                self.histogram[number] += count

    def _round(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        # To three digits, and more finely for numbers close together far from 0, such as years and
        # coordinates.
        digits = np.floor(np.log10(np.abs(np.where(numbers == 0, 1, numbers))))
        unit = np.minimum(10.0 ** (digits - 2), self._unit)
        return np.asarray(np.round(numbers / unit) * unit)

    def read_dates(self, form: str | None = None) -> None:
        """Take the days as the column's numbers if all values are dates: in ISO form if that fits,
        else in this form if it fits, else in the first that fits."""
        if self.forms:
            chosen = form if form in self.forms and ISO not in self.forms else self.forms[0]
            self.histogram = self._days[chosen]

    @property
    def forms(self) -> tuple[str, ...]:
        """Forms of dates that fit all values; empty if they are no dates."""
        return tuple(self._days) if self._dated else ()

    def is_number(self, decimal: str) -> bool:
        """Whether all values are numbers with this decimal point."""
        wrong = self.point if decimal == "," else self.comma
        return bool(self.histogram) and not (self.other or self.is_date or self.padded or wrong)

    @property
    def begins_with_text(self) -> bool:
        """Whether the first row holds a text and all others numbers or dates."""
        rest = [text for text in self.counts if text != self._first]
        return (
            self.counts[self._first] == 1
            and len(rest) > 1
            and not re.match(_NUMBER_OR_DATE, self._first)
            and all(re.match(_NUMBER_OR_DATE, text) for text in rest)
        )

    @property
    def is_date(self) -> bool:
        return bool(self.forms)

    def error_of(self, number: float) -> float:
        """Return the largest distance of a number of the histogram from those that it counts."""
        return min(abs(number) / 100, self._unit)

    @property
    def few(self) -> bool:
        return not self.many and len(self.counts) <= MOST_CATEGORIES

    @property
    def order(self) -> tuple[str, ...]:
        """Return the categories in the order of the column's type, unused ones included; empty if
        the type has no order or too many."""
        (order,) = self._orders if len(self._orders) == 1 else ((),)
        return order if len(order) <= MOST_CATEGORIES and set(order) >= set(self.counts) else ()


_NUMBER_OR_DATE = rf"{NUMBER}|^\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d"
_WITH_COMMA = NUMBER.replace(r"\.", ",")


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _declared(column: Any) -> tuple[str, ...]:
    """Return the categories of an ordered type without those for missing values."""
    if not (pa.types.is_dictionary(column.type) and column.type.ordered):
        return ()
    texts = [
        category_text(value).strip(BLANKS) for value in column.dictionary.drop_null().to_pylist()
    ]
    return tuple(dict.fromkeys(t for t in texts if t and t.lower() not in MISSING_TEXTS))


def _whole_values(column: Any) -> bool:
    """Whether a column of floating-point or decimal numbers has no fractions."""
    kind = _value_type(column.type)
    if not is_fractional(kind):
        return False
    values = column.dictionary if pa.types.is_dictionary(column.type) else column
    numbers = numbers_in(values)
    return bool((np.isnan(numbers) | (numbers == np.floor(numbers))).all())


def _matches(values: Any, pattern: str) -> NDArray[np.bool_]:
    return np.asarray(pc.match_substring_regex(values, pattern).to_numpy(zero_copy_only=False))


def _declaration(name: str, column: _Column, file_format: FileFormat) -> list[str]:
    if not column.single:
        return [f"# column {quoted(name)} does not hold single values: leave it out, or convert it"]
    number = column.is_number(file_format.decimal or ".")
    if why := _identifies(name, column, number=number):
        return [
            f"# column {quoted(name)} {why}:",
            *_person_remark(name, column),
            "# an identifier? Leave it out with --drop-other-columns;",
            f"# or declare coarser categories; or keep = [{quoted(name)}], unprotected",
        ]
    if not column.many and len(column.counts) + bool(column.codes or column.missing) < 2:
        return [f"# column {quoted(name)} has fewer than two values: leave it out"]
    if _has_range_of_dates(column) and not {ISO, file_format.dates} & set(column.forms):
        return _undated(name, column)
    lines = [*_person_remark(name, column), "[[attribute]]", f"name = {quoted(name)}"]
    codes = [text for text, _ in column.codes.most_common()]
    is_range, labelled = False, _labelled_missing(column) if number else []
    missing = _missing_numbers(column, labelled) if number else []
    if len(column.order) > 1:
        lines += [f"categories = [{', '.join(map(quoted, column.order))}]", "ordered = true"]
        lines += [f"scores = [{', '.join(column.order)}]"] if number else []
    elif number and (steps := _whole_range(column, [*missing, *labelled])):
        lines.append(f"categories = [{', '.join(quoted(str(step)) for step in steps)}]")
        lines.append("# taken for a count or a scale: if they are codes of unordered categories,")
        lines.append("# whose mean is meaningless, remove these two lines")
        lines += ["ordered = true", f"scores = [{', '.join(map(str, steps))}]"]
        codes += [*labelled, *missing]
    elif column.few and not ((number and len(column.histogram) > 1) or _has_range_of_dates(column)):
        values = sorted(column.counts, key=_natural)
        lines += _alike(values)
        lines.append(f"categories = [{', '.join(map(quoted, values))}]")
    elif number or column.is_date:
        ends = _range(column, [*missing, *labelled])
        try:
            NumberGrid(*ends, 2)
        except InputError as error:
            return [f"# column {quoted(name)}: {error}"]
        written = [edge_text(end, dates=column.is_date) for end in ends]
        is_range = True
        lines.append(f"range = [{', '.join(written)}]")
        lines.append('# instead: for = "distribution", or bins with public edges')
        codes += [*labelled, *missing]
    else:
        return [
            f"# column {quoted(name)} has over {MOST_CATEGORIES} distinct texts: an identifier?",
            *_person_remark(name, column),
            f"# Declare coarser categories; or keep = [{quoted(name)}], unprotected; or",
            "# leave it out with --drop-other-columns",
        ]
    lines.append("drafted = true")
    category = ""
    if codes and not (column.missing or is_range or set(codes) & set(missing)):
        category, *codes = codes
    elif codes or column.missing:
        # An empty field gets no code of the file, which may have another meaning; a code among the
        # numbers of a release would be taken for one.
        category, codes = "NA", [code for code in codes if code != "NA"]
    if category:
        known = column.known or Entry()
        texts = [{**known.labels, **known.missing}.get(code, "") for code in (category, *codes)]
        if label := "; ".join(filter(None, texts)):
            lines += inline_table("labels", {category: label})
        lines.append(f"missing = {quoted('category:' + category)}")
    if codes:
        if numbers := [code for code in codes if code in missing]:
            lines.append(
                f"# {' and '.join(numbers)}: far from all other numbers, taken for missing like "
                "an empty field"
            )
        lines.append(f"missing_codes = [{', '.join(map(quoted, codes))}]")
    return lines


def _person_remark(name: str, column: _Column) -> list[str]:
    """Return the remark on a column that may identify persons with several rows."""
    if not (column.repeats and is_person_column(name)):
        return []
    return [
        "# its values repeat: if it identifies persons with several rows, their ε adds up;",
        f"# then declare nothing here, and release with --person {quoted(name)}",
    ]


def _alike(values: Sequence[str]) -> list[str]:
    """Return a remark on texts that differ only by case, width or blanks; empty without any."""
    together: dict[str, list[str]] = {}
    for value in values:
        plain = " ".join(unicodedata.normalize("NFKC", value).casefold().split())
        together.setdefault(plain, []).append(value)
    return [
        f"# {' and '.join(map(quoted, same))} differ by case or blanks only: one category? Then "
        "use one spelling in the table"
        for same in together.values()
        if len(same) > 1
    ]


def _undated(name: str, column: _Column) -> list[str]:
    shown = " or ".join(column.forms)
    return [
        f"# column {quoted(name)} has dates, written as {shown} is:",
        "# give the form of the file's dates with --dates, one for all its columns",
    ]


def _has_range_of_dates(column: _Column) -> bool:
    if not column.is_date or len(column.histogram) < 2:
        return False
    return column.times or len(column.counts) > _MOST_STEPS


def _identifies(name: str, column: _Column, *, number: bool) -> str:
    """Return the reason why a column looks like an identifier; empty if it does not."""
    if column.few or column.is_date:
        return ""
    if not column.repeats and not (number and column.fractions):
        present = column.rows - column.missing - sum(column.codes.values())
        span = max(column.histogram) - min(column.histogram) if number else 0.0
        if present >= _MANY_ROWS or span < 3 * present:
            return "has a value of its own in every row"
    if column.padded and not column.other:
        return f"has over {MOST_CATEGORIES} numbers that begin with 0, as postcodes do"
    if not column.fractions and _IDENTIFYING.search(name):
        return f"has over {MOST_CATEGORIES} values and the name of an identifier"
    return ""


def _labelled_missing(column: _Column) -> list[str]:
    """Return the numbers whose labels in a codebook state that a value is missing."""
    labels = {} if column.known is None else column.known.labels
    found = [
        code
        for code, label in labels.items()
        if re.match(NUMBER, code)
        and float(code) in column.histogram
        and _MISSING_LABEL.search(label)
    ]
    return found if len(_numbers(column, found)) > 1 else []


def _missing_numbers(column: _Column, without: Sequence[str]) -> list[str]:
    """Return the numbers that look like codes for missing values: far from all others."""
    numbers = _numbers(column, without)
    found = []
    while len(numbers) > 2:
        low, second, third, high = numbers[0], numbers[1], numbers[-2], numbers[-1]
        if high in MISSING_NUMBERS and high > 1.5 * max(third, 10) and _stands_out(high, third):
            found.append(numbers.pop())
        elif low in MISSING_NUMBERS and low < 0 <= second:
            found.append(numbers.pop(0))
        else:
            break
    return [str(int(number)) for number in found]


def _stands_out(code: float, rest: float) -> bool:
    # 99 next to 0 to 60 may be an age; next to 0 to 9 it is a code.
    return (code >= 999 and code > 3 * rest) or code > 5 * rest


def _numbers(column: _Column, without: Sequence[str]) -> list[float]:
    taken = set(map(float, without))
    return sorted(number for number in column.histogram if number not in taken)


def _whole_range(column: _Column, missing: Sequence[str]) -> list[int]:
    """Return the whole numbers of a small range, unused ones included."""
    numbers = _numbers(column, missing)
    if column.fractions or column.many or not numbers:
        return []
    low, high = int(numbers[0]), int(numbers[-1])
    if not 2 <= high - low + 1 <= _MOST_STEPS or len(numbers) < (high - low + 1) / 3:
        return []
    return list(range(low, high + 1))


def _range(column: _Column, missing: Sequence[str]) -> tuple[float, float]:
    """Return a range with round ends that holds all numbers, or dates.

    The ends are multiples of about a quarter of the spread: the smallest and the largest value
    belong to people. The lower end is 0 if that is near.
    """
    numbers = _numbers(column, missing)
    low, high = numbers[0], numbers[-1]
    if column.is_date:
        return _round_date(low, high - low), _round_date(high, high - low, up=True)
    low, high = low - column.error_of(low), high + column.error_of(high)
    step = _round_step((high - low or abs(high) or 1.0) / 4)
    first, last = math.floor(low / step), math.ceil(high / step)
    if 0 < first * step <= high - low:
        first = 0
    return float(f"{first * step:.12g}"), float(f"{last * step:.12g}")


def _round_step(step: float) -> float:
    """Return the nearest 1, 2, 2.5 or 5 times a power of ten."""
    unit = 10.0 ** math.floor(math.log10(step))
    return unit * min(_ROUND, key=lambda factor: abs(factor - step / unit))


def _round_date(day: float, spread: float, *, up: bool = False) -> float:
    """Return the first day of a date's five years, year or month, by the spread of all dates; or of
    the next."""
    years = 5 if spread > 365 * 25 else 1 if spread > 365 * 4 else 0
    later = 0 if not up else 366 * years if years else 31
    date = EPOCH + timedelta(days=day + later)
    if years:
        date = date.replace(year=max(date.year // years * years, 1), month=1)
    return float((date.replace(day=1) - EPOCH).days)


def _natural(value: str) -> tuple[bool, float, str]:
    try:
        return (False, float(value), value)
    except ValueError:
        return (True, 0.0, value)
