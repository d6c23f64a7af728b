"""Studio: a local web page that shows the guarantee and cost of a mechanism, and makes releases.

A *draft* is a schema, a request, and requests to compare with; the page is a function of it. The
library computes in a separate process, stopped when the request changes (`working`); the command
line makes files (`making`). User documentation: docs/studio.md.
"""

from importlib.util import find_spec

from deniable.collect import check_installed as check_collecting
from deniable.errors import InputError


def check_installed() -> None:
    """Raise unless the packages of the page are installed."""
    check_collecting()
    if find_spec("tomli_w") is None:
        raise InputError(
            "the studio needs tomli_w, which is not installed: pip install 'deniable[web]'"
        )
