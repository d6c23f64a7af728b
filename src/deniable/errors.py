"""The one exception that a user's mistake raises, and the one notice.

A message names an argument of the Python interface between backticks, `overwrite`, and what only a
command can do as the command, `deniable share --resume`. The command line says them as they are
typed there (:mod:`deniable.cli.typed`).
"""

import logging
import warnings


class InputError(ValueError):
    """What the user gave cannot be used.

    The message is one clear sentence that says what is wrong, where it is, and how to mend it. By
    default it never contains a value from a table: an error message ends up in logs, and the
    value is what is to be protected. The command line prints it to stderr and exits with status 2.
    """


class Notice(UserWarning):
    """Something that a user should know, though the work goes on; one sentence or two."""


def notify(sentence: str) -> None:
    """Issue a notice in the course of a release, which no filter ends that makes exceptions of
    warnings: there it is logged."""
    try:
        warnings.warn(sentence, Notice, stacklevel=3)
    except Notice:
        logging.getLogger("deniable").warning(sentence)
