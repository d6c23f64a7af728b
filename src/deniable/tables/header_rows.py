"""Header rows below the first, as exported by survey services."""

import re
from typing import Any

from deniable.errors import InputError
from deniable.tables.encode import is_text


def refuse_header_rows(table: str, batch: Any) -> None:
    """Raise if the first rows are further header rows of a survey service: Qualtrics exports three,
    SurveyMonkey two."""
    first = {
        name: column.slice(0, 2).to_pylist()
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if is_text(getattr(column.type, "value_type", column.type))
    }
    service = "Qualtrics"
    rows = max(
        (
            place
            for values in first.values()
            for place, text in enumerate(values, 1)
            if isinstance(text, str) and re.match(r"\s*\{\s*['\"]ImportId['\"]", text)
        ),
        default=0,
    )
    below = [values[0] for values in first.values() if values]
    nobody = any(
        re.fullmatch("respondent[ _]?id", name, re.IGNORECASE) and not batch.column(name)[0].as_py()
        for name in (batch.schema.names if batch.num_rows else ())
    )
    if not rows and ("Open-Ended Response" in below or ("Response" in below and nobody)):
        service, rows = "SurveyMonkey", 1
    if rows:
        which = "data row 1 is a header row" if rows == 1 else "data rows 1 and 2 are header rows"
        raise InputError(
            f"{table}: {which} of a {service} export, with the texts of questions or their "
            "identifiers, not answers; delete all header rows but the first from the table"
        )
