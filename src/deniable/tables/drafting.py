"""A first draft of a schema, read off a table: to be replaced by the public codebook."""

import json
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deniable.errors import InputError
from deniable.tables import open_table
from deniable.tables.reading import column_names
from deniable.tables.rows import groups_of

WARNING = (
    "WARNING: this draft was read off the data. Which categories occur, and how large a number "
    "gets, is itself information about the people in the table, and a schema is published. Replace "
    "every list of categories and every bin edge by the public codebook before you release anything"
)
MOST_CATEGORIES = 50
"""A column with more distinct values is left for a person to decide about."""

_BINS = 5


def draft_schema(source: Any) -> str:
    """Return a schema in TOML with every column of a table in it.

    Columns with few distinct values become categories, numeric columns with many become bins over
    the range seen, and others are listed as comments to be kept, declared or dropped.

    Raises:
        InputError: if the table cannot be read.
    """
    if source == "-":
        raise InputError("a schema is drafted from a file, which is read twice; save the input")
    names = column_names(source)
    seen = {name: _Seen() for name in names}
    with open_table(source, [], names) as reader:
        for batch in reader:
            for name, column in seen.items():
                column.add(groups_of(batch.kept[name])[1])
    parts = ["# " + line for line in textwrap.wrap(WARNING, 96)]
    parts.append(f"title = {_quoted(Path(reader.table).stem)}")
    for name, column in seen.items():
        parts += ["", *_declaration(name, column)]
    return "\n".join(parts) + "\n"


class _Seen:
    """What has been seen of a column: its distinct values while they are few, then its range."""

    def __init__(self) -> None:
        self.values: set[str] = set()
        self.missing = False
        self.many = False
        self.range: tuple[float, float] | None = (math.inf, -math.inf)

    def add(self, texts: Sequence[str]) -> None:
        present = {text for text in texts if text}
        self.missing |= len(present) < len(texts)
        if self.range is not None and present:
            try:
                numbers = [float(text) for text in present]
            except ValueError:
                self.range = None
            else:
                low, high = self.range
                self.range = min(low, *numbers), max(high, *numbers)
        self.many |= len(self.values | present) > MOST_CATEGORIES
        self.values = set() if self.many else self.values | present


def _declaration(name: str, column: _Seen) -> list[str]:
    if not column.many and len(column.values) < 2:
        return [f"# column {_quoted(name)} has fewer than two values: leave it out"]
    lines = ["[[attribute]]", f"name = {_quoted(name)}"]
    if not column.many:
        listed = ", ".join(_quoted(value) for value in sorted(column.values, key=_natural))
        lines.append(f"categories = [{listed}]")
    elif column.range is not None and all(map(math.isfinite, column.range)):
        low, high = column.range
        edges = [f"{low + (high - low) * j / _BINS:.6g}" for j in range(1, _BINS)]
        lines.append(f"bins = [{low!r}, {', '.join(edges)}, {high!r}]  # put public edges here")
    else:
        return [
            f"# column {_quoted(name)} has over {MOST_CATEGORIES} distinct texts: an identifier?",
            f"# Declare coarser categories; or keep = [{_quoted(name)}], protected by nothing; or",
            "# leave it out with --drop-other-columns",
        ]
    if column.missing:
        lines.append('missing = "category:NA"')
    return lines


def _quoted(text: str) -> str:
    # JSON's escapes are TOML's, but for the ones JSON does not need: DEL must be written out.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _natural(value: str) -> tuple[bool, float, str]:
    try:
        return (False, float(value), value)
    except ValueError:
        return (True, 0.0, value)
