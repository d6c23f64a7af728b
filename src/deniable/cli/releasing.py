"""share and randomize: a table in, a table out."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from deniable.cli.app import app, print_json
from deniable.cli.arguments import (
    INPUT,
    AcceptDrafted,
    AsJson,
    Curve,
    DesignOptions,
    DropOthers,
    FileOptions,
    Force,
    InsecureSeed,
    LedgerOptions,
    PublishOptions,
    SchemaPath,
    ShowValues,
)
from deniable.cli.designing import account_of, find_design
from deniable.errors import InputError


@app.command
def share(
    source: Annotated[str, Parameter(name="INPUT", allow_leading_hyphen=True, help=INPUT)],
    /,
    *,
    schema: SchemaPath = None,
    mechanism: Annotated[
        Path | None,
        Parameter(help="Use this mechanism, instead of finding one for a schema."),
    ] = None,
    output: Annotated[Path, Parameter(help="Folder to make.")],
    request: DesignOptions | None = None,
    curve: Curve = False,
    publish: PublishOptions | None = None,
    as_json: AsJson = False,
) -> None:
    """Randomize a table and write a folder to publish: rows, record, codebook, report.

    Example: deniable share insurance.csv --schema insurance.toml \\
    --epsilon 4 --output release
    """
    from deniable.cli import console
    from deniable.design.worth import rows_saved_by_forms
    from deniable.ledger import Spending
    from deniable.mechanism.strata import Strata
    from deniable.release import release
    from deniable.tables.reading import read_twice

    publish = publish or PublishOptions()
    release.check_output(output, overwrite=publish.force)
    options = publish.options(repeatable(source, schema or mechanism or Path(), output))
    declared, result = _given(schema, mechanism, request)
    if options.population is not None:
        result = result or find_design(declared, request)
        options.population.check(Spending.of(Strata.one(result.mechanism)))
    with read_twice(source) as table:
        with console.progress("Looking at the data") as advance:
            release.look_at(table, declared, options, progress=advance)
        result = result or find_design(declared, request)
        if publish.force and output.exists():
            console.note(
                f"Replacing {output}: releases of the same people add up, and a copy of the old "
                "one that someone has still counts"
            )
        account = account_of(result, curve=curve)
        bits = bits_from(publish.insecure_seed)
        with console.progress("Randomizing") as advance:
            record = release.share(table, result, output, options, bits, advance, account)
    if as_json:
        print_json(record)
        return
    console.show_release(record)
    console.show_worth(record["worth"], record["guarantee"]["epsilon"])
    console.show_saving(record)
    console.show_curve(record)
    console.show_standing(record, options.population)
    if (times := rows_saved_by_forms(result)) is not None:
        console.say(
            f"With --method forms, {times:.2g} times fewer rows would give the same errors of "
            "shares; its rows are not complete."
        )
    console.say(f"Read {output / 'report.html'} before you publish {output}")


def _given(
    schema: Path | None, mechanism: Path | None, request: DesignOptions | None
) -> tuple[Any, Any]:
    """Return the schema, and the design if there is one already."""
    from deniable.design.record import read_design
    from deniable.schema import Schema

    if (schema is None) == (mechanism is None):
        raise InputError("give either --schema FILE with levels or strengths, or --mechanism FILE")
    if schema is not None:
        return Schema.from_toml(schema), None
    assert mechanism is not None
    if request is not None and request != DesignOptions():
        raise InputError(
            "the mechanism is given, so there is nothing left to design; leave out levels, "
            "strengths and the method"
        )
    design = read_design(mechanism)
    return design.mechanism.schema, design


def repeatable(source: str, schema: Path, output: Path) -> str:
    """Return the command line as typed, with the names of files instead of their paths."""
    names = {source: Path(source).name, str(schema): schema.name, str(output): output.name}

    def without_path(word: str) -> str:
        if "=" in word:
            option, _, value = word.partition("=")
            return f"{option}={without_path(value)}"
        if word.startswith("@"):
            return f"@{Path(word[1:]).name}"
        if os.sep in word and Path(word).exists():
            return Path(word).name
        return names.get(word, word)

    return shlex.join(["deniable", *map(without_path, _without_ledger(sys.argv[1:]))])


def _without_ledger(words: list[str]) -> list[str]:
    """Return the command without what is about the ledger, which stays with the data."""
    shown = []
    for before, word in zip(["", *words], words, strict=False):
        if not {before, word.partition("=")[0]} & {"--ledger", "--population"}:
            shown.append(word)
    return shown


@app.command
def randomize(
    source: Annotated[str, Parameter(name="INPUT", allow_leading_hyphen=True, help=INPUT)],
    /,
    *,
    mechanism: Annotated[Path, Parameter(help="mechanism.json, record.json, or its folder.")],
    output: Annotated[
        str,
        Parameter(allow_leading_hyphen=True, help="Output table, or - for CSV on standard output."),
    ] = "-",
    drop_other_columns: DropOthers = False,
    accept_drafted: AcceptDrafted = False,
    force: Force = False,
    show_values: ShowValues = False,
    insecure_seed: InsecureSeed = None,
    memory: LedgerOptions | None = None,
    file: FileOptions | None = None,
) -> None:
    """Randomize a table, or a single row, with a mechanism. Streams.

    Example: deniable randomize insurance.csv --mechanism release --output out.csv
    """
    from deniable.cli import console
    from deniable.design import record
    from deniable.release import release

    design = record.read_design(mechanism)
    population = (memory or LedgerOptions()).remember(seeded=insecure_seed is not None)
    with console.progress("Randomizing") as advance:
        release.randomize_table(
            source,
            design.mechanism,
            output,
            release.Options(
                drop_other_columns=drop_other_columns,
                accept_drafted=accept_drafted,
                overwrite=force,
                show_values=show_values,
                population=population,
                file_format=(file or FileOptions()).file_format(),
            ),
            bits_from(insecure_seed),
            advance,
        )


def bits_from(insecure_seed: int | None) -> Any:
    """Return where random bits come from, after a warning if that is a seed."""
    from deniable.cli import console
    from deniable.randomness import SeededRandomness, SystemRandomness

    if insecure_seed is None:
        return SystemRandomness()
    console.note(
        "NOT PRIVATE: the randomness comes from a seed; whoever knows it can undo the release"
    )
    return SeededRandomness(insecure_seed)
