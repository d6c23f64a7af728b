"""SPSS, Stata and SAS files as record batches, and their codebooks."""

import math
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from deniable.errors import InputError
from deniable.numerals import count_text
from deniable.schema import BLANKS, FileFormat
from deniable.tables.codebook import Entry, number_text
from deniable.tables.limited import tried

_CELLS, _MOST_ROWS, _ROW_BYTES = 1 << 21, 1 << 18, 1 << 26
"""Cells, rows, and bytes of text read at a time: large pieces, as each costs a pass over all before
it."""

_SAS_MAGIC = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")

_UNIX_DAYS = {"spss": 141428, "other": 3653}
"""Days from 1582-10-14, and from 1960-01-01, to 1970-01-01."""

_DATE = {
    "spss": re.compile(r"[AES]?DATE|JDATE"),
    "stata": re.compile(r"%-?t?d.*"),
    "sas": re.compile(
        r"(WEEKDAT|MMDDYY|DDMMYY|YYMMDD|DATE|[EB]8601DA|IS8601DA|JULIAN|WORDDAT|NLDATE|MONYY).*"
    ),
}
_MOMENT = {
    "spss": re.compile(r"DATETIME|YMDHMS"),
    "stata": re.compile(r"%-?t[cC].*"),
    "sas": re.compile(r"(DATETIME|[EB]8601D[TN]|IS8601DT|DATEAMPM|MDYAMPM).*"),
}


def survey_program(start: bytes) -> str | None:
    """Return the program with these first bytes: "spss", "stata", "sas", "xport", or None."""
    if start[:4] in (b"$FL2", b"$FL3"):
        return "spss"
    if start.startswith(b"<stata_dta>") or (
        len(start) > 3
        and 102 <= start[0] <= 115
        and start[1] in (1, 2)
        and start[2] == 1
        and start[3] == 0
    ):
        return "stata"
    if start.startswith(_SAS_MAGIC):
        return "sas"
    return "xport" if start.startswith(b"HEADER RECORD*******LIB") else None


def is_encrypted(start: bytes) -> bool:
    """Return whether a file begins like an encrypted SPSS file."""
    return b"ENCRYPTED" in start[:24]


def need(module: str, table: str, what: str) -> None:
    """Raise if a library of the extra `survey` is missing."""
    if find_spec(module) is None:
        raise InputError(
            f"{table}: {what} are read by {module}, which is not installed; "
            "python -m pip install 'deniable[survey]' installs it"
        )


class SurveySource:
    """An SPSS (.sav, .zsav), Stata (.dta) or SAS (.sas7bdat, .xpt) file, read piece by piece.

    Columns with value labels or codes for missing values are text: a number without a needless
    point, ``.a`` for a tagged missing value. Other numbers are 64-bit floating-point numbers, dates
    and moments have types of their own; the file's missing values are nulls.

    ``codebook``: the file's entries; ``n_rows``: None if the file does not state it.
    """

    decimal = "."
    surely_named = True
    released_as: Literal["csv", "parquet"] = "csv"

    def __init__(
        self,
        table: str,
        program: str,
        file_format: FileFormat,
        declared: dict[str, dict[str, str]] | None = None,
    ) -> None:
        need("pyreadstat", table, "files of SPSS, Stata and SAS")
        import pyreadstat

        self.table = table
        self.dates = file_format.dates
        self._program = "sas" if program == "xport" else program
        readers: dict[str, Any] = {
            "spss": pyreadstat.read_sav,
            "stata": pyreadstat.read_dta,
            "sas": pyreadstat.read_sas7bdat,
            "xport": pyreadstat.read_xport,
        }
        self._reader = readers[program]
        self._options: dict[str, Any] = {
            "output_format": "dict",
            "encoding": file_format.encoding,
            "disable_datetime_conversion": True,  # also converts labelled and missing values
        }
        if program != "xport":
            self._options["user_missing"] = True
        if program == "spss" and tried("spss", table, file_format.encoding or "") is None:
            raise self._damaged()
        _, about = self._read(metadataonly=True)
        self.names: tuple[str, ...] = tuple(about.column_names)
        if not all(isinstance(name, str) for name in self.names):
            raise self._damaged()
        self._types: dict[str, str] = dict(about.readstat_variable_types)
        self._formats: dict[str, str] = dict(about.original_variable_types)
        self._widths: dict[str, int] = dict(about.variable_storage_width)
        self.n_rows = about.number_rows if (about.number_rows or -1) >= 0 else None
        self._done = 0
        self.codebook = {name: self._entry(name, about) for name in self.names}
        self._undated: dict[str, Entry] = {}
        for name in self.names:
            if self._time(name) is not None:
                # Codes for missing dates are ignored: such columns hold dates and nulls.
                self._undated[name] = self.codebook[name]
                self.codebook[name] = Entry(question=self.codebook[name].question)
        self._named = {
            name: named
            for name, categories in (declared or {}).items()
            if name in self.codebook and (named := _by_label(self.codebook[name], categories))
        }

    def _read(self, **options: Any) -> tuple[dict[str, list[Any]], Any]:
        try:
            read: tuple[dict[str, list[Any]], Any] = self._reader(
                self.table, **self._options, **options
            )
            return read
        except MemoryError:
            raise
        except Exception as error:
            # The library's text may show a value.
            if "convert" in str(error) or "ncoding" in str(error):
                raise InputError(
                    f"{self.table}: its texts are not in the encoding stated in the file; set "
                    "`schema.file.encoding`, for example to windows-1252"
                ) from None
            raise self._damaged() from None

    def _damaged(self) -> InputError:
        return InputError(
            f"{self.table}: the file cannot be read to the end; it is damaged, or of an unknown "
            "version"
        )

    def _entry(self, name: str, about: Any) -> Entry:
        given = about.variable_value_labels.get(name, {})
        is_text = self._is_text(name)
        labels = {
            str(value).strip(BLANKS) if is_text else _number(value) or "": str(label).strip()
            for value, label in given.items()
        }
        ranges: list[tuple[float, float]] = []
        codes: list[str] = []
        for limits in about.missing_ranges.get(name, ()):
            if isinstance(limits["lo"], str):
                codes.append(limits["lo"].strip(BLANKS))
            elif limits["lo"] == limits["hi"]:
                codes.append(number_text(limits["lo"]))
            else:
                ranges.append((float(limits["lo"]), float(limits["hi"])))
        entry = Entry(missing=dict.fromkeys(codes, ""), missing_ranges=tuple(ranges))
        tags = {v for v in labels if re.fullmatch(r"\.[a-zA-Z_]", v) and not is_text}
        missing = {v: t for v, t in labels.items() if v in tags or entry.is_missing(v)}
        return Entry(
            {v: t for v, t in labels.items() if v not in missing},
            {**entry.missing, **missing},
            entry.missing_ranges,
            (about.column_names_to_labels.get(name) or "").strip(),
            about.variable_measure.get(name) == "ordinal",
        )

    def _is_text(self, name: str) -> bool:
        return self._types[name] == "string"

    @property
    def fraction(self) -> float | None:
        """Fraction read, from 0 to 1."""
        return None if self.n_rows is None else self._done / max(1, self.n_rows)

    def column_types(self, columns: Sequence[str]) -> list[Any]:
        """Return the pyarrow types of some columns."""
        return [self._kind(name) for name in columns]

    def _kind(self, name: str) -> Any:
        entry = self.codebook[name]
        if self._is_text(name) or entry.labels or entry.missing or entry.missing_ranges:
            return pa.string()
        return self._time(name) or pa.float64()

    def _time(self, name: str) -> Any:
        """Return the type of a column of dates or moments, else None."""
        if self._is_text(name):
            return None
        form = re.sub(r"[0-9.]+$", "", self._formats[name] or "")
        if _MOMENT[self._program].fullmatch(form):
            return pa.timestamp("us")
        return pa.date32() if _DATE[self._program].fullmatch(form) else None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""
        self._done = 0
        names = list(dict.fromkeys(columns))
        if not names or self.n_rows == 0:
            return
        text_bytes = sum(self._widths[name] for name in names if self._is_text(name))
        rows = min(_MOST_ROWS, _CELLS // len(names), _ROW_BYTES // max(1, text_bytes))
        rows = max(1, rows)
        schema = pa.schema([(name, self._kind(name)) for name in columns])
        while self.n_rows is None or self._done < self.n_rows:
            limit = rows if self.n_rows is None else min(rows, self.n_rows - self._done)
            read, _ = self._read(
                usecols=names,
                row_offset=self._done,
                row_limit=limit,
            )
            count = len(read[names[0]])
            arrays = {name: self._array(name, read.pop(name)) for name in names}
            self._done += count
            if count:
                yield pa.RecordBatch.from_arrays([arrays[n] for n in columns], schema=schema)
            if count < limit:
                if self.n_rows is not None:
                    raise InputError(
                        f"{self.table}: the file has {self._done:,} of the "
                        f"{count_text(self.n_rows, 'row')} stated in it; it is cut off"
                    )
                return

    def _array(self, name: str, values: list[Any]) -> Any:
        kind = self._kind(name)
        if pa.types.is_string(kind):
            if self._is_text(name):
                texts: list[str | None] = [value or None for value in values]
            else:
                text_of: dict[Any, str | None] = {None: None}
                texts = []
                for value in values:
                    if value not in text_of:
                        text_of[value] = _number(value)
                    texts.append(text_of[value])
            if name in self._named:
                named = self._named[name]
                texts = [text if text is None else named.get(text, text) for text in texts]
            return pa.array(texts, pa.string())
        # A tagged missing value without a label is missing, as are all others without one.
        numbers = np.array(
            [math.nan if v is None or isinstance(v, str) else v for v in values], dtype=np.float64
        )
        absent = np.isnan(numbers)
        if pa.types.is_floating(kind):
            return pa.array(numbers, mask=absent)
        undated = self._undated[name]
        if undated.missing or undated.missing_ranges:
            coded = [
                not a and undated.is_missing(number_text(n))
                for a, n in zip(absent, numbers, strict=True)
            ]
            absent |= np.array(coded, dtype=bool)
        back = _UNIX_DAYS["spss" if self._program == "spss" else "other"]
        of_day = {"spss": 86400, "stata": 86_400_000, "sas": 86400}[self._program]
        if pa.types.is_date(kind):
            days = np.floor(numbers / 86400 if self._program == "spss" else numbers) - back
            far = np.abs(days) > 1e7
            return pa.array(
                np.where(absent | far, 0, days).astype(np.int32), mask=absent | far
            ).cast(kind)
        moments = (numbers - back * of_day) * (86_400_000_000 // of_day)
        far = np.abs(moments) > 9e18
        whole = np.round(np.where(absent | far, 0, moments)).astype(np.int64)
        return pa.array(whole, mask=absent | far).cast(kind)


def _number(value: Any) -> str | None:
    """Return a value of a column of numbers as text; a tagged missing one in Stata's notation."""
    if isinstance(value, str):
        return f".{value}"
    if isinstance(value, float) and math.isnan(value):
        return None
    return number_text(float(value))


def _by_label(entry: Entry, categories: dict[str, str]) -> dict[str, str]:
    """Return the category of each value whose label, but not the value itself, is one."""
    return {
        value: categories[label]
        for value, label in entry.names().items()
        if value not in categories and label in categories
    }
