"""Lists of column names as people type them, and the texts of answers that name a set."""

import re
from collections.abc import Iterable, Sequence

from deniable.errors import InputError

_NAME = re.compile(r'\s*("(?:[^"]|"")*"|[^,]*?)\s*(?:,|$)')


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated list, blanks around them removed.

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
    """Return what stands between the number of a list and a category in the text of an answer that
    names a set, "2:single"; as many colons as it takes for no such text to be a category.

    >>> set_mark(["single", "2:single"])
    '::'
    """
    mark, known = ":", set(categories)
    while any(f"{mark}{name}" in text for text in known for name in known):
        mark += ":"
    return mark
