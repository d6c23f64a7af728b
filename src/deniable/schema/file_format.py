"""Format of a table in a text file: separator, encoding and the like."""

import codecs
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from deniable._checks import first_duplicate
from deniable.errors import InputError

SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma"}
"""Separators detected in a file, with their names."""

DATE_FORM = re.compile(
    r"(?=.*2025)(?=.*12)(?=.*31)(2025|12|31)([./-]?)(2025|12|31)(\2)(2025|12|31)"
)
"""The last day of 2025 in the order and with the separators of a file's dates."""


@dataclass(frozen=True)
class FileFormat:
    """Format of a table in a text file. None: detected from the file if unambiguous.

    Args:
        separator: field separator: , ; | tab or another character (default: detected).
        decimal: decimal separator of numbers: . or a comma.
        encoding: encoding of the text (default: UTF-8): latin-1, utf-16-le, …
        header: whether the first row has the columns' names; if not, it is data.
        columns: names of the columns of a file without a header.
        dates: format of dates, by the example of the last day of 2025: 31.12.2025 or 12/31/2025.
        sheet: sheet of a workbook with the table.

    Examples:
        >>> FileFormat(separator="tab").separator
        '\\t'
        >>> FileFormat(separator=";", decimal=",").to_plain()
        {'separator': ';', 'decimal': ','}
        >>> FileFormat(separator=";").with_changes(FileFormat(encoding="latin-1")).encoding
        'latin-1'
        >>> FileFormat(columns=("age", "sex")).has_header
        False
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    columns: tuple[str, ...] = ()
    dates: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if self.separator in ("tab", "\\t"):
            object.__setattr__(self, "separator", "\t")
        if self.separator is not None and (
            len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n'
        ):
            raise InputError("the separator must be a single character, such as ; or tab")
        if self.decimal not in (None, ".", ","):
            raise InputError("the decimal point must be . or ,")
        if self.dates is not None and not DATE_FORM.fullmatch(self.dates):
            raise InputError(
                "dates are given as the last day of 2025 in their form, such as 31.12.2025, "
                f"12/31/2025 or 20251231, not '{self.dates}'"
            )
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except (LookupError, UnicodeError):
                raise InputError(
                    f"there is no encoding '{self.encoding}'; use for example utf-8, utf-16, "
                    "latin-1 or windows-1252"
                ) from None
        if "" in self.columns:
            raise InputError("a column has an empty name; give every column one")
        if (twice := first_duplicate(self.columns)) is not None:
            raise InputError(f"two columns have the name '{twice}'; give every column its own")

    @property
    def has_header(self) -> bool:
        """Whether the first row has the names."""
        return not self.columns if self.header is None else self.header

    def with_changes(self, changes: "FileFormat") -> "FileFormat":
        """Return the format with the set fields of another one."""
        return replace(self, **{k: v for k, v in asdict(changes).items() if v not in (None, ())})

    def to_plain(self) -> dict[str, Any]:
        """Return the set fields, as in a schema's ``[file]``."""
        plain = {key: value for key, value in asdict(self).items() if value not in (None, ())}
        if self.columns:
            plain["columns"] = list(self.columns)
        return plain
