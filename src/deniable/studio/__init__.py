"""A page on this machine: see what a mechanism promises and what it costs, and make the release.

A *draft* is all that somebody has in mind: a schema, wishes, and what they compare; the page is a
function of it. Numbers come from the library, in a process of their own that is ended when the
wish changes (`working`); what is made is made by the command line (`making`).
docs/studio.md is for who uses it.
"""

from importlib.util import find_spec

from deniable.collect import check_installed as check_collecting
from deniable.errors import InputError


def check_installed() -> None:
    """Do nothing if what the page needs is installed."""
    check_collecting()
    if find_spec("tomli_w") is None:
        raise InputError(
            "the studio needs tomli_w, which is not installed: pip install 'deniable[web]'"
        )
