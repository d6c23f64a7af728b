"""The one exception that a user's mistake raises, and the one notice."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_OPTION = re.compile(r"(?<![\w-])(?:deniable share )?--([a-z]+(?:-[a-z]+)*)")
_IN_PYTHON = {
    "drop-other-columns": "drop_other_columns",
    "accept-drafted": "accept_drafted",
    "force": "overwrite",
    "jobs": "jobs",
    "ledger": "ledger",
    "population": "population",
    "mechanism": "plan",
    "anyway": "anyway",
    "matrix": "matrices",
    "lambda": "attenuation",
    "strength": "strength",
    "preserve": "preserve",
    "epsilon": "epsilon",
    "attribute-epsilon": "attribute_epsilon",
    "rows": "rows",
    "error": "error",
    "pairs": "pairs",
    "broad": "broad",
    "method": "method",
    "separator": "schema.file.separator",
    "decimal": "schema.file.decimal",
    "encoding": "schema.file.encoding",
    "dates": "schema.file.dates",
    "columns": "schema.file.columns",
    "header": "schema.file.header = True",
    "no-header": "schema.file.header = False",
    "resume": "deniable share --resume",
    "show-values": "deniable share --show-values",
    "counts": "deniable estimate --counts",
}
"""What an option of a command is in Python: an argument, or what stands in the schema; where it is
nothing, the command that has it."""

_typed = False


def in_their_terms(sentence: str) -> str:
    """Return a sentence that names options: as they are typed if a command runs, else with what
    they are in Python.

    >>> in_their_terms("with --pairs 0.02 every pair can be estimated")
    'with pairs 0.02 every pair can be estimated'
    """
    return sentence if _typed else _OPTION.sub(lambda o: _IN_PYTHON.get(o[1], o[0]), sentence)


class InputError(ValueError):
    """What the user gave cannot be used.

    The message is one clear sentence that says what is wrong, where it is, and how to mend it. By
    default it never contains a value from a table: an error message ends up in logs, and the
    value is what is to be protected. The command line prints it to stderr and exits with status 2.

    >>> str(InputError("it exists; replace it with --force, or continue with --resume"))
    'it exists; replace it with overwrite, or continue with deniable share --resume'
    """

    def __str__(self) -> str:
        return in_their_terms(super().__str__())


class Notice(UserWarning):
    """Something that a user should know, though the work goes on; one sentence or two."""

    def __str__(self) -> str:
        return in_their_terms(super().__str__())


@contextmanager
def options_as_typed() -> Iterator[None]:
    """Let messages name options while a command runs.

    >>> with options_as_typed():
    ...     str(InputError("it exists; replace it with --force"))
    'it exists; replace it with --force'
    """
    global _typed
    before, _typed = _typed, True
    try:
        yield
    finally:
        _typed = before
