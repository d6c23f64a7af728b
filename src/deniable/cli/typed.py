"""Conversion of argument names in messages into options of a command."""

import re

_MARKED = re.compile(
    r"(?<!\w)'[^'\n]*'(?!\w)|"  # a user's text, such as a formula
    r"`(?:deniable [a-z ]+ (--[a-z-]+)|(?:schema\.file\.)?([a-z_]+(?: = [A-Z][a-z]+)?))`"
)

_OTHER_NAMES = {
    "overwrite": "--force",
    "also": "--as",
    "plan": "--mechanism",
    "means": "--mean",
    "matrices": "--matrix",
    "plan_by": "--mechanism-by",
    "randomized = True": "--randomized",
    "header = True": "--header",
    "header = False": "--no-header",
}
"""Options whose names differ from the arguments of the Python interface."""


def option_of(name: str) -> str:
    """Return the option of an argument."""
    return _OTHER_NAMES.get(name, "--" + name.replace("_", "-"))


def as_typed(message: str) -> str:
    """Return a message with options in place of argument names in backticks."""

    def option(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[1] or found[0]
        return option_of(found[2])

    message = message.replace('`missing="NA"`', 'missing = "category:NA"')  # as in a schema's file
    return _MARKED.sub(option, message)
