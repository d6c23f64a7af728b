"""Options that several commands have, and classes of related options."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from deniable.cli import console, groups
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.design.request import StrengthRequest
    from deniable.estimate.source import Release
    from deniable.ledger import Population
    from deniable.mechanism.strata import Strata
    from deniable.release.checking import Problems
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
DESIGNED = Parameter(group=groups.DESIGNED, negative=())
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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StrengthOptions:
    """Strength of the randomization in terms other than ε.

    Args:
        attenuation: λ, attenuation of an attribute: 0.5 for all, or 0.9,0.5,0.4 or
            name=0.9,other=0.5 or @file.
        strength: Least entropy of the response over its maximum, 0 to 1, written like
            --attenuation.
        preserve: Least fraction of a covariance to preserve, a:b=0.4; may be repeated.
        matrix: Matrix of an attribute, name=file.json: made by frontier pick, or a list of rows of
            probabilities, one per true category; a,b=file.json merges attributes; may be repeated.
    """

    attenuation: Annotated[str | None, STRENGTH] = None
    strength: Annotated[str | None, STRENGTH] = None
    preserve: Annotated[list[str] | None, STRENGTH] = None
    matrix: Annotated[list[str] | None, STRENGTH] = None

    def requested(self, names: Sequence[str]) -> "StrengthRequest":
        """Return the λ, strengths, covariances and matrices requested for these attributes."""
        from deniable.cli import options
        from deniable.design.request import StrengthRequest

        return StrengthRequest(
            options.number_or_numbers(self.attenuation, names, "--attenuation"),
            options.number_or_numbers(self.strength, names, "--strength"),
            options.preserved(self.preserve, names),
            options.matrices(self.matrix, names),
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TotalOptions:
    """Division of a total among attributes.

    Args:
        given_rest: Cap on ε given the rest of the record: 2x its own ε (method forms: 0.75e, a part
            of the record's), nats, per attribute, or none (defaults: below).
        pair_floor: Least attenuation of a pair over the product of its two, 0 to 1, or none, so
            that pairs can be estimated (defaults: below).
        importance: Weight of the accuracy of an attribute, name=3,…; default 1 (with --epsilon).
        at_most: Largest ε of single attributes, name=1.0,… (with --epsilon).
        pairs: Weight of tables of two attributes against shares, 0 to 1 (method forms, and
            balanced with --epsilon; default 0.2).
        max_questions: Largest number of attributes in a form, 1 to 12 (method forms; default 9,
            or any number of exchangeable attributes).
        allow_changed_levels: Accept a law that misses requested levels; they are listed.
    """

    given_rest: Annotated[str | None, DESIGNED] = None
    pair_floor: Annotated[str | None, DESIGNED] = None
    importance: Annotated[str | None, DESIGNED] = None
    at_most: Annotated[str | None, DESIGNED] = None
    pairs: Annotated[float | None, DESIGNED] = None
    max_questions: Annotated[int | None, DESIGNED] = None
    allow_changed_levels: Annotated[bool, DESIGNED] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DesignOptions(StrengthOptions, TotalOptions):
    """Options of a design.

    Args:
        epsilon: Total for the whole record, in nats, divided among attributes.
        attribute_epsilon: Level per attribute instead: 1,2,1.5 or name=1,other=2 or @file.
        method: Method that finds the law, listed below.
        form_column: Column of the release with the number of the form (method forms).
        response: Randomized response design of an attribute, name=forced:2/3,1/6,1/6: warner:P,
            forced:P,YES,NO, unrelated:P,Q, crosswise:P, triangular:P, kuk:YES,NO[,N], mangat:P or
            disguised:P; may be repeated.
    """

    epsilon: Annotated[float | None, SHARED] = None
    attribute_epsilon: Annotated[str | None, SHARED] = None
    method: Annotated[str | None, SHARED] = None
    form_column: Annotated[str | None, DESIGNED] = None
    response: Annotated[list[str] | None, DESIGNED] = None


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
Weights = Annotated[str | None, ESTIMATED, Parameter(help="Kept column with a weight per row.")]
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


_TABLE = (
    "A table: .csv(.gz), .parquet, .xlsx, .ods, .sav, .dta, .sas7bdat, .xpt, PLINK .bed, or - for "
    "CSV on standard input."
)
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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Format of the table's file, where it is not detected.

    Args:
        separator: Field separator: , ; | tab or another character (default: detected).
        decimal: Decimal separator of numbers: . or a comma.
        encoding: Encoding of the text (default: UTF-8): latin-1, utf-16-le, …
        header: Whether the first row has the columns' names; --no-header: it is data.
        columns: Names of the columns, a,b,…, of a file without a header.
        dates: Format of dates, by the example of the last day of 2025: 31.12.2025 or
            12/31/2025.
        sheet: Sheet of a workbook with the table.
    """

    separator: Annotated[str | None, FILE] = None
    decimal: Annotated[str | None, FILE] = None
    encoding: Annotated[str | None, FILE] = None
    header: Annotated[bool | None, FILE, Parameter(negative="--no-header")] = None
    columns: Annotated[str | None, FILE] = None
    dates: Annotated[str | None, FILE] = None
    sheet: Annotated[str | None, FILE] = None

    def file_format(self) -> "FileFormat":
        """Return the format."""
        from deniable.schema import FileFormat
        from deniable.schema.names import split_names

        names = () if self.columns is None else tuple(split_names(self.columns))
        return FileFormat(
            self.separator, self.decimal, self.encoding, self.header, names, self.dates, self.sheet
        )


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


NewPopulation = Annotated[
    bool,
    COUNTED,
    Parameter(
        help="Add the population, people who are not in the ledger; required where the ledger has "
        "budgets."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LedgerOptions:
    """Ledger of the releases of a population.

    Args:
        ledger: Ledger in which this release counts, created if missing (default: the existing
            ledger in DENIABLE_LEDGER).
        population: Population of the data: its releases add up (default: all releases of the
            ledger).
        new_ledger: Create a missing ledger, also that of DENIABLE_LEDGER; --no-new-ledger: refuse a
            missing one, such as a mistyped name.
    """

    ledger: Annotated[Path | None, COUNTED] = None
    population: Annotated[str | None, COUNTED] = None
    new_population: NewPopulation = False
    new_ledger: Annotated[bool | None, COUNTED, Parameter(negative="--no-new-ledger")] = None

    def remember(self, *, seeded: bool) -> "Population | None":
        """Return the population in the ledger; None without a ledger."""
        from deniable.ledger.book import EVERYBODY, population_of

        whose = population_of(
            self.ledger,
            EVERYBODY if self.population is None else self.population,
            new=self.new_population,
            new_ledger=self.new_ledger,
        )
        if whose is not None and seeded:
            raise InputError(
                "output drawn from a seed is not private and cannot count as a release; leave out "
                "the ledger, or the seed"
            )
        return whose


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SignOptions:
    """Signature of a folder to publish.

    Args:
        sign: Private Ed25519 key (PEM or OpenSSH) that signs the release; its pass phrase is
            prompted for, or read from DENIABLE_SIGN_PASSPHRASE.
    """

    sign: Annotated[Path | None, COUNTED] = None

    def signer(self) -> "Signer | None":
        """Return the key, if one was named."""
        from deniable.release.signing import read_signer

        return None if self.sign is None else read_signer(self.sign, _pass_phrase)


def _pass_phrase() -> str | None:
    """Return the pass phrase of a key, from the environment or a prompt."""
    import getpass
    import sys

    from deniable.release.signing import given_phrase

    given = given_phrase()
    if given is None and sys.stdin.isatty():
        return getpass.getpass("Pass phrase of the key: ")
    return given


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReleaseOptions(LedgerOptions, FileOptions):
    """Options of reading and counting the rows.

    Args:
        drop_other_columns: Leave out columns that the schema neither declares nor keeps.
        accept_drafted: Release attributes whose categories or bin edges come from the data: a
            disclosure of its own, which the report states.
        insecure_seed: NOT PRIVATE. Repeatable randomness for tests; the record states it.
    """

    drop_other_columns: Annotated[bool, LEFT_OUT] = False
    accept_drafted: Annotated[bool, LEFT_OUT] = False
    force: Force = False
    show_values: ShowValues = False
    insecure_seed: Annotated[int | None, TESTS] = None

    def options(self, problems: "Problems", command: str = "") -> "Options":
        """Return the options of a release."""
        from deniable.release.release import Options

        read: dict[str, Any] = {}
        with problems.at("table"):
            read["file_format"] = self.file_format()
        with problems.at("ledger"):
            read["population"] = self.remember(seeded=self.insecure_seed is not None)
        return Options(
            drop_other_columns=self.drop_other_columns,
            accept_drafted=self.accept_drafted,
            overwrite=self.force,
            show_values=self.show_values,
            command=command,
            **read,
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PublishOptions(ReleaseOptions, SignOptions):
    """Options of a folder to publish.

    Args:
        shuffle: Release the rows in random order (in memory, if not in parts).
        person: Column with the person of each row: dropped, and ε is per person.
        person_epsilon: Largest ε of all rows of one person; default: the ε of one row, so that
            several rows of one person are refused.
        also: Also write the rows in this format: sav (SPSS), dta (Stata), with labels; may be
            repeated.
    """

    shuffle: Annotated[bool, SHARED] = False
    person: Annotated[str | None, SHARED] = None
    person_epsilon: Annotated[float | None, SHARED] = None
    also: Annotated[
        list[Literal["sav", "dta", "parquet", "csv"]] | None, FILE, Parameter(name="--as")
    ] = None

    def options(self, problems: "Problems", command: str = "") -> "Options":
        """Return the options of a release, with those of its folder."""
        options, signer = super().options(problems, command), None
        with problems.at("sign"):
            signer = self.signer()
        return replace(
            options,
            shuffle=self.shuffle,
            person=self.person,
            person_epsilon=self.person_epsilon,
            signer=signer,
            also=tuple(self.also or ()),
        )
