"""Local collection: every respondent's browser randomizes the whole record.

A *study* freezes a mechanism, its questions and texts. The *page* draws in the respondent's
browser, with the code in `browser/`; the *collector* accepts randomized records only; the *store*
contains them. docs/collect.md is the stewards' guide, docs/drawing-protocol.md specifies the draw.
"""

from importlib.util import find_spec

from deniable.errors import InputError

NEEDED = ("httptools", "segno", "sqlalchemy", "starlette", "uvicorn")
"""Packages of the extra `web`."""


def check_installed() -> None:
    """Raise unless the packages of the extra `web` are installed."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise InputError(
            f"collecting needs {missing[0]}, which is not installed: pip install 'deniable[web]'"
        )
