"""pram: post-randomization of a whole table into a folder to publish."""

import shlex
from pathlib import Path
from typing import Annotated

from deniable.cli import console
from deniable.cli.arguments import (
    SHARED,
    STRENGTH,
    AsJson,
    InputTable,
    InsecureSeed,
    read_options,
)
from deniable.cli.fields import Typed, from_fields
from deniable.cli.releasing import bits_from, repeatable
from deniable.design.request import StrengthRequest
from deniable.release.publication import Publication
from deniable.schema.file_format import FileFormat


@from_fields
def pram(
    source: InputTable,
    /,
    *,
    schema: Annotated[Path, SHARED],
    output: Annotated[Path, SHARED],
    strengths: Typed[StrengthRequest],
    invariant: Annotated[bool, STRENGTH] = False,
    alpha: Annotated[float, STRENGTH] = 1.0,
    by: Annotated[str | None, STRENGTH] = None,
    per_stratum: Annotated[Path | None, STRENGTH] = None,
    numeric: Annotated[str | None, STRENGTH] = None,
    publish: Typed[Publication],
    file: Typed[FileFormat],
    insecure_seed: InsecureSeed = None,
    as_json: AsJson = False,
) -> None:
    """
    Args:
        schema: Schema file (TOML).
        output: Folder to make.
        invariant: Keep the table's frequencies in expectation. Uses the data: no differential
            privacy.
        alpha: With --invariant: a value is unchanged with probability 1 - alpha.
        by: Kept column whose values form strata with matrices of their own.
        per_stratum: JSON file with strengths of single strata: {"south": {"attenuation": 0.5},
            ...}.
        numeric: Columns of numbers to pull towards their mean, name=0.9,...: no differential
            privacy; the schema must not declare or keep them.
    """
    from deniable.cli import options
    from deniable.release import curator
    from deniable.release.checking import Check, Problems
    from deniable.schema import Schema
    from deniable.tables.reading import read_twice

    problems = Problems()
    chosen = Schema.from_toml(schema)
    names = [chosen.names[i] for i in chosen.protected]
    treatment = curator.Treatment(
        chosen,
        strengths.read(names),
        by=by,
        strata={} if per_stratum is None else options.per_stratum(per_stratum, names),
        invariant=invariant,
        alpha=alpha,
        numeric={} if numeric is None else options.numbers_by_name(numeric, None, "--numeric"),
    )
    command = _without_factors(repeatable([source], schema, output))
    publication = read_options(publish, file, problems, command, seeded=insecure_seed is not None)
    check = Check(chosen, output, publication, problems, numeric=list(treatment.numeric))
    with problems.at("ledger"):
        curator.check_budget(treatment, publication, output)
    check.refuse_before_rows(source)
    with read_twice(source) as table:
        with console.progress("Looking at the data") as advance:
            check.look(table, advance)
        problems.refuse()
        bits = bits_from(insecure_seed)
        with console.progress("Reading") as advance:
            record = curator.pram(table, treatment, output, publication, bits, advance)
    if as_json:
        console.print_json(record)
        return
    console.show_release(record)
    promised = record["guarantee"]
    console.show_readable(record["readable"], promised["epsilon"], promised["person"])
    console.show_standing(record, publication.people)
    console.say(f"Read {output / 'report.html'} before you publish {output}")


def _without_factors(command: str) -> str:
    """Return the command without the λ of numeric columns, which would reveal their numbers."""
    words = shlex.split(command)
    shown = []
    for before, word in zip(["", *words], words, strict=False):
        option, equals, value = word.partition("=")
        if before == "--numeric":
            word = _hidden(word)
        elif option == "--numeric" and equals:
            word = f"--numeric={_hidden(value)}"
        shown.append(word)
    return shlex.join(shown)


def _hidden(text: str) -> str:
    parts = [part.rpartition("=") for part in text.split(",")]
    return ",".join(f"{name}=?" if equals else value for name, equals, value in parts)
