"""Lists of column names as people type them."""

import re

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
