"""The one exception that a user's mistake raises."""

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_OPTION = re.compile(r"(?:deniable share )?--([a-z]+(?:-[a-z]+)*)")
_ARGUMENTS = {
    "mechanism": "plan",
    "force": "overwrite",
    "resume": "deniable share --resume",
    "make-bed": "--make-bed",
    "set-all-var-ids": "--set-all-var-ids",
}
"""What options of a command are in Python, where they are not arguments of the same name."""


class InputError(ValueError):
    """What the user gave cannot be used.

    The message is one clear sentence that says what is wrong, where it is, and how to mend it. By
    default it never contains a value from a table: an error message ends up in logs, and the
    value is what is to be protected. The command line prints it to stderr and exits with status 2.
    """


class Notice(UserWarning):
    """Something that a user should know, though the work goes on; one sentence or two."""


def in_terms_of_python(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function whose messages speak of arguments, not of options of a command.

    >>> @in_terms_of_python
    ... def refuse() -> None:
    ...     raise InputError("it exists; replace it with --force, or continue with --resume")
    >>> refuse()
    Traceback (most recent call last):
    deniable.errors.InputError: it exists; replace it with overwrite, or continue with deniable \
share --resume
    """

    def argument(match: re.Match[str]) -> str:
        return _ARGUMENTS.get(match[1], match[1].replace("-", "_"))

    @wraps(function)
    def told(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except InputError as error:
            raise InputError(_OPTION.sub(argument, str(error))) from None

    return told
