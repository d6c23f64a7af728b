"""What can be taken along: files, and two programs that make the same mechanism again."""

import pprint
import shlex
from collections.abc import Mapping
from datetime import date
from typing import Any

import tomli_w

from deniable.errors import InputError
from deniable.schema import Schema
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


_PROGRAM = '''"""Makes mechanism.json in the current folder. Made by deniable studio."""

import tomllib
from pathlib import Path

import deniable
from deniable.design.record import mechanism_to_plain, to_json

schema = deniable.Schema.from_plain(tomllib.loads(
{schema}
))
{found}
Path("mechanism.json").write_bytes(to_json(mechanism_to_plain(design)))
'''


def python_program(wish: Wish) -> str:
    """Return a program in Python that makes mechanism.json where it is started."""
    arguments = "".join(f", {name}={value!r}" for name, value in wish.arguments.items())
    if not wish.responses:
        found = f"design = deniable.design(schema{arguments})"
    else:
        found = _WITH_MATRICES.format(files=wish.responses, arguments=arguments)
    return _PROGRAM.format(schema=pprint.pformat(schema_file(wish), width=96), found=found)


_WITH_MATRICES = """
from deniable.design.matrices import merged_for, response_from_file, with_responses, without

responses = {{}}
for name, file in {files!r}.items():
    schema, name = merged_for(schema, name, Path(file))
    attribute = schema.attributes[schema.position(name)]
    responses[name] = response_from_file(Path(file), attribute)
rest = without(schema, responses)
design = with_responses(
    schema, None if rest is None else deniable.design(rest{arguments}), responses
)
"""


def questionnaire(schema: Schema, form: Mapping[str, str]) -> dict[str, Any]:
    """Return the questionnaire of a study, as plain values: its questions are the schema's.

    Raises:
        InputError: if the closing date is none.
    """
    try:
        closes = date.fromisoformat(form.get("closes", ""))
    except ValueError:
        raise InputError("the study closes on a date, written as 2027-12-31") from None
    columns = [column for i in schema.protected for column in schema.attributes[i].columns]
    questions = [
        {
            "attribute": column.name,
            "text": column.question or column.name,
            "labels": {code: column.label(code) for code in column.categories},
        }
        for column in columns
    ]
    return {
        "title": form.get("title") or schema.title or "A survey",
        "purpose": form.get("purpose", ""),
        "contact": form.get("contact", ""),
        "closes": closes,
        "respondents": "open" if form.get("open") else "invited",
        "consent": [form.get("consent", "")],
        "question": questions,
    }
