"""Exports: files, and two programs that make the same mechanism."""

import pprint
import shlex
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import tomli_w

from deniable.errors import InputError
from deniable.schema import Schema
from deniable.studio.request import DraftRequest


def options(request: DraftRequest) -> list[str]:
    """Return a request as options of ``deniable design``."""
    schema = Schema.from_plain(request.schema)
    if [schema.names[i] for i in schema.protected] == list(request.responses):
        return []  # no design is needed
    return [f"--{name.replace('_', '-')}={value}" for name, value in request.arguments.items()]


def schema_file(request: DraftRequest) -> str:
    """Return the schema, with the levels and importances of the request."""
    return tomli_w.dumps(request.schema)


def shell_script(request: DraftRequest) -> str:
    """Return a program for the shell that makes mechanism.json where it is started."""
    files = {"schema.toml": schema_file(request)}
    command = shlex.join(["deniable", "design", *options(request), "--output=mechanism.json"])
    command += ' --schema="$given"/schema.toml'
    for name, file in request.responses.items():
        files["matrix.json"] = _matrix(file)
        command += f' --matrix={shlex.quote(name)}="$given"/matrix.json'
    lines = [
        "#!/bin/sh",
        "# Makes mechanism.json in the current folder. Made by deniable studio.",
        "set -eu",
        "given=$(mktemp -d)",
        "trap 'rm -r \"$given\"' EXIT",
    ]
    for name, content in files.items():
        end = f"END OF {name}"
        lines += [f"cat >\"$given\"/{name} <<'{end}'", content.rstrip("\n"), end]
    return "\n".join([*lines, command]) + "\n"


def _matrix(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{file} cannot be read any more") from None


_PROGRAM = '''"""Makes mechanism.json in the current folder. Made by deniable studio."""

import tomllib
from pathlib import Path

import deniable
from deniable.statement.record import mechanism_to_plain, to_json

schema = deniable.Schema.from_plain(tomllib.loads({schema}))
{found}
Path("mechanism.json").write_bytes(to_json(mechanism_to_plain(design)))
'''


def python_program(request: DraftRequest) -> str:
    """Return a program in Python that makes mechanism.json where it is started."""
    arguments = "".join(f", {name}={value!r}" for name, value in request.arguments.items())
    found = f"design = deniable.design(schema{arguments})"
    for name, file in request.responses.items():
        content = _literal(_matrix(file))
        arguments = arguments if options(request) else ""
        found = _WITH_MATRIX.format(name=name, content=content, arguments=arguments)
    return _PROGRAM.format(schema=_literal(schema_file(request)), found=found)


def _literal(text: str) -> str:
    return f"(\n{pprint.pformat(text, width=96)}\n)"


_WITH_MATRIX = """
from tempfile import TemporaryDirectory

from deniable.design.matrices import with_matrix_from_file

with TemporaryDirectory() as folder:
    file = Path(folder, "matrix.json")
    file.write_text({content}, encoding="utf-8")
    schema, name, law = with_matrix_from_file(schema, {name!r}, file)
design = deniable.design(schema{arguments}, matrices={{name: law}})
"""


def questionnaire(schema: Schema, form: Mapping[str, str]) -> dict[str, Any]:
    """Return the questionnaire of a study, as plain values: its questions are the schema's."""
    try:
        closes = date.fromisoformat(form.get("closes", ""))
    except ValueError:
        raise InputError("the study closes on a date, written as 2027-12-31") from None
    columns = [column for attribute in schema.attributes for column in attribute.columns]
    return {
        "title": form.get("title", ""),
        "purpose": form.get("purpose", ""),
        "contact": form.get("contact", ""),
        "closes": closes,
        "respondents": "open" if form.get("open") else "invited",
        "consent": form.get("consent", "").splitlines(),
        "question": [
            {"attribute": column.name, "text": column.question or column.name} for column in columns
        ],
    }
