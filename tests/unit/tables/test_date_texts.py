"""Dates are read as the standard library reads them, and nothing that is none is taken for one."""

import re
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

from deniable.schema.attribute import EPOCH
from deniable.tables.date_texts import FORMS, ISO, days_written, is_written

DAYS = [date(1899, 12, 31) + timedelta(days=997 * i) for i in range(80)]


def written(day: date, form: str, width: int = 2) -> str:
    parts = {"2025": f"{day.year:04}", "12": f"{day.month:0{width}}", "31": f"{day.day:0{width}}"}
    return re.sub("2025|12|31", lambda found: parts[found[0]], form)


@pytest.mark.parametrize("form", [*FORMS, "20251231", "31122025"])
def test_dates_of_every_form_are_the_days_that_they_are(form: str) -> None:
    expected = [(day - EPOCH).days for day in DAYS]
    for end in ("", " 10:30", "T10:30:00.5+01:00"):
        texts = pa.array([written(day, form) + end for day in DAYS])
        assert days_written(texts, form).tolist() == expected
        assert all(is_written(text, form) for text in texts.to_pylist())
    if form != ISO and len(form) == 10:
        short = pa.array([written(day, form, width=1) for day in DAYS])
        assert days_written(short, form).tolist() == expected


@pytest.mark.parametrize(
    "text", ["", "31.13.2025", "30.02.2025", "31.12.25", "1.2.3.2025", "x", "31.12.2025x", None]
)
def test_what_is_no_date_is_none_and_spoils_no_other(text: str | None) -> None:
    found = days_written(pa.array(["01.02.1970", text, "02.01.1970"], pa.large_string()), FORMS[1])
    assert found[[0, 2]].tolist() == [31.0, 1.0]
    assert np.isnan(found[1])


@pytest.mark.parametrize("text", ["", "31.12.25", "1.2.3.2025", "x", "2025", "31.12.2025x"])
def test_what_looks_like_no_date_is_told_at_a_glance(text: str) -> None:
    assert not any(is_written(text, form) for form in FORMS)
