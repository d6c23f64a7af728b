"""What messages of the package call arguments, said as options of a command."""

import re

_MARKED = re.compile(
    r"(?<!\w)'[^'\n]*'(?!\w)|"  # what a user wrote, such as a formula
    r"`(?:deniable [a-z ]+ (--[a-z-]+)|(?:schema\.file\.)?([a-z_]+(?: = [A-Z][a-z]+)?))`"
)

_OTHER_NAMES = {
    "overwrite": "--force",
    "also": "--as",
    "plan": "--mechanism",
    "matrices": "--matrix",
    "randomized = True": "--randomized",
    "header = True": "--header",
    "header = False": "--no-header",
}
"""Options that have another name than the argument of the Python interface."""


def as_typed(message: str) -> str:
    """Return a message with the options that are meant in place of what is between backticks.

    >>> as_typed("it exists; replace it with `overwrite`, or go on by `deniable share --resume`")
    'it exists; replace it with --force, or go on by --resume'
    >>> as_typed("say with `schema.file.separator` which, or `schema.file.header = False`")
    'say with --separator which, or --no-header'
    >>> as_typed("formula 'y ~ `sex`' needs a release's `prior`")
    "formula 'y ~ `sex`' needs a release's --prior"
    """

    def option(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[1] or found[0]
        return _OTHER_NAMES.get(found[2], "--" + found[2].replace("_", "-"))

    message = message.replace('`missing="NA"`', 'missing = "category:NA"')  # as in a schema's file
    return _MARKED.sub(option, message)
