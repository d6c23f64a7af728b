"""Lists of column names in text, and labels of set-valued categories."""

import re
from collections.abc import Iterable, Sequence

from deniable.errors import InputError

_NAME = re.compile(r'\s*("(?:[^"]|"")*"|[^,]*?)\s*(?:,|$)')


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated list, without blanks around them.

    A name in double quotes, as in CSV, may contain commas, and blanks at its ends.
    """
    names = []
    for name in _NAME.findall(text):
        quoted = len(name) > 2 and name[0] == name[-1] == '"'
        names.append(name[1:-1].replace('""', '"') if quoted else name)
    return [name for name in names if name]


def names_of(given: Sequence[str], argument: str) -> tuple[str, ...]:
    """Return names of columns, given as a list or as one text for :func:`split_names`.

    >>> names_of("race,hhi", "of"), names_of(["a,b"], "of")
    (('race', 'hhi'), ('a,b',))
    """
    if isinstance(given, str):
        return tuple(split_names(given))
    names = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{argument} is the name of a column or a list of names, not {type(given).__name__}"
        )
    return names


def set_mark(categories: Sequence[str]) -> str:
    """Return the separator between a set's number and a category in a set's label, "2:single"; as
    many colons as needed for no such label to be a category.
    """
    mark, known = ":", set(categories)
    while any(f"{mark}{name}" in text for text in known for name in known):
        mark += ":"
    return mark
