"""Dates in text. A form is the last day of 2025 in their notation: ``31.12.2025``."""

import math
import re
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.schema.attribute import EPOCH
from deniable.schema.file_format import DATE_FORM
from deniable.tables.arrays import to_numpy

ISO = "2025-12-31"
"""The form of dates in schemas and date columns, accepted everywhere."""

FORMS = (
    *(ISO, "31.12.2025", "31/12/2025", "12/31/2025", "31-12-2025", "12-31-2025"),
    *("2025/12/31", "2025.12.31"),
)
"""Forms tried where none is declared. Eight digits alone are a number."""

_PARTS = {"2025": "(?P<year>[0-9]{4})", "12": "(?P<month>%s)", "31": "(?P<day>%s)"}
_TIME = "(?:[ T][0-9:.]*(?:Z|[+-][0-9:]+)?)?"


def days_written(texts: Any, form: str = ISO) -> NDArray[np.float64]:
    """Return the days since 1970-01-01 of dates of a form, alone or before a time, shape (n,); NaN
    for other texts.
    """
    parts = pc.extract_regex(texts, _pattern(form))
    year, month, day = (
        pc.utf8_lpad(pc.struct_field(parts, name), 2, "0").cast(pa.string())
        for name in ("year", "month", "day")
    )
    iso = pc.binary_join_element_wise(year, month, day, "-")
    try:
        days = iso.cast(pa.date32()).cast(pa.int32()).cast(pa.float64())
        return to_numpy(days, null=math.nan)
    except pa.ArrowInvalid:  # the thirtieth of February
        return np.array([_days(text) for text in iso.to_pylist()], dtype=float)


def is_written(text: str, form: str) -> bool:
    """Return whether a text resembles a date of a form: a quick first test."""
    return re.match(_pattern(form), text, re.ASCII) is not None


@cache
def _pattern(form: str) -> str:
    match = DATE_FORM.fullmatch(form)
    assert match is not None
    first, separator, second, _, third = match.groups()
    # Without separators the digits are counted; ISO has two of month and day.
    digits = "[0-9]{1,2}" if separator and form != ISO else "[0-9]{2}"
    parts = [_PARTS[part].replace("%s", digits) for part in (first, second, third)]
    return f"^{re.escape(separator).join(parts)}{_TIME}$"


def _days(text: str | None) -> float:
    try:
        return math.nan if text is None else float((date.fromisoformat(text) - EPOCH).days)
    except ValueError:
        return math.nan
