"""Local collection: every respondent's browser randomizes the whole record.

A *study* freezes a mechanism, its questions and texts. The *page* draws in the respondent's
browser, by the code in `browser/`; the *collector* takes what was drawn and sees nothing else; the
*store* holds it. docs/collect.md is for who runs a study, docs/drawing-protocol.md specifies the
draw.
"""

from importlib.util import find_spec

from deniable.errors import InputError

NEEDED = ("alembic", "httptools", "segno", "sqlalchemy", "starlette", "uvicorn")
"""What the extra `web` installs, and nothing else of deniable needs."""


def check_installed() -> None:
    """Do nothing if what collecting needs is installed."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise InputError(
            f"collecting needs {missing[0]}, which is not installed: pip install 'deniable[web]'"
        )
