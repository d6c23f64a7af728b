"""The exception for users' mistakes, and the notice.

A message has arguments of the Python interface in backticks, `overwrite`, and actions of the
command line as commands, `deniable share --resume`. The command line prints them as options
(:mod:`deniable.cli.typed`).
"""

import logging
import warnings


class InputError(ValueError):
    """Unusable input.

    The message is one clear sentence on the fault, its place and its fix. By default it never
    contains a table's value, which is confidential, while messages end up in logs. The command line
    prints it to stderr and exits with status 2.
    """


class Notice(UserWarning):
    """A warning that does not stop the work; one or two sentences."""


def notify(sentence: str) -> None:
    """Issue a notice during a release; under a filter that turns warnings into exceptions it is
    logged instead."""
    try:
        warnings.warn(sentence, Notice, stacklevel=3)
    except Notice:
        logging.getLogger("deniable").warning(sentence)
