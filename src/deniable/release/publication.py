"""The options of a release, as a user states them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from deniable._checks import check_fields
from deniable.errors import InputError
from deniable.ledger.book import EVERYBODY, population_of
from deniable.release.release import Options
from deniable.release.signing import read_signer

_OF_A_FOLDER = ("shuffle", "person", "person_epsilon", "overwrite", "sign", "also")


@dataclass(frozen=True, kw_only=True)
class Publication:
    """Options of a release.

    Args:
        drop_other_columns: leave out columns that the schema neither declares nor keeps, instead
            of refusing them.
        accept_drafted: release attributes whose categories or edges were read off the data.
        ledger: the file in which releases are counted (docs/howto/ledger.md); by default the one
            that the environment variable DENIABLE_LEDGER names, if there is one.
        population: the people in the data, for the ledger.
        new_population: the population is not in the ledger yet; required where that has budgets.
        new_ledger: whether a ledger that does not exist is made; by default only the file of
            ``ledger``.
        shuffle: release the rows in random order.
        person: a column that identifies the person of a row; it is dropped, and ε per person is
            reported.
        person_epsilon: the most ε of all rows of one person, in nats; by default the ε of one row,
            so that a table with several rows of a person is refused.
        overwrite: replace an existing release.
        sign: private Ed25519 key (PEM or OpenSSH) to sign the release with; its pass phrase is in
            the environment variable DENIABLE_SIGN_PASSPHRASE.
        also: further kinds of files with the rows: "sav", "dta", "parquet", "csv".

    Raises:
        InputError: if a value has another type.

    Examples:
        >>> Publication(shuffle=True).shuffle
        True
    """

    drop_other_columns: bool = False
    accept_drafted: bool = False
    ledger: str | Path | None = None
    population: str = EVERYBODY
    new_population: bool = False
    new_ledger: bool | None = None
    shuffle: bool = False
    person: str | None = None
    person_epsilon: float | None = None
    overwrite: bool = False
    sign: str | Path | None = None
    also: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    def options(self, command: str) -> Options:
        """Return the options with the ledger and the key opened; ``command`` is the one that the
        record states."""
        return Options(
            drop_other_columns=self.drop_other_columns,
            accept_drafted=self.accept_drafted,
            population=population_of(
                self.ledger, self.population, new=self.new_population, new_ledger=self.new_ledger
            ),
            shuffle=self.shuffle,
            person=self.person,
            person_epsilon=self.person_epsilon,
            overwrite=self.overwrite,
            signer=None if self.sign is None else read_signer(self.sign),
            also=tuple(self.also),
            command=command,
        )


def refuse_folder(publication: Publication) -> None:
    """Raise if an option of a folder is given for a release without one."""
    for one in fields(publication):
        if one.name in _OF_A_FOLDER and getattr(publication, one.name) != one.default:
            raise InputError(f"`{one.name}` is for a folder to publish; leave it out")
