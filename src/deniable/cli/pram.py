"""pram: the curator's mode, a whole table in and a folder to publish out."""

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from deniable.cli.app import app, print_json
from deniable.cli.arguments import (
    INPUT,
    AsJson,
    DropOthers,
    Force,
    InsecureSeed,
    Person,
    ShowValues,
    Shuffle,
    StrengthOptions,
)
from deniable.cli.releasing import bits_from, repeatable


@app.command
def pram(
    source: Annotated[str, Parameter(name="INPUT", allow_leading_hyphen=True, help=INPUT)],
    /,
    *,
    schema: Annotated[Path, Parameter(help="Schema file (TOML).")],
    output: Annotated[Path, Parameter(help="Folder to make.")],
    request: StrengthOptions | None = None,
    invariant: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Keep the table's frequencies in expectation. Uses the data: no differential "
            "privacy.",
        ),
    ] = False,
    alpha: Annotated[
        float,
        Parameter(help="With --invariant: a value is left as it is with probability 1 - alpha."),
    ] = 1.0,
    by: Annotated[
        str | None,
        Parameter(help="Kept column whose values form strata with matrices of their own."),
    ] = None,
    per_stratum: Annotated[
        Path | None,
        Parameter(help='JSON file with wishes of single strata: {"south": {"lambda": 0.5}, ...}.'),
    ] = None,
    numeric: Annotated[
        str | None,
        Parameter(
            help="Columns of numbers to pull towards their mean, name=0.9,...: no differential "
            "privacy; the schema must not declare or keep them."
        ),
    ] = None,
    shuffle: Shuffle = False,
    person: Person = None,
    drop_other_columns: DropOthers = False,
    force: Force = False,
    show_values: ShowValues = False,
    insecure_seed: InsecureSeed = None,
    as_json: AsJson = False,
) -> None:
    """Randomize a whole collected table (post-randomization) and write a folder to publish.

    Example: deniable pram insurance.csv --schema insurance.toml \\
    --lambda 0.8 --invariant --output pram
    """
    from deniable.cli import console, options, strength_options
    from deniable.release import curator as expost
    from deniable.release import release
    from deniable.schema import Schema

    release.check_output(output, overwrite=force)
    chosen = Schema.from_toml(schema)
    names = [chosen.names[i] for i in chosen.protected]
    treatment = expost.Treatment(
        chosen,
        (request or StrengthOptions()).wishes(names),
        by=by,
        strata={} if per_stratum is None else strength_options.per_stratum(per_stratum, names),
        invariant=invariant,
        alpha=alpha,
        numeric=options.named_numbers(numeric, "--numeric"),
    )
    how = release.Options(
        shuffle=shuffle,
        person=person,
        drop_other_columns=drop_other_columns,
        overwrite=force,
        show_values=show_values,
        command=_without_factors(repeatable(source, schema, output)),
    )
    with console.progress("Reading") as advance:
        record = expost.pram(source, treatment, output, how, bits_from(insecure_seed), advance)
    if as_json:
        print_json(record)
        return
    console.show_release(record)
    console.say(f"Read {output / 'report.html'} before you publish {output}")


def _without_factors(command: str) -> str:
    """Return the command without the λ of numbers: with them every number could be computed."""
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
