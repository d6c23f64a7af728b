"""What a release's `record.json` states, and the check that it is true."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from deniable.analysis import released_file
from deniable.channel import Channel
from deniable.comparison import comparison_to_plain, pair_attenuations
from deniable.errors import InputError
from deniable.inference import expected_error
from deniable.mechanism import Mechanism
from deniable.plan import Design
from deniable.privacy import compose
from deniable.record import (
    finite_or_none,
    mechanism_to_plain,
    read_design,
    read_json,
)
from deniable.statements import guarantee_sentence, small_print
from deniable.strength import mechanism_strength

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
        person: the column that said whose row it is, if one was named.
        most_rows: the most rows of one person, if so.
        command: the command that repeats the release, with the input's name only.
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


def release_to_plain(design: Design, released: Released) -> dict[str, Any]:
    """Return the record of a release: everything in it follows from the mechanism and from what
    was released."""
    mechanism = design.mechanism
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "software": f"deniable {version('deniable')}",
        "title": mechanism.schema.title,
        "release": {
            "file": released.file,
            "sha256": released.sha256,
            "rows": released.n_rows,
            "columns": list(released.columns),
            "row_order": "shuffled" if released.shuffled else "kept",
            "randomness": "operating system" if released.secure else "seeded",
        },
        "guarantee": _guarantee(mechanism, released.person, released.most_rows),
        "attenuation": {
            "single": dict(
                zip(mechanism.schema.names, mechanism_strength(mechanism).attenuation, strict=True)
            ),
            "pairs": pair_attenuations(mechanism),
        },
        "comparison": comparison_to_plain(design),
        "expected_error": expected_errors(mechanism, released.n_rows),
        "command": released.command,
        "small_print": small_print(
            mechanism, shuffled=released.shuffled, person=released.person, secure=released.secure
        ),
        "mechanism": mechanism_to_plain(design),
    }


def expected_errors(mechanism: Mechanism, n_records: int) -> list[dict[str, Any]]:
    """Return, per protected attribute, the standard error of an estimated share: the worst
    category at the least favourable truth, for a table of this many rows."""
    schema = mechanism.schema
    return [
        {
            "attribute": schema.names[i],
            "standard_error": expected_error(
                Channel(mechanism, (schema.names[i],)), n_records
            ).worst,
        }
        for i in schema.protected
    ]


def _guarantee(mechanism: Mechanism, person: str | None, most_rows: int | None) -> dict[str, Any]:
    per_person = compose([mechanism.epsilon] * (most_rows or 1))
    return {
        "epsilon": finite_or_none(mechanism.epsilon),
        "person": None
        if person is None
        else {
            "column": person,
            "most_rows": most_rows,
            "epsilon": finite_or_none(per_person),
        },
        "unprotected": list(mechanism.unprotected),
        "sentence": guarantee_sentence(mechanism, per_person),
    }


def verify(path: Path) -> None:
    """Check what a release's record states beside its mechanism; nothing for a bare mechanism.

    Raises:
        InputError: if a statement is not what the mechanism and the released rows give.
    """
    file = path / "record.json" if path.is_dir() else path
    plain = read_json(file)
    if plain.get("format") != FORMAT:
        return
    mechanism = read_design(file).mechanism
    try:
        stored = msgspec.convert(plain, _StoredRelease)
    except msgspec.ValidationError as error:
        raise InputError(f"{file}: the record has been altered: {error}") from None
    person = stored.guarantee.get("person") or {}
    most = person.get("most_rows")
    if stored.guarantee != _guarantee(mechanism, person.get("column"), most):
        raise InputError(f"{file}: the record's guarantee is not what its mechanism gives")
    pairs = [pair.attenuation for pair in stored.attenuation.pairs or []]
    true_pairs = [pair["attenuation"] for pair in pair_attenuations(mechanism) or []]
    single = list(stored.attenuation.single.values())
    if not (
        _agree(single, mechanism_strength(mechanism).attenuation) and _agree(pairs, true_pairs)
    ):
        raise InputError(f"{file}: the record's attenuations are not what its mechanism gives")
    if (file.parent / stored.release.file).exists():
        released_file(file.parent)


def _agree(said: Sequence[float | None], true: Sequence[float | None]) -> bool:
    return len(said) == len(true) and all(
        a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
        for a, b in zip(said, true, strict=True)
    )


class _StoredPair(msgspec.Struct):
    attributes: tuple[str, str]
    attenuation: float


class _StoredAttenuation(msgspec.Struct):
    single: dict[str, float | None]
    pairs: list[_StoredPair] | None


class _StoredFile(msgspec.Struct):
    file: str
    sha256: str
    rows: int


class _StoredRelease(msgspec.Struct):
    release: _StoredFile
    guarantee: dict[str, Any]
    attenuation: _StoredAttenuation
