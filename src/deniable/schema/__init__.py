"""Schema of a table: attributes to protect, their categories, and unchanged columns.

A domain is declared, never read off the data: the categories that occur are themselves information
about the people in the table. Labels become codes (0 … a−1, in the declared order) when a table is
read, and codes become labels when one is written; other rooms work on codes.
"""

from deniable.schema.attribute import (
    BLANKS,
    MAX_CATEGORIES,
    Attribute,
    category_text,
    interval_labels,
)
from deniable.schema.file_format import FileFormat
from deniable.schema.schema import Schema, Variable, kept_undeclared_text

__all__ = [
    "BLANKS",
    "MAX_CATEGORIES",
    "Attribute",
    "FileFormat",
    "Schema",
    "Variable",
    "category_text",
    "interval_labels",
    "kept_undeclared_text",
]
