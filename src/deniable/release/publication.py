"""Options of a release, as every interface states them.

Light to import: the command line makes its options from the fields.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from deniable._checks import check_fields, check_level
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.ledger import Population
    from deniable.release.signing import Signer

Copy = Literal["sav", "dta", "parquet", "csv"]
"""Further kinds of files of a release."""

OF_A_FOLDER = ("shuffle", "person", "person_epsilon", "overwrite", "sign", "also")


@dataclass(frozen=True, kw_only=True)
class Publication:
    """Options of a release.

    Args:
        shuffle: release the rows in random order (in memory, if not in parts).
        person: column with the person of each row: dropped, and ε is per person.
        person_epsilon: largest ε of all rows of one person, in nats; default: the ε of one row,
            so that several rows of one person are refused.
        drop_other_columns: leave out columns that the schema neither declares nor keeps.
        accept_drafted: release attributes whose categories or ranges come from the data: a
            disclosure of its own, which the report states.
        overwrite: replace an existing output. Copies of the old one still count: releases of the
            same people add up.
        show_values: let error messages show the offending (sensitive) value.
        ledger: ledger in which this release counts (default: the existing ledger in
            DENIABLE_LEDGER).
        population: population of the data: its releases add up (default: all releases of the
            ledger).
        new_population: add the population, people who are not in the ledger; required where the
            ledger has budgets.
        new_ledger: create a missing ledger, also that of DENIABLE_LEDGER, or refuse it, such as a
            mistyped name; by default only the one of `ledger` is created.
        sign: private Ed25519 key (PEM or OpenSSH) that signs the release; its pass phrase is in
            DENIABLE_SIGN_PASSPHRASE, or prompted for at a terminal.
        also: also write the rows in this format: sav (SPSS), dta (Stata), with labels, parquet
            or csv.

    Raises:
        InputError: if a value has another type.

    Examples:
        >>> Publication(shuffle=True).shuffle
        True
    """

    shuffle: bool = False
    person: str | None = None
    person_epsilon: float | None = None
    drop_other_columns: bool = False
    accept_drafted: bool = False
    overwrite: bool = False
    show_values: bool = False
    ledger: str | Path | None = None
    population: str | None = None
    new_population: bool = False
    new_ledger: bool | None = None
    sign: str | Path | None = None
    also: Sequence[Copy] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if self.person_epsilon is not None:
            check_level(self.person_epsilon, "`person_epsilon`")
            if self.person is None:
                raise InputError(
                    "`person_epsilon` limits ε of all rows of a person; name the column that "
                    "identifies persons with `person`"
                )

    @property
    def persons(self) -> list[str]:
        """The person column, if one is named."""
        return [] if self.person is None else [self.person]

    @property
    def rows_of_person(self) -> tuple[str | None, float | None]:
        """The person column, and the allowed ε in nats of all rows of one person."""
        return self.person, self.person_epsilon


def ledger_of(publication: Publication) -> "Population | None":
    """Return the population in its ledger; None without a ledger."""
    from deniable.ledger.book import EVERYBODY, population_of

    return population_of(
        publication.ledger,
        EVERYBODY if publication.population is None else publication.population,
        new=publication.new_population,
        new_ledger=publication.new_ledger,
    )


def key_of(
    publication: Publication, phrase: Callable[[], str | None] | None = None
) -> "Signer | None":
    """Return the key to sign with; ``phrase`` returns the pass phrase, by default from the
    environment."""
    from deniable.release.signing import given_phrase, read_signer

    return (
        None if publication.sign is None else read_signer(publication.sign, phrase or given_phrase)
    )


def refuse_folder(publication: Publication) -> None:
    """Raise if an option of a folder is given for a release without one."""
    for one in fields(publication):
        if one.name in OF_A_FOLDER and getattr(publication, one.name) != one.default:
            raise InputError(f"`{one.name}` is for a folder to publish; leave it out")
