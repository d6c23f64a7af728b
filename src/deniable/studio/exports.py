"""What can be taken along: files, and two programs that make the same mechanism again."""

import pprint
import shlex
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import tomli_w

from deniable.report.rendering import render
from deniable.studio.wish import Wish

_OPTIONS = {
    "epsilon": "--epsilon",
    "method": "--method",
    "given_rest": "--given-rest",
    "pair_floor": "--pair-floor",
    "pairs": "--pairs",
    "asked": "--asked",
    "attenuation": "--lambda",
}


def options(wish: Wish) -> list[str]:
    """Return a wish as options of ``deniable design``."""
    given = [f"{_OPTIONS[name]}={value}" for name, value in wish.arguments.items()]
    return given + [f"--matrix={name}={file}" for name, file in wish.responses.items()]


def schema_file(wish: Wish) -> str:
    """Return the schema, with the levels and importances that are wished."""
    return tomli_w.dumps(wish.schema)


def shell_script(wish: Wish) -> str:
    """Return a program for the shell that makes mechanism.json where it is started."""
    command = shlex.join(["deniable", "design", *options(wish), "--output=mechanism.json"])
    lines = [
        "#!/bin/sh",
        "# Makes mechanism.json in the current folder. Made by deniable studio.",
        "set -eu",
        "schema=$(mktemp)",
        "trap 'rm -f \"$schema\"' EXIT",
        "cat >\"$schema\" <<'END OF THE SCHEMA'",
        schema_file(wish).rstrip(),
        "END OF THE SCHEMA",
        f'{command} --schema "$schema"',
    ]
    return "\n".join(lines) + "\n"
