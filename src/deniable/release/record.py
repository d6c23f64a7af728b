"""What a release's `record.json` states, and the check that it is true."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from deniable.design.account import Account
from deniable.design.record import finite_or_none, mechanism_to_plain, read_json
from deniable.design.strata import Designs, read_designs, strata_to_plain
from deniable.errors import InputError
from deniable.estimate.source import released_file
from deniable.mechanism.channel import Channel
from deniable.mechanism.prediction import expected_error
from deniable.mechanism.privacy import compose
from deniable.mechanism.strata import Strata
from deniable.release.statements import guarantee_sentence, holds_instead, small_print
from deniable.tables import open_table
from deniable.tables.reading import column_names

FORMAT = "deniable release"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Released:
    """The rows that were written, and how.

    Args:
        file: name of the file in the release's folder.
        sha256: its digest, in hexadecimal.
        columns: its columns, in order.
        n_rows: how many rows.
        shuffled: whether they are in random order.
        secure: whether the random bits were unpredictable.
        person: the column that stated whose row it is, if one was named.
        most_rows: the most rows of one person, if so.
        command: the command that repeats the release, with the input's name only.
        expost: whether a curator randomized the table as a whole.
        numeric: columns of numbers that were contracted towards their mean.
    """

    file: str
    sha256: str
    columns: tuple[str, ...]
    n_rows: int
    shuffled: bool
    secure: bool
    person: str | None
    most_rows: int | None
    command: str
    expost: bool = False
    numeric: tuple[str, ...] = ()


def release_to_plain(
    designs: Designs, released: Released, account: Account | None = None
) -> dict[str, Any]:
    """Return the record of a release: everything in it follows from the mechanism and from what
    was released.

    Args:
        designs: what randomized the rows.
        released: the rows.
        account: of the one design, if there is one and more is known of it than
            :attr:`~deniable.design.account.Design.account`; nothing is searched for here.
    """
    how: dict[str, Any] = {}
    if released.expost:
        strata = None if designs.column is None else strata_to_plain(designs)
        how["expost"] = {"numeric": list(released.numeric), "strata": strata}
    if designs.column is None:
        (design,) = designs.designs.values()
        how["comparison"] = (account or design.account).comparison_to_plain()
        how["mechanism"] = mechanism_to_plain(design)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "software": _software(),
        **_statements(designs, released),
        "command": released.command,
        **how,
    }


def _software() -> str:
    return f"deniable {version('deniable')}"


def _statements(designs: Designs, released: Released) -> dict[str, Any]:
    """Return what a record states and :func:`verify` can compute again."""
    strata = designs.strata
    return {
        "title": strata.schema.title,
        "release": {
            "file": released.file,
            "sha256": released.sha256,
            "rows": released.n_rows,
            "columns": list(released.columns),
            "row_order": "shuffled" if released.shuffled else "kept",
            "randomness": "operating system" if released.secure else "seeded",
        },
        "guarantee": _guarantee(strata, released),
        "attenuation": _attenuations(designs),
        "expected_error": expected_errors(strata, designs.sizes or {"": released.n_rows}),
        "small_print": small_print(
            strata,
            shuffled=released.shuffled,
            person=released.person,
            secure=released.secure,
            numeric=released.numeric,
        ),
    }


def _attenuations(designs: Designs) -> dict[str, Any]:
    names = designs.strata.schema.names
    if designs.column is not None:  # every stratum has its own
        return {"single": dict.fromkeys(names), "pairs": None}
    (design,) = designs.designs.values()
    singles = design.account.strength.attenuation
    return {
        "single": dict(zip(names, singles, strict=True)),
        "pairs": design.account.pairs_to_plain(),
    }


def expected_errors(strata: Strata, sizes: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return, per protected attribute, the standard error of an estimated share: the worst
    category at the least favourable truth.

    Args:
        strata: what randomizes the rows.
        sizes: rows per stratum.
    """
    schema, n_records = strata.schema, sum(sizes.values())

    def error(stratum: str, name: str) -> float:
        channel = Channel(strata.mechanism_of(stratum), (name,))
        return expected_error(channel, sizes[stratum]).worst

    # The strata's errors are independent, and count by the strata's fractions of the rows.
    names = [schema.names[i] for i in schema.protected]
    errors = (math.hypot(*(n / n_records * error(s, a) for s, n in sizes.items())) for a in names)
    return [{"attribute": a, "standard_error": e} for a, e in zip(names, errors, strict=True)]


def _guarantee(strata: Strata, released: Released) -> dict[str, Any]:
    person, most_rows, numeric = released.person, released.most_rows, released.numeric
    per_person = compose([strata.epsilon] * (most_rows or 1))
    return {
        "epsilon": finite_or_none(strata.epsilon),
        "person": None
        if person is None
        else {
            "column": person,
            "most_rows": most_rows,
            "epsilon": finite_or_none(per_person),
        },
        "unprotected": [*strata.unprotected, *numeric],
        "sentence": guarantee_sentence(strata, per_person, numeric),
        "instead": holds_instead(strata, numeric),
    }


def verify(path: Path) -> None:
    """Check what a release's record states beside its mechanism; nothing for a bare mechanism.

    The record is computed again, from its mechanism and from what it says was released (which, if
    the file is there, must be true of it). Not checked: what only the maker can know (row order,
    source of the randomness, command), the comparison with other laws, and the lower bound of ε.

    Raises:
        InputError: if a statement is not what the mechanism and the released rows give.
    """
    file = path / "record.json" if path.is_dir() else path
    plain = read_json(file)
    if plain.get("format") != FORMAT:
        return
    if plain.get("format_version") != FORMAT_VERSION:
        raise InputError(f"{file}: written by a later version of deniable; update it")
    designs = read_designs(file)
    try:
        stored = msgspec.convert(plain, _StoredRelease)
    except msgspec.ValidationError as error:
        raise InputError(f"{file}: the record has been altered: {error}") from None
    released = stored.released()
    if designs.sizes and sum(designs.sizes.values()) != released.n_rows:
        raise InputError(f"{file}: the sizes of the strata do not add up to the number of rows")
    for key, true in _statements(designs, released).items():
        if key == "small_print" and plain.get("software") != _software():
            continue  # its wording belongs to the version; what it says follows from the rest
        if not _agree(plain.get(key), true):
            raise InputError(
                f"{file}: the record's {key.replace('_', ' ')} is not what its mechanism and the "
                "released rows give"
            )
    if (file.parent / released.file).exists():
        _check_rows(released_file(file.parent), released, file)


def _check_rows(data: Path, released: Released, file: Path) -> None:
    if column_names(data) != released.columns:
        raise InputError(f"{file}: the record's columns are not those of {data}")
    with open_table(data, [], released.columns[:1], other_columns="drop") as reader:
        if sum(batch.n_rows for batch in reader) != released.n_rows:
            raise InputError(f"{file}: the record's number of rows is not that of {data}")


def _agree(stated: Any, true: Any) -> bool:
    """Return whether two plain values are equal; numbers up to the rounding of other machines."""
    if isinstance(true, dict):
        return (
            isinstance(stated, dict)
            and stated.keys() == true.keys()
            and all(_agree(stated[key], value) for key, value in true.items())
        )
    if isinstance(true, list | tuple):
        return (
            isinstance(stated, list)
            and len(stated) == len(true)
            and all(_agree(*both) for both in zip(stated, true, strict=True))
        )
    if isinstance(true, float) and isinstance(stated, int | float):
        return math.isclose(stated, true, rel_tol=1e-9, abs_tol=1e-12)
    return bool(stated == true)


class _StoredFile(msgspec.Struct):
    file: str
    sha256: str
    rows: Annotated[int, msgspec.Meta(ge=1)]
    columns: tuple[str, ...]
    row_order: Literal["shuffled", "kept"]
    randomness: Literal["operating system", "seeded"]


class _StoredPerson(msgspec.Struct):
    column: str
    most_rows: Annotated[int, msgspec.Meta(ge=1)]


class _StoredGuarantee(msgspec.Struct):
    person: _StoredPerson | None


class _StoredExPost(msgspec.Struct):
    numeric: tuple[str, ...]


class _StoredRelease(msgspec.Struct):
    release: _StoredFile
    guarantee: _StoredGuarantee
    expost: _StoredExPost | None = None

    def released(self) -> Released:
        release, person = self.release, self.guarantee.person
        return Released(
            file=release.file,
            sha256=release.sha256,
            columns=release.columns,
            n_rows=release.rows,
            shuffled=release.row_order == "shuffled",
            secure=release.randomness == "operating system",
            person=None if person is None else person.column,
            most_rows=None if person is None else person.most_rows,
            command="",
            expost=self.expost is not None,
            numeric=() if self.expost is None else self.expost.numeric,
        )
