"""Options that several commands have, and classes of related options."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from deniable.cli import console, groups
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.cli.fields import Typed
    from deniable.estimate.source import Release
    from deniable.ledger import Population
    from deniable.mechanism.strata import Strata
    from deniable.release.checking import Problems
    from deniable.release.publication import Publication
    from deniable.release.release import Options
    from deniable.release.signing import Signer
    from deniable.schema import FileFormat
    from deniable.statement.account import Design

# Groups of options in the help. The text of an option is under Args of its command or class of
# options, or here if several commands have it.
SHARED = Parameter(group=groups.SHARED, negative=())
ASKED = Parameter(group=groups.ASKED, negative=())
SHOWN = Parameter(group=groups.SHOWN, negative=())
LEFT_OUT = Parameter(group=groups.LEFT_OUT, negative=())
STRENGTH = Parameter(group=groups.STRENGTH, negative=())
ESTIMATED = Parameter(group=groups.ESTIMATED, negative=())
READ = Parameter(group=groups.READ, negative=())
FILE = Parameter(group=groups.FILE, negative=())
COUNTED = Parameter(group=groups.COUNTED, negative=())
LARGE = Parameter(group=groups.LARGE, negative=())
SEARCH = Parameter(group=groups.SEARCH, negative=())
TREND = Parameter(group=groups.TREND, negative=())
TESTS = Parameter(group=groups.TESTS, negative=())

SchemaPath = Annotated[Path | None, SHARED, Parameter(help="Schema file (TOML).")]
Assume = Annotated[
    str | None,
    SHOWN,
    Parameter(
        help="Assumed shares for --tables: uniform (default), worst, a=0.2:0.8,… or @file; "
        "never computed from the data."
    ),
]
TargetOption = Annotated[
    Literal["table", "population"],
    SHOWN,
    Parameter(
        help="Estimand: the shares of these rows (table), or of the population that they are a "
        "sample of (adds sampling error)."
    ),
]
Check = Annotated[
    bool,
    SHOWN,
    Parameter(
        help="Only check the request and the rows, and print the planned output and all errors."
    ),
]
AsJson = Annotated[bool, SHOWN, Parameter(name="--json", help="Print JSON for scripts.")]
Level = Annotated[float, ESTIMATED, Parameter(help="Confidence level of intervals.")]
AnswerFile = Annotated[
    Path | None, SHOWN, Parameter(help="Also write the answer: a .csv, .parquet or .xlsx file.")
]
ForceFiles = Annotated[bool, SHOWN, Parameter(help="Replace existing files.")]


def _check_output(_kind: Any, name: Any) -> None:
    if isinstance(name, str) and name.startswith("-") and name != "-":
        raise ValueError(f"{name} is no output: name a file, or - for standard output")
    if name == "-" and sys.__stdout__ is None:
        raise ValueError("standard output is closed: name a file")


FileOrStream = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_check_output)]
"""An output that may be standard output, as ``-``."""


def refuse_two_outputs(output: str | None, as_json: bool) -> None:
    """Raise if both the mechanism and JSON would go to standard output."""
    if output == "-" and as_json:
        raise InputError(
            "--output - and --json both write to standard output; write the mechanism to a file"
        )


def write_mechanism(design: "Design", output: str, *, force: bool) -> None:
    """Write a mechanism to a file, or to standard output."""
    from deniable.atomic_files import write_file
    from deniable.statement.record import mechanism_to_plain, to_json

    content = to_json(mechanism_to_plain(design))
    if output == "-":
        console.write_data(content)
    else:
        write_file(Path(output), content, overwrite=force)


Force = Annotated[
    bool,
    LEFT_OUT,
    Parameter(
        help="Replace an existing output. Copies of the old one still count: releases of the same "
        "people add up."
    ),
]
NO_OPTION = "there is no option"


def check_inputs(_kind: Any, names: Any) -> None:
    """Refuse a mistyped option in the place of a table."""
    for name in [names] if isinstance(names, str) else names or []:
        if name.startswith("-") and name != "-":
            raise ValueError(f"{NO_OPTION} {name} (a file of that name is ./{name})")


TABLES = ".csv(.gz), .parquet, .xlsx, .ods, .sav, .dta, .sas7bdat, .xpt, PLINK .bed"
"""Endings of tables in the help; importing `tables.formats` is slow."""
_TABLE = f"A table: {TABLES}, or - for CSV on standard input."
InputTable = Annotated[
    str,
    SHARED,
    Parameter(name="INPUT", allow_leading_hyphen=True, validator=check_inputs, help=_TABLE),
]
InputTables = Annotated[
    list[str] | None,
    SHARED,
    Parameter(
        name="INPUT",
        allow_leading_hyphen=True,
        validator=check_inputs,
        help=f"{_TABLE} Several, a folder or 'people/*.parquet' are released in parts.",
    ),
]
Anyway = Annotated[
    bool,
    LEFT_OUT,
    Parameter(
        help="Go on with a table that the mechanism cannot have released (p-value below 1e-6)."
    ),
]
ShowValues = Annotated[
    bool, LEFT_OUT, Parameter(help="Let error messages show the offending (sensitive) value.")
]


ReleaseSource = Annotated[
    str | None,
    ASKED,
    Parameter(
        name="RELEASE",
        allow_leading_hyphen=True,
        validator=check_inputs,
        help="A folder made by share or collect open, or a randomized table.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Selection of released rows, and their mechanism.

    Args:
        mechanism: The mechanism, if RELEASE is a table or there are counts; with --mechanism-by one
            per value of a column, value=file.json.
        mechanism_by: Kept column whose values have different mechanisms.
        counts: A table of counts instead of rows, as any engine makes it: released values, column
            count; with --weights w also the sums w and w_squared; with --by, --where the kept
            columns.
        where: Only rows with column=value, or !=, <, <=, >, >=; several values a|b; kept columns
            only; may be repeated.
        randomized: Suppress the warning about a RELEASE without a mark: --mechanism randomized it.
    """

    mechanism: Annotated[list[str] | None, READ] = None
    mechanism_by: Annotated[str | None, READ] = None
    counts: Annotated[Path | None, READ] = None
    where: Annotated[list[str] | None, ASKED] = None
    randomized: Annotated[bool, READ] = False
    anyway: Anyway = False

    @contextmanager
    def open(self, source: str | None, *, show_values: bool) -> "Iterator[Release]":
        """Yield the release at ``source``."""
        from deniable.estimate.consistency import check_origin
        from deniable.estimate.source import open_release
        from deniable.tables.reading import read_twice

        if source is not None and is_study(Path(source)):
            if self.mechanism is not None or self.counts is not None:
                raise InputError(
                    f"{source} is a study, which has its mechanism and its records; leave out "
                    "--mechanism and --counts"
                )
            release = collected(Path(source))
            check_origin(release, anyway=self.anyway)
            yield release
            return
        release = open_release(source, self._strata(), self.counts, show_values=show_values)
        with read_twice(release.rows) as rows:
            release = replace(release, rows=rows)
            check_origin(release, anyway=self.anyway, randomized=self.randomized)
            yield release

    def _strata(self) -> "Path | Strata | None":
        """Return the file of the mechanism, or the mechanisms by the values of a column."""
        from deniable.cli.options import pairs
        from deniable.mechanism.strata import Strata
        from deniable.statement.record import read_design

        if self.mechanism_by is None:
            if len(self.mechanism or ()) > 1:
                raise InputError("--mechanism was given several times; give --mechanism-by too")
            return None if self.mechanism is None else Path(self.mechanism[0])
        if not self.mechanism:
            raise InputError("--mechanism-by needs --mechanism value=file.json for each value")
        files = pairs(self.mechanism, "--mechanism", "value=file.json")
        read = {value: read_design(file).mechanism for value, file in files.items()}
        return Strata.by_value(read, self.mechanism_by)


def is_study(folder: Path) -> bool:
    """Return whether a folder is that of a study."""
    found = (folder / "study.json").is_file()
    if found and (folder / "record.json").exists():
        raise InputError(f"{folder} holds a study and a release; give each a folder of its own")
    return found


def collected(study: Path) -> "Release":
    """Return the collected records of a study as a release."""
    from deniable.collect import check_installed

    check_installed()
    from deniable.collect.counting import open_collected

    return open_collected(study)


InsecureSeed = Annotated[
    int | None,
    TESTS,
    Parameter(help="NOT PRIVATE. Repeatable randomness for tests; the record states it."),
]


def open_ledger(publication: "Publication", *, seeded: bool = False) -> "Population | None":
    """Return the population in the ledger; None without a ledger."""
    from deniable.release.publication import ledger_of

    population = ledger_of(publication)
    if population is not None and seeded:
        raise InputError(
            "output drawn from a seed is not private and cannot count as a release; leave out "
            "the ledger, or the seed"
        )
    return population


def read_key(publication: "Publication") -> "Signer | None":
    """Return the key, if one is named, with its pass phrase from the environment or a prompt."""
    from deniable.release.publication import key_of

    return key_of(publication, _pass_phrase)


def _pass_phrase() -> str | None:
    import getpass

    from deniable.release.signing import given_phrase

    given = given_phrase()
    if given is None and sys.stdin.isatty():
        return getpass.getpass("Pass phrase of the key: ")
    return given


def read_options(
    publish: "Typed[Publication]",
    file: "Typed[FileFormat]",
    problems: "Problems",
    command: str = "",
    *,
    seeded: bool,
) -> "Options":
    """Return the options of a release with ledger and key opened; ``problems`` collects errors."""
    from deniable.release.release import Options

    publication = publish.read()
    opened: dict[str, Any] = {}
    with problems.at("table"):
        opened["file_format"] = file.read()
    with problems.at("ledger"):
        opened["people"] = open_ledger(publication, seeded=seeded)
    with problems.at("sign"):
        opened["signer"] = read_key(publication)
    return Options(**vars(publication), command=command, **opened)
